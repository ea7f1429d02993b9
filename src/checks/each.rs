//! `--each`: every node as if drained alone, from one snapshot.

use std::collections::BTreeSet;

use crate::cluster::snapshot::Snapshot;
use crate::gpustack::install::Found;
use crate::kubernetes::scheduling::Placement;
use crate::report::each::{DrainPreflights, NodePreflight, of_node};
use crate::report::finding::Verdict;

use super::assessed;
use super::preflight::{self, Request};

/// Judges the drain of each node alone. What `drain-preflight NODE` says of a node is what its row says.
pub fn assess(snapshot: &Snapshot, found: &Found<'_>, request: &Request) -> DrainPreflights {
    let install = match found {
        Found::One(install) => Some(install),
        _ => None,
    };
    let (mut nodes, mut findings, mut not_assessed) = (Vec::new(), Vec::new(), BTreeSet::new());
    let before = Placement::new(snapshot);
    let mut alone = request.clone();
    for node in &request.nodes {
        alone.nodes = vec![node.clone()];
        let document = preflight::judge(&before, found, &alone).0;
        nodes.push(NodePreflight::of(node, &document));
        findings.extend(of_node(node, document.findings));
        not_assessed.extend(document.not_assessed);
    }
    nodes.sort_by(|a, b| (b.verdict, b.outcome, b.certainty, &a.node).cmp(&(a.verdict, a.outcome, a.certainty, &b.node)));
    assessed::sort(&mut findings);
    DrainPreflights {
        header: assessed::header("DrainPreflights", snapshot, install),
        flags: request.flag_words.clone(),
        verdict: nodes.iter().map(|row| row.verdict).max().unwrap_or(Verdict::Safe),
        nodes,
        findings,
        not_assessed: not_assessed.into_iter().collect(),
    }
}
