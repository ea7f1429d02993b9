//! How the disruption controller computes a budget's status.
//!
//! Follows `k8s.io/kubernetes/pkg/controller/disruption/disruption.go` (`getExpectedPodCount`, `countHealthyPods`,
//! `updatePdbStatus`).

use std::collections::BTreeMap;

use crate::cluster::objects::{IntOrPercent, OwnerReference, PodDisruptionBudget};
use crate::cluster::snapshot::{NotRead, Snapshot};

/// A pod that a budget counts.
#[derive(Clone, Debug)]
pub struct Counted<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name, for messages.
    pub name: &'a str,
    /// Its controller.
    pub controller: Option<&'a OwnerReference>,
    /// Ready, and neither terminating nor about to be deleted.
    pub healthy: bool,
}

/// What the controller writes into the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Numbers.
    Computed {
        /// Ready pods.
        healthy: i64,
        /// Ready pods wanted.
        desired: i64,
        /// Pods expected.
        expected: i64,
    },
    /// `SyncFailed`: nothing is allowed, and the old numbers stay. The text says which pod is at fault.
    Failed(String),
}

impl Status {
    /// Evictions allowed.
    pub fn allowed(&self) -> i64 {
        match self {
            Self::Computed {
                healthy,
                desired,
                expected,
            } if *expected > 0 => (healthy - desired).max(0),
            _ => 0,
        }
    }
}

/// The scale that a pod's controller has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scale {
    /// Of this controller, this many pods.
    Of(String, i64),
    /// None, and why.
    None(String),
}

/// Computes the status of a budget over the given pods.
///
/// # Errors
/// A controller whose scale matters was not read.
pub fn status(snapshot: &Snapshot, budget: &PodDisruptionBudget, pods: &[Counted<'_>]) -> Result<Status, NotRead> {
    let healthy = count(pods.iter().filter(|pod| pod.healthy).count());
    let spec = &budget.spec;
    let (share, at_least) = match (&spec.max_unavailable, &spec.min_available) {
        (Some(share), _) => (share, false),
        (None, Some(IntOrPercent::Int(number))) => {
            return Ok(Status::Computed {
                healthy,
                desired: *number,
                expected: count(pods.len()),
            });
        }
        (None, Some(share)) => (share, true),
        (None, None) => {
            return Ok(Status::Computed {
                healthy,
                desired: 0,
                expected: 0,
            });
        }
    };
    let expected = match expected(snapshot, pods)? {
        Ok(expected) => expected,
        Err(why) => return Ok(Status::Failed(why)),
    };
    let Some(number) = scaled(share, expected) else {
        return Ok(Status::Failed(format!("{share} is neither a number nor a percentage")));
    };
    let desired = if at_least { number } else { (expected - number).max(0) };
    Ok(Status::Computed {
        healthy,
        desired,
        expected,
    })
}

/// The sum of the scales of the pods' controllers; pods without a controller add nothing.
fn expected(snapshot: &Snapshot, pods: &[Counted<'_>]) -> Result<Result<i64, String>, NotRead> {
    let mut scales = BTreeMap::new();
    for pod in pods {
        let Some(controller) = pod.controller else { continue };
        match scale(snapshot, pod.namespace, controller)? {
            Scale::Of(name, scale) => {
                scales.insert(name, scale);
            }
            Scale::None(why) => return Ok(Err(format!("found no controllers for pod {}: {why}", pod.name))),
        }
    }
    Ok(Ok(scales.values().sum()))
}

/// The scale of a controller (`finders`).
fn scale(snapshot: &Snapshot, namespace: &str, owner: &OwnerReference) -> Result<Scale, NotRead> {
    let same = |uid: &str| uid.is_empty() || owner.uid.is_empty() || uid == owner.uid;
    let gone = || Scale::None(format!("{} {} is gone", owner.kind, owner.name));
    let wanted = |kind: &str, replicas: Option<i64>| Scale::Of(format!("{kind}/{}", owner.name), replicas.unwrap_or(1));
    match (owner.group(), owner.kind.as_str()) {
        ("apps" | "extensions", "ReplicaSet") => {
            let Some(set) = snapshot
                .replica_sets
                .get(namespace, &owner.name)?
                .filter(|set| same(&set.metadata.uid))
            else {
                return Ok(gone());
            };
            match set.metadata.controller().filter(|parent| parent.kind == "Deployment") {
                None => Ok(wanted("ReplicaSet", set.spec.replicas)),
                Some(parent) => Ok(snapshot.deployments.get(namespace, &parent.name)?.map_or_else(gone, |deployment| {
                    Scale::Of(format!("Deployment/{}", parent.name), deployment.spec.replicas.unwrap_or(1))
                })),
            }
        }
        ("", "ReplicationController") => {
            let found = snapshot
                .replication_controllers
                .get(namespace, &owner.name)?
                .filter(|found| same(&found.metadata.uid));
            Ok(found.map_or_else(gone, |found| wanted("ReplicationController", found.spec.replicas)))
        }
        ("apps", "StatefulSet") => {
            let found = snapshot
                .stateful_sets
                .get(namespace, &owner.name)?
                .filter(|found| same(&found.metadata.uid));
            Ok(found.map_or_else(gone, |found| wanted("StatefulSet", found.spec.replicas)))
        }
        ("batch", "Job") | ("apps", "DaemonSet") => Ok(Scale::None(format!("{} {} has no scale subresource", owner.kind, owner.name))),
        (group, kind) => {
            let definitions = snapshot.custom_resources.all()?;
            let version = owner.api_version.rsplit('/').next().unwrap_or_default();
            let scales = definitions
                .iter()
                .filter(|definition| definition.spec.group == group && definition.spec.names.kind == kind)
                .flat_map(|definition| &definition.spec.versions)
                .any(|candidate| candidate.name == version && candidate.subresources.scale.is_some());
            if scales {
                // The number itself stands in the custom resource, which is not read.
                Err(NotRead {
                    kind: crate::cluster::kinds::Kind::CustomResourceDefinition,
                    scope: crate::cluster::snapshot::Scope::Namespace(namespace.to_owned()),
                    reason: crate::cluster::snapshot::Reason::Failed(format!("the scale of {kind} {} is not read", owner.name)),
                })
            } else {
                Ok(Scale::None(format!("{kind} {} has no scale subresource", owner.name)))
            }
        }
    }
}

/// A number, or a percentage of a total rounded up (`k8s.io/apimachinery/pkg/util/intstr`).
pub fn scaled(share: &IntOrPercent, total: i64) -> Option<i64> {
    match share {
        IntOrPercent::Int(number) => Some(*number),
        IntOrPercent::Text(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let part = i128::from(percent) * i128::from(total);
            i64::try_from((part + 99).div_euclid(100)).ok()
        }
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(text: &str) -> IntOrPercent {
        IntOrPercent::Text(text.to_owned())
    }

    #[test]
    fn percentages_round_up() {
        assert_eq!(scaled(&percent("50%"), 3), Some(2));
        assert_eq!(scaled(&percent("34%"), 3), Some(2));
        assert_eq!(scaled(&percent("0%"), 3), Some(0));
        assert_eq!(scaled(&percent("100%"), 3), Some(3));
        assert_eq!(scaled(&percent("half"), 3), None);
        assert_eq!(scaled(&IntOrPercent::Int(2), 3), Some(2));
    }

    fn bare(healthy: bool) -> Counted<'static> {
        Counted {
            namespace: "web",
            name: "web-1",
            controller: None,
            healthy,
        }
    }

    #[test]
    fn a_percentage_over_bare_pods_never_allows_anything() {
        let mut budget = PodDisruptionBudget::default();
        budget.spec.min_available = Some(percent("10%"));
        let status = status(&Snapshot::default(), &budget, &[bare(true), bare(true)]).unwrap();
        assert_eq!(
            status,
            Status::Computed {
                healthy: 2,
                desired: 0,
                expected: 0
            }
        );
        assert_eq!(status.allowed(), 0);
    }

    #[test]
    fn an_integer_counts_bare_pods() {
        let mut budget = PodDisruptionBudget::default();
        budget.spec.min_available = Some(IntOrPercent::Int(1));
        let status = status(&Snapshot::default(), &budget, &[bare(true), bare(true), bare(false)]).unwrap();
        assert_eq!(status.allowed(), 1);
    }

    #[test]
    fn without_either_number_nothing_is_allowed() {
        assert_eq!(
            status(&Snapshot::default(), &PodDisruptionBudget::default(), &[bare(true)])
                .unwrap()
                .allowed(),
            0
        );
    }

    /// The status of a budget of half of the pods, over one pod of a ReplicaSet of three.
    fn half(set_uid: &str, owner_uid: &str, parent: &str) -> Status {
        let cluster = crate::kubernetes::testing::snapshot(&format!(
            "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web-1, namespace: web, uid: '{set_uid}', ownerReferences: [{parent}]}}, spec: {{replicas: 3}}}}\n\
             ---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: web}}, spec: {{replicas: 5}}}}"
        ));
        let owner = OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: "web-1".to_owned(),
            uid: owner_uid.to_owned(),
            controller: true,
        };
        let mut budget = PodDisruptionBudget::default();
        budget.spec.min_available = Some(percent("50%"));
        let pod = Counted {
            controller: Some(&owner),
            ..bare(true)
        };
        status(&cluster, &budget, &[pod]).unwrap()
    }

    #[test]
    fn the_scale_is_that_of_the_controller_meant() {
        let expects = |status: Status| match status {
            Status::Computed { expected, .. } => Some(expected),
            Status::Failed(_) => None,
        };
        // Files written by hand may leave either uid out; another uid is another object.
        assert_eq!(expects(half("", "", "")), Some(3));
        assert_eq!(expects(half("a", "", "")), Some(3));
        assert_eq!(expects(half("", "a", "")), Some(3));
        assert_eq!(expects(half("a", "a", "")), Some(3));
        assert_eq!(expects(half("a", "b", "")), None);
        // A Deployment above it has the number; an owner of another kind has not.
        assert_eq!(
            expects(half("", "", "{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}")),
            Some(5)
        );
        assert_eq!(
            expects(half(
                "",
                "",
                "{apiVersion: example.com/v1, kind: Rollout, name: web, controller: true}"
            )),
            Some(3)
        );
    }

    /// Whether the scale of a pod's custom owner is known to be missing (`Some(false)`), or was not read (`None`).
    fn custom(definition: &str) -> Option<bool> {
        let cluster = crate::kubernetes::testing::snapshot(&format!(
            "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: rollouts.example.com}}, spec: {definition}}}"
        ));
        let owner = OwnerReference {
            api_version: "example.com/v1".to_owned(),
            kind: "Rollout".to_owned(),
            name: "web".to_owned(),
            controller: true,
            ..OwnerReference::default()
        };
        let mut budget = PodDisruptionBudget::default();
        budget.spec.max_unavailable = Some(IntOrPercent::Int(1));
        let pod = Counted {
            controller: Some(&owner),
            ..bare(true)
        };
        status(&cluster, &budget, &[pod])
            .ok()
            .map(|status| matches!(status, Status::Computed { .. }))
    }

    #[test]
    fn a_custom_owner_has_a_scale_if_its_own_version_has_the_subresource() {
        let definition = |group: &str, kind: &str, version: &str, subresources: &str| {
            format!("{{group: {group}, names: {{kind: {kind}}}, versions: [{{name: {version}, subresources: {subresources}}}]}}")
        };
        assert_eq!(custom(&definition("example.com", "Rollout", "v1", "{scale: {}}")), None);
        assert_eq!(custom(&definition("example.com", "Rollout", "v1", "{}")), Some(false));
        assert_eq!(custom(&definition("example.com", "Rollout", "v2", "{scale: {}}")), Some(false));
        assert_eq!(custom(&definition("example.com", "Canary", "v1", "{scale: {}}")), Some(false));
        assert_eq!(custom(&definition("example.org", "Rollout", "v1", "{scale: {}}")), Some(false));
    }
}
