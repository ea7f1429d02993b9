//! Checks of what is there, before anything is drained: one file per code or close family.
//!
//! A check is a function from [`Facts`] to findings, and one line of [`CHECKS`], which says who raises it.

pub mod budgets;
pub mod elections;
pub mod facts;
pub mod probes;
pub mod replicas;
pub mod rollout;
pub mod serving;
pub mod spread;
pub mod taints;

use crate::report::finding::{Certainty, Finding, Remedy, Severity};

use self::facts::{Facts, Workload};
use super::codes::Code;
use super::{finding, object};

/// A standing check.
pub type Check = for<'a> fn(&Facts<'a>) -> Vec<Finding>;

/// Who raises a check's findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// `placement`.
    Placement,
    /// `pdb`.
    Budgets,
    /// `leases`.
    Leases,
}

use Topic::{Budgets, Leases, Placement};

/// The standing checks.
pub const CHECKS: &[(&[Topic], Check)] = &[
    (&[Budgets], budgets::never_allows),
    (&[Budgets], budgets::uncomputable),
    (&[Budgets], budgets::overlap),
    (&[Budgets], budgets::stale),
    (&[Budgets], budgets::selects_nothing),
    (&[Budgets], budgets::selects_others),
    (&[Budgets], budgets::against_autoscaler),
    (&[Placement, Budgets], budgets::missing),
    (&[Placement], replicas::not_ready),
    (&[Placement], replicas::below_ha),
    (&[Placement], spread::share_node),
    (&[Placement], spread::share_zone),
    (&[Placement], spread::too_few_nodes),
    (&[Placement], spread::without_selector),
    (&[Placement], spread::not_enforced),
    (&[Placement], spread::skewed),
    (&[Placement], rollout::recreate),
    (&[Placement], rollout::surge_port),
    (&[Placement], rollout::stalls),
    (&[Placement], taints::everything),
    (&[Placement], taints::not_tolerated),
    (&[Placement], serving::single_endpoint),
    (&[Placement], probes::missing),
    (&[Placement, Leases], elections::disabled),
    (&[Leases], elections::missing),
    (&[Leases], elections::stale),
    (&[Leases], elections::holder_gone),
];

/// The findings of a topic.
pub fn findings(topic: Topic, facts: &Facts<'_>) -> Vec<Finding> {
    let checks = CHECKS.iter().filter(|(raised_by, _)| raised_by.contains(&topic));
    checks.flat_map(|(_, check)| check(facts)).collect()
}

/// A finding about a workload.
fn about(workload: &Workload<'_>, code: Code, severity: Severity, message: String) -> Finding {
    let key = &workload.key;
    finding(
        code,
        severity,
        Certainty::Certain,
        object(&key.kind, &key.namespace, &key.name),
        message,
    )
}

/// The same, at risk.
fn at_risk(workload: &Workload<'_>, code: Code, message: String) -> Finding {
    about(workload, code, Severity::AtRisk, message)
}

/// How bad a gap is that takes a second node to close: nothing to be done where there is none.
fn gap(facts: &Facts<'_>, workload: &Workload<'_>) -> Severity {
    match facts.suitable(workload) {
        Ok(nodes) if nodes.len() < 2 => Severity::Info,
        _ => Severity::AtRisk,
    }
}

/// The command that sets the workload's replicas.
fn scale(facts: &Facts<'_>, workload: &Workload<'_>, replicas: u32) -> String {
    let (reference, namespace) = (workload.reference(), &workload.key.namespace);
    facts
        .kubectl
        .line(["scale", &reference, "-n", namespace, &format!("--replicas={replicas}")])
}

/// What to do by a command, and by the values where there is a key.
fn remedy(text: impl Into<String>, command: Option<String>, values_key: Option<String>) -> Remedy {
    Remedy {
        text: text.into(),
        command,
        values_key,
    }
}
