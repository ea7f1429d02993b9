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
