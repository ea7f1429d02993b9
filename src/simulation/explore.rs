//! Following every choice that can matter later.
//!
//! Not ours to know are: which feasible node the scheduler picks, the order in which evictions arrive, how fast
//! replacements become Ready, how long a pod takes to end, whether a pod is replaced before the next one of its round
//! is evicted. Assumed: all evictions of a round are accepted before any of its pods is gone, and a terminating backend
//! no longer answers; but a replacement that is made at once may be admitted by it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use crate::kubernetes::eviction::{self, Answer};
use crate::kubernetes::host_ports;
use crate::kubernetes::preemption::{self, Way};
use crate::kubernetes::scheduling::load::Load;
use crate::kubernetes::scheduling::{self, Decision, Incoming, Occupant, Placement};
use crate::kubernetes::selectors;
use crate::report::document::DrainOutcome;

use super::assume::Class;
use super::cast::{Cast, Gap, Hold};
use super::state::{Old, Progress, Retry, State, Victim};

/// More states than this are not looked at: what is left then is unknown.
pub const MAX_STATES: usize = 1000;

/// Of more sets than this that compete for a quota, not each is the last that it lets in.
const MAX_RIVALS: usize = 8;

/// How long kubectl waits after a 429 before it asks again.
const RETRY: Duration = Duration::from_secs(5);

/// More ways than this to share out a budget's allowance at once are not looked at.
const MAX_SHARES: usize = 64;

/// With more nodes than this, preemption is not tried node by node.
const MAX_PREEMPTION_TRIALS: usize = 64;

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
    /// Namespace and name of pods that may be preempted and do not take part yet.
    pub victims: BTreeSet<(String, String)>,
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
    let disrupted = cast.budgets.iter().any(|budget| !budget.budget.status.disrupted_pods.is_empty());
    let mut open = vec![State::new(cast, true, false)];
    if unfamiliar || disrupted {
        open.push(State::new(cast, false, false));
    }
    if cast.last_backends_make_way() {
        open.extend(open.clone().into_iter().map(|state| State { lingers: true, ..state }));
    }
    let mut ends = explorer.play_all(open.clone());
    let mut played = BTreeSet::new();
    while let Some(set) = explorer.rivals.difference(&played).next().copied() {
        if played.len() == MAX_RIVALS {
            explorer.bounded = true;
            break;
        }
        played.insert(set);
        let last = Some(set);
        ends.extend(explorer.play_all(open.iter().map(|state| State { last, ..state.clone() }).collect()));
    }
    Explored {
        ends,
        states: explorer.seen.len(),
        bounded: explorer.bounded,
        gaps: explorer.gaps.into_inner(),
        victims: explorer.victims.into_inner(),
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
    victims: RefCell<BTreeSet<(String, String)>>,
    /// Sets that compete for the room of a quota.
    rivals: BTreeSet<usize>,
}

impl<'a, 'b> Explorer<'a, 'b> {
    fn new(cast: &'b Cast<'a>) -> Self {
        Self {
            cast,
            seen: HashSet::new(),
            bounded: false,
            gaps: RefCell::new(BTreeSet::new()),
            victims: RefCell::new(BTreeSet::new()),
            rivals: BTreeSet::new(),
        }
    }

    /// Plays on from these moments to the end of the drain.
    fn play_all(&mut self, mut open: Vec<State<'a>>) -> Vec<State<'a>> {
        let mut ends = Vec::new();
        while let Some(state) = open.pop() {
            if state.turn == self.cast.nodes.len() {
                ends.push(state);
                continue;
            }
            let next = self.round(state);
            open.extend(next.into_iter().filter(|state| self.is_new(state, true)));
        }
        ends
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
            if outcome == DrainOutcome::Finishes && self.may_be_late(&state) {
                return vec![self.end_turn(state.clone(), outcome), self.end_turn(state, DrainOutcome::Fails)];
            }
            return vec![self.end_turn(state, outcome)];
        }
        // What a round left is asked for again after a while, which may be too late.
        let late = self
            .cast
            .flags
            .timeout
            .filter(|timeout| RETRY * state.round >= *timeout)
            .map(|_| self.end_turn(state.clone(), DrainOutcome::Fails));
        late.into_iter()
            .chain(choices.into_iter().flat_map(|choice| self.play(&state, &choice)))
            .collect()
    }

    /// Whether `--timeout` may end the waiting before the last round's pods, which may take all of their grace period, are gone.
    fn may_be_late(&self, state: &State<'a>) -> bool {
        let longest = self
            .turn(state)
            .map(|index| self.cast.flags.grace(self.cast.candidates[index].pod))
            .max();
        let rounds = RETRY * state.round.saturating_sub(1);
        matches!((self.cast.flags.timeout, longest), (Some(timeout), Some(longest)) if longest + rounds >= timeout && !longest.is_zero())
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
        let failed = || mine().any(|old| matches!(old, Old::Failed(_)));
        if self.cast.flags.disable_eviction && failed() {
            // The first error ends the deletions, and nothing is waited for.
            DrainOutcome::Fails
        } else if self.turn(state).any(|index| self.waits(state, index)) {
            DrainOutcome::Hangs
        } else if failed() {
            DrainOutcome::Fails
        } else {
            DrainOutcome::Finishes
        }
    }

    /// Whether kubectl waits for a pod for as long as it waits at all. One that does not end is passed over
    /// `--skip-wait-for-delete-timeout` after it should have (`k8s.io/kubectl/pkg/drain/drain.go`, waitForDelete).
    fn waits(&self, state: &State<'a>, index: usize) -> bool {
        let flags = &self.cast.flags;
        let skip = Duration::from_secs(u64::try_from(flags.skip_wait_for_delete_timeout).unwrap_or(0));
        let end = flags.grace(self.cast.candidates[index].pod) + skip + RETRY * state.round.saturating_sub(1);
        match state.old[index] {
            Old::Here => true,
            Old::Terminating(_) => skip.is_zero() || flags.timeout.is_some_and(|timeout| end >= timeout),
            Old::Gone(_) | Old::Failed(_) => false,
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
            let denied = candidate.may_be_denied && self.cast.assume.worst(Class::Calls);
            if denied || state.refused(self.cast, &candidate.eviction_hooks) {
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
        choices
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
        // A budget that allows another one within a turn saw the replacements of the earlier ones Ready.
        if state.round > 1 {
            for new in &mut state.new {
                new.sure |= choice.budgets.iter().any(|budget| self.cast.budgets[*budget].sets[new.set]);
            }
        }
        let mut moments = Vec::new();
        if self.pace_matters(&choice.accepted) {
            moments = self.one_after_another(&state, &choice.accepted);
        }
        for index in &choice.accepted {
            state.evict(self.cast, *index);
        }
        moments.push(state);
        let mut settled = Vec::new();
        for mut state in moments {
            state.note_lows(self.cast);
            settled.extend(self.settle(state));
        }
        settled
    }

    /// Whether it matters that one replacement is placed before the next pod is evicted: a spread constraint counts
    /// pods until they are evicted (`pkg/scheduler/framework/plugins/podtopologyspread/common.go`, countPodsMatchSelector),
    /// and an emptied domain may then be the smallest one.
    fn pace_matters(&self, accepted: &[usize]) -> bool {
        let counts = |evicted: usize, other: usize| {
            let template = self.cast.candidates[evicted].set.and_then(|set| self.cast.sets[set].template);
            let meta = &self.cast.candidates[other].pod.metadata;
            template.is_some_and(|template| {
                let pod = Incoming {
                    namespace: &meta.namespace,
                    labels: &meta.labels,
                    spec: &self.cast.candidates[other].pod.spec,
                };
                spread_by(&pod, &template)
            })
        };
        accepted
            .iter()
            .any(|evicted| accepted.iter().any(|other| evicted != other && counts(*evicted, *other)))
    }

    /// The moments after evictions between which controllers and the scheduler have the time to replace each pod.
    fn one_after_another(&mut self, state: &State<'a>, accepted: &[usize]) -> Vec<State<'a>> {
        let mut moments = vec![state.clone()];
        for index in accepted {
            let mut open = std::mem::take(&mut moments);
            for state in &mut open {
                state.evict(self.cast, *index);
            }
            let mut seen = HashSet::new();
            while let Some(mut state) = open.pop() {
                state.create(self.cast);
                match self.place(&state) {
                    Placing::Nothing => moments.push(state),
                    Placing::Choices(choices) => open.extend(choices.into_iter().filter(|state| seen.insert(state.key()))),
                }
                if seen.len() > MAX_STATES {
                    self.bounded = true;
                    break;
                }
            }
        }
        moments
    }

    /// Lets pods end, replacements be created, placed and become Ready, until nothing moves.
    fn settle(&mut self, state: State<'a>) -> Vec<State<'a>> {
        let mut open = vec![state];
        let mut settled = Vec::new();
        while let Some(mut state) = open.pop() {
            loop {
                // What is ending is still there when controllers and the scheduler first act.
                let mut moved = state.create(self.cast);
                let mut placing = self.place(&state);
                if matches!(placing, Placing::Nothing) {
                    state.note_tries(self.cast);
                    moved |= state.release(self.cast) | state.report(self.cast);
                    placing = self.place(&state);
                }
                match placing {
                    Placing::Nothing if moved => {}
                    Placing::Nothing => {
                        self.note_rivals_for_quota(&state);
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

    /// Notes whose replacements compete where a quota lets in some and not others.
    fn note_rivals_for_quota(&mut self, state: &State<'a>) {
        for rationed in &self.cast.quotas {
            let of = |created: bool| {
                let news = state.new.iter().filter(|new| new.replaces.is_some() && rationed.sets[new.set]);
                news.filter(|new| (new.progress != Progress::NotCreated) == created)
                    .map(|new| new.set)
                    .collect::<BTreeSet<_>>()
            };
            let (made, refused) = (of(true), of(false));
            let short = refused.iter().any(|set| state.over_quota(self.cast, *set).is_some());
            let all: BTreeSet<usize> = made.union(&refused).copied().collect();
            if short && !made.is_empty() && all.len() > 1 {
                self.rivals.extend(all);
            }
        }
    }

    /// Places one waiting pod: one choice for each node, or next pod, that can matter later; or lets one preempt others.
    fn place(&self, state: &State<'a>) -> Placing<'a> {
        let waiting = self.waiting(state);
        let mut choices = Vec::new();
        let mut short = false;
        let mut first = None;
        for index in waiting {
            if first.is_none_or(|first| short || self.related_pods(state, first, index)) {
                let nodes = self.feasible(state, index);
                if nodes.is_empty() {
                    self.preempt(state, index, &mut choices);
                    continue;
                }
                if first.is_none() {
                    short = self.short_of_room(state, &nodes);
                    first = Some(index);
                }
                if state.new[index].retry == Retry::Tried {
                    choices.push(waiting_for_the_flush(state));
                }
                // Who comes first matters only among pods that can be in each other's way.
                self.place_one(state, index, &nodes, short, &mut choices);
            }
        }
        match choices.is_empty() {
            true => Placing::Nothing,
            false => Placing::Choices(choices),
        }
    }

    /// The pods that wait for a node, each kind once: those of one set are alike, unless one was there before and keeps
    /// its own spec.
    fn waiting(&self, state: &State<'a>) -> Vec<usize> {
        let mut sets: Vec<usize> = Vec::new();
        let mut waiting = Vec::new();
        for (index, new) in state.new.iter().enumerate().filter(|(_, new)| new.progress == Progress::Pending) {
            if new.retry == Retry::Waits || state.refused_at_once(self.cast, &self.cast.sets[new.set].bind_hooks) {
                continue;
            }
            if new.waiting.is_none() {
                if sets.contains(&new.set) {
                    continue;
                }
                sets.push(new.set);
            }
            waiting.push(index);
        }
        waiting
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
                let gap = Gap {
                    missing: self.cast.snapshot.objects.unread(why).cloned(),
                    ..Gap::undecided(format!("where the replacement of {key} lands"), why.clone())
                };
                self.gaps.borrow_mut().insert(gap.of(Class::Nodes));
            }
        }
        // The scheduler never sees a pod that names its node, and the kubelet does not look at the cordon.
        if let Some(name) = incoming.spec.node_name.as_deref().filter(|name| !name.is_empty()) {
            return state.placement.index(name).into_iter().collect();
        }
        if decisions.iter().any(|decision| matches!(decision, Decision::Unknown(_))) {
            let key = &self.cast.workloads[self.cast.sets[state.new[index].set].workload].key;
            for missing in scheduling::storage_unread(&state.placement, &incoming) {
                let gap = Gap::unread(format!("where the volumes of {key} can be used"), &missing).of(Class::Nodes);
                self.gaps.borrow_mut().insert(gap);
            }
        }
        let takers: Vec<usize> = (0..decisions.len())
            .filter(|node| State::takes(self.cast, &decisions[*node]))
            .collect();
        takers
    }

    /// Adds a choice for each way in which a pod that finds no node may preempt others.
    fn preempt(&self, state: &State<'a>, index: usize, choices: &mut Vec<State<'a>>) {
        let Some(incoming) = self.incoming(state, index) else { return };
        let set = &self.cast.sets[state.new[index].set];
        let priority = match state.new[index].waiting {
            Some(waiting) => preemption::priority(&self.cast.waiting[waiting].pod.spec),
            None => set.priority,
        };
        if !set.preempts || !preemption::may_preempt(incoming.spec) || incoming.spec.node_name.is_some() {
            return;
        }
        let decisions = scheduling::decide(&state.placement, &incoming);
        let hopeful = preemption::hopeful(&state.placement, &decisions, priority);
        if hopeful.is_empty() {
            return;
        }
        let key = &self.cast.workloads[set.workload].key;
        // Whom it puts out is not played then: in the best case it gets a node, in the worst none.
        let undecided = |why: &str, choices: &mut Vec<State<'a>>| {
            let gap = Gap::undecided(format!("whom the replacement of {key} preempts"), why.to_owned());
            self.gaps.borrow_mut().insert(gap.of(Class::Nodes).decisive());
            if !self.cast.assume.worst(Class::Nodes) {
                let mut next = state.clone();
                next.bind(self.cast, index, hopeful[0], hopeful.clone());
                choices.push(next);
            }
        };
        if hopeful.len() > MAX_PREEMPTION_TRIALS {
            undecided("on many nodes pods of a lower priority may have to give way to it", choices);
            return;
        }
        let ways = self.ways(state, &incoming, priority, &hopeful);
        let mut known = BTreeSet::new();
        for way in ways {
            let mut victims = Vec::new();
            for victim in &way.victims {
                match self.victim(state, victim) {
                    Some(known) => victims.push(known),
                    None if self.cast.nodes.contains(&way.node) || !self.was_bound(victim) => {
                        undecided("pods of a lower priority on a drained node may have to give way to it", choices);
                        return;
                    }
                    None => {
                        let name = (victim.namespace.to_owned(), victim.name.to_owned());
                        self.victims.borrow_mut().insert(name);
                    }
                }
            }
            if victims.len() < way.victims.len() {
                undecided("pods of a lower priority have to give way to it, and too many may", choices);
                continue;
            }
            let refused = |victim: &Victim| match victim {
                Victim::Candidate(victim) => state.refused(self.cast, &self.cast.candidates[*victim].eviction_hooks),
                Victim::New(_) => false,
            };
            victims.sort_unstable();
            if !victims.iter().any(refused) && known.insert((way.node, victims.clone())) {
                let mut next = state.clone();
                next.preempt(self.cast, index, way.node, &victims);
                choices.push(next);
            }
        }
    }

    /// The ways to make room for a pod of which the scheduler takes one.
    fn ways(&self, state: &State<'a>, incoming: &Incoming<'a>, priority: i64, hopeful: &[usize]) -> Vec<Way<'a>> {
        let snapshot = self.cast.snapshot;
        let guards: Vec<preemption::Guard<'a>> = snapshot
            .budgets
            .seen()
            .iter()
            .map(|budget| {
                let known = self.cast.budgets.iter().position(|entry| std::ptr::eq(entry.budget, budget));
                (
                    budget,
                    known.map_or(budget.status.disruptions_allowed, |known| state.allowances[known].allowed),
                )
            })
            .collect();
        let since = |occupant: &Occupant<'a>| snapshot.pods.find(occupant.namespace, occupant.name)?.status.start_time.0;
        let rules = preemption::Rules {
            priority,
            guards: &guards,
            since: &since,
            takes: &|decision| State::takes(self.cast, decision),
        };
        let ways: Vec<Way<'a>> = [false, true]
            .into_iter()
            .flat_map(|reversed| {
                let ways = hopeful
                    .iter()
                    .filter_map(|node| preemption::victims(&state.placement, incoming, &rules, *node, reversed));
                preemption::best(ways.collect())
            })
            .collect();
        // Budgets decide who is put out, not whether that helps.
        if ways.is_empty() {
            return ways;
        }
        let lower = hopeful.iter().flat_map(|node| state.placement.nodes()[*node].occupants());
        let namespaces: BTreeSet<&str> = lower
            .filter(|occupant| preemption::priority(occupant.spec) < priority)
            .map(|occupant| occupant.namespace)
            .collect();
        for missing in namespaces
            .iter()
            .filter_map(|namespace| snapshot.budgets.in_namespace(namespace).err())
        {
            let gap = Gap::unread("which pods of a lower priority their budgets would rather keep", &missing);
            self.gaps.borrow_mut().insert(gap.decisive());
        }
        ways
    }

    /// Whether it is a pod that had a node before the drain.
    fn was_bound(&self, occupant: &Occupant<'a>) -> bool {
        let pod = self.cast.snapshot.pods.find(occupant.namespace, occupant.name);
        pod.is_some_and(|pod| pod.node().is_some())
    }

    /// Who of those that take part a victim is.
    fn victim(&self, state: &State<'a>, victim: &Occupant<'a>) -> Option<Victim> {
        let candidates = &self.cast.candidates;
        let is = |candidate: &super::cast::Candidate<'a>| {
            let meta = &candidate.pod.metadata;
            candidate.victim && meta.namespace == victim.namespace && meta.name == victim.name
        };
        if let Some(found) = candidates.iter().position(is) {
            return Some(Victim::Candidate(found));
        }
        let same = |index: &usize| {
            let occupant = state.occupant(self.cast, *index);
            occupant.is_some_and(|occupant| occupant.namespace == victim.namespace && occupant.name == victim.name)
        };
        (0..state.new.len())
            .filter(|index| {
                !matches!(
                    state.new[*index].progress,
                    Progress::Pending | Progress::NotCreated | Progress::Gated
                )
            })
            .find(same)
            .map(Victim::New)
    }

    /// Whether one pod can be in another one's way by spread, affinity or ports.
    fn related_pods(&self, state: &State<'a>, one: usize, other: usize) -> bool {
        match (self.incoming(state, one), self.incoming(state, other)) {
            (Some(one), Some(other)) => related(&one, &other),
            _ => false,
        }
    }

    /// Whether one of the nodes has not room for everything that is still to be placed.
    fn short_of_room(&self, state: &State<'a>, nodes: &[usize]) -> bool {
        let mut load = Load::default();
        for rival in self.rivals(state, None) {
            load.add(&rival.template, rival.pods);
        }
        !nodes.iter().all(|node| state.placement.nodes()[*node].has_room_for(&load))
    }

    /// Adds a choice for each kind of node that the pod may go to.
    fn place_one(&self, state: &State<'a>, index: usize, nodes: &[usize], short: bool, choices: &mut Vec<State<'a>>) {
        let Some(incoming) = self.incoming(state, index) else { return };
        let set = state.new[index].set;
        // Among alike pods that only keep each other apart by one topology key, how many find a place does not hang on
        // the order or the choice, as long as no node runs short of room.
        let alike = !short && state.new[index].waiting.is_none() && keeps_apart_simply(&incoming);
        let views: Vec<View> = self
            .rivals(state, Some(index))
            .iter()
            .filter(|rival| !(alike && rival.set == set))
            .filter(|rival| short || related(&incoming, &rival.template))
            .map(|rival| View::new(self.cast, state, &incoming, &rival.template))
            .collect();
        let mut kinds: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for node in nodes {
            let own = (
                state.crashes(self.cast, index, *node),
                self.cast.nodes.contains(node),
                self.cast.later.iter().position(|later| later == node),
                state.placement.nodes()[*node].node().ready(),
            );
            let mut seen = Vec::new();
            for view in &views {
                view.describe(*node, &mut seen);
            }
            kinds.entry((own, seen)).or_default().push(*node);
        }
        for mut members in kinds.into_values() {
            let node = members[0];
            if alike {
                // An earlier one that was put somewhere for all may be where this one is.
                members.extend(state.new.iter().filter(|new| new.set == set).flat_map(|new| &new.nodes));
                members.sort_unstable();
                members.dedup();
            }
            let mut next = state.clone();
            next.bind(self.cast, index, node, members);
            choices.push(next);
        }
    }

    /// Pods that may have to be placed later, one entry for each set, without the one that is placed now.
    fn rivals(&self, state: &State<'a>, placed: Option<usize>) -> Vec<Rival<'a>> {
        let mut rivals = Vec::new();
        for (set, entry) in self.cast.sets.iter().enumerate() {
            let Some(template) = entry.template.filter(|_| entry.when.is_some() || entry.unknown) else {
                continue;
            };
            let waiting = state.new.iter().enumerate().filter(|(other, new)| {
                Some(*other) != placed && new.set == set && matches!(new.progress, Progress::Pending | Progress::NotCreated)
            });
            let to_come = (0..state.old.len()).filter(|candidate| {
                self.cast.candidates[*candidate].set == Some(set)
                    && (self.cast.removed(&self.cast.candidates[*candidate]) || state.old[*candidate] != Old::Here)
                    && !matches!(state.old[*candidate], Old::Failed(_))
                    && !state.new.iter().any(|new| new.replaces == Some(*candidate))
            });
            let pods = waiting.count() + to_come.count();
            if pods > 0 {
                rivals.push(Rival { set, template, pods });
            }
        }
        rivals
    }
}

/// Pods of one set that may have to be placed later.
struct Rival<'a> {
    set: usize,
    template: Incoming<'a>,
    pods: usize,
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

/// The same moment, where nothing makes the scheduler try again what it tried before.
fn waiting_for_the_flush<'a>(state: &State<'a>) -> State<'a> {
    let mut state = state.clone();
    for new in state.new.iter_mut().filter(|new| new.retry == Retry::Tried) {
        new.retry = Retry::Waits;
    }
    state
}

/// Whether the presence of one pod on a node can matter to the other by spread, affinity or ports.
fn related(one: &Incoming<'_>, other: &Incoming<'_>) -> bool {
    spread_by(one, other) || spread_by(other, one) || tied(one, other) || tied(other, one) || ports_collide(one, other)
}

/// Whether alike pods keep each other apart by at most one topology key, and by nothing that makes one crash.
fn keeps_apart_simply(pod: &Incoming<'_>) -> bool {
    let mut keys: BTreeSet<&str> = BTreeSet::new();
    if spread_by(pod, pod) {
        keys.extend(
            pod.spec
                .topology_spread_constraints
                .iter()
                .filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
                .map(|constraint| constraint.topology_key.as_str()),
        );
    }
    let affinity = &pod.spec.affinity;
    if !affinity.pod_affinity.required_during_scheduling_ignored_during_execution.is_empty() {
        return false;
    }
    keys.extend(
        affinity
            .pod_anti_affinity
            .required_during_scheduling_ignored_during_execution
            .iter()
            .map(|term| term.topology_key.as_str()),
    );
    keys.len() <= 1 && host_ports::undeclared(pod.spec).is_empty()
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
    /// Whether each node takes it now; below 0 where no pod that goes or comes changes that it does not.
    takes: Vec<i64>,
    /// The same beside the pod that is placed now.
    takes_after: Vec<i64>,
    /// For each topology domain that matters between the two, the code of each node's domain.
    domains: Vec<Vec<i64>>,
}

impl View {
    fn new<'a>(cast: &Cast<'a>, state: &State<'a>, placed: &Incoming<'a>, rival: &Incoming<'a>) -> Self {
        let look = |placement: &Placement<'a>| -> Vec<i64> {
            scheduling::decide(placement, rival)
                .iter()
                .map(|decision| match decision {
                    Decision::Refused(reason) if !preemption::resolvable(reason) => -1,
                    decision => i64::from(State::takes(cast, decision)),
                })
                .collect()
        };
        let takes = look(&state.placement);
        // A node may refuse the rival only because it must be near the pod that is placed now.
        let related = related(placed, rival);
        let mut beside = state.placement.clone();
        for (node, takes) in takes.iter().enumerate() {
            if *takes > 0 || related {
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
        let takes_after = look(&beside);
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
        kind.push(self.takes[node]);
        kind.push(self.takes_after[node]);
        kind.extend(self.domains.iter().map(|codes| codes[node]));
    }
}

/// A code for each node's domain: domains of one node are alike when they hold equally many of the rival's kind, and of the
/// pods that each of its hard spread constraints counts.
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
    let held = |index: usize| {
        let occupants = || {
            let all = nodes[index].occupants();
            all.filter(|occupant| occupant.namespace == rival.namespace && !occupant.terminating)
        };
        let alike = occupants().filter(|occupant| occupant.labels == rival.labels).count();
        let counted = rival
            .spec
            .topology_spread_constraints
            .iter()
            .filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule" && constraint.topology_key == key)
            .filter_map(|constraint| constraint.label_selector.as_ref())
            .map(|selector| occupants().filter(|occupant| selectors::matches(selector, occupant.labels)).count());
        std::iter::once(alike).chain(counted).collect::<Vec<usize>>()
    };
    let mut known: BTreeMap<Vec<usize>, i64> = BTreeMap::new();
    (0..nodes.len())
        .map(|index| match value(index).and_then(|value| sizes.get(value)) {
            None => -1,
            Some((_, 1)) => {
                let next = super::cast::count(known.len());
                *known.entry(held(index)).or_insert(next)
            }
            Some((code, _)) => 1_000_000 + code,
        })
        .collect()
}
