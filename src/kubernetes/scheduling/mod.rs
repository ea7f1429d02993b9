//! Where a pod may land: the scheduler's filters, one file each (`pkg/scheduler/framework/plugins`, in the order of
//! `pkg/scheduler/apis/config/v1/default_plugins.go`).

mod dynamic_resources;
mod gates;
mod inter_pod_affinity;
pub mod load;
mod node_affinity;
mod node_name;
pub(crate) mod node_ports;
mod node_unschedulable;
mod resources_fit;
mod taint_toleration;
#[cfg(test)]
mod testing;
mod topology_spread;
mod volume_binding;
mod volume_limits;
mod volume_restrictions;
mod volume_zone;
mod volumes;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use crate::cluster::objects::{
    Affinity, Condition, ContainerStatus, LabelSelector, Node, NodeAffinity, Pod, PodSpec, PodStatus, ResourceList, SelectorOperator,
    SelectorRequirement, StringMap,
};
use crate::cluster::shared::Shared;
use crate::cluster::snapshot::{NotRead, Snapshot};

use self::dynamic_resources::DynamicResources;
use self::inter_pod_affinity::{InterPodAffinity, anti_affinity};
use self::node_ports::HostPort;
use self::resources_fit::Amounts;
use self::topology_spread::TopologySpread;
use self::volumes::PodVolumes;

pub use self::gates::{gated, grouped, other_scheduler};
pub use self::inter_pod_affinity::{wants_company, wants_to_be_near};
pub use self::volume_limits::driver;
pub use self::volumes::{SingleNode, refuses_volume, refuses_volume_in_use, single_node, storage_unread};

/// A pod on a node, as the filters see it. Finished pods are none.
#[derive(Clone, Copy, Debug)]
pub struct Occupant<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Pod name; empty for a replacement that has none yet.
    pub name: &'a str,
    /// Labels.
    pub labels: &'a StringMap,
    /// What it asks for.
    pub spec: &'a PodSpec,
    /// A terminating pod holds room, ports and anti-affinity, but spread does not count it.
    pub terminating: bool,
}

/// A pod to be placed: its owner's template, without a node.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Labels.
    pub labels: &'a StringMap,
    /// What it asks for.
    pub spec: &'a PodSpec,
}

/// What the filters say about a pod on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Every filter passes.
    Fits,
    /// A filter refuses, for certain; in the scheduler's own words.
    Refused(String),
    /// No filter refuses for certain, but something was not read or is not modelled; says what.
    Unknown(String),
}

/// The first refusal, else the first unknown, else it fits. Nothing after a refusal is evaluated.
fn first(decisions: impl Iterator<Item = Decision>) -> Decision {
    let mut result = Decision::Fits;
    for decision in decisions {
        match (&decision, &result) {
            (Decision::Refused(_), _) => return decision,
            (Decision::Unknown(_), Decision::Fits) => result = decision,
            _ => {}
        }
    }
    result
}

/// What a pod takes of its node; computed once per pod.
#[derive(Debug)]
struct Claims<'a> {
    requests: Amounts<'a>,
    ports: Vec<HostPort<'a>>,
}

impl<'a> Claims<'a> {
    fn new(spec: &'a PodSpec, status: Option<&'a PodStatus>) -> Self {
        Self {
            requests: resources_fit::pod_requests(spec, status),
            ports: node_ports::declared(spec),
        }
    }
}

/// Where in memory that is from which a pod's claims follow: pods that have it in common take the same.
type Ground = (*const PodSpec, [*const Vec<ContainerStatus>; 2], *const Vec<Condition>);

/// What pods take that ask for the same, computed once.
#[derive(Default)]
struct Known<'a> {
    claims: HashMap<Ground, Rc<Claims<'a>>>,
    allocatable: HashMap<*const ResourceList, Rc<Amounts<'a>>>,
    /// Index of each node by its name where that stands in pods.
    indexes: HashMap<*const String, Option<usize>>,
}

impl<'a> Known<'a> {
    fn claims(&mut self, pod: &'a Pod) -> Rc<Claims<'a>> {
        let status = &pod.status;
        let statuses = [&status.container_statuses, &status.init_container_statuses];
        let ground = (
            &raw const *pod.spec,
            statuses.map(|statuses| &raw const **statuses),
            &raw const *status.conditions,
        );
        let claims = || Rc::new(Claims::new(&pod.spec, Some(status)));
        self.claims.entry(ground).or_insert_with(claims).clone()
    }

    fn node(&mut self, node: &'a Node) -> NodeState<'a> {
        let allocatable = &*node.status.allocatable;
        let known = self.allocatable.entry(&raw const *allocatable);
        NodeState::with(
            node,
            known.or_insert_with(|| Rc::new(resources_fit::allocatable(allocatable))).clone(),
        )
    }
}

#[derive(Clone, Debug)]
struct Entry<'a> {
    occupant: Occupant<'a>,
    claims: Rc<Claims<'a>>,
}

impl<'a> Entry<'a> {
    fn new(occupant: Occupant<'a>) -> Self {
        Self {
            occupant,
            claims: Rc::new(Claims::new(occupant.spec, None)),
        }
    }

    fn is(&self, namespace: &str, name: &str) -> bool {
        self.occupant.namespace == namespace && self.occupant.name == name
    }
}

/// A node and the pods on it.
#[derive(Clone, Debug)]
pub struct NodeState<'a> {
    node: &'a Node,
    cordoned: bool,
    entries: Vec<Entry<'a>>,
    allocatable: Rc<Amounts<'a>>,
    requested: Amounts<'a>,
    /// Pods with required anti-affinity.
    shunning: usize,
}

impl<'a> NodeState<'a> {
    /// A node without pods, cordoned if its object says so.
    pub fn new(node: &'a Node) -> Self {
        Self::with(node, Rc::new(resources_fit::allocatable(&node.status.allocatable)))
    }

    fn with(node: &'a Node, allocatable: Rc<Amounts<'a>>) -> Self {
        Self {
            node,
            cordoned: node.spec.unschedulable,
            entries: Vec::new(),
            allocatable,
            requested: Amounts::new(),
            shunning: 0,
        }
    }

    /// The node.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.node.metadata.name
    }

    /// Whether it is cordoned, by its object or by [`NodeState::cordon`].
    pub fn cordoned(&self) -> bool {
        self.cordoned
    }

    /// The pods on it.
    pub fn occupants(&self) -> impl Iterator<Item = &Occupant<'a>> {
        self.entries.iter().map(|entry| &entry.occupant)
    }

    /// Whether a pod on it uses a claim; a terminating one still does.
    pub fn uses_claim(&self, namespace: &str, claim: &str) -> bool {
        let mut volumes = self
            .occupants()
            .filter(|occupant| occupant.namespace == namespace)
            .flat_map(|occupant| &occupant.spec.volumes);
        volumes.any(|volume| {
            volume
                .persistent_volume_claim
                .as_ref()
                .is_some_and(|source| source.claim_name == claim)
        })
    }

    /// What its pods request of a resource in sum: thousandths of `cpu`, whole units of the others; `None` where a
    /// quantity does not parse.
    pub fn requested(&self, resource: &str) -> Option<i128> {
        self.requested.get(resource).copied().unwrap_or(Some(0))
    }

    /// Puts a pod on it.
    pub fn add(&mut self, occupant: Occupant<'a>) {
        self.enter(Entry::new(occupant));
    }

    /// Puts a pod on it as it runs there.
    fn add_pod(&mut self, pod: &'a Pod, claims: Rc<Claims<'a>>) {
        let occupant = Occupant {
            namespace: &pod.metadata.namespace,
            name: &pod.metadata.name,
            labels: &pod.metadata.labels,
            spec: &pod.spec,
            terminating: pod.metadata.terminating(),
        };
        self.enter(Entry { occupant, claims });
    }

    fn enter(&mut self, entry: Entry<'a>) {
        resources_fit::add(&mut self.requested, &entry.claims.requests);
        self.shunning += usize::from(!anti_affinity(entry.occupant.spec).is_empty());
        self.entries.push(entry);
    }

    /// Takes a pod off it; `None` if it was not there.
    pub fn remove(&mut self, namespace: &str, name: &str) -> Option<Occupant<'a>> {
        let index = self.entries.iter().position(|entry| entry.is(namespace, name))?;
        let removed = self.entries.remove(index).occupant;
        self.requested.clear();
        for entry in &self.entries {
            resources_fit::add(&mut self.requested, &entry.claims.requests);
        }
        self.shunning -= usize::from(!anti_affinity(removed.spec).is_empty());
        Some(removed)
    }

    /// Marks a pod as terminating; false if it was not there.
    pub fn set_terminating(&mut self, namespace: &str, name: &str) -> bool {
        match self.entries.iter_mut().find(|entry| entry.is(namespace, name)) {
            Some(entry) => {
                entry.occupant.terminating = true;
                true
            }
            None => false,
        }
    }

    /// Cordons it.
    pub fn cordon(&mut self) {
        self.cordoned = true;
    }

    /// Uncordons it; the taint of the cordon goes too.
    pub fn uncordon(&mut self) {
        self.cordoned = false;
    }
}

/// What the filters that look at one node alone read of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Local {
    spec: PodSpec,
    requests: BTreeMap<String, Option<i128>>,
}

impl Local {
    /// What they read, and nothing else: so whatever they say follows from it.
    fn new(spec: &PodSpec, requests: &Amounts<'_>) -> Self {
        Self {
            spec: PodSpec {
                node_name: spec.node_name.clone(),
                node_selector: spec.node_selector.clone(),
                affinity: match spec.affinity.node_affinity == NodeAffinity::default() {
                    true => Shared::default(),
                    false => Shared::new(Affinity {
                        node_affinity: spec.affinity.node_affinity.clone(),
                        ..Affinity::default()
                    }),
                },
                tolerations: spec.tolerations.clone(),
                ..PodSpec::default()
            },
            requests: requests.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect(),
        }
    }
}

/// Pods that differ in what these filters read, of which the decisions are kept: they are as many as there are nodes.
const KEPT: usize = 32;

/// The nodes of the placement that was made first, with what they said: most nodes of those cloned from it are the same.
#[derive(Debug)]
struct First<'a> {
    nodes: Vec<Rc<NodeState<'a>>>,
    decisions: RefCell<HashMap<Local, Rc<Vec<Decision>>>>,
}

/// Which pods are on which nodes. Cheap to clone: nodes are shared until changed.
#[derive(Clone, Debug)]
pub struct Placement<'a> {
    snapshot: &'a Snapshot,
    nodes: Vec<Rc<NodeState<'a>>>,
    first: Rc<First<'a>>,
    /// Whether the scheduler may know tolerations that compare numbers.
    comparisons: bool,
}

impl<'a> Placement<'a> {
    /// The placement as read: the nodes, and the pods bound to them that are not finished.
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let mut known = Known::default();
        let mut nodes: Vec<_> = snapshot.nodes.seen().iter().map(|node| known.node(node)).collect();
        for pod in snapshot.pods.seen().iter().filter(|pod| !pod.finished()) {
            let place = known.indexes.entry(&raw const *pod.node_name);
            let index = place.or_insert_with(|| pod.node().and_then(|node| snapshot.nodes.position("", node)));
            if let Some(node) = index.and_then(|index| nodes.get_mut(index)) {
                node.add_pod(pod, known.claims(pod));
            }
        }
        let nodes: Vec<_> = nodes.into_iter().map(Rc::new).collect();
        Self {
            snapshot,
            first: Rc::new(First {
                nodes: nodes.clone(),
                decisions: RefCell::default(),
            }),
            nodes,
            comparisons: compares(snapshot),
        }
    }

    /// What it is a placement of.
    pub fn snapshot(&self) -> &'a Snapshot {
        self.snapshot
    }

    /// The nodes, in the snapshot's order (by name).
    pub fn nodes(&self) -> &[Rc<NodeState<'a>>] {
        &self.nodes
    }

    /// The index of a node in [`Placement::nodes`].
    pub fn index(&self, node: &str) -> Option<usize> {
        self.nodes.binary_search_by(|state| state.name().cmp(node)).ok()
    }

    /// Whether all nodes are known.
    ///
    /// # Errors
    /// What was not read.
    pub fn nodes_known(&self) -> Result<(), NotRead> {
        self.snapshot.nodes.all().map(|_| ())
    }

    /// Whether all pods are known.
    ///
    /// # Errors
    /// What was not read.
    pub fn pods_known(&self) -> Result<(), NotRead> {
        self.snapshot.pods.all().map(|_| ())
    }

    fn namespace_known(&self, namespace: &str) -> Result<(), NotRead> {
        self.snapshot.pods.in_namespace(namespace).map(|_| ())
    }

    fn change<T>(&mut self, node: usize, change: impl FnOnce(&mut NodeState<'a>) -> T) -> Option<T> {
        self.nodes.get_mut(node).map(|state| change(Rc::make_mut(state)))
    }

    /// Puts a pod on a node.
    pub fn bind(&mut self, node: usize, occupant: Occupant<'a>) {
        self.change(node, |state| state.add(occupant));
    }

    /// Takes a pod off a node, as when its object is gone; `None` if it was not there.
    pub fn remove(&mut self, node: usize, namespace: &str, name: &str) -> Option<Occupant<'a>> {
        self.change(node, |state| state.remove(namespace, name)).flatten()
    }

    /// Marks a pod as terminating, as when its eviction was accepted; false if it was not there.
    pub fn terminate(&mut self, node: usize, namespace: &str, name: &str) -> bool {
        self.change(node, |state| state.set_terminating(namespace, name)).unwrap_or(false)
    }

    /// Cordons a node.
    pub fn cordon(&mut self, node: usize) {
        self.change(node, NodeState::cordon);
    }

    /// Uncordons a node.
    pub fn uncordon(&mut self, node: usize) {
        self.change(node, NodeState::uncordon);
    }
}

/// A selector with the values of a pod's own labels merged in, as at creation
/// (`pkg/registry/core/pod/strategy.go`, applyLabelKeysToLabelSelector).
///
/// A key that the selector already has is left: an existing pod's selector has been merged before, and the API server
/// refuses a new one with a key in both places.
fn merge_label_keys<'s>(
    selector: &'s LabelSelector,
    keys: &[String],
    operator: SelectorOperator,
    labels: &StringMap,
) -> Cow<'s, LabelSelector> {
    let mut merged = Cow::Borrowed(selector);
    for key in keys {
        if let Some(value) = labels.get(key)
            && !selector.match_expressions.iter().any(|present| &present.key == key)
        {
            let requirement = SelectorRequirement {
                key: key.clone(),
                operator,
                values: vec![value.clone()],
            };
            merged.to_mut().match_expressions.push(requirement);
        }
    }
    merged
}

/// What a hard spread constraint counts now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadCounts {
    /// Node label whose values are the domains.
    pub topology_key: String,
    /// Largest allowed difference between domains.
    pub max_skew: i64,
    /// 1 if the incoming pod matches the constraint's own selector, else 0.
    pub own: i64,
    /// The global minimum, 0 with fewer domains than `minDomains`.
    pub minimum: i64,
    /// Matching pods per domain, of those that were read.
    pub domains: BTreeMap<String, i64>,
}

/// What each hard spread constraint of a pod counts, in the order of the spec.
pub fn spread_counts(placement: &Placement<'_>, incoming: &Incoming<'_>) -> Vec<SpreadCounts> {
    TopologySpread::new(placement, incoming).counts()
}

/// Whether a node could take such a pod if it were empty and not cordoned: its taints, and what the pod says of its
/// node, decide. Taints of a passing condition (`node.kubernetes.io/…`) do not count.
pub fn suits(snapshot: &Snapshot, node: &Node, incoming: &Incoming<'_>) -> Decision {
    let mut lasting = Node {
        spec: node.spec.clone(),
        ..Node::default()
    };
    lasting.metadata.name.clone_from(&node.metadata.name);
    lasting.metadata.labels.clone_from(&node.metadata.labels);
    lasting.spec.unschedulable = false;
    lasting.spec.taints.retain(|taint| !taint.key.starts_with("node.kubernetes.io/"));
    let state = NodeState::new(&lasting);
    let filters: [&dyn Fn() -> Decision; 3] = [
        &|| node_name::filter(&state, incoming),
        &|| taint_toleration::filter(&state, incoming, compares(snapshot)),
        &|| node_affinity::filter(&state, incoming),
    ];
    first(filters.iter().map(|filter| filter()))
}

/// Whether the scheduler may know tolerations that compare numbers.
fn compares(snapshot: &Snapshot) -> bool {
    let minor = snapshot.server_version.as_ref().and_then(|version| version.minor());
    minor.is_none_or(|minor| minor > 36)
}

/// Where a pod may land: one decision per node, in the order of [`Placement::nodes`].
///
/// The first refusing filter in the scheduler's order gives the words. A certain refusal beats what is unknown. Gates
/// are not looked at: a gated pod is decided as if it had none ([`gated`]).
pub fn decide(placement: &Placement<'_>, incoming: &Incoming<'_>) -> Vec<Decision> {
    decide_for(placement, incoming, 0..placement.nodes.len())
}

/// Whether one node takes a pod, as [`decide`] says it.
pub fn decide_on(placement: &Placement<'_>, incoming: &Incoming<'_>, node: usize) -> Decision {
    decide_for(placement, incoming, node..node + 1).pop().unwrap_or(Decision::Fits)
}

type Filter<'f> = &'f dyn Fn(&NodeState<'_>) -> Decision;

fn decide_for(placement: &Placement<'_>, incoming: &Incoming<'_>, range: Range<usize>) -> Vec<Decision> {
    if let Some(scheduler) = other_scheduler(incoming.spec) {
        let decision = Decision::Unknown(format!("what scheduler {scheduler} decides"));
        return vec![decision; range.len()];
    }
    if grouped(incoming.spec) {
        let decision = Decision::Unknown("when the scheduler places its group of pods".to_owned());
        return vec![decision; range.len()];
    }
    let ports = node_ports::declared(incoming.spec);
    let requests = resources_fit::pod_requests(incoming.spec, None);
    let spread = TopologySpread::new(placement, incoming);
    let affinity = InterPodAffinity::new(placement, incoming);
    let volumes = PodVolumes::new(placement, incoming);
    let resources = DynamicResources::new(placement, incoming);
    let all_pods = placement.pods_known();
    let local = Local::new(incoming.spec, &requests);
    let alone = |node: &NodeState<'_>| decide_alone(placement, &local, &ports, &all_pods, node);
    // Ports are rare.
    let first = (range.len() > 1 && ports.is_empty()).then(|| placement.first.decisions(&local, &alone));
    let local = |index: usize| match &first {
        Some(first) if Rc::ptr_eq(&placement.nodes[index], &placement.first.nodes[index]) => first[index].clone(),
        _ => alone(&placement.nodes[index]),
    };
    // Where these refuse, the scheduler looks at no node.
    let before = self::first([resources.before(), volumes.before()].into_iter());
    if let Decision::Refused(_) = before {
        return vec![before; range.len()];
    }
    let filters: [(bool, Filter<'_>); 4] = [
        (volumes.passes_all(), &|node| volumes.filter(node)),
        (spread.passes_all(), &|node| spread.filter(node)),
        (affinity.passes_all(), &|node| affinity.filter(node)),
        (resources.passes_all(), &|node| resources.filter(node)),
    ];
    let filters: Vec<Filter<'_>> = filters
        .into_iter()
        .filter_map(|(passes, filter)| (!passes).then_some(filter))
        .collect();
    range
        .map(|index| {
            let others = filters.iter().map(|filter| filter(&placement.nodes[index]));
            self::first([before.clone(), local(index)].into_iter().chain(others))
        })
        .collect()
}

/// What the filters say that look at the node and its pods alone.
fn decide_alone(
    placement: &Placement<'_>,
    local: &Local,
    ports: &[HostPort<'_>],
    all_pods: &Result<(), NotRead>,
    node: &NodeState<'_>,
) -> Decision {
    let labels = StringMap::new();
    let incoming = &Incoming {
        namespace: "",
        labels: &labels,
        spec: &local.spec,
    };
    let requests: Amounts<'_> = local.requests.iter().map(|(name, amount)| (name.as_str(), *amount)).collect();
    let filters: [&dyn Fn() -> Decision; 7] = [
        &|| node_unschedulable::filter(node, incoming),
        &|| node_name::filter(node, incoming),
        &|| taint_toleration::filter(node, incoming, placement.comparisons),
        &|| node_affinity::filter(node, incoming),
        &|| node_ports::filter(node, ports),
        &|| resources_fit::filter(node, &requests),
        &|| match all_pods {
            Ok(()) => Decision::Fits,
            Err(_) => match placement.snapshot.pods.on_node(node.name()) {
                Ok(_) => Decision::Fits,
                Err(unread) => Decision::Unknown(format!("what the pods on node {} leave: {unread}", node.name())),
            },
        },
    ];
    first(filters.iter().map(|filter| filter()))
}

impl<'a> First<'a> {
    /// What these nodes say of pods that are alike in what is read of them.
    fn decisions(&self, local: &Local, decide: &dyn Fn(&NodeState<'a>) -> Decision) -> Rc<Vec<Decision>> {
        if let Some(known) = self.decisions.borrow().get(local) {
            return known.clone();
        }
        let decisions: Rc<Vec<Decision>> = Rc::new(self.nodes.iter().map(|node| decide(node)).collect());
        let mut known = self.decisions.borrow_mut();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(local.clone(), decisions.clone());
        decisions
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{cluster, incoming, partial, pod, said, said_of};
    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::cluster::snapshot::{Reason, Scope};

    const CLUSTER: &str = r#"
        node a
        node b {spec: {unschedulable: true}}
        pod d/one @a {spec: {containers: [{name: c, resources: {requests: {cpu: 3}}, ports: [{containerPort: 80, hostPort: 80}]}]}}
        pod d/done @a {status: {phase: Succeeded}, spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}
        pod d/pending {spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}
    "#;
    const SMALL: &str = "{spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}";
    const LARGE: &str = "{spec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}}";

    #[test]
    fn the_placement_changes_without_the_one_it_was_cloned_from() {
        let snapshot = cluster(CLUSTER);
        let before = Placement::new(&snapshot);
        let mut after = before.clone();
        assert_eq!(said_of(&before, LARGE), ["Insufficient cpu", "node(s) were unschedulable"]);
        assert!(after.terminate(0, "d", "one"));
        assert_eq!(said_of(&after, LARGE), ["Insufficient cpu", "node(s) were unschedulable"]);
        assert_eq!(after.remove(0, "d", "one").map(|pod| pod.terminating), Some(true));
        assert!(after.remove(0, "d", "one").is_none() && !after.terminate(0, "d", "one") && !after.terminate(9, "d", "one"));
        after.uncordon(1);
        assert_eq!(said_of(&after, LARGE), ["fits", "fits"]);
        after.cordon(0);
        let small = pod(SMALL);
        let Incoming { namespace, labels, spec } = incoming(&small);
        for _ in 0..3 {
            after.bind(
                1,
                Occupant {
                    namespace,
                    name: "",
                    labels,
                    spec,
                    terminating: false,
                },
            );
        }
        assert_eq!(said_of(&after, LARGE), ["node(s) were unschedulable", "Insufficient cpu"]);
        assert_eq!(said_of(&after, SMALL), ["node(s) were unschedulable", "fits"]);
        assert_eq!(after.nodes()[1].requested("cpu"), Some(3000));
        after.remove(1, "d", "");
        assert_eq!(after.nodes()[1].requested("cpu"), Some(2000));
        assert_eq!(said_of(&before, LARGE), ["Insufficient cpu", "node(s) were unschedulable"]);
        assert_eq!((before.index("b"), before.index("c")), (Some(1), None));
    }

    #[test]
    fn a_refusal_beats_what_is_unknown_and_the_first_one_gives_the_words() {
        let snapshot = cluster(CLUSTER);
        let claim =
            "{spec: {resourceClaims: [{name: r}], nodeSelector: {host: a}, containers: [{name: c, resources: {requests: {cpu: 2}}}]}}";
        assert_eq!(said(&snapshot, claim), ["Insufficient cpu", "node(s) were unschedulable"]);
        // What is refused before any node is looked at is refused of all.
        let claim = claim.replace("{name: r}", "{name: r, resourceClaimName: x}");
        assert_eq!(said(&snapshot, &claim), ["could not find ResourceClaim \"d/x\""; 2]);
        assert_eq!(
            said(
                &snapshot,
                "{spec: {nodeSelector: {host: c}, containers: [{name: c, resources: {requests: {cpu: 2}}}]}}"
            )[0],
            "node(s) didn't match Pod's node affinity/selector"
        );
        assert_eq!(
            said(&snapshot, "{spec: {nodeName: b, schedulerName: default-scheduler}}"),
            ["node(s) didn't match the requested node name", "node(s) were unschedulable"]
        );
    }

    #[test]
    fn another_scheduler_is_not_ours_to_know() {
        assert_eq!(
            said(&cluster(CLUSTER), "{spec: {schedulerName: volcano}}"),
            ["? what scheduler volcano decides"; 2]
        );
    }

    #[test]
    fn a_group_of_pods_is_placed_as_a_whole() {
        for group in ["schedulingGroup: {podGroupName: g}", "workloadRef: {name: w, podGroup: g}"] {
            assert_eq!(
                said(&cluster(CLUSTER), &format!("{{spec: {{{group}}}}}")),
                ["? when the scheduler places its group of pods"; 2]
            );
        }
    }

    #[test]
    fn most_volumes_are_everywhere() {
        for kind in [
            "hostPath: {path: /}",
            "emptyDir: {}",
            "configMap: {name: x}",
            "csi: {driver: x}",
            "persistentVolumeClaim: null",
            "azureDisk: {diskURI: x}",
        ] {
            let pod = format!("{{spec: {{volumes: [{{name: v, {kind}}}]}}}}");
            assert_eq!(said(&cluster("node a"), &pod), ["fits"], "{kind}");
        }
    }

    #[test]
    fn pods_that_were_not_read_make_everything_unknown_but_refusals() {
        let refused = NotRead {
            kind: Kind::Pod,
            scope: Scope::Cluster,
            reason: Reason::Forbidden,
        };
        let mut snapshot = partial(CLUSTER);
        snapshot.objects.cover(Kind::Node, Scope::Cluster, Ok(()));
        snapshot.objects.cover(Kind::Pod, Scope::Cluster, Err(refused));
        assert_eq!(said(&snapshot, LARGE), ["Insufficient cpu", "node(s) were unschedulable"]);
        assert_eq!(
            said(&snapshot, SMALL),
            [
                "? what the pods on node a leave: not allowed to list pods on node a",
                "node(s) were unschedulable"
            ]
        );
        snapshot.objects.cover(Kind::Pod, Scope::Node("a".to_owned()), Ok(()));
        assert_eq!(
            said(&snapshot, SMALL),
            ["? affinity between pods: not allowed to list pods", "node(s) were unschedulable"]
        );
    }

    #[test]
    fn gates_and_schedulers() {
        assert!(gated(&pod("{spec: {schedulingGates: [{name: x}]}}").spec));
        assert!(!gated(&PodSpec::default()));
        assert_eq!(other_scheduler(&pod("{spec: {schedulerName: ''}}").spec), None);
    }
}
