//! Finding codes: one table of names and meanings.

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($variant:ident $name:literal: $meaning:literal;)*) => {
        /// What a finding is called.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $meaning] $variant,)* }

        impl Code {
            /// Every code.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// Its name, as people write it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it means, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    WebhookUnserved "webhook-unserved": "An admission webhook has no ready endpoint, so the API server refuses or skips what it should admit.";
    WebhookDeadlock "webhook-deadlock": "An unserved webhook refuses the very pods that would serve it again.";
    WebhookBlocksEviction "webhook-blocks-eviction": "An unserved webhook is called for the evictions themselves.";
    ApiServiceUnserved "apiservice-unserved": "An aggregated API has no ready endpoint.";
    ConversionWebhookUnserved "conversion-webhook-unserved": "A custom resource's conversion webhook has no ready endpoint.";
    ServiceUnserved "service-unserved": "A Service has no ready endpoint.";
    HostPortCollision "host-port-collision": "A replacement lands where another pod binds the same host port, and crash-loops.";
    PdbBlocksDrain "pdb-blocks-drain": "A disruption budget refuses an eviction until somebody acts.";
    PdbOverlap "pdb-overlap": "Two disruption budgets select one pod, so its eviction ends with an error.";
    PdbStale "pdb-stale": "A disruption budget's status is older than its spec, so evictions are refused until it is computed again.";
    PdbStatusUncomputable "pdb-status-uncomputable": "The disruption controller cannot compute a budget's status, so it allows nothing.";
    EvictionBypassesBudget "eviction-bypasses-budget": "`--disable-eviction` removes pods that a disruption budget would hold back.";
    DrainRefused "drain-refused": "kubectl refuses to drain the node with these flags.";
    ReplacementPending "replacement-pending": "No node takes the replacement of an evicted pod.";
    ReplacementNotCreated "replacement-not-created": "The replacement of an evicted pod is not created.";
    ReplacementGated "replacement-gated": "A scheduling gate holds the replacement of an evicted pod.";
    ReplacementReturns "replacement-returns": "The replacement tolerates the cordon and may land on the drained node again.";
    ReplacementPreempts "replacement-preempts": "The replacement fits only where pods of a lower priority are deleted to make room for it.";
    ReplicaNeverReady "replica-never-ready": "No pod of the workload is Ready, so its replacement will not be either.";
    VolumePinned "volume-pinned": "A volume keeps the replacement from every other node.";
    VolumeDetachWait "volume-detach-wait": "A volume that one node at a time can use must leave the drained node before the replacement starts elsewhere.";
    LeaderMoves "leader-moves": "A leader on the node ends, and a standby takes over.";
    LeaderWithoutStandby "leader-without-standby": "A leader on the node ends, and nobody can take over.";
    SingleReplica "single-replica": "A workload has no ready replica for a while, or until the uncordon.";
    UnmanagedPod "unmanaged-pod": "A pod has no controller: nothing recreates it.";
    OrphanedPod "orphaned-pod": "A pod's controller is gone: nothing recreates it.";
    LocalData "local-data": "The data of an emptyDir volume is lost.";
    DaemonSetPods "daemonset-pods": "DaemonSet pods stay on the node.";
    OrphanedDaemonSetPod "orphaned-daemonset-pod": "A pod's DaemonSet is gone: kubectl removes it only with `--force`.";
    StuckTerminating "stuck-terminating": "A pod was Terminating before the drain, or may end later than --timeout waits, and the drain waits for it.";
    FinalizerHoldsPod "finalizer-holds-pod": "A finalizer keeps an evicted pod, and who removes it is absent, refused or not known.";
    NodeNotResponding "node-not-responding": "The node's kubelet does not answer, so its pods never end.";
    JobInterrupted "job-interrupted": "A Job's pod is evicted.";
    GpuCapacityShort "gpu-capacity-short": "No other node has the accelerators that the replacement asks for.";
    NodeAlreadyCordoned "node-already-cordoned": "The node was cordoned before the drain.";
    AnotherNodeCordoned "another-node-cordoned": "Another node is cordoned and takes no replacement.";
    InstallNotFound "install-not-found": "No GPUStack install was found, so only the general rules apply.";
    NotAssessed "not-assessed": "Something that could change the verdict was not read or cannot be decided.";
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl std::str::FromStr for Code {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name).ok_or(())
    }
}
