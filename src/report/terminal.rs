//! `-o table` and `-o wide`: a page as text, for a terminal of any width.

use std::io::{self, Write};

use super::finding::{Severity, Verdict};
use super::manual::{Part, parts};
use super::page::{Block, Headline, Item, Page, Prose};
use super::style::{Style, Tint};
use super::text::{harmless, width, wrap, wrap_command};

/// Where the text of a finding begins, below its severity.
const BODY: usize = 9;
/// Columns of a step of indentation.
const STEP: usize = 3;
/// Where code begins.
const CODE: usize = 4;
/// Columns that prose needs beside something; with fewer it goes below.
const ROOM: usize = 40;
/// A longer label stands on a line of its own where the text does not fit behind it.
const LABEL: usize = 15;

/// Writes the page: sections are divided by blank lines, and their headings left out.
///
/// # Errors
/// What writing fails with.
pub fn write(page: &Page, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut terminal = Terminal { style, out };
    for (index, section) in page.sections.iter().enumerate() {
        if index > 0 {
            writeln!(terminal.out)?;
        }
        for block in &section.blocks {
            terminal.block(block)?;
        }
    }
    Ok(())
}

/// The colour of a severity.
pub const fn severity_tint(severity: Severity) -> Tint {
    match severity {
        Severity::Info => Tint::Faint,
        Severity::AtRisk => Tint::Risk,
        Severity::Unknown => Tint::Unknown,
        Severity::Unsafe => Tint::Bad,
    }
}

/// The colour of a verdict.
pub const fn verdict_tint(verdict: Verdict) -> Tint {
    match verdict {
        Verdict::Safe => Tint::Good,
        Verdict::AtRisk => Tint::Risk,
        Verdict::Unknown => Tint::Unknown,
        Verdict::Unsafe => Tint::Bad,
    }
}

struct Terminal<'a> {
    style: &'a Style,
    out: &'a mut dyn Write,
}

impl Terminal<'_> {
    fn block(&mut self, block: &Block) -> io::Result<()> {
        match block {
            Block::Headline(headline) => self.headline(headline),
            Block::Findings(items) => self.findings(items),
            Block::Table(table) => table.write(self.style, self.out),
            Block::Prose(prose) => self.prose(0, prose),
            Block::Command { label, command } => self.command(&with_colon(label), command),
            Block::Manual(text) => self.manual(text),
        }
    }

    /// Parts stand apart by a blank line, items of a list below each other.
    fn manual(&mut self, text: &str) -> io::Result<()> {
        let mut before = None;
        for part in parts(text) {
            let item = matches!(part, Part::Item(_));
            if before.is_some_and(|before| !(before && item)) {
                writeln!(self.out)?;
            }
            before = Some(item);
            match part {
                Part::Heading(heading) => writeln!(self.out, "{}", heading.to_uppercase())?,
                Part::Text(text) => self.lines("", None, &text)?,
                Part::Item(text) => self.lines("- ", None, &text)?,
                Part::Code(text) => text.lines().try_for_each(|line| self.code(line))?,
            }
        }
        Ok(())
    }

    fn headline(&mut self, headline: &Headline) -> io::Result<()> {
        let label = format!("{:<BODY$}", headline.verdict.as_str().to_uppercase());
        self.lines(&label, Some(verdict_tint(headline.verdict)), &headline.text)?;
        headline.notes.iter().try_for_each(|note| self.prose(BODY, note))
    }

    fn prose(&mut self, indent: usize, prose: &Prose) -> io::Result<()> {
        let indent = indent + STEP * prose.depth;
        self.lines(&format!("{:indent$}{}", "", with_colon(&prose.label)), None, &prose.text)
    }

    /// Text behind a label, its further lines below its first word; below a long label where it does not fit behind it.
    fn lines(&mut self, label: &str, tint: Option<Tint>, text: &str) -> io::Result<()> {
        let text = harmless(text, self.style.ascii);
        let label = harmless(label, self.style.ascii);
        let mut indent = width(&label);
        let blanks = label.len() - label.trim_start().len();
        let mut start = format!("{:blanks$}{}", "", self.style.paint(label.trim_start(), tint));
        let columns = self.style.width.min(Style::PROSE);
        if indent > blanks + LABEL && indent + width(&text) > columns {
            writeln!(self.out, "{}", start.trim_end())?;
            indent = blanks + STEP;
            start = " ".repeat(indent);
        }
        for line in wrap(&text, columns.saturating_sub(indent)) {
            writeln!(self.out, "{start}{line}")?;
            start = " ".repeat(indent);
        }
        Ok(())
    }

    /// A line of code as it is, unless it is too long.
    fn code(&mut self, line: &str) -> io::Result<()> {
        let text = line.trim_start();
        let indent = CODE + line.len() - text.len();
        let room = self.style.width.saturating_sub(indent);
        let lines = match width(text) {
            0 => vec![String::new()],
            columns if columns <= room => vec![text.to_owned()],
            _ if text.starts_with("kubectl ") => wrap_command(text, room),
            _ => wrap(text, room),
        };
        for line in lines {
            writeln!(self.out, "{}", format!("{:indent$}{line}", "").trim_end())?;
        }
        Ok(())
    }

    /// A command to paste behind a label.
    fn command(&mut self, label: &str, text: &str) -> io::Result<()> {
        let text = harmless(text, self.style.ascii);
        let mut start = harmless(label, self.style.ascii).into_owned();
        let indent = width(&start);
        for line in wrap_command(&text, self.style.width.saturating_sub(indent)) {
            writeln!(self.out, "{start}{line}")?;
            start = " ".repeat(indent);
        }
        Ok(())
    }

    fn findings(&mut self, items: &[Item]) -> io::Result<()> {
        let codes = items.iter().map(|item| item.code.as_str().len()).max().unwrap_or(0);
        for item in items {
            self.title(item, codes)?;
            self.lines(&" ".repeat(BODY), None, &item.message)?;
            self.remedy(item)?;
            self.lines(&format!("{:BODY$}why: ", ""), None, &item.why)?;
            for fact in &item.facts {
                self.lines(&format!("{:BODY$}   - ", ""), None, fact)?;
            }
            if let Some(meaning) = item.meaning {
                self.lines(&format!("{:BODY$}{}: ", "", item.code.as_str()), Some(Tint::Faint), meaning)?;
            }
            if let Some(command) = &item.explain {
                self.command(&format!("{:BODY$}more: ", ""), command)?;
            }
        }
        Ok(())
    }

    /// The line that a finding starts with; the text goes below where it does not fit.
    fn title(&mut self, item: &Item, codes: usize) -> io::Result<()> {
        let code = item.code.as_str();
        let text = harmless(&item.subject, self.style.ascii).into_owned();
        let tint = if item.accepted { Tint::Faint } else { severity_tint(item.severity) };
        let severity = self.style.paint(&format!("{:<BODY$}", item.severity.as_str()), Some(tint));
        let indent = BODY + codes + 2;
        let room = self.style.width.min(Style::PROSE).saturating_sub(indent);
        if room < ROOM && width(&text) > room {
            writeln!(self.out, "{severity}{code}")?;
            return self.lines(&" ".repeat(BODY), None, &text);
        }
        let mut start = format!("{severity}{code:<codes$}  ");
        for line in wrap(&text, room) {
            writeln!(self.out, "{start}{line}")?;
            start = " ".repeat(indent);
        }
        Ok(())
    }

    fn remedy(&mut self, item: &Item) -> io::Result<()> {
        let mut label = format!("{:BODY$}fix: ", "");
        let indent = " ".repeat(label.len());
        let remedy = &item.remedy;
        if !remedy.text.is_empty() {
            self.lines(&label, None, &remedy.text)?;
            label.clone_from(&indent);
        }
        if let Some(key) = &remedy.values_key {
            self.lines(&format!("{label}in your values: "), None, key)?;
            label.clone_from(&indent);
        }
        match &remedy.command {
            Some(command) => self.command(&label, command),
            None => Ok(()),
        }
    }
}

fn with_colon(label: &str) -> String {
    if label.is_empty() { String::new() } else { format!("{label}: ") }
}
