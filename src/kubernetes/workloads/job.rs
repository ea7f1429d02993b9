//! Jobs: an evicted pod counts as failed and is replaced, until the Job has failed too often.
//!
//! Follows `k8s.io/kubernetes/pkg/controller/job/job_controller.go` (`syncJob`, `manageJob`) and `pkg/controller/job/backoff_utils.go`.

use super::When;
use crate::cluster::objects::Job;

/// The finalizer that a Job's pods carry until the Job controller has counted them.
pub const TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// Wanted pods at a time.
pub fn wanted(job: &Job) -> i64 {
    job.spec.parallelism.unwrap_or(1)
}

/// When a pod is replaced.
pub fn when(job: &Job) -> When {
    if job.spec.pod_replacement_policy.as_deref() == Some("Failed") || job.spec.pod_failure_policy.is_some() {
        When::AfterGone
    } else {
        When::AtOnce
    }
}

/// How many more pods may fail before the Job fails; `None` where failures are counted per index or judged by rules.
pub fn failures_left(job: &Job) -> Option<i64> {
    if job.spec.backoff_limit_per_index.is_some() || job.spec.pod_failure_policy.is_some() {
        return None;
    }
    Some(job.spec.backoff_limit.unwrap_or(6) - job.status.failed)
}

/// Whether it is over, or suspended, and so creates nothing.
pub fn idle(job: &Job) -> bool {
    job.spec.suspend
        || job
            .status
            .conditions
            .iter()
            .any(|condition| matches!(condition.kind.as_str(), "Complete" | "Failed") && condition.status == "True")
}
