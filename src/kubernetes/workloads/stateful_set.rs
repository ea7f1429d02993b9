//! StatefulSets: the same name again, only once the old object is gone.
//!
//! Follows `k8s.io/kubernetes/pkg/controller/statefulset/stateful_set_control.go` (`processReplica`, `updateStatefulSet`)
//! and `stateful_set_utils.go` beside it (`podInOrdinalRange`, `newVersionedStatefulSetPod`).

use crate::cluster::objects::{Pod, StatefulSet};

/// The label that tells a pod's revision.
const REVISION: &str = "controller-revision-hash";

/// Wanted pods.
pub fn wanted(set: &StatefulSet) -> i64 {
    set.spec.replicas.unwrap_or(1)
}

/// Whether pods are created one after the other: with `OrderedReady`, a lower ordinal that is missing, terminating or
/// not Ready holds back all higher ones.
pub fn ordered(set: &StatefulSet) -> bool {
    set.spec.pod_management_policy != "Parallel"
}

/// The ordinal in a pod's name.
pub fn ordinal(pod: &str) -> Option<i64> {
    pod.rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse().ok())
}

/// How many ordinals there are below one.
pub fn below(set: &StatefulSet, ordinal: i64) -> i64 {
    ordinal.saturating_sub(set.spec.ordinals.start)
}

/// Whether a pod of this name is wanted: its ordinal is one of those that the set has.
pub fn wants(set: &StatefulSet, pod: &str) -> bool {
    ordinal(pod).is_some_and(|ordinal| (0..wanted(set)).contains(&below(set, ordinal)))
}

/// Whether a rollout has not reached a pod: it is made again by an older template, which nobody reads, and stands in for
/// it.
pub fn by_older_template(set: &StatefulSet, pod: &Pod) -> bool {
    let update = &set.status.update_revision;
    !update.is_empty() && set.status.current_revision != *update && pod.metadata.labels.get(REVISION) != Some(update)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(spec: &str, status: &str) -> StatefulSet {
        serde_saphyr::from_str(&format!("{{spec: {{{spec}}}, status: {{{status}}}}}")).unwrap()
    }

    #[test]
    fn a_set_wants_its_ordinals_only() {
        let two = set("replicas: 2", "");
        assert!(wants(&two, "db-0") && wants(&two, "db-1") && !wants(&two, "db-2") && !wants(&two, "db"));
        let from_five = set("replicas: 2, ordinals: {start: 5}", "");
        assert!(!wants(&from_five, "db-4") && wants(&from_five, "db-6") && !wants(&from_five, "db-7"));
        assert!(!wants(&from_five, "db-9223372036854775807"));
    }

    #[test]
    fn a_pod_that_a_rollout_has_not_reached() {
        let pod = |revision: &str| -> Pod {
            serde_saphyr::from_str(&format!("{{metadata: {{labels: {{controller-revision-hash: {revision}}}}}}}")).unwrap()
        };
        let rolling = set("", "currentRevision: a, updateRevision: b");
        assert!(by_older_template(&rolling, &pod("a")) && !by_older_template(&rolling, &pod("b")));
        assert!(!by_older_template(&set("", "currentRevision: b, updateRevision: b"), &pod("a")));
        assert!(!by_older_template(&set("", ""), &pod("a")));
    }
}
