//! User, network and process namespaces for one cluster, without root.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any state may take; what is still running then is killed.
const DEADLINE: Duration = Duration::from_secs(300);

/// Runs this program again inside new namespaces with `environment`; says whether it succeeded and what it printed.
///
/// The process namespace makes clean-up certain: when its first process ends, by whatever cause, the kernel ends every other one.
pub fn run_isolated(environment: &[(&str, &Path)]) -> Result<(bool, String), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let log = scratch.path().join("output");
    let file = File::create(&log).map_err(|error| error.to_string())?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    // Neither an interrupted test run nor a killed one leaves a cluster behind.
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--", "unshare", "--user", "--map-root-user", "--net"])
        .args(["--pid", "--fork", "--kill-child=KILL", "--"])
        .arg(program);
    command.envs(environment.iter().copied()).env("TMPDIR", scratch.path());
    for proxy in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "KUBECONFIG",
    ] {
        command.env_remove(proxy);
    }
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone().map_err(|error| error.to_string())?)
        .stderr(file);
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot run setpriv and unshare ({error}): install util-linux"))?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break Some(status);
        }
        if start.elapsed() > DEADLINE {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let mut output = fs::read(&log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    if output.contains("unshare: ") {
        output.push_str("\nthis test needs user namespaces (sysctl user.max_user_namespaces; kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu) and iproute2\n");
    }
    if status.is_none() {
        output.push_str("\nkilled: it did not end in time\n");
    }
    Ok((status.is_some_and(|status| status.success()), output))
}

/// Inside the namespaces: makes every address of the nodes, pods and services one of this machine.
pub fn prepare() {
    let ip = |arguments: &[&str]| {
        let status = Command::new("ip").args(arguments).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "`ip {}` failed: install iproute2",
            arguments.join(" ")
        );
    };
    ip(&["link", "set", "lo", "up"]);
    for range in ["10.10.0.0/16", "10.20.0.0/16", "10.96.0.0/16"] {
        ip(&["route", "add", "local", range, "dev", "lo"]);
    }
}
