//! Declared host ports (`pkg/scheduler/framework/plugins/nodeports/node_ports.go`, `pkg/scheduler/util/utils.go`
//! GetHostPorts, `k8s.io/kube-scheduler/framework/types.go` HostPortInfo).

use super::{Decision, NodeState};
use crate::cluster::objects::{Container, PodSpec};

/// A host port as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostPort<'a> {
    /// Container that declares it.
    pub container: &'a str,
    /// Address; `0.0.0.0` means all, but `::` is an address like any other.
    pub address: &'a str,
    /// Protocol.
    pub protocol: &'a str,
    /// Port.
    pub port: i64,
}

/// The containers that run as long as the pod does: restartable init containers, and containers.
pub(crate) fn lasting(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    let sidecars = spec.init_containers.iter().filter(|container| container.restartable());
    sidecars.chain(&spec.containers)
}

/// The host ports that a pod declares. With `hostNetwork` every container port is one, by defaulting
/// (`pkg/apis/core/v1/defaults.go`, defaultHostNetworkPorts).
pub(crate) fn declared(spec: &PodSpec) -> Vec<HostPort<'_>> {
    let ports = lasting(spec).flat_map(|container| container.ports.iter().map(move |port| (container, port)));
    ports
        .map(|(container, port)| HostPort {
            container: &container.name,
            address: if port.host_ip.is_empty() { "0.0.0.0" } else { &port.host_ip },
            protocol: if port.protocol.is_empty() { "TCP" } else { &port.protocol },
            port: if port.host_port == 0 && spec.host_network {
                port.container_port
            } else {
                port.host_port
            },
        })
        .filter(|port| port.port > 0)
        .collect()
}

fn conflict(a: &HostPort<'_>, b: &HostPort<'_>) -> bool {
    let overlap = a.address == b.address || a.address == "0.0.0.0" || b.address == "0.0.0.0";
    a.port == b.port && a.protocol == b.protocol && overlap
}

/// No wanted port may be held by a pod on the node; a terminating pod still holds its ports.
pub(super) fn filter(node: &NodeState<'_>, wanted: &[HostPort<'_>]) -> Decision {
    let mut held = node.entries.iter().flat_map(|entry| &entry.claims.ports);
    if !wanted.is_empty() && held.any(|held| wanted.iter().any(|wanted| conflict(wanted, held))) {
        Decision::Refused("node(s) didn't have free ports for the requested pod ports".to_owned())
    } else {
        Decision::Fits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{cluster, said};
    use super::*;

    #[test]
    fn ports() {
        let held = |spec: &str| {
            cluster(&format!(
                "node a\npod d/x @a {{metadata: {{deletionTimestamp: 2026-01-01T00:00:00Z}}, spec: {{{spec}}}}}"
            ))
        };
        let port = |port: &str| format!("containers: [{{name: c, ports: [{{{port}}}]}}]");
        for (there, wanted, fits) in [
            (port("containerPort: 80"), port("containerPort: 80"), true),
            (
                port("containerPort: 80, hostPort: 80"),
                port("containerPort: 81, hostPort: 80"),
                false,
            ),
            (
                port("containerPort: 80, hostPort: 80"),
                port("containerPort: 80, hostPort: 81"),
                true,
            ),
            (
                port("containerPort: 80, hostPort: 80, protocol: TCP"),
                port("hostPort: 80, protocol: UDP"),
                true,
            ),
            (port("hostPort: 80, protocol: TCP"), port("hostPort: 80"), false),
            (port("hostPort: 80, hostIP: 127.0.0.1"), port("hostPort: 80"), false),
            (port("hostPort: 80"), port("hostPort: 80, hostIP: 127.0.0.1"), false),
            (
                port("hostPort: 80, hostIP: 0.0.0.0"),
                port("hostPort: 80, hostIP: 127.0.0.1"),
                false,
            ),
            (
                port("hostPort: 80, hostIP: 127.0.0.2"),
                port("hostPort: 80, hostIP: 127.0.0.1"),
                true,
            ),
            (port("hostPort: 80, hostIP: '::'"), port("hostPort: 80, hostIP: '::1'"), true),
            (port("hostPort: 80, hostIP: '::'"), port("hostPort: 80"), false),
            (
                format!("hostNetwork: true, {}", port("containerPort: 80")),
                port("hostPort: 80"),
                false,
            ),
            (
                port("hostPort: 80"),
                format!("hostNetwork: true, {}", port("containerPort: 80")),
                false,
            ),
            (
                port("hostPort: 80"),
                "initContainers: [{name: i, ports: [{hostPort: 80}]}]".to_owned(),
                true,
            ),
            (
                port("hostPort: 80"),
                "initContainers: [{name: i, restartPolicy: Always, ports: [{hostPort: 80}]}]".to_owned(),
                false,
            ),
        ] {
            let expected = if fits {
                "fits"
            } else {
                "node(s) didn't have free ports for the requested pod ports"
            };
            assert_eq!(
                said(&held(&there), &format!("{{spec: {{{wanted}}}}}")),
                [expected],
                "{there} | {wanted}"
            );
        }
    }

    proptest! {
        #[test]
        fn conflicts_are_mutual(a in 0_usize..4, b in 0_usize..4, ports in (1_i64..3, 1_i64..3)) {
            let addresses = ["0.0.0.0", "::", "127.0.0.1", "10.0.0.1"];
            let a = HostPort { container: "", address: addresses[a], protocol: "TCP", port: ports.0 };
            let b = HostPort { container: "", address: addresses[b], protocol: "TCP", port: ports.1 };
            prop_assert_eq!(conflict(&a, &b), conflict(&b, &a));
            prop_assert!(conflict(&a, &a));
        }
    }
}
