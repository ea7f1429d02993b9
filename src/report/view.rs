//! What the pages of all views share.

use super::document::Header;
use super::finding::{Finding, Severity, Verdict};
use super::page::{self, Headline, Prose};
use super::words::sentence;
use crate::checks::codes::Code;

/// What is wrong now, the worst first.
const URGENT: &[Code] = &[
    Code::PdbNeverAllows,
    Code::ReplicasNotReady,
    Code::LeaseMissing,
    Code::LeaseStale,
    Code::LeaseHolderGone,
    Code::WebhookSingleEndpoint,
    Code::BelowHaReplicas,
    Code::ReplicasShareNode,
    Code::SpreadSkewed,
];

/// The headline of a view: the finding that decides the verdict, or what is good where none does.
pub fn headline(header: &Header, verdict: Verdict, findings: &[Finding], good: &str, wide: bool) -> Headline {
    let open = findings
        .iter()
        .filter(|finding| !finding.accepted && finding.severity > Severity::Info);
    // Of equals what is wrong now comes before what may go wrong, then what is shown first.
    let urgency = |finding: &Finding| URGENT.iter().rev().position(|code| *code == finding.code);
    let worst = open
        .rev()
        .max_by_key(|finding| (finding.severity, urgency(finding), finding.certainty));
    let mut notes = Vec::new();
    if verdict == Verdict::Safe {
        // What `safe` does not promise.
        notes.push(Prose::text(
            "As things stand; drain-preflight NODE says what a drain would do.".to_owned(),
        ));
    }
    if let Some(finding) = worst {
        let text = finding.remedy.text.trim_end_matches(':').trim_end_matches("; or now");
        notes.push(Prose::labelled(
            "To do",
            sentence(&format!("{} (fix below)", text.trim_end_matches('.'))),
        ));
    }
    if wide {
        notes.push(Prose::text(page::origin(header)));
    }
    Headline {
        verdict,
        text: sentence(&capital(worst.map_or(good, |finding| finding.message.as_str()))),
        notes,
    }
}

/// The text with a capital letter, unless it begins with a name.
fn capital(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    if first.chars().all(|character| character.is_ascii_lowercase()) {
        let mut characters = text.chars();
        return characters
            .next()
            .map(|character| character.to_uppercase().chain(characters).collect())
            .unwrap_or_default();
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::checks::assessed::Request;
    use crate::checks::{leases, pdb, placement};
    use crate::cluster::files;
    use crate::cluster::snapshot::Snapshot;
    use crate::gpustack::install::{self, Found};
    use crate::kubernetes::testing::snapshot;
    use crate::report::page::{Page, Report};
    use crate::report::shell::Kubectl;
    use crate::report::style::Style;
    use crate::report::terminal;
    use crate::report::text::{is_plain, width};

    /// A page, for the wide form or not.
    type Shown<'a> = &'a dyn Fn(bool) -> Page;

    fn shown(doc: Shown<'_>, columns: usize, wide: bool) -> String {
        let style = Style {
            color: false,
            width: columns,
            ascii: false,
            headers: true,
        };
        let mut out = Vec::new();
        terminal::write(&doc(wide), &style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The page of each view, by its name.
    fn pages(cluster: &Snapshot, check: &mut dyn FnMut(&str, Shown<'_>)) {
        let Found::One(install) = install::find(cluster, None, None) else {
            panic!("no install")
        };
        let request = Request {
            accept: Vec::new(),
            kubectl: Kubectl::default(),
            all: false,
        };
        let document = placement::assess(cluster, Some(&install), &request);
        check("placement", &|wide| document.page(wide));
        let document = leases::assess(cluster, Some(&install), &request);
        check("leases", &|wide| document.page(wide));
        let document = pdb::assess(cluster, Some(&install), &request);
        check("pdb", &|wide| document.page(wide));
    }

    fn example() -> Snapshot {
        let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/high-availability.yaml"));
        let mut cluster = files::read(&[file], true).unwrap();
        cluster.observed_at = Some("2026-01-01T00:00:04Z".parse().unwrap());
        cluster
    }

    #[test]
    fn looks() {
        pages(&example(), &mut |name, page| {
            for columns in [60, 100, 200] {
                insta::assert_snapshot!(format!("{name}-{columns}"), shown(page, columns, false));
            }
            insta::assert_snapshot!(format!("{name}-wide"), shown(page, 200, true));
        });
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        pages(&example(), &mut |name, page| {
            for columns in (60..=240).step_by(9) {
                for wide in [false, true] {
                    for line in shown(page, columns, wide).lines() {
                        // One argument of a command may be longer: cut, it could not be pasted.
                        let alone = !line.trim().trim_end_matches(" \\").contains(' ') || line.contains('\'');
                        assert!(alone || width(line) <= columns, "{name} at {columns}: {line}");
                    }
                }
            }
        });
    }

    #[test]
    fn hostile_text_cannot_act() {
        let text = r"SAFE\n\e[2J\u202e<script>";
        let cluster = snapshot(&format!(
            r#"
{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: "w{text}", namespace: "n{text}"}}, spec: {{replicas: 2, template: {{metadata: {{labels: {{app.kubernetes.io/part-of: gpustack-operator, app.kubernetes.io/component: operator}}}}}}}}}}
---
{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: s, namespace: "n{text}", ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: "w{text}", controller: true}}]}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: "p{text}", namespace: "n{text}", ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: s, controller: true}}]}}, spec: {{nodeName: "x{text}"}}, status: {{phase: Running, containerStatuses: [{{name: "c{text}", state: {{waiting: {{reason: "r{text}"}}}}}}]}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: "q{text}", namespace: "n{text}", ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: s, controller: true}}]}}, status: {{phase: Pending, conditions: [{{type: PodScheduled, status: "False", message: "m{text}"}}]}}}}
---
{{apiVersion: v1, kind: Node, metadata: {{name: "x{text}", labels: {{topology.kubernetes.io/zone: "z{text}"}}}}, spec: {{unschedulable: true, taints: [{{key: "k{text}", value: "v{text}", effect: NoSchedule}}]}}}}
---
{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: worker.gpustack.ai, namespace: "n{text}"}}, spec: {{holderIdentity: "h{text}"}}}}
"#
        ));
        pages(&cluster, &mut |name, page| {
            for wide in [false, true] {
                let text = shown(page, 100, wide);
                assert!(
                    text.chars().all(|character| character == '\n' || is_plain(character)),
                    "{name}: {text:?}"
                );
                // The first line is the verdict's own.
                let forged = text.lines().skip(1).any(|line| line.trim_start().starts_with("SAFE"));
                assert!(!forged, "{name}: {text}");
            }
        });
    }
}
