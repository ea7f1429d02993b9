//! `leader-election-disabled`, `lease-missing`, `lease-stale`, `lease-holder-gone`.

use crate::cluster::objects::Pod;
use crate::gpustack::components::ComponentId;
use crate::kubernetes::leases::{self, Holder};
use crate::report::finding::{Certainty, Finding, Remedy, Severity};
use crate::report::words::span;

use super::facts::{Facts, Led, Workload};
use super::{at_risk, remedy};
use crate::checks::codes::Code;
use crate::checks::{finding, listed, object};

/// Components with several replicas of which none is elected.
pub fn disabled(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in &facts.workloads {
        let Some(id) = workload.id.filter(|_| workload.desired.is_some_and(|wanted| wanted > 1)) else {
            continue;
        };
        let elects = |container: &str| workload.elections.iter().any(|led| led.election.of == container);
        let without: Vec<String> = match id {
            ComponentId::NfdGc => continue,
            ComponentId::NfsController | ComponentId::S3Controller => workload
                .template
                .into_iter()
                .flat_map(|(_, spec)| &spec.containers)
                .filter(|container| matches!(container.name.as_str(), "csi-provisioner" | "csi-resizer" | "csi-snapshotter"))
                .filter(|container| !elects(&container.name))
                .map(|container| format!("container {}", container.name))
                .collect(),
            _ if workload.elections.is_empty() => vec![workload.key.name.clone()],
            _ => continue,
        };
        if without.is_empty() {
            continue;
        }
        let mut item = at_risk(
            workload,
            Code::LeaderElectionDisabled,
            format!("the replicas of {} elect no leader, so all of them act", workload.key.name),
        );
        item.evidence = vec![format!("no election by the arguments of {}", listed(&without))];
        item.consequence = "several replicas do the same work against each other".to_owned();
        item.remedy = remedy(
            match id {
                ComponentId::Worker => "take --kube-leader-election=false out of worker.extraArgs, or run one replica",
                ComponentId::NfdMaster => {
                    "give the master -enable-leader-election, as the chart does above one replica, or run one replica"
                }
                _ => "give the container --leader-election, as the chart does, or run one replica",
            },
            None,
            None,
        );
        found.push(item);
    }
    found
}

/// The elections that should take place, with their workloads.
fn elections<'f, 'a>(facts: &'f Facts<'a>) -> impl Iterator<Item = (&'f Workload<'a>, &'f Led<'a>)> {
    let runs = |workload: &&Workload<'_>| workload.desired.is_none_or(|wanted| wanted > 0);
    facts
        .workloads
        .iter()
        .filter(runs)
        .flat_map(|workload| workload.elections.iter().map(move |led| (workload, led)))
}

fn about_lease(led: &Led<'_>, code: Code, severity: Severity, message: String) -> Finding {
    finding(
        code,
        severity,
        Certainty::Certain,
        object("Lease", &led.election.namespace, &led.election.lease),
        message,
    )
}

fn see_logs(facts: &Facts<'_>, workload: &Workload<'_>) -> Remedy {
    let (reference, namespace) = (workload.reference(), &workload.key.namespace);
    let logs = ["logs", &reference, "-n", namespace, "--all-containers", "--tail=50"];
    remedy("see what its replicas say of the election:", Some(facts.kubectl.line(logs)), None)
}

/// Elections without a lease.
pub fn missing(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (workload, led) in elections(facts) {
        if !matches!(led.lease, Ok(None)) || !workload.pods.iter().any(|pod| facts.ready(pod)) {
            continue;
        }
        let name = &workload.key.name;
        let mut item = about_lease(
            led,
            Code::LeaseMissing,
            Severity::AtRisk,
            match led.election.lock {
                "Lease" => format!("the lease of {name} ({}) does not exist", led.election.of),
                lock => format!(
                    "{name} ({}) elects by {lock}, not by a lease, so who leads is not known",
                    led.election.of
                ),
            },
        );
        item.evidence = vec![format!("no lease {} in namespace {}", led.election.lease, led.election.namespace)];
        (item.consequence, item.remedy) = match led.election.lock {
            "Lease" => (
                "as far as can be told nobody leads, so nothing is reconciled".to_owned(),
                see_logs(facts, workload),
            ),
            lock => {
                item.evidence.push(format!("its arguments choose {lock} as the lock"));
                (
                    "how long it is without a leader once the holder's node is lost cannot be told".to_owned(),
                    remedy("take that argument out, or run a version that locks a Lease", None, None),
                )
            }
        };
        found.push(item);
    }
    found
}

/// Leases that ran out.
pub fn stale(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (workload, led) in elections(facts) {
        let Ok(Some(lease)) = led.lease else { continue };
        if leases::stale(facts.snapshot, lease) != Some(true) || matches!(led.holder, Some(Holder::Released)) {
            continue;
        }
        let age = leases::age_seconds(facts.snapshot, lease).unwrap_or_default();
        let mut item = about_lease(
            led,
            Code::LeaseStale,
            Severity::AtRisk,
            format!(
                "nobody has renewed {} for {}, though it lasts {} s",
                led.election.lease,
                span(age),
                lease.spec.lease_duration_seconds
            ),
        );
        item.evidence = vec![format!("holder {:?}", lease.spec.holder_identity)];
        let running: Vec<String> = workload
            .pods
            .iter()
            .filter(|pod| facts.snapshot.runs(pod))
            .map(|pod| pod.metadata.name.clone())
            .collect();
        item.consequence = if running.is_empty() {
            format!("{} has no leader, and no replica runs that could take it over", workload.key.name)
        } else {
            format!(
                "{} has no leader; it is free, and {} should have taken it within {} s",
                workload.key.name,
                listed(&running),
                led.election.retry_seconds
            )
        };
        item.remedy = see_logs(facts, workload);
        found.push(item);
    }
    found
}

/// Leases that nobody who runs holds.
pub fn holder_gone(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (workload, led) in elections(facts) {
        let (Ok(Some(lease)), Some(holder)) = (&led.lease, &led.holder) else {
            continue;
        };
        let Some(why) = gone(facts, workload, holder) else { continue };
        let waited = leases::stale(facts.snapshot, lease) == Some(false);
        let mut item = about_lease(
            led,
            Code::LeaseHolderGone,
            if waited { Severity::Info } else { Severity::AtRisk },
            format!("{} is held by nobody that runs", led.election.lease),
        );
        item.evidence = vec![format!("holder {:?}", lease.spec.holder_identity), why];
        item.consequence = format!(
            "{} has no leader until a standby takes over, {} s after the last renewal",
            workload.key.name,
            lease.spec.lease_duration_seconds.saturating_add(led.election.retry_seconds)
        );
        item.remedy = remedy(
            "wait for that; to watch it:",
            Some(
                facts
                    .kubectl
                    .line(["get", "lease", &led.election.lease, "-n", &led.election.namespace, "-w"]),
            ),
            None,
        );
        found.push(item);
    }
    found
}

/// Why the holder does not run; `None` where it does, or that is not known.
pub fn gone(facts: &Facts<'_>, workload: &Workload<'_>, holder: &Holder<'_>) -> Option<String> {
    let runs = |pod: &Pod| facts.snapshot.runs(pod);
    match holder {
        Holder::Released | Holder::Unknown(_) => None,
        Holder::Unmatched(why) => Some(why.clone()),
        Holder::Pod(pod) if runs(pod) => None,
        Holder::Pod(pod) => Some(format!("{} does not run", pod.metadata.name)),
        Holder::Node(node, _) => {
            let here = workload.pods.iter().any(|pod| pod.node() == Some(node) && runs(pod));
            (!here && workload.unread.is_none()).then(|| format!("no replica runs on {node}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::assessed::Request;
    use crate::checks::leases;
    use crate::gpustack::install::{self, Found};
    use crate::kubernetes::testing::snapshot;
    use crate::report::shell::Kubectl;

    const WORKER: &str = "
{apiVersion: apps/v1, kind: Deployment, metadata: {name: worker, namespace: n}, spec: {replicas: 2, template: {metadata: {labels: &l {app.kubernetes.io/part-of: gpustack-operator, app.kubernetes.io/component: operator}}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: worker-1, namespace: n, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: worker, controller: true}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: worker-1-a, namespace: n, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: worker-1, controller: true}]}, spec: {nodeName: x}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}
---
";

    /// Codes and severities, and whether each lease is stale, `after` seconds from the last renewal.
    fn told(holder: &str, after: &str) -> (Vec<String>, Option<bool>, Option<i64>) {
        let lease = format!(
            "{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: worker.gpustack.ai, namespace: n}}, spec: {{holderIdentity: '{holder}', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z'}}}}"
        );
        let mut cluster = snapshot(&format!("{WORKER}{lease}"));
        cluster.observed_at = Some(format!("2026-01-01T00:00:{after}Z").parse().unwrap());
        let Found::One(install) = install::find(&cluster, None, None) else {
            panic!("no install")
        };
        let request = Request {
            accept: Vec::new(),
            kubectl: Kubectl::default(),
            all: false,
        };
        let doc = leases::assess(&cluster, Some(&install), &request);
        let codes = doc
            .findings
            .iter()
            .map(|finding| format!("{} {}", finding.code.as_str(), finding.severity.as_str()))
            .collect();
        (codes, doc.leases[0].stale, doc.leases[0].age_seconds)
    }

    #[test]
    fn a_lease_that_is_renewed_is_fine() {
        assert_eq!(told("worker-1-a_1", "15"), (vec![], Some(false), Some(15)));
        assert_eq!(told("", "59"), (vec![], Some(true), Some(59)));
    }

    #[test]
    fn a_lease_that_ran_out_is_stale() {
        assert_eq!(
            told("worker-1-a_1", "16"),
            (vec!["lease-stale at-risk".to_owned()], Some(true), Some(16))
        );
    }

    #[test]
    fn a_holder_that_is_gone_is_waited_for_and_then_at_fault() {
        assert_eq!(told("worker-1-z_1", "10").0, ["lease-holder-gone info"]);
        assert_eq!(told("worker-1-z_1", "40").0, ["lease-holder-gone at-risk", "lease-stale at-risk"]);
    }
}
