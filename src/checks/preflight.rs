//! From a snapshot to the document of `drain-preflight`: the drain played out, the checks run, the rows filled in.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::snapshot::Snapshot;
use crate::gpustack::install::{Found, Install};
use crate::kubernetes::drain::{DrainFlags, Filtered};
use crate::kubernetes::eviction;
use crate::kubernetes::scheduling::Placement;
use crate::kubernetes::workloads::Owner;
use crate::report::document::{
    Action, After, DrainOutcome, DrainPreflight, DrainResult, EvictionRow, NodeReason, NodeResult, OwnerInfo, Replacement,
    ReplacementOutcome, UnservedRow, Until,
};
use crate::report::finding::{Certainty, Finding, NotAssessed, Severity, Verdict};
use crate::report::shell::Kubectl;
use crate::simulation::assume::Assume;
use crate::simulation::cast::{Gap, Props};
use crate::simulation::state::{New, Old, Progress, State};
use crate::simulation::successor::successors;
use crate::simulation::trace::{self, Paths, Trace};

use super::assessed::{Accepted, header, missing_right, sort, unknowns};
use super::codes::Code;
use super::{CHECKS, Context, leaders, listed, object, serving, workloads};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// Nodes, in the order in which kubectl takes them.
    pub nodes: Vec<String>,
    /// Flags of the drain.
    pub flags: DrainFlags,
    /// The flags as words, for the document and the command line.
    pub flag_words: Vec<String>,
    /// A drain and an uncordon of each node in turn, instead of one drain of all.
    pub one_by_one: bool,
    /// Nodes that are drained afterwards, in that order.
    pub later: Vec<String>,
    /// Accepted findings.
    pub accept: Vec<Accepted>,
    /// How the user reaches the cluster.
    pub kubectl: Kubectl,
    /// Release to look for.
    pub release: Option<String>,
    /// Namespace to look in.
    pub namespace: Option<String>,
}

/// Plays the drain and writes down what it does.
pub fn assess(snapshot: &Snapshot, found: &Found<'_>, request: &Request) -> DrainPreflight {
    if request.one_by_one && request.nodes.len() > 1 {
        return super::one_by_one::assess(snapshot, request);
    }
    judge(&Placement::new(snapshot), found, request).0
}

/// Plays the drain and writes down what it does; with the clusters that there may be after an uncordon, where another
/// drain follows, and whether there are more of them.
pub(super) fn judge(before: &Placement<'_>, found: &Found<'_>, request: &Request) -> (DrainPreflight, (Vec<Snapshot>, bool)) {
    let snapshot = before.snapshot();
    let install = match found {
        Found::One(install) => Some(install),
        _ => None,
    };
    let plain = Props::new(snapshot, &request.nodes, &BTreeSet::new()).before(&request.later);
    let preempting;
    let mut traces = played(before, &plain, request);
    if traces.iter().any(|trace| !trace.victims.is_empty()) {
        preempting = with_victims(before, &traces, request);
        traces = played(before, &preempting, request);
    }
    let mut parts: Vec<Part<'_>> = traces.iter().map(|trace| Part::new(snapshot, trace, install, request)).collect();
    let gaps = gaps(&traces, found);
    let mut findings = common(parts.iter().map(|part| part.findings.as_slice()).collect());
    // Two ways that are as bad for different reasons have no finding in common: then too it is not known what happens.
    let verdict = Verdict::of(&findings);
    let differ = parts.iter().any(|part| Verdict::of(&part.findings) != verdict);
    let not_assessed = not_assessed(&gaps, differ);
    let about = object("Node", "", request.nodes.first().map_or("", String::as_str));
    findings.extend(unknowns(&not_assessed, &gaps, &about, &request.kubectl));
    for finding in &mut findings {
        finding.accepted = request.accept.iter().any(|accepted| accepted.covers(finding));
    }
    sort(&mut findings);
    let drain = drain_result(&parts, &findings);
    let after = if request.one_by_one {
        // The drain that follows must hold whichever way the unknown is.
        traces.iter().fold((Vec::new(), false), |(mut all, more), trace| {
            let (next, bounded) = successors(trace);
            all.extend(next);
            (all, more || bounded)
        })
    } else {
        (Vec::new(), false)
    };
    let last = parts.len() - 1;
    let part = parts.swap_remove(last);
    let evictions = merged_rows(part.rows, &parts);
    let document = DrainPreflight {
        header: header("DrainPreflight", snapshot, install),
        nodes: request.nodes.clone(),
        flags: request.flag_words.clone(),
        verdict: Verdict::of(&findings),
        drain,
        findings,
        evictions,
        unserved: part.unserved,
        leaders: part.leaders,
        after: part.after,
        drain_command: request.kubectl.line(
            ["drain"]
                .into_iter()
                .map(str::to_owned)
                .chain(request.nodes.iter().cloned())
                .chain(request.flag_words.iter().cloned()),
        ),
        not_assessed,
    };
    (document, after)
}

/// The drain played in every way that is needed to take what is not known.
fn played<'a>(before: &Placement<'a>, props: &'a Props, request: &Request) -> Vec<Trace<'a>> {
    let mut classes = BTreeSet::new();
    loop {
        let traces: Vec<Trace<'_>> = Assume::ways(&classes)
            .into_iter()
            .map(|assume| trace::play(before, props, &request.nodes, &request.flags, assume))
            .collect();
        let found: BTreeSet<_> = traces
            .iter()
            .flat_map(|trace| &trace.gaps)
            .filter_map(|gap| gap.class)
            .chain(classes.iter().copied())
            .collect();
        if found == classes {
            return traces;
        }
        classes = found;
    }
}

/// What takes part with all pods that may be preempted: those that make room, and those that make room for these.
fn with_victims(before: &Placement<'_>, traces: &[Trace<'_>], request: &Request) -> Props {
    let more = |traces: &[Trace<'_>]| -> BTreeSet<_> { traces.iter().flat_map(|trace| trace.victims.clone()).collect() };
    let mut victims = more(traces);
    loop {
        let props = Props::new(before.snapshot(), &request.nodes, &victims).before(&request.later);
        let next = more(&played(before, &props, request));
        if next.is_empty() || victims.len() + next.len() > trace::MAX_VICTIMS {
            return props;
        }
        victims.extend(next);
    }
}

/// What one way to take the unknown gives.
struct Part<'a> {
    trace: &'a Trace<'a>,
    findings: Vec<Finding>,
    rows: Vec<EvictionRow>,
    unserved: Vec<UnservedRow>,
    leaders: Vec<crate::report::document::LeaderRow>,
    after: After,
}

impl<'a> Part<'a> {
    fn new(snapshot: &'a Snapshot, trace: &'a Trace<'a>, install: Option<&'a Install<'a>>, request: &'a Request) -> Self {
        let context = Context {
            snapshot,
            trace,
            install,
            kubectl: &request.kubectl,
        };
        let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&context)).collect();
        for finding in &mut findings {
            finding.accepted = request.accept.iter().any(|accepted| accepted.covers(finding));
        }
        let unserved = serving::rows(&context);
        let after = after(&context, &unserved);
        Self {
            trace,
            findings,
            rows: rows(trace),
            unserved,
            leaders: leaders::leaders(&context).into_iter().map(|leader| leader.row).collect(),
            after,
        }
    }
}

/// Findings that hold however the unknown is taken, each as mild as it can be.
fn common(mut all: Vec<&[Finding]>) -> Vec<Finding> {
    let Some(last) = all.pop() else { return Vec::new() };
    last.iter()
        .filter_map(|finding| {
            let mut mild = finding.clone();
            for others in &all {
                let same = others
                    .iter()
                    .find(|other| other.code == finding.code && other.object == finding.object)?;
                if (same.severity, same.certainty) < (mild.severity, mild.certainty) {
                    mild = same.clone();
                }
            }
            Some(mild)
        })
        .collect()
}

fn gaps(traces: &[Trace<'_>], found: &Found<'_>) -> BTreeSet<Gap> {
    let mut gaps: BTreeSet<Gap> = traces.iter().flat_map(|trace| trace.gaps.iter().cloned()).collect();
    if let Found::Unknown(missing) = found {
        gaps.insert(Gap::unread("whether GPUStack is installed", missing));
    }
    if traces.iter().any(|trace| trace.bounded) {
        gaps.insert(
            Gap::undecided(
                "some orders of events",
                format!(
                    "there are more than {} ways for this drain to go",
                    crate::simulation::explore::MAX_STATES
                ),
            )
            .decisive(),
        );
    }
    gaps
}

/// What was not assessed; it affects the verdict where taking it one way or the other gives another one.
fn not_assessed(gaps: &BTreeSet<Gap>, differ: bool) -> Vec<NotAssessed> {
    let mut list: Vec<NotAssessed> = gaps
        .iter()
        .map(|gap| NotAssessed {
            what: gap.what.clone(),
            why: gap.why.clone(),
            affects_verdict: gap.decisive || differ,
            missing_right: gap.missing.as_ref().and_then(missing_right),
        })
        .collect();
    list.sort();
    list.dedup();
    list
}

/// Findings that say why a drain does not finish.
const CAUSES: &[Code] = &[
    Code::DrainRefused,
    Code::OrphanedDaemonSetPod,
    Code::PdbBlocksDrain,
    Code::PdbStatusUncomputable,
    Code::NodeNotResponding,
    Code::FinalizerHoldsPod,
    Code::StuckTerminating,
    Code::PdbOverlap,
    Code::WebhookBlocksEviction,
];

fn drain_result(parts: &[Part<'_>], findings: &[Finding]) -> DrainResult {
    let traces: Vec<&Trace<'_>> = parts.iter().map(|part| part.trace).collect();
    let turns = traces[0].cast.nodes.len();
    let cause = |node: Option<&str>| {
        findings
            .iter()
            .filter(|finding| {
                CAUSES.contains(&finding.code) && finding.severity >= Severity::AtRisk && finding.severity != Severity::Unknown
            })
            .find(|finding| node.is_none_or(|node| finding.node.as_deref() == Some(node)))
            .map(|finding| finding.message.clone())
    };
    let per_node: Vec<NodeResult> = (0..turns)
        .map(|turn| {
            let all: Vec<(DrainOutcome, Paths)> = traces.iter().map(|trace| trace.outcome(turn)).collect();
            let node = traces[0].cast.node_name(turn);
            let (outcome, certainty) = agreed(&all);
            let why = match outcome {
                DrainOutcome::Finishes => None,
                DrainOutcome::NotReached => Some("an earlier node never ends".to_owned()),
                DrainOutcome::Unknown => Some("it hangs on what was not assessed".to_owned()),
                _ => cause(Some(node)),
            };
            NodeResult {
                node: node.to_owned(),
                outcome,
                certainty,
                why,
            }
        })
        .collect();
    let overall = |trace: &Trace<'_>| {
        let of = |end: &State<'_>| end.ended.iter().copied().max().unwrap_or(DrainOutcome::Finishes);
        let worst = trace.ends.iter().map(of).max().unwrap_or(DrainOutcome::Unknown);
        (worst, trace.paths(|end| of(end) == worst))
    };
    let all: Vec<(DrainOutcome, Paths)> = traces.iter().map(|trace| overall(trace)).collect();
    let (outcome, certainty) = agreed(&all);
    let why = match outcome {
        DrainOutcome::Finishes => finishing(traces[0]),
        DrainOutcome::Unknown => "whether it finishes hangs on what was not assessed".to_owned(),
        _ => cause(None).unwrap_or_else(|| format!("it {}", outcome.as_str())),
    };
    let why = match (certainty, outcome) {
        (Certainty::Possible, DrainOutcome::Hangs | DrainOutcome::Fails) => {
            format!(
                "{why}; that depends on what the scheduler picks and on timing (evictions of one round are taken to be accepted before any pod is gone)"
            )
        }
        _ => why,
    };
    DrainResult {
        outcome,
        certainty,
        why,
        per_node,
    }
}

/// The outcome on which all ways to take the unknown agree.
fn agreed(all: &[(DrainOutcome, Paths)]) -> (DrainOutcome, Certainty) {
    let outcomes: BTreeSet<DrainOutcome> = all.iter().map(|(outcome, _)| *outcome).collect();
    match outcomes.iter().next() {
        Some(outcome) if outcomes.len() == 1 => (
            *outcome,
            if all.iter().all(|(_, paths)| *paths == Paths::All) {
                Certainty::Certain
            } else {
                Certainty::Possible
            },
        ),
        _ => (DrainOutcome::Unknown, Certainty::Possible),
    }
}

fn finishing(trace: &Trace<'_>) -> String {
    let removed = trace
        .cast
        .candidates
        .iter()
        .filter(|candidate| trace.cast.removed(candidate))
        .count();
    let rounds = trace
        .ends
        .iter()
        .flat_map(|end| &end.old)
        .filter_map(|old| old.round())
        .max()
        .unwrap_or(0);
    let verb = if trace.cast.flags.disable_eviction { "deleted" } else { "evicted" };
    match removed {
        0 => format!("nothing is {verb}"),
        1 => format!("1 pod is {verb}"),
        many if rounds > 1 => format!("{many} pods are {verb}, in {rounds} rounds"),
        many => format!("{many} pods are {verb}"),
    }
}

/// One row for each pod on the drained nodes.
fn rows(trace: &Trace<'_>) -> Vec<EvictionRow> {
    trace
        .cast
        .candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| !candidate.victim)
        .map(|(index, candidate)| {
            let pod = candidate.pod;
            let action = trace.ends.iter().map(|end| action(trace, end, index)).max().unwrap_or(Action::Keep);
            let rounds: Option<Option<u32>> = trace.ends.iter().map(|end| end.old[index].round()).min();
            EvictionRow {
                pod: pod.metadata.name.clone(),
                namespace: pod.metadata.namespace.clone(),
                node: trace.cast.node_of(candidate).to_owned(),
                owner: pod.metadata.controller().map(|owner| OwnerInfo {
                    kind: owner.kind.clone(),
                    name: owner.name.clone(),
                }),
                action,
                certainty: action_certainty(trace, index),
                budgets: if trace.cast.removed(candidate) && !eviction::ignores_budgets(pod) {
                    candidate
                        .budgets
                        .iter()
                        .filter(|budget| !trace.cast.budgets[**budget].unread)
                        .map(|budget| trace.cast.budgets[*budget].budget.metadata.name.clone())
                        .collect()
                } else {
                    Vec::new()
                },
                round: rounds.flatten(),
                replacement: replacement(trace, index),
            }
        })
        .collect()
}

/// Whether the pods of a pod's workload that are drained with it end alike, counted, on every path.
fn action_certainty(trace: &Trace<'_>, index: usize) -> Certainty {
    let candidates = &trace.cast.candidates;
    let own = &candidates[index];
    let alike: Vec<usize> = (0..candidates.len())
        .filter(|other| {
            let there = &candidates[*other];
            *other == index || (own.set.is_some() && there.set == own.set && there.turn == own.turn)
        })
        .collect();
    let mut counts = trace.ends.iter().map(|end| {
        let mut actions: Vec<Action> = alike.iter().map(|other| action(trace, end, *other)).collect();
        actions.sort_unstable();
        actions
    });
    let first = counts.next();
    if counts.all(|other| Some(other) == first) {
        Certainty::Certain
    } else {
        Certainty::Possible
    }
}

fn action(trace: &Trace<'_>, end: &State<'_>, index: usize) -> Action {
    let candidate = &trace.cast.candidates[index];
    match (&candidate.filtered, end.ended.get(candidate.turn)) {
        (Filtered::Refuse(_), _) => Action::Refuse,
        (Filtered::Remove, Some(outcome)) if *outcome != DrainOutcome::Refused => match end.old[index] {
            Old::Gone(_) if trace.cast.flags.disable_eviction => Action::Delete,
            Old::Gone(_) => Action::Evict,
            Old::Failed(_) => Action::Fail,
            // The waiting ended before its eviction was tried again.
            Old::Here if *outcome == DrainOutcome::Fails => Action::Fail,
            Old::Here | Old::Terminating(_) => Action::Stuck,
        },
        _ => Action::Keep,
    }
}

fn outcome(new: &New) -> ReplacementOutcome {
    match new.progress {
        Progress::NotCreated => ReplacementOutcome::NotCreated,
        Progress::Gated => ReplacementOutcome::Gated,
        Progress::Pending | Progress::Nominated { .. } => ReplacementOutcome::Pending,
        Progress::Placed { crashes: true, .. } => ReplacementOutcome::CrashLoops,
        Progress::Placed { .. } => ReplacementOutcome::Lands,
    }
}

fn replacement(trace: &Trace<'_>, index: usize) -> Replacement {
    let none = Replacement {
        outcome: ReplacementOutcome::None,
        certainty: Certainty::Certain,
        nodes: Vec::new(),
        reasons: Vec::new(),
    };
    let candidate = &trace.cast.candidates[index];
    if let Some(set) = candidate.set
        && trace.cast.sets[set].unknown
        && matches!(candidate.owner, Owner::Custom(_))
    {
        let reason = trace.cast.sets[set].why_none.clone().unwrap_or_default();
        return Replacement {
            outcome: ReplacementOutcome::Unknown,
            certainty: Certainty::Possible,
            reasons: vec![NodeReason {
                reason,
                count: 0,
                nodes: Vec::new(),
            }],
            ..none
        };
    }
    // Of alike pods nobody can tell which one stands for a pod that was preempted elsewhere.
    let alike = |new: &New| {
        new.replaces
            .is_some_and(|other| other == index || trace.cast.candidates[other].victim && trace.cast.candidates[other].set == candidate.set)
    };
    let of = |end: &State<'_>| {
        let outcomes = end.new.iter().filter(|new| alike(new)).map(outcome);
        outcomes.max().unwrap_or(ReplacementOutcome::None)
    };
    let worst = trace.ends.iter().map(of).max().unwrap_or(ReplacementOutcome::None);
    let same = |end: &State<'_>| end.new.iter().filter(|new| alike(new)).all(|new| outcome(new) == worst);
    let certainty = trace
        .paths(|end| of(end) == worst && same(end))
        .certainty()
        .unwrap_or(Certainty::Possible);
    // In the order of their names, as nodes are.
    let mut nodes: Vec<usize> = Vec::new();
    for end in &trace.ends {
        if let Some(new) = trace.replacement(end, index) {
            nodes.extend(&new.nodes);
            nodes.sort_unstable();
            nodes.dedup();
        }
    }
    let placement = &trace.cast.placement;
    let reasons = trace
        .ends
        .iter()
        .find_map(|end| {
            let position = end.new.iter().position(|new| alike(new) && outcome(new) == worst)?;
            let new = &end.new[position];
            Some(match new.progress {
                Progress::Pending | Progress::Nominated { .. } => workloads::reasons(trace, end, position),
                Progress::NotCreated => workloads::not_created_reasons(trace, trace.cast.sets[new.set].workload)
                    .into_iter()
                    .map(|reason| NodeReason {
                        reason,
                        count: 0,
                        nodes: Vec::new(),
                    })
                    .collect(),
                Progress::Placed { crashes: true, .. } => {
                    let nodes: Vec<String> = new
                        .nodes
                        .iter()
                        .map(|node| end.placement.nodes()[*node].name().to_owned())
                        .collect();
                    vec![NodeReason {
                        reason: "a host port that it binds is taken".to_owned(),
                        count: nodes.len(),
                        nodes,
                    }]
                }
                _ => Vec::new(),
            })
        })
        .unwrap_or_default();
    Replacement {
        outcome: worst,
        certainty,
        nodes: nodes.into_iter().map(|node| placement.nodes()[node].name().to_owned()).collect(),
        reasons,
    }
}

/// The rows of one way to take the unknown where all others agree; where they do not, the replacement is unknown.
fn merged_rows(rows: Vec<EvictionRow>, others: &[Part<'_>]) -> Vec<EvictionRow> {
    rows.into_iter()
        .enumerate()
        .map(|(index, mut row)| {
            for part in others {
                let Some(other) = part.rows.get(index) else { continue };
                if other.action != row.action {
                    row.certainty = Certainty::Possible;
                }
                if other.replacement.outcome != row.replacement.outcome {
                    row.replacement = Replacement {
                        outcome: ReplacementOutcome::Unknown,
                        certainty: Certainty::Possible,
                        nodes: other
                            .replacement
                            .nodes
                            .iter()
                            .chain(&row.replacement.nodes)
                            .cloned()
                            .collect::<BTreeSet<_>>()
                            .into_iter()
                            .collect(),
                        reasons: row.replacement.reasons.clone(),
                    };
                }
            }
            row
        })
        .collect()
}

/// What is left behind once the drain stands still.
fn after(context: &Context<'_>, unserved: &[UnservedRow]) -> After {
    let trace = context.trace;
    let mut pending: BTreeSet<String> = BTreeSet::new();
    let mut exhausted: BTreeSet<String> = BTreeSet::new();
    let mut short: BTreeSet<String> = BTreeSet::new();
    let mut lonely: BTreeMap<String, String> = BTreeMap::new();
    let finished = trace
        .paths(|end| end.ended.len() == trace.cast.nodes.len() && end.ended.iter().all(|outcome| *outcome == DrainOutcome::Finishes))
        == Paths::All;
    for end in &trace.ends {
        for new in &end.new {
            if new.progress.waits() && new.replaces.is_some() {
                pending.insert(trace.cast.workloads[trace.cast.sets[new.set].workload].key.to_string());
            }
        }
        for (index, budget) in trace.cast.budgets.iter().enumerate() {
            if !budget.unread && end.allowances[index].allowed <= 0 {
                exhausted.insert(format!("{}/{}", budget.budget.metadata.namespace, budget.budget.metadata.name));
            }
        }
        for (index, workload) in trace.cast.workloads.iter().enumerate() {
            let now = workload.ready_staying
                + super::count(
                    end.new
                        .iter()
                        .filter(|new| trace.cast.sets[new.set].workload == index && trace.lands(end, new))
                        .count(),
                );
            let jobs = trace
                .cast
                .sets
                .iter()
                .any(|set| set.workload == index && matches!(set.owner, Owner::Job(_)));
            if now < workload.ready_before && !jobs {
                short.insert(workload.key.to_string());
            }
        }
        for served in trace
            .cast
            .hooks
            .iter()
            .filter_map(|hook| hook.served)
            .chain(trace.cast.apis.iter().map(|(_, served)| *served))
        {
            if let Some(node) = only_node(trace, end, served) {
                let entry = &trace.cast.served[served];
                lonely.insert(format!("{}/{}", entry.namespace, entry.name), node);
            }
        }
    }
    let gone = unserved.iter().any(|row| matches!(row.until, Until::Uncordon | Until::Never));
    let mut reasons = Vec::new();
    if !finished {
        reasons.push("this drain does not surely finish".to_owned());
    }
    let list = |set: &BTreeSet<String>| listed(&set.iter().cloned().collect::<Vec<_>>());
    if !short.is_empty() {
        reasons.push(format!(
            "{} {} not back to the Ready count of before",
            list(&short),
            if short.len() == 1 { "is" } else { "are" }
        ));
    }
    if !exhausted.is_empty() {
        reasons.push(format!(
            "{} {} no further eviction",
            list(&exhausted),
            if exhausted.len() == 1 { "allows" } else { "allow" }
        ));
    }
    if let Some((service, node)) = lonely.iter().next() {
        reasons.push(format!("{service} may have its last endpoints on {node} alone"));
    }
    if gone {
        reasons.push("something stays unserved".to_owned());
    }
    let may = reasons.is_empty();
    let why = if may {
        "every evicted workload has its Ready count back, and no budget over it is exhausted; an uncordon moves nothing back".to_owned()
    } else {
        format!(
            "{}; uncordon first, and wait until what is Pending is Ready (an uncordon moves nothing back)",
            reasons.join("; ")
        )
    };
    After {
        pending: pending.into_iter().collect(),
        exhausted_budgets: exhausted.into_iter().collect(),
        next_node_may_follow: may,
        why,
    }
}

/// The one node that may hold all endpoints of something served at the end.
fn only_node(trace: &Trace<'_>, end: &State<'_>, served: usize) -> Option<String> {
    let entry = &trace.cast.served[served];
    if entry.broken.is_some() || entry.unknown.is_some() {
        return None;
    }
    let news: Vec<&New> = end
        .new
        .iter()
        .filter(|new| entry.sets[new.set] && end.ready(&trace.cast, new))
        .collect();
    let mut nodes: BTreeSet<&str> = entry.others.iter().copied().filter(|node| !node.is_empty()).collect();
    for new in &news {
        nodes.extend(new.nodes.iter().map(|node| end.placement.nodes()[*node].name()));
    }
    nodes
        .into_iter()
        .find(|node| {
            entry.others.iter().all(|other| other == node)
                && news
                    .iter()
                    .all(|new| new.nodes.iter().any(|index| end.placement.nodes()[*index].name() == *node))
                && (!entry.others.is_empty() || !news.is_empty())
        })
        .map(str::to_owned)
}
