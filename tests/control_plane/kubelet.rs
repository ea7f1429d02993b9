//! All kubelets of a cluster: real sockets for every bound pod, statuses, deletions, heartbeats; Kueue's removal of its
//! finalizer; and a provisioner of volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, condition, namespace, text};
use crate::cluster::Cluster;
use crate::kueue;
use crate::quiet;
use crate::sockets::Sockets;
use crate::state::State;

const KUEUE_FINALIZER: &str = "kueue.x-k8s.io/managed";
const KUEUE: [(&str, &str); 2] = [("app.kubernetes.io/name", "kueue"), ("control-plane", "controller-manager")];
const WORKER: [(&str, &str); 2] = [
    ("app.kubernetes.io/part-of", "gpustack-operator"),
    ("app.kubernetes.io/component", "operator"),
];

/// Play until `stop`.
pub struct Kubelets {
    stop: Arc<AtomicBool>,
    /// Nodes whose kubelet has fallen silent.
    silent: Arc<Mutex<BTreeSet<String>>>,
    thread: JoinHandle<()>,
}

impl Kubelets {
    pub fn start(cluster: &Cluster, state: &State) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let silent = Arc::<Mutex<BTreeSet<String>>>::default();
        let mut player = Player {
            api: Api::new(&cluster.kubeconfig),
            sockets: Sockets::new(cluster.authority.server_config()),
            addresses: state
                .nodes
                .iter()
                .zip(0..)
                .map(|(node, index)| (node.name.clone(), node_address(index)))
                .collect(),
            silent: Arc::clone(&silent),
            kueue: kueue::wanted(state).map(|folder| kueue::Processes::new(&folder, &cluster.kubeconfig)),
            pods: BTreeMap::new(),
            addresses_given: 0,
        };
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let (mut heartbeat, mut provision) = (Instant::now(), Instant::now());
                while !stop.load(Ordering::Relaxed) {
                    if heartbeat <= Instant::now() {
                        heartbeat = Instant::now() + Duration::from_secs(5);
                        player.beat();
                    }
                    if provision <= Instant::now() {
                        provision = Instant::now() + Duration::from_millis(500);
                        player.provision();
                    }
                    player.turn();
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        });
        Self { stop, silent, thread }
    }

    /// The kubelet of `node` answers no more: no heartbeat, no confirmed deletion; its Ready condition becomes Unknown.
    pub fn silence(&self, api: &Api, node: &str) {
        self.silent.lock().expect("nodes").insert(node.to_owned());
        let unknown = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.", "lastTransitionTime": now()}]}});
        api.strategic_merge(&format!("/api/v1/nodes/{node}/status"), &unknown)
            .expect("the node's status");
        // The node controller does so where it finds out by itself.
        let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeNotReady", "lastTransitionTime": now()}]}});
        let pods = api.list("/api/v1/pods");
        for pod in pods
            .iter()
            .filter(|pod| text(pod, "/spec/nodeName") == node && condition(pod, "Ready"))
        {
            // A webhook may refuse it, as it does the node controller.
            let _ = api.strategic_merge(&format!("{}/status", path(pod)), &unready);
        }
    }

    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the kubelets' thread");
    }
}

/// The address of the node that stands at `index` in the state file.
pub fn node_address(index: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 10, 0, index + 1))
}

/// Seconds, as the API writes times.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

struct Player {
    api: Api,
    sockets: Sockets,
    addresses: BTreeMap<String, IpAddr>,
    silent: Arc<Mutex<BTreeSet<String>>>,
    /// What runs in Kueue's pods, where it is not played.
    kueue: Option<kueue::Processes>,
    pods: BTreeMap<String, Pod>,
    addresses_given: u16,
}

/// What the kubelet knows of a pod, by uid.
struct Pod {
    address: IpAddr,
    started: Instant,
    ending: Option<Instant>,
    stage: Stage,
    next_try: Instant,
}

#[derive(PartialEq, Clone, Copy)]
enum Stage {
    New,
    Starting,
    Crashing,
    Ready,
    /// Ended by itself or confirmed as ended; nothing is left to do.
    Done,
}

impl Player {
    /// Renews the lease of every node that is heard of.
    fn beat(&self) {
        for name in self.addresses.keys() {
            if self.silent.lock().expect("nodes").contains(name) {
                continue;
            }
            let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
            let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
            let spec = json!({"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": time});
            if self.api.merge(&format!("{leases}/{name}"), &json!({"spec": spec})).is_err() {
                let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec});
                let _ = self.api.post(leases, &lease);
            }
        }
    }

    /// Makes the volumes of claims for which the scheduler has chosen a node, as a provisioner does.
    fn provision(&self) {
        for claim in self.api.list("/api/v1/persistentvolumeclaims") {
            let chosen = claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].is_string();
            if !chosen || text(&claim, "/status/phase") != "Pending" {
                continue;
            }
            let (spec, uid) = (&claim["spec"], text(&claim, "/metadata/uid"));
            let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("made-{uid}")},
                "spec": {"capacity": spec["resources"]["requests"], "accessModes": spec["accessModes"], "storageClassName": spec["storageClassName"],
                    "persistentVolumeReclaimPolicy": "Retain", "csi": {"driver": "made.example.com", "volumeHandle": uid},
                    "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace(&claim), "name": claim["metadata"]["name"], "uid": uid}}});
            let _ = self.api.post("/api/v1/persistentvolumes", &volume);
        }
    }

    fn turn(&mut self) {
        let pods = self.api.list("/api/v1/pods");
        let silent = self.silent.lock().expect("nodes").clone();
        let present: BTreeSet<&str> = pods.iter().map(|pod| text(pod, "/metadata/uid")).collect();
        self.pods.retain(|uid, _| {
            let stays = present.contains(uid.as_str());
            if !stays {
                self.sockets.close(uid);
                self.kueue.iter_mut().for_each(|kueue| kueue.kill(uid));
            }
            stays
        });
        for pod in &pods {
            let node = text(pod, "/spec/nodeName");
            if silent.contains(node) {
                self.sockets.close(text(pod, "/metadata/uid"));
                self.kueue.iter_mut().for_each(|kueue| kueue.kill(text(pod, "/metadata/uid")));
            } else if let Some(&address) = self.addresses.get(node) {
                self.step(pod, address);
            }
        }
        match &mut self.kueue {
            Some(kueue) => {
                kueue.certify(&self.api);
                self.sweep(&pods);
            }
            None => self.release(&pods),
        }
    }

    /// One step of a pod's life.
    fn step(&mut self, pod: &Value, node_address: IpAddr) {
        let uid = text(pod, "/metadata/uid");
        let host = pod["spec"]["hostNetwork"] == true;
        if !self.pods.contains_key(uid) {
            self.addresses_given += 1;
            let [high, low] = self.addresses_given.to_be_bytes();
            let address = if host {
                node_address
            } else {
                IpAddr::V4(Ipv4Addr::new(10, 20, high, low))
            };
            let fresh = Pod {
                address,
                started: Instant::now(),
                ending: None,
                stage: Stage::New,
                next_try: Instant::now(),
            };
            self.pods.insert(uid.to_owned(), fresh);
        }
        let Some(known) = self.pods.get_mut(uid) else {
            return;
        };
        if known.stage == Stage::Done {
            return;
        }
        let mut real = self.kueue.as_mut().filter(|_| kueue::is_its(pod));
        let status = |stage, taken: &[u16]| status(pod, stage, known.address, node_address, taken);
        if pod["metadata"]["deletionTimestamp"].is_string() {
            let ending = *known
                .ending
                .get_or_insert_with(|| Instant::now() + seconds(pod, "stop-delay").unwrap_or(Duration::from_millis(500)));
            // The process goes on answering until it has ended.
            let ended = real.as_mut().is_none_or(|kueue| kueue.ended(uid));
            if Instant::now() < ending || !ended {
                return;
            }
            self.sockets.close(uid);
            let path = path(pod);
            let terminated = known.stage == Stage::Done
                || self
                    .api
                    .strategic_merge(&format!("{path}/status"), &status(Stage::Done, &[]))
                    .is_ok();
            let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
            if terminated && self.api.delete(&path, &options).is_ok() {
                known.stage = Stage::Done;
            }
            return;
        }
        if text(pod, "/status/phase") == "Succeeded" || text(pod, "/status/phase") == "Failed" {
            return;
        }
        let age = known.started.elapsed();
        let (mut stage, mut taken) = (known.stage, Vec::new());
        if let Some(kueue) = real {
            let others = ports(pod).into_keys().filter(|port| !kueue::listens(*port));
            taken = self.sockets.open(uid, known.address, others);
            stage = if kueue.ready(pod, known.address) {
                Stage::Ready
            } else {
                Stage::Starting
            };
        } else if stage != Stage::Ready && known.next_try <= Instant::now() {
            taken = self.sockets.open(uid, known.address, ports(pod).keys().copied());
            stage = if !taken.is_empty() || flag(pod, "crash") {
                known.next_try = Instant::now() + Duration::from_secs(1);
                Stage::Crashing
            } else if age < seconds(pod, "start-delay").unwrap_or(Duration::from_millis(300)) || flag(pod, "never-ready") {
                Stage::Starting
            } else {
                Stage::Ready
            };
        }
        if let Some(life) = seconds(pod, "completes")
            && age >= life
        {
            self.sockets.close(uid);
            stage = Stage::Done;
        }
        // Patched only when something changed: a quiet cluster must look quiet.
        if stage != known.stage
            && self
                .api
                .strategic_merge(&format!("{}/status", path(pod)), &status(stage, &taken))
                .is_ok()
        {
            known.stage = stage;
        }
    }

    /// The worker's part where Kueue is real: once none of a ModelDeployment's group stands any more, it deletes the group's
    /// Workload, which makes Kueue let the pods go.
    fn sweep(&self, pods: &[Value]) {
        if !at_work(pods, &WORKER) {
            return;
        }
        let group = |pod: &Value| {
            (
                namespace(pod).to_owned(),
                text(pod, "/metadata/labels/kueue.x-k8s.io~1pod-group-name").to_owned(),
            )
        };
        let ordinal = |pod: &&Value| pod["metadata"]["labels"]["modeldeployment.gpustack.ai/pod-ordinal"].is_string();
        let (standing, ending): (Vec<&Value>, Vec<&Value>) = pods
            .iter()
            .filter(|pod| of_model_deployment(pod))
            .filter(ordinal)
            .partition(|pod| !pod["metadata"]["deletionTimestamp"].is_string());
        let standing: BTreeSet<_> = standing.into_iter().map(group).collect();
        let ending: BTreeSet<_> = ending.into_iter().map(group).collect();
        for (namespace, name) in ending.difference(&standing) {
            let _ = self.api.delete(
                &format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads/{name}"),
                &json!({"apiVersion": "v1", "kind": "DeleteOptions"}),
            );
        }
    }

    /// Kueue at work: while a replica is ready, and not itself on its way out, it takes its finalizer off deleted pods that have
    /// ended. A ModelDeployment's pod needs the worker as well, and a worker that knows it: an older one gives it no ordinal.
    fn release(&self, pods: &[Value]) {
        if !at_work(pods, &KUEUE) {
            return;
        }
        let worker = at_work(pods, &WORKER);
        let swept = |pod: &Value| {
            !of_model_deployment(pod) || (worker && pod["metadata"]["labels"]["modeldeployment.gpustack.ai/pod-ordinal"].is_string())
        };
        let ended = |pod: &&Value| {
            self.pods
                .get(text(pod, "/metadata/uid"))
                .and_then(|known| known.ending)
                .is_some_and(|end| end <= Instant::now())
        };
        for pod in pods.iter().filter(ended).filter(|pod| swept(pod)) {
            let held: Vec<&Value> = pod["metadata"]["finalizers"].as_array().into_iter().flatten().collect();
            if held.iter().any(|finalizer| **finalizer == KUEUE_FINALIZER) {
                let left: Vec<_> = held.into_iter().filter(|finalizer| **finalizer != KUEUE_FINALIZER).collect();
                // Refused while nobody answers Kueue's webhook; tried again next time.
                let _ = self.api.merge(
                    &path(pod),
                    &json!({"metadata": {"finalizers": left, "uid": pod["metadata"]["uid"]}}),
                );
            }
        }
    }
}

/// Whether a ready pod with these labels is there, and not on its way out.
fn at_work(pods: &[Value], labels: &[(&str, &str)]) -> bool {
    pods.iter().any(|pod| {
        let own = &pod["metadata"]["labels"];
        labels.iter().all(|(key, value)| own[*key] == *value) && condition(pod, "Ready") && quiet::active(pod)
    })
}

fn of_model_deployment(pod: &Value) -> bool {
    let owners = pod["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|owner| owner["kind"] == "ModelDeployment")
}

fn path(pod: &Value) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", namespace(pod), text(pod, "/metadata/name"))
}

fn annotation<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    pod["metadata"]["annotations"].get(format!("test.gpustack-ha/{name}"))?.as_str()
}

fn flag(pod: &Value, name: &str) -> bool {
    annotation(pod, name) == Some("true")
}

fn seconds(pod: &Value, name: &str) -> Option<Duration> {
    annotation(pod, name).map(|value| Duration::from_secs_f64(value.parse().expect("seconds in an annotation")))
}

/// The containers that run side by side: the ordinary ones and the init containers that restart.
fn running(pod: &Value) -> impl Iterator<Item = &Value> {
    let sidecars = pod["spec"]["initContainers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|container| container["restartPolicy"] == "Always");
    pod["spec"]["containers"].as_array().into_iter().flatten().chain(sidecars)
}

/// The TCP ports that a pod's processes listen on, each with the container that does: those named by arguments, declared, or probed.
fn ports(pod: &Value) -> BTreeMap<u16, &str> {
    let mut ports = BTreeMap::new();
    let strings = |value: &'_ Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    for container in running(pod) {
        for argument in strings(&container["args"]).into_iter().chain(strings(&container["command"])) {
            if let Some(port) = listening(&argument) {
                ports.entry(port).or_insert(text(container, "/name"));
            }
        }
    }
    for container in running(pod) {
        let declared = container["ports"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|port| port["protocol"] != "UDP")
            .map(|port| &port["containerPort"]);
        let probed = ["livenessProbe", "readinessProbe", "startupProbe"].into_iter().flat_map(|probe| {
            [
                &container[probe]["httpGet"]["port"],
                &container[probe]["tcpSocket"]["port"],
                &container[probe]["grpc"]["port"],
            ]
        });
        for port in declared.chain(probed).filter_map(Value::as_u64) {
            ports
                .entry(u16::try_from(port).expect("a port"))
                .or_insert(text(container, "/name"));
        }
    }
    ports
}

/// The port in an argument like `--http-endpoint=localhost:29652` or `--metrics-bind-address=:8080`.
fn listening(argument: &str) -> Option<u16> {
    let (host, port) = argument.split_once('=')?.1.rsplit_once(':')?;
    matches!(host, "" | "localhost" | "127.0.0.1" | "0.0.0.0" | "[::]").then(|| port.parse().ok())?
}

fn status(pod: &Value, stage: Stage, address: IpAddr, host: IpAddr, taken: &[u16]) -> Value {
    let owned_by_job = pod["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|owner| owner["kind"] == "Job");
    let deleted = pod["metadata"]["deletionTimestamp"].is_string();
    let failed = stage == Stage::Done && ((deleted && owned_by_job) || flag(pod, "fails"));
    let colliding: BTreeSet<&str> = ports(pod)
        .into_iter()
        .filter(|(port, _)| taken.contains(port))
        .map(|(_, container)| container)
        .collect();
    let time = now();
    let containers: Vec<Value> = running(pod)
        .filter(|container| {
            pod["spec"]["containers"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|other| other["name"] == container["name"])
        })
        .map(|container| {
            let crashing = stage == Stage::Crashing && (flag(pod, "crash") || colliding.contains(text(container, "/name")));
            let exit = i32::from(failed) * 143;
            let state = match stage {
                _ if crashing => json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}),
                Stage::Done => {
                    json!({"terminated": {"exitCode": exit, "reason": if failed { "Error" } else { "Completed" }, "finishedAt": time}})
                }
                _ => json!({"running": {"startedAt": time}}),
            };
            let last = if crashing {
                json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "bind: address already in use"}})
            } else {
                json!({})
            };
            json!({"name": container["name"], "image": container["image"], "imageID": "", "ready": stage == Stage::Ready,
                "started": !crashing && stage != Stage::Done, "restartCount": i32::from(crashing) * 3, "state": state, "lastState": last})
        })
        .collect();
    let ready = if stage == Stage::Ready { "True" } else { "False" };
    let reason = (stage != Stage::Ready).then_some("ContainersNotReady");
    let conditions: Vec<Value> = [
        ("Initialized", "True", None),
        ("Ready", ready, reason),
        ("ContainersReady", ready, reason),
    ]
    .into_iter()
    .map(|(kind, status, reason)| json!({"type": kind, "status": status, "reason": reason, "lastTransitionTime": time}))
    .collect();
    let phase = match stage {
        Stage::Done if failed => "Failed",
        Stage::Done => "Succeeded",
        _ => "Running",
    };
    json!({"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"phase": phase, "conditions": conditions, "containerStatuses": containers,
        "podIP": address, "podIPs": [{"ip": address}], "hostIP": host, "hostIPs": [{"ip": host}], "startTime": time}})
}
