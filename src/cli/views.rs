//! `placement`, `pdb` and `leases`: views of what is there, with shared flags.

use clap::Args;

use super::drain::accepted;
use super::{FailOn, InstallFlags, OutputFlags, SourceFlags};
use crate::checks::assessed::Accepted;

/// Flags of every view.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Exit codes: 0 answered (with --fail-on: nothing that bad found); 1 --fail-on was met; 2 usage; 3 unknown, no install, or the cluster or a file cannot be read."
)]
pub struct ViewFlags {
    /// Show it again whenever it changes, until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,

    /// Exit 1 from this verdict on; without it an answer exits 0 whatever it says
    #[arg(long, value_enum, value_name = "VERDICT", help_heading = "Verdict")]
    pub fail_on: Option<FailOn>,

    /// Take a finding out of the verdict, and still show it: CODE, or CODE=[NAMESPACE/]NAME of its object
    #[arg(long, value_name = "CODE[=NAME]", value_parser = accepted, help_heading = "Verdict")]
    pub accept: Vec<Accepted>,

    /// Where the objects come from.
    #[command(flatten)]
    pub source: SourceFlags,

    /// Which install.
    #[command(flatten)]
    pub install: InstallFlags,

    /// How the answer is printed.
    #[command(flatten)]
    pub output: OutputFlags,
}

/// Arguments of `placement`.
#[derive(Args, Clone, Debug)]
pub struct PlacementArgs {
    /// Every workload of the cluster, not only GPUStack's
    #[arg(short = 'A', long, visible_alias = "all-namespaces")]
    pub all: bool,

    /// Flags of every view.
    #[command(flatten)]
    pub view: ViewFlags,
}

/// Arguments of `pdb`.
#[derive(Args, Clone, Debug)]
pub struct PdbArgs {
    /// Every budget and workload of the cluster, not only those of GPUStack
    #[arg(short = 'A', long, visible_alias = "all-namespaces")]
    pub all: bool,

    /// Flags of every view.
    #[command(flatten)]
    pub view: ViewFlags,
}

/// Arguments of `leases`.
#[derive(Args, Clone, Debug)]
pub struct LeasesArgs {
    /// The leases of all namespaces, not only GPUStack's
    #[arg(short = 'A', long, visible_alias = "all-namespaces")]
    pub all: bool,

    /// Flags of every view.
    #[command(flatten)]
    pub view: ViewFlags,
}
