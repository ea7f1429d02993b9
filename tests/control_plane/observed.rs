//! What a real drain did, as data that can be kept and compared later.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that was seen.
#[derive(Serialize, Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Reality {
    pub nodes: Vec<String>,
    pub flags: Vec<String>,
    /// `finishes`, `refused`, `fails` or `hangs`.
    pub outcome: String,
    pub per_node: Vec<NodeReality>,
    /// The pods that were on the drained nodes.
    pub pods: Vec<PodReality>,
    /// The new pods afterwards, by workload (`Kind/namespace/name`); only workloads with something to tell.
    pub replacements: BTreeMap<String, Replacements>,
    /// The workloads that have fewer Ready pods afterwards than before.
    #[serde(default)]
    pub short: BTreeSet<String>,
    /// Those of them that have none at all.
    #[serde(default)]
    pub without_ready: BTreeSet<String>,
    /// The budgets, `namespace/name`, that select something and allow no eviction afterwards.
    #[serde(default)]
    pub exhausted_budgets: BTreeSet<String>,
    /// The leases, `namespace/name`, whose holder was on a drained node, each with that pod; absent in older results.
    #[serde(default)]
    pub leaders: Option<BTreeMap<String, String>>,
    /// What was asked while the drain ran.
    pub probes: Vec<ProbeReality>,
    /// The pods, `namespace/name`, that kubectl still tried to evict when nothing changed any more; absent in older results.
    #[serde(default)]
    pub retried: Option<BTreeSet<String>>,
    /// kubectl's own words, the retries only once.
    pub kubectl: Vec<String>,
}

/// How one node's drain ended: `finishes`, `refused`, `fails`, `hangs` or `not-reached`.
#[derive(Serialize, Deserialize, Debug)]
pub struct NodeReality {
    pub node: String,
    pub outcome: String,
}

/// What became of one pod.
#[derive(Serialize, Deserialize, Debug)]
pub struct PodReality {
    pub namespace: String,
    pub name: String,
    pub node: String,
    /// `Kind/namespace/name` of its workload; its own if it has none.
    pub workload: String,
    pub fate: Fate,
    /// Whether it was Terminating before the drain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ending: bool,
}

/// Where a pod stands after the drain.
#[derive(Serialize, Deserialize, PartialEq, Eq, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    Gone,
    Terminating,
    Kept,
}

/// The new pods of one workload.
#[derive(Serialize, Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Replacements {
    /// The nodes of those that run and are Ready.
    pub landed: Vec<String>,
    /// The nodes of those that run and are not, for another reason than a crash.
    pub never_ready: Vec<String>,
    /// The nodes of those that crash again and again.
    pub crash_looping: Vec<String>,
    pub pending: usize,
    pub gated: usize,
    /// Wanted, but not there; only those that were there before the drain.
    pub not_created: usize,
}

/// What a repeated request met.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct ProbeReality {
    /// `webhook` or `apiservice`.
    pub what: String,
    pub name: String,
    /// Refused before the drain began.
    pub before: bool,
    /// Between the first and the last refusal of the longest uninterrupted row.
    pub refused_seconds: f64,
    /// Still refused when everything had settled.
    pub at_end: bool,
}

impl ProbeReality {
    /// Refused at least twice, a second or more apart, without an answer between.
    pub fn refused(&self) -> bool {
        self.refused_seconds >= 1.0
    }
}

impl Reality {
    /// Replacements in all workloads, counted.
    pub fn count(&self, of: impl Fn(&Replacements) -> usize) -> usize {
        self.replacements.values().map(of).sum()
    }

    /// Whether kubectl waits for ever for a pod: it stays Terminating, or is refused again and again.
    pub fn stuck(&self, pod: &PodReality) -> bool {
        let name = format!("{}/{}", pod.namespace, pod.name);
        let retried = self.retried.as_ref().is_some_and(|retried| retried.contains(&name));
        self.left(pod) && (pod.fate == Fate::Terminating || retried)
    }

    /// Whether kubectl wanted a pod gone and it is not. What failed for good is among these, as kubectl tells it only at its end.
    pub fn left(&self, pod: &PodReality) -> bool {
        let line = format!("evicting pod {}/{}", pod.namespace, pod.name);
        self.outcome == "hangs" && (pod.fate == Fate::Terminating || (pod.fate == Fate::Kept && self.kubectl.contains(&line)))
    }

    pub fn pods_with(&self, fate: Fate) -> usize {
        self.pods.iter().filter(|pod| pod.fate == fate).count()
    }

    /// The names of what was not served for a second or longer, sorted.
    pub fn refused(&self) -> BTreeSet<&str> {
        self.probes
            .iter()
            .filter(|probe| probe.refused())
            .map(|probe| probe.name.as_str())
            .collect()
    }
}

/// `Kind/namespace/name` of an object that states its kind.
pub fn key(object: &Value) -> String {
    let field = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}/{}", field("/kind"), field("/metadata/namespace"), field("/metadata/name"))
}

/// The workload of a pod: its controller, a Deployment instead of the Deployment's ReplicaSet, or the pod itself.
pub fn owner(pod: &Value, replica_sets: &[Value]) -> String {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let Some((kind, name)) = controller(pod) else {
        return format!("Pod/{namespace}/{}", pod["metadata"]["name"].as_str().unwrap_or_default());
    };
    let above = replica_sets
        .iter()
        .find(|set| kind == "ReplicaSet" && set["metadata"]["name"] == name && set["metadata"]["namespace"] == namespace)
        .and_then(controller);
    let (kind, name) = above.unwrap_or((kind, name));
    format!("{kind}/{namespace}/{name}")
}

fn controller(object: &Value) -> Option<(&str, &str)> {
    let references = object["metadata"]["ownerReferences"].as_array()?;
    let controller = references.iter().find(|reference| reference["controller"] == true)?;
    Some((controller["kind"].as_str()?, controller["name"].as_str()?))
}
