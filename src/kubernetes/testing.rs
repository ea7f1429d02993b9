//! Snapshots for tests, from YAML.

use serde::Deserialize;

use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::{Scope, Snapshot};

/// The snapshot of a whole cluster that holds just these objects.
pub fn snapshot(yaml: &str) -> Snapshot {
    let mut snapshot = without(&[], yaml);
    snapshot.complete = true;
    snapshot
}

/// The same, with some kinds not read.
pub fn without(kinds: &[Kind], yaml: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for value in serde_yaml::Deserializer::from_str(yaml) {
        let value = serde_yaml::Value::deserialize(value).unwrap();
        if value.is_null() {
            continue;
        }
        let text = |key: &str| value.get(key).and_then(serde_yaml::Value::as_str).unwrap_or_default().to_owned();
        let kind = Kind::of(&text("apiVersion"), &text("kind")).unwrap_or_else(|| panic!("unknown kind {}", text("kind")));
        snapshot.objects.insert(kind, value).unwrap();
    }
    for kind in Kind::ALL.iter().filter(|kind| !kinds.contains(kind)) {
        snapshot.objects.cover(*kind, Scope::Cluster, Ok(()));
    }
    snapshot.objects.settle();
    snapshot
}
