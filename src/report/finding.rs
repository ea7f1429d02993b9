//! Findings, and the verdict that follows from them.

use serde::Serialize;

use crate::checks::codes::Code;

/// How bad a finding is. The order is the one in which severities outrank each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing; no influence on the verdict.
    Info,
    /// Something shrinks, pauses or is lost, or worse may happen.
    AtRisk,
    /// Something that could change the answer is not known.
    Unknown,
    /// The drain does not succeed, or something is gone.
    Unsafe,
}

impl Severity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::AtRisk => "at-risk",
            Self::Unknown => "unknown",
            Self::Unsafe => "unsafe",
        }
    }
}

/// Whether something happens on every path or on some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// On some paths: it depends on the scheduler's choice, or on timing.
    Possible,
    /// On every path.
    Certain,
}

impl Certainty {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Certain => "certain",
        }
    }
}

/// The one-word answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything that matters was read, and nothing bad happens.
    Safe,
    /// It shrinks, pauses or loses something, or worse may happen.
    AtRisk,
    /// Something that could change the answer is not known.
    Unknown,
    /// The drain does not succeed, or something is gone.
    Unsafe,
}

impl Verdict {
    /// The worst of the findings that were not accepted.
    pub fn of(findings: &[Finding]) -> Self {
        match findings
            .iter()
            .filter(|finding| !finding.accepted)
            .map(|finding| finding.severity)
            .max()
        {
            None | Some(Severity::Info) => Self::Safe,
            Some(Severity::AtRisk) => Self::AtRisk,
            Some(Severity::Unknown) => Self::Unknown,
            Some(Severity::Unsafe) => Self::Unsafe,
        }
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::AtRisk => "at-risk",
            Self::Unknown => "unknown",
            Self::Unsafe => "unsafe",
        }
    }
}

/// The object that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Kind.
    pub kind: String,
    /// Namespace; `null` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// The exact next step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remedy {
    /// What to do, in words.
    pub text: String,
    /// A command to paste, which reaches the same cluster.
    pub command: Option<String>,
    /// The chart's values key with its value, such as `kueue.controllerManager.replicas: 3`.
    pub values_key: Option<String>,
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Code, by which it is explained and accepted.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// On every path or on some.
    pub certainty: Certainty,
    /// What it is about.
    pub object: ObjectRef,
    /// Node concerned, if one is.
    pub node: Option<String>,
    /// What happens, in one sentence.
    pub message: String,
    /// Facts from the cluster that show it.
    pub evidence: Vec<String>,
    /// What follows, and for whom.
    pub consequence: String,
    /// What to do next.
    pub remedy: Remedy,
    /// Whether the caller accepted it: shown, but out of the verdict.
    pub accepted: bool,
}

/// A right that was missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingRight {
    /// Verb, such as `list`.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource, plural.
    pub resource: String,
    /// Namespace; `null` where the right is needed in the whole cluster.
    pub namespace: Option<String>,
}

/// Something that was not assessed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotAssessed {
    /// What.
    pub what: String,
    /// Why, and what it would have decided.
    pub why: String,
    /// Whether the verdict could be another with it.
    pub affects_verdict: bool,
    /// The right that would make it readable.
    pub missing_right: Option<MissingRight>,
}
