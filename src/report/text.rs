//! Text for a terminal: made harmless, measured, cut and wrapped.
//!
//! Names and messages come from the cluster or from a file, so they may hold anything. Every renderer passes them
//! through [`harmless`] before it measures them.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Whether a terminal would show the character as itself, in a place of its own.
///
/// Controls act on the terminal; marks of direction, joiners and other characters without a width change how their
/// neighbours look. Those that are given a width all the same are named.
pub(super) fn is_plain(character: char) -> bool {
    !matches!(character, '\u{115f}' | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}') && character.width().is_some_and(|width| width > 0)
}

/// The text with everything that could act on a terminal written as an escape, such as `\u{1b}`; with `ascii` also
/// everything outside of ASCII.
pub fn harmless(text: &str, ascii: bool) -> Cow<'_, str> {
    let plain = |character: char| is_plain(character) && (!ascii || character.is_ascii());
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if plain(character) {
            shown.push(character);
        } else {
            shown.extend(character.escape_unicode());
        }
    }
    Cow::Owned(shown)
}

/// How many columns of a terminal the text takes.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// The longest start of the text that fits, in bytes.
fn fitting(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (index, character) in text.char_indices() {
        used += char_width(character);
        if used > columns {
            return index;
        }
    }
    text.len()
}

/// The text in at most `columns` columns, with an ellipsis in its middle where something was left out: the start of a
/// Kubernetes name says what it is and its end which one.
pub fn cut_middle(text: &str, columns: usize, ascii: bool) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let ellipsis = if ascii { "..." } else { "…" };
    let Some(room) = columns.checked_sub(width(ellipsis)).filter(|room| *room > 0) else {
        return text[..fitting(text, columns)].to_owned();
    };
    let mut tail = String::new();
    let mut left = room / 2;
    for character in text.chars().rev() {
        match left.checked_sub(char_width(character)) {
            Some(rest) => left = rest,
            None => break,
        }
        tail.insert(0, character);
    }
    let head = &text[..fitting(text, room - width(&tail))];
    format!("{head}{ellipsis}{tail}")
}

/// The prose in lines of at most `columns` columns, broken at spaces; a longer word is broken behind a
/// separator of its parts, else where the line ends.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for mut word in text.split(' ').filter(|word| !word.is_empty()) {
        let needed = width(word);
        if used > 0 && used + 1 + needed <= columns {
            line.push(' ');
            line.push_str(word);
            used += 1 + needed;
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
        }
        while width(word) > columns {
            // A character wider than the line still has to go somewhere.
            let fits = fitting(word, columns).max(word.chars().next().map_or(0, char::len_utf8));
            let end = word[..fits].rfind(['.', '/', ',', '=']).map_or(fits, |index| index + 1);
            lines.push(word[..end].to_owned());
            word = &word[end..];
        }
        line.push_str(word);
        used = width(word);
    }
    if used > 0 {
        lines.push(line);
    }
    lines
}

/// A shell command in lines of at most `columns` columns that can still be pasted: broken at spaces between arguments,
/// with a backslash at the end of the line. An argument that is longer stays whole.
pub fn wrap_command(command: &str, columns: usize) -> Vec<String> {
    const INDENT: &str = "  ";
    if width(command) <= columns {
        return vec![command.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for argument in arguments(command) {
        match lines.last_mut() {
            // The blank before the argument, and the blank and the backslash that may have to follow it.
            Some(line) if width(line) + 1 + width(argument) + 2 <= columns => {
                line.push(' ');
                line.push_str(argument);
            }
            Some(line) => {
                line.push_str(" \\");
                lines.push(format!("{INDENT}{argument}"));
            }
            None => lines.push(argument.to_owned()),
        }
    }
    lines
}

/// The command's arguments as they are written, quotes and backslashes included.
fn arguments(command: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut quote = None;
    let mut escaped = false;
    for (index, character) in command.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, ' ') => {
                found.push(&command[start..index]);
                start = index + 1;
            }
            (None, _) => {}
        }
    }
    found.push(&command[start..]);
    found.retain(|argument| !argument.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_text_stays() {
        for text in [
            "kueue-controller-manager-74f7d7bd55-gq6tc",
            "spread (1 here, 0 on cp-1)",
            "größer",
            "名前",
            "🙂",
        ] {
            assert!(matches!(harmless(text, false), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn what_acts_on_a_terminal_is_written_out() {
        assert_eq!(harmless("a\u{1b}[2Jb", false), "a\\u{1b}[2Jb");
        assert_eq!(harmless("a\nb\r\tc\0", false), "a\\u{a}b\\u{d}\\u{9}c\\u{0}");
        assert_eq!(harmless("\u{9b}31m\u{7f}", false), "\\u{9b}31m\\u{7f}");
        for mark in "\u{61c}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{202a}\u{202e}\u{2028}\u{2029}\u{2066}\u{2069}\u{feff}\u{ad}\u{115f}\u{3164}\u{ffa0}\u{fff9}\u{fffb}\u{fe0f}\u{e0041}".chars() {
            let text = format!("a{mark}b");
            assert_eq!(harmless(&text, false), format!("a\\u{{{:x}}}b", u32::from(mark)));
        }
        assert_eq!(harmless("größer", true), "gr\\u{f6}\\u{df}er");
    }

    #[test]
    fn names_are_cut_in_the_middle() {
        assert_eq!(
            cut_middle("gpustack-operator-worker-645ff7d7c5-dv2rt", 21, false),
            "gpustack-o…d7c5-dv2rt"
        );
        assert_eq!(
            cut_middle("gpustack-operator-worker-645ff7d7c5-dv2rt", 21, true),
            "gpustack-...7c5-dv2rt"
        );
        assert_eq!(cut_middle("abc", 3, false), "abc");
        assert_eq!(cut_middle("abcd", 1, false), "a");
        assert_eq!(cut_middle("名前名前", 6, false), "名…前");
    }

    #[test]
    fn long_words_are_broken_between_their_parts() {
        assert_eq!(
            wrap("set csi-driver-nfs.controller.topologySpreadConstraints", 30),
            ["set", "csi-driver-nfs.controller.", "topologySpreadConstraints"]
        );
        assert_eq!(wrap("abcdefgh", 5), ["abcde", "fgh"]);
    }

    #[test]
    fn commands_are_broken_between_arguments() {
        let command = r#"kubectl --context "a b" patch pdb x -p '{"spec": {"minAvailable": 1}}'"#;
        assert_eq!(wrap_command(command, 200), [command]);
        assert_eq!(
            wrap_command(command, 40),
            [
                r#"kubectl --context "a b" patch pdb x -p \"#,
                r#"  '{"spec": {"minAvailable": 1}}'"#
            ]
        );
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left(text in any::<String>(), ascii in any::<bool>()) {
            let shown = harmless(&text, ascii);
            prop_assert!(shown.chars().all(|character| is_plain(character) && (!ascii || character.is_ascii())));
        }

        #[test]
        fn nothing_is_wider_than_asked(text in any::<String>(), columns in 2_usize..80) {
            let text = harmless(&text, false).into_owned();
            prop_assert!(width(&cut_middle(&text, columns, false)) <= columns);
            for line in wrap(&text, columns) {
                prop_assert!(width(&line) <= columns);
            }
        }

        #[test]
        fn wrapping_loses_nothing(text in any::<String>(), columns in 2_usize..80) {
            let text = harmless(&text, false).into_owned();
            let squeezed = |text: &str| text.replace(' ', "");
            prop_assert_eq!(squeezed(&wrap(&text, columns).concat()), squeezed(&text));
        }
    }
}
