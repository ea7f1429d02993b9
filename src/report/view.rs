//! What the pages of all views share.

use super::document::Header;
use super::finding::{Finding, Severity, Verdict};
use super::page::{self, Headline, Prose};
use super::words::sentence;

/// The headline of a view: the finding that decides the verdict, or what is good where none does.
pub fn headline(header: &Header, verdict: Verdict, findings: &[Finding], good: &str, wide: bool) -> Headline {
    let open = findings
        .iter()
        .filter(|finding| !finding.accepted && finding.severity > Severity::Info);
    // Of equals the first, as it is shown first.
    let worst = open.rev().max_by_key(|finding| (finding.severity, finding.certainty));
    let mut notes = Vec::new();
    if let Some(finding) = worst {
        let text = finding.remedy.text.trim_end_matches(':').trim_end_matches("; or now");
        notes.push(Prose::labelled(
            "To do",
            sentence(&format!("{} (fix below)", text.trim_end_matches('.'))),
        ));
    }
    if wide {
        notes.push(Prose::text(page::origin(header)));
    }
    Headline {
        verdict,
        text: worst.map_or_else(|| sentence(good), |finding| sentence(&capital(&finding.message))),
        notes,
    }
}

/// The text with a capital letter, unless it begins with a name.
fn capital(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    if first.chars().all(|character| character.is_ascii_lowercase()) {
        let mut characters = text.chars();
        return characters
            .next()
            .map(|character| character.to_uppercase().chain(characters).collect())
            .unwrap_or_default();
    }
    text.to_owned()
}
