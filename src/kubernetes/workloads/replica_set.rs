//! ReplicaSets and ReplicationControllers: a new pod as soon as an old one is terminating, if fewer than wanted are active.
//!
//! Follows `k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go` (`syncReplicaSet`, `manageReplicas`) and
//! `pkg/controller/controller_utils.go` (`IsPodActive`). A Deployment's strategy, `Recreate` too, orders rollouts
//! only: a pod lost outside of one is replaced by its ReplicaSet.

use crate::cluster::objects::{Deployment, Pod, ReplicaSet};
use crate::cluster::snapshot::Snapshot;

/// Wanted pods.
pub fn wanted(set: &ReplicaSet) -> i64 {
    set.spec.replicas.unwrap_or(1)
}

/// Whether a pod counts towards the wanted number: neither finished nor terminating.
pub fn active(pod: &Pod) -> bool {
    !pod.finished() && !pod.metadata.terminating()
}

/// The Deployment above a ReplicaSet, where it was read.
pub fn deployment<'a>(snapshot: &'a Snapshot, set: &ReplicaSet) -> Option<&'a Deployment> {
    let parent = set
        .metadata
        .controller()
        .filter(|parent| parent.kind == "Deployment" && parent.group() == "apps")?;
    snapshot.deployments.find(&set.metadata.namespace, &parent.name)
}
