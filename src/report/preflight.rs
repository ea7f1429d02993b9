//! The drain preflight as a person reads it: the verdict and its reason, then what to do, then the evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::document::{
    Action, DrainOutcome, DrainPreflight, DrainResult, EvictionRow, LeaderRow, NodeReason, Replacement, ReplacementOutcome, ServedKind,
    UnservedRow, Until,
};
use super::finding::{Certainty, Finding, MissingRight, NotAssessed, ObjectRef, Severity, Verdict};
use super::style::{Style, Tint};
use super::table::{Cell, NONE, Table};
use super::text::{harmless, width, wrap, wrap_command};

/// Findings of one code and severity that are shown in full; the others are only named.
const IN_FULL: usize = 3;
/// Objects, nodes or facts that a line names before it counts.
const NAMED: usize = 3;
/// Rows of evictions from which those that just move are counted instead of shown.
const MANY_ROWS: usize = 25;
/// Where the text of a finding begins, below its severity.
const BODY: usize = 9;
/// Columns that prose needs beside something; with fewer it goes below.
const ROOM: usize = 40;
/// A longer label stands on a line of its own where the text does not fit behind it.
const LABEL: usize = 15;

/// Writes the document for a person; `wide` shows every column, row, finding and fact.
///
/// # Errors
/// What writing fails with.
pub fn render(doc: &DrainPreflight, style: &Style, wide: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page { doc, style, wide, out };
    page.verdict()?;
    page.findings()?;
    page.nodes()?;
    page.evictions()?;
    page.unserved()?;
    page.leaders()?;
    page.afterwards()?;
    page.not_assessed()?;
    page.holds_for()
}

struct Page<'a> {
    doc: &'a DrainPreflight,
    style: &'a Style,
    wide: bool,
    out: &'a mut dyn Write,
}

impl Page<'_> {
    fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// Prose behind a label, its further lines below its first word; below a long label where it does not fit behind it.
    fn prose(&mut self, label: &str, tint: Option<Tint>, text: &str) -> io::Result<()> {
        let text = harmless(text, self.style.ascii);
        let label = harmless(label, self.style.ascii);
        let indent = width(&label);
        let blanks = label.len() - label.trim_start().len();
        let mut start = format!("{:blanks$}{}", "", self.style.paint(label.trim_start(), tint));
        let columns = self.style.width.min(Style::PROSE);
        let mut indent = indent;
        if indent > blanks + LABEL && indent + width(&text) > columns {
            writeln!(self.out, "{}", start.trim_end())?;
            indent = blanks + 3;
            start = " ".repeat(indent);
        }
        for line in wrap(&text, columns.saturating_sub(indent)) {
            writeln!(self.out, "{start}{line}")?;
            start = " ".repeat(indent);
        }
        Ok(())
    }

    /// A command to paste behind a label.
    fn command(&mut self, label: &str, text: &str) -> io::Result<()> {
        let text = harmless(text, self.style.ascii);
        let mut start = label.to_owned();
        for line in wrap_command(&text, self.style.width.saturating_sub(width(label))) {
            writeln!(self.out, "{start}{line}")?;
            start = " ".repeat(width(label));
        }
        Ok(())
    }

    fn verdict(&mut self) -> io::Result<()> {
        let verdict = self.doc.verdict;
        let tint = match verdict {
            Verdict::Safe => Tint::Good,
            Verdict::AtRisk => Tint::Risk,
            Verdict::Unknown => Tint::Unknown,
            Verdict::Unsafe => Tint::Bad,
        };
        let label = format!("{:<9}", verdict.as_str().to_uppercase());
        self.prose(&label, Some(tint), &headline(self.doc))?;
        self.prose(&format!("{:BODY$}To do: ", ""), None, &to_do(self.doc))?;
        self.prose(&" ".repeat(BODY), None, &summary(self.doc))?;
        if self.wide {
            self.prose(&" ".repeat(BODY), None, &origin(self.doc))?;
        }
        Ok(())
    }

    fn findings(&mut self) -> io::Result<()> {
        let (accepted, open): (Vec<&Finding>, Vec<&Finding>) = self.doc.findings.iter().partition(|finding| finding.accepted);
        let mut groups: Vec<Vec<&Finding>> = Vec::new();
        for finding in open.into_iter().chain(accepted) {
            let alike =
                |other: &&Finding| (other.code, other.severity, other.accepted) == (finding.code, finding.severity, finding.accepted);
            match groups.iter_mut().find(|group| group.first().is_some_and(alike)) {
                Some(group) => group.push(finding),
                None => groups.push(vec![finding]),
            }
        }
        if !groups.is_empty() {
            self.blank()?;
        }
        for group in groups {
            let Some(first) = group.first() else { continue };
            let info = first.severity == Severity::Info;
            let shown = match group.len() {
                count if self.wide || count <= IN_FULL => count,
                _ if info => 0,
                _ => IN_FULL,
            };
            for finding in &group[..shown] {
                if info { self.info(finding)? } else { self.finding(finding)? }
            }
            if self.wide {
                self.prose(
                    &format!("{:BODY$}{}: ", "", first.code.as_str()),
                    Some(Tint::Faint),
                    first.code.meaning(),
                )?;
            }
            if let rest @ [_, ..] = &group[shown..] {
                let more = if shown == 0 { "" } else { " more" };
                let objects: Vec<String> = rest.iter().map(|finding| object(&finding.object)).collect();
                let text = format!(
                    "{}{more}: {}. {} -o wide shows each.",
                    rest.len(),
                    some_of(&objects, NAMED),
                    first.code.meaning()
                );
                self.title(first, &text)?;
            }
        }
        Ok(())
    }

    /// The line that a finding starts with; the text goes below where it does not fit.
    fn title(&mut self, finding: &Finding, text: &str) -> io::Result<()> {
        let codes = self
            .doc
            .findings
            .iter()
            .map(|finding| finding.code.as_str().len())
            .max()
            .unwrap_or(0);
        let severity = format!("{:<BODY$}", finding.severity.as_str());
        let code = finding.code.as_str();
        let text = harmless(text, self.style.ascii).into_owned();
        let tint = if finding.accepted {
            Tint::Faint
        } else {
            severity_tint(finding.severity)
        };
        let severity = self.style.paint(&severity, Some(tint));
        let indent = BODY + codes + 2;
        let room = self.style.width.min(Style::PROSE).saturating_sub(indent);
        if room < ROOM && width(&text) > room {
            writeln!(self.out, "{severity}{code}")?;
            return self.prose(&" ".repeat(BODY), None, &text);
        }
        let mut start = format!("{severity}{code:<codes$}  ");
        for line in wrap(&text, room) {
            writeln!(self.out, "{start}{line}")?;
            start = " ".repeat(indent);
        }
        Ok(())
    }

    fn info(&mut self, finding: &Finding) -> io::Result<()> {
        self.title(finding, &format!("{}: {}", subject(finding), finding.message))?;
        if self.wide { self.details(finding) } else { Ok(()) }
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.title(finding, &subject(finding))?;
        if !headline(self.doc).contains(finding.message.trim_end_matches('.')) {
            self.prose(&" ".repeat(BODY), None, &sentence(&finding.message))?;
        }
        self.details(finding)
    }

    /// Fix, reason and facts of a finding.
    fn details(&mut self, finding: &Finding) -> io::Result<()> {
        let mut label = format!("{:BODY$}fix: ", "");
        let indent = " ".repeat(label.len());
        let remedy = &finding.remedy;
        if !remedy.text.is_empty() {
            self.prose(&label, None, &remedy.text)?;
            label.clone_from(&indent);
        }
        if let Some(key) = &remedy.values_key {
            self.prose(&format!("{label}in your values: "), None, key)?;
            label.clone_from(&indent);
        }
        if let Some(command) = &remedy.command {
            self.command(&label, command)?;
        }
        let label = format!("{:BODY$}why: ", "");
        if self.wide {
            self.prose(&label, None, &sentence(&finding.consequence))?;
            for fact in &finding.evidence {
                self.prose(&format!("{:BODY$}   - ", ""), None, fact)?;
            }
            Ok(())
        } else {
            let facts = some_facts(&finding.evidence);
            let both = [facts.as_str(), &finding.consequence].into_iter().filter(|text| !text.is_empty());
            self.prose(&label, None, &sentence(&both.collect::<Vec<_>>().join("; ")))
        }
    }

    /// Node by node, where there are several.
    fn nodes(&mut self) -> io::Result<()> {
        let nodes = &self.doc.drain.per_node;
        if nodes.len() < 2 {
            return Ok(());
        }
        let mut table = Table::new(&["NODE", "OUTCOME", "WHY"], 2);
        for node in nodes {
            let outcome = match node.certainty {
                Certainty::Certain => node.outcome.as_str().to_owned(),
                Certainty::Possible => format!("{} (possible)", node.outcome.as_str()),
            };
            let tint = (node.outcome != DrainOutcome::Finishes).then_some(Tint::Bad);
            table.push(
                vec![
                    Cell::new(&node.node),
                    Cell::new(outcome).tinted(tint),
                    Cell::new(node.why.as_deref().unwrap_or_default()),
                ],
                vec![],
            );
        }
        self.table(&table)
    }

    fn table(&mut self, table: &Table) -> io::Result<()> {
        if table.is_empty() {
            return Ok(());
        }
        self.blank()?;
        table.write(self.style, self.out)
    }

    fn evictions(&mut self) -> io::Result<()> {
        let order = |row: &EvictionRow| self.doc.nodes.iter().position(|node| *node == row.node).unwrap_or(usize::MAX);
        let mut rows: Vec<&EvictionRow> = self.doc.evictions.iter().collect();
        rows.sort_by_cached_key(|row| (order(row), row.round.unwrap_or(u32::MAX), row.namespace.clone(), row.pod.clone()));
        let groups = if self.wide {
            rows.iter().map(|row| vec![*row]).collect()
        } else {
            grouped(rows.iter().copied().filter(|row| row.action != Action::Keep))
        };
        let counted = !self.wide && groups.len() > MANY_ROWS;
        let (plain, shown): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|group| counted && group.first().is_some_and(|row| just_moves(row)));

        let columns = Columns::of(self.doc, self.wide);
        let mut table = Table::new(&columns.headers(), columns.fixed());
        let mut rest = shown.as_slice();
        while let [group, others @ ..] = rest {
            let Some(row) = group.first() else { break };
            let reasons = replacement_reasons(&row.replacement, self.wide);
            // One reason for several rows in a row is said once, below the last of them.
            let said_later = others.first().and_then(|group| group.first()).is_some_and(|next| {
                !reasons.is_empty()
                    && next.replacement.outcome == row.replacement.outcome
                    && replacement_reasons(&next.replacement, self.wide) == reasons
            });
            let below = if said_later {
                Vec::new()
            } else {
                Vec::from_iter((!reasons.is_empty()).then_some(reasons))
            };
            table.push(columns.cells(group, row, self.wide), below);
            rest = others;
        }
        self.table(&table)?;
        if table.is_empty() && (!self.wide || rows.is_empty()) && plain.is_empty() {
            self.blank()?;
            self.prose("", None, &format!("Nothing is evicted from {}.", nodes_in_words(&self.doc.nodes)))?;
        }
        let moving = plain.iter().map(Vec::len).sum::<usize>();
        if moving > 0 {
            let namespaces: BTreeSet<&str> = plain.iter().flatten().map(|row| row.namespace.as_str()).collect();
            let namespaces = counted_word(namespaces.len(), "namespace");
            let text = format!(
                "{} more, in {namespaces}, just move: evicted, and placed on another node. -o wide shows each.",
                counted_word(moving, "pod")
            );
            self.prose("", None, &text)?;
        }
        match kept(&self.doc.evictions) {
            Some(text) if !self.wide => self.prose("", None, &text),
            _ => Ok(()),
        }
    }

    fn unserved(&mut self) -> io::Result<()> {
        let mut table = Table::new(&["UNSERVED", "UNTIL", "SERVICE"], 1);
        for row in &self.doc.unserved {
            let blast = (!row.blast.is_empty()).then(|| {
                let blast = if self.wide {
                    row.blast.join("; ")
                } else {
                    some_of(&row.blast, NAMED)
                };
                format!("refused meanwhile: {blast}")
            });
            let name = format!("{}/{}", served(row.what), row.name);
            let service = row.service.as_deref().unwrap_or_default();
            let tint = (row.until != Until::Already).then_some(if row.certainty == Certainty::Certain {
                Tint::Bad
            } else {
                Tint::Risk
            });
            table.push(
                vec![Cell::new(name), Cell::new(until(row)).tinted(tint), Cell::new(service)],
                Vec::from_iter(blast),
            );
        }
        self.table(&table)
    }

    fn leaders(&mut self) -> io::Result<()> {
        let mut table = Table::new(&["LEADER OF", "GAP", "HOLDER", "SUCCESSORS"], 3);
        for row in &self.doc.leaders {
            let successors = if self.wide {
                row.successors.join(", ")
            } else {
                some_of(&row.successors, NAMED)
            };
            let lease = if home(self.doc) == Some(&row.namespace) {
                row.lease.clone()
            } else {
                format!("{}/{}", row.namespace, row.lease)
            };
            table.push(
                vec![Cell::new(lease), Cell::new(gap(row)), Cell::new(&row.holder), Cell::new(successors)],
                vec![],
            );
        }
        self.table(&table)
    }

    fn afterwards(&mut self) -> io::Result<()> {
        let after = &self.doc.after;
        let list = |items: &[String]| match items {
            [] if self.doc.not_assessed.is_empty() => "nothing".to_owned(),
            [] => "nothing that was read".to_owned(),
            _ if self.wide => items.join(", "),
            _ => some_of(items, 2 * NAMED),
        };
        let pending = list(&after.pending);
        let exhausted = list(&after.exhausted_budgets);
        self.blank()?;
        self.prose("Pending until the uncordon: ", None, &pending)?;
        self.prose("Budgets used up: ", None, &exhausted)?;
        let next = if after.next_node_may_follow {
            "may follow at once"
        } else {
            "not before the uncordon"
        };
        let why = if after.why.is_empty() {
            String::new()
        } else {
            format!(": {}", after.why)
        };
        self.prose("The next node: ", None, &sentence(&format!("{next}{why}")))
    }

    fn not_assessed(&mut self) -> io::Result<()> {
        let (matters, rest): (Vec<&NotAssessed>, Vec<&NotAssessed>) = self.doc.not_assessed.iter().partition(|gap| gap.affects_verdict);
        for (title, gaps) in [
            ("Not assessed, and it could change the verdict:", matters),
            ("Not assessed, which changes nothing here:", rest),
        ] {
            if gaps.is_empty() {
                continue;
            }
            self.blank()?;
            self.prose("", None, title)?;
            for gap in gaps {
                self.prose("   ", None, &format!("{}: {}", gap.what, sentence(&gap.why)))?;
                if let Some(right) = &gap.missing_right {
                    self.prose("      missing right: ", None, &missing(right))?;
                }
            }
        }
        Ok(())
    }

    fn holds_for(&mut self) -> io::Result<()> {
        self.blank()?;
        let command = &self.doc.drain_command;
        self.command("Holds for: ", command)
    }
}

/// The finding that decides the verdict.
fn worst(doc: &DrainPreflight) -> Option<&Finding> {
    let open = doc
        .findings
        .iter()
        .filter(|finding| !finding.accepted && finding.severity > Severity::Info);
    // Of equals the first, as it is shown first.
    open.rev().max_by_key(|finding| (finding.severity, finding.certainty))
}

/// What to do, in one sentence.
fn to_do(doc: &DrainPreflight) -> String {
    let nodes = nodes_in_words(&doc.nodes);
    match worst(doc) {
        Some(finding) => {
            let text = finding.remedy.text.trim_end_matches(':').trim_end_matches("; or now");
            sentence(&format!("{} (fix below)", text.trim_end_matches('.')))
        }
        None if doc.after.next_node_may_follow => format!("drain {nodes} as below, then uncordon; the next node may follow at once."),
        None => format!("drain {nodes} as below, then uncordon and wait until nothing is Pending: only then the next node."),
    }
}

/// How the drain ends, and why the verdict is what it is.
fn headline(doc: &DrainPreflight) -> String {
    let start = outcome_in_words(doc);
    // A drain that finishes is no reason for a bad verdict: the worst finding is.
    match worst(doc) {
        Some(finding) if matches!(doc.drain.outcome, DrainOutcome::Finishes) => format!("{start}, but: {}", sentence(&finding.message)),
        _ if doc.drain.why.starts_with("Drain") => sentence(&doc.drain.why),
        _ => format!("{start}: {}", sentence(&doc.drain.why)),
    }
}

fn outcome_in_words(doc: &DrainPreflight) -> String {
    let nodes = nodes_in_words(&doc.nodes);
    let DrainResult { outcome, certainty, .. } = doc.drain;
    let (certain, possible) = match outcome {
        DrainOutcome::Finishes => ("finishes", "finishes"),
        DrainOutcome::NotReached => ("does not begin", "may not begin"),
        DrainOutcome::Refused => ("is refused", "may be refused"),
        DrainOutcome::Fails => ("fails", "may fail"),
        DrainOutcome::Hangs => ("hangs", "may hang"),
        DrainOutcome::Unknown => return format!("How draining {nodes} ends is not known"),
    };
    format!(
        "Draining {nodes} {}",
        if certainty == Certainty::Certain { certain } else { possible }
    )
}

/// What the drain comes to, in numbers.
fn summary(doc: &DrainPreflight) -> String {
    let count = |actions: &[Action]| doc.evictions.iter().filter(|row| actions.contains(&row.action)).count();
    let mut moves = Vec::new();
    let gone = count(&[Action::Evict, Action::Delete]);
    let rounds = doc.evictions.iter().filter_map(|row| row.round).max().unwrap_or(1);
    if gone > 0 {
        let rounds = if rounds > 1 {
            format!(" in {rounds} rounds")
        } else {
            String::new()
        };
        moves.push(format!(
            "{} {}{rounds}",
            counted_word(gone, "pod"),
            if gone == 1 { "goes" } else { "go" }
        ));
    }
    for (action, one, many) in [
        (Action::Stuck, "never goes", "never go"),
        (Action::Fail, "fails", "fail"),
        (Action::Refuse, "is refused", "are refused"),
        (Action::Keep, "stays", "stay"),
    ] {
        match count(&[action]) {
            0 => {}
            1 => moves.push(format!("1 {one}")),
            several => moves.push(format!("{several} {many}")),
        }
    }
    let moves = if doc.evictions.is_empty() {
        "No pod is on it".to_owned()
    } else {
        moves.join(", ")
    };
    let lost: Vec<&UnservedRow> = doc.unserved.iter().filter(|row| row.until != Until::Already).collect();
    let of = |kind: ServedKind| lost.iter().filter(|row| row.what == kind).count();
    let kinds = [
        (of(ServedKind::Webhook), "webhook"),
        (of(ServedKind::ApiService), "API"),
        (of(ServedKind::Conversion), "conversion webhook"),
        (of(ServedKind::Service), "Service"),
    ];
    let served = match listed(&kinds) {
        Some(kinds) if lost.iter().all(|row| row.certainty == Certainty::Possible) => format!("{kinds} may stop being served"),
        Some(kinds) => format!("{kinds} {} being served", if lost.len() == 1 { "stops" } else { "stop" }),
        None => "Nothing stops being served".to_owned(),
    };
    let leaders = match doc.leaders.len() {
        0 => "No leader moves".to_owned(),
        1 => "1 leader steps down".to_owned(),
        several => format!("{several} leaders step down"),
    };
    let next = if doc.after.next_node_may_follow {
        "may follow at once"
    } else {
        "has to wait for the uncordon"
    };
    // Counts of what was read are no counts where something was not.
    let known = if doc.not_assessed.is_empty() {
        ""
    } else {
        "As far as it was read: "
    };
    format!("{known}{moves}. {served}. {leaders}. The next node {next}.")
}

/// Where the answer comes from.
fn origin(doc: &DrainPreflight) -> String {
    let header = &doc.header;
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

fn nodes_in_words(nodes: &[String]) -> String {
    if nodes.len() <= NAMED {
        nodes.join(", ")
    } else {
        counted_word(nodes.len(), "node")
    }
}

fn counted_word(count: usize, word: &str) -> String {
    if count == 1 {
        format!("1 {word}")
    } else {
        format!("{count} {word}s")
    }
}

/// Several counts in words, or nothing where all are zero.
fn listed(counts: &[(usize, &str)]) -> Option<String> {
    let mut parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| counted_word(*count, word))
        .collect();
    let last = parts.pop()?;
    Some(if parts.is_empty() {
        last
    } else {
        format!("{} and {last}", parts.join(", "))
    })
}

/// Namespace of the install.
fn home(doc: &DrainPreflight) -> Option<&str> {
    doc.header.install.as_ref().map(|install| install.namespace.as_str())
}

/// The first of the items, and how many more there are.
fn some_of(items: &[String], named: usize) -> String {
    // Naming one more takes no more room than counting it.
    if items.len() <= named + 1 {
        return items.join(", ");
    }
    format!("{} and {} more", items[..named].join(", "), items.len() - named)
}

fn some_facts(facts: &[String]) -> String {
    if facts.len() <= NAMED + 1 {
        return facts.join("; ");
    }
    format!("{}; and {} more facts (-o wide)", facts[..NAMED].join("; "), facts.len() - NAMED)
}

/// The text with a full stop, where it has none.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() || text.ends_with(['.', '!', '?', ':']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

fn object(object: &ObjectRef) -> String {
    let name = format!("{}/{}", object.kind.to_lowercase(), object.name);
    match &object.namespace {
        Some(namespace) => format!("{name} ({namespace})"),
        None => name,
    }
}

/// What a finding is about, and how sure it is.
fn subject(finding: &Finding) -> String {
    let mut text = object(&finding.object);
    if let Some(node) = finding.node.as_ref().filter(|_| finding.object.kind != "Node") {
        text.push_str(&format!(" on {node}"));
    }
    if finding.certainty == Certainty::Possible {
        text.push_str(" (possible)");
    }
    if finding.accepted {
        text.push_str(" (accepted)");
    }
    text
}

const fn severity_tint(severity: Severity) -> Tint {
    match severity {
        Severity::Info => Tint::Faint,
        Severity::AtRisk => Tint::Risk,
        Severity::Unknown => Tint::Unknown,
        Severity::Unsafe => Tint::Bad,
    }
}

/// Pods of one controller with one fate, in the order of their first.
fn grouped<'a>(rows: impl Iterator<Item = &'a EvictionRow>) -> Vec<Vec<&'a EvictionRow>> {
    let mut groups: Vec<Vec<&EvictionRow>> = Vec::new();
    let mut known: BTreeMap<(&str, &str, &str), Vec<usize>> = BTreeMap::new();
    for row in rows {
        let Some(owner) = &row.owner else {
            groups.push(vec![row]);
            continue;
        };
        let candidates = known.entry((&row.namespace, &owner.name, &row.node)).or_default();
        let alike = candidates.iter().copied().find(|index| {
            groups[*index].first().is_some_and(|other| {
                (&other.owner, other.action, other.round, &other.budgets, &other.replacement)
                    == (&row.owner, row.action, row.round, &row.budgets, &row.replacement)
            })
        });
        match alike {
            Some(index) => groups[index].push(row),
            None => {
                candidates.push(groups.len());
                groups.push(vec![row]);
            }
        }
    }
    groups
}

/// Whether the pod is evicted and surely placed elsewhere.
fn just_moves(row: &EvictionRow) -> bool {
    matches!(row.action, Action::Evict | Action::Delete)
        && row.replacement.outcome == ReplacementOutcome::Lands
        && row.replacement.certainty == Certainty::Certain
}

/// Which columns the table of evictions needs.
struct Columns {
    node: bool,
    namespace: bool,
    owner: bool,
}

impl Columns {
    fn of(doc: &DrainPreflight, wide: bool) -> Self {
        let elsewhere = doc
            .evictions
            .iter()
            .any(|row| row.action != Action::Keep && Some(row.namespace.as_str()) != home(doc));
        Self {
            node: wide || doc.nodes.len() > 1,
            namespace: wide || elsewhere,
            owner: wide,
        }
    }

    fn headers(&self) -> Vec<&'static str> {
        let mut headers = vec!["ROUND"];
        headers.extend(self.node.then_some("NODE"));
        headers.extend(self.namespace.then_some("NAMESPACE"));
        headers.extend(["POD", "ACTION"]);
        headers.extend(self.owner.then_some("OWNER"));
        headers.extend(["REPLACEMENT", "BUDGET"]);
        headers
    }

    /// Columns up to the action.
    fn fixed(&self) -> usize {
        3 + usize::from(self.node) + usize::from(self.namespace)
    }

    fn cells(&self, group: &[&EvictionRow], row: &EvictionRow, wide: bool) -> Vec<Cell> {
        let mut cells = vec![Cell::new(row.round.map_or_else(|| "-".to_owned(), |round| round.to_string()))];
        cells.extend(self.node.then(|| Cell::new(&row.node)));
        cells.extend(self.namespace.then(|| Cell::new(&row.namespace)));
        cells.push(match &row.owner {
            Some(owner) if group.len() > 1 => Cell::new(format!("{} ({} pods)", owner.name, group.len())),
            _ => Cell::new(&row.pod),
        });
        cells.push(
            Cell::new(row.action.as_str()).tinted(matches!(row.action, Action::Stuck | Action::Fail | Action::Refuse).then_some(Tint::Bad)),
        );
        if self.owner {
            cells.push(Cell::new(
                row.owner
                    .as_ref()
                    .map_or_else(String::new, |owner| format!("{}/{}", owner.kind.to_lowercase(), owner.name)),
            ));
        }
        let tint = match row.replacement.outcome {
            ReplacementOutcome::None | ReplacementOutcome::Lands => None,
            ReplacementOutcome::Unknown => Some(Tint::Unknown),
            _ => Some(Tint::Risk),
        };
        cells.push(Cell::new(replacement(&row.replacement, wide)).tinted(tint));
        cells.push(Cell::new(row.budgets.join(", ")));
        cells
    }
}

/// What becomes of a replacement, in a few words.
fn replacement(replacement: &Replacement, wide: bool) -> String {
    let nodes = match replacement.nodes.as_slice() {
        [] => String::new(),
        [only] => format!(" on {only}"),
        [others @ .., last] if wide || others.len() < NAMED => format!(" on {} or {last}", others.join(", ")),
        many => format!(" on one of {} nodes", many.len()),
    };
    let possible = replacement.certainty == Certainty::Possible;
    match replacement.outcome {
        ReplacementOutcome::None => NONE.to_owned(),
        ReplacementOutcome::Lands if nodes.is_empty() => "lands".to_owned(),
        ReplacementOutcome::Lands => nodes.trim_start().to_owned(),
        ReplacementOutcome::CrashLoops => format!("{}{nodes}", if possible { "may crash-loop" } else { "crash-loops" }),
        ReplacementOutcome::Pending => if possible { "may stay Pending" } else { "stays Pending" }.to_owned(),
        ReplacementOutcome::Gated => if possible { "may stay gated" } else { "stays gated" }.to_owned(),
        ReplacementOutcome::NotCreated => if possible { "may not be created" } else { "not created" }.to_owned(),
        ReplacementOutcome::Unknown => "unknown".to_owned(),
    }
}

/// Why nodes do not take it: always where that is the news, everywhere when `wide`.
fn replacement_reasons(replacement: &Replacement, wide: bool) -> String {
    let news = !matches!(replacement.outcome, ReplacementOutcome::Lands | ReplacementOutcome::None);
    if !news && !wide {
        return String::new();
    }
    replacement
        .reasons
        .iter()
        .map(|reason| node_reason(reason, wide))
        .collect::<Vec<_>>()
        .join("; ")
}

fn node_reason(reason: &NodeReason, wide: bool) -> String {
    match reason.nodes.len() {
        0 if reason.count == 0 => reason.reason.clone(),
        named if named == reason.count && (wide || named <= NAMED) => format!("{}: {}", reason.nodes.join(", "), reason.reason),
        _ => format!("{}: {}", counted_word(reason.count, "node"), reason.reason),
    }
}

/// The pods that stay, in one line.
fn kept(rows: &[EvictionRow]) -> Option<String> {
    let count = |of: &dyn Fn(Option<&str>) -> bool| {
        rows.iter()
            .filter(|row| row.action == Action::Keep && of(row.owner.as_ref().map(|owner| owner.kind.as_str())))
            .count()
    };
    let daemons = count(&|kind| kind == Some("DaemonSet"));
    // The controller of a static pod's mirror is its node.
    let statics = count(&|kind| kind == Some("Node"));
    let others = count(&|kind| !matches!(kind, Some("DaemonSet" | "Node")));
    let text = listed(&[(daemons, "DaemonSet pod"), (statics, "static pod"), (others, "other pod")])?;
    Some(format!(
        "{text} {}.",
        if daemons + statics + others == 1 { "stays" } else { "stay" }
    ))
}

const fn served(what: ServedKind) -> &'static str {
    match what {
        ServedKind::Webhook => "webhook",
        ServedKind::ApiService => "apiservice",
        ServedKind::Conversion => "conversion",
        ServedKind::Service => "service",
    }
}

fn until(row: &UnservedRow) -> String {
    let mut text = match row.until {
        Until::Already => "before the drain already",
        Until::ReplacementReady => "its replacement is Ready",
        Until::Uncordon => "the uncordon",
        Until::Never => "somebody repairs it",
    }
    .to_owned();
    if row.deadlock {
        text.push_str(", deadlock");
    }
    if row.certainty == Certainty::Possible {
        text.push_str(" (possible)");
    }
    text
}

fn gap(row: &LeaderRow) -> String {
    match row.gap_seconds {
        [shortest, longest] if shortest == longest => format!("{longest} s"),
        [shortest, longest] => format!("{shortest} to {longest} s"),
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

#[cfg(test)]
mod tests {
    use super::super::documents;
    use super::*;

    fn shown(doc: &DrainPreflight, columns: usize, wide: bool) -> String {
        let style = Style {
            color: false,
            width: columns,
            ascii: false,
            headers: true,
        };
        let mut out = Vec::new();
        render(doc, &style, wide, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn looks() {
        for (name, doc) in documents::all() {
            for columns in [60, 100, 200] {
                insta::assert_snapshot!(format!("{name}-{columns}"), shown(&doc, columns, false));
            }
        }
        for (name, doc) in [("hangs", documents::hangs()), ("at-risk", documents::at_risk())] {
            insta::assert_snapshot!(format!("{name}-wide"), shown(&doc, 200, true));
            insta::assert_snapshot!(format!("{name}-piped"), shown(&doc, usize::MAX, false));
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for (name, doc) in documents::all() {
            for columns in (50..=240).step_by(7).chain([60, 100, 200]) {
                for wide in [false, true] {
                    for line in shown(&doc, columns, wide).lines() {
                        // One argument of a command may be longer: cut, it could not be pasted.
                        let alone = !line.trim().trim_end_matches(" \\").contains(' ') && (columns < 60 || line.contains('\''));
                        assert!(alone || width(line) <= columns, "{name} at {columns}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn hostile_text_cannot_act() {
        let doc = documents::hostile();
        for wide in [false, true] {
            let text = shown(&doc, 100, wide);
            assert!(
                text.chars()
                    .all(|character| character == '\n' || super::super::text::is_plain(character)),
                "{text:?}"
            );
            assert!(!text.lines().any(|line| line.trim_start().starts_with("SAFE")));
        }
    }

    #[test]
    fn colour_and_ascii_change_no_word() {
        for (_, doc) in documents::all() {
            let plain = shown(&doc, 100, false);
            let mut out = Vec::new();
            render(
                &doc,
                &Style {
                    color: true,
                    width: 100,
                    ascii: false,
                    headers: true,
                },
                false,
                &mut out,
            )
            .unwrap();
            let colored = String::from_utf8(out).unwrap();
            assert_ne!(colored, plain);
            assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
            let mut out = Vec::new();
            render(
                &doc,
                &Style {
                    color: false,
                    width: 100,
                    ascii: true,
                    headers: true,
                },
                false,
                &mut out,
            )
            .unwrap();
            assert!(out.is_ascii());
        }
    }

    #[test]
    fn nothing_to_evict_is_said() {
        let mut doc = documents::safe();
        doc.evictions.retain(|row| row.action == Action::Keep);
        let text = shown(&doc, 100, false);
        assert!(text.contains("Nothing is evicted from cp-1."), "{text}");
        assert!(text.contains("4 DaemonSet pods and 3 static pods stay."), "{text}");
        doc.evictions.clear();
        assert!(shown(&doc, 100, false).contains("No pod is on it."));
        assert!(shown(&doc, 100, true).contains("Nothing is evicted from cp-1."));
    }

    #[test]
    fn what_was_not_read_is_not_counted_as_nothing() {
        let text = shown(&documents::unknown(), usize::MAX, false);
        assert!(text.contains("As far as it was read: 1 pod goes"), "{text}");
        assert!(text.contains("Budgets used up: nothing that was read\n"), "{text}");
        assert!(
            text.contains("missing right: list poddisruptionbudgets.policy in namespace team-a\n"),
            "{text}"
        );
    }

    #[test]
    fn many_evictions_stay_readable() {
        let mut doc = documents::hangs();
        for app in 0..40 {
            for replica in 0..5 {
                doc.evictions.push(documents::evicted(
                    &format!("team-{}", app % 3),
                    &format!("web-{app}"),
                    &replica.to_string(),
                    "",
                    &["cp-2"],
                ));
            }
        }
        let text = shown(&doc, 100, false);
        assert!(text.contains("201 pods more, in 4 namespaces, just move"), "{text}");
        assert!(text.contains("stuck") && text.contains("stays Pending"), "{text}");
        assert!(text.lines().count() < 60, "{text}");
        assert_eq!(shown(&doc, 200, true).matches("web-39-").count(), 5);
    }

    #[test]
    fn a_verdict_and_its_reason_come_first() {
        let first = |doc: &DrainPreflight| shown(doc, usize::MAX, false).lines().next().unwrap().to_owned();
        let mut doc = documents::hangs();
        assert_eq!(
            first(&doc),
            "UNSAFE   Draining cp-1 hangs: kueue-manager-pdb wants 2 of Kueue's 2 replicas and never allows one to go."
        );
        doc.drain.certainty = Certainty::Possible;
        assert!(first(&doc).starts_with("UNSAFE   Draining cp-1 may hang: "));
        doc.drain.outcome = DrainOutcome::Finishes;
        assert!(first(&doc).starts_with("UNSAFE   Draining cp-1 finishes, but: kueue-manager-pdb wants"));
        doc.findings.clear();
        doc.verdict = Verdict::Safe;
        doc.nodes = (1..=4).map(|index| format!("cp-{index}")).collect();
        assert!(first(&doc).starts_with("SAFE     Draining 4 nodes finishes: "));
    }
}
