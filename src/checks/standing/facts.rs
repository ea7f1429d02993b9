//! What the standing checks and the views read: workloads with their pods, elections and callers.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::objects::{DaemonSet, Deployment, Lease, Node, Pod, PodSpec, StringMap};
use crate::cluster::snapshot::{NotRead, Snapshot};
use crate::gpustack::components::{ComponentId, Election, INSTANCE, NAME, PART_OF, label};
use crate::gpustack::install::{Install, Mode};
use crate::kubernetes::called::{self, Answering, Called, CalledKind};
use crate::kubernetes::host_ports::{self, BoundPort};
use crate::kubernetes::leases::{self, Holder};
use crate::kubernetes::scheduling::{self, Decision, Incoming, Placement};
use crate::kubernetes::surge::{self, Surge};
use crate::kubernetes::workloads::{self, Owner, WorkloadKey};
use crate::report::placement::ReplicaState;
use crate::report::shell::Kubectl;

/// What standing checks read.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// The install, where one was found.
    pub install: Option<&'a Install<'a>>,
    /// How the user reaches the cluster.
    pub kubectl: &'a Kubectl,
    /// The workloads looked at: GPUStack's components in the catalogue's order, then the others by key.
    pub workloads: Vec<Workload<'a>>,
    /// Whether the whole cluster is looked at, and not only GPUStack.
    pub all: bool,
    /// What is called, with who answers.
    pub called: Vec<(Called<'a>, Answering<'a>)>,
    /// The pods on their nodes, once that is asked for.
    placement: OnceCell<Placement<'a>>,
    /// How the rollout of each Deployment begins, once that is asked for.
    surges: OnceCell<BTreeMap<(&'a str, &'a str), Surge>>,
}

/// A workload and what belongs to it.
#[derive(Debug)]
pub struct Workload<'a> {
    /// Its name.
    pub key: WorkloadKey,
    /// The component that it is.
    pub id: Option<ComponentId>,
    /// The Deployment, if it is one.
    pub deployment: Option<&'a Deployment>,
    /// Labels and spec of its pods' template, where one was read.
    pub template: Option<(&'a StringMap, &'a PodSpec)>,
    /// Pods wanted; `None` where that is not known.
    pub desired: Option<i64>,
    /// Its pods that have not finished.
    pub pods: Vec<&'a Pod>,
    /// What of its pods was not read.
    pub unread: Option<NotRead>,
    /// The elections that its replicas take part in.
    pub elections: Vec<Led<'a>>,
    /// Indexes into [`Facts::called`] of what it answers for.
    pub answers: Vec<usize>,
}

/// An election and who won it.
#[derive(Debug)]
pub struct Led<'a> {
    /// The election.
    pub election: Election,
    /// Its lease, where there is one; what was not read, where that is not known.
    pub lease: Result<Option<&'a Lease>, NotRead>,
    /// Who holds the lease.
    pub holder: Option<Holder<'a>>,
}

impl<'a> Facts<'a> {
    /// The facts on the install's components; with `all`, on every workload but DaemonSets and Jobs.
    pub fn new(snapshot: &'a Snapshot, install: Option<&'a Install<'a>>, kubectl: &'a Kubectl, all: bool) -> Self {
        let called: Vec<_> = called::called(snapshot)
            .into_iter()
            .map(|called| {
                let answering = called::answering(snapshot, &called);
                (called, answering)
            })
            .collect();
        let components = install.map(|install| install.components.as_slice()).unwrap_or_default();
        let mut owned = pods_by_owner(snapshot, &namespaces(components, all, snapshot));
        let mut workloads: Vec<Workload<'a>> = components
            .iter()
            .map(|(id, deployment)| component(snapshot, Some(*id), deployment, &mut owned))
            .collect();
        if all {
            let taken: BTreeSet<WorkloadKey> = workloads.iter().map(|workload| workload.key.clone()).collect();
            workloads.extend(others(snapshot, &taken, &mut owned));
        }
        for workload in &mut workloads {
            workload.answers = answers(workload, &called);
        }
        Self {
            snapshot,
            install,
            kubectl,
            workloads,
            all,
            called,
            placement: OnceCell::new(),
            surges: OnceCell::new(),
        }
    }

    /// How a rollout of the Deployment begins.
    pub fn surge(&self, deployment: &'a Deployment) -> &Surge {
        fn key(deployment: &Deployment) -> (&str, &str) {
            (&deployment.metadata.namespace, &deployment.metadata.name)
        }
        let surges = self.surges.get_or_init(|| {
            let deployments = self.workloads.iter().filter_map(|workload| workload.deployment);
            let surge = |deployment| surge::surge(self.snapshot, self.placement(), deployment);
            deployments.map(|deployment| (key(deployment), surge(deployment))).collect()
        });
        surges.get(&key(deployment)).unwrap_or(&Surge::Free)
    }

    /// The pods on their nodes.
    pub fn placement(&self) -> &Placement<'a> {
        self.placement.get_or_init(|| Placement::new(self.snapshot))
    }

    /// The install's DaemonSets, or all.
    pub fn daemon_sets(&self) -> impl Iterator<Item = &'a DaemonSet> {
        let ours = |set: &&DaemonSet| self.all || self.install.is_some_and(|install| is_ours(install, set));
        self.snapshot.daemon_sets.seen().iter().filter(ours)
    }

    /// Namespaces of the install and its components.
    pub fn namespaces(&self) -> BTreeSet<&'a str> {
        let Some(install) = self.install else { return BTreeSet::new() };
        let components = install
            .components
            .iter()
            .map(|(_, deployment)| deployment.metadata.namespace.as_str());
        components.chain([install.namespace]).collect()
    }

    /// The install's mode.
    pub fn mode(&self) -> Option<Mode> {
        self.install.map(|install| install.mode)
    }

    /// The state of a replica, and why it is not Ready.
    pub fn state(&self, pod: &Pod) -> (ReplicaState, Option<String>) {
        if pod.metadata.terminating() {
            let until = pod.metadata.deletion_timestamp.0.map(|time| format!("may take until {time}"));
            return (ReplicaState::Terminating, until);
        }
        let collision = (!pod.ready()).then(|| self.port_taken(pod)).flatten();
        let waiting = |wanted: &dyn Fn(&str) -> bool| {
            let statuses = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
            statuses
                .filter_map(|status| Some((status, status.state.waiting.as_ref()?)))
                .find(|(_, waiting)| wanted(&waiting.reason))
                .map(|(status, waiting)| format!("container {}: {}", status.name, waiting.reason))
        };
        if let Some((port, other)) = &collision {
            let why = format!("port {} is taken by {}", port.port, other.metadata.name);
            return (ReplicaState::CrashLoops, Some(why));
        }
        if let Some(why) = waiting(&|reason| reason == "CrashLoopBackOff") {
            return (ReplicaState::CrashLoops, Some(why));
        }
        if pod.status.phase == "Pending" || pod.node().is_none() {
            return (ReplicaState::Pending, pending(pod).or_else(|| waiting(&|_| true)));
        }
        if !self.snapshot.node_answers(pod) {
            return (
                ReplicaState::NotReady,
                Some(format!("node {} does not answer", pod.node().unwrap_or_default())),
            );
        }
        if pod.ready() {
            return (ReplicaState::Ready, None);
        }
        let unready = pod.status.container_statuses.iter().find(|status| !status.ready);
        let why = waiting(&|_| true).or_else(|| unready.map(|status| format!("container {} is not ready", status.name)));
        (ReplicaState::NotReady, why)
    }

    /// Whether the pod is Ready on a node that answers, and stays.
    pub fn ready(&self, pod: &Pod) -> bool {
        pod.ready() && self.snapshot.runs(pod)
    }

    /// A port that the pod binds on its node and that another, Ready pod there binds already.
    pub fn port_taken(&self, pod: &Pod) -> Option<(BoundPort, &'a Pod)> {
        let node = pod.node()?;
        let wanted = host_ports::bound(&pod.spec);
        if wanted.is_empty() {
            return None;
        }
        let others = self.snapshot.pods.seen_on(node);
        let mut here = others.filter(|other| !other.finished() && other.key() != pod.key() && other.ready());
        here.find_map(|other| {
            let taken = host_ports::bound(&other.spec);
            let port = wanted
                .iter()
                .find(|port| taken.iter().any(|held| host_ports::collide(port, held)))?;
            Some((port.clone(), other))
        })
    }

    /// The nodes that could take such a pod if they were empty and not cordoned.
    ///
    /// # Errors
    /// The nodes were not read.
    pub fn suitable(&self, workload: &Workload<'_>) -> Result<Vec<&'a Node>, NotRead> {
        let nodes = self.snapshot.nodes.all()?;
        let Some((labels, spec)) = workload.template else {
            return Ok(nodes.iter().collect());
        };
        let incoming = Incoming {
            namespace: &workload.key.namespace,
            labels,
            spec,
        };
        let suits = |node: &&Node| scheduling::suits(self.snapshot, node, &incoming) == Decision::Fits;
        Ok(nodes.iter().filter(suits).collect())
    }

    /// The node of a pod, where it was read.
    pub fn node(&self, pod: &Pod) -> Option<&'a Node> {
        self.snapshot.nodes.find("", pod.node()?)
    }

    /// The pods that answer what is called; `None` where that is not known, or not by pods.
    pub fn answering(&self, called: usize) -> Option<&[&'a Pod]> {
        match &self.called.get(called)?.1 {
            Answering::Pods(_, pods) => Some(pods),
            Answering::Elsewhere | Answering::Unknown(_) => None,
        }
    }
}

impl<'a> Workload<'a> {
    /// The values key of something of the component, by one of the functions of [`crate::gpustack::values`].
    pub fn values_key(&self, facts: &Facts<'_>, key: impl FnOnce(Mode, ComponentId, &Deployment) -> Option<String>) -> Option<String> {
        key(facts.mode()?, self.id?, self.deployment?)
    }

    /// `kind/name`, as kubectl takes it.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.key.kind.to_lowercase(), self.key.name)
    }
}

/// Zone of a node, by its label.
pub fn zone(node: &Node) -> Option<&str> {
    labelled(node, ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"])
}

/// Region of a node, by its label.
pub fn region(node: &Node) -> Option<&str> {
    labelled(node, ["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"])
}

fn labelled<'n>(node: &'n Node, keys: [&str; 2]) -> Option<&'n str> {
    keys.iter()
        .find_map(|key| node.metadata.labels.get(*key))
        .map(String::as_str)
        .filter(|value| !value.is_empty())
}

/// What is called, as one word: `webhook/NAME`, `apiservice/NAME` or `conversion/NAME`.
pub fn called_name(called: &Called<'_>) -> String {
    let kind = match called.kind {
        CalledKind::Webhook => "webhook",
        CalledKind::ApiService => "apiservice",
        CalledKind::Conversion => "conversion",
    };
    format!("{kind}/{}", called.name)
}

fn is_ours(install: &Install<'_>, set: &DaemonSet) -> bool {
    let labels = [&set.metadata.labels, &set.spec.template.metadata.labels];
    let is = |key: &str, wanted: &dyn Fn(&str) -> bool| labels.iter().any(|labels| label(labels, key).is_some_and(wanted));
    install.lies_in(&set.metadata.namespace)
        && (is(INSTANCE, &|release| release == install.release)
            || is(PART_OF, &|whole| whole == "gpustack-operator")
            || is(NAME, &|name| name == "node-feature-discovery")
            || is("app", &|app| matches!(app, "csi-nfs-node" | "csi-s3-node")))
}

/// Why a pod has no node yet, or has not started.
fn pending(pod: &Pod) -> Option<String> {
    let scheduled = pod.status.conditions.iter().find(|condition| condition.kind == "PodScheduled")?;
    if scheduled.status == "True" || pod.node().is_some() {
        return None;
    }
    Some(match (scheduled.reason.as_str(), scheduled.message.as_str()) {
        ("SchedulingGated", _) => {
            let gates: Vec<&str> = pod.spec.scheduling_gates.iter().map(|gate| gate.name.as_str()).collect();
            format!("waits behind {}", gates.join(", "))
        }
        (reason, "") => reason.to_owned(),
        (_, message) => message.to_owned(),
    })
}

fn namespaces<'a>(components: &[(ComponentId, &'a Deployment)], all: bool, snapshot: &'a Snapshot) -> BTreeSet<&'a str> {
    if all {
        return snapshot.pods.seen().iter().map(|pod| pod.metadata.namespace.as_str()).collect();
    }
    components
        .iter()
        .map(|(_, deployment)| deployment.metadata.namespace.as_str())
        .collect()
}

/// Pods by the workload that a person would name, of those that have not finished.
fn pods_by_owner<'a>(snapshot: &'a Snapshot, namespaces: &BTreeSet<&str>) -> BTreeMap<WorkloadKey, Vec<&'a Pod>> {
    let mut owned: BTreeMap<WorkloadKey, Vec<&Pod>> = BTreeMap::new();
    for pod in snapshot.pods.seen() {
        let namespace = pod.metadata.namespace.as_str();
        if pod.finished() || !namespaces.contains(namespace) {
            continue;
        }
        let owner = workloads::owner(snapshot, pod);
        let key = match &owner {
            // Without its ReplicaSet a pod's Deployment is told by its labels and by what the set is called after.
            Owner::Unknown(reference, _) if reference.kind == "ReplicaSet" => {
                let parent = snapshot.deployments.seen_in(namespace).iter().find(|deployment| {
                    reference
                        .name
                        .strip_prefix(deployment.metadata.name.as_str())
                        .is_some_and(|rest| rest.starts_with('-'))
                        && crate::kubernetes::selectors::matches(&deployment.spec.selector, &pod.metadata.labels)
                });
                parent.map(deployment_key).or_else(|| owner.key(namespace))
            }
            _ => owner.key(namespace),
        };
        if let Some(key) = key {
            owned.entry(key).or_default().push(pod);
        }
    }
    owned
}

fn deployment_key(deployment: &Deployment) -> WorkloadKey {
    WorkloadKey {
        kind: "Deployment".to_owned(),
        namespace: deployment.metadata.namespace.clone(),
        name: deployment.metadata.name.clone(),
    }
}

fn component<'a>(
    snapshot: &'a Snapshot,
    id: Option<ComponentId>,
    deployment: &'a Deployment,
    owned: &mut BTreeMap<WorkloadKey, Vec<&'a Pod>>,
) -> Workload<'a> {
    let key = deployment_key(deployment);
    let pods = owned.remove(&key).unwrap_or_default();
    let elections = id.map(|id| id.elections(deployment)).unwrap_or_default();
    let elections = elections
        .into_iter()
        .map(|election| {
            let lease = snapshot.leases.get(&election.namespace, &election.lease);
            let candidate = |pod: &Pod| pods.iter().any(|own| own.key() == pod.key());
            let holder = match lease {
                Ok(Some(lease)) => Some(leases::holder(snapshot, lease, election.holder, &candidate)),
                _ => None,
            };
            Led { election, lease, holder }
        })
        .collect();
    let template = &deployment.spec.template;
    Workload {
        id,
        deployment: Some(deployment),
        template: Some((&template.metadata.labels, &template.spec)),
        desired: Some(deployment.spec.replicas.unwrap_or(1)),
        unread: snapshot.pods.in_namespace(&key.namespace).err(),
        pods,
        elections,
        answers: Vec::new(),
        key,
    }
}

/// The workloads that are no component, DaemonSet or Job.
fn others<'a>(snapshot: &'a Snapshot, taken: &BTreeSet<WorkloadKey>, owned: &mut BTreeMap<WorkloadKey, Vec<&'a Pod>>) -> Vec<Workload<'a>> {
    let mut known: BTreeMap<WorkloadKey, Workload<'a>> = BTreeMap::new();
    for deployment in snapshot.deployments.seen() {
        let key = deployment_key(deployment);
        if !taken.contains(&key) {
            known.insert(key, component(snapshot, None, deployment, owned));
        }
    }
    let plain = |key: WorkloadKey, pods: Vec<&'a Pod>, template, desired| Workload {
        unread: snapshot.pods.in_namespace(&key.namespace).err(),
        id: None,
        deployment: None,
        template,
        desired,
        pods,
        elections: Vec::new(),
        answers: Vec::new(),
        key,
    };
    for set in snapshot.stateful_sets.seen() {
        let key = WorkloadKey {
            kind: "StatefulSet".to_owned(),
            namespace: set.metadata.namespace.clone(),
            name: set.metadata.name.clone(),
        };
        let template = &set.spec.template;
        let pods = owned.remove(&key).unwrap_or_default();
        let workload = plain(
            key.clone(),
            pods,
            Some((&template.metadata.labels, &template.spec)),
            Some(set.spec.replicas.unwrap_or(1)),
        );
        known.insert(key, workload);
    }
    for (key, pods) in std::mem::take(owned) {
        // A pod that mirrors a static one belongs to its node.
        if matches!(key.kind.as_str(), "DaemonSet" | "Job" | "Node") {
            continue;
        }
        let desired = pods.first().and_then(|pod| workloads::owner(snapshot, pod).workload_wanted());
        known.insert(key.clone(), plain(key, pods, None, desired));
    }
    known.into_values().collect()
}

/// What is called where the workload's pods would answer.
fn answers(workload: &Workload<'_>, called: &[(Called<'_>, Answering<'_>)]) -> Vec<usize> {
    let Some((labels, spec)) = workload.template else {
        return Vec::new();
    };
    called
        .iter()
        .enumerate()
        .filter(|(_, (_, answering))| match answering {
            Answering::Pods(route, _) => route.selects(&workload.key.namespace, labels, spec),
            Answering::Elsewhere | Answering::Unknown(_) => false,
        })
        .map(|(index, _)| index)
        .collect()
}
