//! The cluster after a drain and an uncordon, as a snapshot for the next drain.

use crate::cluster::objects::{Condition, Pod, PodStatus};
use crate::cluster::shared::Shared;
use crate::cluster::snapshot::Snapshot;
use crate::report::document::DrainOutcome;

use super::explore;
use super::state::{Old, Progress, Retry, State};
use super::trace::Trace;

/// More different clusters than this are not followed.
pub const MAX_SUCCESSORS: usize = 8;

/// The clusters that there may be once the drain has finished, the nodes are uncordoned and what was Pending has been
/// placed; and whether there are more than could be followed.
pub fn successors(trace: &Trace<'_>) -> (Vec<Snapshot>, bool) {
    let mut found: Vec<Snapshot> = Vec::new();
    let mut seen: Vec<Vec<(String, Option<usize>)>> = Vec::new();
    for end in trace
        .ends
        .iter()
        .filter(|end| end.ended.iter().all(|outcome| *outcome == DrainOutcome::Finishes))
    {
        let mut open = end.clone();
        for node in &trace.cast.nodes {
            open.placement.uncordon(*node);
        }
        // The uncordon makes the scheduler try again.
        for new in &mut open.new {
            new.retry = Retry::AtOnce;
        }
        for state in explore::settled(&trace.cast, open) {
            let places = places(trace, &state);
            if seen.contains(&places) {
                continue;
            }
            if found.len() == MAX_SUCCESSORS {
                return (found, true);
            }
            found.push(snapshot(trace, &state));
            seen.push(places);
        }
    }
    (found, false)
}

/// Which replacement is where: what makes one such cluster differ from another.
fn places(trace: &Trace<'_>, state: &State<'_>) -> Vec<(String, Option<usize>)> {
    let mut places: Vec<(String, Option<usize>)> = state
        .new
        .iter()
        .map(|new| {
            let node = match new.progress {
                Progress::Placed { node, .. } => Some(node),
                _ => None,
            };
            (trace.cast.workloads[trace.cast.sets[new.set].workload].key.to_string(), node)
        })
        .collect();
    let gone = state
        .old
        .iter()
        .zip(&trace.cast.candidates)
        .filter(|(old, candidate)| candidate.victim && **old != Old::Here);
    places.extend(gone.map(|(_, candidate)| (candidate.pod.metadata.name.clone(), None)));
    places.sort();
    places
}

fn snapshot(trace: &Trace<'_>, state: &State<'_>) -> Snapshot {
    let mut next = trace.cast.snapshot.clone();
    for (index, candidate) in trace.cast.candidates.iter().enumerate() {
        if matches!(state.old[index], Old::Gone(_)) {
            next.objects
                .pods
                .remove(&candidate.pod.metadata.namespace, &candidate.pod.metadata.name);
        }
    }
    for (index, new) in state.new.iter().enumerate() {
        let node = match new.progress {
            Progress::NotCreated => continue,
            Progress::Gated | Progress::Pending | Progress::Nominated { .. } => "",
            Progress::Placed { node, .. } => state.placement.nodes()[node].name(),
        };
        let Some(occupant) = state.occupant(&trace.cast, index) else {
            continue;
        };
        let mut pod = Pod::default();
        match (new.waiting, new.replaces) {
            (Some(waiting), _) => pod = trace.cast.waiting[waiting].pod.clone(),
            (None, Some(candidate)) => {
                let old = trace.cast.candidates[candidate].pod;
                pod.metadata.namespace = old.metadata.namespace.clone();
                pod.metadata.name = format!("{}+", old.metadata.name);
                pod.metadata.owner_references = old.metadata.owner_references.clone();
                pod.metadata.labels = occupant.labels.clone().into();
                pod.spec = Pod::asks(occupant.spec.clone(), node);
            }
            (None, None) => continue,
        }
        let ready = state.ready(&trace.cast, new);
        pod.status = PodStatus {
            phase: if node.is_empty() { "Pending" } else { "Running" }.to_owned().into(),
            ..PodStatus::default()
        };
        if ready {
            pod.status.conditions = Shared::new(vec![Condition {
                kind: "Ready".to_owned().into(),
                status: "True".to_owned().into(),
                ..Condition::default()
            }]);
        }
        pod.node_name = node.to_owned().into();
        next.objects.pods.insert(pod);
    }
    next.objects.pods.settle();
    next
}
