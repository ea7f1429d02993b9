//! `placement`: the document, and how a person reads it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::document::Header;
use super::finding::{Finding, NotAssessed, Verdict};
use super::page::{Block, Page, Prose, Report};
use super::style::Tint;
use super::table::{Cell, Table};
use super::view;
use super::words::{NAMED, sentence, some_of};

/// What `placement` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Common fields.
    #[serde(flatten)]
    pub header: Header,
    /// Verdict.
    pub verdict: Verdict,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// Components, or with `--all` every workload but DaemonSets and Jobs.
    pub components: Vec<ComponentPlacement>,
    /// DaemonSets, which no drain moves.
    pub daemon_sets: Vec<DaemonSetCount>,
    /// The nodes that hold replicas.
    pub nodes: Vec<NodeState>,
    /// What was not assessed.
    pub not_assessed: Vec<NotAssessed>,
}

/// Where a component's replicas are, and what losing a node would take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentPlacement {
    /// Name of the workload.
    pub name: String,
    /// Kind of the workload.
    pub kind: String,
    /// Namespace of the workload.
    pub namespace: String,
    /// Replicas wanted; `null` where that is not known.
    pub desired: Option<i64>,
    /// Replicas that are Ready on a node that answers.
    pub ready: i64,
    /// Pods that lead, once each.
    pub leaders: Vec<String>,
    /// Nodes that leaders are on, once each; also where several replicas share one and nobody can tell which leads.
    pub leader_nodes: Vec<String>,
    /// Whether its replicas elect a leader, by their arguments; `null` for what is no component of GPUStack.
    pub elects: Option<bool>,
    /// How its elections stand.
    pub elections: Vec<ElectionState>,
    /// Replicas, by name.
    pub replicas: Vec<Replica>,
    /// What the API server calls and it answers: `webhook/NAME`, `apiservice/NAME`, `conversion/NAME`.
    pub serves: Vec<String>,
    /// Of that, what nobody answers now.
    pub unserved: Vec<String>,
    /// What the loss of each node with replicas would take.
    pub loss_of_node: Vec<LossOfNode>,
    /// What the loss of each zone with replicas would take.
    pub loss_of_zone: Vec<LossOfZone>,
}

/// How an election stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElectionState {
    /// Name of the lease.
    pub lease: String,
    /// What is led, such as `csi-provisioner`.
    pub of: String,
    /// Whether somebody leads.
    pub state: Leadership,
    /// Shortest and longest time without a leader after the leader's node is lost, in seconds; `null` where nobody leads, or
    /// nobody could take over.
    pub gap_after_loss: Option<[i64; 2]>,
}

/// Whether somebody leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leadership {
    /// A replica that runs holds the lease.
    Held,
    /// Its holder gave it up, and nobody has taken it yet.
    Released,
    /// Nobody renewed it for longer than it lasts.
    Stale,
    /// Who holds it does not run.
    HolderGone,
    /// There is no such lease.
    Missing,
    /// The replicas lock something else than a lease, which is not read.
    NoLease,
    /// What would tell was not read.
    Unknown,
}

impl Leadership {
    /// Why no replica is marked; `None` where one is.
    const fn why_unmarked(self) -> Option<&'static str> {
        match self {
            Self::Held => None,
            Self::Released => Some("the lease is released"),
            Self::Stale => Some("the lease ran out"),
            Self::HolderGone => Some("who holds the lease does not run"),
            Self::Missing => Some("there is no lease"),
            Self::NoLease => Some("not known, as it locks no lease"),
            Self::Unknown => Some("not known, as the lease or its holder was not read"),
        }
    }
}

/// What has become of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicaState {
    /// It is Ready, on a node that answers.
    Ready,
    /// It runs and is not Ready.
    NotReady,
    /// It waits for a node, or for its containers to start.
    Pending,
    /// A container ends again and again.
    CrashLoops,
    /// It is being deleted.
    Terminating,
}

impl ReplicaState {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NotReady => "not-ready",
            Self::Pending => "pending",
            Self::CrashLoops => "crash-loops",
            Self::Terminating => "terminating",
        }
    }

    /// What a replica in it does, for a sentence.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Ready => "is Ready",
            Self::NotReady => "is not Ready",
            Self::Pending => "is Pending",
            Self::CrashLoops => "crash-loops",
            Self::Terminating => "is terminating",
        }
    }

    const fn tint(self) -> Option<Tint> {
        match self {
            Self::Ready => None,
            Self::NotReady | Self::Pending | Self::Terminating => Some(Tint::Risk),
            Self::CrashLoops => Some(Tint::Bad),
        }
    }
}

/// A replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replica {
    /// Pod.
    pub pod: String,
    /// Node; `null` where it has none yet.
    pub node: Option<String>,
    /// Zone of the node; `null` where no label tells.
    pub zone: Option<String>,
    /// Region of the node; `null` where no label tells.
    pub region: Option<String>,
    /// State.
    pub state: ReplicaState,
    /// Why it is not Ready; `null` where it is, or nothing tells.
    pub reason: Option<String>,
    /// Names of the leases that it holds.
    pub leads: Vec<String>,
}

/// What the loss of a node would take of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LossOfNode {
    /// Node.
    pub node: String,
    /// Ready replicas elsewhere.
    pub left: i64,
    /// What the API server calls and nobody would answer: `webhook/NAME`, `apiservice/NAME`, `conversion/NAME`.
    pub unserved: Vec<String>,
}

/// What the loss of a zone would take of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LossOfZone {
    /// Zone.
    pub zone: String,
    /// Ready replicas elsewhere.
    pub left: i64,
    /// What the API server calls and nobody would answer: `webhook/NAME`, `apiservice/NAME`, `conversion/NAME`.
    pub unserved: Vec<String>,
}

/// A DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetCount {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Nodes that should run a pod.
    pub desired: i64,
    /// Nodes whose pod is Ready.
    pub ready: i64,
}

/// A node that holds replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    /// Name.
    pub name: String,
    /// Zone; `null` where no label tells.
    pub zone: Option<String>,
    /// Region; `null` where no label tells.
    pub region: Option<String>,
    /// Whether its kubelet answers; `null` where the node was not read.
    pub ready: Option<bool>,
    /// Whether it is cordoned; `null` where the node was not read.
    pub cordoned: Option<bool>,
    /// Its taints that keep pods away, as kubectl writes them.
    pub taints: Vec<String>,
    /// Names of the components with replicas on it.
    pub components: Vec<String>,
}

impl Report for Placement {
    fn page(&self, wide: bool) -> Page {
        let headline = view::headline(&self.header, self.verdict, &self.findings, &good(self), wide);
        let mut page = Page::new("Placement");
        let said = headline.text.clone();
        page.section("", [headline.into()]);
        if wide {
            page.section("Replicas", [replicas(self).into()]);
            page.section("Losses", [losses(self).into()]);
            page.section("Leaders", [elections(self).into()]);
        } else {
            page.section("Components", [components(self).into()]);
        }
        page.section("Nodes", [nodes(self, wide).into()]);
        page.section("DaemonSets", legend(self, wide).into_iter().chain(daemon_sets(self)));
        page.findings(&self.findings, &said, wide);
        page.not_assessed(&self.not_assessed);
        page
    }

    /// The workloads.
    fn names(&self) -> Vec<String> {
        self.components
            .iter()
            .map(|component| format!("{}/{}", component.kind.to_lowercase(), component.name))
            .collect()
    }
}

/// What is good where nothing was found.
fn good(doc: &Placement) -> String {
    let losses = || doc.components.iter().flat_map(|component| &component.loss_of_node);
    let alone: Vec<String> = doc
        .components
        .iter()
        .filter(|component| component.loss_of_node.iter().any(|loss| loss.left == 0))
        .map(|component| name(doc, component))
        .collect();
    if losses().any(|loss| !loss.unserved.is_empty()) {
        "nothing that this cluster could place better was found".to_owned()
    } else if alone.is_empty() {
        "the loss of any one node leaves a Ready replica of everything".to_owned()
    } else {
        format!(
            "the loss of any one node leaves everything served that the API server calls; alone on a node: {}",
            some_of(&alone, NAMED)
        )
    }
}

/// Whether the components lie in several namespaces, so that names alone do not tell.
fn spread_out(doc: &Placement) -> bool {
    let mut namespaces = doc.components.iter().map(|component| component.namespace.as_str());
    let first = namespaces.next();
    namespaces.any(|namespace| Some(namespace) != first)
}

fn name(doc: &Placement, component: &ComponentPlacement) -> String {
    if spread_out(doc) {
        format!("{}/{}", component.namespace, component.name)
    } else {
        component.name.clone()
    }
}

fn ready(component: &ComponentPlacement) -> Cell {
    let desired = component.desired.map_or_else(|| "?".to_owned(), |desired| desired.to_string());
    let tint = match component.desired {
        Some(desired) if component.ready < desired => Some(if component.ready == 0 { Tint::Bad } else { Tint::Risk }),
        _ => None,
    };
    Cell::new(format!("{}/{desired}", component.ready)).tinted(tint)
}

fn components(doc: &Placement) -> Table {
    let zoned = doc.components.iter().any(|component| !component.loss_of_zone.is_empty());
    let headers: &[&'static str] = if zoned {
        &["COMPONENT", "READY", "NODES", "ZONES", "IF A NODE IS LOST"]
    } else {
        &["COMPONENT", "READY", "NODES", "IF A NODE IS LOST"]
    };
    let mut table = Table::new(headers, 2);
    for component in &doc.components {
        let (words, tint) = if_lost(component);
        let reasons = component.replicas.iter().filter_map(|replica| {
            Some(format!(
                "{} {}: {}",
                replica.pod,
                replica.state.in_words(),
                replica.reason.as_ref()?
            ))
        });
        let mut cells = vec![Cell::new(name(doc, component)), ready(component), Cell::new(places(component))];
        if zoned {
            cells.push(Cell::new(zones(component)));
        }
        cells.push(Cell::new(words).tinted(tint));
        table.push(cells, reasons.collect());
    }
    table
}

/// The nodes of the replicas, such as `cp-1(2)* cp-2 cp-3(crash-loops)`; `*` where a leader is.
fn places(component: &ComponentPlacement) -> String {
    let mut places: Vec<(String, bool, usize)> = Vec::new();
    let mut replicas: Vec<&Replica> = component.replicas.iter().collect();
    replicas.sort_by_key(|replica| (replica.node.is_none(), replica.node.as_deref(), replica.state));
    for replica in replicas {
        let mut place = replica.node.clone().unwrap_or_else(|| "-".to_owned());
        if replica.state != ReplicaState::Ready {
            place = format!("{place}({})", replica.state.as_str());
        }
        // On a node where nobody can tell who leads, the node is marked.
        let leads = !replica.leads.is_empty()
            || replica.node.as_ref().is_some_and(|node| {
                let told = |other: &Replica| other.node.as_ref() == Some(node) && !other.leads.is_empty();
                component.leader_nodes.contains(node) && !component.replicas.iter().any(told)
            });
        match places.last_mut() {
            Some((last, led, count)) if *last == place => {
                *count += 1;
                *led |= leads;
            }
            _ => places.push((place, leads, 1)),
        }
    }
    let written = places.into_iter().map(|(place, leads, count)| {
        let count = if count > 1 { format!("({count})") } else { String::new() };
        format!("{place}{count}{}", if leads { "*" } else { "" })
    });
    written.collect::<Vec<_>>().join(" ")
}

/// The zones of the Ready replicas.
fn zones(component: &ComponentPlacement) -> String {
    let ready = component.replicas.iter().filter(|replica| replica.state == ReplicaState::Ready);
    let mut zones: Vec<&str> = ready.filter_map(|replica| replica.zone.as_deref()).collect();
    zones.sort_unstable();
    zones.dedup();
    zones.join(" ")
}

/// What the loss of the node whose loss is worst would take.
fn if_lost(component: &ComponentPlacement) -> (String, Option<Tint>) {
    if component.desired == Some(0) {
        return ("switched off".to_owned(), Some(Tint::Faint));
    }
    if component.ready == 0 {
        let what = kinds(&component.unserved);
        let what = if what.is_empty() {
            String::new()
        } else {
            format!(": {what} unserved")
        };
        return (format!("no replica is Ready now{what}"), Some(Tint::Bad));
    }
    let taking: Vec<&LossOfNode> = component
        .loss_of_node
        .iter()
        .filter(|loss| loss.left == 0 || !loss.unserved.is_empty())
        .collect();
    let standby = component
        .replicas
        .iter()
        .find(|replica| replica.state == ReplicaState::CrashLoops)
        .and_then(|replica| replica.reason.as_ref());
    if let Some(first) = taking.first() {
        let nodes: Vec<&str> = taking.iter().map(|loss| loss.node.as_str()).collect();
        let nodes = nodes.join(" or ");
        let what = kinds(&first.unserved);
        let mut text = match (first.left, what.is_empty()) {
            (0, true) => format!("last one on {nodes}"),
            (0, false) => format!("last one on {nodes}: {what} unserved"),
            (left, _) => format!("{what} unserved with {nodes}, {left} left"),
        };
        if let Some(why) = standby {
            text.push_str(&format!("; standby cannot start: {why}"));
        }
        return (text, Some(if what.is_empty() { Tint::Risk } else { Tint::Bad }));
    }
    let Some(left) = component.loss_of_node.iter().map(|loss| loss.left).min() else {
        return ("not known".to_owned(), Some(Tint::Unknown));
    };
    let mut text = if component.serves.is_empty() {
        format!("{left} left")
    } else {
        format!("served by {left}")
    };
    let alone = component.loss_of_zone.iter().find(|loss| loss.left == 0);
    if let Some(loss) = alone {
        text.push_str(&format!("; all in zone {}", loss.zone));
    }
    let (change, lasts) = change_of_leader(component);
    text.push_str(&change);
    (text, (alone.is_some() || lasts).then_some(Tint::Risk))
}

/// Who leads after the loss of a leader's node, and whether that may be nobody.
fn change_of_leader(component: &ComponentPlacement) -> (String, bool) {
    let mut held = component
        .elections
        .iter()
        .filter(|election| election.state == Leadership::Held)
        .map(|election| election.gap_after_loss)
        .peekable();
    if held.peek().is_none() {
        return (String::new(), false);
    }
    match held.collect::<Option<Vec<_>>>() {
        None => ("; no new leader".to_owned(), true),
        Some(gaps) => {
            let shortest = gaps.iter().map(|gap| gap[0]).min().unwrap_or_default();
            let longest = gaps.iter().map(|gap| gap[1]).max().unwrap_or_default();
            (format!("; new leader in {shortest}-{longest}s"), false)
        }
    }
}

/// What kinds of callers are meant, such as `webhook and API`.
fn kinds(unserved: &[String]) -> String {
    let has = |prefix: &str| unserved.iter().any(|name| name.starts_with(prefix));
    let words: Vec<&str> = [("webhook/", "webhook"), ("conversion/", "conversion"), ("apiservice/", "API")]
        .into_iter()
        .filter(|(prefix, _)| has(prefix))
        .map(|(_, word)| word)
        .collect();
    words.join(" and ")
}

fn replicas(doc: &Placement) -> Table {
    let mut table = Table::new(&["COMPONENT", "POD", "STATE", "NODE", "ZONE", "REGION", "LEADS"], 3);
    for component in &doc.components {
        for replica in &component.replicas {
            let optional = |text: &Option<String>| Cell::new(text.as_deref().unwrap_or_default());
            table.push(
                vec![
                    Cell::new(name(doc, component)),
                    Cell::new(&replica.pod),
                    Cell::new(replica.state.as_str()).tinted(replica.state.tint()),
                    optional(&replica.node),
                    optional(&replica.zone),
                    optional(&replica.region),
                    Cell::new(replica.leads.join(" ")),
                ],
                Vec::from_iter(replica.reason.clone()),
            );
        }
    }
    table
}

fn elections(doc: &Placement) -> Table {
    let mut table = Table::new(&["COMPONENT", "LEADS", "LEASE", "STATE", "IF ITS NODE IS LOST"], 3);
    for component in &doc.components {
        for election in &component.elections {
            let (state, tint) = match election.state.why_unmarked() {
                None => ("held", None),
                Some(why) => (why, Some(Tint::Risk)),
            };
            let lost = match (election.state, election.gap_after_loss) {
                (_, Some([shortest, longest])) => Cell::new(format!("new leader in {shortest}-{longest}s")),
                (Leadership::Held, None) => Cell::new("no new leader").tinted(Some(Tint::Risk)),
                _ => Cell::new(""),
            };
            table.push(
                vec![
                    Cell::new(name(doc, component)),
                    Cell::new(&election.of),
                    Cell::new(&election.lease),
                    Cell::new(state).tinted(tint),
                    lost,
                ],
                vec![],
            );
        }
        if component.elects == Some(false) && component.desired != Some(0) {
            let cells = [
                name(doc, component),
                String::new(),
                String::new(),
                "elects nobody".to_owned(),
                String::new(),
            ];
            table.push(cells.into_iter().map(Cell::new).collect(), vec![]);
        }
    }
    table
}

fn losses(doc: &Placement) -> Table {
    let mut table = Table::new(&["COMPONENT", "LOST", "LEFT", "UNSERVED"], 3);
    for component in &doc.components {
        let nodes = component
            .loss_of_node
            .iter()
            .map(|loss| (format!("node {}", loss.node), loss.left, &loss.unserved));
        let zones = component
            .loss_of_zone
            .iter()
            .map(|loss| (format!("zone {}", loss.zone), loss.left, &loss.unserved));
        for (lost, left, unserved) in nodes.chain(zones) {
            let tint = (left == 0).then_some(Tint::Risk);
            table.push(
                vec![
                    Cell::new(name(doc, component)),
                    Cell::new(lost),
                    Cell::new(left.to_string()).tinted(tint),
                    Cell::new(unserved.join(" ")),
                ],
                vec![],
            );
        }
    }
    table
}

/// The nodes that something is said of; all of them in `wide`.
fn nodes(doc: &Placement, wide: bool) -> Table {
    let mut table = Table::new(&["NODE", "STATE", "HOLDS", "ZONE", "TAINTS"], 2);
    for node in &doc.nodes {
        let state = match (node.ready, node.cordoned) {
            (None, _) => "not read",
            (Some(false), Some(true)) => "NotReady, cordoned",
            (Some(false), _) => "NotReady",
            (Some(true), Some(true)) => "Ready, cordoned",
            (Some(true), _) => "Ready",
        };
        if !wide && state == "Ready" {
            continue;
        }
        let tint = (state != "Ready").then_some(Tint::Risk);
        table.push(
            vec![
                Cell::new(&node.name),
                Cell::new(state).tinted(tint),
                Cell::new(node.components.join(" ")),
                Cell::new(node.zone.as_deref().unwrap_or_default()),
                Cell::new(node.taints.join(" ")),
            ],
            vec![],
        );
    }
    table
}

/// What the marks and the last column of the table mean.
fn legend(doc: &Placement, wide: bool) -> Vec<Block> {
    if doc.components.is_empty() || wide {
        return Vec::new();
    }
    let lost = "If a node is lost: Ready replicas without the node that holds most of them, before any is replaced";
    let leads = doc.components.iter().any(|component| !component.leader_nodes.is_empty());
    let mut blocks = vec![if leads {
        let mark = "* holds a lease, and leads.";
        Prose::text(format!("{mark} {lost}; a new leader where it was the leader's.")).into()
    } else {
        Prose::text(format!("{lost}.")).into()
    }];
    // Why nobody is marked, and of whom.
    let mut unmarked: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for component in doc.components.iter().filter(|component| component.desired != Some(0)) {
        if component.elects == Some(false) {
            unmarked.entry("elects nobody").or_default().push(name(doc, component));
        }
        let several = component.elections.len() > 1;
        for election in &component.elections {
            let Some(why) = election.state.why_unmarked() else { continue };
            let of = if several { format!(" ({})", election.of) } else { String::new() };
            unmarked.entry(why).or_default().push(name(doc, component) + &of);
        }
    }
    let whys = unmarked.iter().map(|(why, of)| format!("{} ({why})", some_of(of, NAMED)));
    let whys: Vec<String> = whys.collect();
    if !whys.is_empty() {
        blocks.push(Prose::labelled("Without *", sentence(&whys.join("; "))).into());
    }
    blocks
}

/// The DaemonSets in a sentence.
fn daemon_sets(doc: &Placement) -> Option<Block> {
    let sets: Vec<String> = doc
        .daemon_sets
        .iter()
        .map(|set| format!("{} {}/{}", set.name, set.ready, set.desired))
        .collect();
    (!sets.is_empty()).then(|| Prose::labelled("DaemonSets, which a drain leaves alone", sentence(&sets.join(", "))).into())
}
