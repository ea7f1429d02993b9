//! `drain-preflight --each`: the document, and how a person reads it.

use serde::Serialize;

use super::document::{DrainOutcome, DrainPreflight, Header};
use super::finding::{Certainty, Finding, NotAssessed, Severity, Verdict};
use super::page::{self, Headline, Page, Prose, Report};
use super::style::Tint;
use super::table::{Cell, Table};
use super::words::{NAMED, counted, sentence, some_of};
use crate::checks::codes::Code;

/// What `drain-preflight --each` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainPreflights {
    /// Common fields.
    #[serde(flatten)]
    pub header: Header,
    /// Flags that the verdicts hold for.
    pub flags: Vec<String>,
    /// The worst of the verdicts.
    pub verdict: Verdict,
    /// Each node as if drained alone, worst first.
    pub nodes: Vec<NodePreflight>,
    /// Findings of all nodes, worst first, without those that are info.
    pub findings: Vec<Finding>,
    /// What was not assessed of any node.
    pub not_assessed: Vec<NotAssessed>,
}

/// One node, as if drained alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePreflight {
    /// Node.
    pub node: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// How its drain ends, in the worst case.
    pub outcome: DrainOutcome,
    /// Whether every path ends so.
    pub certainty: Certainty,
    /// Why, in one sentence.
    pub why: String,
    /// Pods that go.
    pub evicted: usize,
    /// Codes of its findings, worst first, each once.
    pub codes: Vec<Code>,
    /// The finding that decides its verdict, in one sentence; `null` where none does.
    pub worst: Option<String>,
}

impl NodePreflight {
    /// What a preflight of the node alone says, in short.
    pub fn of(node: &str, document: &DrainPreflight) -> Self {
        let mut codes = Vec::new();
        for finding in &document.findings {
            if !codes.contains(&finding.code) {
                codes.push(finding.code);
            }
        }
        Self {
            node: node.to_owned(),
            verdict: document.verdict,
            outcome: document.drain.outcome,
            certainty: document.drain.certainty,
            why: document.drain.why.clone(),
            evicted: document.gone().count(),
            codes,
            worst: document.worst().map(|finding| finding.message.clone()),
        }
    }
}

impl Report for DrainPreflights {
    fn page(&self, wide: bool) -> Page {
        let mut page = Page::new("Drain of each node");
        page.section("", [headline(self, wide).into()]);
        page.section("Nodes", [nodes(self, wide).into()]);
        page.findings(&self.findings, "", wide);
        page.not_assessed(&self.not_assessed);
        page
    }

    /// The nodes, worst first.
    fn names(&self) -> Vec<String> {
        self.nodes.iter().map(|row| format!("node/{}", row.node)).collect()
    }
}

fn headline(doc: &DrainPreflights, wide: bool) -> Headline {
    let all = doc.nodes.len();
    let of = |verdict: Verdict| doc.nodes.iter().filter(|row| row.verdict == verdict).count();
    let counts: Vec<String> = [Verdict::Unsafe, Verdict::Unknown, Verdict::AtRisk, Verdict::Safe]
        .into_iter()
        .filter(|verdict| of(*verdict) > 0)
        .map(|verdict| format!("{} {}", of(verdict), verdict.as_str()))
        .collect();
    let mut notes = Vec::new();
    if let Some(worst) = doc.nodes.first().filter(|row| row.verdict != Verdict::Safe) {
        let ask = format!("begin with {}, of which drain-preflight alone says more", worst.node);
        notes.push(Prose::labelled("To do", sentence(&ask)));
    }
    notes.push(Prose::text("Each node as if drained alone, and uncordoned before the next."));
    if wide {
        notes.push(Prose::text(page::origin(&doc.header)));
    }
    Headline {
        verdict: doc.verdict,
        text: format!("Of {}: {}.", counted(all, "node"), counts.join(", ")),
        notes,
    }
}

fn nodes(doc: &DrainPreflights, wide: bool) -> Table {
    let mut table = Table::new(&["NODE", "VERDICT", "DRAIN", "EVICTED", "FINDINGS", "WORST"], 4);
    for row in &doc.nodes {
        let drain = match row.certainty {
            Certainty::Certain => row.outcome.as_str().to_owned(),
            Certainty::Possible => format!("{} (possible)", row.outcome.as_str()),
        };
        let tint = match row.verdict {
            Verdict::Safe => Tint::Good,
            Verdict::AtRisk => Tint::Risk,
            Verdict::Unknown => Tint::Unknown,
            Verdict::Unsafe => Tint::Bad,
        };
        let codes: Vec<String> = row.codes.iter().map(|code| code.as_str().to_owned()).collect();
        let codes = if wide { codes.join(", ") } else { some_of(&codes, NAMED - 1) };
        table.push(
            vec![
                Cell::new(&row.node),
                Cell::new(row.verdict.as_str()).tinted(Some(tint)),
                Cell::new(drain).tinted((row.outcome != DrainOutcome::Finishes).then_some(Tint::Bad)),
                Cell::new(row.evicted.to_string()),
                Cell::new(codes),
                Cell::new(row.worst.as_deref().unwrap_or_default()),
            ],
            vec![],
        );
    }
    table
}

/// The findings of a node's document that stand in that of all nodes, with the node that they are about.
pub fn of_node(node: &str, findings: Vec<Finding>) -> impl Iterator<Item = Finding> {
    let bad = findings.into_iter().filter(|finding| finding.severity > Severity::Info);
    bad.map(|finding| Finding {
        node: finding.node.or_else(|| Some(node.to_owned())),
        ..finding
    })
}
