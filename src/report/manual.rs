//! The Markdown that this tool ships: headings, paragraphs, lists and blocks of code, and nothing else.

/// A part of such a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A heading.
    Heading(&'a str),
    /// A paragraph, as one line.
    Text(String),
    /// An item of a list, as one line.
    Item(String),
    /// A block of code, with its lines.
    Code(String),
}

/// The parts of a text, in order.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut code = false;
    let mut goes_on = false;
    for line in text.lines() {
        if line.starts_with("```") {
            code = !code;
            goes_on = false;
            if code {
                parts.push(Part::Code(String::new()));
            }
            continue;
        }
        match parts.last_mut() {
            Some(Part::Code(text)) if code => {
                text.push_str(line);
                text.push('\n');
            }
            _ if line.is_empty() => goes_on = false,
            Some(Part::Text(text) | Part::Item(text)) if goes_on && !line.starts_with("- ") => {
                text.push(' ');
                text.push_str(line.trim());
            }
            _ => {
                goes_on = true;
                parts.push(if let Some(heading) = line.strip_prefix("## ") {
                    Part::Heading(heading)
                } else if let Some(item) = line.strip_prefix("- ") {
                    Part::Item(item.to_owned())
                } else {
                    Part::Text(line.to_owned())
                });
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_written() {
        let text = "One\ntwo.\n\n## Head\n\n- a\n  b\n- c\n\n```\nx\n\n  y\n```\n\nEnd.\n";
        assert_eq!(
            parts(text),
            [
                Part::Text("One two.".to_owned()),
                Part::Heading("Head"),
                Part::Item("a b".to_owned()),
                Part::Item("c".to_owned()),
                Part::Code("x\n\n  y\n".to_owned()),
                Part::Text("End.".to_owned()),
            ]
        );
    }
}
