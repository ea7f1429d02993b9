//! The documents that commands print, field for field as `-o json` shows them.

use serde::Serialize;

use super::finding::{Certainty, Finding, NotAssessed, Verdict};

/// `apiVersion` of every document.
pub const API_VERSION: &str = "gpustack-ha/v1";

/// The cluster that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterInfo {
    /// kubeconfig context.
    pub context: Option<String>,
    /// URL of the API server.
    pub server: Option<String>,
    /// Its version.
    pub server_version: Option<String>,
}

/// The install that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallInfo {
    /// Helm release.
    pub release: String,
    /// Namespace.
    pub namespace: String,
    /// Version of the chart, as its labels say.
    pub chart_version: Option<String>,
}

/// What every document starts with.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// Kind of the document.
    pub kind: &'static str,
    /// Version of this tool.
    pub tool_version: &'static str,
    /// Cluster.
    pub cluster: ClusterInfo,
    /// `live` or `files`.
    pub source: &'static str,
    /// When the objects were read (RFC 3339), by the API server's clock; `null` for files that do not say.
    pub observed_at: Option<String>,
    /// Install, or `null` where none was found.
    pub install: Option<InstallInfo>,
}

/// How a drain ends. The order is the one in which outcomes outrank each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DrainOutcome {
    /// Every pod to be removed is gone, and kubectl exits 0.
    Finishes,
    /// An earlier node never ends, so that kubectl does not come to this one.
    NotReached,
    /// kubectl's filters refuse the node: cordoned, nothing evicted.
    Refused,
    /// An eviction or a wait ends with an error.
    Fails,
    /// It goes on until somebody acts.
    Hangs,
    /// Not decidable from what was read.
    Unknown,
}

impl DrainOutcome {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finishes => "finishes",
            Self::NotReached => "not-reached",
            Self::Refused => "refused",
            Self::Fails => "fails",
            Self::Hangs => "hangs",
            Self::Unknown => "unknown",
        }
    }
}

/// How the whole `kubectl drain` ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainResult {
    /// The worst that can be reached.
    pub outcome: DrainOutcome,
    /// Whether every path ends so.
    pub certainty: Certainty,
    /// Why, in one sentence.
    pub why: String,
    /// Node by node, in the order in which kubectl takes them.
    pub per_node: Vec<NodeResult>,
}

/// How the drain of one node ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    /// Node.
    pub node: String,
    /// The worst that can be reached.
    pub outcome: DrainOutcome,
    /// Whether every path ends so.
    pub certainty: Certainty,
    /// Why, in one sentence; `null` where it just finishes.
    pub why: Option<String>,
}

/// What the drain does with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Evicted, and gone.
    Evict,
    /// Deleted without asking budgets, and gone.
    Delete,
    /// Left in place.
    Keep,
    /// A kubectl filter refuses it, which ends its node.
    Refuse,
    /// Its eviction ends with an error that is not retried.
    Fail,
    /// Never gone: refused for ever, or accepted and never ended.
    Stuck,
}

impl Action {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Evict => "evict",
            Self::Delete => "delete",
            Self::Keep => "keep",
            Self::Refuse => "refuse",
            Self::Fail => "fail",
            Self::Stuck => "stuck",
        }
    }
}

/// What becomes of the replacement of an evicted pod, from harmless to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplacementOutcome {
    /// Nothing recreates the pod, or nothing needs to.
    None,
    /// Placed on another node, where it can run.
    Lands,
    /// A scheduling gate holds it.
    Gated,
    /// No node takes it.
    Pending,
    /// Its creation is refused.
    NotCreated,
    /// Placed where a port that it binds is taken.
    CrashLoops,
    /// Not decidable from what was read.
    Unknown,
}

impl ReplacementOutcome {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lands => "lands",
            Self::Gated => "gated",
            Self::Pending => "pending",
            Self::CrashLoops => "crash-loops",
            Self::NotCreated => "not-created",
            Self::Unknown => "unknown",
        }
    }
}

/// Why nodes do not take a replacement, in the scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReason {
    /// The reason.
    pub reason: String,
    /// How many nodes it holds for.
    pub count: usize,
    /// Those nodes.
    pub nodes: Vec<String>,
}

/// The replacement of an evicted pod: its worst reachable outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// Outcome.
    pub outcome: ReplacementOutcome,
    /// Whether every path ends so.
    pub certainty: Certainty,
    /// Nodes it may be placed on, sorted.
    pub nodes: Vec<String>,
    /// Why the other nodes do not take it, or why it is not created.
    pub reasons: Vec<NodeReason>,
}

/// The controller of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerInfo {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// A pod on a drained node, and what the drain does with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionRow {
    /// Pod.
    pub pod: String,
    /// Its namespace.
    pub namespace: String,
    /// Its node.
    pub node: String,
    /// Its controller.
    pub owner: Option<OwnerInfo>,
    /// What the drain does with it, in the worst case. Which of a workload's identical pods it is, is not told.
    pub action: Action,
    /// Whether as many of its workload's pods end so on every path.
    pub certainty: Certainty,
    /// Names of the budgets over it.
    pub budgets: Vec<String>,
    /// In which round of its node it goes, from 1; `null` where nothing is sent.
    pub round: Option<u32>,
    /// Its replacement.
    pub replacement: Replacement,
}

/// Kinds of things that stop being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServedKind {
    /// An admission webhook configuration.
    Webhook,
    /// An aggregated API.
    ApiService,
    /// A conversion webhook.
    Conversion,
    /// A Service.
    Service,
}

/// Until when something is unserved. The order is from bearable to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// It was so before the drain.
    Already,
    /// A replacement serves again.
    ReplacementReady,
    /// Only the uncordon brings it back.
    Uncordon,
    /// Not even that.
    Never,
}

impl Until {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Already => "already",
            Self::ReplacementReady => "replacement-ready",
            Self::Uncordon => "uncordon",
            Self::Never => "never",
        }
    }
}

/// Something that nobody answers for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnservedRow {
    /// Kind.
    pub what: ServedKind,
    /// Name of the configuration, APIService, CRD or Service.
    pub name: String,
    /// Service behind it, `namespace/name`; `null` for a webhook by URL.
    pub service: Option<String>,
    /// Until when.
    pub until: Until,
    /// Whether it refuses what would bring it back.
    pub deadlock: bool,
    /// On every path or on some.
    pub certainty: Certainty,
    /// What is refused meanwhile.
    pub blast: Vec<String>,
}

/// A leader on a drained node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderRow {
    /// Lease.
    pub lease: String,
    /// Its namespace.
    pub namespace: String,
    /// Pod that holds it.
    pub holder: String,
    /// Pods that can take over.
    pub successors: Vec<String>,
    /// Shortest and longest time without a leader, in seconds.
    pub gap_seconds: [u32; 2],
}

/// What is left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct After {
    /// Workloads with Pending replacements, `kind/namespace/name`.
    pub pending: Vec<String>,
    /// Budgets that allow nothing any more, `namespace/name`.
    pub exhausted_budgets: Vec<String>,
    /// Whether another node may be drained before the uncordon.
    pub next_node_may_follow: bool,
    /// Why, or why not.
    pub why: String,
}

/// What `drain-preflight` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainPreflight {
    /// Common fields.
    #[serde(flatten)]
    pub header: Header,
    /// Nodes, in the order in which kubectl takes them.
    pub nodes: Vec<String>,
    /// Flags that the verdict holds for.
    pub flags: Vec<String>,
    /// Verdict.
    pub verdict: Verdict,
    /// How the drain ends.
    pub drain: DrainResult,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// Every pod on the drained nodes.
    pub evictions: Vec<EvictionRow>,
    /// What nobody answers for, meanwhile or afterwards.
    pub unserved: Vec<UnservedRow>,
    /// Leaders on the drained nodes.
    pub leaders: Vec<LeaderRow>,
    /// What is left behind.
    pub after: After,
    /// The command line that the verdict holds for.
    pub drain_command: String,
    /// What was not assessed.
    pub not_assessed: Vec<NotAssessed>,
}
