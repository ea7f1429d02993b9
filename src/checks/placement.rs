//! From a snapshot to the document of `placement`.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::objects::{DaemonSet, Node, Pod};
use crate::cluster::snapshot::Snapshot;
use crate::gpustack::components::Loss;
use crate::gpustack::install::Install;
use crate::kubernetes::called::{self, Answering, CalledKind};
use crate::kubernetes::leases::{self, Holder};
use crate::kubernetes::surge::Surge;
use crate::report::finding::Verdict;
use crate::report::placement::{
    ComponentPlacement, DaemonSetCount, ElectionState, Leadership, LossOfNode, LossOfZone, NodeState, Placement, Replica,
};
use crate::simulation::cast::Gap;

use super::assessed::{Request, conclude, header};
use super::leases::{gap_after_loss, standbys};
use super::standing::elections::gone;
use super::standing::facts::{Facts, Led, Workload, called_name, region, zone};
use super::standing::{self, Topic};
use super::{count, object};

/// Says where the replicas are, and what the loss of a node or a zone would take.
pub fn assess(snapshot: &Snapshot, install: Option<&Install<'_>>, request: &Request) -> Placement {
    let facts = Facts::new(snapshot, install, &request.kubectl, request.all);
    let about = install.map_or_else(
        || object("Namespace", "", "default"),
        |install| object("Namespace", "", install.namespace),
    );
    let (findings, not_assessed) = conclude(
        standing::findings(Topic::Placement, &facts),
        &gaps(&facts, request.all),
        &about,
        request,
    );
    Placement {
        header: header("Placement", snapshot, install),
        verdict: Verdict::of(&findings),
        findings,
        components: facts.workloads.iter().map(|workload| component(&facts, workload)).collect(),
        daemon_sets: facts.daemon_sets().map(daemon_set).collect(),
        nodes: nodes(&facts),
        not_assessed,
    }
}

fn component(facts: &Facts<'_>, workload: &Workload<'_>) -> ComponentPlacement {
    let elections = elections(facts, workload);
    let leads = leads(workload, &elections);
    let mut leaders: Vec<String> = leads.keys().map(|pod| (*pod).to_owned()).collect();
    leaders.sort();
    let replicas = workload
        .pods
        .iter()
        .map(|pod| {
            let node = facts.node(pod);
            let (state, reason) = facts.state(pod);
            Replica {
                pod: pod.metadata.name.clone(),
                node: pod.node().map(str::to_owned),
                zone: node.and_then(zone).map(str::to_owned),
                region: node.and_then(region).map(str::to_owned),
                state,
                reason,
                leads: leads.get(pod.metadata.name.as_str()).cloned().unwrap_or_default(),
            }
        })
        .collect();
    let nodes: BTreeSet<&str> = workload.pods.iter().filter_map(|pod| pod.node()).collect();
    let zones: BTreeSet<&str> = workload.pods.iter().filter_map(|pod| zone(facts.node(pod)?)).collect();
    ComponentPlacement {
        name: workload.key.name.clone(),
        kind: workload.key.kind.clone(),
        namespace: workload.key.namespace.clone(),
        desired: workload.desired,
        ready: count(workload.pods.iter().filter(|pod| facts.ready(pod)).count()),
        leaders,
        leader_nodes: leader_nodes(workload, &elections),
        elects: workload.id.map(|_| !workload.elections.is_empty()),
        elections,
        replicas,
        serves: served(facts, workload, &|_| true),
        unserved: unserved(facts, workload, &|_| false),
        loss_of_node: nodes
            .into_iter()
            .map(|node| {
                let lost = |pod: &Pod| pod.node() == Some(node);
                LossOfNode {
                    node: node.to_owned(),
                    left: left(facts, workload, &lost),
                    unserved: unserved(facts, workload, &lost),
                }
            })
            .collect(),
        loss_of_zone: zones
            .into_iter()
            .map(|lost_zone| {
                let lost = |pod: &Pod| facts.node(pod).and_then(zone) == Some(lost_zone);
                LossOfZone {
                    zone: lost_zone.to_owned(),
                    left: left(facts, workload, &lost),
                    unserved: unserved(facts, workload, &lost),
                }
            })
            .collect(),
    }
}

/// How each election of the workload stands.
fn elections(facts: &Facts<'_>, workload: &Workload<'_>) -> Vec<ElectionState> {
    let state = |led: &Led<'_>| match (&led.lease, &led.holder) {
        (Ok(None), _) if led.election.lock != "Lease" => Leadership::NoLease,
        (Ok(None), _) => Leadership::Missing,
        (Err(_), _) | (Ok(Some(_)), None | Some(Holder::Unknown(_))) => Leadership::Unknown,
        (Ok(Some(_)), Some(Holder::Released)) => Leadership::Released,
        (Ok(Some(_)), Some(holder)) if gone(facts, workload, holder).is_some() => Leadership::HolderGone,
        (Ok(Some(lease)), Some(_)) if leases::stale(facts.snapshot, lease) == Some(true) => Leadership::Stale,
        (Ok(Some(_)), Some(_)) => Leadership::Held,
    };
    let elections = workload.elections.iter().filter(|_| workload.desired != Some(0));
    elections
        .map(|led| {
            let state = state(led);
            let held = led.lease.as_ref().ok().copied().flatten().filter(|_| state == Leadership::Held);
            let gap = held.zip(led.holder.as_ref()).and_then(|(lease, holder)| {
                let (successors, _) = standbys(facts, workload, holder);
                (!successors.is_empty()).then(|| gap_after_loss(led, lease))
            });
            ElectionState {
                lease: led.election.lease.clone(),
                of: led.election.of.to_owned(),
                state,
                gap_after_loss: gap,
            }
        })
        .collect()
}

/// Leases by the pod that holds them and runs.
fn leads<'a>(workload: &'a Workload<'_>, elections: &[ElectionState]) -> BTreeMap<&'a str, Vec<String>> {
    let mut leads: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for led in held(workload, elections) {
        if let Some(pod) = led.holder.as_ref().and_then(|holder| holder.pod()) {
            leads
                .entry(pod.metadata.name.as_str())
                .or_default()
                .push(led.election.lease.clone());
        }
    }
    leads
}

/// The elections that have a leader.
fn held<'w, 'a>(workload: &'w Workload<'a>, elections: &'w [ElectionState]) -> impl Iterator<Item = &'w Led<'a>> {
    let states = elections.iter().map(|election| election.state);
    let pairs = workload.elections.iter().zip(states);
    pairs.filter(|(_, state)| *state == Leadership::Held).map(|(led, _)| led)
}

/// The nodes that leaders are on, once each.
fn leader_nodes(workload: &Workload<'_>, elections: &[ElectionState]) -> Vec<String> {
    let nodes: BTreeSet<&str> = held(workload, elections).filter_map(|led| led.holder.as_ref()?.node()).collect();
    nodes.into_iter().map(str::to_owned).collect()
}

fn left(facts: &Facts<'_>, workload: &Workload<'_>, lost: &dyn Fn(&Pod) -> bool) -> i64 {
    count(workload.pods.iter().filter(|pod| facts.ready(pod) && !lost(pod)).count())
}

/// What the workload answers for, and nobody would without the pods that are lost.
fn unserved(facts: &Facts<'_>, workload: &Workload<'_>, lost: &dyn Fn(&Pod) -> bool) -> Vec<String> {
    served(facts, workload, &|called| {
        let pods = facts.answering(called);
        pods.is_some_and(|pods| pods.iter().all(|pod| lost(pod)))
    })
}

/// What the workload answers for, of what is meant.
fn served(facts: &Facts<'_>, workload: &Workload<'_>, meant: &dyn Fn(usize) -> bool) -> Vec<String> {
    let indexes = workload.answers.iter().filter(|called| meant(**called));
    let mut names: Vec<String> = indexes.map(|called| called_name(&facts.called[*called].0)).collect();
    names.sort();
    names.dedup();
    names
}

/// What was not read. What only tells more of a loss decides no finding.
fn gaps(facts: &Facts<'_>, all: bool) -> BTreeSet<Gap> {
    let snapshot = facts.snapshot;
    let mut gaps = BTreeSet::new();
    if let Err(missing) = snapshot.nodes.all() {
        gaps.insert(Gap::unread("on which nodes replicas may be, and which nodes answer", &missing).decisive());
    }
    for workload in &facts.workloads {
        if let Some(missing) = &workload.unread {
            gaps.insert(Gap::unread("where the replicas are", missing).decisive());
        }
        for led in &workload.elections {
            if let Err(missing) = &led.lease {
                gaps.insert(Gap::unread("who leads", missing));
            }
        }
    }
    for (kind, missing) in called::unread(snapshot) {
        gaps.insert(match kind {
            CalledKind::Webhook => Gap::unread("which webhooks the loss of a node would unserve", &missing).decisive(),
            CalledKind::ApiService => Gap::unread("which aggregated APIs the loss of a node would unserve", &missing),
            CalledKind::Conversion => Gap::unread("which conversion webhooks the loss of a node would unserve", &missing),
        });
    }
    for workload in facts.workloads.iter().filter(|workload| workload.id.is_some()) {
        if let Err(missing) = snapshot.budgets.in_namespace(&workload.key.namespace) {
            let served = workload.id.is_some_and(|id| id.info().loss == Loss::Served);
            let gap = Gap::unread("which budgets cover the components", &missing);
            let decides = served && workload.desired.is_some_and(|wanted| wanted > 1);
            gaps.insert(if decides { gap.decisive() } else { gap });
        }
    }
    for deployment in facts.workloads.iter().filter_map(|workload| workload.deployment) {
        if let Surge::Unknown(why) = facts.surge(deployment) {
            let what = format!("whether a rollout of {} finds its host ports free", deployment.metadata.name);
            let missing = snapshot.nodes.all().err().or_else(|| snapshot.pods.all().err());
            let gap = missing.map_or_else(|| Gap::undecided(&what, why), |missing| Gap::unread(&what, &missing));
            gaps.insert(gap.decisive());
        }
    }
    let ours = |namespace: &str| facts.workloads.iter().any(|workload| workload.key.namespace == namespace);
    for (called, answering) in &facts.called {
        if let Answering::Unknown(missing) = answering
            && (all || ours(called.service.0))
        {
            gaps.insert(Gap::unread("who answers what the API server calls", missing).decisive());
        }
    }
    if all {
        for missing in [
            snapshot.pods.all().err(),
            snapshot.deployments.all().err(),
            snapshot.stateful_sets.all().err(),
        ]
        .into_iter()
        .flatten()
        {
            gaps.insert(Gap::unread("some workloads", &missing).decisive());
        }
    }
    gaps
}

fn daemon_set(set: &DaemonSet) -> DaemonSetCount {
    DaemonSetCount {
        name: set.metadata.name.clone(),
        namespace: set.metadata.namespace.clone(),
        desired: set.status.desired_number_scheduled,
        ready: set.status.number_ready,
    }
}

/// The nodes that hold replicas.
fn nodes(facts: &Facts<'_>) -> Vec<NodeState> {
    let mut holding: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for workload in &facts.workloads {
        for node in workload.pods.iter().filter_map(|pod| pod.node()) {
            holding.entry(node).or_default().insert(&workload.key.name);
        }
    }
    holding
        .into_iter()
        .map(|(name, components)| {
            let node = facts.snapshot.nodes.find("", name);
            NodeState {
                name: name.to_owned(),
                zone: node.and_then(zone).map(str::to_owned),
                region: node.and_then(region).map(str::to_owned),
                ready: node.map(Node::ready),
                cordoned: node.map(|node| node.spec.unschedulable),
                taints: node.map(taints).unwrap_or_default(),
                components: components.into_iter().map(str::to_owned).collect(),
            }
        })
        .collect()
}

/// The taints that keep pods away, as kubectl writes them.
fn taints(node: &Node) -> Vec<String> {
    let hard = node.spec.taints.iter().filter(|taint| taint.effect != "PreferNoSchedule");
    hard.map(|taint| match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    })
    .collect()
}
