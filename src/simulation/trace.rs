//! What came of a drain on all paths, for checks to read.

use std::collections::BTreeSet;

use crate::cluster::snapshot::Snapshot;
use crate::kubernetes::drain::DrainFlags;
use crate::kubernetes::scheduling::{self, Incoming, Placement};
use crate::report::document::DrainOutcome;
use crate::report::finding::Certainty;

use super::assume::Assume;
use super::cast::{Cast, Gap, Props};
use super::explore::{self, Explored};
use super::state::{New, Old, Progress, State};

/// A drain played out.
#[derive(Debug)]
pub struct Trace<'a> {
    /// What took part.
    pub cast: Cast<'a>,
    /// The last moment of every path; never empty.
    pub ends: Vec<State<'a>>,
    /// How many states were looked at.
    pub states: usize,
    /// Whether paths are missing, as there were too many.
    pub bounded: bool,
    /// What was not read or could not be decided.
    pub gaps: BTreeSet<Gap>,
    /// Namespace and name of pods that may be preempted and do not take part yet.
    pub victims: BTreeSet<(String, String)>,
}

/// What holds on how many paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// On none.
    None,
    /// On some.
    Some,
    /// On all.
    All,
}

impl Paths {
    /// As a certainty; `None` where it happens on no path.
    pub fn certainty(self) -> Option<Certainty> {
        match self {
            Self::None => None,
            Self::Some => Some(Certainty::Possible),
            Self::All => Some(Certainty::Certain),
        }
    }
}

/// Plays the drain of the nodes, in this order, from the placement before it.
pub fn play<'a>(before: &Placement<'a>, props: &'a Props, nodes: &[String], flags: &DrainFlags, assume: Assume) -> Trace<'a> {
    let cast = Cast::new(before, props, nodes, flags, assume);
    let Explored {
        mut ends,
        states,
        bounded,
        gaps,
        victims,
    } = explore::explore(&cast);
    if ends.is_empty() {
        ends.push(State::new(&cast, false, false));
    }
    let gaps = cast.gaps.iter().cloned().chain(gaps).collect();
    Trace {
        cast,
        ends,
        states,
        bounded,
        gaps,
        victims,
    }
}

/// More pods than this that may be preempted are not played.
pub const MAX_VICTIMS: usize = 64;

/// Namespace and name of the pods off the drained nodes that may be preempted, by what was read.
pub fn victims(snapshot: &Snapshot, nodes: &[String], flags: &DrainFlags) -> BTreeSet<(String, String)> {
    let before = Placement::new(snapshot);
    let mut victims = BTreeSet::new();
    loop {
        let props = Props::new(snapshot, nodes, &victims);
        let more = play(&before, &props, nodes, flags, Assume::default()).victims;
        if more.is_empty() || victims.len() + more.len() > MAX_VICTIMS {
            return victims;
        }
        victims.extend(more);
    }
}

impl<'a> Trace<'a> {
    /// On how many paths something holds at the end.
    pub fn paths(&self, holds: impl Fn(&State<'a>) -> bool) -> Paths {
        let holding = self.ends.iter().filter(|end| holds(end)).count();
        match holding {
            0 => Paths::None,
            all if all == self.ends.len() => Paths::All,
            _ => Paths::Some,
        }
    }

    /// The worst outcome of a turn, and on how many paths it is the outcome.
    pub fn outcome(&self, turn: usize) -> (DrainOutcome, Paths) {
        let of = |end: &State<'a>| end.ended.get(turn).copied().unwrap_or(DrainOutcome::NotReached);
        let worst = self.ends.iter().map(of).max().unwrap_or(DrainOutcome::Unknown);
        (worst, self.paths(|end| of(end) == worst))
    }

    /// The replacement of a candidate on a path.
    pub fn replacement<'b>(&self, end: &'b State<'a>, candidate: usize) -> Option<&'b New> {
        end.new.iter().find(|new| new.replaces == Some(candidate))
    }

    /// Whether a candidate is neither gone nor failed, though its removal was asked for.
    pub fn stuck(&self, end: &State<'a>, candidate: usize) -> bool {
        let entry = &self.cast.candidates[candidate];
        let waits = match end.ended.get(entry.turn) {
            Some(DrainOutcome::Hangs) => matches!(end.old[candidate], Old::Here | Old::Terminating(_)),
            // What is passed over stays as well.
            Some(_) => self.cast.flags.skip_wait_for_delete_timeout > 0 && matches!(end.old[candidate], Old::Terminating(_)),
            None => false,
        };
        waits && self.cast.removed(entry)
    }

    /// Whether a candidate is left because `--timeout` ends the waiting before its eviction is tried again.
    pub fn timed_out(&self, end: &State<'a>, candidate: usize) -> bool {
        let entry = &self.cast.candidates[candidate];
        let failed = end.ended.get(entry.turn).is_some_and(|outcome| *outcome == DrainOutcome::Fails);
        failed && self.cast.flags.timeout.is_some() && self.cast.removed(entry) && end.old[candidate] == Old::Here
    }

    /// Whether a replacement certainly runs and is Ready on a node that is not drained.
    pub fn lands(&self, end: &State<'a>, new: &New) -> bool {
        end.ready(&self.cast, new) && !self.returns(new)
    }

    /// Whether a replacement may sit on a node that is drained.
    pub fn returns(&self, new: &New) -> bool {
        matches!(new.progress, Progress::Placed { node, .. } if self.cast.nodes.contains(&node))
    }

    /// The same end with the drained nodes uncordoned: whether a Pending replacement then finds a node.
    pub fn placeable_after_uncordon(&self, end: &State<'a>, index: usize) -> bool {
        let mut placement = end.placement.clone();
        for node in &self.cast.nodes {
            placement.uncordon(*node);
        }
        self.placeable(end, &placement, index)
    }

    /// Whether a gated replacement would find a node if its gate opened.
    pub fn placeable_once_admitted(&self, end: &State<'a>, index: usize) -> bool {
        self.placeable(end, &end.placement, index)
    }

    fn placeable(&self, end: &State<'a>, placement: &Placement<'a>, index: usize) -> bool {
        let Some(occupant) = end.occupant(&self.cast, index) else {
            return false;
        };
        if end.refused(&self.cast, &self.cast.sets[end.new[index].set].bind_hooks) {
            return false;
        }
        let incoming = Incoming {
            namespace: occupant.namespace,
            labels: occupant.labels,
            spec: occupant.spec,
        };
        scheduling::decide(placement, &incoming)
            .iter()
            .any(|decision| State::takes(&self.cast, decision))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::cluster::snapshot::Scope;

    /// A large cluster of three zones with 50 replicas on its first node.
    fn large(spread: &[&str]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for kind in Kind::ALL {
            snapshot.objects.cover(*kind, Scope::Cluster, Ok(()));
        }
        let mut add = |kind: Kind, object: Value| snapshot.objects.insert(kind, object).unwrap();
        for index in 0..5000 {
            let name = format!("node-{index:04}");
            add(
                Kind::Node,
                json!({
                    "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("z{}", index % 3)}},
                    "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]},
                }),
            );
        }
        let constraints: Vec<Value> = spread
            .iter()
            .map(|key| {
                json!({"maxSkew": 2, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}})
            })
            .collect();
        let spec = json!({
            "containers": [{"name": "web", "resources": {"requests": {"cpu": "100m"}}}],
            "topologySpreadConstraints": constraints,
        });
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
        add(
            Kind::ReplicaSet,
            json!({"metadata": {"name": "web", "namespace": "app"}, "spec": {"replicas": 50, "template": template}}),
        );
        for index in 0..50 {
            let mut spec = spec.clone();
            spec["nodeName"] = json!("node-0000");
            add(
                Kind::Pod,
                json!({
                    "metadata": {
                        "name": format!("web-{index}"), "namespace": "app", "labels": {"app": "web"},
                        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": true}],
                    },
                    "spec": spec,
                    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
                }),
            );
        }
        add(
            Kind::PodDisruptionBudget,
            json!({
                "metadata": {"name": "web", "namespace": "app"},
                "spec": {"maxUnavailable": 10, "selector": {"matchLabels": {"app": "web"}}},
            }),
        );
        snapshot.objects.settle();
        snapshot
    }

    #[test]
    fn fifty_replicas_on_five_thousand_nodes_take_few_states() {
        for spread in [&["kubernetes.io/hostname"][..], &["topology.kubernetes.io/zone"], &[]] {
            let snapshot = large(spread);
            let nodes = ["node-0000".to_owned()];
            let props = Props::new(&snapshot, &nodes, &BTreeSet::new());
            let trace = play(
                &Placement::new(&snapshot),
                &props,
                &nodes,
                &DrainFlags::default(),
                Assume::default(),
            );
            assert!(
                trace.states <= explore::MAX_STATES && !trace.bounded,
                "{spread:?}: {} states",
                trace.states
            );
            assert_eq!(trace.outcome(0), (DrainOutcome::Finishes, Paths::All), "{spread:?}");
            assert!(
                trace
                    .ends
                    .iter()
                    .all(|end| end.new.len() == 50 && end.new.iter().all(|new| trace.lands(end, new)))
            );
        }
    }
}
