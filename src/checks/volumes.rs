//! Volumes of what is evicted: `volume-detach-wait`, and what `volume-pinned` says of them.

use std::collections::BTreeMap;

use crate::cluster::snapshot::Snapshot;
use crate::kubernetes::scheduling::{self, Occupant};
use crate::report::finding::{Certainty, Finding, Remedy, Severity};
use crate::simulation::state::Progress;
use crate::simulation::trace::Paths;

use super::codes::Code;
use super::{Context, finding, listed, object};

/// Labels that tell where a volume is.
const ZONES: [&str; 2] = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];

/// What is known of a pod's claims and their volumes, as evidence.
pub fn facts(snapshot: &Snapshot, pod: &Occupant<'_>) -> Vec<String> {
    let sources = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    sources
        .filter_map(|source| {
            let claim = snapshot.claims.find(pod.namespace, &source.claim_name)?;
            let volume = snapshot.volumes.find("", &claim.spec.volume_name)?;
            Some(format!(
                "claim {} is bound to volume {}{}",
                source.claim_name,
                volume.metadata.name,
                place(volume)
            ))
        })
        .collect()
}

/// Where a volume can be used, as its labels and node affinity say.
fn place(volume: &crate::cluster::objects::PersistentVolume) -> String {
    let terms = volume
        .spec
        .node_affinity
        .required
        .iter()
        .flat_map(|required| &required.node_selector_terms);
    let required = terms.flat_map(|term| term.match_expressions.iter().chain(&term.match_fields));
    let labels = ZONES
        .iter()
        .filter_map(|label| Some(((*label).to_owned(), volume.metadata.labels.get(*label)?.clone())));
    let places: Vec<String> = required
        .map(|requirement| (requirement.key.clone(), requirement.values.join(" or ")))
        .chain(labels)
        .map(|(key, values)| format!("{key} {values}").trim_end().to_owned())
        .collect();
    match places.is_empty() {
        true => String::new(),
        false => format!(", which only some nodes reach: {}", listed(&places)),
    }
}

/// What helps against a volume that keeps a replacement Pending.
pub fn remedy(context: &Context<'_>, namespace: &str, uncordon: bool) -> Remedy {
    let cast = &context.trace.cast;
    if uncordon {
        let nodes = (0..cast.nodes.len()).map(|turn| cast.node_name(turn).to_owned());
        return Remedy {
            text: "uncordon when the maintenance is done: the volume is used there; or give it another node that reaches the volume, or move the data"
                .to_owned(),
            command: Some(context.kubectl.line(["uncordon".to_owned()].into_iter().chain(nodes))),
            values_key: None,
        };
    }
    Remedy {
        text: "see what became of the claims; mend them before the drain".to_owned(),
        command: Some(context.kubectl.line(["describe", "persistentvolumeclaims", "-n", namespace])),
        values_key: None,
    }
}

/// Volumes that must leave the drained node before a replacement starts elsewhere.
pub fn detaching(context: &Context<'_>) -> Vec<Finding> {
    let (snapshot, trace) = (context.snapshot, context.trace);
    let mut found: BTreeMap<(&str, &str), Finding> = BTreeMap::new();
    for (index, candidate) in trace.cast.candidates.iter().enumerate() {
        let pod = candidate.pod;
        if !trace.cast.removed(candidate) || pod.finished() {
            continue;
        }
        let turn = candidate.node;
        let elsewhere = trace.paths(|end| {
            trace
                .replacement(end, index)
                .is_some_and(|new| matches!(new.progress, Progress::Placed { node, .. } if node != turn))
        });
        let Some(certainty) = elsewhere.certainty() else { continue };
        let namespace = pod.metadata.namespace.as_str();
        let node = trace.cast.node_of(candidate);
        let sources = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
        for source in sources {
            let Some(claim) = snapshot.claims.find(namespace, &source.claim_name) else {
                continue;
            };
            let Some(single) = scheduling::single_node(snapshot, claim) else {
                continue;
            };
            let volume = &single.volume.metadata.name;
            let mut evidence = vec![format!(
                "claim {} ({}) is bound to volume {volume} of driver {}{}",
                source.claim_name,
                claim.spec.access_modes.join(", "),
                single.driver,
                place(single.volume)
            )];
            let mut known = single.certain;
            match snapshot.volume_attachments.all() {
                Ok(attachments) => {
                    let attachment = attachments.iter().find(|attachment| {
                        attachment.spec.node_name == node
                            && attachment.spec.source.persistent_volume_name.as_deref() == Some(volume.as_str())
                    });
                    match attachment {
                        Some(attachment) => evidence.push(format!("volumeattachment {} attaches it to {node}", attachment.metadata.name)),
                        None => continue,
                    }
                }
                Err(missing) => {
                    known = false;
                    evidence.push(format!("whether it is attached was not read: {missing}"));
                }
            }
            let sharing: Vec<String> = snapshot
                .pods
                .seen()
                .iter()
                .filter(|other| {
                    !std::ptr::eq(*other, pod)
                        && other.metadata.namespace == namespace
                        && other.node() == Some(node)
                        && !other.finished()
                        && other.spec.volumes.iter().any(|volume| {
                            volume
                                .persistent_volume_claim
                                .as_ref()
                                .is_some_and(|other| other.claim_name == source.claim_name)
                        })
                })
                .map(|other| other.metadata.name.clone())
                .collect();
            let until = match sharing.is_empty() {
                true => String::new(),
                false => format!(
                    " and until then nobody else can use it: not before {} on {node} is gone too",
                    listed(&sharing)
                ),
            };
            let mut item = finding(
                Code::VolumeDetachWait,
                Severity::Info,
                if known && elsewhere == Paths::All {
                    certainty
                } else {
                    Certainty::Possible
                },
                object("PersistentVolumeClaim", namespace, &source.claim_name),
                format!(
                    "volume {volume} must leave {node} before the replacement of {} can start elsewhere",
                    pod.metadata.name
                ),
            );
            item.node = Some(node.to_owned());
            item.evidence = evidence;
            item.consequence = format!(
                "the replacement waits in ContainerCreating, mostly for seconds; if the kubelet of {node} does not confirm the unmount, for six minutes or until somebody acts{until}"
            );
            item.remedy = Remedy {
                text: "wait until it has started before the next node".to_owned(),
                command: Some(context.kubectl.line(["get", "volumeattachments"])),
                values_key: None,
            };
            found.entry((namespace, &source.claim_name)).or_insert(item);
        }
    }
    found.into_values().collect()
}
