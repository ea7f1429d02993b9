//! The runtime class that a pod names adds overhead, a node selector and tolerations
//! (`plugin/pkg/admission/runtimeclass/admission.go`).

use super::{Obstacle, classes_told};
use crate::cluster::objects::{PodSpec, RuntimeClass};
use crate::cluster::snapshot::Snapshot;

fn name(spec: &PodSpec) -> Option<&str> {
    spec.runtime_class_name.as_deref().filter(|name| !name.is_empty())
}

fn class<'a>(snapshot: &'a Snapshot, spec: &PodSpec) -> Option<&'a RuntimeClass> {
    snapshot.runtime_classes.find("", name(spec)?)
}

/// Merges the class into the pod.
pub(super) fn merge(snapshot: &Snapshot, spec: &mut PodSpec) {
    let Some(class) = class(snapshot, spec) else { return };
    spec.overhead = class.overhead.pod_fixed.clone().into();
    for (key, value) in &class.scheduling.node_selector {
        spec.node_selector.entry(key.clone()).or_insert_with(|| value.clone());
    }
    for toleration in &class.scheduling.tolerations {
        if !spec.tolerations.contains(toleration) {
            spec.tolerations.push(toleration.clone());
        }
    }
}

/// What stands against the pod.
pub(super) fn obstacles(snapshot: &Snapshot, spec: &PodSpec) -> Vec<Obstacle> {
    let Some(name) = name(spec) else { return Vec::new() };
    let found = match snapshot.runtime_classes.get("", name) {
        Ok(found) => found,
        Err(missing) => {
            return vec![Obstacle::Unread {
                what: format!("whether the runtime class {name} still exists, and what it adds"),
                missing,
            }];
        }
    };
    match found {
        Some(class) => class
            .scheduling
            .node_selector
            .iter()
            .filter_map(|(key, value)| {
                let own = spec.node_selector.get(key).filter(|own| *own != value)?;
                Some(Obstacle::Refused(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
                )))
            })
            .collect(),
        None if !classes_told(snapshot) => Vec::new(),
        None => vec![Obstacle::Refused(format!("pod rejected: RuntimeClass \"{name}\" not found"))],
    }
}
