//! One file per command: arguments to snapshot to checks to report.

pub mod complete;
pub mod completion;
pub mod drain_preflight;
pub mod explain;
pub mod failure;
pub mod installs;
pub mod leases;
pub mod pdb;
pub mod placement;
pub mod reading;
pub mod rights;
pub mod snapshot;
pub mod version;
pub mod view;

use std::io::{self, Write};

use crate::cli::{Cli, Color, Command, Format, OutputFlags};
use crate::cluster::progress::Progress;
use crate::report::page::Report;
use crate::report::shell::Kubectl;
use crate::report::style::Style;
use crate::report::{html, json, markdown, names, terminal, yaml};

use failure::Failure;

/// Runs a command; the result is the exit code.
///
/// # Errors
/// The command cannot answer, and has printed nothing on standard output.
pub async fn run(cli: Cli) -> Result<u8, Failure> {
    if let Some(rights) = rights::asked_about(&cli.command) {
        let kubectl = Kubectl::new(cli.connection.repeat());
        return rights::print(&rights, cli.connection.namespace.as_deref(), &kubectl);
    }
    Progress::allow();
    let answer = match &cli.command {
        Command::DrainPreflight(args) => drain_preflight::run(args, &cli.connection).await,
        Command::Snapshot(args) => snapshot::run(args, &cli.connection).await,
        Command::Pdb(args) => view::run(args, &cli.connection).await,
        Command::Leases(args) => view::run(args, &cli.connection).await,
        Command::Placement(args) => view::run(args, &cli.connection).await,
        Command::Explain(args) => explain::run(args),
        Command::Completion(args) => completion::run(args.what),
        Command::Version(args) => version::run(args, &cli.connection).await,
    };
    answer.map_err(|failure| failure.repeating(&Kubectl::new(cli.connection.repeat())))
}

/// Prints a document in the format asked for.
fn print(document: &impl Report, flags: &OutputFlags) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let text = written(document, flags)?;
    printed(out.write_all(&text).and_then(|()| out.flush()))
}

/// What came of writing the answer.
fn printed(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        // Whoever reads has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(unwritten(&error)),
        Ok(()) => Ok(()),
    }
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::unreadable(format!("cannot write the answer: {error}"), None)
}

/// A document in the format asked for.
fn written(document: &impl Report, flags: &OutputFlags) -> Result<Vec<u8>, Failure> {
    let color = match flags.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    let style = Style::detect(color, flags.ascii, !flags.no_headers);
    let mut out = Vec::new();
    match flags.output {
        Format::Json => json::write(document, &mut out),
        Format::Yaml => yaml::write(document, &mut out),
        Format::Name => names::write(&document.names(), &mut out),
        Format::Markdown => markdown::write(&document.page(false), style.ascii, &mut out),
        Format::Html => html::write(&document.page(true), &style, &mut out),
        Format::Table => terminal::write(&document.page(false), &style, &mut out),
        Format::Wide => terminal::write(&document.page(true), &style, &mut out),
    }
    .map_err(|error| unwritten(&error))?;
    Ok(out)
}
