//! The chart's components as they are rendered, with replicas, spreads, budgets and strategies by chance.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::Maker;
use super::scenes::{self, Role, Scene};

/// The state holds an install of the chart.
pub const CHART: &str = "the chart";

const NAMESPACE: &str = "gpustack-system";

/// The objects of the install's default values: `common.yaml` and `default.yaml` of the fixtures.
fn fixture() -> &'static [Value] {
    static OBJECTS: OnceLock<Vec<Value>> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control_plane/fixtures/gpustack");
        let read = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).expect("a fixture");
            serde_saphyr::from_multiple::<Value>(&text).expect("YAML")
        };
        ["common.yaml", "default.yaml"].into_iter().flat_map(read).collect()
    })
}

/// A component: its Deployment, the name that the chart gives its budget, and the replicas that chance picks from.
const COMPONENTS: [(&str, &str, &[usize]); 6] = [
    ("gpustack-operator-worker", "gpustack-operator-worker", &[1, 2, 2, 3, 3]),
    ("kueue-controller-manager", "kueue-manager-pdb", &[1, 1, 2, 2, 3]),
    ("node-feature-discovery-master", "node-feature-discovery-master", &[1, 1, 2, 3]),
    ("node-feature-discovery-gc", "node-feature-discovery-gc", &[1]),
    ("csi-nfs-controller", "", &[1, 1, 1, 2]),
    ("csi-s3-controller", "", &[1, 2]),
];

impl Maker {
    pub(super) fn install(&mut self, scene: Scene) {
        self.hard.insert(CHART);
        self.kueue = true;
        let target = match scene {
            Scene::Port => "csi-nfs-controller",
            Scene::Finalizer => "kueue-controller-manager",
            Scene::Free => "",
            _ => self
                .dice
                .pick(&[COMPONENTS[0].0, COMPONENTS[0].0, COMPONENTS[1].0, COMPONENTS[1].0, COMPONENTS[2].0]),
        };
        self.probes.extend([
            json!({"webhook": {"name": "kueue-validating-webhook-configuration", "namespace": "other"}}),
            json!({"webhook": {"name": "gpustack-worker-validation", "namespace": NAMESPACE, "labels": {"kueue.x-k8s.io/queue-name": "queue"}}}),
            json!({"apiservice": "v1.worker.gpustack.ai"}),
            json!({"apiservice": "v1beta2.visibility.kueue.x-k8s.io"}),
        ]);
        // What is switched off in the values is not there, and neither are its leases.
        let off: Vec<&str> = ["node-feature-discovery-gc", "csi-nfs-controller", "csi-s3-controller"]
            .into_iter()
            .filter(|name| *name != target && self.dice.chance(20))
            .collect();
        for object in fixture() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let holder = object["metadata"]["annotations"]["test.gpustack-ha/holder"]
                .as_str()
                .unwrap_or_default();
            if off.iter().any(|off| *off == name || holder.ends_with(off)) {
                continue;
            }
            if let Some(account) = object.pointer("/spec/template/spec/serviceAccountName") {
                self.objects
                    .push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": NAMESPACE}}));
            }
            match COMPONENTS
                .iter()
                .find(|(component, ..)| object["kind"] == "Deployment" && *component == name)
            {
                Some((_, budget, replicas)) => {
                    let scene = if name == target { scene } else { Scene::Free };
                    self.component(object.clone(), budget, replicas, scene);
                }
                None => self.objects.push(object.clone()),
            }
        }
    }

    fn component(&mut self, mut deployment: Value, budget: &str, replicas: &[usize], scene: Scene) {
        let name = deployment["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let labels = deployment["spec"]["selector"]["matchLabels"].clone();
        let mut template = deployment["spec"]["template"].take();
        let role = if scene == Scene::Free {
            self.anyhow(&name, budget, replicas, &labels, &mut template)
        } else {
            self.role(scene, &labels, &mut template)
        };
        if name == "csi-nfs-controller" && role.replicas > 1 && self.drained.iter().any(|node| role.place.contains(node)) {
            self.hard.extend([scenes::PORT, scenes::BLIND]);
        }
        if self.dice.chance(25) {
            deployment["spec"]["strategy"] = self.dice.pick(&[
                json!({"type": "Recreate"}),
                json!({"type": "RollingUpdate"}),
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
            ]);
        }
        // Its leader election is switched on by the number of replicas.
        if name == "node-feature-discovery-master" && role.replicas > 1 {
            template["spec"]["containers"][0]["args"] = json!(["-enable-leader-election", "-port=8080"]);
            self.objects.push(json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "nfd-master.nfd.kubernetes.io", "namespace": NAMESPACE,
                    "annotations": {"test.gpustack-ha/holder": format!("Deployment/{NAMESPACE}/{name}")}},
                "spec": {"holderIdentity": "{node}_5e0c0f3e-8a49-4b0e-9f0a-0d6a3c1f7b52", "leaseDurationSeconds": 15, "leaseTransitions": 1}}));
        }
        deployment["spec"]["template"] = template;
        deployment["spec"]["replicas"] = json!(role.replicas);
        self.objects.push(deployment);
        self.place.insert(format!("Deployment/{NAMESPACE}/{name}"), role.place);
        let budget = if budget.is_empty() { &name } else { budget };
        self.budgets(NAMESPACE, budget, &labels, role.budgets);
    }

    /// A component that the scene is not about.
    fn anyhow(&mut self, name: &str, budget: &str, replicas: &[usize], labels: &Value, template: &mut Value) -> Role {
        let replicas = self.dice.pick(replicas);
        let mut place: Vec<String> = (0..replicas).map(|index| self.names[index % self.names.len()].clone()).collect();
        if self.dice.chance(35) {
            place = (0..replicas).map(|_| self.near()).collect();
        }
        // The scheduler finds places for some of them, but a lease needs a holder.
        if self.dice.chance(20) {
            place.truncate(1);
        }
        // The chart has no key for a spread of these.
        if !name.starts_with("csi-s3") && self.dice.chance(45) {
            let key = self
                .dice
                .pick(&["kubernetes.io/hostname", "kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
            template["spec"]["topologySpreadConstraints"] = json!([self.spread(name, labels, key)]);
        }
        if self.dice.chance(4) {
            template["metadata"]["annotations"]["test.gpustack-ha/never-ready"] = json!("true");
        }
        if self.dice.chance(12) {
            // What older charts gave.
            template["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
        }
        let likely = if replicas > 1 { 35 } else { 8 };
        let budgets = if !budget.is_empty() && self.dice.chance(likely) {
            vec![self.dice.pick(&[
                json!({"minAvailable": 1}),
                json!({"minAvailable": 1}),
                json!({"minAvailable": 2}),
                json!({"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
                json!({"maxUnavailable": 1}),
                json!({"minAvailable": "50%"}),
            ])]
        } else {
            Vec::new()
        };
        Role { replicas, place, budgets }
    }
}
