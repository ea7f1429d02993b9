//! When a cluster has come to rest.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, text};
use crate::observed;

/// What a drain and its consequences change; leases and events are not among them.
const WATCHED: [&str; 7] = [
    "/api/v1/pods",
    "/api/v1/nodes",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/batch/v1/jobs",
];

/// Changes whenever one of the watched objects does.
pub fn fingerprint(api: &Api) -> Vec<String> {
    let mut objects: Vec<String> = WATCHED
        .iter()
        .flat_map(|path| api.list(path))
        .map(|object| format!("{}@{}", text(&object, "/metadata/uid"), text(&object, "/metadata/resourceVersion")))
        .collect();
    objects.sort();
    objects
}

/// Waits until nothing changed for two seconds and `done` holds, or nothing changed for `patience`, or `deadline` has passed.
pub fn settle(api: &Api, patience: Duration, deadline: Duration, done: impl Fn() -> bool) {
    let start = Instant::now();
    let (mut last, mut since) = (fingerprint(api), Instant::now());
    while start.elapsed() < deadline {
        std::thread::sleep(Duration::from_millis(500));
        let seen = fingerprint(api);
        if seen != last {
            (last, since) = (seen, Instant::now());
        } else if since.elapsed() > patience || (since.elapsed() > Duration::from_secs(2) && done()) {
            return;
        }
    }
}

/// The owners that have fewer pods than they want, by how many; without those that they make only once a pod has ended.
pub fn missing(api: &Api) -> Vec<(String, usize)> {
    let (pods, sets) = (api.list("/api/v1/pods"), api.list("/apis/apps/v1/replicasets"));
    let mut missing = Vec::new();
    for (kind, path) in [
        ("Deployment", "/apis/apps/v1/deployments"),
        ("ReplicaSet", "/apis/apps/v1/replicasets"),
        ("StatefulSet", "/apis/apps/v1/statefulsets"),
        ("Job", "/apis/batch/v1/jobs"),
    ] {
        for mut owner in api.list(path) {
            owner["kind"] = json!(kind);
            let controlled = owner["metadata"]["ownerReferences"].is_array();
            if controlled {
                continue;
            }
            let key = observed::key(&owner);
            let own = pods.iter().filter(|pod| observed::owner(pod, &sets) == key);
            // A StatefulSet waits until the pod is no more, a Job with this policy until it has ended.
            let stands_in_the_way = |pod: &Value| match kind {
                "StatefulSet" => true,
                "Job" => owner["spec"]["podReplacementPolicy"] == "Failed" && !ended(pod),
                _ => false,
            };
            let there = own.filter(|pod| active(pod) || stands_in_the_way(pod)).count();
            let wanted = usize::try_from(wanted(&owner)).unwrap_or_default();
            if wanted > there {
                missing.push((key, wanted - there));
            }
        }
    }
    missing
}

fn wanted(owner: &Value) -> u64 {
    let number = |pointer: &str| owner.pointer(pointer).and_then(Value::as_u64);
    if owner["kind"] != "Job" {
        return number("/spec/replicas").unwrap_or(1);
    }
    let finished = owner["status"]["conditions"].as_array().into_iter().flatten().any(|condition| {
        ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"]
            .iter()
            .any(|kind| condition["type"] == *kind)
            && condition["status"] == "True"
    });
    let left = number("/spec/completions")
        .unwrap_or(1)
        .saturating_sub(number("/status/succeeded").unwrap_or(0));
    if finished {
        0
    } else {
        number("/spec/parallelism").unwrap_or(1).min(left)
    }
}

/// Neither ended nor being deleted.
pub fn active(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_string() && !ended(pod)
}

fn ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}
