//! `--one-by-one`: a drain and an uncordon of each node in turn, each from the cluster that the one before leaves.

use crate::cluster::snapshot::Snapshot;
use crate::gpustack::install;
use crate::kubernetes::scheduling::Placement;
use crate::report::document::{DrainOutcome, DrainPreflight, NodeResult};
use crate::report::finding::{Certainty, Finding, NotAssessed, Severity, Verdict};
use crate::simulation::successor::MAX_SUCCESSORS;

use super::codes::Code;
use super::preflight::{self, Request};
use super::{assessed, finding, object};

/// Judges the drains one after the other. A drain that does not finish for certain is the last one.
pub fn assess(snapshot: &Snapshot, request: &Request) -> DrainPreflight {
    let mut clusters = vec![snapshot.clone()];
    let mut whole: Option<DrainPreflight> = None;
    let mut sure = true;
    for (index, node) in request.nodes.iter().enumerate() {
        let alone = Request {
            nodes: vec![node.clone()],
            later: request.nodes[index + 1..].to_vec(),
            ..request.clone()
        };
        let mut documents = Vec::new();
        let mut next = Vec::new();
        let mut bounded = false;
        for cluster in &clusters {
            let found = install::find(cluster, request.release.as_deref(), request.namespace.as_deref());
            let (document, (after, more)) = preflight::judge(&Placement::new(cluster), &found, &alone);
            documents.push(document);
            bounded |= more || next.len() + after.len() > MAX_SUCCESSORS;
            next.extend(after);
            next.truncate(MAX_SUCCESSORS);
        }
        let Some(mut turn) = merged(documents, sure) else { break };
        if bounded {
            too_many(&mut turn, node);
        }
        sure &= turn.drain.outcome == DrainOutcome::Finishes;
        whole = Some(match whole {
            None => turn,
            Some(before) => appended(before, turn),
        });
        clusters = next;
        if clusters.is_empty() {
            break;
        }
    }
    let mut document = whole.unwrap_or_else(|| preflight::judge(&Placement::new(snapshot), &install::Found::None, request).0);
    for node in &request.nodes[document.drain.per_node.len()..] {
        document.drain.per_node.push(NodeResult {
            node: node.clone(),
            outcome: DrainOutcome::NotReached,
            certainty: Certainty::Certain,
            why: Some("an earlier drain does not finish".to_owned()),
        });
    }
    assessed::sort(&mut document.findings);
    document.verdict = Verdict::of(&document.findings);
    document.nodes.clone_from(&request.nodes);
    document.drain_command = request
        .nodes
        .iter()
        .map(|node| {
            let drain = ["drain".to_owned(), node.clone()]
                .into_iter()
                .chain(request.flag_words.iter().cloned());
            format!("{} && {}", request.kubectl.line(drain), request.kubectl.line(["uncordon", node]))
        })
        .collect::<Vec<_>>()
        .join(" && ");
    document
}

/// One drain from several clusters: what holds from all of them is as certain as it was, the rest is possible.
fn merged(documents: Vec<DrainPreflight>, sure: bool) -> Option<DrainPreflight> {
    let count = documents.len();
    let mut documents = documents.into_iter();
    let mut first = documents.next()?;
    let others: Vec<DrainPreflight> = documents.collect();
    let same = |a: &Finding, b: &Finding| a.code == b.code && a.object == b.object;
    let mut findings: Vec<Finding> = Vec::new();
    for candidate in first.findings.iter().chain(others.iter().flat_map(|other| &other.findings)) {
        if findings.iter().any(|known| same(known, candidate)) {
            continue;
        }
        let alike: Vec<&Finding> = std::iter::once(&first)
            .chain(&others)
            .filter_map(|document| document.findings.iter().find(|other| same(other, candidate)))
            .collect();
        let worst = alike
            .iter()
            .copied()
            .max_by_key(|finding| finding.severity)
            .unwrap_or(candidate)
            .clone();
        let everywhere = alike.len() == count && alike.iter().all(|finding| finding.severity == worst.severity);
        findings.push(if everywhere && sure { worst } else { possible(worst) });
    }
    first.findings = findings;
    for other in others {
        if other.drain.outcome != first.drain.outcome {
            let worse = first.drain.outcome.max(other.drain.outcome);
            if worse == other.drain.outcome {
                first.drain = other.drain;
            }
            first.drain.certainty = Certainty::Possible;
            for node in &mut first.drain.per_node {
                node.certainty = Certainty::Possible;
            }
        }
        for row in &mut first.evictions {
            if let Some(same) = other
                .evictions
                .iter()
                .find(|same| same.pod == row.pod && same.namespace == row.namespace)
                && same.replacement != row.replacement
            {
                row.replacement.certainty = Certainty::Possible;
                row.replacement.outcome = row.replacement.outcome.max(same.replacement.outcome);
                row.replacement.nodes.extend(same.replacement.nodes.iter().cloned());
                row.replacement.nodes.sort();
                row.replacement.nodes.dedup();
            }
        }
        first.not_assessed.extend(other.not_assessed);
        first.unserved.extend(
            other
                .unserved
                .into_iter()
                .filter(|row| !first.unserved.contains(row))
                .collect::<Vec<_>>(),
        );
        first.leaders.extend(
            other
                .leaders
                .into_iter()
                .filter(|row| !first.leaders.contains(row))
                .collect::<Vec<_>>(),
        );
    }
    first.not_assessed.sort();
    first.not_assessed.dedup();
    Some(first)
}

/// The finding as one that only may come true.
fn possible(finding: Finding) -> Finding {
    let severity = match finding.severity {
        Severity::Unsafe => Severity::AtRisk,
        other => other,
    };
    Finding {
        severity,
        certainty: Certainty::Possible,
        ..finding
    }
}

fn too_many(document: &mut DrainPreflight, node: &str) {
    let mut item = finding(
        Code::NotAssessed,
        Severity::Unknown,
        Certainty::Possible,
        object("Node", "", node),
        format!("not known: some ways in which the cluster may look after draining {node}"),
    );
    item.evidence = vec![format!("there are more than {MAX_SUCCESSORS}")];
    item.consequence = "the verdict could be another one".to_owned();
    item.remedy.text = format!("drain {node} first, then ask again for the rest");
    document.not_assessed.push(NotAssessed {
        what: format!("some ways in which the cluster may look after draining {node}"),
        why: format!("there are more than {MAX_SUCCESSORS}"),
        affects_verdict: true,
        missing_right: None,
    });
    document.findings.push(item);
}

/// Two drains as one document: findings that are the same stand once, as the worse of the two.
fn appended(mut before: DrainPreflight, turn: DrainPreflight) -> DrainPreflight {
    for finding in turn.findings {
        match before
            .findings
            .iter_mut()
            .find(|known| known.code == finding.code && known.object == finding.object)
        {
            Some(known) if finding.severity > known.severity => *known = finding,
            Some(_) => {}
            None => before.findings.push(finding),
        }
    }
    if turn.drain.outcome > before.drain.outcome {
        before.drain.outcome = turn.drain.outcome;
        before.drain.certainty = turn.drain.certainty;
        before.drain.why = turn.drain.why;
    }
    before.drain.per_node.extend(turn.drain.per_node);
    before.evictions.extend(turn.evictions);
    before.unserved.extend(
        turn.unserved
            .into_iter()
            .filter(|row| !before.unserved.contains(row))
            .collect::<Vec<_>>(),
    );
    before.leaders.extend(turn.leaders);
    before.after = turn.after;
    before.not_assessed.extend(turn.not_assessed);
    before.not_assessed.sort();
    before.not_assessed.dedup();
    before
}
