//! `-o yaml`.

use std::io::{self, Write};

use serde::Serialize;

/// Writes the document as YAML.
///
/// # Errors
/// What writing fails with.
pub fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_yaml::to_string(document).map_err(io::Error::other)?;
    out.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn quotes_what_would_be_read_otherwise() {
        let mut out = Vec::new();
        super::write(&json!({"flags": ["--force"], "name": "true", "escape": "a\u{1b}[2J\nb"}), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "escape: \"a\\e[2J\\nb\"\nflags:\n- --force\nname: 'true'\n");
    }
}
