//! The reference and the man pages are those of the command line. `BLESS=1 cargo test --test reference` writes them anew.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use clap::{Arg, Command};
use gpustack_ha::cli::help;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

/// The command line without `help`, with the names by which people call the commands.
fn command() -> Command {
    let mut command = help::command().disable_help_subcommand(true);
    command.build();
    command
}

#[test]
fn the_reference_is_current() {
    let files = BTreeMap::from([(folder("reference.md"), reference().into_bytes())]);
    current(&files);
}

#[test]
fn the_man_pages_are_current() {
    let mut command = command();
    let mut pages = BTreeMap::new();
    let mut add = |command: Command, name: String| {
        let mut page = Vec::new();
        let man = clap_mangen::Man::new(command).title(&name).manual("kubectl gpustack-ha");
        man.render(&mut page).unwrap();
        pages.insert(folder("man").join(format!("{name}.1")), page);
    };
    let root = command.get_name().to_owned();
    for subcommand in command.get_subcommands_mut() {
        add(subcommand.clone(), format!("{root}-{}", subcommand.get_name()));
    }
    add(command, root);
    let stale: Vec<PathBuf> = fs::read_dir(folder("man"))
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    for path in stale.iter().filter(|path| !pages.contains_key(*path)) {
        assert!(blessed(), "{} is of no command: BLESS=1 removes it", path.display());
        fs::remove_file(path).unwrap();
    }
    current(&pages);
}

fn blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

fn current(files: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, content) in files {
        if blessed() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let found = fs::read(path).unwrap_or_default();
        assert!(
            found == *content,
            "{} is not current: BLESS=1 cargo test --test reference",
            path.display()
        );
    }
}

fn reference() -> String {
    let command = command();
    let mut text = String::from(
        "<!-- Written by `BLESS=1 cargo test --test reference`. -->\n\n# Reference\n\n\
         `kubectl gpustack-ha COMMAND`; the flags at the end belong to all commands and go after the command.\n",
    );
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let mut subcommand = subcommand.clone();
        write!(text, "\n## {}\n\n", subcommand.get_name()).unwrap();
        if let Some(about) = subcommand.get_long_about().or(subcommand.get_about()) {
            write!(text, "{about}.\n\n").unwrap();
        }
        let usage = subcommand.render_usage().to_string();
        write!(text, "```\n{}\n```\n", usage.trim_start_matches("Usage: ")).unwrap();
        arguments(&mut text, &subcommand, false);
        if let Some(more) = subcommand.get_after_long_help().or(subcommand.get_after_help()) {
            let more = more.to_string();
            match more.contains('\n') {
                true => write!(text, "\n```\n{more}\n```\n").unwrap(),
                false => write!(text, "\n{more}\n").unwrap(),
            }
        }
    }
    text.push_str("\n## All commands\n");
    arguments(&mut text, &command, true);
    text
}

/// One table for each heading.
fn arguments(text: &mut String, command: &Command, global: bool) {
    let shown = |arg: &&Arg| arg.is_global_set() == global && !arg.is_hide_set() && arg.get_id() != "help";
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in command.get_arguments().filter(shown) {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        write!(text, "\n| {} | |\n|---|---|\n", heading.unwrap_or("Arguments")).unwrap();
        for arg in command
            .get_arguments()
            .filter(shown)
            .filter(|arg| arg.get_help_heading() == heading)
        {
            let mut help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
            let values: Vec<String> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            if !values.is_empty() && !arg.is_hide_possible_values_set() {
                write!(help, " ({})", values.join(", ")).unwrap();
            }
            let defaults = arg.get_default_values();
            if !defaults.is_empty() && arg.get_action().takes_values() && !arg.is_hide_default_value_set() {
                write!(help, "; default {}", defaults[0].to_string_lossy()).unwrap();
            }
            writeln!(text, "| `{}` | {} |", spelled(arg), help.replace('|', "\\|").replace('\n', " ")).unwrap();
        }
    }
}

/// As in the help: `-o, --output <FORMAT>`.
fn spelled(arg: &Arg) -> String {
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(_)) => format!("-{short}, {arg}"),
        _ => arg.to_string(),
    }
    .replace('|', "\\|")
}
