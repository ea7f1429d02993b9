//! `completion`: the script for a shell, or the link that kubectl looks for.

use std::io;
use std::path::{Path, PathBuf};

use clap_complete::env::{Bash, EnvCompleter, Fish, Powershell, Zsh};

use crate::cli::completion::Completion;

use super::complete::{ASKED, LINK};
use super::failure::Failure;

/// Name of the binary.
const NAME: &str = "kubectl-gpustack_ha";

/// Runs the command; the result is the exit code.
///
/// # Errors
/// The link cannot be made.
pub fn run(what: Completion) -> Result<u8, Failure> {
    let shell: &dyn EnvCompleter = match what {
        Completion::Install => return install().map(|()| 0),
        Completion::Bash => &Bash,
        Completion::Zsh => &Zsh,
        Completion::Fish => &Fish,
        Completion::Powershell => &Powershell,
    };
    super::printed(shell.write_registration(ASKED, NAME, NAME, NAME, &mut io::stdout().lock()))?;
    Ok(0)
}

/// Makes the binary's second name beside its first: krew links one name only, and kubectl looks for this one on PATH.
fn install() -> Result<(), Failure> {
    let called = called_as().ok_or_else(|| Failure::unreadable("it cannot be told where this program lies", None))?;
    let directory = called.parent().unwrap_or(Path::new("."));
    let link = directory.join(format!("{LINK}{}", std::env::consts::EXE_SUFFIX));
    let made = make(&called, &link).map_err(|error| {
        Failure::unreadable(
            format!("cannot make {}: {error}", link.display()),
            Some(format!(
                "make a link of this name to {}, in a folder on your PATH",
                called.display()
            )),
        )
    })?;
    let word = if made { "made" } else { "there already" };
    super::printed(io::Write::write_all(
        &mut io::stdout().lock(),
        format!(
            "{} ({word})\n\
             It serves every shell with kubectl's own completion: see `kubectl completion --help`.\n",
            link.display()
        )
        .as_bytes(),
    ))?;
    let on_path = |path: std::ffi::OsString| std::env::split_paths(&path).any(|entry| entry == directory);
    if !std::env::var_os("PATH").is_some_and(on_path) {
        eprintln!(
            "note: {} is not on your PATH, so kubectl does not find it there",
            directory.display()
        );
    }
    Ok(())
}

/// The path under which this program was called, with links in it: krew's link stays when it upgrades, its target does not.
fn called_as() -> Option<PathBuf> {
    let called = PathBuf::from(std::env::args_os().next()?);
    if called.components().count() > 1 {
        return std::path::absolute(called).ok();
    }
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .map(|entry| entry.join(&called))
        .find(|path| path.is_file());
    found.or_else(|| std::env::current_exe().ok())
}

/// Whether the link had to be made. What stands there and is no link is left alone.
#[cfg(unix)]
fn make(called: &Path, link: &Path) -> io::Result<bool> {
    let target = Path::new(called.file_name().unwrap_or(called.as_os_str()));
    match std::fs::read_link(link) {
        Ok(existing) if existing == target => return Ok(false),
        Ok(_) => std::fs::remove_file(link)?,
        Err(_) => {}
    }
    std::os::unix::fs::symlink(target, link).map(|()| true)
}

/// Whether the copy had to be made: a link needs a right that few people have.
#[cfg(not(unix))]
fn make(called: &Path, link: &Path) -> io::Result<bool> {
    std::fs::copy(called, link).map(|_| true)
}
