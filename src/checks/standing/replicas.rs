//! `replicas-not-ready`, `below-ha-replicas`.

use crate::gpustack::components::{COMPONENT, ComponentId, Loss, PART_OF, label};
use crate::gpustack::values;
use crate::report::finding::{Finding, Remedy};
use crate::report::placement::ReplicaState;

use super::facts::{Facts, Workload};
use super::{about, at_risk, gap, remedy, scale};
use crate::checks::codes::Code;
use crate::checks::{count, for_good};

/// Workloads of which fewer replicas are Ready than are wanted.
pub fn not_ready(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in facts.workloads.iter().filter(|workload| workload.unread.is_none()) {
        let ready = count(workload.pods.iter().filter(|pod| facts.ready(pod)).count());
        let Some(wanted) = workload.desired.filter(|wanted| ready < *wanted) else {
            continue;
        };
        if ready > 0 && cache_leader(workload) {
            continue;
        }
        let name = &workload.key.name;
        let mut item = at_risk(
            workload,
            Code::ReplicasNotReady,
            format!(
                "{ready} of the {wanted} replicas of {name} {} Ready",
                if ready == 1 { "is" } else { "are" }
            ),
        );
        for pod in &workload.pods {
            let (state, why) = facts.state(pod);
            if state != ReplicaState::Ready {
                let place = pod.node().map(|node| format!(" on {node}")).unwrap_or_default();
                let why = why.map(|why| format!(": {}", why.trim_end_matches('.'))).unwrap_or_default();
                item.evidence
                    .push(format!("{}{place} {}{why}", pod.metadata.name, state.in_words()));
            }
        }
        let missing = wanted - count(workload.pods.len());
        if missing > 0 {
            item.evidence.push(format!("{missing} not created"));
        }
        item.consequence = match ready {
            0 if workload.answers.is_empty() => "nothing of it works".to_owned(),
            0 => "nobody answers what the API server calls there".to_owned(),
            _ => format!(
                "{ready} {} all that there is now; a drain or a lost node takes from that",
                if ready == 1 { "is" } else { "are" }
            ),
        };
        item.remedy = what_helps(facts, workload);
        found.push(item);
    }
    found
}

/// Whether it is a cache's leader: of its replicas only the one that leads is ever Ready.
fn cache_leader(workload: &Workload<'_>) -> bool {
    let labels = workload.deployment.map(|deployment| &deployment.spec.template.metadata.labels);
    workload.id.is_none()
        && workload.key.name.ends_with("-leader")
        && labels.is_some_and(|labels| {
            label(labels, PART_OF) == Some("gpustack-operator-worker") && label(labels, COMPONENT) != Some("operator")
        })
}

/// What makes the first replica that is not Ready start.
fn what_helps(facts: &Facts<'_>, workload: &Workload<'_>) -> Remedy {
    let namespace = workload.key.namespace.as_str();
    let worst = workload
        .pods
        .iter()
        .map(|pod| (facts.state(pod), *pod))
        .filter(|((state, _), _)| *state != ReplicaState::Ready)
        // What ends by itself says least.
        .max_by_key(|((state, _), _)| (*state != ReplicaState::Terminating, *state));
    let Some(((state, _), pod)) = worst else {
        return remedy(
            "see why it makes no pods:",
            Some(facts.kubectl.line(["describe", &workload.reference(), "-n", namespace])),
            None,
        );
    };
    let name = pod.metadata.name.as_str();
    let describe = || Some(facts.kubectl.line(["describe", "pod", name, "-n", namespace]));
    if state == ReplicaState::CrashLoops && facts.port_taken(pod).is_some() {
        let key = workload.values_key(facts, values::spread);
        return remedy(
            format!(
                "keep its replicas on different nodes{}, delete the one that cannot start:",
                for_good(key.as_deref())
            ),
            Some(facts.kubectl.line(["delete", "pod", name, "-n", namespace])),
            key,
        );
    }
    let cordoned = facts
        .suitable(workload)
        .ok()
        .into_iter()
        .flatten()
        .find(|node| node.spec.unschedulable && !workload.pods.iter().any(|pod| pod.node() == Some(&node.metadata.name)));
    match (state, cordoned) {
        (ReplicaState::Pending, Some(node)) if pod.node().is_none() => remedy(
            format!(
                "uncordon {}, which could hold it, once its maintenance is over:",
                node.metadata.name
            ),
            Some(facts.kubectl.line(["uncordon", &node.metadata.name])),
            None,
        ),
        (ReplicaState::Pending, _) if pod.node().is_none() => remedy("see why no node takes it:", describe(), None),
        (ReplicaState::CrashLoops, _) => remedy(
            "see how it ended:",
            Some(
                facts
                    .kubectl
                    .line(["logs", name, "-n", namespace, "--all-containers", "--previous"]),
            ),
            None,
        ),
        _ => remedy("see what it waits for:", describe(), None),
    }
}

/// Components with a single replica.
pub fn below_ha(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in &facts.workloads {
        let Some(id) = workload
            .id
            .filter(|id| !matches!(id, ComponentId::NfdGc | ComponentId::SnapshotController))
        else {
            continue;
        };
        if workload.desired != Some(1) {
            continue;
        }
        let info = id.info();
        let replicas = if info.loss == Loss::Storage { 2 } else { 3 };
        let mut item = about(
            workload,
            Code::BelowHaReplicas,
            gap(facts, workload),
            format!("{} runs one replica, so nobody takes over when its node is lost", workload.key.name),
        );
        item.evidence = vec!["replicas: 1".to_owned()];
        item.consequence = match info.loss {
            Loss::Served => {
                "its webhooks and APIs are down until it runs elsewhere, which takes minutes after the loss of a node".to_owned()
            }
            Loss::FeatureLabels => "the labels of new and changed nodes are not kept up until it runs elsewhere".to_owned(),
            Loss::Storage => "volumes are not provisioned until it runs elsewhere; mounted ones are not touched".to_owned(),
            Loss::Housekeeping => "little is missed".to_owned(),
        };
        let key = workload.values_key(facts, |mode, id, _| values::replicas(mode, id, replicas));
        let apart = if info.health_port_key.is_some() {
            ", each on a node of its own, as they bind a port of the node"
        } else {
            ""
        };
        item.remedy = remedy(
            format!("run {replicas} replicas{apart}{}:", for_good(key.as_deref())),
            Some(scale(facts, workload, replicas)),
            key,
        );
        found.push(item);
    }
    found
}
