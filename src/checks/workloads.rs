//! What the drain takes from each workload: `host-port-collision`, `gpu-capacity-short`, `volume-pinned`,
//! `replacement-*`, `leader-without-standby`, `single-replica`, `replica-never-ready`.
//!
//! Of one workload's loss only the first of these carries the severity; the others are information.

use crate::gpustack::components::{ComponentId, Loss};
use crate::kubernetes::autoscaling;
use crate::kubernetes::scheduling::{self, Decision, Incoming};
use crate::kubernetes::workloads::Owner;
use crate::report::document::NodeReason;
use crate::report::finding::{Certainty, Finding, Remedy, Severity};
use crate::simulation::cast::{Set, Workload};
use crate::simulation::state::{New, Old, Progress, Retry, State};
use crate::simulation::trace::{Paths, Trace};

use super::codes::Code;
use super::leaders::{self, Leader};
use super::{Context, count, finding, graded, listed, object, preemption, scalable};

/// One code that applies to a workload, before it is known which carries the severity.
pub(super) struct Applies {
    pub(super) code: Code,
    pub(super) paths: Paths,
    /// Severity of its own, whatever the workload loses.
    pub(super) own: Severity,
    pub(super) message: String,
    pub(super) evidence: Vec<String>,
    pub(super) remedy: Remedy,
}

/// Pods of a workload that run off the drained nodes at the end.
fn left(trace: &Trace<'_>, end: &State<'_>, workload: usize, ready_only: bool) -> i64 {
    let entry = &trace.cast.workloads[workload];
    let staying = if ready_only {
        entry.ready_staying
    } else {
        count(entry.staying.iter().filter(|pod| pod.status.phase == "Running").count())
    };
    let here = count(
        (0..end.old.len())
            .filter(|index| {
                let candidate = &trace.cast.candidates[*index];
                candidate.workload == Some(workload)
                    && matches!(end.old[*index], Old::Here | Old::Failed(_))
                    && (candidate.pod.ready() || !ready_only)
            })
            .count(),
    );
    let back = count(
        end.new
            .iter()
            .filter(|new| trace.cast.sets[new.set].workload == workload && trace.lands(end, new))
            .count(),
    );
    staying + here + back
}

/// What a workload loses, by the rows of the severity table.
fn severity(context: &Context<'_>, index: usize, entry: &Workload<'_>, component: Option<ComponentId>) -> Option<(Severity, Certainty)> {
    let trace = context.trace;
    let controller = component.map(|id| id.info().loss).filter(|loss| *loss != Loss::Served);
    let before = if controller.is_some() {
        entry.pods_before
    } else {
        entry.ready_before
    };
    if before == 0 || entry.wanted == Some(0) {
        return None;
    }
    // What waits behind a gate, or is back on the drained node, may be all that is needed, or not.
    let unsure = |end: &State<'_>| {
        end.new.iter().enumerate().any(|(position, new)| {
            let mine = trace.cast.sets[new.set].workload == index;
            let admissible = new.progress == Progress::Gated && trace.placeable_once_admitted(end, position);
            mine && (admissible || trace.returns(new) && end.ready(&trace.cast, new))
        })
    };
    let gone = match (
        trace.paths(|end| left(trace, end, index, true) == 0 && !unsure(end)),
        trace.paths(|end| left(trace, end, index, true) == 0),
    ) {
        (Paths::All, _) => Paths::All,
        (_, Paths::None) => Paths::None,
        _ => Paths::Some,
    };
    let zero = trace.paths(|end| end.workload_lows[index].certain == 0);
    let maybe_zero = trace.paths(|end| end.workload_lows[index].possible == 0);
    let paused = match (zero, maybe_zero) {
        (Paths::All, _) => Paths::All,
        (Paths::None, Paths::None) => Paths::None,
        _ => Paths::Some,
    };
    let worst = |rows: &[Option<(Severity, Certainty)>]| {
        rows.iter()
            .flatten()
            .copied()
            .max_by_key(|(severity, certainty)| (*severity, *certainty))
    };
    match controller {
        Some(Loss::FeatureLabels) => worst(&[
            graded(gone, Severity::AtRisk, Severity::Info),
            graded(paused, Severity::AtRisk, Severity::Info),
        ]),
        Some(Loss::Storage) => worst(&[
            graded(gone, Severity::AtRisk, Severity::Info),
            graded(paused, Severity::Info, Severity::Info),
        ]),
        Some(_) => worst(&[
            graded(paused, Severity::Info, Severity::Info),
            graded(gone, Severity::Info, Severity::Info),
        ]),
        None => {
            let one = if entry.ready_before >= 2 {
                trace.paths(|end| left(trace, end, index, true) == 1)
            } else {
                Paths::None
            };
            worst(&[
                graded(gone, Severity::Unsafe, Severity::AtRisk),
                graded(paused, Severity::AtRisk, Severity::Info),
                graded(one, Severity::AtRisk, Severity::Info),
                Some((Severity::Info, Certainty::Certain)).filter(|_| gone != Paths::None || paused != Paths::None || one != Paths::None),
            ])
        }
    }
}

/// The losses of all workloads.
pub fn losses(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let leaders = leaders::leaders(context);
    let mut found = Vec::new();
    for (index, entry) in trace.cast.workloads.iter().enumerate() {
        let sets: Vec<usize> = (0..trace.cast.sets.len())
            .filter(|set| trace.cast.sets[*set].workload == index)
            .collect();
        // Jobs have a row of their own, pods that nothing recreates too; owners that are not ours to know have none.
        let skipped = sets.iter().all(|set| {
            let set = &trace.cast.sets[*set];
            matches!(set.owner, Owner::Job(_) | Owner::Gone(_) | Owner::DaemonSet(_))
                || matches!(set.owner, Owner::Custom(_)) && set.unknown
                || set.owner.terminating()
        });
        let touched = (0..trace.cast.candidates.len()).any(|candidate| {
            let there = &trace.cast.candidates[candidate];
            there.workload == Some(index) && (!there.victim || trace.ends.iter().any(|end| end.old[candidate] != Old::Here))
        });
        if skipped || !entry.counted || !touched {
            continue;
        }
        let component = context.component(&entry.key.kind, &entry.key.namespace, &entry.key.name);
        let loss = severity(context, index, entry, component);
        let mut carried = false;
        for applies in applying(context, index, entry, &leaders) {
            let Some(certainty) = applies.paths.certainty() else { continue };
            // The first to apply carries how bad the loss is. What it says itself may be less certain than the loss.
            let carries = loss.filter(|_| !carried);
            carried |= carries.is_some() || applies.own > Severity::Info;
            let (severity, of) = carries.map_or((applies.own, certainty), |loss| loss.max((applies.own, certainty)));
            let certainty = certainty.min(of);
            let mut item = finding(
                applies.code,
                severity,
                certainty,
                object(&entry.key.kind, &entry.key.namespace, &entry.key.name),
                applies.message,
            );
            item.node = first_node(trace, index);
            item.evidence = applies.evidence;
            item.consequence = match applies.code {
                Code::ReplacementPreempts => preemption::consequence(context, index),
                _ => consequence(context, index, entry),
            };
            if let Code::ReplacementPending | Code::GpuCapacityShort = applies.code
                && let Some(scaler) = autoscaling::autoscaler(context.snapshot)
            {
                item.evidence.push(format!("{scaler} scales the nodes"));
                item.consequence += "; a new node may end that, which the verdict does not count on";
            }
            item.remedy = applies.remedy;
            found.push(item);
        }
    }
    found
}

fn first_node(trace: &Trace<'_>, workload: usize) -> Option<String> {
    trace
        .cast
        .candidates
        .iter()
        .find(|candidate| candidate.workload == Some(workload))
        .map(|candidate| trace.cast.node_of(candidate).to_owned())
}

fn consequence(context: &Context<'_>, index: usize, entry: &Workload<'_>) -> String {
    let trace = context.trace;
    let fewest = trace.ends.iter().map(|end| end.workload_lows[index].possible).min().unwrap_or(0);
    let after = trace.ends.iter().map(|end| left(trace, end, index, true)).min().unwrap_or(0);
    format!(
        "{} ready before, {fewest} at the worst moment, {after} once the drain stands still",
        entry.ready_before
    )
}

fn any_new<'a>(trace: &Trace<'a>, workload: usize, is: impl Fn(&State<'a>, usize, &New) -> bool) -> Paths {
    trace.paths(|end| {
        end.new
            .iter()
            .enumerate()
            .any(|(index, new)| new.replaces.is_some() && trace.cast.sets[new.set].workload == workload && is(end, index, new))
    })
}

/// The codes that apply to a workload, in the order in which they carry its severity.
fn applying(context: &Context<'_>, index: usize, entry: &Workload<'_>, leaders: &[Leader]) -> Vec<Applies> {
    let trace = context.trace;
    let key = &entry.key;
    let mut list = Vec::new();
    let see = |what: &str| context.kubectl.line(["get", what, "-n", &key.namespace, "-o", "wide"]);
    let crash = any_new(trace, index, |_, _, new| {
        matches!(new.progress, Progress::Placed { crashes: true, .. })
    });
    if crash != Paths::None {
        list.push(collision(context, index, entry, crash));
    }
    list.extend(preemption::applies(context, index, entry));
    let pending = any_new(trace, index, |_, _, new| new.progress.waits());
    if pending != Paths::None {
        list.push(pending_replacement(context, index, entry, pending));
    }
    let refused = any_new(trace, index, |_, _, new| new.progress == Progress::NotCreated);
    if refused != Paths::None {
        list.push(Applies {
            code: Code::ReplacementNotCreated,
            paths: refused,
            // Nothing Ready is lost where nothing was, but the pod is, and for good.
            own: if entry.ready_before == 0 {
                Severity::AtRisk
            } else {
                Severity::Info
            },
            message: format!(
                "the replacement of {key} {} created",
                if refused == Paths::All { "is not" } else { "may not be" }
            ),
            evidence: not_created_reasons(trace, index),
            remedy: Remedy {
                text: "make its creation pass first".to_owned(),
                command: Some(see("events")),
                values_key: None,
            },
        });
    }
    let returns = any_new(trace, index, |end, _, new| trace.returns(new) && end.ready(&trace.cast, new));
    if returns != Paths::None {
        let named = |set: &Set<'_>| set.workload == index && set.template.is_some_and(|template| template.spec.node_name.is_some());
        let (why, fact, remedy) = if trace.cast.sets.iter().any(named) {
            (
                "names its node",
                "spec.nodeName in its template: the scheduler never sees it",
                Remedy {
                    text: "take spec.nodeName out of its template".to_owned(),
                    ..Remedy::default()
                },
            )
        } else if trace.cast.cordon_fails() {
            (
                "meets no cordon",
                "the cordon of the drained node is refused: see the finding about it",
                Remedy {
                    text: "make the cordon pass first".to_owned(),
                    ..Remedy::default()
                },
            )
        } else {
            (
                "tolerates the cordon",
                "it tolerates node.kubernetes.io/unschedulable:NoSchedule",
                Remedy {
                    text: "narrow its tolerations to the taints that it must tolerate".to_owned(),
                    command: None,
                    values_key: tolerations_key(context, entry),
                },
            )
        };
        list.push(Applies {
            code: Code::ReplacementReturns,
            paths: returns,
            own: Severity::AtRisk,
            message: format!("the replacement of {key} {why} and may land on the drained node again"),
            evidence: vec![fact.to_owned()],
            remedy,
        });
    }
    let gated = any_new(trace, index, |_, _, new| new.progress == Progress::Gated);
    if gated != Paths::None {
        list.push(Applies {
            code: Code::ReplacementGated,
            paths: gated,
            own: Severity::Info,
            message: format!("the replacement of {key} waits behind a scheduling gate"),
            evidence: vec!["its template or its admission carries a scheduling gate".to_owned()],
            remedy: Remedy {
                text: "Kueue admits it when its quota and the topology allow".to_owned(),
                command: Some(see("pods")),
                values_key: None,
            },
        });
    }
    let alone: Vec<&Leader> = leaders
        .iter()
        .filter(|leader| leader.row.successors.is_empty() && trace.cast.candidates[leader.candidate].workload == Some(index))
        .collect();
    if !alone.is_empty() {
        let leases: Vec<String> = alone.iter().map(|leader| leader.row.lease.clone()).collect();
        list.push(Applies {
            code: Code::LeaderWithoutStandby,
            paths: if alone.iter().all(|leader| leader.certainty == Certainty::Certain) {
                Paths::All
            } else {
                Paths::Some
            },
            own: Severity::Info,
            message: format!(
                "{} leads by {}, and no other replica runs that could take over",
                alone[0].row.holder,
                listed(&leases)
            ),
            evidence: leases
                .iter()
                .map(|lease| format!("lease {lease} is held from the drained node"))
                .collect(),
            remedy: one_more(context, entry),
        });
    }
    let zero = trace.paths(|end| end.workload_lows[index].possible == 0);
    if zero != Paths::None && entry.ready_before > 0 && entry.wanted != Some(0) {
        list.push(Applies {
            code: Code::SingleReplica,
            paths: if trace.paths(|end| end.workload_lows[index].certain == 0) == Paths::All {
                Paths::All
            } else {
                Paths::Some
            },
            own: Severity::Info,
            message: format!("{key} has no ready replica for a while: {}", why_none_left(trace, index)),
            evidence: vec![format!("{} ready, none of them elsewhere", entry.ready_before)],
            remedy: one_more(context, entry),
        });
    }
    let unready: Vec<usize> = (0..trace.cast.sets.len())
        .filter(|set| trace.cast.sets[*set].workload == index && !trace.cast.sets[*set].becomes_ready)
        .collect();
    if !unready.is_empty() {
        list.push(Applies {
            code: Code::ReplicaNeverReady,
            paths: Paths::All,
            own: Severity::Info,
            message: format!("no pod of {key} is Ready now, so its replacement will not be either"),
            evidence: vec![format!("{} of {} pods Ready", entry.ready_before, entry.pods_before)],
            remedy: Remedy {
                text: "see why it is not Ready".to_owned(),
                command: Some(see("pods")),
                values_key: None,
            },
        });
    }
    list
}

fn why_none_left(trace: &Trace<'_>, workload: usize) -> &'static str {
    let mut members = trace
        .cast
        .candidates
        .iter()
        .filter(|candidate| candidate.workload == Some(workload));
    if members.any(|candidate| candidate.victim) {
        "replacements of a higher priority take the place of its ready replicas"
    } else if trace.cast.nodes.len() == 1 {
        "all of its ready replicas are on the drained node"
    } else {
        "all of its ready replicas are on the drained nodes"
    }
}

fn tolerations_key(context: &Context<'_>, entry: &Workload<'_>) -> Option<String> {
    let id = context.component(&entry.key.kind, &entry.key.namespace, &entry.key.name)?;
    context
        .install
        .filter(|install| install.mode == crate::gpustack::install::Mode::Chart)?;
    Some(id.info().tolerations_key.to_owned())
}

/// One replica more, on another node.
fn one_more(context: &Context<'_>, entry: &Workload<'_>) -> Remedy {
    let key = &entry.key;
    if !scalable(key) {
        return Remedy {
            text: "accept the pause, or drain when it is not needed".to_owned(),
            ..Remedy::default()
        };
    }
    let replicas = entry.wanted.unwrap_or(1) + 1;
    context.scaled(
        key,
        replicas,
        &format!("run {replicas} replicas of {} on different nodes", key.name),
    )
}

fn collision(context: &Context<'_>, index: usize, entry: &Workload<'_>, paths: Paths) -> Applies {
    let trace = context.trace;
    let mut evidence = Vec::new();
    for end in &trace.ends {
        for new in end.new.iter().filter(|new| trace.cast.sets[new.set].workload == index) {
            let Progress::Placed { node, crashes: true } = new.progress else {
                continue;
            };
            let ports = &trace.cast.sets[new.set].ports;
            let state = &end.placement.nodes()[node];
            for occupant in state
                .occupants()
                .filter(|occupant| !occupant.terminating && !trace.cast.names.iter().any(|name| name == occupant.name))
            {
                for taken in crate::kubernetes::host_ports::bound(occupant.spec) {
                    if let Some(port) = ports.iter().find(|port| crate::kubernetes::host_ports::collide(port, &taken)) {
                        evidence.push(format!(
                            "{}: {}/{} binds {} port {} ({})",
                            state.name(),
                            occupant.namespace,
                            occupant.name,
                            port.protocol,
                            port.port,
                            taken.from
                        ));
                    }
                }
            }
        }
    }
    evidence.sort();
    evidence.dedup();
    let may = if paths == Paths::All { "lands" } else { "may land" };
    Applies {
        code: Code::HostPortCollision,
        paths,
        own: if paths == Paths::All { Severity::Unsafe } else { Severity::AtRisk },
        message: format!(
            "the replacement of {} {may} where its host port is taken, and crash-loops",
            entry.key
        ),
        evidence,
        remedy: Remedy {
            text: "spread the replicas over nodes with a hard constraint, and declare the port, so that the scheduler sees it".to_owned(),
            command: None,
            values_key: context
                .component(&entry.key.kind, &entry.key.namespace, &entry.key.name)
                .and_then(|id| {
                    let install = context.install?;
                    crate::gpustack::values::spread(install.mode, id, install.component(id)?)
                }),
        },
    }
}

/// Why nodes do not take a replacement that is Pending at the end of a path.
pub fn reasons(trace: &Trace<'_>, end: &State<'_>, index: usize) -> Vec<NodeReason> {
    let Some(occupant) = end.occupant(&trace.cast, index) else {
        return Vec::new();
    };
    let incoming = Incoming {
        namespace: occupant.namespace,
        labels: occupant.labels,
        spec: occupant.spec,
    };
    let mut grouped: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
    let hooks = &trace.cast.sets[end.new[index].set].bind_hooks;
    if end.refused(&trace.cast, hooks) {
        let down: Vec<String> = hooks
            .iter()
            .filter(|(hook, _)| end.down(&trace.cast, *hook))
            .map(|(hook, _)| trace.cast.hooks[*hook].configured.webhook.name.clone())
            .collect();
        let nodes: Vec<String> = end.placement.nodes().iter().map(|node| node.name().to_owned()).collect();
        return vec![NodeReason {
            reason: format!("binding it is refused while nobody answers webhook {}", listed(&down)),
            count: nodes.len(),
            nodes,
        }];
    }
    if end.new[index].retry == Retry::Waits {
        let nodes: Vec<String> = end.placement.nodes().iter().map(|node| node.name().to_owned()).collect();
        return vec![NodeReason {
            reason: "it was tried while the pods that it wants to be near were ending, and that these go makes the scheduler try it again only within five minutes"
                .to_owned(),
            count: nodes.len(),
            nodes,
        }];
    }
    if let Progress::Nominated { node } = end.new[index].progress {
        return vec![NodeReason {
            reason: "pods of a lower priority that make room for it do not end".to_owned(),
            count: 1,
            nodes: vec![end.placement.nodes()[node].name().to_owned()],
        }];
    }
    for (decision, node) in scheduling::decide(&end.placement, &incoming).into_iter().zip(end.placement.nodes()) {
        let reason = match decision {
            Decision::Fits => continue,
            Decision::Refused(reason) => reason,
            Decision::Unknown(why) => format!("not known: {why}"),
        };
        grouped.entry(reason).or_default().push(node.name().to_owned());
    }
    let mut reasons: Vec<NodeReason> = grouped
        .into_iter()
        .map(|(reason, nodes)| NodeReason {
            reason,
            count: nodes.len(),
            nodes,
        })
        .collect();
    reasons.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.reason.cmp(&b.reason)));
    reasons
}

/// Why a set's replacement is not created.
pub fn not_created_reasons(trace: &Trace<'_>, workload: usize) -> Vec<String> {
    let mut why = Vec::new();
    for end in &trace.ends {
        for new in end
            .new
            .iter()
            .filter(|new| new.progress == Progress::NotCreated && trace.cast.sets[new.set].workload == workload)
        {
            let set = &trace.cast.sets[new.set];
            if set.ordered && new.replaces.is_some_and(|candidate| !end.in_order(&trace.cast, new.set, candidate)) {
                why.push("a pod with a lower ordinal is not Ready, and pods are made in order (OrderedReady)".to_owned());
            }
            why.extend(set.creation_refused.clone());
            why.extend(set.creation_gap.clone());
            why.extend(end.over_quota(&trace.cast, new.set));
            why.extend(
                set.create_hooks
                    .iter()
                    .filter(|(hook, _)| end.down(&trace.cast, *hook))
                    .map(|(hook, _)| {
                        format!(
                            "webhook {} has no ready endpoint and fails closed",
                            trace.cast.hooks[*hook].configured.webhook.name
                        )
                    }),
            );
        }
    }
    why.sort();
    why.dedup();
    why
}

fn pending_replacement(context: &Context<'_>, index: usize, entry: &Workload<'_>, paths: Paths) -> Applies {
    let trace = context.trace;
    let found = trace.ends.iter().find_map(|end| {
        let position = end
            .new
            .iter()
            .position(|new| new.replaces.is_some() && new.progress.waits() && trace.cast.sets[new.set].workload == index)?;
        Some((end, position))
    });
    let reasons = found.map(|(end, position)| reasons(trace, end, position)).unwrap_or_default();
    let uncordon = found.is_some_and(|(end, position)| trace.placeable_after_uncordon(end, position));
    let accelerator = reasons.iter().any(|reason| {
        reason
            .reason
            .strip_prefix("Insufficient ")
            .is_some_and(|resource| resource.contains('/') && !resource.starts_with("ephemeral"))
    });
    let pinned = !accelerator && reasons.iter().any(|reason| scheduling::refuses_volume(&reason.reason));
    let may = if paths == Paths::All { "stays" } else { "may stay" };
    let flush = found.is_some_and(|(end, position)| end.new[position].retry == Retry::Waits);
    let until = if flush {
        "for up to five minutes"
    } else if uncordon {
        "until the uncordon"
    } else {
        "and an uncordon does not help"
    };
    Applies {
        code: if accelerator {
            Code::GpuCapacityShort
        } else if pinned {
            Code::VolumePinned
        } else {
            Code::ReplacementPending
        },
        paths,
        own: Severity::Info,
        message: format!("a replacement of {} {may} Pending {until}", entry.key.name),
        evidence: reasons
            .iter()
            .map(|reason| format!("{}: {}", listed(&reason.nodes), reason.reason))
            .chain(found.filter(|_| pinned).into_iter().flat_map(|(end, position)| {
                let occupant = end.occupant(&trace.cast, position);
                occupant.map_or_else(Vec::new, |occupant| super::volumes::facts(context.snapshot, &occupant))
            }))
            .collect(),
        remedy: if pinned {
            super::volumes::remedy(context, &entry.key.namespace, uncordon)
        } else if uncordon {
            let nodes: Vec<&str> = (0..trace.cast.nodes.len()).map(|turn| trace.cast.node_name(turn)).collect();
            let mut words = vec!["uncordon"];
            words.extend(nodes);
            Remedy {
                text: "uncordon when the maintenance is done, before the next node; or give it another node to go to".to_owned(),
                command: Some(context.kubectl.line(words)),
                values_key: None,
            }
        } else {
            Remedy {
                text: "give it a node that it fits on".to_owned(),
                command: Some(context.kubectl.line(["get", "nodes", "-o", "wide"])),
                values_key: None,
            }
        },
    }
}
