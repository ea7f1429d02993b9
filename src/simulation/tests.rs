//! What a file cannot tell: a time of capture, and lists of which only a part was read.

use std::collections::BTreeSet;
use std::time::Duration;

use super::assume::{Assume, Class};
use super::cast::{Cast, Hold, Props};
use super::state::{New, Old, Progress, Retry, State};
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::Snapshot;
use crate::kubernetes::drain::DrainFlags;
use crate::kubernetes::scheduling::Placement;
use crate::kubernetes::testing::{snapshot, without};
use crate::report::document::DrainOutcome;

const NODE: &str =
    "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {conditions: [{type: Ready, status: 'True'}], allocatable: {pods: 9}}}";
const CLASS: &str = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 10}";
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
            &[&node("n1"), &node("n2"), CLASS, &set, &pod("web-1", "n1", ""), &others].join("\n---\n"),
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

const READY: &str = "phase: Running, conditions: [{type: Ready, status: 'True'}]";

fn ready(name: &str, node: &str, metadata: &str) -> String {
    pod(name, node, metadata).replace("phase: Running", READY)
}

/// A pod without a controller that asks for cpu, of a priority.
fn bare(name: &str, node: &str, priority: i64, cpu: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: app}}, spec: {{nodeName: {node}, priority: {priority}, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}, status: {{phase: Running}}}}"
    )
}

fn node(name: &str, cpu: usize) -> String {
    format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, status: {{conditions: [{{type: Ready, status: 'True'}}], allocatable: {{pods: 110, cpu: {cpu}}}}}}}"
    )
}

/// A replacement that runs on a node, and is Ready where the pods of its set become that.
fn landed(set: usize, replaces: Option<usize>, node: usize) -> New {
    New {
        set,
        replaces,
        waiting: None,
        progress: Progress::Placed { node, crashes: false },
        nodes: vec![node],
        sure: false,
        reported: true,
        published: true,
        retry: Retry::AtOnce,
    }
}

fn budget(name: &str, spec: &str, status: &str) -> String {
    format!(
        "{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: {name}, namespace: app}}, spec: {{{spec}}}, status: {{{status}}}}}"
    )
}

#[test]
fn rounds_are_those_of_the_removal() {
    assert_eq!(Old::Here.round(), None);
    assert_eq!(
        [Old::Terminating(2).round(), Old::Gone(3).round(), Old::Failed(4).round()],
        [Some(2), Some(3), Some(4)]
    );
}

#[test]
fn which_of_alike_pods_is_replaced_makes_no_moment_another_one() {
    let read = snapshot(
        &[
            &node("n1", 9),
            &node("n2", 9),
            SET,
            &ready("web-1", "n1", ""),
            &ready("web-2", "n1", ""),
        ]
        .join("\n---\n"),
    );
    cast(&read, Assume::default(), |cast| {
        let mut moments = [State::new(cast, true, false), State::new(cast, true, false)];
        moments[0].new.push(landed(0, Some(0), 1));
        moments[1].new.push(landed(0, Some(1), 1));
        assert_eq!(moments[0].key(), moments[1].key());
    });
}

#[test]
fn a_budget_that_was_not_read_may_let_one_pod_of_a_workload_be_missing() {
    let elsewhere = ready("away-1", "n1", "")
        .replace("namespace: app", "namespace: away")
        .replace("name: web, ", "name: away, ");
    let other = ready("other-1", "n1", "").replace("name: web, ", "name: other, ");
    let pending = pod("web-3", "n1", "").replace("phase: Running", "phase: Pending");
    let sets = [
        SET.to_owned(),
        SET.replace("name: web, ", "name: other, "),
        SET.replace("name: web, namespace: app", "name: away, namespace: away"),
    ];
    let objects = [
        node("n1", 9),
        node("n2", 9),
        sets.join("\n---\n"),
        ready("web-1", "n1", ""),
        ready("web-2", "n1", ""),
        pending,
        other,
        elsewhere,
    ];
    let mut read = without(&[Kind::PodDisruptionBudget], &objects.join("\n---\n"));
    let own = crate::cluster::snapshot::Scope::Namespace("away".to_owned());
    read.objects.cover(Kind::PodDisruptionBudget, own, Ok(()));
    let ways = Assume::ways(&BTreeSet::from([Class::Budgets]));
    cast(&read, ways[0].clone(), |cast| assert!(cast.budgets.is_empty()));
    cast(&read, ways[2].clone(), |cast| {
        let state = State::new(cast, true, false);
        assert!(!cast.budgets.is_empty() && state.allowances.iter().all(|allowance| allowance.allowed == 0));
    });
    cast(&read, ways[1].clone(), |cast| {
        let index = |name: &str| {
            cast.candidates
                .iter()
                .position(|candidate| candidate.pod.metadata.name == name)
                .expect("the pod")
        };
        let (first, second, other) = (index("web-1"), index("web-2"), index("other-1"));
        let budgets: Vec<Vec<usize>> = cast.budgets.iter().map(|budget| budget.candidates.clone()).collect();
        assert_eq!(budgets.len(), 2);
        assert!(budgets.contains(&vec![first, second]) && budgets.contains(&vec![other]));
        let own = cast.candidates[first].budgets[0];
        let set = cast.candidates[first].set.expect("its set");
        let mut state = State::new(cast, true, false);
        let mut allowed = |new: Option<New>| {
            state.new = new.into_iter().collect();
            state.refill(cast);
            let before = state.allowances[own].allowed;
            state.old[first] = Old::Terminating(1);
            state.refill(cast);
            (before, state.allowances[own].allowed)
        };
        assert_eq!(allowed(None), (1, 0));
        let mut pending = landed(set, Some(first), 1);
        pending.progress = Progress::Pending;
        for (new, now) in [
            (landed(set, Some(first), 1), 1),
            (pending, 0),
            (landed(set, None, 1), 0),
            (landed(cast.candidates[other].set.expect("its set"), Some(other), 1), 0),
        ] {
            assert_eq!(allowed(Some(new.clone())).1, now, "{new:?}");
        }
    });
}

#[test]
fn a_budget_whose_scale_was_not_read_starts_from_its_status() {
    let set = SET.replace(
        "namespace: app}",
        "namespace: app, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}]}",
    );
    let own = ", labels: {app: web}";
    let objects = [
        node("n1", 9),
        node("n2", 9),
        set.replace("template: {}", "template: {metadata: {labels: {app: web}}}"),
        SET.replace("name: web, ", "name: other, "),
        ready("web-1", "n1", own),
        ready("web-2", "n1", own),
        ready("other-1", "n1", "").replace("name: web, ", "name: other, "),
        budget(
            "web",
            "maxUnavailable: 2, selector: {matchLabels: {app: web}}",
            "disruptionsAllowed: 2",
        ),
    ];
    let read = without(&[Kind::Deployment], &objects.join("\n---\n"));
    for (assume, back) in Assume::ways(&BTreeSet::from([Class::Budgets])).into_iter().zip([1, 1, 0]) {
        cast(&read, assume, |cast| {
            let index = |name: &str| {
                cast.candidates
                    .iter()
                    .position(|candidate| candidate.pod.metadata.name == name)
                    .expect("the pod")
            };
            let (first, second, other) = (index("web-1"), index("web-2"), index("other-1"));
            assert!(cast.budgets[0].fixed.is_some());
            let set = cast.candidates[first].set.expect("its set");
            let mut state = State::new(cast, true, false);
            let mut allowed = |gone: &[usize], new: Option<New>| {
                state.old.fill(Old::Here);
                for index in gone {
                    state.old[*index] = Old::Gone(1);
                }
                state.new = new.into_iter().collect();
                state.refill(cast);
                state.allowances[0].allowed
            };
            assert_eq!(allowed(&[], None), 2);
            assert_eq!(allowed(&[first], None), 1);
            assert_eq!(allowed(&[first, second], None), 0);
            assert_eq!(allowed(&[first], Some(landed(set, Some(first), 1))), 1 + back);
            assert_eq!(allowed(&[], Some(landed(set, Some(first), 1))), 2);
            assert_eq!(allowed(&[first], Some(landed(set, None, 1))), 1);
            let foreign = cast.candidates[other].set.expect("its set");
            assert_eq!(allowed(&[first], Some(landed(foreign, Some(other), 1))), 1);
        });
    }
}

#[test]
fn a_neglected_budget_is_looked_at_once_a_pod_of_it_alone_is_gone() {
    let both = ready("web-2", "n2", ", labels: {app: web, also: this}");
    for (observed, before) in [("observedGeneration: 1", 1), ("observedGeneration: 0", 0)] {
        let objects = [
            node("n1", 9),
            node("n2", 9),
            SET.to_owned(),
            ready("web-1", "n1", ", labels: {app: web}"),
            both.clone(),
            budget(
                "web",
                "minAvailable: 5, selector: {matchLabels: {app: web}}",
                &format!("disruptionsAllowed: 1, {observed}"),
            ),
            budget("also", "minAvailable: 0, selector: {matchLabels: {also: this}}", observed),
        ];
        cast(&snapshot(&objects.join("\n---\n")), Assume::default(), |cast| {
            let mut state = State::new(cast, true, false);
            assert_eq!(state.allowances[0].allowed, before);
            state.old[0] = Old::Gone(1);
            state.refill(cast);
            assert_eq!(state.allowances[0].allowed, 0);
        });
    }
}

#[test]
fn a_budget_counts_the_pods_that_were_waiting_and_are_under_it() {
    let waiting = pod("web-2", "", ", labels: {app: web, new: this}").replace("phase: Running", "phase: Pending");
    let objects = [
        node("n1", 9),
        node("n2", 9),
        SET.replace("replicas: 1", "replicas: 2"),
        ready("web-1", "n1", ", labels: {app: web, old: this}"),
        waiting,
        budget("all", "minAvailable: 1, selector: {matchLabels: {app: web}}", ""),
        budget("old", "minAvailable: 1, selector: {matchLabels: {old: this}}", ""),
    ];
    let read = snapshot(&objects.join("\n---\n"));
    cast(&read, Assume::default(), |cast| {
        let mut state = State::new(cast, true, false);
        let allowed = |state: &State<'_>| state.allowances.iter().map(|now| (now.allowed, now.healthy)).collect::<Vec<_>>();
        assert_eq!(allowed(&state), [(0, 1), (0, 1)]);
        assert_eq!(state.new[0].waiting, Some(0));
        state.new[0] = New {
            waiting: Some(0),
            ..landed(state.new[0].set, None, 1)
        };
        state.refill(cast);
        assert_eq!(allowed(&state), [(1, 2), (0, 1)]);
    });
}

#[test]
fn two_thousand_disrupted_pods_are_not_too_many() {
    for (pods, overfull) in [(2000, false), (2001, true)] {
        let disrupted: Vec<String> = (0..pods).map(|index| format!("p{index}: '2026-01-01T00:00:00Z'")).collect();
        let status = format!("disruptedPods: {{{}}}", disrupted.join(", "));
        let objects = [
            node("n1", 9),
            SET.to_owned(),
            ready("web-1", "n1", ", labels: {app: web}"),
            budget("web", "minAvailable: 1, selector: {matchLabels: {app: web}}", &status),
        ];
        cast(&snapshot(&objects.join("\n---\n")), Assume::default(), |cast| {
            assert_eq!(cast.budgets[0].first.overfull, overfull, "{pods}");
        });
    }
}

#[test]
fn who_is_left_and_why() {
    let mirror = ready("mirror", "n1", ", annotations: {kubernetes.io/config.mirror: x}");
    let read = snapshot(&[NODE, SET, &ready("web-1", "n1", ""), &mirror].join("\n---\n"));
    let nodes = ["n1".to_owned()];
    let props = Props::new(&read, &nodes, &BTreeSet::new());
    for (timeout, skip) in [(None, 0), (None, 5), (Some(Duration::from_secs(60)), 0)] {
        let flags = DrainFlags {
            timeout,
            skip_wait_for_delete_timeout: skip,
            ..DrainFlags::default()
        };
        let trace = super::trace::play(&Placement::new(&read), &props, &nodes, &flags, Assume::default());
        let index = |name: &str| {
            trace
                .cast
                .candidates
                .iter()
                .position(|candidate| candidate.pod.metadata.name == name)
                .expect("the pod")
        };
        let (web, mirror) = (index("web-1"), index("mirror"));
        let left = |outcome: Option<DrainOutcome>, old: Old, candidate: usize| {
            let mut end = trace.ends[0].clone();
            end.ended = outcome.into_iter().collect();
            end.old[candidate] = old;
            (trace.stuck(&end, candidate), trace.timed_out(&end, candidate))
        };
        let (hangs, fails, finishes) = (Some(DrainOutcome::Hangs), Some(DrainOutcome::Fails), Some(DrainOutcome::Finishes));
        assert_eq!(left(hangs, Old::Here, web), (true, false));
        assert_eq!(left(hangs, Old::Terminating(1), web), (true, false));
        assert_eq!(left(hangs, Old::Gone(1), web), (false, false));
        assert_eq!(left(hangs, Old::Here, mirror), (false, false));
        assert_eq!(left(finishes, Old::Here, web), (false, false));
        assert_eq!(left(finishes, Old::Terminating(1), web), (skip > 0, false));
        assert_eq!(left(finishes, Old::Terminating(1), mirror), (false, false));
        assert_eq!(left(fails, Old::Here, web), (false, timeout.is_some()));
        assert_eq!(left(fails, Old::Terminating(1), web), (skip > 0, false));
        assert_eq!(left(fails, Old::Here, mirror), (false, false));
        assert_eq!(left(None, Old::Terminating(1), web), (false, false));
    }
}

#[test]
fn those_that_may_give_way_are_read_before() {
    let set = |cpu: usize| {
        SET.replace(
            "template: {}",
            &format!("template: {{spec: {{priorityClassName: high, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}"),
        )
    };
    let named = |read: &Snapshot| super::trace::victims(read, &["n1".to_owned()], &DrainFlags::default());
    for (pods, found) in [(1, 1), (64, 64), (65, 0)] {
        let mut objects = vec![
            CLASS.to_owned(),
            node("n1", 99),
            node("n2", pods),
            set(pods),
            ready("web-1", "n1", ""),
        ];
        objects.extend((0..pods).map(|index| bare(&format!("low-{index}"), "n2", 0, "1")));
        let victims = named(&snapshot(&objects.join("\n---\n")));
        assert_eq!(victims.len(), found, "{pods}");
        assert!(
            victims
                .iter()
                .all(|(namespace, name)| namespace == "app" && name.starts_with("low-"))
        );
    }
    let equal = [
        CLASS.to_owned(),
        node("n1", 9),
        node("n2", 1),
        set(1),
        ready("web-1", "n1", ""),
        bare("same", "n2", 10, "1"),
    ];
    assert!(named(&snapshot(&equal.join("\n---\n"))).is_empty());
}

#[test]
fn preemption_is_tried_on_sixty_four_nodes() {
    let set = SET.replace(
        "template: {}",
        "template: {spec: {priorityClassName: high, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}",
    );
    for (many, tried) in [(64, true), (65, false)] {
        let mut objects = vec![CLASS.to_owned(), node("n1", 9), set.clone(), ready("web-1", "n1", "")];
        for index in 0..many {
            objects.push(node(&format!("m{index}"), 1));
            objects.push(bare(&format!("low-{index}"), &format!("m{index}"), 0, "1"));
        }
        let read = snapshot(&objects.join("\n---\n"));
        let nodes = ["n1".to_owned()];
        let props = Props::new(&read, &nodes, &BTreeSet::new());
        for (assume, lands) in Assume::ways(&BTreeSet::from([Class::Nodes])).into_iter().zip([true, false]) {
            let trace = super::trace::play(&Placement::new(&read), &props, &nodes, &DrainFlags::default(), assume);
            assert_eq!(!trace.victims.is_empty(), tried, "{many}");
            let why = "on many nodes pods of a lower priority may have to give way to it";
            assert_eq!(trace.gaps.iter().any(|gap| gap.why == why), !tried, "{many}");
            if !tried {
                let placed = |end: &State<'_>| end.new.iter().any(|new| trace.lands(end, new));
                assert_eq!(trace.ends.iter().all(placed), lands);
            }
        }
    }
}

/// A ReplicaSet of a namespace, and its Ready pods on `n1`.
fn placed(namespace: &str, name: &str, pods: usize, labels: &str, spec: &str) -> Vec<String> {
    let mut objects = vec![format!(
        "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: {name}, namespace: {namespace}}}, spec: {{replicas: {pods}, template: {{metadata: {{labels: {{{labels}}}}}, spec: {{{spec}}}}}}}}}"
    )];
    objects.extend((0..pods).map(|index| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}-{index}, namespace: {namespace}, labels: {{{labels}}}, ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: {name}, controller: true}}]}}, spec: {{nodeName: n1, {spec}}}, status: {{{READY}}}}}"
        )
    }));
    objects
}

#[test]
fn no_more_moments_than_matter() {
    let spread = |key: &str, when: &str| {
        format!("{{maxSkew: 1, topologyKey: {key}, whenUnsatisfiable: {when}, labelSelector: {{matchLabels: {{app: web}}}}}}")
    };
    let hard = format!("topologySpreadConstraints: [{}]", spread("zone", "DoNotSchedule"));
    let soft = format!(
        "topologySpreadConstraints: [{}, {}, {}]",
        spread("zone", "DoNotSchedule"),
        spread("rack", "ScheduleAnyway"),
        spread("hall", "ScheduleAnyway")
    );
    let apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}]}}";
    let web = |pods: usize, spec: &str| placed("app", "web", pods, "app: web", spec);
    let with = |mut objects: Vec<String>, namespace: &str, name: &str, labels: &str, spec: &str| {
        objects.extend(placed(namespace, name, 1, labels, spec));
        objects
    };
    let port = "containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]";
    for (what, objects) in [
        ("one", web(1, "")),
        ("two alike", web(2, "")),
        ("spread", web(3, &hard)),
        ("softly spread", web(3, &soft)),
        ("apart", web(3, apart)),
        ("two workloads", with(web(1, ""), "app", "other", "app: other", "")),
        ("of another namespace", with(web(1, &hard), "away", "web", "app: web", "")),
        ("not counted", with(web(1, &hard), "app", "other", "app: other", "")),
        ("with a port", with(web(1, port), "app", "other", "app: other", "")),
    ] {
        let mut all = vec![node("n1", 9)];
        all.extend((2..6).map(|index| {
            node(&format!("n{index}"), 9).replace(
                "metadata: {",
                &format!(
                    "metadata: {{labels: {{zone: z{index}, rack: r{}, hall: h{}}}, ",
                    index % 2,
                    index % 3
                ),
            )
        }));
        all.extend(objects);
        let read = snapshot(&all.join("\n---\n"));
        let nodes = ["n1".to_owned()];
        let props = Props::new(&read, &nodes, &BTreeSet::new());
        let trace = super::trace::play(&Placement::new(&read), &props, &nodes, &DrainFlags::default(), Assume::default());
        // After the round, and after the turn.
        assert_eq!((trace.states, trace.bounded), (2, false), "{what}");
        assert_eq!(trace.outcome(0), (DrainOutcome::Finishes, super::trace::Paths::All), "{what}");
    }
}

#[test]
fn sixty_four_ways_to_share_an_allowance_are_looked_at() {
    for (sets, bounded) in [(64, false), (65, true)] {
        let mut objects = vec![node("n1", 99)];
        objects.extend((0..sets).flat_map(|index| placed("app", &format!("web{index}"), 1, "app: web", "")));
        objects.push(budget(
            "web",
            &format!("minAvailable: {}, selector: {{matchLabels: {{app: web}}}}", sets - 1),
            "",
        ));
        let read = snapshot(&objects.join("\n---\n"));
        let nodes = ["n1".to_owned()];
        let props = Props::new(&read, &nodes, &BTreeSet::new());
        let trace = super::trace::play(&Placement::new(&read), &props, &nodes, &DrainFlags::default(), Assume::default());
        assert_eq!(trace.bounded, bounded, "{sets}");
        assert_eq!(trace.ends.len(), 64);
    }
}
