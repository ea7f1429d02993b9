//! Zone labels of volumes, which old ones have instead of node affinity
//! (`pkg/scheduler/framework/plugins/volumezone/volume_zone.go`).

use super::{Decision, NodeState};
use crate::cluster::objects::PersistentVolume;

/// ErrReasonConflict.
pub(super) const ZONE_CONFLICT: &str = "node(s) had no available volume zone";

/// Labels of zones and regions, and the name that each has today.
const LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// The node must have one of the zones that each volume is labelled with; a node without any such label is not asked.
pub(super) fn filter(volumes: &[&PersistentVolume], node: &NodeState<'_>) -> Decision {
    let labels = &node.node.metadata.labels;
    if !LABELS.iter().any(|(label, _)| labels.contains_key(*label)) {
        return Decision::Fits;
    }
    let suits = |volume: &PersistentVolume| {
        LABELS.iter().all(|(label, today)| {
            let Some(zones) = volume.metadata.labels.get(*label) else {
                return true;
            };
            let zones: Vec<&str> = zones.split("__").map(str::trim).collect();
            // A label with an empty zone is not understood, and so ignored.
            zones.contains(&"")
                || labels
                    .get(*label)
                    .or_else(|| labels.get(*today))
                    .is_some_and(|zone| zones.contains(&zone.as_str()))
        })
    };
    if volumes.iter().all(|volume| suits(volume)) {
        Decision::Fits
    } else {
        Decision::Refused(ZONE_CONFLICT.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, said};
    use super::*;

    #[test]
    fn zones() {
        let beta = "failure-domain.beta.kubernetes.io/zone";
        let today = "topology.kubernetes.io/zone";
        for (volume, node, fits) in [
            (format!("{today}: x"), format!("{today}: x"), true),
            (format!("{today}: x"), format!("{today}: y"), false),
            (format!("{today}: x__y"), format!("{today}: y"), true),
            (format!("{today}: x__"), format!("{today}: y"), true),
            (format!("{today}: x"), String::new(), true),
            (format!("{today}: x"), "topology.kubernetes.io/region: r".to_owned(), false),
            (format!("{beta}: x"), format!("{today}: x"), true),
            (format!("{beta}: x"), format!("{today}: y"), false),
            (format!("{today}: x"), format!("{beta}: x"), false),
            (String::new(), format!("{today}: y"), true),
        ] {
            let snapshot = cluster(&format!(
                "node a {{metadata: {{labels: {{{node}}}}}}}\nclaim d/c {{spec: {{volumeName: p}}, status: {{phase: Bound}}}}\nvolume p {{metadata: {{labels: {{{volume}}}}}}}"
            ));
            let found = said(&snapshot, "{spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}");
            assert_eq!(found, [if fits { "fits" } else { ZONE_CONFLICT }], "{volume} | {node}");
        }
    }
}
