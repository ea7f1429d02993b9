//! Dynamic resources (`pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go`): not modelled, so a pod
//! that uses them cannot be decided.

use super::{Decision, Incoming};
use crate::cluster::objects::PodSpec;

/// Prefix of an extended resource that names a device class (`k8s.io/api/resource/v1/types.go`,
/// ResourceDeviceClassPrefix).
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// Whether a resource comes from a device class rather than from what a node reports.
pub(super) fn from_device_class(resource: &str) -> bool {
    resource.starts_with(DEVICE_CLASS)
}

fn requests_device_class(spec: &PodSpec) -> bool {
    let containers = spec.containers.iter().chain(&spec.init_containers);
    containers
        .flat_map(|container| container.resources.requests.keys().chain(container.resources.limits.keys()))
        .any(|name| from_device_class(name))
}

/// Unknown for pods with resource claims.
pub(super) fn filter(incoming: &Incoming<'_>) -> Decision {
    let what = match incoming.spec.resource_claims.first() {
        Some(claim) => format!("resource claim {}", claim.name),
        None if requests_device_class(incoming.spec) => "its device class".to_owned(),
        None => return Decision::Fits,
    };
    Decision::Unknown(format!("where {what} can be allocated: dynamic resources are not modelled"))
}
