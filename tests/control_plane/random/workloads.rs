//! What surrounds a scene: workloads, budgets, quotas, volumes and webhooks, by chance.

use serde_json::{Map, Value, json};

use super::scenes::Scene;
use super::{Maker, NAMESPACES};

impl Maker {
    pub(super) fn workloads(&mut self) {
        if !self.kueue && self.dice.chance(35) {
            self.kueue(false);
        }
        if self.dice.chance(20) {
            self.aggregated();
        }
        if !self.chart && self.dice.chance(15) {
            self.storage();
        }
        let least = usize::from(!self.chart);
        for index in 0..self.dice.pick(&[least, 1, 1, 2]) {
            let namespace = self.dice.pick(&NAMESPACES);
            match self.dice.below(12) {
                0..6 => self.deployment(namespace, &format!("web-{index}")),
                6..8 => self.stateful_set(namespace, &format!("db-{index}")),
                8..10 => self.with_volume(namespace, &format!("disk-{index}")),
                10 => self.job(namespace, &format!("train-{index}")),
                _ => self.bare_pod(namespace, &format!("alone-{index}")),
            }
        }
        if self.dice.chance(15) {
            self.job("tenant", "batch");
        }
        if self.dice.chance(10) {
            self.bare_pod("app", "tool");
        }
        if self.dice.chance(20) {
            let tolerations = self.dice.pick(&[json!([]), json!([{"operator": "Exists"}])]);
            self.daemon_set("agent", tolerations);
        }
        for namespace in NAMESPACES {
            // A budget that may cover several workloads, or overlap another one.
            if self.dice.chance(6) {
                let selector = self.dice.pick(&[
                    Some(json!({})),
                    Some(json!({"matchLabels": {"team": "red"}})),
                    Some(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]})),
                    None,
                ]);
                self.budget(namespace, "shared", selector);
            }
            if self.dice.chance(10) {
                self.quota(namespace);
            }
        }
    }

    /// Classes whose pods preempt others, and one whose pods outrank all and never do.
    pub(super) fn priorities(&mut self) {
        if !self.dice.chance(35) {
            return;
        }
        let class = |name: &str, value: u32, policy: &str| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value, "preemptionPolicy": policy});
        self.objects.push(class("high", 1000, "PreemptLowerPriority"));
        self.objects.push(class("meek", 2000, "Never"));
    }

    /// Just enough pods, one or two more, or fewer than there are by now.
    fn quota(&mut self, namespace: &str) {
        let pods = self.pods.get(namespace).copied().unwrap_or_default();
        let quota = |pods: usize| json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": namespace}, "spec": {"hard": {"pods": pods.to_string()}}});
        if pods > 1 && self.dice.chance(25) {
            self.first_steps.push(json!({"apply": [quota(pods - 1)]}));
        } else {
            let room = self.dice.below(3);
            self.objects.push(quota(pods + room));
        }
    }

    /// A workload with a volume that holds it to its node or zone, or moves with it.
    fn with_volume(&mut self, namespace: &str, name: &str) {
        let labels = json!({"app": name, "team": self.dice.pick(&["red", "blue"])});
        let mut template = self.template(namespace, name, &labels, 8080);
        for field in ["nodeSelector", "affinity", "topologySpreadConstraints"] {
            template["spec"].as_object_mut().map(|spec| spec.remove(field));
        }
        let node = self.near();
        let mode = self.dice.pick(&["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"]);
        let zone = self
            .nodes
            .iter()
            .find(|other| other["name"] == node.as_str())
            .map(|node| node["labels"]["topology.kubernetes.io/zone"].clone())
            .filter(Value::is_string);
        let within = |key: &str, value: &Value| json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}});
        let affinity = match (self.dice.below(3), zone) {
            (0, _) => Some(within("kubernetes.io/hostname", &json!(node))),
            (1, Some(zone)) => Some(within("topology.kubernetes.io/zone", &zone)),
            _ => None,
        };
        let stateful = self.dice.chance(40);
        let claim = if stateful { format!("data-{name}-0") } else { name.to_owned() };
        let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("{namespace}-{name}")},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": [mode], "csi": {"driver": "disk.example.com", "volumeHandle": name},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim}}});
        if let Some(affinity) = affinity {
            volume["spec"]["nodeAffinity"] = affinity;
        }
        self.objects.push(volume);
        let wanted = json!({"accessModes": [mode], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}});
        let kind = if stateful { "StatefulSet" } else { "Deployment" };
        let mut spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
        if stateful {
            spec["serviceName"] = json!(name);
            spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": wanted}]);
        } else {
            let mut wanted = wanted;
            wanted["volumeName"] = json!(format!("{namespace}-{name}"));
            self.objects.push(
                json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace}, "spec": wanted}),
            );
            spec["template"]["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]);
            spec["strategy"] = self.dice.pick(&[json!({"type": "Recreate"}), json!({"type": "RollingUpdate"})]);
        }
        self.objects
            .push(json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}));
        *self.pods.entry(namespace.to_owned()).or_default() += 1;
        self.place.insert(format!("{kind}/{namespace}/{name}"), vec![node]);
        self.maybe_budget(namespace, name, &labels);
    }

    /// Kueue, its webhook on pods, and pods that carry its finalizer.
    pub(super) fn kueue(&mut self, scene: bool) {
        self.kueue = true;
        let namespace = "queue-system";
        let labels = json!({"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"});
        let mut template = self.template(namespace, "kueue", &labels, 9443);
        if self.dice.chance(70) {
            template["metadata"]["annotations"] = json!({"test.gpustack-ha/start-delay": "2"});
        }
        if scene {
            for field in ["nodeSelector", "affinity", "topologySpreadConstraints"] {
                template["spec"].as_object_mut().map(|spec| spec.remove(field));
            }
            let role = self.role(Scene::Finalizer, &labels, &mut template);
            self.act("Deployment", namespace, "kueue-controller-manager", &labels, template, role);
        } else {
            let replicas = self.dice.pick(&[1, 1, 2, 2, 3]);
            let name = "kueue-controller-manager";
            self.own("Deployment", namespace, name, replicas, &labels, template, json!({}));
        }
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
        if !scene {
            for index in 0..self.dice.pick(&[0, 1, 1, 2]) {
                let node = self.near();
                self.queued(&format!("model-{index}"), node);
            }
        }
    }

    /// A pod that Kueue has admitted and that ends only once Kueue has removed its finalizer.
    pub(super) fn queued(&mut self, name: &str, node: String) {
        self.place.insert(format!("Instance/tenant/{name}"), vec![node]);
        *self.pods.entry("tenant".to_owned()).or_default() += 1;
        self.objects.push(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{name}-0"), "namespace": "tenant", "labels": {"kueue.x-k8s.io/managed": "true", "app": name},
                "finalizers": ["kueue.x-k8s.io/managed"],
                "ownerReferences": [{"apiVersion": "worker.gpustack.ai/v1alpha1", "kind": "Instance", "name": name, "controller": true}]},
            "spec": {"containers": [{"name": "main", "image": "example"}]}}));
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
        let declared = self.dice.chance(35);
        let template = self.storage_template("app", &labels, declared);
        let replicas = self.dice.pick(&[1, 2, 2, 3]);
        self.own("Deployment", "app", "storage", replicas, &labels, template, json!({}));
    }

    pub(super) fn storage_template(&mut self, namespace: &str, labels: &Value, declared: bool) -> Value {
        let mut template = self.template(namespace, "storage", labels, 0);
        template["spec"]["hostNetwork"] = json!(true);
        template["spec"]["containers"] = json!([{"name": "driver", "image": "example",
            "ports": if declared { json!([{"containerPort": 29652}]) } else { json!([]) },
            "livenessProbe": {"httpGet": {"host": "localhost", "port": 29652, "path": "/healthz"}}}]);
        template
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
        *self.pods.entry(namespace.to_owned()).or_default() += parallelism;
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
        if self.dice.chance(4) {
            pod["metadata"]["finalizers"] = json!(["example.com/keep"]);
        }
        *self.pods.entry(namespace.to_owned()).or_default() += 1;
        self.maybe_place("Pod", namespace, name, 1);
        self.maybe_budget(namespace, name, &labels);
        self.objects.push(pod);
    }

    pub(super) fn daemon_set(&mut self, name: &str, tolerations: Value) {
        let labels = json!({"app": name});
        *self.pods.entry("app".to_owned()).or_default() += self.names.len();
        let mut spec = json!({"tolerations": tolerations, "containers": [{"name": "main", "image": "example"}]});
        if !self.chart && self.dice.chance(40) {
            spec["hostNetwork"] = json!(true);
            spec["containers"][0]["ports"] = json!([{"containerPort": self.dice.pick(&[29652, 9100])}]);
        }
        self.objects.push(
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "app"},
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
        *self.pods.entry(namespace.to_owned()).or_default() += replicas;
        self.maybe_place(kind, namespace, name, replicas);
        self.maybe_budget(namespace, name, labels);
    }

    /// A node, more often the first ones, which are drained more often.
    pub(super) fn near(&mut self) -> String {
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

    pub(super) fn maybe_budget(&mut self, namespace: &str, name: &str, labels: &Value) {
        if !self.dice.chance(22) {
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

    pub(super) fn budget(&mut self, namespace: &str, name: &str, selector: Option<Value>) {
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
    pub(super) fn template(&mut self, namespace: &str, name: &str, labels: &Value, port: u16) -> Value {
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
            spec["priorityClassName"] = json!(self.dice.pick(&["high", "meek", "meek"]));
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

    pub(super) fn spread(&mut self, name: &str, labels: &Value, key: &str) -> Value {
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
}
