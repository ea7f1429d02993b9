//! As a plugin: under the real kubectl, installed by the real krew, completed by a real shell.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "control_plane/components.rs"]
mod components;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_kubectl-gpustack_ha");
const EXAMPLE: &str = "examples/high-availability.yaml";
const KREW: &str = "v0.4.3";

/// A home with kubectl on its path, and nothing of the caller's.
struct Home {
    folder: TempDir,
    path: OsString,
}

impl Home {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(components::built().unwrap().join("kubectl"), bin.join("kubectl")).unwrap();
        let entries = [bin, folder.path().join("krew/bin"), "/usr/bin".into(), "/bin".into()];
        let path = std::env::join_paths(entries).unwrap();
        Self { folder, path }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.folder.path())
            .env("KREW_ROOT", self.file("krew"))
            .env("KREW_NO_UPGRADE_CHECK", "1")
            .env("KREW_DEFAULT_INDEX_URI", self.file("index"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(self.file("bin/kubectl")).args(words).output().unwrap()
    }

    /// What kubectl prints, if it ends well.
    #[track_caller]
    fn kubectl(&self, words: &[&str]) -> String {
        succeeds(&self.run(words))
    }

    /// What kubectl would complete, with the directive as the last line.
    #[track_caller]
    fn complete(&self, words: &[&str]) -> Vec<String> {
        let text = self.kubectl(&[&["__complete", "gpustack-ha"], words].concat());
        text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    }

    /// A kubeconfig with the one context `live`, for a server.
    fn kubeconfig(&self, server: &str) -> PathBuf {
        let file = self.file("config");
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
             users: [{{name: u, user: {{}}}}]\ncontexts: [{{name: live, context: {{cluster: c, user: u}}}}]\n"
        );
        fs::write(&file, text).unwrap();
        file
    }

    /// The binary and its second name, on the path.
    fn link_both(&self) {
        symlink(BINARY, self.file("bin/kubectl-gpustack_ha")).unwrap();
        let output = self
            .command(self.file("bin/kubectl-gpustack_ha"))
            .args(["completion", "install"])
            .output();
        let said = succeeds(&output.unwrap());
        assert!(said.contains("bin/kubectl_complete-gpustack_ha (made)"), "{said}");
    }
}

#[track_caller]
fn succeeds(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// An HTTP server on loopback that answers each request for a path with what the function gives, or 404.
fn serve(answer: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let body = answer(first.split([' ', '?']).nth(1).unwrap_or_default());
            let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
            let body = body.unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    address
}

// Completion

#[test]
fn kubectl_completes() {
    let home = Home::new();
    home.link_both();
    let again = home.kubectl(&["gpustack-ha", "completion", "install"]);
    assert!(again.contains("(there already)"), "{again}");
    assert_eq!(
        fs::read_link(home.file("bin/kubectl_complete-gpustack_ha")).unwrap(),
        Path::new("kubectl-gpustack_ha")
    );

    assert_eq!(home.complete(&["drain-p"]), ["drain-preflight", ":4"]);
    assert_eq!(home.complete(&["drain-preflight", "--one-b"]), ["--one-by-one", ":4"]);
    assert_eq!(home.complete(&["drain-preflight", "--output=js"]), ["json", ":4"]);
    assert_eq!(home.complete(&["drain-preflight", "-f", ""]), [":0"], "files are the shell's");
    assert_eq!(
        home.complete(&["drain-preflight", "-f", EXAMPLE, "cp-1", ""]),
        ["cp-2", "cp-3", ":4"]
    );
    assert!(
        home.complete(&["drain-preflight", "--accept", "pdb-"])
            .contains(&"pdb-blocks-drain".to_owned())
    );

    let list = |kind: &str, names: [&str; 2]| {
        let items: Vec<_> = names.iter().map(|name| serde_json::json!({"metadata": {"name": name}})).collect();
        serde_json::json!({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": items})
            .to_string()
            .into_bytes()
    };
    let server = serve(move |path| match path {
        "/api/v1/nodes" => Some(list("NodeList", ["n-2", "n-1"])),
        "/api/v1/namespaces" => Some(list("NamespaceList", ["app", "kube-system"])),
        _ => None,
    });
    let kubeconfig = home.kubeconfig(&server);
    let flag = format!("--kubeconfig={}", kubeconfig.display());
    let live = |words: &[&str]| home.complete(&[&["drain-preflight", &flag], words].concat());
    assert_eq!(live(&["--context", ""]), ["live", ":4"]);
    assert_eq!(live(&["--context", "live", ""]), ["n-1", "n-2", ":4"]);
    assert_eq!(live(&["--context=live", "n-1", "n"]), ["n-2", ":4"]);
    assert_eq!(live(&["--context", "live", "-n", "k"]), ["kube-system", ":4"]);
    assert_eq!(live(&["--context", "other", ""]), [":4"]);
}

#[test]
fn a_server_that_does_not_answer_delays_nobody() {
    let home = Home::new();
    home.link_both();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("--server=http://{}", listener.local_addr().unwrap());
    let asked = Instant::now();
    let output = home
        .command(home.file("bin/kubectl_complete-gpustack_ha"))
        .args(["drain-preflight", &server, ""])
        .output()
        .unwrap();
    let took = asked.elapsed();
    assert_eq!((succeeds(&output).as_str(), output.stderr.as_slice()), (":4\n", &[][..]));
    // Two seconds, and what a loaded machine needs to start a program.
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn bash_completes_the_binary() {
    let home = Home::new();
    home.link_both();
    let script = home.file("script");
    fs::write(&script, home.kubectl(&["gpustack-ha", "completion", "bash"])).unwrap();
    let complete = |words: &str| {
        let line = format!(
            "source {}; COMP_WORDS=(kubectl-gpustack_ha {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; \
             _clap_complete_kubectl_gpustack_ha kubectl-gpustack_ha \"${{COMP_WORDS[-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = home.command("bash").args(["-c", &line]).output().unwrap();
        succeeds(&output).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete("drain-p"), ["drain-preflight"]);
    assert_eq!(complete(&format!("drain-preflight -f {EXAMPLE} ''")), ["cp-1", "cp-2", "cp-3"]);
    assert_eq!(complete("drain-preflight -f examples/high"), [EXAMPLE]);
}

// k9s

#[test]
fn each_key_of_k9s_asks_its_cluster_and_fills_the_pager() {
    let home = Home::new();
    home.link_both();
    let pager = home.file("bin/less");
    fs::write(&pager, "#!/bin/sh\nexec cat\n").unwrap();
    fs::set_permissions(&pager, fs::Permissions::from_mode(0o755)).unwrap();
    let (heard, paths) = mpsc::channel();
    let server = serve(move |path| {
        let _ = heard.send(path.to_owned());
        None
    });
    let kubeconfig = home.kubeconfig(&server);
    let plugins: serde_yaml::Value = serde_yaml::from_str(&fs::read_to_string("plugins.yaml").unwrap()).unwrap();
    for (name, plugin) in plugins["plugins"].as_mapping().unwrap() {
        // k9s puts these in by itself, in the script as well.
        let args = plugin["args"].as_sequence().unwrap().iter().map(|arg| {
            arg.as_str()
                .unwrap()
                .replace("$KUBECONFIG", kubeconfig.to_str().unwrap())
                .replace("$CONTEXT", "live")
                .replace("$COL-NODE", "n-1")
                .replace("$NAME", "n-1")
        });
        let mut command = home.command(plugin["command"].as_str().unwrap());
        let output = command.args(args).env("TERM", "xterm").output().unwrap();
        let shown = succeeds(&output);
        assert!(paths.try_iter().count() > 0, "{name:?} asks nobody: {shown}");
        assert!(shown.contains("error: ") && output.stderr.is_empty(), "{name:?}: {shown}");
    }
}

// krew

/// The folder with krew and its validator; builds them first if they are not there.
fn krew() -> PathBuf {
    const PROGRAMS: [&str; 2] = ["krew", "validate-krew-manifest"];
    let cache = components::cache_root().unwrap().join("kubectl-gpustack_ha");
    let folder = cache.join(format!("krew-{KREW}"));
    fs::create_dir_all(&cache).unwrap();
    let lock = File::create(cache.join("krew.lock")).unwrap();
    lock.lock().unwrap();
    for program in PROGRAMS.iter().filter(|program| !folder.join(program).is_file()) {
        let output = Command::new("go")
            .args(["install", &format!("sigs.k8s.io/krew/cmd/{program}@{KREW}")])
            .env("GOBIN", &folder)
            .output()
            .unwrap();
        succeeds(&output);
    }
    folder
}

#[test]
fn krew_installs_upgrades_and_removes() {
    let home = Home::new();
    let krew = krew();
    symlink(krew.join("krew"), home.file("bin/kubectl-krew")).unwrap();
    let site = home.file("site");
    let served = site.clone();
    let uri = serve(move |path| fs::read(served.join(path.trim_start_matches('/'))).ok());

    // The test's own binary stands for one of the `dist` profile.
    let package = |version: &str, words: &[&str]| {
        let mut command = home.command("krew/package.sh");
        command.args(words).env("OUT", &site).env("VERSION", version).env("URI", &uri);
        succeeds(&command.output().unwrap())
    };
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let said = package("v0.1.0", &["--pack", &target, BINARY]);
    let archive = said.lines().next().unwrap();
    let manifest = site.join("gpustack-ha.yaml");
    let manifest = manifest.to_str().unwrap();

    // It also installs every platform of the manifest from its address, and looks for a license.
    let validate = home
        .command(krew.join("validate-krew-manifest"))
        .args(["-manifest", manifest])
        .output();
    succeeds(&validate.unwrap());

    // krew does little without an index.
    let git = |words: &[&str]| {
        let identity = [
            "-c",
            "user.name=test",
            "-c",
            "user.email=test@localhost",
            "-c",
            "init.defaultBranch=main",
        ];
        let mut command = home.command("git");
        command.arg("-C").arg(home.file("index")).args(identity).args(words);
        succeeds(&command.output().unwrap());
    };
    let publish = || {
        fs::copy(manifest, home.file("index/plugins/gpustack-ha.yaml")).unwrap();
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", "Publish"]);
    };
    fs::create_dir_all(home.file("index/plugins")).unwrap();
    git(&["init", "--quiet"]);
    publish();
    home.kubectl(&["krew", "update"]);

    home.kubectl(&["krew", "install", "--manifest", manifest, "--archive", archive]);
    let preflight = ["gpustack-ha", "drain-preflight", "cp-1", "-f", EXAMPLE, "--complete", "-o", "json"];
    let verdict = |output: &Output| serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["verdict"].clone();
    assert_eq!(verdict(&home.run(&preflight)), "safe");
    home.kubectl(&["krew", "uninstall", "gpustack-ha"]);
    assert!(!home.run(&preflight).status.success());

    // From the index, as other plugins are.
    home.kubectl(&["krew", "install", "gpustack-ha"]);
    let said = home.kubectl(&["gpustack-ha", "completion", "install"]);
    assert!(said.contains("krew/bin/kubectl_complete-gpustack_ha (made)"), "{said}");

    fs::copy(archive, archive.replace("v0.1.0", "v0.1.1")).unwrap();
    package("v0.1.1", &["--manifest"]);
    publish();
    home.kubectl(&["krew", "upgrade"]);
    let listed = home.kubectl(&["krew", "list"]);
    assert!(listed.contains("gpustack-ha"), "{listed}");
    assert!(home.file("krew/store/gpustack-ha/v0.1.1").is_dir() && !home.file("krew/store/gpustack-ha/v0.1.0").exists());
    assert_eq!(verdict(&home.run(&preflight)), "safe");
    assert_eq!(
        home.complete(&["drain-p"]),
        ["drain-preflight", ":4"],
        "the second name leads to the new version"
    );

    home.kubectl(&["krew", "uninstall", "gpustack-ha"]);
    assert!(!home.run(&preflight).status.success());
}
