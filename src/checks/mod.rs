//! From the trace of a drain to findings: one file per finding code or close family.
//!
//! A check is a function from [`Context`] to findings, and one line of [`CHECKS`].

pub mod assessed;
pub mod budgets;
pub mod codes;
pub mod each;
pub mod leaders;
pub mod leases;
pub mod nodes;
pub mod one_by_one;
pub mod pdb;
pub mod placement;
pub mod pods;
pub mod preemption;
pub mod preflight;
pub mod serving;
pub mod standing;
pub mod volumes;
pub mod workloads;

use crate::cluster::snapshot::Snapshot;
use crate::gpustack::components::ComponentId;
use crate::gpustack::install::Install;
use crate::gpustack::values;
use crate::kubernetes::workloads::WorkloadKey;
use crate::report::finding::{Certainty, Finding, ObjectRef, Remedy, Severity};
use crate::report::shell::Kubectl;
use crate::simulation::state::{Old, State};
use crate::simulation::trace::{Paths, Trace};

use codes::Code;

/// What checks read.
#[derive(Debug)]
pub struct Context<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// The drain.
    pub trace: &'a Trace<'a>,
    /// The install, where one was found.
    pub install: Option<&'a Install<'a>>,
    /// How the user reaches the cluster.
    pub kubectl: &'a Kubectl,
}

/// A check.
pub type Check = for<'a> fn(&Context<'a>) -> Vec<Finding>;

/// The checks of a drain.
pub const CHECKS: &[Check] = &[
    budgets::blocking,
    budgets::overlapping,
    budgets::stale,
    budgets::bypassed,
    leaders::moving,
    nodes::refused,
    nodes::cordoned,
    nodes::not_cordoned,
    nodes::no_install,
    pods::held,
    pods::late,
    pods::unmanaged,
    pods::local_data,
    pods::daemon_sets,
    pods::jobs,
    serving::webhooks,
    serving::blocked_evictions,
    serving::denied_evictions,
    serving::api_services,
    serving::conversions,
    serving::services,
    volumes::detaching,
    workloads::losses,
];

impl Context<'_> {
    /// The component of the install that a workload is.
    pub fn component(&self, kind: &str, namespace: &str, name: &str) -> Option<ComponentId> {
        if kind != "Deployment" {
            return None;
        }
        self.install?.component_of(namespace, name)
    }

    /// Whether the candidate ends on some path.
    fn leaves(&self, candidate: usize) -> bool {
        self.trace.ends.iter().any(|end| left(end, candidate))
    }

    /// The workload with this many replicas: in the values, where the chart has a key for them, and by hand. The text
    /// says what that does, without a colon.
    fn scaled(&self, key: &WorkloadKey, replicas: i64, text: &str) -> Remedy {
        let values_key = self
            .component(&key.kind, &key.namespace, &key.name)
            .and_then(|id| values::replicas(self.install?.mode, id, u32::try_from(replicas).ok()?));
        Remedy {
            text: format!("{text}{}:", for_good(values_key.as_deref())),
            command: Some(self.kubectl.line([
                "scale",
                &format!("{}/{}", key.kind.to_lowercase(), key.name),
                "-n",
                &key.namespace,
                &format!("--replicas={replicas}"),
            ])),
            values_key,
        }
    }
}

/// Whether the candidate ends on a path, or has ended.
fn left(end: &State<'_>, candidate: usize) -> bool {
    matches!(end.old[candidate], Old::Gone(_) | Old::Terminating(_))
}

/// Whether `kubectl scale` is the way to more replicas.
fn scalable(key: &WorkloadKey) -> bool {
    matches!(
        key.kind.as_str(),
        "Deployment" | "StatefulSet" | "ReplicaSet" | "ReplicationController"
    )
}

/// A finding that is filled in step by step.
pub fn finding(code: Code, severity: Severity, certainty: Certainty, object: ObjectRef, message: impl Into<String>) -> Finding {
    Finding {
        code,
        severity,
        certainty,
        object,
        node: None,
        message: message.into(),
        evidence: Vec::new(),
        consequence: String::new(),
        remedy: Remedy::default(),
        accepted: false,
    }
}

/// A reference to a namespaced object.
pub fn object(kind: &str, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef {
        kind: kind.to_owned(),
        namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
        name: name.to_owned(),
    }
}

/// The severity of something by the table's two columns; `None` where it happens on no path.
pub fn graded(paths: Paths, certain: Severity, possible: Severity) -> Option<(Severity, Certainty)> {
    match paths {
        Paths::None => None,
        Paths::Some => Some((possible, Certainty::Possible)),
        Paths::All => Some((certain, Certainty::Certain)),
    }
}

/// A list for a sentence, cut after a few.
pub fn listed(names: &[String]) -> String {
    const SHOWN: usize = 4;
    match names.len() {
        0..=SHOWN => names.join(", "),
        more => format!("{} and {} more", names[..SHOWN].join(", "), more - SHOWN),
    }
}

/// What a remedy adds where the values file is its place, and the command only the quick way.
pub fn for_good(values_key: Option<&str>) -> &'static str {
    if values_key.is_some() {
        ", in your values and for good; or now"
    } else {
        ""
    }
}

/// A count as the numbers in the API are.
pub fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
