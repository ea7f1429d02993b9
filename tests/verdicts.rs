//! Small clusters whose drain is known, told by the binary: what a webhook that nobody answers breaks besides the
//! creation of pods, and what a flag or a priority changes.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::{Value, json};

/// A ready node with room.
fn node(name: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// A Deployment with its ReplicaSet and one ready pod on each of the nodes.
fn deployment(name: &str, nodes: &[&str], spec: &Value) -> Vec<Value> {
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true}]);
    let labels = json!({"app": name, "pod-template-hash": "1"});
    let (set, count) = (format!("{name}-1"), nodes.len());
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let mut objects = vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "app", "uid": name},
            "spec": {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template}}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": set, "namespace": "app", "uid": set, "labels": labels, "ownerReferences": owner("Deployment", name)},
            "spec": {"replicas": count, "selector": {"matchLabels": labels}, "template": template}}),
    ];
    for (index, node) in nodes.iter().enumerate() {
        let mut spec = spec.clone();
        spec["nodeName"] = json!(node);
        objects.push(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{set}-{index}"), "namespace": "app", "labels": labels, "ownerReferences": owner("ReplicaSet", &set)},
            "spec": spec, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}));
    }
    objects
}

fn plain() -> Value {
    json!({"containers": [{"name": "main", "image": "example"}]})
}

fn asking(cpu: &str, priority: i64) -> Value {
    json!({"priority": priority, "containers": [{"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu}}}]})
}

/// A webhook that fails closed, and whose Service does not exist.
fn dead_webhook(group: &str, resource: &str, operation: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "dead"},
        "webhooks": [{"name": "dead.example.com", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "app", "name": "dead"}},
            "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": [operation], "resources": [resource]}]}]})
}

fn budget(name: &str, max_unavailable: u32) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": "app"},
        "spec": {"maxUnavailable": max_unavailable, "selector": {"matchLabels": {"app": name}}}})
}

/// The answer for a drain of `n1` of a cluster with `n1` and `n2`.
fn drain(objects: Vec<Value>, flags: &[&str]) -> Value {
    let mut items = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app", "labels": {"kubernetes.io/metadata.name": "app"}}}),
        node("n1", "8"),
        node("n2", "2"),
    ];
    items.extend(objects);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cluster.json");
    std::fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-gpustack_ha"))
        .args(["drain-preflight", "n1", "--complete", "-o", "json", "-f"])
        .arg(&path)
        .args(flags)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Verdict and outcome of a drain of a Deployment on both nodes, with these objects besides.
fn two_replicas(mut objects: Vec<Value>) -> (String, String) {
    objects.extend(deployment("web", &["n1", "n2"], &plain()));
    told(&drain(objects, &[]))
}

fn told(document: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&document["verdict"]), text(&document["drain"]["outcome"]))
}

fn both(verdict: &str, outcome: &str) -> (String, String) {
    (verdict.to_owned(), outcome.to_owned())
}

#[test]
fn a_plain_drain_is_safe() {
    assert_eq!(two_replicas(vec![]), both("safe", "finishes"));
    assert_eq!(
        two_replicas(vec![dead_webhook("apps", "deployments", "*")]),
        both("safe", "finishes")
    );
}

#[test]
fn a_kubelet_that_may_not_end_its_pods() {
    assert_eq!(two_replicas(vec![dead_webhook("", "pods", "DELETE")]), both("unsafe", "hangs"));
    assert_eq!(
        two_replicas(vec![dead_webhook("", "pods/status", "UPDATE")]),
        both("unsafe", "hangs")
    );
    assert_eq!(two_replicas(vec![dead_webhook("", "pods/*", "UPDATE")]), both("unsafe", "hangs"));
    // The API server removes a finished pod by itself.
    let mut objects = vec![dead_webhook("", "pods/status", "UPDATE")];
    objects.extend(deployment("web", &["n1"], &plain()));
    objects[3]["status"]["phase"] = json!("Succeeded");
    assert_eq!(drain(objects, &[])["drain"]["outcome"], "finishes");
}

#[test]
fn a_scheduler_that_may_not_bind() {
    assert_eq!(
        two_replicas(vec![dead_webhook("", "pods/binding", "CREATE")]),
        both("at-risk", "finishes")
    );
    let mut objects = vec![dead_webhook("", "pods/binding", "CREATE")];
    objects.extend(deployment("web", &["n1"], &plain()));
    assert_eq!(told(&drain(objects, &[])), both("unsafe", "finishes"));
}

#[test]
fn a_budget_whose_status_cannot_be_written() {
    let dead = || dead_webhook("policy", "poddisruptionbudgets/status", "UPDATE");
    assert_eq!(two_replicas(vec![dead(), budget("web", 1)]), both("unsafe", "fails"));
    assert_eq!(two_replicas(vec![dead()]), both("safe", "finishes"));
}

#[test]
fn a_node_that_cannot_be_cordoned() {
    let mut objects = vec![dead_webhook("", "nodes", "UPDATE")];
    objects.extend(deployment("web", &["n1", "n2"], &plain()));
    let document = drain(objects.clone(), &[]);
    assert_eq!(told(&document), both("at-risk", "finishes"));
    assert!(document.to_string().contains("n1 is not cordoned"), "{document}");
    assert_eq!(document["evictions"][0]["replacement"]["nodes"], json!(["n1", "n2"]));
    // One that is cordoned already is not patched.
    objects.push(
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    );
    assert_eq!(drain(objects, &[])["verdict"], "safe");
}

#[test]
fn a_template_that_names_the_drained_node() {
    let mut spec = plain();
    spec["nodeName"] = json!("n1");
    let document = drain(deployment("web", &["n1"], &spec), &[]);
    assert_eq!(document["evictions"][0]["replacement"]["nodes"], json!(["n1"]));
    assert!(document.to_string().contains("replacement-returns"), "{document}");
}

#[test]
fn a_replacement_that_fits_only_by_preemption() {
    let cluster = |low: i64| {
        let mut objects = deployment("web", &["n1", "n2"], &asking("1", 1000));
        objects.extend(deployment("low", &["n2"], &asking("1", low)));
        objects
    };
    let document = drain(cluster(0), &[]);
    assert_eq!(document["verdict"], "unsafe");
    assert!(document.to_string().contains("replacement-preempts"), "{document}");
    assert_eq!(drain(cluster(1000), &[])["verdict"], "at-risk");
    let mut never = cluster(0);
    never[2]["spec"]["preemptionPolicy"] = json!("Never");
    assert_eq!(drain(never, &[])["verdict"], "at-risk");
}

#[test]
fn a_timeout_that_may_be_over_before_the_last_round() {
    let mut objects = deployment("web", &["n1", "n1", "n2"], &plain());
    objects.push(budget("web", 1));
    let timeout = |text: &str| told(&drain(objects.clone(), &["--timeout", text]));
    assert_eq!(timeout("0s"), both("safe", "finishes"));
    assert_eq!(timeout("4s"), both("at-risk", "fails"));
    assert_eq!(timeout("5s"), both("at-risk", "fails"));
    // A pod may take its grace period of 30 seconds to end.
    assert_eq!(timeout("30s"), both("at-risk", "fails"));
    assert_eq!(timeout("36s"), both("safe", "finishes"));
}

#[test]
fn a_fix_names_the_values_file_only_for_the_install() {
    let mut objects = deployment("web", &["n1"], &plain());
    objects.push(budget("web", 0));
    assert!(!drain(objects, &[]).to_string().contains("in your values"));
}

#[test]
fn a_replacement_on_a_node_that_is_not_ready() {
    let mut spec = plain();
    spec["tolerations"] = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]);
    let mut objects = deployment("web", &["n1", "n1"], &spec);
    objects.push(budget("web", 1));
    assert_eq!(told(&drain(objects.clone(), &[])), both("safe", "finishes"));
    // No kubelet starts it there, so it never refills the budget.
    objects.push(json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n2", "labels": {"kubernetes.io/hostname": "n2"}},
        "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "2", "memory": "32Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "Unknown"}]}}));
    assert_eq!(told(&drain(objects, &[])), both("unsafe", "hangs"));
}

#[test]
fn kueue_on_a_node_that_is_not_ready_frees_no_pod() {
    let mut objects = deployment("kueue", &["n2"], &plain());
    for object in &mut objects {
        let labels = json!({"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"});
        if object["kind"] == "Pod" {
            object["metadata"]["labels"] = labels;
        }
    }
    let mut queued = deployment("web", &["n1"], &plain());
    queued[2]["metadata"]["finalizers"] = json!(["kueue.x-k8s.io/managed"]);
    objects.extend(queued);
    assert_eq!(drain(objects.clone(), &[])["drain"]["outcome"], "finishes");
    let mut silent = node("n2", "2");
    silent["status"]["conditions"][0]["status"] = json!("Unknown");
    objects.push(silent);
    assert_eq!(drain(objects, &[])["drain"]["outcome"], "hangs");
}
