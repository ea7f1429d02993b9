//! A state file: what the cluster holds, what is done to it, and what is expected to happen.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::observed;

/// The first document of a state file, and the objects of the others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct State {
    #[allow(dead_code, reason = "it tells people what the file is")]
    kind: String,
    /// One line that a person reads in the test's output.
    pub title: String,
    /// Which rule the state shows.
    #[allow(dead_code, reason = "for the reader of the file")]
    rule: String,
    /// Public reports of what the state shows, as `docs/reports.md` links them.
    #[serde(default)]
    #[allow(dead_code, reason = "the table of reports is held against the files")]
    reports: Vec<String>,
    pub nodes: Vec<Node>,
    /// What runs in Kueue's pods.
    #[serde(default)]
    pub kueue: Kueue,
    /// `Kind/namespace/name` of a pod or of a pod's owner to the nodes of its pods, one entry per pod.
    #[serde(default)]
    pub place: BTreeMap<String, Vec<String>>,
    /// The name of a lease to the node of its holder.
    #[serde(default)]
    pub leases: BTreeMap<String, String>,
    /// `Kind/namespace/name` of included workloads to replicas other than the file's.
    #[serde(default)]
    replicas: BTreeMap<String, u32>,
    /// Other files with objects, relative to this one.
    #[serde(default)]
    include: Vec<String>,
    /// Done one after the other once the cluster is quiet; the last one is the drain that is predicted.
    pub steps: Vec<Step>,
    /// What must stay served is asked all the time.
    #[serde(default)]
    pub probe: Vec<Probe>,
    /// Absent in random states, which are held against the document alone.
    #[serde(default)]
    pub expect: Expect,
    #[serde(skip)]
    pub objects: Vec<Value>,
    /// How many of the objects, from the first on, come from included files.
    #[serde(skip)]
    pub included: usize,
}

/// Whether Kueue's pods are played like all others, or run Kueue.
#[derive(Deserialize, Default, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub enum Kueue {
    #[default]
    Played,
    Real,
}

/// A node and what is special about it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    pub name: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub taints: Vec<Value>,
    /// Overrides of 16 cpu, 64Gi memory, 110 pods.
    #[serde(default)]
    pub allocatable: BTreeMap<String, String>,
    /// Its kubelet falls silent before the steps.
    #[serde(default)]
    pub not_ready: bool,
}

/// Something done to the cluster. Names are `Kind/namespace/name`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Step {
    Cordon(Vec<String>),
    Uncordon(Vec<String>),
    Delete(Vec<String>),
    /// Owners deleted without what they own (`--cascade=orphan`).
    Orphan(Vec<String>),
    Scale(BTreeMap<String, u32>),
    Restart(Vec<String>),
    /// Objects created now.
    Apply(Vec<Value>),
    /// A drain that must finish, or is given up after 15 s.
    DrainBefore(Drain),
    /// The drain that is predicted.
    Drain(Drain),
}

/// One `kubectl drain`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    pub nodes: Vec<String>,
    #[serde(default)]
    pub flags: Vec<String>,
}

/// A request that is repeated while the drain runs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Probe {
    /// A pod created by dry run in `namespace`, which the named webhook configuration must admit.
    Webhook {
        name: String,
        namespace: String,
        #[serde(default)]
        labels: BTreeMap<String, String>,
    },
    /// The discovery document of an aggregated API, by its APIService's name.
    Apiservice(String),
}

/// What must be predicted, and what must happen; nothing where no verdict is stated.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    pub verdict: String,
    /// `drain.outcome` of the document.
    pub outcome: String,
    /// Codes of findings that must be there.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Codes of findings that must not be there.
    #[serde(default)]
    pub absent: Vec<String>,
    /// What the real drain does, as far as it is stated.
    #[serde(default)]
    pub happens: Happens,
    /// By view, what it must say with `-A` before the drain.
    #[serde(default)]
    pub views: BTreeMap<String, Viewed>,
}

/// What a view must say.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Viewed {
    /// Codes of findings that must be there.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Codes of findings that must not be there.
    #[serde(default)]
    pub absent: Vec<String>,
}

/// Facts of the real drain; what is left out is not checked.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Happens {
    /// Only where it may differ from the predicted outcome, which is the worst that can be.
    pub outcome: Option<String>,
    /// Pods of the drained nodes that are gone.
    pub gone: Option<usize>,
    /// Pods that remain Terminating.
    pub terminating: Option<usize>,
    /// Replacements in each state afterwards.
    pub pending: Option<usize>,
    pub crash_looping: Option<usize>,
    pub not_created: Option<usize>,
    pub landed: Option<usize>,
    /// Names of webhook configurations and APIServices that were refused for a second or longer; exactly these.
    pub refused: Option<Vec<String>>,
    /// A part of what kubectl printed.
    pub words: Option<String>,
}

impl State {
    pub fn read(file: &Path) -> Self {
        let mut documents = documents(file).into_iter();
        let first = documents.next().unwrap_or_default();
        let mut state: Self = serde_json::from_value(first).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let folder = file.parent().expect("a folder");
        let mut included: Vec<Value> = state.include.iter().flat_map(|path| documents_of(&folder.join(path))).collect();
        for object in &mut included {
            if let Some(&count) = state.replicas.get(&observed::key(object)) {
                object["spec"]["replicas"] = count.into();
            }
        }
        state.included = included.len();
        state.objects = included
            .into_iter()
            .chain(documents.filter(|document| !document.is_null()))
            .collect();
        state
    }
}

fn documents_of(path: &Path) -> Vec<Value> {
    documents(path).into_iter().filter(|document| !document.is_null()).collect()
}

fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
