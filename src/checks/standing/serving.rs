//! `webhook-single-endpoint`.

use std::collections::BTreeMap;

use crate::cluster::objects::Webhook;
use crate::gpustack::install::{Mode, is_worker_configuration};
use crate::gpustack::values;
use crate::kubernetes::admission;
use crate::kubernetes::called::{Answering, CalledKind};
use crate::report::finding::{Certainty, Finding, Severity};

use super::facts::{Facts, called_name};
use super::{gap, remedy, scale};
use crate::checks::codes::Code;
use crate::checks::{finding, for_good, listed, object};

/// Webhooks that one pod alone answers, and whose requests are refused without it.
pub fn single_endpoint(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = outside(facts);
    for workload in &facts.workloads {
        let mut services: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for index in &workload.answers {
            let (called, answering) = &facts.called[*index];
            if matches!(answering, Answering::Pods(_, pods) if pods.len() == 1) {
                services.entry(called.service).or_default().push(*index);
            }
        }
        for ((namespace, name), indexes) in services {
            let refusing = |index: &&usize| {
                let called = &facts.called[**index].0;
                called.closed && called.kind != CalledKind::ApiService
            };
            let Some(pod) = indexes.iter().find(refusing).and_then(|index| facts.answering(*index)?.first()) else {
                continue;
            };
            let names: Vec<String> = indexes.iter().map(|index| called_name(&facts.called[*index].0)).collect();
            let node = pod.node().unwrap_or_default();
            let mut item = finding(
                Code::WebhookSingleEndpoint,
                gap(facts, workload),
                Certainty::Certain,
                object("Service", namespace, name),
                format!(
                    "{} alone, on {node}, answers what the API server calls at {name}",
                    pod.metadata.name
                ),
            );
            item.node = Some(node.to_owned());
            item.evidence = vec![format!("called there: {}", listed(&names))];
            let blast = blast(facts, (namespace, name));
            item.consequence = if blast.is_empty() {
                format!("without it the API server refuses what it should ask {name}")
            } else {
                format!("without it the API server refuses: {}", listed(&blast))
            };
            let replicas = u32::try_from(workload.desired.unwrap_or(1).max(2) + 1).unwrap_or(3);
            let key = workload.values_key(facts, |mode, id, _| values::replicas(mode, id, replicas));
            item.remedy = if workload.desired.is_some_and(|wanted| wanted > 1) {
                remedy(
                    "get its other replicas Ready:",
                    Some(
                        facts
                            .kubectl
                            .line(["describe", &workload.reference(), "-n", &workload.key.namespace]),
                    ),
                    None,
                )
            } else {
                remedy(
                    format!("run more than one replica, on different nodes{}:", for_good(key.as_deref())),
                    Some(scale(facts, workload, replicas)),
                    key,
                )
            };
            found.push(item);
        }
    }
    found
}

/// A worker outside the cluster is called by one address, however many there are.
fn outside(facts: &Facts<'_>) -> Vec<Finding> {
    if facts.mode() != Some(Mode::Outside) {
        return Vec::new();
    }
    let kinds = [
        ("MutatingWebhookConfiguration", &facts.snapshot.mutating_webhooks),
        ("ValidatingWebhookConfiguration", &facts.snapshot.validating_webhooks),
    ];
    let mut found = Vec::new();
    for (kind, listing) in kinds {
        for configuration in listing.seen().iter().filter(|found| is_worker_configuration(&found.metadata.name)) {
            let address = configuration
                .webhooks
                .iter()
                .find_map(|webhook| webhook.client_config.url.as_ref().filter(|_| admission::fails_closed(webhook)));
            let Some(address) = address else { continue };
            let name = &configuration.metadata.name;
            let mut item = finding(
                Code::WebhookSingleEndpoint,
                Severity::AtRisk,
                Certainty::Certain,
                object(kind, "", name),
                format!("the webhooks of {name} are called at one address, {address}"),
            );
            item.evidence = vec!["the worker runs outside of the cluster".to_owned()];
            item.consequence = "further workers get no calls; without that one the API server refuses what it should ask".to_owned();
            item.remedy = remedy(
                "keep one worker in this topology; for redundancy run the worker in the cluster, by the operator's chart",
                None,
                None,
            );
            found.push(item);
        }
    }
    found
}

/// What is refused where nobody answers at the Service.
fn blast(facts: &Facts<'_>, service: (&str, &str)) -> Vec<String> {
    let snapshot = facts.snapshot;
    let webhooks: Vec<&Webhook> = snapshot
        .mutating_webhooks
        .seen()
        .iter()
        .chain(snapshot.validating_webhooks.seen())
        .flat_map(|configuration| &configuration.webhooks)
        .filter(|webhook| admission::fails_closed(webhook))
        .filter(|webhook| {
            let called = webhook.client_config.service.as_ref();
            called.is_some_and(|called| (called.namespace.as_str(), called.name.as_str()) == service)
        })
        .collect();
    admission::blast(snapshot, &webhooks)
}
