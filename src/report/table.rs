//! Tables that look at home beside kubectl's: upper-case headers, gaps of three spaces, no borders, `<none>`.
//!
//! A row is never wrapped. Where the terminal is too narrow, columns go below the row from the right, as prose; names
//! in the columns that stay are cut in the middle only when nothing else is left to give.

use std::io::{self, Write};

use super::style::{Style, Tint};
use super::text::{cut_middle, harmless, width, wrap};

/// What stands where there is nothing to name.
pub const NONE: &str = "<none>";

const GAP: usize = 3;
const INDENT: usize = 3;

/// A field of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Text; never empty.
    pub text: String,
    /// Colour.
    pub tint: Option<Tint>,
}

impl Cell {
    /// A field with a text; an empty one shows [`NONE`].
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            text: if text.is_empty() { NONE.to_owned() } else { text },
            tint: None,
        }
    }

    /// The same in a colour.
    pub fn tinted(self, tint: Option<Tint>) -> Self {
        Self { tint, ..self }
    }
}

/// A row, with what is said below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// A field for each header.
    pub cells: Vec<Cell>,
    /// Prose about the row.
    pub below: Vec<String>,
    /// Whether the next row has the same below it, so that it can be said there for both.
    pub like_next: bool,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    headers: Vec<&'static str>,
    fixed: usize,
    rows: Vec<Row>,
}

/// How the columns are laid out for a width.
struct Layout {
    /// Widths of the columns that stand in the row.
    widths: Vec<usize>,
}

impl Table {
    /// A table with these headers, of which the first `fixed` never go below the row.
    pub fn new(headers: &[&'static str], fixed: usize) -> Self {
        Self {
            headers: headers.to_vec(),
            fixed: fixed.clamp(1, headers.len().max(1)),
            rows: Vec::new(),
        }
    }

    /// Adds a row; each text of `below` is prose on a line of its own below it.
    pub fn push(&mut self, cells: Vec<Cell>, below: Vec<String>) {
        self.rows.push(Row {
            cells,
            below,
            like_next: false,
        });
    }

    /// Adds a row of which the same is to be said as of the next one.
    pub fn push_like_next(&mut self, cells: Vec<Cell>, below: Vec<String>) {
        self.rows.push(Row {
            cells,
            below,
            like_next: true,
        });
    }

    /// The headers.
    pub fn headers(&self) -> &[&'static str] {
        &self.headers
    }

    /// The rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table, no line wider than the style's width.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn write(&self, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        let rows: Vec<Row> = self.rows.iter().map(|row| row.harmless(style.ascii)).collect();
        let layout = self.layout(&rows, style.width);
        if style.headers {
            let headers: Vec<Cell> = self.headers.iter().map(|header| Cell::new(*header)).collect();
            layout.write(&headers.iter().collect::<Vec<_>>(), style, out)?;
        }
        for row in &rows {
            let mut standing = Vec::new();
            let mut moved = Vec::new();
            for (index, cell) in row.cells.iter().enumerate() {
                // Only the last column can be narrower than its text without being cut.
                let fits = layout
                    .widths
                    .get(index)
                    .is_some_and(|columns| index < self.fixed || index + 1 < layout.widths.len() || width(&cell.text) <= *columns);
                if fits {
                    standing.push(cell);
                } else if cell.text != NONE {
                    moved.push(format!(
                        "{}: {}",
                        self.headers.get(index).map_or_else(String::new, |header| header.to_lowercase()),
                        cell.text
                    ));
                }
            }
            layout.write(&standing, style, out)?;
            let moved = (!moved.is_empty()).then(|| moved.join("; "));
            let below = row.below.iter().filter(|_| !row.like_next);
            for text in moved.iter().chain(below) {
                for line in wrap(text, style.width.min(Style::PROSE).saturating_sub(INDENT)) {
                    writeln!(out, "{:INDENT$}{line}", "")?;
                }
            }
        }
        Ok(())
    }

    fn layout(&self, rows: &[Row], available: usize) -> Layout {
        let cell_widths = |column: usize| {
            rows.iter()
                .filter_map(move |row| row.cells.get(column))
                .map(|cell| width(&cell.text))
        };
        let mut widths: Vec<usize> = self
            .headers
            .iter()
            .enumerate()
            .map(|(column, header)| cell_widths(column).fold(width(header), usize::max))
            .collect();
        let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        while total(&widths) > available && widths.len() > self.fixed {
            let last = widths.len() - 1;
            let room = available.saturating_sub(total(&widths[..last]) + GAP);
            // A few long texts go below their rows alone; otherwise the whole column does.
            let fitting = cell_widths(last).filter(|columns| *columns <= room).count();
            if room >= width(self.headers[last]) && fitting * 2 >= rows.len() {
                widths[last] = room;
            } else {
                widths.pop();
            }
        }
        while total(&widths) > available {
            match widths.iter_mut().max_by_key(|columns| **columns) {
                Some(widest) if *widest > 1 => *widest -= 1,
                _ => break,
            }
        }
        Layout { widths }
    }
}

impl Row {
    fn harmless(&self, ascii: bool) -> Self {
        Self {
            cells: self
                .cells
                .iter()
                .map(|cell| Cell {
                    text: harmless(&cell.text, ascii).into_owned(),
                    tint: cell.tint,
                })
                .collect(),
            below: self.below.iter().map(|text| harmless(text, ascii).into_owned()).collect(),
            like_next: self.like_next,
        }
    }
}

impl Layout {
    fn write(&self, cells: &[&Cell], style: &Style, out: &mut dyn Write) -> io::Result<()> {
        let mut line = String::new();
        let mut blanks = 0;
        for (cell, columns) in cells.iter().zip(&self.widths) {
            let text = cut_middle(&cell.text, *columns, style.ascii);
            line.extend(std::iter::repeat_n(' ', blanks));
            line.push_str(&style.paint(&text, cell.tint));
            blanks = columns - width(&text).min(*columns) + GAP;
        }
        writeln!(out, "{line}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["ROUND", "POD", "BUDGET", "REPLACEMENT"], 2);
        let mut row = |pod: &str, budget: &str, replacement: &str, below: &[&str]| {
            table.push(
                vec![Cell::new("1"), Cell::new(pod), Cell::new(budget), Cell::new(replacement)],
                below.iter().map(|text| (*text).to_owned()).collect(),
            );
        };
        row(
            "gpustack-operator-worker-645ff7d7c5-dv2rt",
            "gpustack-operator-worker",
            "Pending",
            &["cp-1: cordoned; 2 nodes: spread on hostname"],
        );
        row("csi-s3-controller-65d776b67f-vxst2", "", "on cp-2 or cp-3", &[]);
        row("web-0", "web", "on one of the many nodes that are left", &[]);
        table
    }

    fn shown(table: &Table, width: usize, headers: bool) -> String {
        let mut out = Vec::new();
        table
            .write(
                &Style {
                    color: false,
                    width,
                    ascii: false,
                    headers,
                },
                &mut out,
            )
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn looks_like_kubectl() {
        insta::assert_snapshot!(shown(&table(), usize::MAX, true));
    }

    #[test]
    fn a_long_text_goes_below_its_row() {
        insta::assert_snapshot!(shown(&table(), 100, true));
    }

    #[test]
    fn columns_go_below_from_the_right() {
        insta::assert_snapshot!(shown(&table(), 60, true));
    }

    #[test]
    fn names_are_cut_last() {
        insta::assert_snapshot!(shown(&table(), 40, false));
    }

    #[test]
    fn no_line_is_wider() {
        for width in 20..140 {
            for line in shown(&table(), width, true).lines() {
                assert!(super::width(line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn colours_take_no_room() {
        let mut plain = Table::new(&["A", "B"], 1);
        plain.push(vec![Cell::new("stuck").tinted(Some(Tint::Bad)), Cell::new("x")], vec![]);
        let mut out = Vec::new();
        plain
            .write(
                &Style {
                    color: true,
                    width: 80,
                    ascii: false,
                    headers: false,
                },
                &mut out,
            )
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with('\u{1b}'));
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), "stuck   x\n");
    }
}
