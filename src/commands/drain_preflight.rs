//! `drain-preflight`: what `kubectl drain` of these nodes would do.

use std::time::Instant;

use crate::checks::each;
use crate::checks::preflight::{self, Request};
use crate::cli::FailOn;
use crate::cli::connection::ConnectionFlags;
use crate::cli::drain::DrainPreflightArgs;
use crate::cluster::connect::closest;
use crate::cluster::files;
use crate::cluster::kinds::Kind;
use crate::cluster::progress::Progress;
use crate::cluster::snapshot::{Reason, Snapshot};
use crate::gpustack::install::{self, Found};
use crate::kubernetes::selectors;
use crate::report::finding::Verdict;
use crate::report::shell::Kubectl;

use super::failure::Failure;
use super::{installs, reading};

/// Runs the command; the result is the exit code.
///
/// # Errors
/// A wrong question, or a cluster or file that cannot be read.
pub async fn run(args: &DrainPreflightArgs, connection: &ConnectionFlags) -> Result<u8, Failure> {
    let flags = args
        .drain
        .flags()
        .map_err(|error| Failure::usage(format!("--pod-selector: {error}"), None))?;
    if args.nodes.is_empty() && args.selector.is_none() && !args.each {
        return Err(Failure::usage(
            "which node?",
            Some("kubectl gpustack-ha drain-preflight NODE, or -l SELECTOR, or --each".to_owned()),
        ));
    }
    if !args.nodes.is_empty() && args.selector.is_some() {
        return Err(Failure::usage(
            "names cannot be given with -l, as for kubectl drain",
            Some("leave out the names or -l".to_owned()),
        ));
    }
    let (snapshot, nodes) = if args.source.filename.is_empty() {
        let question = reading::drain::Question {
            names: &names(args),
            each: args.each,
            flags: &flags,
        };
        reading::drain::read(connection, &question, |snapshot| named(args, snapshot)).await?
    } else {
        let snapshot = reading::from_files(&args.source)?;
        let nodes = named(args, &snapshot)?;
        (snapshot, nodes)
    };
    let found = install::find(&snapshot, args.install.release.as_deref(), connection.namespace.as_deref());
    let found = match found {
        Found::Several(installs) => Found::One(installs::which(installs)?),
        other => other,
    };
    let request = Request {
        nodes,
        flags,
        flag_words: args.drain.words(),
        one_by_one: args.one_by_one,
        later: Vec::new(),
        accept: args.accept.clone(),
        kubectl: Kubectl::new(connection.repeat()),
        release: args.install.release.clone(),
        namespace: connection.namespace.clone(),
    };
    let working = Progress::new("playing the drain", Instant::now());
    let verdict = if args.each {
        let document = each::assess(&snapshot, &found, &request);
        drop(working);
        super::print(&document, &args.output)?;
        document.verdict
    } else {
        let document = preflight::assess(&snapshot, &found, &request);
        drop(working);
        super::print(&document, &args.output)?;
        document.verdict
    };
    Ok(match (verdict, args.fail_on) {
        (Verdict::Safe, _) | (Verdict::AtRisk, FailOn::Unsafe) => 0,
        (Verdict::AtRisk, FailOn::AtRisk) | (Verdict::Unsafe, _) => 1,
        (Verdict::Unknown, _) => 3,
    })
}

/// The nodes meant, in the order in which kubectl takes them.
fn named(args: &DrainPreflightArgs, snapshot: &Snapshot) -> Result<Vec<String>, Failure> {
    let nodes = match snapshot.nodes.all() {
        Ok(nodes) => nodes,
        Err(missing) => {
            return Err(Failure::unreadable(
                format!("no nodes to drain: {missing}"),
                match missing.reason {
                    Reason::NotInFiles | Reason::OneNamespace => {
                        Some(format!("capture what matters: {}", files::capture_command(Kind::ALL)))
                    }
                    Reason::Forbidden => {
                        Some("the right to list nodes is needed: where a replacement lands cannot be told without it".to_owned())
                    }
                    Reason::NotAsked | Reason::Failed(_) => None,
                },
            ));
        }
    };
    if let Some(selector) = &args.selector {
        let chosen: Vec<String> = nodes
            .iter()
            .filter(|node| selectors::matches(selector, &node.metadata.labels))
            .map(|node| node.metadata.name.clone())
            .collect();
        if chosen.is_empty() {
            return Err(Failure::usage(
                "the selector matches no node",
                Some("see the labels: kubectl get nodes --show-labels".to_owned()),
            ));
        }
        return Ok(chosen);
    }
    if args.nodes.is_empty() && nodes.is_empty() {
        return Err(Failure::unreadable("there are no nodes", None));
    }
    let mut chosen: Vec<String> = Vec::new();
    if args.nodes.is_empty() {
        chosen.extend(nodes.iter().map(|node| node.metadata.name.clone()));
    }
    for name in names(args) {
        if snapshot.nodes.find("", &name).is_none() {
            if nodes.is_empty() {
                return Err(Failure::unreadable(
                    format!("there is no node {name}: there are no nodes at all"),
                    None,
                ));
            }
            let hint = match closest(&name, nodes.iter().map(|node| node.metadata.name.as_str())) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!(
                    "there are: {}",
                    crate::checks::listed(&nodes.iter().map(|node| node.metadata.name.clone()).collect::<Vec<_>>())
                ),
            };
            return Err(Failure::usage(format!("there is no node {name}"), Some(hint)));
        }
        if !chosen.contains(&name) {
            chosen.push(name);
        }
    }
    Ok(chosen)
}

/// The names given, without `node/`.
fn names(args: &DrainPreflightArgs) -> Vec<String> {
    args.nodes
        .iter()
        .map(|name| {
            ["node/", "nodes/", "no/"]
                .iter()
                .find_map(|prefix| name.strip_prefix(prefix))
                .unwrap_or(name)
                .to_owned()
        })
        .collect()
}
