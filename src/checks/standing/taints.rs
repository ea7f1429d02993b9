//! `tolerates-everything`, `taint-not-tolerated`.

use std::collections::BTreeMap;

use crate::gpustack::values;
use crate::kubernetes::scheduling::{self, Decision, Incoming};
use crate::report::finding::Finding;
use crate::report::placement::ReplicaState;

use super::facts::Facts;
use super::{at_risk, remedy};
use crate::checks::codes::Code;
use crate::checks::listed;

/// Components that tolerate every taint.
pub fn everything(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in facts.workloads.iter().filter(|workload| workload.id.is_some()) {
        let Some((_, spec)) = workload.template else { continue };
        let blanket = spec
            .tolerations
            .iter()
            .find(|toleration| toleration.key.is_empty() && toleration.operator == "Exists" && toleration.effect != "PreferNoSchedule");
        let Some(blanket) = blanket else { continue };
        let effect = if blanket.effect.is_empty() {
            "every effect"
        } else {
            &blanket.effect
        };
        let mut item = at_risk(
            workload,
            Code::ToleratesEverything,
            format!("{} tolerates every taint, that of a cordon too", workload.key.name),
        );
        item.evidence = vec![format!("a toleration without a key, operator Exists, of {effect}")];
        item.consequence =
            "what a drain evicts may land on the drained node again, and what is on a node that died stays there for ever".to_owned();
        let key = workload.values_key(facts, |mode, id, _| values::tolerations(mode, id));
        item.remedy = remedy(
            "tolerate control-plane nodes alone, and upgrade with --reset-then-reuse-values, as --reuse-values keeps the old list",
            None,
            key,
        );
        found.push(item);
    }
    found
}

/// Components that do not tolerate the taint of a node they are on, or wait for.
pub fn not_tolerated(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in facts.workloads.iter().filter(|workload| workload.id.is_some()) {
        let Some((labels, spec)) = workload.template else { continue };
        let waits = workload
            .pods
            .iter()
            .any(|pod| pod.node().is_none() && facts.state(pod).0 == ReplicaState::Pending);
        let incoming = Incoming {
            namespace: &workload.key.namespace,
            labels,
            spec,
        };
        let mut taints: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for node in facts.snapshot.nodes.seen() {
            let holds = workload.pods.iter().any(|pod| pod.node() == Some(&node.metadata.name));
            if !holds && !waits {
                continue;
            }
            if let Decision::Refused(why) = scheduling::suits(facts.snapshot, node, &incoming)
                && let Some(taint) = why.strip_prefix("node(s) had untolerated taint(s): ")
            {
                taints.entry(taint.to_owned()).or_default().push(node.metadata.name.clone());
            }
        }
        if taints.is_empty() {
            continue;
        }
        let names: Vec<String> = taints.keys().cloned().collect();
        let mut item = at_risk(
            workload,
            Code::TaintNotTolerated,
            format!("{} does not tolerate {}", workload.key.name, listed(&names)),
        );
        item.evidence = taints
            .iter()
            .map(|(taint, nodes)| format!("{taint} on {}", listed(nodes)))
            .collect();
        item.consequence = if waits {
            "a replica waits, and these nodes do not take it".to_owned()
        } else {
            "a replica that leaves these nodes cannot come back".to_owned()
        };
        let key = workload.id.map(|id| id.info().tolerations_key);
        item.remedy = remedy(
            match key {
                Some(key) => format!("add the taint to {key}, beside those that are there, or take it off the nodes"),
                None => "tolerate the taint, or take it off the nodes".to_owned(),
            },
            None,
            None,
        );
        found.push(item);
    }
    found
}
