//! What keeps the default scheduler from looking at a pod: its gates
//! (`pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go`), and another scheduler's name.

use crate::cluster::objects::PodSpec;

/// Whether gates keep the scheduler from looking at the pod.
pub fn gated(spec: &PodSpec) -> bool {
    !spec.scheduling_gates.is_empty()
}

/// The scheduler that decides, where it is another than the default one.
pub fn other_scheduler(spec: &PodSpec) -> Option<&str> {
    spec.scheduler_name
        .as_deref()
        .filter(|name| !name.is_empty() && *name != "default-scheduler")
}
