//! `snapshot`.

use std::path::PathBuf;

use clap::Args;

use super::SourceFlags;

/// Arguments of `snapshot`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "The file has the fields of objects that this tool reads, command lines and messages among them; no Secrets, no environment variables.\n\nExit codes: 0 written; 2 usage; 3 the cluster or a file cannot be read, or FILE cannot be written."
)]
pub struct SnapshotArgs {
    /// Write to this file instead of standard output: whole or not at all, for its owner alone
    #[arg(short = 'O', long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output_file: Option<PathBuf>,

    /// Where the objects come from.
    #[command(flatten)]
    pub source: SourceFlags,
}
