//! Clusters that nobody designed: a seed makes a state, which is played and compared like the designed ones, and a table sums up.
//!
//! Most states are made around one hard thing (`scenes.rs`); chance decides everything else.

mod chart;
mod scenes;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde_json::{Map, Value, json};

use scenes::Scene;

/// Raised whenever a seed begins to mean another state.
pub const GENERATOR: u32 = 5;

/// The seeds of a run that names none.
const FIXED: RangeInclusive<u64> = 1..=30;

/// The seeds to play: `SEEDS=7`, `SEEDS=1..50` (both ends played), lists of these with commas; else the fixed ones, unless
/// the states of another folder are played.
pub fn seeds() -> Vec<u64> {
    let Ok(stated) = std::env::var("SEEDS") else {
        if std::env::var_os("STATES").is_some() {
            return Vec::new();
        }
        return FIXED.collect();
    };
    let number = |text: &str| {
        text.trim()
            .parse::<u64>()
            .unwrap_or_else(|error| panic!("SEEDS: {text:?}: {error}"))
    };
    stated
        .split(',')
        .filter(|part| !part.trim().is_empty())
        .flat_map(|part| match part.split_once("..") {
            Some((first, last)) => number(first)..=number(last),
            None => number(part)..=number(part),
        })
        .collect()
}

/// Writes the state of a seed to `target/random/` and returns the file.
pub fn write(seed: u64) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/random");
    fs::create_dir_all(&folder).expect("the folder of random states");
    let file = folder.join(format!("random-{seed}.yaml"));
    fs::write(&file, Made::new(seed).text()).expect("a state file");
    file
}

/// What a seed makes.
struct Made {
    head: Value,
    objects: Vec<Value>,
    hard: BTreeSet<&'static str>,
}

impl Made {
    fn new(seed: u64) -> Self {
        let mut maker = Maker::new(seed);
        let scene = maker.cluster();
        maker.priorities();
        maker.scene(scene);
        maker.workloads();
        let steps = maker.steps();
        let hard: Vec<&str> = maker.hard.iter().copied().collect();
        let title = format!("seed {seed} of generator {GENERATOR}: {}", hard.join(", "));
        let head = json!({"kind": "State", "title": title, "rule": "random", "nodes": maker.nodes, "place": maker.place,
            "probe": maker.probes, "steps": steps});
        Self {
            head,
            objects: maker.objects,
            hard: maker.hard,
        }
    }

    fn text(&self) -> String {
        let documents: Vec<String> = [&self.head]
            .into_iter()
            .chain(&self.objects)
            .map(|object| serde_saphyr::to_string(object).expect("YAML"))
            .collect();
        documents.join("---\n")
    }
}

/// How often a state must hold each hard thing, in percent of all states. What has to end badly is known beforehand only where
/// the state is built so; the table tells how many really did.
const SHARES: [(&str, usize); 7] = [
    (scenes::UNFINISHED, 33),
    (scenes::PORT, 10),
    (scenes::SPREAD, 10),
    (scenes::FINALIZER, 10),
    (scenes::REFILL, 10),
    (chart::CHART, 30),
    // What `kubectl drain --dry-run=server` does not look at, and what it looks at only once.
    (scenes::BLIND, 25),
];

/// Without playing them: the seeds hold enough that is hard, and each is the same state every time.
pub fn selftest() -> Trial {
    Trial::test("random::holds its shares of hard states", || {
        let mut problems = Vec::new();
        for seeds in [1..=1000] {
            let made: Vec<Made> = seeds.clone().map(Made::new).collect();
            for (hard, share) in SHARES {
                let count = made.iter().filter(|made| made.hard.contains(hard)).count();
                if count * 100 < made.len() * share {
                    problems.push(format!("seeds {seeds:?}: {hard} in {count} of {}, wanted {share} %", made.len()));
                }
            }
        }
        for (hard, _) in SHARES {
            if FIXED.filter(|seed| Made::new(*seed).hard.contains(hard)).count() < 2 {
                problems.push(format!("the fixed seeds hold {hard} less than twice"));
            }
        }
        if Made::new(7).text() != Made::new(7).text() {
            problems.push("seed 7 is two states".to_owned());
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Failed::from(problems.join("\n")))
        }
    })
}

/// The same numbers for the same seed on every machine (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("a small number")
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())].clone()
    }
}

/// Where tenants and components live; pods are also asked for in `other`, where nothing runs.
const NAMESPACES: [&str; 2] = ["app", "tenant"];

struct Maker {
    dice: Dice,
    nodes: Vec<Value>,
    names: Vec<String>,
    drained: Vec<String>,
    /// The hard things that the state holds.
    hard: BTreeSet<&'static str>,
    place: BTreeMap<String, Vec<String>>,
    probes: Vec<Value>,
    objects: Vec<Value>,
    /// Done before all else, for the scene.
    first_steps: Vec<Value>,
    /// The pods that run in each namespace, for quotas.
    pods: BTreeMap<String, usize>,
    /// The namespace and name of what can be scaled and restarted.
    deployments: Vec<(String, String)>,
    chart: bool,
    kueue: bool,
    bare_pods: bool,
    /// Flags that the scene gives or takes away; chance does not touch them.
    flags: BTreeMap<&'static str, bool>,
}

/// Flags that would spoil a scene.
const SPOILERS: [&str; 7] = [
    "--disable-eviction",
    "--timeout=20s",
    "--timeout=45s",
    "--grace-period=0",
    "--grace-period=5",
    "--pod-selector=team=red",
    "--skip-wait-for-delete-timeout=1",
];

impl Maker {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice((seed + (u64::from(GENERATOR) << 32)).wrapping_mul(0x2545_f491_4f6c_dd1d)),
            nodes: Vec::new(),
            names: Vec::new(),
            drained: Vec::new(),
            hard: BTreeSet::new(),
            place: BTreeMap::new(),
            probes: Vec::new(),
            objects: NAMESPACES
                .iter()
                .chain(&["other"])
                .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .collect(),
            first_steps: Vec::new(),
            pods: BTreeMap::new(),
            deployments: Vec::new(),
            chart: false,
            kueue: false,
            bare_pods: false,
            flags: BTreeMap::new(),
        }
    }

    /// The nodes, which of them are drained, and what the state is about.
    fn cluster(&mut self) -> Scene {
        let scene = self.dice.pick(&scenes::WEIGHED);
        self.chart = self.dice.chance(38);
        let count = if scene.needs_another_node() {
            self.dice.pick(&[2, 2, 2, 3, 3, 3, 3, 4, 4, 5])
        } else {
            self.dice.pick(&[1, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 5, 6])
        };
        let zones = self.dice.pick(&[0, 2, 2, 3]);
        let control_plane = self.chart && self.dice.chance(40);
        for index in 1..=count {
            let name = format!("n{index}");
            let mut labels = Map::new();
            if zones > 0 && !self.dice.chance(8) {
                let zone = if self.dice.chance(70) {
                    index % zones
                } else {
                    self.dice.below(zones)
                };
                labels.insert("topology.kubernetes.io/zone".to_owned(), json!(format!("z{zone}")));
            }
            if self.dice.chance(40) {
                labels.insert("pool".to_owned(), json!(self.dice.pick(&["a", "b"])));
            }
            let mut taints = Vec::new();
            if control_plane && index <= 3 {
                labels.insert("node-role.kubernetes.io/control-plane".to_owned(), json!(""));
                taints.push(json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}));
            }
            if index > 1 && self.dice.chance(15) {
                let effect = self.dice.pick(&["NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute"]);
                taints.push(json!({"key": "dedicated", "value": "gpu", "effect": effect}));
            }
            let mut node = json!({"name": name, "labels": labels, "taints": taints});
            // The chart's components have priorities: where room is scarce, they would evict others.
            if !self.chart && self.dice.chance(22) {
                node["allocatable"] = self.dice.pick(&[
                    json!({"cpu": "2"}),
                    json!({"cpu": "1"}),
                    json!({"pods": "3"}),
                    json!({"memory": "1Gi"}),
                ]);
            }
            if count > 1 && self.dice.chance(3) {
                node["notReady"] = json!(true);
            }
            self.nodes.push(node);
            self.names.push(name);
        }
        let first = if self.dice.chance(75) { 0 } else { self.dice.below(count) };
        self.drained = vec![self.names[first].clone()];
        while self.drained.len() < count && self.dice.chance(18) {
            let other = self.dice.pick(&self.names);
            if !self.drained.contains(&other) {
                self.drained.push(other);
            }
        }
        scene
    }

    /// What happens before the drain, and the drain.
    fn steps(&mut self) -> Vec<Value> {
        let others: Vec<String> = self.names.iter().filter(|name| !self.drained.contains(name)).cloned().collect();
        let mut steps = std::mem::take(&mut self.first_steps);
        let designed = self.hard.contains(scenes::UNFINISHED);
        if !others.is_empty() && self.dice.chance(22) {
            let other = self.dice.pick(&others);
            if self.dice.chance(35) {
                steps.push(json!({"cordon": [other]}));
            } else {
                // One node after another: the first is uncordoned before the next, or forgotten.
                steps.push(
                    json!({"drainBefore": {"nodes": [other], "flags": ["--ignore-daemonsets", "--delete-emptydir-data", "--force"]}}),
                );
                if self.dice.chance(60) {
                    steps.push(json!({"uncordon": [other]}));
                }
            }
        }
        if self.dice.chance(4) {
            steps.push(json!({"cordon": [self.drained[0]]}));
        }
        if !self.deployments.is_empty() && self.dice.chance(10) {
            let (namespace, name) = self.dice.pick(&self.deployments);
            let key = format!("Deployment/{namespace}/{name}");
            steps.push(if self.dice.chance(50) {
                json!({"restart": [key]})
            } else {
                json!({"scale": {key: self.dice.below(5)}})
            });
        }
        let force = if self.bare_pods { 85 } else { 20 };
        let mut chances = vec![("--ignore-daemonsets", 97), ("--delete-emptydir-data", 97), ("--force", force)];
        chances.extend(SPOILERS.into_iter().zip([5, 2, 2, 3, 3, 3, 2]));
        let mut flags = Vec::new();
        for (flag, percent) in chances {
            let thrown = self.dice.chance(percent);
            let spoils = designed && SPOILERS.contains(&flag);
            let twice = flags
                .iter()
                .any(|other: &&str| flag.split_once('=').is_some_and(|(name, _)| other.starts_with(name)));
            if self.flags.get(flag).copied().unwrap_or(thrown && !spoils) && !twice {
                flags.push(flag);
            }
        }
        steps.push(json!({"drain": {"nodes": self.drained, "flags": flags}}));
        steps
    }
}
