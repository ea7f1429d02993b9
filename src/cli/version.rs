//! `version`.

use clap::{Args, ValueEnum};

/// Arguments of `version`.
#[derive(Args, Clone, Debug)]
pub struct VersionArgs {
    /// Only this tool's version: contact no cluster
    #[arg(long)]
    pub client: bool,

    /// Format
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub output: Option<VersionFormat>,
}

/// A format of `version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VersionFormat {
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
}
