//! What is wrong with an input: one error, with the place and the way out.

use std::fmt;

use super::place::Place;

/// Longest part of an untrusted text or line that is shown, in characters.
const SHOWN: usize = 120;

/// Why an input could not be read.
///
/// The first line of its text says it all; a second and third show the line, where there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct InputError {
    /// File, or "standard input".
    pub input: String,
    /// Where, if at a certain place.
    pub place: Option<Place>,
    /// Which document of the input, from 1; `None` where there is only one.
    pub document: Option<u32>,
    /// What is wrong.
    pub what: String,
    /// The line at `place`, made safe to print, and where in it the place is, from 0.
    pub excerpt: Option<Box<(String, u32)>>,
    hint: Option<String>,
}

impl InputError {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            input: String::new(),
            place: None,
            document: None,
            what: what.into(),
            excerpt: None,
            hint: None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        self.hint.clone()
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert(hint.into());
        self
    }

    pub(super) fn of_input(mut self, input: &str) -> Self {
        self.input = plain(input);
        self
    }

    pub(super) fn at(mut self, place: Place) -> Self {
        self.place.get_or_insert(place);
        self
    }

    /// Shows the line of the place; `text` starts at `start`.
    pub(super) fn showing(mut self, text: &str, start: Place) -> Self {
        let Some(place) = self.place else { return self };
        let Some(line) = place
            .line
            .checked_sub(start.line)
            .and_then(|index| text.lines().nth(index as usize))
        else {
            return self;
        };
        let offset = if place.line == start.line { start.column } else { 1 };
        let column = place.column.saturating_sub(offset) as usize;
        let skipped = column.saturating_sub(SHOWN / 2);
        let shown: String = line
            .chars()
            .skip(skipped)
            .take(SHOWN)
            .map(|character| if is_plain(character) { character } else { ' ' })
            .collect();
        if !shown.trim().is_empty() {
            self.excerpt = Some(Box::new((shown, u32::try_from(column - skipped).unwrap_or(0))));
        }
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot read {}", self.input)?;
        if let Some(place) = self.place {
            write!(formatter, ", line {}, column {}", place.line, place.column)?;
        }
        if let Some(document) = self.document {
            write!(formatter, " (document {document})")?;
        }
        write!(formatter, ": {}", self.what)?;
        if let (Some(excerpt), Some(place)) = (&self.excerpt, self.place) {
            let (line, column) = &**excerpt;
            let number = place.line.to_string();
            write!(
                formatter,
                "\n  {number} | {line}\n  {:width$} | {:>caret$}",
                "",
                "^",
                width = number.len(),
                caret = *column as usize + 1
            )?;
        }
        Ok(())
    }
}

/// Whether a character neither moves the cursor nor reorders what is around it.
fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Untrusted text, short and safe to print on one line.
pub(super) fn plain(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .map(|character| if is_plain(character) { character } else { '\u{fffd}' })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
