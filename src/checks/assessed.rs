//! What every document has: its header, accepted findings, and what was not assessed.

use std::collections::BTreeSet;

use crate::cluster::snapshot::{NotRead, Reason, Scope, Snapshot, Source};
use crate::gpustack::install::Install;
use crate::report::document::{API_VERSION, ClusterInfo, Header, InstallInfo};
use crate::report::finding::{Certainty, Finding, MissingRight, NotAssessed, ObjectRef, Severity};
use crate::report::shell::Kubectl;
use crate::simulation::cast::Gap;

use super::codes::Code;
use super::finding;

/// A finding that the caller accepts: shown, and out of the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Code.
    pub code: Code,
    /// `[namespace/]name` of the object; `None` accepts the code for all.
    pub name: Option<String>,
}

impl Accepted {
    /// Whether it takes the finding out of the verdict.
    pub fn covers(&self, finding: &Finding) -> bool {
        let object = &finding.object;
        finding.code == self.code
            && self.name.as_ref().is_none_or(|name| match name.split_once('/') {
                Some((namespace, name)) => object.namespace.as_deref() == Some(namespace) && object.name == name,
                None => object.name == *name,
            })
    }
}

/// What a view is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// Accepted findings.
    pub accept: Vec<Accepted>,
    /// How the user reaches the cluster.
    pub kubectl: Kubectl,
    /// Whether it is about the whole cluster, and not only about GPUStack.
    pub all: bool,
}

/// The findings of a view with those that say what was not assessed, worst first, and what was not.
pub fn conclude(
    mut findings: Vec<Finding>,
    gaps: &BTreeSet<Gap>,
    about: &ObjectRef,
    request: &Request,
) -> (Vec<Finding>, Vec<NotAssessed>) {
    let mut not_assessed: Vec<NotAssessed> = gaps
        .iter()
        .map(|gap| NotAssessed {
            what: gap.what.clone(),
            why: gap.why.clone(),
            affects_verdict: gap.decisive,
            missing_right: gap.missing.as_ref().and_then(missing_right),
        })
        .collect();
    not_assessed.sort();
    not_assessed.dedup();
    findings.extend(unknowns(&not_assessed, gaps, about, &request.kubectl));
    for finding in &mut findings {
        finding.accepted = request.accept.iter().any(|accepted| accepted.covers(finding));
    }
    sort(&mut findings);
    (findings, not_assessed)
}

/// What every document starts with.
pub fn header(kind: &'static str, snapshot: &Snapshot, install: Option<&Install<'_>>) -> Header {
    Header {
        api_version: API_VERSION,
        kind,
        tool_version: env!("CARGO_PKG_VERSION"),
        cluster: ClusterInfo {
            context: snapshot.context.clone(),
            server: snapshot.server.clone(),
            server_version: snapshot.server_version.as_ref().map(|version| version.git_version.clone()),
        },
        source: if snapshot.source == Source::Live { "live" } else { "files" },
        observed_at: snapshot.observed_at.map(|time| time.to_string()),
        install: install.map(|install| InstallInfo {
            release: install.release.to_owned(),
            namespace: install.namespace.to_owned(),
            chart_version: install.chart_version.clone(),
        }),
    }
}

/// Worst first; then by code and object.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| (b.severity, a.code.as_str(), &a.object, &a.node).cmp(&(a.severity, b.code.as_str(), &b.object, &b.node)));
}

/// The right that would have made a list readable.
pub fn missing_right(missing: &NotRead) -> Option<MissingRight> {
    if missing.reason != Reason::Forbidden {
        return None;
    }
    let info = missing.kind.info();
    Some(MissingRight {
        verb: "list".to_owned(),
        group: info.group.to_owned(),
        resource: info.plural.to_owned(),
        namespace: match &missing.scope {
            Scope::Namespace(namespace) => Some(namespace.clone()),
            Scope::Cluster | Scope::Node(_) => None,
        },
    })
}

/// One `not-assessed` finding for each gap that affects the verdict.
pub fn unknowns(not_assessed: &[NotAssessed], gaps: &BTreeSet<Gap>, about: &ObjectRef, kubectl: &Kubectl) -> Vec<Finding> {
    let absent = |gap: &Gap| {
        gap.missing
            .as_ref()
            .filter(|missing| matches!(missing.reason, Reason::NotInFiles | Reason::OneNamespace))
            .map(|missing| missing.kind)
    };
    let of = |entry: &NotAssessed| gaps.iter().find(|gap| gap.what == entry.what && gap.why == entry.why);
    let matters = || not_assessed.iter().filter(|entry| entry.affects_verdict);
    let kinds: BTreeSet<String> = matters().filter_map(|entry| Some(absent(of(entry)?)?.resource())).collect();
    let capture = Vec::from_iter(kinds).join(",");
    not_assessed
        .iter()
        .filter(|entry| entry.affects_verdict)
        .map(|entry| {
            let mut item = finding(
                Code::NotAssessed,
                Severity::Unknown,
                Certainty::Possible,
                about.clone(),
                format!("{} is not known", entry.what),
            );
            item.evidence = vec![entry.why.clone()];
            item.consequence = "the verdict could be another one".to_owned();
            item.remedy.text = match &entry.missing_right {
                Some(right) => format!(
                    "get the right to {} {}{}{}, or give the objects with -f",
                    right.verb,
                    right.resource,
                    if right.group.is_empty() {
                        String::new()
                    } else {
                        format!(".{}", right.group)
                    },
                    right
                        .namespace
                        .as_ref()
                        .map(|namespace| format!(" in {namespace}"))
                        .unwrap_or_default()
                ),
                None if of(entry).and_then(absent).is_some() => {
                    "capture it and ask again with `-f more.yaml` too; or with --complete, if the files are the whole cluster:".to_owned()
                }
                None if of(entry).is_some_and(|gap| gap.missing.is_some()) => "ask again once the cluster answers".to_owned(),
                None => "judge this by hand".to_owned(),
            };
            item.remedy.command = entry.missing_right.as_ref().map(|right| {
                let resource = if right.group.is_empty() {
                    right.resource.clone()
                } else {
                    format!("{}.{}", right.resource, right.group)
                };
                let mut words = vec!["auth".to_owned(), "can-i".to_owned(), right.verb.clone(), resource];
                match &right.namespace {
                    Some(namespace) => words.extend(["-n".to_owned(), namespace.clone()]),
                    None => words.push("-A".to_owned()),
                }
                kubectl.line(words)
            });
            if of(entry).and_then(absent).is_some() {
                let command = kubectl.line(["get", &capture, "-A", "-o", "yaml"]);
                item.remedy.command = Some(format!("{command} > more.yaml"));
            }
            item
        })
        .collect()
}
