//! What takes part in a drain, gathered once from the snapshot.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::kinds::Kind;
use crate::cluster::objects::{
    ApiService, CustomResourceDefinition, EphemeralSource, Pod, PodDisruptionBudget, PodSpec, StringMap, Volume,
};
use crate::cluster::shared::Shared;
use crate::cluster::snapshot::{NotRead, Snapshot};
use crate::gpustack::tenants::{self, Recreation, Release, Sweep};
use crate::kubernetes::admission::{self, Called, Configured, Endpoint, Operation, Request};
use crate::kubernetes::creation::quota::{self, Charge, Quota};
use crate::kubernetes::creation::{self, Obstacle};
use crate::kubernetes::disruption::{self, Counted, Status};
use crate::kubernetes::drain::{self, DrainFlags, Filtered};
use crate::kubernetes::endpoints::{self, PodRoute, Route};
use crate::kubernetes::eviction::{self, Allowance};
use crate::kubernetes::host_ports::{self, BoundPort};
use crate::kubernetes::scheduling::{self, Incoming, Placement, gated};
use crate::kubernetes::workloads::{self, Owner, When, WorkloadKey, job, stateful_set};

use super::assume::{Assume, Class};

/// Taint by which somebody declares that a node is down for good (`pkg/controller/podgc/gc_controller.go`).
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Something that was not read, or is not modelled, and what depends on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// What could not be told.
    pub what: String,
    /// Why, and what it would have decided.
    pub why: String,
    /// The list that was not read, if one was.
    pub missing: Option<NotRead>,
    /// Whether any answer hangs on it, so that playing with the best and the worst of it does not settle the matter.
    pub decisive: bool,
    /// What is played both ways because of it.
    pub class: Option<Class>,
}

impl Gap {
    /// A gap from a list that was not read.
    pub fn unread(what: impl Into<String>, missing: &NotRead) -> Self {
        Self {
            what: what.into(),
            why: missing.to_string(),
            missing: Some(missing.clone()),
            decisive: false,
            class: None,
        }
    }

    /// A gap from a rule that is not modelled, or something that no snapshot can tell.
    pub fn undecided(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
            missing: None,
            decisive: false,
            class: None,
        }
    }

    /// The gap as one that is played both ways.
    pub fn of(self, class: Class) -> Self {
        Self {
            class: Some(class),
            ..self
        }
    }

    /// The gap as one on which any answer hangs.
    pub fn decisive(self) -> Self {
        Self { decisive: true, ..self }
    }
}

/// Objects that the cast borrows and the snapshot does not hold.
#[derive(Debug, Default)]
pub struct Props {
    templates: BTreeMap<(String, String), (Shared<StringMap>, PodSpec)>,
    /// By kind, namespace and name of the owner: its template as the API server stores a pod of it.
    admitted: BTreeMap<(String, String, String), PodSpec>,
    names: Vec<String>,
    /// Stands in for a budget that was not read.
    unread_budget: PodDisruptionBudget,
    /// Namespace and name of pods off the drained nodes that replacements may preempt.
    victims: BTreeSet<(String, String)>,
    /// Nodes that are drained afterwards: whatever else makes nodes alike, it matters which of these a pod is on.
    later: Vec<String>,
}

impl Props {
    /// The same where these nodes are drained afterwards.
    pub fn before(self, later: &[String]) -> Self {
        Self {
            later: later.to_vec(),
            ..self
        }
    }

    /// Stand-in templates and names for the replacements of the pods on the given nodes, and of those that may be
    /// preempted, by namespace and name.
    pub fn new(snapshot: &Snapshot, nodes: &[String], victims: &BTreeSet<(String, String)>) -> Self {
        let mut props = Self {
            victims: victims.clone(),
            ..Self::default()
        };
        let drained = |pod: &Pod| pod.node().is_some_and(|node| nodes.iter().any(|name| name == node));
        let preempted = victims.iter().filter_map(|(namespace, name)| snapshot.pods.find(namespace, name));
        // In the order of the candidates.
        let on_nodes = nodes.iter().flat_map(|node| snapshot.pods.seen_on(node));
        for pod in on_nodes.chain(preempted.filter(|pod| !drained(pod))) {
            let namespace = pod.metadata.namespace.as_str();
            let key = (namespace.to_owned(), pod.metadata.name.clone());
            props
                .names
                .push(format!("{}/replacement of {}", pod.metadata.namespace, pod.metadata.name));
            // What a default class gave the pod, or its controller, they give its replacement.
            let admitted = |spec: &PodSpec| {
                let mut spec = spec.clone();
                if spec.priority_class_name.is_none() {
                    spec.priority_class_name = pod.spec.priority_class_name.clone();
                    spec.priority = pod.spec.priority;
                }
                if !scheduling::grouped(&spec) {
                    spec.scheduling_group.clone_from(&pod.spec.scheduling_group);
                    spec.workload_ref.clone_from(&pod.spec.workload_ref);
                }
                creation::admitted(snapshot, namespace, &spec)
            };
            let owner = workloads::owner(snapshot, pod);
            match &owner {
                // A pod of an owner that is not known stands in for its own replacement.
                Owner::Custom(_) | Owner::Unknown(..) => {
                    let (labels, spec) = tenants::template(snapshot, pod);
                    props.templates.insert(key, (labels, admitted(&spec)));
                }
                // It keeps its affinity to its own node.
                Owner::DaemonSet(_) if !drained(pod) => {
                    let spec = (*pod.spec).clone();
                    props.templates.insert(key, (pod.metadata.labels.clone(), spec));
                }
                Owner::StatefulSet(set) if stateful_set::by_older_template(set, pod) => {
                    let spec = (*pod.spec).clone();
                    props.templates.insert(key, (pod.metadata.labels.clone(), spec));
                }
                Owner::StatefulSet(set) if !set.spec.volume_claim_templates.is_empty() => {
                    let mut spec = admitted(&set.spec.template.spec);
                    let claims = &set.spec.volume_claim_templates;
                    // A claim takes the place of a volume of its name (`pkg/controller/statefulset/stateful_set_utils.go`).
                    spec.volumes
                        .retain(|volume| !claims.iter().any(|claim| claim.metadata.name == volume.name));
                    spec.volumes.extend(claims.iter().map(|claim| Volume {
                        name: claim.metadata.name.clone(),
                        persistent_volume_claim: Some(crate::cluster::objects::ClaimSource {
                            claim_name: format!("{}-{}", claim.metadata.name, pod.metadata.name),
                        }),
                        ephemeral: Some(EphemeralSource {
                            volume_claim_template: claim.clone(),
                        }),
                        ..Volume::default()
                    }));
                    props.templates.insert(key, (set.spec.template.metadata.labels.clone(), spec));
                }
                _ => {
                    let Some(reference) = pod.metadata.controller() else { continue };
                    let key = (reference.kind.clone(), namespace.to_owned(), reference.name.clone());
                    props.admitted.entry(key).or_insert_with(|| match owner.template() {
                        Some(template) => admitted(&template.spec),
                        // A pod stands in for the template of an owner that is not known, but for where it is.
                        None => (*pod.spec).clone(),
                    });
                }
            }
        }
        props
    }
}

/// What must happen before an accepted eviction ends in the pod being gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The Job controller removes its finalizer, by an update of the pod.
    JobTracking,
    /// Kueue's leader removes its finalizer, by an update of the pod; the worker's leader may be needed too.
    Kueue {
        /// Whether the worker's leader must delete the Workload first.
        worker: bool,
    },
    /// The kubelet writes the status once its containers have ended, and deletes it for good then
    /// (`pkg/kubelet/status/status_manager.go`, syncPod); webhooks are called for either. The eviction itself deletes
    /// past them.
    Deletion,
    /// The same, where a policy may deny either.
    Policy,
    /// Nobody removes it.
    Nobody(String),
    /// Whoever put this finalizer there may remove it, or not.
    Unfamiliar(String),
    /// The node's kubelet does not answer.
    Node,
    /// It was Terminating before, for longer than its grace period.
    Overdue,
}

/// A pod on a drained node, or one elsewhere that replacements may preempt.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Which turn its node has; none at all where it may only be preempted.
    pub turn: usize,
    /// Its node, as an index of the placement.
    pub node: usize,
    /// Whether its node is not drained, so that it goes only if it is preempted.
    pub victim: bool,
    /// What kubectl's filters say.
    pub filtered: Filtered,
    /// Its controller.
    pub owner: Owner<'a>,
    /// Index of what recreates it.
    pub set: Option<usize>,
    /// Index of its workload.
    pub workload: Option<usize>,
    /// Indexes of the budgets over it.
    pub budgets: Vec<usize>,
    /// What keeps it after its eviction was accepted.
    pub holds: Vec<Hold>,
    /// Webhooks called for its eviction, or its preemption: index, and whether that is certain.
    pub eviction_hooks: Vec<(usize, bool)>,
    /// Whether a policy may deny its eviction.
    pub may_be_denied: bool,
    /// Whether a policy may deny what the kubelet writes once it has ended, or the removal of a finalizer.
    pub end_may_be_denied: bool,
    /// Webhooks called for updates of it.
    pub update_hooks: Vec<(usize, bool)>,
    /// Webhooks called when the kubelet writes that it has ended and deletes it for good.
    pub ending_hooks: Vec<(usize, bool)>,
}

/// What creates replacements: one ReplicaSet, StatefulSet, Job or other controller.
#[derive(Clone, Debug)]
pub struct Set<'a> {
    /// Its owner.
    pub owner: Owner<'a>,
    /// Index of the workload that it belongs to.
    pub workload: usize,
    /// Pods wanted at a time; `None` where each lost pod is made anew.
    pub wanted: Option<i64>,
    /// Active pods now.
    pub active: i64,
    /// When a replacement is created; `None` where nothing is.
    pub when: Option<When>,
    /// Why nothing is created, or that it is not known.
    pub why_none: Option<String>,
    /// Whether it is unknown if a replacement is created.
    pub unknown: bool,
    /// What a replacement is made from.
    pub template: Option<Incoming<'a>>,
    /// Whether gates hold a replacement.
    pub gated: bool,
    /// Priority of a replacement, as that of the pod that it replaces.
    pub priority: i64,
    /// Whether a replacement may preempt pods of a lower priority, as the pod that it replaces.
    pub preempts: bool,
    /// Whether a replacement becomes Ready once it runs: one of the template's pods is Ready now.
    pub becomes_ready: bool,
    /// Host ports that a replacement binds.
    pub ports: Vec<BoundPort>,
    /// Claims of a replacement whose volumes are attached to one node at a time; and whether that is certain.
    pub single_node: Vec<(&'a str, bool)>,
    /// Webhooks called for the creation of a replacement.
    pub create_hooks: Vec<(usize, bool)>,
    /// Webhooks called when a replacement is bound to a node.
    pub bind_hooks: Vec<(usize, bool)>,
    /// Webhooks called when the kubelet writes a replacement's status.
    pub status_hooks: Vec<(usize, bool)>,
    /// Webhooks called when a replacement is written among the endpoints of a Service.
    pub slice_hooks: Vec<(usize, bool)>,
    /// Why the creation of a replacement cannot be told.
    pub creation_gap: Option<String>,
    /// Why the creation of a replacement is refused for certain.
    pub creation_refused: Option<String>,
    /// The node that replacements are bound to without the scheduler.
    pub pinned: Option<&'a str>,
    /// What a replacement is charged by quotas.
    pub charge: Charge,
    /// A StatefulSet that makes its pods in order.
    pub ordered: bool,
}

/// A workload as people know it, with the pods of all its sets.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    /// Its name.
    pub key: WorkloadKey,
    /// Pods wanted, where known.
    pub wanted: Option<i64>,
    /// Its active pods that stay.
    pub staying: Vec<&'a Pod>,
    /// How many of these are Ready.
    pub ready_staying: i64,
    /// Ready pods before the drain.
    pub ready_before: i64,
    /// Pods of it before the drain, Ready or not.
    pub pods_before: i64,
    /// Whether its members could be counted.
    pub counted: bool,
}

/// A budget that selects a pod to be evicted.
#[derive(Clone, Debug)]
pub struct Budget<'a> {
    /// The budget.
    pub budget: &'a PodDisruptionBudget,
    /// Whether it only stands in for one that was not read.
    pub unread: bool,
    /// Pods of it that are not candidates.
    pub others: Vec<Counted<'a>>,
    /// Candidates under it.
    pub candidates: Vec<usize>,
    /// For each set, whether its replacements are under it.
    pub sets: Vec<bool>,
    /// What the status said when it was read.
    pub first: Allowance,
    /// Why the status cannot be computed again here.
    pub fixed: Option<NotRead>,
    /// Whether the status may lag for good: a change of a pod that more than one budget selects brings only one of them
    /// up to date, whichever (`pkg/controller/disruption/disruption.go`, `getPdbForPod`).
    pub neglected: bool,
}

/// Something that answers, backed by pods.
#[derive(Clone, Debug)]
pub struct Served<'a> {
    /// Namespace of the Service; empty for an address.
    pub namespace: String,
    /// Name of the Service, or the address.
    pub name: String,
    /// Port asked for.
    pub port: Option<i64>,
    /// Node of each endpoint that no candidate is.
    pub others: Vec<&'a str>,
    /// Candidates that answer now.
    pub candidates: Vec<usize>,
    /// For each set, whether its replacements answer.
    pub sets: Vec<bool>,
    /// Why it never works, whoever is ready.
    pub broken: Option<String>,
    /// What was not read.
    pub unknown: Option<NotRead>,
}

impl Served<'_> {
    /// Endpoints before the drain.
    pub fn before(&self) -> i64 {
        count(self.others.len() + self.candidates.len())
    }
}

/// A webhook, and what answers it.
#[derive(Clone, Debug)]
pub struct Hook<'a> {
    /// The webhook.
    pub configured: Configured<'a>,
    /// Index of what serves it; `None` for one reached by an address that no pod is known to answer at.
    pub served: Option<usize>,
    /// Its address, where it has one.
    pub url: Option<String>,
}

/// Processes of one component, wherever they run.
#[derive(Clone, Debug, Default)]
pub struct Alive {
    /// Running pods that no candidate is.
    pub others: usize,
    /// Candidates.
    pub candidates: Vec<usize>,
    /// For each set, whether its replacements are some.
    pub sets: Vec<bool>,
    /// Whether there may be more, as not all pods were read.
    pub unsure: bool,
}

/// A pod of a set in play that was waiting for a node before the drain.
#[derive(Clone, Debug)]
pub struct Waiting<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Index of its set.
    pub set: usize,
}

/// A quota over replacements.
#[derive(Clone, Debug)]
pub struct Rationed<'a> {
    /// The quota.
    pub quota: Quota<'a>,
    /// For each set, whether its replacements are charged.
    pub sets: Vec<bool>,
    /// Candidates that are charged, and what is given back once they are gone.
    pub candidates: Vec<(usize, Charge)>,
}

/// Everything that takes part.
#[derive(Debug)]
pub struct Cast<'a> {
    /// The snapshot.
    pub snapshot: &'a Snapshot,
    /// Flags of the drain.
    pub flags: DrainFlags,
    /// Nodes in the order of their turns, as indexes of the placement.
    pub nodes: Vec<usize>,
    /// Nodes that are drained afterwards.
    pub later: Vec<usize>,
    /// Placement before the drain, with the cordons.
    pub placement: Placement<'a>,
    /// Pods on the drained nodes.
    pub candidates: Vec<Candidate<'a>>,
    /// What recreates them.
    pub sets: Vec<Set<'a>>,
    /// Their workloads.
    pub workloads: Vec<Workload<'a>>,
    /// Budgets over them.
    pub budgets: Vec<Budget<'a>>,
    /// Quotas over replacements.
    pub quotas: Vec<Rationed<'a>>,
    /// What answers.
    pub served: Vec<Served<'a>>,
    /// Webhooks.
    pub hooks: Vec<Hook<'a>>,
    /// For each turn, the webhooks called for the cordon of its node.
    pub cordon_hooks: Vec<Vec<(usize, bool)>>,
    /// Aggregated APIs with a Service, and the index of what serves each.
    pub apis: Vec<(&'a ApiService, usize)>,
    /// Custom resources with a conversion webhook, and the index of what serves each.
    pub conversions: Vec<(&'a CustomResourceDefinition, usize)>,
    /// Indexes in `served` of plain Services that evicted pods are behind.
    pub plain_services: Vec<usize>,
    /// Kueue's processes.
    pub kueue: Alive,
    /// The worker's processes.
    pub worker: Alive,
    /// Pods that were waiting for a node before the drain.
    pub waiting: Vec<Waiting<'a>>,
    /// Names for replacements.
    pub names: &'a [String],
    /// What was not read or is not modelled.
    pub gaps: BTreeSet<Gap>,
    /// How what is not known is taken to be.
    pub assume: Assume,
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl<'a> Cast<'a> {
    /// Gathers what takes part in the drain of the nodes, in this order, from the placement before it.
    pub fn new(before: &Placement<'a>, props: &'a Props, nodes: &[String], flags: &DrainFlags, assume: Assume) -> Self {
        let snapshot = before.snapshot();
        let mut placement = before.clone();
        let nodes: Vec<usize> = nodes.iter().filter_map(|node| placement.index(node)).collect();
        for node in &nodes {
            placement.cordon(*node);
        }
        let mut cast = Self {
            snapshot,
            flags: flags.clone(),
            later: props.later.iter().filter_map(|name| placement.index(name)).collect(),
            nodes,
            placement,
            candidates: Vec::new(),
            sets: Vec::new(),
            workloads: Vec::new(),
            budgets: Vec::new(),
            quotas: Vec::new(),
            served: Vec::new(),
            hooks: Vec::new(),
            apis: Vec::new(),
            conversions: Vec::new(),
            cordon_hooks: Vec::new(),
            plain_services: Vec::new(),
            kueue: Alive::default(),
            worker: Alive::default(),
            waiting: Vec::new(),
            names: &props.names,
            gaps: BTreeSet::new(),
            assume,
        };
        cast.gather_candidates();
        cast.gather_victims(props);
        cast.gather_sets(props);
        cast.gather_workloads();
        cast.gather_hooks();
        cast.gather_apis();
        cast.gather_plain_services();
        cast.gather_budgets(props);
        cast.gather_admission();
        cast.gather_holds();
        cast.gather_alive();
        cast
    }

    /// Whether the drain removes anything.
    pub fn removes_anything(&self) -> bool {
        self.candidates.iter().any(|candidate| self.removed(candidate))
    }

    /// Whether the drain asks for the removal of the pod, unless its node is refused.
    pub fn removed(&self, candidate: &Candidate<'_>) -> bool {
        candidate.filtered == Filtered::Remove && !candidate.victim
    }

    /// Whether the pod may go: by the drain, or by preemption.
    pub fn leaves(&self, candidate: &Candidate<'_>) -> bool {
        candidate.filtered == Filtered::Remove
    }

    /// The name of a candidate's node.
    pub fn node_of(&self, candidate: &Candidate<'_>) -> &'a str {
        self.placement.nodes()[candidate.node].name()
    }

    /// Whether a webhook that is called for replacements, when they are created or bound, or for the end of pods, has
    /// all its endpoints among the pods that go; or whether Kueue has all its pods there, beside a pod with its finalizer.
    pub fn last_backends_make_way(&self) -> bool {
        let held = |candidate: &Candidate<'_>| candidate.holds.contains(&Hold::Kueue { worker: false });
        if self.kueue.others == 0 && !self.kueue.candidates.is_empty() && self.candidates.iter().any(held) {
            return true;
        }
        let ending = self.candidates.iter().flat_map(|candidate| &candidate.ending_hooks);
        self.sets
            .iter()
            .flat_map(|set| set.create_hooks.iter().chain(&set.bind_hooks))
            .chain(ending)
            .any(|(hook, _)| {
                self.hooks[*hook].served.is_some_and(|served| {
                    let served = &self.served[served];
                    served.others.is_empty() && !served.candidates.is_empty()
                })
            })
    }

    /// Whether kubectl's filters refuse the node of a turn.
    pub fn refused(&self, turn: usize) -> bool {
        self.candidates
            .iter()
            .any(|candidate| candidate.turn == turn && matches!(candidate.filtered, Filtered::Refuse(_)))
    }

    /// Index of the candidate that a pod is.
    pub fn candidate_of(&self, pod: &Pod) -> Option<usize> {
        self.candidates.iter().position(|candidate| std::ptr::eq(candidate.pod, pod))
    }

    /// The node of a turn.
    pub fn node_name(&self, turn: usize) -> &'a str {
        self.placement.nodes()[self.nodes[turn]].name()
    }

    fn gather_candidates(&mut self) {
        for turn in 0..self.nodes.len() {
            let node = self.node_name(turn);
            let pods: Vec<&'a Pod> = match self.snapshot.pods.on_node(node) {
                Ok(pods) => pods.collect(),
                Err(missing) => {
                    self.gaps.insert(Gap::unread(format!("the pods on {node}"), &missing).decisive());
                    self.snapshot.pods.seen_on(node).collect()
                }
            };
            for pod in pods {
                let filtered = match drain::filter(self.snapshot, pod, &self.flags, self.snapshot.observed_at) {
                    Filtered::Unknown(missing) => {
                        let what = format!("whether the DaemonSet of pod {} still exists", pod.metadata.name);
                        self.gaps.insert(Gap::unread(what, &missing).of(Class::Replacements));
                        if self.assume.worst(Class::Replacements) {
                            Filtered::Refuse(drain::Refusal::OrphanedDaemonSet)
                        } else {
                            Filtered::Keep(drain::Kept::DaemonSet)
                        }
                    }
                    touched @ (Filtered::Remove | Filtered::Refuse(_)) if drain::undated(pod, &self.flags, self.snapshot.observed_at) => {
                        let what = format!("how long pod {} has been Terminating", pod.metadata.name);
                        let why = "the files do not tell when they were captured, and --skip-wait-for-delete-timeout depends on it";
                        self.gaps.insert(Gap::undecided(what, why).of(Class::Replacements));
                        if self.assume.worst(Class::Replacements) {
                            touched
                        } else {
                            Filtered::Keep(drain::Kept::Skipped)
                        }
                    }
                    decided => decided,
                };
                self.candidates.push(Candidate {
                    turn,
                    filtered,
                    victim: false,
                    ..self.candidate(pod, self.nodes[turn])
                });
            }
        }
    }

    /// A pod that may only be preempted.
    fn candidate(&self, pod: &'a Pod, node: usize) -> Candidate<'a> {
        Candidate {
            pod,
            turn: usize::MAX,
            node,
            victim: true,
            filtered: Filtered::Remove,
            owner: workloads::owner(self.snapshot, pod),
            set: None,
            workload: None,
            budgets: Vec::new(),
            holds: Vec::new(),
            eviction_hooks: Vec::new(),
            may_be_denied: false,
            end_may_be_denied: false,
            update_hooks: Vec::new(),
            ending_hooks: Vec::new(),
        }
    }

    fn gather_victims(&mut self, props: &Props) {
        for (namespace, name) in &props.victims {
            let Some(pod) = self.snapshot.pods.find(namespace, name) else {
                continue;
            };
            if let Some(node) = pod.node().and_then(|node| self.placement.index(node))
                && !self.nodes.contains(&node)
            {
                self.candidates.push(self.candidate(pod, node));
            }
        }
    }

    fn gather_sets(&mut self, props: &'a Props) {
        let mut known: BTreeMap<(String, String, String), usize> = BTreeMap::new();
        for index in 0..self.candidates.len() {
            let candidate = &self.candidates[index];
            let pod = candidate.pod;
            let Some(reference) = pod.metadata.controller() else { continue };
            let Some(key) = candidate.owner.key(&pod.metadata.namespace) else {
                continue;
            };
            // A finished pod is replaced already, but for that of a DaemonSet, which waits for it to be gone.
            if !self.leaves(candidate) || pod.finished() && !matches!(candidate.owner, Owner::DaemonSet(_)) {
                continue;
            }
            let workload = self.workloads.iter().position(|workload| workload.key == key).unwrap_or_else(|| {
                self.workloads.push(Workload {
                    key,
                    wanted: candidate.owner.workload_wanted(),
                    staying: Vec::new(),
                    ready_staying: 0,
                    ready_before: 0,
                    pods_before: 0,
                    counted: true,
                });
                self.workloads.len() - 1
            });
            // Each node has its own pod of a DaemonSet.
            let alone = matches!(candidate.owner, Owner::DaemonSet(_));
            let own_template = props.templates.get(&(pod.metadata.namespace.clone(), pod.metadata.name.clone()));
            // A pod with a template of its own is a set of its own.
            let id = (
                reference.kind.clone(),
                pod.metadata.namespace.clone(),
                match own_template.is_some() || alone {
                    true => format!("{}/{}", reference.name, pod.metadata.name),
                    false => reference.name.clone(),
                },
            );
            let set = match known.get(&id) {
                Some(set) => *set,
                None => {
                    let stored = (reference.kind.clone(), pod.metadata.namespace.clone(), reference.name.clone());
                    let set = self.new_set(index, workload, own_template, props.admitted.get(&stored));
                    if let (Some((claim, _)), Err(missing)) = (
                        set.single_node.iter().find(|(_, certain)| !certain),
                        self.snapshot.csi_drivers.all(),
                    ) {
                        let what = format!("whether the volume of claim {claim} is attached to one node at a time");
                        self.gaps.insert(Gap::unread(what, &missing).of(Class::Nodes));
                    }
                    self.sets.push(set);
                    known.insert(id, self.sets.len() - 1);
                    self.sets.len() - 1
                }
            };
            self.candidates[index].set = Some(set);
            self.candidates[index].workload = Some(workload);
            self.note_owner(index);
        }
    }

    /// What is not known of a candidate's controller.
    fn note_owner(&mut self, index: usize) {
        let Candidate { pod, owner, set, .. } = &self.candidates[index];
        let name = format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
        let gap = match owner {
            Owner::Unknown(_, missing) => Gap::unread(format!("what replaces {name}"), missing)
                .of(Class::Replacements)
                .decisive(),
            // Without its Deployment neither the other pods of a rollout nor a component are known.
            Owner::ReplicaSet { set, deployment: None, .. } => {
                let parent = set.metadata.controller().filter(|parent| parent.kind == "Deployment");
                match parent.map(|parent| self.snapshot.deployments.get(&set.metadata.namespace, &parent.name)) {
                    Some(Err(missing)) => Gap::unread(format!("which Deployment {name} belongs to"), &missing).decisive(),
                    _ => return,
                }
            }
            Owner::Custom(reference) if set.is_some_and(|set| self.sets[set].unknown) => Gap::undecided(
                format!("whether {} {} replaces {name}", reference.kind, reference.name),
                "what its controller does when it loses a pod is not known",
            )
            .of(Class::Replacements),
            _ if set.is_some_and(|set| self.sets[set].unknown) => {
                let why = set.and_then(|set| self.sets[set].why_none.clone()).unwrap_or_default();
                Gap::undecided(format!("whether {name} is replaced"), why).of(Class::Replacements)
            }
            _ => return,
        };
        self.gaps.insert(gap);
    }

    fn new_set(
        &self,
        candidate: usize,
        workload: usize,
        own: Option<&'a (Shared<StringMap>, PodSpec)>,
        admitted: Option<&'a PodSpec>,
    ) -> Set<'a> {
        let Candidate { pod, owner, .. } = &self.candidates[candidate];
        let pod: &'a Pod = pod;
        let namespace = pod.metadata.namespace.as_str();
        let template = match (own, owner.template()) {
            (Some((labels, spec)), _) => Some(Incoming { namespace, labels, spec }),
            (None, Some(template)) => Some(Incoming {
                namespace,
                labels: &template.metadata.labels,
                spec: admitted.unwrap_or(&template.spec),
            }),
            (None, None) => None,
        };
        let mut set = Set {
            owner: owner.clone(),
            workload,
            wanted: owner.wanted(),
            active: 0,
            when: None,
            why_none: None,
            unknown: false,
            template,
            gated: template.is_some_and(|template| gated(template.spec)) || tenants::admitted_by_kueue(pod),
            priority: template
                .and_then(|template| template.spec.priority)
                .or(pod.spec.priority)
                .unwrap_or(0),
            preempts: pod.spec.preemption_policy.as_deref() != Some("Never"),
            becomes_ready: pod.ready(),
            ports: template.map(|template| host_ports::bound(template.spec)).unwrap_or_default(),
            single_node: template.map(|template| self.single_node(&template)).unwrap_or_default(),
            create_hooks: Vec::new(),
            bind_hooks: Vec::new(),
            status_hooks: Vec::new(),
            slice_hooks: Vec::new(),
            creation_gap: None,
            creation_refused: None,
            pinned: template.and_then(|template| template.spec.node_name.as_deref().filter(|name| !name.is_empty())),
            charge: Charge::none(),
            ordered: false,
        };
        match owner {
            Owner::Bare => {}
            _ if owner.terminating() => set.why_none = Some("its controller is being deleted".to_owned()),
            Owner::ReplicaSet { .. } => set.when = Some(When::AtOnce),
            Owner::StatefulSet(stateful) => {
                set.when = Some(When::AfterGone);
                set.ordered = stateful_set::ordered(stateful);
            }
            Owner::Job(owner) => match (job::foreign(owner), job::idle(owner)) {
                (Some(manager), _) => {
                    set.unknown = true;
                    set.why_none = Some(format!("{manager} runs this Job, and what that does is not ours to know"));
                }
                (None, Some(why)) => set.why_none = Some(why.to_owned()),
                (None, None) => {
                    let minor = self.snapshot.server_version.as_ref().and_then(|version| version.minor());
                    set.when = Some(job::when(owner, minor));
                }
            },
            // It tolerates the cordon, and is made for this node; after a preemption there may be no room for it.
            Owner::DaemonSet(_) => {
                set.when = Some(When::AfterGone);
                set.pinned = pod.node().filter(|_| !self.candidates[candidate].victim);
            }
            Owner::Gone(reference) => set.why_none = Some(format!("{} {} is gone", reference.kind, reference.name)),
            Owner::Unknown(reference, missing) => {
                set.unknown = true;
                set.why_none = Some(format!("whether {} {} makes it again: {missing}", reference.kind, reference.name));
            }
            Owner::Custom(reference) => match tenants::tenant(pod) {
                Some(tenant) => match tenant.recreation {
                    Recreation::SameName | Recreation::SameOrdinal => {
                        set.when = Some(When::AfterGone);
                        set.gated = tenant.gated;
                    }
                    Recreation::SameNode => set.why_none = Some("the worker makes it again on this node".to_owned()),
                    Recreation::NotKnown => {
                        set.unknown = true;
                        set.why_none = Some(format!("what {} {} does is not known", reference.kind, reference.name));
                    }
                },
                None => {
                    set.unknown = true;
                    set.why_none = Some(format!(
                        "what {} {} does when it loses a pod is not ours to know",
                        reference.kind, reference.name
                    ));
                }
            },
        }
        set
    }

    fn single_node(&self, template: &Incoming<'a>) -> Vec<(&'a str, bool)> {
        let claims = template
            .spec
            .volumes
            .iter()
            .filter_map(|volume| volume.persistent_volume_claim.as_ref());
        claims
            .filter_map(|source| {
                let claim = self.snapshot.claims.find(template.namespace, &source.claim_name)?;
                let single = scheduling::single_node(self.snapshot, claim)?;
                Some((source.claim_name.as_str(), single.certain))
            })
            .collect()
    }

    fn gather_workloads(&mut self) {
        let namespaces: BTreeSet<String> = self.workloads.iter().map(|workload| workload.key.namespace.clone()).collect();
        for namespace in namespaces {
            let pods = match self.snapshot.pods.in_namespace(&namespace) {
                Ok(pods) => pods,
                Err(missing) => {
                    self.gaps
                        .insert(Gap::unread(format!("the other pods of namespace {namespace}"), &missing).decisive());
                    for workload in self.workloads.iter_mut().filter(|workload| workload.key.namespace == namespace) {
                        workload.counted = false;
                    }
                    &[]
                }
            };
            // Pods of one controller stand side by side.
            let mut last = None;
            for pod in pods {
                let Some(reference) = pod.metadata.controller() else { continue };
                let workload = match last {
                    Some((known, workload)) if known == reference => workload,
                    _ => {
                        let key = workloads::owner(self.snapshot, pod).key(&namespace);
                        key.and_then(|key| self.workloads.iter().position(|workload| workload.key == key))
                    }
                };
                last = Some((reference, workload));
                let Some(workload) = workload else { continue };
                let candidate = self.candidate_of(pod);
                let set = candidate.and_then(|candidate| self.candidates[candidate].set).or_else(|| {
                    self.sets
                        .iter()
                        .position(|set| set.workload == workload && set.wanted.is_some() && owner_name(&set.owner) == reference.name)
                });
                if !workloads::replica_set::active(pod) {
                    continue;
                }
                if let Some(set) = set {
                    self.sets[set].active += 1;
                    self.sets[set].becomes_ready |= pod.ready();
                }
                let leaves = candidate.is_some_and(|candidate| self.leaves(&self.candidates[candidate]));
                let ready = pod.ready() && (leaves || self.snapshot.node_answers(pod));
                let entry = &mut self.workloads[workload];
                entry.pods_before += 1;
                entry.ready_before += i64::from(ready);
                if pod.node().is_none()
                    && let Some(set) = set
                {
                    self.waiting.push(Waiting { pod, set });
                } else if !leaves {
                    entry.staying.push(pod);
                    entry.ready_staying += i64::from(ready);
                }
            }
        }
    }

    fn gather_hooks(&mut self) {
        if !self.removes_anything() {
            return;
        }
        let (configured, missing) = admission::webhooks(self.snapshot);
        for missing in missing {
            self.gaps
                .insert(Gap::unread("which admission webhooks there are", &missing).decisive());
        }
        for configured in configured {
            let webhook = configured.webhook;
            if admission::fails_closed(webhook)
                && webhook.namespace_selector.is_some()
                && let Err(missing) = self.snapshot.namespaces.all()
            {
                self.gaps
                    .insert(Gap::unread(format!("in which namespaces webhook {} is called", webhook.name), &missing).decisive());
            }
            let (served, url) = match admission::endpoint(&configured.webhook.client_config) {
                Endpoint::Service { namespace, name, port } => (Some(self.serve(namespace, name, port)), None),
                Endpoint::Url { url, host } => (self.behind(url, &host), Some(url.to_owned())),
                Endpoint::Broken => (None, None),
            };
            self.hooks.push(Hook { configured, served, url });
        }
    }

    /// Index of what answers at a webhook's address, where that is a pod of the drained nodes: by the pod's own address, or
    /// by its node's and a port that it binds there. Whatever replaces the pod elsewhere has another address.
    fn behind(&mut self, url: &str, host: &str) -> Option<usize> {
        let port = url.parse::<http::Uri>().ok().and_then(|parsed| parsed.port_u16()).unwrap_or(443);
        let answers = |candidate: &Candidate<'_>| {
            let node = self.placement.nodes()[candidate.node].node();
            let named = node.metadata.name == host || node.status.addresses.iter().any(|address| address.address == host);
            let spec = &candidate.pod.spec;
            let binds = || {
                host_ports::bound(spec)
                    .iter()
                    .any(|bound| bound.port == port && bound.protocol == "TCP")
            };
            let own = !spec.host_network && candidate.pod.status.pod_ip == host;
            self.leaves(candidate) && candidate.pod.ready() && (own || (named && binds()))
        };
        let candidates: Vec<usize> = (0..self.candidates.len())
            .filter(|index| answers(&self.candidates[*index]))
            .collect();
        if candidates.is_empty() {
            return None;
        }
        self.served.push(Served {
            namespace: String::new(),
            name: url.to_owned(),
            port: None,
            others: Vec::new(),
            candidates,
            sets: vec![false; self.sets.len()],
            broken: None,
            unknown: None,
        });
        Some(self.served.len() - 1)
    }

    fn gather_apis(&mut self) {
        if !self.removes_anything() {
            return;
        }
        match self.snapshot.api_services.all() {
            Ok(apis) => {
                for api in apis {
                    if let Some(service) = &api.spec.service {
                        let served = self.serve(&service.namespace, &service.name, service.port);
                        self.apis.push((api, served));
                    }
                }
            }
            Err(missing) => {
                self.gaps
                    .insert(Gap::unread("which aggregated APIs there are", &missing).decisive());
            }
        }
        match self.snapshot.custom_resources.all() {
            Ok(definitions) => {
                for definition in definitions {
                    let service = definition
                        .spec
                        .conversion
                        .webhook
                        .as_ref()
                        .and_then(|webhook| webhook.client_config.service.as_ref());
                    if definition.spec.conversion.strategy == "Webhook"
                        && let Some(service) = service
                    {
                        let served = self.serve(&service.namespace, &service.name, service.port);
                        self.conversions.push((definition, served));
                    }
                }
            }
            Err(missing) => {
                self.gaps
                    .insert(Gap::unread("which custom resources have a conversion webhook", &missing).decisive());
            }
        }
    }

    /// Index of what answers at a Service's port.
    pub fn serve(&mut self, namespace: &str, name: &str, port: Option<i64>) -> usize {
        if let Some(index) = self
            .served
            .iter()
            .position(|served| served.namespace == namespace && served.name == name && served.port == port)
        {
            return index;
        }
        let mut served = Served {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            port,
            others: Vec::new(),
            candidates: Vec::new(),
            sets: vec![false; self.sets.len()],
            broken: None,
            unknown: None,
        };
        match endpoints::route(self.snapshot, namespace, name, port) {
            Route::Pods(route) => self.back(&mut served, &route),
            Route::Slices(ready) => {
                for endpoint in ready {
                    let mine = |candidate: &Candidate<'_>| self.leaves(candidate) && endpoints::is_pod(endpoint, namespace, candidate.pod);
                    match self.candidates.iter().position(mine) {
                        Some(candidate) => served.candidates.push(candidate),
                        None => served.others.push(endpoint.node_name.as_deref().unwrap_or_default()),
                    }
                }
            }
            // No drain takes it away.
            Route::External(_) => served.others.push(""),
            Route::Broken(why) => served.broken = Some(why),
            Route::Unknown(missing) => served.unknown = Some(missing),
        }
        if let Some(missing) = &served.unknown {
            let gap = Gap::unread(format!("who answers behind Service {namespace}/{name}"), missing).of(Class::Calls);
            // Without the Service its pods are not known, but they are in its namespace; endpoints may be anywhere.
            let mine = |candidate: &Candidate<'_>| self.leaves(candidate) && candidate.pod.metadata.namespace == namespace;
            let decisive = missing.kind == Kind::EndpointSlice || self.candidates.iter().any(mine);
            self.gaps.insert(if decisive { gap.decisive() } else { gap });
        }
        self.served.push(served);
        self.served.len() - 1
    }

    fn back(&self, served: &mut Served<'a>, route: &PodRoute<'a>) {
        let pods = match self.snapshot.pods.in_namespace(&served.namespace) {
            Ok(pods) => pods,
            Err(missing) => {
                served.unknown = Some(missing);
                return;
            }
        };
        for pod in pods.iter().filter(|pod| route.answers(pod)) {
            match self.candidate_of(pod).filter(|candidate| self.leaves(&self.candidates[*candidate])) {
                Some(candidate) => served.candidates.push(candidate),
                // Nobody answers on a silent node, though its pods are Ready until the node controller says otherwise.
                None if !self.snapshot.node_answers(pod) => {}
                None => served.others.push(pod.node().unwrap_or_default()),
            }
        }
        for (index, set) in self.sets.iter().enumerate() {
            served.sets[index] = set
                .template
                .is_some_and(|template| route.selects(template.namespace, template.labels, template.spec));
        }
    }

    fn gather_plain_services(&mut self) {
        let namespaces: BTreeSet<&str> = self
            .candidates
            .iter()
            .filter(|candidate| self.leaves(candidate))
            .map(|candidate| candidate.pod.metadata.namespace.as_str())
            .collect();
        let mut wanted = Vec::new();
        for namespace in namespaces {
            // Only information hangs on a plain Service: not reading it changes no verdict.
            let Ok(services) = self.snapshot.services.in_namespace(namespace) else {
                continue;
            };
            for service in services {
                if let Some(route) = PodRoute::of(service).next()
                    && self
                        .candidates
                        .iter()
                        .any(|candidate| self.leaves(candidate) && route.answers(candidate.pod))
                {
                    wanted.push((service.metadata.namespace.clone(), service.metadata.name.clone(), route));
                }
            }
        }
        for (namespace, name, route) in wanted {
            let mut served = Served {
                namespace,
                name,
                port: Some(route.port().port),
                others: Vec::new(),
                candidates: Vec::new(),
                sets: vec![false; self.sets.len()],
                broken: None,
                unknown: None,
            };
            self.back(&mut served, &route);
            self.served.push(served);
            self.plain_services.push(self.served.len() - 1);
        }
    }

    fn gather_budgets(&mut self, props: &'a Props) {
        if self.flags.disable_eviction && self.candidates.is_empty() {
            return;
        }
        let namespaces: BTreeSet<&'a str> = self
            .candidates
            .iter()
            .filter(|candidate| self.removed(candidate) && !eviction::ignores_budgets(candidate.pod))
            .map(|candidate| candidate.pod.metadata.namespace.as_str())
            .collect();
        for namespace in namespaces {
            match self.snapshot.budgets.in_namespace(namespace) {
                Ok(budgets) => {
                    for budget in budgets {
                        self.add_budget(budget);
                    }
                }
                Err(missing) => {
                    let what = format!("which disruption budgets namespace {namespace} has");
                    let gap = Gap::unread(what, &missing).of(Class::Budgets);
                    // Plain deletes go past budgets, which is a finding of its own.
                    let decisive = self.flags.disable_eviction;
                    self.gaps.insert(if decisive { gap.decisive() } else { gap });
                    self.add_unread_budgets(props, namespace);
                }
            }
        }
    }

    fn under(&self, select: &dyn Fn(&Pod) -> bool) -> Vec<usize> {
        (0..self.candidates.len())
            .filter(|index| self.leaves(&self.candidates[*index]) && select(self.candidates[*index].pod))
            .collect()
    }

    fn under_another(&self, budget: &PodDisruptionBudget, pod: &Pod) -> bool {
        let budgets = self.snapshot.budgets.in_namespace(&budget.metadata.namespace);
        budgets.is_ok_and(|budgets| {
            budgets
                .iter()
                .any(|other| other.metadata.name != budget.metadata.name && eviction::selects(other, pod))
        })
    }

    fn add_budget(&mut self, budget: &'a PodDisruptionBudget) {
        let candidates = self.under(&|pod| eviction::selects(budget, pod));
        if candidates.is_empty() {
            return;
        }
        let status = &budget.status;
        let mut entry = Budget {
            budget,
            unread: false,
            others: Vec::new(),
            candidates,
            sets: self
                .sets
                .iter()
                .map(|set| {
                    set.template.is_some_and(|template| {
                        template.namespace == budget.metadata.namespace
                            && budget
                                .spec
                                .selector
                                .as_ref()
                                .is_some_and(|selector| crate::kubernetes::selectors::matches(selector, template.labels))
                    })
                })
                .collect(),
            first: Allowance {
                allowed: status.disruptions_allowed,
                healthy: status.current_healthy,
                desired: status.desired_healthy,
                stale: status.observed_generation < budget.metadata.generation,
                overfull: status.disrupted_pods.len() > eviction::MAX_DISRUPTED_PODS,
            },
            fixed: None,
            neglected: false,
        };
        match self.snapshot.pods.in_namespace(&budget.metadata.namespace) {
            Ok(pods) => {
                for pod in pods.iter().filter(|pod| eviction::selects(budget, pod)) {
                    entry.neglected |= status.observed_generation > 0 && self.under_another(budget, pod);
                    let candidate = self
                        .candidate_of(pod)
                        .is_some_and(|candidate| self.leaves(&self.candidates[candidate]));
                    if !candidate && !self.waiting.iter().any(|waiting| std::ptr::eq(waiting.pod, pod)) {
                        entry.others.push(counted(pod));
                    }
                }
            }
            Err(missing) => entry.fixed = Some(missing),
        }
        if entry.fixed.is_none() {
            let mut pods = entry.others.clone();
            pods.extend(entry.candidates.iter().map(|candidate| counted(self.candidates[*candidate].pod)));
            let waiting = self.waiting.iter().map(|waiting| waiting.pod);
            pods.extend(waiting.filter(|pod| eviction::selects(budget, pod)).map(|pod| counted(pod)));
            entry.fixed = disruption::status(self.snapshot, budget, &pods).err();
        }
        if let Some(missing) = &entry.fixed {
            let meta = &budget.metadata;
            let what = format!("how many pods budget {}/{} wants", meta.namespace, meta.name);
            self.gaps.insert(Gap::unread(what, missing).of(Class::Budgets));
        }
        let index = self.budgets.len();
        for candidate in &entry.candidates {
            self.candidates[*candidate].budgets.push(index);
        }
        self.budgets.push(entry);
    }

    /// Stands in for the budgets of a namespace that were not read.
    fn add_unread_budgets(&mut self, props: &'a Props, namespace: &'a str) {
        if !self.assume.one_at_a_time() && !self.assume.worst(Class::Budgets) {
            return;
        }
        let mut groups: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for index in self.under(&|pod| pod.metadata.namespace == namespace && !eviction::ignores_budgets(pod)) {
            groups.entry(self.candidates[index].workload).or_default().push(index);
        }
        for (workload, candidates) in groups {
            let index = self.budgets.len();
            for candidate in &candidates {
                self.candidates[*candidate].budgets.push(index);
            }
            self.budgets.push(Budget {
                budget: &props.unread_budget,
                unread: true,
                others: Vec::new(),
                candidates,
                sets: self.sets.iter().map(|set| Some(set.workload) == workload).collect(),
                first: Allowance::default(),
                fixed: None,
                neglected: false,
            });
        }
    }

    fn gather_alive(&mut self) {
        // To find them takes a look at every pod.
        let mut holds = self.candidates.iter().flat_map(|candidate| &candidate.holds);
        if !holds.any(|hold| matches!(hold, Hold::Kueue { .. })) {
            return;
        }
        self.kueue = self.alive(&is_kueue);
        self.worker = self.alive(&is_worker);
    }

    fn alive(&self, is: &dyn Fn(&StringMap) -> bool) -> Alive {
        let mut alive = Alive {
            sets: self
                .sets
                .iter()
                .map(|set| set.template.is_some_and(|template| is(template.labels)))
                .collect(),
            unsure: self.snapshot.pods.all().is_err(),
            ..Alive::default()
        };
        // Its controllers start once it is Ready, and one of which none ever was does not become so.
        let running: Vec<&Pod> = self
            .snapshot
            .pods
            .seen()
            .iter()
            .filter(|pod| is(&pod.metadata.labels) && self.snapshot.runs(pod))
            .collect();
        if running.iter().any(|pod| pod.ready()) {
            for pod in running {
                match self.candidate_of(pod).filter(|candidate| self.leaves(&self.candidates[*candidate])) {
                    Some(candidate) => alive.candidates.push(candidate),
                    None => alive.others += 1,
                }
            }
        }
        alive
    }

    /// The turns whose node is not cordoned, since a webhook refuses that before anything is evicted.
    pub fn uncordoned(&self) -> Vec<usize> {
        let start = super::state::State::new(self, true, false);
        (0..self.cordon_hooks.len())
            .filter(|turn| start.refused(self, &self.cordon_hooks[*turn]))
            .collect()
    }

    /// Whether the cordon of some node fails.
    pub fn cordon_fails(&self) -> bool {
        !self.uncordoned().is_empty()
    }

    /// Webhooks called for a request that fails when they do, and whether the call is certain.
    fn called(&mut self, request: &Request<'_>) -> Vec<(usize, bool)> {
        let mut result = Vec::new();
        for (index, hook) in self.hooks.iter().enumerate() {
            if !admission::fails_closed(hook.configured.webhook) {
                continue;
            }
            match admission::called(self.snapshot, hook.configured.webhook, request) {
                Called::Yes => result.push((index, true)),
                Called::No => {}
                Called::Possibly(_) | Called::Unknown(_) => result.push((index, false)),
            }
        }
        for (index, _) in result.iter().filter(|(_, certain)| !certain) {
            let hook = &self.hooks[*index];
            let may_fail = match hook.served.map(|served| &self.served[served]) {
                Some(served) => served.broken.is_some() || served.unknown.is_some() || served.others.is_empty(),
                None => hook.url.is_none(),
            };
            if may_fail {
                let what = format!(
                    "whether webhook {} is called for the pods of the drain",
                    hook.configured.webhook.name
                );
                let why = "its matchConditions or namespaces cannot be evaluated here, and it may have no endpoint then";
                self.gaps.insert(Gap::undecided(what, why).of(Class::Calls));
            }
        }
        result
    }

    fn gather_admission(&mut self) {
        let none = StringMap::new();
        self.cordon_hooks = (0..self.nodes.len()).map(|turn| self.called_for_cordon(turn)).collect();
        for index in 0..self.sets.len() {
            let Some(template) = self.sets[index].template else { continue };
            if self.sets[index].when.is_none() {
                continue;
            }
            self.sets[index].create_hooks = self.called(&pod_request(Operation::Create, "", template.namespace, template.labels));
            self.sets[index].bind_hooks = self.called(&pod_request(Operation::Create, "binding", template.namespace, &none));
            self.sets[index].status_hooks = self.called(&pod_request(Operation::Update, "status", template.namespace, template.labels));
            self.sets[index].slice_hooks = self.called(&Request {
                group: "discovery.k8s.io",
                resource: "endpointslices",
                ..pod_request(Operation::Update, "", template.namespace, &none)
            });
            let mut obstacles = creation::obstacles(self.snapshot, template.namespace, template.labels, template.spec);
            obstacles.extend(self.ration(index, template));
            self.block(index, obstacles);
        }
        for index in 0..self.candidates.len() {
            let pod = self.candidates[index].pod;
            if !self.leaves(&self.candidates[index]) {
                continue;
            }
            let namespace = &pod.metadata.namespace;
            if self.candidates[index].victim {
                // The scheduler writes why, and deletes it (`pkg/scheduler/framework/preemption/executor.go`).
                let labels = &pod.metadata.labels;
                let mut hooks = self.called(&pod_request(Operation::Update, "status", namespace, labels));
                hooks.extend(self.called(&pod_request(Operation::Delete, "", namespace, labels)));
                self.candidates[index].eviction_hooks = hooks;
            } else if !self.flags.disable_eviction {
                self.candidates[index].eviction_hooks = self.called(&pod_request(Operation::Create, "eviction", namespace, &none));
                // An eviction that costs an allowance writes the budget's status.
                if let [budget] = self.candidates[index].budgets[..]
                    && pod.ready()
                    && !crate::kubernetes::eviction::ignores_budgets(pod)
                {
                    let hooks = self.called(&Request {
                        group: "policy",
                        resource: "poddisruptionbudgets",
                        ..pod_request(Operation::Update, "status", namespace, &self.budgets[budget].budget.metadata.labels)
                    });
                    self.candidates[index].eviction_hooks.extend(hooks);
                }
            } else {
                self.candidates[index].eviction_hooks = self.called(&pod_request(Operation::Delete, "", namespace, &pod.metadata.labels));
            }
            self.candidates[index].update_hooks = self.called(&pod_request(Operation::Update, "", namespace, &pod.metadata.labels));
            let mut ending = self.called(&pod_request(Operation::Update, "status", namespace, &pod.metadata.labels));
            ending.extend(self.called(&pod_request(Operation::Delete, "", namespace, &pod.metadata.labels)));
            self.candidates[index].ending_hooks = ending;
            self.note_policies(index);
        }
    }

    /// Notes policies that may deny what takes a pod away: its eviction, what the kubelet writes once it has ended, and its
    /// deletion.
    fn note_policies(&mut self, index: usize) {
        let none = StringMap::new();
        let candidate = &self.candidates[index];
        let (namespace, labels) = (&candidate.pod.metadata.namespace, &candidate.pod.metadata.labels);
        let mut requests = vec![
            ("the end of", pod_request(Operation::Update, "status", namespace, labels)),
            ("the deletion of", pod_request(Operation::Delete, "", namespace, labels)),
        ];
        if !self.flags.disable_eviction && !candidate.victim {
            requests.push(("the eviction of", pod_request(Operation::Create, "eviction", namespace, &none)));
        }
        if !candidate.pod.metadata.finalizers.is_empty() {
            requests.push(("an update of", pod_request(Operation::Update, "", namespace, labels)));
        }
        let (mut gaps, mut eviction, mut end) = (Vec::new(), false, false);
        for (what, request) in requests {
            let denied = if what.starts_with("the eviction") {
                &mut eviction
            } else {
                &mut end
            };
            for obstacle in creation::may_deny(self.snapshot, &request, &format!("{what} pods of namespace {namespace}")) {
                match obstacle {
                    Obstacle::Refused(_) => {}
                    Obstacle::Unread { what, missing } => gaps.push(Gap::unread(what, &missing).of(Class::Calls)),
                    Obstacle::Undecided { what, why } => gaps.push(Gap::undecided(what, why).of(Class::Calls)),
                }
                *denied = true;
            }
        }
        self.gaps.extend(gaps);
        self.candidates[index].may_be_denied = eviction;
        self.candidates[index].end_may_be_denied = end;
    }

    /// Webhooks called for the patch that cordons a node; none where it is cordoned already.
    fn called_for_cordon(&mut self, turn: usize) -> Vec<(usize, bool)> {
        let node = self.placement.nodes()[self.nodes[turn]].node();
        if node.spec.unschedulable {
            return Vec::new();
        }
        self.called(&Request {
            resource: "nodes",
            namespace: None,
            ..pod_request(Operation::Update, "", "", &node.metadata.labels)
        })
    }

    /// Records what stands against the replacements of a set.
    fn block(&mut self, index: usize, obstacles: Vec<Obstacle>) {
        let refused = obstacles.iter().find_map(|obstacle| match obstacle {
            Obstacle::Refused(why) => Some(why.clone()),
            _ => None,
        });
        // What is refused anyway does not hang on anything else.
        if refused.is_some() {
            self.sets[index].creation_refused = refused;
            return;
        }
        for obstacle in obstacles {
            let gap = match obstacle {
                Obstacle::Refused(_) => continue,
                Obstacle::Unread { what, missing } => Gap::unread(what, &missing),
                Obstacle::Undecided { what, why } => Gap::undecided(what, why),
            };
            self.sets[index]
                .creation_gap
                .get_or_insert_with(|| format!("{}: {}", gap.what, gap.why));
            self.gaps.insert(gap.of(Class::Replacements));
        }
    }

    /// Puts the replacements of a set under the quotas of their namespace; what these refuse, or may, for good.
    fn ration(&mut self, index: usize, template: Incoming<'a>) -> Vec<Obstacle> {
        let namespace = template.namespace;
        let quotas = match quota::quotas(self.snapshot, namespace) {
            Ok(quotas) => quotas,
            Err(missing) => {
                let what = format!("whether a quota of namespace {namespace} refuses replacements");
                return vec![Obstacle::Unread { what, missing }];
            }
        };
        if quotas.is_empty() {
            return Vec::new();
        }
        let charge = match Charge::of(template.spec, false) {
            Ok(charge) => charge,
            Err(error) => return vec![quota::unknown(namespace, &quotas[0].metadata.name, error.to_string())],
        };
        self.sets[index].charge = charge;
        let mut obstacles = Vec::new();
        for found in quotas {
            let name = &found.metadata.name;
            let read = match Quota::new(found) {
                Ok(read) => read,
                Err(why) => {
                    obstacles.push(quota::unknown(namespace, name, why));
                    continue;
                }
            };
            match read.counts(template.spec) {
                Some(false) => continue,
                Some(true) => {}
                None => obstacles.push(quota::unknown(namespace, name, "whether its scopes hold cannot be told")),
            }
            obstacles.extend(read.unstated(template.spec).map(Obstacle::Refused));
            let known = self
                .quotas
                .iter()
                .position(|known| known.quota.namespace() == namespace && known.quota.name() == name);
            let position = known.unwrap_or_else(|| {
                let candidates = self.charged(&read, namespace);
                self.quotas.push(Rationed {
                    quota: read,
                    sets: vec![false; self.sets.len()],
                    candidates,
                });
                self.quotas.len() - 1
            });
            self.quotas[position].sets[index] = true;
        }
        obstacles
    }

    /// The candidates that a quota charges. One that is overdue may be charged no more, and so gives nothing back.
    fn charged(&self, quota: &Quota<'_>, namespace: &str) -> Vec<(usize, Charge)> {
        let overdue = |pod: &Pod| match (pod.metadata.deletion_timestamp.0, self.snapshot.observed_at) {
            (Some(end), Some(now)) => now > end,
            (end, None) => end.is_some(),
            (None, _) => false,
        };
        (0..self.candidates.len())
            .filter(|index| self.leaves(&self.candidates[*index]))
            .filter_map(|index| {
                let pod = self.candidates[index].pod;
                let charged = pod.metadata.namespace == namespace && !overdue(pod) && quota.counts(&pod.spec) == Some(true);
                let charge = Charge::of(&pod.spec, pod.finished()).ok();
                charge.filter(|_| charged).map(|charge| (index, charge))
            })
            .collect()
    }

    fn gather_holds(&mut self) {
        for index in 0..self.candidates.len() {
            let candidate = &self.candidates[index];
            if !self.leaves(candidate) {
                continue;
            }
            let pod = candidate.pod;
            let node = self.placement.nodes()[candidate.node].node();
            let mut holds = Vec::new();
            // With a grace period of 0 and plain deletes the API server removes the object by itself.
            let at_once = self.flags.disable_eviction && self.flags.grace_period == 0 && !candidate.victim;
            // Of a node declared out of service the pod garbage collector removes terminating pods.
            let lost = node.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE);
            if !node.ready() && !lost && !at_once && !pod.finished() {
                holds.push(Hold::Node);
            }
            let overdue = match (pod.metadata.deletion_timestamp.0, self.snapshot.observed_at) {
                (Some(end), Some(now)) => now > end,
                // Files without a capture time do not tell.
                (Some(_), None) => true,
                (None, _) => false,
            };
            if overdue && pod.metadata.finalizers.is_empty() && node.ready() {
                holds.push(Hold::Overdue);
            }
            // A finished pod is removed at once (`pkg/registry/core/pod/strategy.go`, CheckGracefulDelete).
            if !candidate.ending_hooks.is_empty() && !at_once && !pod.finished() {
                holds.push(Hold::Deletion);
            }
            if candidate.end_may_be_denied && !at_once && !pod.finished() {
                holds.push(Hold::Policy);
            }
            let tenant = tenants::tenant(pod);
            for finalizer in &pod.metadata.finalizers {
                let hold = match finalizer.as_str() {
                    job::TRACKING_FINALIZER if matches!(candidate.owner, Owner::Gone(_)) => Hold::Nobody(finalizer.clone()),
                    job::TRACKING_FINALIZER => Hold::JobTracking,
                    "kueue.x-k8s.io/managed" => match tenant.as_ref().map(|tenant| tenant.release) {
                        Some(Release::WorkerAndKueue(Sweep::Present)) => Hold::Kueue { worker: true },
                        Some(Release::WorkerAndKueue(Sweep::Absent)) => Hold::Nobody(finalizer.clone()),
                        Some(Release::WorkerAndKueue(Sweep::Unsure)) => Hold::Unfamiliar(finalizer.clone()),
                        _ => Hold::Kueue { worker: false },
                    },
                    _ => Hold::Unfamiliar(finalizer.clone()),
                };
                holds.push(hold);
            }
            if let Err(missing) = self.snapshot.pods.all()
                && holds.iter().any(|hold| matches!(hold, Hold::Kueue { .. }))
            {
                self.gaps
                    .insert(Gap::unread("whether Kueue and the worker run off the drained nodes", &missing).of(Class::Calls));
            }
            self.candidates[index].holds = holds;
        }
    }

    /// The state of a budget, by the pods under it.
    pub(super) fn computed(&self, budget: &Budget<'a>, pods: &[Counted<'a>]) -> Allowance {
        let mut now = Allowance {
            stale: false,
            ..budget.first
        };
        match disruption::status(self.snapshot, budget.budget, pods) {
            Ok(status) => {
                now.allowed = status.allowed();
                if let Status::Computed { healthy, desired, .. } = status {
                    now.healthy = healthy;
                    now.desired = desired;
                }
            }
            // Without the controllers' scale the numbers that were read are all there is.
            Err(_) => return budget.first,
        }
        now
    }
}

fn owner_name<'b>(owner: &'b Owner<'_>) -> &'b str {
    match owner {
        Owner::ReplicaSet { set, .. } => &set.metadata.name,
        Owner::StatefulSet(set) => &set.metadata.name,
        Owner::Job(job) => &job.metadata.name,
        _ => "",
    }
}

/// A pod as a budget counts it.
pub(super) fn counted(pod: &Pod) -> Counted<'_> {
    Counted {
        namespace: &pod.metadata.namespace,
        name: &pod.metadata.name,
        controller: pod.metadata.controller(),
        healthy: pod.ready() && !pod.metadata.terminating(),
    }
}

fn pod_request<'b>(operation: Operation, subresource: &'b str, namespace: &'b str, labels: &'b StringMap) -> Request<'b> {
    Request {
        operation,
        group: "",
        version: "v1",
        resource: "pods",
        subresource,
        namespace: Some(namespace),
        labels,
    }
}

fn label<'b>(labels: &'b StringMap, key: &str) -> &'b str {
    labels.get(key).map_or("", String::as_str)
}

fn is_kueue(labels: &StringMap) -> bool {
    label(labels, "app.kubernetes.io/name") == "kueue" && label(labels, "control-plane") == "controller-manager"
}

fn is_worker(labels: &StringMap) -> bool {
    label(labels, "app.kubernetes.io/part-of") == "gpustack-operator"
        && matches!(label(labels, "app.kubernetes.io/component"), "operator" | "worker")
}
