//! Room on a node (`pkg/scheduler/framework/plugins/noderesources/fit.go`,
//! `k8s.io/component-helpers/resource/helpers.go` PodRequests).
//!
//! From 1.36 a device class may stand in for an extended resource that a node does not report; device classes are not
//! read, so such a node counts as having none.

use std::collections::BTreeMap;

use super::dynamic_resources::from_device_class;
use super::{Decision, NodeState};
use crate::cluster::objects::{Container, ContainerStatus, PodSpec, PodStatus, QuantityText, ResourceList};
use crate::kubernetes::quantity::Quantity;

/// Exact amounts by resource; `None` for one that does not parse.
type List<'a> = BTreeMap<&'a str, Option<Quantity>>;

/// Amounts as the scheduler adds them up: thousandths for `cpu`, whole units for the others; `None` for one that
/// cannot be told.
pub(super) type Amounts<'a> = BTreeMap<&'a str, Option<i128>>;

fn quantity(text: &QuantityText) -> Option<Quantity> {
    text.try_into().ok()
}

fn list(resources: &ResourceList) -> List<'_> {
    resources.iter().map(|(name, text)| (name.as_str(), quantity(text))).collect()
}

fn merge<'a>(list: &mut List<'a>, other: &List<'a>, combine: impl Fn(Quantity, Quantity) -> Quantity) {
    for (name, amount) in other {
        list.entry(name)
            .and_modify(|present| *present = present.zip(*amount).map(|(a, b)| combine(a, b)))
            .or_insert(*amount);
    }
}

/// Requests of a container, those that are not stated taken from its limits (`pkg/apis/core/v1/defaults.go`,
/// SetDefaults_Pod), and during a resize in place the largest of what is wanted, admitted and applied.
fn container_requests<'a>(container: &'a Container, statuses: &'a [ContainerStatus], infeasible: bool) -> List<'a> {
    let mut requests = list(&container.resources.requests);
    for (name, text) in &container.resources.limits {
        requests.entry(name).or_insert_with(|| quantity(text));
    }
    let status = statuses.iter().find(|status| status.name == container.name);
    if let Some((status, applied)) = status.and_then(|status| Some((status, status.resources.as_ref()?))) {
        if infeasible {
            requests.clear();
        }
        merge(&mut requests, &list(&applied.requests), Quantity::max);
        merge(&mut requests, &list(&status.allocated_resources), Quantity::max);
    }
    requests
}

/// What a pod reserves: the sum of its containers and restartable init containers, or the largest init container with
/// the restartable ones before it; pod-level requests replace that where set; overhead on top.
pub(super) fn pod_requests<'a>(spec: &'a PodSpec, status: Option<&'a PodStatus>) -> Amounts<'a> {
    let infeasible = status.is_some_and(|status| {
        let resize = status.conditions.iter().find(|condition| condition.kind == "PodResizePending");
        resize.is_some_and(|condition| condition.reason == "Infeasible")
    });
    let (statuses, init_statuses) = match status {
        Some(status) => (status.container_statuses.as_slice(), status.init_container_statuses.as_slice()),
        None => (&[][..], &[][..]),
    };
    let mut total = List::new();
    for container in &spec.containers {
        merge(&mut total, &container_requests(container, statuses, infeasible), Quantity::plus);
    }
    let mut sidecars = List::new();
    let mut largest = List::new();
    for container in &spec.init_containers {
        if container.restartable() {
            let requests = container_requests(container, init_statuses, infeasible);
            merge(&mut total, &requests, Quantity::plus);
            merge(&mut sidecars, &requests, Quantity::plus);
        } else {
            let mut requests = container_requests(container, &[], false);
            merge(&mut requests, &sidecars, Quantity::plus);
            merge(&mut largest, &requests, Quantity::max);
        }
    }
    merge(&mut total, &largest, Quantity::max);
    for (name, amount) in pod_level(spec, &total) {
        total.insert(name, amount);
    }
    merge(&mut total, &list(&spec.overhead), Quantity::plus);
    amounts(&total)
}

/// Pod-level requests; one that is not stated equals its limit, unless containers request the resource and it can be
/// overcommitted (`pkg/apis/core/v1/defaults.go`, defaultPodRequests).
fn pod_level<'a>(spec: &'a PodSpec, containers: &List<'a>) -> List<'a> {
    let huge = |name: &str| name.starts_with("hugepages-");
    let mut requests = list(&spec.resources.requests);
    for (name, text) in &spec.resources.limits {
        if huge(name) || !containers.contains_key(name.as_str()) {
            requests.entry(name).or_insert_with(|| quantity(text));
        }
    }
    requests.retain(|name, _| matches!(*name, "cpu" | "memory") || huge(name));
    requests
}

fn amounts<'a>(list: &List<'a>) -> Amounts<'a> {
    list.iter()
        .map(|(name, amount)| {
            (
                *name,
                amount.map(|amount| if *name == "cpu" { amount.milli() } else { amount.value() }),
            )
        })
        .collect()
}

/// What a node can take in sum.
pub(super) fn allocatable(resources: &ResourceList) -> Amounts<'_> {
    amounts(&list(resources))
}

/// Adds a pod's requests to a node's sum.
pub(super) fn add<'a>(sum: &mut Amounts<'a>, requests: &Amounts<'a>) {
    for (name, amount) in requests {
        sum.entry(name)
            .and_modify(|present| *present = present.zip(*amount).map(|(a, b)| a.saturating_add(b)))
            .or_insert(*amount);
    }
}

/// Whether the scheduler looks at a resource (`pkg/scheduler/util/utils.go`, IsScalarResourceName, and the three that
/// it knows by name).
fn counted(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage")
        || name.contains('/')
        || name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
}

/// The pod count and every requested resource must fit into what is allocatable; a request of 0 is not checked.
pub(super) fn filter(node: &NodeState<'_>, requests: &Amounts<'_>) -> Decision {
    let mut refused = Vec::new();
    let mut unknown = None;
    let pods = i128::try_from(node.entries.len()).unwrap_or(i128::MAX);
    match node.allocatable.get("pods") {
        Some(Some(most)) if pods.saturating_add(1) > *most => refused.push("Too many pods".to_owned()),
        Some(Some(_)) => {}
        Some(None) | None => {
            unknown = Some(format!(
                "how many pods node {} takes: its allocatable pods are not stated",
                node.name()
            ))
        }
    }
    for (name, wanted) in requests.iter().filter(|(name, _)| counted(name) && !from_device_class(name)) {
        let room = if node.allocatable.is_empty() {
            None
        } else {
            node.allocatable.get(name).copied().unwrap_or(Some(0))
        };
        let used = node.requested.get(name).copied().unwrap_or(Some(0));
        match (*wanted, room, used) {
            (Some(wanted), ..) if wanted <= 0 => {}
            (Some(wanted), Some(room), _) if wanted > room => refused.push(format!("Insufficient {name}")),
            (Some(wanted), Some(room), Some(used)) if wanted > room.saturating_sub(used) => refused.push(format!("Insufficient {name}")),
            (Some(_), Some(_), Some(_)) => {}
            _ => {
                unknown.get_or_insert_with(|| {
                    format!(
                        "whether node {} has room: a quantity of {name} is missing or cannot be read",
                        node.name()
                    )
                });
            }
        }
    }
    match unknown {
        _ if !refused.is_empty() => Decision::Refused(refused.join(", ")),
        Some(unknown) => Decision::Unknown(unknown),
        None => Decision::Fits,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, pod, said};
    use super::*;

    fn requests(spec: &str, status: &str) -> Vec<(String, Option<i128>)> {
        let pod = pod(&format!("{{spec: {{{spec}}}, status: {{{status}}}}}"));
        let status = (!status.is_empty()).then_some(&pod.status);
        pod_requests(&pod.spec, status)
            .into_iter()
            .map(|(name, amount)| (name.to_owned(), amount))
            .collect()
    }

    #[test]
    fn what_a_pod_reserves() {
        let side = "{name: s, restartPolicy: Always, resources: {requests: {cpu: 2}}}";
        let once = |cpu: &str| format!("{{name: o, resources: {{requests: {{cpu: {cpu}}}}}}}");
        let main = "containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b, resources: {limits: {cpu: 500m}, requests: {}}}]";
        let pod_level = |resources: &str| format!("resources: {{{resources}}}, {main}");
        for (spec, cpu) in [
            (main.to_owned(), 1500),
            (format!("{main}, initContainers: [{}]", once("1")), 1500),
            (format!("{main}, initContainers: [{}]", once("4")), 4000),
            (format!("{main}, initContainers: [{side}, {}]", once("3")), 5000),
            (format!("{main}, initContainers: [{}, {side}]", once("3")), 3500),
            (format!("{main}, initContainers: [{side}, {side}]"), 5500),
            (format!("{main}, overhead: {{cpu: 250m}}"), 1750),
            (pod_level("requests: {cpu: 4}"), 4000),
            (pod_level("requests: {cpu: 4}, limits: {cpu: 8}"), 4000),
            (pod_level("limits: {cpu: 8}"), 1500),
            (format!("overhead: {{cpu: 1}}, {}", pod_level("requests: {cpu: 1}")), 2000),
            ("resources: {limits: {cpu: 8}}, containers: [{name: a}]".to_owned(), 8000),
            (
                "containers: [{name: a, resources: {requests: {cpu: 0}, limits: {cpu: 1}}}]".to_owned(),
                0,
            ),
            ("containers: [{name: a, resources: {requests: {cpu: 0.0001}}}]".to_owned(), 1),
        ] {
            assert_eq!(requests(&spec, ""), [("cpu".to_owned(), Some(cpu))], "{spec}");
        }
    }

    #[test]
    fn a_resize_in_place_reserves_the_largest() {
        let spec = "containers: [{name: a, resources: {requests: {cpu: 2}}}]";
        for (status, cpu) in [
            (
                "containerStatuses: [{name: a, resources: {requests: {cpu: 3}}, allocatedResources: {cpu: 1}}]",
                3000,
            ),
            (
                "containerStatuses: [{name: a, resources: {requests: {cpu: 1}}, allocatedResources: {cpu: 4}}]",
                4000,
            ),
            (
                "containerStatuses: [{name: a, resources: {requests: {cpu: 1}}, allocatedResources: {cpu: 1}}]",
                2000,
            ),
            ("containerStatuses: [{name: b, resources: {requests: {cpu: 3}}}]", 2000),
            ("containerStatuses: [{name: a, allocatedResources: {cpu: 3}}]", 2000),
            (
                "conditions: [{type: PodResizePending, reason: Infeasible}], containerStatuses: [{name: a, resources: {requests: {cpu: 1}}, allocatedResources: {cpu: 1}}]",
                1000,
            ),
        ] {
            assert_eq!(requests(spec, status), [("cpu".to_owned(), Some(cpu))], "{status}");
        }
    }

    #[test]
    fn room() {
        let node = |allocatable: &str| {
            format!(
                "node a {{status: {{allocatable: {{{allocatable}}}}}}}\npod d/x @a {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1500m, memory: 1Gi, x/y: 1}}}}}}]}}}}"
            )
        };
        let usual = "cpu: 2, memory: 2Gi, pods: 2, x/y: 2";
        for (allocatable, wanted, expected) in [
            (usual, "cpu: 500m, memory: 1Gi, x/y: 1", "fits"),
            (usual, "cpu: 501m", "Insufficient cpu"),
            (usual, "cpu: 501m, memory: 1Gi, x/y: 2", "Insufficient cpu, Insufficient x/y"),
            (usual, "memory: 1073741825", "Insufficient memory"),
            (usual, "x/z: 1", "Insufficient x/z"),
            (usual, "ephemeral-storage: 1", "Insufficient ephemeral-storage"),
            (usual, "x/z: 0, hugepages-2Mi: 0, cpu: 0", "fits"),
            (usual, "hugepages-2Mi: 2Mi", "Insufficient hugepages-2Mi"),
            (usual, "storage: 5", "fits"),
            (
                usual,
                "cpu: lots",
                "? whether node a has room: a quantity of cpu is missing or cannot be read",
            ),
            (usual, "cpu: lots, memory: 3Gi", "Insufficient memory"),
            ("cpu: 1, memory: 8Gi, pods: 9", "cpu: 0", "fits"),
            ("cpu: 1, memory: 8Gi, pods: 9", "cpu: 1m", "Insufficient cpu"),
            ("cpu: 2, memory: 2Gi, pods: 1", "", "Too many pods"),
            ("cpu: 2, memory: 2Gi, pods: 1", "cpu: 1", "Too many pods, Insufficient cpu"),
            (
                "cpu: 2, memory: 2Gi",
                "",
                "? how many pods node a takes: its allocatable pods are not stated",
            ),
            (
                "cpu: much, pods: 5",
                "cpu: 1",
                "? whether node a has room: a quantity of cpu is missing or cannot be read",
            ),
        ] {
            let pod = format!("{{spec: {{containers: [{{name: c, resources: {{requests: {{{wanted}}}}}}}]}}}}");
            assert_eq!(said(&cluster(&node(allocatable)), &pod), [expected], "{allocatable} | {wanted}");
        }
    }
}
