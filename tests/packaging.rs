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
        assert_eq!(plugin["args"][0], "-c");
        let script = plugin["args"][1].as_str().unwrap();
        assert!(
            script.starts_with("kubectl gpustack-ha ") && script.ends_with(" |& less -RKS"),
            "{script}"
        );
        assert!(
            !script.contains("$NAME") && !script.contains("$CONTEXT"),
            "names are not part of a script: {script}"
        );
    }
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
