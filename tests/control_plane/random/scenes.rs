//! The hard thing that a state is made around.

use serde_json::{Value, json};

use super::Maker;

/// The drain cannot finish, whatever chance adds.
pub const UNFINISHED: &str = "cannot finish";
/// A process on the host's network binds a port that its pod does not declare.
pub const PORT: &str = "undeclared port";
/// A hard spread whose replicas fill every node.
pub const SPREAD: &str = "hard spread without a spare node";
/// Pods with Kueue's finalizer, and nobody to remove it.
pub const FINALIZER: &str = "finalizer with the webhook down";
/// A budget that lets the next pod go only once a replacement is Ready.
pub const REFILL: &str = "budget refilled by a replacement";
/// Goes wrong where `kubectl drain --dry-run=server` sees nothing.
pub const BLIND: &str = "unseen by a dry run";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    Port,
    Spread,
    Finalizer,
    Refill,
    Blocked,
    Free,
}

/// Every scene as often as it should come.
pub const WEIGHED: [Scene; 50] = {
    let mut all = [Scene::Free; 50];
    let counts = [
        (Scene::Port, 8),
        (Scene::Spread, 8),
        (Scene::Finalizer, 8),
        (Scene::Refill, 7),
        (Scene::Blocked, 9),
    ];
    let (mut kind, mut next) = (0, 0);
    while kind < counts.len() {
        let mut more = counts[kind].1;
        while more > 0 {
            all[next] = counts[kind].0;
            next += 1;
            more -= 1;
        }
        kind += 1;
    }
    all
};

impl Scene {
    pub fn needs_another_node(self) -> bool {
        matches!(self, Self::Port | Self::Spread | Self::Refill)
    }
}

/// What a scene demands of the workload that it is about.
pub struct Role {
    pub replicas: usize,
    pub place: Vec<String>,
    /// Budgets over the workload's own labels, without their selectors.
    pub budgets: Vec<Value>,
}

/// A template's node selector for one node alone.
fn pin(template: &mut Value, node: &str) {
    template["spec"]["nodeSelector"]["kubernetes.io/hostname"] = json!(node);
}

impl Maker {
    /// Makes the scene, in the chart's components if the state holds the chart, else in a workload of its own.
    pub(super) fn scene(&mut self, scene: Scene) {
        if self.chart {
            self.install(scene);
        } else if matches!(scene, Scene::Finalizer) {
            self.kueue(true);
        } else if !matches!(scene, Scene::Free) {
            self.own_scene(scene);
        }
        if scene == Scene::Finalizer {
            for index in 0..=self.dice.below(2) {
                let node = self.drained[0].clone();
                self.queued(&format!("model-{index}"), node);
            }
        }
    }

    fn own_scene(&mut self, scene: Scene) {
        if scene == Scene::Blocked && self.dice.chance(40) {
            return self.blocked_otherwise();
        }
        let namespace = self.dice.pick(&super::NAMESPACES);
        let labels = json!({"app": "main", "team": self.dice.pick(&["red", "blue"])});
        let mut template = if scene == Scene::Port {
            self.storage_template("app", &labels, false)
        } else {
            let port = 8000 + u16::try_from(self.dice.below(2)).unwrap_or_default();
            self.template(namespace, "main", &labels, port)
        };
        // Chance must not keep the pods from where the scene needs them.
        for field in ["nodeSelector", "affinity", "topologySpreadConstraints"] {
            template["spec"].as_object_mut().map(|spec| spec.remove(field));
        }
        let role = self.role(scene, &labels, &mut template);
        let kind = self.dice.pick(&["Deployment", "Deployment", "StatefulSet"]);
        self.act(kind, namespace, "main", &labels, template, role);
    }

    /// Writes down a workload as its role demands.
    pub(super) fn act(&mut self, kind: &str, namespace: &str, name: &str, labels: &Value, template: Value, role: Role) {
        let mut spec = json!({"replicas": role.replicas, "selector": {"matchLabels": labels}, "template": template});
        if kind == "StatefulSet" {
            spec["serviceName"] = json!(name);
            spec["podManagementPolicy"] = json!("Parallel");
        }
        self.objects
            .push(json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}));
        *self.pods.entry(namespace.to_owned()).or_default() += role.replicas;
        self.place.insert(format!("{kind}/{namespace}/{name}"), role.place);
        self.budgets(namespace, name, labels, role.budgets);
    }

    pub(super) fn budgets(&mut self, namespace: &str, name: &str, labels: &Value, budgets: Vec<Value>) {
        for (index, mut budget) in budgets.into_iter().enumerate() {
            budget["selector"] = json!({"matchLabels": labels});
            let name = if index == 0 { name.to_owned() } else { format!("{name}-{index}") };
            self.objects.push(
                json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": namespace}, "spec": budget}),
            );
        }
    }

    /// The drained node first, then the others.
    fn round(&self, count: usize) -> Vec<String> {
        let drained = &self.drained[0];
        let others = self.names.iter().filter(|name| *name != drained);
        let all: Vec<&String> = [drained].into_iter().chain(others).collect();
        (0..count).map(|index| all[index % all.len()].clone()).collect()
    }

    /// Decides replicas, places and budgets of the workload that the scene is about, and changes its template.
    pub(super) fn role(&mut self, scene: Scene, labels: &Value, template: &mut Value) -> Role {
        let count = self.names.len();
        let mut role = Role {
            replicas: 1,
            place: self.round(1),
            budgets: Vec::new(),
        };
        match scene {
            Scene::Port => {
                // Most often one on every node, so that no place is free of them.
                role.replicas = self.dice.pick(&[1, 2, count, count, count]).min(count);
                role.place = self.round(role.replicas);
                self.hard.extend([PORT, BLIND]);
            }
            Scene::Spread => {
                role.replicas = count;
                role.place = self.round(count);
                let mut spread = json!({"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": labels}});
                if self.dice.chance(12) {
                    spread["nodeTaintsPolicy"] = json!("Honor");
                } else {
                    self.hard.extend([SPREAD, BLIND]);
                }
                if self.dice.chance(20) {
                    spread["minDomains"] = json!(self.dice.pick(&[2, 3, 5]));
                }
                template["spec"]["topologySpreadConstraints"] = json!([spread]);
                if count > 1 && self.dice.chance(50) {
                    role.budgets = vec![self.dice.pick(&[json!({"maxUnavailable": 1}), json!({"minAvailable": count - 1})])];
                }
            }
            Scene::Refill => {
                role.replicas = self.dice.pick(&[2, 2, 3, 3, 4]);
                let here = self.dice.pick(&[2, 2, role.replicas]);
                let mut place = vec![self.drained[0].clone(); here];
                place.extend(self.round(role.replicas - here + 1).into_iter().skip(1));
                role.place = place;
                role.budgets = vec![self.dice.pick(&[
                    json!({"maxUnavailable": 1}),
                    json!({"minAvailable": role.replicas - 1}),
                    json!({"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
                ])];
                self.hard.insert(REFILL);
                if self.dice.chance(35) {
                    // No replacement has a place to go: the second pod waits for ever.
                    pin(template, &self.drained[0].clone());
                    role.place = vec![self.drained[0].clone(); role.replicas];
                    self.hard.extend([UNFINISHED, BLIND]);
                }
            }
            Scene::Finalizer => {
                let drained = self.drained[0].clone();
                self.hard.insert(FINALIZER);
                self.hard.insert(BLIND);
                match self.dice.below(10) {
                    0..5 => pin(template, &drained),
                    5..8 => template["metadata"]["annotations"]["test.gpustack-ha/never-ready"] = json!("true"),
                    _ => {
                        // Kueue comes back elsewhere, if there is a place, and the pods are late.
                        self.hard.remove(FINALIZER);
                        self.hard.remove(BLIND);
                    }
                }
                if self.hard.contains(FINALIZER) {
                    self.hard.insert(UNFINISHED);
                }
            }
            Scene::Blocked => {
                role.replicas = self.dice.pick(&[1, 1, 2, 2, 3]);
                role.place = self.round(role.replicas);
                self.hard.insert(UNFINISHED);
                let never = self.dice.pick(&[
                    json!({"minAvailable": role.replicas}),
                    json!({"minAvailable": role.replicas}),
                    json!({"minAvailable": role.replicas + 1}),
                    json!({"minAvailable": "100%"}),
                    json!({"maxUnavailable": 0}),
                    json!({"maxUnavailable": "0%"}),
                ]);
                role.budgets = match self.dice.below(10) {
                    0..7 => vec![never],
                    7 => {
                        template["metadata"]["annotations"]["test.gpustack-ha/never-ready"] = json!("true");
                        vec![json!({"minAvailable": 1})]
                    }
                    _ => vec![json!({"maxUnavailable": 1}), json!({"maxUnavailable": "50%"})],
                };
            }
            Scene::Free => {}
        }
        role
    }

    /// A drain that kubectl ends, or that a pod holds up without any budget.
    fn blocked_otherwise(&mut self) {
        self.hard.insert(UNFINISHED);
        let labels = json!({"app": "main", "team": self.dice.pick(&["red", "blue"])});
        let namespace = self.dice.pick(&super::NAMESPACES);
        let drained = self.drained[0].clone();
        match self.dice.below(9) {
            0..3 => {
                let mut pod = self.template(namespace, "main", &labels, 8000);
                pod["metadata"]["name"] = json!("main");
                pod["metadata"]["namespace"] = json!(namespace);
                pod["apiVersion"] = json!("v1");
                pod["kind"] = json!("Pod");
                self.place.insert(format!("Pod/{namespace}/main"), vec![drained]);
                self.objects.push(pod);
                self.flags.insert("--force", false);
            }
            3..5 => {
                self.daemon_set("everywhere", json!([{"operator": "Exists"}]));
                self.flags.insert("--ignore-daemonsets", false);
            }
            kind => {
                let mut template = self.template(namespace, "main", &labels, 8000);
                if kind < 8 {
                    template["spec"]["volumes"] = json!([{"name": "scratch", "emptyDir": {}}]);
                    self.flags.insert("--delete-emptydir-data", false);
                } else {
                    template["metadata"]["finalizers"] = json!(["example.com/keep"]);
                }
                let role = Role {
                    replicas: 1,
                    place: vec![drained],
                    budgets: Vec::new(),
                };
                self.act("Deployment", namespace, "main", &labels, template, role);
            }
        }
    }
}
