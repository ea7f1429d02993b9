//! Kubernetes objects, slim: only the fields that a rule reads.
//!
//! Every field follows the JSON encoding of the Kubernetes API. A missing field and a `null` both give the
//! zero value, as they do in the API server's own decoder; an unknown field is ignored. Written again, an object has
//! the fields that are not zero, and reads back as the same.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::shared::Shared;
use crate::pooled;

pooled!(
    String,
    StringMap,
    ResourceList,
    Affinity,
    Option<Probe>,
    PodSpec,
    ResourceRequirements,
    SecurityContext,
    Vec<Condition>: shrink_to_fit,
    Vec<Container>: shrink_to_fit,
    Vec<ContainerPort>: shrink_to_fit,
    Vec<ContainerStatus>: shrink_to_fit,
    Vec<NodeAddress>: shrink_to_fit,
    Vec<OwnerReference>: shrink_to_fit,
    Vec<PodResourceClaim>: shrink_to_fit,
    Vec<SchedulingGate>: shrink_to_fit,
    Vec<String>: shrink_to_fit,
    Vec<Taint>: shrink_to_fit,
    Vec<Toleration>: shrink_to_fit,
    Vec<TopologySpreadConstraint>: shrink_to_fit,
    Vec<Volume>: shrink_to_fit,
);

/// Labels, annotations, node selectors: names to values.
pub type StringMap = BTreeMap<String, String>;

/// Reads `null` as the zero value, as the API server does.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a value is the zero value, which a missing field gives.
fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Annotations that a rule reads. Others are dropped: some hold whole manifests, with whatever these hold.
const ANNOTATIONS: &[&str] = &[
    "batch.kubernetes.io/job-index-failure-count",
    "kubernetes.io/config.mirror",
    "meta.helm.sh/release-name",
    "pv.kubernetes.io/bind-completed",
    "storageclass.beta.kubernetes.io/is-default-class",
    "storageclass.kubernetes.io/is-default-class",
    "volume.beta.kubernetes.io/storage-class",
    "volume.kubernetes.io/selected-node",
];

fn annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Shared<StringMap>, D::Error> {
    let mut annotations: StringMap = nullable(deserializer)?;
    annotations.retain(|name, _| ANNOTATIONS.contains(&name.as_str()));
    Ok(Shared::new(annotations))
}

/// Asks for a map where serde's derive asks for a struct: a derived struct also accepts a sequence, as the values
/// of its fields in order, and `spec: []` must not pass for an empty spec.
struct MapOnly<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for MapOnly<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Deserializes types derived with `#[serde(remote = "Self")]` from maps only, and serializes them as derived.
macro_rules! map_only {
    ($($name:ident),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $name::deserialize(MapOnly(deserializer))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        }
    )*};
}

map_only!(OwnerReference, Meta);

/// Declares slim object types: each field defaults, and accepts `null`.
macro_rules! slim {
    ($($(#[$meta:meta])* struct $name:ident { $($(#[$fmeta:meta])* $field:ident : $ty:ty,)* })*) => {$(
        map_only!($name);

        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
        #[serde(rename_all = "camelCase", default, remote = "Self")]
        pub struct $name { $(
            $(#[$fmeta])*
            #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
            pub $field: $ty,
        )* }
    )*};
}

/// A reference to the object that owns another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct OwnerReference {
    /// Group and version, such as `apps/v1`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub api_version: String,
    /// Kind of the owner.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub kind: String,
    /// Name of the owner, in the namespace of the owned object or cluster-scoped.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub name: String,
    /// UID of the owner.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub uid: String,
    /// Whether this owner is the managing controller; at most one is.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub controller: bool,
}

impl OwnerReference {
    /// The API group, empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// A point in time; `None` where it is absent or does not parse, as no rule can then use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Option<Timestamp>);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(
            Option::<String>::deserialize(deserializer)?.and_then(|text| text.parse().ok()),
        ))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.map(|time| time.to_string()).serialize(serializer)
    }
}

/// Object metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct Meta {
    /// Name.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub namespace: String,
    /// UID; empty in files written by hand.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub uid: String,
    /// Labels.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub labels: Shared<StringMap>,
    /// Annotations, those that a rule reads.
    #[serde(deserialize_with = "annotations", skip_serializing_if = "is_zero")]
    pub annotations: Shared<StringMap>,
    /// Counts the changes of the spec.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// When it was created.
    #[serde(skip_serializing_if = "is_zero")]
    pub creation_timestamp: Time,
    /// Set while the object is terminating: when its grace period ends.
    #[serde(skip_serializing_if = "is_zero")]
    pub deletion_timestamp: Time,
    /// What must be removed before a deleted object goes.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub finalizers: Shared<Vec<String>>,
    /// Owners.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub owner_references: Shared<Vec<OwnerReference>>,
}

impl Meta {
    /// The managing controller, if any (`k8s.io/apimachinery/pkg/apis/meta/v1/controller_ref.go`).
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// Whether deletion was asked for.
    pub fn terminating(&self) -> bool {
        self.deletion_timestamp.0.is_some()
    }
}

/// `operator` of a label selector requirement or node selector requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum SelectorOperator {
    /// The value is one of the listed.
    In,
    /// The key is absent or its value is none of the listed.
    NotIn,
    /// The key is present.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// Node selectors only: the value is an integer above the listed one.
    Gt,
    /// Node selectors only: the value is an integer below the listed one.
    Lt,
    /// Anything else, which matches nothing.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A number or a percentage, such as `2` or `"50%"`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(untagged, expecting = "a whole number or text")]
pub enum IntOrPercent {
    /// An absolute number.
    Int(i64),
    /// Text; a percentage if it ends with `%`.
    Text(String),
}

impl std::fmt::Display for IntOrPercent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(number) => number.fmt(formatter),
            Self::Text(text) => formatter.write_str(text),
        }
    }
}

/// A container port given by number or by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(untagged, expecting = "a whole number or text")]
pub enum PortRef {
    /// By number.
    Number(i64),
    /// By name.
    Name(String),
}

/// A resource quantity as written: text such as `100m` or a bare number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct QuantityText(pub String);

impl<'de> Deserialize<'de> for QuantityText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "text or a number")]
        enum Form {
            Text(String),
            Number(serde_json::Number),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Text(text) => Self(text),
            Form::Number(number) => Self(number.to_string()),
        })
    }
}

/// Resource names to quantities.
pub type ResourceList = BTreeMap<String, QuantityText>;

slim! {
    /// A label selector. `None` and an empty one mean different things to different rules.
    #[derive(PartialOrd, Ord)]
    struct LabelSelector {
        /// Labels that must all be equal.
        match_labels: StringMap,
        /// Requirements that must all hold.
        match_expressions: Vec<SelectorRequirement>,
    }

    /// One requirement of a selector.
    #[derive(PartialOrd, Ord)]
    struct SelectorRequirement {
        /// Label key, or field name in a node selector's `matchFields`.
        key: String,
        /// How to compare.
        operator: SelectorOperator,
        /// Values to compare with.
        values: Vec<String>,
    }

    /// A pod as it is written.
    struct WrittenPod {
        /// Metadata.
        metadata: Meta,
        /// What it asks for, and its node.
        spec: PodSpec,
        /// What became of it.
        status: PodStatus,
    }

    /// What a pod asks for; also the `spec` of a pod template.
    struct PodSpec {
        /// The node that a template names, past the scheduler.
        node_name: Option<String>,
        /// Whether it lives in the node's network namespace.
        host_network: bool,
        /// Whether it sees the node's processes.
        #[serde(rename = "hostPID")]
        host_pid: bool,
        /// Whether it shares the node's interprocess communication.
        #[serde(rename = "hostIPC")]
        host_ipc: bool,
        /// What all its containers may do.
        security_context: Shared<SecurityContext>,
        /// Labels its node must have.
        node_selector: Shared<StringMap>,
        /// Affinity rules.
        affinity: Shared<Affinity>,
        /// Taints it tolerates.
        tolerations: Shared<Vec<Toleration>>,
        /// Topology spread constraints.
        topology_spread_constraints: Shared<Vec<TopologySpreadConstraint>>,
        /// Containers.
        containers: Shared<Vec<Container>>,
        /// Init containers, restartable ones (sidecars) among them.
        init_containers: Shared<Vec<Container>>,
        /// Volumes, those of a kind that a rule reads.
        volumes: Volumes,
        /// What the runtime class adds to its requests.
        overhead: Shared<ResourceList>,
        /// Pod-level resources (`spec.resources`), which replace the sum of the containers' where set.
        resources: Shared<ResourceRequirements>,
        /// Dynamic resource claims.
        resource_claims: Shared<Vec<PodResourceClaim>>,
        /// Priority, resolved from the class at creation.
        priority: Option<i64>,
        /// Name of its priority class.
        priority_class_name: Option<String>,
        /// `Never` keeps it from preempting others.
        preemption_policy: Option<String>,
        /// Scheduler; absent or empty means `default-scheduler`.
        scheduler_name: Option<String>,
        /// The group of pods that the scheduler places together.
        scheduling_group: Option<PodSchedulingGroup>,
        /// The same, as 1.35 writes it.
        workload_ref: Option<WorkloadReference>,
        /// Gates that keep the scheduler from looking at it.
        scheduling_gates: Shared<Vec<SchedulingGate>>,
        /// Service account.
        service_account_name: Option<String>,
        /// Runtime class.
        runtime_class_name: Option<String>,
        /// Seconds it may take to end; absent means 30.
        termination_grace_period_seconds: Option<i64>,
        /// Seconds it may run; quotas call a pod with such a bound `Terminating`.
        active_deadline_seconds: Option<i64>,
        /// `Always` (also when absent), `OnFailure` or `Never`.
        restart_policy: Option<String>,
    }

    /// The group of pods that the scheduler places together.
    struct PodSchedulingGroup {
        /// Name of a PodGroup.
        pod_group_name: Option<String>,
    }

    /// The group of pods that the scheduler of 1.35 places together.
    struct WorkloadReference {
        /// Name of a Workload.
        name: String,
    }

    /// A gate in front of the scheduler.
    struct SchedulingGate {
        /// Name.
        name: String,
    }

    /// A pod's use of a dynamic resource claim.
    struct PodResourceClaim {
        /// Name within the pod.
        name: String,
        /// The claim, if it has a name of its own.
        resource_claim_name: Option<String>,
        /// The template from which a claim is made for each pod.
        resource_claim_template_name: Option<String>,
    }

    /// A container.
    struct Container {
        /// Name.
        name: String,
        /// Image.
        image: String,
        /// What it may do.
        security_context: Shared<SecurityContext>,
        /// Command line, replacing the image's entrypoint.
        command: Shared<Vec<String>>,
        /// Arguments.
        args: Shared<Vec<String>>,
        /// Declared ports.
        ports: Shared<Vec<ContainerPort>>,
        /// Requests and limits.
        resources: Shared<ResourceRequirements>,
        /// `Always` on an init container makes it a sidecar.
        restart_policy: Option<String>,
        /// Liveness probe.
        liveness_probe: Shared<Option<Probe>>,
        /// Readiness probe.
        readiness_probe: Shared<Option<Probe>>,
        /// Startup probe.
        startup_probe: Shared<Option<Probe>>,
    }

    /// Requests and limits.
    struct ResourceRequirements {
        /// What the scheduler reserves.
        requests: Shared<ResourceList>,
        /// Upper bounds; a request that is not stated equals its limit.
        limits: Shared<ResourceList>,
    }

    /// A declared container port.
    struct ContainerPort {
        /// Name.
        name: String,
        /// Port in the pod.
        container_port: i64,
        /// Port on the node; 0 means none, and equals `container_port` with `hostNetwork`.
        host_port: i64,
        /// Address on the node; empty means all.
        #[serde(rename = "hostIP")]
        host_ip: String,
        /// `TCP` (also when empty), `UDP` or `SCTP`.
        protocol: String,
    }

    /// A probe; only its network forms bind a meaning here.
    struct Probe {
        /// HTTP request.
        http_get: Option<ProbeTarget>,
        /// TCP connection.
        tcp_socket: Option<ProbeTarget>,
        /// gRPC health check.
        grpc: Option<ProbeTarget>,
    }

    /// Where a probe connects to.
    struct ProbeTarget {
        /// Host; empty means the pod's address.
        host: String,
        /// Port.
        port: Option<PortRef>,
    }

    /// A volume; only the kinds that a rule reads.
    struct Volume {
        /// Name.
        name: String,
        /// Scratch space that ends with the pod.
        empty_dir: Option<Present>,
        /// A claim.
        persistent_volume_claim: Option<ClaimSource>,
        /// A claim made for this pod. With a claim named too: what that one is made from where it is missing.
        ephemeral: Option<EphemeralSource>,
        /// A disk of Google's cloud.
        gce_persistent_disk: Option<GcePersistentDisk>,
        /// A disk of Amazon's cloud.
        aws_elastic_block_store: Option<DiskById>,
        /// A disk of Microsoft's cloud.
        azure_disk: Option<AzureDisk>,
        /// A disk of OpenStack.
        cinder: Option<DiskById>,
        /// A disk of Portworx.
        portworx_volume: Option<DiskById>,
        /// A directory of the node.
        host_path: Option<Present>,
        /// NFS.
        nfs: Option<Present>,
        /// Rados block device.
        rbd: Option<RadosBlockDevice>,
        /// iSCSI.
        iscsi: Option<IscsiDisk>,
        /// An inline CSI volume.
        csi: Option<CsiSource>,
    }

    /// What a pod, or a container of it, may do; the fields of both.
    struct SecurityContext {
        /// Like a process of the node itself.
        privileged: bool,
        /// Capabilities.
        capabilities: Capabilities,
        /// Whether a process may gain more than its parent has.
        allow_privilege_escalation: Option<bool>,
        /// Whether the kubelet refuses to run it as root.
        run_as_non_root: Option<bool>,
        /// User.
        run_as_user: Option<i64>,
        /// `Default` (also when empty) or `Unmasked`.
        proc_mount: String,
        /// Seccomp profile.
        seccomp_profile: Option<SecurityProfile>,
        /// `AppArmor` profile.
        app_armor_profile: Option<SecurityProfile>,
        /// `SELinux` label.
        se_linux_options: SeLinuxOptions,
        /// Kernel parameters.
        sysctls: Vec<Sysctl>,
        /// On Windows.
        windows_options: WindowsOptions,
    }

    /// Capabilities beside those that the runtime gives.
    struct Capabilities {
        /// Given.
        add: Vec<String>,
        /// Taken.
        drop: Vec<String>,
    }

    /// A seccomp or `AppArmor` profile.
    struct SecurityProfile {
        /// `RuntimeDefault`, `Localhost` or `Unconfined`.
        #[serde(rename = "type")]
        kind: String,
    }

    /// An `SELinux` label.
    struct SeLinuxOptions {
        /// User.
        user: String,
        /// Role.
        role: String,
        /// Type.
        #[serde(rename = "type")]
        kind: String,
    }

    /// A kernel parameter.
    struct Sysctl {
        /// Name.
        name: String,
    }

    /// What a Windows container may do.
    struct WindowsOptions {
        /// Like a process of the node itself.
        host_process: bool,
    }

    /// An inline CSI volume.
    struct CsiSource {
        /// Driver name.
        driver: String,
    }

    /// A claim made for one pod.
    struct EphemeralSource {
        /// What it is made from.
        volume_claim_template: VolumeClaimTemplate,
    }

    /// A disk of Google's cloud, named by a pod.
    struct GcePersistentDisk {
        /// Name of the disk.
        pd_name: String,
        /// Whether it is only read.
        read_only: bool,
    }

    /// A disk named by its identifier.
    struct DiskById {
        /// Identifier.
        #[serde(rename = "volumeID")]
        volume_id: String,
    }

    /// A disk of Microsoft's cloud, named by a pod.
    struct AzureDisk {
        /// Address of the disk.
        #[serde(rename = "diskURI")]
        disk_uri: String,
    }

    /// A Rados block device.
    struct RadosBlockDevice {
        /// Ceph's monitors.
        monitors: Vec<String>,
        /// Pool; empty means `rbd`.
        pool: String,
        /// Image.
        image: String,
        /// Whether it is only read.
        read_only: bool,
    }

    /// An iSCSI disk.
    struct IscsiDisk {
        /// Qualified name of the target.
        iqn: String,
        /// Whether it is only read.
        read_only: bool,
    }

    /// Something whose presence is all that matters.
    struct Present {}

    /// A claim named by a volume.
    struct ClaimSource {
        /// Name of the claim.
        claim_name: String,
    }

    /// Affinity rules of a pod.
    struct Affinity {
        /// Affinity to nodes.
        node_affinity: NodeAffinity,
        /// Affinity to pods.
        pod_affinity: PodAffinity,
        /// Anti-affinity to pods.
        pod_anti_affinity: PodAffinity,
    }

    /// Affinity to nodes; the preferred part decides nothing here.
    struct NodeAffinity {
        /// What the node must match at scheduling time.
        required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
    }

    /// A node selector: terms are ORed.
    struct NodeSelector {
        /// Terms.
        node_selector_terms: Vec<NodeSelectorTerm>,
    }

    /// One term: all its requirements must hold; a term with none matches nothing.
    struct NodeSelectorTerm {
        /// Requirements on labels.
        match_expressions: Vec<SelectorRequirement>,
        /// Requirements on fields; only `metadata.name` exists.
        match_fields: Vec<SelectorRequirement>,
    }

    /// Affinity or anti-affinity to pods; the preferred part decides nothing here.
    struct PodAffinity {
        /// Terms that must all hold at scheduling time.
        required_during_scheduling_ignored_during_execution: Vec<PodAffinityTerm>,
    }

    /// One term of affinity to pods.
    struct PodAffinityTerm {
        /// Pods meant; absent matches none.
        label_selector: Option<LabelSelector>,
        /// Namespaces meant; empty with no selector means the pod's own.
        namespaces: Vec<String>,
        /// Namespaces meant, by label; an empty selector means all.
        namespace_selector: Option<LabelSelector>,
        /// Node label whose values are the domains.
        topology_key: String,
        /// Label keys of the incoming pod merged into the selector as `In`.
        match_label_keys: Vec<String>,
        /// Label keys of the incoming pod merged into the selector as `NotIn`.
        mismatch_label_keys: Vec<String>,
    }

    /// A tolerated taint.
    struct Toleration {
        /// Taint key; empty with `Exists` means every key.
        key: String,
        /// `Equal` (also when empty), `Exists`, `Lt` or `Gt`.
        operator: String,
        /// Taint value for `Equal`.
        value: String,
        /// Effect; empty means all.
        effect: String,
    }

    /// A topology spread constraint.
    struct TopologySpreadConstraint {
        /// Largest allowed difference between domains.
        max_skew: i64,
        /// Node label whose values are the domains.
        topology_key: String,
        /// `DoNotSchedule` or `ScheduleAnyway`.
        when_unsatisfiable: String,
        /// Pods counted; absent and empty count none.
        label_selector: Option<LabelSelector>,
        /// Below this many domains the global minimum is 0.
        min_domains: Option<i64>,
        /// `Honor` (also when absent) or `Ignore`.
        node_affinity_policy: Option<String>,
        /// `Ignore` (also when absent) or `Honor`.
        node_taints_policy: Option<String>,
        /// Label keys of the incoming pod merged into the selector.
        match_label_keys: Vec<String>,
    }

    /// What became of a pod.
    struct PodStatus {
        /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
        phase: Shared<String>,
        /// Conditions.
        conditions: Shared<Vec<Condition>>,
        /// State of the containers.
        container_statuses: Shared<Vec<ContainerStatus>>,
        /// State of the init containers.
        init_container_statuses: Shared<Vec<ContainerStatus>>,
        /// Node the preemptor waits for.
        nominated_node_name: Shared<String>,
        /// Address of the pod.
        #[serde(rename = "podIP")]
        pod_ip: String,
        /// When the kubelet took it up.
        start_time: Time,
    }

    /// State of a container.
    struct ContainerStatus {
        /// Container name.
        name: String,
        /// Passing its readiness probe.
        ready: bool,
        /// How often it was started again.
        restart_count: i64,
        /// Present state.
        state: ContainerState,
        /// Requests and limits that the runtime applies, while they may differ from the spec's by a resize in place.
        resources: Option<ResourceRequirements>,
        /// Requests that the kubelet admitted.
        allocated_resources: Shared<ResourceList>,
    }

    /// Present state of a container; only waiting carries a reason that a rule reads.
    struct ContainerState {
        /// Why it is not running.
        waiting: Option<ContainerWaiting>,
    }

    /// Why a container is not running.
    struct ContainerWaiting {
        /// Such as `CrashLoopBackOff`, `ImagePullBackOff`.
        reason: String,
    }

    /// A status condition.
    struct Condition {
        /// Type.
        #[serde(rename = "type")]
        kind: Shared<String>,
        /// `True`, `False` or `Unknown`.
        status: Shared<String>,
        /// Machine-readable reason.
        reason: Shared<String>,
        /// Human-readable message; untrusted text.
        message: Shared<String>,
    }

    /// A node.
    struct Node {
        /// Metadata.
        metadata: Meta,
        /// What is wanted of it.
        spec: NodeSpec,
        /// What it reports.
        status: NodeStatus,
    }

    /// What is wanted of a node.
    struct NodeSpec {
        /// Cordoned.
        unschedulable: bool,
        /// Taints.
        taints: Shared<Vec<Taint>>,
    }

    /// A taint.
    #[derive(PartialOrd, Ord)]
    struct Taint {
        /// Key.
        key: String,
        /// Value.
        value: String,
        /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
        effect: String,
    }

    /// What a node reports.
    struct NodeStatus {
        /// What pods may request in sum.
        allocatable: Shared<ResourceList>,
        /// Conditions, `Ready` among them.
        conditions: Shared<Vec<Condition>>,
        /// Addresses.
        addresses: Shared<Vec<NodeAddress>>,
        /// What its kubelet says of itself.
        node_info: NodeSystemInfo,
    }

    /// What a kubelet says of itself.
    struct NodeSystemInfo {
        /// Name and version of what runs its containers; empty where no kubelet reports.
        container_runtime_version: Shared<String>,
    }

    /// An address of a node.
    struct NodeAddress {
        /// `InternalIP`, `Hostname` and so on.
        #[serde(rename = "type")]
        kind: String,
        /// The address.
        address: String,
    }

    /// A namespace.
    struct Namespace {
        /// Metadata.
        metadata: Meta,
        /// State.
        status: NamespaceStatus,
    }

    /// State of a namespace.
    struct NamespaceStatus {
        /// `Active` or `Terminating`.
        phase: String,
    }

    /// A pod template.
    struct PodTemplate {
        /// Labels and annotations of the pods.
        metadata: Meta,
        /// Spec of the pods.
        spec: PodSpec,
    }

    /// A Deployment.
    struct Deployment {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: DeploymentSpec,
        /// What is there.
        status: WorkloadStatus,
    }

    /// What is wanted of a Deployment.
    struct DeploymentSpec {
        /// Wanted pods; absent means 1.
        replicas: Option<i64>,
        /// Pods it owns.
        selector: LabelSelector,
        /// Template.
        template: PodTemplate,
        /// How a rollout goes.
        strategy: DeploymentStrategy,
        /// A paused rollout.
        paused: bool,
    }

    /// How a rollout goes.
    struct DeploymentStrategy {
        /// `RollingUpdate` (also when empty) or `Recreate`.
        #[serde(rename = "type")]
        kind: String,
        /// How many pods may be too many or missing meanwhile.
        rolling_update: RollingUpdate,
    }

    /// How many pods may be too many or missing during a rollout.
    struct RollingUpdate {
        /// Pods beyond the wanted number; absent means 25 %.
        max_surge: Option<IntOrPercent>,
        /// Pods that may be missing; absent means 25 %.
        max_unavailable: Option<IntOrPercent>,
    }

    /// Counts that the workload controllers report.
    struct WorkloadStatus {
        /// Pods.
        replicas: i64,
        /// Ready pods.
        ready_replicas: i64,
        /// Generation that the counts belong to.
        observed_generation: i64,
    }

    /// A ReplicaSet, or a ReplicationController read as one.
    struct ReplicaSet {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: ReplicaSetSpec,
    }

    /// What is wanted of a ReplicaSet.
    struct ReplicaSetSpec {
        /// Wanted pods; absent means 1.
        replicas: Option<i64>,
        /// Template.
        template: PodTemplate,
    }

    /// A StatefulSet.
    struct StatefulSet {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: StatefulSetSpec,
        /// What is there.
        status: StatefulSetStatus,
    }

    /// What is wanted of a StatefulSet.
    struct StatefulSetSpec {
        /// Wanted pods; absent means 1.
        replicas: Option<i64>,
        /// Template.
        template: PodTemplate,
        /// `OrderedReady` (also when empty) or `Parallel`.
        pod_management_policy: String,
        /// Claims made for each pod.
        volume_claim_templates: Vec<VolumeClaimTemplate>,
        /// Which ordinals there are.
        ordinals: StatefulSetOrdinals,
    }

    /// Which ordinals a StatefulSet's pods have.
    struct StatefulSetOrdinals {
        /// The lowest.
        start: i64,
    }

    /// What is there of a StatefulSet.
    struct StatefulSetStatus {
        /// Revision of the pods that a rollout has not reached.
        current_revision: String,
        /// Revision of the template.
        update_revision: String,
    }

    /// What a claim for one pod is made from.
    struct VolumeClaimTemplate {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: PersistentVolumeClaimSpec,
    }

    /// A DaemonSet.
    struct DaemonSet {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: DaemonSetSpec,
        /// What is there.
        status: DaemonSetStatus,
    }

    /// Counts that the DaemonSet controller reports.
    struct DaemonSetStatus {
        /// Nodes that should run a pod.
        desired_number_scheduled: i64,
        /// Of those, nodes whose pod is Ready.
        number_ready: i64,
    }

    /// What is wanted of a DaemonSet.
    struct DaemonSetSpec {
        /// Template.
        template: PodTemplate,
        /// How an update of its pods goes: `RollingUpdate` (also when empty) or `OnDelete`.
        update_strategy: DeploymentStrategy,
    }

    /// A Job.
    struct Job {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: JobSpec,
        /// What is there.
        status: JobStatus,
    }

    /// What is wanted of a Job.
    struct JobSpec {
        /// Pods at a time; absent means 1.
        parallelism: Option<i64>,
        /// Failures before the Job fails; absent means 6.
        backoff_limit: Option<i64>,
        /// Failures allowed per index, which replaces `backoff_limit`.
        backoff_limit_per_index: Option<i64>,
        /// `TerminatingOrFailed` (also when absent) or `Failed`.
        pod_replacement_policy: Option<String>,
        /// Rules on what a failed pod means.
        pod_failure_policy: Option<PodFailurePolicy>,
        /// Pods that must succeed; absent means that one success ends the Job.
        completions: Option<i64>,
        /// Indexes that may fail, where failures are counted per index; absent means any number.
        max_failed_indexes: Option<i64>,
        /// Who runs the Job; absent means the Job controller.
        managed_by: Option<String>,
        /// A suspended Job creates nothing.
        suspend: bool,
        /// Template.
        template: PodTemplate,
    }

    /// Rules on what a failed pod means for its Job.
    struct PodFailurePolicy {
        /// The first that matches decides.
        rules: Vec<PodFailurePolicyRule>,
    }

    /// One rule on what a failed pod means.
    struct PodFailurePolicyRule {
        /// `Ignore`, `Count`, `FailIndex` or `FailJob`.
        action: String,
        /// Matches by exit code.
        on_exit_codes: Option<OnExitCodes>,
        /// Matches by conditions of the pod, any of them.
        on_pod_conditions: Vec<PodConditionPattern>,
    }

    /// Exit codes that a rule looks for.
    struct OnExitCodes {
        /// `In` or `NotIn`.
        operator: SelectorOperator,
        /// Codes.
        values: Vec<i64>,
    }

    /// A condition of a pod that a rule looks for.
    struct PodConditionPattern {
        /// Type, such as `DisruptionTarget`.
        #[serde(rename = "type")]
        kind: String,
        /// Status; empty means `True`.
        status: String,
    }

    /// What is there of a Job.
    struct JobStatus {
        /// Pods that succeeded, or indexes that did.
        succeeded: i64,
        /// Failed pods so far.
        failed: i64,
        /// Conditions, `Complete` and `Failed` among them.
        conditions: Vec<Condition>,
    }

    /// A disruption budget.
    struct PodDisruptionBudget {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: PodDisruptionBudgetSpec,
        /// What the disruption controller computed.
        status: PodDisruptionBudgetStatus,
    }

    /// What is wanted of a disruption budget.
    struct PodDisruptionBudgetSpec {
        /// Pods meant; absent matches none, empty all of the namespace.
        selector: Option<LabelSelector>,
        /// Healthy pods that must remain.
        min_available: Option<IntOrPercent>,
        /// Pods that may be missing.
        max_unavailable: Option<IntOrPercent>,
        /// `IfHealthyBudget` (also when absent) or `AlwaysAllow`.
        unhealthy_pod_eviction_policy: Option<String>,
    }

    /// What the disruption controller computed.
    struct PodDisruptionBudgetStatus {
        /// Generation that the numbers belong to.
        observed_generation: i64,
        /// Evictions allowed now.
        disruptions_allowed: i64,
        /// Healthy pods counted.
        current_healthy: i64,
        /// Healthy pods wanted.
        desired_healthy: i64,
        /// Pods expected.
        expected_pods: i64,
        /// Evicted pods that were not yet seen to go.
        disrupted_pods: BTreeMap<String, serde_json::Value>,
        /// Conditions, `DisruptionAllowed` among them.
        conditions: Vec<Condition>,
    }

    /// A Service.
    struct Service {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: ServiceSpec,
    }

    /// What is wanted of a Service.
    struct ServiceSpec {
        /// Name outside of the cluster; of an `ExternalName` alone.
        external_name: String,
        /// `ClusterIP` (also when empty), `ExternalName` and so on.
        #[serde(rename = "type")]
        kind: String,
        /// `None` makes it headless.
        #[serde(rename = "clusterIP")]
        cluster_ip: String,
        /// Pods behind it; empty means that somebody else writes its endpoints.
        selector: StringMap,
        /// Ports.
        ports: Vec<ServicePort>,
        /// Whether pods that are not ready are published too.
        publish_not_ready_addresses: bool,
    }

    /// A port of a Service.
    struct ServicePort {
        /// Name.
        name: String,
        /// Port of the Service.
        port: i64,
        /// Port of the pods; absent means the same as `port`.
        target_port: Option<PortRef>,
        /// `TCP` (also when empty), `UDP` or `SCTP`.
        protocol: String,
    }

    /// An EndpointSlice.
    struct EndpointSlice {
        /// Metadata; the label `kubernetes.io/service-name` names the Service.
        metadata: Meta,
        /// Endpoints.
        endpoints: Vec<Endpoint>,
        /// Ports.
        ports: Vec<EndpointPort>,
    }

    /// An endpoint.
    struct Endpoint {
        /// Addresses.
        addresses: Vec<String>,
        /// State.
        conditions: EndpointConditions,
        /// Node it is on.
        node_name: Option<String>,
        /// Object behind it.
        target_ref: Option<TargetRef>,
    }

    /// State of an endpoint.
    struct EndpointConditions {
        /// Absent means ready.
        ready: Option<bool>,
    }

    /// A port of an EndpointSlice.
    struct EndpointPort {
        /// Name.
        name: String,
        /// Number; absent means every port.
        port: Option<i64>,
    }

    /// An object behind an endpoint.
    struct TargetRef {
        /// Kind.
        kind: String,
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
    }

    /// A mutating or validating webhook configuration.
    struct WebhookConfiguration {
        /// Metadata.
        metadata: Meta,
        /// Its webhooks.
        webhooks: Vec<Webhook>,
    }

    /// A webhook.
    struct Webhook {
        /// Name.
        name: String,
        /// Where it is called.
        client_config: WebhookClientConfig,
        /// What it is called for.
        rules: Vec<WebhookRule>,
        /// `Fail` (also when absent) or `Ignore`.
        failure_policy: Option<String>,
        /// Namespaces it is called for.
        namespace_selector: Option<LabelSelector>,
        /// Objects it is called for.
        object_selector: Option<LabelSelector>,
        /// CEL conditions.
        match_conditions: Vec<MatchCondition>,
        /// `Equivalent` (also when absent) or `Exact`.
        match_policy: Option<String>,
        /// Seconds that a call may take; absent means 10.
        timeout_seconds: Option<i64>,
    }

    /// A CEL condition on a webhook.
    struct MatchCondition {
        /// Name.
        name: String,
        /// Expression.
        expression: String,
    }

    /// Where a webhook is called.
    struct WebhookClientConfig {
        /// By a Service.
        service: Option<ServiceReference>,
        /// By an address.
        url: Option<String>,
    }

    /// A reference to a Service.
    struct ServiceReference {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
        /// Port; absent means 443.
        port: Option<i64>,
    }

    /// What a webhook is called for.
    struct WebhookRule {
        /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT` or `*`.
        operations: Vec<String>,
        /// API groups, or `*`.
        api_groups: Vec<String>,
        /// API versions, or `*`.
        api_versions: Vec<String>,
        /// Resources, such as `pods`, `pods/status`, `*/*`.
        resources: Vec<String>,
        /// `Cluster`, `Namespaced` or `*` (also when absent).
        scope: Option<String>,
    }

    /// A registration of an aggregated API.
    struct ApiService {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: ApiServiceSpec,
        /// What is there.
        status: ApiServiceStatus,
    }

    /// What is wanted of an aggregated API.
    struct ApiServiceSpec {
        /// API group.
        group: String,
        /// API version.
        version: String,
        /// Service behind it; absent means the API server itself.
        service: Option<ServiceReference>,
    }

    /// State of an aggregated API.
    struct ApiServiceStatus {
        /// Conditions, `Available` among them.
        conditions: Vec<Condition>,
    }

    /// A custom resource definition.
    struct CustomResourceDefinition {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: CustomResourceDefinitionSpec,
    }

    /// What is wanted of a custom resource definition.
    struct CustomResourceDefinitionSpec {
        /// API group.
        group: String,
        /// Names.
        names: CustomResourceNames,
        /// Versions.
        versions: Vec<CustomResourceVersion>,
        /// How objects are converted between versions.
        conversion: CustomResourceConversion,
    }

    /// Names of a custom resource.
    struct CustomResourceNames {
        /// Plural, as in a URL.
        plural: String,
        /// Kind.
        kind: String,
    }

    /// A version of a custom resource.
    struct CustomResourceVersion {
        /// Name.
        name: String,
        /// Whether it is served.
        served: bool,
        /// Whether objects are stored in it.
        storage: bool,
        /// Subresources.
        subresources: CustomResourceSubresources,
    }

    /// Subresources of a version.
    struct CustomResourceSubresources {
        /// The scale subresource.
        scale: Option<Present>,
    }

    /// How custom objects are converted.
    struct CustomResourceConversion {
        /// `None` or `Webhook`.
        strategy: String,
        /// The webhook.
        webhook: Option<ConversionWebhook>,
    }

    /// A conversion webhook.
    struct ConversionWebhook {
        /// Where it is called.
        client_config: WebhookClientConfig,
    }

    /// A lease.
    struct Lease {
        /// Metadata.
        metadata: Meta,
        /// Record of the election.
        spec: LeaseSpec,
    }

    /// Record of an election.
    struct LeaseSpec {
        /// Who holds it; empty means released.
        holder_identity: String,
        /// Seconds that a standby waits after the last renewal it saw.
        lease_duration_seconds: i64,
        /// How often it moved.
        lease_transitions: i64,
        /// Last renewal.
        renew_time: Time,
    }

    /// A claim for storage.
    struct PersistentVolumeClaim {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: PersistentVolumeClaimSpec,
        /// What is there.
        status: PersistentVolumeClaimStatus,
    }

    /// What is wanted of a claim.
    struct PersistentVolumeClaimSpec {
        /// Bound volume.
        volume_name: String,
        /// Access modes.
        access_modes: Vec<String>,
        /// Storage class; absent at creation means the default one.
        storage_class_name: Option<String>,
        /// Room wanted, as the request `storage`.
        resources: ResourceRequirements,
        /// Volumes that may be bound.
        selector: Option<LabelSelector>,
        /// `Filesystem` (also when absent) or `Block`.
        volume_mode: Option<String>,
        /// Class of attributes.
        volume_attributes_class_name: Option<String>,
    }

    /// State of a claim.
    struct PersistentVolumeClaimStatus {
        /// `Pending`, `Bound` or `Lost`.
        phase: String,
    }

    /// A volume.
    struct PersistentVolume {
        /// Metadata.
        metadata: Meta,
        /// What it is.
        spec: PersistentVolumeSpec,
        /// What became of it.
        status: PersistentVolumeStatus,
    }

    /// What a volume is.
    struct PersistentVolumeSpec {
        /// Nodes that reach it.
        node_affinity: VolumeNodeAffinity,
        /// Claim that it is bound to or kept for.
        claim_ref: Option<ClaimReference>,
        /// How much it holds, as `storage`.
        capacity: ResourceList,
        /// Access modes.
        access_modes: Vec<String>,
        /// Storage class.
        storage_class_name: String,
        /// `Filesystem` (also when absent) or `Block`.
        volume_mode: Option<String>,
        /// Class of attributes.
        volume_attributes_class_name: Option<String>,
        /// A volume of a CSI driver.
        csi: Option<CsiVolume>,
        /// A disk of Amazon's cloud.
        aws_elastic_block_store: Option<Present>,
        /// A disk of Google's cloud.
        gce_persistent_disk: Option<Present>,
        /// A disk of Microsoft's cloud.
        azure_disk: Option<Present>,
        /// A disk of OpenStack.
        cinder: Option<Present>,
        /// A disk of Portworx.
        portworx_volume: Option<Present>,
    }

    /// A volume of a CSI driver.
    struct CsiVolume {
        /// Driver name.
        driver: String,
        /// What the driver calls it.
        volume_handle: String,
    }

    /// A claim named by a volume.
    struct ClaimReference {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
        /// UID; empty means any claim of the name.
        uid: String,
    }

    /// What became of a volume.
    struct PersistentVolumeStatus {
        /// `Available`, `Bound`, `Released` and so on.
        phase: String,
    }

    /// A storage class.
    struct StorageClass {
        /// Metadata.
        metadata: Meta,
        /// Who makes volumes; `kubernetes.io/no-provisioner` means nobody.
        provisioner: String,
        /// `Immediate` (also when empty) or `WaitForFirstConsumer`.
        volume_binding_mode: String,
        /// Where volumes may be made; empty means anywhere.
        allowed_topologies: Vec<TopologySelectorTerm>,
    }

    /// One way to say where volumes may be made: all its requirements must hold.
    struct TopologySelectorTerm {
        /// Requirements on the node's labels.
        match_label_expressions: Vec<TopologySelectorRequirement>,
    }

    /// A label whose value is one of those listed.
    struct TopologySelectorRequirement {
        /// Label key.
        key: String,
        /// Values.
        values: Vec<String>,
    }

    /// The CSI drivers of a node, whose name it has.
    struct CsiNode {
        /// Metadata.
        metadata: Meta,
        /// Its drivers.
        spec: CsiNodeSpec,
    }

    /// CSI drivers of a node.
    struct CsiNodeSpec {
        /// Drivers.
        drivers: Vec<CsiNodeDriver>,
    }

    /// A CSI driver on a node.
    struct CsiNodeDriver {
        /// Driver name.
        name: String,
        /// What it takes.
        allocatable: VolumeNodeResources,
    }

    /// How many volumes of a driver a node takes.
    struct VolumeNodeResources {
        /// Volumes; absent means no limit.
        count: Option<i64>,
    }

    /// A CSI driver.
    struct CsiDriver {
        /// Metadata.
        metadata: Meta,
        /// How it works.
        spec: CsiDriverSpec,
    }

    /// How a CSI driver works.
    struct CsiDriverSpec {
        /// Whether volumes are attached to nodes; absent means true.
        attach_required: Option<bool>,
        /// Whether the scheduler looks at the room left for new volumes.
        storage_capacity: bool,
    }

    /// A volume on its way to, on, or from a node.
    struct VolumeAttachment {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: VolumeAttachmentSpec,
    }

    /// What is wanted of an attachment.
    struct VolumeAttachmentSpec {
        /// Driver name.
        attacher: String,
        /// Node.
        node_name: String,
        /// The volume.
        source: VolumeAttachmentSource,
    }

    /// The volume of an attachment.
    struct VolumeAttachmentSource {
        /// Name of the volume.
        persistent_volume_name: Option<String>,
    }

    /// A dynamic resource claim.
    struct ResourceClaim {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: ResourceClaimSpec,
        /// What is there.
        status: ResourceClaimStatus,
    }

    /// What is wanted of a dynamic resource claim.
    struct ResourceClaimSpec {
        /// Devices.
        devices: DeviceClaim,
    }

    /// Devices wanted.
    struct DeviceClaim {
        /// Requests.
        requests: Vec<DeviceRequest>,
    }

    /// A request for devices.
    struct DeviceRequest {
        /// Name.
        name: String,
        /// Exactly this.
        exactly: Option<DeviceSubRequest>,
        /// The first of these that there is.
        first_available: Vec<DeviceSubRequest>,
        /// Class, in versions before `v1beta2`.
        device_class_name: String,
    }

    /// One way to satisfy a request for devices.
    struct DeviceSubRequest {
        /// Name among alternatives.
        name: String,
        /// Class.
        device_class_name: String,
    }

    /// State of a dynamic resource claim.
    struct ResourceClaimStatus {
        /// Devices given to it.
        allocation: Option<AllocationResult>,
        /// Who holds it.
        reserved_for: Vec<ClaimConsumer>,
    }

    /// Devices given to a claim.
    struct AllocationResult {
        /// Nodes on which they can be used; absent means all.
        node_selector: Option<NodeSelector>,
    }

    /// A holder of a dynamic resource claim.
    struct ClaimConsumer {
        /// Resource, such as `pods`.
        resource: String,
        /// Name.
        name: String,
    }

    /// A class of devices.
    struct DeviceClass {
        /// Metadata.
        metadata: Meta,
    }

    /// Nodes that reach a volume.
    struct VolumeNodeAffinity {
        /// Required terms.
        required: Option<NodeSelector>,
    }

    /// A quota.
    struct ResourceQuota {
        /// Metadata.
        metadata: Meta,
        /// What is allowed.
        spec: ResourceQuotaSpec,
        /// What is used.
        status: ResourceQuotaStatus,
    }

    /// What a quota allows.
    struct ResourceQuotaSpec {
        /// Upper bounds by resource, such as `pods` or `requests.cpu`.
        hard: ResourceList,
        /// Scopes that an object must all be in.
        scopes: Vec<String>,
        /// More scopes that it must be in.
        scope_selector: ScopeSelector,
    }

    /// Scopes of a quota that compare values.
    struct ScopeSelector {
        /// Requirements that must all hold.
        match_expressions: Vec<ScopeRequirement>,
    }

    /// One scope of a quota.
    struct ScopeRequirement {
        /// Scope, such as `PriorityClass`.
        scope_name: String,
        /// How to compare.
        operator: SelectorOperator,
        /// Values to compare with.
        values: Vec<String>,
    }

    /// What is used of a quota.
    struct ResourceQuotaStatus {
        /// Bounds that are enforced.
        hard: ResourceList,
        /// What is used.
        used: ResourceList,
    }

    /// A limit range.
    struct LimitRange {
        /// Metadata.
        metadata: Meta,
        /// Limits.
        spec: LimitRangeSpec,
    }

    /// Limits of a limit range.
    struct LimitRangeSpec {
        /// One for each type.
        limits: Vec<LimitRangeItem>,
    }

    /// Limits for one type of object.
    struct LimitRangeItem {
        /// `Container`, `Pod` or `PersistentVolumeClaim`.
        #[serde(rename = "type")]
        kind: String,
        /// Upper bounds.
        max: ResourceList,
        /// Lower bounds.
        min: ResourceList,
        /// Limits of a container that states none.
        default: ResourceList,
        /// Requests of a container that states none.
        default_request: ResourceList,
        /// How far a limit may be above the request.
        max_limit_request_ratio: ResourceList,
    }

    /// A service account.
    struct ServiceAccount {
        /// Metadata.
        metadata: Meta,
    }

    /// A priority class.
    struct PriorityClass {
        /// Metadata.
        metadata: Meta,
        /// Priority of its pods.
        value: i64,
        /// `PreemptLowerPriority` (also when absent) or `Never`.
        preemption_policy: Option<String>,
    }

    /// A runtime class.
    struct RuntimeClass {
        /// Metadata.
        metadata: Meta,
        /// What running a pod costs.
        overhead: RuntimeOverhead,
        /// Nodes that support it.
        scheduling: RuntimeScheduling,
    }

    /// What running a pod costs.
    struct RuntimeOverhead {
        /// Added to the requests of each pod.
        pod_fixed: ResourceList,
    }

    /// Nodes that support a runtime class.
    struct RuntimeScheduling {
        /// Merged into the pod's node selector.
        node_selector: StringMap,
        /// Added to the pod's tolerations.
        tolerations: Vec<Toleration>,
    }

    /// A policy in CEL on what may be written.
    struct ValidatingAdmissionPolicy {
        /// Metadata.
        metadata: Meta,
        /// What it is about.
        spec: ValidatingAdmissionPolicySpec,
    }

    /// What a policy is about.
    struct ValidatingAdmissionPolicySpec {
        /// Requests that it is evaluated for.
        match_constraints: MatchResources,
    }

    /// Requests that a policy or its binding is about.
    struct MatchResources {
        /// What it is evaluated for.
        resource_rules: Vec<WebhookRule>,
        /// What it is not evaluated for, though a rule names it.
        exclude_resource_rules: Vec<WebhookRule>,
        /// Namespaces.
        namespace_selector: Option<LabelSelector>,
        /// Objects.
        object_selector: Option<LabelSelector>,
        /// `Equivalent` (also when absent) or `Exact`.
        match_policy: Option<String>,
    }

    /// Puts a policy into force.
    struct ValidatingAdmissionPolicyBinding {
        /// Metadata.
        metadata: Meta,
        /// What is put into force.
        spec: ValidatingAdmissionPolicyBindingSpec,
    }

    /// What a binding puts into force.
    struct ValidatingAdmissionPolicyBindingSpec {
        /// Name of the policy.
        policy_name: String,
        /// `Deny`, `Warn`, `Audit`.
        validation_actions: Vec<String>,
        /// Narrows the policy's requests.
        match_resources: Option<MatchResources>,
    }

    /// An autoscaler of a workload.
    struct HorizontalPodAutoscaler {
        /// Metadata.
        metadata: Meta,
        /// What is wanted.
        spec: HorizontalPodAutoscalerSpec,
    }

    /// What is wanted of an autoscaler.
    struct HorizontalPodAutoscalerSpec {
        /// The workload that it scales.
        scale_target_ref: ScaleTarget,
        /// Fewest replicas; 1 when absent.
        min_replicas: Option<i64>,
        /// Most replicas.
        max_replicas: i64,
    }

    /// The workload that an autoscaler scales.
    struct ScaleTarget {
        /// Kind.
        kind: String,
        /// Name.
        name: String,
    }
}

impl Pod {
    /// Whether a condition has the given status.
    fn condition(&self, kind: &str) -> bool {
        self.status
            .conditions
            .iter()
            .any(|condition| condition.kind == kind && condition.status == "True")
    }

    /// The Ready condition is True (`k8s.io/kubernetes/pkg/api/v1/pod/util.go`, IsPodReady).
    pub fn ready(&self) -> bool {
        self.condition("Ready")
    }

    /// `Succeeded` or `Failed`.
    pub fn finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Static pods are mirrored by the kubelet; the annotation tells.
    pub fn mirror(&self) -> bool {
        self.metadata.annotations.contains_key("kubernetes.io/config.mirror")
    }

    /// The node it is bound to.
    pub fn node(&self) -> Option<&str> {
        Some(self.node_name.as_str()).filter(|name| !name.is_empty())
    }

    /// `namespace/name`.
    pub fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// Metadata, without what no rule reads of a pod: its UID and when it was created.
    pub metadata: Meta,
    /// Node it is bound to; empty for none.
    pub node_name: Shared<String>,
    /// What it asks for. The node is not part of it: many pods ask for the same.
    pub spec: Shared<PodSpec>,
    /// What became of it.
    pub status: PodStatus,
}

/// Volumes of a kind that a rule reads. The others go by a name that differs from pod to pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Volumes(Shared<Vec<Volume>>);

impl std::ops::Deref for Volumes {
    type Target = Shared<Vec<Volume>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl std::ops::DerefMut for Volumes {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<'a> IntoIterator for &'a Volumes {
    type Item = &'a Volume;
    type IntoIter = std::slice::Iter<'a, Volume>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'de> Deserialize<'de> for Volumes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut volumes = Vec::<Volume>::deserialize(deserializer)?;
        volumes.retain_mut(|volume| {
            let name = std::mem::take(&mut volume.name);
            let kept = *volume != Volume::default();
            volume.name = name;
            kept
        });
        Ok(Self(volumes.into()))
    }
}

impl Pod {
    /// What a pod on a node asks for. That of one without a node is told from all others: by it the pod itself is found.
    pub fn asks(spec: PodSpec, node_name: &str) -> Shared<PodSpec> {
        match node_name.is_empty() {
            true => Shared::alone(spec),
            false => Shared::new(spec),
        }
    }
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let WrittenPod {
            metadata,
            mut spec,
            status,
        } = Deserialize::deserialize(deserializer)?;
        let node_name = spec.node_name.take().unwrap_or_default();
        Ok(Self {
            metadata: Meta {
                uid: String::new(),
                creation_timestamp: Time::default(),
                ..metadata
            },
            spec: Self::asks(spec, &node_name),
            node_name: node_name.into(),
            status,
        })
    }
}

impl Serialize for Pod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = WrittenPod {
            metadata: self.metadata.clone(),
            spec: (*self.spec).clone(),
            status: self.status.clone(),
        };
        written.spec.node_name = self.node().map(str::to_owned);
        Serialize::serialize(&written, serializer)
    }
}

impl Container {
    /// Whether an init container runs as long as the pod does (a sidecar).
    pub fn restartable(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

impl Node {
    /// The Ready condition is True.
    pub fn ready(&self) -> bool {
        self.status
            .conditions
            .iter()
            .any(|condition| condition.kind == "Ready" && condition.status == "True")
    }
}
