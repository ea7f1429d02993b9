//! Small clusters for the tests of the filters.

use super::{Decision, Incoming, Placement, decide};
use crate::cluster::kinds::Kind;
use crate::cluster::objects::Pod;
use crate::cluster::snapshot::{Scope, ServerVersion, Snapshot};

/// A cluster of which everything was read: objects as flow mappings, one a line, starting with their kind (`node`,
/// `pod`, `claim` …) and the name (`namespace/name` for what lives in one), then `@node` for a bound pod.
///
/// A node has the label `host` with its name, and room for ten pods, four cores and 8Gi, unless it says otherwise.
pub(super) fn cluster(text: &str) -> Snapshot {
    without(&[], text)
}

/// The same, with some kinds not read.
pub(super) fn without(kinds: &[Kind], text: &str) -> Snapshot {
    let mut snapshot = partial(text);
    for kind in Kind::ALL.iter().filter(|kind| !kinds.contains(kind)) {
        snapshot.objects.cover(*kind, Scope::Cluster, Ok(()));
    }
    snapshot
}

/// The same, but nothing was said to be complete.
pub(super) fn partial(text: &str) -> Snapshot {
    let mut snapshot = Snapshot {
        server_version: Some(ServerVersion {
            git_version: "v1.36.3".to_owned(),
        }),
        ..Snapshot::default()
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, body) = line.split_at(line.find('{').unwrap_or(line.len()));
        let words: Vec<&str> = head.split_whitespace().collect();
        let body = if body.is_empty() { "{}" } else { body };
        let mut object: serde_yaml::Value = serde_yaml::from_str(body).unwrap();
        let name = match words[1].split_once('/') {
            Some((namespace, name)) => {
                object["metadata"]["namespace"] = namespace.into();
                name
            }
            None => words[1],
        };
        object["metadata"]["name"] = name.into();
        let kind = match words[0] {
            "node" => {
                object["metadata"]["labels"]["host"] = name.into();
                if object["status"]["allocatable"].is_null() {
                    object["status"]["allocatable"] = serde_yaml::from_str("{cpu: 4, memory: 8Gi, pods: 10}").unwrap();
                }
                Kind::Node
            }
            "pod" => {
                if let Some(node) = words.get(2).and_then(|word| word.strip_prefix('@')) {
                    object["spec"]["nodeName"] = node.into();
                }
                Kind::Pod
            }
            "namespace" => Kind::Namespace,
            "claim" => Kind::PersistentVolumeClaim,
            "volume" => Kind::PersistentVolume,
            "class" => Kind::StorageClass,
            "csinode" => Kind::CsiNode,
            "driver" => Kind::CsiDriver,
            "attachment" => Kind::VolumeAttachment,
            "resourceclaim" => Kind::ResourceClaim,
            "deviceclass" => Kind::DeviceClass,
            other => panic!("{other}"),
        };
        snapshot.objects.insert(kind, object).unwrap();
    }
    snapshot.objects.settle();
    snapshot
}

/// A pod of namespace `d` unless it says otherwise.
pub(super) fn pod(text: &str) -> Pod {
    let mut pod: Pod = serde_yaml::from_str(text).unwrap();
    if pod.metadata.namespace.is_empty() {
        pod.metadata.namespace = "d".to_owned();
    }
    pod
}

pub(super) fn incoming(pod: &Pod) -> Incoming<'_> {
    Incoming {
        namespace: &pod.metadata.namespace,
        labels: &pod.metadata.labels,
        spec: &pod.spec,
    }
}

/// `fits`, the words of a refusal, or `?` and what is unknown.
pub(super) fn words(decision: Decision) -> String {
    match decision {
        Decision::Fits => "fits".to_owned(),
        Decision::Refused(words) => words,
        Decision::Unknown(reason) => format!("? {reason}"),
    }
}

/// What the filters say of each node.
pub(super) fn said(snapshot: &Snapshot, text: &str) -> Vec<String> {
    said_of(&Placement::new(snapshot), text)
}

/// What the filters say of each node.
pub(super) fn said_of(placement: &Placement<'_>, text: &str) -> Vec<String> {
    let mut pod = pod(text);
    // What a template names past the scheduler is part of its spec.
    pod.spec.node_name = pod.node().map(str::to_owned);
    decide(placement, &incoming(&pod)).into_iter().map(words).collect()
}
