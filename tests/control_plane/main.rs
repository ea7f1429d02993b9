//! Predictions held against a real control plane: one trial per file in `states/`. See `README.md` beside this file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api;
mod authority;
mod cluster;
mod compare;
mod components;
mod kubelet;
mod kueue;
mod load;
mod network;
mod observed;
mod preflight;
mod quiet;
mod random;
mod reality;
mod record;
mod rights;
mod selftest;
mod sockets;
mod state;
mod table;
mod views;

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};

/// Names the state that a process inside a namespace plays; absent in the process that the user starts.
const PLAY: &str = "CONTROL_PLANE_STATE";
/// Names the folder of the components for that process.
const COMPONENTS: &str = "CONTROL_PLANE_COMPONENTS";
/// Names the file for what that process found out; absent where only its word counts.
const RESULT: &str = "CONTROL_PLANE_RESULT";

fn main() {
    if let (Some(file), Some(components)) = (std::env::var_os(PLAY), std::env::var_os(COMPONENTS)) {
        network::prepare();
        let problems = play(Path::new(&file), Path::new(&components));
        for problem in &problems {
            println!("DISAGREES: {problem}");
        }
        std::process::exit(i32::from(!problems.is_empty()));
    }
    if let (Some(file), Some(components)) = (std::env::var_os(rights::RIGHTS), std::env::var_os(COMPONENTS)) {
        network::prepare();
        let problems = rights::play(Path::new(&file), Path::new(&components));
        for problem in &problems {
            println!("WRONG: {problem}");
        }
        std::process::exit(i32::from(!problems.is_empty()));
    }
    if let Ok(files) = std::env::var("TABLE") {
        table::Rows::read(&files).print();
        return;
    }
    let mut arguments = Arguments::from_args();
    // A state mostly waits, so two fit on one core; each takes some 600 MB.
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    arguments.test_threads.get_or_insert((2 * cores).min(8));
    let states = state_files().into_iter().map(|file| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Trial::test(name, move || trial(&file))
    });
    let rows = table::Rows::default();
    let random = random::seeds().into_iter().map(|seed| {
        let rows = rows.clone();
        Trial::test(format!("random-{seed}"), move || random_trial(seed, &rows))
    });
    let checks = selftest::trials().into_iter().chain([random::selftest()]).chain(rights::trials());
    let trials = checks.chain(states).chain(random).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    rows.print();
    conclusion.exit();
}

fn state_files() -> Vec<PathBuf> {
    let folder = std::env::var_os("STATES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control_plane/states"),
        PathBuf::from,
    );
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of states")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

/// Plays one state in a process and namespaces of its own, and passes on what it printed if it fails.
fn trial(file: &Path) -> Result<(), Failed> {
    let components = components::built()?;
    let kueue = match state::State::read(file).kueue {
        state::Kueue::Real => Some(kueue::built()?),
        state::Kueue::Played => None,
    };
    let environment = [(PLAY, file), (COMPONENTS, &components)];
    let kueue = kueue.iter().map(|folder| (kueue::FOLDER, folder.as_path()));
    let environment: Vec<(&str, &Path)> = environment.into_iter().chain(kueue).collect();
    let (passed, output) = network::run_isolated(&environment)?;
    if observe_only() || std::env::var_os("VERBOSE").is_some() {
        println!("{output}");
    }
    if passed { Ok(()) } else { Err(Failed::from(output)) }
}

/// Plays the state of a seed; its file and what came of it stay in `target/random/` unless prediction and reality agree.
fn random_trial(seed: u64, rows: &table::Rows) -> Result<(), Failed> {
    let components = components::built()?;
    let file = random::write(seed);
    let result = file.with_extension("json");
    let _ = fs::remove_file(&result);
    let (passed, output) = network::run_isolated(&[(PLAY, &file), (COMPONENTS, &components), (RESULT, &result)])?;
    let notable = rows.add(seed, &result);
    if passed && !notable {
        let _ = fs::remove_file(file);
        let _ = fs::remove_file(result);
        return Ok(());
    }
    fs::write(file.with_extension("log"), &output).map_err(|error| error.to_string())?;
    if passed { Ok(()) } else { Err(Failed::from(output)) }
}

/// Whether the preflight is left out and only what really happens is printed and checked.
fn observe_only() -> bool {
    std::env::var_os("OBSERVE_ONLY").is_some_and(|value| value == "1")
}

/// Starts a cluster, loads the state, predicts, drains, and returns every disagreement.
fn play(file: &Path, components: &Path) -> Vec<String> {
    let clock = std::time::Instant::now();
    let say = |what: &str| println!("{:6.1}s {what}", clock.elapsed().as_secs_f64());
    let state = state::State::read(file);
    println!("{}: {}", file.file_stem().unwrap_or_default().to_string_lossy(), state.title);
    let mut cluster = cluster::Cluster::start(components);
    say("control plane ready");
    let api = api::Api::new(&cluster.kubeconfig);
    let kubelets = kubelet::Kubelets::start(&cluster, &state);
    load::load(&state, &api, &mut cluster);
    say("state loaded and settled");
    let drain = load::run_steps(&state, &api, &cluster, &kubelets);
    say("steps before the drain done");

    let dry_run = std::env::var_os(RESULT).map(|_| reality::dry_run(&cluster, drain));
    let captured = record::capture(&cluster);
    let predicted = (!observe_only()).then(|| preflight::run(&cluster, drain, &captured));
    let viewed = (!observe_only()).then(|| views::run(&cluster, &captured, &state.expect));
    let watch = (!observe_only()).then(|| views::Watch::begin(&cluster));
    let reality = reality::observe(&cluster, &api, &state, drain);
    say("drained and settled");
    println!("{}", serde_json::to_string_pretty(&reality).expect("reality as JSON"));

    let stated = Some(&state.expect).filter(|expect| !expect.verdict.is_empty());
    let mut problems = stated.map_or_else(Vec::new, |expect| compare::happened(expect, &reality));
    problems.extend(viewed.unwrap_or_default());
    problems.extend(watch.and_then(|watch| watch.end(&cluster).err()));
    if let Some(predicted) = &predicted {
        match predicted {
            Ok(document) => {
                if let Some(expect) = stated {
                    problems.extend(compare::expected(expect, document));
                }
                problems.extend(compare::compare(document, &reality));
                if !problems.is_empty() {
                    println!("{}", serde_json::to_string_pretty(document).expect("a document"));
                }
            }
            Err(problem) => problems.push(problem.clone()),
        }
    }
    if std::env::var_os("RECORD").is_some() {
        record::write(file, &captured, &reality);
    }
    if let Some(result) = std::env::var_os(RESULT) {
        let document = predicted.as_ref().and_then(|predicted| predicted.as_ref().ok());
        let found = table::Found::new(document, reality, &problems, dry_run.unwrap_or_default());
        fs::write(result, serde_json::to_string_pretty(&found).expect("JSON")).expect("the result");
    }
    if !problems.is_empty() {
        println!("{}", cluster.logs());
    }
    kubelets.stop();
    problems
}
