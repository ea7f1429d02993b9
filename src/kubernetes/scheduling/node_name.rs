//! A node asked for by name (`pkg/scheduler/framework/plugins/nodename/node_name.go`).

use super::{Decision, Incoming, NodeState};

/// Where the spec names a node, it is the only one.
pub(super) fn filter(node: &NodeState<'_>, incoming: &Incoming<'_>) -> Decision {
    match incoming.spec.node_name.as_deref() {
        Some(name) if !name.is_empty() && name != node.name() => {
            Decision::Refused("node(s) didn't match the requested node name".to_owned())
        }
        _ => Decision::Fits,
    }
}
