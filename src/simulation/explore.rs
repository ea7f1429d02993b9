//! Following every choice that can matter later.
//!
//! Not ours to know are: which feasible node the scheduler picks, the order in which evictions arrive, how fast
//! replacements become Ready, how long a pod takes to end. Assumed: all evictions of a round are accepted before
//! any of its pods is gone, and a terminating backend no longer answers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::kubernetes::eviction::{self, Answer};
use crate::kubernetes::host_ports;
use crate::kubernetes::scheduling::{self, Decision, Incoming};
use crate::kubernetes::selectors;
use crate::report::document::DrainOutcome;

use super::cast::{Assume, Cast, Gap, Hold};
use super::state::{New, Old, Progress, State};
use super::trace::Paths;

/// More states than this are not looked at: what is left then is unknown.
pub const MAX_STATES: usize = 1000;

/// More ways than this to share out a budget's allowance at once are not looked at.
const MAX_SHARES: usize = 64;

/// With more nodes than this, preemption is not tried node by node.
const MAX_PREEMPTION_TRIALS: usize = 64;

/// Seconds between two tries of a refused eviction (`k8s.io/kubectl/pkg/drain/drain.go`, EvictErrorRetryDelay).
const RETRY_SECONDS: f64 = 5.0;

/// Seconds that a pod may take to end where it says nothing.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// What exploring gave.
#[derive(Debug)]
pub struct Explored<'a> {
    /// The last moment of every path.
    pub ends: Vec<State<'a>>,
    /// How many states were looked at.
    pub states: usize,
    /// Whether the bound was reached, so that paths are missing.
    pub bounded: bool,
    /// What the scheduler's filters could not decide.
    pub gaps: BTreeSet<Gap>,
}

/// Plays the drain on every path.
pub fn explore<'a>(cast: &Cast<'a>) -> Explored<'a> {
    let mut explorer = Explorer::new(cast);
    let unfamiliar = cast.candidates.iter().any(|candidate| {
        candidate
            .holds
            .iter()
            .any(|hold| matches!(hold, Hold::Unfamiliar(_) | Hold::Overdue))
    });
    let mut open = vec![State::new(cast, true)];
    if unfamiliar {
        open.push(State::new(cast, false));
    }
    let mut ends = Vec::new();
    while let Some(state) = open.pop() {
        if state.turn == cast.nodes.len() {
            ends.push(state);
            continue;
        }
        let next = explorer.round(state);
        open.extend(next.into_iter().filter(|state| explorer.is_new(state, true)));
    }
    Explored {
        ends,
        states: explorer.seen.len(),
        bounded: explorer.bounded,
        gaps: explorer.gaps.into_inner(),
    }
}

/// The moments that a moment outside of a drain comes to rest in.
pub fn settled<'a>(cast: &Cast<'a>, state: State<'a>) -> Vec<State<'a>> {
    Explorer::new(cast).settle(state)
}

struct Explorer<'a, 'b> {
    cast: &'b Cast<'a>,
    seen: HashSet<(bool, super::state::Key)>,
    bounded: bool,
    gaps: RefCell<BTreeSet<Gap>>,
}

impl<'a, 'b> Explorer<'a, 'b> {
    fn new(cast: &'b Cast<'a>) -> Self {
        Self {
            cast,
            seen: HashSet::new(),
            bounded: false,
            gaps: RefCell::new(BTreeSet::new()),
        }
    }

    /// Whether a state was not looked at before. One that has settled differs from one that has not.
    fn is_new(&mut self, state: &State<'a>, settled: bool) -> bool {
        if self.seen.len() >= MAX_STATES {
            self.bounded = true;
            return false;
        }
        self.seen.insert((settled, state.key()))
    }

    /// The moments after the next round, or after the end of the turn.
    fn round(&mut self, state: State<'a>) -> Vec<State<'a>> {
        if self.cast.refused(state.turn) {
            return vec![self.end_turn(state, DrainOutcome::Refused)];
        }
        let choices = if self.cast.flags.disable_eviction {
            self.deletions(&state)
        } else {
            self.evictions(&state)
        };
        if choices.is_empty() {
            let outcome = self.outcome(&state);
            return match (outcome, self.too_slow(&state)) {
                (DrainOutcome::Finishes, Paths::All) => vec![self.end_turn(state, DrainOutcome::Fails)],
                (DrainOutcome::Finishes, Paths::Some) => {
                    vec![
                        self.end_turn(state.clone(), DrainOutcome::Fails),
                        self.end_turn(state, DrainOutcome::Finishes),
                    ]
                }
                _ => vec![self.end_turn(state, outcome)],
            };
        }
        choices.into_iter().flat_map(|choice| self.play(&state, &choice)).collect()
    }

    fn end_turn(&self, mut state: State<'a>, outcome: DrainOutcome) -> State<'a> {
        state.ended.push(outcome);
        state.round = 0;
        // Without a timeout kubectl never comes to the next node.
        let over = outcome == DrainOutcome::Hangs && self.cast.flags.timeout.is_none();
        state.turn = if over { self.cast.nodes.len() } else { state.turn + 1 };
        for new in &mut state.new {
            new.sure = false;
        }
        state
    }

    /// How a turn ends in which nothing more is accepted.
    fn outcome(&self, state: &State<'a>) -> DrainOutcome {
        let mine = || self.turn(state).map(|index| state.old[index]);
        if mine().any(|old| matches!(old, Old::Here | Old::Terminating(_))) {
            DrainOutcome::Hangs
        } else if mine().any(|old| matches!(old, Old::Failed(_))) {
            DrainOutcome::Fails
        } else {
            DrainOutcome::Finishes
        }
    }

    /// Whether a turn that ends by itself may end after `--timeout`.
    ///
    /// kubectl tries a refused eviction again every five seconds; a pod may take its grace period to end.
    fn too_slow(&self, state: &State<'a>) -> Paths {
        let Some(timeout) = self.cast.flags.timeout else {
            return Paths::None;
        };
        let retries = f64::from(state.round.saturating_sub(1)) * RETRY_SECONDS;
        let grace = |index: usize| match self.cast.flags.grace_period {
            own if own < 0 => self.cast.candidates[index]
                .pod
                .spec
                .termination_grace_period_seconds
                .unwrap_or(DEFAULT_GRACE_SECONDS),
            given => given,
        };
        let longest = self
            .turn(state)
            .filter(|index| !self.cast.candidates[*index].pod.finished())
            .map(grace)
            .max()
            .unwrap_or(0);
        let seconds = timeout.as_secs_f64();
        if seconds < retries {
            Paths::All
        } else if seconds < retries + longest.max(0) as f64 {
            Paths::Some
        } else {
            Paths::None
        }
    }

    /// The pods that kubectl removes in this turn.
    fn turn(&self, state: &State<'a>) -> impl Iterator<Item = usize> {
        let turn = state.turn;
        (0..self.cast.candidates.len())
            .filter(move |index| self.cast.candidates[*index].turn == turn && self.cast.removed(&self.cast.candidates[*index]))
    }

    /// Plain deletes: one after the other, and the first error stops.
    fn deletions(&self, state: &State<'a>) -> Vec<Choice> {
        let mut choice = Choice::default();
        for index in self.turn(state).filter(|index| state.old[*index] == Old::Here) {
            if state.refused(self.cast, &self.cast.candidates[index].eviction_hooks) {
                choice.failed.push(index);
                break;
            }
            choice.accepted.push(index);
        }
        if choice.is_empty() || self.turn(state).any(|index| matches!(state.old[index], Old::Failed(_))) {
            Vec::new()
        } else {
            vec![choice]
        }
    }

    /// What the eviction API may accept now: one choice for each order that can matter.
    fn evictions(&mut self, state: &State<'a>) -> Vec<Choice> {
        let mut base = Choice::default();
        let mut costly: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for index in self.turn(state).filter(|index| state.old[*index] == Old::Here) {
            let candidate = &self.cast.candidates[index];
            if state.refused(self.cast, &candidate.eviction_hooks) {
                base.failed.push(index);
                continue;
            }
            if eviction::ignores_budgets(candidate.pod) {
                base.accepted.push(index);
                continue;
            }
            let budgets: Vec<_> = candidate
                .budgets
                .iter()
                .map(|budget| (self.cast.budgets[*budget].budget, state.allowances[*budget]))
                .collect();
            match eviction::answer(candidate.pod.ready(), &budgets) {
                Answer::Accepted => base.accepted.push(index),
                Answer::AcceptedAtACost => costly.entry(candidate.budgets[0]).or_default().push(index),
                Answer::TooManyRequests => {}
                Answer::Forbidden | Answer::Overlap => base.failed.push(index),
            }
        }
        let mut choices = vec![base];
        for (budget, pods) in costly {
            let allowed = usize::try_from(state.allowances[budget].allowed).unwrap_or(0);
            let shares = self.shares(&pods, allowed);
            if choices.len() * shares.len() > MAX_SHARES {
                self.bounded = true;
            }
            choices = choices
                .iter()
                .flat_map(|choice| shares.iter().map(|share| choice.with(share, budget)))
                .take(MAX_SHARES)
                .collect();
        }
        choices.retain(|choice| !choice.is_empty());
        let late: Vec<Choice> = choices.iter().filter_map(|choice| self.late(state, choice)).collect();
        choices.extend(late);
        choices
    }

    /// The same round where a webhook that is called for evictions has lost its last backend by the time it is asked
    /// about the others.
    fn late(&self, state: &State<'a>, choice: &Choice) -> Option<Choice> {
        let gone = |hook: usize| {
            self.cast.hooks[hook].served.is_some_and(|served| {
                let backends = choice
                    .accepted
                    .iter()
                    .filter(|index| self.cast.served[served].candidates.contains(index))
                    .count();
                backends > 0 && state.endpoints(self.cast, served, false) == super::cast::count(backends)
            })
        };
        let backs = |index: usize, hook: usize| {
            self.cast.hooks[hook]
                .served
                .is_some_and(|served| self.cast.served[served].candidates.contains(&index))
        };
        let (failed, accepted): (Vec<usize>, Vec<usize>) = choice.accepted.iter().copied().partition(|index| {
            self.cast.candidates[*index]
                .eviction_hooks
                .iter()
                .any(|(hook, certain)| *certain && gone(*hook) && !backs(*index, *hook))
        });
        if failed.is_empty() {
            return None;
        }
        Some(Choice {
            accepted,
            failed: choice.failed.iter().copied().chain(failed).collect(),
            budgets: choice.budgets.clone(),
        })
    }

    /// The ways to share out an allowance among pods, those of one kind being alike.
    fn shares(&self, pods: &[usize], allowed: usize) -> Vec<Vec<usize>> {
        if pods.len() <= allowed {
            return vec![pods.to_vec()];
        }
        let mut kinds: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for index in pods {
            let candidate = &self.cast.candidates[*index];
            kinds
                .entry((candidate.set, candidate.pod.ready(), candidate.holds.len()))
                .or_default()
                .push(*index);
        }
        let mut shares = vec![Vec::new()];
        for members in kinds.values() {
            shares = shares
                .into_iter()
                .flat_map(|share: Vec<usize>| {
                    let most = members.len().min(allowed - share.len());
                    (0..=most).map(move |take| share.iter().chain(&members[..take]).copied().collect())
                })
                .collect();
        }
        shares.retain(|share| share.len() == allowed);
        shares
    }

    /// Accepts the evictions and lets everything settle.
    fn play(&mut self, state: &State<'a>, choice: &Choice) -> Vec<State<'a>> {
        let mut state = state.clone();
        state.round += 1;
        for index in &choice.failed {
            state.old[*index] = Old::Failed(state.round);
        }
        for index in &choice.accepted {
            let candidate = &self.cast.candidates[*index];
            state.old[*index] = Old::Terminating(state.round);
            state.placement.terminate(
                self.cast.nodes[candidate.turn],
                &candidate.pod.metadata.namespace,
                &candidate.pod.metadata.name,
            );
        }
        // A budget that allows another one within a turn saw the replacements of the earlier ones Ready.
        if state.round > 1 {
            for new in &mut state.new {
                new.sure |= choice.budgets.iter().any(|budget| self.cast.budgets[*budget].sets[new.set]);
            }
        }
        state.note_lows(self.cast);
        self.settle(state)
    }

    /// Lets pods end, replacements be created, placed and become Ready, until nothing moves.
    fn settle(&mut self, state: State<'a>) -> Vec<State<'a>> {
        let mut open = vec![state];
        let mut settled = Vec::new();
        while let Some(mut state) = open.pop() {
            loop {
                let moved = state.create(self.cast) | state.release(self.cast);
                match self.place(&state) {
                    Placing::Nothing if moved => {}
                    Placing::Nothing => {
                        state.refill(self.cast);
                        settled.push(state);
                        break;
                    }
                    Placing::Choices(mut choices) => match choices.len() {
                        1 => state = choices.remove(0),
                        _ => {
                            open.extend(choices.into_iter().filter(|state| self.is_new(state, false)));
                            break;
                        }
                    },
                }
            }
        }
        settled
    }

    /// Places one waiting pod: one choice for each node, or next pod, that can matter later.
    fn place(&self, state: &State<'a>) -> Placing<'a> {
        let mut placeable = Vec::new();
        let mut tried: Vec<usize> = Vec::new();
        for (index, new) in state.new.iter().enumerate() {
            if new.progress != Progress::Pending {
                continue;
            }
            // Pods of one set are alike, unless one was there before and keeps its own spec.
            if new.waiting.is_none() && tried.contains(&new.set) {
                continue;
            }
            if new.waiting.is_none() {
                tried.push(new.set);
            }
            let nodes = self.feasible(state, index);
            if !nodes.is_empty() {
                placeable.push((index, nodes));
            }
        }
        let Some((first, _)) = placeable.first() else {
            return Placing::Nothing;
        };
        let first = *first;
        // Who comes first matters only among pods that can be in each other's way.
        let mut choices = Vec::new();
        for (index, nodes) in &placeable {
            if *index == first || self.in_the_way(state, *index, first) {
                self.place_one(state, *index, nodes, &mut choices);
            }
        }
        Placing::Choices(choices)
    }

    fn incoming(&self, state: &State<'a>, index: usize) -> Option<Incoming<'a>> {
        let occupant = state.occupant(self.cast, index)?;
        Some(Incoming {
            namespace: occupant.namespace,
            labels: occupant.labels,
            spec: occupant.spec,
        })
    }

    /// Nodes that take the pod, and what could not be decided.
    fn feasible(&self, state: &State<'a>, index: usize) -> Vec<usize> {
        let Some(incoming) = self.incoming(state, index) else {
            return Vec::new();
        };
        let decisions = scheduling::decide(&state.placement, &incoming);
        for decision in &decisions {
            if let Decision::Unknown(why) = decision {
                let set = &self.cast.sets[state.new[index].set];
                let key = &self.cast.workloads[set.workload].key;
                self.gaps
                    .borrow_mut()
                    .insert(Gap::undecided(format!("where the replacement of {key} lands"), why.clone()));
            }
        }
        if decisions.iter().any(|decision| matches!(decision, Decision::Unknown(_))) {
            let key = &self.cast.workloads[self.cast.sets[state.new[index].set].workload].key;
            for missing in scheduling::storage_unread(&state.placement, &incoming) {
                let gap = Gap::unread(format!("where the volumes of {key} can be used"), &missing);
                self.gaps.borrow_mut().insert(gap);
            }
        }
        let takers: Vec<usize> = (0..decisions.len())
            .filter(|node| State::takes(self.cast, &decisions[*node]))
            .collect();
        if !takers.is_empty() {
            return takers;
        }
        let preemptible = self.preemptible(state, index, &incoming, &decisions);
        if !preemptible.is_empty() {
            let key = &self.cast.workloads[self.cast.sets[state.new[index].set].workload].key;
            self.gaps.borrow_mut().insert(Gap::undecided(
                format!("whether the replacement of {key} preempts others"),
                "preemption is not modelled: pods of a lower priority may have to give way to it",
            ));
        }
        if self.cast.assume == Assume::Worst {
            Vec::new()
        } else {
            preemptible
        }
    }

    /// Nodes that refuse the pod for a reason that the eviction of pods of a lower priority can remove
    /// (`pkg/scheduler/framework/preemption/preemption.go`).
    fn preemptible(&self, state: &State<'a>, index: usize, incoming: &Incoming<'a>, decisions: &[Decision]) -> Vec<usize> {
        let priority = match state.new[index].waiting {
            Some(waiting) => self.cast.waiting[waiting].pod.spec.priority.unwrap_or(0),
            None => self.cast.sets[state.new[index].set].priority,
        };
        if incoming.spec.preemption_policy.as_deref() == Some("Never") {
            return Vec::new();
        }
        let helps = |reason: &str| {
            reason.starts_with("Insufficient")
                || reason.starts_with("Too many pods")
                || scheduling::refuses_volume_in_use(reason)
                || ["ports", "anti-affinity", "spread"].iter().any(|word| reason.contains(word))
        };
        let lower = |occupant: &scheduling::Occupant<'_>| !occupant.terminating && occupant.spec.priority.unwrap_or(0) < priority;
        let hopeful: Vec<usize> = (0..decisions.len())
            .filter(|node| matches!(&decisions[*node], Decision::Refused(reason) if helps(reason)))
            .filter(|node| state.placement.nodes()[*node].occupants().any(lower))
            .collect();
        // As upstream: without all pods of a lower priority the node must fit. With many nodes, that it may is enough.
        if hopeful.len() > MAX_PREEMPTION_TRIALS {
            return hopeful;
        }
        hopeful
            .into_iter()
            .filter(|node| {
                let mut without = state.placement.clone();
                let victims: Vec<(&str, &str)> = state.placement.nodes()[*node]
                    .occupants()
                    .filter(|occupant| lower(occupant))
                    .map(|victim| (victim.namespace, victim.name))
                    .collect();
                for (namespace, name) in victims {
                    without.remove(*node, namespace, name);
                }
                scheduling::decide(&without, incoming)
                    .get(*node)
                    .is_some_and(|decision| State::takes(self.cast, decision))
            })
            .collect()
    }

    /// Whether placing one pod can change where another one may go, for any reason but room that is not short.
    fn in_the_way(&self, state: &State<'a>, one: usize, other: usize) -> bool {
        match (self.incoming(state, one), self.incoming(state, other)) {
            (Some(one), Some(other)) => related(&one, &other) || self.short_of_room(state, &one, &other),
            _ => false,
        }
    }

    /// Whether some node takes either pod and not both.
    fn short_of_room(&self, state: &State<'a>, one: &Incoming<'a>, other: &Incoming<'a>) -> bool {
        let fits = |placement: &scheduling::Placement<'a>, pod: &Incoming<'a>| {
            scheduling::decide(placement, pod)
                .iter()
                .map(|decision| State::takes(self.cast, decision))
                .collect::<Vec<_>>()
        };
        let (first, second) = (fits(&state.placement, one), fits(&state.placement, other));
        let mut both = state.placement.clone();
        for node in (0..first.len()).filter(|node| first[*node] && second[*node]) {
            both.bind(
                node,
                scheduling::Occupant {
                    namespace: one.namespace,
                    name: "",
                    labels: one.labels,
                    spec: one.spec,
                    terminating: false,
                },
            );
        }
        let after = fits(&both, other);
        (0..first.len()).any(|node| first[node] && second[node] && !after[node])
    }

    /// Adds a choice for each kind of node that the pod may go to.
    fn place_one(&self, state: &State<'a>, index: usize, nodes: &[usize], choices: &mut Vec<State<'a>>) {
        let Some(incoming) = self.incoming(state, index) else { return };
        let rivals = self.rivals(state, index);
        let mut kinds: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
        let views: Vec<View> = rivals.iter().map(|rival| View::new(self.cast, state, &incoming, rival)).collect();
        for node in nodes {
            let mut kind = vec![
                i64::from(self.crashes(state, index, *node)),
                i64::from(self.cast.nodes.contains(node)),
            ];
            for view in &views {
                view.describe(*node, &mut kind);
            }
            kinds.entry(kind).or_default().push(*node);
        }
        for members in kinds.into_values() {
            let node = members[0];
            let crashes = self.crashes(state, index, node);
            let mut next = state.clone();
            if let Some(occupant) = state.occupant(self.cast, index) {
                next.placement.bind(node, occupant);
            }
            next.new[index] = New {
                progress: Progress::Placed { node, crashes },
                nodes: members,
                ..next.new[index].clone()
            };
            choices.push(next);
        }
    }

    /// Whether a port that the pod binds is taken on the node.
    fn crashes(&self, state: &State<'a>, index: usize, node: usize) -> bool {
        let ports = &self.cast.sets[state.new[index].set].ports;
        !ports.is_empty()
            && state.placement.nodes()[node].occupants().any(|occupant| {
                !occupant.terminating
                    && host_ports::bound(occupant.spec)
                        .iter()
                        .any(|taken| ports.iter().any(|port| host_ports::collide(port, taken)))
            })
    }

    /// Templates of pods that may have to be placed later, each once.
    fn rivals(&self, state: &State<'a>, index: usize) -> Vec<Incoming<'a>> {
        let mut rivals = Vec::new();
        for (set, entry) in self.cast.sets.iter().enumerate() {
            let waiting = state
                .new
                .iter()
                .enumerate()
                .any(|(other, new)| other != index && new.set == set && new.progress == Progress::Pending);
            let to_come = (0..state.old.len()).any(|candidate| {
                self.cast.candidates[candidate].set == Some(set)
                    && !matches!(state.old[candidate], Old::Failed(_))
                    && !state.new.iter().any(|new| new.replaces == Some(candidate))
            });
            if let Some(template) = entry.template
                && (entry.when.is_some() || entry.unknown)
                && (waiting || to_come)
            {
                rivals.push(template);
            }
        }
        rivals
    }
}

/// What is accepted and what fails in one round.
#[derive(Clone, Debug, Default)]
struct Choice {
    accepted: Vec<usize>,
    failed: Vec<usize>,
    budgets: Vec<usize>,
}

impl Choice {
    fn is_empty(&self) -> bool {
        self.accepted.is_empty() && self.failed.is_empty()
    }

    fn with(&self, more: &[usize], budget: usize) -> Self {
        let mut choice = self.clone();
        choice.accepted.extend(more);
        choice.budgets.push(budget);
        choice
    }
}

enum Placing<'a> {
    Nothing,
    Choices(Vec<State<'a>>),
}

/// Whether the presence of one pod on a node can matter to the other by spread, affinity or ports.
fn related(one: &Incoming<'_>, other: &Incoming<'_>) -> bool {
    spread_by(one, other) || spread_by(other, one) || tied(one, other) || tied(other, one) || ports_collide(one, other)
}

/// Whether a hard spread constraint of `other` counts `one`.
fn spread_by(one: &Incoming<'_>, other: &Incoming<'_>) -> bool {
    one.namespace == other.namespace
        && other.spec.topology_spread_constraints.iter().any(|constraint| {
            constraint.when_unsatisfiable == "DoNotSchedule"
                && constraint
                    .label_selector
                    .as_ref()
                    .is_some_and(|selector| selectors::matches(selector, one.labels))
        })
}

/// Whether a required affinity or anti-affinity term of `other` can mean `one`.
fn tied(one: &Incoming<'_>, other: &Incoming<'_>) -> bool {
    let affinity = &other.spec.affinity;
    affinity
        .pod_affinity
        .required_during_scheduling_ignored_during_execution
        .iter()
        .chain(&affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution)
        .any(|term| {
            term.label_selector
                .as_ref()
                .is_some_and(|selector| selectors::matches(selector, one.labels))
        })
}

fn ports_collide(one: &Incoming<'_>, other: &Incoming<'_>) -> bool {
    let ports = host_ports::bound(other.spec);
    !ports.is_empty()
        && host_ports::bound(one.spec)
            .iter()
            .any(|port| ports.iter().any(|taken| host_ports::collide(port, taken)))
}

/// How nodes look to a pod that may have to be placed later.
struct View {
    /// Whether each node takes it now.
    takes: Vec<bool>,
    /// Whether each node would still take it beside the pod that is placed now.
    takes_after: Vec<bool>,
    /// For each topology domain that matters between the two, the code of each node's domain.
    domains: Vec<Vec<i64>>,
}

impl View {
    fn new<'a>(cast: &Cast<'a>, state: &State<'a>, placed: &Incoming<'a>, rival: &Incoming<'a>) -> Self {
        let takes: Vec<bool> = scheduling::decide(&state.placement, rival)
            .iter()
            .map(|decision| State::takes(cast, decision))
            .collect();
        let mut beside = state.placement.clone();
        for (node, takes) in takes.iter().enumerate() {
            if *takes {
                beside.bind(
                    node,
                    scheduling::Occupant {
                        namespace: placed.namespace,
                        name: "",
                        labels: placed.labels,
                        spec: placed.spec,
                        terminating: false,
                    },
                );
            }
        }
        let takes_after = match related(placed, rival) {
            // With the pod on every node at once spread and affinity say nothing; ports and room do.
            true => takes.clone(),
            false => scheduling::decide(&beside, rival)
                .iter()
                .map(|decision| State::takes(cast, decision))
                .collect(),
        };
        let mut keys: BTreeSet<&str> = BTreeSet::new();
        if spread_by(placed, rival) {
            keys.extend(
                rival
                    .spec
                    .topology_spread_constraints
                    .iter()
                    .filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
                    .map(|constraint| constraint.topology_key.as_str()),
            );
        }
        for (owner, other) in [(rival, placed), (placed, rival)] {
            if tied(other, owner) {
                let affinity = &owner.spec.affinity;
                keys.extend(
                    affinity
                        .pod_affinity
                        .required_during_scheduling_ignored_during_execution
                        .iter()
                        .chain(&affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution)
                        .map(|term| term.topology_key.as_str()),
                );
            }
        }
        if ports_collide(placed, rival) {
            keys.insert("kubernetes.io/hostname");
        }
        let domains = keys.into_iter().map(|key| domain_codes(state, key, rival)).collect();
        Self {
            takes,
            takes_after,
            domains,
        }
    }

    fn describe(&self, node: usize, kind: &mut Vec<i64>) {
        kind.push(i64::from(self.takes[node]));
        kind.push(i64::from(self.takes_after[node]));
        kind.extend(self.domains.iter().map(|codes| codes[node]));
    }
}

/// A code for each node's domain: domains of one node are alike when they hold equally many of the rival's kind.
fn domain_codes(state: &State<'_>, key: &str, rival: &Incoming<'_>) -> Vec<i64> {
    let nodes = state.placement.nodes();
    let value = |index: usize| nodes[index].node().metadata.labels.get(key).map(String::as_str);
    let mut sizes: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for index in 0..nodes.len() {
        if let Some(value) = value(index) {
            let next = super::cast::count(sizes.len());
            sizes.entry(value).or_insert((next, 0)).1 += 1;
        }
    }
    (0..nodes.len())
        .map(|index| match value(index).and_then(|value| sizes.get(value)) {
            None => -1,
            Some((_, 1)) => super::cast::count(
                nodes[index]
                    .occupants()
                    .filter(|occupant| occupant.namespace == rival.namespace && !occupant.terminating && occupant.labels == rival.labels)
                    .count(),
            ),
            Some((code, _)) => 1_000_000 + code,
        })
        .collect()
}
