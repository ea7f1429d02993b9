//! Checks of what is there, before anything is drained: one file per code or close family.
//!
//! A check is a function from [`Facts`] to findings, and one line of [`CHECKS`], which says who raises it.

pub mod facts;

use crate::report::finding::{Certainty, Finding, ObjectRef, Remedy, Severity};

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

/// The standing checks.
pub const CHECKS: &[(Topic, Check)] = &[];

/// The findings of a topic.
pub fn findings(topic: Topic, facts: &Facts<'_>) -> Vec<Finding> {
    let checks = CHECKS.iter().filter(|(raised_by, _)| *raised_by == topic);
    checks.flat_map(|(_, check)| check(facts)).collect()
}

/// A finding about a workload.
fn about(workload: &Workload<'_>, code: Code, severity: Severity, message: String) -> Finding {
    finding(code, severity, Certainty::Certain, reference(workload), message)
}

/// The workload, as findings name it.
fn reference(workload: &Workload<'_>) -> ObjectRef {
    object(&workload.key.kind, &workload.key.namespace, &workload.key.name)
}

/// What to do by a command, and by the values where there is a key.
fn remedy(text: impl Into<String>, command: Option<String>, values_key: Option<String>) -> Remedy {
    Remedy {
        text: text.into(),
        command,
        values_key,
    }
}
