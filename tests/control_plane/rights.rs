//! What each command may do, on the real API server with its own RBAC and audit log: the rights that `--explain-rbac`
//! prints suffice, none taken away makes an answer milder, and no command sends a verb that writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use gpustack_ha::cluster::kinds::Kind;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::api::{Api, namespace, text};
use crate::cluster::Cluster;
use crate::kubelet::Kubelets;
use crate::load;
use crate::state::{Drain, State};
use crate::views;
use crate::{COMPONENTS, components, network};

/// Names the state whose rights a process inside a namespace plays.
pub const RIGHTS: &str = "CONTROL_PLANE_RIGHTS";

/// States with different verdicts: hangs, at risk, safe.
const STATES: [&str; 4] = [
    "webhook-not-placeable",
    "volume-one-pod-held",
    "finalizers-two-replicas",
    "creation-allowed",
];

pub fn trials() -> Vec<Trial> {
    let trial = |name: &'static str| {
        Trial::test(format!("rights::{name}"), move || {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/control_plane/states/{name}.yaml"));
            let components = components::built()?;
            let (passed, output) = network::run_isolated(&[(RIGHTS, &file), (COMPONENTS, &components)])?;
            if std::env::var_os("VERBOSE").is_some() {
                println!("{output}");
            }
            if passed { Ok(()) } else { Err(Failed::from(output)) }
        })
    };
    STATES.into_iter().map(trial).collect()
}

/// Plays a state up to its drain, and returns what is wrong with the answers of users with some rights.
pub fn play(file: &Path, components: &Path) -> Vec<String> {
    let state = State::read(file);
    let mut cluster = Cluster::start(components);
    let api = Api::new(&cluster.kubeconfig);
    let kubelets = Kubelets::start(&cluster, &state);
    load::load(&state, &api, &mut cluster);
    let drain = load::run_steps(&state, &api, &cluster, &kubelets);
    let mut problems = Vec::new();
    let pods = api.list("/api/v1/pods");
    let drained = pods
        .iter()
        .find(|pod| drain.nodes.iter().any(|node| node == text(pod, "/spec/nodeName")));
    let users = Users {
        cluster: &cluster,
        drain,
        one: namespace(drained.expect("a pod to drain")),
    };
    users.grant();
    users.suffice(&mut problems);
    users.taken_away(&mut problems);
    users.one_namespace(&mut problems);
    users.never_write(&mut problems);
    if !problems.is_empty() {
        println!("{}", cluster.logs());
    }
    kubelets.stop();
    problems
}

struct Users<'a> {
    cluster: &'a Cluster,
    drain: &'a Drain,
    /// The namespace of users who have rights in one alone.
    one: &'a str,
}

/// What came of a command.
struct Answer {
    exit: Option<i32>,
    document: Option<Value>,
    errors: String,
}

impl Answer {
    fn verdict(&self) -> &str {
        self.document
            .as_ref()
            .and_then(|document| document["verdict"].as_str())
            .unwrap_or("none")
    }
}

fn without(kind: Kind) -> String {
    format!("without-{}", kind.info().plural)
}

impl Users<'_> {
    fn binary(&self, words: &[String]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kubectl-gpustack_ha"))
            .args(words)
            .arg("--kubeconfig")
            .arg(&self.cluster.kubeconfig)
            .stdin(Stdio::null())
            .output()
            .expect("the binary")
    }

    /// The commands that read, with the word that tells them apart.
    fn commands(&self) -> Vec<Vec<String>> {
        let preflight = ["drain-preflight".to_owned()].into_iter().chain(self.drain.nodes.iter().cloned());
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        vec![
            preflight.chain(self.drain.flags.iter().cloned()).collect(),
            words(&["snapshot"]),
            words(&["placement", "-A"]),
            words(&["pdb", "-A"]),
            words(&["leases", "-A"]),
        ]
    }

    fn ask(&self, command: &[String], user: &str, more: &[&str]) -> Answer {
        let output = (command[0] != "snapshot").then_some(["-o", "json"]);
        let words: Vec<String> = command
            .iter()
            .map(String::as_str)
            .chain(output.into_iter().flatten())
            .chain(["--as", user])
            .chain(more.iter().copied())
            .map(str::to_owned)
            .collect();
        let output = self.binary(&words);
        Answer {
            exit: output.status.code(),
            document: serde_json::from_slice(&output.stdout).ok(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn administrator(&self, command: &[String]) -> Answer {
        self.ask(command, "administrator", &["--as-group", "system:masters"])
    }

    fn apply(&self, text: &str) {
        let file = self.cluster.file("roles.yaml");
        fs::write(&file, text).expect("the roles");
        let output = self
            .cluster
            .run_kubectl(&["apply", "-f", &file.display().to_string()].map(str::to_owned));
        assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
    }

    /// Applies what `--explain-rbac` prints, and grants it with the commands that it prints; makes a user without each kind.
    fn grant(&self) {
        for (command, namespace) in self
            .commands()
            .iter()
            .flat_map(|command| [(command, None), (command, Some(self.one))])
        {
            let mut words = vec![command[0].clone(), "--explain-rbac".to_owned()];
            words.extend(command.iter().filter(|word| *word == "-A").cloned());
            words.extend(namespace.into_iter().flat_map(|namespace| ["-n".to_owned(), namespace.to_owned()]));
            let output = self.binary(&words);
            let text = String::from_utf8(output.stdout).expect("text");
            let user = format!("{}{}", command[0], namespace.map_or("", |_| "-in-one"));
            // The names of the two ways are the same: the narrow one is given others.
            let name = format!("gpustack-ha-{}", command[0]);
            let text = text.replace(&name, &format!("gpustack-ha-{user}"));
            self.apply(&text);
            let grants: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#   kubectl ")).collect();
            assert!(!grants.is_empty(), "{text}");
            for grant in grants {
                let line = grant.replace("--user=USER", &format!("--user={user}"));
                let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
                let output = self.cluster.run_kubectl(&words);
                assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
        let role = |kind: &str, name: &str, kinds: &mut dyn Iterator<Item = &Kind>| {
            let rules: Vec<Value> = kinds
                .map(|kind| json!({"apiGroups": [kind.info().group], "resources": [kind.info().plural], "verbs": ["list"]}))
                .collect();
            let metadata = match kind {
                "Role" => json!({"name": name, "namespace": self.one}),
                _ => json!({"name": name}),
            };
            let group = "rbac.authorization.k8s.io";
            [
                json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata, "rules": rules}),
                json!({"apiVersion": format!("{group}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata,
                    "roleRef": {"apiGroup": group, "kind": kind, "name": name},
                    "subjects": [{"apiGroup": group, "kind": "User", "name": name}]}),
            ]
        };
        let mut objects: Vec<Value> = Kind::ALL
            .iter()
            .flat_map(|taken| role("ClusterRole", &without(*taken), &mut Kind::ALL.iter().filter(|kind| *kind != taken)))
            .collect();
        objects.extend(role(
            "Role",
            "one-namespace",
            &mut Kind::ALL.iter().filter(|kind| kind.info().namespaced),
        ));
        self.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string());
        // The authorizer sees the last of them a moment later.
        let started = Instant::now();
        let words = ["get", "pods", "-n", self.one, "--as", "one-namespace"].map(str::to_owned);
        while !self.cluster.run_kubectl(&words).status.success() {
            assert!(started.elapsed() < Duration::from_secs(20), "the roles do not come into force");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Who has the rights that are printed gets the answer that the administrator gets.
    fn suffice(&self, problems: &mut Vec<String>) {
        let same = |document: Option<&Value>, user: &str| {
            let mut document = document.cloned().unwrap_or_default();
            document.as_object_mut().map(|fields| fields.remove("observedAt"));
            views::without_ages(&mut document);
            document
                .to_string()
                .replace(&format!(" --as {user}"), "")
                .replace(" --as-group system:masters", "")
        };
        for command in self.commands() {
            let user = &command[0];
            let wanted = self.administrator(&command);
            let found = self.ask(&command, user, &[]);
            if found.document.is_none() || wanted.exit != found.exit {
                problems.push(format!(
                    "{user}: exit {:?} instead of {:?}: {}",
                    found.exit, wanted.exit, found.errors
                ));
            }
            // A snapshot holds what moves by itself, such as leases; that it has no gap is what counts.
            if user == "snapshot" {
                let gaps = found.document.map(|document| document["notRead"].clone());
                if gaps != Some(json!([])) {
                    problems.push(format!("snapshot: not read: {gaps:?}"));
                }
            } else if same(wanted.document.as_ref(), "administrator") != same(found.document.as_ref(), user) {
                problems.push(format!(
                    "{user}: another answer: {:?} instead of {:?}",
                    found.document, wanted.document
                ));
            }
        }
    }

    /// Each right taken away leaves the verdict, or makes it unknown and is named.
    fn taken_away(&self, problems: &mut Vec<String>) {
        let preflight = &self.commands()[0];
        let full = self.administrator(preflight).verdict().to_owned();
        println!("the administrator's verdict: {full}");
        for kind in Kind::ALL {
            let found = self.ask(preflight, &without(*kind), &[]);
            let info = kind.info();
            if *kind == Kind::Node {
                if found.exit != Some(3) || found.document.is_some() || !found.errors.contains("not allowed to list nodes") {
                    problems.push(format!("without nodes: exit {:?}: {}", found.exit, found.errors));
                }
                continue;
            }
            let named = || {
                let gaps = found.document.as_ref().and_then(|document| document["notAssessed"].as_array());
                gaps.into_iter().flatten().any(|gap| {
                    let right = &gap["missingRight"];
                    gap["affectsVerdict"] == true
                        && right["verb"] == "list"
                        && right["group"] == info.group
                        && right["resource"] == info.plural
                        && (!info.namespaced || right["namespace"].is_string() || *kind == Kind::Pod || *kind == Kind::Deployment)
                })
            };
            match found.verdict() {
                verdict if verdict == full => {}
                "unknown" if named() => println!("without {kind}: unknown"),
                verdict => problems.push(format!(
                    "without {kind}: {verdict} instead of {full}; {:?} {}",
                    found.document, found.errors
                )),
            }
        }
    }

    /// Rights in one namespace: what lies in it is answered, the rest is unknown.
    fn one_namespace(&self, problems: &mut Vec<String>) {
        let commands = self.commands();
        let full = self.administrator(&commands[0]).verdict().to_owned();
        let found = self.ask(&commands[0], "drain-preflight-in-one", &["-n", self.one]);
        if found.document.is_none() || ![full.as_str(), "unknown"].contains(&found.verdict()) {
            problems.push(format!(
                "printed for one namespace: {} instead of {full}: {}",
                found.verdict(),
                found.errors
            ));
        }
        let found = self.ask(&commands[0], "one-namespace", &["-n", self.one]);
        if found.exit != Some(3) || !found.errors.contains("the right to list nodes is needed") {
            problems.push(format!("drain-preflight in one namespace: exit {:?}: {}", found.exit, found.errors));
        }
        let found = self.ask(&commands[1], "one-namespace", &["-n", self.one]);
        let part = |kind: Kind| json!({"group": kind.info().group, "resource": kind.info().plural, "namespace": self.one});
        let read = found.document.as_ref().and_then(|document| document["read"].as_array());
        if !read.is_some_and(|read| read.contains(&part(Kind::Pod)) && read.iter().all(|part| part["namespace"] == self.one)) {
            problems.push(format!("snapshot in one namespace: {read:?}: {}", found.errors));
        }
    }

    /// The audit log has what these commands did, and nothing of it writes.
    fn never_write(&self, problems: &mut Vec<String>) {
        let log = fs::read_to_string(self.cluster.file("audit.log")).expect("the audit log");
        let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
        let ours = |event: &&Value| {
            event["userAgent"]
                .as_str()
                .is_some_and(|agent| agent.starts_with("kubectl-gpustack"))
        };
        let users: BTreeSet<&str> = events
            .iter()
            .filter(ours)
            .filter_map(|event| event["impersonatedUser"]["username"].as_str())
            .collect();
        for user in [
            "administrator",
            "drain-preflight",
            "snapshot",
            "placement",
            "pdb",
            "leases",
            "one-namespace",
        ] {
            if !users.contains(user) {
                problems.push(format!("the audit log has nothing of {user}: {users:?}"));
            }
        }
        for event in events.iter().filter(ours) {
            let (verb, resource) = (event["verb"].as_str().unwrap_or_default(), &event["objectRef"]["resource"]);
            if !(verb == "list" || verb == "get" && resource.is_null()) {
                problems.push(format!("{verb} {}", event["requestURI"]));
            }
        }
        if !events.iter().any(|event| event["verb"] == "create") {
            problems.push("the audit log does not have what others write".to_owned());
        }
    }
}
