//! StatefulSets: the same name again, only once the old object is gone.
//!
//! Follows `k8s.io/kubernetes/pkg/controller/statefulset/stateful_set_control.go` (`processReplica`, `updateStatefulSet`).

use crate::cluster::objects::StatefulSet;

/// Wanted pods.
pub fn wanted(set: &StatefulSet) -> i64 {
    set.spec.replicas.unwrap_or(1)
}

/// Whether pods are created one after the other: with `OrderedReady`, a lower ordinal that is terminating or not
/// Ready holds back all higher ones.
pub fn ordered(set: &StatefulSet) -> bool {
    set.spec.pod_management_policy != "Parallel"
}

/// The ordinal in a pod's name.
pub fn ordinal(pod: &str) -> Option<i64> {
    pod.rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse().ok())
}
