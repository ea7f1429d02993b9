//! `-o markdown`: a page to paste into a ticket, for renderers in the manner of GitHub's.

use std::io::{self, Write};

use super::page::{Block, Headline, Item, Page, Prose};
use super::table::Table;
use super::text::harmless;

/// Writes the page, which begins with a heading of the second level.
///
/// # Errors
/// What writing fails with.
pub fn write(page: &Page, ascii: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut markdown = Markdown { ascii, blocks: Vec::new() };
    markdown.block(format!("## {}", markdown.text(&page.title)));
    for (section, heading) in page.headed() {
        if let Some(heading) = heading {
            markdown.block(format!("### {heading}"));
        }
        for block in &section.blocks {
            match block {
                Block::Headline(headline) => markdown.headline(headline),
                Block::Findings(items) => items.iter().for_each(|item| markdown.item(item)),
                Block::Table(table) => markdown.table(table),
                Block::Prose(prose) => markdown.prose(prose),
                // Below the page's own heading.
                Block::Manual(text) => markdown.block(text.replace("\n## ", "\n### ")),
                Block::Command { label, command } => {
                    if !label.is_empty() {
                        markdown.block(format!("**{}:**", markdown.text(label)));
                    }
                    markdown.command(command);
                }
            }
        }
    }
    let mut before: Option<&str> = None;
    for block in &markdown.blocks {
        match before {
            // Items of a list stand together.
            Some(before) if !(is_item(before) && is_item(block)) => writeln!(out)?,
            _ => {}
        }
        writeln!(out, "{block}")?;
        before = Some(block);
    }
    Ok(())
}

struct Markdown {
    ascii: bool,
    blocks: Vec<String>,
}

impl Markdown {
    fn block(&mut self, text: String) {
        self.blocks.push(text);
    }

    fn text(&self, text: &str) -> String {
        escaped(text, self.ascii)
    }

    fn labelled(&self, label: &str, text: &str) -> String {
        if label.is_empty() {
            self.text(text)
        } else {
            format!("**{}:** {}", self.text(label), self.text(text))
        }
    }

    fn headline(&mut self, headline: &Headline) {
        let verdict = headline.verdict.as_str().to_uppercase();
        self.block(format!("**{verdict}** {}", self.text(&headline.text)));
        for note in &headline.notes {
            self.block(format!("- {}", self.labelled(&note.label, &note.text)));
        }
    }

    fn prose(&mut self, prose: &Prose) {
        let text = self.labelled(&prose.label, &prose.text);
        self.block(match prose.depth.checked_sub(1) {
            None => text,
            Some(steps) => format!("{}- {text}", "  ".repeat(steps)),
        });
    }

    /// A finding: an item of a list where it has only a title, else with paragraphs below its title.
    fn item(&mut self, item: &Item) {
        let details = self.details(item);
        let title = format!(
            "**{}** `{}` {}",
            item.severity.as_str(),
            item.code.as_str(),
            self.text(&item.subject)
        );
        self.block(if details.is_empty() { format!("- {title}") } else { title });
        self.blocks.extend(details);
    }

    fn details(&self, item: &Item) -> Vec<String> {
        let mut blocks = Vec::new();
        if !item.message.is_empty() {
            blocks.push(self.text(&item.message));
        }
        let remedy = &item.remedy;
        if !remedy.text.is_empty() {
            blocks.push(self.labelled("Fix", &remedy.text));
        }
        if let Some(key) = &remedy.values_key {
            blocks.push(format!("In your values: {}", code(key, self.ascii)));
        }
        if let Some(command) = &remedy.command {
            blocks.push(fenced(command, self.ascii));
        }
        if !item.why.is_empty() {
            blocks.push(self.labelled("Why", &item.why));
        }
        blocks.extend(item.facts.iter().map(|fact| format!("- {}", self.text(fact))));
        if let Some(meaning) = item.meaning {
            blocks.push(format!("`{}`: {}", item.code.as_str(), self.text(meaning)));
        }
        if let Some(command) = &item.explain {
            blocks.push(format!("More: {}", code(command, self.ascii)));
        }
        blocks
    }

    fn command(&mut self, command: &str) {
        self.block(fenced(command, self.ascii));
    }

    /// A table; what is said below its rows is a column of its own.
    fn table(&mut self, table: &Table) {
        let details = table.rows().iter().any(|row| !row.below.is_empty());
        let mut headers = table.headers().to_vec();
        headers.extend(details.then_some("DETAILS"));
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let mut lines = vec![
            line(&headers.iter().map(|header| (*header).to_owned()).collect::<Vec<_>>()),
            line(&vec!["---".to_owned(); headers.len()]),
        ];
        for row in table.rows() {
            let mut cells: Vec<String> = row.cells.iter().map(|cell| self.text(&cell.text)).collect();
            cells.extend(details.then(|| self.text(&row.below.join("; "))));
            lines.push(line(&cells));
        }
        self.block(lines.join("\n"));
    }
}

fn is_item(block: &str) -> bool {
    block.trim_start().starts_with("- ")
}

/// Text that a renderer shows as it is: no markup, no HTML, and nothing that a tracker makes a mention or a link of.
fn escaped(text: &str, ascii: bool) -> String {
    /// An invisible character between what would be read together; a backslash does not keep a tracker from it.
    const APART: &str = "&#8203;";
    let text = harmless(text, ascii);
    let text = text.trim();
    let mut shown = String::with_capacity(text.len() + 16);
    // What a line may not begin with, or it is a list, a heading or a quote.
    let number = text.trim_start_matches(|character: char| character.is_ascii_digit());
    let listed = number.len() < text.len() && number.starts_with(['.', ')']);
    let marker = text.len() - number.len();
    for (index, character) in text.char_indices() {
        let next = text[index + character.len_utf8()..].chars().next();
        match character {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '|' | '~' | '$' | '!' => shown.extend(['\\', character]),
            '-' | '+' | '=' | '#' | '>' if index == 0 => shown.extend(['\\', character]),
            '.' | ')' if listed && index == marker => shown.extend(['\\', character]),
            _ => shown.push(character),
        }
        let www = character.eq_ignore_ascii_case(&'w') && text[..=index].to_ascii_lowercase().ends_with("www") && next == Some('.');
        if character == '@'
            || (character == '#' && next.is_some_and(|next| next.is_ascii_digit()))
            || (character == ':' && next == Some('/'))
            || www
        {
            shown.push_str(APART);
        }
    }
    shown
}

/// The longest run of backticks.
fn ticks(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

/// Text in a span of code.
fn code(text: &str, ascii: bool) -> String {
    let text = harmless(text, ascii);
    let fence = "`".repeat(ticks(&text) + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// A command in a block of code.
fn fenced(command: &str, ascii: bool) -> String {
    let command = harmless(command, ascii);
    let fence = "`".repeat(ticks(&command).max(2) + 1);
    format!("{fence}sh\n{command}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::super::documents;
    use super::super::page::Report;
    use super::*;

    fn shown(page: &Page, ascii: bool) -> String {
        let mut out = Vec::new();
        write(page, ascii, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn looks() {
        for (name, doc) in documents::all() {
            insta::assert_snapshot!(name, shown(&doc.page(false), false));
        }
    }

    #[test]
    fn text_stays_text() {
        for (text, expected) in [
            ("kueue-manager-pdb wants 2 of 3", "kueue-manager-pdb wants 2 of 3"),
            ("a|b `c` *d* _e_", r"a\|b \`c\` \*d\* \_e\_"),
            ("<script>&amp;", "&lt;script>&amp;amp;"),
            ("ask @team or #12, not #x", "ask @&#8203;team or #&#8203;12, not #x"),
            ("https://x www.y WWW.z", "https:&#8203;//x www&#8203;.y WWW&#8203;.z"),
            ("[a](b) ![c](d) {e} $f$ ~g~", r"\[a\](b) \!\[c\](d) \{e\} \$f\$ \~g\~"),
            ("- a", r"\- a"),
            ("12. a", r"12\. a"),
            ("1) a", r"1\) a"),
            ("# a", r"\# a"),
            ("> a", r"\> a"),
            ("    a", "a"),
            ("a\nb\u{1b}[2J\u{202e}", r"a\\u\{a\}b\\u\{1b\}\[2J\\u\{202e\}"),
        ] {
            assert_eq!(escaped(text, false), expected);
        }
    }

    #[test]
    fn code_stays_code() {
        assert_eq!(code("a: 1", false), "`a: 1`");
        assert_eq!(code("`a``", false), "``` `a`` ```");
        assert_eq!(fenced("kubectl get 'x'", false), "```sh\nkubectl get 'x'\n```");
        assert_eq!(fenced("a ```` b\n```", false), "`````sh\na ```` b\\u{a}```\n`````");
    }

    #[test]
    fn ascii_on_request() {
        let mut doc = documents::at_risk();
        doc.findings[0].message = "größer".to_owned();
        assert!(!shown(&doc.page(false), false).is_ascii());
        assert!(shown(&doc.page(false), true).is_ascii());
    }
}
