//! What holds for every cluster: the order of its objects and what lies beside the question change nothing, a kind that was
//! not read makes no verdict milder, an empty node can be drained, and one more Ready replica elsewhere is no harm.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use gpustack_ha::checks::preflight::{Request, assess};
use gpustack_ha::cluster::files;
use gpustack_ha::cluster::kinds::Kind;
use gpustack_ha::gpustack::install::{self, Found};
use gpustack_ha::kubernetes::drain::DrainFlags;
use gpustack_ha::report::shell::Kubectl;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The clusters recorded from a real control plane.
static CLUSTERS: LazyLock<Vec<Vec<Value>>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters/recorded");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let read = |path| {
        let list: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        list["items"].as_array().unwrap().clone()
    };
    files.iter().map(read).collect()
});

fn is(object: &Value, kind: Kind) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    Kind::of(version, object["kind"].as_str().unwrap_or_default()) == Some(kind)
}

fn nodes(objects: &[Value]) -> Vec<String> {
    let nodes = objects.iter().filter(|object| is(object, Kind::Node));
    nodes.map(|node| node["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// The document about a drain; of kinds that are withheld nothing is known, and of others all.
fn ask(objects: &[Value], node: &str, force: bool, withheld: &[Kind]) -> Value {
    let mut documents: Vec<Value> = objects
        .iter()
        .filter(|object| !withheld.iter().any(|kind| is(object, *kind)))
        .cloned()
        .collect();
    for kind in Kind::ALL.iter().filter(|kind| !withheld.contains(kind)) {
        documents.push(json!({"apiVersion": kind.api_version(), "kind": format!("{}List", kind.info().kind), "items": []}));
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("cluster.json");
    fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": documents}).to_string()).unwrap();
    let snapshot = files::read(&[file], false).unwrap();
    let found = match install::find(&snapshot, None, None) {
        Found::Several(mut installs) => Found::One(installs.swap_remove(0)),
        other => other,
    };
    let request = Request {
        nodes: vec![node.to_owned()],
        flags: DrainFlags {
            force,
            ignore_daemonsets: true,
            delete_emptydir_data: true,
            ..DrainFlags::default()
        },
        flag_words: Vec::new(),
        one_by_one: false,
        later: Vec::new(),
        accept: Vec::new(),
        kubectl: Kubectl::default(),
        release: None,
        namespace: None,
    };
    serde_json::to_value(assess(&snapshot, &found, &request)).unwrap()
}

/// Objects that no drain of an existing node depends on. (A namespace is one that webhooks are called for.)
fn beside_the_point() -> Vec<Value> {
    let metadata = json!({"name": "beside", "namespace": "beside"});
    let template = json!({"metadata": {"labels": {"beside": "yes"}}, "spec": {"containers": [{"name": "main", "image": "main"}]}});
    vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"replicas": 0, "selector": {"matchLabels": {"beside": "yes"}}, "template": template}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata,
            "spec": {"minAvailable": "100%", "selector": {}}, "status": {"disruptionsAllowed": 0}}),
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "0"}}, "status": {"hard": {"pods": "0"}}}),
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {"holderIdentity": "nobody"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": {"beside": "yes"}, "ports": [{"port": 443}]}}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"suspend": true, "template": template}}),
    ]
}

fn empty_node() -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "empty", "labels": {"kubernetes.io/hostname": "empty"}},
        "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// A Deployment's ReplicaSet, by its place, of which a Ready pod could run on any other node as well: it neither spreads,
/// wants or shuns company, nor binds ports of a node, nor is bound to nodes or volumes.
fn free_to_move(objects: &[Value]) -> Vec<usize> {
    let free = |set: &Value| {
        let spec = &set["spec"]["template"]["spec"];
        let bound = [
            "topologySpreadConstraints",
            "affinity",
            "hostNetwork",
            "nodeName",
            "nodeSelector",
            "volumes",
            "schedulingGates",
        ];
        let ports = spec["containers"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|container| container["ports"].as_array().into_iter().flatten());
        is(set, Kind::ReplicaSet)
            && set["metadata"]["ownerReferences"][0]["kind"] == "Deployment"
            && bound.iter().all(|field| spec.get(field).is_none())
            && ports.clone().all(|port| port.get("hostPort").is_none())
    };
    (0..objects.len())
        .filter(|index| free(&objects[*index]) && ready_pod_of(objects, &objects[*index]).is_some())
        .collect()
}

fn ready_pod_of<'a>(objects: &'a [Value], set: &Value) -> Option<&'a Value> {
    objects.iter().find(|pod| {
        let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
        is(pod, Kind::Pod)
            && pod["metadata"]["namespace"] == set["metadata"]["namespace"]
            && pod["metadata"]["ownerReferences"][0]["name"] == set["metadata"]["name"]
            && pod["metadata"].get("deletionTimestamp").is_none()
            && pod["status"]["conditions"].as_array().into_iter().flatten().any(ready)
    })
}

/// The cluster with one more Ready replica of a ReplicaSet, on a node added for it; the budgets as the disruption controller
/// then has them.
fn with_standby(objects: &[Value], set: usize) -> Vec<Value> {
    let mut standby = ready_pod_of(objects, &objects[set]).unwrap().clone();
    let (labels, namespace) = (standby["metadata"]["labels"].clone(), standby["metadata"]["namespace"].clone());
    standby["metadata"]["name"] = json!("standby");
    standby["metadata"]["uid"] = json!("standby");
    standby["spec"]["nodeName"] = json!("standby");
    standby["status"]["podIP"] = json!("10.255.255.1");
    standby["status"]["podIPs"] = json!([{"ip": "10.255.255.1"}]);
    let deployment = objects[set]["metadata"]["ownerReferences"][0]["name"].clone();
    let mut objects = objects.to_vec();
    for object in &mut objects {
        let own = is(object, Kind::Deployment) && object["metadata"]["name"] == deployment && object["metadata"]["namespace"] == namespace;
        if own {
            object["spec"]["replicas"] = json!(object["spec"]["replicas"].as_i64().unwrap_or(1) + 1);
        }
        if is(object, Kind::PodDisruptionBudget) && object["metadata"]["namespace"] == namespace {
            let wanted = object["spec"]["selector"]["matchLabels"].as_object().cloned();
            if wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels[key] == *value)) {
                let (spec, status) = (object["spec"].clone(), &mut object["status"]);
                let expected = status["expectedPods"].as_i64().unwrap_or(0) + 1;
                let healthy = status["currentHealthy"].as_i64().unwrap_or(0) + 1;
                let share = |value: &Value| match value.as_str() {
                    Some(percent) => {
                        let percent: i64 = percent.trim_end_matches('%').parse().unwrap();
                        (expected * percent + 99) / 100
                    }
                    None => value.as_i64().unwrap(),
                };
                let desired = match spec.get("minAvailable") {
                    Some(least) => share(least),
                    None => (expected - share(&spec["maxUnavailable"])).max(0),
                };
                *status = json!({"observedGeneration": status["observedGeneration"], "expectedPods": expected, "currentHealthy": healthy,
                    "desiredHealthy": desired, "disruptionsAllowed": (healthy - desired).max(0)});
            }
        }
    }
    let set = &mut objects[set];
    set["spec"]["replicas"] = json!(set["spec"]["replicas"].as_i64().unwrap_or(1) + 1);
    let mut node = empty_node();
    node["metadata"] = json!({"name": "standby", "labels": {"kubernetes.io/hostname": "standby"}});
    node["status"]["allocatable"] = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
    objects.extend([node, standby]);
    objects
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_changes_nothing(cluster: Index, node: Index, force: bool, keys in prop::collection::vec(any::<u32>(), 300)) {
        let objects = &CLUSTERS[cluster.index(CLUSTERS.len())];
        let node = node.get(&nodes(objects)).clone();
        let mut keyed: Vec<(u32, &Value)> = objects.iter().enumerate().map(|(index, object)| (keys[index % keys.len()], object)).collect();
        keyed.sort_by_key(|(key, _)| *key);
        let shuffled: Vec<Value> = keyed.into_iter().map(|(_, object)| object.clone()).collect();
        prop_assert_eq!(ask(&shuffled, &node, force, &[]), ask(objects, &node, force, &[]));
    }

    #[test]
    fn what_is_beside_the_point_changes_nothing(cluster: Index, node: Index, force: bool, more in subsequence(beside_the_point(), 1..=7)) {
        let objects = &CLUSTERS[cluster.index(CLUSTERS.len())];
        let node = node.get(&nodes(objects)).clone();
        let with: Vec<Value> = objects.iter().cloned().chain(more).collect();
        prop_assert_eq!(ask(&with, &node, force, &[]), ask(objects, &node, force, &[]));
    }

    #[test]
    fn what_was_not_read_makes_nothing_milder(cluster: Index, node: Index, force: bool, withheld in subsequence(Kind::ALL.to_vec(), 1..=6)) {
        let objects = &CLUSTERS[cluster.index(CLUSTERS.len())];
        let node = node.get(&nodes(objects)).clone();
        let full = ask(objects, &node, force, &[]);
        let withheld: Vec<Kind> = withheld.into_iter().filter(|kind| *kind != Kind::Node).collect();
        let found = ask(objects, &node, force, &withheld);
        let verdicts = BTreeSet::from([full["verdict"].as_str().unwrap(), "unknown"]);
        prop_assert!(
            verdicts.contains(found["verdict"].as_str().unwrap()),
            "{} instead of {} without {:?}", found["verdict"], full["verdict"], withheld
        );
    }

    #[test]
    fn an_empty_node_can_be_drained(cluster: Index, force: bool, withheld in subsequence(Kind::ALL.to_vec(), 0..=6)) {
        let mut objects = CLUSTERS[cluster.index(CLUSTERS.len())].clone();
        objects.push(empty_node());
        let found = ask(&objects, "empty", force, &[]);
        prop_assert_eq!(&found["verdict"], "safe", "{}", found["findings"]);
        let withheld: Vec<Kind> = withheld.into_iter().filter(|kind| ![Kind::Node, Kind::Pod].contains(kind)).collect();
        let found = ask(&objects, "empty", force, &withheld);
        prop_assert_eq!(&found["verdict"], "safe", "without {:?}: {}", withheld, found["findings"]);
    }

    #[test]
    fn a_standby_on_a_node_of_its_own_makes_nothing_worse(cluster: Index, node: Index, set: Index, force: bool) {
        let objects = &CLUSTERS[cluster.index(CLUSTERS.len())];
        let sets = free_to_move(objects);
        prop_assume!(!sets.is_empty());
        let node = node.get(&nodes(objects)).clone();
        let without = ask(objects, &node, force, &[]);
        let with = ask(&with_standby(objects, *set.get(&sets)), &node, force, &[]);
        let rank = |document: &Value| ["safe", "at-risk", "unknown", "unsafe"].iter().position(|verdict| document["verdict"] == *verdict);
        prop_assert!(
            rank(&with) <= rank(&without),
            "{} instead of {} on {node}: {}", with["verdict"], without["verdict"], with["findings"]
        );
    }
}
