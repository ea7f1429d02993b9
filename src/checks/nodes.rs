//! `drain-refused`, `node-already-cordoned`, `another-node-cordoned`, `install-not-found`.

use std::collections::BTreeMap;

use crate::kubernetes::drain::{Filtered, Refusal};
use crate::report::finding::{Certainty, Finding, Remedy, Severity};

use super::codes::Code;
use super::{Context, finding, listed, object};

/// Nodes that kubectl's filters refuse.
pub fn refused(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut found = Vec::new();
    for turn in 0..trace.cast.nodes.len() {
        let reached = trace.paths(|end| end.ended.len() > turn);
        let mut reasons: BTreeMap<Refusal, Vec<String>> = BTreeMap::new();
        for candidate in trace.cast.candidates.iter().filter(|candidate| candidate.turn == turn) {
            if let Filtered::Refuse(reason) = candidate.filtered {
                reasons
                    .entry(reason)
                    .or_default()
                    .push(format!("{}/{}", candidate.pod.metadata.namespace, candidate.pod.metadata.name));
            }
        }
        let Some((severity, certainty)) = super::graded(reached, Severity::Unsafe, Severity::AtRisk) else {
            continue;
        };
        if reasons.is_empty() {
            continue;
        }
        let node = trace.cast.node_name(turn);
        let flags: Vec<&str> = reasons.keys().map(|reason| reason.flag()).collect();
        let mut item = finding(
            Code::DrainRefused,
            severity,
            certainty,
            object("Node", "", node),
            format!(
                "kubectl says: {}",
                reasons
                    .iter()
                    .map(|(reason, pods)| format!("cannot delete {}: {}", reason.words(), listed(pods)))
                    .collect::<Vec<_>>()
                    .join("; ")
            ),
        );
        item.node = Some(node.to_owned());
        item.evidence = reasons
            .iter()
            .map(|(reason, pods)| format!("{}: {}", reason.words(), pods.join(", ")))
            .collect();
        item.consequence = format!("{node} is cordoned and nothing on it is evicted");
        let mut dedup = flags.clone();
        dedup.sort_unstable();
        dedup.dedup();
        item.remedy = Remedy {
            text: format!(
                "add {} once you know that these pods may go{}",
                dedup.join(" "),
                if dedup.contains(&"--force") {
                    " for good: nothing recreates them"
                } else {
                    ""
                }
            ),
            command: None,
            values_key: None,
        };
        if let Some(pods) = reasons.get(&Refusal::OrphanedDaemonSet) {
            let mut orphans = item.clone();
            orphans.code = Code::OrphanedDaemonSetPod;
            orphans.message = format!(
                "the DaemonSet of {} is gone: kubectl removes {} only with --force",
                listed(pods),
                if pods.len() == 1 { "it" } else { "them" }
            );
            found.push(orphans);
        }
        found.push(item);
    }
    found
}

/// Nodes that were cordoned before.
pub fn cordoned(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut found = Vec::new();
    for (index, state) in trace.cast.placement.nodes().iter().enumerate() {
        let node = state.node();
        if !node.spec.unschedulable {
            continue;
        }
        let name = &node.metadata.name;
        let drained = trace.cast.nodes.contains(&index);
        let (code, message) = if drained {
            (Code::NodeAlreadyCordoned, format!("{name} was cordoned before this drain"))
        } else {
            (
                Code::AnotherNodeCordoned,
                format!("{name} is cordoned too: it takes no replacement"),
            )
        };
        let mut item = finding(code, Severity::Info, Certainty::Certain, object("Node", "", name), message);
        item.node = Some(name.clone());
        item.evidence = vec!["spec.unschedulable is true".to_owned()];
        item.consequence = if drained {
            "somebody may be at work on it".to_owned()
        } else {
            "one node less to land on; where it counts as an empty domain, a hard spread refuses more".to_owned()
        };
        item.remedy = Remedy {
            text: "if its maintenance is over, uncordon it".to_owned(),
            command: Some(context.kubectl.line(["uncordon", name])),
            values_key: None,
        };
        found.push(item);
    }
    found
}

/// Nodes whose cordon a webhook refuses; kubectl prints that and drains them all the same.
pub fn not_cordoned(context: &Context<'_>) -> Vec<Finding> {
    let cast = &context.trace.cast;
    let turns = cast.uncordoned();
    let of = |turn: usize| {
        let node = cast.node_name(turn);
        let hooks: Vec<String> = cast.cordon_hooks[turn]
            .iter()
            .map(|(hook, _)| cast.hooks[*hook].configured.webhook.name.clone())
            .collect();
        let mut item = finding(
            Code::WebhookBlocksEviction,
            Severity::AtRisk,
            Certainty::Certain,
            object("Node", "", node),
            format!(
                "{node} is not cordoned: nobody answers webhook {}, which must admit that",
                listed(&hooks)
            ),
        );
        item.node = Some(node.to_owned());
        item.evidence = vec![format!("kubectl says: error: unable to cordon node {node:?}")];
        item.consequence = "kubectl evicts the pods all the same, and new ones may land on the node again".to_owned();
        item.remedy = Remedy {
            text: "make the webhook answer first, or take nodes out of its rules".to_owned(),
            ..Remedy::default()
        };
        item
    };
    turns.into_iter().map(of).collect()
}

/// A cluster without GPUStack.
pub fn no_install(context: &Context<'_>) -> Vec<Finding> {
    if context.install.is_some() {
        return Vec::new();
    }
    let mut item = finding(
        Code::InstallNotFound,
        Severity::Info,
        Certainty::Certain,
        object("Release", "", "gpustack-operator"),
        "no GPUStack install was found: only the general rules apply",
    );
    item.evidence = vec!["no Deployment carries the labels of the operator chart".to_owned()];
    item.consequence = "nothing is said about GPUStack's components".to_owned();
    item.remedy = Remedy {
        text: "if there is one, name it with --release and -n".to_owned(),
        command: None,
        values_key: None,
    };
    vec![item]
}
