//! `replicas-share-node`, `replicas-share-zone`, `too-few-nodes`, `spread-without-selector`, `spread-not-enforced`,
//! `spread-skewed`.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::objects::{Pod, TopologySpreadConstraint};
use crate::gpustack::components::Loss;
use crate::gpustack::values;
use crate::kubernetes::scheduling::{self, Decision, Incoming, SpreadCounts};
use crate::kubernetes::selectors;
use crate::report::finding::{Finding, Remedy, Severity};

use super::facts::{Facts, Workload, zone};
use super::{about, at_risk, remedy};
use crate::checks::codes::Code;
use crate::checks::{count, for_good, listed};

const HOSTNAME: &str = "kubernetes.io/hostname";

/// Replicas by node, of those that stay.
fn by_node<'a>(workload: &Workload<'a>) -> BTreeMap<&'a str, Vec<&'a Pod>> {
    let mut nodes: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in workload.pods.iter().filter(|pod| !pod.metadata.terminating()) {
        if let Some(node) = pod.node() {
            nodes.entry(node).or_default().push(pod);
        }
    }
    nodes
}

/// Replicas that share a node, though there are nodes for each.
pub fn share_node(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in &facts.workloads {
        let nodes = by_node(workload);
        let replicas: usize = nodes.values().map(Vec::len).sum();
        if replicas < 2 || nodes.len() == replicas {
            continue;
        }
        let suitable = facts.suitable(workload).map_or(usize::MAX, |nodes| nodes.len());
        if nodes.len() >= replicas.min(suitable.max(2)) {
            continue;
        }
        let severity = if suitable < 2 { Severity::Info } else { Severity::AtRisk };
        let crowded = nodes.iter().max_by_key(|(_, pods)| pods.len());
        let Some((node, pods)) = crowded.filter(|(_, pods)| pods.len() > 1) else {
            continue;
        };
        let name = &workload.key.name;
        let mut item = about(
            workload,
            Code::ReplicasShareNode,
            severity,
            if pods.len() == replicas {
                format!("all {replicas} replicas of {name} are on {node}")
            } else {
                format!("{} of the {replicas} replicas of {name} are on {node}", pods.len())
            },
        );
        item.node = Some((*node).to_owned());
        item.evidence = nodes.iter().map(|(node, pods)| format!("{node}: {}", pods.len())).collect();
        if suitable != usize::MAX {
            item.evidence.push(format!("{suitable} nodes could hold them"));
        }
        item.consequence = if pods.len() == replicas {
            format!("the loss or the drain of {node} takes all of them")
        } else {
            format!("the loss of {node} takes {} of them at once", pods.len())
        };
        item.remedy = if severity == Severity::Info {
            remedy("give the cluster another node that takes them", None, None)
        } else {
            move_one(facts, workload, pods)
        };
        found.push(item);
    }
    found
}

/// Moves one of these pods away: one that is not Ready, else one that leads nothing, if there is one.
fn move_one(facts: &Facts<'_>, workload: &Workload<'_>, pods: &[&Pod]) -> Remedy {
    let leads = |pod: &Pod| {
        let holders = workload.elections.iter().filter_map(|led| led.holder.as_ref()?.pod());
        holders.into_iter().any(|holder| holder.key() == pod.key())
    };
    let chosen = pods.iter().min_by_key(|pod| (facts.ready(pod), leads(pod)));
    let key = if enforced(workload) {
        None
    } else {
        workload.values_key(facts, values::spread)
    };
    remedy(
        format!(
            "keep them apart{}: delete one, and its replacement may land elsewhere:",
            for_good(key.as_deref())
        ),
        chosen.map(|pod| {
            facts
                .kubectl
                .line(["delete", "pod", &pod.metadata.name, "-n", &workload.key.namespace])
        }),
        key,
    )
}

/// Replicas that are all in one zone, though nodes of another could hold them.
pub fn share_zone(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in &facts.workloads {
        let placed: Vec<&&Pod> = workload.pods.iter().filter(|pod| facts.ready(pod)).collect();
        let used: BTreeSet<Option<&str>> = placed.iter().map(|pod| facts.node(pod).and_then(zone)).collect();
        let Some(Some(only)) = used.first().filter(|_| used.len() == 1 && placed.len() > 1) else {
            continue;
        };
        let suitable = facts.suitable(workload).unwrap_or_default();
        let possible: BTreeSet<&str> = suitable.iter().filter_map(|node| zone(node)).collect();
        if possible.len() < 2 {
            continue;
        }
        let mut item = about(
            workload,
            Code::ReplicasShareZone,
            Severity::Info,
            format!("all {} Ready replicas are in zone {only}", placed.len()),
        );
        item.evidence = vec![format!(
            "zones with nodes that could hold them: {}",
            listed(&possible.iter().map(|zone| (*zone).to_owned()).collect::<Vec<_>>())
        )];
        item.consequence = format!("the loss of zone {only} takes all of them");
        item.remedy = remedy(
            "spread them over topology.kubernetes.io/zone, as a preference (ScheduleAnyway), beside the host names",
            None,
            None,
        );
        found.push(item);
    }
    found
}

/// Components with more replicas than nodes that could hold one.
pub fn too_few_nodes(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in facts.workloads.iter().filter(|workload| workload.id.is_some()) {
        let (Ok(suitable), Some(wanted), Some((labels, spec))) = (facts.suitable(workload), workload.desired, workload.template) else {
            continue;
        };
        if wanted < 2 || count(suitable.len()) >= wanted {
            continue;
        }
        let mut item = about(
            workload,
            Code::TooFewNodes,
            Severity::Info,
            format!(
                "{} can hold a replica, and {wanted} are wanted",
                crate::report::words::counted(suitable.len(), "node")
            ),
        );
        let incoming = Incoming {
            namespace: &workload.key.namespace,
            labels,
            spec,
        };
        let mut refused: BTreeMap<String, usize> = BTreeMap::new();
        for node in facts.snapshot.nodes.seen() {
            match scheduling::suits(facts.snapshot, node, &incoming) {
                Decision::Fits => {}
                Decision::Refused(why) | Decision::Unknown(why) => *refused.entry(why).or_default() += 1,
            }
        }
        item.evidence = refused
            .into_iter()
            .map(|(why, nodes)| format!("{nodes} of {}: {why}", facts.snapshot.nodes.seen().len()))
            .collect();
        item.consequence = if enforced(workload) {
            "the surplus stays Pending".to_owned()
        } else {
            "some of them share a node".to_owned()
        };
        item.remedy = remedy(
            "more nodes that it tolerates and that its selectors match, or fewer replicas",
            None,
            None,
        );
        found.push(item);
    }
    found
}

/// Whether a spread constraint counts no pod.
fn counts_nothing(constraint: &TopologySpreadConstraint) -> bool {
    constraint
        .label_selector
        .as_ref()
        .is_none_or(|selector| selectors::empty(selector) && constraint.match_label_keys.is_empty())
}

/// Whether something keeps the replicas on different nodes for certain.
fn enforced(workload: &Workload<'_>) -> bool {
    let Some((labels, spec)) = workload.template else { return false };
    let spread = spec.topology_spread_constraints.iter().any(|constraint| {
        constraint.topology_key == HOSTNAME && constraint.when_unsatisfiable == "DoNotSchedule" && !counts_nothing(constraint)
    });
    let terms = &spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution;
    spread
        || terms.iter().any(|term| {
            term.topology_key == HOSTNAME
                && term
                    .label_selector
                    .as_ref()
                    .is_some_and(|selector| selectors::matches(selector, labels))
        })
}

/// Spread constraints that spread nothing.
pub fn without_selector(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in &facts.workloads {
        let constraints = workload.template.map(|(_, spec)| spec.topology_spread_constraints.as_slice());
        let idle: Vec<String> = constraints
            .unwrap_or_default()
            .iter()
            .filter(|constraint| counts_nothing(constraint))
            .map(|constraint| {
                let selector = if constraint.label_selector.is_none() { "no" } else { "an empty" };
                format!(
                    "{} ({}): {selector} labelSelector",
                    constraint.topology_key, constraint.when_unsatisfiable
                )
            })
            .collect();
        if idle.is_empty() {
            continue;
        }
        let mut item = at_risk(
            workload,
            Code::SpreadWithoutSelector,
            format!(
                "{} has a spread constraint that counts no pod, so it spreads nothing",
                workload.key.name
            ),
        );
        item.evidence = idle;
        item.consequence = "replicas may share a node, whatever the constraint says".to_owned();
        let key = workload.values_key(facts, values::spread);
        item.remedy = if key.is_some() {
            remedy("give the constraint the selector of its own pods", None, key)
        } else {
            remedy(
                "give the constraint the selector of its own pods:",
                Some(facts.kubectl.line(["edit", &workload.reference(), "-n", &workload.key.namespace])),
                None,
            )
        };
        found.push(item);
    }
    found
}

/// Components whose replicas only happen to be on different nodes.
pub fn not_enforced(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in &facts.workloads {
        let matters = workload.id.is_some_and(|id| id.info().loss != Loss::Housekeeping);
        if !matters || workload.desired.is_none_or(|wanted| wanted < 2) || enforced(workload) {
            continue;
        }
        let mut item = about(
            workload,
            Code::SpreadNotEnforced,
            Severity::Info,
            "nothing keeps its replicas on different nodes for certain".to_owned(),
        );
        item.evidence = vec!["no hard spread over host names that counts its pods, and no required anti-affinity".to_owned()];
        item.consequence = "after drains and restarts they may share a node".to_owned();
        let key = workload.values_key(facts, values::spread);
        item.remedy = remedy("a hard spread, with no more replicas than nodes", None, key);
        found.push(item);
    }
    found
}

/// Hard spread constraints that the present placement breaks.
pub fn skewed(facts: &Facts<'_>) -> Vec<Finding> {
    let constrained = |workload: &&Workload<'_>| {
        workload
            .template
            .is_some_and(|(_, spec)| !spec.topology_spread_constraints.is_empty())
    };
    if facts.snapshot.nodes.all().is_err() || !facts.workloads.iter().any(|workload| constrained(&workload)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for workload in facts.workloads.iter().filter(constrained) {
        let Some((labels, spec)) = workload.template.filter(|_| workload.unread.is_none()) else {
            continue;
        };
        let incoming = Incoming {
            namespace: &workload.key.namespace,
            labels,
            spec,
        };
        let skew = |counts: &SpreadCounts| counts.domains.values().max().copied().unwrap_or(0) - counts.minimum;
        let worst = scheduling::spread_counts(facts.placement(), &incoming)
            .into_iter()
            .filter(|counts| skew(counts) > counts.max_skew)
            .max_by_key(skew);
        let Some(counts) = worst else { continue };
        let Some((domain, most)) = counts.domains.iter().max_by_key(|(_, pods)| **pods) else {
            continue;
        };
        let fewest = counts.domains.iter().min_by_key(|(_, pods)| **pods);
        let least = fewest.filter(|(_, pods)| **pods == counts.minimum).map_or_else(
            || format!("{} domains are too few", counts.domains.len()),
            |(domain, pods)| format!("{pods} on {domain}"),
        );
        let mut item = at_risk(
            workload,
            Code::SpreadSkewed,
            format!(
                "{} has {most} replicas on {domain} and {least}, though maxSkew is {}",
                workload.key.name, counts.max_skew
            ),
        );
        item.evidence = counts
            .domains
            .iter()
            .map(|(domain, pods)| format!("{} {domain}: {pods}", counts.topology_key))
            .collect();
        item.consequence = format!("the scheduler moves nothing by itself, and the loss of {domain} takes {most} at once");
        let there: Vec<&Pod> = workload
            .pods
            .iter()
            .copied()
            .filter(|pod| {
                let labels = facts.node(pod).map(|node| &node.metadata.labels);
                !pod.metadata.terminating() && labels.and_then(|labels| labels.get(&counts.topology_key)) == Some(domain)
            })
            .collect();
        item.remedy = move_one(facts, workload, &there);
        found.push(item);
    }
    found
}
