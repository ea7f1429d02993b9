//! Places in a text.

/// A place in an input: line and column, both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

impl Place {
    /// The beginning of a text.
    pub(super) const START: Self = Self { line: 1, column: 1 };

    /// The place after the bytes.
    pub(super) fn after(self, bytes: &[u8]) -> Self {
        let characters = |bytes: &[u8]| size(bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count());
        match bytes.iter().rposition(|&byte| byte == b'\n') {
            None => Self {
                line: self.line,
                column: self.column.saturating_add(characters(bytes)),
            },
            Some(last) => Self {
                line: self
                    .line
                    .saturating_add(size(bytes[..=last].iter().filter(|&&byte| byte == b'\n').count())),
                column: 1 + characters(&bytes[last + 1..]),
            },
        }
    }

    /// A place counted from `self`, seen from where `self` is counted from.
    pub(super) fn plus(self, line: u64, column: u64) -> Self {
        let (line, column) = (size(line).max(1), size(column).max(1));
        let column = if line == 1 {
            self.column.saturating_add(column - 1)
        } else {
            column
        };
        Self {
            line: self.line.saturating_add(line - 1),
            column,
        }
    }
}

fn size(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}
