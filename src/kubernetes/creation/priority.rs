//! The priority class that a pod names gives its priority (`plugin/pkg/admission/priority/admission.go`).

use super::{Obstacle, classes_told};
use crate::cluster::objects::PodSpec;
use crate::cluster::snapshot::Snapshot;

/// Classes that the API server makes itself (`pkg/apis/scheduling/v1/helpers.go`).
const SYSTEM: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

fn class(spec: &PodSpec) -> Option<&str> {
    spec.priority_class_name.as_deref().filter(|name| !name.is_empty())
}

/// Fills in the priority, and whether the pod may preempt others.
pub(super) fn resolve(snapshot: &Snapshot, spec: &mut PodSpec) {
    if let Some(class) = class(spec).and_then(|name| snapshot.priority_classes.find("", name)) {
        spec.priority = Some(class.value);
        spec.preemption_policy = class.preemption_policy.clone();
    }
}

/// What stands against the pod.
pub(super) fn obstacle(snapshot: &Snapshot, spec: &PodSpec) -> Option<Obstacle> {
    let name = class(spec).filter(|name| !SYSTEM.contains(name))?;
    match snapshot.priority_classes.get("", name) {
        Ok(Some(_)) => None,
        Ok(None) if !classes_told(snapshot) => None,
        Ok(None) => Some(Obstacle::Refused(format!("no PriorityClass with name {name} was found"))),
        Err(missing) => Some(Obstacle::Unread {
            what: format!("whether the priority class {name} still exists"),
            missing,
        }),
    }
}
