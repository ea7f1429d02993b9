//! `explain`: what a finding means, and how to fix it. It reads no cluster.

use crate::checks::codes::Code;
use crate::cli::explain::ExplainArgs;
use crate::report::explanation::Explanation;

use super::failure::Failure;

/// Runs the command; the result is the exit code.
///
/// # Errors
/// The answer cannot be written.
pub fn run(args: &ExplainArgs) -> Result<u8, Failure> {
    let codes = args.code.as_ref().map_or(Code::ALL, std::slice::from_ref);
    super::print(&Explanation::of(codes), &args.output)?;
    Ok(0)
}
