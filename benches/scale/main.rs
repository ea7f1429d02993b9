//! How the tool does on large clusters, beside what else reads the same bytes: `cargo bench --bench scale`.
//!
//! Serves a made-up cluster on loopback, runs each command and its yardstick in turn, five times each, and prints one
//! table of medians. It fails where the live answer is not the one from files with every object.
//! `-- NODES PODS` makes another size than 5,000 nodes and 150,000 pods.

#![allow(clippy::unwrap_used, clippy::panic)]

mod cluster;
mod server;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cluster::{DRAINED, Size};
use gpustack_ha::cluster::files;
use serde::de::IgnoredAny;
use serde_json::Value;
use tempfile::TempDir;
use wait4::Wait4;

const TOOL: &str = env!("CARGO_BIN_EXE_kubectl-gpustack_ha");

/// How often each is run.
const TURNS: usize = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse().ok());
    match words.first().map(String::as_str) {
        Some("serve") => {
            let size = Size {
                nodes: number(1).unwrap(),
                pods: number(2).unwrap(),
                narrow: words[3] == "narrow",
            };
            server::serve(cluster::lists(size)).unwrap();
        }
        Some("compare") => same_as_files(Path::new(&words[1]), Path::new(&words[2])),
        // What a file takes to read, and to skip.
        Some("read") => {
            files::read(&[PathBuf::from(&words[1])], false).unwrap();
        }
        Some("skip-json") => {
            let text = std::fs::read(&words[1]).unwrap();
            serde_json::from_slice::<IgnoredAny>(&text).unwrap();
        }
        Some("skip-yaml") => {
            let text = std::fs::read_to_string(&words[1]).unwrap();
            let budget = serde_saphyr::options! { budget: None };
            serde_saphyr::from_str_with_options::<IgnoredAny>(&text, budget).unwrap();
        }
        _ => bench(number(0).unwrap_or(5000), number(1).unwrap_or(150_000)),
    }
}

/// The server of a cluster, as a process of its own.
struct Served {
    process: Child,
    address: String,
    folder: TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Served {
    /// Nothing is compressed, for curl does not ask for it.
    fn start(nodes: usize, pods: usize, narrow: bool) -> Self {
        let place = if narrow { "narrow" } else { "wide" };
        let mut process = myself(&["serve", &nodes.to_string(), &pods.to_string(), place])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let served = Self {
            process,
            address: format!("http://{}", line.trim()),
            folder: TempDir::new().unwrap(),
        };
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: '{}', disable-compression: true}}}}]\n\
             users: [{{name: u, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n",
            served.address
        );
        std::fs::write(served.folder.path().join("kubeconfig"), text).unwrap();
        served
    }

    fn tool(&self, words: &[&str]) -> Command {
        tool(words, &self.folder.path().join("kubeconfig"))
    }

    /// Holds live against files in a process of its own: what is started later counts at least the memory of this one.
    fn compare(&self, lists: &Path) {
        let kubeconfig = self.folder.path().join("kubeconfig");
        let mut command = myself(&["compare"]);
        assert!(command.arg(kubeconfig).arg(lists).status().unwrap().success());
    }

    fn kubectl(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(words).arg("--kubeconfig").arg(self.folder.path().join("kubeconfig"));
        command.arg("--cache-dir").arg(self.folder.path().join("cache"));
        command
    }

    /// One transfer of these lists, each whole and as it is.
    fn curl(&self, paths: &[String]) -> Command {
        let mut command = Command::new("curl");
        command.args(["--silent", "--fail"]);
        for path in paths {
            command.arg(format!("{}{path}", self.address)).args(["--output", "/dev/null"]);
        }
        command
    }

    /// Every list, as a file each.
    fn capture(&self) -> PathBuf {
        let folder = self.folder.path().join("lists");
        std::fs::create_dir(&folder).unwrap();
        for kind in gpustack_ha::cluster::kinds::Kind::ALL {
            let file = folder.join(format!("{}.json", kind.info().plural));
            let path = format!("{}{}", self.address, kind.path(None));
            assert!(
                Command::new("curl")
                    .args(["--silent", "--fail", &path, "--output"])
                    .arg(file)
                    .status()
                    .unwrap()
                    .success()
            );
        }
        folder
    }
}

fn tool(words: &[&str], kubeconfig: &Path) -> Command {
    let mut command = Command::new(TOOL);
    command.args(words).arg("--kubeconfig").arg(kubeconfig);
    command.args(["--request-timeout", "0"]);
    command
}

fn myself(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(words);
    command
}

/// What running a command took.
#[derive(Clone, Copy)]
struct Took {
    time: Duration,
    /// Largest resident memory, in KiB.
    memory: u64,
}

fn run(command: &mut Command) -> Took {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let usage = child.wait4().unwrap();
    assert!(usage.status.code().is_some_and(|code| code < 2), "{command:?}");
    Took {
        time: start.elapsed(),
        memory: usage.rusage.maxrss / 1024,
    }
}

/// Medians of both, run in turn: what the machine does meanwhile meets both.
fn beside(command: &mut dyn FnMut() -> Command, yardstick: &mut dyn FnMut() -> Command, turns: usize) -> (Took, Took) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        ours.push(run(&mut command()));
        theirs.push(run(&mut yardstick()));
    }
    (median(ours), median(theirs))
}

fn median(mut all: Vec<Took>) -> Took {
    let middle = all.len() / 2;
    all.sort_by_key(|took| took.memory);
    let memory = all[middle].memory;
    all.sort_by_key(|took| took.time);
    Took { memory, ..all[middle] }
}

/// The table, printed row by row.
struct Table;

impl Table {
    fn begin() -> Self {
        println!("| what | time, as a multiple of | at most | memory | at most | |\n|---|---|---|---|---|---|");
        Self
    }

    fn row(&self, what: &str, (took, of): (Took, Took), beside: &str, most: f64, memory: Option<u64>, note: &str) {
        let ratio = took.time.as_secs_f64() / of.time.as_secs_f64();
        let memory = memory.map_or_else(String::new, |memory| format!("{memory} MB"));
        println!(
            "| {what} | {ratio:.2} x {beside} | {most} x | {} MB | {memory} | {note} |",
            took.memory / 1024
        );
    }
}

/// The document of a preflight, without what differs by where it was read.
fn document(command: &mut Command) -> Value {
    let output = command.args(["-o", "json"]).output().unwrap();
    let mut document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    for part in ["source", "observedAt", "cluster", "drainCommand"] {
        document.as_object_mut().unwrap().remove(part);
    }
    document
}

/// What a command asked for: the paths of its lists, and bytes in all.
fn asked(command: &mut Command) -> (Vec<String>, u64) {
    let output = command.arg("--verbose").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("REQUEST")).skip(1);
    let (mut paths, mut bytes) = (Vec::new(), 0);
    for row in rows {
        let words: Vec<&str> = row.split_whitespace().collect();
        match words.as_slice() {
            ["in", "all", _, _, all, ..] => bytes = all.parse().unwrap(),
            [path, _, objects, ..] if objects.parse::<u64>().is_ok_and(|objects| objects > 0) => paths.push((*path).to_owned()),
            _ => {}
        }
    }
    (paths, bytes)
}

/// The live answer is the one from files with every object.
fn same_as_files(kubeconfig: &Path, lists: &Path) {
    let live = document(&mut tool(&["drain-preflight", DRAINED], kubeconfig));
    let mut offline = Command::new(TOOL);
    offline.args(["drain-preflight", DRAINED, "--complete", "-f"]).arg(lists);
    let offline = document(&mut offline);
    assert_eq!(live["verdict"], offline["verdict"]);
    assert_eq!(live["evictions"], offline["evictions"]);
    assert!(live["evictions"].as_array().unwrap().len() >= 30, "30 pods are on it");
    assert!(
        live["unserved"].to_string().contains("guard"),
        "the only backend of a webhook is on it"
    );
}

fn bench(nodes: usize, pods: usize) {
    let table = Table::begin();
    {
        let served = Served::start(nodes, pods, false);
        let lists = served.capture();
        served.compare(&lists);
        let (_, bytes) = asked(&mut served.tool(&["drain-preflight", DRAINED]));
        let note = format!("asks for {} MB, unpacked", bytes / 1_000_000);
        let all = ["/api/v1/pods".to_owned()];
        let preflight = |served: &Served| served.tool(&["drain-preflight", DRAINED]);
        let both = beside(&mut || preflight(&served), &mut || served.curl(&all), TURNS);
        table.row(
            &format!("live preflight of a node, {nodes} nodes, {pods} pods"),
            both,
            "curl of all pods",
            1.0,
            Some(64),
            &note,
        );
        for words in [["placement", "-A"], ["pdb", "-A"], ["leases", "-A"]] {
            let (paths, bytes) = asked(&mut served.tool(&words));
            let both = beside(&mut || served.tool(&words), &mut || served.curl(&paths), TURNS);
            let note = format!("{} lists, {} MB", paths.len(), bytes / 1_000_000);
            table.row(
                &format!("`{}`", words.join(" ")),
                both,
                "curl of the lists it needs",
                1.0,
                None,
                &note,
            );
        }
        let file = lists.join("pods.json").display().to_string();
        let both = beside(&mut || myself(&["read", &file]), &mut || myself(&["skip-json", &file]), TURNS);
        table.row(&format!("JSON of {pods} pods"), both, "serde_json skipping it", 1.5, Some(128), "");
        each(&table, &served, &lists);
    }
    {
        let served = Served::start(nodes, pods, true);
        served.compare(&served.capture());
        let both = beside(
            &mut || served.tool(&["drain-preflight", DRAINED]),
            &mut || served.curl(&["/api/v1/pods".to_owned()]),
            TURNS,
        );
        table.row(
            "the same with only three nodes that take pods, the last ones",
            both,
            "curl of all pods",
            1.0,
            Some(64),
            "",
        );
    }
    {
        let served = Served::start(3, 60, false);
        let both = beside(
            &mut || served.tool(&["drain-preflight", DRAINED]),
            &mut || served.kubectl(&["get", "pods", "-A"]),
            TURNS,
        );
        table.row(
            "live preflight of a node, 3 nodes, 60 pods",
            both,
            "kubectl get pods -A",
            0.5,
            None,
            "",
        );
    }
    yaml(&table, pods / 10);
    let both = beside(&mut || help(TOOL), &mut || help("kubectl"), 2 * TURNS);
    table.row("`--help`", both, "kubectl --help", 0.1, None, "");
}

/// Each node from one snapshot.
fn each(table: &Table, served: &Served, lists: &Path) {
    let all = |lists: &Path| {
        let mut command = Command::new(TOOL);
        command
            .args(["drain-preflight", "--each", "-o", "name", "--complete", "-f"])
            .arg(lists);
        command
    };
    let folder = lists.display().to_string();
    let both = beside(&mut || all(lists), &mut || myself(&["read", &folder]), 1);
    let smaller = Served::start(500, 15_000, false);
    let fewer = smaller.capture();
    let folder = fewer.display().to_string();
    let few = beside(&mut || all(&fewer), &mut || myself(&["read", &folder]), TURNS);
    let cost = |(whole, read): (Took, Took), nodes: f64| whole.time.saturating_sub(read.time).as_secs_f64() / nodes;
    let nodes = std::fs::read_to_string(lists.join("nodes.json"))
        .unwrap()
        .matches("\"kubernetes.io/hostname\"")
        .count();
    let growth = cost(both, nodes as f64) / cost(few, 500.0);
    let note = format!("cost per node {growth:.2} x that of 500 nodes (at most 1.5 x)");
    table.row(
        &format!("`--each` of {nodes} nodes"),
        both,
        "reading the snapshot",
        3.0,
        None,
        &note,
    );
    let _ = served;
}

/// YAML, as `kubectl get -o yaml` prints it.
fn yaml(table: &Table, pods: usize) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pods.yaml");
    let size = Size {
        nodes: pods / 30 + 1,
        pods,
        narrow: false,
    };
    let mut out = BufWriter::new(File::create(&file).unwrap());
    writeln!(out, "apiVersion: v1\nkind: List\nitems:").unwrap();
    for item in cluster::lists(size).swap_remove(0).items {
        let mut object: Value = serde_json::from_str(&item.text).unwrap();
        object["apiVersion"] = "v1".into();
        object["kind"] = "Pod".into();
        for (index, line) in serde_yaml::to_string(&object).unwrap().lines().enumerate() {
            writeln!(out, "{} {line}", if index == 0 { "-" } else { " " }).unwrap();
        }
    }
    out.into_inner().unwrap().sync_all().unwrap();
    let megabytes = std::fs::metadata(&file).unwrap().len() as f64 / 1e6;
    let name = file.display().to_string();
    let both = beside(&mut || myself(&["read", &name]), &mut || myself(&["skip-yaml", &name]), TURNS);
    let note = format!("{:.1} ms per MB", both.0.time.as_secs_f64() * 1e3 / megabytes);
    table.row(&format!("YAML of {pods} pods"), both, "serde-saphyr skipping it", 1.5, None, &note);
}

fn help(program: &str) -> Command {
    let mut command = Command::new(program);
    command.arg("--help");
    command
}
