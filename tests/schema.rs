//! The schemas in `docs/schema` say what is printed.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/documents.rs"]
mod documents;
#[path = "support/schema.rs"]
mod schema;

use gpustack_ha::checks::codes::Code;
use gpustack_ha::cluster::files;
use gpustack_ha::cluster::kinds::Kind;
use gpustack_ha::cluster::snapshot::{NotRead, Reason, Scope, Snapshot};
use gpustack_ha::gpustack::install::{self, Found};
// The sample documents name these from the crate's root.
use gpustack_ha::{checks, report};
use serde_json::{Value, json};

const PREFLIGHT: &str = "drain-preflight";

fn sample() -> Value {
    serde_json::to_value(documents::at_risk()).unwrap()
}

#[test]
fn documents_are_valid() {
    for (_, document) in documents::all() {
        let mut json = Vec::new();
        report::json::write(&document, &mut json).unwrap();
        let parsed: Value = serde_json::from_slice(&json).unwrap();
        schema::assert_valid(PREFLIGHT, &parsed);
        assert_eq!(parsed, serde_json::to_value(&document).unwrap());
        let mut yaml = Vec::new();
        report::yaml::write(&document, &mut yaml).unwrap();
        assert_eq!(serde_yaml::from_slice::<Value>(&yaml).unwrap(), parsed);
    }
    let mut bare = documents::safe();
    bare.header.cluster = Default::default();
    bare.header.source = "files";
    bare.header.observed_at = None;
    bare.header.install = None;
    schema::assert_valid(PREFLIGHT, &serde_json::to_value(&bare).unwrap());
}

fn example() -> Snapshot {
    let file = std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/high-availability.yaml"));
    files::read(&[file], true).unwrap()
}

/// The documents of the views, by their schema, as an example gives them.
fn views() -> Vec<(&'static str, Value)> {
    let cluster = example();
    let Found::One(install) = install::find(&cluster, None, None) else {
        panic!("no install")
    };
    let request = checks::assessed::Request {
        accept: Vec::new(),
        kubectl: report::shell::Kubectl::default(),
        all: false,
    };
    let install = Some(&install);
    vec![
        ("placement", json!(checks::placement::assess(&cluster, install, &request))),
        ("leases", json!(checks::leases::assess(&cluster, install, &request))),
        ("pdb", json!(checks::pdb::assess(&cluster, install, &request))),
        ("drain-preflights", each(&["examples/high-availability.yaml"])),
        ("drain-preflights", each(&["examples/two-kueue-replicas.yaml"])),
    ]
}

/// Each node of a cluster in files that hold not all.
fn each(files: &[&str]) -> Value {
    let files: Vec<_> = files
        .iter()
        .map(|file| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file))
        .collect();
    let cluster = gpustack_ha::cluster::files::read(&files, false).unwrap();
    let request = checks::preflight::Request {
        nodes: cluster.nodes.seen().iter().map(|node| node.metadata.name.clone()).collect(),
        flags: gpustack_ha::kubernetes::drain::DrainFlags {
            ignore_daemonsets: true,
            delete_emptydir_data: true,
            ..Default::default()
        },
        flag_words: vec!["--ignore-daemonsets".to_owned()],
        one_by_one: false,
        later: Vec::new(),
        accept: Vec::new(),
        kubectl: report::shell::Kubectl::default(),
        release: None,
        namespace: None,
    };
    json!(checks::each::assess(&cluster, &install::find(&cluster, None, None), &request))
}

#[test]
fn views_are_valid() {
    for (name, document) in views() {
        schema::assert_valid(name, &document);
    }
}

#[test]
fn snapshots_are_valid() {
    let mut cluster = example();
    let gap = |kind, reason| NotRead {
        kind,
        scope: Scope::Cluster,
        reason,
    };
    cluster.observed_at = Some("2026-01-01T00:00:04Z".parse().unwrap());
    for (kind, reason) in [
        (Kind::Node, Reason::Forbidden),
        (Kind::Pod, Reason::Failed("no answer".to_owned())),
        (Kind::Lease, Reason::NotAsked),
    ] {
        let namespace = Scope::Namespace("other".to_owned());
        cluster.objects.cover(kind, namespace, Err(gap(kind, reason)));
    }
    let mut json = Vec::new();
    files::write(&cluster, &mut json).unwrap();
    let document: Value = serde_json::from_slice(&json).unwrap();
    schema::assert_valid("snapshot", &document);
    assert!(document["items"].as_array().unwrap().len() > 20 && document["notRead"].as_array().unwrap().len() > 2);
    for (pointer, value) in [
        ("/apiVersion", json!("gpustack-ha/v2")),
        ("/notRead/0/reason", json!("unwilling")),
        ("/read/0/namespace", json!(1)),
        ("/items/0/metadata", Value::Null),
    ] {
        let mut wrong = document.clone();
        match value {
            Value::Null => drop(wrong["items"][0].as_object_mut().unwrap().remove("metadata")),
            value => *wrong.pointer_mut(pointer).unwrap() = value,
        }
        assert!(!schema::errors("snapshot", &wrong).is_empty(), "{pointer}");
    }
    for field in ["read", "notRead", "observedAt"] {
        let mut without = document.clone();
        without.as_object_mut().unwrap().remove(field);
        assert!(!schema::errors("snapshot", &without).is_empty(), "without {field}");
    }
}

#[test]
fn explanations_are_valid() {
    let explanation = serde_json::to_value(report::explanation::Explanation::of(Code::ALL)).unwrap();
    schema::assert_valid("explanation", &explanation);
    let mut wrong = explanation;
    wrong["codes"][0]["severities"] = json!(["fatal"]);
    assert!(!schema::errors("explanation", &wrong).is_empty());
}

#[test]
fn wrong_documents_are_not() {
    let wrong = |pointer: &str, value: Value| {
        let mut document = sample();
        *document.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
        assert!(!schema::errors(PREFLIGHT, &document).is_empty(), "{pointer}");
    };
    wrong("/apiVersion", json!("v1"));
    wrong("/verdict", json!("fine"));
    wrong("/source", json!("guess"));
    wrong("/drain/outcome", json!("not-reached"));
    wrong("/drain/perNode/0/outcome", json!("evicted"));
    wrong("/findings/0/code", json!("webhook-sad"));
    wrong("/findings/0/severity", json!("fatal"));
    wrong("/evictions/0/action", json!("drop"));
    wrong("/evictions/0/round", json!(0));
    wrong("/evictions/0/replacement/outcome", json!("crash_loops"));
    wrong("/unserved/0/what", json!("crd"));
    wrong("/unserved/0/until", json!("later"));
    wrong("/after/nextNodeMayFollow", json!("no"));
    let mut leader = serde_json::to_value(documents::safe()).unwrap();
    leader["leaders"][0]["gapSeconds"] = json!([1]);
    assert!(!schema::errors(PREFLIGHT, &leader).is_empty());
}

/// Calls `check` with every object of the document, by its pointer.
fn objects(value: &Value, pointer: &str, check: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(fields) => {
            check(pointer);
            for (name, field) in fields {
                objects(field, &format!("{pointer}/{name}"), check);
            }
        }
        Value::Array(items) => items
            .iter()
            .take(1)
            .enumerate()
            .for_each(|(index, item)| objects(item, &format!("{pointer}/{index}"), check)),
        _ => {}
    }
}

#[test]
fn no_field_may_be_missing_or_added() {
    let preflights = documents::all()
        .into_iter()
        .map(|(_, document)| (PREFLIGHT, serde_json::to_value(document).unwrap()));
    for (name, document) in preflights.chain(views()) {
        objects(&document, "", &mut |pointer| {
            let fields: Vec<String> = document.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
            for field in fields {
                let mut without = document.clone();
                without.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(&field);
                assert!(!schema::errors(name, &without).is_empty(), "{name} without {pointer}/{field}");
            }
            let mut with = document.clone();
            with.pointer_mut(pointer).unwrap()["another"] = json!(1);
            assert!(!schema::errors(name, &with).is_empty(), "{name} with {pointer}/another");
        });
    }
}

const SCHEMAS: &[&str] = &["common", PREFLIGHT, "placement", "leases", "pdb", "drain-preflights", "explanation"];

#[test]
fn every_code_is_spelled_out() {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let schema = schema::read("common");
    assert_eq!(schema.pointer("/$defs/code/enum").unwrap(), &json!(codes));
    let description = schema.pointer("/$defs/code/description").unwrap().as_str().unwrap();
    for code in Code::ALL {
        assert!(
            description.contains(&format!("`{}`: {}", code.as_str(), code.meaning())),
            "{}",
            code.as_str()
        );
    }
}

#[test]
fn every_field_is_described() {
    fn walk(value: &Value, pointer: &str) {
        let Value::Object(fields) = value else { return };
        if let Some(Value::Object(properties)) = fields.get("properties") {
            assert_eq!(fields.get("additionalProperties"), Some(&json!(false)), "{pointer}");
            for (name, property) in properties {
                assert!(
                    property["description"].as_str().is_some_and(|text| !text.is_empty()),
                    "{pointer}/{name}"
                );
            }
        }
        for (name, field) in fields {
            walk(field, &format!("{pointer}/{name}"));
        }
    }
    for name in SCHEMAS {
        walk(&schema::read(name), name);
    }
}
