//! The immutable model that every rule reads, and what was *not* read.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::OnceLock;

use jiff::Timestamp;

use super::kinds::{Kind, Listings};
use super::objects::{
    ApiService, CsiDriver, CsiNode, CustomResourceDefinition, DaemonSet, Deployment, DeviceClass, EndpointSlice, HorizontalPodAutoscaler,
    Job, Lease, LimitRange, Meta, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget, PriorityClass,
    ReplicaSet, ResourceClaim, ResourceQuota, RuntimeClass, Service, ServiceAccount, StatefulSet, StorageClass, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, VolumeAttachment, WebhookConfiguration,
};

/// An object that a listing holds.
pub trait Object {
    /// Its metadata.
    fn meta(&self) -> &Meta;
    /// Its metadata, to complete it.
    fn meta_mut(&mut self) -> &mut Meta;
}

macro_rules! objects {
    ($($object:ty),* $(,)?) => {$(impl Object for $object {
        fn meta(&self) -> &Meta { &self.metadata }
        fn meta_mut(&mut self) -> &mut Meta { &mut self.metadata }
    })*};
}

objects!(
    ApiService,
    CsiDriver,
    CsiNode,
    CustomResourceDefinition,
    DaemonSet,
    Deployment,
    DeviceClass,
    EndpointSlice,
    HorizontalPodAutoscaler,
    Job,
    Lease,
    LimitRange,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ResourceClaim,
    ResourceQuota,
    RuntimeClass,
    Service,
    ServiceAccount,
    StatefulSet,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    StorageClass,
    VolumeAttachment,
    WebhookConfiguration,
);

/// A part of a kind that is read in one list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All objects.
    Cluster,
    /// The objects of one namespace.
    Namespace(String),
    /// The pods bound to one node.
    Node(String),
}

/// Why something was not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The files hold nothing of the kind and do not claim to be complete.
    NotInFiles,
    /// All that the files hold lies in one namespace, and they do not claim to be complete: so `kubectl get` without `-A`
    /// leaves it.
    OneNamespace,
    /// Nothing was thought to depend on it.
    NotAsked,
    /// The server refused the list.
    Forbidden,
    /// The list failed; the message is the server's or the transport's, untrusted text.
    Failed(String),
}

/// Something that was not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotRead {
    /// Kind.
    pub kind: Kind,
    /// Part of the kind.
    pub scope: Scope,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for NotRead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.resource();
        let place = match &self.scope {
            Scope::Cluster => String::new(),
            Scope::Namespace(namespace) => format!(" in namespace {namespace}"),
            Scope::Node(node) => format!(" on node {node}"),
        };
        match &self.reason {
            Reason::NotInFiles => write!(formatter, "the files hold no {kind}{place}"),
            Reason::OneNamespace => write!(formatter, "the files hold {kind} of one namespace alone"),
            Reason::NotAsked => write!(formatter, "{kind}{place} were not read"),
            Reason::Forbidden => write!(formatter, "not allowed to list {kind}{place}"),
            Reason::Failed(message) => write!(formatter, "cannot list {kind}{place}: {message}"),
        }
    }
}

/// What was read of one kind.
///
/// Objects that were not read are never an empty list: a caller says which part it needs, and gets either the
/// objects or what was not read.
#[derive(Clone, Debug)]
pub struct Listing<T> {
    kind: Kind,
    items: Vec<T>,
    coverage: BTreeMap<Scope, Result<(), NotRead>>,
    /// Of pods: the indexes of those that are bound, by node; made when it is first asked for.
    by_node: OnceLock<Vec<u32>>,
    /// Of a kind that lives in no namespace: the indexes by name; made when it is first asked for.
    by_name: OnceLock<HashMap<String, usize>>,
}

impl<T: Object> Listing<T> {
    /// An empty listing, of which no part was read.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            items: Vec::new(),
            coverage: BTreeMap::new(),
            by_node: OnceLock::new(),
            by_name: OnceLock::new(),
        }
    }

    fn forget_indexes(&mut self) {
        self.by_node.take();
        self.by_name.take();
    }

    /// Adds an object.
    pub fn insert(&mut self, object: T) {
        self.forget_indexes();
        self.items.push(object);
    }

    /// Adds what another reading gave.
    pub fn absorb(&mut self, mut other: Self) {
        self.forget_indexes();
        // The larger part stays where it is in memory.
        if self.items.len() < other.items.len() {
            other.items.splice(0..0, std::mem::take(&mut self.items));
            self.items = other.items;
        } else {
            self.items.append(&mut other.items);
        }
        for (scope, outcome) in other.coverage {
            self.cover(scope, outcome);
        }
    }

    /// Takes an object out.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        self.forget_indexes();
        self.items.retain(|item| key(item) != (namespace, name));
    }

    /// Records what came of reading a part. A part read twice keeps the better outcome.
    pub fn cover(&mut self, scope: Scope, outcome: Result<(), NotRead>) {
        match self.coverage.get(&scope) {
            Some(Ok(())) => {}
            _ => {
                self.coverage.insert(scope, outcome);
            }
        }
    }

    /// Puts namespaced objects that name no namespace into `default`, as the API server would.
    pub fn default_namespace(&mut self) {
        if self.kind.info().namespaced {
            for meta in self.items.iter_mut().map(Object::meta_mut).filter(|meta| meta.namespace.is_empty()) {
                "default".clone_into(&mut meta.namespace);
            }
        }
    }

    /// Sorts by namespace and name; of objects given twice the last stays. A namespace on an object that lives in none is
    /// dropped: it would not be found by its name.
    pub fn settle(&mut self) {
        self.forget_indexes();
        if !self.kind.info().namespaced {
            self.items.iter_mut().for_each(|item| item.meta_mut().namespace.clear());
        }
        // As lists of a server are. To sort takes room for half of the objects.
        if self.items.is_sorted_by(|a, b| key(a) < key(b)) {
            return;
        }
        self.items.reverse();
        self.items.sort_by(|a, b| key(a).cmp(&key(b)));
        self.items.dedup_by(|a, b| key(a) == key(b));
    }

    /// What came of reading each part.
    pub fn coverage(&self) -> std::collections::btree_map::Iter<'_, Scope, Result<(), NotRead>> {
        self.coverage.iter()
    }

    /// Whether any part was read or tried.
    pub fn tried(&self) -> bool {
        !self.coverage.is_empty()
    }

    /// What happens to have been read, as evidence; never a basis for saying that something is not there.
    pub fn seen(&self) -> &[T] {
        &self.items
    }

    /// An object by namespace and name among what was read.
    pub fn find(&self, namespace: &str, name: &str) -> Option<&T> {
        self.position(namespace, name).map(|index| &self.items[index])
    }

    /// The index of an object in [`Listing::seen`].
    pub fn position(&self, namespace: &str, name: &str) -> Option<usize> {
        if self.kind.info().namespaced {
            return self.items.binary_search_by(|item| key(item).cmp(&(namespace, name))).ok();
        }
        let by_name = self.by_name.get_or_init(|| {
            let names = self.items.iter().map(|item| item.meta().name.clone());
            names.zip(0..).collect()
        });
        by_name.get(name).copied().filter(|_| namespace.is_empty())
    }

    /// Whether a part was read.
    ///
    /// # Errors
    /// What was not read.
    pub fn covered(&self, scope: &Scope) -> Result<(), NotRead> {
        match (self.coverage.get(&Scope::Cluster), self.coverage.get(scope)) {
            (Some(Ok(())), _) | (_, Some(Ok(()))) => Ok(()),
            (_, Some(Err(missing))) => Err(missing.clone()),
            // The pods of a node need the same right as all pods.
            (Some(Err(missing)), None) if missing.reason == Reason::Forbidden && matches!(scope, Scope::Node(_)) => Err(NotRead {
                scope: scope.clone(),
                ..missing.clone()
            }),
            (Some(Err(missing)), None) => Err(missing.clone()),
            (None, None) => Err(NotRead {
                kind: self.kind,
                scope: scope.clone(),
                reason: Reason::NotAsked,
            }),
        }
    }

    /// All objects of the kind.
    ///
    /// # Errors
    /// What was not read, unless the whole kind was.
    pub fn all(&self) -> Result<&[T], NotRead> {
        self.covered(&Scope::Cluster).map(|()| self.items.as_slice())
    }

    /// The objects of a namespace.
    ///
    /// # Errors
    /// What was not read, unless the namespace or the whole kind was.
    pub fn in_namespace(&self, namespace: &str) -> Result<&[T], NotRead> {
        self.covered(&Scope::Namespace(namespace.to_owned()))
            .map(|()| self.seen_in(namespace))
    }

    /// The objects of a namespace among what was read.
    pub fn seen_in(&self, namespace: &str) -> &[T] {
        let start = self.items.partition_point(|item| item.meta().namespace.as_str() < namespace);
        let end = self.items.partition_point(|item| item.meta().namespace.as_str() <= namespace);
        &self.items[start..end]
    }

    /// An object by name: `Ok(None)` only where its absence is known.
    ///
    /// # Errors
    /// What was not read, where the object is not among what was.
    pub fn get(&self, namespace: &str, name: &str) -> Result<Option<&T>, NotRead> {
        match self.find(namespace, name) {
            Some(object) => Ok(Some(object)),
            None if namespace.is_empty() => self.all().map(|_| None),
            None => self.in_namespace(namespace).map(|_| None),
        }
    }
}

impl Listing<Pod> {
    /// The pods bound to a node.
    ///
    /// # Errors
    /// What was not read, unless the node's pods or all pods were.
    pub fn on_node<'a>(&'a self, node: &str) -> Result<impl Iterator<Item = &'a Pod> + use<'a>, NotRead> {
        self.covered(&Scope::Node(node.to_owned())).map(|()| self.seen_on(node))
    }

    /// The pods bound to a node among what was read.
    pub fn seen_on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a Pod> + use<'a> {
        let node_of = |index: &u32| self.items[*index as usize].node();
        let by_node = self.by_node.get_or_init(|| {
            let all = 0..u32::try_from(self.items.len()).unwrap_or(u32::MAX);
            let mut bound: Vec<u32> = all.filter(|index| node_of(index).is_some()).collect();
            bound.sort_by_key(node_of);
            bound
        });
        let start = by_node.partition_point(|index| node_of(index) < Some(node));
        let count = by_node[start..].partition_point(|index| node_of(index) == Some(node));
        by_node[start..start + count].iter().map(|index| &self.items[*index as usize])
    }
}

fn key<T: Object>(object: &T) -> (&str, &str) {
    (&object.meta().namespace, &object.meta().name)
}

/// Where the objects came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A running API server.
    Live,
    /// Files.
    #[default]
    Files,
}

/// The minor version of a 1.x API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerVersion {
    /// As the server writes it, such as `v1.36.3`.
    pub git_version: String,
}

impl ServerVersion {
    /// The minor version, such as 36; `None` where it cannot be told.
    pub fn minor(&self) -> Option<u32> {
        let rest = self.git_version.trim_start_matches('v').strip_prefix("1.")?;
        rest.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
    }
}

/// Everything that was read, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Where from.
    pub source: Source,
    /// Name of the kubeconfig context.
    pub context: Option<String>,
    /// URL of the API server.
    pub server: Option<String>,
    /// Version of the API server.
    pub server_version: Option<ServerVersion>,
    /// When, by the API server's clock; `None` for files that do not say.
    pub observed_at: Option<Timestamp>,
    /// Whether files were said to be the whole cluster.
    pub complete: bool,
    /// The objects.
    pub objects: Listings,
}

impl std::ops::Deref for Snapshot {
    type Target = Listings;

    fn deref(&self) -> &Listings {
        &self.objects
    }
}

impl Snapshot {
    /// Whether a pod's processes run, Ready or not: it is Running and not terminating, on a node whose kubelet answers.
    /// A node that was not read is taken to answer.
    pub fn runs(&self, pod: &Pod) -> bool {
        pod.status.phase == "Running" && !pod.metadata.terminating() && self.node_answers(pod)
    }

    /// Whether the kubelet of the pod's node answers. A node that was not read is taken to, and a pod without a node too.
    pub fn node_answers(&self, pod: &Pod) -> bool {
        let node = pod.node().and_then(|node| self.nodes.find("", node));
        node.is_none_or(Node::ready)
    }
}
