//! What a person reads, whatever the form: a page of sections, which a document writes and a renderer lays out.
//!
//! A document implements [`Report`]; its page holds plain, untrusted text, and every renderer makes it harmless in its
//! own way. Nothing here knows a width, a colour or a markup.

use std::collections::BTreeSet;

use serde::Serialize;

use super::document::Header;
use super::finding::{Finding, MissingRight, NotAssessed, Remedy, Severity, Verdict};
use super::table::Table;
use super::words::{NAMED, object, sentence, some_facts, some_of};
use crate::checks::codes::Code;

/// Findings of one code and severity that are shown in full; the others are only named.
const IN_FULL: usize = 3;

/// A document in the forms that people and scripts read.
pub trait Report: Serialize {
    /// The page; `wide` shows every column, row, finding and fact.
    fn page(&self, wide: bool) -> Page;

    /// What `-o name` prints, a line each: `kind/name`, to be passed to kubectl.
    fn names(&self) -> Vec<String>;
}

/// A page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// What it is about, such as `Drain of cp-1`.
    pub title: String,
    /// Its sections, none of them empty.
    pub sections: Vec<Section>,
}

/// Blocks that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Heading, in forms that have headings; empty for none.
    pub heading: &'static str,
    /// Its blocks.
    pub blocks: Vec<Block>,
}

/// Part of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// The answer.
    Headline(Headline),
    /// Findings, in the order in which they are shown.
    Findings(Vec<Item>),
    /// A table.
    Table(Table),
    /// Running text.
    Prose(Prose),
    /// A command to paste.
    Command {
        /// What it is, such as `Holds for`; may be empty.
        label: String,
        /// The command line, quoted for a shell.
        command: String,
    },
    /// Markdown that this tool ships, of the parts that [`super::manual`] knows.
    Manual(&'static str),
}

/// The answer: a verdict, its reason, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// Verdict.
    pub verdict: Verdict,
    /// Its reason, in one sentence.
    pub text: String,
    /// What follows right below, such as what to do.
    pub notes: Vec<Prose>,
}

/// Running text, with or without a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prose {
    /// How far it is indented, in steps.
    pub depth: usize,
    /// What it says something about, without a colon; may be empty.
    pub label: String,
    /// Text.
    pub text: String,
}

/// A finding, or what is said about several alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Severity.
    pub severity: Severity,
    /// Whether it is out of the verdict.
    pub accepted: bool,
    /// Code.
    pub code: Code,
    /// What it is about.
    pub subject: String,
    /// What happens; empty where it is said already.
    pub message: String,
    /// What to do.
    pub remedy: Remedy,
    /// Why.
    pub why: String,
    /// Facts that show it, each on its own.
    pub facts: Vec<String>,
    /// What the code means; said once for each code.
    pub meaning: Option<&'static str>,
    /// The command that explains the code; said once for each code.
    pub explain: Option<String>,
}

impl Item {
    /// Whether there is nothing but its title.
    pub fn is_brief(&self) -> bool {
        let said = [&self.message, &self.why, &self.remedy.text];
        said.iter().all(|text| text.is_empty())
            && self.remedy.values_key.is_none()
            && self.remedy.command.is_none()
            && self.facts.is_empty()
    }
}

impl Prose {
    /// Text behind a label.
    pub fn labelled(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            depth: 0,
            label: label.into(),
            text: text.into(),
        }
    }

    /// Text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self::labelled("", text)
    }

    /// The same, indented by some steps.
    pub fn deeper(self, steps: usize) -> Self {
        Self {
            depth: self.depth + steps,
            ..self
        }
    }
}

impl From<Prose> for Block {
    fn from(prose: Prose) -> Self {
        Self::Prose(prose)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Headline> for Block {
    fn from(headline: Headline) -> Self {
        Self::Headline(headline)
    }
}

impl Page {
    /// A page without sections.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            sections: Vec::new(),
        }
    }

    /// Adds a section, without its empty tables; none where nothing is left.
    pub fn section(&mut self, heading: &'static str, blocks: impl IntoIterator<Item = Block>) {
        let mut blocks: Vec<Block> = blocks.into_iter().collect();
        blocks.retain(|block| !matches!(block, Block::Table(table) if table.is_empty()));
        if !blocks.is_empty() {
            self.sections.push(Section { heading, blocks });
        }
    }

    /// The sections with their headings, where a section has one and does not go on with that of the section before.
    pub fn headed(&self) -> impl Iterator<Item = (&Section, Option<&'static str>)> {
        let before = std::iter::once("").chain(self.sections.iter().map(|section| section.heading));
        self.sections.iter().zip(before).map(|(section, before)| {
            let heading = Some(section.heading).filter(|heading| !heading.is_empty() && *heading != before);
            (section, heading)
        })
    }

    /// Adds the findings: those of one code and severity together, of many alike only the first in full. What `said`
    /// says already is not repeated.
    pub fn findings(&mut self, findings: &[Finding], said: &str, wide: bool) {
        let items = items(findings, said, wide);
        if !items.is_empty() {
            self.section("Findings", [Block::Findings(items)]);
        }
    }

    /// Adds what was not assessed: what could change the verdict first.
    pub fn not_assessed(&mut self, gaps: &[NotAssessed]) {
        let (matters, rest): (Vec<&NotAssessed>, Vec<&NotAssessed>) = gaps.iter().partition(|gap| gap.affects_verdict);
        for (title, gaps) in [
            ("Not assessed, and it could change the verdict:", matters),
            ("Not assessed, which changes nothing here:", rest),
        ] {
            if gaps.is_empty() {
                continue;
            }
            let mut blocks = vec![Prose::text(title).into()];
            for gap in gaps {
                blocks.push(Prose::text(format!("{}: {}", gap.what, sentence(&gap.why))).deeper(1).into());
                if let Some(right) = &gap.missing_right {
                    blocks.push(Prose::labelled("missing right", missing(right)).deeper(2).into());
                }
            }
            self.section("Not assessed", blocks);
        }
    }
}

/// Where an answer comes from, in one line.
pub fn origin(header: &Header) -> String {
    let cluster = &header.cluster;
    let mut facts: Vec<String> = vec![format!("Source: {}", header.source)];
    facts.extend(cluster.context.iter().map(|context| format!("context {context}")));
    facts.extend(cluster.server.clone());
    facts.extend(cluster.server_version.clone());
    facts.extend(header.observed_at.iter().map(|time| format!("read at {time}")));
    facts.push(match &header.install {
        Some(install) => {
            let chart = install
                .chart_version
                .as_deref()
                .map_or_else(String::new, |version| format!(", chart {version}"));
            format!("release {} in {}{chart}", install.release, install.namespace)
        }
        None => "no GPUStack install".to_owned(),
    });
    facts.join(", ")
}

fn items(findings: &[Finding], said: &str, wide: bool) -> Vec<Item> {
    let (accepted, open): (Vec<&Finding>, Vec<&Finding>) = findings.iter().partition(|finding| finding.accepted);
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in open.into_iter().chain(accepted) {
        let alike = |other: &&Finding| (other.code, other.severity, other.accepted) == (finding.code, finding.severity, finding.accepted);
        match groups.iter_mut().find(|group| group.first().is_some_and(alike)) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    let mut items = Vec::new();
    let mut explained = BTreeSet::new();
    for group in groups {
        let Some(first) = group.first() else { continue };
        let shown = match group.len() {
            count if wide || count <= IN_FULL => count,
            _ if first.severity == Severity::Info => 0,
            _ => IN_FULL,
        };
        items.extend(group[..shown].iter().map(|finding| item(finding, said, wide)));
        if let (true, Some(last)) = (wide || first.severity > Severity::Info, items.last_mut())
            && explained.insert(first.code)
        {
            last.meaning = wide.then(|| first.code.meaning());
            last.explain = Some(format!("kubectl gpustack-ha explain {}", first.code.as_str()));
        }
        if let rest @ [_, ..] = &group[shown..] {
            let more = if shown == 0 { "" } else { " more" };
            let objects: Vec<String> = rest.iter().map(|finding| object(&finding.object)).collect();
            items.push(bare(
                first,
                format!(
                    "{}{more}: {}. {} -o wide shows each.",
                    rest.len(),
                    some_of(&objects, NAMED),
                    first.code.meaning()
                ),
            ));
        }
    }
    items
}

fn item(finding: &Finding, said: &str, wide: bool) -> Item {
    let subject = super::words::subject(finding);
    let info = finding.severity == Severity::Info;
    let mut item = bare(finding, if info { format!("{subject}: {}", finding.message) } else { subject });
    if info && !wide {
        return item;
    }
    if !info && !said.to_lowercase().contains(&finding.message.trim_end_matches('.').to_lowercase()) {
        item.message = sentence(&finding.message);
    }
    item.remedy = finding.remedy.clone();
    if wide {
        item.why = sentence(&finding.consequence);
        item.facts.clone_from(&finding.evidence);
    } else {
        let facts = some_facts(&finding.evidence);
        let both = [facts.as_str(), &finding.consequence].into_iter().filter(|text| !text.is_empty());
        item.why = sentence(&both.collect::<Vec<_>>().join("; "));
    }
    item
}

/// A finding of which only the title is said.
fn bare(finding: &Finding, subject: String) -> Item {
    Item {
        severity: finding.severity,
        accepted: finding.accepted,
        code: finding.code,
        subject,
        message: String::new(),
        remedy: Remedy::default(),
        why: String::new(),
        facts: Vec::new(),
        meaning: None,
        explain: None,
    }
}

fn missing(right: &MissingRight) -> String {
    let resource = if right.group.is_empty() {
        right.resource.clone()
    } else {
        format!("{}.{}", right.resource, right.group)
    };
    match &right.namespace {
        Some(namespace) => format!("{} {resource} in namespace {namespace}", right.verb),
        None => format!("{} {resource} in the whole cluster", right.verb),
    }
}
