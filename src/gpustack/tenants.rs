//! Pods that GPUStack's own kinds own, and pods that Kueue admits.

use crate::cluster::objects::{OwnerReference, Pod, PodSpec, StringMap, Toleration};
use crate::cluster::shared::Shared;
use crate::cluster::snapshot::{NotRead, Snapshot};

/// The finalizer that Kueue sets on the pods that it admits.
pub const KUEUE_FINALIZER: &str = "kueue.x-k8s.io/managed";
/// The label by which a pod asks to be admitted.
pub const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";
/// The label that Kueue sets on the pods that it admits.
const MANAGED: &str = "kueue.x-k8s.io/managed";

/// A kind of GPUStack that owns pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TenantOwner {
    /// A development environment: one pod.
    Instance,
    /// A served model: one pod a replica, or several.
    ModelDeployment,
    /// Warms a node's model store: one pod a node.
    ModelPrefetch,
    /// A cache's clean-up pods; its other pods belong to a Deployment and DaemonSets.
    KvCacheBackend,
}

/// Who recreates a tenant's pod, when and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recreation {
    /// The worker's leader makes a pod of the same name once the old one is gone.
    SameName,
    /// The worker's leader makes a pod, admitted afresh, once none holds its ordinal.
    SameOrdinal,
    /// The worker's leader makes a pod on the same node, cordoned or not, while the node's store lacks the model.
    SameNode,
    /// Not known: nothing is counted on.
    NotKnown,
}

impl TenantOwner {
    /// The kind, as the owner reference names it.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Instance => "Instance",
            Self::ModelDeployment => "ModelDeployment",
            Self::ModelPrefetch => "ModelPrefetch",
            Self::KvCacheBackend => "KVCacheBackend",
        }
    }

    fn of(owner: &OwnerReference) -> Option<Self> {
        let all = [Self::Instance, Self::ModelDeployment, Self::ModelPrefetch, Self::KvCacheBackend];
        all.into_iter()
            .find(|candidate| owner.group() == "worker.gpustack.ai" && candidate.kind() == owner.kind)
    }
}

/// Whether the worker deletes the Kueue Workload of pods that are terminating, as newer releases do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sweep {
    /// It does.
    Present,
    /// It does not: somebody must delete the Workload.
    Absent,
    /// The pod does not tell.
    Unsure,
}

/// Who must be alive for a terminating pod to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// Nobody: no finalizer of Kueue's is on it.
    Free,
    /// Kueue's leader, with its webhook for pod updates served.
    KueueLeader,
    /// The worker's leader as well, if it sweeps.
    WorkerAndKueue(Sweep),
}

/// A pod that one of GPUStack's kinds owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant<'a> {
    /// Kind of the owner.
    pub owner: TenantOwner,
    /// Name of the owner.
    pub name: &'a str,
    /// Who recreates it, when and where.
    pub recreation: Recreation,
    /// Whether its replacement waits for Kueue's admission.
    pub gated: bool,
    /// Who must be alive for it to go.
    pub release: Release,
    /// Finalizers on it that are not Kueue's.
    pub other_finalizers: Vec<&'a str>,
}

/// What the pod is among GPUStack's tenants, if anything. Pods of a Deployment or DaemonSet that one of the kinds made
/// (a router, a cache's leader and members) are ordinary ones.
pub fn tenant(pod: &Pod) -> Option<Tenant<'_>> {
    let found = pod
        .metadata
        .owner_references
        .iter()
        .find_map(|reference| Some((reference, TenantOwner::of(reference)?)));
    let (reference, owner) = match pod.metadata.controller() {
        Some(controller) => (controller, TenantOwner::of(controller)?),
        // A cache's clean-up pods name their owner, but no controller.
        None => found?,
    };
    let recreation = match owner {
        _ if !reference.controller => Recreation::NotKnown,
        TenantOwner::Instance => Recreation::SameName,
        TenantOwner::ModelDeployment => Recreation::SameOrdinal,
        TenantOwner::ModelPrefetch => Recreation::SameNode,
        TenantOwner::KvCacheBackend => Recreation::NotKnown,
    };
    let release = match owner {
        _ if !held_by_kueue(pod) => Release::Free,
        // A serving group never finishes, so only the end of its Workload lets its pods go.
        TenantOwner::ModelDeployment => Release::WorkerAndKueue(sweep(pod)),
        _ => Release::KueueLeader,
    };
    let other_finalizers = pod
        .metadata
        .finalizers
        .iter()
        .map(String::as_str)
        .filter(|finalizer| *finalizer != KUEUE_FINALIZER)
        .collect();
    Some(Tenant {
        owner,
        name: &reference.name,
        recreation,
        gated: admitted_by_kueue(pod),
        release,
        other_finalizers,
    })
}

/// Whether Kueue's finalizer is on the pod.
pub fn held_by_kueue(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().any(|finalizer| finalizer == KUEUE_FINALIZER)
}

/// Whether Kueue decides when the pod may be scheduled.
pub fn admitted_by_kueue(pod: &Pod) -> bool {
    let labels = &pod.metadata.labels;
    labels.get(QUEUE_NAME).is_some_and(|queue| !queue.is_empty()) || labels.get(MANAGED).is_some_and(|value| value == "true")
}

/// What a ModelDeployment's pod tells of its worker. Without an ordinal, one Kueue group spans the deployment, and such
/// workers do not sweep. A member index on a pod that is a replica by itself came with the sweep; the members of a
/// larger replica always had one.
fn sweep(pod: &Pod) -> Sweep {
    let has = |label: &str| pod.metadata.labels.contains_key(label);
    if !has("modeldeployment.gpustack.ai/pod-ordinal") {
        Sweep::Absent
    } else if has("modeldeployment.gpustack.ai/member-index") && replica(&pod.metadata.name).is_none() {
        Sweep::Present
    } else {
        Sweep::Unsure
    }
}

/// The part of a member's name that its whole replica shares: of `llama-worker-r0-m1`, `llama-worker-r0`. A replica of
/// one pod has a generated name.
fn replica(name: &str) -> Option<&str> {
    let numbered = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (replica, member) = name.rsplit_once("-m")?;
    let (_, index) = replica.rsplit_once("-r")?;
    (numbered(member) && numbered(index)).then_some(replica)
}

/// The other pods of the replica that the pod is a member of: losing one member ends them all.
///
/// # Errors
/// The namespace's pods were not read.
pub fn members<'a>(snapshot: &'a Snapshot, pod: &Pod) -> Result<Vec<&'a Pod>, NotRead> {
    let owned = |pod: &Pod| {
        pod.metadata
            .controller()
            .filter(|owner| TenantOwner::of(owner) == Some(TenantOwner::ModelDeployment))
            .cloned()
    };
    let (Some(owner), Some(prefix)) = (owned(pod), replica(&pod.metadata.name)) else {
        return Ok(Vec::new());
    };
    let pods = snapshot.pods.in_namespace(&pod.metadata.namespace)?;
    let other = |candidate: &&Pod| {
        candidate.metadata.name != pod.metadata.name
            && replica(&candidate.metadata.name) == Some(prefix)
            && owned(candidate).as_ref() == Some(&owner)
    };
    Ok(pods.iter().filter(other).collect())
}

/// What stands in for the template of the pod's replacement, once it is admitted: the old pod's labels and spec, less
/// what was added after its creation.
///
/// Gates and the node's name go, except the node of a ModelPrefetch, which is the template's own. From a pod that Kueue
/// admitted, more goes, as Kueue merged a ResourceFlavor into it, and without the flavor nothing tells the flavor's from
/// the pod's own:
/// - The whole node selector. Topology-aware scheduling writes the very host name into it, and a fresh admission chooses
///   again. An Instance that its user pinned to a node thereby seems freer than it is; as a gated replacement is never
///   sure to land, this can make a certain loss a possible one, and no loss disappear.
/// - Tolerations of every taint, which each generated flavor has. They are replaced by tolerations of the taints that the
///   nodes carry, less those of a node that is cordoned or does not respond: Kueue's topology-aware scheduling leaves
///   such nodes out. Without it a replacement may return to the drained node, which only the flavor could tell.
pub fn template(snapshot: &Snapshot, pod: &Pod) -> (Shared<StringMap>, PodSpec) {
    let mut labels = pod.metadata.labels.clone();
    labels.remove(MANAGED);
    let mut spec = (*pod.spec).clone();
    spec.scheduling_gates.clear();
    if tenant(pod).is_some_and(|tenant| tenant.recreation == Recreation::SameNode) {
        spec.node_name = pod.node().map(str::to_owned);
    }
    if admitted_by_kueue(pod) || held_by_kueue(pod) {
        spec.node_selector.clear();
        let narrowed: Vec<Toleration> = spec
            .tolerations
            .iter()
            .flat_map(|toleration| narrowed(snapshot, toleration))
            .collect();
        spec.tolerations = narrowed.into();
    }
    (labels, spec)
}

/// A toleration of every taint as tolerations of those that there are; any other as it is.
fn narrowed(snapshot: &Snapshot, toleration: &Toleration) -> Vec<Toleration> {
    if !toleration.key.is_empty() {
        return vec![toleration.clone()];
    }
    let mut keys: Vec<&str> = snapshot
        .nodes
        .seen()
        .iter()
        .flat_map(|node| &node.spec.taints)
        .map(|taint| taint.key.as_str())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .filter(|key| {
            !matches!(
                *key,
                "node.kubernetes.io/unschedulable" | "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable"
            )
        })
        .map(|key| Toleration {
            key: key.to_owned(),
            ..toleration.clone()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::kubernetes::testing::{snapshot, without};

    fn owned(name: &str, kind: &str, labels: &str, more: &str) -> String {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: team, labels: {{{labels}}}, finalizers: [kueue.x-k8s.io/managed],
  ownerReferences: [{{apiVersion: worker.gpustack.ai/v1alpha1, kind: {kind}, name: owner, uid: u, controller: true}}]}}, spec: {{nodeName: gpu-1{more}}}}}"
        )
    }

    fn pod(yaml: &str) -> Pod {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn an_instance() {
        let pod = pod(&owned(
            "dev",
            "Instance",
            "kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/managed: 'true'",
            "",
        ));
        let expected = Tenant {
            owner: TenantOwner::Instance,
            name: "owner",
            recreation: Recreation::SameName,
            gated: true,
            release: Release::KueueLeader,
            other_finalizers: Vec::new(),
        };
        assert_eq!(tenant(&pod), Some(expected));
    }

    #[test]
    fn what_a_model_deployments_pod_tells_of_the_sweep() {
        let sweep = |name: &str, labels: &str| tenant(&pod(&owned(name, "ModelDeployment", labels, ""))).map(|tenant| tenant.release);
        let ordinal = "modeldeployment.gpustack.ai/pod-ordinal: '0'";
        let both = "modeldeployment.gpustack.ai/pod-ordinal: '0', modeldeployment.gpustack.ai/member-index: '0'";
        assert_eq!(sweep("llama-x7k2p", ""), Some(Release::WorkerAndKueue(Sweep::Absent)));
        assert_eq!(sweep("llama-x7k2p", ordinal), Some(Release::WorkerAndKueue(Sweep::Unsure)));
        assert_eq!(sweep("llama-x7k2p", both), Some(Release::WorkerAndKueue(Sweep::Present)));
        assert_eq!(sweep("llama-worker-r0-m1", both), Some(Release::WorkerAndKueue(Sweep::Unsure)));
        assert_eq!(sweep("llama-r-m1", both), Some(Release::WorkerAndKueue(Sweep::Present)));
    }

    #[test]
    fn other_kinds() {
        let mut prefetch = pod(&owned("warm", "ModelPrefetch", "", ""));
        prefetch.metadata.finalizers = vec!["example.org/hold".to_owned()].into();
        let told = tenant(&prefetch).unwrap();
        assert_eq!(
            (told.recreation, told.gated, told.release, told.other_finalizers),
            (Recreation::SameNode, false, Release::Free, vec!["example.org/hold"])
        );

        let mut cleanup = pod(&owned("cleanup", "KVCacheBackend", "", ""));
        cleanup.metadata.owner_references[0].controller = false;
        assert_eq!(
            tenant(&cleanup).map(|tenant| (tenant.owner, tenant.recreation)),
            Some((TenantOwner::KvCacheBackend, Recreation::NotKnown))
        );

        let mut router = pod(&owned("router", "ModelDeployment", "", ""));
        router.metadata.owner_references[0].api_version = "apps/v1".to_owned();
        router.metadata.owner_references[0].kind = "ReplicaSet".to_owned();
        assert_eq!(tenant(&router), None);
        let mut foreign = pod(&owned("dev", "Instance", "", ""));
        foreign.metadata.owner_references[0].api_version = "example.org/v1".to_owned();
        assert_eq!(tenant(&foreign), None);
    }

    #[test]
    fn members_of_a_replica() {
        let names = ["llama-worker-r0-m0", "llama-worker-r0-m1", "llama-worker-r1-m0", "llama-x7k2p"];
        let yaml = names.map(|name| owned(name, "ModelDeployment", "", "")).join("\n---\n")
            + "\n---\n"
            + &owned("llama-worker-r0-m2", "Instance", "", "");
        let cluster = snapshot(&yaml);
        let of = |name: &str| {
            let found = members(&cluster, cluster.pods.find("team", name).unwrap()).unwrap();
            found.iter().map(|pod| pod.metadata.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of("llama-worker-r0-m0"), ["llama-worker-r0-m1"]);
        assert!(of("llama-worker-r1-m0").is_empty() && of("llama-x7k2p").is_empty());
        let unread = without(&[Kind::Pod], &yaml);
        assert!(members(&unread, cluster.pods.find("team", "llama-worker-r0-m0").unwrap()).is_err());
    }

    #[test]
    fn the_stand_in_for_a_template() {
        let cluster = snapshot(
            "{apiVersion: v1, kind: Node, metadata: {name: gpu-1}, spec: {taints: [{key: gpu, effect: NoSchedule}, {key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}}",
        );
        let queued = pod(&owned(
            "dev",
            "Instance",
            "app: x, kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/managed: 'true'",
            ", schedulingGates: [{name: kueue.x-k8s.io/admission}], nodeSelector: {kubernetes.io/hostname: gpu-1}, tolerations: [{operator: Exists}, {key: mine, operator: Exists}]",
        ));
        let (labels, spec) = template(&cluster, &queued);
        assert_eq!(
            labels.keys().map(String::as_str).collect::<Vec<_>>(),
            ["app", "kueue.x-k8s.io/queue-name"]
        );
        assert!(spec.node_name.is_none() && spec.scheduling_gates.is_empty() && spec.node_selector.is_empty());
        assert_eq!(
            spec.tolerations
                .iter()
                .map(|toleration| toleration.key.as_str())
                .collect::<Vec<_>>(),
            ["gpu", "mine"]
        );

        let mut prefetch = pod(&owned("warm", "ModelPrefetch", "", ", nodeSelector: {a: b}"));
        prefetch.metadata.finalizers.clear();
        let (_, spec) = template(&cluster, &prefetch);
        assert_eq!((spec.node_name.as_deref(), spec.node_selector.len()), (Some("gpu-1"), 1));
    }
}
