//! `kubectl-gpustack_ha`: the thin binary over the library.

use std::process::ExitCode;

use gpustack_ha::cli::Cli;
use gpustack_ha::commands;

fn main() -> ExitCode {
    if let Some(code) = commands::complete::answer() {
        return code;
    }
    let cli = Cli::of_process();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::from(3);
        }
    };
    match runtime.block_on(commands::run(cli)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{}", failure.text());
            ExitCode::from(failure.exit)
        }
    }
}
