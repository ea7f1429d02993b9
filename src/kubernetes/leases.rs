//! Who holds a lease.
//!
//! What stands in `holderIdentity` is the program's own choice: most take the host name, which is the pod's name or,
//! with `hostNetwork`, the node's, and many add `_` and a UUID (`sigs.k8s.io/controller-runtime/pkg/leaderelection`,
//! `github.com/kubernetes-csi/csi-lib-utils/leaderelection`).

use std::collections::HashSet;

use crate::cluster::objects::{Lease, Node, Pod};
use crate::cluster::snapshot::{NotRead, Snapshot};

/// What the holder identity of a lease is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderForm {
    /// `<pod>_<uuid>`.
    PodAndUuid,
    /// The pod's name.
    Pod,
    /// `<node>_<uuid>`, of the node's name or host name.
    NodeAndUuid,
    /// The node's host name with everything but letters, digits and `-` replaced by `-`.
    SanitizedNode,
    /// Not known: whatever of the above fits, or a pod's address with a port; and only if one thing does.
    Unknown,
}

/// Who holds a lease.
#[derive(Clone, Debug)]
pub enum Holder<'a> {
    /// Nobody: it was released.
    Released,
    /// A pod.
    Pod(&'a Pod),
    /// A process on a node; the pod, where just one candidate runs there.
    Node(&'a str, Option<&'a Pod>),
    /// Nobody that was found; the reason.
    Unmatched(String),
    /// It depends on what was not read.
    Unknown(NotRead),
}

impl<'a> Holder<'a> {
    /// The node that the holder runs on, if it is known.
    pub fn node(&self) -> Option<&'a str> {
        match self {
            Self::Pod(pod) => pod.node(),
            Self::Node(node, _) => Some(node),
            _ => None,
        }
    }

    /// The pod that holds it, if it is known.
    pub fn pod(&self) -> Option<&'a Pod> {
        match self {
            Self::Pod(pod) => Some(pod),
            Self::Node(_, pod) => *pod,
            _ => None,
        }
    }
}

/// Who holds the lease, by pods of the lease's own namespace and by nodes. `candidate` tells the pods that take part in
/// its election; it is asked only to find the pod on a node that is known by name.
pub fn holder<'a>(snapshot: &'a Snapshot, lease: &Lease, form: HolderForm, candidate: &dyn Fn(&Pod) -> bool) -> Holder<'a> {
    let identity = lease.spec.holder_identity.as_str();
    let namespace = lease.metadata.namespace.as_str();
    if identity.is_empty() {
        return Holder::Released;
    }
    let before_uuid = before_uuid(identity);
    let found = match form {
        HolderForm::PodAndUuid => pods_named(snapshot, namespace, before_uuid),
        HolderForm::Pod => pods_named(snapshot, namespace, Some(identity)),
        HolderForm::NodeAndUuid => nodes_named(snapshot, before_uuid, |name, wanted| name.eq_ignore_ascii_case(wanted)),
        HolderForm::SanitizedNode => nodes_named(snapshot, Some(identity), sanitizes_to),
        HolderForm::Unknown => anything(snapshot, namespace, identity, before_uuid),
    };
    match found {
        Err(missing) => Holder::Unknown(missing),
        Ok(found) => match found.as_slice() {
            [] => Holder::Unmatched(format!("no pod or node fits the holder {identity:?}")),
            [Match::Pod(pod)] => Holder::Pod(pod),
            [Match::Node(node)] => Holder::Node(node, only_candidate(snapshot, lease, node, candidate)),
            _ => Holder::Unmatched(format!("more than one pod or node fits the holder {identity:?}")),
        },
    }
}

/// Something that an identity may name.
enum Match<'a> {
    Pod(&'a Pod),
    Node(&'a str),
}

fn pods_named<'a>(snapshot: &'a Snapshot, namespace: &str, name: Option<&str>) -> Result<Vec<Match<'a>>, NotRead> {
    let Some(name) = name else { return Ok(Vec::new()) };
    // A pod's name is its own proof: no other has it. A name that was cut to fit a host name can be shared.
    if let Some(pod) = snapshot.pods.find(namespace, name) {
        return Ok(vec![Match::Pod(pod)]);
    }
    let pods = snapshot.pods.in_namespace(namespace)?;
    Ok(pods
        .iter()
        .filter(|pod| host_name(&pod.metadata.name) == name)
        .map(Match::Pod)
        .collect())
}

/// The host name that the kubelet makes of a pod's name (`pkg/kubelet/kubelet_pods.go`, `truncatePodHostnameIfNeeded`).
fn host_name(name: &str) -> &str {
    name.get(..63).map_or(name, |cut| cut.trim_end_matches(['-', '.']))
}

fn nodes_named<'a>(snapshot: &'a Snapshot, wanted: Option<&str>, same: impl Fn(&str, &str) -> bool) -> Result<Vec<Match<'a>>, NotRead> {
    let Some(wanted) = wanted else { return Ok(Vec::new()) };
    match snapshot.nodes.all() {
        Ok(nodes) => Ok(nodes
            .iter()
            .filter(|node| names(node).any(|name| same(name, wanted)))
            .map(|node| Match::Node(&node.metadata.name))
            .collect()),
        // The pods name nodes too; what they do not name may still be one.
        Err(missing) => {
            let mut found: Vec<&str> = snapshot
                .pods
                .seen()
                .iter()
                .filter_map(Pod::node)
                .filter(|name| same(name, wanted))
                .collect();
            found.sort_unstable();
            found.dedup();
            if found.is_empty() {
                Err(missing)
            } else {
                Ok(found.into_iter().map(Match::Node).collect())
            }
        }
    }
}

/// What a process on the node may call it: the node's name and its host name.
fn names(node: &Node) -> impl Iterator<Item = &str> {
    let label = node.metadata.labels.get("kubernetes.io/hostname").map(String::as_str);
    let addresses = node
        .status
        .addresses
        .iter()
        .filter(|address| address.kind == "Hostname")
        .map(|address| address.address.as_str());
    std::iter::once(node.metadata.name.as_str()).chain(label).chain(addresses)
}

/// As `csi-lib-utils` writes a name into a lease (`leaderelection/leader_election.go`, `sanitizeName`; a trailing `-` gains an `X`).
pub fn sanitized(name: &str) -> String {
    let mut text: String = name
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
        .collect();
    if text.ends_with('-') {
        text.push('X');
    }
    text
}

/// Whether [`sanitized`] gives this text, but for the case of its letters.
fn sanitizes_to(name: &str, text: &str) -> bool {
    let mut left = text.chars();
    let mut last = None;
    for character in name.chars() {
        let character = if character.is_ascii_alphanumeric() { character } else { '-' };
        if !left.next().is_some_and(|other| other.eq_ignore_ascii_case(&character)) {
            return false;
        }
        last = Some(character);
    }
    let rest = left.as_str();
    rest.eq_ignore_ascii_case(if last == Some('-') { "X" } else { "" })
}

fn before_uuid(identity: &str) -> Option<&str> {
    identity.rsplit_once('_').map(|(name, _)| name).filter(|name| !name.is_empty())
}

fn address(identity: &str) -> Option<&str> {
    let (host, _) = identity.rsplit_once(':')?;
    Some(host.trim_matches(['[', ']'])).filter(|host| !host.is_empty())
}

/// What identities that name some pods, or the nodes of these, are made of, in lower case.
#[derive(Debug)]
pub struct Identities(HashSet<String>);

impl Identities {
    /// Those of the pods.
    pub fn new<'a>(snapshot: &Snapshot, pods: impl Iterator<Item = &'a Pod>) -> Self {
        let mut known = HashSet::new();
        for pod in pods {
            let name = pod.metadata.name.as_str();
            known.extend([name, host_name(name), &pod.status.pod_ip].map(str::to_ascii_lowercase));
            let Some(node) = pod.node() else { continue };
            let others = snapshot.nodes.find("", node).into_iter().flat_map(names);
            for name in std::iter::once(node).chain(others) {
                known.insert(name.to_ascii_lowercase());
                known.insert(sanitized(name).to_ascii_lowercase());
            }
        }
        Self(known)
    }

    /// Whether one of the pods may hold the lease. Where not, [`holder`] gives neither one of them nor a node of theirs.
    pub fn may_hold(&self, lease: &Lease) -> bool {
        let identity = lease.spec.holder_identity.to_ascii_lowercase();
        let parts = [Some(identity.as_str()), before_uuid(&identity), address(&identity)];
        parts.into_iter().flatten().any(|part| self.0.contains(part))
    }
}

fn anything<'a>(snapshot: &'a Snapshot, namespace: &str, identity: &str, before_uuid: Option<&str>) -> Result<Vec<Match<'a>>, NotRead> {
    let mut found: Vec<Match<'a>> = Vec::new();
    for name in [Some(identity), before_uuid] {
        found.extend(pods_named(snapshot, namespace, name)?);
    }
    if let Some(address) = address(identity) {
        let here = |pod: &&Pod| pod.status.pod_ip == address && !pod.finished() && !pod.spec.host_network;
        found.extend(snapshot.pods.in_namespace(namespace)?.iter().filter(here).map(Match::Pod));
    }
    for name in [Some(identity), before_uuid] {
        match nodes_named(snapshot, name, |name, wanted| {
            name.eq_ignore_ascii_case(wanted) || sanitizes_to(name, wanted)
        }) {
            Ok(nodes) => found.extend(nodes),
            // A pod that fits is enough where no node can be told; nothing that fits is not.
            Err(missing) if found.is_empty() => return Err(missing),
            Err(_) => {}
        }
    }
    Ok(found)
}

/// The candidates that run on the node: of the lease's namespace alone where only its pods were read, none where neither
/// those nor the node's were.
pub fn candidates<'a>(
    snapshot: &'a Snapshot,
    lease: &Lease,
    node: &'a str,
    candidate: &dyn Fn(&Pod) -> bool,
) -> impl Iterator<Item = &'a Pod> {
    let namespace = lease.metadata.namespace.as_str();
    let (all, own) = (snapshot.pods.on_node(node).is_ok(), snapshot.pods.in_namespace(namespace).is_ok());
    let counts = move |pod: &&Pod| all || own && pod.metadata.namespace == namespace;
    snapshot
        .pods
        .seen_on(node)
        .filter(counts)
        .filter(move |pod| !pod.finished() && candidate(pod))
}

/// The one candidate that runs on the node; `None` where there are several, none, or the pods were not read.
fn only_candidate<'a>(snapshot: &'a Snapshot, lease: &Lease, node: &'a str, candidate: &dyn Fn(&Pod) -> bool) -> Option<&'a Pod> {
    let mut pods = candidates(snapshot, lease, node, candidate);
    pods.next().filter(|_| pods.next().is_none())
}

/// Whether the lease has run out: nobody renewed it for longer than it lasts. `None` without a capture time or a renewal.
pub fn stale(snapshot: &Snapshot, lease: &Lease) -> Option<bool> {
    let age = age_seconds(snapshot, lease)?;
    Some(age > lease.spec.lease_duration_seconds)
}

/// Seconds since the last renewal, by the API server's clock; `None` without a capture time or a renewal.
pub fn age_seconds(snapshot: &Snapshot, lease: &Lease) -> Option<i64> {
    Some(snapshot.observed_at?.duration_since(lease.spec.renew_time.0?).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::kubernetes::testing::{snapshot, without};

    const CLUSTER: &str = "
{apiVersion: v1, kind: Node, metadata: {name: cp-1.example.org, labels: {kubernetes.io/hostname: cp-1}}}
---
{apiVersion: v1, kind: Node, metadata: {name: cp-2}}
---
{apiVersion: v1, kind: Pod, metadata: {name: kueue-controller-manager-6d5f-x7k2p, namespace: gpustack-system}, spec: {nodeName: cp-2}}
---
{apiVersion: v1, kind: Pod, metadata: {name: master-a, namespace: gpustack-system, labels: {role: master}}, spec: {nodeName: cp-1.example.org}}
---
{apiVersion: v1, kind: Pod, metadata: {name: master-b, namespace: gpustack-system, labels: {role: master}}, spec: {nodeName: cp-2}}
---
{apiVersion: v1, kind: Pod, metadata: {name: master-c, namespace: gpustack-system, labels: {role: master}}, spec: {nodeName: cp-2}}
---
{apiVersion: v1, kind: Pod, metadata: {name: cp-2, namespace: odd}, spec: {nodeName: cp-2}}
---
{apiVersion: v1, kind: Pod, metadata: {name: cache-leader-1, namespace: gpustack-system}, spec: {nodeName: cp-2}, status: {phase: Running, podIP: 10.1.2.3}}
";
    const UUID: &str = "0f6e2a1c-6b1f-4d0b-9b0a-3d5c1a2b3c4d";

    fn told(snapshot: &Snapshot, namespace: &str, identity: &str, form: HolderForm) -> String {
        let lease: Lease = serde_saphyr::from_str(&format!(
            "{{metadata: {{name: l, namespace: {namespace}}}, spec: {{holderIdentity: '{identity}'}}}}"
        ))
        .unwrap();
        let master = |pod: &Pod| pod.metadata.labels.get("role").is_some_and(|role| role == "master");
        match holder(snapshot, &lease, form, &master) {
            Holder::Released => "released".to_owned(),
            Holder::Pod(pod) => format!("pod {}", pod.metadata.name),
            Holder::Node(node, pod) => format!("node {node} {}", pod.map_or("-", |pod| &pod.metadata.name)),
            Holder::Unmatched(why) => why.split(" fits").next().unwrap().to_owned(),
            Holder::Unknown(missing) => format!("unknown {}", missing.kind),
        }
    }

    #[test]
    fn the_pods_of_the_namespace_tell_who_holds_by_its_node() {
        let mut cluster = without(&[Kind::Pod], CLUSTER);
        let scope = crate::cluster::snapshot::Scope::Namespace("gpustack-system".to_owned());
        cluster.objects.cover(Kind::Pod, scope, Ok(()));
        let told = told(&cluster, "gpustack-system", &format!("cp-1_{UUID}"), HolderForm::NodeAndUuid);
        assert_eq!(told, "node cp-1.example.org master-a");
    }

    #[test]
    fn known_forms() {
        let cluster = snapshot(CLUSTER);
        let told = |identity: &str, form| told(&cluster, "gpustack-system", identity, form);
        assert_eq!(told("", HolderForm::PodAndUuid), "released");
        assert_eq!(
            told(&format!("kueue-controller-manager-6d5f-x7k2p_{UUID}"), HolderForm::PodAndUuid),
            "pod kueue-controller-manager-6d5f-x7k2p"
        );
        assert_eq!(
            told("kueue-controller-manager-6d5f-x7k2p", HolderForm::PodAndUuid),
            "no pod or node"
        );
        assert_eq!(told("master-a", HolderForm::Pod), "pod master-a");
        assert_eq!(
            told(&format!("cp-1.example.org_{UUID}"), HolderForm::NodeAndUuid),
            "node cp-1.example.org master-a"
        );
        assert_eq!(told(&format!("cp-2_{UUID}"), HolderForm::NodeAndUuid), "node cp-2 -");
        assert_eq!(
            told("cp-1-example-org", HolderForm::SanitizedNode),
            "node cp-1.example.org master-a"
        );
        assert_eq!(told("cp-1", HolderForm::SanitizedNode), "node cp-1.example.org master-a");
        assert_eq!(told("cp-9", HolderForm::SanitizedNode), "no pod or node");
    }

    #[test]
    fn unknown_forms_are_never_guessed() {
        let cluster = snapshot(CLUSTER);
        let told = |namespace: &str, identity: &str| told(&cluster, namespace, identity, HolderForm::Unknown);
        assert_eq!(told("gpustack-system", &format!("master-a_{UUID}")), "pod master-a");
        assert_eq!(told("gpustack-system", "master-a"), "pod master-a");
        assert_eq!(told("kube-system", &format!("cp-2_{UUID}")), "node cp-2 -");
        assert_eq!(told("kube-node-lease", "cp-1.example.org"), "node cp-1.example.org master-a");
        assert_eq!(told("gpustack-system", "10.1.2.3:50051"), "pod cache-leader-1");
        assert_eq!(told("odd", "cp-2"), "more than one pod or node");
        assert_eq!(told("kube-system", &format!("apiserver-abc_{UUID}")), "no pod or node");
    }

    #[test]
    fn a_long_pod_name_is_cut() {
        let name = format!("{}-0", "s".repeat(70));
        let cluster = snapshot(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: n}}, spec: {{nodeName: a}}}}"
        ));
        assert_eq!(told(&cluster, "n", &"s".repeat(63), HolderForm::Pod), format!("pod {name}"));
    }

    #[test]
    fn sanitized_nodes_may_collide() {
        let cluster =
            snapshot("{apiVersion: v1, kind: Node, metadata: {name: a.b}}\n---\n{apiVersion: v1, kind: Node, metadata: {name: a-b}}");
        assert_eq!(told(&cluster, "n", "a-b", HolderForm::SanitizedNode), "more than one pod or node");
    }

    #[test]
    fn what_was_not_read() {
        let unread = without(&[Kind::Pod, Kind::Node], "");
        assert_eq!(told(&unread, "n", "p_u", HolderForm::PodAndUuid), "unknown pods");
        assert_eq!(told(&unread, "n", "p_u", HolderForm::NodeAndUuid), "unknown nodes");
        assert_eq!(told(&unread, "n", "p_u", HolderForm::Unknown), "unknown pods");
        let nodes_unread = without(
            &[Kind::Node],
            "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: n}, spec: {nodeName: cp-1}}",
        );
        assert_eq!(told(&nodes_unread, "n", "cp-1_u", HolderForm::NodeAndUuid), "node cp-1 -");
        assert_eq!(told(&nodes_unread, "n", "cp-2_u", HolderForm::NodeAndUuid), "unknown nodes");
        assert_eq!(told(&nodes_unread, "n", "p_u", HolderForm::Unknown), "pod p");
        assert_eq!(told(&nodes_unread, "n", "q_u", HolderForm::Unknown), "unknown nodes");
    }

    #[test]
    fn staleness_needs_a_clock() {
        let mut cluster = Snapshot::default();
        let lease: Lease =
            serde_saphyr::from_str("{spec: {holderIdentity: a, leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z'}}")
                .unwrap();
        assert_eq!(stale(&cluster, &lease), None);
        cluster.observed_at = Some("2026-01-01T00:00:15Z".parse().unwrap());
        assert_eq!((age_seconds(&cluster, &lease), stale(&cluster, &lease)), (Some(15), Some(false)));
        cluster.observed_at = Some("2026-01-01T00:00:16Z".parse().unwrap());
        assert_eq!(stale(&cluster, &lease), Some(true));
    }

    #[test]
    fn a_node_may_have_a_host_name_among_its_addresses() {
        let cluster = snapshot(
            "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {addresses: [{type: Hostname, address: host-a}, {type: InternalIP, address: 10.0.0.1}]}}",
        );
        assert_eq!(told(&cluster, "n", "host-a_u", HolderForm::NodeAndUuid), "node a -");
        assert_eq!(told(&cluster, "n", "10.0.0.1_u", HolderForm::NodeAndUuid), "no pod or node");
    }

    #[test]
    fn where_a_holder_runs() {
        let pod: Pod = serde_saphyr::from_str("{metadata: {name: p}, spec: {nodeName: a}}").unwrap();
        let named = |holder: &Holder<'_>| (holder.node().map(str::to_owned), holder.pod().map(|pod| pod.metadata.name.clone()));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(named(&Holder::Pod(&pod)), (some("a"), some("p")));
        assert_eq!(named(&Holder::Node("b", Some(&pod))), (some("b"), some("p")));
        assert_eq!(named(&Holder::Node("b", None)), (some("b"), None));
        assert_eq!(named(&Holder::Released), (None, None));
    }
}
