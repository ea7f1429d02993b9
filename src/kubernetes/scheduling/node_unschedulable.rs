//! Cordoned nodes (`pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go`).

use super::taint_toleration::{CORDON, Tolerance, tolerance};
use super::{Decision, Incoming, NodeState};

/// A cordoned node refuses pods that do not tolerate the taint of a cordon.
pub(super) fn filter(node: &NodeState<'_>, incoming: &Incoming<'_>) -> Decision {
    if !node.cordoned() || tolerance(&incoming.spec.tolerations, &CORDON, false) == Tolerance::Yes {
        Decision::Fits
    } else {
        Decision::Refused("node(s) were unschedulable".to_owned())
    }
}
