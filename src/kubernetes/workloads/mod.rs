//! Who recreates a pod: one file per kind of owner.

pub mod job;
pub mod replica_set;
pub mod stateful_set;

use crate::cluster::objects::{DaemonSet, Deployment, Job, OwnerReference, Pod, PodTemplate, ReplicaSet, StatefulSet};
use crate::cluster::snapshot::{NotRead, Object, Snapshot};

/// The controller of a pod, resolved.
#[derive(Clone, Debug)]
pub enum Owner<'a> {
    /// The pod has no controller.
    Bare,
    /// A ReplicaSet or ReplicationController, and the Deployment above it.
    ReplicaSet {
        /// The set.
        set: &'a ReplicaSet,
        /// Its kind: `ReplicaSet` or `ReplicationController`.
        kind: &'static str,
        /// The Deployment that owns the set.
        deployment: Option<&'a Deployment>,
    },
    /// A StatefulSet.
    StatefulSet(&'a StatefulSet),
    /// A Job.
    Job(&'a Job),
    /// A DaemonSet.
    DaemonSet(&'a DaemonSet),
    /// A kind that Kubernetes itself does not have.
    Custom(&'a OwnerReference),
    /// The controller no longer exists.
    Gone(&'a OwnerReference),
    /// The controller's kind was not read.
    Unknown(&'a OwnerReference, NotRead),
}

/// When the replacement of an evicted pod is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// As soon as the old pod is terminating.
    AtOnce,
    /// Once the old pod's object is gone.
    AfterGone,
}

/// The name of a workload: the topmost controller that a person would name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadKey {
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for WorkloadKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}/{}", self.kind.to_lowercase(), self.namespace, self.name)
    }
}

/// Resolves the controller of a pod.
pub fn owner<'a>(snapshot: &'a Snapshot, pod: &'a Pod) -> Owner<'a> {
    let Some(reference) = pod.metadata.controller() else {
        return Owner::Bare;
    };
    let namespace = pod.metadata.namespace.as_str();
    match (reference.group(), reference.kind.as_str()) {
        ("apps", "ReplicaSet") => resolved(snapshot.replica_sets.get(namespace, &reference.name), reference, |set| {
            Owner::ReplicaSet {
                set,
                kind: "ReplicaSet",
                deployment: replica_set::deployment(snapshot, set),
            }
        }),
        ("", "ReplicationController") => resolved(snapshot.replication_controllers.get(namespace, &reference.name), reference, |set| {
            Owner::ReplicaSet {
                set,
                kind: "ReplicationController",
                deployment: None,
            }
        }),
        ("apps", "StatefulSet") => resolved(
            snapshot.stateful_sets.get(namespace, &reference.name),
            reference,
            Owner::StatefulSet,
        ),
        ("batch", "Job") => resolved(snapshot.jobs.get(namespace, &reference.name), reference, Owner::Job),
        ("apps", "DaemonSet") => resolved(snapshot.daemon_sets.get(namespace, &reference.name), reference, Owner::DaemonSet),
        _ => Owner::Custom(reference),
    }
}

/// An owner that was found by name and is the one meant: an object of the same name and another UID is another one.
fn resolved<'a, T: Object>(
    found: Result<Option<&'a T>, NotRead>,
    reference: &'a OwnerReference,
    owner: impl FnOnce(&'a T) -> Owner<'a>,
) -> Owner<'a> {
    match found {
        Err(missing) => Owner::Unknown(reference, missing),
        Ok(Some(object)) if object.meta().uid.is_empty() || reference.uid.is_empty() || object.meta().uid == reference.uid => owner(object),
        Ok(_) => Owner::Gone(reference),
    }
}

impl<'a> Owner<'a> {
    /// The workload that a person would name; `None` for a bare pod.
    pub fn key(&self, namespace: &str) -> Option<WorkloadKey> {
        let key = |kind: &str, name: &str| {
            Some(WorkloadKey {
                kind: kind.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        };
        match self {
            Self::Bare => None,
            Self::ReplicaSet {
                deployment: Some(deployment),
                ..
            } => key("Deployment", &deployment.metadata.name),
            Self::ReplicaSet { set, kind, .. } => key(kind, &set.metadata.name),
            Self::StatefulSet(set) => key("StatefulSet", &set.metadata.name),
            Self::Job(job) => key("Job", &job.metadata.name),
            Self::DaemonSet(set) => key("DaemonSet", &set.metadata.name),
            Self::Custom(reference) | Self::Gone(reference) | Self::Unknown(reference, _) => key(&reference.kind, &reference.name),
        }
    }

    /// Whether it is being deleted: then it makes no pods any more (`syncReplicaSet`, `updateStatefulSet`, `manageJob`).
    pub fn terminating(&self) -> bool {
        match self {
            Self::ReplicaSet { set, .. } => set.metadata.terminating(),
            Self::StatefulSet(set) => set.metadata.terminating(),
            Self::Job(job) => job.metadata.terminating(),
            Self::DaemonSet(set) => set.metadata.terminating(),
            _ => false,
        }
    }

    /// The template of its pods.
    pub fn template(&self) -> Option<&'a PodTemplate> {
        match self {
            Self::ReplicaSet { set, .. } => Some(&set.spec.template),
            Self::StatefulSet(set) => Some(&set.spec.template),
            Self::Job(job) => Some(&job.spec.template),
            Self::DaemonSet(set) => Some(&set.spec.template),
            _ => None,
        }
    }

    /// How many pods the workload as a whole wants: a Deployment's number, where it has one.
    pub fn workload_wanted(&self) -> Option<i64> {
        match self {
            Self::ReplicaSet {
                deployment: Some(deployment),
                ..
            } => Some(deployment.spec.replicas.unwrap_or(1)),
            _ => self.wanted(),
        }
    }

    /// How many pods it wants at a time.
    pub fn wanted(&self) -> Option<i64> {
        match self {
            Self::ReplicaSet { set, .. } => Some(replica_set::wanted(set)),
            Self::StatefulSet(set) => Some(stateful_set::wanted(set)),
            Self::Job(job) => job::wanted(job),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::testing::snapshot;

    const OWNERS: [(&str, &str, &str); 5] = [
        ("apps/v1", "ReplicaSet", "spec: {replicas: 3}"),
        ("v1", "ReplicationController", "spec: {replicas: 3}"),
        ("apps/v1", "StatefulSet", "spec: {replicas: 3}"),
        ("batch/v1", "Job", "spec: {parallelism: 3}"),
        ("apps/v1", "DaemonSet", "spec: {}"),
    ];

    fn pod(version: &str, kind: &str, uid: &str) -> Pod {
        let owner = format!("{{apiVersion: {version}, kind: {kind}, name: o, uid: '{uid}', controller: true}}");
        serde_saphyr::from_str(&format!("{{metadata: {{name: p, namespace: n, ownerReferences: [{owner}]}}}}")).unwrap()
    }

    fn cluster(version: &str, kind: &str, metadata: &str, spec: &str) -> Snapshot {
        snapshot(&format!(
            "{{apiVersion: {version}, kind: {kind}, metadata: {{name: o, namespace: n, uid: u{metadata}}}, {spec}}}"
        ))
    }

    #[test]
    fn every_kind_of_owner() {
        for (version, kind, spec) in OWNERS {
            let (there, pod) = (cluster(version, kind, "", spec), pod(version, kind, "u"));
            let owner = owner(&there, &pod);
            assert_eq!(owner.key("n").unwrap().kind, kind);
            assert!(owner.template().is_some() && !owner.terminating(), "{kind}");
            let wanted = (kind != "DaemonSet").then_some(3);
            assert_eq!((owner.wanted(), owner.workload_wanted()), (wanted, wanted), "{kind}");
            let ending = cluster(version, kind, ", deletionTimestamp: '2026-01-01T00:00:00Z'", spec);
            assert!(super::owner(&ending, &pod).terminating(), "{kind}");
        }
    }

    #[test]
    fn another_object_of_the_same_name_is_not_the_owner() {
        let there = cluster("apps/v1", "StatefulSet", "", "spec: {}");
        for (uid, gone) in [("u", false), ("", false), ("other", true)] {
            let pod = pod("apps/v1", "StatefulSet", uid);
            assert_eq!(matches!(owner(&there, &pod), Owner::Gone(_)), gone, "{uid}");
        }
        let unnamed = StatefulSet::default();
        let pod = pod("apps/v1", "StatefulSet", "other");
        let found = resolved(Ok(Some(&unnamed)), pod.metadata.controller().unwrap(), Owner::StatefulSet);
        assert!(matches!(found, Owner::StatefulSet(_)));
    }

    #[test]
    fn a_deployment_wants_what_it_says_during_a_rollout_too() {
        let set =
            "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: o, namespace: n, ownerReferences: [OWNER]}, spec: {replicas: 1}}";
        let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: n}, spec: {replicas: 4}}";
        for (owner, wanted) in [
            ("{apiVersion: apps/v1, kind: Deployment, name: d, controller: true}", 4),
            ("{apiVersion: example.com/v1, kind: Deployment, name: d, controller: true}", 1),
            ("{apiVersion: apps/v1, kind: Rollout, name: d, controller: true}", 1),
        ] {
            let there = snapshot(&format!("{}\n---\n{deployment}", set.replace("OWNER", owner)));
            let pod = pod("apps/v1", "ReplicaSet", "");
            let found = super::owner(&there, &pod);
            assert_eq!((found.wanted(), found.workload_wanted()), (Some(1), Some(wanted)), "{owner}");
        }
    }

    #[test]
    fn active_pods() {
        for (metadata, phase, active) in [
            ("", "Running", true),
            ("", "Pending", true),
            ("", "Failed", false),
            ("deletionTimestamp: '2026-01-01T00:00:00Z'", "Running", false),
        ] {
            let pod: Pod = serde_saphyr::from_str(&format!("{{metadata: {{{metadata}}}, status: {{phase: {phase}}}}}")).unwrap();
            assert_eq!(replica_set::active(&pod), active, "{metadata} {phase}");
        }
    }

    #[test]
    fn pods_in_parallel_are_in_no_order() {
        for (policy, ordered) in [("OrderedReady", true), ("", true), ("Parallel", false)] {
            let set: StatefulSet = serde_saphyr::from_str(&format!("{{spec: {{podManagementPolicy: '{policy}'}}}}")).unwrap();
            assert_eq!(stateful_set::ordered(&set), ordered, "{policy}");
        }
    }
}
