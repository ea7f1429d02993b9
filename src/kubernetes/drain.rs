//! Which pods `kubectl drain` touches: its filters, in their order.
//!
//! Follows `k8s.io/kubectl/pkg/drain/filters.go` (`makeFilters`) and `k8s.io/kubectl/pkg/drain/drain.go`.

use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::objects::{LabelSelector, Pod};
use crate::cluster::snapshot::{NotRead, Snapshot};
use crate::kubernetes::selectors;

/// The flags of `kubectl drain` that change what it does.
#[derive(Clone, Debug, PartialEq)]
pub struct DrainFlags {
    /// Remove pods without a controller, and pods of a DaemonSet that is gone.
    pub force: bool,
    /// Leave DaemonSet pods in place instead of refusing the node.
    pub ignore_daemonsets: bool,
    /// Remove pods with emptyDir volumes instead of refusing the node.
    pub delete_emptydir_data: bool,
    /// Grace period in seconds; negative means each pod's own.
    pub grace_period: i64,
    /// When to give up, per node; `None` means never.
    pub timeout: Option<Duration>,
    /// Delete instead of evicting.
    pub disable_eviction: bool,
    /// Only pods with these labels.
    pub pod_selector: Option<LabelSelector>,
    /// Skip pods that have been terminating longer than this many seconds; 0 means never.
    pub skip_wait_for_delete_timeout: i64,
}

impl DrainFlags {
    /// The time that a pod has to end in: `--grace-period`, or its own.
    pub fn grace(&self, pod: &Pod) -> Duration {
        let own = pod.spec.termination_grace_period_seconds.unwrap_or(30);
        let seconds = if self.grace_period < 0 { own } else { self.grace_period };
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }
}

impl Default for DrainFlags {
    /// The procedure that the product assumes: `--ignore-daemonsets --delete-emptydir-data`.
    fn default() -> Self {
        Self {
            force: false,
            ignore_daemonsets: true,
            delete_emptydir_data: true,
            grace_period: -1,
            timeout: None,
            disable_eviction: false,
            pod_selector: None,
            skip_wait_for_delete_timeout: 0,
        }
    }
}

/// Why a pod is left in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Its labels are not among those that `--pod-selector` asks for.
    NotSelected,
    /// It has been terminating longer than `--skip-wait-for-delete-timeout`.
    Skipped,
    /// A DaemonSet controls it.
    DaemonSet,
    /// The kubelet runs it from a file.
    Mirror,
}

/// Why the node is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// A DaemonSet controls it, and `--ignore-daemonsets=false`.
    DaemonSet,
    /// Its DaemonSet is gone, and `--force` is not given.
    OrphanedDaemonSet,
    /// It has an emptyDir volume, and `--delete-emptydir-data=false`.
    LocalStorage,
    /// It has no controller, and `--force` is not given.
    Unmanaged,
}

impl Refusal {
    /// kubectl's own words for it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::DaemonSet => "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)",
            Self::OrphanedDaemonSet => "Pods whose DaemonSet is not found (use --force to override)",
            Self::LocalStorage => "Pods with local storage (use --delete-emptydir-data to override)",
            Self::Unmanaged => "Pods that declare no controller (use --force to override)",
        }
    }

    /// The flag that lets the drain go on.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::DaemonSet => "--ignore-daemonsets",
            Self::OrphanedDaemonSet | Self::Unmanaged => "--force",
            Self::LocalStorage => "--delete-emptydir-data",
        }
    }
}

/// What the filters say of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Filtered {
    /// It is removed.
    Remove,
    /// It is left in place.
    Keep(Kept),
    /// It ends the drain of its node before anything is evicted.
    Refuse(Refusal),
    /// Not decidable.
    Unknown(NotRead),
}

/// Applies kubectl's filters to a pod of the node; `now` is the time of the snapshot.
pub fn filter(snapshot: &Snapshot, pod: &Pod, flags: &DrainFlags, now: Option<Timestamp>) -> Filtered {
    if let Some(selector) = &flags.pod_selector
        && !selectors::matches(selector, &pod.metadata.labels)
    {
        return Filtered::Keep(Kept::NotSelected);
    }
    if skipped(pod, flags, now) {
        return Filtered::Keep(Kept::Skipped);
    }
    let controller = pod.metadata.controller();
    if let Some(owner) = controller
        && owner.kind == "DaemonSet"
        && owner.api_version == "apps/v1"
        && !pod.finished()
    {
        match snapshot.daemon_sets.get(&pod.metadata.namespace, &owner.name) {
            Err(missing) => return Filtered::Unknown(missing),
            Ok(None) if flags.force => {}
            Ok(None) => return Filtered::Refuse(Refusal::OrphanedDaemonSet),
            Ok(Some(_)) if flags.ignore_daemonsets => return Filtered::Keep(Kept::DaemonSet),
            Ok(Some(_)) => return Filtered::Refuse(Refusal::DaemonSet),
        }
    }
    if pod.mirror() {
        return Filtered::Keep(Kept::Mirror);
    }
    if pod.finished() {
        return Filtered::Remove;
    }
    if !flags.delete_emptydir_data && pod.spec.volumes.iter().any(|volume| volume.empty_dir.is_some()) {
        return Filtered::Refuse(Refusal::LocalStorage);
    }
    if controller.is_none() && !flags.force {
        return Filtered::Refuse(Refusal::Unmanaged);
    }
    Filtered::Remove
}

/// Whether `--skip-wait-for-delete-timeout` may let kubectl pass over the pod, which cannot be told without the time of the
/// snapshot.
pub fn undated(pod: &Pod, flags: &DrainFlags, now: Option<Timestamp>) -> bool {
    flags.skip_wait_for_delete_timeout > 0 && now.is_none() && pod.metadata.deletion_timestamp.0.is_some()
}

/// Whether `--skip-wait-for-delete-timeout` lets kubectl pass over the pod.
fn skipped(pod: &Pod, flags: &DrainFlags, now: Option<Timestamp>) -> bool {
    match (pod.metadata.deletion_timestamp.0, now) {
        (Some(deleted), Some(now)) if flags.skip_wait_for_delete_timeout > 0 => {
            now.as_second() - deleted.as_second() > flags.skip_wait_for_delete_timeout
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::testing;

    #[test]
    fn the_grace_period_is_the_flags_or_the_pods_own() {
        let mut pod = Pod::default();
        let grace = |pod: &Pod, flag: i64| {
            let flags = DrainFlags {
                grace_period: flag,
                ..DrainFlags::default()
            };
            flags.grace(pod).as_secs()
        };
        assert_eq!(grace(&pod, -1), 30);
        pod.spec.termination_grace_period_seconds = Some(600);
        assert_eq!(grace(&pod, -1), 600);
        assert_eq!(grace(&pod, 5), 5);
        assert_eq!(grace(&pod, 0), 0);
    }

    #[test]
    fn the_filters_in_their_order() {
        let cluster = testing::snapshot("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: here, namespace: n}}");
        let owner =
            |kind: &str, name: &str| format!("ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: {name}, controller: true}}]");
        let (here, gone, set) = (owner("DaemonSet", "here"), owner("DaemonSet", "gone"), owner("ReplicaSet", "set"));
        let default = DrainFlags::default;
        let force = DrainFlags { force: true, ..default() };
        let refusing = DrainFlags {
            ignore_daemonsets: false,
            delete_emptydir_data: false,
            ..default()
        };
        let labelled = DrainFlags {
            pod_selector: selectors::parse("a=b").ok(),
            ..default()
        };
        let empty_dir = "volumes: [{name: v, emptyDir: {}}]";
        for (metadata, spec, phase, flags, expected) in [
            (&set, "", "Running", &default(), Filtered::Remove),
            (&set, "", "Running", &labelled, Filtered::Keep(Kept::NotSelected)),
            (&format!("labels: {{a: b}}, {set}"), "", "Running", &labelled, Filtered::Remove),
            (&here, "", "Running", &default(), Filtered::Keep(Kept::DaemonSet)),
            (&here, "", "Running", &refusing, Filtered::Refuse(Refusal::DaemonSet)),
            (&here, "", "Failed", &default(), Filtered::Remove),
            (&gone, "", "Running", &default(), Filtered::Refuse(Refusal::OrphanedDaemonSet)),
            (&gone, "", "Running", &force, Filtered::Remove),
            (
                &"annotations: {kubernetes.io/config.mirror: x}".to_owned(),
                "",
                "Running",
                &default(),
                Filtered::Keep(Kept::Mirror),
            ),
            (&set, empty_dir, "Running", &default(), Filtered::Remove),
            (&set, empty_dir, "Running", &refusing, Filtered::Refuse(Refusal::LocalStorage)),
            (&set, "volumes: [{name: v}]", "Running", &refusing, Filtered::Remove),
            (&set, empty_dir, "Succeeded", &refusing, Filtered::Remove),
            (&String::new(), "", "Running", &default(), Filtered::Refuse(Refusal::Unmanaged)),
            (&String::new(), "", "Running", &force, Filtered::Remove),
            (&String::new(), "", "Succeeded", &default(), Filtered::Remove),
        ] {
            let pod = format!("{{metadata: {{namespace: n, {metadata}}}, spec: {{{spec}}}, status: {{phase: {phase}}}}}");
            let read: Pod = serde_saphyr::from_str(&pod).unwrap();
            assert_eq!(filter(&cluster, &read, flags, None), expected, "{pod} {flags:?}");
        }
    }

    #[test]
    fn a_pod_is_passed_over_once_it_has_been_terminating_for_longer() {
        let mut pod = Pod::default();
        pod.metadata.deletion_timestamp.0 = "2026-01-01T00:00:00Z".parse().ok();
        let kept = |now: &str, seconds: i64| {
            let flags = DrainFlags {
                force: true,
                skip_wait_for_delete_timeout: seconds,
                ..DrainFlags::default()
            };
            filter(&Snapshot::default(), &pod, &flags, now.parse().ok()) == Filtered::Keep(Kept::Skipped)
        };
        assert!(kept("2026-01-01T00:00:11Z", 10));
        assert!(!kept("2026-01-01T00:00:10Z", 10));
        assert!(!kept("2026-01-01T00:00:09Z", 10));
        assert!(!kept("2026-01-01T00:00:11Z", 0), "0 means never");
        assert!(!kept("unknown", 10));
    }

    #[test]
    fn the_words_of_a_refusal_name_the_flag() {
        for refusal in [
            Refusal::DaemonSet,
            Refusal::OrphanedDaemonSet,
            Refusal::LocalStorage,
            Refusal::Unmanaged,
        ] {
            let flag = refusal.flag();
            assert!(flag.starts_with("--") && refusal.words().contains(flag), "{refusal:?}");
        }
    }
}
