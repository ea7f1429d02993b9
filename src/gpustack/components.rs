//! The components of GPUStack's control plane that run as Deployments.

use crate::cluster::objects::{Deployment, StringMap};
use crate::kubernetes::leases::{HolderForm, sanitized};

/// A component of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentId {
    /// GPUStack's own API server and controllers.
    Worker,
    /// Kueue's controller manager.
    Kueue,
    /// Node Feature Discovery's master.
    NfdMaster,
    /// Node Feature Discovery's garbage collector.
    NfdGc,
    /// Controller of the NFS CSI driver.
    NfsController,
    /// Controller of the S3 CSI driver.
    S3Controller,
    /// The CSI snapshot controller.
    SnapshotController,
}

/// What the loss of a component's last replica means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// The API server calls it, and refuses requests without it.
    Served,
    /// NFD's master: node labels are not kept up.
    FeatureLabels,
    /// A CSI controller: claims are not provisioned; mounted volumes are not touched.
    Storage,
    /// Nothing that is missed soon.
    Housekeeping,
}

/// A component, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// Which.
    pub id: ComponentId,
    /// Its name for people, within a sentence.
    pub title: &'static str,
    /// What the loss of its last replica means.
    pub loss: Loss,
    /// Values key of the replicas.
    pub replicas_key: &'static str,
    /// Values key of its budget, and the name of the switch below it; `None` where the chart has no budget for it.
    pub budget: Option<(&'static str, &'static str)>,
    /// Values key of its spread constraints; `None` where the chart renders none.
    pub spread_key: Option<&'static str>,
    /// Values key of its affinity; `None` where the chart renders none.
    pub affinity_key: Option<&'static str>,
    /// Values key of its rollout strategy's type; `None` where the chart has none.
    pub strategy_key: Option<&'static str>,
    /// Values key of its tolerations.
    pub tolerations_key: &'static str,
    /// Values key of the port that its liveness probe binds on the node; `None` where it binds none.
    pub health_port_key: Option<&'static str>,
}

/// An election that a component's replicas take part in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    /// What of the component is led, such as `csi-provisioner`.
    pub of: &'static str,
    /// Name of the lease.
    pub lease: String,
    /// Namespace of the lease.
    pub namespace: String,
    /// Seconds that a standby waits after the last renewal it saw.
    pub duration_seconds: i64,
    /// Seconds in which the leader must have renewed.
    pub renew_seconds: i64,
    /// Seconds between two tries.
    pub retry_seconds: i64,
    /// Whether a leader that ends cleanly empties the holder.
    pub released_on_exit: bool,
    /// What the holder identity is made of.
    pub holder: HolderForm,
    /// Kind of the object that is locked: `Lease`, or by an argument `ConfigMap` or `Endpoints`, which hold no lease.
    pub lock: &'static str,
}

impl ComponentId {
    /// Every component.
    pub const ALL: &[Self] = &[
        Self::Worker,
        Self::Kueue,
        Self::NfdMaster,
        Self::NfdGc,
        Self::NfsController,
        Self::S3Controller,
        Self::SnapshotController,
    ];

    /// The component's data: what the chart's templates render, by its values.
    pub const fn info(self) -> Component {
        match self {
            Self::Worker => Component {
                id: self,
                title: "the worker",
                loss: Loss::Served,
                replicas_key: "worker.replicas",
                budget: Some(("worker.podDisruptionBudget", "enabled")),
                spread_key: Some("worker.topologySpreadConstraints"),
                affinity_key: Some("worker.affinity"),
                strategy_key: Some("worker.strategyType"),
                tolerations_key: "worker.tolerations",
                health_port_key: None,
            },
            Self::Kueue => Component {
                id: self,
                title: "Kueue",
                loss: Loss::Served,
                replicas_key: "kueue.controllerManager.replicas",
                budget: Some(("kueue.controllerManager.podDisruptionBudget", "enabled")),
                spread_key: Some("kueue.controllerManager.topologySpreadConstraints"),
                affinity_key: None,
                strategy_key: None,
                tolerations_key: "kueue.controllerManager.tolerations",
                health_port_key: None,
            },
            Self::NfdMaster => Component {
                id: self,
                title: "the NFD master",
                loss: Loss::FeatureLabels,
                replicas_key: "node-feature-discovery.master.replicaCount",
                budget: Some(("node-feature-discovery.master.podDisruptionBudget", "enable")),
                spread_key: None,
                affinity_key: Some("node-feature-discovery.master.affinity"),
                strategy_key: None,
                tolerations_key: "node-feature-discovery.master.tolerations",
                health_port_key: None,
            },
            Self::NfdGc => Component {
                id: self,
                title: "the NFD garbage collector",
                loss: Loss::Housekeeping,
                replicas_key: "node-feature-discovery.gc.replicaCount",
                budget: Some(("node-feature-discovery.gc.podDisruptionBudget", "enable")),
                spread_key: None,
                affinity_key: Some("node-feature-discovery.gc.affinity"),
                strategy_key: None,
                tolerations_key: "node-feature-discovery.gc.tolerations",
                health_port_key: None,
            },
            Self::NfsController => Component {
                id: self,
                title: "the NFS CSI controller",
                loss: Loss::Storage,
                replicas_key: "csi-driver-nfs.controller.replicas",
                budget: None,
                spread_key: Some("csi-driver-nfs.controller.topologySpreadConstraints"),
                affinity_key: Some("csi-driver-nfs.controller.affinity"),
                strategy_key: Some("csi-driver-nfs.controller.strategyType"),
                tolerations_key: "csi-driver-nfs.controller.tolerations",
                health_port_key: Some("csi-driver-nfs.controller.livenessProbe.healthPort"),
            },
            Self::S3Controller => Component {
                id: self,
                title: "the S3 CSI controller",
                loss: Loss::Storage,
                replicas_key: "csi-driver-s3.controller.replicas",
                budget: None,
                spread_key: None,
                affinity_key: Some("csi-driver-s3.controller.affinity"),
                strategy_key: Some("csi-driver-s3.controller.strategyType"),
                tolerations_key: "csi-driver-s3.controller.tolerations",
                health_port_key: None,
            },
            // It shares the NFS controller's placement keys.
            Self::SnapshotController => Component {
                id: self,
                title: "the CSI snapshot controller",
                loss: Loss::Storage,
                replicas_key: "csi-driver-nfs.externalSnapshotter.controller.replicas",
                budget: None,
                spread_key: None,
                affinity_key: Some("csi-driver-nfs.controller.affinity"),
                strategy_key: None,
                tolerations_key: "csi-driver-nfs.controller.tolerations",
                health_port_key: None,
            },
        }
    }

    /// The component that a Deployment runs, told by the labels of its pods, which the subcharts keep whatever the
    /// release is called; it says nothing on whose it is.
    pub fn of(deployment: &Deployment) -> Option<Self> {
        let pods = &deployment.spec.template.metadata.labels;
        let is = |key: &str, value: &str| label(pods, key) == Some(value);
        if is(PART_OF, "gpustack-operator") && matches!(label(pods, COMPONENT), Some("operator" | "worker")) {
            return Some(Self::Worker);
        }
        if is("control-plane", "controller-manager") && (is(NAME, "kueue") || deployment.metadata.name == "kueue-controller-manager") {
            return Some(Self::Kueue);
        }
        if is(NAME, "node-feature-discovery") {
            return match label(pods, "role") {
                Some("master") => Some(Self::NfdMaster),
                Some("gc") => Some(Self::NfdGc),
                _ => None,
            };
        }
        // The snapshot controller comes with the NFS driver's chart and may carry its name.
        match (label(pods, "app"), label(pods, NAME)) {
            (Some("snapshot-controller"), _) => Some(Self::SnapshotController),
            (Some("csi-nfs-controller"), _) | (_, Some("csi-driver-nfs")) => Some(Self::NfsController),
            (Some("csi-s3-controller"), _) | (_, Some("csi-driver-s3")) => Some(Self::S3Controller),
            _ => None,
        }
    }

    /// The elections that the Deployment's replicas take part in; none where its arguments switch them off.
    ///
    /// The lease lies in the Deployment's namespace unless an argument moves it. Kueue's own configuration file, which
    /// could switch its election off, is not read. The seconds are the programs' defaults; a lease's record tells its own.
    pub fn elections(self, deployment: &Deployment) -> Vec<Election> {
        let namespace = deployment.metadata.namespace.as_str();
        let on_host = deployment.spec.template.spec.host_network;
        let election = |of, lease: String, retry_seconds, released_on_exit, holder| Election {
            of,
            lease,
            namespace: argument(deployment, None, "leader-election-namespace")
                .filter(|text| !text.is_empty())
                .unwrap_or(namespace)
                .to_owned(),
            duration_seconds: 15,
            renew_seconds: 10,
            retry_seconds,
            released_on_exit,
            holder,
            lock: lock(deployment, of),
        };
        // A process that takes its host name is called by its node where it shares the node's network.
        let named = if on_host { HolderForm::NodeAndUuid } else { HolderForm::PodAndUuid };
        let bare = if on_host { HolderForm::SanitizedNode } else { HolderForm::Pod };
        let elects = |container| argument(deployment, container, "leader-election").is_some_and(|value| value != "false");
        match self {
            Self::Worker if argument(deployment, None, "kube-leader-election") == Some("false") => Vec::new(),
            Self::Worker => {
                let lease = argument(deployment, None, "kube-leader-election-id")
                    .filter(|id| !id.is_empty())
                    .unwrap_or("worker.gpustack.ai");
                vec![election("controllers", lease.to_owned(), 2, true, named)]
            }
            Self::Kueue => vec![election("controllers", "c1f6bfd2.kueue.x-k8s.io".to_owned(), 2, true, named)],
            Self::NfdMaster if argument(deployment, None, "enable-leader-election").is_some_and(|value| value != "false") => {
                vec![election(
                    "nfd-master",
                    "nfd-master.nfd.kubernetes.io".to_owned(),
                    2,
                    false,
                    HolderForm::NodeAndUuid,
                )]
            }
            Self::NfdMaster | Self::NfdGc => Vec::new(),
            Self::NfsController | Self::S3Controller => {
                let default = if self == Self::NfsController {
                    "nfs.csi.gpustack.ai"
                } else {
                    "s3.csi.gpustack.ai"
                };
                let driver = sanitized(
                    argument(deployment, None, "drivername")
                        .filter(|name| !name.is_empty())
                        .unwrap_or(default),
                );
                [
                    ("csi-provisioner", ""),
                    ("csi-resizer", "external-resizer-"),
                    ("csi-snapshotter", "external-snapshotter-leader-"),
                ]
                .into_iter()
                .filter(|(container, _)| elects(Some(*container)))
                .map(|(container, prefix)| election(container, format!("{prefix}{driver}"), 5, false, bare))
                .collect()
            }
            Self::SnapshotController if elects(None) => vec![election(
                "snapshot-controller",
                "snapshot-controller-leader".to_owned(),
                5,
                false,
                bare,
            )],
            Self::SnapshotController => Vec::new(),
        }
    }
}

/// Kind of the object by which a container's replicas elect. Programs of before 2021 locked others, and some flags still
/// choose; what locks a Lease too (`configmapsleases`) is told by the Lease.
fn lock(deployment: &Deployment, container: &str) -> &'static str {
    let flags = ["leader-elect-resource-lock", "leader-election-type"];
    let names = |container| flags.iter().find_map(|flag| argument(deployment, container, flag));
    let spec = &deployment.spec.template.spec;
    let named = spec.containers.iter().any(|found| found.name == container).then_some(container);
    match names(named) {
        Some("configmaps") => "ConfigMap",
        Some("endpoints") => "Endpoints",
        _ => "Lease",
    }
}

/// Label of the application that an object is a part of.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// Label of the component.
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// Label of the application's name.
pub const NAME: &str = "app.kubernetes.io/name";
/// Label of the release.
pub const INSTANCE: &str = "app.kubernetes.io/instance";

/// A label's value.
pub fn label<'a>(labels: &'a StringMap, key: &str) -> Option<&'a str> {
    labels.get(key).map(String::as_str)
}

/// The value of a flag in the arguments of the containers, or of the one named: `true` for a flag without one.
fn argument<'a>(deployment: &'a Deployment, container: Option<&str>, flag: &str) -> Option<&'a str> {
    let containers = deployment
        .spec
        .template
        .spec
        .containers
        .iter()
        .filter(|candidate| container.is_none_or(|name| candidate.name == name));
    containers
        .flat_map(|container| container.command.iter().chain(&container.args))
        .find_map(|argument| {
            let rest = argument
                .strip_prefix("--")
                .or_else(|| argument.strip_prefix('-'))?
                .strip_prefix(flag)?;
            if rest.is_empty() { Some("true") } else { rest.strip_prefix('=') }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(yaml: &str) -> Deployment {
        serde_saphyr::from_str(yaml).unwrap()
    }

    fn with_labels(labels: &str) -> Option<ComponentId> {
        ComponentId::of(&deployment(&format!(
            "{{metadata: {{name: d}}, spec: {{template: {{metadata: {{labels: {{{labels}}}}}}}}}}}"
        )))
    }

    #[test]
    fn a_lock_that_is_no_lease() {
        let locks = |arguments: &str| {
            let deployment = deployment(&format!(
                "{{metadata: {{name: d}}, spec: {{template: {{spec: {{containers: [{{name: csi-provisioner, args: [--leader-election, {arguments}]}}, {{name: csi-resizer, args: [--leader-election]}}]}}}}}}}}"
            ));
            let elections = ComponentId::NfsController.elections(&deployment);
            elections.iter().map(|election| election.lock).collect::<Vec<_>>()
        };
        assert_eq!(locks("-v=5"), ["Lease", "Lease"]);
        assert_eq!(locks("--leader-election-type=endpoints"), ["Endpoints", "Lease"]);
        assert_eq!(locks("--leader-election-type=leases"), ["Lease", "Lease"]);
        assert_eq!(locks("--leader-elect-resource-lock=configmaps"), ["ConfigMap", "Lease"]);
    }

    fn leases(id: ComponentId, spec: &str) -> Vec<String> {
        let deployment = deployment(&format!(
            "{{metadata: {{name: d, namespace: gpustack-system}}, spec: {{template: {{spec: {{{spec}}}}}}}}}"
        ));
        id.elections(&deployment)
            .into_iter()
            .map(|election| format!("{}/{} {:?}", election.namespace, election.lease, election.holder))
            .collect()
    }

    #[test]
    fn told_by_labels() {
        let told = [
            (
                "app.kubernetes.io/part-of: gpustack-operator, app.kubernetes.io/component: operator",
                Some(ComponentId::Worker),
            ),
            (
                "app.kubernetes.io/part-of: gpustack-operator, app.kubernetes.io/component: worker",
                Some(ComponentId::Worker),
            ),
            (
                "app.kubernetes.io/part-of: gpustack-operator-worker, app.kubernetes.io/component: worker",
                None,
            ),
            (
                "app.kubernetes.io/name: kueue, control-plane: controller-manager",
                Some(ComponentId::Kueue),
            ),
            ("control-plane: controller-manager", None),
            (
                "app.kubernetes.io/name: node-feature-discovery, role: master",
                Some(ComponentId::NfdMaster),
            ),
            ("app.kubernetes.io/name: node-feature-discovery, role: gc", Some(ComponentId::NfdGc)),
            ("app.kubernetes.io/name: node-feature-discovery, role: worker", None),
            (
                "app: csi-nfs-controller, app.kubernetes.io/name: csi-driver-nfs",
                Some(ComponentId::NfsController),
            ),
            (
                "app: renamed, app.kubernetes.io/name: csi-driver-s3",
                Some(ComponentId::S3Controller),
            ),
            (
                "app: snapshot-controller, app.kubernetes.io/name: csi-driver-nfs",
                Some(ComponentId::SnapshotController),
            ),
        ];
        for (labels, expected) in told {
            assert_eq!(with_labels(labels), expected, "{labels}");
        }
    }

    #[test]
    fn elections_of_the_worker_and_kueue() {
        let worker = |arguments: &str| {
            leases(
                ComponentId::Worker,
                &format!("containers: [{{name: main, args: [gpustack-operator, worker{arguments}]}}]"),
            )
        };
        assert_eq!(worker(""), ["gpustack-system/worker.gpustack.ai PodAndUuid"]);
        assert_eq!(worker(", --kube-leader-election-id=x"), ["gpustack-system/x PodAndUuid"]);
        assert!(worker(", --kube-leader-election=false").is_empty());
        assert_eq!(
            leases(ComponentId::Kueue, ""),
            ["gpustack-system/c1f6bfd2.kueue.x-k8s.io PodAndUuid"]
        );
        assert_eq!(
            leases(ComponentId::Kueue, "hostNetwork: true"),
            ["gpustack-system/c1f6bfd2.kueue.x-k8s.io NodeAndUuid"]
        );
    }

    #[test]
    fn elections_of_nfd_need_the_flag() {
        assert!(leases(ComponentId::NfdMaster, "containers: [{name: master, args: [-port=8080]}]").is_empty());
        assert_eq!(
            leases(
                ComponentId::NfdMaster,
                "containers: [{name: master, args: [-enable-leader-election, -port=8080]}]"
            ),
            ["gpustack-system/nfd-master.nfd.kubernetes.io NodeAndUuid"]
        );
        assert!(leases(ComponentId::NfdGc, "").is_empty());
    }

    #[test]
    fn elections_of_the_csi_controllers_follow_the_driver() {
        let sidecars = "{name: csi-provisioner, args: [--leader-election, --leader-election-namespace=other]}, {name: csi-resizer, args: [-leader-election]}, {name: csi-snapshotter, args: ['--leader-election=false']}";
        assert_eq!(
            leases(
                ComponentId::NfsController,
                &format!("hostNetwork: true, containers: [{sidecars}, {{name: nfs, args: [--drivername=nfs.csi.k8s.io]}}]")
            ),
            [
                "other/nfs-csi-k8s-io SanitizedNode",
                "other/external-resizer-nfs-csi-k8s-io SanitizedNode"
            ]
        );
        assert_eq!(
            leases(
                ComponentId::S3Controller,
                "containers: [{name: csi-provisioner, args: [--leader-election]}, {name: s3}]"
            ),
            ["gpustack-system/s3-csi-gpustack-ai Pod"]
        );
    }
}
