//! The page of a drain preflight: the verdict and its reason, then what to do, then the evidence.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{
    Action, DrainOutcome, DrainPreflight, DrainResult, EvictionRow, LeaderRow, NodeReason, Replacement, ReplacementOutcome, ServedKind,
    UnservedRow, Until,
};
use super::finding::{Certainty, Finding, Severity};
use super::page::{self, Block, Headline, Page, Prose, Report};
use super::style::Tint;
use super::table::{Cell, NONE, Table};
use super::words::{self, NAMED, counted, counts, sentence, some_of};

/// Rows of evictions from which those that just move are counted instead of shown.
const MANY_ROWS: usize = 25;

impl Report for DrainPreflight {
    fn page(&self, wide: bool) -> Page {
        let headline = headline(self, wide);
        let mut page = Page::new(format!("Drain of {}", words::nodes(&self.nodes)));
        let said = headline.text.clone();
        page.section("", [headline.into()]);
        page.findings(&self.findings, &said, wide);
        page.section("Nodes", [nodes(self).into()]);
        page.section("Pods", evictions(self, wide));
        page.section("Unserved", [unserved(self, wide).into()]);
        page.section("Leaders", [leaders(self, wide).into()]);
        page.section("Afterwards", afterwards(self, wide));
        page.not_assessed(&self.not_assessed);
        page.section(
            "",
            [Block::Command {
                label: "Holds for".to_owned(),
                command: self.drain_command.clone(),
            }],
        );
        page
    }

    /// The pods that go, in the order in which they go; without namespaces, as kubectl's `-o name`.
    fn names(&self) -> Vec<String> {
        in_order(self)
            .into_iter()
            .filter(|row| goes(row))
            .map(|row| format!("pod/{}", row.pod))
            .collect()
    }
}

impl DrainPreflight {
    /// The pods that go.
    pub fn gone(&self) -> impl Iterator<Item = &EvictionRow> {
        self.evictions.iter().filter(|row| goes(row))
    }

    /// The finding that decides the verdict.
    pub fn worst(&self) -> Option<&Finding> {
        let open = self
            .findings
            .iter()
            .filter(|finding| !finding.accepted && finding.severity > Severity::Info);
        // Of equals the first, as it is shown first.
        open.rev().max_by_key(|finding| (finding.severity, finding.certainty))
    }
}

fn goes(row: &EvictionRow) -> bool {
    matches!(row.action, Action::Evict | Action::Delete)
}

fn headline(doc: &DrainPreflight, wide: bool) -> Headline {
    let mut notes = vec![Prose::labelled("To do", to_do(doc)), Prose::text(summary(doc))];
    if wide {
        notes.push(Prose::text(page::origin(&doc.header)));
    }
    Headline {
        verdict: doc.verdict,
        text: reason(doc),
        notes,
    }
}

/// Node by node, where there are several.
fn nodes(doc: &DrainPreflight) -> Table {
    let mut table = Table::new(&["NODE", "OUTCOME", "WHY"], 2);
    let nodes = &doc.drain.per_node;
    for node in nodes.iter().filter(|_| nodes.len() > 1) {
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
    table
}

/// The pods, node by node and round by round.
fn in_order(doc: &DrainPreflight) -> Vec<&EvictionRow> {
    let order = |row: &EvictionRow| doc.nodes.iter().position(|node| *node == row.node).unwrap_or(usize::MAX);
    let mut rows: Vec<&EvictionRow> = doc.evictions.iter().collect();
    rows.sort_by_cached_key(|row| (order(row), row.round.unwrap_or(u32::MAX), row.namespace.clone(), row.pod.clone()));
    rows
}

fn evictions(doc: &DrainPreflight, wide: bool) -> Vec<Block> {
    let rows = in_order(doc);
    let groups = if wide {
        rows.iter().map(|row| vec![*row]).collect()
    } else {
        grouped(rows.iter().copied().filter(|row| row.action != Action::Keep))
    };
    let counted_only = !wide && groups.len() > MANY_ROWS;
    let (plain, shown): (Vec<_>, Vec<_>) = groups
        .into_iter()
        .partition(|group| counted_only && group.first().is_some_and(|row| just_moves(row)));

    let columns = Columns::of(doc, wide);
    let mut table = Table::new(&columns.headers(), columns.fixed());
    let mut rest = shown.as_slice();
    while let [group, others @ ..] = rest {
        let Some(row) = group.first() else { break };
        let reasons = replacement_reasons(&row.replacement, wide);
        let same = others.first().and_then(|group| group.first()).is_some_and(|next| {
            next.replacement.outcome == row.replacement.outcome && replacement_reasons(&next.replacement, wide) == reasons
        });
        let below = Vec::from_iter((!reasons.is_empty()).then_some(reasons));
        let cells = columns.cells(group, row, wide);
        if same {
            table.push_like_next(cells, below);
        } else {
            table.push(cells, below);
        }
        rest = others;
    }
    let mut blocks = Vec::new();
    if table.is_empty() && plain.is_empty() {
        blocks.push(Prose::text(format!("Nothing is evicted from {}.", words::nodes(&doc.nodes))).into());
    }
    blocks.push(table.into());
    let moving = plain.iter().map(Vec::len).sum::<usize>();
    if moving > 0 {
        let namespaces: BTreeSet<&str> = plain.iter().flatten().map(|row| row.namespace.as_str()).collect();
        let namespaces = counted(namespaces.len(), "namespace");
        let text = format!(
            "{} more, in {namespaces}, just move: evicted, and placed on another node. -o wide shows each.",
            counted(moving, "pod")
        );
        blocks.push(Prose::text(text).into());
    }
    blocks.extend(kept(&doc.evictions).filter(|_| !wide).map(|text| Prose::text(text).into()));
    blocks
}

fn unserved(doc: &DrainPreflight, wide: bool) -> Table {
    let mut table = Table::new(&["UNSERVED", "UNTIL", "SERVICE"], 1);
    for row in &doc.unserved {
        let blast = (!row.blast.is_empty()).then(|| {
            let blast = if wide { row.blast.join("; ") } else { some_of(&row.blast, NAMED) };
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
    table
}

fn leaders(doc: &DrainPreflight, wide: bool) -> Table {
    let mut table = Table::new(&["LEADER OF", "GAP", "HOLDER", "SUCCESSORS"], 3);
    for row in &doc.leaders {
        let successors = if wide {
            row.successors.join(", ")
        } else {
            some_of(&row.successors, NAMED)
        };
        let lease = if home(doc) == Some(&row.namespace) {
            row.lease.clone()
        } else {
            format!("{}/{}", row.namespace, row.lease)
        };
        table.push(
            vec![Cell::new(lease), Cell::new(gap(row)), Cell::new(&row.holder), Cell::new(successors)],
            vec![],
        );
    }
    table
}

fn afterwards(doc: &DrainPreflight, wide: bool) -> [Block; 3] {
    let after = &doc.after;
    let list = |items: &[String]| match items {
        [] if doc.not_assessed.is_empty() => "nothing".to_owned(),
        [] => "nothing that was read".to_owned(),
        _ if wide => items.join(", "),
        _ => some_of(items, 2 * NAMED),
    };
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
    [
        Prose::labelled("Pending until the uncordon", list(&after.pending)),
        Prose::labelled("Budgets used up", list(&after.exhausted_budgets)),
        Prose::labelled("The next node", sentence(&format!("{next}{why}"))),
    ]
    .map(Block::from)
}

/// What to do, in one sentence.
fn to_do(doc: &DrainPreflight) -> String {
    let nodes = words::nodes(&doc.nodes);
    match doc.worst() {
        Some(finding) => {
            let text = finding.remedy.text.trim_end_matches(':').trim_end_matches("; or now");
            sentence(&format!("{} (fix below)", text.trim_end_matches('.')))
        }
        None if doc.after.next_node_may_follow => format!("drain {nodes} as below, then uncordon; the next node may follow at once."),
        None => format!("drain {nodes} as below, then uncordon and wait until nothing is Pending: only then the next node."),
    }
}

/// How the drain ends, and why the verdict is what it is.
fn reason(doc: &DrainPreflight) -> String {
    let start = outcome_in_words(doc);
    // A drain that finishes is no reason for a bad verdict: the worst finding is.
    match doc.worst() {
        Some(finding) if matches!(doc.drain.outcome, DrainOutcome::Finishes) => format!("{start}, but: {}", sentence(&finding.message)),
        _ if doc.drain.why.starts_with("Drain") => sentence(&doc.drain.why),
        _ => format!("{start}: {}", sentence(&doc.drain.why)),
    }
}

fn outcome_in_words(doc: &DrainPreflight) -> String {
    let nodes = words::nodes(&doc.nodes);
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
            counted(gone, "pod"),
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
    let served = match counts(&kinds) {
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

/// Namespace of the install.
fn home(doc: &DrainPreflight) -> Option<&str> {
    doc.header.install.as_ref().map(|install| install.namespace.as_str())
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
    goes(row) && row.replacement.outcome == ReplacementOutcome::Lands && row.replacement.certainty == Certainty::Certain
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
        _ => format!("{}: {}", counted(reason.count, "node"), reason.reason),
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
    let text = counts(&[(daemons, "DaemonSet pod"), (statics, "static pod"), (others, "other pod")])?;
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

#[cfg(test)]
mod tests {
    use super::super::documents;
    use super::super::style::Style;
    use super::super::terminal;
    use super::super::text::width;
    use super::*;
    use crate::report::finding::Verdict;

    fn shown(doc: &DrainPreflight, columns: usize, wide: bool) -> String {
        let style = Style {
            color: false,
            width: columns,
            ascii: false,
            headers: true,
        };
        let mut out = Vec::new();
        terminal::write(&doc.page(wide), &style, &mut out).unwrap();
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
            terminal::write(
                &doc.page(false),
                &Style {
                    color: true,
                    width: 100,
                    ascii: false,
                    headers: true,
                },
                &mut out,
            )
            .unwrap();
            let colored = String::from_utf8(out).unwrap();
            assert_ne!(colored, plain);
            assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
            let mut out = Vec::new();
            terminal::write(
                &doc.page(false),
                &Style {
                    color: false,
                    width: 100,
                    ascii: true,
                    headers: true,
                },
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
    fn each_code_is_explained_once() {
        let mut doc = documents::at_risk();
        let first = doc.findings[0].clone();
        for severity in [Severity::Unsafe, Severity::AtRisk, Severity::AtRisk, Severity::Info] {
            doc.findings.push(Finding { severity, ..first.clone() });
        }
        for wide in [false, true] {
            let text = shown(&doc, 100, wide);
            assert_eq!(text.matches("explain host-port-collision").count(), 1, "{text}");
        }
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
