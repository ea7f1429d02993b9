//! How many volumes of a CSI driver a node takes (`pkg/scheduler/framework/plugins/nodevolumelimits/csi.go`).

use std::collections::BTreeSet;

use super::volumes::{class_name, class_of_new, waiting};
use super::{Decision, Incoming, NodeState};
use crate::cluster::objects::{PersistentVolume, StorageClass, Volume};
use crate::cluster::snapshot::{NotRead, Snapshot};

/// ErrReasonMaxVolumeCountExceeded.
pub(super) const TOO_MANY: &str = "node(s) exceed max volume count";

/// Provisioners from before CSI, and the drivers that took over (`k8s.io/csi-translation-lib`; isCSIMigrationOn).
const MIGRATED: [(&str, &str); 5] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

/// A volume as it is attached: its driver, and a name that no other volume of the driver has.
type Attached<'a> = (&'a str, String);

/// The driver that attaches a volume; `None` where nothing does.
pub fn driver(volume: &PersistentVolume) -> Option<&str> {
    let spec = &volume.spec;
    let legacy = [
        &spec.aws_elastic_block_store,
        &spec.gce_persistent_disk,
        &spec.azure_disk,
        &spec.cinder,
        &spec.portworx_volume,
    ];
    match &spec.csi {
        Some(csi) => Some(&csi.driver),
        None => legacy
            .iter()
            .zip(MIGRATED)
            .find(|(source, _)| source.is_some())
            .map(|(_, (_, driver))| driver),
    }
}

/// The volume that a pod's volume attaches; `None` where it attaches none.
fn attached<'a>(snapshot: &'a Snapshot, namespace: &str, pod: &str, volume: &Volume) -> Result<Option<Attached<'a>>, NotRead> {
    let template = volume.ephemeral.as_ref().map(|ephemeral| &ephemeral.volume_claim_template.spec);
    let name = match (&volume.persistent_volume_claim, template) {
        (Some(claim), _) => claim.claim_name.clone(),
        (None, Some(_)) => format!("{pod}-{}", volume.name),
        (None, None) => return Ok(inline(volume)),
    };
    let of_class = |class: Option<&'a StorageClass>| {
        let provisioner = class.map(|class| class.provisioner.as_str()).filter(|name| !name.is_empty())?;
        let driver = match MIGRATED.iter().find(|(old, _)| *old == provisioner) {
            Some((_, driver)) => driver,
            None => provisioner,
        };
        Some((driver, format!("claim {namespace}/{name}")))
    };
    let claim = snapshot.claims.get(namespace, &name)?;
    let Some(claim) = claim else {
        return match template {
            Some(template) => class_of_new(snapshot, template).map(of_class),
            None => Ok(None),
        };
    };
    let volume = match claim.spec.volume_name.as_str() {
        "" => None,
        volume => snapshot.volumes.get("", volume)?,
    };
    match volume {
        Some(volume) => Ok(driver(volume).map(|driver| (driver, handle(volume)))),
        None => match class_name(claim) {
            "" => Ok(None),
            class => snapshot.storage_classes.get("", class).map(of_class),
        },
    }
}

fn handle(volume: &PersistentVolume) -> String {
    match &volume.spec.csi {
        Some(csi) => csi.volume_handle.clone(),
        None => format!("volume {}", volume.metadata.name),
    }
}

/// A disk of a kind from before CSI, in the pod itself.
fn inline(volume: &Volume) -> Option<Attached<'static>> {
    let ids = [
        volume.aws_elastic_block_store.as_ref().map(|disk| &disk.volume_id),
        volume.gce_persistent_disk.as_ref().map(|disk| &disk.pd_name),
        volume.azure_disk.as_ref().map(|disk| &disk.disk_uri),
        volume.cinder.as_ref().map(|disk| &disk.volume_id),
        volume.portworx_volume.as_ref().map(|disk| &disk.volume_id),
    ];
    ids.into_iter()
        .zip(MIGRATED)
        .find_map(|(id, (_, driver))| Some((driver, format!("disk {}", id?))))
}

/// The volumes that a pod to be placed attaches.
pub(super) struct Limits<'a> {
    snapshot: &'a Snapshot,
    wanted: BTreeSet<Attached<'a>>,
    unknown: Option<NotRead>,
}

impl<'a> Limits<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, incoming: &Incoming<'a>) -> Self {
        let mut limits = Self {
            snapshot,
            wanted: BTreeSet::new(),
            unknown: None,
        };
        if incoming.spec.volumes.is_empty() {
            return limits;
        }
        // Only the claim that is made for one pod goes by its name; to find the pod takes a look at all.
        let made = incoming.spec.volumes.iter().any(|volume| volume.ephemeral.is_some());
        let pod = made.then(|| waiting(snapshot, incoming)).flatten();
        let pod = pod.map_or("", |pod| &pod.metadata.name);
        for volume in &incoming.spec.volumes {
            match attached(snapshot, incoming.namespace, pod, volume) {
                Ok(volume) => limits.wanted.extend(volume),
                Err(missing) => limits.unknown = Some(missing),
            }
        }
        limits
    }

    /// Whether the pod attaches, or may attach, anything.
    pub(super) fn any(&self) -> bool {
        !self.wanted.is_empty() || self.unknown.is_some()
    }

    /// Volumes of the pods on the node and new ones must be no more than the node takes of each driver. An attachment
    /// that no pod uses counts too, until it is gone.
    pub(super) fn filter(&self, node: &NodeState<'_>) -> Decision {
        if !self.any() {
            return Decision::Fits;
        }
        let unknown = |why: &dyn std::fmt::Display| Decision::Unknown(format!("how many volumes node {} takes: {why}", node.name()));
        let drivers = match self.snapshot.csi_nodes.get("", node.name()) {
            Ok(Some(drivers)) => &drivers.spec.drivers,
            Ok(None) => return Decision::Fits,
            Err(missing) => return unknown(&missing),
        };
        let wants = |driver: &str| self.wanted.iter().any(|(name, _)| *name == driver);
        let limits: Vec<(&str, i64)> = drivers
            .iter()
            .filter_map(|driver| Some((driver.name.as_str(), driver.allocatable.count?)))
            .filter(|(driver, _)| self.unknown.is_some() || wants(driver))
            .collect();
        if limits.is_empty() {
            return Decision::Fits;
        }
        let mut there: BTreeSet<Attached<'_>> = BTreeSet::new();
        let mut unread = self.unknown.clone();
        for occupant in node.occupants() {
            for volume in &occupant.spec.volumes {
                match attached(self.snapshot, occupant.namespace, occupant.name, volume) {
                    Ok(volume) => there.extend(volume),
                    Err(missing) => unread = Some(missing),
                }
            }
        }
        let count = |driver: &str, set: &BTreeSet<Attached<'_>>| {
            let of = set.iter().filter(|(name, _)| *name == driver);
            i64::try_from(of.count()).unwrap_or(i64::MAX)
        };
        let all: BTreeSet<Attached<'_>> = there.union(&self.wanted).cloned().collect();
        if limits
            .iter()
            .any(|(driver, limit)| wants(driver) && count(driver, &all) > count(driver, &there).max(*limit))
        {
            return Decision::Refused(TOO_MANY.to_owned());
        }
        if let Some(missing) = unread {
            return unknown(&missing);
        }
        let attachments = match self.snapshot.volume_attachments.all() {
            Ok(attachments) => attachments,
            Err(missing) => return unknown(&missing),
        };
        let mut with = all.clone();
        for attachment in attachments.iter().filter(|attachment| attachment.spec.node_name == node.name()) {
            let volume = attachment.spec.source.persistent_volume_name.as_deref();
            if let Some(volume) = volume.and_then(|name| self.snapshot.volumes.find("", name))
                && volume.spec.csi.is_some()
            {
                with.insert((&attachment.spec.attacher, handle(volume)));
            }
        }
        match limits
            .iter()
            .find(|(driver, limit)| count(driver, &all) > count(driver, &there) && count(driver, &with) > *limit)
        {
            Some((driver, _)) => unknown(&format!("volumes of driver {driver} are attached that no pod uses")),
            None => Decision::Fits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, said, without};
    use super::*;
    use crate::cluster::kinds::Kind;

    const POD: &str = "{spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}";

    fn volume(name: &str, driver: &str) -> String {
        format!(
            "claim d/{name} {{spec: {{volumeName: {name}}}, status: {{phase: Bound}}}}\nvolume {name} {{spec: {{csi: {{driver: {driver}, volumeHandle: {name}}}}}}}\n"
        )
    }

    fn user(pod: &str, claim: &str) -> String {
        format!("pod d/{pod} @a {{spec: {{volumes: [{{name: v, persistentVolumeClaim: {{claimName: {claim}}}}}]}}}}\n")
    }

    fn node(drivers: &str) -> String {
        format!("node a\ncsinode a {{spec: {{drivers: [{drivers}]}}}}\n")
    }

    #[test]
    fn a_node_takes_so_many_volumes_of_a_driver() {
        let two = node("{name: x.example, allocatable: {count: 2}}, {name: y.example}");
        let own = volume("c", "x.example");
        let others = volume("d", "x.example") + &volume("e", "x.example") + &volume("f", "y.example");
        let legacy = "claim d/l {spec: {volumeName: l}, status: {phase: Bound}}\nvolume l {spec: {awsElasticBlockStore: {}}}\n";
        for (text, expected) in [
            (format!("{two}{own}"), "fits"),
            (format!("{two}{own}{others}{}", user("1", "d")), "fits"),
            (format!("{two}{own}{others}{}{}", user("1", "d"), user("2", "e")), TOO_MANY),
            (format!("{two}{own}{others}{}{}", user("1", "d"), user("2", "d")), "fits"),
            (format!("{two}{own}{others}{}{}", user("1", "d"), user("2", "f")), "fits"),
            // A volume that is there already is not counted twice.
            (format!("{two}{own}{others}{}{}", user("1", "d"), user("2", "c")), "fits"),
            (format!("node a\n{own}{others}{}{}", user("1", "d"), user("2", "e")), "fits"),
            (
                format!(
                    "{two}{own}{others}{}attachment t {{spec: {{attacher: x.example, nodeName: a, source: {{persistentVolumeName: d}}}}}}\n",
                    user("1", "d")
                ),
                "fits",
            ),
            (
                format!(
                    "{two}{own}{others}{}attachment t {{spec: {{attacher: x.example, nodeName: a, source: {{persistentVolumeName: e}}}}}}\n",
                    user("1", "d")
                ),
                "? how many volumes node a takes: volumes of driver x.example are attached that no pod uses",
            ),
            (
                format!(
                    "{}{legacy}{}",
                    node("{name: ebs.csi.aws.com, allocatable: {count: 1}}"),
                    user("1", "l") + &volume("c", "ebs.csi.aws.com")
                ),
                TOO_MANY,
            ),
        ] {
            assert_eq!(said(&cluster(&text), POD), [expected], "{text}");
        }
        // What is in the pod itself.
        let inline = |id: &str| format!("{{spec: {{volumes: [{{name: v, awsElasticBlockStore: {{volumeID: {id}}}}}]}}}}");
        let one = node("{name: ebs.csi.aws.com, allocatable: {count: 1}}") + &format!("pod d/1 @a {}", inline("p"));
        assert_eq!(said(&cluster(&one), &inline("q")), [TOO_MANY]);
    }

    #[test]
    fn claims_that_are_not_bound_count_by_their_class() {
        let class = "class s {provisioner: x.example, volumeBindingMode: WaitForFirstConsumer}\n";
        let one = node("{name: x.example, allocatable: {count: 1}}");
        let ephemeral = "{spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: s}}}}]}}";
        assert_eq!(said(&cluster(&format!("{one}{class}")), ephemeral), ["fits"]);
        assert_eq!(
            said(&cluster(&format!("{one}{class}pod d/1 @a {ephemeral}")), ephemeral),
            [TOO_MANY]
        );
        let zero = node("{name: x.example, allocatable: {count: 0}}");
        assert_eq!(said(&cluster(&format!("{zero}{class}")), ephemeral), [TOO_MANY]);
        assert_eq!(
            said(&cluster(&format!("{zero}{class}claim d/c {{spec: {{storageClassName: s}}}}")), POD),
            [TOO_MANY]
        );
    }

    #[test]
    fn what_was_not_read_matters_only_where_there_is_a_limit() {
        let own = volume("c", "x.example");
        let limited = node("{name: x.example, allocatable: {count: 2}}") + &own;
        let unknown = |kind: &str| format!("? how many volumes node a takes: {kind} were not read");
        assert_eq!(
            said(&without(&[Kind::CsiNode], &format!("node a\n{own}")), POD),
            [unknown("csinodes.storage.k8s.io")]
        );
        assert_eq!(
            said(&without(&[Kind::VolumeAttachment], &limited), POD),
            [unknown("volumeattachments.storage.k8s.io")]
        );
        assert_eq!(
            said(&without(&[Kind::VolumeAttachment], &(node("{name: x.example}") + &own)), POD),
            ["fits"]
        );
        let others = format!("{limited}{}", user("1", "d"));
        assert_eq!(
            said(&without(&[Kind::PersistentVolumeClaim], &others), POD),
            [unknown("persistentvolumeclaims in namespace d")]
        );
        // Not a volume of a driver.
        let local = "node a\nclaim d/c {spec: {volumeName: c}, status: {phase: Bound}}\nvolume c {spec: {local: {path: /x}}}";
        assert_eq!(said(&without(&[Kind::CsiNode, Kind::VolumeAttachment], local), POD), ["fits"]);
    }
}
