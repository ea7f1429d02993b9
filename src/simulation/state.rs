//! The overlay over the snapshot: who is gone, who waits, who landed, what budgets have left.

use std::collections::BTreeSet;

use crate::cluster::objects::Pod;
use crate::kubernetes::creation::quota::Charge;
use crate::kubernetes::disruption::Counted;
use crate::kubernetes::eviction::Allowance;
use crate::kubernetes::host_ports;
use crate::kubernetes::preemption;
use crate::kubernetes::scheduling::{self, Decision, Incoming, Occupant, Placement};
use crate::kubernetes::workloads::{Owner, When, job, replica_set, stateful_set};
use crate::report::document::DrainOutcome;

use super::assume::Class;
use super::cast::{Alive, Cast, Hold, counted};

/// What became of a pod on a drained node. The number is the round, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Old {
    /// As before.
    Here,
    /// Its eviction was accepted, and it has not ended.
    Terminating(u32),
    /// It is gone.
    Gone(u32),
    /// Its eviction ended with an error.
    Failed(u32),
}

impl Old {
    /// The round in which its removal was asked for.
    pub fn round(self) -> Option<u32> {
        match self {
            Self::Here => None,
            Self::Terminating(round) | Self::Gone(round) | Self::Failed(round) => Some(round),
        }
    }
}

/// How far a replacement has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Progress {
    /// Its creation is refused, for now or for good.
    NotCreated,
    /// A gate holds it.
    Gated,
    /// It has no node.
    Pending,
    /// It waits for pods of a lower priority to make room for it.
    Nominated {
        /// The node, as an index of the placement.
        node: usize,
    },
    /// It has a node, and crash-loops there or not.
    Placed {
        /// The node, as an index of the placement.
        node: usize,
        /// Whether a port that it binds is taken there.
        crashes: bool,
    },
}

impl Progress {
    /// Whether it has no node yet.
    pub fn waits(self) -> bool {
        matches!(self, Self::Pending | Self::Nominated { .. })
    }
}

/// Who was preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preempted {
    /// A candidate.
    Candidate(usize),
    /// A replacement, of a set; another one waits in its place.
    Replacement(usize),
}

/// Who is to be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Victim {
    /// Index of a candidate.
    Candidate(usize),
    /// Index among the replacements.
    New(usize),
}

/// A replacement, or a pod that was waiting for a node before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct New {
    /// Index of its set.
    pub set: usize,
    /// The candidate that it replaces.
    pub replaces: Option<usize>,
    /// Index among the pods that were waiting before.
    pub waiting: Option<usize>,
    /// How far it has come.
    pub progress: Progress,
    /// The nodes that it may be on, where the choice makes no difference later.
    pub nodes: Vec<usize>,
    /// Whether it was certainly Ready when the latest round began.
    pub sure: bool,
    /// Whether the kubelet could write its status.
    pub reported: bool,
    /// Whether it could be written among the endpoints of its Services.
    pub published: bool,
    /// Whether the scheduler tries it again.
    pub retry: Retry,
}

/// When the scheduler tries a pod again that found no node (`pkg/scheduler/backend/queue/scheduling_queue.go`): at an event
/// by which a filter that refused it may let it pass, else after five minutes (flushUnschedulablePodsLeftover).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retry {
    /// At once when something changes.
    #[default]
    AtOnce,
    /// It was tried while pods that are going were still there, and that they go is no event for it.
    Tried,
    /// So it waits, for up to five minutes.
    Waits,
}

/// The lowest count over time: with every replacement Ready in time, and with only those that surely were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Low {
    /// Not below this on the luckiest timing.
    pub certain: i64,
    /// As low as this on the unluckiest.
    pub possible: i64,
}

/// One moment of the drain.
#[derive(Clone, Debug)]
pub struct State<'a> {
    /// Who is on which node.
    pub placement: Placement<'a>,
    /// Whose turn it is.
    pub turn: usize,
    /// Rounds done in this turn.
    pub round: u32,
    /// The candidates.
    pub old: Vec<Old>,
    /// The replacements.
    pub new: Vec<New>,
    /// The budgets.
    pub allowances: Vec<Allowance>,
    /// Lowest number of Ready pods of each workload.
    pub workload_lows: Vec<Low>,
    /// Lowest number of endpoints of each thing served.
    pub served_lows: Vec<Low>,
    /// How each node ended so far.
    pub ended: Vec<DrainOutcome>,
    /// Whether what others may do without us knowing is done: unfamiliar finalizers removed, pods that somebody was
    /// about to delete left alone.
    pub others_act: bool,
    /// Whether a terminating backend still answers when the other pods of its round end, and when those that replace
    /// them are created and bound. That it answers until one of them is Ready is not to be expected: it leaves the endpoints
    /// at once, and a container takes longer to start.
    pub lingers: bool,
    /// Whose replacements a quota lets in last that has no room for all: who comes first is chance.
    pub last: Option<usize>,
    /// By which set's replacements who was preempted.
    pub preempted: BTreeSet<(usize, Preempted)>,
}

/// What distinguishes one moment from another.
pub type Key = (
    usize,
    u32,
    Vec<Old>,
    Vec<New>,
    Vec<Allowance>,
    Vec<Low>,
    Vec<Low>,
    Vec<DrainOutcome>,
    [bool; 2],
    Option<usize>,
    BTreeSet<(usize, Preempted)>,
);

impl<'a> State<'a> {
    /// The moment before the drain, with the cordons in place.
    pub fn new(cast: &Cast<'a>, others_act: bool, lingers: bool) -> Self {
        let low = |count| Low {
            certain: count,
            possible: count,
        };
        let mut state = Self {
            placement: cast.placement.clone(),
            turn: 0,
            round: 0,
            old: vec![Old::Here; cast.candidates.len()],
            new: (0..cast.waiting.len())
                .map(|index| New {
                    set: cast.waiting[index].set,
                    replaces: None,
                    waiting: Some(index),
                    progress: if crate::kubernetes::scheduling::gated(&cast.waiting[index].pod.spec) {
                        Progress::Gated
                    } else {
                        Progress::Pending
                    },
                    nodes: Vec::new(),
                    sure: false,
                    reported: false,
                    published: false,
                    retry: Retry::AtOnce,
                })
                .collect(),
            allowances: Vec::new(),
            workload_lows: cast.workloads.iter().map(|workload| low(workload.ready_before)).collect(),
            served_lows: cast.served.iter().map(|served| low(served.before())).collect(),
            ended: Vec::new(),
            others_act,
            lingers,
            last: None,
            preempted: BTreeSet::new(),
        };
        for (turn, hooks) in cast.cordon_hooks.iter().enumerate() {
            // kubectl only prints that a cordon failed.
            if state.refused(cast, hooks) {
                state.placement.uncordon(cast.nodes[turn]);
            }
        }
        state.refill(cast);
        state
    }

    /// What distinguishes it.
    pub fn key(&self) -> Key {
        // Which of several alike pods a replacement stands for makes no difference.
        let mut new: Vec<New> = self
            .new
            .iter()
            .map(|new| New {
                replaces: new.replaces.map(|_| 0),
                ..new.clone()
            })
            .collect();
        new.sort();
        (
            self.turn,
            self.round,
            self.old.clone(),
            new,
            self.allowances.clone(),
            self.workload_lows.clone(),
            self.served_lows.clone(),
            self.ended.clone(),
            [self.others_act, self.lingers],
            self.last,
            self.preempted.clone(),
        )
    }

    /// Whether a replacement is Ready, once it had the time.
    pub fn ready(&self, cast: &Cast<'a>, new: &New) -> bool {
        match new.progress {
            Progress::Placed { node, crashes: false } => {
                // On a node whose kubelet does not answer nothing starts.
                self.placement.nodes()[node].node().ready()
                    && new.reported
                    && cast.sets[new.set].becomes_ready
                    && !self.waits_for_volume(cast, new.set, node)
            }
            _ => false,
        }
    }

    /// Lets kubelets write the status of what runs, and the endpoint controller that it answers, where no webhook refuses
    /// that; whether any was written.
    pub fn report(&mut self, cast: &Cast<'a>) -> bool {
        let reportable: Vec<usize> = (0..self.new.len())
            .filter(|index| {
                let new = &self.new[*index];
                !new.reported && matches!(new.progress, Progress::Placed { .. }) && !self.refused(cast, &cast.sets[new.set].status_hooks)
            })
            .collect();
        for index in &reportable {
            self.new[*index].reported = true;
        }
        let publishable: Vec<usize> = (0..self.new.len())
            .filter(|index| {
                let new = &self.new[*index];
                !new.published && new.reported && !self.refused(cast, &cast.sets[new.set].slice_hooks)
            })
            .collect();
        for index in &publishable {
            self.new[*index].published = true;
        }
        !reportable.is_empty() || !publishable.is_empty()
    }

    /// Whether a volume of a replacement is still attached to another node, where another pod uses it too.
    fn waits_for_volume(&self, cast: &Cast<'a>, set: usize, node: usize) -> bool {
        let entry = &cast.sets[set];
        let namespace = entry.template.map_or("", |template| template.namespace);
        entry.single_node.iter().any(|(claim, certain)| {
            (*certain || cast.assume.worst(Class::Nodes))
                && self
                    .placement
                    .nodes()
                    .iter()
                    .enumerate()
                    .any(|(other, state)| other != node && state.uses_claim(namespace, claim))
        })
    }

    fn ready_new(&self, cast: &Cast<'a>, only_sure: bool, belongs: impl Fn(&New) -> bool) -> i64 {
        super::cast::count(
            self.new
                .iter()
                .filter(|new| belongs(new) && (new.sure || !only_sure) && self.ready(cast, new))
                .count(),
        )
    }

    /// Ready pods of a workload; only replacements that surely were Ready in time, if wanted.
    pub fn workload_ready(&self, cast: &Cast<'a>, workload: usize, only_sure: bool) -> i64 {
        let here = cast.candidates.iter().zip(&self.old).filter(|(candidate, old)| {
            candidate.workload == Some(workload) && **old == Old::Here && candidate.pod.ready() && !candidate.pod.metadata.terminating()
        });
        let stay = cast.workloads[workload].ready_staying;
        stay + super::cast::count(here.count()) + self.ready_new(cast, only_sure, |new| cast.sets[new.set].workload == workload)
    }

    /// Endpoints of something served.
    pub fn endpoints(&self, cast: &Cast<'a>, served: usize, only_sure: bool) -> i64 {
        let entry = &cast.served[served];
        let here = entry.candidates.iter().filter(|candidate| self.stands(**candidate)).count();
        super::cast::count(entry.others.len() + here) + self.ready_new(cast, only_sure, |new| entry.sets[new.set] && new.published)
    }

    /// Whether a candidate still works: neither ending nor gone.
    fn stands(&self, candidate: usize) -> bool {
        matches!(self.old[candidate], Old::Here | Old::Failed(_))
    }

    fn alive(&self, cast: &Cast<'a>, alive: &Alive) -> bool {
        alive.others > 0
            || alive.unsure && !cast.assume.worst(Class::Calls)
            || alive.candidates.iter().any(|candidate| self.stands(*candidate))
            || self.new.iter().any(|new| {
                alive.sets[new.set]
                    && cast.sets[new.set].becomes_ready
                    && matches!(new.progress, Progress::Placed { node, crashes: false } if self.placement.nodes()[node].node().ready())
            })
    }

    /// Whether calls to a webhook fail now.
    pub fn down(&self, cast: &Cast<'a>, hook: usize) -> bool {
        let hook = &cast.hooks[hook];
        match hook.served {
            Some(served) if cast.served[served].unknown.is_some() => cast.assume.worst(Class::Calls),
            Some(served) => cast.served[served].broken.is_some() || self.endpoints(cast, served, false) == 0,
            None => hook.url.is_none(),
        }
    }

    /// Whether one of the webhooks refuses now; those that are only possibly called count in the worst case.
    pub fn refused(&self, cast: &Cast<'a>, hooks: &[(usize, bool)]) -> bool {
        hooks
            .iter()
            .any(|(hook, certain)| (*certain || cast.assume.worst(Class::Calls)) && self.down(cast, *hook))
    }

    /// Whether what holds a pod lets it go.
    pub fn lets_go(&self, cast: &Cast<'a>, candidate: usize, hold: &Hold) -> bool {
        let admitted = || !self.refused(cast, &cast.candidates[candidate].update_hooks);
        match hold {
            Hold::JobTracking => admitted(),
            Hold::Deletion => !self.end_refused(cast, candidate),
            Hold::Kueue { worker: true } => self.alive(cast, &cast.kueue) && self.alive(cast, &cast.worker) && admitted(),
            // Kueue removes it as soon as it sees the deletion, not only once the pod has ended
            // (`pkg/controller/jobs/pod/pod_controller.go`, Load): told to end in the same round, it may still be in time.
            Hold::Kueue { worker: false } => {
                let hooks = &cast.candidates[candidate].update_hooks;
                (self.alive(cast, &cast.kueue) && admitted())
                    || (self.ends_now(&cast.kueue.candidates) && !self.refused_at_once(cast, hooks))
            }
            Hold::Unfamiliar(_) | Hold::Overdue => self.others_act,
            Hold::Policy => !cast.assume.worst(Class::Calls),
            Hold::Nobody(_) | Hold::Node => false,
        }
    }

    /// Computes the budgets anew, as the disruption controller does.
    pub fn refill(&mut self, cast: &Cast<'a>) {
        self.allowances = (0..cast.budgets.len()).map(|index| self.allowance(cast, index)).collect();
    }

    /// Whether a pod that is under this budget alone has been evicted.
    fn moved(&self, cast: &Cast<'a>, budget: usize) -> bool {
        cast.budgets[budget].candidates.iter().any(|candidate| {
            cast.candidates[*candidate].budgets.len() == 1 && matches!(self.old[*candidate], Old::Terminating(_) | Old::Gone(_))
        })
    }

    fn allowance(&self, cast: &Cast<'a>, index: usize) -> Allowance {
        let budget = &cast.budgets[index];
        if budget.unread {
            // One pod may be missing at a time, or none ever.
            let missing = budget
                .candidates
                .iter()
                .filter(|candidate| !matches!(self.old[**candidate], Old::Here | Old::Failed(_)))
                .count();
            let back = self
                .new
                .iter()
                .filter(|new| budget.sets[new.set] && new.replaces.is_some() && self.ready(cast, new))
                .count();
            let allowed = i64::from(cast.assume.one_at_a_time() && missing <= back);
            return Allowance {
                allowed,
                ..Allowance::default()
            };
        }
        if budget.fixed.is_some() {
            let used = budget
                .candidates
                .iter()
                .filter(|candidate| !matches!(self.old[**candidate], Old::Here | Old::Failed(_)))
                .count();
            let back = match cast.assume.worst(Class::Budgets) {
                true => 0,
                false => self
                    .new
                    .iter()
                    .filter(|new| budget.sets[new.set] && new.replaces.is_some() && self.ready(cast, new))
                    .count(),
            };
            let allowed = budget.first.allowed - super::cast::count(used) + super::cast::count(back);
            return Allowance {
                allowed: allowed.clamp(0, budget.first.allowed.max(0)),
                ..budget.first
            };
        }
        // Nobody looks at it again before a pod changes that is under it alone.
        if budget.neglected && !budget.first.stale && !self.moved(cast, index) {
            return budget.first;
        }
        let mut pods = budget.others.clone();
        for candidate in &budget.candidates {
            let pod = counted(cast.candidates[*candidate].pod);
            match self.old[*candidate] {
                Old::Gone(_) => {}
                Old::Terminating(_) => pods.push(Counted { healthy: false, ..pod }),
                Old::Here | Old::Failed(_) => pods.push(pod),
            }
        }
        // Who was about to be deleted counts again two minutes later, if it is still there (`buildDisruptedPodMap`).
        if !self.others_act {
            for pod in &mut pods {
                pod.healthy &= !budget.budget.status.disrupted_pods.contains_key(pod.name);
            }
        }
        for new in self.new.iter().filter(|new| new.progress != Progress::NotCreated) {
            match (new.replaces, new.waiting) {
                (Some(candidate), _) if budget.sets[new.set] => {
                    let pod = cast.candidates[candidate].pod;
                    pods.push(Counted {
                        healthy: self.ready(cast, new),
                        ..counted(pod)
                    });
                }
                (_, Some(waiting)) if crate::kubernetes::eviction::selects(budget.budget, cast.waiting[waiting].pod) => {
                    pods.push(Counted {
                        healthy: self.ready(cast, new),
                        ..counted(cast.waiting[waiting].pod)
                    });
                }
                _ => {}
            }
        }
        cast.computed(budget, &pods)
    }

    /// Records how low things are now.
    pub fn note_lows(&mut self, cast: &Cast<'a>) {
        for index in 0..cast.workloads.len() {
            let (certain, possible) = (self.workload_ready(cast, index, false), self.workload_ready(cast, index, true));
            lower(&mut self.workload_lows[index], certain, possible);
        }
        for index in 0..cast.served.len() {
            let (certain, possible) = (self.endpoints(cast, index, false), self.endpoints(cast, index, true));
            lower(&mut self.served_lows[index], certain, possible);
        }
    }

    /// Lets terminating pods go that nothing holds any more; whether any went.
    pub fn release(&mut self, cast: &Cast<'a>) -> bool {
        // What still answers while it ends answers for all that end with it.
        let mut going: Vec<(usize, u32)> = (0..self.old.len())
            .filter(|index| cast.candidates[*index].holds.iter().all(|hold| self.lets_go(cast, *index, hold)))
            .filter_map(|index| match self.old[index] {
                Old::Terminating(round) => Some((index, round)),
                _ => None,
            })
            .collect();
        // And for what is created once these are gone.
        let answers = |index: usize| (0..cast.hooks.len()).any(|hook| backends(cast, hook).contains(&index));
        if self.lingers && going.iter().any(|(index, _)| !answers(*index)) {
            going.retain(|(index, _)| !answers(*index));
        }
        for (index, round) in &going {
            let candidate = &cast.candidates[*index];
            self.old[*index] = Old::Gone(*round);
            self.placement
                .remove(candidate.node, &candidate.pod.metadata.namespace, &candidate.pod.metadata.name);
        }
        !going.is_empty() | self.take_room(cast)
    }

    /// Puts pods where others have made room for them; whether there were any.
    fn take_room(&mut self, cast: &Cast<'a>) -> bool {
        let mut any = false;
        for index in 0..self.new.len() {
            let Progress::Nominated { node } = self.new[index].progress else {
                continue;
            };
            let Some(occupant) = self.occupant(cast, index) else { continue };
            let refused = self.refused_at_once(cast, &cast.sets[self.new[index].set].bind_hooks);
            self.placement.remove(node, occupant.namespace, occupant.name);
            let incoming = Incoming {
                namespace: occupant.namespace,
                labels: occupant.labels,
                spec: occupant.spec,
            };
            if !refused && Self::takes(cast, &scheduling::decide_on(&self.placement, &incoming, node)) {
                self.bind(cast, index, node, vec![node]);
                any = true;
            } else {
                self.placement.bind(node, occupant);
            }
        }
        any
    }

    /// Makes a pod wait on a node for the end of others; those that are replacements themselves wait for another node.
    pub fn preempt(&mut self, cast: &Cast<'a>, index: usize, node: usize, victims: &[Victim]) {
        let set = self.new[index].set;
        for victim in victims {
            match *victim {
                Victim::Candidate(victim) => {
                    let candidate = &cast.candidates[victim];
                    self.old[victim] = Old::Terminating(self.round);
                    let meta = &candidate.pod.metadata;
                    self.placement.terminate(node, &meta.namespace, &meta.name);
                    self.preempted.insert((set, Preempted::Candidate(victim)));
                }
                Victim::New(victim) => {
                    if let Some(occupant) = self.occupant(cast, victim) {
                        self.placement.remove(node, occupant.namespace, occupant.name);
                    }
                    self.preempted.insert((set, Preempted::Replacement(self.new[victim].set)));
                    let new = &mut self.new[victim];
                    new.progress = Progress::Pending;
                    new.nodes.clear();
                    (new.sure, new.reported, new.published) = (false, false, false);
                }
            }
        }
        if let Some(occupant) = self.occupant(cast, index) {
            self.placement.bind(node, occupant);
        }
        self.new[index].progress = Progress::Nominated { node };
        self.new[index].nodes = vec![node];
        self.note_lows(cast);
    }

    /// Creates the replacements that controllers create now; whether anything changed.
    pub fn create(&mut self, cast: &Cast<'a>) -> bool {
        let mut any = self.end_jobs(cast);
        for set in 0..cast.sets.len() {
            while let Some(candidate) = self.next_to_replace(cast, set) {
                self.new.push(New {
                    set,
                    replaces: Some(candidate),
                    waiting: None,
                    progress: Progress::NotCreated,
                    nodes: Vec::new(),
                    sure: false,
                    reported: false,
                    published: false,
                    retry: Retry::AtOnce,
                });
                any = true;
            }
        }
        let mut order: Vec<usize> = (0..self.new.len()).collect();
        order.sort_by_key(|index| self.last == Some(self.new[*index].set));
        for index in order {
            let set = &cast.sets[self.new[index].set];
            let waits = set.ordered
                && self.new[index]
                    .replaces
                    .is_some_and(|candidate| !self.in_order(cast, self.new[index].set, candidate));
            let refused = self.creation_refused(cast, self.new[index].set);
            if self.new[index].progress != Progress::NotCreated || waits || refused {
                continue;
            }
            self.new[index].progress = if set.gated { Progress::Gated } else { Progress::Pending };
            if let Some(node) = set.pinned.and_then(|node| self.placement.index(node)) {
                self.bind(cast, index, node, vec![node]);
            }
            any = true;
        }
        any
    }

    /// Ends a pod whose removal was accepted in this round.
    pub fn evict(&mut self, cast: &Cast<'a>, candidate: usize) {
        self.old[candidate] = Old::Terminating(self.round);
        let entry = &cast.candidates[candidate];
        let meta = &entry.pod.metadata;
        self.placement.terminate(entry.node, &meta.namespace, &meta.name);
    }

    /// Puts a replacement on a node, one of those that it may be on.
    pub fn bind(&mut self, cast: &Cast<'a>, index: usize, node: usize, nodes: Vec<usize>) {
        let crashes = self.crashes(cast, index, node);
        if let Some(occupant) = self.occupant(cast, index) {
            self.placement.bind(node, occupant);
        }
        self.new[index].progress = Progress::Placed { node, crashes };
        self.new[index].nodes = nodes;
        self.new[index].retry = Retry::AtOnce;
        // A pod with a node is an event for those that want to be near it.
        for other in (0..self.new.len())
            .filter(|other| self.new[*other].retry != Retry::AtOnce)
            .collect::<Vec<_>>()
        {
            if let (Some(placed), Some(waits)) = (self.occupant(cast, index), self.occupant(cast, other))
                && scheduling::wants_to_be_near(&self.placement, &waits, &placed)
            {
                self.new[other].retry = Retry::AtOnce;
            }
        }
    }

    /// Notes which pods that find no node are not tried again by the scheduler when those that are ending are gone: no
    /// filter that refused them has their deletion among its events.
    pub fn note_tries(&mut self, cast: &Cast<'a>) {
        if !self.old.iter().any(|old| matches!(old, Old::Terminating(_))) {
            return;
        }
        for index in 0..self.new.len() {
            if self.new[index].progress != Progress::Pending || self.new[index].retry != Retry::AtOnce {
                continue;
            }
            let Some(occupant) = self.occupant(cast, index) else { continue };
            if !scheduling::wants_company(occupant.spec) {
                continue;
            }
            let incoming = Incoming {
                namespace: occupant.namespace,
                labels: occupant.labels,
                spec: occupant.spec,
            };
            let decisions = scheduling::decide(&self.placement, &incoming);
            let lasting = |decision: &Decision| matches!(decision, Decision::Refused(reason) if !preemption::resolvable(reason));
            if decisions.iter().all(lasting) {
                self.new[index].retry = Retry::Tried;
            }
        }
    }

    /// Whether a port that a replacement binds is taken on a node.
    pub fn crashes(&self, cast: &Cast<'a>, index: usize, node: usize) -> bool {
        let ports = &cast.sets[self.new[index].set].ports;
        !ports.is_empty()
            && self.placement.nodes()[node].occupants().any(|occupant| {
                !occupant.terminating
                    && host_ports::bound(occupant.spec)
                        .iter()
                        .any(|taken| ports.iter().any(|port| host_ports::collide(port, taken)))
            })
    }

    /// Whether the API server refuses a new pod of a set now.
    pub fn creation_refused(&self, cast: &Cast<'a>, set: usize) -> bool {
        let entry = &cast.sets[set];
        entry.creation_refused.is_some()
            || (entry.creation_gap.is_some() && cast.assume.worst(Class::Replacements))
            || self.refused_at_once(cast, &entry.create_hooks)
            || self.over_quota(cast, set).is_some()
    }

    /// Whether one of the webhooks refuses now, where those that are ending may still answer.
    pub fn refused_at_once(&self, cast: &Cast<'a>, hooks: &[(usize, bool)]) -> bool {
        let standing: Vec<(usize, bool)> = hooks.iter().copied().filter(|(hook, _)| !self.lingering(cast, *hook)).collect();
        self.refused(cast, &standing)
    }

    /// Whether a backend of a webhook ends in this round and may still answer.
    fn lingering(&self, cast: &Cast<'a>, hook: usize) -> bool {
        self.ends_now(backends(cast, hook))
    }

    /// Whether one of these pods ends in this round and may still be at work.
    fn ends_now(&self, candidates: &[usize]) -> bool {
        let ends = |candidate: &usize| matches!(self.old[*candidate], Old::Terminating(round) if round == self.round);
        self.lingers && candidates.iter().any(ends)
    }

    /// Whether the kubelet may not report the end of a pod: a pod of the same round may end before the webhook's last
    /// backend is out of its endpoints, but not that backend itself.
    fn end_refused(&self, cast: &Cast<'a>, candidate: usize) -> bool {
        let answered = |hook: usize| self.lingering(cast, hook) && !backends(cast, hook).contains(&candidate);
        let hooks = &cast.candidates[candidate].ending_hooks;
        let standing: Vec<(usize, bool)> = hooks.iter().copied().filter(|(hook, _)| !answered(*hook)).collect();
        self.refused(cast, &standing)
    }

    /// Why a quota refuses a new pod of a set now.
    pub fn over_quota(&self, cast: &Cast<'a>, set: usize) -> Option<String> {
        cast.quotas.iter().filter(|rationed| rationed.sets[set]).find_map(|rationed| {
            let mut since = Charge::none();
            for new in &self.new {
                if new.replaces.is_some() && new.progress != Progress::NotCreated && rationed.sets[new.set] {
                    since.add(&cast.sets[new.set].charge);
                }
            }
            for (candidate, charge) in &rationed.candidates {
                if matches!(self.old[*candidate], Old::Gone(_)) {
                    since.subtract(charge);
                }
            }
            rationed.quota.exceeded(&since, &cast.sets[set].charge)
        })
    }

    /// The candidates of a set that were lost.
    fn lost(&self, cast: &Cast<'a>, set: usize) -> impl Iterator<Item = usize> {
        (0..self.old.len())
            .filter(move |index| cast.candidates[*index].set == Some(set))
            .filter(|index| matches!(self.old[*index], Old::Terminating(_) | Old::Gone(_)))
    }

    /// Whether a Job has failed by what it lost.
    fn job_failed(&self, cast: &Cast<'a>, set: usize) -> bool {
        let Owner::Job(owner) = &cast.sets[set].owner else { return false };
        let (judgement, _) = job::judgements(owner, !cast.flags.disable_eviction);
        // A pod that was terminating before was counted before.
        let lost = self
            .lost(cast, set)
            .filter(|index| !cast.candidates[*index].pod.metadata.terminating());
        job::fails(owner, judgement, super::cast::count(lost.count()))
    }

    /// Removes the pods of Jobs that failed; whether there were any.
    fn end_jobs(&mut self, cast: &Cast<'a>) -> bool {
        let failed: Vec<bool> = (0..cast.sets.len()).map(|set| self.job_failed(cast, set)).collect();
        let mut any = false;
        for index in (0..self.new.len()).rev() {
            if !failed[self.new[index].set] {
                continue;
            }
            if let (Progress::Placed { node, .. } | Progress::Nominated { node }, Some(occupant)) =
                (self.new[index].progress, self.occupant(cast, index))
            {
                self.placement.remove(node, occupant.namespace, occupant.name);
            }
            self.new.remove(index);
            any = true;
        }
        any
    }

    /// The next evicted pod that a set replaces.
    fn next_to_replace(&self, cast: &Cast<'a>, set: usize) -> Option<usize> {
        let entry = &cast.sets[set];
        let when = match (entry.when, entry.unknown && !cast.assume.worst(Class::Replacements)) {
            (Some(when), ..) => when,
            (None, true) => When::AfterGone,
            _ => return None,
        };
        if self.job_failed(cast, set) {
            return None;
        }
        let made = super::cast::count(self.new.iter().filter(|new| new.set == set && new.replaces.is_some()).count());
        let gone = self
            .lost(cast, set)
            .filter(|index| replica_set::active(cast.candidates[*index].pod));
        match (&entry.owner, entry.wanted) {
            // Each of its ordinals is wanted or not.
            (Owner::StatefulSet(_), _) | (_, None) => {}
            (_, Some(wanted)) if entry.active - super::cast::count(gone.count()) + made >= wanted => return None,
            _ => {}
        }
        self.lost(cast, set)
            .filter(|index| self.wanted_again(cast, set, *index))
            .filter(|index| !self.new.iter().any(|new| new.replaces == Some(*index)))
            .find(|index| when == When::AtOnce || matches!(self.old[*index], Old::Gone(_)))
    }

    /// Whether the place of a lost pod is to be filled.
    fn wanted_again(&self, cast: &Cast<'a>, set: usize, candidate: usize) -> bool {
        let pod = cast.candidates[candidate].pod;
        match &cast.sets[set].owner {
            Owner::StatefulSet(set) => stateful_set::wants(set, &pod.metadata.name),
            Owner::Job(owner) => {
                let (judgement, _) = job::judgements(owner, !cast.flags.disable_eviction);
                !job::gives_up_index(owner, pod, judgement)
            }
            _ => true,
        }
    }

    /// Whether every ordinal below that of a pod of a StatefulSet has a Ready pod.
    pub fn in_order(&self, cast: &Cast<'a>, set: usize, candidate: usize) -> bool {
        let Owner::StatefulSet(stateful) = &cast.sets[set].owner else {
            return true;
        };
        let index = cast.sets[set].workload;
        let workload = &cast.workloads[index];
        let Some(own) = stateful_set::ordinal(&cast.candidates[candidate].pod.metadata.name) else {
            return true;
        };
        // Without the others nothing tells; that is a gap of its own.
        if !workload.counted {
            return true;
        }
        let below = |pod: &Pod| {
            let name = pod.metadata.name.as_str();
            stateful_set::wants(stateful, name) && stateful_set::ordinal(name).is_some_and(|ordinal| ordinal < own)
        };
        let staying = workload.staying.iter().filter(|pod| below(pod) && pod.ready()).count();
        let candidates = (0..self.old.len())
            .filter(|other| cast.candidates[*other].workload == Some(index) && below(cast.candidates[*other].pod))
            .filter(|other| match self.old[*other] {
                Old::Here | Old::Failed(_) => {
                    let pod = cast.candidates[*other].pod;
                    cast.leaves(&cast.candidates[*other]) && pod.ready() && !pod.metadata.terminating()
                }
                _ => self.new.iter().any(|new| new.replaces == Some(*other) && self.ready(cast, new)),
            })
            .count();
        let waiting = self
            .new
            .iter()
            .filter(|new| {
                new.waiting
                    .is_some_and(|waiting| cast.sets[new.set].workload == index && below(cast.waiting[waiting].pod))
                    && self.ready(cast, new)
            })
            .count();
        super::cast::count(staying + candidates + waiting) >= stateful_set::below(stateful, own)
    }

    /// A replacement as the filters see it once it is placed.
    pub fn occupant(&self, cast: &Cast<'a>, index: usize) -> Option<Occupant<'a>> {
        let new = &self.new[index];
        if let Some(waiting) = new.waiting {
            let pod = cast.waiting[waiting].pod;
            return Some(Occupant {
                namespace: &pod.metadata.namespace,
                name: &pod.metadata.name,
                labels: &pod.metadata.labels,
                spec: &pod.spec,
                terminating: false,
            });
        }
        let template = cast.sets[new.set].template?;
        let name = new
            .replaces
            .and_then(|candidate| cast.names.get(candidate))
            .map_or("", String::as_str);
        Some(Occupant {
            namespace: template.namespace,
            name,
            labels: template.labels,
            spec: template.spec,
            terminating: false,
        })
    }

    /// Whether a node takes a pod, by what is assumed of what is not known.
    pub fn takes(cast: &Cast<'a>, decision: &Decision) -> bool {
        match decision {
            Decision::Fits => true,
            Decision::Refused(_) => false,
            Decision::Unknown(_) => !cast.assume.worst(Class::Nodes),
        }
    }
}

/// The candidates that answer a webhook.
fn backends<'c>(cast: &'c Cast<'_>, hook: usize) -> &'c [usize] {
    cast.hooks[hook].served.map_or(&[], |served| &cast.served[served].candidates)
}

fn lower(low: &mut Low, certain: i64, possible: i64) {
    low.certain = low.certain.min(certain);
    low.possible = low.possible.min(possible);
}
