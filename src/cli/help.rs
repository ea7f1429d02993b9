//! The help of `kubectl gpustack-ha` itself: what people need first comes first.

use clap::{Command, CommandFactory};

use super::Cli;
use crate::report::text::wrap;

/// How wide the help may be.
const COLUMNS: usize = 80;

/// Headings, and the commands under each; one that this version does not have is left out.
pub const GROUPS: [(&str, &[&str]); 2] = [
    ("Before a drain", &["drain-preflight", "placement", "explain"]),
    ("More", &["pdb", "leases", "snapshot", "completion", "version", "help"]),
];

const EXAMPLES: &str = "\
Examples:
  kubectl gpustack-ha drain-preflight cp-1
  kubectl gpustack-ha drain-preflight cp-1 -f cluster.yaml --complete -o json
  kubectl gpustack-ha placement
  kubectl gpustack-ha explain pdb-blocks-drain
";

const REST: &str = "\
kubectl's own flags, such as --context, --kubeconfig, -n and --as, go after the
command. All flags of one: kubectl gpustack-ha COMMAND --help
";

/// The command line, with the help of its first level.
pub fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    let mut text = String::new();
    if let Some(about) = command.get_about() {
        text.push_str(&format!("{about}\n"));
    }
    let (first, rest) = (&GROUPS[..1], &GROUPS[1..]);
    push_groups(&mut text, &command, first);
    text.push_str(&format!("\n{EXAMPLES}"));
    push_groups(&mut text, &command, rest);
    text.push_str(&format!("\n{REST}"));
    Cli::command().override_help(text)
}

fn push_groups(text: &mut String, command: &Command, groups: &[(&str, &[&str])]) {
    let names = || GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names()
        .filter(|name| command.find_subcommand(name).is_some())
        .map(|name| name.len())
        .max()
        .unwrap_or_default();
    for (heading, names) in groups {
        text.push_str(&format!("\n{heading}:\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            if let Some(about) = about {
                let lines = wrap(&about.to_string(), COLUMNS - width - 4);
                let indent = format!("\n{:1$}", "", width + 4);
                text.push_str(&format!("  {name:width$}  {}\n", lines.join(&indent)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let mut command = Cli::command();
        command.build();
        for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
            let name = subcommand.get_name();
            let count = GROUPS.iter().flat_map(|(_, names)| *names).filter(|known| **known == name).count();
            assert_eq!(count, 1, "{name} belongs into one of the groups of src/cli/help.rs");
        }
    }

    #[test]
    fn help_fits_80_columns() {
        fn check(command: &mut Command) {
            for text in [command.render_help(), command.render_long_help()] {
                for line in text.to_string().lines() {
                    assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
                }
            }
            command.get_subcommands_mut().for_each(check);
        }
        let mut command = command();
        command.build();
        check(&mut command);
    }

    #[test]
    fn help_begins_with_what_people_need() {
        let text = command().render_help().to_string();
        let first: Vec<&str> = text.lines().take(4).collect();
        assert!(
            first[2] == "Before a drain:" && first[3].starts_with("  drain-preflight "),
            "{text}"
        );
    }
}
