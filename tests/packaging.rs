//! What is shipped beside the binary agrees with it.

#![allow(clippy::unwrap_used)]

use serde_yaml::Value;

const BINARY: &str = "kubectl-gpustack_ha";

fn read(path: &str) -> Value {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_krew_manifest_names_this_version() {
    let manifest = read("krew/gpustack-ha.yaml");
    assert_eq!(manifest["metadata"]["name"], "gpustack-ha");
    assert_eq!(manifest["spec"]["version"], concat!("v", env!("CARGO_PKG_VERSION")));
    assert_eq!(manifest["spec"]["homepage"], env!("CARGO_PKG_REPOSITORY"));
    assert_eq!(manifest["spec"]["platforms"][0]["bin"], BINARY);
    assert!(env!("CARGO_BIN_EXE_kubectl-gpustack_ha").ends_with(BINARY));
    for field in ["shortDescription", "description"] {
        assert!(manifest["spec"][field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
    }
}

#[test]
fn the_k9s_plugins_have_what_k9s_requires() {
    let plugins = read("plugins.yaml");
    assert_eq!(plugins.as_mapping().unwrap().len(), 1);
    for (name, plugin) in plugins["plugins"].as_mapping().unwrap() {
        for field in ["shortCut", "description", "command"] {
            assert!(plugin[field].is_string(), "{name:?}: {field}");
        }
        assert!(plugin["scopes"].as_sequence().is_some_and(|scopes| !scopes.is_empty()), "{name:?}");
        let script = plugin["args"][1].as_str().unwrap();
        assert!(script.starts_with("kubectl gpustack-ha "), "{script}");
    }
}
