//! Node selectors and required node affinity (`pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go`).

use super::{Decision, Incoming, NodeState};
use crate::kubernetes::selectors::node_suits;

/// Both the node selector and the required node affinity must match.
pub(super) fn filter(node: &NodeState<'_>, incoming: &Incoming<'_>) -> Decision {
    if node_suits(incoming.spec, node.node) {
        Decision::Fits
    } else {
        Decision::Refused("node(s) didn't match Pod's node affinity/selector".to_owned())
    }
}
