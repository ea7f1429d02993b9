//! `explain`.

use clap::Args;

use super::OutputFlags;
use crate::checks::codes::Code;

/// Arguments of `explain`.
#[derive(Args, Clone, Debug)]
pub struct ExplainArgs {
    /// Code of a finding; without one, all codes are listed
    #[arg(value_name = "CODE", value_parser = code)]
    pub code: Option<Code>,

    /// How the answer is printed.
    #[command(flatten)]
    pub output: OutputFlags,
}

/// Reads a code, or says which one could be meant.
pub(super) fn code(text: &str) -> Result<Code, String> {
    text.parse().map_err(|()| {
        let like: Vec<&str> = Code::like(text).into_iter().map(Code::as_str).collect();
        match like.as_slice() {
            [] => format!("there is no finding code `{text}`; `kubectl gpustack-ha explain` lists all"),
            [one] => format!("there is no finding code `{text}`; did you mean {one}?"),
            [others @ .., last] => format!("there is no finding code `{text}`; did you mean {} or {last}?", others.join(", ")),
        }
    })
}
