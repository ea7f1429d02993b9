//! Captures a cluster as a user would, and keeps captures for tests that run without one.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cluster::Cluster;
use crate::observed::Reality;

/// Every kind that a preflight may read.
const KINDS: [&str; 33] = [
    "nodes",
    "namespaces",
    "pods",
    "deployments",
    "replicasets",
    "replicationcontrollers",
    "statefulsets",
    "daemonsets",
    "jobs",
    "horizontalpodautoscalers.autoscaling",
    "poddisruptionbudgets",
    "services",
    "endpointslices",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "apiservices",
    "customresourcedefinitions",
    "leases",
    "resourcequotas",
    "limitranges",
    "persistentvolumeclaims",
    "persistentvolumes",
    "serviceaccounts",
    "priorityclasses",
    "runtimeclasses",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "volumeattachments",
    "resourceclaims",
    "deviceclasses",
];

/// `kubectl get … -A -o yaml` of this moment.
pub fn capture(cluster: &Cluster) -> PathBuf {
    let arguments = ["get", &KINDS.join(","), "-A", "-o", "yaml"].map(str::to_owned);
    let output = cluster.run_kubectl(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = cluster.file("captured.yaml");
    fs::write(&file, output.stdout).expect("the capture");
    file
}

/// Writes `tests/clusters/recorded/<state>.yaml` and `<state>.reality.json`.
pub fn write(state: &Path, captured: &Path, reality: &Reality) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters/recorded");
    fs::create_dir_all(&folder).expect("the folder of recordings");
    let name = state.file_stem().unwrap_or_default().to_string_lossy();
    let text = fs::read_to_string(captured).expect("the capture");
    let mut list: Value = serde_saphyr::from_str(&text).expect("YAML");
    let items = list["items"].as_array_mut().expect("a list");
    items.retain(|item| !noise(item));
    items.iter_mut().for_each(strip);
    items.sort_by_key(|item| format!("{}{}", item["kind"], crate::observed::key(item)));
    let yaml = serde_saphyr::to_string(&list).expect("YAML");
    fs::write(folder.join(format!("{name}.yaml")), yaml).expect("the recording");
    let json = serde_json::to_string_pretty(reality).expect("JSON");
    fs::write(folder.join(format!("{name}.reality.json")), json + "\n").expect("the recording");
}

/// What every cluster has and no rule reads.
fn noise(item: &Value) -> bool {
    let name = item["metadata"]["name"].as_str().unwrap_or_default();
    match item["kind"].as_str() {
        Some("APIService") => item["spec"]["service"].is_null(),
        // Those of the control plane's own controllers; one per namespace still tells that they were captured.
        Some("ServiceAccount") => item["metadata"]["namespace"] == "kube-system" && name != "default",
        Some("Lease") => item["metadata"]["namespace"] == "kube-node-lease" || name.starts_with("apiserver-"),
        _ => false,
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|field, value| !unread(field, value));
            // Keys of these are the user's words, whatever they look like.
            let kept = ["labels", "matchLabels", "selector", "nodeSelector", "annotations"];
            fields
                .iter_mut()
                .filter(|(field, value)| !(kept.contains(&field.as_str()) && value.is_object()) || value.get("matchLabels").is_some())
                .for_each(|(_, value)| strip(value));
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Fields that no rule reads.
fn unread(field: &str, value: &Value) -> bool {
    match field {
        // Those of mirror pods, claims, classes and a Job's index decide something; all others are the test's own or noise.
        "annotations" => ![
            "kubernetes.io/config",
            "pv.kubernetes.io/",
            "volume.kubernetes.io/selected-node",
            "is-default-class",
            "job-index-failure-count",
        ]
        .iter()
        .any(|read| value.to_string().contains(read)),
        "managedFields" | "env" | "envFrom" | "image" | "imageID" | "imagePullPolicy" | "caBundle" | "nodeInfo" | "volumeMounts" => true,
        "terminationMessagePath" | "terminationMessagePolicy" | "dnsPolicy" | "securityContext" | "lastUpdateTime" => true,
        "progressDeadlineSeconds" | "revisionHistoryLimit" | "resourceVersion" => true,
        _ => false,
    }
}
