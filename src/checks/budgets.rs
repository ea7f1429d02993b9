//! `pdb-blocks-drain`, `pdb-status-uncomputable`, `pdb-overlap`, `pdb-stale`, `eviction-bypasses-budget`.

use std::collections::BTreeMap;

use crate::cluster::objects::{IntOrPercent, PodDisruptionBudget};
use crate::kubernetes::disruption::{self, Counted, Status};
use crate::kubernetes::eviction::{self, Answer};
use crate::kubernetes::scheduling;
use crate::report::finding::{Certainty, Finding, Remedy, Severity};
use crate::simulation::cast::Budget;
use crate::simulation::state::{Old, Progress, State};

use super::codes::Code;
use super::{Context, finding, graded, listed, object};

/// What a budget asks for, as its spec says it.
pub fn demand(budget: &PodDisruptionBudget) -> String {
    match (&budget.spec.max_unavailable, &budget.spec.min_available) {
        (Some(share), _) => format!("maxUnavailable {share}"),
        (None, Some(share)) => format!("minAvailable {share}"),
        (None, None) => "neither minAvailable nor maxUnavailable".to_owned(),
    }
}

/// The budget's status with every pod under it healthy, and the replicas it would then need to allow one.
fn at_best(context: &Context<'_>, index: usize) -> Option<Status> {
    let budget = &context.trace.cast.budgets[index];
    let mut pods: Vec<Counted<'_>> = budget
        .others
        .iter()
        .map(|pod| Counted {
            healthy: true,
            ..pod.clone()
        })
        .collect();
    for candidate in &budget.candidates {
        let pod = context.trace.cast.candidates[*candidate].pod;
        pods.push(Counted {
            namespace: &pod.metadata.namespace,
            name: &pod.metadata.name,
            controller: pod.metadata.controller(),
            healthy: true,
        });
    }
    disruption::status(context.snapshot, budget.budget, &pods).ok()
}

/// Budgets that refuse an eviction for ever.
pub fn blocking(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut found = Vec::new();
    // A budget that only stands in for one that was not read blocks too: no finding about it is ever shown, as there is
    // none where no such budget is assumed, but the verdicts must differ.
    for (index, entry) in trace.cast.budgets.iter().enumerate() {
        let blocked = |end: &State<'_>| -> Vec<usize> {
            entry
                .candidates
                .iter()
                .copied()
                .filter(|candidate| end.old[*candidate] == Old::Here && (trace.stuck(end, *candidate) || trace.timed_out(end, *candidate)))
                .collect()
        };
        let Some((severity, certainty)) = graded(trace.paths(|end| !blocked(end).is_empty()), Severity::Unsafe, Severity::AtRisk) else {
            continue;
        };
        let Some(end) = trace.ends.iter().find(|end| !blocked(end).is_empty()) else {
            continue;
        };
        let budget = entry.budget;
        let (namespace, name) = (&budget.metadata.namespace, &budget.metadata.name);
        let pods: Vec<String> = blocked(end)
            .into_iter()
            .map(|candidate| trace.cast.candidates[candidate].pod.metadata.name.clone())
            .collect();
        let node = trace.cast.node_of(&trace.cast.candidates[blocked(end)[0]]);
        let best = at_best(context, index);
        let never = best.as_ref().map(|best| best.allowed() == 0);
        let now = end.allowances[index];
        if let Some(Status::Failed(why)) = &best {
            let mut item = finding(
                Code::PdbStatusUncomputable,
                severity,
                certainty,
                object("PodDisruptionBudget", namespace, name),
                format!("the disruption controller cannot compute {name}, so it allows nothing"),
            );
            item.node = Some(node.to_owned());
            item.evidence = vec![demand(budget), why.clone(), format!("refused: {}", listed(&pods))];
            item.consequence = refusal_consequence(node, &pods);
            item.remedy = Remedy {
                text: "give the budget an integer minAvailable, which needs no scale; or delete it for the time of the drain".to_owned(),
                command: Some(context.kubectl.line(["delete", "pdb", name, "-n", namespace])),
                values_key: None,
            };
            found.push(item);
            continue;
        }
        let late = blocked(end).iter().all(|candidate| trace.timed_out(end, *candidate));
        let word = match never {
            _ if late => "does not allow the next one to go before --timeout ends the waiting",
            Some(true) => "never allows one to go",
            _ if certainty == Certainty::Possible => "may not allow the next one to go, as no replacement may become Ready elsewhere",
            _ => "does not allow the next one to go, as no replacement becomes Ready elsewhere",
        };
        let mut item = finding(
            Code::PdbBlocksDrain,
            severity,
            certainty,
            object("PodDisruptionBudget", namespace, name),
            format!("{name} ({}) {word}", demand(budget)),
        );
        item.node = Some(node.to_owned());
        item.evidence.push(format!(
            "{}: {} healthy, {} wanted, allows {} when the drain stands still",
            demand(budget),
            now.healthy,
            now.desired,
            now.allowed
        ));
        item.evidence.push(format!("refused with 429 every 5 s: {}", listed(&pods)));
        item.evidence.extend(why_not_refilled(context, end, index));
        item.consequence = refusal_consequence(node, &pods);
        item.remedy = remedy(context, index, never == Some(true));
        if late {
            item.consequence = format!("kubectl gives up; {node} stays cordoned with {}", listed(&pods));
            item.remedy = Remedy {
                text: "give --timeout the time of several rounds: a refused eviction is sent again after 5 s, once a replacement is Ready"
                    .to_owned(),
                ..Remedy::default()
            };
        }
        found.push(item);
    }
    found
}

fn refusal_consequence(node: &str, pods: &[String]) -> String {
    format!(
        "kubectl drain goes on until you stop it; {node} stays cordoned with {}",
        listed(pods)
    )
}

/// Why replacements under the budget do not become Ready.
fn why_not_refilled(context: &Context<'_>, end: &State<'_>, index: usize) -> Vec<String> {
    let trace = context.trace;
    let entry = &trace.cast.budgets[index];
    let mut why = Vec::new();
    for new in end.new.iter().filter(|new| entry.sets[new.set]) {
        let key = &trace.cast.workloads[trace.cast.sets[new.set].workload].key;
        match new.progress {
            Progress::Pending | Progress::Nominated { .. } => why.push(format!("a replacement of {key} stays Pending")),
            Progress::Gated => why.push(format!("a replacement of {key} waits behind a scheduling gate")),
            Progress::NotCreated => why.push(format!("a replacement of {key} is not created")),
            Progress::Placed { crashes: true, node } => {
                why.push(format!(
                    "a replacement of {key} crash-loops on {}",
                    trace.cast.placement.nodes()[node].name()
                ));
            }
            Progress::Placed { .. } if !trace.cast.sets[new.set].becomes_ready => {
                why.push(format!("no pod of {key} is Ready, so its replacement will not be"))
            }
            Progress::Placed { .. } => {}
        }
    }
    let unready: Vec<String> = entry
        .others
        .iter()
        .filter(|pod| !pod.healthy)
        .map(|pod| pod.name.to_owned())
        .collect();
    if !unready.is_empty() {
        why.push(format!("not Ready elsewhere: {}", listed(&unready)));
    }
    why.sort();
    why.dedup();
    why
}

/// What makes the budget allow one.
fn remedy(context: &Context<'_>, index: usize, never: bool) -> Remedy {
    let trace = context.trace;
    let entry = &trace.cast.budgets[index];
    let budget = entry.budget;
    let (namespace, name) = (budget.metadata.namespace.as_str(), budget.metadata.name.as_str());
    let workload = entry
        .candidates
        .iter()
        .find_map(|candidate| trace.cast.candidates[*candidate].workload)
        .map(|workload| &trace.cast.workloads[workload]);
    let scale_to = workload.and_then(|workload| Some((&workload.key, workload.wanted? + 1)));
    // More replicas help where a fixed number must remain, and never against a share of them.
    let fixed = budget.spec.max_unavailable.is_none() && matches!(budget.spec.min_available, Some(IntOrPercent::Int(_)));
    let cordoned = trace
        .cast
        .placement
        .nodes()
        .iter()
        .enumerate()
        .find(|(index, state)| state.node().spec.unschedulable && !trace.cast.nodes.contains(index))
        .map(|(_, state)| state.name());
    match scale_to {
        Some((key, replicas)) if never && fixed && matches!(key.kind.as_str(), "Deployment" | "StatefulSet") => {
            let room = if room_for_one_more(context, entry) {
                ""
            } else {
                ", and give the new one a node that it fits on"
            };
            context.scaled(key, replicas, &format!("run {replicas} replicas of {}{room}", key.name))
        }
        _ if never => Remedy {
            text: format!("let {name} allow one disruption; for the time of the drain:"),
            command: Some(context.kubectl.line([
                "patch",
                "pdb",
                name,
                "-n",
                namespace,
                "--type=merge",
                "-p",
                r#"{"spec":{"minAvailable":null,"maxUnavailable":1}}"#,
            ])),
            values_key: None,
        },
        _ if cordoned.is_some() => Remedy {
            text: "uncordon the other node first, and wait until what is Pending is Ready".to_owned(),
            command: cordoned.map(|node| context.kubectl.line(["uncordon", node])),
            values_key: None,
        },
        _ if trace.cast.nodes.len() > 1 => Remedy {
            text: format!(
                "drain one node at a time, and uncordon it before the next: first {}; --one-by-one predicts that",
                trace.cast.node_name(0)
            ),
            command: Some(
                context
                    .kubectl
                    .line(["drain", trace.cast.node_name(0), "--ignore-daemonsets", "--delete-emptydir-data"]),
            ),
            values_key: None,
        },
        _ => Remedy {
            text: "get the missing pods Ready first: see why they are not".to_owned(),
            command: Some(context.kubectl.line(["get", "pods", "-n", namespace, "-o", "wide"])),
            values_key: None,
        },
    }
}

/// Whether some node that stays takes one more pod of what the budget guards.
fn room_for_one_more(context: &Context<'_>, entry: &Budget<'_>) -> bool {
    let cast = &context.trace.cast;
    entry
        .candidates
        .iter()
        .filter_map(|candidate| cast.sets[cast.candidates[*candidate].set?].template)
        .any(|template| {
            scheduling::decide(&cast.placement, &template)
                .iter()
                .any(|decision| State::takes(cast, decision))
        })
}

/// Pods under more than one budget: the eviction ends with an error.
pub fn overlapping(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    if trace.cast.flags.disable_eviction {
        return Vec::new();
    }
    let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for (index, candidate) in trace.cast.candidates.iter().enumerate() {
        if candidate.budgets.len() > 1 && trace.cast.removed(candidate) && !eviction::ignores_budgets(candidate.pod) {
            groups.entry(candidate.budgets.clone()).or_default().push(index);
        }
    }
    let mut found = Vec::new();
    for (budgets, candidates) in groups {
        let failed = trace.paths(|end| candidates.iter().any(|candidate| matches!(end.old[*candidate], Old::Failed(_))));
        let Some((severity, certainty)) = graded(failed, Severity::Unsafe, Severity::AtRisk) else {
            continue;
        };
        let names: Vec<String> = budgets
            .iter()
            .map(|budget| trace.cast.budgets[*budget].budget.metadata.name.clone())
            .collect();
        let pods: Vec<String> = candidates
            .iter()
            .map(|candidate| trace.cast.candidates[*candidate].pod.metadata.name.clone())
            .collect();
        let first = &trace.cast.candidates[candidates[0]];
        let (namespace, node) = (&first.pod.metadata.namespace, trace.cast.node_of(first));
        let mut item = finding(
            Code::PdbOverlap,
            severity,
            certainty,
            object("PodDisruptionBudget", namespace, &names[0]),
            format!(
                "{} {} under more than one budget ({}), which the eviction API refuses",
                listed(&pods),
                if pods.len() == 1 { "is" } else { "are" },
                names.join(", ")
            ),
        );
        item.node = Some(node.to_owned());
        item.evidence = names.iter().map(|name| format!("{name} selects {}", listed(&pods))).collect();
        item.consequence = format!("the eviction API answers 500 whatever the budgets allow; {node} stays cordoned with these pods");
        item.remedy = Remedy {
            text: "keep one of the budgets: narrow the other's selector, or delete it".to_owned(),
            command: Some(
                context
                    .kubectl
                    .line(["delete", "pdb", names.last().unwrap_or(&names[0]), "-n", namespace]),
            ),
            values_key: None,
        };
        found.push(item);
    }
    found
}

/// Budgets whose status lags behind their spec.
pub fn stale(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    trace
        .cast
        .budgets
        .iter()
        .filter(|entry| !entry.unread && entry.first.stale && !trace.cast.flags.disable_eviction)
        .map(|entry| {
            let meta = &entry.budget.metadata;
            let mut item = finding(
                Code::PdbStale,
                Severity::AtRisk,
                Certainty::Possible,
                object("PodDisruptionBudget", &meta.namespace, &meta.name),
                format!(
                    "{} was changed and its status is not computed yet: evictions wait until it is",
                    meta.name
                ),
            );
            item.evidence = vec![format!(
                "generation {}, observedGeneration {}",
                meta.generation, entry.budget.status.observed_generation
            )];
            item.consequence =
                "evictions get 429 until the disruption controller has caught up; this preflight judged the budget as it will be then"
                    .to_owned();
            item.remedy = Remedy {
                text: "wait a few seconds and run this again; if it stays, the controller manager does not run".to_owned(),
                command: Some(
                    context
                        .kubectl
                        .line(["get", "pdb", &meta.name, "-n", &meta.namespace, "-o", "yaml"]),
                ),
                values_key: None,
            };
            item
        })
        .collect()
}

/// Budgets that `--disable-eviction` goes past.
pub fn bypassed(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    if !trace.cast.flags.disable_eviction {
        return Vec::new();
    }
    let Some(start) = trace.ends.first().map(|_| State::new(&trace.cast, false, false)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (index, entry) in trace.cast.budgets.iter().enumerate() {
        let pods: Vec<&str> = entry
            .candidates
            .iter()
            .map(|candidate| &trace.cast.candidates[*candidate])
            .filter(|candidate| !trace.cast.refused(candidate.turn) && !eviction::ignores_budgets(candidate.pod))
            .map(|candidate| candidate.pod.metadata.name.as_str())
            .collect();
        let allowed = usize::try_from(start.allowances[index].allowed).unwrap_or(0);
        let answer = eviction::answer(true, &[(entry.budget, start.allowances[index])]);
        if entry.unread || (pods.len() <= allowed && answer == Answer::AcceptedAtACost) || pods.is_empty() {
            continue;
        }
        let meta = &entry.budget.metadata;
        let names: Vec<String> = pods.iter().map(|pod| (*pod).to_owned()).collect();
        let mut item = finding(
            Code::EvictionBypassesBudget,
            Severity::AtRisk,
            Certainty::Certain,
            object("PodDisruptionBudget", &meta.namespace, &meta.name),
            format!(
                "--disable-eviction deletes pods that {} ({}) would hold back",
                meta.name,
                demand(entry.budget)
            ),
        );
        item.evidence = vec![format!("allows {allowed} now; deleted at once: {}", listed(&names))];
        item.consequence = "the budget is broken for as long as replacements are not Ready".to_owned();
        item.remedy = Remedy {
            text: "leave --disable-eviction out, so that budgets are asked".to_owned(),
            command: None,
            values_key: None,
        };
        found.push(item);
    }
    found
}
