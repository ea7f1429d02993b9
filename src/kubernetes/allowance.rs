//! What a disruption budget guards, what it allows now, and whether it can ever allow anything.
//!
//! Now is what the eviction API reads from the status (`k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go`). Ever
//! is what the disruption controller would compute with every replica of what is guarded Ready
//! (`k8s.io/kubernetes/pkg/controller/disruption/disruption.go`).

use crate::cluster::objects::{HorizontalPodAutoscaler, IntOrPercent, Pod, PodDisruptionBudget, PodTemplate};
use crate::cluster::snapshot::{NotRead, Snapshot};
use crate::kubernetes::disruption::{self, Counted, Status};
use crate::kubernetes::selectors;
use crate::kubernetes::workloads::{self, Owner, WorkloadKey};

/// A workload under a budget.
#[derive(Clone, Debug)]
pub struct Guarded<'a> {
    /// The workload; `None` stands for pods without a controller.
    pub key: Option<WorkloadKey>,
    /// Replicas wanted; for owners whose number is not known, its selected pods.
    pub replicas: i64,
    /// Selected pods of it.
    pub pods: Vec<&'a Pod>,
    /// The autoscaler that sets its replicas.
    pub autoscaler: Option<&'a HorizontalPodAutoscaler>,
}

/// Whether a budget can ever allow an eviction.
#[derive(Clone, Debug)]
pub enum Ever {
    /// With everything Ready it allows this many.
    Allows(i64),
    /// Only while an autoscaler runs more replicas than its fewest.
    AboveFewest(i64),
    /// With everything Ready it still allows none.
    Never,
    /// It has nothing to guard: no pod, and no workload with replicas.
    Nothing,
    /// The disruption controller cannot compute it over these pods, for the reason given.
    Uncomputable(String),
    /// A number was not read.
    Unknown(NotRead),
}

/// A budget held against the cluster.
#[derive(Clone, Debug)]
pub struct Review<'a> {
    /// The budget.
    pub budget: &'a PodDisruptionBudget,
    /// What it guards, workloads by name, then pods without a controller.
    pub guarded: Vec<Guarded<'a>>,
    /// What the disruption controller computes from the pods that are there.
    pub computed: Result<Status, NotRead>,
    /// The same with all that is guarded Ready.
    pub at_best: Option<Status>,
    /// Evictions that the API allows now.
    pub now: i64,
    /// The status belongs to an older generation of the spec, so every eviction is refused.
    pub stale: bool,
    /// Whether it can ever allow an eviction.
    pub ever: Ever,
}

impl<'a> Review<'a> {
    /// Its pods.
    pub fn pods(&self) -> impl Iterator<Item = &'a Pod> {
        self.guarded.iter().flat_map(|guarded| guarded.pods.iter().copied())
    }

    /// Whether it can ever allow an eviction; `None` where that was not read.
    pub fn can_ever_allow(&self) -> Option<bool> {
        match self.ever {
            Ever::Allows(_) | Ever::AboveFewest(_) => Some(true),
            Ever::Never | Ever::Nothing | Ever::Uncomputable(_) => Some(false),
            Ever::Unknown(_) => None,
        }
    }
}

/// Holds a budget against the pods and workloads of its namespace.
///
/// # Errors
/// The namespace's pods were not read.
pub fn review<'a>(snapshot: &'a Snapshot, budget: &'a PodDisruptionBudget) -> Result<Review<'a>, NotRead> {
    let guarded = guarded(snapshot, budget)?;
    let counted: Vec<Counted<'a>> = guarded
        .iter()
        .flat_map(|guarded| &guarded.pods)
        .map(|pod| Counted {
            namespace: &pod.metadata.namespace,
            name: &pod.metadata.name,
            controller: pod.metadata.controller(),
            healthy: pod.ready() && !pod.metadata.terminating() && !budget.status.disrupted_pods.contains_key(&pod.metadata.name),
        })
        .collect();
    let computed = disruption::status(snapshot, budget, &counted);
    let stale = budget.status.observed_generation < budget.metadata.generation;
    // A pod whose owner was not read counts for a workload of its own, which it need not be.
    let unread = guarded
        .iter()
        .flat_map(|guarded| &guarded.pods)
        .find_map(|pod| match workloads::owner(snapshot, pod) {
            Owner::Unknown(_, missing) => Some(missing),
            _ => None,
        });
    let (at_best, ever) = match unread {
        Some(missing) => (None, Ever::Unknown(missing)),
        None => ever(budget, &guarded, &computed),
    };
    Ok(Review {
        budget,
        guarded,
        computed,
        at_best,
        now: if stale { 0 } else { budget.status.disruptions_allowed },
        stale,
        ever,
    })
}

fn ever(budget: &PodDisruptionBudget, guarded: &[Guarded<'_>], computed: &Result<Status, NotRead>) -> (Option<Status>, Ever) {
    let scaled = !matches!(
        (&budget.spec.max_unavailable, &budget.spec.min_available),
        (None, Some(IntOrPercent::Int(_)))
    );
    match computed {
        Err(missing) if scaled => return (None, Ever::Unknown(missing.clone())),
        Ok(Status::Failed(why)) => return (None, Ever::Uncomputable(why.clone())),
        _ => {}
    }
    let most = |guarded: &Guarded<'_>| guarded.autoscaler.map_or(guarded.replicas, |scaler| scaler.spec.max_replicas);
    let fewest = |guarded: &Guarded<'_>| {
        guarded
            .autoscaler
            .map_or(guarded.replicas, |scaler| scaler.spec.min_replicas.unwrap_or(1))
    };
    let Some(best) = ideal(budget, guarded, &most) else {
        return (
            None,
            Ever::Uncomputable("its share is neither a number nor a percentage".to_owned()),
        );
    };
    let ever = match best.allowed() {
        _ if guarded.iter().all(|guarded| most(guarded) == 0) => Ever::Nothing,
        0 => Ever::Never,
        allowed if ideal(budget, guarded, &fewest).is_some_and(|worst| worst.allowed() == 0) => Ever::AboveFewest(allowed),
        allowed => Ever::Allows(allowed),
    };
    (Some(best), ever)
}

/// What the controller computes with every replica there and Ready; `None` for a share that is neither a number nor a
/// percentage. Pods without a controller count as healthy, and add nothing to what is expected where a scale is asked.
fn ideal(budget: &PodDisruptionBudget, guarded: &[Guarded<'_>], replicas: &dyn Fn(&Guarded<'_>) -> i64) -> Option<Status> {
    let healthy: i64 = guarded.iter().map(replicas).sum();
    let expected: i64 = guarded.iter().filter(|guarded| guarded.key.is_some()).map(replicas).sum();
    let (desired, expected) = match (&budget.spec.max_unavailable, &budget.spec.min_available) {
        (Some(share), _) => ((expected - disruption::scaled(share, expected)?).max(0), expected),
        (None, Some(IntOrPercent::Int(number))) => (*number, healthy),
        (None, Some(share)) => (disruption::scaled(share, expected)?, expected),
        (None, None) => (0, 0),
    };
    Some(Status::Computed {
        healthy,
        desired,
        expected,
    })
}

/// The workloads whose pods or template the budget selects, and the pods without a controller.
fn guarded<'a>(snapshot: &'a Snapshot, budget: &'a PodDisruptionBudget) -> Result<Vec<Guarded<'a>>, NotRead> {
    let namespace = budget.metadata.namespace.as_str();
    let pods = snapshot.pods.in_namespace(namespace)?;
    let Some(selector) = &budget.spec.selector else {
        return Ok(Vec::new());
    };
    let mut found: Vec<Guarded<'a>> = Vec::new();
    let scaler = |key: &WorkloadKey| {
        let target = |scaler: &&HorizontalPodAutoscaler| {
            scaler.metadata.namespace == key.namespace
                && scaler.spec.scale_target_ref.kind == key.kind
                && scaler.spec.scale_target_ref.name == key.name
        };
        snapshot.autoscalers.seen().iter().find(target)
    };
    let mut add = |kind: &str, name: &str, replicas: Option<i64>, template: &PodTemplate| {
        if selectors::matches(selector, &template.metadata.labels) {
            let key = WorkloadKey {
                kind: kind.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            };
            found.push(Guarded {
                autoscaler: scaler(&key),
                key: Some(key),
                replicas: replicas.unwrap_or(1),
                pods: Vec::new(),
            });
        }
    };
    for deployment in snapshot.deployments.in_namespace(namespace).unwrap_or_default() {
        add(
            "Deployment",
            &deployment.metadata.name,
            deployment.spec.replicas,
            &deployment.spec.template,
        );
    }
    for set in snapshot.stateful_sets.in_namespace(namespace).unwrap_or_default() {
        add("StatefulSet", &set.metadata.name, set.spec.replicas, &set.spec.template);
    }
    for (kind, sets) in [
        ("ReplicaSet", &snapshot.replica_sets),
        ("ReplicationController", &snapshot.replication_controllers),
    ] {
        for set in sets.in_namespace(namespace).unwrap_or_default() {
            if set.metadata.controller().is_none() {
                add(kind, &set.metadata.name, set.spec.replicas, &set.spec.template);
            }
        }
    }
    for pod in pods.iter().filter(|pod| selectors::matches(selector, &pod.metadata.labels)) {
        let owner = workloads::owner(snapshot, pod);
        let key = owner.key(namespace);
        let index = match found.iter().position(|guarded| guarded.key == key) {
            Some(index) => index,
            None => {
                found.push(Guarded {
                    autoscaler: key.as_ref().and_then(scaler),
                    key,
                    replicas: 0,
                    pods: Vec::new(),
                });
                found.len() - 1
            }
        };
        let entry = &mut found[index];
        entry.pods.push(pod);
        match owner {
            Owner::ReplicaSet {
                deployment: Some(deployment),
                ..
            } => entry.replicas = deployment.spec.replicas.unwrap_or(1),
            Owner::ReplicaSet { set, deployment: None, .. } => entry.replicas = set.spec.replicas.unwrap_or(1),
            Owner::StatefulSet(set) => entry.replicas = set.spec.replicas.unwrap_or(1),
            _ => entry.replicas += 1,
        }
    }
    found.sort_by(|one, other| (one.key.is_none(), &one.key).cmp(&(other.key.is_none(), &other.key)));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::kubernetes::testing;

    /// A Deployment `web` of so many replicas, as many of whose pods are Ready as are named, and a budget over it.
    fn cluster(replicas: u32, ready: u32, budget: &str, more: &str) -> String {
        let mut text = format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: app}}, spec: {{replicas: {replicas}, template: {{metadata: {{labels: {{app: web}}}}}}}}}}\n\
             ---\n{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web-1, namespace: app, ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}}]}}, spec: {{replicas: {replicas}, template: {{metadata: {{labels: {{app: web}}}}}}}}}}\n\
             ---\n{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: web, namespace: app, generation: 2}}, spec: {budget}, status: {{observedGeneration: 2, disruptionsAllowed: 1}}}}\n"
        );
        for index in 0..replicas {
            let status = if index < ready { "True" } else { "False" };
            text.push_str(&format!(
                "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: web-1-{index}, namespace: app, labels: {{app: web}}, ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, controller: true}}]}}, status: {{phase: Running, conditions: [{{type: Ready, status: '{status}'}}]}}}}\n"
            ));
        }
        text + more
    }

    fn outlook(text: &str) -> String {
        let snapshot = testing::snapshot(text);
        let review = review(&snapshot, &snapshot.budgets.seen()[0]).unwrap();
        format!("{} {:?}", review.now, review.ever)
    }

    const OVER_WEB: &str = "selector: {matchLabels: {app: web}}";

    #[test]
    fn never_is_told_from_not_now() {
        let ask = |replicas, ready, number: &str| outlook(&cluster(replicas, ready, &format!("{{{OVER_WEB}, {number}}}"), ""));
        assert_eq!(ask(2, 2, "minAvailable: 2"), "1 Never");
        assert_eq!(ask(3, 2, "minAvailable: 2"), "1 Allows(1)");
        assert_eq!(ask(3, 0, "minAvailable: 1"), "1 Allows(2)");
        assert_eq!(ask(3, 3, "maxUnavailable: 0"), "1 Never");
        assert_eq!(ask(1, 1, "maxUnavailable: 1"), "1 Allows(1)");
        assert_eq!(ask(3, 3, "minAvailable: 100%"), "1 Never");
        // 50 % of 3 is 1.5, rounded up to 2; 10 % of 3 may be missing: 0.3, rounded up to 1.
        assert_eq!(ask(3, 3, "minAvailable: 50%"), "1 Allows(1)");
        assert_eq!(ask(3, 3, "maxUnavailable: 10%"), "1 Allows(1)");
        assert_eq!(
            ask(3, 3, "maxUnavailable: some"),
            "1 Uncomputable(\"some is neither a number nor a percentage\")"
        );
        assert_eq!(ask(0, 0, "minAvailable: 1"), "1 Nothing");
    }

    #[test]
    fn without_a_number_or_a_selector_it_allows_nothing() {
        assert_eq!(outlook(&cluster(3, 3, &format!("{{{OVER_WEB}}}"), "")), "1 Never");
        assert_eq!(outlook(&cluster(3, 3, "{minAvailable: 1}", "")), "1 Nothing");
        assert_eq!(
            outlook(&cluster(3, 3, "{selector: {matchLabels: {app: other}}, minAvailable: 1}", "")),
            "1 Nothing"
        );
    }

    #[test]
    fn an_empty_selector_guards_the_whole_namespace() {
        let alone = "---\n{apiVersion: v1, kind: Pod, metadata: {name: alone, namespace: app}, status: {conditions: [{type: Ready, status: 'True'}]}}";
        let text = cluster(2, 2, "{selector: {}, minAvailable: 2}", alone);
        let snapshot = testing::snapshot(&text);
        let review = review(&snapshot, &snapshot.budgets.seen()[0]).unwrap();
        let guarded: Vec<_> = review
            .guarded
            .iter()
            .map(|guarded| (guarded.key.as_ref().map(ToString::to_string), guarded.replicas, guarded.pods.len()))
            .collect();
        assert_eq!(guarded, [(Some("deployment/app/web".to_owned()), 2, 2), (None, 1, 1)]);
        assert!(matches!(review.ever, Ever::Allows(1)), "{:?}", review.ever);
    }

    #[test]
    fn a_share_over_pods_without_a_scale_is_never_computed() {
        let job = "---\n{apiVersion: v1, kind: Pod, metadata: {name: job-1, namespace: app, labels: {app: web}, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: job, controller: true}]}}\n---\n{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: app}}";
        let text = outlook(&cluster(2, 2, &format!("{{{OVER_WEB}, maxUnavailable: 1}}"), job));
        assert!(
            text.starts_with("1 Uncomputable") && text.contains("no scale subresource"),
            "{text}"
        );
        assert_eq!(
            outlook(&cluster(2, 2, &format!("{{{OVER_WEB}, minAvailable: 1}}"), job)),
            "1 Allows(2)"
        );
    }

    #[test]
    fn an_autoscaler_decides_how_many_there_can_be() {
        let scaler = |most| {
            format!(
                "---\n{{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {{name: web, namespace: app}}, spec: {{scaleTargetRef: {{kind: Deployment, name: web}}, minReplicas: 1, maxReplicas: {most}}}}}"
            )
        };
        let budget = format!("{{{OVER_WEB}, minAvailable: 1}}");
        assert_eq!(outlook(&cluster(1, 1, &budget, &scaler(5))), "1 AboveFewest(4)");
        assert_eq!(outlook(&cluster(1, 1, &budget, &scaler(1))), "1 Never");
        assert_eq!(outlook(&cluster(2, 2, &budget, "")), "1 Allows(1)");
    }

    #[test]
    fn a_stale_status_allows_nothing_now() {
        let text = cluster(3, 3, &format!("{{{OVER_WEB}, minAvailable: 1}}"), "").replace("observedGeneration: 2", "observedGeneration: 1");
        assert_eq!(outlook(&text), "0 Allows(2)");
    }

    #[test]
    fn what_was_not_read_is_not_decided() {
        for share in ["maxUnavailable: 1", "minAvailable: 2", "minAvailable: 3"] {
            let text = cluster(3, 3, &format!("{{{OVER_WEB}, {share}}}"), "");
            let mut snapshot = testing::without(&[Kind::ReplicaSet], &text);
            snapshot.objects.replica_sets = crate::cluster::snapshot::Listing::new(Kind::ReplicaSet);
            let review = review(&snapshot, &snapshot.budgets.seen()[0]).unwrap();
            assert!(review.can_ever_allow().is_none(), "{share}: {:?}", review.ever);
        }
    }
}
