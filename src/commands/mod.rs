//! One file per command: arguments to snapshot to checks to report.

pub mod drain_preflight;
pub mod failure;
pub mod reading;
pub mod rights;
pub mod snapshot;

use std::io::{self, Write};

use serde::Serialize;

use crate::cli::{Cli, Color, Command, Format, OutputFlags};
use crate::report::shell::Kubectl;
use crate::report::style::Style;
use crate::report::{json, yaml};

use failure::Failure;

/// Runs a command; the result is the exit code.
///
/// # Errors
/// The command cannot answer, and has printed nothing on standard output.
pub async fn run(cli: Cli) -> Result<u8, Failure> {
    let answer = match &cli.command {
        Command::DrainPreflight(args) => drain_preflight::run(args, &cli.connection).await,
        Command::Snapshot(args) => snapshot::run(args, &cli.connection).await,
    };
    answer.map_err(|failure| failure.repeating(&Kubectl::new(cli.connection.repeat())))
}

/// Prints a document in the format asked for; `people` writes the forms for people.
fn print(
    document: &impl Serialize,
    flags: &OutputFlags,
    people: impl FnOnce(&Style, bool, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let color = match flags.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    let style = Style::detect(color, flags.ascii, !flags.no_headers);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = match flags.output {
        Format::Json => json::write(document, &mut out),
        Format::Yaml => yaml::write(document, &mut out),
        Format::Table => people(&style, false, &mut out),
        Format::Wide => people(&style, true, &mut out),
    }
    .and_then(|()| out.flush());
    match written {
        // Whoever reads has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::unreadable(format!("cannot write the answer: {error}"), None)),
        Ok(()) => Ok(()),
    }
}
