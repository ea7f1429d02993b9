//! Sums up how predictions and reality of random states agree.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    problems: Vec<String>,
    verdict: String,
    /// `drain.outcome` and its certainty.
    predicted: String,
    outcome: String,
    /// Some outcome, replacement or gap in service was told as possible only.
    hedged: bool,
    /// Something that people would want to be told before.
    bad: bool,
    /// `kubectl drain --dry-run=server` found nothing wrong.
    dry_run: bool,
    document: Value,
    reality: Value,
}

impl Found {
    pub fn new(document: Option<&Value>, reality: &Reality, problems: &[String], dry_run: bool) -> Self {
        let document = document.cloned().unwrap_or_default();
        let word = |value: &Value| value.as_str().unwrap_or("nothing").to_owned();
        let possible = |value: &Value| value["certainty"] == "possible";
        let all = |field: &str| document[field].as_array().cloned().unwrap_or_default();
        Self {
            generator: 0,
            seed: 0,
            problems: problems.to_vec(),
            verdict: word(&document["verdict"]),
            predicted: format!("{} {}", word(&document["drain"]["outcome"]), word(&document["drain"]["certainty"])),
            outcome: reality.outcome.clone(),
            hedged: possible(&document["drain"])
                || all("evictions").iter().any(|eviction| possible(&eviction["replacement"]))
                || all("unserved").iter().any(possible),
            bad: reality.outcome != "finishes"
                || reality.probes.iter().any(|probe| !probe.before && probe.refused_seconds > 0.0)
                || reality
                    .replacements
                    .values()
                    .any(|new| new.pending + new.gated + new.not_created + new.never_ready.len() + new.crash_looping.len() > 0),
            dry_run,
            document,
            reality: serde_json::to_value(reality).unwrap_or_default(),
        }
    }

    fn kinds(&self) -> Vec<&'static str> {
        let mut kinds = vec![match (self.hedged, self.problems.is_empty()) {
            _ if self.verdict == "nothing" => "no document",
            _ if self.verdict == "unknown" && self.problems.is_empty() => "unknown",
            (false, true) => "right",
            (true, true) => "hedged, reality inside",
            (true, false) => "hedged, reality outside",
            (false, false) => "wrong",
        }];
        if self.problems.iter().any(|problem| problem.starts_with("FALSE SAFE")) {
            kinds.push("FALSE SAFE");
        }
        if self.verdict == "unsafe" && !self.bad {
            kinds.push("false alarm");
        }
        kinds
    }
}

/// The kinds in the order in which they are printed.
const KINDS: [&str; 9] = [
    "right",
    "hedged, reality inside",
    "hedged, reality outside",
    "wrong",
    "FALSE SAFE",
    "false alarm",
    "unknown",
    "no document",
    "not played",
];

/// Those of them that went well.
const DULL: [&str; 2] = ["right", "hedged, reality inside"];

/// Adds a line to the file that `RESULTS` names, from which the table over many runs is made.
fn append(found: &Found) {
    if let Some(path) = std::env::var_os("RESULTS") {
        let line = serde_json::to_string(found).expect("JSON") + "\n";
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the file of results");
    }
}

/// What all states of a run showed, by seed; `None` if a state did not come to its end.
#[derive(Clone, Default)]
pub struct Rows(Arc<Mutex<BTreeMap<u64, Option<Found>>>>);

impl Rows {
    /// Reads what the process that played the state left behind, and says whether it is worth a look.
    pub fn add(&self, seed: u64, result: &Path) -> bool {
        let mut found: Option<Found> = fs::read_to_string(result).ok().and_then(|text| serde_json::from_str(&text).ok());
        if let Some(found) = &mut found {
            (found.generator, found.seed) = (random::GENERATOR, seed);
            append(found);
        }
        let dull = |found: &Found| found.kinds().iter().all(|kind| DULL.contains(kind));
        let notable = !found.as_ref().is_some_and(dull);
        self.0.lock().expect("rows").insert(seed, found);
        notable
    }

    /// Prints the table, unless no random state was played.
    pub fn print(&self) {
        let rows = self.0.lock().expect("rows");
        if rows.is_empty() {
            return;
        }
        let mut seeds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
        for (seed, found) in rows.iter() {
            for kind in found.as_ref().map_or_else(|| vec!["not played"], Found::kinds) {
                seeds.entry(kind).or_default().push(seed.to_string());
            }
            if let Some(found) = found {
                *outcomes.entry(&found.outcome).or_default() += 1;
                if !found.problems.is_empty() {
                    println!(
                        "seed {seed}: {}, predicted {}, really {}",
                        found.verdict, found.predicted, found.outcome
                    );
                    found.problems.iter().for_each(|problem| println!("    {problem}"));
                }
            }
        }
        println!("\n{} random states; really: {outcomes:?}", rows.len());
        for kind in KINDS {
            let seeds = seeds.remove(kind).unwrap_or_default();
            // Those that went well need no naming.
            let named = if DULL.contains(&kind) { String::new() } else { seeds.join(" ") };
            println!("{kind:<24}{:>5}  {named}", seeds.len());
        }
        let bad: Vec<&Found> = rows.values().flatten().filter(|found| found.bad).collect();
        println!(
            "something went wrong in {}; `kubectl drain --dry-run=server` found nothing in {} of them",
            bad.len(),
            bad.iter().filter(|found| found.dry_run).count()
        );
        println!("a false alarm or a FALSE SAFE also stands in one of the other rows; files: target/random/");
    }
}
