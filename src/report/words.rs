//! Numbers, lists and objects in words, as every page has them.

use super::finding::{Certainty, Finding, ObjectRef};

/// Objects, nodes or facts that a line names before it counts.
pub const NAMED: usize = 3;

/// A number of things: `1 pod`, `2 pods`.
pub fn counted(count: usize, word: &str) -> String {
    if count == 1 {
        format!("1 {word}")
    } else {
        format!("{count} {word}s")
    }
}

/// Several counts in words, or nothing where all are zero.
pub fn counts(counts: &[(usize, &str)]) -> Option<String> {
    let mut parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| counted(*count, word))
        .collect();
    let last = parts.pop()?;
    Some(if parts.is_empty() {
        last
    } else {
        format!("{} and {last}", parts.join(", "))
    })
}

/// The first of the items, and how many more there are.
pub fn some_of(items: &[String], named: usize) -> String {
    // Naming one more takes no more room than counting it.
    if items.len() <= named + 1 {
        return items.join(", ");
    }
    format!("{} and {} more", items[..named].join(", "), items.len() - named)
}

/// The first of the facts, and how many more there are.
pub fn some_facts(facts: &[String]) -> String {
    if facts.len() <= NAMED + 1 {
        return facts.join("; ");
    }
    format!("{}; and {} more facts (-o wide)", facts[..NAMED].join("; "), facts.len() - NAMED)
}

/// The nodes by name, or their number where there are many.
pub fn nodes(nodes: &[String]) -> String {
    if nodes.len() <= NAMED {
        nodes.join(", ")
    } else {
        counted(nodes.len(), "node")
    }
}

/// A time as kubectl writes it, such as `5s`, `3m12s`, `4h`.
pub fn span(seconds: i64) -> String {
    match seconds {
        ..0 => format!("{seconds}s"),
        0..120 => format!("{seconds}s"),
        120..600 => format!("{}m{}s", seconds / 60, seconds % 60),
        600..10_800 => format!("{}m", seconds / 60),
        10_800..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The text with a full stop, where it has none.
pub fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() || text.ends_with(['.', '!', '?', ':']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// An object: `kind/name (namespace)`.
pub fn object(object: &ObjectRef) -> String {
    let name = format!("{}/{}", object.kind.to_lowercase(), object.name);
    match &object.namespace {
        Some(namespace) => format!("{name} ({namespace})"),
        None => name,
    }
}

/// What a finding is about, and how sure it is.
pub fn subject(finding: &Finding) -> String {
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
