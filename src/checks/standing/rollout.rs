//! `strategy-recreate`, `surge-port-collision`, `rollout-stalls`.

use std::collections::BTreeMap;

use crate::gpustack::components::Loss;
use crate::gpustack::values;
use crate::kubernetes::host_ports;
use crate::kubernetes::surge::{self, Surge};
use crate::report::finding::{Certainty, Finding, Severity};

use super::facts::Facts;
use super::{at_risk, remedy};
use crate::checks::codes::Code;
use crate::checks::{count, finding, listed, object};

/// Components that a rollout stops as a whole, though they have standbys.
pub fn recreate(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in &facts.workloads {
        let (Some(id), Some(deployment), Some(wanted)) = (workload.id, workload.deployment, workload.desired) else {
            continue;
        };
        if deployment.spec.strategy.kind != "Recreate" || wanted < 2 {
            continue;
        }
        let info = id.info();
        // Where a new pod must find its port free, old ones have to go first.
        let needs_room = info.health_port_key.is_some() && facts.suitable(workload).is_ok_and(|nodes| count(nodes.len()) <= wanted);
        if needs_room {
            continue;
        }
        let mut item = at_risk(
            workload,
            Code::StrategyRecreate,
            format!(
                "a rollout of {} stops all {wanted} replicas before the first new one starts",
                workload.key.name
            ),
        );
        item.evidence = vec!["strategy.type: Recreate".to_owned()];
        item.consequence = match info.loss {
            Loss::Served => "during every upgrade its webhooks and APIs are down until a new replica is Ready".to_owned(),
            _ => "during every upgrade it does not work until a new replica runs".to_owned(),
        };
        let key = workload.values_key(facts, |mode, id, _| values::strategy(mode, id, "RollingUpdate"));
        item.remedy = remedy(
            if info.loss == Loss::Served {
                "RollingUpdate keeps it served, at the price of two versions of its API side by side during an upgrade; or accept the pause, with --accept strategy-recreate"
            } else {
                "RollingUpdate keeps a replica running"
            },
            None,
            key,
        );
        found.push(item);
    }
    found
}

/// Rollouts whose new pods find their host port taken.
pub fn surge_port(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = beside_themselves(facts);
    for workload in &facts.workloads {
        let Some(deployment) = workload.deployment else { continue };
        let Surge::Collides(collision) = facts.surge(deployment) else {
            continue;
        };
        let fate = if collision.crashes { "crash-loops" } else { "stays Pending" };
        let port = collision.taken.first().map(|taken| taken.port.port.to_string()).unwrap_or_default();
        let mut item = at_risk(
            workload,
            Code::SurgePortCollision,
            format!(
                "the first new pod of a rollout of {} {} where port {port} is taken, and {fate}",
                workload.key.name,
                if collision.certain { "lands" } else { "may land" }
            ),
        );
        item.certainty = if collision.certain {
            Certainty::Certain
        } else {
            Certainty::Possible
        };
        item.evidence = collision
            .taken
            .iter()
            .map(|taken| {
                let who = if taken.pod.is_empty() { "another new pod" } else { &taken.pod };
                format!("{}: {who} binds {} ({})", taken.node, taken.port.port, taken.port.from)
            })
            .collect();
        item.consequence = "the rollout, and with it the upgrade, does not come to an end by itself".to_owned();
        let key = workload.values_key(facts, |mode, id, _| values::strategy(mode, id, "Recreate"));
        item.remedy = remedy(
            "let an old pod go before a new one comes: maxSurge 0, or Recreate; or have one node more than replicas:",
            Some(make_room(facts, &workload.reference(), &workload.key.namespace, "strategy")),
            key,
        );
        found.push(item);
    }
    found
}

/// DaemonSets whose updates make a new pod beside the old one that has its port.
fn beside_themselves(facts: &Facts<'_>) -> Vec<Finding> {
    let running = facts.daemon_sets().filter(|set| set.status.desired_number_scheduled > 0);
    running
        .filter_map(|set| {
            let fate = if surge::beside_itself(set)? {
                "crash-loops"
            } else {
                "stays Pending"
            };
            let (name, namespace) = (&set.metadata.name, &set.metadata.namespace);
            let mut item = finding(
                Code::SurgePortCollision,
                Severity::AtRisk,
                Certainty::Certain,
                object("DaemonSet", namespace, name),
                format!("an update of {name} makes a new pod beside the old one, which has its port, and {fate}"),
            );
            let ports = host_ports::bound(&set.spec.template.spec);
            item.evidence = ports.iter().map(|port| format!("binds {} ({})", port.port, port.from)).collect();
            item.evidence.push("updateStrategy.rollingUpdate.maxSurge is above zero".to_owned());
            item.consequence = "the update does not come to an end by itself".to_owned();
            item.remedy = remedy(
                "let the old pod go first:",
                Some(make_room(facts, &format!("daemonset/{name}"), namespace, "updateStrategy")),
                None,
            );
            Some(item)
        })
        .collect()
}

/// Lets an old pod go first; `strategy` is the field that says how the kind rolls out.
fn make_room(facts: &Facts<'_>, workload: &str, namespace: &str, strategy: &str) -> String {
    let patch = format!(r#"{{"spec":{{"{strategy}":{{"rollingUpdate":{{"maxSurge":0,"maxUnavailable":1}}}}}}}}"#);
    facts
        .kubectl
        .line(["patch", workload, "-n", namespace, "--type=merge", "-p", &patch])
}

/// Rollouts whose first new pod waits for the old ones, which wait for it.
pub fn stalls(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in &facts.workloads {
        let Some(Surge::Stalls(refusals)) = workload.deployment.map(|deployment| facts.surge(deployment)) else {
            continue;
        };
        let name = &workload.key.name;
        let mut item = at_risk(
            workload,
            Code::RolloutStalls,
            format!("a rollout of {name} does not get on: no node takes a new pod beside the old ones"),
        );
        let mut nodes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (node, why) in refusals {
            nodes.entry(why.clone()).or_default().push(node.clone());
        }
        item.evidence = nodes.into_iter().map(|(why, nodes)| format!("{}: {why}", listed(&nodes))).collect();
        item.evidence
            .push("maxUnavailable 0: no old pod goes before a new one is Ready".to_owned());
        item.consequence = "the new pod stays Pending; the old ones go on, and the upgrade does not come to an end by itself".to_owned();
        item.remedy = remedy(
            "let an old pod go before a new one comes; or have one node more than replicas:",
            Some(make_room(facts, &workload.reference(), &workload.key.namespace, "strategy")),
            None,
        );
        found.push(item);
    }
    found
}
