//! Documents as the preflight of a few clusters gives them, for the tests of rendering and of the schema.
//!
//! The paths begin at the crate's root so that unit tests and integration tests can both include this file.

use crate::checks::codes::Code;
use crate::report::document::*;
use crate::report::finding::*;

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn object(kind: &str, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef {
        kind: kind.into(),
        namespace: (!namespace.is_empty()).then(|| namespace.into()),
        name: name.into(),
    }
}

fn finding(code: Code, severity: Severity, object: ObjectRef, message: &str) -> Finding {
    Finding {
        code,
        severity,
        certainty: Certainty::Certain,
        object,
        node: None,
        message: message.into(),
        evidence: Vec::new(),
        consequence: String::new(),
        remedy: Remedy::default(),
        accepted: false,
    }
}

/// A pod of a ReplicaSet whose replacement lands on one of the nodes, or of none.
pub fn evicted(namespace: &str, owner: &str, suffix: &str, budget: &str, nodes: &[&str]) -> EvictionRow {
    EvictionRow {
        pod: format!("{owner}-{suffix}"),
        namespace: namespace.into(),
        node: "cp-1".into(),
        owner: Some(OwnerInfo {
            kind: "ReplicaSet".into(),
            name: owner.into(),
        }),
        action: Action::Evict,
        certainty: Certainty::Certain,
        budgets: strings(if budget.is_empty() { &[] } else { std::slice::from_ref(&budget) }),
        round: Some(1),
        replacement: Replacement {
            outcome: ReplacementOutcome::Lands,
            certainty: Certainty::Certain,
            nodes: strings(nodes),
            reasons: vec![NodeReason {
                reason: "cordoned".into(),
                count: 1,
                nodes: strings(&["cp-1"]),
            }],
        },
    }
}

fn pending(row: EvictionRow) -> EvictionRow {
    let replacement = Replacement {
        outcome: ReplacementOutcome::Pending,
        certainty: Certainty::Certain,
        nodes: Vec::new(),
        reasons: vec![
            NodeReason {
                reason: "cordoned".into(),
                count: 1,
                nodes: strings(&["cp-1"]),
            },
            NodeReason {
                reason: "spread on kubernetes.io/hostname (1 here, 0 on cp-1, maxSkew 1)".into(),
                count: 2,
                nodes: strings(&["cp-2", "cp-3"]),
            },
        ],
    };
    EvictionRow { replacement, ..row }
}

fn kept(namespace: &str, kind: &str, owner: &str, pod: &str) -> EvictionRow {
    EvictionRow {
        pod: pod.into(),
        namespace: namespace.into(),
        node: "cp-1".into(),
        owner: Some(OwnerInfo {
            kind: kind.into(),
            name: owner.into(),
        }),
        action: Action::Keep,
        certainty: Certainty::Certain,
        budgets: Vec::new(),
        round: None,
        replacement: Replacement {
            outcome: ReplacementOutcome::None,
            certainty: Certainty::Certain,
            nodes: Vec::new(),
            reasons: Vec::new(),
        },
    }
}

fn kept_pods() -> Vec<EvictionRow> {
    let daemons = [
        "csi-nfs-node",
        "csi-s3-node",
        "gpustack-operator-model-manager",
        "node-feature-discovery-worker",
    ];
    let statics = ["etcd-cp-1", "kube-apiserver-cp-1", "kube-scheduler-cp-1"];
    let daemons = daemons
        .iter()
        .map(|name| kept("gpustack-system", "DaemonSet", name, &format!("{name}-x7x2p")));
    daemons
        .chain(statics.iter().map(|name| kept("kube-system", "Node", "cp-1", name)))
        .collect()
}

fn document(verdict: Verdict, outcome: DrainOutcome, why: &str) -> DrainPreflight {
    DrainPreflight {
        header: Header {
            api_version: API_VERSION,
            kind: "DrainPreflight",
            tool_version: "0.1.0",
            cluster: ClusterInfo {
                context: Some("prod".into()),
                server: Some("https://10.0.0.1:6443".into()),
                server_version: Some("v1.36.3".into()),
            },
            source: "live",
            observed_at: Some("2026-11-30T12:00:00Z".into()),
            install: Some(InstallInfo {
                release: "gpustack-operator".into(),
                namespace: "gpustack-system".into(),
                chart_version: Some("0.9.2".into()),
            }),
        },
        nodes: strings(&["cp-1"]),
        flags: strings(&["--ignore-daemonsets", "--delete-emptydir-data"]),
        verdict,
        drain: DrainResult {
            outcome,
            certainty: Certainty::Certain,
            why: why.into(),
            per_node: vec![NodeResult {
                node: "cp-1".into(),
                outcome,
                certainty: Certainty::Certain,
                why: (outcome != DrainOutcome::Finishes).then(|| why.into()),
            }],
        },
        findings: Vec::new(),
        evictions: kept_pods(),
        unserved: Vec::new(),
        leaders: Vec::new(),
        after: After {
            pending: Vec::new(),
            exhausted_budgets: Vec::new(),
            next_node_may_follow: true,
            why: String::new(),
        },
        drain_command: "kubectl --context prod drain cp-1 --ignore-daemonsets --delete-emptydir-data".into(),
        not_assessed: Vec::new(),
    }
}

fn leader(lease: &str, holder: &str, successors: &[&str], gap_seconds: [u32; 2]) -> LeaderRow {
    LeaderRow {
        lease: lease.into(),
        namespace: "gpustack-system".into(),
        holder: holder.into(),
        successors: strings(successors),
        gap_seconds,
    }
}

const WORKER: &str = "gpustack-operator-worker-645ff7d7c5";
const KUEUE: &str = "kueue-controller-manager-74f7d7bd55";

/// A budget that wants both of Kueue's two replicas: the drain hangs.
pub fn hangs() -> DrainPreflight {
    let mut doc = document(
        Verdict::Unsafe,
        DrainOutcome::Hangs,
        "kueue-manager-pdb wants 2 of Kueue's 2 replicas and never allows one to go",
    );
    doc.findings.push(Finding {
        evidence: strings(&["minAvailable 2, 2 replicas, 2 ready", "allows 0 now and for ever"]),
        consequence: "The eviction gets 429 every 5 s until you stop it; cp-1 stays cordoned, and the worker's third replica, already evicted by then, stays Pending".into(),
        remedy: Remedy {
            text: "run 3 replicas of Kueue: in your values and for good, or now by hand".into(),
            command: Some("kubectl --context prod scale deployment/kueue-controller-manager -n gpustack-system --replicas=3".into()),
            values_key: Some("kueue.controllerManager.replicas: 3".into()),
        },
        ..finding(
            Code::PdbBlocksDrain,
            Severity::Unsafe,
            object("PodDisruptionBudget", "gpustack-system", "kueue-manager-pdb"),
            "kueue-manager-pdb wants 2 of Kueue's 2 replicas and never allows one to go",
        )
    });
    doc.findings.push(finding(
        Code::LeaderMoves,
        Severity::Info,
        object("Lease", "gpustack-system", "worker.gpustack.ai"),
        "cp-1 -> cp-2 or cp-3, about 2 s",
    ));
    let kueue = evicted("gpustack-system", KUEUE, "gq6tc", "kueue-manager-pdb", &[]);
    let none = kept_pods().remove(0).replacement;
    doc.evictions.extend([
        pending(evicted("gpustack-system", WORKER, "dv2rt", "gpustack-operator-worker", &[])),
        evicted("gpustack-system", "csi-s3-controller-65d776b67f", "vxst2", "", &["cp-2", "cp-3"]),
        EvictionRow {
            action: Action::Stuck,
            round: None,
            replacement: none,
            ..kueue
        },
    ]);
    doc.leaders.push(leader(
        "worker.gpustack.ai",
        &format!("{WORKER}-dv2rt"),
        &[&format!("{WORKER}-8m4zk"), &format!("{WORKER}-wq9sj")],
        [0, 2],
    ));
    doc.after = After {
        pending: strings(&["deployment/gpustack-system/gpustack-operator-worker"]),
        exhausted_budgets: strings(&["gpustack-system/gpustack-operator-worker", "gpustack-system/kueue-manager-pdb"]),
        next_node_may_follow: false,
        why: "gpustack-operator-worker has 2 of 3 replicas Ready and its budget allows 0; an uncordon moves nothing back".into(),
    };
    doc
}

/// Three nodes with the values of the operator's page on high availability: safe, with a Pending replica.
pub fn safe() -> DrainPreflight {
    let mut doc = document(
        Verdict::Safe,
        DrainOutcome::Finishes,
        "every budget allows its pod to go, and everything stays served",
    );
    doc.findings.push(finding(
        Code::LeaderMoves,
        Severity::Info,
        object("Lease", "gpustack-system", "c1f6bfd2.kueue.x-k8s.io"),
        "its holder on cp-1 ends, and a standby on cp-2 or cp-3 takes over",
    ));
    for workload in ["gpustack-operator-worker", "kueue-controller-manager"] {
        doc.findings.push(finding(
            Code::ReplacementPending,
            Severity::Info,
            object("Deployment", "gpustack-system", workload),
            "its third replica stays Pending until cp-1 is uncordoned; 2 of 3 stay Ready",
        ));
    }
    doc.evictions.extend([
        pending(evicted("gpustack-system", WORKER, "dv2rt", "gpustack-operator-worker", &[])),
        pending(evicted("gpustack-system", KUEUE, "gq6tc", "kueue-manager-pdb", &[])),
        evicted(
            "gpustack-system",
            "node-feature-discovery-master-7b66674c5d",
            "kx2vh",
            "node-feature-discovery-master",
            &["cp-2", "cp-3"],
        ),
        evicted("gpustack-system", "csi-s3-controller-65d776b67f", "vxst2", "", &["cp-2", "cp-3"]),
    ]);
    doc.leaders.push(leader(
        "c1f6bfd2.kueue.x-k8s.io",
        &format!("{KUEUE}-gq6tc"),
        &[&format!("{KUEUE}-2hbbm")],
        [0, 2],
    ));
    doc.after = After {
        pending: strings(&[
            "deployment/gpustack-system/gpustack-operator-worker",
            "deployment/gpustack-system/kueue-controller-manager",
        ]),
        exhausted_budgets: strings(&["gpustack-system/gpustack-operator-worker", "gpustack-system/kueue-manager-pdb"]),
        next_node_may_follow: false,
        why: "two workloads have 2 of 3 replicas Ready, and their budgets allow 0; an uncordon moves nothing back".into(),
    };
    doc
}

/// The caller may not list budgets.
pub fn unknown() -> DrainPreflight {
    let mut doc = document(
        Verdict::Unknown,
        DrainOutcome::Unknown,
        "the budgets of team-a were not readable, and one could refuse an eviction",
    );
    doc.findings.push(Finding {
        evidence: strings(&[
            "poddisruptionbudgets.policy is forbidden: User \"viewer\" cannot list resource \"poddisruptionbudgets\" in API group \"policy\" in the namespace \"team-a\"",
        ]),
        consequence: "A budget there may hold back llm-0 for ever".into(),
        remedy: Remedy {
            text: "ask for the right to list budgets, or have somebody who has it run this".into(),
            command: Some("kubectl --context prod auth can-i list poddisruptionbudgets.policy -n team-a".into()),
            values_key: None,
        },
        ..finding(Code::NotAssessed, Severity::Unknown, object("Namespace", "", "team-a"), "The budgets of team-a were not readable")
    });
    let mut row = evicted("team-a", "llm", "0", "", &["gpu-2"]);
    row.owner = Some(OwnerInfo {
        kind: "StatefulSet".into(),
        name: "llm".into(),
    });
    row.replacement.outcome = ReplacementOutcome::Unknown;
    row.replacement.certainty = Certainty::Possible;
    doc.evictions.push(row);
    doc.not_assessed.push(NotAssessed {
        what: "poddisruptionbudgets in team-a".into(),
        why: "Forbidden. They would have decided whether llm-0 may be evicted".into(),
        affects_verdict: true,
        missing_right: Some(MissingRight {
            verb: "list".into(),
            group: "policy".into(),
            resource: "poddisruptionbudgets".into(),
            namespace: Some("team-a".into()),
        }),
    });
    doc.not_assessed.push(NotAssessed {
        what: "leases in kube-system".into(),
        why: "Forbidden".into(),
        affects_verdict: false,
        missing_right: Some(MissingRight {
            verb: "list".into(),
            group: "coordination.k8s.io".into(),
            resource: "leases".into(),
            namespace: None,
        }),
    });
    doc.after.next_node_may_follow = false;
    doc.after.why = "not known, as the budgets were not readable".into();
    doc
}

/// One replica each: the drain finishes, and things pause.
pub fn at_risk() -> DrainPreflight {
    let mut doc = document(Verdict::AtRisk, DrainOutcome::Finishes, "no budget holds anything back");
    doc.findings.push(Finding {
        node: Some("cp-2".into()),
        certainty: Certainty::Possible,
        evidence: strings(&[
            "csi-nfs-controller binds localhost:29652 on the host",
            "cp-2: taken by csi-nfs-controller-6f9d",
            "cp-3: free",
        ]),
        consequence: "Where it lands on cp-2 it crash-loops, and volumes are not provisioned until somebody deletes it".into(),
        remedy: Remedy {
            text: "spread the replicas over the nodes".into(),
            command: None,
            values_key: Some("csi-driver-nfs.controller.topologySpreadConstraints".into()),
        },
        ..finding(
            Code::HostPortCollision,
            Severity::AtRisk,
            object("Deployment", "gpustack-system", "csi-nfs-controller"),
            "The replacement of csi-nfs-controller may land on cp-2, where port 29652 is taken",
        )
    });
    doc.findings.push(Finding {
        accepted: true,
        ..finding(
            Code::SingleReplica,
            Severity::Unsafe,
            object("Deployment", "gpustack-system", "gpustack-operator-worker"),
            "Nobody answers for the worker until its replacement is Ready",
        )
    });
    for index in 0..12 {
        doc.findings.push(finding(
            Code::LocalData,
            Severity::Info,
            object("Pod", "team-a", &format!("cache-{index}")),
            "Its emptyDir is lost",
        ));
    }
    let mut nfs = evicted("gpustack-system", "csi-nfs-controller-5c9f7d5d5b", "m9k4q", "", &["cp-2"]);
    nfs.replacement.outcome = ReplacementOutcome::CrashLoops;
    nfs.replacement.certainty = Certainty::Possible;
    nfs.replacement.reasons = vec![NodeReason {
        reason: "taint nvidia.com/gpu=true:NoSchedule not tolerated".into(),
        count: 17,
        nodes: (1..=17).map(|index| format!("gpu-{index}")).collect(),
    }];
    doc.evictions.push(nfs);
    doc.evictions
        .extend((0..12).map(|index| evicted("team-a", "cache", &index.to_string(), "", &["cp-2", "cp-3"])));
    doc.unserved.push(UnservedRow {
        what: ServedKind::Webhook,
        name: "kueue-validating-webhook-configuration".into(),
        service: Some("gpustack-system/kueue-webhook-service".into()),
        until: Until::ReplacementReady,
        deadlock: false,
        certainty: Certainty::Possible,
        blast: strings(&[
            "create pods in 12 namespaces",
            "update pods in 12 namespaces",
            "create jobs.batch",
            "update jobs.batch",
            "create workloads",
            "update workloads",
        ]),
    });
    doc.after.why = "every evicted workload has its replicas back".into();
    doc
}

/// Names and messages that try to act on a terminal.
pub fn hostile() -> DrainPreflight {
    let evil = "a\u{1b}[2J\u{1b}]0;owned\u{7}\r\nSAFE\u{202e}evil\u{200b}\u{9b}31m<script>|`@all";
    let mut doc = document(Verdict::Unsafe, DrainOutcome::Hangs, evil);
    doc.nodes = strings(&[evil, "cp-1"]);
    doc.drain.per_node = vec![
        doc.drain.per_node[0].clone(),
        NodeResult {
            node: evil.into(),
            ..doc.drain.per_node[0].clone()
        },
    ];
    doc.header.cluster.context = Some(evil.into());
    doc.findings.push(Finding {
        node: Some(evil.into()),
        evidence: strings(&[evil]),
        consequence: evil.into(),
        remedy: Remedy {
            text: evil.into(),
            command: Some(format!("kubectl get '{evil}'")),
            values_key: Some(evil.into()),
        },
        ..finding(Code::PdbBlocksDrain, Severity::Unsafe, object(evil, evil, evil), evil)
    });
    doc.findings
        .push(finding(Code::LeaderMoves, Severity::Info, object(evil, evil, evil), evil));
    let mut row = pending(evicted(evil, evil, evil, evil, &[evil]));
    row.replacement.reasons[0].reason = evil.into();
    row.replacement.reasons[0].nodes = strings(&[evil]);
    doc.evictions.push(row);
    doc.unserved.push(UnservedRow {
        what: ServedKind::Service,
        name: evil.into(),
        service: Some(evil.into()),
        until: Until::Never,
        deadlock: true,
        certainty: Certainty::Certain,
        blast: strings(&[evil]),
    });
    doc.leaders.push(leader(evil, evil, &[evil], [0, 17]));
    doc.after = After {
        pending: strings(&[evil]),
        exhausted_budgets: strings(&[evil]),
        next_node_may_follow: false,
        why: evil.into(),
    };
    doc.not_assessed.push(NotAssessed {
        what: evil.into(),
        why: evil.into(),
        affects_verdict: true,
        missing_right: Some(MissingRight {
            verb: evil.into(),
            group: evil.into(),
            resource: evil.into(),
            namespace: Some(evil.into()),
        }),
    });
    doc.drain_command = format!("kubectl drain '{evil}'");
    doc
}

/// Every document above.
pub fn all() -> Vec<(&'static str, DrainPreflight)> {
    vec![
        ("hangs", hangs()),
        ("safe", safe()),
        ("unknown", unknown()),
        ("at-risk", at_risk()),
        ("hostile", hostile()),
    ]
}
