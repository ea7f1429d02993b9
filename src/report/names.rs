//! `-o name`.

use std::io::{self, Write};

use super::text::is_plain;

/// Writes the names, a line each.
///
/// What no name in Kubernetes holds but a file may, such as a space or a quote, is escaped: `xargs` and shells would
/// take it for more than a part of a name.
///
/// # Errors
/// What writing fails with.
pub fn write(names: &[String], out: &mut dyn Write) -> io::Result<()> {
    for name in names {
        let mut line = String::with_capacity(name.len() + 1);
        for character in name.chars() {
            if is_plain(character) && !character.is_whitespace() && !r#"'"\"#.contains(character) {
                line.push(character);
            } else {
                line.extend(character.escape_unicode());
            }
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}
