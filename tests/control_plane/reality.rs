//! Runs the real `kubectl drain` and writes down what it does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, condition, namespace, text};
use crate::cluster::Cluster;
use crate::kueue;
use crate::load;
use crate::observed::{self, Fate, NodeReality, PodReality, ProbeReality, Reality, Replacements};
use crate::quiet;
use crate::state::{Drain, Kueue, Probe, State};

/// kubectl repeats a refused eviction every 5 s: two repetitions without any change, and some.
const QUIET: Duration = Duration::from_secs(12);
const DEADLINE: Duration = Duration::from_secs(120);
/// A Job replaces failed pods after 10 s, then 20, then 40.
const BACKOFF: Duration = Duration::from_secs(45);

/// How long nothing may change until nothing will: longer where a Job may still make pods, or a real Kueue starts.
fn patience(api: &Api, state: &State, missing_before: &BTreeMap<String, usize>) -> Duration {
    if state.kueue == Kueue::Real {
        return kueue::PATIENCE;
    }
    let late = |(key, count): &(String, usize)| key.starts_with("Job/") && missing_before.get(key).copied().unwrap_or(0) < *count;
    if quiet::missing(api).iter().any(late) { BACKOFF } else { QUIET }
}

/// Drains, waits until the cluster has come to rest, and tells what there is then.
pub fn observe(cluster: &Cluster, api: &Api, state: &State, drain: &Drain) -> Reality {
    let before = api.list("/api/v1/pods");
    let sets = api.list("/apis/apps/v1/replicasets");
    let missing_before: BTreeMap<String, usize> = quiet::missing(api).into_iter().collect();
    let leaders = leaders(api, state, drain, &before, &sets);
    let stop = Arc::new(AtomicBool::new(false));
    let probes: Vec<JoinHandle<ProbeReality>> = state
        .probe
        .iter()
        .map(|probe| start_probe(&cluster.kubeconfig, probe, &stop))
        .collect();

    let (ended, words, late) = run(cluster, api, state, drain, &missing_before);
    // An API whose backend is back is looked at again only after some seconds.
    let available = || {
        api.list("/apis/apiregistration.k8s.io/v1/apiservices")
            .iter()
            .all(|api| condition(api, "Available"))
    };
    // What starts slowly is Ready in the end; what never is, says so.
    let starting = |pod: &Value| {
        let annotated = pod["metadata"]["annotations"]["test.gpustack-ha/never-ready"].is_string();
        quiet::active(pod) && !text(pod, "/spec/nodeName").is_empty() && !condition(pod, "Ready") && !annotated && !crashes(pod)
    };
    let complete = || {
        available()
            && !api.list("/api/v1/pods").iter().any(starting)
            && quiet::missing(api)
                .iter()
                .all(|(key, count)| missing_before.get(key).copied().unwrap_or(0) >= *count)
    };
    quiet::settle(api, patience(api, state, &missing_before), Duration::from_secs(60), complete);
    stop.store(true, Ordering::Relaxed);

    let after = api.list("/api/v1/pods");
    let sets_after = api.list("/apis/apps/v1/replicasets");
    let pods = before
        .iter()
        .filter(|pod| drain.nodes.iter().any(|node| text(pod, "/spec/nodeName") == node))
        .map(|pod| PodReality {
            namespace: namespace(pod).to_owned(),
            name: text(pod, "/metadata/name").to_owned(),
            node: text(pod, "/spec/nodeName").to_owned(),
            workload: observed::owner(pod, &sets),
            fate: fate(pod, &after),
            ending: pod["metadata"]["deletionTimestamp"].is_string(),
        })
        .collect();
    let per_node = per_node(drain, ended, &words);
    let (ready_before, ready_after) = (ready(&before, &sets), ready(&after, &sets_after));
    let fewer = |least: usize| {
        let fell = |(workload, count): &(&String, &usize)| ready_after.get(*workload).copied().unwrap_or(0) < *(*count).min(&least);
        ready_before.iter().filter(fell).map(|(workload, _)| workload.clone()).collect()
    };
    Reality {
        nodes: drain.nodes.clone(),
        flags: drain.flags.clone(),
        outcome: overall(&per_node).to_owned(),
        per_node,
        pods,
        replacements: replacements(api, &before, &after, &sets_after, &missing_before),
        short: fewer(usize::MAX),
        without_ready: fewer(1),
        leaders: Some(leaders),
        exhausted_budgets: exhausted(&api.list("/apis/policy/v1/poddisruptionbudgets")),
        probes: probes.into_iter().map(|probe| probe.join().expect("a probe")).collect(),
        retried: (!ended).then(|| retried(&late)),
        kubectl: once_each(&words),
    }
}

/// Whether `kubectl drain --dry-run=server` finds nothing wrong within 8 s; it repeats what is refused, like the real one.
pub fn dry_run(cluster: &Cluster, drain: &Drain) -> bool {
    let arguments = ["drain"]
        .into_iter()
        .chain(drain.nodes.iter().chain(&drain.flags).map(String::as_str));
    let arguments: Vec<String> = arguments.chain(["--dry-run=server", "--timeout=8s"]).map(str::to_owned).collect();
    cluster.run_kubectl(&arguments).status.success()
}

/// Whether kubectl came to an end by itself, what it printed, and what of it after the last change.
fn run(cluster: &Cluster, api: &Api, state: &State, drain: &Drain, missing_before: &BTreeMap<String, usize>) -> (bool, String, String) {
    let log = cluster.file("drain.log");
    let output = File::create(&log).expect("a log");
    let arguments: Vec<String> = ["drain".to_owned()]
        .into_iter()
        .chain(drain.nodes.iter().cloned())
        .chain(drain.flags.iter().cloned())
        .collect();
    let mut command = cluster.kubectl(&arguments);
    let mut child = command
        .stdout(output.try_clone().expect("a log"))
        .stderr(output)
        .spawn()
        .expect("kubectl");
    let start = Instant::now();
    let (mut last, mut since) = (Vec::new(), Instant::now());
    let said = || fs::read_to_string(&log).unwrap_or_default();
    let mut until_then = 0;
    let deadline = DEADLINE + timeout(drain);
    let ended = loop {
        if child.try_wait().expect("kubectl").is_some() {
            break true;
        }
        let seen = quiet::fingerprint(api);
        if seen != last {
            (last, since) = (seen, Instant::now());
            until_then = said().len();
        }
        let quiet = QUIET + timeout(drain);
        if (since.elapsed() > quiet && since.elapsed() > patience(api, state, missing_before)) || start.elapsed() > deadline {
            child.kill().expect("kubectl");
            child.wait().expect("kubectl");
            break false;
        }
        std::thread::sleep(Duration::from_millis(500));
    };
    let words = said();
    let late = words.get(until_then..).unwrap_or_default().to_owned();
    (ended, words, late)
}

/// The Ready pods of each workload, counted.
fn ready(pods: &[Value], sets: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for pod in pods.iter().filter(|pod| quiet::active(pod) && condition(pod, "Ready")) {
        *counts.entry(observed::owner(pod, sets)).or_default() += 1;
    }
    counts
}

/// The leases of the state whose holder, a pod by its name or its node's, is on a drained node.
fn leaders(api: &Api, state: &State, drain: &Drain, pods: &[Value], sets: &[Value]) -> BTreeMap<String, String> {
    let leases = api.list("/apis/coordination.k8s.io/v1/leases");
    let holder = |stated: &Value| {
        let workload = stated["metadata"]["annotations"].get(load::HOLDER)?;
        let same = |lease: &&Value| namespace(lease) == namespace(stated) && lease["metadata"]["name"] == stated["metadata"]["name"];
        let identity = text(leases.iter().find(same)?, "/spec/holderIdentity");
        let holds = |pod: &&Value| {
            let (name, node) = (text(pod, "/metadata/name"), text(pod, "/spec/nodeName"));
            let named = |who: &str| {
                identity
                    .strip_prefix(who)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
            };
            let named = named(name) || named(node);
            named && *workload == observed::owner(pod, sets) && drain.nodes.iter().any(|drained| drained == node)
        };
        let lease = format!("{}/{}", namespace(stated), text(stated, "/metadata/name"));
        Some((lease, text(pods.iter().find(holds)?, "/metadata/name").to_owned()))
    };
    state
        .objects
        .iter()
        .filter(|object| object["kind"] == "Lease")
        .filter_map(holder)
        .collect()
}

fn exhausted(budgets: &[Value]) -> BTreeSet<String> {
    let none_left = |budget: &&Value| budget["status"]["expectedPods"] != 0 && budget["status"]["disruptionsAllowed"] == 0;
    let name = |budget: &Value| format!("{}/{}", namespace(budget), text(budget, "/metadata/name"));
    budgets.iter().filter(none_left).map(name).collect()
}

/// The pods in lines like `error when evicting pods/"web-1" -n "app" (will retry after 5s): …`.
fn retried(words: &str) -> BTreeSet<String> {
    let pod = |line: &str| {
        let mut quoted = line.strip_prefix("error when evicting pods/")?.split('"').skip(1).step_by(2);
        let (name, namespace) = (quoted.next()?, quoted.next()?);
        line.contains("(will retry").then(|| format!("{namespace}/{name}"))
    };
    words.lines().filter_map(pod).collect()
}

/// After which kubectl itself gives a node up or passes over what stays Terminating, whether anything changes or not.
fn timeout(drain: &Drain) -> Duration {
    let flag = |name: &str| drain.flags.iter().find_map(|flag| flag.strip_prefix(name));
    let seconds = |text: &str| text.strip_suffix('s').unwrap_or(text).parse().unwrap_or(0);
    let stated = flag("--timeout=").map_or(0, seconds);
    // It counts from the end of the grace period.
    let skip = flag("--skip-wait-for-delete-timeout=").map_or(0, |text| seconds(text) + 32);
    Duration::from_secs(stated + skip)
}

fn fate(pod: &Value, after: &[Value]) -> Fate {
    match after.iter().find(|other| other["metadata"]["uid"] == pod["metadata"]["uid"]) {
        None => Fate::Gone,
        Some(other) if other["metadata"]["deletionTimestamp"].is_string() => Fate::Terminating,
        Some(_) => Fate::Kept,
    }
}

/// Reads kubectl's own report: a node is drained, could not be, or was never reached.
fn per_node(drain: &Drain, ended: bool, words: &str) -> Vec<NodeReality> {
    let mut hanging = !ended;
    drain
        .nodes
        .iter()
        .map(|node| {
            let failure = words
                .lines()
                .find(|line| line.contains(&format!("unable to drain node \"{node}\"")));
            let outcome = if words.contains(&format!("node/{node} drained")) {
                "finishes"
            } else if let Some(failure) = failure {
                if failure.contains("cannot delete") { "refused" } else { "fails" }
            } else if std::mem::take(&mut hanging) {
                "hangs"
            } else if ended {
                "fails"
            } else {
                "not-reached"
            };
            NodeReality {
                node: node.clone(),
                outcome: outcome.to_owned(),
            }
        })
        .collect()
}

fn overall(nodes: &[NodeReality]) -> &'static str {
    ["hangs", "fails", "refused"]
        .into_iter()
        .find(|outcome| nodes.iter().any(|node| node.outcome == *outcome))
        .unwrap_or("finishes")
}

fn crashes(pod: &Value) -> bool {
    pod["status"]["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|container| container["state"]["waiting"]["reason"] == "CrashLoopBackOff")
}

fn replacements(
    api: &Api,
    before: &[Value],
    after: &[Value],
    sets: &[Value],
    missing_before: &BTreeMap<String, usize>,
) -> BTreeMap<String, Replacements> {
    let old: BTreeSet<&str> = before.iter().map(|pod| text(pod, "/metadata/uid")).collect();
    let mut found: BTreeMap<String, Replacements> = BTreeMap::new();
    for pod in after
        .iter()
        .filter(|pod| !old.contains(text(pod, "/metadata/uid")) && quiet::active(pod))
    {
        let entry = found.entry(observed::owner(pod, sets)).or_default();
        let node = text(pod, "/spec/nodeName").to_owned();
        if node.is_empty() && pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
            entry.gated += 1;
        } else if node.is_empty() {
            entry.pending += 1;
        } else if crashes(pod) {
            entry.crash_looping.push(node);
        } else if condition(pod, "Ready") {
            entry.landed.push(node);
        } else {
            entry.never_ready.push(node);
        }
    }
    let missing: BTreeMap<String, usize> = quiet::missing(api).into_iter().collect();
    for (key, count) in &missing {
        let new = count.saturating_sub(missing_before.get(key).copied().unwrap_or(0));
        if new > 0 {
            found.entry(key.clone()).or_default().not_created = new;
        }
    }
    // What was missing before, as a Job waits before it makes pods anew, replaces nothing that this drain took.
    for (key, before) in missing_before {
        let made = before.saturating_sub(missing.get(key).copied().unwrap_or(0));
        if let Some(entry) = found.get_mut(key) {
            let landed = made.min(entry.landed.len());
            entry.landed.truncate(entry.landed.len() - landed);
            entry.pending = entry.pending.saturating_sub(made - landed);
        }
    }
    found
}

/// The lines in their order, each only the first time.
fn once_each(words: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    words
        .lines()
        .filter(|line| !line.trim().is_empty() && seen.insert(*line))
        .map(str::to_owned)
        .collect()
}

/// Asks every 100 ms until told to stop; the first answer is had before this returns.
fn start_probe(kubeconfig: &Path, probe: &Probe, stop: &Arc<AtomicBool>) -> JoinHandle<ProbeReality> {
    let (what, name) = match probe {
        Probe::Webhook { name, .. } => ("webhook", name.clone()),
        Probe::Apiservice(name) => ("apiservice", name.clone()),
    };
    let (path, body) = match probe {
        Probe::Webhook { namespace, labels, .. } => (
            format!("/api/v1/namespaces/{namespace}/pods?dryRun=All"),
            Some(
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "probe-", "labels": labels},
                "spec": {"containers": [{"name": "probe", "image": "probe"}]}}),
            ),
        ),
        Probe::Apiservice(name) => {
            let (version, group) = name.split_once('.').expect("version.group");
            (format!("/apis/{group}/{version}"), None)
        }
    };
    let (kubeconfig, stop) = (kubeconfig.to_owned(), Arc::clone(stop));
    let (ready, first) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let api = Api::new(&kubeconfig);
        let refused = || match body.as_ref().map_or_else(|| api.get(&path), |body| api.post(&path, body)) {
            Ok(_) => false,
            Err(refusal) => refusal.message.contains("failed calling webhook") || (body.is_none() && refusal.code >= 500),
        };
        let mut seen = ProbeReality {
            what: what.to_owned(),
            name,
            before: refused(),
            refused_seconds: 0.0,
            at_end: false,
        };
        let _ = ready.send(());
        let mut row: Option<Instant> = None;
        while !stop.load(Ordering::Relaxed) {
            seen.at_end = refused();
            row = seen.at_end.then(|| row.unwrap_or_else(Instant::now));
            if let Some(start) = row {
                seen.refused_seconds = seen.refused_seconds.max(start.elapsed().as_secs_f64());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        seen
    });
    let _ = first.recv_timeout(Duration::from_secs(10));
    thread
}
