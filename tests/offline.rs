//! Clusters in files, asked through the binary: recordings of a real control plane (`clusters/recorded/`) held against what
//! really happened, what must come of kinds that a file lacks, and small states of what no real cluster shows on demand
//! (`clusters/*.yaml`). `README.md` beside this file says how to write one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "offline/cases.rs"]
mod cases;
#[path = "control_plane/compare.rs"]
mod compare;
#[allow(dead_code, reason = "the control plane uses the rest")]
#[path = "control_plane/observed.rs"]
mod observed;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "support/schema.rs"]
mod schema;
#[allow(dead_code, reason = "the control plane uses the rest")]
#[path = "control_plane/state.rs"]
mod state;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gpustack_ha::cluster::kinds::Kind;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};

use crate::observed::Reality;
use crate::state::{Drain, State, Step};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for file in yaml_files("tests/clusters/recorded") {
        let recording = Recording::read(&file);
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (kinds, pairs, each) = (recording.clone(), recording.clone(), recording.clone());
        trials.push(Trial::test(format!("each/{name}"), move || {
            let flags: Vec<String> = each.arguments().into_iter().filter(|word| word.starts_with("--")).collect();
            as_each(&flags, &each.objects)
        }));
        trials.push(Trial::test(format!("recorded/{name}"), move || agrees(&recording)));
        trials.push(Trial::test(format!("withheld/{name}"), move || withheld(&kinds, &singles())));
        if PAIRS.contains(&name.as_str()) {
            trials.push(Trial::test(format!("withheld-pairs/{name}"), move || {
                withheld(&pairs, &all_pairs())
            }));
        }
    }
    for file in yaml_files("examples") {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for view in VIEWS {
            let file = file.clone();
            trials.push(Trial::test(format!("withheld-{view}/{name}"), move || withheld_from(view, &file)));
        }
    }
    for file in yaml_files("tests/clusters") {
        trials.extend(cases::trials(&file));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

/// What the binary answered.
struct Answer {
    exit: i32,
    /// `None` where it printed nothing.
    document: Option<Value>,
    errors: String,
}

/// Commands that can be asked; the schema of a document is called after its command.
const COMMANDS: &[&str] = &["drain-preflight", "placement", "leases", "pdb"];

/// Asks about a list of objects: `drain-preflight`, unless the arguments begin with another command. Every document is
/// valid by its schema.
fn ask(arguments: &[String], objects: &[Value]) -> Result<Answer, Failed> {
    let (command, arguments) = match arguments {
        [first, rest @ ..] if COMMANDS.contains(&first.as_str()) => (first.as_str(), rest),
        _ => ("drain-preflight", arguments),
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-gpustack_ha"))
        .args([command, "-o", "json", "-f", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    child.stdin.take().expect("a pipe").write_all(list.to_string().as_bytes())?;
    let output = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let exit = output.status.code().ok_or_else(|| format!("no exit code: {errors}"))?;
    let document = match output.stdout.is_empty() {
        true => None,
        false => Some(serde_json::from_slice::<Value>(&output.stdout)?),
    };
    if let Some(document) = &document {
        let schema = match arguments.iter().any(|argument| argument == "--each") {
            true => "drain-preflights",
            false => command,
        };
        let problems = schema::errors(schema, document);
        if !problems.is_empty() {
            return Err(format!("not a valid document: {}", problems.join("\n")).into());
        }
        let accepted = document["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|finding| finding["accepted"] == true);
        if schema == "drain-preflight" && document["verdict"] == "safe" && document["drain"]["outcome"] != "finishes" && !accepted {
            return Err(format!("safe, but the drain is said so: {}", document["drain"]).into());
        }
    }
    Ok(Answer { exit, document, errors })
}

/// A cluster captured before a real drain, what that drain did, and what was expected of it.
#[derive(Clone)]
struct Recording {
    objects: Vec<Value>,
    reality: PathBuf,
    state: PathBuf,
}

impl Recording {
    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).expect("the recording");
        let list: Value = serde_saphyr::from_str(&text).expect("YAML");
        Self {
            objects: list["items"].as_array().expect("a list").clone(),
            reality: file.with_extension("reality.json"),
            state: Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/control_plane/states")
                .join(file.file_name().unwrap_or_default()),
        }
    }

    /// Nodes and flags of the drain; kubectl does not assume the two flags that the preflight does.
    fn arguments(&self) -> Vec<String> {
        let state = State::read(&self.state);
        let Some(Step::Drain(Drain { nodes, flags })) = state.steps.last() else {
            panic!("{}: the last step is no drain", self.state.display());
        };
        let mut arguments: Vec<String> = nodes.iter().chain(flags).cloned().collect();
        for assumed in ["--ignore-daemonsets", "--delete-emptydir-data"] {
            if !flags.iter().any(|flag| flag.starts_with(assumed)) {
                arguments.push(format!("{assumed}=false"));
            }
        }
        arguments
    }

    fn complete(&self) -> Result<Answer, Failed> {
        let mut arguments = self.arguments();
        arguments.push("--complete".to_owned());
        ask(&arguments, &self.objects)
    }
}

fn verdict(answer: &Answer) -> &str {
    answer
        .document
        .as_ref()
        .and_then(|document| document["verdict"].as_str())
        .unwrap_or("none")
}

/// The exit code that a verdict has without `--fail-on`.
fn exit_of(verdict: &str) -> i32 {
    match verdict {
        "safe" => 0,
        "at-risk" | "unsafe" => 1,
        _ => 3,
    }
}

/// The document agrees with what really happened, and with what the state expects.
fn agrees(recording: &Recording) -> Result<(), Failed> {
    let reality: Reality = serde_json::from_str(&fs::read_to_string(&recording.reality)?)?;
    let answer = recording.complete()?;
    let Some(document) = &answer.document else {
        return Err(format!("no document: {}", answer.errors).into());
    };
    let expect = State::read(&recording.state).expect;
    let mut problems = compare::happened(&expect, &reality);
    problems.extend(compare::expected(&expect, document));
    problems.extend(compare::compare(document, &reality));
    if answer.exit != exit_of(&expect.verdict) {
        problems.push(format!("exit {} with {}", answer.exit, expect.verdict));
    }
    finish(problems)
}

/// `--each` says of every node what a preflight of it alone says, worst first.
fn as_each(flags: &[String], objects: &[Value]) -> Result<(), Failed> {
    let complete = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned());
        ask(
            &words
                .chain(flags.iter().cloned())
                .chain(["--complete".to_owned()])
                .collect::<Vec<_>>(),
            objects,
        )
    };
    let answer = complete(&["--each"])?;
    let Some(document) = &answer.document else {
        // Several installs, or no node.
        return Ok(());
    };
    let rows = document["nodes"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["node"].as_str()).collect();
    let mut problems = Vec::new();
    let worst = ["unsafe", "unknown", "at-risk", "safe"];
    let rank = |verdict: &Value| worst.iter().position(|known| verdict == known);
    if !rows.is_sorted_by_key(|row| rank(&row["verdict"])) || document["verdict"] != rows[0]["verdict"] {
        problems.push(format!("not the worst first: {document}"));
    }
    if answer.exit != exit_of(document["verdict"].as_str().unwrap_or_default()) {
        problems.push(format!("exit {}", answer.exit));
    }
    let nodes = objects.iter().filter(|object| is(object, Kind::Node));
    let all: BTreeSet<&str> = nodes.filter_map(|node| node["metadata"]["name"].as_str()).collect();
    if names.len() != all.len() {
        problems.push(format!("{} rows for {} nodes", names.len(), all.len()));
    }
    let (mut findings, mut gaps) = (Vec::new(), Vec::new());
    for (row, name) in rows.iter().zip(&names) {
        let alone = complete(&[name])?.document.ok_or("no document")?;
        let count = |field: &str, values: &[&str]| {
            let evictions = alone["evictions"].as_array().into_iter().flatten();
            evictions.filter(|row| values.iter().any(|value| row[field] == *value)).count()
        };
        let mut codes: Vec<Value> = Vec::new();
        let mut worst: Option<&Value> = None;
        for finding in alone["findings"].as_array().into_iter().flatten() {
            if !codes.contains(&finding["code"]) {
                codes.push(finding["code"].clone());
            }
            if finding["severity"] != "info" {
                let certain = |finding: &Value| finding["certainty"] == "certain";
                if worst.is_none_or(|worst| worst["severity"] == finding["severity"] && !certain(worst) && certain(finding)) {
                    worst = Some(finding);
                }
                let mut finding = finding.clone();
                if finding["node"].is_null() {
                    finding["node"] = json!(name);
                }
                findings.push(finding);
            }
        }
        gaps.extend(alone["notAssessed"].as_array().into_iter().flatten().cloned());
        let drain = &alone["drain"];
        let expected = json!({
            "node": name, "verdict": alone["verdict"], "outcome": drain["outcome"], "certainty": drain["certainty"], "why": drain["why"],
            "evicted": count("action", &["evict", "delete"]), "codes": codes, "worst": worst.map(|finding| &finding["message"]),
        });
        if *row != expected {
            problems.push(format!("{row}\n  alone {expected}"));
        }
    }
    let sorted = |values: &[Value]| {
        let mut texts: Vec<String> = values.iter().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    let told = document["findings"].as_array().expect("findings");
    if sorted(told) != sorted(&findings) {
        problems.push("the findings are others".to_owned());
    }
    let mut gaps = sorted(&gaps);
    gaps.dedup();
    if sorted(document["notAssessed"].as_array().expect("gaps")) != gaps {
        problems.push("what was not assessed is other".to_owned());
    }
    finish(problems)
}

fn finish(problems: Vec<String>) -> Result<(), Failed> {
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n").into()),
    }
}

/// States of which every two kinds are withheld together.
const PAIRS: &[&str] = &["finalizers-two-replicas", "spread-first-drain", "webhook-placeable"];

fn singles() -> Vec<Vec<Kind>> {
    std::iter::once(Vec::new())
        .chain(Kind::ALL.iter().map(|kind| vec![*kind]))
        .collect()
}

fn all_pairs() -> Vec<Vec<Kind>> {
    let mut pairs = Vec::new();
    for (index, first) in Kind::ALL.iter().enumerate() {
        pairs.extend(Kind::ALL[index + 1..].iter().map(|second| vec![*first, *second]));
    }
    pairs
}

fn is(object: &Value, kind: Kind) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    Kind::of(version, object["kind"].as_str().unwrap_or_default()) == Some(kind)
}

/// The objects without those of some kinds; of every other kind that is absent a typed list says that there are none.
fn without(objects: &[Value], kinds: &[Kind]) -> Vec<Value> {
    let mut left: Vec<Value> = objects
        .iter()
        .filter(|object| !kinds.iter().any(|kind| is(object, *kind)))
        .cloned()
        .collect();
    for kind in Kind::ALL.iter().filter(|kind| !kinds.contains(kind)) {
        if !left.iter().any(|object| is(object, *kind)) {
            let info = kind.info();
            let version = match info.group {
                "" => info.version.to_owned(),
                group => format!("{group}/{}", info.version),
            };
            left.push(json!({"apiVersion": version, "kind": format!("{}List", info.kind), "items": []}));
        }
    }
    left
}

/// Without kinds that a file lacks the verdict is the same or unknown, and then it says which kind is missing.
fn withheld(recording: &Recording, sets: &[Vec<Kind>]) -> Result<(), Failed> {
    let full = recording.complete()?;
    let full = verdict(&full);
    let arguments = recording.arguments();
    let mut problems = Vec::new();
    for kinds in sets {
        let answer = ask(&arguments, &without(&recording.objects, kinds))?;
        let names: Vec<&str> = kinds.iter().map(|kind| kind.info().plural).collect();
        let names = names.join(" and ");
        let mut problem = |text: String| problems.push(format!("without {names}: {text}"));
        if kinds.contains(&Kind::Node) {
            if answer.exit != 3 || answer.document.is_some() {
                problem(format!("exit {}, verdict {}", answer.exit, verdict(&answer)));
            }
            continue;
        }
        let found = verdict(&answer);
        if answer.exit != exit_of(found) {
            problem(format!("exit {} with {found}: {}", answer.exit, answer.errors));
        }
        if found == "unknown" && full != "unknown" {
            let named = |kind: &Kind| {
                answer.document.iter().any(|document| {
                    document["notAssessed"].as_array().into_iter().flatten().any(|entry| {
                        entry["affectsVerdict"] == true && entry["why"].as_str().is_some_and(|why| why.contains(kind.info().plural))
                    })
                })
            };
            if !kinds.iter().any(named) {
                problem("unknown, and not said that it is missing".to_owned());
            }
            if kinds.iter().all(|kind| HARMLESS.contains(kind)) {
                problem(format!("unknown instead of {full}, though nothing hangs on it"));
            }
        } else if found != full {
            problem(format!("{found} instead of {full}"));
        }
    }
    finish(problems)
}

/// The views; without options they are about GPUStack.
const VIEWS: &[&str] = &["placement", "leases", "pdb"];

/// Without a kind the verdict of a view is the same or unknown, and then it says what is missing.
fn withheld_from(view: &str, file: &Path) -> Result<(), Failed> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(file)?)?;
    let objects: Vec<Value> = documents.into_iter().filter(|document| !document.is_null()).collect();
    let mut problems = Vec::new();
    for all in [false, true] {
        let mut arguments = vec![view.to_owned()];
        arguments.extend(all.then(|| "-A".to_owned()));
        let complete = ask(&[arguments.clone(), vec!["--complete".to_owned()]].concat(), &objects)?;
        let full = verdict(&complete);
        for kind in Kind::ALL {
            let answer = ask(&arguments, &without(&objects, &[*kind]))?;
            let found = verdict(&answer);
            let name = kind.info().plural;
            let mut problem = |text: String| problems.push(format!("{view}, all: {all}, without {name}: {text}"));
            let named = |text: &str| text.contains(name);
            match found {
                // No install can be looked for.
                "none" if answer.exit == 3 && named(&answer.errors) => {}
                "unknown" if full != "unknown" => {
                    let gaps = answer.document.iter().flat_map(|document| document["notAssessed"].as_array());
                    let said = gaps
                        .flatten()
                        .any(|entry| entry["affectsVerdict"] == true && entry["why"].as_str().is_some_and(named));
                    if !said || answer.exit != 3 {
                        problem(format!("exit {}, and not said that it is missing", answer.exit));
                    }
                }
                _ if found == full && answer.exit == complete.exit => {}
                _ => problem(format!("{found} instead of {full}, exit {}: {}", answer.exit, answer.errors)),
            }
        }
    }
    finish(problems)
}

/// Kinds without which the verdict must stay: they only tell who leads.
const HARMLESS: &[Kind] = &[Kind::Lease];
