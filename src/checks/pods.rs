//! Single pods: what holds them, what nothing recreates, what is lost with them.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::objects::Job;
use crate::kubernetes::drain::{Filtered, Kept};
use crate::kubernetes::workloads::Owner;
use crate::kubernetes::workloads::job::{self, Judgement};
use crate::report::document::DrainOutcome;
use crate::report::finding::{Certainty, Finding, ObjectRef, Remedy, Severity};
use crate::simulation::cast::{Candidate, Hold};
use crate::simulation::state::{Old, State};
use crate::simulation::trace::Paths;

use super::codes::Code;
use super::{Context, finding, graded, listed, object};

fn pod_ref(candidate: &Candidate<'_>) -> ObjectRef {
    object("Pod", &candidate.pod.metadata.namespace, &candidate.pod.metadata.name)
}

fn pod_name(candidate: &Candidate<'_>) -> String {
    format!("{}/{}", candidate.pod.metadata.namespace, candidate.pod.metadata.name)
}

/// The command that prints the pod.
fn get(context: &Context<'_>, candidate: &Candidate<'_>, output: &str) -> String {
    let meta = &candidate.pod.metadata;
    context
        .kubectl
        .line(["get", "pod", &meta.name, "-n", &meta.namespace, "-o", output])
}

/// `finalizer-holds-pod`, `node-not-responding`, `stuck-terminating`.
pub fn held(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut found: Vec<Finding> = Vec::new();
    let mut silent: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (index, candidate) in trace.cast.candidates.iter().enumerate() {
        if !trace.cast.removed(candidate) || candidate.holds.is_empty() {
            continue;
        }
        let node = trace.cast.node_of(candidate);
        let never = |end: &State<'_>| matches!(end.old[index], Old::Terminating(_)) && trace.stuck(end, index);
        let Some((severity, certainty)) = graded(trace.paths(never), Severity::Unsafe, Severity::AtRisk) else {
            found.extend(released_late(context, index, candidate));
            continue;
        };
        if candidate.holds.contains(&Hold::Node) {
            silent.entry(candidate.turn).or_default().push(pod_name(candidate));
            continue;
        }
        let Some(end) = trace.ends.iter().find(|end| never(end)) else {
            continue;
        };
        let Some(hold) = candidate.holds.iter().find(|hold| !end.lets_go(&trace.cast, index, hold)) else {
            continue;
        };
        let dead = |hooks: &[(usize, bool)]| -> Vec<String> {
            let dead = hooks.iter().filter(|(hook, _)| end.down(&trace.cast, *hook));
            let names: BTreeSet<String> = dead
                .map(|(hook, _)| trace.cast.hooks[*hook].configured.webhook.name.clone())
                .collect();
            names.into_iter().collect()
        };
        let down = dead(&candidate.update_hooks);
        let refused = format!(
            "the removal is an update of the pod, and {} refuses it while nobody answers",
            listed(&down)
        );
        let name = pod_name(candidate);
        let deleting = dead(&candidate.ending_hooks);
        let (code, why, fix) = match hold {
            Hold::Deletion => (
                Code::WebhookBlocksEviction,
                format!(
                    "the kubelet may neither report its end nor delete it for good while nobody answers {}",
                    listed(&deleting)
                ),
                "make the webhook answer first, or take pods/status and the deletion of pods out of its rules".to_owned(),
            ),
            Hold::JobTracking => (
                Code::FinalizerHoldsPod,
                format!("the Job controller cannot remove batch.kubernetes.io/job-tracking: {refused}"),
                "make the webhook answer first: see the finding about it".to_owned(),
            ),
            Hold::Kueue { worker } if down.is_empty() => (
                Code::FinalizerHoldsPod,
                format!(
                    "nobody removes kueue.x-k8s.io/managed: {} does not run off the drained node",
                    if *worker { "Kueue or the worker" } else { "Kueue" }
                ),
                "keep one replica of Kueue and of the worker running elsewhere".to_owned(),
            ),
            Hold::Kueue { .. } => (
                Code::FinalizerHoldsPod,
                format!("Kueue cannot remove kueue.x-k8s.io/managed: {refused}"),
                "make the webhook answer first: see the finding about it".to_owned(),
            ),
            Hold::Nobody(finalizer) => (
                Code::FinalizerHoldsPod,
                format!("nobody removes the finalizer {finalizer}"),
                "once the pod is Terminating, delete its Workload, or remove the finalizer by hand".to_owned(),
            ),
            Hold::Policy => (
                Code::WebhookBlocksEviction,
                "a validating admission policy may deny what the kubelet writes once it has ended".to_owned(),
                "read the policy, or take pods/status and the deletion of pods out of its rules".to_owned(),
            ),
            Hold::Unfamiliar(finalizer) => (
                Code::FinalizerHoldsPod,
                format!("whether somebody removes the finalizer {finalizer} is not known"),
                "find out who removes it, and whether that runs off the drained node".to_owned(),
            ),
            Hold::Overdue => (
                Code::StuckTerminating,
                "it has been Terminating longer than its grace period".to_owned(),
                "see why it does not end; --skip-wait-for-delete-timeout passes over it".to_owned(),
            ),
            Hold::Node => continue,
        };
        let code = if candidate.pod.metadata.terminating() {
            Code::StuckTerminating
        } else {
            code
        };
        let mut item = finding(
            code,
            severity,
            certainty,
            pod_ref(candidate),
            format!(
                "{name} {} Terminating: {why}",
                if certainty == Certainty::Certain { "stays" } else { "may stay" }
            ),
        );
        item.node = Some(node.to_owned());
        if !candidate.pod.metadata.finalizers.is_empty() {
            item.evidence = vec![format!("finalizers: {}", candidate.pod.metadata.finalizers.join(", "))];
        }
        item.evidence
            .extend(down.iter().map(|webhook| format!("webhook {webhook} has no ready endpoint then")));
        item.consequence = if trace.cast.flags.skip_wait_for_delete_timeout > 0 {
            "kubectl passes over the pod and leaves it Terminating".to_owned()
        } else {
            "kubectl drain waits for the pod to be gone until you stop it".to_owned()
        };
        item.remedy = Remedy {
            text: fix,
            command: Some(get(context, candidate, "jsonpath={.metadata.finalizers}")),
            values_key: None,
        };
        found.push(item);
    }
    for (turn, pods) in silent {
        let node = trace.cast.node_name(turn);
        let mut item = finding(
            Code::NodeNotResponding,
            Severity::Unsafe,
            Certainty::Certain,
            object("Node", "", node),
            format!(
                "the kubelet of {node} does not answer, so {} {} Terminating",
                listed(&pods),
                if pods.len() == 1 { "stays" } else { "stay" }
            ),
        );
        item.node = Some(node.to_owned());
        item.evidence = vec!["the node's Ready condition is not True".to_owned()];
        item.consequence = "evictions are accepted, and kubectl waits for pods that no kubelet ends".to_owned();
        item.remedy = Remedy {
            text: "if the machine is really gone, delete the node object: its pods are then removed and replaced".to_owned(),
            command: Some(context.kubectl.line(["delete", "node", node])),
            values_key: None,
        };
        found.push(item);
    }
    found
}

/// A finalizer that is removed late, as the removal is refused for a while.
fn released_late(context: &Context<'_>, index: usize, candidate: &Candidate<'_>) -> Option<Finding> {
    let trace = context.trace;
    if !candidate
        .holds
        .iter()
        .any(|hold| matches!(hold, Hold::JobTracking | Hold::Kueue { .. }))
    {
        return None;
    }
    let hook = candidate
        .update_hooks
        .iter()
        .map(|(hook, _)| &trace.cast.hooks[*hook])
        .find(|hook| {
            hook.served.is_some_and(|served| {
                trace
                    .ends
                    .iter()
                    .any(|end| end.served_lows[served].certain == 0 && matches!(end.old[index], Old::Gone(_)))
            })
        })?;
    let name = pod_name(candidate);
    let mut item = finding(
        Code::FinalizerHoldsPod,
        Severity::Info,
        Certainty::Certain,
        pod_ref(candidate),
        format!(
            "{name} stays Terminating until webhook {} answers again",
            hook.configured.webhook.name
        ),
    );
    item.node = Some(trace.cast.node_of(candidate).to_owned());
    item.evidence = vec![format!(
        "finalizers: {}; their removal is an update of the pod",
        candidate.pod.metadata.finalizers.join(", ")
    )];
    item.consequence = "the drain takes that much longer".to_owned();
    item.remedy = Remedy {
        text: "nothing: it ends by itself".to_owned(),
        ..Remedy::default()
    };
    Some(item)
}

/// `unmanaged-pod`, `orphaned-pod`: gone for good.
pub fn unmanaged(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut found = Vec::new();
    for (index, candidate) in trace.cast.candidates.iter().enumerate() {
        if !trace.cast.removed(candidate) || candidate.pod.finished() || candidate.pod.metadata.terminating() {
            continue;
        }
        let gone = trace.paths(|end| matches!(end.old[index], Old::Gone(_) | Old::Terminating(_)));
        let Some((severity, certainty)) = graded(gone, Severity::AtRisk, Severity::AtRisk) else {
            continue;
        };
        let name = pod_name(candidate);
        let (code, message, evidence) = match &candidate.owner {
            Owner::Bare => (
                Code::UnmanagedPod,
                format!("{name} has no controller: nothing recreates it"),
                "no owner reference is a controller".to_owned(),
            ),
            Owner::Gone(owner) if owner.kind == "DaemonSet" => (
                Code::OrphanedDaemonSetPod,
                format!("{name}'s DaemonSet is gone: nothing recreates it"),
                format!("DaemonSet {} does not exist", owner.name),
            ),
            Owner::Gone(owner) => (
                Code::OrphanedPod,
                format!("{name}'s {} is gone: nothing recreates it", owner.kind),
                format!("{} {} does not exist", owner.kind, owner.name),
            ),
            owner if owner.terminating() => {
                let Some(owner) = candidate.pod.metadata.controller() else {
                    continue;
                };
                (
                    Code::OrphanedPod,
                    format!("{name}'s {} is being deleted: nothing recreates it", owner.kind),
                    format!("{} {} has a deletion timestamp", owner.kind, owner.name),
                )
            }
            _ => continue,
        };
        let mut item = finding(code, severity, certainty, pod_ref(candidate), message);
        item.node = Some(trace.cast.node_of(candidate).to_owned());
        item.evidence = vec![evidence];
        item.consequence = "it is gone for good".to_owned();
        item.remedy = Remedy {
            text: "keep its manifest, to create it again afterwards:".to_owned(),
            command: Some(get(context, candidate, "yaml")),
            values_key: None,
        };
        found.push(item);
    }
    found
}

/// `local-data`: emptyDir volumes that go with their pods; one finding per workload or bare pod.
pub fn local_data(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut groups: BTreeMap<ObjectRef, Vec<&Candidate<'_>>> = BTreeMap::new();
    for (index, candidate) in trace.cast.candidates.iter().enumerate() {
        let volumes = candidate.pod.spec.volumes.iter().any(|volume| volume.empty_dir.is_some());
        if volumes && context.leaves(index) && !candidate.pod.finished() {
            let key = match candidate.workload {
                Some(workload) => {
                    let key = &trace.cast.workloads[workload].key;
                    object(&key.kind, &key.namespace, &key.name)
                }
                None => pod_ref(candidate),
            };
            groups.entry(key).or_default().push(candidate);
        }
    }
    groups
        .into_iter()
        .map(|(key, candidates)| {
            let pods: Vec<String> = candidates.iter().map(|candidate| candidate.pod.metadata.name.clone()).collect();
            let volumes: Vec<String> = candidates[0]
                .pod
                .spec
                .volumes
                .iter()
                .filter(|volume| volume.empty_dir.is_some())
                .map(|volume| volume.name.clone())
                .collect();
            let mut item = finding(
                Code::LocalData,
                Severity::Info,
                Certainty::Certain,
                key,
                format!("the emptyDir data of {} is lost", listed(&pods)),
            );
            item.node = Some(trace.cast.node_of(candidates[0]).to_owned());
            item.evidence = vec![format!("volumes: {}", volumes.join(", "))];
            item.consequence = "what stands there ends with the pod".to_owned();
            item.remedy = Remedy {
                text: "nothing, unless the data matters; --delete-emptydir-data=false makes kubectl refuse instead".to_owned(),
                ..Remedy::default()
            };
            item
        })
        .collect()
}

/// `daemonset-pods`: what stays on each node.
pub fn daemon_sets(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut found = Vec::new();
    for turn in 0..trace.cast.nodes.len() {
        let pods: Vec<String> = trace
            .cast
            .candidates
            .iter()
            .filter(|candidate| candidate.turn == turn && candidate.filtered == Filtered::Keep(Kept::DaemonSet))
            .map(pod_name)
            .collect();
        if pods.is_empty() {
            continue;
        }
        let node = trace.cast.node_name(turn);
        let mut item = finding(
            Code::DaemonSetPods,
            Severity::Info,
            Certainty::Certain,
            object("Node", "", node),
            format!(
                "{} DaemonSet {} on {node}",
                pods.len(),
                if pods.len() == 1 { "pod stays" } else { "pods stay" }
            ),
        );
        item.node = Some(node.to_owned());
        item.evidence = pods;
        item.consequence = "they go on running, and keep their host ports".to_owned();
        item.remedy = Remedy {
            text: "nothing: they end with the machine".to_owned(),
            ..Remedy::default()
        };
        found.push(item);
    }
    found
}

/// `job-interrupted`: one finding per Job.
pub fn jobs(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, candidate) in trace.cast.candidates.iter().enumerate() {
        if let (Owner::Job(_), Some(set)) = (&candidate.owner, candidate.set)
            && !candidate.pod.metadata.terminating()
            && context.leaves(index)
        {
            groups.entry(set).or_default().push(index);
        }
    }
    let mut found = Vec::new();
    for (set, pods) in groups {
        let entry = &trace.cast.sets[set];
        let Owner::Job(job) = &entry.owner else { continue };
        let node = trace.cast.node_of(&trace.cast.candidates[pods[0]]);
        let names: Vec<String> = pods
            .iter()
            .map(|index| trace.cast.candidates[*index].pod.metadata.name.clone())
            .collect();
        let lost = |end: &State<'_>| {
            super::count(
                pods.iter()
                    .filter(|index| matches!(end.old[**index], Old::Gone(_) | Old::Terminating(_)))
                    .count(),
            )
        };
        let (likely, worst) = job::judgements(job, !trace.cast.flags.disable_eviction);
        let failing = |judgement| {
            trace.paths(|end| {
                let gone = |index: &&usize| matches!(end.old[**index], Old::Gone(_) | Old::Terminating(_));
                job::fails(job, judgement, lost(end))
                    || pods
                        .iter()
                        .filter(gone)
                        .any(|index| job::gives_up_index(job, trace.cast.candidates[*index].pod, judgement))
            })
        };
        let fails = match (failing(likely), failing(worst)) {
            (Paths::None, Paths::All) => Paths::Some,
            (Paths::None, worst) => worst,
            (likely, _) => likely,
        };
        let fails = if entry.when.is_some() { fails } else { Paths::None };
        let (severity, certainty) = graded(fails, Severity::AtRisk, Severity::AtRisk).unwrap_or((Severity::Info, Certainty::Certain));
        let name = &job.metadata.name;
        let (message, consequence) = match (fails, &entry.why_none) {
            (Paths::None, Some(why)) => (
                format!("Job {name} loses {} and makes no other: {why}", listed(&names)),
                "what this pod was doing is not done again".to_owned(),
            ),
            (Paths::None, None) if likely == Judgement::Ignored => (
                format!(
                    "Job {name} starts over: {} is evicted, which does not count as a failure",
                    listed(&names)
                ),
                "the work of this pod is done again from its start, or its last checkpoint".to_owned(),
            ),
            (Paths::None, None) => (
                format!("Job {name} starts over: {} is evicted", listed(&names)),
                "the work of this pod is done again from its start, or its last checkpoint".to_owned(),
            ),
            (Paths::All, _) => (
                format!("Job {name} fails: {} is evicted, and no more failures are allowed", listed(&names)),
                "an evicted pod counts as failed: the Job ends as Failed".to_owned(),
            ),
            (Paths::Some, _) => (
                format!(
                    "Job {name} may fail: {} is evicted, and no more failures are allowed",
                    listed(&names)
                ),
                "an evicted pod may count as failed, and then the Job ends as Failed".to_owned(),
            ),
        };
        let mut item = finding(
            Code::JobInterrupted,
            severity,
            certainty,
            object("Job", &job.metadata.namespace, name),
            message,
        );
        item.node = Some(node.to_owned());
        item.evidence = vec![evidence(job)];
        item.consequence = consequence;
        item.remedy = Remedy {
            text: "wait for it, or accept this".to_owned(),
            command: Some(context.kubectl.line([
                "wait",
                "--for=condition=complete",
                &format!("job/{}", job.metadata.name),
                "-n",
                &job.metadata.namespace,
                "--timeout=1h",
            ])),
            values_key: None,
        };
        found.push(item);
    }
    found
}

/// Pods that may take longer to end than `--timeout` waits.
pub fn late(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let Some(timeout) = trace.cast.flags.timeout else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for turn in 0..trace.cast.nodes.len() {
        let mine: Vec<usize> = (0..trace.cast.candidates.len())
            .filter(|index| trace.cast.candidates[*index].turn == turn && trace.cast.removed(&trace.cast.candidates[*index]))
            .collect();
        let late = trace.paths(|end| {
            end.ended.get(turn) == Some(&DrainOutcome::Fails) && mine.iter().all(|index| matches!(end.old[*index], Old::Gone(_)))
        });
        let grace = |index: usize| trace.cast.flags.grace(trace.cast.candidates[index].pod);
        let slowest = mine.iter().copied().max_by_key(|index| grace(*index));
        let (Some((severity, certainty)), Some(slowest)) = (graded(late, Severity::AtRisk, Severity::AtRisk), slowest) else {
            continue;
        };
        let seconds = grace(slowest).as_secs();
        let node = trace.cast.node_name(turn);
        let mut item = finding(
            Code::StuckTerminating,
            severity,
            certainty,
            object("Node", "", node),
            format!(
                "pods may take up to {seconds} s to end, and --timeout gives up after {} s",
                timeout.as_secs_f64()
            ),
        );
        item.node = Some(node.to_owned());
        item.evidence = vec![format!(
            "{} has a grace period of {seconds} s",
            pod_name(&trace.cast.candidates[slowest])
        )];
        item.consequence = format!("kubectl drain then fails, though the pods that it evicted go; {node} stays cordoned");
        item.remedy = Remedy {
            text: format!("give --timeout more than {seconds} s, and 5 s more for each further round"),
            ..Remedy::default()
        };
        found.push(item);
    }
    found
}

/// What decides over the failures of a Job.
fn evidence(job: &Job) -> String {
    let spec = &job.spec;
    let mut parts = Vec::new();
    match (spec.backoff_limit_per_index, spec.backoff_limit) {
        (Some(limit), None) => parts.push(format!("backoffLimitPerIndex {limit}")),
        (Some(per_index), Some(limit)) => parts.push(format!("backoffLimitPerIndex {per_index}, backoffLimit {limit}")),
        (None, limit) => parts.push(format!("backoffLimit {}", limit.unwrap_or(6))),
    }
    if spec.pod_failure_policy.is_some() {
        parts.push("a podFailurePolicy".to_owned());
    }
    parts.push(format!("failed so far {}", job.status.failed));
    parts.join(", ")
}
