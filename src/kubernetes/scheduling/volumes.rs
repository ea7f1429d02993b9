//! The volumes of a pod that is to be placed, and what their claims are bound to: what the scheduler's volume plugins
//! look up before they look at a node (`pkg/scheduler/framework/plugins/{volumerestrictions,volumebinding,volumezone}`,
//! PreFilter). What they then say of each node is in a file for each.

use super::volume_binding::{self, Delayed};
use super::volume_limits::{self, Limits, driver};
use super::volume_restrictions::{self, Restrictions};
use super::{Decision, Incoming, NodeState, Placement, first, volume_zone};
use crate::cluster::objects::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, Pod, StorageClass, Volume};
use crate::cluster::snapshot::{NotRead, Snapshot};

/// A claim of this class name, on old objects (`k8s.io/api/core/v1/types.go`, BetaStorageClassAnnotation).
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The class of claims that name none (`pkg/volume/util/storageclass.go`).
const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// The binding of a claim is complete (`k8s.io/component-helpers/storage/volume/pv_helpers.go`, AnnBindCompleted).
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

const UNBOUND: &str = "pod has unbound immediate PersistentVolumeClaims";

/// How the scheduler's words about volumes begin.
const WORDS: [&str; 9] = [
    UNBOUND,
    "persistentvolumeclaim ",
    "persistentvolume ",
    volume_binding::NODE_CONFLICT,
    volume_binding::NOTHING_TO_BIND,
    volume_restrictions::DISK_CONFLICT,
    volume_restrictions::IN_USE,
    volume_limits::TOO_MANY,
    volume_zone::ZONE_CONFLICT,
];

/// Whether a refusal is for a volume.
pub fn refuses_volume(reason: &str) -> bool {
    WORDS.iter().any(|words| reason.starts_with(words))
}

/// Whether a refusal for a volume goes when pods on the node do (`Unschedulable`, not `UnschedulableAndUnresolvable`).
pub fn refuses_volume_in_use(reason: &str) -> bool {
    [
        volume_restrictions::DISK_CONFLICT,
        volume_restrictions::IN_USE,
        volume_limits::TOO_MANY,
    ]
    .contains(&reason)
}

/// The class that a claim names (GetPersistentVolumeClaimClass).
pub(super) fn class_name(claim: &PersistentVolumeClaim) -> &str {
    let own = claim.spec.storage_class_name.as_deref();
    claim
        .metadata
        .annotations
        .get(CLASS)
        .map(String::as_str)
        .or(own)
        .unwrap_or_default()
}

/// The class that a volume names (GetPersistentVolumeClass).
pub(super) fn class_name_of_volume(volume: &PersistentVolume) -> &str {
    volume.metadata.annotations.get(CLASS).unwrap_or(&volume.spec.storage_class_name)
}

/// The class of a claim that is still to be made: the newest default one where it names none
/// (`pkg/volume/util/storageclass.go`, GetDefaultClass).
pub(super) fn class_of_new<'a>(snapshot: &'a Snapshot, spec: &PersistentVolumeClaimSpec) -> Result<Option<&'a StorageClass>, NotRead> {
    if let Some(name) = &spec.storage_class_name {
        return snapshot.storage_classes.get("", name);
    }
    let default = |class: &&StorageClass| {
        let annotations = &class.metadata.annotations;
        DEFAULT_CLASS
            .iter()
            .any(|key| annotations.get(*key).is_some_and(|value| value == "true"))
    };
    let classes = snapshot.storage_classes.all()?.iter().filter(default);
    Ok(classes.rev().max_by_key(|class| class.metadata.creation_timestamp))
}

/// Whether a claim's binding is complete (isPVCFullyBound); files may lack the annotation, but not the phase.
pub(super) fn bound(claim: &PersistentVolumeClaim) -> bool {
    !claim.spec.volume_name.is_empty() && (claim.metadata.annotations.contains_key(BIND_COMPLETED) || claim.status.phase == "Bound")
}

/// The pod that waits for a node, if it is one, and not a template (which has no name yet).
pub(super) fn waiting<'a>(snapshot: &'a Snapshot, incoming: &Incoming<'a>) -> Option<&'a Pod> {
    let pods = snapshot.pods.seen().iter();
    pods.filter(|pod| pod.node().is_none())
        .find(|pod| std::ptr::eq(&raw const *pod.spec, std::ptr::from_ref(incoming.spec)))
}

/// What a volume goes by.
enum Source<'a> {
    /// A claim that is there.
    Claim(&'a PersistentVolumeClaim),
    /// A claim that is made for the pod.
    Made(&'a PersistentVolumeClaimSpec),
    /// A claim that is not there; in the scheduler's words.
    Missing(String),
    /// A claim of which something is not known.
    Unknown(String),
}

impl<'a> Source<'a> {
    /// `None` for a volume without a claim.
    fn of(snapshot: &'a Snapshot, incoming: &Incoming<'a>, volume: &'a Volume) -> Option<Self> {
        let template = volume.ephemeral.as_ref().map(|ephemeral| &ephemeral.volume_claim_template.spec);
        let name = match (&volume.persistent_volume_claim, template) {
            (Some(claim), _) => claim.claim_name.clone(),
            (None, Some(template)) => match waiting(snapshot, incoming) {
                Some(pod) => format!("{}-{}", pod.metadata.name, volume.name),
                None => return Some(Self::Made(template)),
            },
            (None, None) => return None,
        };
        Some(match (snapshot.claims.get(incoming.namespace, &name), template) {
            (Err(missing), _) => Self::Unknown(format!("where volume {} can be used: {missing}", volume.name)),
            (Ok(None), Some(template)) => Self::Made(template),
            (Ok(None), None) => Self::Missing(format!("persistentvolumeclaim {name:?} not found")),
            // Its StatefulSet waits until it is gone (`pkg/controller/statefulset/stateful_pod_control.go`).
            (Ok(Some(claim)), Some(_)) if claim.metadata.terminating() => {
                Self::Unknown(format!("when claim {name}, which is being deleted, is gone and made anew"))
            }
            (Ok(Some(claim)), _) => Self::Claim(claim),
        })
    }
}

/// The volumes of a pod that is to be placed.
pub(super) struct PodVolumes<'a> {
    snapshot: &'a Snapshot,
    /// What is said before a node is looked at.
    before: Decision,
    bound: Vec<&'a PersistentVolume>,
    delayed: Vec<Delayed<'a>>,
    restrictions: Restrictions<'a>,
    limits: Limits<'a>,
}

impl<'a> PodVolumes<'a> {
    /// Looks the claims up.
    pub(super) fn new(placement: &Placement<'a>, incoming: &Incoming<'a>) -> Self {
        let snapshot = placement.snapshot;
        let mut volumes = Self {
            snapshot,
            before: Decision::Fits,
            bound: Vec::new(),
            delayed: Vec::new(),
            restrictions: Restrictions::new(incoming),
            limits: Limits::new(snapshot, incoming),
        };
        let mut said = Vec::new();
        for volume in &incoming.spec.volumes {
            said.push(match Source::of(snapshot, incoming, volume) {
                None => continue,
                Some(Source::Missing(words)) => Decision::Refused(words),
                Some(Source::Unknown(why)) => Decision::Unknown(why),
                Some(Source::Made(spec)) => volumes.made(volume, spec),
                Some(Source::Claim(claim)) => {
                    volumes.restrictions.claim(placement, claim);
                    volumes.claim(placement, volume, claim)
                }
            });
        }
        volumes.before = first(said.into_iter());
        volumes.delayed.sort_by_key(Delayed::size);
        volumes
    }

    fn claim(&mut self, placement: &Placement<'a>, volume: &'a Volume, claim: &'a PersistentVolumeClaim) -> Decision {
        let name = &claim.metadata.name;
        let wanted = &claim.spec.volume_name;
        if claim.status.phase == "Lost" {
            return Decision::Refused(format!(
                "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {wanted:?}"
            ));
        }
        if claim.metadata.terminating() {
            return Decision::Refused(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        if bound(claim) {
            match self.snapshot.volumes.get("", wanted) {
                Ok(Some(volume)) => self.bound.push(volume),
                Ok(None) => return Decision::Refused(format!("persistentvolume {wanted:?} not found")),
                Err(missing) => return Decision::Unknown(format!("where volume {} can be used: {missing}", volume.name)),
            }
            return Decision::Fits;
        }
        let class = match class_name(claim) {
            class if class.is_empty() || !wanted.is_empty() => None,
            class => match self.snapshot.storage_classes.get("", class) {
                Ok(class) => class,
                Err(missing) => return Decision::Unknown(format!("when claim {name} is bound: {missing}")),
            },
        };
        match class.filter(|class| class.volume_binding_mode == "WaitForFirstConsumer") {
            None => Decision::Refused(UNBOUND.to_owned()),
            Some(class) => {
                self.delayed.push(Delayed::of_claim(placement, claim, class));
                Decision::Fits
            }
        }
    }

    fn made(&mut self, volume: &'a Volume, spec: &'a PersistentVolumeClaimSpec) -> Decision {
        match class_of_new(self.snapshot, spec) {
            Err(missing) => Decision::Unknown(format!("where volume {} can be made: {missing}", volume.name)),
            Ok(Some(class)) if class.volume_binding_mode == "WaitForFirstConsumer" => {
                self.delayed.push(Delayed::of_new(&volume.name, spec, class));
                Decision::Fits
            }
            Ok(_) => Decision::Unknown(format!(
                "where volume {} can be used: its new claim is bound at once, to a volume that does not exist yet",
                volume.name
            )),
        }
    }

    /// What is said before a node is looked at, so of every node.
    pub(super) fn before(&self) -> Decision {
        self.before.clone()
    }

    /// Whether they say nothing of any node.
    pub(super) fn passes_all(&self) -> bool {
        self.bound.is_empty() && self.delayed.is_empty() && self.restrictions.passes_all() && !self.limits.any()
    }

    /// What the plugins say of a node, in their order.
    pub(super) fn filter(&self, node: &NodeState<'a>) -> Decision {
        let plugins: [&dyn Fn() -> Decision; 4] = [
            &|| self.restrictions.filter(node),
            &|| self.limits.filter(node),
            &|| volume_binding::filter(self.snapshot, &self.bound, &self.delayed, node),
            &|| volume_zone::filter(&self.bound, node),
        ];
        first(plugins.iter().map(|plugin| plugin()))
    }
}

/// A claim's volume that is attached to one node at a time.
#[derive(Clone, Copy, Debug)]
pub struct SingleNode<'a> {
    /// The volume.
    pub volume: &'a PersistentVolume,
    /// Its driver.
    pub driver: &'a str,
    /// Whether it is certain that the driver attaches volumes to nodes (`attachRequired`).
    pub certain: bool,
}

/// The volume of a claim, if it has to leave one node before another one can use it
/// (`pkg/controller/volume/attachdetach/reconciler/reconciler.go`, Multi-Attach). A volume that only its own node
/// reaches is none, nor is one of a driver that attaches nothing.
pub fn single_node<'a>(snapshot: &'a Snapshot, claim: &PersistentVolumeClaim) -> Option<SingleNode<'a>> {
    let shared = |mode: &String| mode == "ReadWriteMany" || mode == "ReadOnlyMany";
    let volume = snapshot.volumes.find("", &claim.spec.volume_name)?;
    let driver = driver(volume)?;
    if claim.spec.access_modes.iter().chain(&volume.spec.access_modes).any(shared) {
        return None;
    }
    let certain = match snapshot.csi_drivers.get("", driver) {
        Ok(Some(found)) if found.spec.attach_required == Some(false) => return None,
        Ok(_) => true,
        Err(_) => false,
    };
    Some(SingleNode { volume, driver, certain })
}

/// The lists of storage that a pod's placement hangs on and that were not read.
pub fn storage_unread(placement: &Placement<'_>, incoming: &Incoming<'_>) -> Vec<NotRead> {
    let snapshot = placement.snapshot;
    let volumes = PodVolumes::new(placement, incoming);
    let mut unread = Vec::new();
    let claims = |volume: &Volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some();
    if incoming.spec.volumes.iter().any(claims) {
        unread.extend(snapshot.claims.in_namespace(incoming.namespace).err());
        unread.extend(snapshot.volumes.all().err());
    }
    if !volumes.delayed.is_empty() || matches!(volumes.before, Decision::Unknown(_)) {
        unread.extend(snapshot.storage_classes.all().err());
    }
    if !volumes.delayed.is_empty() {
        unread.extend(snapshot.csi_drivers.all().err());
    }
    if volumes.limits.any() {
        unread.extend(snapshot.csi_nodes.all().err());
        unread.extend(snapshot.volume_attachments.all().err());
    }
    unread
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, incoming, pod, without};
    use super::*;
    use crate::cluster::kinds::Kind;

    fn claim(modes: &str, volume: &str) -> String {
        format!(
            "node a\nclaim d/c {{spec: {{volumeName: p, accessModes: {modes}}}, status: {{phase: Bound}}}}\nvolume p {{spec: {{accessModes: {volume}, csi: {{driver: x, volumeHandle: h}}}}}}\n"
        )
    }

    #[test]
    fn volumes_that_must_leave_a_node_first() {
        let once = "[ReadWriteOnce]";
        let said = |read: &Snapshot| single_node(read, read.claims.find("d", "c").unwrap()).map(|single| single.certain);
        for (modes, volume, driver, certain) in [
            (once, once, "", Some(true)),
            (once, once, "driver x {spec: {attachRequired: true}}", Some(true)),
            (once, once, "driver x {spec: {attachRequired: false}}", None),
            ("[ReadWriteMany]", once, "", None),
            ("[ReadOnlyMany]", once, "", None),
            (once, "[ReadWriteOnce, ReadOnlyMany]", "", None),
        ] {
            assert_eq!(
                said(&cluster(&(claim(modes, volume) + driver))),
                certain,
                "{modes} {volume} {driver}"
            );
        }
        assert_eq!(said(&without(&[Kind::CsiDriver], &claim(once, once))), Some(false));
    }

    #[test]
    fn lists_of_storage_that_a_placement_hangs_on() {
        use Kind::{CsiDriver, CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment};
        const ALL: [Kind; 6] = [
            PersistentVolumeClaim,
            PersistentVolume,
            StorageClass,
            CsiDriver,
            CsiNode,
            VolumeAttachment,
        ];
        let bound = claim("[ReadWriteOnce]", "[ReadWriteOnce]");
        let waits = "node a\nclass w {provisioner: x, volumeBindingMode: WaitForFirstConsumer}\nclaim d/c {spec: {storageClassName: w, accessModes: [ReadWriteOnce]}}";
        let (empty, claims) = ("emptyDir: {}", "persistentVolumeClaim: {claimName: c}");
        let made = "ephemeral: {volumeClaimTemplate: {spec: {storageClassName: w, accessModes: [ReadWriteOnce]}}}";
        for (text, volume, unread, named) in [
            (bound.as_str(), empty, &ALL[..], &[][..]),
            (
                &bound,
                claims,
                &ALL,
                &[PersistentVolumeClaim, PersistentVolume, CsiNode, VolumeAttachment],
            ),
            (
                "node a",
                claims,
                &[PersistentVolumeClaim, StorageClass],
                &[PersistentVolumeClaim, StorageClass],
            ),
            (&bound, claims, &[StorageClass, CsiDriver], &[]),
            (&bound, claims, &[PersistentVolume], &[PersistentVolume]),
            (&bound, claims, &[CsiNode, VolumeAttachment], &[CsiNode, VolumeAttachment]),
            (waits, claims, &[StorageClass, CsiDriver], &[StorageClass, CsiDriver]),
            (waits, claims, &[CsiDriver, CsiNode], &[CsiDriver, CsiNode]),
            (waits, made, &[PersistentVolume], &[PersistentVolume]),
        ] {
            let read = without(unread, text);
            let pod = pod(&format!("{{metadata: {{name: z}}, spec: {{volumes: [{{name: v, {volume}}}]}}}}"));
            let found: Vec<Kind> = storage_unread(&Placement::new(&read), &incoming(&pod))
                .iter()
                .map(|missing| missing.kind)
                .collect();
            assert_eq!(found, named, "{text} | {volume} | {unread:?}");
        }
    }
}
