//! `pdb-missing`, `pdb-selects-nothing`, `pdb-selects-others`, `pdb-never-allows`, `pdb-status-uncomputable`, `pdb-overlap`,
//! `pdb-stale`, `hpa-budget`: what is wrong with budgets before anything is drained.

use std::collections::{BTreeMap, BTreeSet};

use crate::checks::budgets::demand;
use crate::checks::codes::Code;
use crate::checks::{count, finding, listed, object};
use crate::cluster::objects::{IntOrPercent, Pod, StringMap};
use crate::cluster::snapshot::NotRead;
use crate::gpustack::components::ComponentId;
use crate::gpustack::values;
use crate::kubernetes::allowance::{self, Ever, Guarded, Review};
use crate::kubernetes::disruption::Status;
use crate::report::finding::{Certainty, Finding, Remedy, Severity};

use super::facts::{Facts, Workload};
use super::{about, gap, remedy};

/// The budgets of the install's namespaces, or with `-A` of all, held against the cluster; and what was not read of them.
pub fn reviews<'a>(facts: &Facts<'a>) -> (Vec<Review<'a>>, Vec<NotRead>) {
    let listing = &facts.snapshot.budgets;
    let mut missing = Vec::new();
    let mut found = Vec::new();
    if facts.all {
        missing.extend(listing.all().err());
        found.extend(listing.seen());
    } else {
        for namespace in facts.namespaces() {
            match listing.in_namespace(namespace) {
                Ok(budgets) => found.extend(budgets),
                Err(unread) => missing.push(unread),
            }
        }
    }
    let mut reviews = Vec::new();
    for budget in found {
        match allowance::review(facts.snapshot, budget) {
            Ok(review) => reviews.push(review),
            Err(unread) => missing.push(unread),
        }
    }
    missing.sort();
    missing.dedup();
    (reviews, missing)
}

/// Whether the budget guards the workload.
pub fn guards(review: &Review<'_>, workload: &Workload<'_>) -> bool {
    review.guarded.iter().any(|guarded| guarded.key.as_ref() == Some(&workload.key))
}

/// The budgets over each pod that more than one selects.
pub fn overlaps<'a>(reviews: &[Review<'a>]) -> BTreeMap<(&'a str, &'a str), Vec<&'a str>> {
    let mut over: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for review in reviews {
        for pod in review.pods() {
            over.entry(pod.key()).or_default().push(&review.budget.metadata.name);
        }
    }
    over.retain(|_, budgets| budgets.len() > 1);
    over
}

/// What a share comes to, where it is a percentage: `minAvailable 50% of 3 is 1.5, rounded up to 2`.
pub fn rounding(review: &Review<'_>) -> Option<String> {
    let spec = &review.budget.spec;
    let IntOrPercent::Text(share) = spec.max_unavailable.as_ref().or(spec.min_available.as_ref())? else {
        return None;
    };
    let percent: i64 = share.strip_suffix('%')?.parse().ok()?;
    let Some(Status::Computed { expected, .. }) = &review.at_best else {
        return None;
    };
    let hundredths = i128::from(percent) * i128::from(*expected);
    let exact = match hundredths % 100 {
        0 => (hundredths / 100).to_string(),
        rest => {
            format!("{}.{:02}", hundredths / 100, rest.abs()).trim_end_matches('0').to_owned()
                + &format!(", rounded up to {}", (hundredths + 99).div_euclid(100))
        }
    };
    Some(format!("{} of {expected} is {exact}", demand(review.budget)))
}

/// What the budget allows, now and ever, and why.
pub fn why(review: &Review<'_>) -> String {
    let mut parts = Vec::from_iter(rounding(review));
    let status = &review.budget.status;
    let generation = review.budget.metadata.generation;
    let guards_something = !matches!(review.ever, Ever::Nothing);
    if review.stale {
        parts.push(format!(
            "its status is of generation {}, the spec of generation {generation}: until it is computed again every eviction gets 429",
            status.observed_generation
        ));
    } else if guards_something {
        let numbers = format!("{} healthy, {} wanted", status.current_healthy, status.desired_healthy);
        parts.push(match review.now {
            1.. => format!("{numbers}: {} may go now", review.now),
            _ => format!("{numbers}: none may go now"),
        });
    }
    if let Ok(Status::Computed { healthy, .. }) = &review.computed
        && !review.stale
        && guards_something
        && *healthy != status.current_healthy
    {
        parts.push(format!("the status lags behind: {healthy} are healthy"));
    }
    if !status.disrupted_pods.is_empty() {
        parts.push(format!(
            "waits for evicted pods to go: {}",
            listed(&status.disrupted_pods.keys().cloned().collect::<Vec<_>>())
        ));
    }
    parts.extend(match &review.ever {
        Ever::Allows(most) if review.now == 0 => Some(format!("{most} may go once everything is Ready")),
        Ever::Allows(_) => None,
        Ever::AboveFewest(_) => Some(format!("none at the fewest replicas that {} may choose", scalers(review))),
        Ever::Never => Some(match &review.at_best {
            Some(Status::Computed {
                healthy,
                desired,
                expected,
            }) if *expected > 0 => {
                format!("never one: with everything Ready {healthy} are healthy and {desired} wanted")
            }
            _ if review.budget.spec.max_unavailable.is_none() && review.budget.spec.min_available.is_none() => {
                "never one: a budget with neither number allows none".to_owned()
            }
            _ => "never one: a share counts the scale of controllers, and these pods have none".to_owned(),
        }),
        Ever::Nothing => Some(if review.guarded.is_empty() {
            nothing_selected(review).to_owned()
        } else {
            format!("guards nothing now: {} has 0 replicas", names(review).join(", "))
        }),
        Ever::Uncomputable(why) => Some(format!("the disruption controller cannot compute it: {why}")),
        Ever::Unknown(missing) => Some(format!("whether it can ever allow one is not known: {missing}")),
    });
    parts.join("; ")
}

fn nothing_selected(review: &Review<'_>) -> &'static str {
    match &review.budget.spec.selector {
        None => "guards nothing: it has no selector",
        Some(_) => "guards nothing: no pod and no workload's template has the labels of its selector",
    }
}

/// The workloads that it guards, `kind/name`; and `pods without a controller`.
pub fn names(review: &Review<'_>) -> Vec<String> {
    review
        .guarded
        .iter()
        .map(|guarded| match &guarded.key {
            Some(key) => format!("{}/{}", key.kind.to_lowercase(), key.name),
            None => "pods without a controller".to_owned(),
        })
        .collect()
}

fn scalers(review: &Review<'_>) -> String {
    let scalers = review.guarded.iter().filter_map(|guarded| guarded.autoscaler);
    let names: BTreeSet<String> = scalers
        .map(|scaler| {
            format!(
                "horizontalpodautoscaler/{} ({})",
                scaler.metadata.name,
                scaler.spec.min_replicas.unwrap_or(1)
            )
        })
        .collect();
    Vec::from_iter(names).join(", ")
}

/// A finding about the budget, with where it comes from.
fn on(review: &Review<'_>, code: Code, severity: Severity, message: String) -> Finding {
    let meta = &review.budget.metadata;
    let mut item = finding(
        code,
        severity,
        Certainty::Certain,
        object("PodDisruptionBudget", &meta.namespace, &meta.name),
        message,
    );
    item.evidence.push(demand(review.budget));
    if let Some(release) = meta.annotations.get("meta.helm.sh/release-name") {
        item.evidence.push(format!(
            "rendered by Helm release {release}: what is changed by hand lasts until its next upgrade"
        ));
    }
    item
}

fn checked(facts: &Facts<'_>, check: impl Fn(&Review<'_>) -> Option<Finding>) -> Vec<Finding> {
    reviews(facts).0.iter().filter_map(check).collect()
}

/// Components without a budget.
pub fn missing(facts: &Facts<'_>) -> Vec<Finding> {
    let (reviews, unread) = reviews(facts);
    if !unread.is_empty() {
        return Vec::new();
    }
    let guarded = |workload: &&Workload<'_>| {
        workload.desired.is_some_and(|replicas| replicas > 1)
            && workload.id != Some(ComponentId::NfdGc)
            && matches!(workload.key.kind.as_str(), "Deployment" | "StatefulSet")
    };
    let alone = facts
        .workloads
        .iter()
        .filter(guarded)
        .filter(|workload| !reviews.iter().any(|review| guards(review, workload)));
    alone
        .map(|workload| {
            let replicas = workload.desired.unwrap_or_default();
            let severity = match workload.id {
                Some(ComponentId::Kueue | ComponentId::Worker) => gap(facts, workload),
                _ => Severity::Info,
            };
            let mut item = about(
                workload,
                Code::PdbMissing,
                severity,
                format!("no disruption budget guards {}", workload.key.name),
            );
            item.evidence.push(format!(
                "{replicas} replicas wanted, and no budget of namespace {} selects them",
                workload.key.namespace
            ));
            item.consequence = "a drain may take all replicas on its nodes at once, without waiting for their replacements".to_owned();
            let keep = u32::try_from(replicas - 1).unwrap_or(1);
            let values_key = workload.values_key(facts, |mode, id, _| values::budget(mode, id, keep));
            let command = workload
                .deployment
                .map(|deployment| &deployment.spec.selector.match_labels)
                .filter(|labels| !labels.is_empty())
                .map(|labels| {
                    facts.kubectl.line([
                        "create",
                        "poddisruptionbudget",
                        &workload.key.name,
                        "-n",
                        &workload.key.namespace,
                        &format!("--selector={}", joined(labels)),
                        "--max-unavailable=1",
                    ])
                });
            item.remedy = remedy("let one replica go at a time", command.filter(|_| values_key.is_none()), values_key);
            item
        })
        .collect()
}

fn joined(labels: &StringMap) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// Budgets that guard nothing.
pub fn selects_nothing(facts: &Facts<'_>) -> Vec<Finding> {
    checked(facts, |review| {
        if !review.guarded.is_empty() {
            return None;
        }
        let meta = &review.budget.metadata;
        let mut item = on(
            review,
            Code::PdbSelectsNothing,
            Severity::AtRisk,
            format!("{} guards nothing", meta.name),
        );
        item.evidence.push(nothing_selected(review).to_owned());
        item.consequence = "what it was written for is not guarded".to_owned();
        item.remedy = remedy(
            "give it the labels of the pods that are meant, or delete it; their labels:",
            Some(facts.kubectl.line(["get", "pods", "-n", &meta.namespace, "--show-labels"])),
            None,
        );
        Some(item)
    })
}

/// Budgets that count the pods of several workloads together.
pub fn selects_others(facts: &Facts<'_>) -> Vec<Finding> {
    checked(facts, |review| {
        if review.guarded.len() < 2 {
            return None;
        }
        let meta = &review.budget.metadata;
        let all = review
            .budget
            .spec
            .selector
            .as_ref()
            .is_some_and(crate::kubernetes::selectors::empty);
        let mut item = on(
            review,
            Code::PdbSelectsOthers,
            Severity::AtRisk,
            format!("{} counts {} workloads together", meta.name, review.guarded.len()),
        );
        item.evidence.push(format!("guards {}", listed(&names(review))));
        if all {
            item.evidence
                .push(format!("its selector is empty ({{}}): every pod of namespace {}", meta.namespace));
        }
        item.consequence =
            "a replica of one lets one of another go, down to its last; and one that is not Ready holds all of them".to_owned();
        item.remedy = remedy(
            "write one budget for each workload, with the labels of its selector",
            Some(
                facts
                    .kubectl
                    .line(["get", "poddisruptionbudget", &meta.name, "-n", &meta.namespace, "-o", "yaml"]),
            ),
            None,
        );
        Some(item)
    })
}

/// Budgets that allow no eviction, whatever becomes Ready.
pub fn never_allows(facts: &Facts<'_>) -> Vec<Finding> {
    checked(facts, |review| {
        if !matches!(review.ever, Ever::Never) {
            return None;
        }
        let meta = &review.budget.metadata;
        let mut item = on(
            review,
            Code::PdbNeverAllows,
            Severity::Unsafe,
            format!("{} ({}) never allows a pod to go", meta.name, demand(review.budget)),
        );
        item.evidence.push(why(review));
        item.evidence.push(format!("guards {}", listed(&names(review))));
        item.consequence = format!("every drain of a node with {} hangs until somebody acts", a_pod_of(review));
        item.remedy = allow_one(facts, review);
        Some(item)
    })
}

fn a_pod_of(review: &Review<'_>) -> String {
    match names(review).as_slice() {
        [only] => format!("a pod of {only}"),
        _ => "one of its pods".to_owned(),
    }
}

/// What makes a budget allow one: one more replica, or another number.
fn allow_one(facts: &Facts<'_>, review: &Review<'_>) -> Remedy {
    let meta = &review.budget.metadata;
    let spec = &review.budget.spec;
    if let (
        None,
        Some(IntOrPercent::Int(wanted)),
        [
            Guarded {
                key: Some(key),
                autoscaler,
                ..
            },
        ],
    ) = (&spec.max_unavailable, &spec.min_available, review.guarded.as_slice())
        && matches!(key.kind.as_str(), "Deployment" | "StatefulSet")
    {
        let replicas = wanted.saturating_add(1);
        if let Some(scaler) = autoscaler {
            return remedy(
                format!("let {} run {replicas} replicas at least:", scaler.metadata.name),
                Some(facts.kubectl.line([
                    "patch",
                    "hpa",
                    &scaler.metadata.name,
                    "-n",
                    &meta.namespace,
                    "--type=merge",
                    "-p",
                    &format!(
                        r#"{{"spec":{{"minReplicas":{replicas},"maxReplicas":{}}}}}"#,
                        replicas.max(scaler.spec.max_replicas)
                    ),
                ])),
                None,
            );
        }
        let workload = facts.workloads.iter().find(|workload| workload.key == *key);
        let values_key = workload
            .and_then(|workload| workload.values_key(facts, |mode, id, _| values::replicas(mode, id, u32::try_from(replicas).ok()?)));
        return remedy(
            format!(
                "run {replicas} replicas of {}{}:",
                key.name,
                crate::checks::for_good(values_key.as_deref())
            ),
            Some(facts.kubectl.line([
                "scale",
                &format!("{}/{}", key.kind.to_lowercase(), key.name),
                "-n",
                &meta.namespace,
                &format!("--replicas={replicas}"),
            ])),
            values_key,
        );
    }
    let bare = review.guarded.iter().all(|guarded| guarded.key.is_none());
    let (text, patch) = if bare {
        // A share of pods without a scale is none.
        let keep = (count(review.pods().count()) - 1).max(0);
        (
            "count the pods themselves:",
            format!(r#"{{"spec":{{"maxUnavailable":null,"minAvailable":{keep}}}}}"#),
        )
    } else {
        (
            "let it allow one at a time:",
            r#"{"spec":{"minAvailable":null,"maxUnavailable":1}}"#.to_owned(),
        )
    };
    remedy(text, Some(patch_line(facts, review, &patch)), None)
}

fn patch_line(facts: &Facts<'_>, review: &Review<'_>, patch: &str) -> String {
    let meta = &review.budget.metadata;
    facts
        .kubectl
        .line(["patch", "pdb", &meta.name, "-n", &meta.namespace, "--type=merge", "-p", patch])
}

/// Budgets whose numbers cannot be computed.
pub fn uncomputable(facts: &Facts<'_>) -> Vec<Finding> {
    checked(facts, |review| {
        let Ever::Uncomputable(reason) = &review.ever else { return None };
        let meta = &review.budget.metadata;
        let mut item = on(
            review,
            Code::PdbStatusUncomputable,
            Severity::Unsafe,
            format!("the disruption controller cannot compute {}, so it allows nothing", meta.name),
        );
        item.evidence.push(reason.clone());
        item.consequence = format!("every drain of a node with {} hangs until somebody acts", a_pod_of(review));
        let keep = (count(review.pods().count()) - 1).max(0);
        item.remedy = remedy(
            "give it an integer minAvailable, which needs no scale, or a selector without these pods:",
            Some(patch_line(
                facts,
                review,
                &format!(r#"{{"spec":{{"maxUnavailable":null,"minAvailable":{keep}}}}}"#),
            )),
            None,
        );
        Some(item)
    })
}

/// Pods under more than one budget.
pub fn overlap(facts: &Facts<'_>) -> Vec<Finding> {
    let (reviews, _) = reviews(facts);
    let mut groups: BTreeMap<(&str, Vec<&str>), Vec<String>> = BTreeMap::new();
    for ((namespace, pod), budgets) in overlaps(&reviews) {
        groups.entry((namespace, budgets)).or_default().push(pod.to_owned());
    }
    groups
        .into_iter()
        .map(|((namespace, budgets), pods)| {
            let last = budgets.last().copied().unwrap_or_default();
            let mut item = finding(
                Code::PdbOverlap,
                Severity::Unsafe,
                Certainty::Certain,
                object("PodDisruptionBudget", namespace, budgets.first().copied().unwrap_or_default()),
                format!("budgets {} select the same pods, whose evictions all fail", budgets.join(" and ")),
            );
            item.evidence = vec![format!("under {}: {}", budgets.join(" and "), listed(&pods))];
            item.consequence =
                "the eviction API answers 500 for these pods whatever the budgets allow, and kubectl drain ends with an error".to_owned();
            item.remedy = remedy(
                "keep one of them: narrow the other's selector, or delete it",
                Some(facts.kubectl.line(["delete", "pdb", last, "-n", namespace])),
                None,
            );
            item
        })
        .collect()
}

/// Budgets whose status lags behind their spec.
pub fn stale(facts: &Facts<'_>) -> Vec<Finding> {
    checked(facts, |review| {
        if !review.stale {
            return None;
        }
        let meta = &review.budget.metadata;
        let mut item = on(
            review,
            Code::PdbStale,
            Severity::AtRisk,
            format!("the status of {} is older than its spec", meta.name),
        );
        item.evidence.push(why(review));
        item.consequence =
            "evictions are refused until the disruption controller has computed it again; usually that takes a moment".to_owned();
        item.remedy = remedy(
            "look again; where it stays so, see whether kube-controller-manager runs",
            Some(facts.kubectl.line(["get", "pdb", &meta.name, "-n", &meta.namespace, "-o", "yaml"])),
            None,
        );
        Some(item)
    })
}

/// Budgets that allow one only while an autoscaler runs more than its fewest replicas.
pub fn against_autoscaler(facts: &Facts<'_>) -> Vec<Finding> {
    checked(facts, |review| {
        if !matches!(review.ever, Ever::AboveFewest(_)) {
            return None;
        }
        let meta = &review.budget.metadata;
        let mut item = on(
            review,
            Code::HpaBudget,
            Severity::AtRisk,
            format!("{} allows a pod to go only under load", meta.name),
        );
        item.evidence
            .push(format!("at its fewest replicas none may go: {}", scalers(review)));
        item.consequence = "a drain at a quiet hour hangs".to_owned();
        item.remedy = allow_one(facts, review);
        Some(item)
    })
}

/// Whether the pod is counted as healthy by budgets.
pub fn healthy(pod: &Pod) -> bool {
    pod.ready() && !pod.metadata.terminating()
}
