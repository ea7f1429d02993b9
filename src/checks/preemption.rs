//! Pods of a lower priority that have to give way to a replacement: `replacement-preempts`.

use std::collections::{BTreeMap, BTreeSet};

use crate::kubernetes::preemption::priority;
use crate::report::finding::{Remedy, Severity};
use crate::simulation::cast::Workload;
use crate::simulation::state::{Preempted, Progress, State};
use crate::simulation::trace::{Paths, Trace};

use super::codes::Code;
use super::workloads::Applies;
use super::{Context, listed};

/// Whom the replacements of a workload preempt at the end of a path.
fn preempted<'b>(trace: &'b Trace<'_>, end: &'b State<'_>, workload: usize) -> impl Iterator<Item = Preempted> + 'b {
    let by = move |set: usize| trace.cast.sets[set].workload == workload;
    end.preempted.iter().filter(move |(set, _)| by(*set)).map(|(_, victim)| *victim)
}

fn name(trace: &Trace<'_>, victim: Preempted) -> String {
    match victim {
        Preempted::Candidate(index) => {
            let pod = trace.cast.candidates[index].pod;
            format!("{}/{}", pod.metadata.namespace, pod.metadata.name)
        }
        Preempted::Replacement(set) => format!("a replacement of {}", trace.cast.workloads[trace.cast.sets[set].workload].key),
    }
}

/// Each victim, and on how many paths it is one.
fn victims(trace: &Trace<'_>, workload: usize) -> BTreeMap<Preempted, Paths> {
    let all: BTreeSet<Preempted> = trace.ends.iter().flat_map(|end| preempted(trace, end, workload)).collect();
    all.into_iter()
        .map(|victim| {
            (
                victim,
                trace.paths(|end| preempted(trace, end, workload).any(|other| other == victim)),
            )
        })
        .collect()
}

/// What applies to a workload whose replacements preempt others.
pub(super) fn applies(context: &Context<'_>, index: usize, entry: &Workload<'_>) -> Option<Applies> {
    let trace = context.trace;
    let victims = victims(trace, index);
    let paths = trace.paths(|end| preempted(trace, end, index).next().is_some());
    let (first, _) = victims.first_key_value()?;
    let sure = |paths: &Paths| *paths == Paths::All;
    let certain: Vec<String> = victims
        .iter()
        .filter(|(_, paths)| sure(paths))
        .map(|(victim, _)| name(trace, *victim))
        .collect();
    let possible: Vec<String> = victims
        .iter()
        .filter(|(_, paths)| !sure(paths))
        .map(|(victim, _)| name(trace, *victim))
        .collect();
    let message = match (certain.is_empty(), possible.is_empty()) {
        (false, true) => format!("the replacement of {} preempts {}", entry.key, listed(&certain)),
        (true, _) => format!("the replacement of {} may preempt {}", entry.key, listed(&possible)),
        (false, false) => format!(
            "the replacement of {} preempts {}, and may preempt {}",
            entry.key,
            listed(&certain),
            listed(&possible)
        ),
    };
    let own = trace
        .cast
        .sets
        .iter()
        .filter(|set| set.workload == index)
        .map(|set| set.priority)
        .max()
        .unwrap_or(0);
    let facts = |victim: &Preempted| {
        let (place, priority, budgets) = match *victim {
            Preempted::Candidate(index) => {
                let candidate = &trace.cast.candidates[index];
                let budgets = candidate
                    .budgets
                    .iter()
                    .map(|budget| trace.cast.budgets[*budget].budget.metadata.name.as_str());
                (
                    format!(" on {}", trace.cast.node_of(candidate)),
                    priority(&candidate.pod.spec),
                    budgets.collect(),
                )
            }
            Preempted::Replacement(set) => (String::new(), trace.cast.sets[set].priority, Vec::new()),
        };
        let kept = match budgets[..] {
            [] => String::new(),
            _ => format!("; budget {} does not bind the scheduler", budgets.join(", ")),
        };
        format!(
            "{}{place} has priority {priority}, the replacement {own}{kept}",
            name(trace, *victim)
        )
    };
    let command = match *first {
        Preempted::Candidate(index) => {
            let node = trace.cast.node_of(&trace.cast.candidates[index]);
            let selector = format!("spec.nodeName={node}");
            Some(
                context
                    .kubectl
                    .line(["get", "pods", "-A", "-o", "wide", "--field-selector", &selector]),
            )
        }
        Preempted::Replacement(_) => None,
    };
    Some(Applies {
        code: Code::ReplacementPreempts,
        paths,
        own: Severity::AtRisk,
        message,
        evidence: victims.keys().map(facts).collect(),
        remedy: Remedy {
            text: "make room elsewhere before the drain, or give the victims the priority that they deserve".to_owned(),
            command,
            values_key: None,
        },
    })
}

/// What becomes of the victims.
pub(super) fn consequence(context: &Context<'_>, index: usize) -> String {
    let trace = context.trace;
    let mut fates: BTreeSet<String> = BTreeSet::new();
    for victim in victims(trace, index).into_keys() {
        let name = name(trace, victim);
        let Preempted::Candidate(candidate) = victim else {
            fates.insert(format!("{name} waits for another place"));
            continue;
        };
        let Some(set) = trace.cast.candidates[candidate].set.map(|set| &trace.cast.sets[set]) else {
            fates.insert(format!("{name} is deleted, and nothing recreates it"));
            continue;
        };
        let key = &trace.cast.workloads[set.workload].key;
        if let Some(why) = &set.why_none {
            fates.insert(format!("{name} of {key} is deleted: {why}"));
            continue;
        }
        let replaced = |is: &dyn Fn(Progress) -> bool| {
            let gone = |end: &State<'_>| preempted(trace, end, index).any(|other| other == victim);
            trace
                .ends
                .iter()
                .filter(|end| gone(end))
                .any(|end| trace.replacement(end, candidate).is_some_and(|new| is(new.progress)))
        };
        let fate = if replaced(&|progress| !matches!(progress, Progress::Placed { .. })) {
            "makes another one, which finds no place"
        } else if replaced(&|_| true) {
            "makes another one elsewhere"
        } else {
            "makes no other"
        };
        fates.insert(format!("{name} is deleted, and {key} {fate}"));
    }
    fates.into_iter().collect::<Vec<_>>().join("; ")
}
