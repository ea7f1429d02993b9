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

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, said};

    #[test]
    fn selector_and_affinity_are_anded() {
        let snapshot = cluster("node a {metadata: {labels: {zone: x}}}\nnode b {metadata: {labels: {zone: y}}}");
        let required = |terms: &str| {
            format!("affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{terms}]}}}}}}")
        };
        let zone = "{matchExpressions: [{key: zone, operator: In, values: [x]}]}";
        for (spec, fits) in [
            (String::new(), [true, true]),
            ("nodeSelector: {zone: y}".to_owned(), [false, true]),
            (required(zone), [true, false]),
            (required(""), [false, false]),
            (format!("nodeSelector: {{zone: y}}, {}", required(zone)), [false, false]),
            (format!("nodeSelector: {{host: a}}, {}", required(zone)), [true, false]),
            (
                required("{matchFields: [{key: metadata.name, operator: In, values: [b]}]}"),
                [false, true],
            ),
        ] {
            let expected = fits.map(|fits| {
                if fits {
                    "fits"
                } else {
                    "node(s) didn't match Pod's node affinity/selector"
                }
            });
            assert_eq!(said(&snapshot, &format!("{{spec: {{{spec}}}}}")), expected, "{spec}");
        }
    }
}
