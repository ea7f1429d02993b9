//! Resource quotas (`k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go`, CheckRequest;
//! `pkg/quota/v1/evaluator/core/pods.go`).
//!
//! A pod is charged until its object is gone, also while it is terminating; a finished one only as `count/pods`. So a
//! quota that the running pods fill refuses a replacement until the old pod is gone, and lets it in then, as every
//! controller tries again.

use std::collections::BTreeSet;

use super::Obstacle;
use super::resources::{Amounts, limits, read, requests};
use crate::cluster::objects::{PodSpec, ResourceQuota, ScopeRequirement, SelectorOperator};
use crate::cluster::snapshot::{NotRead, Snapshot};
use crate::kubernetes::quantity::{Quantity, QuantityError};

/// Resources that every container must state where a quota counts them.
const MUST_STATE: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// What pods are charged, by the names that quotas use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charge(Amounts);

impl Charge {
    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds what another pod is charged.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let entry = self.0.entry(name.clone()).or_default();
            *entry = entry.plus(*amount);
        }
    }

    /// Takes off what a pod that is gone was charged.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let entry = self.0.entry(name.clone()).or_default();
            *entry = entry.minus(*amount);
        }
    }

    /// What a pod with this spec is charged (PodUsageFunc).
    ///
    /// # Errors
    /// An amount that cannot be read.
    pub fn of(spec: &PodSpec, finished: bool) -> Result<Self, QuantityError> {
        let mut charge = Amounts::from([("count/pods".to_owned(), Quantity::ONE)]);
        if !finished {
            charge.extend(named(&requests(spec, true)?, &limits(spec, true)?));
            charge.insert("pods".to_owned(), Quantity::ONE);
        }
        Ok(Self(charge))
    }
}

/// Amounts by the names that quotas use (podComputeUsageHelper).
fn named(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut named = Amounts::new();
    for (name, amount) in requests {
        let native = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
        if native {
            named.insert(name.clone(), *amount);
        }
        if native || name.contains('/') {
            named.insert(format!("requests.{name}"), *amount);
        }
    }
    for (name, amount) in limits {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            named.insert(format!("limits.{name}"), *amount);
        }
    }
    named
}

/// A quota that counts pods.
#[derive(Clone, Debug)]
pub struct Quota<'a> {
    quota: &'a ResourceQuota,
    hard: Amounts,
    used: Amounts,
}

/// The quotas of a namespace that count pods.
///
/// # Errors
/// What was not read.
pub fn quotas<'a>(snapshot: &'a Snapshot, namespace: &str) -> Result<Vec<&'a ResourceQuota>, NotRead> {
    let all = snapshot.quotas.in_namespace(namespace)?;
    Ok(all.iter().filter(|quota| hard(quota).keys().any(|name| of_pods(name))).collect())
}

/// The bounds that are wanted, which the status follows.
fn hard(quota: &ResourceQuota) -> &crate::cluster::objects::ResourceList {
    match quota.spec.hard.is_empty() {
        true => &quota.status.hard,
        false => &quota.spec.hard,
    }
}

/// Whether pods are charged a resource (MatchingResources).
fn of_pods(name: &str) -> bool {
    let bare = name
        .strip_prefix("requests.")
        .or_else(|| name.strip_prefix("limits."))
        .unwrap_or(name);
    matches!(name, "pods" | "count/pods")
        || matches!(bare, "cpu" | "memory" | "ephemeral-storage")
        || bare.starts_with("hugepages-")
        || name.starts_with("requests.") && bare.contains('/')
}

impl<'a> Quota<'a> {
    /// Reads a quota's numbers.
    ///
    /// # Errors
    /// Why they cannot be told.
    pub fn new(quota: &'a ResourceQuota) -> Result<Self, String> {
        let read = |list| read(list).map_err(|error| error.to_string());
        let mut hard = read(hard(quota))?;
        hard.retain(|name, _| of_pods(name));
        let used = read(&quota.status.used)?;
        match hard.keys().find(|name| !used.contains_key(*name)) {
            Some(name) => Err(format!("its status does not say how much of {name} is used")),
            None => Ok(Self { quota, hard, used }),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.quota.metadata.name
    }

    /// Its namespace.
    pub fn namespace(&self) -> &'a str {
        &self.quota.metadata.namespace
    }

    /// Whether a pod is in all its scopes; `None` where that cannot be told.
    pub fn counts(&self, spec: &PodSpec) -> Option<bool> {
        let spec_scopes = self.quota.spec.scopes.iter().map(|name| ScopeRequirement {
            scope_name: name.clone(),
            operator: SelectorOperator::Exists,
            values: Vec::new(),
        });
        let mut told = Some(true);
        for scope in spec_scopes.chain(self.quota.spec.scope_selector.match_expressions.iter().cloned()) {
            match in_scope(&scope, spec) {
                Some(false) => return Some(false),
                Some(true) => {}
                None => told = None,
            }
        }
        told
    }

    /// Why a pod is refused however little is used: a container does not state what the quota counts.
    pub fn unstated(&self, spec: &PodSpec) -> Option<String> {
        if !spec.resources.requests.is_empty() || !spec.resources.limits.is_empty() {
            return None;
        }
        let mut missing: Vec<String> = Vec::new();
        for resource in MUST_STATE.iter().filter(|name| self.hard.contains_key(**name)) {
            let stated = |container: &crate::cluster::objects::Container| {
                let (part, name) = match resource.strip_prefix("limits.") {
                    Some(name) => (&container.resources.limits, name),
                    None => (
                        &container.resources.requests,
                        resource.strip_prefix("requests.").unwrap_or(resource),
                    ),
                };
                part.contains_key(name)
            };
            let names: BTreeSet<&str> = spec
                .containers
                .iter()
                .chain(&spec.init_containers)
                .filter(|container| !stated(container))
                .map(|container| container.name.as_str())
                .collect();
            if !names.is_empty() {
                let names: Vec<&str> = names.into_iter().collect();
                missing.push(format!("{resource} for: {}", names.join(",")));
            }
        }
        (!missing.is_empty()).then(|| format!("failed quota: {}: must specify {}", self.name(), missing.join("; ")))
    }

    /// Why a pod is refused now; `since` is what was charged and given back since the quota was read.
    pub fn exceeded(&self, since: &Charge, pod: &Charge) -> Option<String> {
        let zero = Quantity::default();
        let of = |amounts: &Amounts, name: &str| amounts.get(name).copied().unwrap_or_default();
        let used = |name: &str| of(&self.used, name).plus(of(&since.0, name)).max(zero);
        let over: Vec<(&String, Quantity)> = self
            .hard
            .iter()
            .map(|(name, hard)| (name, *hard))
            .filter(|(name, hard)| of(&pod.0, name) > zero && used(name).plus(of(&pod.0, name)) > *hard)
            .collect();
        if over.is_empty() {
            return None;
        }
        let words = |amount: &dyn Fn(&str, Quantity) -> Quantity| {
            let parts: Vec<String> = over.iter().map(|(name, hard)| format!("{name}={}", amount(name, *hard))).collect();
            parts.join(",")
        };
        Some(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            self.name(),
            words(&|name, _| of(&pod.0, name)),
            words(&|name, _| used(name)),
            words(&|_, hard| hard)
        ))
    }
}

/// Whether a pod is in a scope (podMatchesScopeFunc).
fn in_scope(scope: &ScopeRequirement, spec: &PodSpec) -> Option<bool> {
    let bounded = spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0);
    Some(match scope.scope_name.as_str() {
        "Terminating" => bounded,
        "NotTerminating" => !bounded,
        "BestEffort" => best_effort(spec),
        "NotBestEffort" => !best_effort(spec),
        "PriorityClass" => {
            let class = spec.priority_class_name.as_deref().filter(|name| !name.is_empty());
            let listed = class.is_some_and(|name| scope.values.iter().any(|value| value == name));
            match scope.operator {
                SelectorOperator::Exists => class.is_some(),
                SelectorOperator::DoesNotExist => class.is_none(),
                SelectorOperator::In => listed,
                SelectorOperator::NotIn => !listed,
                _ => return None,
            }
        }
        "CrossNamespacePodAffinity" => {
            let affinity = &spec.affinity;
            let crosses = affinity
                .pod_affinity
                .required_during_scheduling_ignored_during_execution
                .iter()
                .chain(&affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution)
                .any(|term| !term.namespaces.is_empty() || term.namespace_selector.is_some());
            // Preferred terms count too, and are not read.
            return crosses.then_some(true);
        }
        _ => false,
    })
}

/// No container states cpu or memory (`pkg/apis/core/v1/helper/qos/qos.go`).
fn best_effort(spec: &PodSpec) -> bool {
    let own = [&spec.resources];
    let containers = spec
        .containers
        .iter()
        .chain(&spec.init_containers)
        .map(|container| &container.resources);
    let stated = own
        .into_iter()
        .chain(containers)
        .flat_map(|resources| resources.requests.iter().chain(&resources.limits));
    !stated.into_iter().any(|(name, text)| {
        matches!(name.as_str(), "cpu" | "memory") && Quantity::try_from(text).is_ok_and(|amount| amount > Quantity::default())
    })
}

/// Why the quotas of a namespace do not tell whether a pod is let in.
pub fn unknown(namespace: &str, quota: &str, why: impl Into<String>) -> Obstacle {
    Obstacle::Undecided {
        what: format!("whether quota {quota} of namespace {namespace} refuses replacements"),
        why: why.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::spec;
    use super::*;

    fn quota(more: &str, hard: &str, used: &str) -> ResourceQuota {
        serde_saphyr::from_str(&format!(
            "{{metadata: {{name: q, namespace: app}}, spec: {{hard: {{{hard}}}{more}}}, status: {{hard: {{{hard}}}, used: {{{used}}}}}}}"
        ))
        .unwrap()
    }

    fn container(resources: &str) -> PodSpec {
        spec(&format!("containers: [{{name: main, resources: {{{resources}}}}}]"))
    }

    fn exceeded(hard: &str, used: &str, pod: &PodSpec, since: &Charge) -> Option<String> {
        let quota = quota("", hard, used);
        Quota::new(&quota).unwrap().exceeded(since, &Charge::of(pod, false).unwrap())
    }

    #[test]
    fn a_full_quota_refuses_until_the_old_pod_is_gone() {
        let pod = container("");
        let words = "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2";
        assert_eq!(exceeded("pods: 2", "pods: 2", &pod, &Charge::none()).as_deref(), Some(words));
        let mut gone = Charge::none();
        gone.subtract(&Charge::of(&pod, false).unwrap());
        assert_eq!(exceeded("pods: 2", "pods: 2", &pod, &gone), None);
        gone.add(&Charge::of(&pod, false).unwrap());
        assert!(exceeded("pods: 2", "pods: 2", &pod, &gone).is_some());
    }

    #[test]
    fn every_resource_by_its_names() {
        let pod = container("requests: {cpu: 500m, memory: 1Gi, nvidia.com/gpu: 1, hugepages-2Mi: 2Mi}, limits: {cpu: 1}");
        for (hard, refused) in [
            ("cpu: 400m", true),
            ("requests.cpu: 400m", true),
            ("requests.cpu: 500m", false),
            ("limits.cpu: 900m", true),
            ("limits.memory: 1", false),
            ("memory: 1Gi", false),
            ("requests.memory: 1Mi", true),
            ("requests.nvidia.com/gpu: 0", true),
            ("requests.hugepages-2Mi: 1Mi", true),
            ("count/pods: 0", true),
            ("services: 0", false),
            // What the pod is not charged refuses nothing, even where there is too much of it.
            ("limits.memory: -1", false),
        ] {
            let name = hard.rsplit_once(": ").unwrap().0;
            assert_eq!(
                exceeded(hard, &format!("{name}: 0"), &pod, &Charge::none()).is_some(),
                refused,
                "{hard}"
            );
        }
    }

    #[test]
    fn the_overhead_of_a_runtime_class_is_a_limit_only_beside_one() {
        let charged = |limits: &str| {
            let pod = spec(&format!(
                "overhead: {{cpu: 250m}}, containers: [{{name: main, resources: {{requests: {{cpu: 1}}, limits: {{{limits}}}}}}}]"
            ));
            let charge = Charge::of(&pod, false).unwrap();
            (
                charge.0["requests.cpu"].milli(),
                charge.0.get("limits.cpu").map(|amount| amount.milli()),
            )
        };
        assert_eq!(charged(""), (1250, None));
        assert_eq!(charged("cpu: 2"), (1250, Some(2250)));
        assert_eq!(charged("cpu: 0"), (1250, Some(0)));
    }

    #[test]
    fn where_a_quota_is() {
        let quota = quota("", "", "");
        let quota = Quota::new(&quota).unwrap();
        assert_eq!((quota.namespace(), quota.name()), ("app", "q"));
    }

    #[test]
    fn a_finished_pod_counts_as_an_object_only() {
        let finished = Charge::of(&container("requests: {cpu: 1}"), true).unwrap();
        assert_eq!(finished.0.keys().map(String::as_str).collect::<Vec<_>>(), ["count/pods"]);
    }

    #[test]
    fn what_is_counted_must_be_stated() {
        let quota = quota(
            "",
            "requests.cpu: 4, limits.memory: 1Gi, requests.nvidia.com/gpu: 1",
            "requests.cpu: 0, limits.memory: 0, requests.nvidia.com/gpu: 0",
        );
        let quota = Quota::new(&quota).unwrap();
        let words = "failed quota: q: must specify limits.memory for: main; requests.cpu for: main";
        assert_eq!(quota.unstated(&container("")).as_deref(), Some(words));
        assert_eq!(quota.unstated(&container("requests: {cpu: 1}, limits: {memory: 1Mi}")), None);
        assert_eq!(
            quota.unstated(&spec("resources: {requests: {cpu: 1}}, containers: [{name: main}]")),
            None
        );
    }

    #[test]
    fn scopes() {
        let counts = |scopes: &str, pod: &PodSpec| {
            let quota = quota(scopes, "pods: 1", "pods: 0");
            Quota::new(&quota).unwrap().counts(pod)
        };
        let plain = container("");
        let busy = container("requests: {cpu: 1}");
        let high = spec("priorityClassName: high, activeDeadlineSeconds: 5");
        let apart = |term: &str| {
            spec(&format!(
                "affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: zone, {term}}}]}}}}"
            ))
        };
        for (scopes, pod, counted) in [
            ("", &plain, Some(true)),
            (", scopes: [BestEffort]", &plain, Some(true)),
            (", scopes: [BestEffort]", &busy, Some(false)),
            (", scopes: [NotBestEffort]", &busy, Some(true)),
            (", scopes: [Terminating]", &plain, Some(false)),
            (", scopes: [Terminating]", &high, Some(true)),
            (", scopes: [NotTerminating]", &high, Some(false)),
            (", scopes: [NotTerminating]", &plain, Some(true)),
            (
                ", scopes: [BestEffort]",
                &container("requests: {cpu: 0, nvidia.com/gpu: 1}"),
                Some(true),
            ),
            (", scopes: [PriorityClass]", &high, Some(true)),
            (", scopes: [PriorityClass]", &plain, Some(false)),
            (
                ", scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}",
                &high,
                Some(true),
            ),
            (
                ", scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [high]}]}",
                &plain,
                Some(true),
            ),
            (
                ", scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}",
                &plain,
                Some(true),
            ),
            (
                ", scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}",
                &high,
                Some(false),
            ),
            (", scopes: [CrossNamespacePodAffinity]", &apart("namespaces: [other]"), Some(true)),
            (", scopes: [CrossNamespacePodAffinity]", &apart("namespaceSelector: {}"), Some(true)),
            (", scopes: [CrossNamespacePodAffinity]", &apart("labelSelector: {}"), None),
            (", scopes: [CrossNamespacePodAffinity]", &plain, None),
            (", scopes: [CrossNamespacePodAffinity, Terminating]", &plain, Some(false)),
        ] {
            assert_eq!(counts(scopes, pod), counted, "{scopes}");
        }
    }

    #[test]
    fn a_status_that_is_not_there_tells_nothing() {
        assert!(Quota::new(&quota("", "pods: 1", "")).is_err());
        assert!(Quota::new(&quota("", "pods: many", "pods: 0")).is_err());
        // Nothing of it is charged to pods.
        for name in ["services", "count/services", "count/jobs.batch/v1"] {
            assert!(Quota::new(&quota("", &format!("{name}: 1"), "")).is_ok(), "{name}");
        }
    }
}
