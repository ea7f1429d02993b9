//! What a file cannot tell: a time of capture, and lists of which only a part was read.

use std::collections::BTreeSet;

use super::assume::{Assume, Class};
use super::cast::{Cast, Hold, Props};
use super::state::{Old, State};
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::Snapshot;
use crate::kubernetes::drain::DrainFlags;
use crate::kubernetes::scheduling::Placement;
use crate::kubernetes::testing::{snapshot, without};

const NODE: &str =
    "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {conditions: [{type: Ready, status: 'True'}], allocatable: {pods: 9}}}";
const SET: &str = "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: app}, spec: {replicas: 1, template: {}}}";

fn pod(name: &str, node: &str, metadata: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: app, ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web, controller: true}}]{metadata}}}, spec: {{nodeName: {node}}}, status: {{phase: Running}}}}"
    )
}

/// What `read` finds in the cast of a drain of `n1`.
fn cast<T>(snapshot: &Snapshot, assume: Assume, read: impl FnOnce(&Cast<'_>) -> T) -> T {
    let nodes = ["n1".to_owned()];
    let props = Props::new(snapshot, &nodes, &BTreeSet::new());
    read(&Cast::new(
        &Placement::new(snapshot),
        &props,
        &nodes,
        &DrainFlags::default(),
        assume,
    ))
}

#[test]
fn a_pod_is_overdue_after_its_deletion_timestamp() {
    let quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: app}, spec: {hard: {pods: 9}}, status: {hard: {pods: 9}, used: {pods: 1}}}";
    let ending = pod("web-1", "n1", ", deletionTimestamp: '2026-01-01T00:00:10Z'");
    let mut read = snapshot(&[NODE, SET, quota, &ending].join("\n---\n"));
    for (now, overdue) in [
        ("2026-01-01T00:00:09Z", false),
        ("2026-01-01T00:00:10Z", false),
        ("2026-01-01T00:00:11Z", true),
        ("", true),
    ] {
        read.observed_at = now.parse().ok();
        cast(&read, Assume::default(), |cast| {
            assert_eq!(cast.candidates[0].holds.contains(&Hold::Overdue), overdue, "{now}");
            // Its quota may be charged with it no more, so nothing is given back.
            assert_eq!(cast.quotas[0].candidates.is_empty(), overdue, "{now}");
        });
    }
}

#[test]
fn of_pods_that_were_not_all_read_those_seen_on_the_node_are_drained() {
    let read = without(
        &[Kind::Pod],
        &[NODE, SET, &pod("web-1", "n1", ""), &pod("web-2", "n2", "")].join("\n---\n"),
    );
    cast(&read, Assume::default(), |cast| {
        let names: Vec<&str> = cast
            .candidates
            .iter()
            .map(|candidate| candidate.pod.metadata.name.as_str())
            .collect();
        assert_eq!(names, ["web-1"]);
        assert!(!cast.workloads[0].counted);
    });
}

#[test]
fn what_was_not_read_may_be_alive() {
    let held = pod("web-1", "n1", ", finalizers: [kueue.x-k8s.io/managed]");
    let read = without(&[Kind::Pod], &[NODE, SET, &held].join("\n---\n"));
    let ways = Assume::ways(&BTreeSet::from([Class::Calls]));
    let goes: Vec<bool> = ways
        .into_iter()
        .map(|assume| {
            cast(&read, assume, |cast| {
                let state = State::new(cast, true, false);
                let holds = &cast.candidates[0].holds;
                assert!(!holds.is_empty());
                holds.iter().all(|hold| state.lets_go(cast, 0, hold))
            })
        })
        .collect();
    assert_eq!(goes, [true, false]);
}

#[test]
fn kueue_may_still_let_a_pod_go_while_both_end() {
    let labels = ", labels: {app.kubernetes.io/name: kueue, control-plane: controller-manager}";
    let kueue = pod("kueue-1", "n1", labels).replace("phase: Running", "phase: Running, conditions: [{type: Ready, status: 'True'}]");
    let held = pod("web-1", "n1", ", finalizers: [kueue.x-k8s.io/managed]");
    let read = snapshot(&[NODE, SET, &kueue, &held].join("\n---\n"));
    cast(&read, Assume::default(), |cast| {
        assert!(cast.last_backends_make_way());
        let index = |name: &str| cast.candidates.iter().position(|candidate| candidate.pod.metadata.name == name);
        let (kueue, web) = (index("kueue-1").expect("Kueue"), index("web-1").expect("the pod"));
        for (end, lingers, goes) in [
            (Old::Terminating(1), true, true),
            (Old::Terminating(1), false, false),
            (Old::Terminating(0), true, false),
            (Old::Gone(1), true, false),
        ] {
            let mut state = State::new(cast, false, lingers);
            state.round = 1;
            state.old[kueue] = end;
            let hold = Hold::Kueue { worker: false };
            assert_eq!(state.lets_go(cast, web, &hold), goes, "{lingers}");
            assert!(!state.lets_go(cast, web, &Hold::Kueue { worker: true }));
        }
    });
}

#[test]
fn budgets_of_others_matter_only_where_preemption_helps() {
    let node = |name: &str| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, status: {{conditions: [{{type: Ready, status: 'True'}}], allocatable: {{pods: 9, cpu: 1}}}}}}"
        )
    };
    let asks = |cpu: &str| format!("containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]");
    let set = format!(
        "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web, namespace: app}}, spec: {{replicas: 1, template: {{spec: {{priorityClassName: high, {}}}}}}}}}",
        asks("900m")
    );
    let class = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 10}";
    let other = |namespace: &str, priority: i64, cpu: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: other, namespace: {namespace}}}, spec: {{nodeName: n2, priority: {priority}, {}}}, status: {{phase: Running}}}}",
            asks(cpu)
        )
    };
    for (lesser, equal, unread) in [("500m", "500m", 0), ("500m", "50m", 1)] {
        let others = [other("low", 0, lesser), other("app", 10, equal)].join("\n---\n");
        let mut read = without(
            &[Kind::PodDisruptionBudget],
            &[&node("n1"), &node("n2"), class, &set, &pod("web-1", "n1", ""), &others].join("\n---\n"),
        );
        let own = crate::cluster::snapshot::Scope::Namespace("app".to_owned());
        read.objects.cover(Kind::PodDisruptionBudget, own, Ok(()));
        let nodes = ["n1".to_owned()];
        let props = Props::new(&read, &nodes, &BTreeSet::new());
        let trace = super::trace::play(&Placement::new(&read), &props, &nodes, &DrainFlags::default(), Assume::default());
        let gaps: Vec<_> = trace.gaps.iter().filter(|gap| gap.missing.is_some()).collect();
        assert_eq!(gaps.len(), unread, "{lesser} {equal}: {gaps:?}");
    }
}
