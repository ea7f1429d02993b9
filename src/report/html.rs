//! `-o html`: a page as one file without scripts, light and dark as the browser is, which prints well.

use std::io::{self, Write};

use super::manual::{Part, parts};
use super::page::{Block, Headline, Item, Page, Prose};
use super::style::{Style, Tint};
use super::table::Table;
use super::terminal::{severity_tint, verdict_tint};
use super::text::harmless;

/// How it looks; there is nothing else that a browser would load.
const CSS: &str = include_str!("page.css");

/// Writes the page.
///
/// # Errors
/// What writing fails with.
pub fn write(page: &Page, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut html = Html { style, out };
    let title = html.text(&page.title);
    write!(
        html.out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    )?;
    for (section, heading) in page.headed() {
        writeln!(html.out, "<section>")?;
        if let Some(heading) = heading {
            writeln!(html.out, "<h2>{heading}</h2>")?;
        }
        section.blocks.iter().try_for_each(|block| html.block(block))?;
        writeln!(html.out, "</section>")?;
    }
    writeln!(html.out, "</body>\n</html>")
}

struct Html<'a> {
    style: &'a Style,
    out: &'a mut dyn Write,
}

impl Html<'_> {
    fn text(&self, text: &str) -> String {
        escaped(text, self.style.ascii)
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        match block {
            Block::Headline(headline) => self.headline(headline),
            Block::Findings(items) => items.iter().try_for_each(|item| self.item(item)),
            Block::Table(table) => self.table(table),
            Block::Prose(prose) => self.prose(prose),
            Block::Command { label, command } => {
                if !label.is_empty() {
                    writeln!(self.out, "<p class=\"label\">{}:</p>", self.text(label))?;
                }
                self.command(command)
            }
            Block::Manual(text) => self.manual(text),
        }
    }

    fn manual(&mut self, text: &str) -> io::Result<()> {
        for part in parts(text) {
            match part {
                Part::Heading(heading) => writeln!(self.out, "<h2>{}</h2>", self.text(heading))?,
                Part::Text(text) => writeln!(self.out, "<p>{}</p>", self.spans(&text))?,
                Part::Item(text) => writeln!(self.out, "<ul><li>{}</li></ul>", self.spans(&text))?,
                Part::Code(text) => {
                    let lines: Vec<String> = text.lines().map(|line| self.text(line)).collect();
                    writeln!(self.out, "<pre><code>{}</code></pre>", lines.join("\n"))?;
                }
            }
        }
        Ok(())
    }

    /// Text with what stands between backticks as code.
    fn spans(&self, text: &str) -> String {
        let spans = text.split('`').enumerate().map(|(index, span)| match index % 2 {
            0 => self.text(span),
            _ => format!("<code>{}</code>", self.text(span)),
        });
        spans.collect()
    }

    fn headline(&mut self, headline: &Headline) -> io::Result<()> {
        let class = class(verdict_tint(headline.verdict));
        writeln!(
            self.out,
            "<div class=\"headline {class}\">\n<p class=\"reason\"><span class=\"badge {class}\">{}</span>{}</p>",
            headline.verdict.as_str().to_uppercase(),
            self.text(&headline.text)
        )?;
        headline.notes.iter().try_for_each(|note| self.prose(note))?;
        writeln!(self.out, "</div>")
    }

    fn prose(&mut self, prose: &Prose) -> io::Result<()> {
        let class = match prose.depth {
            0 => "",
            1 => " class=\"deep\"",
            _ => " class=\"deeper\"",
        };
        writeln!(self.out, "<p{class}>{}</p>", self.labelled(&prose.label, &prose.text))
    }

    fn labelled(&self, label: &str, text: &str) -> String {
        if label.is_empty() {
            self.text(text)
        } else {
            format!("<span class=\"label\">{}:</span> {}", self.text(label), self.text(text))
        }
    }

    fn command(&mut self, command: &str) -> io::Result<()> {
        writeln!(self.out, "<pre><code>{}</code></pre>", self.text(command))
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        let severity = item.severity.as_str();
        let tint = class(severity_tint(item.severity));
        let accepted = if item.accepted { " accepted" } else { "" };
        let brief = if item.is_brief() { " brief" } else { "" };
        writeln!(
            self.out,
            "<div class=\"finding {tint}{brief}{accepted}\">\n<h3><span class=\"badge {tint}\">{severity}</span><code>{}</code> {}</h3>",
            item.code.as_str(),
            self.text(&item.subject)
        )?;
        for (label, text) in [("", &item.message), ("Fix", &item.remedy.text)] {
            if !text.is_empty() {
                writeln!(self.out, "<p>{}</p>", self.labelled(label, text))?;
            }
        }
        if let Some(key) = &item.remedy.values_key {
            writeln!(self.out, "<p>In your values: <code>{}</code></p>", self.text(key))?;
        }
        if let Some(command) = &item.remedy.command {
            self.command(command)?;
        }
        if !item.why.is_empty() {
            writeln!(self.out, "<p>{}</p>", self.labelled("Why", &item.why))?;
        }
        if !item.facts.is_empty() {
            writeln!(self.out, "<ul>")?;
            for fact in &item.facts {
                writeln!(self.out, "<li>{}</li>", self.text(fact))?;
            }
            writeln!(self.out, "</ul>")?;
        }
        if let Some(meaning) = item.meaning {
            writeln!(
                self.out,
                "<p class=\"faint\"><code>{}</code>: {}</p>",
                item.code.as_str(),
                self.text(meaning)
            )?;
        }
        if let Some(command) = &item.explain {
            writeln!(self.out, "<p class=\"faint\">More: <code>{}</code></p>", self.text(command))?;
        }
        writeln!(self.out, "</div>")
    }

    /// A table; where the window is narrow, each row becomes a block with the headers before its fields.
    fn table(&mut self, table: &Table) -> io::Result<()> {
        writeln!(self.out, "<table>")?;
        if self.style.headers {
            let headers: String = table.headers().iter().map(|header| format!("<th>{header}</th>")).collect();
            writeln!(self.out, "<thead><tr>{headers}</tr></thead>")?;
        }
        writeln!(self.out, "<tbody>")?;
        for row in table.rows() {
            write!(self.out, "<tr>")?;
            for (cell, header) in row.cells.iter().zip(table.headers()) {
                let label = if self.style.headers {
                    format!(" data-label=\"{header}\"")
                } else {
                    String::new()
                };
                let tint = cell.tint.map_or_else(String::new, |tint| format!(" class=\"{}\"", class(tint)));
                write!(self.out, "<td{label}{tint}>{}</td>", breakable(&self.text(&cell.text)))?;
            }
            writeln!(self.out, "</tr>")?;
            if !row.below.is_empty() {
                let text = self.text(&row.below.join("; "));
                writeln!(self.out, "<tr class=\"below\"><td colspan=\"{}\">{text}</td></tr>", row.cells.len())?;
            }
        }
        writeln!(self.out, "</tbody>\n</table>")
    }
}

const fn class(tint: Tint) -> &'static str {
    match tint {
        Tint::Good => "good",
        Tint::Risk => "risk",
        Tint::Unknown => "unknown",
        Tint::Bad => "bad",
        Tint::Faint => "faint",
    }
}

/// Escaped text that may be broken between the parts of its names.
fn breakable(text: &str) -> String {
    text.replace('/', "/<wbr>").replace('.', ".<wbr>").replace('_', "_<wbr>")
}

/// Text that a browser shows as it is, in an element or in a quoted attribute.
fn escaped(text: &str, ascii: bool) -> String {
    let text = harmless(text, ascii);
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::super::documents;
    use super::super::page::Report;
    use super::*;

    fn shown(page: &Page, ascii: bool, headers: bool) -> String {
        let style = Style {
            color: false,
            width: usize::MAX,
            ascii,
            headers,
        };
        let mut out = Vec::new();
        write(page, &style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The page without its style.
    fn body(text: &str) -> &str {
        &text[text.find("<body>").unwrap()..]
    }

    #[test]
    fn looks() {
        for (name, doc) in documents::all() {
            insta::assert_snapshot!(name, body(&shown(&doc.page(true), false, true)));
        }
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(escaped("<script>\"&'", false), "&lt;script&gt;&quot;&amp;&#39;");
        assert_eq!(escaped("a\n\u{202e}\u{1b}b", false), "a\\u{a}\\u{202e}\\u{1b}b");
    }

    #[test]
    fn no_element_comes_from_the_cluster() {
        let ours = [
            "body", "h1", "h2", "h3", "section", "div", "p", "span", "code", "pre", "ul", "li", "table", "thead", "tbody", "tr", "th",
            "td", "wbr", "html",
        ];
        for (name, doc) in documents::all() {
            let text = shown(&doc.page(true), false, true);
            for tag in body(&text).split('<').skip(1) {
                let tag = tag.trim_start_matches('/');
                let end = tag.find(|character: char| !character.is_ascii_alphanumeric()).unwrap();
                assert!(ours.contains(&&tag[..end]), "{name}: {tag}");
            }
        }
    }

    #[test]
    fn ascii_and_bare_on_request() {
        let mut doc = documents::at_risk();
        doc.findings[0].message = "größer".to_owned();
        assert!(!shown(&doc.page(true), false, true).is_ascii());
        assert!(shown(&doc.page(true), true, true).is_ascii());
        let bare = shown(&doc.page(true), false, false);
        assert!(!body(&bare).contains("<th>") && !body(&bare).contains("data-label"));
    }
}
