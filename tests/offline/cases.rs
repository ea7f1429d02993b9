//! Small states, each asked one or more questions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{ask, finish};

/// The first document of a state.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Cluster {
    /// Ready nodes with 16 cpu, 64Gi and room for 110 pods.
    nodes: Vec<String>,
    /// Namespaces with an object of their own, besides those of `run`.
    #[serde(default)]
    namespaces: Vec<String>,
    /// `namespace/name` of a Deployment to what it runs.
    #[serde(default)]
    run: BTreeMap<String, Run>,
    /// What is asked, by what it shows.
    cases: BTreeMap<String, Case>,
}

/// A Deployment with its ReplicaSet and Ready pods.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Run {
    /// Node of each pod.
    on: Vec<String>,
    /// Labels besides `app: NAME`.
    #[serde(default)]
    labels: Map<String, Value>,
    /// Fields of the pods' spec.
    #[serde(default)]
    spec: Map<String, Value>,
    /// Whether the pods are not Ready.
    #[serde(default)]
    unready: bool,
    /// Fields of the pods alone, merged: metadata, spec, status.
    #[serde(default)]
    pod: Value,
    /// The same for single pods, in their order.
    #[serde(default)]
    each: Vec<Value>,
    /// Fields of the Deployment alone, merged.
    #[serde(default)]
    deployment: Value,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    /// Public reports of what the case shows, as `docs/reports.md` links them.
    #[serde(default)]
    #[allow(dead_code, reason = "the table of reports is held against the files")]
    reports: Vec<String>,
    /// Arguments of `drain-preflight`, or of the command that comes first.
    ask: Vec<String>,
    verdict: Option<String>,
    outcome: Option<String>,
    exit: i32,
    /// Codes of findings that must be there; with a severity as `code: severity`.
    #[serde(default)]
    findings: Vec<Value>,
    /// Codes that must not be there.
    #[serde(default)]
    absent: Vec<String>,
    /// Parts of what is said to affect the verdict without having been assessed.
    #[serde(default)]
    not_assessed: Vec<String>,
    /// JSON pointers into the document, and what is there.
    #[serde(default)]
    document: BTreeMap<String, Value>,
    /// A part of what is printed on standard error.
    #[serde(default)]
    says: String,
    /// Kinds that the files do not hold, so without `--complete`.
    #[serde(default)]
    without: Vec<String>,
}

/// One trial for each question.
pub fn trials(file: &Path) -> Vec<Trial> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let first = documents.remove(0);
    let cluster: Cluster = serde_json::from_value(first).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut objects = cluster.objects();
    objects.extend(documents.into_iter().filter(|document| !document.is_null()));
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let all = objects.clone();
    let each = Trial::test(format!("each/{name}"), move || crate::as_each(&["--force".to_owned()], &all));
    std::iter::once(each).chain(cluster.questions(&name, &objects)).collect()
}

impl Cluster {
    fn questions(&self, name: &str, objects: &[Value]) -> Vec<Trial> {
        self.cases
            .clone()
            .into_iter()
            .map(|(title, case)| {
                let objects = objects.to_vec();
                Trial::test(format!("{name}: {title}"), move || case.check(&objects))
            })
            .collect()
    }

    fn objects(&self) -> Vec<Value> {
        let mut objects: Vec<Value> = self.nodes.iter().map(|name| node(name)).collect();
        let used = self
            .run
            .keys()
            .filter_map(|name| name.split_once('/'))
            .map(|(namespace, _)| namespace);
        let mut namespaces: Vec<&str> = self.namespaces.iter().map(String::as_str).chain(used).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        objects.extend(namespaces.into_iter().map(|name| {
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                   "status": {"phase": "Active"}})
        }));
        for (name, run) in &self.run {
            let (namespace, name) = name.split_once('/').expect("namespace/name");
            objects.extend(run.objects(namespace, name));
        }
        objects
    }
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {},
           "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}})
}

impl Run {
    fn objects(&self, namespace: &str, name: &str) -> Vec<Value> {
        let mut labels = self.labels.clone();
        labels.entry("app").or_insert_with(|| json!(name));
        let mut spec = json!({"containers": [{"name": "main"}]});
        merge(&mut spec, &Value::Object(self.spec.clone()));
        let owned =
            |kind: &str, owner: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "", "controller": true}]);
        let template = json!({"metadata": {"labels": labels}, "spec": spec});
        let set = format!("{name}-1");
        let body = json!({"replicas": self.on.len(), "selector": {"matchLabels": labels}, "template": template});
        let mut deployment =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}, "spec": body});
        merge(&mut deployment, &self.deployment);
        let mut objects = vec![
            deployment,
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
                   "metadata": {"name": set, "namespace": namespace, "ownerReferences": owned("Deployment", name)}, "spec": body}),
        ];
        for (index, node) in self.on.iter().enumerate() {
            let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("{set}-{index}"), "namespace": namespace, "labels": labels, "ownerReferences": owned("ReplicaSet", &set)},
                "spec": spec,
                "status": {"phase": "Running", "podIP": format!("10.0.0.{}", index + 1),
                           "conditions": [{"type": "Ready", "status": if self.unready { "False" } else { "True" }}]}});
            pod["spec"]["nodeName"] = json!(node);
            merge(&mut pod, &self.pod);
            merge(&mut pod, self.each.get(index).unwrap_or(&Value::Null));
            objects.push(pod);
        }
        objects
    }
}

/// Puts the fields of one value over those of another.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (_, Value::Null) => {}
        (Value::Object(into), Value::Object(from)) => {
            for (field, value) in from {
                merge(into.entry(field).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

impl Case {
    fn check(&self, objects: &[Value]) -> Result<(), Failed> {
        let mut arguments = self.ask.clone();
        let mut objects = objects.to_vec();
        if self.without.is_empty() {
            arguments.push("--complete".to_owned());
        } else {
            let kinds: Vec<_> = gpustack_ha::cluster::kinds::Kind::ALL
                .iter()
                .copied()
                .filter(|kind| self.without.iter().any(|name| name == kind.info().kind))
                .collect();
            assert_eq!(kinds.len(), self.without.len(), "known kinds");
            objects = crate::without(&objects, &kinds);
        }
        let answer = ask(&arguments, &objects)?;
        let mut problems = Vec::new();
        let mut same = |what: &str, stated: &Value, found: &Value| {
            if stated != found {
                problems.push(format!("{what}: expected {stated}, found {found}"));
            }
        };
        same("exit", &json!(self.exit), &json!(answer.exit));
        let none = Value::Null;
        let document = answer.document.as_ref().unwrap_or(&none);
        same("verdict", &json!(self.verdict), &document["verdict"]);
        same("drain.outcome", &json!(self.outcome), &document["drain"]["outcome"]);
        for (pointer, stated) in &self.document {
            same(pointer, stated, document.pointer(pointer).unwrap_or(&none));
        }
        let findings: Vec<(&str, &str)> = document["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|finding| Some((finding["code"].as_str()?, finding["severity"].as_str()?)))
            .collect();
        for stated in &self.findings {
            let found = match stated {
                Value::String(code) => findings.iter().any(|(found, _)| found == code),
                Value::Object(fields) => fields
                    .iter()
                    .all(|(code, severity)| findings.iter().any(|(found, how)| found == code && how == severity)),
                _ => panic!("a code, or code: severity"),
            };
            if !found {
                problems.push(format!("no finding {stated} among {findings:?}"));
            }
        }
        for code in &self.absent {
            if findings.iter().any(|(found, _)| found == code) {
                problems.push(format!("the finding {code} is there"));
            }
        }
        for what in &self.not_assessed {
            let said = document["notAssessed"].as_array().into_iter().flatten().any(|entry| {
                let has = |field: &str| entry[field].as_str().is_some_and(|text| text.contains(what));
                entry["affectsVerdict"] == true && (has("what") || has("why"))
            });
            if !said {
                problems.push(format!("{what:?} is not said to affect the verdict: {}", document["notAssessed"]));
            }
        }
        if !answer.errors.contains(&self.says) {
            problems.push(format!("{:?} is not said but {:?}", self.says, answer.errors));
        }
        if !problems.is_empty() && std::env::var_os("VERBOSE").is_some() {
            problems.push(format!("{document:#}"));
        }
        finish(problems)
    }
}
