//! `completion`.

use clap::{Args, ValueEnum};

/// Arguments of `completion`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Once:                              kubectl gpustack-ha completion install
For kubectl-gpustack_ha in bash:   source <(kubectl gpustack-ha completion bash)")]
pub struct CompletionArgs {
    /// What to do
    #[arg(value_enum, value_name = "SHELL")]
    pub what: Completion,
}

/// What `completion` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Completion {
    /// Complete after `kubectl gpustack-ha`, in every shell with kubectl's completion
    Install,
    /// Print a script for the binary under its own name
    Bash,
    /// The same for zsh
    Zsh,
    /// The same for fish
    Fish,
    /// The same for PowerShell
    Powershell,
}
