//! What keeps the default scheduler from looking at a pod: its gates
//! (`pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go`), another scheduler's name, and a group of pods that is
//! placed as a whole or not at all (`pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go`).

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

/// Whether the scheduler places the pod only together with others. A server that does not know such groups drops the field.
pub fn grouped(spec: &PodSpec) -> bool {
    spec.scheduling_group.is_some() || spec.workload_ref.is_some()
}
