//! Which pods of a lower priority give way to one that finds no place
//! (`pkg/scheduler/framework/plugins/defaultpreemption`, `pkg/scheduler/framework/preemption`).

use jiff::Timestamp;

use super::scheduling::{self, Decision, Incoming, Occupant, Placement};
use super::selectors;
use crate::cluster::objects::{PodDisruptionBudget, PodSpec};

/// A budget, and how many disruptions it allows now.
pub type Guard<'a> = (&'a PodDisruptionBudget, i64);

/// A node on which a pod would fit, and who would have to go for it.
#[derive(Clone, Debug)]
pub struct Way<'a> {
    /// Index of the node.
    pub node: usize,
    /// Who goes, most important first; never empty.
    pub victims: Vec<Occupant<'a>>,
    /// How many of them a budget would rather keep.
    pub violations: usize,
    /// Since when the longest running of the most important victims runs; `None` where that is not known.
    since: Option<Timestamp>,
}

/// What decides over preemption besides the placement.
pub struct Rules<'r, 'a> {
    /// The priority of the pod that finds no place.
    pub priority: i64,
    /// The budgets that may be over victims.
    pub guards: &'r [Guard<'a>],
    /// Since when a pod runs, where that is known.
    pub since: &'r dyn Fn(&Occupant<'a>) -> Option<Timestamp>,
    /// Whether a node takes the pod by what the filters say.
    pub takes: &'r dyn Fn(&Decision) -> bool,
}

/// The priority of a pod (`k8s.io/component-helpers/scheduling/corev1/helpers.go`, PodPriority).
pub fn priority(spec: &PodSpec) -> i64 {
    spec.priority.unwrap_or(0)
}

/// Whether a pod may preempt others at all (PodEligibleToPreemptOthers).
pub fn may_preempt(spec: &PodSpec) -> bool {
    spec.preemption_policy.as_deref() != Some("Never")
}

/// Whether a refusal can end by the removal of pods from the node: the filter says Unschedulable, and not
/// UnschedulableAndUnresolvable.
pub fn resolvable(refusal: &str) -> bool {
    const WORDS: [&str; 5] = ["ports", "anti-affinity", "spread", "max volume count", "Too many pods"];
    refusal.starts_with("Insufficient") || scheduling::refuses_volume_in_use(refusal) || WORDS.iter().any(|word| refusal.contains(word))
}

/// The nodes that refuse the pod for a reason that preemption can remove, and that have pods of a lower priority.
pub fn hopeful(placement: &Placement<'_>, decisions: &[Decision], priority: i64) -> Vec<usize> {
    (0..decisions.len())
        .filter(|node| matches!(&decisions[*node], Decision::Refused(reason) if resolvable(reason)))
        .filter(|node| {
            placement.nodes()[*node]
                .occupants()
                .any(|occupant| self::priority(occupant.spec) < priority)
        })
        .collect()
}

/// Who would have to go for the pod on one of the [`hopeful`] nodes; `None` where it does not fit even so
/// (SelectVictimsOnNode). Of victims alike in priority and age either may be reprieved first: `reversed` takes the other.
pub fn victims<'a>(placement: &Placement<'a>, pod: &Incoming<'a>, rules: &Rules<'_, 'a>, node: usize, reversed: bool) -> Option<Way<'a>> {
    let mut without = placement.clone();
    let mut potential: Vec<Occupant<'a>> = placement.nodes()[node]
        .occupants()
        .filter(|occupant| priority(occupant.spec) < rules.priority)
        .copied()
        .collect();
    for victim in &potential {
        without.remove(node, victim.namespace, victim.name);
    }
    let fits = |placement: &Placement<'a>| (rules.takes)(&scheduling::decide_on(placement, pod, node));
    if !fits(&without) {
        return None;
    }
    if reversed {
        potential.reverse();
    }
    // Most important first; among equals the older one. What has no age has just been made.
    potential.sort_by_key(|occupant| {
        let since = (rules.since)(occupant);
        (std::cmp::Reverse(priority(occupant.spec)), since.is_none(), since)
    });
    let (violating, others) = violating(&potential, rules.guards);
    let mut victims = Vec::new();
    let mut violations = 0;
    for (occupant, violates) in violating
        .into_iter()
        .map(|occupant| (occupant, true))
        .chain(others.into_iter().map(|occupant| (occupant, false)))
    {
        without.bind(node, occupant);
        if !fits(&without) {
            without.remove(node, occupant.namespace, occupant.name);
            violations += usize::from(violates);
            victims.push(occupant);
        }
    }
    victims.sort_by_key(|occupant| std::cmp::Reverse(priority(occupant.spec)));
    let highest = victims.first().map(|victim| priority(victim.spec))?;
    let ages = victims
        .iter()
        .filter(|victim| priority(victim.spec) == highest)
        .map(|victim| (rules.since)(victim));
    Some(Way {
        node,
        since: ages.collect::<Option<Vec<_>>>().and_then(|ages| ages.into_iter().min()),
        victims,
        violations,
    })
}

/// Splits pods by whether their budgets would be violated (filterVictimsWithPDBViolation). An empty selector matches
/// nothing here, against what the eviction API takes it to match.
fn violating<'a>(pods: &[Occupant<'a>], guards: &[Guard<'a>]) -> (Vec<Occupant<'a>>, Vec<Occupant<'a>>) {
    let mut left: Vec<i64> = guards.iter().map(|(_, allowed)| *allowed).collect();
    pods.iter().partition(|pod| {
        let mut violates = false;
        for (index, (budget, _)) in guards.iter().enumerate() {
            let selects = budget.metadata.namespace == pod.namespace
                && !pod.labels.is_empty()
                && budget
                    .spec
                    .selector
                    .as_ref()
                    .is_some_and(|selector| !selectors::empty(selector) && selectors::matches(selector, pod.labels));
            if selects && !violates && !budget.status.disrupted_pods.contains_key(pod.name) {
                left[index] -= 1;
                violates = left[index] < 0;
            }
        }
        violates
    })
}

/// The ways of which the scheduler takes one: by fewest budgets violated, the lowest of the highest priorities, the
/// lowest sum of priorities, the fewest victims, and the youngest of the most important (pickOneNodeForPreemption).
pub fn best(ways: Vec<Way<'_>>) -> Vec<Way<'_>> {
    let rank = |way: &Way<'_>| {
        let priorities = || way.victims.iter().map(|victim| i128::from(priority(victim.spec)));
        (
            way.violations,
            priorities().max(),
            priorities().map(|priority| priority + (1 << 31)).sum::<i128>(),
            way.victims.len(),
        )
    };
    let Some(least) = ways.iter().map(rank).min() else {
        return Vec::new();
    };
    let mut best: Vec<Way<'_>> = ways.into_iter().filter(|way| rank(way) == least).collect();
    // One whose age is not known may be the youngest.
    if best.iter().all(|way| way.since.is_some()) {
        let youngest = best.iter().filter_map(|way| way.since).max();
        best.retain(|way| way.since == youngest);
    }
    best
}
