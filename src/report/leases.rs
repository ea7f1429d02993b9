//! `leases`: the document, and how a person reads it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::document::Header;
use super::finding::{Finding, NotAssessed, Verdict};
use super::page::{Block, Page, Prose, Report};
use super::style::Tint;
use super::table::{Cell, Table};
use super::view;
use super::words::{NAMED, some_of, span};

/// What `leases` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseStatus {
    /// Common fields.
    #[serde(flatten)]
    pub header: Header,
    /// Verdict.
    pub verdict: Verdict,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// Leases, those of components in their order, then the others by name.
    pub leases: Vec<LeaseRow>,
    /// Leases that should exist and do not.
    pub missing: Vec<MissingLease>,
    /// Workloads of components, `kind/name`, whose replicas elect nobody by their arguments.
    pub without_election: Vec<String>,
    /// What was not assessed.
    pub not_assessed: Vec<NotAssessed>,
}

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseRow {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Workload whose replicas elect its holder, `kind/name`; `null` for a lease that no component's election is known to use.
    pub component: Option<String>,
    /// What of the component is led, such as `csi-provisioner`; `null` as above.
    pub of: Option<String>,
    /// `spec.holderIdentity`, untrusted text; empty where it was released.
    pub holder_identity: String,
    /// Who that is; `null` where it is nobody, or neither pod nor node can be told.
    pub holder: Option<LeaseHolder>,
    /// Why it is nobody, or which pod it is cannot be told; `null` where it is a pod.
    pub holder_unknown: Option<String>,
    /// Seconds since the last renewal, by the API server's clock; `null` without a capture time or a renewal.
    pub age_seconds: Option<i64>,
    /// Seconds that a standby waits after the last renewal.
    pub duration_seconds: i64,
    /// Whether it ran out; `null` without a capture time or a renewal.
    pub stale: Option<bool>,
    /// How often it moved.
    pub transitions: i64,
    /// Whether a holder that ends cleanly releases it; `null` where that is not known.
    pub released_on_exit: Option<bool>,
    /// Pods that could take over if the holder's node were lost: they run, on another node.
    pub successors: Vec<String>,
    /// Nodes of those pods, in the same order.
    pub successor_nodes: Vec<String>,
    /// Pods that could not, and why.
    pub others: Vec<NoSuccessor>,
    /// Shortest and longest time without a leader after its holder ends cleanly, in seconds; `null` where nobody could take over.
    pub gap_after_exit: Option<[i64; 2]>,
    /// The same after the holder's node is lost.
    pub gap_after_loss: Option<[i64; 2]>,
}

/// Who holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseHolder {
    /// Pod; `null` where only the node is known, as several replicas are on it.
    pub pod: Option<String>,
    /// Node; `null` where the pod has none.
    pub node: Option<String>,
}

/// A pod that could not take over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoSuccessor {
    /// Pod.
    pub pod: String,
    /// Why not.
    pub why: String,
}

/// A lease that should exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingLease {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Workload whose replicas should elect its holder, `kind/name`.
    pub component: String,
    /// Kind of the object by which they elect: `Lease`, or by their arguments `ConfigMap` or `Endpoints`.
    pub lock: &'static str,
}

impl Report for LeaseStatus {
    fn page(&self, wide: bool) -> Page {
        let good = if self.header.observed_at.is_some() {
            "Every election by a lease has a leader that runs and renews it"
        } else {
            "Every election by a lease has a leader that runs; how fresh the lease is, the files do not tell"
        };
        let headline = view::headline(&self.header, self.verdict, &self.findings, good, wide);
        let mut page = Page::new("Leases");
        let said = headline.text.clone();
        page.section("", [headline.into()]);
        page.section("Leases", [leases(self, wide).into()]);
        page.section("", notes(self));
        page.findings(&self.findings, &said, wide);
        page.not_assessed(&self.not_assessed);
        page
    }

    /// The leases.
    fn names(&self) -> Vec<String> {
        self.leases.iter().map(|lease| format!("lease/{}", lease.name)).collect()
    }
}

/// What the table does not have.
fn notes(doc: &LeaseStatus) -> Option<Block> {
    let all = some_of(&doc.without_election, doc.without_election.len());
    (!doc.without_election.is_empty()).then(|| Prose::text(format!("By its arguments elects nobody: {all}.")).into())
}

fn leases(doc: &LeaseStatus, wide: bool) -> Table {
    let mut headers = vec!["LEASE", "NODE", "AGE", "MOVED", "STANDBYS", "AFTER EXIT", "IF LOST", "HOLDER"];
    if wide {
        headers.extend(["LASTS", "LEADS", "NAMESPACE", "SUCCESSORS", "IDENTITY"]);
    }
    let mut table = Table::new(&headers, 3);
    for lease in &doc.leases {
        let (holder, node, tint) = holder(lease);
        let age = match (lease.age_seconds, lease.stale) {
            (None, _) => Cell::new("?"),
            (Some(age), Some(true)) => Cell::new(format!("{} (stale)", span(age))).tinted(Some(Tint::Bad)),
            (Some(age), _) => Cell::new(span(age)),
        };
        let nodes: BTreeSet<String> = lease.successor_nodes.iter().cloned().collect();
        let nodes = Vec::from_iter(nodes);
        let standbys = match &lease.component {
            Some(_) if nodes.is_empty() => Cell::new("nobody").tinted(Some(Tint::Risk)),
            None => Cell::new("not known"),
            Some(_) if wide => Cell::new(nodes.join(" ")),
            Some(_) => Cell::new(some_of(&nodes, NAMED)),
        };
        let gap =
            |gap: Option<[i64; 2]>| Cell::new(gap.map_or_else(|| "-".to_owned(), |[shortest, longest]| format!("{shortest}-{longest}s")));
        let mut cells = vec![
            Cell::new(&lease.name),
            Cell::new(node),
            age,
            Cell::new(lease.transitions.to_string()),
            standbys,
            gap(lease.gap_after_exit),
            gap(lease.gap_after_loss),
            Cell::new(holder).tinted(tint),
        ];
        if wide {
            let leads = match (&lease.component, &lease.of) {
                (Some(component), Some(of)) => format!("{of} of {component}"),
                (component, _) => component.clone().unwrap_or_default(),
            };
            cells.extend([
                Cell::new(format!("{}s", lease.duration_seconds)),
                Cell::new(leads),
                Cell::new(&lease.namespace),
                Cell::new(lease.successors.join(" ")),
                Cell::new(&lease.holder_identity),
            ]);
        }
        let mut below: Vec<String> = lease.holder_unknown.iter().cloned().collect();
        if wide || lease.successors.is_empty() {
            below.extend(
                lease
                    .others
                    .iter()
                    .map(|other| format!("{} could not take over: {}", other.pod, other.why)),
            );
        }
        table.push(cells, below);
    }
    for lease in &doc.missing {
        let (state, below) = match lease.lock {
            "Lease" => (
                Cell::new("does not exist").tinted(Some(Tint::Bad)),
                format!("should be held by a replica of {}", lease.component),
            ),
            lock => (
                Cell::new("no lease").tinted(Some(Tint::Unknown)),
                format!("{} elects by {lock}: who leads is not known", lease.component),
            ),
        };
        let mut cells = vec![Cell::new(&lease.name), Cell::new("-"), state];
        cells.extend((cells.len()..headers.len()).map(|_| Cell::new("-")));
        table.push(cells, vec![below]);
    }
    table
}

fn holder(lease: &LeaseRow) -> (String, String, Option<Tint>) {
    match &lease.holder {
        Some(holder) => (
            holder.pod.clone().unwrap_or_else(|| "?".to_owned()),
            holder.node.clone().unwrap_or_default(),
            None,
        ),
        None if lease.holder_identity.is_empty() => ("nobody: released".to_owned(), String::new(), Some(Tint::Faint)),
        None => ("not found".to_owned(), String::new(), Some(Tint::Risk)),
    }
}
