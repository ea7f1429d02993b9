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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::cluster::objects::Pod;
    use crate::cluster::snapshot::Snapshot;
    use crate::kubernetes::testing::snapshot;

    /// Nodes of four cores, and pods as `name@node priority cpu minute`.
    fn cluster(nodes: &[&str], pods: &[&str], budget: &str) -> Snapshot {
        let mut text = String::new();
        for node in nodes {
            text += &format!(
                "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {node}}}\nstatus: {{allocatable: {{cpu: 4, memory: 8Gi, pods: 10}}}}\n"
            );
        }
        for pod in pods {
            let words: Vec<&str> = pod.split([' ', '@']).collect();
            let [name, node, priority, cpu, minute] = words[..] else {
                panic!("{pod}")
            };
            text += &format!(
                "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: d, labels: {{app: {name}}}}}\nspec: {{nodeName: {node}, priority: {priority}, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}\nstatus: {{startTime: 2026-01-01T00:{minute}:00Z}}\n"
            );
        }
        if !budget.is_empty() {
            text += &format!(
                "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: b, namespace: d}}\nspec: {{selector: {budget}}}\nstatus: {{disruptionsAllowed: 0}}\n"
            );
        }
        snapshot(&text)
    }

    /// Where a pod of priority 100 preempts whom: `node: names`.
    fn said(snapshot: &Snapshot, cpu: i64) -> Vec<String> {
        let pod: Pod = serde_yaml::from_str(&format!(
            "{{metadata: {{namespace: d}}, spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}"
        ))
        .unwrap();
        let incoming = Incoming {
            namespace: "d",
            labels: &pod.metadata.labels,
            spec: &pod.spec,
        };
        let placement = Placement::new(snapshot);
        let guards: Vec<Guard<'_>> = snapshot
            .budgets
            .seen()
            .iter()
            .map(|budget| (budget, budget.status.disruptions_allowed))
            .collect();
        let rules = Rules {
            priority: 100,
            guards: &guards,
            since: &|occupant| snapshot.pods.find("d", occupant.name)?.status.start_time.0,
            takes: &|decision| *decision == Decision::Fits,
        };
        let decisions = scheduling::decide(&placement, &incoming);
        let ways = hopeful(&placement, &decisions, 100)
            .into_iter()
            .filter_map(|node| victims(&placement, &incoming, &rules, node, false));
        best(ways.collect())
            .iter()
            .map(|way| {
                let names: Vec<&str> = way.victims.iter().map(|victim| victim.name).collect();
                format!("{}: {}", placement.nodes()[way.node].name(), names.join(" "))
            })
            .collect()
    }

    #[test]
    fn only_pods_of_a_lower_priority_go_and_no_more_than_needed() {
        assert!(said(&cluster(&["a"], &["x@a 100 3 00"], ""), 2).is_empty());
        assert!(said(&cluster(&["a"], &["x@a 50 1 00", "y@a 100 3 00"], ""), 3).is_empty());
        let mixed = cluster(&["a"], &["x@a 50 2 00", "y@a 10 1 00", "z@a 10 1 05"], "");
        assert_eq!(said(&mixed, 1), ["a: z"]);
        assert_eq!(said(&mixed, 2), ["a: y z"]);
        assert_eq!(said(&mixed, 3), ["a: x z"]);
    }

    #[test]
    fn the_node_whose_victims_matter_least() {
        let nodes = ["a", "b"];
        assert_eq!(said(&cluster(&nodes, &["x@a 50 4 00", "y@b 10 4 00"], ""), 4), ["b: y"]);
        assert_eq!(
            said(&cluster(&nodes, &["x@a 10 2 00", "w@a 10 2 00", "y@b 10 4 00"], ""), 4),
            ["b: y"]
        );
        assert_eq!(
            said(&cluster(&nodes, &["x@a -10 2 00", "w@a -10 2 00", "y@b -10 4 00"], ""), 4),
            ["b: y"]
        );
        assert_eq!(said(&cluster(&nodes, &["x@a 10 4 00", "y@b 10 4 05"], ""), 4), ["b: y"]);
        assert_eq!(said(&cluster(&nodes, &["x@a 10 4 00", "y@b 10 4 00"], ""), 4), ["a: x", "b: y"]);
    }

    #[test]
    fn a_budget_is_kept_to_where_that_is_possible() {
        let nodes = ["a", "b"];
        let pods = ["x@a 10 4 00", "y@b 50 4 00"];
        assert_eq!(said(&cluster(&nodes, &pods, "{matchLabels: {app: x}}"), 4), ["b: y"]);
        assert_eq!(said(&cluster(&nodes, &pods, "{}"), 4), ["a: x"]);
        assert_eq!(said(&cluster(&nodes[..1], &pods[..1], "{matchLabels: {app: x}}"), 4), ["a: x"]);
        // One that allows a disruption, or is over pods of another namespace, keeps nobody.
        let guarded = |namespace: &str, allowed: i64| {
            let mut read = cluster(&nodes, &pods, "");
            let text = format!(
                "{{metadata: {{name: b, namespace: {namespace}}}, spec: {{selector: {{matchLabels: {{app: x}}}}}}, status: {{disruptionsAllowed: {allowed}}}}}"
            );
            let budget: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
            read.objects.insert(Kind::PodDisruptionBudget, budget).unwrap();
            read.objects.settle();
            said(&read, 4)
        };
        assert_eq!(guarded("d", 0), ["b: y"]);
        assert_eq!(guarded("d", 1), ["a: x"]);
        assert_eq!(guarded("e", 0), ["a: x"]);
        // On one node it is spared before one of a higher priority.
        let beside = cluster(&["a"], &["x@a 10 2 00", "y@a 50 2 00"], "{matchLabels: {app: x}}");
        assert_eq!(said(&beside, 2), ["a: y"]);
    }

    #[test]
    fn what_no_removal_mends() {
        for (reason, mends) in [
            ("Insufficient cpu", true),
            ("Too many pods", true),
            ("node(s) didn't have free ports for the requested pod ports", true),
            ("node(s) didn't match pod anti-affinity rules", true),
            ("node(s) didn't match pod affinity rules", false),
            ("node(s) were unschedulable", false),
            ("node(s) had untolerated taint(s): k:NoSchedule", false),
        ] {
            assert_eq!(resolvable(reason), mends, "{reason}");
        }
        let never: PodSpec = serde_yaml::from_str("{preemptionPolicy: Never}").unwrap();
        assert!(!may_preempt(&never) && may_preempt(&PodSpec::default()));
    }
}
