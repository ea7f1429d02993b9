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
}
