//! A made-up cluster: nodes as kubelets report them, pods of about 7 KB as API servers store them.

use serde_json::{Value, json};

/// How large, and what is hard about it.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub nodes: usize,
    pub pods: usize,
    /// Whether only the last three nodes take pods: all others have a taint.
    pub narrow: bool,
}

/// An object as it is sent, and what selectors look at.
pub struct Item {
    pub namespace: String,
    pub name: String,
    pub node: String,
    pub labels: Vec<(String, String)>,
    pub text: String,
}

/// All objects of a kind.
pub struct List {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub items: Vec<Item>,
}

impl List {
    fn new(api_version: &'static str, kind: &'static str, plural: &'static str, items: Vec<Item>) -> Self {
        Self {
            api_version,
            kind,
            plural,
            items,
        }
    }

    /// The path of the whole list.
    pub fn path(&self) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{}/{}", self.api_version, self.plural)
    }
}

/// Replicas of each Deployment.
const REPLICAS: usize = 10;

/// The node that is drained: it runs, among others, what is hard to place.
pub const DRAINED: &str = "node-00000";

fn item(object: &Value) -> Item {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    Item {
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
        node: text("/spec/nodeName"),
        labels: labels
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
        text: object.to_string(),
    }
}

/// What the API server notes about who set which field; half of what a pod takes.
fn managed_fields() -> Value {
    let names = [
        "args",
        "command",
        "env",
        "image",
        "imagePullPolicy",
        "livenessProbe",
        "name",
        "ports",
        "readinessProbe",
        "resources",
        "securityContext",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "volumeMounts",
    ];
    let container: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| (format!("f:{name}"), json!({".": {}, "f:value": {}})))
        .collect();
    let spec = json!({"f:metadata": {"f:annotations": {".": {}, "f:checksum/config": {}}, "f:generateName": {},
        "f:labels": {".": {}, "f:app.kubernetes.io/instance": {}, "f:app.kubernetes.io/name": {}, "f:pod-template-hash": {}},
        "f:ownerReferences": {".": {}, "k:{\"uid\":\"6c1b6a52-0000-4000-8000-000000000000\"}": {}}},
        "f:spec": {"f:affinity": {".": {}, "f:podAntiAffinity": {}}, "f:containers": {"k:{\"name\":\"app\"}": container},
        "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:nodeSelector": {}, "f:restartPolicy": {}, "f:schedulerName": {},
        "f:securityContext": {}, "f:serviceAccountName": {}, "f:terminationGracePeriodSeconds": {}, "f:tolerations": {},
        "f:topologySpreadConstraints": {}, "f:volumes": {".": {}, "k:{\"name\":\"config\"}": {".": {}, "f:configMap": {}, "f:name": {}}}}});
    let conditions: serde_json::Map<String, Value> = ["ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready"]
        .iter()
        .map(|name| {
            let fields = json!({".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}});
            (format!("k:{{\"type\":\"{name}\"}}"), fields)
        })
        .collect();
    let status = json!({"f:status": {"f:conditions": conditions, "f:containerStatuses": {}, "f:hostIP": {}, "f:hostIPs": {}, "f:phase": {},
        "f:podIP": {}, "f:podIPs": {}, "f:startTime": {}}});
    let entry = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T10:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields});
    json!([entry("kube-controller-manager", spec), entry("kubelet", status)])
}

struct App {
    namespace: String,
    name: String,
    replicas: usize,
    extra: Value,
}

impl App {
    fn labels(&self) -> Value {
        json!({"app.kubernetes.io/instance": self.name, "app.kubernetes.io/name": "app", "app.kubernetes.io/version": "v1.2.3",
               "pod-template-hash": "7c9d8b6f5"})
    }

    fn selector(&self) -> Value {
        json!({"matchLabels": {"app.kubernetes.io/instance": self.name}})
    }

    fn spec(&self) -> Value {
        let probe = |path: &str| json!({"httpGet": {"path": path, "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3});
        let mut spec = json!({
            "containers": [{"name": "app", "image": format!("registry.example.com/team/{}:v1.2.3", self.name),
                "args": ["--leader-elect=true", "--v=2", "--config=/etc/app/config.yaml"],
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}, {"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
                "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}, {"name": "LOG_LEVEL", "value": "info"}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
                "livenessProbe": probe("/healthz"), "readinessProbe": probe("/readyz"),
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
                "securityContext": {"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": false}}],
            "volumes": [{"name": "config", "configMap": {"name": self.name, "defaultMode": 420}}, {"name": "tmp", "emptyDir": {}}],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "nodeSelector": {"kubernetes.io/os": "linux"},
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}, "schedulerName": "default-scheduler",
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": {"labelSelector": self.selector(), "topologyKey": "kubernetes.io/hostname"}}]}},
        });
        if let (Some(spec), Some(extra)) = (spec.as_object_mut(), self.extra.as_object()) {
            spec.extend(extra.clone());
        }
        spec
    }

    fn owned(kind: &str, name: &str) -> Value {
        json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "", "controller": true, "blockOwnerDeletion": true}])
    }

    fn owners(&self) -> [Value; 2] {
        let body = json!({"replicas": self.replicas, "selector": self.selector(), "template": {"metadata": {"labels": self.labels()}, "spec": self.spec()}});
        let set = format!("{}-7c9d8b6f5", self.name);
        [
            json!({"metadata": {"name": self.name, "namespace": self.namespace}, "spec": body, "status": {"replicas": self.replicas}}),
            json!({"metadata": {"name": set, "namespace": self.namespace, "ownerReferences": Self::owned("Deployment", &self.name)}, "spec": body}),
        ]
    }

    /// A pod of it; what differs from pod to pod stands in for `@@INDEX@@` and `@@NODE@@`.
    fn pod(&self) -> String {
        let set = format!("{}-7c9d8b6f5", self.name);
        let mut spec = self.spec();
        spec["nodeName"] = json!("@@NODE@@");
        spec["serviceAccountName"] = json!("default");
        spec["priority"] = json!(0);
        spec["tolerations"] = ["not-ready", "unreachable"]
            .map(|key| json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}))
            .into();
        let mounts = json!([{"name": "config", "mountPath": "/etc/app"}, {"name": "tmp", "mountPath": "/tmp"},
            {"name": "kube-api-access-@@INDEX@@", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]);
        spec["containers"][0]["volumeMounts"] = mounts.clone();
        if let Some(volumes) = spec["volumes"].as_array_mut() {
            volumes.push(json!({"name": "kube-api-access-@@INDEX@@", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}]}}));
        }
        let conditions = [
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled",
        ]
        .map(|kind| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T10:00:05Z"}));
        json!({
            "metadata": {"name": format!("{set}-@@INDEX@@"), "generateName": format!("{set}-"), "namespace": self.namespace,
                "uid": "0a1b2c3d-0000-4000-8000-0000@@INDEX@@", "resourceVersion": "12@@INDEX@@", "creationTimestamp": "2026-01-01T10:00:00Z",
                "labels": self.labels(), "annotations": {"checksum/config": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
                "ownerReferences": Self::owned("ReplicaSet", &set), "managedFields": managed_fields()},
            "spec": spec,
            "status": {"phase": "Running", "conditions": conditions, "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}], "podIP": "10.@@IP@@",
                "podIPs": [{"ip": "10.@@IP@@"}], "startTime": "2026-01-01T10:00:00Z", "qosClass": "Burstable",
                "containerStatuses": [{"name": "app", "state": {"running": {"startedAt": "2026-01-01T10:00:03Z"}}, "lastState": {}, "ready": true,
                    "restartCount": 0, "image": format!("registry.example.com/team/{}:v1.2.3", self.name), "started": true,
                    "imageID": "registry.example.com/team/app@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    "containerID": "containerd://9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c1@@INDEX@@",
                    "allocatedResources": {"cpu": "250m", "memory": "256Mi"}, "volumeMounts": mounts,
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "256Mi"}}}]},
        })
        .to_string()
    }
}

fn node_name(index: usize) -> String {
    format!("node-{index:05}")
}

fn node(index: usize, size: Size) -> Value {
    let name = node_name(index);
    let images: Vec<Value> = (0..50)
        .map(|image| {
            let digest = "registry.example.com/team/app@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
            json!({"names": [digest, format!("registry.example.com/team/app:v1.{image}")], "sizeBytes": 123_456_789})
        })
        .collect();
    let conditions = [
        ("MemoryPressure", "False"),
        ("DiskPressure", "False"),
        ("PIDPressure", "False"),
        ("Ready", "True"),
    ]
    .map(|(kind, status)| {
        json!({"type": kind, "status": status, "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
               "reason": format!("Kubelet{kind}"), "message": "as the kubelet says"})
    });
    let tainted = size.narrow && index > 0 && index + 3 < size.nodes;
    let taints = if tainted {
        json!([{"key": "team", "value": "other", "effect": "NoSchedule"}])
    } else {
        Value::Null
    };
    json!({
        "metadata": {"name": name, "uid": format!("n-{index}"), "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": format!("z{}", index % 3)}},
        "spec": {"podCIDR": "10.244.0.0/24", "taints": taints},
        "status": {"capacity": {"cpu": "64", "memory": "263856676Ki", "pods": "110"}, "allocatable": {"cpu": "63", "memory": "260000000Ki", "pods": "110"},
            "conditions": conditions, "images": images, "addresses": [{"type": "InternalIP", "address": format!("10.0.{}.{}", index / 250, index % 250)}]},
    })
}

/// The Deployments that have a pod on the drained node and are hard to place, in place of the first three.
fn hard(index: usize, app: App) -> App {
    let selector = app.selector();
    let extra = match index {
        0 => {
            json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]})
        }
        1 => {
            json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}]}}})
        }
        _ => json!({}),
    };
    // The last one is all that answers a webhook.
    let replicas = if index == 2 { 1 } else { app.replicas };
    App { replicas, extra, ..app }
}

/// Every list that the API server has.
pub fn lists(size: Size) -> Vec<List> {
    let (mut pods, mut deployments, mut sets, mut slices) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut count = 0;
    let mut number = 0;
    while count < size.pods {
        let app = App {
            namespace: format!("ns-{:03}", number % 200),
            name: format!("app-{number:05}"),
            replicas: REPLICAS.min(size.pods - count),
            extra: json!({}),
        };
        let app = if number < 3 { hard(number, app) } else { app };
        let template = app.pod();
        for replica in 0..app.replicas {
            // Pods fill the nodes in turn, but each of the first three Deployments begins on the drained node.
            let node = if number < 3 { replica % size.nodes } else { count % size.nodes };
            let (index, node) = (format!("{count:08}"), node_name(node));
            let ip = format!("{}.{}.{}", count / 65_536 + 1, count / 256 % 256, count % 256);
            pods.push(Item {
                namespace: app.namespace.clone(),
                name: format!("{}-7c9d8b6f5-{index}", app.name),
                node: node.clone(),
                labels: vec![
                    ("app.kubernetes.io/instance".to_owned(), app.name.clone()),
                    ("app.kubernetes.io/name".to_owned(), "app".to_owned()),
                ],
                text: template
                    .replace("@@INDEX@@", &index)
                    .replace("@@NODE@@", &node)
                    .replace("@@IP@@", &ip),
            });
            count += 1;
        }
        let [deployment, set] = app.owners();
        deployments.push(item(&deployment));
        sets.push(item(&set));
        slices.push(item(
            &json!({"metadata": {"name": app.name, "namespace": app.namespace, "labels": {"kubernetes.io/service-name": app.name}},
            "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}], "ports": [{"port": 8080}]}),
        ));
        number += 1;
    }
    // As etcd keeps them.
    pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    let many = |count: usize, make: &dyn Fn(usize) -> Value| (0..count).map(|index| item(&make(index))).collect::<Vec<_>>();
    let nodes = (0..size.nodes)
        .map(|index| Item {
            labels: Vec::new(),
            ..item(&node(index, size))
        })
        .collect();
    let namespaces = many(
        200,
        &|index| json!({"metadata": {"name": format!("ns-{index:03}"), "labels": {"kubernetes.io/metadata.name": format!("ns-{index:03}")}}}),
    );
    let leases = many(size.nodes + 40, &|index| {
        json!({"metadata": {"name": format!("lease-{index}"), "namespace": if index < size.nodes { "kube-node-lease" } else { "ns-000" }},
               "spec": {"holderIdentity": "x", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T10:00:00.000000Z"}})
    });
    let budgets = many(500.min(number), &|index| {
        json!({"metadata": {"name": format!("app-{index:05}"), "namespace": format!("ns-{:03}", index % 200), "generation": 1},
               "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app.kubernetes.io/instance": format!("app-{index:05}")}}},
               "status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 10, "desiredHealthy": 9, "expectedPods": 10}})
    });
    let services = many(number.min(1000), &|index| {
        json!({"metadata": {"name": format!("app-{index:05}"), "namespace": format!("ns-{:03}", index % 200)},
               "spec": {"selector": {"app.kubernetes.io/instance": format!("app-{index:05}")}, "ports": [{"port": 443, "targetPort": 8080}]}})
    });
    let webhook = json!({"metadata": {"name": "guard"}, "webhooks": [{"name": "guard.example.com", "failurePolicy": "Fail",
        "clientConfig": {"service": {"namespace": "ns-002", "name": "app-00002", "port": 443}},
        "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"], "scope": "*"}]}]});
    vec![
        List::new("v1", "Pod", "pods", pods),
        List::new("v1", "Node", "nodes", nodes),
        List::new("v1", "Namespace", "namespaces", namespaces),
        List::new("v1", "Service", "services", services),
        List::new("apps/v1", "Deployment", "deployments", deployments),
        List::new("apps/v1", "ReplicaSet", "replicasets", sets),
        List::new("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", budgets),
        List::new("coordination.k8s.io/v1", "Lease", "leases", leases),
        List::new("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", slices),
        List::new(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            vec![item(&webhook)],
        ),
    ]
}
