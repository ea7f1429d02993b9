//! The ports that a pod binds on its node, also those that the scheduler does not see.

use crate::cluster::objects::PodSpec;

/// A port that a pod binds on its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoundPort {
    /// The port.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// Address; empty means all.
    pub address: String,
    /// Where it is known from, as a person would say it.
    pub from: String,
    /// Whether the scheduler sees it.
    pub declared: bool,
}

/// Every port that pods of this spec bind on their node.
pub fn bound(_spec: &PodSpec) -> Vec<BoundPort> {
    Vec::new()
}

/// The ports of [`bound`] that the scheduler does not see.
pub fn undeclared(spec: &PodSpec) -> Vec<BoundPort> {
    bound(spec).into_iter().filter(|port| !port.declared).collect()
}

/// Whether two processes on one node cannot both bind these.
pub fn collide(_a: &BoundPort, _b: &BoundPort) -> bool {
    false
}
