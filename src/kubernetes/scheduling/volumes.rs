//! Volumes that pin or limit where a pod may run (`pkg/scheduler/framework/plugins/{volumerestrictions,
//! nodevolumelimits,volumebinding,volumezone}`): not modelled, so a pod that uses them cannot be decided.

use super::{Decision, Incoming};

/// Unknown for claims and for the legacy volumes that only one node can use.
pub(super) fn filter(incoming: &Incoming<'_>) -> Decision {
    let kind = incoming.spec.volumes.iter().find_map(|volume| {
        let kind = if volume.persistent_volume_claim.is_some() {
            "a persistentVolumeClaim"
        } else if volume.ephemeral.is_some() {
            "an ephemeral volume"
        } else if volume.gce_persistent_disk.is_some() || volume.rbd.is_some() || volume.iscsi.is_some() {
            "a disk that is attached to one node"
        } else {
            return None;
        };
        Some((&volume.name, kind))
    });
    match kind {
        Some((name, kind)) => Decision::Unknown(format!("where volume {name} can be used: it is {kind}, which is not modelled")),
        None => Decision::Fits,
    }
}
