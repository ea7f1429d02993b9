//! `-o json`.

use std::io::{self, Write};

use serde::Serialize;

use super::text::is_plain;

/// Writes the document as JSON, indented by two spaces, with a newline at its end, through [`plain_json`].
///
/// # Errors
/// What writing fails with.
pub fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    out.write_all(plain_json(&text).as_bytes())?;
    out.write_all(b"\n")
}

/// JSON with what could act on a terminal escaped, which changes no value.
pub fn plain_json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for character in json.chars() {
        if character == '\n' || is_plain(character) {
            plain.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                plain.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    plain
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
