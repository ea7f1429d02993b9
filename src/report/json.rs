//! `-o json`.

use std::io::{self, Write};

use serde::Serialize;

use super::text::is_plain;

/// Writes the document as JSON, indented by two spaces, with a newline at its end.
///
/// What could act on a terminal is escaped, which changes no value: JSON leaves it to the writer.
///
/// # Errors
/// What writing fails with.
pub fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    let mut shown = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if character == '\n' || is_plain(character) {
            shown.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    shown.push('\n');
    out.write_all(shown.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[test]
    fn says_the_same_without_harm() {
        let document = json!({"name": "a\u{1b}[2J\u{9b}\u{202e}\u{e0041}\nb", "list": [1, null]});
        let mut out = Vec::new();
        super::write(&document, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "{\n  \"list\": [\n    1,\n    null\n  ],\n  \"name\": \"a\\u001b[2J\\u009b\\u202e\\udb40\\udc41\\nb\"\n}\n"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
    }
}
