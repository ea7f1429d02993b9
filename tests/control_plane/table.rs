//! Sums up how predictions and reality of random states agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compare;
use crate::observed::Reality;
use crate::random;

/// What one state showed.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Version of the generator and seed; filled in by the run, as the process that plays a state does not know them.
    #[serde(default)]
    generator: u32,
    #[serde(default)]
    seed: u64,
    /// Every disagreement.
    problems: Vec<String>,
    /// `kubectl drain --dry-run=server` found nothing wrong.
    dry_run: bool,
    document: Value,
    reality: Reality,
}

/// From good to bad; a state is of one of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Right,
    Inside,
    Outside,
    Wrong,
    Unknown,
    NotPlayed,
}

impl Found {
    pub fn new(document: Option<&Value>, reality: Reality, problems: &[String], dry_run: bool) -> Self {
        Self {
            generator: 0,
            seed: 0,
            problems: problems.to_vec(),
            dry_run,
            document: document.cloned().unwrap_or_default(),
            reality,
        }
    }

    fn class(&self) -> Class {
        match (compare::hedged(&self.document), self.problems.is_empty()) {
            _ if self.document.is_null() => Class::NotPlayed,
            (_, true) if undecided(&self.document) => Class::Unknown,
            (false, true) => Class::Right,
            (true, true) => Class::Inside,
            (true, false) => Class::Outside,
            (false, false) => Class::Wrong,
        }
    }

    fn false_safe(&self) -> bool {
        self.problems.iter().any(|problem| problem.starts_with("FALSE SAFE"))
    }

    /// Something that people would want to be told before.
    fn bad(&self) -> bool {
        let left = self
            .reality
            .replacements
            .values()
            .any(|new| new.pending + new.gated + new.not_created + new.never_ready.len() + new.crash_looping.len() > 0);
        let refused = self.reality.probes.iter().any(|probe| !probe.before && probe.refused_seconds > 0.0);
        self.reality.outcome != "finishes" || refused || left
    }

    /// `unsafe` was told, and nothing that deserves it happened.
    fn false_alarm(&self) -> bool {
        // What nobody asked for while the drain ran may have been refused.
        let unasked = self.document["unserved"].as_array().into_iter().flatten().any(|row| {
            let asked = |probe: &crate::observed::ProbeReality| row["what"] == probe.what && row["name"] == probe.name;
            row["until"] != "already" && !self.reality.probes.iter().any(asked)
        });
        self.document["verdict"] == "unsafe" && !self.bad() && self.reality.without_ready.is_empty() && !unasked
    }

    fn unfinished(&self) -> bool {
        self.reality.outcome != "finishes"
    }

    /// A pod that waits, crashes or is missing, or something unserved, after a drain that finished.
    fn left_behind(&self) -> bool {
        let left = self
            .reality
            .replacements
            .values()
            .any(|new| new.pending + new.not_created + new.crash_looping.len() > 0);
        !self.unfinished() && (left || self.reality.probes.iter().any(|probe| probe.at_end && !probe.before))
    }

    /// A disagreement that means that something left behind was not told.
    fn untold(&self) -> bool {
        let untold = ["replacements", "after.pending", "refused", "nothing of it is Ready"];
        self.problems.iter().any(|problem| untold.iter().any(|word| problem.contains(word)))
    }

    /// Reads one line of the file of results, and compares again by today's rules.
    fn judged(line: &str) -> Self {
        let mut found: Self = serde_json::from_str(line).expect("a result");
        if !found.document.is_null() {
            found.problems = compare::compare(&found.document, &found.reality);
        }
        found
    }
}

/// What states showed, by generator and seed; `None` if a state did not come to its end.
type BySeed = BTreeMap<(u32, u64), Option<Found>>;

/// What all states of a run showed.
#[derive(Clone, Default)]
pub struct Rows(Arc<Mutex<BySeed>>);

impl Rows {
    /// Reads what the process that played the state left behind, and says whether it is worth a look.
    pub fn add(&self, seed: u64, result: &Path) -> bool {
        let mut found: Option<Found> = fs::read_to_string(result).ok().and_then(|text| serde_json::from_str(&text).ok());
        if let Some(found) = &mut found {
            (found.generator, found.seed) = (random::GENERATOR, seed);
            append(found);
        }
        let dull = |found: &Found| found.class() <= Class::Inside && !found.false_alarm();
        let notable = !found.as_ref().is_some_and(dull);
        self.0.lock().expect("rows").insert((random::GENERATOR, seed), found);
        notable
    }

    /// The results that earlier runs wrote to files, whose names stand between commas.
    pub fn read(files: &str) -> Self {
        let text = |file: &str| fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let lines: Vec<String> = files
            .split(',')
            .flat_map(|file| text(file).lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let all = lines
            .iter()
            .map(|line| Found::judged(line))
            .map(|found| ((found.generator, found.seed), Some(found)));
        Self(Arc::new(Mutex::new(all.collect())))
    }

    /// Prints the tables, unless no random state was played.
    pub fn print(&self) {
        let rows = self.0.lock().expect("rows");
        if rows.is_empty() {
            return;
        }
        for ((generator, seed), found) in rows.iter() {
            let Some(found) = found else {
                println!("seed {seed}: not played");
                continue;
            };
            if found.problems.is_empty() && !found.false_alarm() && found.class() != Class::Unknown {
                continue;
            }
            println!(
                "seed {seed} of generator {generator}: {}, predicted {} {}, really {}",
                found.document["verdict"], found.document["drain"]["outcome"], found.document["drain"]["certainty"], found.reality.outcome
            );
            found.problems.iter().for_each(|problem| println!("    {problem}"));
            if found.false_alarm() {
                println!("    a false alarm");
            }
        }
        let generators: BTreeSet<u32> = rows.keys().map(|(generator, _)| *generator).collect();
        let each = generators.iter().map(Some).filter(|_| generators.len() > 1);
        for wanted in each.chain([None]) {
            let of = |(generator, _): &&(u32, u64)| wanted.is_none_or(|wanted| wanted == generator);
            let all: Vec<Option<&Found>> = rows.keys().filter(of).map(|key| rows[key].as_ref()).collect();
            let played: Vec<&Found> = all.iter().filter_map(|found| *found).collect();
            let title = wanted.map_or_else(String::new, |generator| format!("generator {generator}: "));
            println!("\n{title}{}\n{}", classes(&all, &played), targets(&played));
        }
        println!("files of what is worth a look: target/random/");
    }
}

/// Whether something was left undecided.
fn undecided(document: &Value) -> bool {
    let replacements = document["evictions"].as_array().into_iter().flatten();
    document["verdict"] == "unknown"
        || document["drain"]["outcome"] == "unknown"
        || replacements.into_iter().any(|entry| entry["replacement"]["outcome"] == "unknown")
}

fn count<T: Copy>(all: &[T], of: impl Fn(T) -> bool) -> usize {
    all.iter().filter(|one| of(**one)).count()
}

/// The states by what came of the prediction, the preflight's beside a dry run's.
fn classes(all: &[Option<&Found>], played: &[&Found]) -> String {
    let class = |wanted: Class| count(all, |found| found.map_or(Class::NotPlayed, Found::class) == wanted).to_string();
    let ended = count(played, |found| found.dry_run && !found.bad()) + count(played, |found| !found.dry_run && found.unfinished());
    let blind = count(played, |found| found.dry_run && found.bad());
    let alarms = count(played, |found| !found.dry_run && !found.unfinished());
    let version = |field: &str| {
        let versions: BTreeSet<&str> = played
            .iter()
            .filter_map(|found| found.document.pointer(field).and_then(Value::as_str))
            .collect();
        versions.into_iter().collect::<Vec<_>>().join(", ")
    };
    let rows = [
        ("right", class(Class::Right), ended.to_string()),
        ("hedged, reality inside", class(Class::Inside), "-".to_owned()),
        ("hedged, reality outside", class(Class::Outside), "-".to_owned()),
        ("wrong", class(Class::Wrong), (blind + alarms).to_string()),
        ("unknown", class(Class::Unknown), "-".to_owned()),
        ("not played", class(Class::NotPlayed), class(Class::NotPlayed)),
        ("**false safe**", count(played, Found::false_safe).to_string(), blind.to_string()),
        ("false alarm", count(played, Found::false_alarm).to_string(), alarms.to_string()),
    ];
    let mut text = format!(
        "{} states, version {}, Kubernetes {}\n\n| | `drain-preflight` | `kubectl drain --dry-run=server` |\n|---|---|---|\n",
        all.len(),
        version("/toolVersion"),
        version("/cluster/serverVersion")
    );
    for (name, preflight, dry_run) in rows {
        text += &format!("| {name} | {preflight} | {dry_run} |\n");
    }
    text
}

/// The measures that the predictions are held to.
fn targets(played: &[&Found]) -> String {
    let plain: Vec<&Found> = played.iter().copied().filter(|found| !compare::hedged(&found.document)).collect();
    let hangs: Vec<&Found> = played.iter().copied().filter(|found| found.reality.outcome == "hangs").collect();
    let left: Vec<&Found> = played.iter().copied().filter(|found| found.left_behind()).collect();
    let bad: Vec<&Found> = played.iter().copied().filter(|found| found.bad()).collect();
    let measures = [
        (
            "right of those that told only what is certain",
            "at least 99 %",
            count(&plain, |found| found.problems.is_empty()),
            plain.len(),
        ),
        (
            "the pods that hold up a drain named exactly",
            "at least 97 %",
            count(&hangs, |found| compare::stuck_exact(&found.document, &found.reality)),
            hangs.len(),
        ),
        (
            "what a finished drain leaves behind was told",
            "all",
            count(&left, |found| !found.untold()),
            left.len(),
        ),
        (
            "hedged",
            "at most 8 %",
            count(played, |found| compare::hedged(&found.document)),
            played.len(),
        ),
        ("false alarms", "at most 1 %", count(played, Found::false_alarm), played.len()),
        ("false `safe`", "none", count(played, Found::false_safe), played.len()),
        (
            "the drain did not finish",
            "at least a third",
            count(played, Found::unfinished),
            played.len(),
        ),
        (
            "something went wrong, and the dry run found nothing",
            "at least a quarter",
            count(&bad, |found| found.dry_run),
            played.len(),
        ),
    ];
    let mut text = "| measure | wanted | found |\n|---|---|---|\n".to_owned();
    for (name, wanted, part, whole) in measures {
        let tenths = (part * 1000 + whole / 2) / whole.max(1);
        text += &format!("| {name} | {wanted} | {part} of {whole} ({}.{} %) |\n", tenths / 10, tenths % 10);
    }
    text
}

/// Adds a line to the file that `RESULTS` names, from which the table over many runs is made.
fn append(found: &Found) {
    if let Some(path) = std::env::var_os("RESULTS") {
        let line = serde_json::to_string(found).expect("JSON") + "\n";
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the file of results");
    }
}
