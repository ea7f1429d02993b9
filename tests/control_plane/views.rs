//! Runs the views: live and on files, against what the state expects and what the cluster's own controllers count, and
//! watching a drain.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::state::Expect;
use crate::{compare, record};

const VIEWS: [&str; 3] = ["placement", "leases", "pdb"];

/// Fields that tell where the cluster came from and when, and what hangs on the time.
const SOURCE_FIELDS: [&str; 6] = ["source", "cluster", "observedAt", "verdict", "findings", "notAssessed"];

/// Every disagreement between the live and the file form, with what the state expects, and with what the controllers count.
pub fn run(cluster: &Cluster, captured: &Path, expect: &Expect) -> Vec<String> {
    let mut problems = compared(cluster, captured, expect);
    // A controller may have written in between, such as a taint: then both are asked once more.
    for _ in 0..2 {
        if problems.is_empty() {
            break;
        }
        sleep(Duration::from_secs(2));
        problems = compared(cluster, &record::capture(cluster), expect);
    }
    problems
}

fn compared(cluster: &Cluster, captured: &Path, expect: &Expect) -> Vec<String> {
    let mut problems = Vec::new();
    for view in VIEWS {
        let live = document(&mut command(cluster, view));
        let files = document(command(cluster, view).arg("-f").arg(captured).arg("--complete"));
        match (live, files) {
            (Ok(live), Ok(files)) => {
                let (left, right) = (timeless(&live), timeless(&files));
                if left != right {
                    problems.push(format!(
                        "{view}: the live and the file form differ:\n  live:  {left}\n  files: {right}"
                    ));
                }
                if let Some(viewed) = expect.views.get(view) {
                    problems.extend(compare::codes(&viewed.findings, &viewed.absent, &live));
                }
                if view == "placement" {
                    problems.extend(miscounted(&live, captured));
                    problems.extend(unforeseen(&live, captured));
                }
            }
            (live, files) => problems.extend([live.err(), files.err()].into_iter().flatten()),
        }
    }
    problems
}

/// The objects that were captured.
fn objects(captured: &Path) -> Vec<Value> {
    let text = fs::read_to_string(captured).expect("the capture");
    let list: Value = serde_saphyr::from_str(&text).expect("YAML");
    list["items"].as_array().cloned().unwrap_or_default()
}

/// Rollouts that stand still for want of a place, though nothing is said of them.
fn unforeseen(placement: &Value, captured: &Path) -> Vec<String> {
    let objects = objects(captured);
    let of_kind = |kind: &'static str| objects.iter().filter(move |item| item["kind"] == kind);
    let owned = |item: &Value, owner: &Value| {
        let mut owners = item["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.any(|reference| reference["uid"] == owner["metadata"]["uid"])
    };
    let revision = |item: &Value| item["metadata"]["annotations"]["deployment.kubernetes.io/revision"].clone();
    let told = |name: &Value| {
        let mut findings = placement["findings"].as_array().into_iter().flatten();
        findings.any(|finding| {
            finding["object"]["name"] == *name && (finding["code"] == "rollout-stalls" || finding["code"] == "surge-port-collision")
        })
    };
    let wedged = of_kind("Deployment").filter(|deployment| {
        let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
        let may_be_missing = match &deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] {
            Value::Number(number) => number.as_i64().unwrap_or(0),
            share => {
                share
                    .as_str()
                    .and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok())
                    .unwrap_or(0)
                    * wanted
                    / 100
            }
        };
        let newest = of_kind("ReplicaSet").find(|set| owned(set, deployment) && revision(set) == revision(deployment));
        let homeless = |set: &Value| of_kind("Pod").any(|pod| owned(pod, set) && pod["spec"]["nodeName"].is_null());
        let others = deployment["status"]["replicas"].as_i64() > deployment["status"]["updatedReplicas"].as_i64();
        may_be_missing == 0 && others && newest.is_some_and(homeless)
    });
    let names = wedged.map(|deployment| &deployment["metadata"]["name"]).filter(|name| !told(name));
    names
        .map(|name| format!("placement: the rollout of {name} stands still, and nothing says so"))
        .collect()
}

/// Deployments of which other numbers are told than their controller reports.
fn miscounted(placement: &Value, captured: &Path) -> Vec<String> {
    let objects = objects(captured);
    let deployments = objects.iter().filter(|item| item["kind"] == "Deployment");
    let rows = placement["components"].as_array();
    let mut problems = Vec::new();
    for deployment in deployments {
        let (name, namespace) = (&deployment["metadata"]["name"], &deployment["metadata"]["namespace"]);
        let told = rows
            .into_iter()
            .flatten()
            .find(|row| row["kind"] == "Deployment" && row["name"] == *name && row["namespace"] == *namespace);
        let ready = deployment["status"]["readyReplicas"].as_i64().unwrap_or(0);
        if told.is_none_or(|row| row["ready"] != ready || row["desired"] != deployment["spec"]["replicas"]) {
            problems.push(format!("placement: {namespace}/{name} has {ready} Ready, but told is {told:?}"));
        }
    }
    problems
}

fn command(cluster: &Cluster, view: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-gpustack_ha"));
    command.args([view, "-A", "-o", "json", "--kubeconfig"]).arg(&cluster.kubeconfig);
    command
}

fn document(command: &mut Command) -> Result<Value, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let document: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{command:?} printed no document ({error}), {}\n{errors}", output.status))?;
    let expected = if document["verdict"] == "unknown" { 3 } else { 0 };
    match output.status.code() {
        Some(code) if code == expected => Ok(document),
        _ => Err(format!(
            "{command:?}: verdict {} but {}\n{errors}",
            document["verdict"], output.status
        )),
    }
}

/// A document without what differs from one moment to the next.
fn timeless(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(fields) = document.as_object_mut() {
        SOURCE_FIELDS.iter().for_each(|field| drop(fields.remove(*field)));
    }
    without_ages(&mut document);
    document
}

/// Takes what hangs on the time from the leases of a document that has any, and from who leads by them: nobody renews
/// here, so that each runs out.
pub fn without_ages(document: &mut Value) {
    for component in document.get_mut("components").and_then(Value::as_array_mut).into_iter().flatten() {
        for field in ["elections", "leaders", "leaderNodes"] {
            component[field] = Value::Null;
        }
        for replica in component.get_mut("replicas").and_then(Value::as_array_mut).into_iter().flatten() {
            replica["leads"] = Value::Null;
        }
    }
    for lease in document.get_mut("leases").and_then(Value::as_array_mut).into_iter().flatten() {
        for field in ["ageSeconds", "stale", "transitions"] {
            lease[field] = Value::Null;
        }
    }
}

/// A `placement --watch` that goes on while the cluster changes.
pub struct Watch {
    child: Child,
    output: PathBuf,
}

impl Watch {
    /// Starts it.
    pub fn begin(cluster: &Cluster) -> Self {
        let output = cluster.file("watched.json");
        let file = File::create(&output).expect("a file");
        let child = command(cluster, "placement")
            .arg("--watch")
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(Stdio::null())
            .spawn()
            .expect("a watch");
        Self { child, output }
    }

    /// Ends it as Ctrl-C does. By then it has shown how the cluster is now.
    pub fn end(mut self, cluster: &Cluster) -> Result<(), String> {
        let now = document(&mut command(cluster, "placement"));
        sleep(Duration::from_secs(2));
        let interrupted = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        if interrupted.is_err() {
            let _ = self.child.kill();
        }
        let Some(status) = ended(&mut self.child) else {
            return Err("the watch goes on after an interrupt".to_owned());
        };
        let text = fs::read_to_string(&self.output).map_err(|error| error.to_string())?;
        let shown: Vec<Value> = serde_json::Deserializer::from_str(&text).into_iter().flatten().collect();
        let last = shown.last().map(timeless).unwrap_or_default();
        if status.code() != Some(0) {
            return Err(format!("the watch ended with {status}"));
        }
        match now {
            Ok(now) if timeless(&now) == last => Ok(()),
            Ok(now) => Err(format!(
                "the last of {} watched documents is not how it is:\n  now:  {}\n  last: {last}",
                shown.len(),
                timeless(&now)
            )),
            Err(problem) => Err(problem),
        }
    }
}

/// How the process ended, within ten seconds; else it is killed.
fn ended(child: &mut Child) -> Option<std::process::ExitStatus> {
    for _ in 0..100 {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
