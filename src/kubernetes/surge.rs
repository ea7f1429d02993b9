//! What the surge pods of a rollout run into (`pkg/controller/deployment/rolling.go`).
//!
//! A rollout first makes `maxSurge` pods more than are wanted, beside the old ones. Where these need a port of the node,
//! they find it taken by an old one, or by whatever else binds it there: a DaemonSet's pod, a static pod, a tenant's.
//! Where the old ones keep the new one from every node and none of them may go first, the rollout never gets on.

use crate::cluster::objects::{DaemonSet, Deployment, IntOrPercent, Pod, PodSpec};
use crate::cluster::snapshot::Snapshot;

use super::creation;
use super::host_ports::{self, BoundPort};
use super::preemption;
use super::scheduling::{self, Decision, Incoming, Occupant, Placement};
use super::workloads;

/// Label by which the pods of a Deployment's revisions differ.
const REVISION: &str = "pod-template-hash";

/// How a rollout of a Deployment begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Surge {
    /// Nothing is known to be in the way of its first pods, or an old pod goes before a new one comes.
    Free,
    /// A pod of it may go where its port is taken.
    Collides(Collision),
    /// No node takes its first pod while the old ones are there, and none of them goes before it is Ready: why, by node.
    Stalls(Vec<(String, String)>),
    /// What was not read, or cannot be decided, and would decide it.
    Unknown(String),
}

/// A surge pod and the ports that it finds taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// Whether it crash-loops, as the scheduler does not see the port; else it stays Pending.
    pub crashes: bool,
    /// Whether every node that it may go to has the port taken; else some.
    pub certain: bool,
    /// Who has the port on the nodes that it may go to, or would go to but for the port; by node and pod.
    pub taken: Vec<Taken>,
}

/// A port that a pod has on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    /// The node.
    pub node: String,
    /// Namespace of the pod that has it.
    pub namespace: String,
    /// Name of the pod that has it.
    pub pod: String,
    /// Whether that is a pod of the same Deployment; also another surge pod, which has no name yet.
    pub sibling: bool,
    /// The port, as that pod binds it.
    pub port: BoundPort,
}

/// Pods that a rollout may make beyond the wanted ones, and pods that it lets be missing (`pkg/controller/deployment/util`,
/// ResolveFenceposts). `None` where a share does not parse, or for `Recreate`.
pub fn fenceposts(deployment: &Deployment) -> Option<(i64, i64)> {
    let strategy = &deployment.spec.strategy;
    if !matches!(strategy.kind.as_str(), "" | "RollingUpdate") {
        return None;
    }
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let part = |share: &Option<IntOrPercent>, up: i64| match share {
        None => Some((25 * wanted + up).div_euclid(100)),
        Some(IntOrPercent::Int(number)) => Some(*number),
        Some(IntOrPercent::Text(text)) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            Some(percent.checked_mul(wanted)?.checked_add(up)?.div_euclid(100))
        }
    };
    match (
        part(&strategy.rolling_update.max_surge, 99)?,
        part(&strategy.rolling_update.max_unavailable, 0)?,
    ) {
        (0, 0) => Some((0, 1)),
        posts => Some(posts),
    }
}

/// What a rollout's surge pods would run into, with the pods where they are now, as `placement` has them, and no node
/// cordoned for it.
pub fn surge(snapshot: &Snapshot, placement: &Placement<'_>, deployment: &Deployment) -> Surge {
    let namespace = deployment.metadata.namespace.as_str();
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let Some((surge, unavailable)) = fenceposts(deployment).filter(|(surge, _)| *surge > 0 && wanted > 0) else {
        return Surge::Free;
    };
    let spec = creation::admitted(snapshot, namespace, &deployment.spec.template.spec);
    let mut labels = deployment.spec.template.metadata.labels.clone();
    labels.insert(REVISION.to_owned(), String::new());
    let pod = Incoming {
        namespace,
        labels: &labels,
        spec: &spec,
    };
    let mine = |pod: &&Pod| {
        let key = workloads::owner(snapshot, pod).key(namespace);
        key.is_some_and(|key| key.kind == "Deployment" && key.name == deployment.metadata.name)
    };
    let ports = host_ports::bound(&spec);
    if ports.is_empty() && unavailable > 0 {
        return Surge::Free;
    }
    let pods = snapshot.pods.seen_in(namespace).iter().filter(|pod| !pod.finished());
    let siblings: Vec<&Pod> = pods.filter(mine).collect();
    // Of a rollout that stands still already, its first pods are what is asked about.
    let more = siblings.len().saturating_sub(usize::try_from(wanted).unwrap_or(0));
    let first: Vec<&Pod> = siblings.iter().copied().filter(|pod| !pod.ready()).take(more).collect();
    if !ports.is_empty() {
        let placement = without(placement, &first);
        if let Err(missing) = placement.nodes_known().and_then(|()| placement.pods_known()) {
            return Surge::Unknown(format!("who has which port: {missing}"));
        }
        // Old pods make way at once, the one beside a new pod first (`pkg/controller/controller_utils.go`,
        // `ActivePodsWithRanks`): then only others' ports stay in the way.
        let placement = if unavailable > 0 {
            without(&placement, &siblings)
        } else {
            placement
        };
        let made = surge.saturating_add(unavailable).min(wanted);
        match collision(placement, &pod, &ports, &siblings, made) {
            Surge::Free => {}
            found => return found,
        }
    }
    if unavailable > 0 {
        return Surge::Free;
    }
    stall(placement, &deployment.spec.template.spec, &pod, &siblings, &first).map_or(Surge::Free, Surge::Stalls)
}

/// Why no node takes a new pod, where it is the old ones that keep it out. Pods of other namespaces and the pod's volumes and
/// devices do not count: they can keep it out as well, but that depends on more than is read for this.
fn stall(
    placement: &Placement<'_>,
    template: &PodSpec,
    pod: &Incoming<'_>,
    siblings: &[&Pod],
    first: &[&Pod],
) -> Option<Vec<(String, String)>> {
    let mut spec = template.clone();
    spec.volumes = Default::default();
    spec.resource_claims = Default::default();
    // What its class says, which the template only names.
    spec.priority = spec.priority.or_else(|| siblings.first()?.spec.priority);
    let pod = Incoming { spec: &spec, ..*pod };
    let mut own = without(placement, first);
    for node in 0..own.nodes().len() {
        let others: Vec<(String, String)> = own.nodes()[node]
            .occupants()
            .filter(|occupant| occupant.namespace != pod.namespace)
            .map(|occupant| (occupant.namespace.to_owned(), occupant.name.to_owned()))
            .collect();
        for (namespace, name) in others {
            own.remove(node, &namespace, &name);
        }
    }
    refused(&own, &pod).filter(|_| refused(&without(&own, siblings), &pod).is_none())
}

/// Whether the first new pod of a DaemonSet's update is bound to find its own port taken, as it is made beside an old one
/// on the same node (`pkg/controller/daemon/update.go`): `Some(true)` where it crash-loops, `Some(false)` where it stays
/// Pending, as the port is declared.
pub fn beside_itself(set: &DaemonSet) -> Option<bool> {
    let strategy = &set.spec.update_strategy;
    let surges = match &strategy.rolling_update.max_surge {
        None => false,
        Some(IntOrPercent::Int(number)) => *number > 0,
        Some(IntOrPercent::Text(share)) => share
            .strip_suffix('%')
            .and_then(|text| text.parse().ok())
            .is_some_and(|percent: i64| percent > 0),
    };
    let spec = &set.spec.template.spec;
    let rolls = matches!(strategy.kind.as_str(), "" | "RollingUpdate");
    (rolls && surges && !host_ports::bound(spec).is_empty()).then(|| scheduling::node_ports::declared(spec).is_empty())
}

/// The placement without these pods.
fn without<'a>(placement: &Placement<'a>, pods: &[&Pod]) -> Placement<'a> {
    let mut placement = placement.clone();
    for pod in pods {
        if let Some(node) = pod.node().and_then(|node| placement.index(node)) {
            placement.remove(node, &pod.metadata.namespace, &pod.metadata.name);
        }
    }
    placement
}

/// Why each node refuses the pod; `None` where one may take it, or pods of a lower priority may give way to it.
fn refused(placement: &Placement<'_>, pod: &Incoming<'_>) -> Option<Vec<(String, String)>> {
    let decisions = scheduling::decide(placement, pod);
    if preemption::may_preempt(pod.spec) && !preemption::hopeful(placement, &decisions, preemption::priority(pod.spec)).is_empty() {
        return None;
    }
    let nodes = placement.nodes().iter().map(|node| node.name().to_owned());
    nodes
        .zip(decisions)
        .map(|(node, decision)| match decision {
            Decision::Refused(why) => Some((node, why)),
            Decision::Fits | Decision::Unknown(_) => None,
        })
        .collect()
}

/// Whether one of the first pods finds its ports taken.
fn collision<'a>(mut placement: Placement<'a>, pod: &Incoming<'a>, ports: &[BoundPort], siblings: &[&Pod], made: i64) -> Surge {
    let mut unseen = pod.spec.clone();
    for container in unseen.containers.iter_mut().chain(unseen.init_containers.iter_mut()) {
        container.ports.clear();
    }
    let is_sibling = |name: &str| name.is_empty() || siblings.iter().any(|pod| pod.metadata.name == name);
    for turn in 0..made {
        match next(&placement, pod, &unseen, ports, &is_sibling) {
            // Only of the first one it is known who is there.
            Step::Collides(collision) => {
                return Surge::Collides(Collision {
                    certain: collision.certain && turn == 0,
                    ..collision
                });
            }
            Step::Unknown(why) => return Surge::Unknown(why),
            Step::Nowhere => return Surge::Free,
            Step::Goes(node) => placement.bind(node, surge_pod(pod)),
        }
    }
    Surge::Free
}

/// What the next surge pod does.
enum Step {
    Collides(Collision),
    Unknown(String),
    /// It stays Pending, and not for a port.
    Nowhere,
    /// All nodes that it may go to have its ports free; this is one of them.
    Goes(usize),
}

fn next(placement: &Placement<'_>, pod: &Incoming<'_>, unseen: &PodSpec, ports: &[BoundPort], is_sibling: &dyn Fn(&str) -> bool) -> Step {
    let decisions = scheduling::decide(placement, pod);
    let fits = |decisions: &[Decision]| -> Vec<usize> { (0..decisions.len()).filter(|node| decisions[*node] == Decision::Fits).collect() };
    let open = fits(&decisions);
    let taken = |nodes: &[usize]| -> Vec<Taken> {
        let mut taken: Vec<Taken> = nodes
            .iter()
            .flat_map(|node| taken_on(placement, *node, pod.namespace, ports, is_sibling))
            .collect();
        taken.sort();
        taken
    };
    let crowded = open.iter().filter(|node| !taken(&[**node]).is_empty()).count();
    if crowded > 0 {
        return Step::Collides(Collision {
            crashes: true,
            certain: crowded == open.len() && decisions.iter().all(|decision| !matches!(decision, Decision::Unknown(_))),
            taken: taken(&open),
        });
    }
    if let Some(Decision::Unknown(why)) = decisions.iter().find(|decision| matches!(decision, Decision::Unknown(_))) {
        return Step::Unknown(why.clone());
    }
    if let Some(node) = open.first() {
        return Step::Goes(*node);
    }
    let but_for_ports = fits(&scheduling::decide(placement, &Incoming { spec: unseen, ..*pod }));
    if but_for_ports.is_empty() {
        return Step::Nowhere;
    }
    Step::Collides(Collision {
        crashes: false,
        certain: true,
        taken: taken(&but_for_ports),
    })
}

fn taken_on(placement: &Placement<'_>, node: usize, namespace: &str, ports: &[BoundPort], is_sibling: &dyn Fn(&str) -> bool) -> Vec<Taken> {
    let state = &placement.nodes()[node];
    let mut taken = Vec::new();
    for occupant in state.occupants().filter(|occupant| !occupant.terminating) {
        for port in host_ports::bound(occupant.spec) {
            if ports.iter().any(|wanted| host_ports::collide(wanted, &port)) {
                taken.push(Taken {
                    node: state.name().to_owned(),
                    namespace: occupant.namespace.to_owned(),
                    pod: occupant.name.to_owned(),
                    sibling: occupant.namespace == namespace && is_sibling(occupant.name),
                    port,
                });
            }
        }
    }
    taken
}

fn surge_pod<'a>(pod: &Incoming<'a>) -> Occupant<'a> {
    Occupant {
        namespace: pod.namespace,
        name: "",
        labels: pod.labels,
        spec: pod.spec,
        terminating: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::testing::{snapshot, without};

    const UNDECLARED: &str = "containers: [{name: c, args: [--http-endpoint=localhost:29652]}]";
    const DECLARED: &str = "containers: [{name: c, ports: [{containerPort: 29652}]}]";
    const SPREAD: &str = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: host, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]";

    /// A Deployment with a pod on each of the first nodes, and more objects.
    fn cluster(nodes: &[&str], replicas: usize, strategy: &str, spec: &str, more: &str) -> String {
        let spec = format!("{{hostNetwork: true, {spec}}}");
        let mut text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: x, namespace: d}}\nspec: {{replicas: {replicas}, strategy: {{{strategy}}}, template: {{metadata: {{labels: {{app: x}}}}, spec: {spec}}}}}\n---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{name: x-1, namespace: d, ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: x, controller: true}}]}}\n"
        );
        for node in nodes {
            text += &format!(
                "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {node}, labels: {{host: {node}}}}}\nstatus: {{allocatable: {{cpu: 4, memory: 8Gi, pods: 10}}}}\n"
            );
        }
        for (index, node) in nodes.iter().take(replicas).enumerate() {
            let spec = spec.replacen('{', &format!("{{nodeName: {node}, "), 1);
            text += &format!(
                "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: x-1-{index}, namespace: d, labels: {{app: x}}, ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: x-1, controller: true}}]}}\nspec: {spec}\n"
            );
        }
        text + more
    }

    /// `free`, `? why`, or how it collides, on how many nodes, and with whom.
    fn said(text: &str) -> String {
        let snapshot = snapshot(text);
        words(first(&snapshot))
    }

    fn first(snapshot: &Snapshot) -> Surge {
        surge(snapshot, &Placement::new(snapshot), &snapshot.deployments.seen()[0])
    }

    fn words(surge: Surge) -> String {
        match surge {
            Surge::Free => "free".to_owned(),
            Surge::Unknown(why) => format!("? {why}"),
            Surge::Stalls(refusals) => {
                let refusals = refusals.iter().map(|(node, why)| format!("{node} {why}"));
                format!("stalls: {}", refusals.collect::<Vec<_>>().join(", "))
            }
            Surge::Collides(collision) => format!(
                "{} {}: {}",
                if collision.certain { "surely" } else { "maybe" },
                if collision.crashes { "crashes" } else { "Pending" },
                collision
                    .taken
                    .iter()
                    .map(|taken| format!("{} {}{}", taken.node, taken.pod, if taken.sibling { "" } else { "!" }))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        }
    }

    #[test]
    fn two_replicas_on_two_nodes_leave_no_port_free() {
        for spec in [UNDECLARED.to_owned(), format!("{UNDECLARED}, {SPREAD}")] {
            assert_eq!(said(&cluster(&["a", "b"], 2, "", &spec, "")), "surely crashes: a x-1-0, b x-1-1");
        }
        assert_eq!(said(&cluster(&["a", "b"], 2, "", DECLARED, "")), "surely Pending: a x-1-0, b x-1-1");
    }

    #[test]
    fn a_third_node_helps_where_the_scheduler_must_take_it() {
        let three = |spec: &str| said(&cluster(&["a", "b", "c"], 2, "type: RollingUpdate", spec, ""));
        assert_eq!(three(UNDECLARED), "maybe crashes: a x-1-0, b x-1-1");
        assert_eq!(three(&format!("{UNDECLARED}, {SPREAD}")), "free");
        assert_eq!(three(DECLARED), "free");
        let by_revision = SPREAD.replace("maxSkew", "matchLabelKeys: [pod-template-hash], maxSkew");
        assert_eq!(three(&format!("{UNDECLARED}, {by_revision}")), "maybe crashes: a x-1-0, b x-1-1");
    }

    #[test]
    fn old_pods_make_way_where_some_may_be_missing() {
        let rolling = |surge: &str, unavailable: &str| format!("rollingUpdate: {{maxSurge: {surge}, maxUnavailable: {unavailable}}}");
        for strategy in ["type: Recreate".to_owned(), rolling("0", "1"), rolling("0%", "10%")] {
            assert_eq!(said(&cluster(&["a", "b"], 2, &strategy, UNDECLARED, "")), "free", "{strategy}");
        }
        // The first of them is free to go anywhere; the next one may go where it is.
        assert_eq!(
            said(&cluster(&["a", "b"], 2, &rolling("1", "1"), UNDECLARED, "")),
            "maybe crashes: a "
        );
        assert_eq!(said(&cluster(&["a", "b"], 2, &rolling("1", "1"), DECLARED, "")), "free");
        assert_eq!(said(&cluster(&["a"], 1, &rolling("1", "1"), UNDECLARED, "")), "free");
        assert_eq!(said(&cluster(&["a"], 1, "", UNDECLARED, "")), "surely crashes: a x-1-0");
        assert_eq!(said(&cluster(&["a", "b"], 0, "", UNDECLARED, "")), "free");
    }

    #[test]
    fn whatever_else_has_the_port_is_in_the_way() {
        for more in [
            "metadata: {name: other, namespace: e, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: o, controller: true}]}",
            "metadata: {name: other, namespace: e, annotations: {kubernetes.io/config.mirror: x}}",
            "metadata: {name: other, namespace: e}",
        ] {
            let pod = format!(
                "---\napiVersion: v1\nkind: Pod\n{more}\nspec: {{nodeName: c, hostNetwork: true, containers: [{{name: c, args: [--port, '29652']}}]}}\n"
            );
            let three = |spec: &str, strategy: &str| said(&cluster(&["a", "b", "c"], 2, strategy, spec, &pod));
            assert_eq!(three(&format!("{UNDECLARED}, {SPREAD}"), ""), "surely crashes: c other!", "{more}");
            assert_eq!(
                three(UNDECLARED, "rollingUpdate: {maxUnavailable: 1}"),
                "maybe crashes: c other!",
                "{more}"
            );
        }
    }

    #[test]
    fn what_needs_no_port_or_has_nowhere_to_go_does_not_collide() {
        assert_eq!(said(&cluster(&["a"], 1, "", "containers: [{name: c}]", "")), "free");
        let large = "containers: [{name: c, args: [--port=1], resources: {requests: {cpu: 5}}}]";
        assert_eq!(said(&cluster(&["a"], 1, "", large, "")), "free");
    }

    #[test]
    fn what_was_not_read_is_not_known() {
        let text = cluster(&["a", "b"], 2, "", UNDECLARED, "");
        let unread = without(&[crate::cluster::kinds::Kind::Pod], &text);
        assert!(words(first(&unread)).starts_with("? who has which port"));
        let other = cluster(&["a", "b"], 2, "", &format!("schedulerName: x, {UNDECLARED}"), "");
        assert_eq!(said(&other), "? what scheduler x decides");
    }

    #[test]
    fn a_rollout_that_waits_for_those_who_wait_for_it() {
        let apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: host, labelSelector: {matchLabels: {app: x}}}]}}";
        let said_of = |nodes: &[&str], strategy: &str, spec: &str, more: &str| {
            said(&cluster(nodes, 2, strategy, &format!("containers: [{{name: c}}], {spec}"), more))
        };
        let why = "node(s) didn't match pod anti-affinity rules";
        assert_eq!(said_of(&["a", "b"], "", apart, ""), format!("stalls: a {why}, b {why}"));
        assert_eq!(said_of(&["a", "b", "c"], "", apart, ""), "free");
        for strategy in [
            "type: Recreate",
            "rollingUpdate: {maxUnavailable: 1}",
            "rollingUpdate: {maxSurge: 0, maxUnavailable: 1}",
        ] {
            assert_eq!(said_of(&["a", "b"], strategy, apart, ""), "free");
        }
        // A hard spread finds no place only where a domain stays empty.
        assert_eq!(said_of(&["a", "b"], "", SPREAD, ""), "free");
        let empty =
            "---\napiVersion: v1\nkind: Node\nmetadata: {name: c, labels: {host: c}}\nspec: {taints: [{key: k, effect: NoSchedule}]}\n";
        let why = "node(s) didn't match pod topology spread constraints";
        assert_eq!(
            said_of(&["a", "b"], "", SPREAD, empty),
            format!("stalls: a {why}, b {why}, c node(s) had untolerated taint(s): k:NoSchedule")
        );
        for counts_less in ["nodeTaintsPolicy: Honor", "matchLabelKeys: [pod-template-hash]"] {
            let spread = SPREAD.replace("maxSkew", &format!("{counts_less}, maxSkew"));
            assert_eq!(said_of(&["a", "b"], "", &spread, empty), "free", "{counts_less}");
        }
        // So does room that only the old ones hold; what nothing of its own takes up is no matter of the rollout.
        let large = |cpu: &str| format!("containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]");
        assert_eq!(said(&cluster(&["a"], 1, "", &large("3"), "")), "stalls: a Insufficient cpu");
        assert_eq!(said(&cluster(&["a"], 1, "", &large("2"), "")), "free");
        assert_eq!(said(&cluster(&["a"], 1, "", &large("5"), "")), "free");
        let lesser = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: o, namespace: e}\nspec: {nodeName: a, priority: -1, containers: [{name: c, resources: {requests: {cpu: 2}}}]}\n";
        assert_eq!(said(&cluster(&["a"], 1, "", &large("2"), lesser)), "free");
        // Who else has it counts within the namespace, whose pods are always read.
        let equal = lesser.replace("-1", "0");
        assert_eq!(said(&cluster(&["a"], 1, "", &large("2"), &equal)), "free");
        assert_eq!(
            said(&cluster(&["a"], 1, "", &large("2"), &equal.replace("namespace: e", "namespace: d"))),
            "stalls: a Insufficient cpu"
        );
    }

    #[test]
    fn shares_round_as_the_controller_does() {
        let posts =
            |replicas: usize, strategy: &str| fenceposts(&snapshot(&cluster(&[], replicas, strategy, "", "")).deployments.seen()[0]);
        assert_eq!(posts(3, ""), Some((1, 0)));
        assert_eq!(posts(5, ""), Some((2, 1)));
        assert_eq!(posts(3, "rollingUpdate: {maxSurge: 100%, maxUnavailable: 50%}"), Some((3, 1)));
        assert_eq!(posts(3, "rollingUpdate: {maxSurge: 0, maxUnavailable: 10%}"), Some((0, 1)));
        assert_eq!(posts(3, "rollingUpdate: {maxSurge: x}"), None);
        assert_eq!(posts(3, "type: Recreate"), None);
    }
}
