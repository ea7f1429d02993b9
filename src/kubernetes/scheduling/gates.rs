//! Scheduling gates (`pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go`).

use crate::cluster::objects::PodSpec;

/// Whether gates keep the scheduler from looking at the pod.
pub fn gated(spec: &PodSpec) -> bool {
    !spec.scheduling_gates.is_empty()
}
