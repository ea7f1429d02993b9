//! Brings a state into a cluster, and does to it what its steps say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::api::{Api, condition, namespace, text};
use crate::cluster::Cluster;
use crate::kubelet::{self, Kubelets};
use crate::kueue;
use crate::observed;
use crate::quiet;
use crate::state::{Drain, Kueue, Node, State, Step};

/// Kinds that only make sense once the pods behind them are ready, or that must count them all; Kueue's own are as late.
const LATE: [&str; 5] = [
    "ResourceQuota",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "APIService",
    "Lease",
];
/// Annotation of a Lease: the workload, `Kind/namespace/name`, one of whose pods holds it.
pub const HOLDER: &str = "test.gpustack-ha/holder";
const DEADLINE: Duration = Duration::from_secs(60);

/// Creates everything, binds what the state places, lets the scheduler do the rest, and waits until nothing moves.
pub fn load(state: &State, api: &Api, cluster: &mut Cluster) {
    for (node, index) in state.nodes.iter().zip(0..) {
        create(api, &node_object(node, index));
    }
    let placed = state.place.keys().filter_map(|key| key.split('/').nth(1));
    let namespaces: BTreeSet<&str> = state
        .objects
        .iter()
        .filter(|object| object["metadata"]["namespace"].is_string())
        .map(namespace)
        .chain(placed)
        .collect();
    let stated: BTreeSet<&str> = state
        .objects
        .iter()
        .filter(|object| object["kind"] == "Namespace")
        .map(|object| text(object, "/metadata/name"))
        .collect();
    for name in namespaces
        .difference(&stated)
        .filter(|name| !["default", "kube-system", "kube-public"].contains(name))
    {
        create(api, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
    for account in accounts(&state.objects[..state.included]) {
        create(api, &account);
    }
    let installed = kueue::wanted(state).map(|folder| kueue::objects(&folder));
    for object in installed.iter().flatten() {
        create(api, object);
    }
    let (late, mut early): (Vec<&Value>, Vec<&Value>) = state
        .objects
        .iter()
        .filter(|object| !installed.as_ref().is_some_and(|installed| kueue::replaces(installed, object)))
        .partition(|object| LATE.iter().any(|kind| object["kind"] == *kind) || text(object, "/apiVersion").starts_with("kueue.x-k8s.io/"));
    early.sort_by_key(|object| match text(object, "/kind") {
        "Namespace" => 0,
        // A claim that comes before its volume waits for the controller's next look, up to 15 s.
        "CustomResourceDefinition" | "PriorityClass" | "RuntimeClass" | "StorageClass" | "PersistentVolume" => 1,
        _ => 2,
    });
    for object in early {
        let mut object = trusting(cluster, owned(api, object.clone()));
        if object["kind"] != "CustomResourceDefinition" {
            bare(&mut object);
        }
        create(api, &object);
    }
    place(state, api);
    quiet::settle(api, Duration::from_secs(2), DEADLINE, || true);
    cluster.start_scheduler();
    // Until the taint that a node begins with is gone, and what the scheduler placed is ready.
    quiet::settle(api, patience(state), DEADLINE, || stands(api));
    for object in late {
        create(api, &held(state, api, trusting(cluster, object.clone())));
    }
    let counted = || {
        api.list("/api/v1/resourcequotas")
            .iter()
            .all(|quota| quota["status"]["used"].is_object())
    };
    quiet::settle(api, Duration::from_secs(8), DEADLINE, counted);
    let silent: Vec<&Node> = state.nodes.iter().filter(|node| node.not_ready).collect();
    if !silent.is_empty() || state.objects.iter().any(|object| object["kind"] == "APIService") {
        let available = || {
            api.list("/apis/apiregistration.k8s.io/v1/apiservices")
                .iter()
                .all(|service| condition(service, "Available"))
        };
        quiet::settle(api, Duration::from_secs(8), DEADLINE, available);
    }
}

/// Silences nodes, does every step but the last, and returns that last one, the drain to predict.
pub fn run_steps<'a>(state: &'a State, api: &Api, cluster: &Cluster, kubelets: &Kubelets) -> &'a Drain {
    for node in state.nodes.iter().filter(|node| node.not_ready) {
        kubelets.silence(api, &node.name);
    }
    let Some((Step::Drain(drain), before)) = state.steps.split_last() else {
        panic!("the last step must be `drain`")
    };
    for step in before {
        for arguments in commands(step) {
            let output = cluster.run_kubectl(&arguments);
            let words = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            println!("kubectl {}:\n{words}", arguments.join(" "));
        }
        if let Step::Apply(objects) = step {
            objects.iter().for_each(|object| create(api, &owned(api, object.clone())));
        }
        if state.kueue == Kueue::Real {
            quiet::settle(api, patience(state), DEADLINE, || stands(api));
        }
    }
    let silent = |pod: &Value| {
        state
            .nodes
            .iter()
            .any(|node| node.not_ready && node.name == text(pod, "/spec/nodeName"))
    };
    if !before.is_empty() || state.nodes.iter().any(|node| node.not_ready) {
        // The node controller looks every 5 s for nodes whose pods are not Ready any more.
        quiet::settle(api, Duration::from_secs(8), DEADLINE, || {
            !api.list("/api/v1/pods").iter().any(|pod| silent(pod) && condition(pod, "Ready"))
        });
    }
    drain
}

/// How long nothing may change before the steps, until nothing will.
fn patience(state: &State) -> Duration {
    match state.kueue {
        Kueue::Real => kueue::PATIENCE,
        Kueue::Played => Duration::from_secs(8),
    }
}

/// Whether every pod that is wanted is there and ready.
fn stands(api: &Api) -> bool {
    let waiting = |pod: &Value| quiet::active(pod) && !condition(pod, "Ready");
    !api.list("/api/v1/pods").iter().any(waiting) && quiet::missing(api).is_empty()
}

fn commands(step: &Step) -> Vec<Vec<String>> {
    let on = |verb: &[&str], key: &str, rest: &[String]| {
        let mut parts = key.splitn(3, '/');
        let (kind, namespace, name) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        let target = [format!("{kind}/{name}"), format!("--namespace={namespace}")];
        verb.iter()
            .map(|&word| word.to_owned())
            .chain(target)
            .chain(rest.iter().cloned())
            .collect()
    };
    let plain = |verb: &str, nodes: &[String]| [verb.to_owned()].into_iter().chain(nodes.iter().cloned()).collect::<Vec<_>>();
    match step {
        Step::Cordon(nodes) => vec![plain("cordon", nodes)],
        Step::Uncordon(nodes) => vec![plain("uncordon", nodes)],
        Step::Delete(keys) => keys.iter().map(|key| on(&["delete", "--wait=false"], key, &[])).collect(),
        Step::Orphan(keys) => keys.iter().map(|key| on(&["delete", "--cascade=orphan"], key, &[])).collect(),
        Step::Scale(counts) => counts
            .iter()
            .map(|(key, count)| on(&["scale"], key, &[format!("--replicas={count}")]))
            .collect(),
        Step::Restart(keys) => keys.iter().map(|key| on(&["rollout", "restart"], key, &[])).collect(),
        Step::DrainBefore(drain) => {
            let arguments = plain("drain", &drain.nodes).into_iter().chain(drain.flags.iter().cloned());
            vec![arguments.chain(["--timeout=15s".to_owned()]).collect()]
        }
        Step::Apply(_) | Step::Drain(_) => Vec::new(),
    }
}

fn node_object(node: &Node, index: u8) -> Value {
    let mut labels = BTreeMap::from([
        ("kubernetes.io/hostname", node.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
    ]);
    labels.extend(node.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let mut room = BTreeMap::from([("cpu", "16"), ("memory", "64Gi"), ("pods", "110"), ("ephemeral-storage", "100Gi")]);
    room.extend(node.allocatable.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "Kubelet", "message": "", "lastTransitionTime": kubelet::now(), "lastHeartbeatTime": kubelet::now()});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": labels}, "spec": {"taints": node.taints},
        "status": {"capacity": room, "allocatable": room,
            "addresses": [{"type": "InternalIP", "address": kubelet::node_address(index)}, {"type": "Hostname", "address": node.name}],
            "conditions": [condition("Ready", "True"), condition("MemoryPressure", "False"), condition("DiskPressure", "False"), condition("PIDPressure", "False")],
            "nodeInfo": {"kubeletVersion": crate::components::version().unwrap_or_default(), "operatingSystem": "linux", "architecture": "amd64", "osImage": "", "kernelVersion": "",
                "containerRuntimeVersion": "", "bootID": "", "machineID": "", "systemUUID": "", "kubeProxyVersion": ""}}})
}

/// Fills in the uids of owners: the real one if the owner is there, else one of nobody.
fn owned(api: &Api, mut object: Value) -> Value {
    let space = namespace(&object).to_owned();
    for owner in object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
        if owner["uid"].is_string() {
            continue;
        }
        let mut stub = owner.clone();
        stub["metadata"] = json!({"namespace": space});
        let found = api
            .collection(&stub)
            .and_then(|path| api.get(&format!("{path}/{}", text(owner, "/name"))));
        owner["uid"] = found.map_or(json!("00000000-0000-4000-8000-000000000000"), |found| {
            found["metadata"]["uid"].clone()
        });
    }
    object
}

/// Puts the test's authority wherever the object names a CA for a Service.
fn trusting(cluster: &Cluster, mut object: Value) -> Value {
    let bundle = cluster.ca_bundle();
    for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
        webhook["clientConfig"]["caBundle"] = bundle.clone();
    }
    if object["kind"] == "APIService" && object["spec"]["service"].is_object() {
        object["spec"]["caBundle"] = bundle.clone();
        object["spec"]
            .as_object_mut()
            .map(|spec: &mut Map<String, Value>| spec.remove("insecureSkipTLSVerify"));
    }
    if let Some(client) = object.pointer_mut("/spec/conversion/webhook/clientConfig") {
        client["caBundle"] = bundle;
    }
    object
}

/// Writes who holds a Lease that names its workload: the pod on the node that the state gives the lease, else on the first
/// node that has one. `{pod}` and `{node}` in the holder are that pod's.
fn held(state: &State, api: &Api, mut object: Value) -> Value {
    let workload = object["metadata"]["annotations"]
        .as_object_mut()
        .and_then(|annotations| annotations.remove(HOLDER));
    let Some(workload) = workload else {
        return object;
    };
    let stated = state.leases.get(text(&object, "/metadata/name"));
    let (pods, sets) = (api.list("/api/v1/pods"), api.list("/apis/apps/v1/replicasets"));
    let nodes = state.nodes.iter().map(|node| &node.name);
    let holder = nodes
        .filter(|node| stated.is_none_or(|stated| stated == *node))
        .find_map(|node| {
            pods.iter()
                .find(|pod| text(pod, "/spec/nodeName") == node && quiet::active(pod) && workload == observed::owner(pod, &sets))
        })
        .unwrap_or_else(|| panic!("no pod of {workload} to hold {}", observed::key(&object)));
    let spec = &mut object["spec"];
    let identity = text(spec, "/holderIdentity")
        .replace("{pod}", text(holder, "/metadata/name"))
        .replace("{node}", text(holder, "/spec/nodeName"));
    let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    spec["holderIdentity"] = json!(identity);
    spec["acquireTime"] = json!(time);
    spec["renewTime"] = json!(time);
    object
}

/// The ServiceAccounts that the pod templates of included files name and that the files do not hold.
fn accounts(objects: &[Value]) -> Vec<Value> {
    let named: BTreeSet<(&str, &str)> = objects
        .iter()
        .map(|object| (namespace(object), text(object, "/spec/template/spec/serviceAccountName")))
        .filter(|(_, name)| !name.is_empty())
        .collect();
    let account =
        |(namespace, name)| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}});
    let held: BTreeSet<String> = objects.iter().map(observed::key).collect();
    named
        .into_iter()
        .map(account)
        .filter(|account| !held.contains(&observed::key(account)))
        .collect()
}

/// Takes out what no rule reads and a rendered chart may state in a way that the API refuses: `value: 19e5` without quotes is a number.
fn bare(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|field, value| !(field == "mountPropagation" || (field == "env" && value.is_array())));
            fields.values_mut().for_each(bare);
        }
        Value::Array(items) => items.iter_mut().for_each(bare),
        _ => {}
    }
}

/// Creates an object, again and again while what it needs is still being made.
fn create(api: &Api, object: &Value) {
    let start = Instant::now();
    loop {
        let refusal = match api.collection(object).and_then(|path| api.post(&path, object)) {
            Ok(_) => return,
            Err(refusal) => refusal,
        };
        let passing = refusal.code == 404 || refusal.code == 0 || refusal.code >= 500 || refusal.message.contains("serviceaccount");
        assert!(
            passing && start.elapsed() < Duration::from_secs(20),
            "{} is refused: {} {}",
            observed::key(object),
            refusal.code,
            refusal.message
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Binds pods to the nodes that the state gives their workload, as they appear.
fn place(state: &State, api: &Api) {
    let mut left: BTreeMap<&str, Vec<&str>> = state
        .place
        .iter()
        .map(|(key, nodes)| (key.as_str(), nodes.iter().rev().map(String::as_str).collect()))
        .collect();
    let start = Instant::now();
    while left.values().any(|nodes| !nodes.is_empty()) {
        assert!(start.elapsed() < DEADLINE, "no pods appear for {left:?}");
        let sets = api.list("/apis/apps/v1/replicasets");
        let mut pods = api.list("/api/v1/pods");
        pods.sort_by_key(|pod| text(pod, "/metadata/name").to_owned());
        for pod in pods.iter().filter(|pod| text(pod, "/spec/nodeName").is_empty()) {
            let Some(nodes) = left.get_mut(observed::owner(pod, &sets).as_str()) else {
                continue;
            };
            let Some(node) = nodes.pop() else { continue };
            let name = text(pod, "/metadata/name");
            let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
            // Read from a cache, the pod may be bound already: then the node is still to be used.
            if api
                .post(&format!("/api/v1/namespaces/{}/pods/{name}/binding", namespace(pod)), &binding)
                .is_err()
            {
                nodes.push(node);
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
