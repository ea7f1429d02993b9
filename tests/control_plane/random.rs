//! Clusters that nobody designed: a seed makes a state, which is played and compared like the designed ones, and a table sums up.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// Raised whenever a seed begins to mean another state.
pub const GENERATOR: u32 = 1;

/// The seeds of a run that names none.
const FIXED: std::ops::Range<u64> = 1..6;

/// The seeds to play: `SEEDS=7`, `SEEDS=1..50` (both ends played), lists of these with commas; else the fixed ones, unless
/// the states of another folder are played.
pub fn seeds() -> Vec<u64> {
    let Ok(stated) = std::env::var("SEEDS") else {
        if std::env::var_os("STATES").is_some() {
            return Vec::new();
        }
        return FIXED.collect();
    };
    let number = |text: &str| {
        text.trim()
            .parse::<u64>()
            .unwrap_or_else(|error| panic!("SEEDS: {text:?}: {error}"))
    };
    stated
        .split(',')
        .filter(|part| !part.trim().is_empty())
        .flat_map(|part| match part.split_once("..") {
            Some((first, last)) => number(first)..=number(last),
            None => number(part)..=number(part),
        })
        .collect()
}

/// Writes the state of a seed to `target/random/` and returns the file.
pub fn write(seed: u64) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/random");
    fs::create_dir_all(&folder).expect("the folder of random states");
    let file = folder.join(format!("random-{seed}.yaml"));
    fs::write(&file, state(seed)).expect("a state file");
    file
}

/// The state file of a seed.
fn state(seed: u64) -> String {
    let mut maker = Maker::new(seed);
    maker.cluster();
    maker.workloads();
    let steps = maker.steps();
    let head = json!({"kind": "State", "title": format!("seed {seed}"), "rule": "random", "nodes": maker.nodes, "place": maker.place,
        "probe": maker.probes, "steps": steps});
    let documents: Vec<String> = [head]
        .iter()
        .chain(&maker.objects)
        .map(|object| serde_saphyr::to_string(object).expect("YAML"))
        .collect();
    documents.join("---\n")
}

/// The same numbers for the same seed on every machine (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("a small number")
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())].clone()
    }
}

/// Where tenants and components live; pods are also asked for in `other`, where nothing runs.
const NAMESPACES: [&str; 2] = ["app", "tenant"];

struct Maker {
    dice: Dice,
    nodes: Vec<Value>,
    names: Vec<String>,
    place: BTreeMap<String, Vec<String>>,
    probes: Vec<Value>,
    objects: Vec<Value>,
    /// The namespace and name of what can be scaled and restarted.
    deployments: Vec<(String, String)>,
    bare_pods: bool,
}

impl Maker {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d)),
            nodes: Vec::new(),
            names: Vec::new(),
            place: BTreeMap::new(),
            probes: Vec::new(),
            objects: NAMESPACES
                .iter()
                .chain(&["other"])
                .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .collect(),
            deployments: Vec::new(),
            bare_pods: false,
        }
    }

    fn cluster(&mut self) {
        let count = self.dice.pick(&[1, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 5, 6]);
        let zones = self.dice.pick(&[0, 2, 2, 3]);
        for index in 1..=count {
            let name = format!("n{index}");
            let mut labels = Map::new();
            if zones > 0 && !self.dice.chance(8) {
                let zone = if self.dice.chance(70) {
                    index % zones
                } else {
                    self.dice.below(zones)
                };
                labels.insert("topology.kubernetes.io/zone".to_owned(), json!(format!("z{zone}")));
            }
            if self.dice.chance(40) {
                labels.insert("pool".to_owned(), json!(self.dice.pick(&["a", "b"])));
            }
            let mut node = json!({"name": name, "labels": labels});
            if index > 1 && self.dice.chance(15) {
                let effect = self.dice.pick(&["NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute"]);
                node["taints"] = json!([{"key": "dedicated", "value": "gpu", "effect": effect}]);
            }
            if self.dice.chance(25) {
                node["allocatable"] = self.dice.pick(&[
                    json!({"cpu": "2"}),
                    json!({"cpu": "1"}),
                    json!({"pods": "3"}),
                    json!({"memory": "1Gi"}),
                ]);
            }
            if count > 1 && self.dice.chance(3) {
                node["notReady"] = json!(true);
            }
            self.nodes.push(node);
            self.names.push(name);
        }
    }

    fn workloads(&mut self) {
        if self.dice.chance(35) {
            self.objects
                .push(json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}));
            self.objects.push(json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "meek"}, "value": 2000, "preemptionPolicy": "Never"}));
        }
        if self.dice.chance(40) {
            self.kueue();
        }
        if self.dice.chance(20) {
            self.aggregated();
        }
        if self.dice.chance(30) {
            self.storage();
        }
        for index in 0..self.dice.pick(&[1, 1, 2, 2, 3]) {
            let namespace = self.dice.pick(&NAMESPACES);
            match self.dice.below(10) {
                0..6 => self.deployment(namespace, &format!("web-{index}")),
                6..8 => self.stateful_set(namespace, &format!("db-{index}")),
                8 => self.job(namespace, &format!("train-{index}")),
                _ => self.bare_pod(namespace, &format!("alone-{index}")),
            }
        }
        if self.dice.chance(15) {
            self.job("tenant", "batch");
        }
        if self.dice.chance(12) {
            self.bare_pod("app", "tool");
        }
        if self.dice.chance(20) {
            self.daemon_set();
        }
        for namespace in NAMESPACES {
            // A budget that may cover several workloads, or overlap another one.
            if self.dice.chance(12) {
                let selector = self.dice.pick(&[
                    Some(json!({})),
                    Some(json!({"matchLabels": {"team": "red"}})),
                    Some(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]})),
                    None,
                ]);
                self.budget(namespace, "shared", selector);
            }
        }
    }

    /// Kueue, its webhook on pods, and pods that carry its finalizer.
    fn kueue(&mut self) {
        let namespace = "queue-system";
        let labels = json!({"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"});
        let mut template = self.template(namespace, "kueue", &labels, 9443);
        if self.dice.chance(70) {
            template["metadata"]["annotations"] = json!({"test.gpustack-ha/start-delay": "2"});
        }
        let replicas = self.dice.pick(&[1, 1, 2, 2, 3]);
        self.own(
            "Deployment",
            namespace,
            "kueue-controller-manager",
            replicas,
            &labels,
            template,
            json!({}),
        );
        self.objects.push(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kueue-webhook-service", "namespace": namespace},
            "spec": {"selector": labels, "ports": [{"port": 443, "targetPort": 9443}]}}),
        );
        let name = "kueue-validating-webhook-configuration";
        let (operations, resource) = self.dice.pick(&[
            (json!(["CREATE", "UPDATE"]), "pods"),
            (json!(["CREATE", "UPDATE"]), "pods"),
            (json!(["CREATE", "UPDATE"]), "pods"),
            (json!(["CREATE"]), "pods"),
            (json!(["*"]), "*/*"),
            (json!(["CREATE"]), "pods/eviction"),
            (json!(["UPDATE"]), "pods/status"),
            (json!(["DELETE"]), "pods"),
        ]);
        let policy = self.dice.pick(&["Fail", "Fail", "Fail", "Ignore"]);
        let left_out = self.dice.pick(&[
            json!(["kube-system", namespace]),
            json!(["kube-system", namespace]),
            json!(["kube-system"]),
            json!(["kube-system", namespace, "tenant"]),
        ]);
        // `*/*` would also hold the heartbeats of nodes and the work of every controller.
        let scope = if resource == "*/*" { "Namespaced" } else { "*" };
        self.objects.push(json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name},
            "webhooks": [{"name": "vpod.kb.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": policy, "timeoutSeconds": 5,
                "clientConfig": {"service": {"name": "kueue-webhook-service", "namespace": namespace, "path": "/validate--v1-pod"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": [resource], "scope": scope}],
                "namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": left_out}]}}]}));
        if policy == "Fail" && (resource == "pods" || resource == "*/*") && (operations == json!(["*"]) || operations[0] == "CREATE") {
            self.probes.push(json!({"webhook": {"name": name, "namespace": "other"}}));
        }
        for index in 0..self.dice.pick(&[0, 1, 1, 2]) {
            let (name, node) = (format!("model-{index}"), self.near());
            self.place.insert(format!("Instance/tenant/{name}"), vec![node]);
            self.objects.push(json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("{name}-0"), "namespace": "tenant", "labels": {"kueue.x-k8s.io/managed": "true", "app": name},
                    "finalizers": ["kueue.x-k8s.io/managed"],
                    "ownerReferences": [{"apiVersion": "worker.gpustack.ai/v1alpha1", "kind": "Instance", "name": name, "controller": true}]},
                "spec": {"containers": [{"name": "main", "image": "example"}]}}));
        }
    }

    fn aggregated(&mut self) {
        let labels = json!({"app": "metrics"});
        let template = self.template("app", "metrics", &labels, 8443);
        let replicas = self.dice.pick(&[1, 1, 2]);
        self.own("Deployment", "app", "metrics", replicas, &labels, template, json!({}));
        self.objects.push(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics", "namespace": "app"},
            "spec": {"selector": labels, "ports": [{"port": 443, "targetPort": 8443}]}}),
        );
        self.objects.push(
            json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.metrics.example.com"},
            "spec": {"group": "metrics.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
                "service": {"name": "metrics", "namespace": "app"}}}),
        );
        self.probes.push(json!({"apiservice": "v1.metrics.example.com"}));
    }

    /// Controllers on the host's network whose port is declared, or only their probe's.
    fn storage(&mut self) {
        let labels = json!({"app": "storage", "team": self.dice.pick(&["red", "blue"])});
        let mut template = self.template("app", "storage", &labels, 0);
        let declared = self.dice.chance(35);
        template["spec"]["hostNetwork"] = json!(true);
        template["spec"]["containers"] = json!([{"name": "driver", "image": "example",
            "ports": if declared { json!([{"containerPort": 29652}]) } else { json!([]) },
            "livenessProbe": {"httpGet": {"host": "localhost", "port": 29652, "path": "/healthz"}}}]);
        let replicas = self.dice.pick(&[1, 2, 2, 3]);
        self.own("Deployment", "app", "storage", replicas, &labels, template, json!({}));
    }

    fn deployment(&mut self, namespace: &str, name: &str) {
        let labels = json!({"app": name, "team": self.dice.pick(&["red", "blue"])});
        let template = self.template(namespace, name, &labels, 8080);
        let replicas = self.dice.pick(&[1, 2, 2, 3, 3, 3, 4, 5]);
        let strategy = self.dice.pick(&["RollingUpdate", "Recreate"]);
        self.own(
            "Deployment",
            namespace,
            name,
            replicas,
            &labels,
            template,
            json!({"strategy": {"type": strategy}}),
        );
    }

    fn stateful_set(&mut self, namespace: &str, name: &str) {
        let labels = json!({"app": name, "team": self.dice.pick(&["red", "blue"])});
        let template = self.template(namespace, name, &labels, 8080);
        let replicas = self.dice.pick(&[1, 2, 3, 3]);
        let management = self.dice.pick(&["OrderedReady", "Parallel"]);
        let more = json!({"serviceName": name, "podManagementPolicy": management});
        self.own("StatefulSet", namespace, name, replicas, &labels, template, more);
    }

    fn job(&mut self, namespace: &str, name: &str) {
        let labels = json!({"app": name, "team": self.dice.pick(&["red", "blue"])});
        let mut template = self.template(namespace, name, &labels, 0);
        template["spec"]["restartPolicy"] = json!("Never");
        if self.dice.chance(15) {
            template["metadata"]["annotations"]["test.gpustack-ha/completes"] = json!("1");
        }
        let parallelism = self.dice.pick(&[1, 1, 2, 3]);
        let mut spec = json!({"template": template, "parallelism": parallelism, "completions": parallelism + self.dice.below(2)});
        if self.dice.chance(25) {
            spec["backoffLimit"] = json!(self.dice.below(2));
        }
        if self.dice.chance(25) {
            spec["podReplacementPolicy"] = json!("Failed");
        }
        self.maybe_place("Job", namespace, name, parallelism);
        self.maybe_budget(namespace, name, &labels);
        self.objects
            .push(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": namespace}, "spec": spec}));
    }

    fn bare_pod(&mut self, namespace: &str, name: &str) {
        self.bare_pods = true;
        let labels = json!({"app": name, "team": self.dice.pick(&["red", "blue"])});
        let mut pod = self.template(namespace, name, &labels, 8080);
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["namespace"] = json!(namespace);
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        if self.dice.chance(10) {
            pod["metadata"]["finalizers"] = json!(["example.com/keep"]);
        }
        self.maybe_place("Pod", namespace, name, 1);
        self.maybe_budget(namespace, name, &labels);
        self.objects.push(pod);
    }

    fn daemon_set(&mut self) {
        let labels = json!({"app": "agent"});
        let mut spec = json!({"containers": [{"name": "main", "image": "example"}]});
        if self.dice.chance(40) {
            spec["hostNetwork"] = json!(true);
            spec["containers"][0]["ports"] = json!([{"containerPort": self.dice.pick(&[29652, 9100])}]);
        }
        self.objects.push(
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "app"},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}}),
        );
    }

    #[allow(clippy::too_many_arguments, reason = "one call makes a workload with everything around it")]
    fn own(&mut self, kind: &str, namespace: &str, name: &str, replicas: usize, labels: &Value, template: Value, more: Value) {
        let mut spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        self.objects
            .push(json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}));
        if kind == "Deployment" {
            self.deployments.push((namespace.to_owned(), name.to_owned()));
        }
        self.maybe_place(kind, namespace, name, replicas);
        self.maybe_budget(namespace, name, labels);
    }

    /// A node, more often the first ones, which are drained more often.
    fn near(&mut self) -> String {
        let bound = if self.dice.chance(60) {
            self.names.len().min(2)
        } else {
            self.names.len()
        };
        let index = self.dice.below(bound);
        let keeps = |index: usize| self.nodes[index]["taints"][0]["effect"] != "NoExecute";
        self.names[if keeps(index) { index } else { 0 }].clone()
    }

    fn maybe_place(&mut self, kind: &str, namespace: &str, name: &str, count: usize) {
        if self.dice.chance(45) {
            let nodes = (0..count).map(|_| self.near()).collect();
            self.place.insert(format!("{kind}/{namespace}/{name}"), nodes);
        }
    }

    fn maybe_budget(&mut self, namespace: &str, name: &str, labels: &Value) {
        if !self.dice.chance(45) {
            return;
        }
        let selector = match self.dice.below(20) {
            0 => None,
            1 => Some(json!({})),
            2 => Some(json!({"matchLabels": {"app": "nobody"}})),
            _ => Some(json!({"matchLabels": labels})),
        };
        self.budget(namespace, name, selector);
    }

    fn budget(&mut self, namespace: &str, name: &str, selector: Option<Value>) {
        let mut spec = match self.dice.below(9) {
            0..2 => json!({"minAvailable": 1}),
            2 => json!({"minAvailable": 2}),
            3 => json!({"minAvailable": self.dice.pick(&["50%", "34%", "100%"])}),
            4..7 => json!({"maxUnavailable": 1}),
            7 => json!({"maxUnavailable": self.dice.pick(&[json!("50%"), json!("10%"), json!(0), json!(2)])}),
            _ => json!({}),
        };
        if let Some(selector) = selector {
            spec["selector"] = selector;
        }
        if self.dice.chance(20) {
            spec["unhealthyPodEvictionPolicy"] = json!(self.dice.pick(&["AlwaysAllow", "IfHealthyBudget"]));
        }
        self.objects.push(
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": namespace}, "spec": spec}),
        );
    }

    /// A pod template with everything that decides where its pods may go and how they behave.
    fn template(&mut self, namespace: &str, name: &str, labels: &Value, port: u16) -> Value {
        let mut annotations = Map::new();
        if self.dice.chance(20) {
            annotations.insert("test.gpustack-ha/start-delay".to_owned(), json!(self.dice.pick(&["2", "4"])));
        }
        if self.dice.chance(20) {
            annotations.insert("test.gpustack-ha/stop-delay".to_owned(), json!(self.dice.pick(&["0.1", "3"])));
        }
        if self.dice.chance(6) {
            annotations.insert("test.gpustack-ha/never-ready".to_owned(), json!("true"));
        }
        let mut container = json!({"name": "main", "image": "example"});
        if port > 0 {
            container["ports"] = json!([{"containerPort": port}]);
            if namespace != "queue-system" && self.dice.chance(6) {
                container["ports"][0]["hostPort"] = json!(port);
            }
        }
        if self.dice.chance(35) {
            container["resources"] = json!({"requests": {"cpu": self.dice.pick(&["200m", "600m", "1500m", "7"])}});
        }
        let mut spec = json!({"containers": [container]});
        if self.dice.chance(10) {
            spec["volumes"] = json!([{"name": "scratch", "emptyDir": {}}]);
        }
        if self.objects.iter().any(|object| object["kind"] == "PriorityClass") && self.dice.chance(40) {
            spec["priorityClassName"] = json!(self.dice.pick(&["high", "meek"]));
        }
        if self.dice.chance(18) {
            spec["tolerations"] = self.dice.pick(&[
                json!([{"operator": "Exists"}]),
                json!([{"operator": "Exists", "effect": "NoSchedule"}]),
                json!([{"key": "dedicated", "operator": "Exists"}]),
                json!([{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]),
                json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
            ]);
        }
        if self.dice.chance(8) {
            spec["nodeSelector"] = json!({"pool": "a"});
        }
        let mut affinity = Map::new();
        if self.dice.chance(8) {
            let expression = self.dice.pick(&[
                json!({"key": "pool", "operator": "In", "values": ["a", "b"]}),
                json!({"key": "pool", "operator": "NotIn", "values": ["b"]}),
                json!({"key": "topology.kubernetes.io/zone", "operator": "Exists"}),
                json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", "n2"]}),
            ]);
            affinity.insert(
                "nodeAffinity".to_owned(),
                json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}),
            );
        }
        if self.dice.chance(15) {
            affinity.insert("podAntiAffinity".to_owned(), self.terms(labels));
        }
        if self.dice.chance(7) {
            affinity.insert("podAffinity".to_owned(), self.terms(labels));
        }
        if !affinity.is_empty() {
            spec["affinity"] = Value::Object(affinity);
        }
        // The API takes one constraint per key.
        let mut keys = ["kubernetes.io/hostname", "topology.kubernetes.io/zone"];
        if self.dice.chance(30) {
            keys.reverse();
        }
        let count = self.dice.pick(&[0, 0, 0, 1, 1, 2]);
        let spreads: Vec<Value> = keys.iter().take(count).map(|key| self.spread(name, labels, key)).collect();
        if !spreads.is_empty() {
            spec["topologySpreadConstraints"] = json!(spreads);
        }
        json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": spec})
    }

    fn terms(&mut self, labels: &Value) -> Value {
        let key = self
            .dice
            .pick(&["kubernetes.io/hostname", "kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
        let selector = self.dice.pick(&[
            json!({"matchLabels": labels}),
            json!({"matchLabels": labels}),
            json!({"matchLabels": {"team": "red"}}),
        ]);
        let mut term = json!({"topologyKey": key, "labelSelector": selector});
        if self.dice.chance(15) {
            term["namespaces"] = json!(NAMESPACES);
        }
        json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]})
    }

    fn spread(&mut self, name: &str, labels: &Value, key: &str) -> Value {
        let hard = self.dice.chance(88);
        let mut constraint = json!({"topologyKey": key, "maxSkew": self.dice.pick(&[1, 1, 1, 2]),
            "whenUnsatisfiable": if hard { "DoNotSchedule" } else { "ScheduleAnyway" }});
        match self.dice.below(12) {
            0 => {}
            1 => constraint["labelSelector"] = json!({}),
            2 => constraint["labelSelector"] = json!({"matchLabels": {"team": "red"}}),
            3 => constraint["labelSelector"] = json!({"matchLabels": {"app": format!("{name}-old")}}),
            _ => constraint["labelSelector"] = json!({"matchLabels": labels}),
        }
        if self.dice.chance(30) {
            constraint["nodeTaintsPolicy"] = json!(self.dice.pick(&["Honor", "Honor", "Ignore"]));
        }
        if self.dice.chance(8) {
            constraint["nodeAffinityPolicy"] = json!("Ignore");
        }
        if hard && self.dice.chance(20) {
            constraint["minDomains"] = json!(self.dice.pick(&[2, 3]));
        }
        if constraint["labelSelector"].is_object() && self.dice.chance(8) {
            constraint["matchLabelKeys"] = json!(["pod-template-hash"]);
        }
        constraint
    }

    /// What happens before the drain, and the drain.
    fn steps(&mut self) -> Vec<Value> {
        let count = self.names.len();
        let first = if self.dice.chance(70) { 0 } else { self.dice.below(count) };
        let mut drained = vec![self.names[first].clone()];
        while drained.len() < count && self.dice.chance(16) {
            let other = self.dice.pick(&self.names);
            if !drained.contains(&other) {
                drained.push(other);
            }
        }
        let others: Vec<String> = self.names.iter().filter(|name| !drained.contains(name)).cloned().collect();
        let mut steps = Vec::new();
        if !others.is_empty() && self.dice.chance(15) {
            let other = self.dice.pick(&others);
            if self.dice.chance(50) {
                steps.push(json!({"cordon": [other]}));
            } else {
                steps.push(
                    json!({"drainBefore": {"nodes": [other], "flags": ["--ignore-daemonsets", "--delete-emptydir-data", "--force"]}}),
                );
            }
        }
        if self.dice.chance(4) {
            steps.push(json!({"cordon": [drained[0]]}));
        }
        if !self.deployments.is_empty() && self.dice.chance(10) {
            let (namespace, name) = self.dice.pick(&self.deployments);
            let key = format!("Deployment/{namespace}/{name}");
            steps.push(if self.dice.chance(50) {
                json!({"restart": [key]})
            } else {
                json!({"scale": {key: self.dice.below(5)}})
            });
        }
        let mut flags = Vec::new();
        let mut flag = |dice: &mut Dice, percent, flag: &str| {
            if dice.chance(percent) {
                flags.push(flag.to_owned());
            }
        };
        flag(&mut self.dice, 90, "--ignore-daemonsets");
        flag(&mut self.dice, 88, "--delete-emptydir-data");
        let force = if self.bare_pods { 85 } else { 20 };
        flag(&mut self.dice, force, "--force");
        flag(&mut self.dice, 5, "--disable-eviction");
        flag(&mut self.dice, 4, "--timeout=20s");
        flag(&mut self.dice, 3, "--grace-period=0");
        flag(&mut self.dice, 3, "--grace-period=5");
        flag(&mut self.dice, 3, "--pod-selector=team=red");
        flag(&mut self.dice, 2, "--skip-wait-for-delete-timeout=1");
        steps.push(json!({"drain": {"nodes": drained, "flags": flags}}));
        steps
    }
}
