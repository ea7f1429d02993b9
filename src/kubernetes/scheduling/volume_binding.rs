//! Volumes that a node reaches, and claims that are bound once their pod has a node
//! (`pkg/scheduler/framework/plugins/volumebinding/binder.go`, FindPodVolumes;
//! `k8s.io/component-helpers/storage/volume/pv_helpers.go`, FindMatchingVolume).

use super::volumes::class_name_of_volume;
use super::{Decision, NodeState, Placement, first};
use crate::cluster::objects::{
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, ResourceList, StorageClass, TopologySelectorTerm,
};
use crate::cluster::snapshot::Snapshot;
use crate::kubernetes::quantity::Quantity;
use crate::kubernetes::selectors::{matches, matches_node_labels};

/// ErrReasonNodeConflict.
pub(super) const NODE_CONFLICT: &str = "node(s) didn't match PersistentVolume's node affinity";

/// ErrReasonBindConflict.
pub(super) const NOTHING_TO_BIND: &str = "node(s) didn't find available persistent volumes to bind";

/// The node for which a volume is being made (AnnSelectedNode).
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The provisioner of classes whose volumes nobody makes (NotSupportedProvisioner).
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// A claim that is bound once its pod has a node.
pub(super) struct Delayed<'a> {
    /// What people call it.
    name: String,
    claim: Option<&'a PersistentVolumeClaim>,
    spec: &'a PersistentVolumeClaimSpec,
    class: &'a StorageClass,
    /// Nodes of pods that use it already, so that by then it is bound.
    users: Vec<&'a str>,
}

impl<'a> Delayed<'a> {
    /// A claim that is there.
    pub(super) fn of_claim(placement: &Placement<'a>, claim: &'a PersistentVolumeClaim, class: &'a StorageClass) -> Self {
        let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
        let users = placement.nodes.iter().filter(|node| node.uses_claim(namespace, name));
        Self {
            name: format!("claim {name}"),
            claim: Some(claim),
            spec: &claim.spec,
            class,
            users: users.map(|node| node.name()).collect(),
        }
    }

    /// A claim that is made for the pod.
    pub(super) fn of_new(volume: &str, spec: &'a PersistentVolumeClaimSpec, class: &'a StorageClass) -> Self {
        Self {
            name: format!("the new claim of volume {volume}"),
            claim: None,
            spec,
            class,
            users: Vec::new(),
        }
    }

    /// Room wanted: smaller claims choose first.
    pub(super) fn size(&self) -> Option<Quantity> {
        storage(&self.spec.resources.requests)
    }

    fn filter(&self, snapshot: &'a Snapshot, node: &NodeState<'_>, chosen: &mut Vec<&'a str>) -> Decision {
        if !self.users.is_empty() {
            return match self.users.contains(&node.name()) {
                true => Decision::Fits,
                false => Decision::Unknown(format!("where the volume that is made for {} can be used", self.name)),
            };
        }
        match self.claim.and_then(|claim| claim.metadata.annotations.get(SELECTED_NODE)) {
            Some(selected) if selected != node.name() => return Decision::Refused(NOTHING_TO_BIND.to_owned()),
            Some(_) => return self.provision(snapshot, node),
            None => {}
        }
        match snapshot.volumes.all() {
            Ok(volumes) => match self.matching(volumes, node, chosen) {
                Some(volume) => {
                    chosen.push(&volume.metadata.name);
                    Decision::Fits
                }
                None => self.provision(snapshot, node),
            },
            Err(missing) => match self.provision(snapshot, node) {
                Decision::Refused(_) => Decision::Unknown(format!("whether {} finds a volume: {missing}", self.name)),
                decision => decision,
            },
        }
    }

    /// The volume kept for the claim, else the smallest one that suits it and that the node reaches.
    fn matching(&self, volumes: &'a [PersistentVolume], node: &NodeState<'_>, chosen: &[&str]) -> Option<&'a PersistentVolume> {
        let mode = |mode: &Option<String>| mode.as_deref() != Some("Block");
        let possible = |volume: &&PersistentVolume| {
            !chosen.contains(&volume.metadata.name.as_str())
                && (volume.spec.claim_ref.is_none() || self.kept(volume))
                && storage(&volume.spec.capacity) >= self.size()
                && mode(&volume.spec.volume_mode) == mode(&self.spec.volume_mode)
                && volume.spec.volume_attributes_class_name.as_deref().unwrap_or_default()
                    == self.spec.volume_attributes_class_name.as_deref().unwrap_or_default()
                && !volume.metadata.terminating()
        };
        let mut volumes = volumes
            .iter()
            .filter(|volume| class_name_of_volume(volume) == self.class.metadata.name)
            .filter(possible);
        let kept = volumes.clone().find(|volume| self.kept(volume));
        if kept.is_some() {
            return kept.filter(|volume| reaches(volume, node));
        }
        let mut smallest: Option<&PersistentVolume> = None;
        for volume in volumes.by_ref() {
            let suits = volume.status.phase == "Available"
                && self
                    .spec
                    .selector
                    .as_ref()
                    .is_none_or(|selector| matches(selector, &volume.metadata.labels))
                && self.spec.access_modes.iter().all(|mode| volume.spec.access_modes.contains(mode))
                && reaches(volume, node);
            if suits && smallest.is_none_or(|smallest| storage(&volume.spec.capacity) < storage(&smallest.spec.capacity)) {
                smallest = Some(volume);
            }
        }
        smallest
    }

    /// Whether a volume is kept for the claim (IsVolumeBoundToClaim).
    fn kept(&self, volume: &PersistentVolume) -> bool {
        match (&volume.spec.claim_ref, self.claim) {
            (Some(reference), Some(claim)) => {
                reference.name == claim.metadata.name
                    && reference.namespace == claim.metadata.namespace
                    && (reference.uid.is_empty() || reference.uid == claim.metadata.uid)
            }
            _ => false,
        }
    }

    /// Whether a volume can be made for the node (checkVolumeProvisions). That its provisioner runs is supposed.
    fn provision(&self, snapshot: &Snapshot, node: &NodeState<'_>) -> Decision {
        let provisioner = self.class.provisioner.as_str();
        if provisioner.is_empty() || provisioner == NO_PROVISIONER || !allowed(&self.class.allowed_topologies, node) {
            return Decision::Refused(NOTHING_TO_BIND.to_owned());
        }
        match snapshot.csi_drivers.get("", provisioner) {
            Ok(Some(driver)) if driver.spec.storage_capacity && self.spec.resources.requests.contains_key("storage") => {
                Decision::Unknown(format!(
                    "whether driver {provisioner} has room for {}: its storage capacity is not modelled",
                    self.name
                ))
            }
            Ok(_) => Decision::Fits,
            Err(missing) => Decision::Unknown(format!("whether driver {provisioner} has room for {}: {missing}", self.name)),
        }
    }
}

fn storage(resources: &ResourceList) -> Option<Quantity> {
    resources.get("storage").and_then(|text| text.try_into().ok())
}

/// Whether a node reaches a volume (CheckNodeAffinity): by its labels alone.
pub(super) fn reaches(volume: &PersistentVolume, node: &NodeState<'_>) -> bool {
    let required = volume.spec.node_affinity.required.as_ref();
    required.is_none_or(|required| matches_node_labels(required, "", &node.node.metadata.labels))
}

/// Whether a class makes volumes for a node (`pkg/apis/core/v1/helper/helpers.go`, MatchTopologySelectorTerms).
fn allowed(terms: &[TopologySelectorTerm], node: &NodeState<'_>) -> bool {
    let labels = &node.node.metadata.labels;
    terms.is_empty()
        || terms.iter().any(|term| {
            !term.match_label_expressions.is_empty()
                && term
                    .match_label_expressions
                    .iter()
                    .all(|requirement| labels.get(&requirement.key).is_some_and(|value| requirement.values.contains(value)))
        })
}

/// Every bound volume must be reached from the node, and every other claim find a volume or have one made for it.
pub(super) fn filter<'a>(snapshot: &'a Snapshot, bound: &[&PersistentVolume], delayed: &[Delayed<'a>], node: &NodeState<'_>) -> Decision {
    if bound.iter().any(|volume| !reaches(volume, node)) {
        return Decision::Refused(NODE_CONFLICT.to_owned());
    }
    let mut chosen = Vec::new();
    first(delayed.iter().map(|delayed| delayed.filter(snapshot, node, &mut chosen)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, pod, said, without};
    use crate::cluster::kinds::Kind;

    const POD: &str = "{spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}";
    const AFFINITY: &str = "node(s) didn't match PersistentVolume's node affinity";
    const NOTHING: &str = "node(s) didn't find available persistent volumes to bind";
    const UNBOUND: &str = "pod has unbound immediate PersistentVolumeClaims";

    fn zoned(more: &str) -> String {
        format!("node a {{metadata: {{labels: {{zone: x}}}}}}\nnode b {{metadata: {{labels: {{zone: y}}}}}}\n{more}")
    }

    fn required(terms: &str) -> String {
        format!("nodeAffinity: {{required: {{nodeSelectorTerms: [{terms}]}}}}")
    }

    const IN_X: &str = "{matchExpressions: [{key: zone, operator: In, values: [x]}]}";

    #[test]
    fn a_claim_that_cannot_be_used_refuses_every_node() {
        let bound = "spec: {volumeName: p}, status: {phase: Bound}";
        for (objects, words) in [
            ("", "persistentvolumeclaim \"c\" not found"),
            ("claim other/c", "persistentvolumeclaim \"c\" not found"),
            (
                "claim d/c {spec: {volumeName: p}, status: {phase: Lost}}",
                "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"p\"",
            ),
            (
                &format!("claim d/c {{metadata: {{deletionTimestamp: 2026-01-01T00:00:00Z}}, {bound}}}\nvolume p"),
                "persistentvolumeclaim \"c\" is being deleted",
            ),
            (&format!("claim d/c {{{bound}}}"), "persistentvolume \"p\" not found"),
            (&format!("claim d/c {{{bound}}}\nvolume p"), "fits"),
            ("claim d/c", UNBOUND),
            ("claim d/c {spec: {storageClassName: gone}}", UNBOUND),
            ("claim d/c {spec: {storageClassName: now}}\nclass now {provisioner: x}", UNBOUND),
            (
                "claim d/c {spec: {storageClassName: later, volumeName: p}}\nvolume p\nclass later {provisioner: x, volumeBindingMode: WaitForFirstConsumer}",
                UNBOUND,
            ),
        ] {
            let snapshot = cluster(&format!("node a\nnode b {{spec: {{unschedulable: true}}}}\n{objects}"));
            let last = if words == "fits" { "node(s) were unschedulable" } else { words };
            assert_eq!(said(&snapshot, POD), [words, last], "{objects}");
        }
    }

    #[test]
    fn a_bound_volume_is_reached_by_the_labels_of_a_node() {
        for (affinity, expected) in [
            (String::new(), ["fits", "fits"]),
            (required(IN_X), ["fits", AFFINITY]),
            (required(""), [AFFINITY, AFFINITY]),
            (
                required("{matchExpressions: [{key: host, operator: In, values: [b]}]}"),
                [AFFINITY, "fits"],
            ),
            (
                required("{matchFields: [{key: metadata.name, operator: In, values: [b]}]}"),
                [AFFINITY, AFFINITY],
            ),
        ] {
            let text = zoned(&format!(
                "claim d/c {{metadata: {{annotations: {{pv.kubernetes.io/bind-completed: 'yes'}}}}, spec: {{volumeName: p}}}}\nvolume p {{spec: {{{affinity}}}}}"
            ));
            assert_eq!(said(&cluster(&text), POD), expected, "{affinity}");
        }
    }

    #[test]
    fn a_claim_that_waits_for_its_pod() {
        let in_y = "allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [y]}]}]";
        let claim = "claim d/c {spec: {storageClassName: s, resources: {requests: {storage: 2Gi}}, accessModes: [ReadWriteOnce]}}";
        let class = |more: &str| format!("{claim}\nclass s {{volumeBindingMode: WaitForFirstConsumer, {more}}}");
        let volume = |more: &str| {
            let spec = format!(
                "storageClassName: s, capacity: {{storage: 2Gi}}, accessModes: [ReadWriteOnce], {}",
                required(IN_X)
            );
            format!(
                "{}\nvolume p {{spec: {{{spec}{more}}}, status: {{phase: Available}}}}",
                class("provisioner: kubernetes.io/no-provisioner")
            )
        };
        for (objects, expected) in [
            (class("provisioner: p.example"), ["fits", "fits"]),
            (class("provisioner: ''"), [NOTHING, NOTHING]),
            (class("provisioner: kubernetes.io/no-provisioner"), [NOTHING, NOTHING]),
            (class(&format!("provisioner: p.example, {in_y}")), [NOTHING, "fits"]),
            (class("provisioner: p.example, allowedTopologies: [{}]"), [NOTHING, NOTHING]),
            (
                class("provisioner: p.example")
                    .replace("{spec:", "{metadata: {annotations: {volume.kubernetes.io/selected-node: b}}, spec:"),
                [NOTHING, "fits"],
            ),
            (
                format!(
                    "{}\ndriver p.example {{spec: {{storageCapacity: true}}}}",
                    class("provisioner: p.example")
                ),
                ["? whether driver p.example has room for claim c: its storage capacity is not modelled"; 2],
            ),
            (volume(""), ["fits", NOTHING]),
            (volume(", volumeMode: Filesystem"), ["fits", NOTHING]),
            (volume(", volumeMode: Block"), [NOTHING, NOTHING]),
            (volume(", claimRef: {namespace: d, name: c}"), ["fits", NOTHING]),
            (volume(", claimRef: {namespace: d, name: c, uid: other}"), [NOTHING, NOTHING]),
            (volume(", claimRef: {namespace: d, name: e}"), [NOTHING, NOTHING]),
            (volume(", volumeAttributesClassName: gold"), [NOTHING, NOTHING]),
            (
                volume("").replace(
                    "{storage: 2Gi}, accessModes: [ReadWriteOnce], nodeA",
                    "{storage: 1Gi}, accessModes: [ReadWriteOnce], nodeA",
                ),
                [NOTHING, NOTHING],
            ),
            (volume("").replace("phase: Available", "phase: Released"), [NOTHING, NOTHING]),
            (
                volume("").replace("accessModes: [ReadWriteOnce]}", "accessModes: [ReadWriteMany]}"),
                [NOTHING, NOTHING],
            ),
            (
                volume("").replace(
                    "{spec: {storageClassName: s, resources",
                    "{spec: {selector: {matchLabels: {k: v}}, storageClassName: s, resources",
                ),
                [NOTHING, NOTHING],
            ),
        ] {
            assert_eq!(said(&cluster(&zoned(&objects)), POD), expected, "{objects}");
        }
    }

    #[test]
    fn two_claims_of_a_pod_do_not_share_a_volume() {
        let claims = "claim d/c {spec: {storageClassName: s}}\nclaim d/e {spec: {storageClassName: s}}\nclass s {provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}";
        let two = "{spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}, {name: w, persistentVolumeClaim: {claimName: e}}]}}";
        let volume = |name: &str| format!("\nvolume {name} {{spec: {{storageClassName: s}}, status: {{phase: Available}}}}");
        assert_eq!(said(&cluster(&format!("node a\n{claims}{}", volume("p"))), two), [NOTHING]);
        assert_eq!(
            said(&cluster(&format!("node a\n{claims}{}{}", volume("p"), volume("q"))), two),
            ["fits"]
        );
    }

    #[test]
    fn a_claim_that_another_pod_has_taken_somewhere_is_bound_by_then() {
        let text = "claim d/c {spec: {storageClassName: s}}\nclass s {provisioner: p.example, volumeBindingMode: WaitForFirstConsumer}\npod d/1 @a {spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}";
        let expected = ["fits", "? where the volume that is made for claim c can be used"];
        assert_eq!(said(&cluster(&zoned(text)), POD), expected);
    }

    #[test]
    fn a_claim_of_its_own_is_made_anew() {
        let ephemeral =
            |spec: &str| format!("{{spec: {{volumes: [{{name: v, ephemeral: {{volumeClaimTemplate: {{spec: {{{spec}}}}}}}}}]}}}}");
        let classes = "class later {provisioner: p.example, volumeBindingMode: WaitForFirstConsumer, allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [y]}]}]}\nclass now {provisioner: p.example}";
        let snapshot = cluster(&zoned(classes));
        let unknown = "? where volume v can be used: its new claim is bound at once, to a volume that does not exist yet";
        assert_eq!(said(&snapshot, &ephemeral("storageClassName: later")), [NOTHING, "fits"]);
        assert_eq!(said(&snapshot, &ephemeral("storageClassName: now")), [unknown; 2]);
        assert_eq!(said(&snapshot, &ephemeral("")), [unknown; 2]);
        let default = classes.replace(
            "class later {",
            "class later {metadata: {annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}, ",
        );
        assert_eq!(said(&cluster(&zoned(&default)), &ephemeral("")), [NOTHING, "fits"]);
        // A StatefulSet's claim is the old one where it is there.
        let named = ephemeral("storageClassName: later").replace("{name: v,", "{name: v, persistentVolumeClaim: {claimName: v-0},");
        assert_eq!(said(&snapshot, &named), [NOTHING, "fits"]);
        let there = format!(
            "{classes}\nclaim d/v-0 {{spec: {{volumeName: p}}, status: {{phase: Bound}}}}\nvolume p {{spec: {{{}}}}}",
            required(IN_X)
        );
        assert_eq!(said(&cluster(&zoned(&there)), &named), ["fits", AFFINITY]);
        let going = there.replace(
            "claim d/v-0 {",
            "claim d/v-0 {metadata: {deletionTimestamp: 2026-01-01T00:00:00Z}, ",
        );
        assert_eq!(
            said(&cluster(&zoned(&going)), &named),
            ["? when claim v-0, which is being deleted, is gone and made anew"; 2]
        );
    }

    #[test]
    fn a_pod_that_waits_already_has_its_own_claim() {
        let spec = "spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: now}}}}]}";
        let text = zoned(&format!(
            "class now {{provisioner: x}}\npod d/w {{{spec}}}\nclaim d/w-v {{spec: {{volumeName: p}}, status: {{phase: Bound}}}}\nvolume p {{spec: {{{}}}}}",
            required(IN_X)
        ));
        let snapshot = cluster(&text);
        let waiting = snapshot.pods.find("d", "w").unwrap();
        let placement = super::Placement::new(&snapshot);
        let decide = |pod| -> Vec<String> {
            super::super::decide(&placement, &super::super::testing::incoming(pod))
                .into_iter()
                .map(super::super::testing::words)
                .collect()
        };
        assert_eq!(decide(waiting), ["fits", AFFINITY]);
        assert!(decide(&pod(&format!("{{{spec}}}")))[0].starts_with("? where volume v can be used: its new claim"));
    }

    #[test]
    fn what_was_not_read_is_unknown_for_those_who_use_it() {
        let bound = "node a\nclaim d/c {spec: {volumeName: p}, status: {phase: Bound}}";
        let unbound =
            "node a\nclaim d/c {spec: {storageClassName: s}}\nclass s {provisioner: p.example, volumeBindingMode: WaitForFirstConsumer}";
        for (text, kind, expected) in [
            (bound, Kind::PersistentVolumeClaim, "fits"),
            (
                "node a",
                Kind::PersistentVolumeClaim,
                "? where volume v can be used: persistentvolumeclaims in namespace d were not read",
            ),
            (
                bound,
                Kind::PersistentVolume,
                "? where volume v can be used: persistentvolumes were not read",
            ),
            (
                "node a\nclaim d/c {spec: {storageClassName: s}}",
                Kind::StorageClass,
                "? when claim c is bound: storageclasses.storage.k8s.io were not read",
            ),
            (unbound, Kind::PersistentVolume, "fits"),
            (
                unbound,
                Kind::CsiDriver,
                "? whether driver p.example has room for claim c: csidrivers.storage.k8s.io were not read",
            ),
        ] {
            let snapshot = match (text, expected) {
                (_, "fits") if kind == Kind::PersistentVolumeClaim => without(&[kind], &format!("{text}\nvolume p")),
                _ => without(&[kind], text),
            };
            assert_eq!(said(&snapshot, POD), [expected], "{text} without {kind}");
            assert_eq!(said(&snapshot, "{}"), ["fits"]);
        }
    }
}
