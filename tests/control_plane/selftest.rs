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
        "probes": [{"what": "webhook", "name": "hook", "before": false, "refusedSeconds": 2.0, "atEnd": false}], "kubectl": []});
    serde_json::from_value(value).expect("a reality")
}

fn document() -> Value {
    let eviction = |pod: &str, action: &str, outcome: &str, nodes: &[&str]| json!({"pod": pod, "namespace": "app", "node": "n1", "action": action, "replacement": {"outcome": outcome, "certainty": "certain", "nodes": nodes}});
    json!({"verdict": "unsafe", "drain": {"outcome": "finishes", "certainty": "certain", "perNode": [{"node": "n1", "outcome": "finishes", "certainty": "certain"}]},
        "evictions": [eviction("web-1", "evict", "pending", &[]), eviction("db-1", "evict", "lands", &["n2", "n3"]), eviction("agent-1", "keep", "none", &[])],
        "unserved": [{"what": "webhook", "name": "hook", "until": "replacement-ready", "certainty": "certain"}]})
}

/// A name, where the document is changed, and to what; each must be noticed.
const WRONG: [(&str, &str, &str); 11] = [
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

pub fn trials() -> Vec<Trial> {
    let agree = Trial::test("comparison::agrees", || match compare(&document(), &reality()) {
        problems if problems.is_empty() => Ok(()),
        problems => Err(Failed::from(problems.join("\n"))),
    });
    let possible = Trial::test("comparison::a possible outcome covers a better one", || {
        let mut document = document();
        document["drain"]["outcome"] = json!("hangs");
        document["drain"]["certainty"] = json!("possible");
        document["drain"]["perNode"][0] = json!({"node": "n1", "outcome": "hangs", "certainty": "possible"});
        match compare(&document, &reality()) {
            problems if problems.is_empty() => Ok(()),
            problems => Err(Failed::from(problems.join("\n"))),
        }
    });
    let wrong = WRONG.iter().map(|&(name, pointer, value)| {
        Trial::test(format!("comparison::notices {name}"), move || {
            let mut document = document();
            *document.pointer_mut(pointer).expect("a field") = serde_json::from_str(value).expect("JSON");
            if compare(&document, &reality()).is_empty() {
                Err(Failed::from("nothing was noticed"))
            } else {
                Ok(())
            }
        })
    });
    [agree, possible].into_iter().chain(wrong).collect()
}
