//! Where a pod may land: the scheduler's filters, one file each.

pub mod gates;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::cluster::objects::{Node, PodSpec, StringMap};
use crate::cluster::snapshot::{NotRead, Snapshot};

pub use gates::gated;

/// A pod on a node, as the filters see it. Finished pods are none.
#[derive(Clone, Copy, Debug)]
pub struct Occupant<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Pod name; empty for a replacement that has none yet.
    pub name: &'a str,
    /// Labels.
    pub labels: &'a StringMap,
    /// What it asks for.
    pub spec: &'a PodSpec,
    /// A terminating pod holds room, ports and anti-affinity, but spread does not count it.
    pub terminating: bool,
}

/// A pod to be placed: its owner's template.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Labels.
    pub labels: &'a StringMap,
    /// What it asks for.
    pub spec: &'a PodSpec,
}

/// What the filters say about a pod on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Every filter passes.
    Fits,
    /// A filter refuses, for certain; in the scheduler's own words.
    Refused(String),
    /// No filter refuses for certain, but something was not read or is not modelled; says what.
    Unknown(String),
}

/// A node and the pods on it.
#[derive(Clone, Debug)]
pub struct NodeState<'a> {
    node: &'a Node,
    cordoned: bool,
    occupants: Vec<Occupant<'a>>,
}

impl<'a> NodeState<'a> {
    /// A node without pods, cordoned if its object says so.
    pub fn new(node: &'a Node) -> Self {
        Self { node, cordoned: node.spec.unschedulable, occupants: Vec::new() }
    }

    /// The node.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.node.metadata.name
    }

    /// Whether it is cordoned, by its object or by [`NodeState::cordon`].
    pub fn cordoned(&self) -> bool {
        self.cordoned
    }

    /// The pods on it.
    pub fn occupants(&self) -> impl Iterator<Item = &Occupant<'a>> {
        self.occupants.iter()
    }

    /// Puts a pod on it.
    pub fn add(&mut self, occupant: Occupant<'a>) {
        self.occupants.push(occupant);
    }

    /// Takes a pod off it; `None` if it was not there.
    pub fn remove(&mut self, namespace: &str, name: &str) -> Option<Occupant<'a>> {
        let index = self.occupants.iter().position(|pod| pod.namespace == namespace && pod.name == name)?;
        Some(self.occupants.remove(index))
    }

    /// Marks a pod as terminating; false if it was not there.
    pub fn set_terminating(&mut self, namespace: &str, name: &str) -> bool {
        match self.occupants.iter_mut().find(|pod| pod.namespace == namespace && pod.name == name) {
            Some(pod) => {
                pod.terminating = true;
                true
            }
            None => false,
        }
    }

    /// Cordons it.
    pub fn cordon(&mut self) {
        self.cordoned = true;
    }

    /// Uncordons it.
    pub fn uncordon(&mut self) {
        self.cordoned = false;
    }
}

/// Which pods are on which nodes. Cheap to clone: nodes are shared until changed.
#[derive(Clone, Debug)]
pub struct Placement<'a> {
    snapshot: &'a Snapshot,
    nodes: Vec<Rc<NodeState<'a>>>,
}

impl<'a> Placement<'a> {
    /// The placement as read.
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let mut nodes: Vec<_> = snapshot.nodes.seen().iter().map(NodeState::new).collect();
        for pod in snapshot.pods.seen().iter().filter(|pod| !pod.finished()) {
            if let Some(index) = pod.node().and_then(|node| snapshot.nodes.position("", node)) {
                nodes[index].add(Occupant {
                    namespace: &pod.metadata.namespace,
                    name: &pod.metadata.name,
                    labels: &pod.metadata.labels,
                    spec: &pod.spec,
                    terminating: pod.metadata.terminating(),
                });
            }
        }
        Self { snapshot, nodes: nodes.into_iter().map(Rc::new).collect() }
    }

    /// The nodes, in the snapshot's order (by name).
    pub fn nodes(&self) -> &[Rc<NodeState<'a>>] {
        &self.nodes
    }

    /// The index of a node in [`Placement::nodes`].
    pub fn index(&self, node: &str) -> Option<usize> {
        self.nodes.binary_search_by(|state| state.name().cmp(node)).ok()
    }

    /// Whether all pods are known.
    ///
    /// # Errors
    /// What was not read.
    pub fn pods_known(&self) -> Result<(), NotRead> {
        self.snapshot.pods.all().map(|_| ())
    }

    fn change<T>(&mut self, node: usize, change: impl FnOnce(&mut NodeState<'a>) -> T) -> Option<T> {
        self.nodes.get_mut(node).map(|state| change(Rc::make_mut(state)))
    }

    /// Puts a pod on a node.
    pub fn bind(&mut self, node: usize, occupant: Occupant<'a>) {
        self.change(node, |state| state.add(occupant));
    }

    /// Takes a pod off a node, as when its object is gone; `None` if it was not there.
    pub fn remove(&mut self, node: usize, namespace: &str, name: &str) -> Option<Occupant<'a>> {
        self.change(node, |state| state.remove(namespace, name)).flatten()
    }

    /// Marks a pod as terminating, as when its eviction was accepted; false if it was not there.
    pub fn terminate(&mut self, node: usize, namespace: &str, name: &str) -> bool {
        self.change(node, |state| state.set_terminating(namespace, name)).unwrap_or(false)
    }

    /// Cordons a node.
    pub fn cordon(&mut self, node: usize) {
        self.change(node, NodeState::cordon);
    }

    /// Uncordons a node.
    pub fn uncordon(&mut self, node: usize) {
        self.change(node, NodeState::uncordon);
    }
}

/// What a hard spread constraint counts now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadCounts {
    /// Node label whose values are the domains.
    pub topology_key: String,
    /// Largest allowed difference between domains.
    pub max_skew: i64,
    /// 1 if the incoming pod matches the constraint's own selector, else 0.
    pub own: i64,
    /// The global minimum, 0 with fewer domains than `minDomains`.
    pub minimum: i64,
    /// Matching pods per domain.
    pub domains: BTreeMap<String, i64>,
}

/// What each hard spread constraint of a pod counts, in the order of the spec.
pub fn spread_counts(_placement: &Placement<'_>, _incoming: &Incoming<'_>) -> Vec<SpreadCounts> {
    Vec::new()
}

/// Where a pod may land: one decision per node, in the order of [`Placement::nodes`].
///
/// The first refusing filter in the scheduler's order gives the words. A certain refusal beats what is unknown.
pub fn decide(placement: &Placement<'_>, _incoming: &Incoming<'_>) -> Vec<Decision> {
    placement.nodes.iter().map(|_| Decision::Fits).collect()
}
