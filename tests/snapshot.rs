//! `snapshot`: what it writes, and that it reads back as what was there.

#![allow(clippy::unwrap_used, clippy::panic)]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "support/api_server.rs"]
mod api_server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use api_server::{ApiServer, Asked, Reply, forbidden, is};
use gpustack_ha::cluster::kinds::Kind;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Every command that reads, for a cluster's node.
fn commands(node: &str) -> Vec<Vec<String>> {
    [
        vec!["drain-preflight", node],
        vec!["drain-preflight", node, "--force", "--disable-eviction"],
        vec!["drain-preflight", "-l", "kubernetes.io/hostname", "--one-by-one"],
        vec!["drain-preflight", "--each"],
        vec!["drain-preflight", "--each", "-l", "kubernetes.io/hostname"],
        vec!["placement"],
        vec!["placement", "-A"],
        vec!["pdb"],
        vec!["pdb", "-A"],
        vec!["leases"],
    ]
    .iter()
    .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
    .collect()
}

fn binary(words: &[impl AsRef<str>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kubectl-gpustack_ha"))
        .args(words.iter().map(AsRef::as_ref))
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Standard output of a command that must answer.
#[track_caller]
fn answer(words: &[impl AsRef<str>]) -> String {
    let output = binary(words);
    assert!(!output.stdout.is_empty(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn example() -> Vec<Value> {
    objects(Path::new("examples/two-kueue-replicas.yaml"))
}

fn objects(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    match documents.as_slice() {
        [list] => list["items"].as_array().unwrap().clone(),
        _ => documents,
    }
}

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters/recorded");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

fn first_node(objects: &[Value]) -> String {
    let node = objects.iter().find(|object| is(object, Kind::Node)).unwrap();
    node["metadata"]["name"].as_str().unwrap().to_owned()
}

/// Holds every command's answer from a snapshot against the live one.
fn reads_back(objects: Vec<Value>, reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let node = first_node(&objects);
    let server = ApiServer::start(objects, reply);
    let kubeconfig = server.kubeconfig(folder.path());
    let file = folder.path().join("snapshot.json").display().to_string();
    let output = binary(&["snapshot", "-O", &file, &kubeconfig]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut problems = Vec::new();
    for command in commands(&node) {
        let ask = |more: &[&str]| {
            let words: Vec<&str> = command
                .iter()
                .map(String::as_str)
                .chain(["-o", "json"])
                .chain(more.iter().copied())
                .collect();
            let output = binary(&words);
            // Without a document, what it says is compared; notes tell of tries that only a live cluster has.
            match output.stdout.is_empty() {
                true => text(&output.stderr)
                    .lines()
                    .filter(|line| !line.starts_with("note: "))
                    .collect::<Vec<_>>()
                    .join("\n"),
                false => text(&output.stdout),
            }
        };
        let live = ask(&[&kubeconfig]).replacen("\"source\": \"live\"", "\"source\": \"files\"", 1);
        let read = ask(&[&kubeconfig, "-f", &file]);
        if live != read {
            let pairs = live.lines().zip(read.lines()).filter(|(live, read)| live != read);
            let lines: Vec<String> = pairs
                .take(4)
                .map(|(live, read)| format!("  live  {live}\n  files {read}"))
                .collect();
            problems.push(format!("{}:\n{}", command.join(" "), lines.join("\n")));
        }
    }
    problems
}

#[test]
fn every_command_answers_as_live() {
    let mut problems = Vec::new();
    for file in recordings() {
        for problem in reads_back(objects(&file), |_| Reply::Asked) {
            problems.push(format!("{}: {problem}", file.file_stem().unwrap().display()));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn requests_are_accounted_for() {
    let folder = TempDir::new().unwrap();
    let mut objects = example();
    for index in 0..1200 {
        let name = format!("filler-{index}");
        objects.push(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "filler"}, "spec": {}}));
    }
    let (pods, node) = (objects.iter().filter(|object| is(object, Kind::Pod)).count(), first_node(&objects));
    let server = ApiServer::start(objects, |_| Reply::Asked);
    let kubeconfig = server.kubeconfig(folder.path());
    for command in [
        &["drain-preflight", &node][..],
        &["placement", "-A"],
        &["pdb", "-A"],
        &["leases"],
        &["snapshot"],
    ] {
        server.asked.lock().unwrap().clear();
        let output = binary(&[command, &[&kubeconfig, "-v"]].concat());
        let told = text(&output.stderr);
        let row = |path: &str| -> Vec<u64> {
            let words = told.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let mut rows = words.filter(|words| words.len() > 4 && words.join(" ").starts_with(&format!("{path} ")));
            let found = rows.next().unwrap_or_else(|| panic!("{command:?}: no {path}: {told}"));
            assert_eq!(rows.next(), None, "{command:?}: {path} twice");
            found.iter().filter_map(|word| word.parse().ok()).collect()
        };
        let lists = server.asked.lock().unwrap().len() as u64;
        assert_eq!(row("in all")[0], lists + 1, "{command:?}: the lists and /version: {told}");
        if command[0] != "leases" {
            let all = row("/api/v1/pods");
            assert_eq!(all[..2], [3, pods as u64], "{command:?}: {told}");
            assert!(all[2] > 50_000 && row("in all")[2] > all[2], "{told}");
        }
        // A cache of any age could hide a budget.
        assert!(!told.contains("resourceVersion"), "{told}");
    }
    assert!(text(&binary(&["leases", &kubeconfig]).stderr).is_empty());
}

#[test]
fn what_was_not_allowed_is_kept() {
    let mut problems = Vec::new();
    for kind in Kind::ALL {
        let found = reads_back(example(), move |asked| match asked.kind == *kind {
            true => forbidden(asked),
            false => Reply::Asked,
        });
        problems.extend(found.into_iter().map(|problem| format!("without {kind}: {problem}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn with_rights_in_one_namespace_what_it_gives_is_kept() {
    let problems = reads_back(example(), |asked| match asked.namespace.as_deref() {
        None if asked.kind.info().namespaced && asked.kind != Kind::Pod => forbidden(asked),
        Some(namespace) if namespace != "gpustack-system" => forbidden(asked),
        _ => Reply::Asked,
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn it_says_what_was_read_and_what_was_not() {
    let folder = TempDir::new().unwrap();
    let server = ApiServer::start(example(), |asked| match asked.kind {
        Kind::PodDisruptionBudget => forbidden(asked),
        Kind::Lease => Reply::Bytes(api_server::refusal("400 Bad Request", "", "no \u{1b}[2J")),
        _ => Reply::Asked,
    });
    let kubeconfig = server.kubeconfig(folder.path());
    let output = binary(&["snapshot", &kubeconfig]);
    let said = text(&output.stderr);
    assert!(said.contains("note: not allowed to list poddisruptionbudgets.policy\n"), "{said}");
    assert!(
        said.contains("note: cannot list leases.coordination.k8s.io: the server answers 400"),
        "{said}"
    );
    let written = text(&output.stdout);
    assert!(!written.contains('\u{1b}') && !said.contains('\u{1b}'));
    let document: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(document["apiVersion"], "gpustack-ha/v1");
    assert_eq!(document["kind"], "Snapshot");
    assert_eq!(document["observedAt"], "2026-01-01T00:00:30Z");
    assert_eq!(
        document["cluster"],
        json!({"context": "prod", "server": server.address, "serverVersion": "v1.36.3"})
    );
    let gaps = document["notRead"].as_array().unwrap();
    let budgets = |namespace: Value| json!({"group": "policy", "resource": "poddisruptionbudgets", "namespace": namespace, "reason": "forbidden", "missingVerb": "list"});
    assert!(
        gaps.contains(&budgets(Value::Null)) && gaps.contains(&budgets(json!("gpustack-system"))),
        "{gaps:?}"
    );
    assert!(
        gaps.iter().any(|gap| gap["resource"] == "leases" && gap["reason"] == "failed"),
        "{gaps:?}"
    );
    let read = document["read"].as_array().unwrap();
    assert!(
        read.contains(&json!({"group": "", "resource": "nodes", "namespace": null})),
        "{read:?}"
    );
    // A second one has the same bytes, and so has one that is made from it.
    assert_eq!(text(&binary(&["snapshot", &kubeconfig]).stdout), written);
    let file = folder.path().join("first.json");
    fs::write(&file, &written).unwrap();
    assert_eq!(answer(&["snapshot", "-f", &file.display().to_string()]), written);
    // A file beside it gives what it lacks; a claim that it is complete does not.
    let file = file.display().to_string();
    let verdict = |more: &[&str]| {
        let words = [&["drain-preflight", "cp-1", "-o", "json", "-f", &file], more].concat();
        serde_json::from_str::<Value>(&answer(&words)).unwrap()["verdict"].clone()
    };
    assert_eq!(verdict(&[]), "unknown");
    assert_eq!(verdict(&["--complete"]), "unknown");
    let budgets: Vec<Value> = example()
        .into_iter()
        .filter(|object| is(object, Kind::PodDisruptionBudget))
        .collect();
    let more = folder.path().join("more.json");
    fs::write(&more, json!({"apiVersion": "v1", "kind": "List", "items": budgets}).to_string()).unwrap();
    assert_eq!(verdict(&["-f", &more.display().to_string()]), "unsafe");
}

#[test]
fn the_order_of_fields_and_objects_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut objects = example();
    objects.reverse();
    let server = ApiServer::start(objects, |_| Reply::Asked);
    let kubeconfig = server.kubeconfig(folder.path());
    let written = answer(&["snapshot", &kubeconfig]);
    fs::write(path("a.json"), &written).unwrap();
    // With `items` before `kind`, as a tool that sorts writes it, and as YAML.
    let Value::Object(document) = serde_json::from_str(&written).unwrap() else {
        panic!("{written}")
    };
    let sorted: std::collections::BTreeMap<_, _> = document.into_iter().collect();
    let mut sorted = serde_json::to_value(sorted).unwrap();
    fs::write(path("b.json"), sorted.to_string()).unwrap();
    fs::write(path("c.yaml"), serde_saphyr::to_string(&sorted).unwrap()).unwrap();
    for name in ["a.json", "b.json", "c.yaml"] {
        assert_eq!(answer(&["snapshot", "-f", &path(name)]), written, "{name}");
    }
    // Nothing but `read` says that a kind was.
    sorted["read"] = json!([]);
    fs::write(path("d.json"), sorted.to_string()).unwrap();
    let output = binary(&["drain-preflight", "cp-1", "-f", &path("d.json")]);
    assert!(text(&output.stderr).contains("the files hold no nodes"), "{}", text(&output.stderr));
}

#[test]
fn a_snapshot_of_files_keeps_their_time_or_none() {
    let folder = TempDir::new().unwrap();
    let document: Value = serde_json::from_str(&answer(&["snapshot", "-f", "examples/two-kueue-replicas.yaml"])).unwrap();
    assert_eq!(document["observedAt"], Value::Null);
    let path = folder.path().join("s.json").display().to_string();
    let words = ["snapshot", "-f", "examples/two-kueue-replicas.yaml", "--complete", "-O", &path];
    assert_eq!(binary(&words).status.code(), Some(0));
    let ask = |words: &[&str]| answer(&[&["drain-preflight", "cp-1", "-o", "json"], words].concat());
    assert_eq!(ask(&["-f", &path]), ask(&["-f", "examples/two-kueue-replicas.yaml", "--complete"]));
}

#[test]
fn nothing_secret_is_in_it() {
    let mut objects = example();
    let hidden = "h1dden";
    for object in &mut objects {
        object["metadata"]["managedFields"] = json!([{"manager": hidden}]);
        object["metadata"]["annotations"] = json!({
            "kubectl.kubernetes.io/last-applied-configuration": hidden, "objectset.rio.cattle.io/applied": hidden, "note": hidden,
        });
        let environment = json!([{"name": hidden, "value": hidden}]);
        for pointer in ["/spec/containers/0", "/spec/template/spec/containers/0"] {
            if let Some(container) = object.pointer_mut(pointer) {
                container["env"] = environment.clone();
            }
        }
        if let Some(template) = object.pointer_mut("/spec/template/metadata") {
            template["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": hidden});
        }
    }
    objects.push(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": hidden, "namespace": "gpustack-system"}, "data": {"a": hidden}}),
    );
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("all.json");
    fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
    let written = answer(&["snapshot", "-f", &file.display().to_string()]);
    assert!(written.contains("kueue-controller-manager"));
    assert!(!written.contains(hidden) && !written.contains("env\""), "{written}");
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write = |target: &str, from: &str| binary(&["snapshot", "-f", from, "-O", target]);
    fs::write(path("old"), "old").unwrap();
    assert_eq!(write(&path("old"), &path("missing")).status.code(), Some(3));
    assert_eq!(fs::read_to_string(path("old")).unwrap(), "old");
    let output = write(&path("old"), "examples/two-kueue-replicas.yaml");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()));
    assert!(fs::read_to_string(path("old")).unwrap().ends_with("  ]\n}\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(path("old")).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let output = write(&path("no/folder"), "examples/two-kueue-replicas.yaml");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).starts_with("error: cannot write "));
    // What is no file is not replaced by one.
    let output = write(&folder.path().display().to_string(), "examples/two-kueue-replicas.yaml");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn two_snapshots_are_not_one() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.json").display().to_string();
    let words = ["snapshot", "-f", "examples/two-kueue-replicas.yaml", "-O", &path];
    assert_eq!(binary(&words).status.code(), Some(0));
    let output = binary(&["drain-preflight", "cp-1", "-f", &path, "-f", &path]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("a second snapshot"), "{}", text(&output.stderr));
    // One of a version to come is not understood by half.
    let later = fs::read_to_string(&path).unwrap().replacen("gpustack-ha/v1", "gpustack-ha/v9", 1);
    fs::write(&path, later).unwrap();
    let output = binary(&["drain-preflight", "cp-1", "-f", &path]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("gpustack-ha/v9"), "{}", text(&output.stderr));
}
