//! Claims that one pod may use at a time, and disks that one node may use
//! (`pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go`).

use super::{Decision, Incoming, NodeState, Placement};
use crate::cluster::objects::{PersistentVolumeClaim, RadosBlockDevice, Volume};

/// ErrReasonDiskConflict.
pub(super) const DISK_CONFLICT: &str = "node(s) had no available disk";

/// ErrReasonReadWriteOncePodConflict.
pub(super) const IN_USE: &str =
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";

/// What a pod's volumes share with others.
pub(super) struct Restrictions<'a> {
    disks: Vec<&'a Volume>,
    claims: Decision,
}

impl<'a> Restrictions<'a> {
    pub(super) fn new(incoming: &Incoming<'a>) -> Self {
        let checked = |volume: &&Volume| {
            volume.gce_persistent_disk.is_some()
                || volume.aws_elastic_block_store.is_some()
                || volume.rbd.is_some()
                || volume.iscsi.is_some()
        };
        Self {
            disks: incoming.spec.volumes.iter().filter(checked).collect(),
            claims: Decision::Fits,
        }
    }

    /// Looks for another pod that uses a ReadWriteOncePod claim and has a node; a terminating one still does.
    pub(super) fn claim(&mut self, placement: &Placement<'_>, claim: &PersistentVolumeClaim) {
        if !claim.spec.access_modes.iter().any(|mode| mode == "ReadWriteOncePod") {
            return;
        }
        let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
        let used = placement.nodes.iter().any(|node| node.uses_claim(namespace, name));
        if used {
            self.claims = Decision::Refused(IN_USE.to_owned());
        } else if let Err(unread) = placement.namespace_known(namespace)
            && self.claims == Decision::Fits
        {
            self.claims = Decision::Unknown(format!("whether another pod uses claim {name}: {unread}"));
        }
    }

    /// Whether it passes every node.
    pub(super) fn passes_all(&self) -> bool {
        self.disks.is_empty() && self.claims == Decision::Fits
    }

    pub(super) fn filter(&self, node: &NodeState<'_>) -> Decision {
        let held = || node.occupants().flat_map(|occupant| &occupant.spec.volumes);
        if self.disks.iter().any(|disk| held().any(|other| conflict(disk, other))) {
            return Decision::Refused(DISK_CONFLICT.to_owned());
        }
        self.claims.clone()
    }
}

/// Whether two volumes are one disk that cannot be used twice (isVolumeConflict).
fn conflict(one: &Volume, other: &Volume) -> bool {
    let pool = |device: &RadosBlockDevice| match device.pool.as_str() {
        "" => "rbd".to_owned(),
        pool => pool.to_owned(),
    };
    matches!((&one.gce_persistent_disk, &other.gce_persistent_disk), (Some(a), Some(b))
        if a.pd_name == b.pd_name && !(a.read_only && b.read_only))
        || matches!((&one.aws_elastic_block_store, &other.aws_elastic_block_store), (Some(a), Some(b)) if a.volume_id == b.volume_id)
        || matches!((&one.iscsi, &other.iscsi), (Some(a), Some(b)) if a.iqn == b.iqn && !(a.read_only && b.read_only))
        || matches!((&one.rbd, &other.rbd), (Some(a), Some(b))
            if a.monitors.iter().any(|monitor| b.monitors.contains(monitor))
                && pool(a) == pool(b)
                && a.image == b.image
                && !(a.read_only && b.read_only))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, said, without};
    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::cluster::snapshot::Scope;

    #[test]
    fn a_disk_is_used_by_one_pod_of_a_node() {
        for (there, wanted, fits) in [
            ("gcePersistentDisk: {pdName: x}", "gcePersistentDisk: {pdName: x}", false),
            ("gcePersistentDisk: {pdName: x}", "gcePersistentDisk: {pdName: y}", true),
            (
                "gcePersistentDisk: {pdName: x, readOnly: true}",
                "gcePersistentDisk: {pdName: x}",
                false,
            ),
            (
                "gcePersistentDisk: {pdName: x, readOnly: true}",
                "gcePersistentDisk: {pdName: x, readOnly: true}",
                true,
            ),
            ("awsElasticBlockStore: {volumeID: x}", "awsElasticBlockStore: {volumeID: x}", false),
            ("awsElasticBlockStore: {volumeID: x}", "awsElasticBlockStore: {volumeID: y}", true),
            ("azureDisk: {diskURI: x}", "azureDisk: {diskURI: x}", true),
            ("iscsi: {iqn: x}", "iscsi: {iqn: x}", false),
            ("iscsi: {iqn: x, readOnly: true}", "iscsi: {iqn: x, readOnly: true}", true),
            (
                "rbd: {monitors: [a, b], image: x}",
                "rbd: {monitors: [b], pool: rbd, image: x}",
                false,
            ),
            ("rbd: {monitors: [a, b], image: x}", "rbd: {monitors: [c], image: x}", true),
            ("rbd: {monitors: [a], image: x}", "rbd: {monitors: [a], pool: p, image: x}", true),
            ("rbd: {monitors: [a], image: x}", "rbd: {monitors: [a], image: y}", true),
        ] {
            let snapshot = cluster(&format!("node a\nnode b\npod d/1 @a {{spec: {{volumes: [{{name: v, {there}}}]}}}}"));
            let found = said(&snapshot, &format!("{{spec: {{volumes: [{{name: v, {wanted}}}]}}}}"));
            assert_eq!(found, [if fits { "fits" } else { DISK_CONFLICT }, "fits"], "{there} | {wanted}");
        }
    }

    #[test]
    fn a_claim_for_one_pod_is_held_by_any_unfinished_one_that_has_a_node() {
        let wanted = "{spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}";
        let claim =
            |modes: &str| format!("claim d/c {{spec: {{volumeName: p, accessModes: {modes}}}, status: {{phase: Bound}}}}\nvolume p\n");
        let pod =
            "{metadata: {deletionTimestamp: 2026-01-01T00:00:00Z}, spec: {volumes: [{name: x, persistentVolumeClaim: {claimName: c}}]}}";
        for (modes, other, fits) in [
            ("[ReadWriteOncePod]", format!("pod d/1 @a {pod}"), false),
            ("[ReadWriteOnce]", format!("pod d/1 @a {pod}"), true),
            ("[ReadWriteOncePod]", format!("pod other/1 @a {pod}"), true),
            ("[ReadWriteOncePod]", format!("pod d/1 {pod}"), true),
            (
                "[ReadWriteOncePod]",
                format!("pod d/1 @a {}", pod.replace("claimName: c", "claimName: e")),
                true,
            ),
            (
                "[ReadWriteOncePod]",
                format!("pod d/1 @a {}", pod.replace("spec:", "status: {phase: Failed}, spec:")),
                true,
            ),
        ] {
            let snapshot = cluster(&format!("node a\nnode b\n{}{other}", claim(modes)));
            assert_eq!(said(&snapshot, wanted), [if fits { "fits" } else { IN_USE }; 2], "{modes} {other}");
        }
        let mut snapshot = without(&[Kind::Pod], &format!("node a\n{}", claim("[ReadWriteOncePod]")));
        snapshot.objects.cover(Kind::Pod, Scope::Node("a".to_owned()), Ok(()));
        assert_eq!(
            said(&snapshot, wanted),
            ["? whether another pod uses claim c: pods in namespace d were not read"]
        );
    }
}
