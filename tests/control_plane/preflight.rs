//! Runs the preflight, live and on files, and holds the two documents against each other.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::cluster::Cluster;
use crate::state::Drain;

/// The fields that tell where the cluster came from, and so differ between the two.
const SOURCE_FIELDS: [&str; 4] = ["source", "cluster", "observedAt", "drainCommand"];

/// The live document, once it is known to equal that of the captured files and of a snapshot.
pub fn run(cluster: &Cluster, drain: &Drain, captured: &Path) -> Result<Value, String> {
    let live = from_snapshot(cluster, drain)?;
    let files = document(preflight(cluster, drain).arg("-f").arg(captured).arg("--complete"))?;
    // Plain files do not tell how long a pod has been Terminating, so what becomes of it may not be known.
    let skips = drain.flags.iter().any(|flag| flag.starts_with("--skip-wait-for-delete-timeout"));
    if skips && (files["verdict"] == "unknown" || files["verdict"] == live["verdict"]) {
        return Ok(live);
    }
    let (left, right) = (without_source(&live), without_source(&files));
    let differing: Vec<String> = left
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, value)| right.get(key) != Some(value))
        .map(|(key, value)| format!("  {key} live:  {value}\n  {key} files: {}", right[key]))
        .collect();
    if left == right {
        Ok(live)
    } else {
        Err(format!("the live and the file form differ:\n{}", differing.join("\n")))
    }
}

/// The live document, once a snapshot has given the same one but for where and when it was read. What moves between the
/// two readings may differ, so they have three tries.
fn from_snapshot(cluster: &Cluster, drain: &Drain) -> Result<Value, String> {
    let file = cluster.file("snapshot.json");
    let mut tries = 0;
    loop {
        let mut live = document(&mut preflight(cluster, drain))?;
        let mut words = Command::new(env!("CARGO_BIN_EXE_kubectl-gpustack_ha"));
        words
            .args(["snapshot", "--kubeconfig"])
            .arg(&cluster.kubeconfig)
            .arg("-O")
            .arg(&file);
        let output = words.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        if !output.status.success() || !output.stderr.is_empty() {
            return Err(format!("snapshot: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let mut read = document(preflight(cluster, drain).arg("-f").arg(&file))?;
        let answer = live.clone();
        for document in [&mut live, &mut read] {
            document["source"] = Value::Null;
            document["observedAt"] = Value::Null;
        }
        tries += 1;
        if live == read {
            return Ok(answer);
        }
        if tries == 3 {
            return Err(format!("a snapshot answers otherwise:\n  live:     {live}\n  snapshot: {read}"));
        }
    }
}

/// The same drain as kubectl's; the preflight assumes two flags that kubectl does not. The connection flags are given
/// for files too, as the commands that are printed repeat them.
fn preflight(cluster: &Cluster, drain: &Drain) -> Command {
    let built = || env!("CARGO_BIN_EXE_kubectl-gpustack_ha").into();
    let mut command = Command::new(std::env::var_os("PREFLIGHT").unwrap_or_else(built));
    command
        .arg("drain-preflight")
        .args(&drain.nodes)
        .args(&drain.flags)
        .args(["-o", "json"])
        .arg("--kubeconfig")
        .arg(&cluster.kubeconfig);
    for assumed in ["--ignore-daemonsets", "--delete-emptydir-data"] {
        if !drain.flags.iter().any(|flag| flag.starts_with(assumed)) {
            command.arg(format!("{assumed}=false"));
        }
    }
    command
}

fn document(command: &mut Command) -> Result<Value, String> {
    let Output { status, stdout, stderr } = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let errors = String::from_utf8_lossy(&stderr);
    let document: Value =
        serde_json::from_slice(&stdout).map_err(|error| format!("{command:?} printed no document ({error}), {status}\n{errors}"))?;
    let expected = match document["verdict"].as_str() {
        Some("safe") => 0,
        Some("at-risk" | "unsafe") => 1,
        _ => 3,
    };
    if status.code() == Some(expected) {
        Ok(document)
    } else {
        Err(format!("verdict {} but {status}\n{errors}", document["verdict"]))
    }
}

fn without_source(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(fields) = document.as_object_mut() {
        SOURCE_FIELDS.iter().for_each(|field| drop(fields.remove(*field)));
    }
    document
}
