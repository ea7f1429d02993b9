//! Tells the binary what it is built from.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    set("TARGET", variable("TARGET"));
    // A development build is of no commit, and is not built anew by each one.
    let release = variable("PROFILE").is_some_and(|profile| profile == "release");
    if release && let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let of_commit = |words| release.then(|| git(words)).flatten();
    set("COMMIT", of_commit(&["rev-parse", "HEAD"]));
    set(
        "DATE",
        variable("SOURCE_DATE_EPOCH").or_else(|| of_commit(&["log", "-1", "--format=%ct"])),
    );
}

/// Passes a value on, for `option_env!`.
fn set(name: &str, value: Option<String>) {
    if let Some(value) = value {
        println!("cargo::rustc-env=GPUSTACK_HA_{name}={value}");
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What git prints; `None` outside of a clone.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(words)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
