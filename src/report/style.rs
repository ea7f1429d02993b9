//! How a terminal wants its output.

use std::io::IsTerminal;

use anstream::{AutoStream, ColorChoice};
use owo_colors::OwoColorize;

/// What rendering depends on besides the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour. Colour only repeats what words say.
    pub color: bool,
    /// Columns that a line may take; `usize::MAX` where nothing limits it.
    pub width: usize,
    /// Whether to print ASCII only.
    pub ascii: bool,
    /// Whether tables have a line of headers.
    pub headers: bool,
}

/// A colour by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tint {
    /// All is well.
    Good,
    /// Something is lost or slowed.
    Risk,
    /// Not known.
    Unknown,
    /// It goes wrong.
    Bad,
    /// Beside the point.
    Faint,
}

impl Style {
    /// Columns that prose may take: longer lines are hard to read.
    pub const PROSE: usize = 120;

    /// Below this nothing can be laid out.
    const NARROWEST: usize = 40;

    /// The style for standard output: colours as asked for (`Auto` looks at the terminal, `NO_COLOR`, `CLICOLOR`,
    /// `CLICOLOR_FORCE` and `TERM`), the width from `COLUMNS` or the terminal, no limit where there is neither.
    pub fn detect(color: ColorChoice, ascii: bool, headers: bool) -> Self {
        let stdout = std::io::stdout();
        let color = match color {
            ColorChoice::Auto => AutoStream::choice(&stdout) != ColorChoice::Never,
            ColorChoice::Never => false,
            ColorChoice::Always | ColorChoice::AlwaysAnsi => true,
        };
        let asked = std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok())
            .filter(|columns| *columns > 0);
        let width = match asked {
            Some(columns) => columns,
            None if !stdout.is_terminal() => usize::MAX,
            None => terminal_size::terminal_size_of(&stdout).map_or(100, |(terminal_size::Width(columns), _)| columns.into()),
        };
        Self {
            color,
            width: width.max(Self::NARROWEST),
            ascii,
            headers,
        }
    }

    /// The text in a colour, where colours are wanted.
    pub fn paint(&self, text: &str, tint: Option<Tint>) -> String {
        if !self.color {
            return text.to_owned();
        }
        match tint {
            None => text.to_owned(),
            Some(Tint::Good) => text.green().bold().to_string(),
            Some(Tint::Risk) => text.yellow().bold().to_string(),
            Some(Tint::Unknown) => text.magenta().bold().to_string(),
            Some(Tint::Bad) => text.red().bold().to_string(),
            Some(Tint::Faint) => text.dimmed().to_string(),
        }
    }
}
