//! Every list that a command makes, in trouble: the answer stays, or becomes `unknown` and says why; never a milder one.

#![allow(clippy::unwrap_used, clippy::panic)]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "support/api_server.rs"]
mod api_server;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use api_server::{ApiServer, Asked, Reply, answer, forbidden, json_answer, page, refusal};
use gpustack_ha::cluster::kinds::Kind;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The time limit of one request; a run has some more, for what it asks again.
const LIMIT: Duration = Duration::from_secs(5);

/// A drain that asks for every kind: its pod uses a claim of each sort, and runs with a class of each.
const EVERYTHING: &str = include_str!("faults/everything.yaml");

/// What goes wrong with a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Unauthorized,
    Forbidden,
    NotFound,
    Gone,
    Busy,
    Broken,
    Cut,
    Endless,
    Silent,
    Garbage,
    WebPage,
    EmptyPages,
    Nulls,
    Bare,
}

const FAULTS: &[Fault] = &[
    Fault::Unauthorized,
    Fault::Forbidden,
    Fault::NotFound,
    Fault::Gone,
    Fault::Busy,
    Fault::Broken,
    Fault::Cut,
    Fault::Endless,
    Fault::Silent,
    Fault::Garbage,
    Fault::WebPage,
    Fault::EmptyPages,
    Fault::Nulls,
    Fault::Bare,
];

impl Fault {
    /// Whether the list can still be read, so that the answer must be the same.
    fn harmless(self) -> bool {
        matches!(self, Self::Busy | Self::Nulls)
    }

    /// Whether it is asked again, or waited for, before it is given up.
    fn slow(self) -> bool {
        matches!(self, Self::Broken | Self::Cut | Self::Endless | Self::Silent)
    }

    fn reply(self, asked: &Asked, objects: &[Value]) -> Reply {
        let list = |token: &str, items: &[Value]| {
            let kind = asked.kind.info().kind;
            json!({"kind": format!("{kind}List"), "apiVersion": asked.kind.api_version(), "metadata": {"continue": token}, "items": items})
        };
        let begun = |text: &str| {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
            format!("{head}{:x}\r\n{text}\r\n", text.len()).into_bytes()
        };
        let kind = asked.kind.info().kind;
        let opening = format!(
            "{{\"kind\":\"{kind}List\",\"apiVersion\":\"{}\",\"items\":[",
            asked.kind.api_version()
        );
        match self {
            Self::Unauthorized => Reply::Bytes(refusal("401 Unauthorized", "", "Unauthorized")),
            Self::Forbidden => forbidden(asked),
            Self::NotFound => Reply::Bytes(refusal("404 Not Found", "", "the server could not find the requested resource")),
            // The first page, and then never the rest.
            Self::Gone if asked.token.is_none() => Reply::Bytes(json_answer("200 OK", &list("500", &[]))),
            Self::Gone => Reply::Bytes(refusal("410 Gone", "", "The provided continue parameter is too old")),
            Self::Busy if asked.before == 0 => Reply::Bytes(refusal("429 Too Many Requests", "Retry-After: 1\r\n", "too many requests")),
            Self::Busy => Reply::Asked,
            Self::Broken => Reply::Bytes(refusal("500 Internal Server Error", "", "etcdserver: request timed out")),
            Self::Cut => {
                let whole = page(asked, objects);
                Reply::Bytes(whole[..whole.len() - 3].to_vec())
            }
            Self::Endless => Reply::Endless(
                begun(&opening),
                begun_more(&format!("{{\"metadata\":{{\"name\":\"x\",\"note\":\"{}\"}}}},", "x".repeat(4000))),
            ),
            Self::Silent => Reply::Hold(Vec::new()),
            Self::Garbage => Reply::Bytes(answer("200 OK", "Content-Type: application/json\r\n", "{\"kind\": \u{7}\"items\"")),
            Self::WebPage => Reply::Bytes(answer("200 OK", "Content-Type: text/html\r\n", "<html>Log in</html>")),
            Self::EmptyPages => {
                let next = asked.token.as_ref().map_or(1, |token| token.parse::<u32>().unwrap() + 1);
                Reply::Bytes(json_answer("200 OK", &list(&next.to_string(), &[])))
            }
            Self::Nulls => {
                let mut objects = objects.to_vec();
                for object in &mut objects {
                    object["unknown"] = json!({"field": [1]});
                    for field in ["spec", "status", "metadata"] {
                        if let Value::Object(fields) = &mut object[field] {
                            for absent in [
                                "selector",
                                "ownerReferences",
                                "annotations",
                                "conditions",
                                "taints",
                                "tolerations",
                                "volumes",
                                "replicas",
                                "finalizers",
                            ] {
                                fields.entry(absent).or_insert(Value::Null);
                            }
                            fields.insert("unknownField".to_owned(), json!({"a": null}));
                        }
                    }
                }
                Reply::Bytes(page(asked, &objects))
            }
            Self::Bare => {
                let mut objects = objects.to_vec();
                let bare = |name: &str| json!({"apiVersion": asked.kind.api_version(), "kind": kind, "metadata": {"name": name, "namespace": "app"}});
                objects.push(bare("bare"));
                objects.push(json!({"apiVersion": asked.kind.api_version(), "kind": kind, "metadata": {"name": "null", "namespace": "app"}, "spec": null, "status": null}));
                Reply::Bytes(page(asked, &objects))
            }
        }
    }
}

/// One more piece of a body in pieces.
fn begun_more(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// What came of a run.
struct Outcome {
    exit: Option<i32>,
    document: Option<Value>,
    errors: String,
    took: Duration,
}

impl Outcome {
    fn verdict(&self) -> &str {
        self.document
            .as_ref()
            .map_or("none", |document| document["verdict"].as_str().unwrap())
    }
}

fn run(server: &ApiServer, node: &str) -> Outcome {
    let folder = TempDir::new().unwrap();
    let started = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-gpustack_ha"))
        .args([
            "drain-preflight",
            node,
            "-o",
            "json",
            "--request-timeout",
            &format!("{}s", LIMIT.as_secs()),
        ])
        .arg(server.kubeconfig(folder.path()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Outcome {
        exit: output.status.code(),
        document: serde_json::from_slice(&output.stdout).ok(),
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        took: started.elapsed(),
    }
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// What is wrong with the answer under a fault.
fn problem(full: &str, kind: Kind, fault: Fault, found: &Outcome) -> Option<String> {
    if found.errors.contains("panicked") || !matches!(found.exit, Some(0..=3)) {
        return Some(format!("exit {:?}: {}", found.exit, found.errors));
    }
    // Pauses before asking again, and a request that has its time more than once.
    if found.took > Duration::from_secs(90) {
        return Some(format!("took {:?}", found.took));
    }
    let Some(document) = &found.document else {
        let allowed =
            kind == Kind::Node && !fault.harmless() && fault != Fault::Bare && found.exit == Some(3) && found.errors.starts_with("error: ");
        return (!allowed).then(|| format!("no document: {}", found.errors));
    };
    if found.verdict() == full {
        return None;
    }
    if found.verdict() != "unknown" || fault.harmless() {
        return Some(format!("{} instead of {full}", found.verdict()));
    }
    let plural = kind.info().plural;
    let named = document["notAssessed"].as_array().unwrap().iter().any(|gap| {
        gap["affectsVerdict"] == true
            && gap["why"].as_str().unwrap().contains(plural)
            && (fault != Fault::Forbidden
                || gap["missingRight"]["resource"] == plural
                    && gap["missingRight"]["verb"] == "list"
                    && gap["missingRight"]["group"] == kind.info().group)
    });
    (!named && fault != Fault::Bare).then(|| format!("unknown, and {plural} are not named: {}", document["notAssessed"]))
}

#[test]
fn no_fault_makes_an_answer_milder() {
    let clusters = [
        ("all", documents(EVERYTHING), "n1"),
        ("unsafe", documents(include_str!("../examples/two-kueue-replicas.yaml")), "cp-1"),
    ];
    let mut cases = Vec::new();
    for (name, objects, node) in &clusters {
        let server = ApiServer::start(objects.clone(), |_| Reply::Asked);
        let full = run(&server, node);
        let verdict = full.verdict().to_owned();
        assert!(
            ["safe", "at-risk", "unsafe"].contains(&verdict.as_str()),
            "{name}: {verdict} {:?} {}",
            full.document,
            full.errors
        );
        let asked: BTreeSet<Kind> = server.asked.lock().unwrap().iter().map(|asked| asked.kind).collect();
        for kind in asked {
            // What only takes its time is waited for once a kind.
            let faults = FAULTS.iter().filter(|fault| *name == "all" || !fault.slow());
            cases.extend(faults.map(|fault| (*name, objects, *node, verdict.clone(), kind, *fault)));
        }
    }
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // Most of them wait.
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                while let Some((name, objects, node, full, kind, fault)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (kind, fault) = (*kind, *fault);
                    let replies = (*objects).clone();
                    let server = ApiServer::start((*objects).clone(), move |asked| match asked.kind == kind {
                        true => fault.reply(asked, &replies),
                        false => Reply::Asked,
                    });
                    if let Some(problem) = problem(full, kind, fault, &run(&server, node)) {
                        problems.lock().unwrap().push(format!("{name}: {kind} {fault:?}: {problem}"));
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(
        problems.is_empty(),
        "{} of {}:\n{}",
        problems.len(),
        cases.len(),
        problems.join("\n")
    );
}

#[test]
fn a_hundred_thousand_objects_change_nothing() {
    let objects = documents(include_str!("../examples/two-kueue-replicas.yaml"));
    let server = ApiServer::start(objects.clone(), |_| Reply::Asked);
    let full = run(&server, "cp-1").verdict().to_owned();
    for kind in [Kind::Pod, Kind::PodDisruptionBudget, Kind::Lease, Kind::ReplicaSet] {
        let objects = objects.clone();
        let more = objects.clone();
        let server = ApiServer::start(objects, move |asked| {
            if asked.kind != kind || asked.node.is_some() {
                return Reply::Asked;
            }
            // The real ones on the last page.
            let number: usize = asked.token.as_ref().map_or(0, |token| token.parse().unwrap());
            let (items, token) = if number == 200 {
                let first = Asked {
                    token: None,
                    ..asked.clone()
                };
                return Reply::Bytes(page(&first, &more));
            } else {
                let namespace = asked.namespace.as_deref().unwrap_or("crowd");
                let item = |index: usize| json!({"metadata": {"name": format!("x-{number}-{index}"), "namespace": namespace, "labels": {"app": "crowd"}}});
                ((0..500).map(item).collect::<Vec<_>>(), (number + 1).to_string())
            };
            let info = kind.info();
            Reply::Bytes(json_answer(
                "200 OK",
                &json!({"kind": format!("{}List", info.kind), "apiVersion": kind.api_version(), "metadata": {"continue": token}, "items": items}),
            ))
        });
        let found = run(&server, "cp-1");
        assert_eq!(found.verdict(), full, "{kind}: {}", found.errors);
        assert!(
            server.asked.lock().unwrap().iter().filter(|asked| asked.kind == kind).count() > 200,
            "{kind}"
        );
        let text = found.document.unwrap().to_string();
        assert!(!text.contains("x-0-0") && !text.contains("cannot list"), "{kind}: {text}");
    }
}

#[test]
fn what_is_asked_for_is_what_explain_rbac_prints() {
    let objects = documents(EVERYTHING);
    let server = ApiServer::start(objects, |_| Reply::Asked);
    run(&server, "n1");
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-gpustack_ha"))
        .args(["drain-preflight", "--explain-rbac"])
        .output()
        .unwrap();
    let role: Value = serde_saphyr::from_str(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let mut printed = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        assert_eq!(rule["verbs"], json!(["list"]));
        for resource in rule["resources"].as_array().unwrap() {
            printed.insert((rule["apiGroups"][0].to_string(), resource.to_string()));
        }
    }
    let asked: BTreeSet<_> = server
        .asked
        .lock()
        .unwrap()
        .iter()
        .map(|asked| asked.kind.info())
        .map(|info| (json!(info.group).to_string(), json!(info.plural).to_string()))
        .collect();
    assert_eq!(asked, printed);
}
