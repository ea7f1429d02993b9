//! From a snapshot to the document of `pdb`.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::snapshot::Snapshot;
use crate::gpustack::install::Install;
use crate::kubernetes::allowance::Review;
use crate::report::budgets::{BudgetRow, BudgetStatus, ComponentBudgets, PodBudgets};
use crate::report::finding::Verdict;
use crate::simulation::cast::Gap;

use super::assessed::{Request, conclude, header};
use super::budgets::demand;
use super::object;
use super::standing::facts::Facts;
use super::standing::{self, Topic, budgets};

/// Says which budgets there are, what they guard, and what they allow now and ever.
pub fn assess(snapshot: &Snapshot, install: Option<&Install<'_>>, request: &Request) -> BudgetStatus {
    let facts = Facts::new(snapshot, install, &request.kubectl, request.all);
    let (reviews, missing) = budgets::reviews(&facts);
    let mut gaps: BTreeSet<Gap> = missing
        .iter()
        .map(|missing| Gap::unread("which disruption budgets there are, and what they count", missing).decisive())
        .collect();
    for review in &reviews {
        if let crate::kubernetes::allowance::Ever::Unknown(missing) = &review.ever {
            let meta = &review.budget.metadata;
            gaps.insert(
                Gap::unread(
                    format!("whether budget {}/{} can ever allow an eviction", meta.namespace, meta.name),
                    missing,
                )
                .decisive(),
            );
        }
    }
    for review in reviews.iter().filter(|review| !review.guarded.is_empty()) {
        if let Err(missing) = snapshot.autoscalers.in_namespace(&review.budget.metadata.namespace) {
            gaps.insert(Gap::unread(
                "whether autoscalers change how many replicas a budget counts",
                &missing,
            ));
        }
    }
    let about = install.map_or_else(
        || object("Namespace", "", "default"),
        |install| object("Namespace", "", install.namespace),
    );
    let (findings, not_assessed) = conclude(standing::findings(Topic::Budgets, &facts), &gaps, &about, request);
    let mut over: BTreeMap<(&str, &str), PodBudgets> = BTreeMap::new();
    for review in &reviews {
        for pod in review.pods() {
            let entry = over.entry(pod.key()).or_insert_with(|| PodBudgets {
                pod: pod.metadata.name.clone(),
                namespace: pod.metadata.namespace.clone(),
                healthy: budgets::healthy(pod),
                budgets: Vec::new(),
            });
            entry.budgets.push(review.budget.metadata.name.clone());
        }
    }
    BudgetStatus {
        header: header("BudgetStatus", snapshot, install),
        verdict: Verdict::of(&findings),
        findings,
        components: facts
            .workloads
            .iter()
            .map(|workload| ComponentBudgets {
                name: workload.key.name.clone(),
                kind: workload.key.kind.clone(),
                namespace: workload.key.namespace.clone(),
                replicas: workload.desired,
                budgets: reviews
                    .iter()
                    .filter(|review| budgets::guards(review, workload))
                    .map(|review| review.budget.metadata.name.clone())
                    .collect(),
            })
            .collect(),
        budgets: reviews.iter().map(row).collect(),
        pods: over.into_values().collect(),
        not_assessed,
    }
}

fn row(review: &Review<'_>) -> BudgetRow {
    let meta = &review.budget.metadata;
    let status = &review.budget.status;
    BudgetRow {
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        wants: demand(review.budget),
        unhealthy_pod_eviction_policy: review
            .budget
            .spec
            .unhealthy_pod_eviction_policy
            .clone()
            .unwrap_or_else(|| "IfHealthyBudget".to_owned()),
        release: meta.annotations.get("meta.helm.sh/release-name").cloned(),
        guards: review
            .guarded
            .iter()
            .filter_map(|guarded| guarded.key.as_ref())
            .map(|key| format!("{}/{}", key.kind.to_lowercase(), key.name))
            .collect(),
        selects: review.pods().map(|pod| pod.metadata.name.clone()).collect(),
        desired: status.desired_healthy,
        healthy: status.current_healthy,
        expected: status.expected_pods,
        allowed_now: review.now,
        can_ever_allow: review.can_ever_allow(),
        why: budgets::why(review),
    }
}
