//! Pods that GPUStack's own kinds own.

use crate::cluster::objects::{Pod, PodSpec, StringMap};
use crate::cluster::snapshot::{NotRead, Snapshot};

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

/// What the pod is among GPUStack's tenants, if anything.
pub fn tenant(pod: &Pod) -> Option<Tenant<'_>> {
    let _ = pod;
    None
}

/// The other pods of the replica that the pod is a member of: losing one member ends them all.
///
/// # Errors
/// The namespace's pods were not read.
pub fn members<'a>(snapshot: &'a Snapshot, pod: &Pod) -> Result<Vec<&'a Pod>, NotRead> {
    let _ = (snapshot, pod);
    Ok(Vec::new())
}

/// What stands in for the template of the pod's replacement, once admitted.
pub fn template(snapshot: &Snapshot, pod: &Pod) -> (StringMap, PodSpec) {
    let _ = snapshot;
    (pod.metadata.labels.clone(), pod.spec.clone())
}
