//! The command line: what can be asked, and nothing that answers it.

pub mod completion;
pub mod connection;
pub mod drain;
pub mod explain;
pub mod help;
pub mod snapshot;
pub mod version;
pub mod views;

use std::path::PathBuf;

use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};

use connection::ConnectionFlags;

/// `kubectl gpustack-ha`.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-gpustack_ha",
    bin_name = "kubectl gpustack-ha",
    version,
    about = "What a drain would really do to GPUStack's control plane",
    max_term_width = 80
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Which cluster.
    #[command(flatten)]
    pub connection: ConnectionFlags,
}

impl Cli {
    /// What this process was asked. Ends it where there is nothing to do but to print help or what is wrong.
    pub fn of_process() -> Self {
        let mut command = help::command();
        let matches = match std::env::args_os().len() {
            0 | 1 => command.try_get_matches_from_mut(["kubectl-gpustack_ha", "--help"]),
            _ => command.try_get_matches_from_mut(std::env::args_os()),
        };
        matches
            .and_then(|matches| Self::from_arg_matches(&matches))
            .unwrap_or_else(|error| error.exit())
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what `kubectl drain` of these nodes would do
    DrainPreflight(drain::DrainPreflightArgs),
    /// Show where replicas are, and what a lost node would take
    Placement(views::PlacementArgs),
    /// Show what disruption budgets guard, and what they allow
    Pdb(views::PdbArgs),
    /// Show who holds each lease, and who could take over
    Leases(views::LeasesArgs),
    /// Say what a finding means, and how to fix it
    Explain(explain::ExplainArgs),
    /// Write all that the commands read into one file
    Snapshot(snapshot::SnapshotArgs),
    /// Complete commands, flags and names in the shell
    Completion(completion::CompletionArgs),
    /// Print this tool's version and the cluster's
    Version(version::VersionArgs),
}

/// Where the objects come from, besides a live cluster.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Source")]
pub struct SourceFlags {
    /// Read files instead of a cluster: a file, a directory, or - for standard input; may be repeated
    #[arg(short, long = "filename", value_name = "FILE", value_hint = clap::ValueHint::AnyPath)]
    pub filename: Vec<PathBuf>,

    /// The files are the whole cluster: what they do not hold does not exist
    #[arg(long, requires = "filename")]
    pub complete: bool,

    /// Print the least rights that the command needs, as roles for kubectl apply, and do nothing else
    #[arg(long)]
    pub explain_rbac: bool,
}

/// Which install is meant.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Source")]
pub struct InstallFlags {
    /// Helm release of the install, where there are several
    #[arg(long, value_name = "NAME")]
    pub release: Option<String>,
}

/// How the answer is printed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// Format
    #[arg(short, long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub output: Format,

    /// Leave the headers of tables out
    #[arg(long)]
    pub no_headers: bool,

    /// When to colour
    #[arg(long, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,

    /// Print ASCII only
    #[arg(long)]
    pub ascii: bool,
}

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// For people, with every pod, node and fact.
    Wide,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
    /// Names alone, as kind/name, for xargs.
    Name,
    /// For a ticket.
    Markdown,
    /// One file for a browser or a printer, with every pod, node and fact.
    Html,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal that wants it.
    Auto,
    /// In any case.
    Always,
    /// Never.
    Never,
}

/// From which verdict on the exit code is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// `at-risk` and `unsafe`.
    AtRisk,
    /// `unsafe` alone.
    Unsafe,
}
