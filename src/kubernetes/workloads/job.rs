//! Jobs: an evicted pod counts as failed and is replaced, until the Job has failed too often.
//!
//! Follows `k8s.io/kubernetes/pkg/controller/job/job_controller.go` (`syncJob`, `manageJob`, `isPodFailed`,
//! `onlyReplaceFailedPods`), `pod_failure_policy.go` and `indexed_job_utils.go` (`isIndexFailed`) beside it.
//!
//! A process that ends with code 0 when it is told to stop has succeeded; that is not foreseen.

use super::When;
use crate::cluster::objects::{Job, OnExitCodes, Pod, PodFailurePolicyRule, SelectorOperator};

/// The finalizer that a Job's pods carry until the Job controller has counted them.
pub const TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// Failures of a pod's index before this pod, where they are counted per index.
const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

/// The controller of Kubernetes itself, as `spec.managedBy` names it.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

/// The first version in which `podReplacementPolicy` counts without being told to.
const REPLACEMENT_POLICY_MINOR: u32 = 29;

/// Exit codes of a process that is told to stop, or killed when it does not.
const STOPPED: [i64; 2] = [143, 137];

/// Wanted pods at a time; `None` where a Job leaves what runs alone and makes nothing, as one of its pods has succeeded.
pub fn wanted(job: &Job) -> Option<i64> {
    let parallelism = job.spec.parallelism.unwrap_or(1);
    match job.spec.completions {
        Some(completions) => Some(parallelism.min(completions - job.status.succeeded).max(0)),
        None if job.status.succeeded > 0 => None,
        None => Some(parallelism),
    }
}

/// When a pod is replaced; `minor` is the server's version, where known.
pub fn when(job: &Job, minor: Option<u32>) -> When {
    let policy =
        minor.is_none_or(|minor| minor >= REPLACEMENT_POLICY_MINOR) && job.spec.pod_replacement_policy.as_deref() == Some("Failed");
    if policy || job.spec.pod_failure_policy.is_some() {
        When::AfterGone
    } else {
        When::AtOnce
    }
}

/// Whether another controller than that of Kubernetes runs it.
pub fn foreign(job: &Job) -> Option<&str> {
    job.spec.managed_by.as_deref().filter(|name| *name != JOB_CONTROLLER)
}

/// Why it creates nothing, whatever it loses.
pub fn idle(job: &Job) -> Option<&'static str> {
    let is = |kinds: [&str; 2]| {
        let conditions = &job.status.conditions;
        conditions
            .iter()
            .any(|condition| condition.status == "True" && kinds.contains(&condition.kind.as_str()))
    };
    if is(["Complete", "SuccessCriteriaMet"]) {
        Some("the Job is complete")
    } else if is(["Failed", "FailureTarget"]) {
        Some("the Job has failed")
    } else if job.spec.suspend {
        Some("the Job is suspended")
    } else if wanted(job).is_none() {
        Some("one of the Job's pods has succeeded, so it makes no more")
    } else {
        None
    }
}

/// What the loss of a pod is to its Job, from harmless to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// It does not count.
    Ignored,
    /// It counts as a failure.
    Counted,
    /// The index of the pod has failed.
    FailsIndex,
    /// The Job has failed.
    FailsJob,
}

/// What the loss of a pod is to the Job: as it most likely ends, and at worst, where a rule on exit codes could match.
/// `evicted` tells an eviction, which leaves the condition `DisruptionTarget`, from a plain deletion.
pub fn judgements(job: &Job, evicted: bool) -> (Judgement, Judgement) {
    let Some(policy) = &job.spec.pod_failure_policy else {
        return (Judgement::Counted, Judgement::Counted);
    };
    let action = |rule: &PodFailurePolicyRule| match rule.action.as_str() {
        "Ignore" => Judgement::Ignored,
        "FailIndex" => Judgement::FailsIndex,
        "FailJob" => Judgement::FailsJob,
        _ => Judgement::Counted,
    };
    let mut by_code = Vec::new();
    let mut by_condition = Judgement::Counted;
    for rule in &policy.rules {
        if let Some(codes) = &rule.on_exit_codes {
            if STOPPED.iter().any(|code| names(codes, *code)) {
                by_code.push(action(rule));
            }
        } else if matches_condition(rule, evicted) {
            by_condition = action(rule);
            break;
        }
    }
    by_code.push(by_condition);
    let worst = by_code.iter().copied().max().unwrap_or(by_condition);
    (by_condition, worst)
}

/// Whether a rule on exit codes matches one, in some container.
fn names(codes: &OnExitCodes, code: i64) -> bool {
    match codes.operator {
        SelectorOperator::In => codes.values.contains(&code),
        SelectorOperator::NotIn => !codes.values.contains(&code),
        _ => false,
    }
}

/// Whether a rule matches the conditions that a removed pod ends with.
fn matches_condition(rule: &PodFailurePolicyRule, evicted: bool) -> bool {
    rule.on_pod_conditions.iter().any(|pattern| {
        let wanted = if pattern.status.is_empty() { "True" } else { &pattern.status };
        match pattern.kind.as_str() {
            "DisruptionTarget" => evicted && wanted == "True",
            "Ready" | "ContainersReady" => wanted == "False",
            "PodScheduled" | "Initialized" => wanted == "True",
            _ => false,
        }
    })
}

/// How many more pods may fail before the Job does.
pub fn failures_left(job: &Job) -> i64 {
    let without = if job.spec.backoff_limit_per_index.is_some() {
        i64::from(i32::MAX)
    } else {
        6
    };
    job.spec.backoff_limit.unwrap_or(without) - job.status.failed
}

/// Whether so many lost pods, so judged, end the Job as failed.
pub fn fails(job: &Job, judgement: Judgement, lost: i64) -> bool {
    match judgement {
        Judgement::Ignored => false,
        Judgement::FailsJob => lost > 0,
        Judgement::Counted | Judgement::FailsIndex => lost > failures_left(job),
    }
}

/// Whether the index of a lost pod, so judged, is given up: nothing replaces the pod, and the Job fails once the others
/// are done.
pub fn gives_up_index(job: &Job, pod: &Pod, judgement: Judgement) -> bool {
    let Some(limit) = job.spec.backoff_limit_per_index else {
        return false;
    };
    let before = || {
        let text = pod.metadata.annotations.get(INDEX_FAILURES);
        text.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0)
    };
    judgement == Judgement::FailsIndex || judgement == Judgement::Counted && before() >= limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(spec: &str, status: &str) -> Job {
        serde_saphyr::from_str(&format!("{{metadata: {{name: train}}, spec: {{{spec}}}, status: {{{status}}}}}")).unwrap()
    }

    #[test]
    fn no_more_pods_than_completions_left() {
        for (spec, status, number) in [
            ("", "", Some(1)),
            ("parallelism: 3", "", Some(3)),
            ("parallelism: 3, completions: 5", "succeeded: 3", Some(2)),
            ("completions: 1", "succeeded: 1", Some(0)),
            ("parallelism: 3", "succeeded: 1", None),
        ] {
            assert_eq!(wanted(&job(spec, status)), number, "{spec} {status}");
        }
    }

    #[test]
    fn a_job_that_is_done_makes_nothing() {
        let with = |kind: &str| idle(&job("completions: 1", &format!("conditions: [{{type: {kind}, status: 'True'}}]")));
        for kind in ["Complete", "SuccessCriteriaMet", "Failed", "FailureTarget"] {
            assert!(with(kind).is_some(), "{kind}");
        }
        assert_eq!(with("Suspended"), None);
        assert!(idle(&job("suspend: true", "")).is_some());
    }

    #[test]
    fn only_failed_pods_are_replaced_by_either_policy() {
        let failed = job("podReplacementPolicy: Failed", "");
        assert_eq!(when(&failed, None), When::AfterGone);
        assert_eq!(when(&failed, Some(28)), When::AtOnce);
        assert_eq!(when(&job("podFailurePolicy: {rules: []}", ""), Some(28)), When::AfterGone);
        assert_eq!(when(&job("", ""), None), When::AtOnce);
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        use Judgement::{Counted, FailsIndex, FailsJob, Ignored};
        let target = "{action: ACTION, onPodConditions: [{type: DisruptionTarget}]}";
        let codes = |action: &str, codes: &str| format!("{{action: {action}, onExitCodes: {{{codes}}}}}");
        for (rules, evicted, expected) in [
            (String::new(), true, (Counted, Counted)),
            (target.replace("ACTION", "Ignore"), true, (Ignored, Ignored)),
            (target.replace("ACTION", "Ignore"), false, (Counted, Counted)),
            (target.replace("ACTION", "FailJob"), true, (FailsJob, FailsJob)),
            (target.replace("ACTION", "FailIndex"), true, (FailsIndex, FailsIndex)),
            (
                format!(
                    "{}, {}",
                    codes("FailJob", "operator: In, values: [42]"),
                    target.replace("ACTION", "Ignore")
                ),
                true,
                (Ignored, Ignored),
            ),
            (
                format!(
                    "{}, {}",
                    codes("FailJob", "operator: In, values: [137]"),
                    target.replace("ACTION", "Ignore")
                ),
                true,
                (Ignored, FailsJob),
            ),
            (
                format!(
                    "{}, {}",
                    codes("FailJob", "operator: NotIn, values: [42]"),
                    target.replace("ACTION", "Ignore")
                ),
                true,
                (Ignored, FailsJob),
            ),
            (
                format!(
                    "{}, {}",
                    target.replace("ACTION", "Ignore"),
                    codes("FailJob", "operator: In, values: [143]")
                ),
                true,
                (Ignored, Ignored),
            ),
        ] {
            let job = job(&format!("podFailurePolicy: {{rules: [{rules}]}}"), "");
            assert_eq!(judgements(&job, evicted), expected, "{rules}");
        }
    }

    #[test]
    fn a_removed_pod_ends_scheduled_and_not_ready() {
        for (kind, status, matches) in [
            ("DisruptionTarget", "", true),
            ("DisruptionTarget", "False", false),
            ("Ready", "False", true),
            ("ContainersReady", "False", true),
            ("Ready", "", false),
            ("PodScheduled", "", true),
            ("Initialized", "True", true),
            ("Initialized", "False", false),
            ("Other", "", false),
        ] {
            let rule = format!("{{action: Ignore, onPodConditions: [{{type: {kind}, status: '{status}'}}]}}");
            let job = job(&format!("podFailurePolicy: {{rules: [{rule}]}}"), "");
            assert_eq!(judgements(&job, true).0 == Judgement::Ignored, matches, "{kind} {status}");
        }
    }

    #[test]
    fn failures_add_up_to_the_limit() {
        let limited = job("backoffLimit: 2", "failed: 1");
        assert!(!fails(&limited, Judgement::Counted, 1) && fails(&limited, Judgement::Counted, 2));
        assert!(!fails(&limited, Judgement::Ignored, 9));
        assert!(!fails(&limited, Judgement::FailsJob, 0) && fails(&limited, Judgement::FailsJob, 1));
        assert!(fails(&job("backoffLimit: 0", ""), Judgement::Counted, 1));
        assert!(!fails(&job("backoffLimitPerIndex: 0", ""), Judgement::Counted, 99));
    }

    #[test]
    fn an_index_is_given_up_when_its_own_failures_are_used_up() {
        let job = job("backoffLimitPerIndex: 1", "");
        let pod = |count: &str| -> Pod {
            serde_saphyr::from_str(&format!("{{metadata: {{annotations: {{{INDEX_FAILURES}: '{count}'}}}}}}")).unwrap()
        };
        assert!(!gives_up_index(&job, &pod("0"), Judgement::Counted));
        assert!(gives_up_index(&job, &pod("1"), Judgement::Counted));
        assert!(!gives_up_index(&job, &pod("1"), Judgement::Ignored));
        assert!(gives_up_index(&job, &pod("0"), Judgement::FailsIndex));
    }
}
