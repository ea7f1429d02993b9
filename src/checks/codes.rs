//! Finding codes: one table of names and meanings.

use serde::{Serialize, Serializer};

use crate::cluster::connect::closest;

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

            /// Its page: a line of severities, then Markdown. A code without a page does not compile.
            const fn file(self) -> &'static str {
                match self { $(Self::$variant => include_str!(concat!("explain/", $name, ".md")),)* }
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
    PdbMissing "pdb-missing": "No disruption budget guards a workload of several replicas.";
    PdbSelectsNothing "pdb-selects-nothing": "A disruption budget's selector matches no pod and no workload.";
    PdbSelectsOthers "pdb-selects-others": "A disruption budget counts the pods of several workloads together.";
    PdbNeverAllows "pdb-never-allows": "A disruption budget allows no eviction, however many of its pods are Ready.";
    HpaBudget "hpa-budget": "A disruption budget allows an eviction only while an autoscaler runs more than its fewest replicas.";
    ReplicasNotReady "replicas-not-ready": "Fewer replicas of a workload are Ready than are wanted.";
    ReplicasShareNode "replicas-share-node": "Replicas share a node though others could hold them, so that one node's loss takes several.";
    ReplicasShareZone "replicas-share-zone": "All replicas are in one zone, though nodes of another could hold them.";
    BelowHaReplicas "below-ha-replicas": "A component runs one replica: no standby takes over when its node is lost.";
    TooFewNodes "too-few-nodes": "Fewer nodes can hold replicas of a component than there are replicas.";
    SpreadWithoutSelector "spread-without-selector": "A topology spread constraint has no label selector, so it counts no pod and spreads nothing.";
    SpreadNotEnforced "spread-not-enforced": "Nothing keeps the replicas of a component on different nodes for certain.";
    SpreadSkewed "spread-skewed": "Replicas are spread less evenly than their constraint allows for new ones.";
    StrategyRecreate "strategy-recreate": "A rollout stops every replica before the first new one starts.";
    SurgePortCollision "surge-port-collision": "A rollout starts a pod where another has the host port that it needs.";
    RolloutStalls "rollout-stalls": "No node takes the first new pod of a rollout while the old ones are there, and none of them goes before it is Ready.";
    ToleratesEverything "tolerates-everything": "A component tolerates every taint, a cordon's and a dead node's too.";
    TaintNotTolerated "taint-not-tolerated": "A component does not tolerate the taint of a node that it is on or waits for.";
    WebhookSingleEndpoint "webhook-single-endpoint": "One pod alone answers a webhook without which requests are refused.";
    LeaderElectionDisabled "leader-election-disabled": "Several replicas of a component run without electing a leader.";
    ProbeMissing "probe-missing": "A component has no readiness probe, so Ready says only that its containers run.";
    LeaseMissing "lease-missing": "The lease of an election that should take place does not exist.";
    LeaseStale "lease-stale": "A lease ran out, and nobody renews it or takes it over.";
    LeaseHolderGone "lease-holder-gone": "A lease is held by nobody that runs.";
    NotAssessed "not-assessed": "Something that could change the verdict was not read or cannot be decided.";
}

/// What a page begins with.
const SEVERITIES: &str = "Severity: ";

impl Code {
    /// The severities that findings with it can have, the usual one first.
    pub fn severities(self) -> impl Iterator<Item = &'static str> {
        let line = self.file().lines().next().unwrap_or_default();
        line.strip_prefix(SEVERITIES).unwrap_or_default().split(", ")
    }

    /// When it is raised and when not, an example, how to fix it, and the rule behind it, as Markdown.
    pub fn page(self) -> &'static str {
        self.file().split_once('\n').map_or("", |(_, page)| page.trim())
    }

    /// The codes that were probably meant: those that have the text in them, else the nearest.
    pub fn like(text: &str) -> Vec<Self> {
        let text = text.trim().to_ascii_lowercase();
        let within = |code: &&Self| text.len() > 2 && code.as_str().contains(&text);
        let found: Vec<Self> = Self::ALL.iter().filter(within).copied().collect();
        if !found.is_empty() {
            return found;
        }
        let nearest = closest(&text, Self::ALL.iter().map(|code| code.as_str()));
        nearest.and_then(|name| name.parse().ok()).into_iter().collect()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::manual::{Part, parts};

    /// Headings of every page, in this order.
    const HEADINGS: [&str; 5] = [
        "When it is raised",
        "When it is not",
        "Example",
        "How to fix it",
        "The rule behind it",
    ];

    #[test]
    fn every_page_says_all_there_is_to_say() {
        for code in Code::ALL {
            let name = code.as_str();
            for severity in code.severities() {
                assert!(["unsafe", "at-risk", "unknown", "info"].contains(&severity), "{name}: {severity:?}");
            }
            let parts = parts(code.page());
            assert!(matches!(parts.first(), Some(Part::Text(_))), "{name} begins with what it means");
            let headings: Vec<&str> = parts
                .iter()
                .filter_map(|part| match part {
                    Part::Heading(heading) => Some(*heading),
                    _ => None,
                })
                .collect();
            assert_eq!(headings, HEADINGS, "{name}");
            for pair in parts.windows(2) {
                assert!(
                    !matches!(pair, [Part::Heading(_), Part::Heading(_)]),
                    "{name}: nothing stands under a heading"
                );
            }
            let example = parts.iter().position(|part| *part == Part::Heading("Example"));
            let shows = |part: &Part<'_>| matches!(part, Part::Code(text) if text.contains(name));
            assert!(
                example.and_then(|index| parts.get(index + 1)).is_some_and(shows),
                "{name}: its example"
            );
            assert!(code.page().is_ascii(), "{name}");
            for line in code.page().lines() {
                assert!(line.chars().count() <= 110, "{name}: {line}");
            }
            for word in code.page().split(['`', ' ', '\n']).filter(|word| word.contains('-')) {
                // What looks like a code is one.
                let begins = ["pdb-", "replacement-", "webhook-", "values-", "hpa-"];
                if begins.iter().any(|start| word.starts_with(start)) && word.chars().all(|c| c.is_ascii_lowercase() || c == '-') {
                    let page = format!("{}/src/checks/explain/{word}.md", env!("CARGO_MANIFEST_DIR"));
                    assert!(std::path::Path::new(&page).exists(), "{name} names {word}");
                }
            }
        }
    }

    #[test]
    fn a_slip_is_understood() {
        let like = |text: &str| Code::like(text).into_iter().map(Code::as_str).collect::<Vec<_>>();
        assert_eq!(like("pdb-block-drain"), ["pdb-blocks-drain"]);
        assert_eq!(like("Overlap"), ["pdb-overlap"]);
        assert!(like("pdb").len() > 3);
        assert!(like("zzzzzzzzz").is_empty() && like("").is_empty());
    }
}
