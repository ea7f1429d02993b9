//! What is shipped beside the binary agrees with it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use serde_yaml::Value;

const BINARY: &str = "kubectl-gpustack_ha";

fn text(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn read(path: &str) -> Value {
    serde_yaml::from_str(&text(path)).unwrap()
}

#[test]
fn the_krew_manifest_is_ours() {
    let manifest = read("krew/gpustack-ha.yaml");
    assert_eq!(manifest["metadata"]["name"], "gpustack-ha");
    assert_eq!(manifest["spec"]["homepage"], env!("CARGO_PKG_REPOSITORY"));
    assert!(env!("CARGO_BIN_EXE_kubectl-gpustack_ha").ends_with(BINARY));
    for field in ["shortDescription", "description"] {
        assert!(manifest["spec"][field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
    }
}

/// Runs `krew/package.sh` as on another machine: its own folder, umask and time of day.
#[cfg(unix)]
fn package(out: &std::path::Path, umask: &str, words: &[&str]) {
    let output = std::process::Command::new("bash")
        .args(["-c", "umask \"$0\"; exec krew/package.sh \"$@\"", umask])
        .args(words)
        .env("OUT", out)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(unix)]
#[test]
fn equal_binaries_are_packed_into_equal_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let packed = ["022", "077"].map(|umask| {
        let place = folder.path().join(umask);
        std::fs::create_dir(&place).unwrap();
        let built = place.join("built");
        std::fs::write(&built, "a binary").unwrap();
        let modified = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(umask.parse().unwrap());
        std::fs::File::open(&built).unwrap().set_modified(modified).unwrap();
        for target in ["x86_64-pc-windows-gnu", "aarch64-unknown-linux-musl"] {
            package(&place, umask, &["--pack", target, built.to_str().unwrap()]);
        }
        std::fs::remove_file(built).unwrap();
        let mut files: Vec<_> = std::fs::read_dir(&place)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    });
    let names: Vec<_> = packed[0].iter().map(|(name, _)| name.as_str()).collect();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        names,
        [
            "checksums.txt",
            "gpustack-ha.yaml",
            &format!("kubectl-gpustack_ha-v{version}-linux-arm64.tar.gz"),
            &format!("kubectl-gpustack_ha-v{version}-windows-amd64.tar.gz"),
        ]
    );
    assert!(packed[0] == packed[1], "archives of the same binary differ");

    let manifest: Value = serde_yaml::from_slice(&packed[0][1].1).unwrap();
    let platforms = manifest["spec"]["platforms"].as_sequence().unwrap();
    let bins: Vec<_> = platforms.iter().map(|platform| platform["bin"].as_str().unwrap()).collect();
    assert_eq!(bins, [BINARY.to_owned(), format!("{BINARY}.exe")]);
    let checksums = String::from_utf8(packed[0][0].1.clone()).unwrap();
    for (platform, line) in platforms.iter().zip(checksums.lines()) {
        let (sum, archive) = line.split_once("  ").unwrap();
        assert_eq!(platform["sha256"], sum);
        assert!(platform["uri"].as_str().unwrap().ends_with(archive));
    }
}

#[test]
fn the_proven_version_is_the_control_planes() {
    let module = text("tests/control_plane/components/go.mod");
    for version in gpustack_ha::commands::version::PROVEN_WITH {
        assert!(module.contains(&format!("k8s.io/kubernetes {version}")), "{version}");
    }
}

/// Keys that k9s v0.50.16 binds itself in its views of these resources (`internal/view`, `internal/ui/table.go`).
const TAKEN: [(&str, &[&str]); 6] = [
    ("", &["Shift-A", "Shift-F", "Shift-G", "Shift-J", "Shift-N", "Shift-P", "Shift-V"]),
    ("nodes", &["Shift-C", "Shift-M", "Shift-O", "Shift-R"]),
    (
        "pods",
        &[
            "Shift-C", "Shift-I", "Shift-M", "Shift-O", "Shift-R", "Shift-S", "Shift-T", "Shift-X", "Shift-Z",
        ],
    ),
    ("deployments", &["Shift-L", "Shift-R", "Shift-U"]),
    ("leases", &[]),
    ("poddisruptionbudgets", &[]),
];

#[test]
fn the_k9s_plugins_are_as_k9s_takes_them() {
    let plugins = read("plugins.yaml");
    assert_eq!(plugins.as_mapping().unwrap().len(), 1);
    let mut bound = BTreeSet::new();
    for (name, plugin) in plugins["plugins"].as_mapping().unwrap() {
        for field in ["shortCut", "description", "command"] {
            assert!(plugin[field].is_string(), "{name:?}: {field}");
        }
        let key = plugin["shortCut"].as_str().unwrap();
        for scope in plugin["scopes"].as_sequence().unwrap() {
            let scope = scope.as_str().unwrap();
            assert!(
                TAKEN.iter().any(|(known, _)| *known == scope),
                "k9s's own keys for {scope} are not known"
            );
            let taken = TAKEN.iter().filter(|(known, _)| known.is_empty() || *known == scope);
            assert!(
                !taken.flat_map(|(_, keys)| *keys).any(|taken| *taken == key),
                "{key} is k9s's in {scope}"
            );
            assert!(bound.insert((key, scope)), "{key} twice in {scope}");
        }
        assert_eq!((&plugin["command"], &plugin["args"][0]), (&"sh".into(), &"-c".into()));
        assert_eq!(plugin["args"][2], "$KUBECONFIG");
        let script = plugin["args"][1].as_str().unwrap();
        assert!(
            script.starts_with("export KUBECONFIG=\"$0\" COLUMNS=\"$(tput cols)\"; kubectl gpustack-ha ")
                && script.ends_with(" \"$@\" --color=always 2>&1 | less -RKS"),
            "no name is part of it, and every shell and width of screen will do: {script}"
        );
    }
}

#[test]
fn the_workflow_for_users_installs_this_version() {
    let workflow = read("examples/preflight.github.yaml");
    let version = &workflow["jobs"]["preflight"]["env"]["VERSION"];
    assert_eq!(version, concat!("v", env!("CARGO_PKG_VERSION")));
}

#[test]
fn actions_are_pinned() {
    for path in [
        ".github/workflows/test.yaml",
        ".github/workflows/release.yaml",
        "examples/preflight.github.yaml",
    ] {
        for line in text(path)
            .lines()
            .filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: "))
        {
            let (_, version) = line.split_once('@').unwrap();
            let commit = version.split(' ').next().unwrap();
            assert!(
                commit.len() == 40 && commit.chars().all(|digit| digit.is_ascii_hexdigit()),
                "{path}: {line}"
            );
        }
        assert!(!text(path).contains("secrets."), "{path}");
    }
}
