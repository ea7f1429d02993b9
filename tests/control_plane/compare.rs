//! Holds a preflight's document against what really happened. Pure: both sides are data.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::observed::{Fate, PodReality, Reality, Replacements};
use crate::state::Expect;

/// From harmless to worst; a possible outcome covers itself and everything before it.
const OUTCOMES: [&str; 4] = ["finishes", "refused", "fails", "hangs"];

/// What the state says must happen, against what did.
pub fn happened(expect: &Expect, reality: &Reality) -> Vec<String> {
    let mut problems = Vec::new();
    let happens = &expect.happens;
    let outcome = happens.outcome.as_ref().unwrap_or(&expect.outcome);
    if *outcome != reality.outcome {
        problems.push(format!("the state says the drain {outcome}; really it {}", reality.outcome));
    }
    let counts = [
        ("gone", happens.gone, reality.pods_with(Fate::Gone)),
        ("terminating", happens.terminating, reality.pods_with(Fate::Terminating)),
        ("pending", happens.pending, reality.count(|new| new.pending)),
        ("crash-looping", happens.crash_looping, reality.count(|new| new.crash_looping.len())),
        ("not created", happens.not_created, reality.count(|new| new.not_created)),
        ("landed", happens.landed, reality.count(|new| new.landed.len())),
    ];
    for (what, stated, seen) in counts {
        if stated.is_some_and(|stated| stated != seen) {
            problems.push(format!("the state says {} {what}; really {seen}", stated.unwrap_or_default()));
        }
    }
    if let Some(refused) = &happens.refused {
        let stated: BTreeSet<&str> = refused.iter().map(String::as_str).collect();
        if stated != reality.refused() {
            problems.push(format!("the state says refused: {stated:?}; really {:?}", reality.refused()));
        }
    }
    if let Some(words) = &happens.words
        && !reality.kubectl.iter().any(|line| line.contains(words))
    {
        problems.push(format!("kubectl did not say {words:?} but {:#?}", reality.kubectl));
    }
    problems
}

/// What the state says must be predicted, against the document.
pub fn expected(expect: &Expect, document: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for (what, stated, found) in [
        ("verdict", &expect.verdict, &document["verdict"]),
        ("drain.outcome", &expect.outcome, &document["drain"]["outcome"]),
    ] {
        if found != stated {
            problems.push(format!("the state expects {what} {stated}; the document has {found}"));
        }
    }
    problems.extend(codes(&expect.findings, &expect.absent, document));
    problems
}

/// Findings that must be there and are not, and the other way round.
pub fn codes(there: &[String], absent: &[String], document: &Value) -> Vec<String> {
    let codes: BTreeSet<&str> = items(&document["findings"])
        .filter_map(|finding| finding["code"].as_str())
        .collect();
    let kind = &document["kind"];
    let missing = there.iter().filter(|code| !codes.contains(code.as_str()));
    let present = absent.iter().filter(|code| codes.contains(code.as_str()));
    missing
        .map(|code| format!("the state expects the finding {code}; the {kind} has {codes:?}"))
        .chain(present.map(|code| format!("the state expects no finding {code}; the {kind} has it")))
        .collect()
}

/// Everything in the document that reality contradicts.
pub fn compare(document: &Value, reality: &Reality) -> Vec<String> {
    let mut problems = Vec::new();
    outcomes(document, reality, &mut problems);
    let followed = document["drain"]["certainty"] == "certain"
        && (document["drain"]["outcome"] == reality.outcome || gave_up(text(&document["drain"]["outcome"]), &reality.outcome, reality));
    evictions(document, reality, followed, &mut problems);
    held_up(document, reality, &mut problems);
    left_behind(document, reality, &mut problems);
    unserved(document, reality, &mut problems);
    leaders(document, reality, &mut problems);
    afterwards(document, reality, followed, &mut problems);
    false_safe(document, reality, &mut problems);
    problems
}

/// With --timeout kubectl gives up on what would never end, and reality cannot tell that from being late.
fn gave_up(predicted: &str, really: &str, reality: &Reality) -> bool {
    predicted == "hangs" && really == "fails" && reality.flags.iter().any(|flag| flag.starts_with("--timeout"))
}

fn outcomes(document: &Value, reality: &Reality, problems: &mut Vec<String>) {
    let mut check = |what: &str, predicted: &Value, really: &str| {
        let outcome = predicted["outcome"].as_str().unwrap_or_default();
        let rank = |outcome: &str| OUTCOMES.iter().position(|known| *known == outcome);
        let agrees = match predicted["certainty"].as_str() {
            _ if outcome == "unknown" => true,
            Some("possible") => rank(really) <= rank(outcome),
            _ => really == outcome,
        };
        if !agrees && !gave_up(outcome, really, reality) {
            problems.push(format!(
                "{what}: predicted {outcome} ({}, {}); really {really}",
                predicted["certainty"], predicted["why"]
            ));
        }
    };
    check("drain", &document["drain"], &reality.outcome);
    for node in &reality.per_node {
        match items(&document["drain"]["perNode"]).find(|predicted| predicted["node"] == node.node) {
            Some(predicted) if predicted["outcome"] != "not-reached" && node.outcome != "not-reached" => {
                check(&format!("node {}", node.node), predicted, &node.outcome)
            }
            Some(predicted) if predicted["certainty"] == "certain" && predicted["outcome"] != node.outcome => {
                check(&format!("node {}", node.node), predicted, &node.outcome);
            }
            Some(_) => {}
            None => check(&format!("node {}", node.node), &Value::Null, &node.outcome),
        }
    }
}

/// What one workload's pods were predicted to do, or did.
#[derive(Default, PartialEq, Debug)]
struct Counts {
    gone: usize,
    remaining: usize,
}

fn evictions(document: &Value, reality: &Reality, followed: bool, problems: &mut Vec<String>) {
    let mut real: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut predicted: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut replacements: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    // The action of these is the worst that can be.
    let mut hedged: BTreeSet<&str> = BTreeSet::new();
    for pod in &reality.pods {
        let Some(entry) = entry(document, pod) else {
            if pod.fate != Fate::Kept {
                problems.push(format!(
                    "pod {}/{}: not in evictions; really {:?}",
                    pod.namespace, pod.name, pod.fate
                ));
            }
            continue;
        };
        let action = entry["action"].as_str().unwrap_or_default();
        let touched = pod.fate == Fate::Gone || (pod.fate == Fate::Terminating && !pod.ending);
        if ["keep", "refuse"].contains(&action) && touched && document["drain"]["certainty"] == "certain" {
            problems.push(format!(
                "pod {}/{}: predicted {action}; really {:?}",
                pod.namespace, pod.name, pod.fate
            ));
        }
        if entry["certainty"] == "possible" {
            hedged.insert(&pod.workload);
        }
        let (real, predicted) = (real.entry(&pod.workload).or_default(), predicted.entry(&pod.workload).or_default());
        *(if pod.fate == Fate::Gone {
            &mut real.gone
        } else {
            &mut real.remaining
        }) += 1;
        *(if ["evict", "delete"].contains(&action) {
            &mut predicted.gone
        } else {
            &mut predicted.remaining
        }) += 1;
        // Of identical pods another one may have gone: what is predicted for those that are sent is counted, whichever they are.
        if ["evict", "delete"].contains(&action) || !entry["round"].is_null() {
            replacements.entry(&pod.workload).or_default().push(&entry["replacement"]);
        }
    }
    for entry in items(&document["evictions"]) {
        if !reality
            .pods
            .iter()
            .any(|pod| entry["pod"] == pod.name && entry["namespace"] == pod.namespace)
        {
            problems.push(format!(
                "eviction of {}/{}: no such pod was on the drained nodes",
                entry["namespace"], entry["pod"]
            ));
        }
    }
    if followed {
        for (workload, predicted) in &predicted {
            let better = |real: &Counts| hedged.contains(workload) && real.remaining <= predicted.remaining;
            if !real.get(workload).is_some_and(|real| real == predicted || better(real)) {
                problems.push(format!("{workload}: predicted {predicted:?}; really {:?}", real.get(workload)));
            }
        }
        let none = Replacements::default();
        // Only built-in controllers run here: nothing replaces the pods of a custom kind.
        for (workload, predicted) in replacements.iter().filter(|(workload, _)| builtin(workload)) {
            let real = reality.replacements.get(*workload).unwrap_or(&none);
            replaced(workload, predicted, real, problems);
        }
    }
}

fn builtin(workload: &str) -> bool {
    let kinds = [
        "Pod",
        "Deployment",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
        "DaemonSet",
        "Job",
    ];
    kinds.iter().any(|kind| workload.split('/').next() == Some(kind))
}

/// From harmless to worst; a possible replacement covers itself and everything before it.
const REPLACEMENTS: [&str; 6] = ["none", "lands", "gated", "pending", "not-created", "crash-loops"];

fn replaced(workload: &str, predicted: &[&Value], real: &Replacements, problems: &mut Vec<String>) {
    if predicted.iter().any(|replacement| replacement["outcome"] == "unknown") {
        return;
    }
    let count = |outcome: &str| predicted.iter().filter(|replacement| replacement["outcome"] == outcome).count();
    let running = real.landed.len() + real.never_ready.len();
    let really = [
        ("lands", running),
        ("gated", real.gated),
        ("pending", real.pending),
        ("not-created", real.not_created),
        ("crash-loops", real.crash_looping.len()),
    ];
    let certain = predicted
        .iter()
        .all(|replacement| replacement["outcome"] == "none" || replacement["certainty"] == "certain");
    for (outcome, seen) in really {
        let rank = |name: &str| REPLACEMENTS.iter().position(|known| *known == name);
        let worse: usize = REPLACEMENTS
            .iter()
            .filter(|other| rank(other) >= rank(outcome))
            .map(|other| count(other))
            .sum();
        let agrees = if certain { seen == count(outcome) } else { seen <= worse };
        if !agrees {
            let outcomes: Vec<_> = predicted
                .iter()
                .map(|replacement| format!("{} {}", replacement["outcome"], replacement["certainty"]))
                .collect();
            problems.push(format!(
                "{workload}: replacements predicted {outcomes:?}; really {real:?} ({outcome})"
            ));
        }
    }
    let nodes: BTreeSet<&str> = predicted
        .iter()
        .flat_map(|replacement| items(&replacement["nodes"]))
        .filter_map(Value::as_str)
        .collect();
    for node in real.landed.iter().chain(&real.never_ready).chain(&real.crash_looping) {
        if !nodes.contains(node.as_str()) {
            problems.push(format!("{workload}: replacements predicted on {nodes:?}; really on {node}"));
        }
    }
}

/// Pods by workload, counted, as which of identical ones it is depends on timing.
type ByWorkload<'a> = BTreeMap<&'a str, usize>;

fn by_workload(reality: &Reality, of: impl Fn(&PodReality) -> bool) -> ByWorkload<'_> {
    let mut counts = BTreeMap::new();
    for pod in reality.pods.iter().filter(|pod| of(pod)) {
        *counts.entry(pod.workload.as_str()).or_default() += 1;
    }
    counts
}

fn within(few: &ByWorkload<'_>, many: &ByWorkload<'_>) -> bool {
    few.iter()
        .all(|(workload, count)| many.get(workload).is_some_and(|most| count <= most))
}

/// Whether the pods that hold up a drain that hangs are those predicted.
pub fn stuck_exact(document: &Value, reality: &Reality) -> bool {
    let stays = |actions: &'static [&'static str]| {
        by_workload(reality, |pod| {
            entry(document, pod).is_some_and(|entry| actions.contains(&text(&entry["action"])))
        })
    };
    let (stuck, left) = (stays(&["stuck"]), stays(&["stuck", "fail"]));
    within(&by_workload(reality, |pod| reality.stuck(pod)), &stuck) && by_workload(reality, |pod| reality.left(pod)) == left
}

/// The pods that hold up a drain that hangs.
fn held_up(document: &Value, reality: &Reality, problems: &mut Vec<String>) {
    if reality.outcome != "hangs" || stuck_exact(document, reality) {
        return;
    }
    let certain = document["drain"]["certainty"] == "certain"
        && !items(&document["evictions"]).any(|entry| entry["action"] == "stuck" && entry["certainty"] == "possible");
    let predicted = by_workload(reality, |pod| entry(document, pod).is_some_and(|entry| entry["action"] == "stuck"));
    let real = by_workload(reality, |pod| reality.stuck(pod));
    if certain || !within(&real, &predicted) {
        problems.push(format!("stuck pods: predicted {predicted:?}; really {real:?}"));
    }
}

fn entry<'a>(document: &'a Value, pod: &PodReality) -> Option<&'a Value> {
    items(&document["evictions"]).find(|entry| entry["pod"] == pod.name && entry["namespace"] == pod.namespace && entry["node"] == pod.node)
}

/// What is left without a place, crashing or not made was told beforehand, whatever else was hedged.
fn left_behind(document: &Value, reality: &Reality, problems: &mut Vec<String>) {
    // Victims of preemption are evicted by nobody: a finding names their workload.
    let named = |workload: &str| {
        items(&document["findings"]).any(|finding| {
            let object = &finding["object"];
            let key = format!("{}/{}/{}", text(&object["kind"]), text(&object["namespace"]), text(&object["name"]));
            text(&finding["code"]).starts_with("replacement-") && key == workload
        })
    };
    for (workload, new) in &reality.replacements {
        if !reality.pods.iter().any(|pod| pod.workload == *workload) && named(workload) {
            continue;
        }
        let told = told(document, reality, workload);
        let really = [
            ("gated", new.gated),
            ("pending", new.pending),
            ("not-created", new.not_created),
            ("crash-loops", new.crash_looping.len()),
        ];
        for (outcome, seen) in really {
            let rank = |name: &str| REPLACEMENTS.iter().position(|known| *known == name);
            let covers = |told: &&&str| **told == "unknown" || rank(told) >= rank(outcome);
            if told.iter().filter(covers).count() < seen {
                problems.push(format!("{workload}: replacements told {told:?}; really {seen} {outcome}"));
            }
        }
    }
}

/// What is told of the replacements of a workload's pods.
fn told<'a>(document: &'a Value, reality: &Reality, workload: &str) -> Vec<&'a str> {
    let pods = reality.pods.iter().filter(|pod| pod.workload == workload);
    pods.filter_map(|pod| entry(document, pod)?["replacement"]["outcome"].as_str())
        .collect()
}

/// The leases that lose their holder. Which of identical pods goes depends on timing, so one that might have gone may be listed.
fn leaders(document: &Value, reality: &Reality, problems: &mut Vec<String>) {
    let Some(real) = &reality.leaders else { return };
    let listed: BTreeMap<String, &str> = items(&document["leaders"])
        .map(|row| (format!("{}/{}", text(&row["namespace"]), text(&row["lease"])), text(&row["holder"])))
        .collect();
    for (lease, holder) in real {
        let namespace = lease.split('/').next().unwrap_or_default();
        let goes = |pod: &PodReality| pod.name == *holder && pod.namespace == namespace && pod.fate != Fate::Kept;
        let told = listed.get(lease).copied();
        if (told.is_none() && reality.pods.iter().any(goes)) || told.is_some_and(|told| !told.split(" or ").any(|one| one == holder)) {
            problems.push(format!("lease {lease}: predicted leader {told:?}; really {holder} goes"));
        }
    }
    for lease in listed.keys().filter(|lease| !real.contains_key(*lease)) {
        problems.push(format!("lease {lease}: its holder is not on a drained node"));
    }
}

/// What the document says about the time after the drain.
fn afterwards(document: &Value, reality: &Reality, followed: bool, problems: &mut Vec<String>) {
    let after = &document["after"];
    let names = |field: &str| -> BTreeSet<String> { items(&after[field]).filter_map(Value::as_str).map(str::to_lowercase).collect() };
    let pending: BTreeSet<String> = reality
        .replacements
        .iter()
        .filter(|(_, new)| new.pending > 0)
        .map(|(workload, _)| workload.to_lowercase())
        .collect();
    let told = names("pending");
    if !pending.is_subset(&told) || (followed && !hedged(document) && pending != told) {
        problems.push(format!("after.pending: predicted {told:?}; really {pending:?}"));
    }
    if !followed {
        return;
    }
    // Only budgets over the drained pods are looked at.
    let concerned: BTreeSet<String> = items(&document["evictions"])
        .flat_map(|entry| items(&entry["budgets"]).map(|name| format!("{}/{}", text(&entry["namespace"]), text(name))))
        .collect();
    let exhausted: BTreeSet<&String> = reality.exhausted_budgets.intersection(&concerned).collect();
    let told = names("exhaustedBudgets");
    if let Some(budget) = exhausted.iter().find(|budget| !told.contains(**budget)) {
        problems.push(format!("after.exhaustedBudgets: predicted {told:?}; really also {budget}"));
    }
    let gone: BTreeSet<&str> = reality
        .pods
        .iter()
        // Nothing brings back what has no controller, which is told by a finding of its own.
        .filter(|pod| pod.fate == Fate::Gone && !pod.workload.starts_with("Job/") && !pod.workload.starts_with("Pod/"))
        .map(|pod| pod.workload.as_str())
        .collect();
    let short: Vec<&String> = reality.short.iter().filter(|workload| gone.contains(workload.as_str())).collect();
    if after["nextNodeMayFollow"] == true && (!short.is_empty() || !exhausted.is_empty() || reality.outcome != "finishes") {
        problems.push(format!(
            "after.nextNodeMayFollow: really the drain {}, fewer Ready in {short:?}, used up {exhausted:?}",
            reality.outcome
        ));
    }
    for workload in reality.without_ready.iter().filter(|workload| gone.contains(workload.as_str())) {
        if !named(document, workload) {
            problems.push(format!("{workload}: no finding says that nothing of it is Ready afterwards"));
        }
    }
}

/// Whether a finding that is more than a note is about a workload.
fn named(document: &Value, workload: &str) -> bool {
    let mut parts = workload.splitn(3, '/').skip(1);
    let (namespace, name) = (parts.next(), parts.next());
    items(&document["findings"]).any(|finding| {
        let object = &finding["object"];
        object["namespace"].as_str() == namespace && object["name"].as_str() == name
    })
}

/// Whether anything was told as possible only.
pub fn hedged(document: &Value) -> bool {
    let possible = |value: &Value| value["certainty"] == "possible";
    possible(&document["drain"])
        || items(&document["evictions"]).any(|entry| possible(entry) || possible(&entry["replacement"]))
        || items(&document["unserved"]).any(possible)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn unserved(document: &Value, reality: &Reality, problems: &mut Vec<String>) {
    // Where nothing is to go and nothing goes, nobody asks what is served.
    let idle = items(&document["evictions"]).all(|entry| entry["action"] == "keep" || entry["action"] == "refuse")
        && reality.pods_with(Fate::Kept) == reality.pods.len();
    for probe in &reality.probes {
        let predicted: Vec<&Value> = items(&document["unserved"])
            .filter(|entry| entry["what"] == probe.what && entry["name"] == probe.name)
            .collect();
        let until = |entry: &&Value, until: &str| entry["until"] == until;
        if probe.before && !idle && !predicted.iter().any(|entry| until(entry, "already")) {
            problems.push(format!(
                "{} {}: really unserved before the drain; predicted {predicted:?}",
                probe.what, probe.name
            ));
        }
        if probe.refused() && !probe.before && !predicted.iter().any(|entry| !until(entry, "already")) {
            problems.push(format!(
                "{} {}: really refused for {:.1} s; predicted {predicted:?}",
                probe.what, probe.name, probe.refused_seconds
            ));
        }
        let later = |entry: &&&Value| !until(entry, "already");
        if probe.refused() && probe.at_end && !probe.before && predicted.iter().filter(later).all(|entry| until(entry, "replacement-ready"))
        {
            problems.push(format!(
                "{} {}: still refused at the end; predicted {predicted:?}",
                probe.what, probe.name
            ));
        }
        for entry in predicted.iter().filter(|entry| entry["certainty"] == "certain") {
            // The drain may also bring back what was not served: its pods move to where they can run.
            if until(entry, "already") {
                if !probe.before {
                    problems.push(format!(
                        "{} {}: really served before the drain; predicted {entry}",
                        probe.what, probe.name
                    ));
                }
                continue;
            }
            let brief = until(entry, "replacement-ready");
            if !probe.refused() && !brief {
                problems.push(format!(
                    "{} {}: predicted unserved until {}; really refused for {:.1} s",
                    probe.what, probe.name, entry["until"], probe.refused_seconds
                ));
            }
            if probe.at_end == brief {
                problems.push(format!(
                    "{} {}: predicted unserved until {}; at the end really refused: {}",
                    probe.what, probe.name, entry["until"], probe.at_end
                ));
            }
        }
    }
}

/// The one fault that nothing excuses.
fn false_safe(document: &Value, reality: &Reality, problems: &mut Vec<String>) {
    let mut wrong = Vec::new();
    if reality.outcome != "finishes" {
        wrong.push(format!("the drain {}", reality.outcome));
    }
    wrong.extend(
        reality
            .probes
            .iter()
            .filter(|probe| probe.refused() && !probe.before)
            .map(|probe| format!("{} was refused for {:.1} s", probe.name, probe.refused_seconds)),
    );
    for (workload, new) in &reality.replacements {
        // A workload that goes on may be short of one, where that is told.
        let goes_on = reality.short.contains(workload) && !reality.without_ready.contains(workload);
        let told = goes_on && told(document, reality, workload).contains(&"not-created");
        if !new.crash_looping.is_empty() || (new.not_created > 0 && !told) {
            wrong.push(format!("{workload} is left with {new:?}"));
        }
    }
    // A component's gap may be no more than a note, and a Job's pods come back by themselves; a workload that nothing serves is not.
    wrong.extend(
        reality
            .without_ready
            .iter()
            .filter(|workload| {
                ["Deployment/app", "Deployment/tenant", "StatefulSet/", "Pod/"]
                    .iter()
                    .any(|kind| workload.starts_with(kind))
            })
            .map(|workload| format!("{workload} has nothing Ready any more")),
    );
    if document["verdict"] == "safe" && !wrong.is_empty() {
        problems.push(format!("FALSE SAFE: {}", wrong.join("; ")));
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
