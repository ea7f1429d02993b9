//! Which install is meant, where there are several.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::gpustack::install::Install;
use crate::report::text::harmless;

use super::failure::Failure;

/// The install meant: asked for on a terminal, an error elsewhere.
///
/// # Errors
/// There are several, and nobody says which.
pub fn which(mut installs: Vec<Install<'_>>) -> Result<Install<'_>, Failure> {
    let list: Vec<String> = installs
        .iter()
        .map(|install| format!("--release {} -n {}", install.release, install.namespace))
        .collect();
    let chosen = if io::stdin().is_terminal() && io::stderr().is_terminal() {
        choose(&list, &mut io::stdin().lock(), &mut io::stderr().lock())
    } else {
        None
    };
    match chosen {
        Some(index) => Ok(installs.swap_remove(index)),
        None => Err(Failure::usage(
            "there is more than one GPUStack install",
            Some(format!("say which: {}", list.join(", or "))),
        )),
    }
}

/// Asks for one of the items by its number, until the answer is one; `None` where nobody answers.
fn choose(items: &[String], answers: &mut impl BufRead, questions: &mut impl Write) -> Option<usize> {
    for (index, item) in items.iter().enumerate() {
        writeln!(questions, "{:>3}  {}", index + 1, harmless(item, false)).ok()?;
    }
    loop {
        write!(questions, "There is more than one GPUStack install. Which (1 to {})? ", items.len()).ok()?;
        questions.flush().ok()?;
        let mut answer = String::new();
        if answers.read_line(&mut answer).ok()? == 0 {
            return None;
        }
        match answer.trim().parse::<usize>() {
            Ok(number) if (1..=items.len()).contains(&number) => return Some(number - 1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn asks_until_the_answer_is_a_number_of_the_list() {
        let items = ["--release a -n one".to_owned(), "--release b\u{1b}[2J -n two".to_owned()];
        let ask = |answers: &str| {
            let mut questions = Vec::new();
            let chosen = choose(&items, &mut answers.as_bytes(), &mut questions);
            (chosen, String::from_utf8(questions).unwrap())
        };
        let (chosen, questions) = ask("0\nb\n3\n 2 \n");
        assert_eq!(chosen, Some(1));
        assert_eq!(questions.matches("Which (1 to 2)?").count(), 4);
        assert!(
            questions.contains("  1  --release a -n one\n") && !questions.contains('\u{1b}'),
            "{questions}"
        );
        assert_eq!(ask("1\n").0, Some(0));
        assert_eq!(ask("").0, None);
    }
}
