//! What the eviction API answers.
//!
//! Follows `k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go`.

use crate::cluster::objects::{Pod, PodDisruptionBudget};
use crate::kubernetes::selectors;

/// More disrupted pods than this make the API answer 403 (`MaxDisruptedPodSize`).
pub const MAX_DISRUPTED_PODS: usize = 2000;

/// The numbers that the API reads from a budget's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Allowance {
    /// Evictions allowed now.
    pub allowed: i64,
    /// Healthy pods counted.
    pub healthy: i64,
    /// Healthy pods wanted.
    pub desired: i64,
    /// The numbers belong to an older generation of the spec.
    pub stale: bool,
    /// More pods are being disrupted than the API accepts.
    pub overfull: bool,
}

/// The answer to one eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Accepted without using an allowance.
    Accepted,
    /// Accepted, and the budget allows one less from now on.
    AcceptedAtACost,
    /// 429: kubectl tries again every five seconds.
    TooManyRequests,
    /// 403: kubectl gives the pod up.
    Forbidden,
    /// 500, since several budgets select the pod: kubectl gives the pod up.
    Overlap,
}

/// Whether the API removes the pod without asking any budget (`canIgnorePDB`).
pub fn ignores_budgets(pod: &Pod) -> bool {
    pod.finished() || pod.status.phase == "Pending" || pod.metadata.terminating()
}

/// Whether a budget selects a pod of its namespace: an empty selector selects all, an absent one none.
pub fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    budget.metadata.namespace == pod.metadata.namespace
        && budget
            .spec
            .selector
            .as_ref()
            .is_some_and(|selector| selectors::matches(selector, &pod.metadata.labels))
}

/// The answer for a pod that budgets apply to, by the budgets over it in the state they are in now.
pub fn answer(ready: bool, budgets: &[(&PodDisruptionBudget, Allowance)]) -> Answer {
    let (budget, now) = match budgets {
        [] => return Answer::Accepted,
        [only] => only,
        _ => return Answer::Overlap,
    };
    if !ready {
        let always = budget.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow");
        if always || (now.healthy >= now.desired && now.desired > 0) {
            return Answer::Accepted;
        }
    }
    if now.stale {
        Answer::TooManyRequests
    } else if now.allowed < 0 || now.overfull {
        Answer::Forbidden
    } else if now.allowed == 0 {
        Answer::TooManyRequests
    } else {
        Answer::AcceptedAtACost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(policy: Option<&str>) -> PodDisruptionBudget {
        let mut budget = PodDisruptionBudget::default();
        budget.spec.unhealthy_pod_eviction_policy = policy.map(str::to_owned);
        budget
    }

    fn numbers(allowed: i64, healthy: i64, desired: i64) -> Allowance {
        Allowance {
            allowed,
            healthy,
            desired,
            ..Allowance::default()
        }
    }

    #[test]
    fn a_ready_pod_costs_an_allowance() {
        let budget = budget(None);
        assert_eq!(answer(true, &[(&budget, numbers(1, 3, 2))]), Answer::AcceptedAtACost);
        assert_eq!(answer(true, &[(&budget, numbers(0, 2, 2))]), Answer::TooManyRequests);
        assert_eq!(answer(true, &[]), Answer::Accepted);
    }

    #[test]
    fn two_budgets_are_an_error_whatever_they_allow() {
        let budget = budget(None);
        assert_eq!(
            answer(true, &[(&budget, numbers(1, 2, 1)), (&budget, numbers(1, 2, 1))]),
            Answer::Overlap
        );
    }

    #[test]
    fn an_unready_pod_goes_free_only_while_the_budget_is_met() {
        let default = budget(None);
        assert_eq!(answer(false, &[(&default, numbers(0, 2, 2))]), Answer::Accepted);
        assert_eq!(answer(false, &[(&default, numbers(0, 1, 2))]), Answer::TooManyRequests);
        assert_eq!(answer(false, &[(&default, numbers(0, 0, 0))]), Answer::TooManyRequests);
        let always = budget(Some("AlwaysAllow"));
        assert_eq!(answer(false, &[(&always, numbers(0, 1, 2))]), Answer::Accepted);
    }

    #[test]
    fn a_stale_status_refuses_before_anything_is_counted() {
        let budget = budget(None);
        let stale = Allowance {
            stale: true,
            ..numbers(1, 3, 2)
        };
        assert_eq!(answer(true, &[(&budget, stale)]), Answer::TooManyRequests);
        assert_eq!(
            answer(
                true,
                &[(
                    &budget,
                    Allowance {
                        overfull: true,
                        ..numbers(1, 3, 2)
                    }
                )]
            ),
            Answer::Forbidden
        );
        assert_eq!(answer(true, &[(&budget, numbers(-1, 3, 2))]), Answer::Forbidden);
    }

    #[test]
    fn no_budget_is_asked_for_what_does_not_serve() {
        for (metadata, phase, ignored) in [
            ("", "Running", false),
            ("", "Pending", true),
            ("", "Succeeded", true),
            ("", "Failed", true),
            ("deletionTimestamp: '2026-01-01T00:00:00Z'", "Running", true),
        ] {
            let pod: Pod = serde_saphyr::from_str(&format!("{{metadata: {{{metadata}}}, status: {{phase: {phase}}}}}")).unwrap();
            assert_eq!(ignores_budgets(&pod), ignored, "{metadata} {phase}");
        }
    }
}
