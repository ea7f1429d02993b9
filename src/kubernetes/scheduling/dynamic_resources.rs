//! Dynamic resources (`pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go`): where a claim that has
//! its devices can be used. Which devices are free is not modelled, so where a claim gets some cannot be decided.

use super::{Decision, Incoming, NodeState, Placement, first};
use crate::cluster::objects::{NodeSelector, PodSpec, ResourceClaim};
use crate::cluster::snapshot::Snapshot;
use crate::kubernetes::selectors::matches_node;

/// Prefix of an extended resource that names a device class (`k8s.io/api/resource/v1/types.go`,
/// ResourceDeviceClassPrefix).
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

const NOT_MODELLED: &str = "which devices are free is not modelled";

/// Whether a resource comes from a device class rather than from what a node reports.
pub(super) fn from_device_class(resource: &str) -> bool {
    resource.starts_with(DEVICE_CLASS)
}

fn requests_device_class(spec: &PodSpec) -> bool {
    let containers = spec.containers.iter().chain(&spec.init_containers);
    containers
        .flat_map(|container| container.resources.requests.keys().chain(container.resources.limits.keys()))
        .any(|name| from_device_class(name))
}

/// The dynamic resource claims of a pod that is to be placed.
pub(super) struct DynamicResources<'a> {
    /// What is said before a node is looked at.
    before: Decision,
    /// Nodes on which the devices of its claims can be used.
    selectors: Vec<&'a NodeSelector>,
}

impl<'a> DynamicResources<'a> {
    pub(super) fn new(placement: &Placement<'a>, incoming: &Incoming<'a>) -> Self {
        let mut selectors = Vec::new();
        let mut said = Vec::new();
        for claim in &incoming.spec.resource_claims {
            let Some(name) = &claim.resource_claim_name else {
                said.push(Decision::Unknown(format!(
                    "where a new resource claim {} is allocated: {NOT_MODELLED}",
                    claim.name
                )));
                continue;
            };
            said.push(match placement.snapshot.resource_claims.get(incoming.namespace, name) {
                Err(missing) => Decision::Unknown(format!("where resource claim {name} can be used: {missing}")),
                Ok(None) => Decision::Refused(format!("could not find ResourceClaim \"{}/{name}\"", incoming.namespace)),
                Ok(Some(claim)) if claim.metadata.terminating() => Decision::Refused(format!("resourceclaim {name:?} is being deleted")),
                Ok(Some(claim)) => match &claim.status.allocation {
                    Some(allocation) if held(placement, claim) => {
                        selectors.extend(&allocation.node_selector);
                        Decision::Fits
                    }
                    _ => unallocated(placement.snapshot, claim),
                },
            });
        }
        if requests_device_class(incoming.spec) {
            said.push(Decision::Unknown(format!("where its device class is allocated: {NOT_MODELLED}")));
        }
        Self {
            before: first(said.into_iter()),
            selectors,
        }
    }

    /// What is said before a node is looked at, so of every node.
    pub(super) fn before(&self) -> Decision {
        self.before.clone()
    }

    /// Whether it passes every node.
    pub(super) fn passes_all(&self) -> bool {
        self.selectors.is_empty()
    }

    pub(super) fn filter(&self, node: &NodeState<'_>) -> Decision {
        if self.selectors.iter().all(|selector| matches_node(selector, node.node)) {
            Decision::Fits
        } else {
            Decision::Refused("resourceclaim not available on the node".to_owned())
        }
    }
}

/// Whether a claim keeps its devices: a pod that has a node uses it, or something other than pods does. Once the last
/// one is gone, they are taken away (`pkg/controller/resourceclaim/controller.go`, syncClaim).
fn held(placement: &Placement<'_>, claim: &ResourceClaim) -> bool {
    let meta = &claim.metadata;
    let uses = |spec: &PodSpec| {
        let names = spec.resource_claims.iter().map(|claim| &claim.resource_claim_name);
        names.flatten().any(|name| *name == meta.name)
    };
    let mut occupants = placement.nodes.iter().flat_map(|node| node.occupants());
    occupants.any(|occupant| occupant.namespace == meta.namespace && uses(occupant.spec))
        || claim.status.reserved_for.iter().any(|consumer| consumer.resource != "pods")
}

/// Every class must exist before devices are looked for.
fn unallocated(snapshot: &Snapshot, claim: &ResourceClaim) -> Decision {
    let requests = &claim.spec.devices.requests;
    if requests.is_empty() {
        return Decision::Fits;
    }
    let classes = requests.iter().flat_map(|request| {
        let whole = request
            .exactly
            .iter()
            .map(|exactly| (request.name.clone(), &exactly.device_class_name));
        let parts = request
            .first_available
            .iter()
            .map(|part| (format!("{}/{}", request.name, part.name), &part.device_class_name));
        whole.chain(parts).chain([(request.name.clone(), &request.device_class_name)])
    });
    let missing = classes
        .filter(|(_, class)| !class.is_empty())
        .map(|(request, class)| match snapshot.device_classes.get("", class) {
            Ok(Some(_)) => Decision::Fits,
            Ok(None) => Decision::Refused(format!("request {request}: device class {class} does not exist")),
            Err(missing) => Decision::Unknown(format!("whether device class {class} exists: {missing}")),
        });
    let free = Decision::Unknown(format!("where resource claim {} is allocated: {NOT_MODELLED}", claim.metadata.name));
    first(missing.chain([free]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, said, without};
    use crate::cluster::kinds::Kind;

    const POD: &str = "{spec: {resourceClaims: [{name: gpu, resourceClaimName: c}]}}";
    const ELSEWHERE: &str = "resourceclaim not available on the node";

    #[test]
    fn claims() {
        let on_b = "allocation: {nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [b]}]}]}}";
        let request = "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: k}}]}}";
        let user = "\npod d/1 @a {spec: {resourceClaims: [{name: x, resourceClaimName: c}]}}";
        let free = "? where resource claim c is allocated: which devices are free is not modelled";
        for (objects, expected) in [
            (String::new(), ["could not find ResourceClaim \"d/c\""; 2]),
            (
                format!("resourceclaim d/c {{metadata: {{deletionTimestamp: 2026-01-01T00:00:00Z}}, status: {{{on_b}}}}}"),
                ["resourceclaim \"c\" is being deleted"; 2],
            ),
            (
                format!("resourceclaim d/c {{{request}, status: {{{on_b}}}}}{user}"),
                [ELSEWHERE, "fits"],
            ),
            (
                format!("resourceclaim d/c {{{request}, status: {{allocation: {{}}}}}}{user}"),
                ["fits"; 2],
            ),
            (
                format!("resourceclaim d/c {{{request}, status: {{{on_b}, reservedFor: [{{resource: podgroups, name: g}}]}}}}"),
                [ELSEWHERE, "fits"],
            ),
            // Its last pod is gone: the devices are taken away.
            (
                format!(
                    "resourceclaim d/c {{{request}, status: {{{on_b}, reservedFor: [{{resource: pods, name: gone}}]}}}}\ndeviceclass k"
                ),
                [free; 2],
            ),
            (format!("resourceclaim d/c {{{request}}}\ndeviceclass k"), [free; 2]),
            (
                format!("resourceclaim d/c {{{request}}}\ndeviceclass l"),
                ["request r: device class k does not exist"; 2],
            ),
            (
                "resourceclaim d/c {spec: {devices: {requests: [{name: r, firstAvailable: [{name: s, deviceClassName: k}]}]}}}".to_owned(),
                ["request r/s: device class k does not exist"; 2],
            ),
            (
                "resourceclaim d/c {spec: {devices: {requests: [{name: r, deviceClassName: k}]}}}".to_owned(),
                ["request r: device class k does not exist"; 2],
            ),
            ("resourceclaim d/c".to_owned(), ["fits"; 2]),
        ] {
            assert_eq!(said(&cluster(&format!("node a\nnode b\n{objects}")), POD), expected, "{objects}");
        }
    }

    #[test]
    fn what_is_not_known() {
        assert_eq!(
            said(
                &cluster("node a"),
                "{spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]}}"
            ),
            ["? where a new resource claim gpu is allocated: which devices are free is not modelled"]
        );
        let class = "{spec: {containers: [{name: c, resources: {limits: {deviceclass.resource.kubernetes.io/gpu: 1}}}]}}";
        assert_eq!(
            said(&cluster("node a"), class),
            ["? where its device class is allocated: which devices are free is not modelled"]
        );
        assert_eq!(
            said(&without(&[Kind::ResourceClaim], "node a"), POD),
            ["? where resource claim c can be used: resourceclaims.resource.k8s.io in namespace d were not read"]
        );
        let claim = "node a\nresourceclaim d/c {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: k}}]}}}";
        assert_eq!(
            said(&without(&[Kind::DeviceClass], claim), POD),
            ["? whether device class k exists: deviceclasses.resource.k8s.io were not read"]
        );
        assert_eq!(said(&without(&[Kind::ResourceClaim, Kind::DeviceClass], "node a"), "{}"), ["fits"]);
    }
}
