//! The comparison can fail: a document that agrees with what happened, and one trial for each way in which it does not.

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::compare::compare;
use crate::observed::Reality;

/// A drain of one node: one pod goes and its replacement waits, one DaemonSet pod stays, a webhook is refused for two seconds.
fn reality() -> Reality {
    let pod = |name: &str, workload: &str, fate: &str| json!({"namespace": "app", "name": name, "node": "n1", "workload": workload, "fate": fate});
    let value = json!({"nodes": ["n1"], "flags": [], "outcome": "finishes", "perNode": [{"node": "n1", "outcome": "finishes"}],
        "pods": [pod("web-1", "Deployment/app/web", "gone"), pod("db-1", "Deployment/app/db", "gone"), pod("agent-1", "DaemonSet/app/agent", "kept")],
        "replacements": {
            "Deployment/app/web": {"landed": [], "neverReady": [], "crashLooping": [], "pending": 1, "gated": 0, "notCreated": 0},
            "Deployment/app/db": {"landed": ["n2"], "neverReady": [], "crashLooping": [], "pending": 0, "gated": 0, "notCreated": 0}},
        "short": ["Deployment/app/web"], "withoutReady": ["Deployment/app/web"], "exhaustedBudgets": ["app/web"], "leaders": {"app/lead": "db-1"},
        "probes": [{"what": "webhook", "name": "hook", "before": false, "refusedSeconds": 2.0, "atEnd": false}], "kubectl": []});
    serde_json::from_value(value).expect("a reality")
}

fn document() -> Value {
    let eviction = |pod: &str, action: &str, outcome: &str, nodes: &[&str]| json!({"pod": pod, "namespace": "app", "node": "n1", "action": action, "certainty": "certain", "budgets": ["web"], "replacement": {"outcome": outcome, "certainty": "certain", "nodes": nodes}});
    json!({"verdict": "unsafe", "drain": {"outcome": "finishes", "certainty": "certain", "perNode": [{"node": "n1", "outcome": "finishes", "certainty": "certain"}]},
        "findings": [{"code": "single-replica", "object": {"kind": "Deployment", "namespace": "app", "name": "web"}}],
        "leaders": [{"lease": "lead", "namespace": "app", "holder": "db-1"}],
        "after": {"pending": ["deployment/app/web"], "exhaustedBudgets": ["app/web"], "nextNodeMayFollow": false},
        "evictions": [eviction("web-1", "evict", "pending", &[]), eviction("db-1", "evict", "lands", &["n2", "n3"]), eviction("agent-1", "keep", "none", &[])],
        "unserved": [{"what": "webhook", "name": "hook", "until": "replacement-ready", "certainty": "certain"}]})
}

/// A name, where the document is changed, and to what; each must be noticed.
const WRONG: [(&str, &str, &str); 19] = [
    ("no leader", "/leaders", "[]"),
    ("another leader", "/leaders/0/holder", r#""web-1""#),
    ("a leader that stays", "/leaders/0/lease", r#""other""#),
    ("nothing pending afterwards", "/after/pending", "[]"),
    (
        "something else pending afterwards",
        "/after/pending",
        r#"["deployment/app/web", "deployment/app/db"]"#,
    ),
    ("no budget used up", "/after/exhaustedBudgets", "[]"),
    ("a next node too early", "/after/nextNodeMayFollow", "true"),
    ("nothing said of what is not Ready", "/findings", "[]"),
    ("outcome", "/drain/outcome", r#""hangs""#),
    ("outcome of a node", "/drain/perNode/0/outcome", r#""refused""#),
    ("no node", "/drain/perNode", "[]"),
    ("action", "/evictions/0/action", r#""stuck""#),
    ("a kept pod", "/evictions/1/action", r#""keep""#),
    ("a pod too many", "/evictions/2/pod", r#""agent-2""#),
    ("replacement", "/evictions/0/replacement/outcome", r#""lands""#),
    ("replacement's node", "/evictions/1/replacement/nodes", r#"["n3"]"#),
    ("no unserved", "/unserved", "[]"),
    ("unserved until", "/unserved/0/until", r#""uncordon""#),
    ("false safe", "/verdict", r#""safe""#),
];

/// The same drain, but `db-1` is refused for ever.
fn hanging() -> (Value, Reality) {
    let (mut document, mut reality) = (document(), reality());
    reality.outcome = "hangs".to_owned();
    reality.per_node[0].outcome = "hangs".to_owned();
    reality.pods[1].fate = crate::observed::Fate::Kept;
    reality.kubectl = vec!["evicting pod app/db-1".to_owned()];
    reality.retried = Some(["app/db-1".to_owned()].into());
    reality.replacements.remove("Deployment/app/db");
    document["drain"]["outcome"] = json!("hangs");
    document["drain"]["perNode"][0]["outcome"] = json!("hangs");
    document["evictions"][1]["action"] = json!("stuck");
    document["evictions"][1]["replacement"] = json!({"outcome": "none", "certainty": "certain", "nodes": []});
    (document, reality)
}

fn silent(problems: Vec<String>) -> Result<(), Failed> {
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Failed::from(problems.join("\n")))
    }
}

fn noticed(problems: Vec<String>) -> Result<(), Failed> {
    if problems.is_empty() {
        Err(Failed::from("nothing was noticed"))
    } else {
        Ok(())
    }
}

/// Changes of both sides; each must be noticed.
fn both_wrong() -> Vec<Trial> {
    let hang = |name: &str, change: fn(&mut Value, &mut Reality)| {
        Trial::test(format!("comparison::notices {name}"), move || {
            let (mut document, mut reality) = hanging();
            change(&mut document, &mut reality);
            noticed(compare(&document, &reality))
        })
    };
    vec![
        hang("another stuck pod", |document, _| {
            document["evictions"][1]["action"] = json!("keep")
        }),
        hang("a pod that fails instead of being stuck", |document, _| {
            document["evictions"][1]["action"] = json!("fail");
        }),
        hang("a stuck pod too many where hanging is possible", |document, reality| {
            document["drain"]["certainty"] = json!("possible");
            document["evictions"][1]["certainty"] = json!("possible");
            reality.pods[0].fate = crate::observed::Fate::Terminating;
        }),
        hang(
            "a replacement that nobody told of where hanging is possible",
            |document, reality| {
                document["drain"]["certainty"] = json!("possible");
                document["evictions"][1]["certainty"] = json!("possible");
                reality.replacements.entry("Deployment/app/other".to_owned()).or_default().pending = 1;
            },
        ),
        hang("something still unserved that is told to come back", |document, reality| {
            document["unserved"][0]["certainty"] = json!("possible");
            reality.probes[0].at_end = true;
        }),
    ]
}

pub fn trials() -> Vec<Trial> {
    let agree = Trial::test("comparison::agrees", || silent(compare(&document(), &reality())));
    let hangs = Trial::test("comparison::agrees on a hang", || {
        let (document, reality) = hanging();
        silent(compare(&document, &reality))
    });
    let possible = Trial::test("comparison::a possible outcome covers a better one", || {
        let mut document = document();
        document["drain"]["outcome"] = json!("hangs");
        document["drain"]["certainty"] = json!("possible");
        document["drain"]["perNode"][0] = json!({"node": "n1", "outcome": "hangs", "certainty": "possible"});
        silent(compare(&document, &reality()))
    });
    let wrong = WRONG.iter().map(|&(name, pointer, value)| {
        Trial::test(format!("comparison::notices {name}"), move || {
            let mut document = document();
            *document.pointer_mut(pointer).expect("a field") = serde_json::from_str(value).expect("JSON");
            noticed(compare(&document, &reality()))
        })
    });
    [agree, hangs, possible].into_iter().chain(wrong).chain(both_wrong()).collect()
}
