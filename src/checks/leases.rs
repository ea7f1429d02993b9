//! From a snapshot to the document of `leases`.

use std::collections::BTreeSet;

use crate::cluster::objects::{Lease, Pod};
use crate::cluster::snapshot::Snapshot;
use crate::gpustack::components::ComponentId;
use crate::gpustack::install::Install;
use crate::kubernetes::leases::{self, Holder, HolderForm};
use crate::report::finding::Verdict;
use crate::report::leases::{LeaseHolder, LeaseRow, LeaseStatus, MissingLease, NoSuccessor};
use crate::report::placement::ReplicaState;
use crate::simulation::cast::Gap;

use super::assessed::{Request, conclude, header};
use super::object;
use super::standing::facts::{Facts, Led, Workload};
use super::standing::{self, Topic};

/// The lock of the worker's own installations, which leads nothing.
const INSTALL_LOCK: &str = "applications.worker.gpustack.ai";
/// Where each node's kubelet renews a lease.
const NODE_LEASES: &str = "kube-node-lease";

/// Says who holds the leases, and who could take over.
pub fn assess(snapshot: &Snapshot, install: Option<&Install<'_>>, request: &Request) -> LeaseStatus {
    let facts = Facts::new(snapshot, install, &request.kubectl, false);
    let about = object("Namespace", "", install.map_or("default", |install| install.namespace));
    let (findings, not_assessed) = conclude(
        standing::findings(Topic::Leases, &facts),
        &gaps(&facts, request.all),
        &about,
        request,
    );
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    for workload in &facts.workloads {
        for led in &workload.elections {
            match led.lease {
                Ok(Some(lease)) => rows.push(row(&facts, lease, Some((workload, led)))),
                Ok(None) if workload.desired != Some(0) => missing.push(MissingLease {
                    name: led.election.lease.clone(),
                    namespace: led.election.namespace.clone(),
                    component: workload.reference(),
                    lock: led.election.lock,
                }),
                _ => {}
            }
        }
    }
    let known: BTreeSet<(String, String)> = rows.iter().map(|row| (row.namespace.clone(), row.name.clone())).collect();
    let wanted = |namespace: &str| request.all || install.is_some_and(|install| install.lies_in(namespace));
    rows.extend(
        snapshot
            .leases
            .seen()
            .iter()
            .filter(|lease| {
                let meta = &lease.metadata;
                wanted(&meta.namespace)
                    && meta.name != INSTALL_LOCK
                    && meta.namespace != NODE_LEASES
                    && !known.contains(&(meta.namespace.clone(), meta.name.clone()))
            })
            .map(|lease| row(&facts, lease, None)),
    );
    LeaseStatus {
        header: header("LeaseStatus", snapshot, install),
        verdict: Verdict::of(&findings),
        findings,
        leases: rows,
        missing,
        without_election: facts
            .workloads
            .iter()
            .filter(|workload| {
                let elects = workload.id.is_some_and(|id| id != ComponentId::NfdGc);
                elects && workload.desired != Some(0) && workload.elections.is_empty()
            })
            .map(Workload::reference)
            .collect(),
        not_assessed,
    }
}

fn row<'a>(facts: &Facts<'a>, lease: &'a Lease, led: Option<(&Workload<'a>, &Led<'a>)>) -> LeaseRow {
    let snapshot = facts.snapshot;
    let found = match led.and_then(|(_, led)| led.holder.clone()) {
        Some(holder) => holder,
        None => leases::holder(snapshot, lease, HolderForm::Unknown, &|_| false),
    };
    let holder = match &found {
        Holder::Pod(pod) => Some(LeaseHolder {
            pod: Some(pod.metadata.name.clone()),
            node: pod.node().map(str::to_owned),
        }),
        Holder::Node(node, pod) => Some(LeaseHolder {
            pod: pod.map(|pod| pod.metadata.name.clone()),
            node: Some((*node).to_owned()),
        }),
        Holder::Released | Holder::Unmatched(_) | Holder::Unknown(_) => None,
    };
    let holder_unknown = match &found {
        Holder::Unmatched(why) => Some(why.clone()),
        Holder::Unknown(missing) => Some(missing.to_string()),
        Holder::Node(node, None) if led.is_some() => {
            let pods = led.map(|(workload, _)| workload.pods.as_slice()).unwrap_or_default();
            let here = pods.iter().filter(|pod| pod.node() == Some(node)).count();
            Some(match here {
                0 => format!("no replica is on {node}"),
                several => format!("{several} replicas are on {node}"),
            })
        }
        _ => None,
    };
    let (successors, others) = match led {
        Some((workload, _)) => standbys(facts, workload, &found),
        None => (Vec::new(), Vec::new()),
    };
    let seconds = led.filter(|_| !successors.is_empty()).map(|(_, led)| {
        let waited = gap_after_loss(led, lease);
        let released = [0, led.election.retry_seconds];
        (if led.election.released_on_exit { released } else { waited }, waited)
    });
    LeaseRow {
        name: lease.metadata.name.clone(),
        namespace: lease.metadata.namespace.clone(),
        component: led.map(|(workload, _)| workload.reference()),
        of: led.map(|(_, led)| led.election.of.to_owned()),
        holder_identity: lease.spec.holder_identity.clone(),
        holder,
        holder_unknown,
        age_seconds: leases::age_seconds(snapshot, lease),
        duration_seconds: lease.spec.lease_duration_seconds,
        stale: leases::stale(snapshot, lease),
        transitions: lease.spec.lease_transitions,
        released_on_exit: led.map(|(_, led)| led.election.released_on_exit),
        successor_nodes: successors.iter().map(|pod| pod.node().unwrap_or_default().to_owned()).collect(),
        successors: successors.into_iter().map(|pod| pod.metadata.name.clone()).collect(),
        others,
        gap_after_exit: seconds.map(|(exit, _)| exit),
        gap_after_loss: seconds.map(|(_, loss)| loss),
    }
}

/// Seconds without a leader after the loss of its node: a standby waits for the whole duration.
pub fn gap_after_loss(led: &Led<'_>, lease: &Lease) -> [i64; 2] {
    let duration = lease.spec.lease_duration_seconds;
    [duration, duration.saturating_add(led.election.retry_seconds)]
}

/// The replicas that could take over if the holder's node were lost, and those that could not.
pub fn standbys<'a>(facts: &Facts<'_>, workload: &Workload<'a>, holder: &Holder<'_>) -> (Vec<&'a Pod>, Vec<NoSuccessor>) {
    let (mut successors, mut others) = (Vec::new(), Vec::new());
    for pod in &workload.pods {
        match no_successor(facts, pod, holder) {
            None => successors.push(*pod),
            Some(None) => {}
            Some(Some(why)) => others.push(NoSuccessor {
                pod: pod.metadata.name.clone(),
                why,
            }),
        }
    }
    (successors, others)
}

/// Why a replica could not take over if the holder's node were lost: `None` where it could, `Some(None)` for the holder.
fn no_successor(facts: &Facts<'_>, pod: &Pod, holder: &Holder<'_>) -> Option<Option<String>> {
    if holder.pod().is_some_and(|holder| holder.key() == pod.key()) {
        return Some(None);
    }
    if !facts.snapshot.runs(pod) {
        let (state, why) = facts.state(pod);
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        return Some(Some(format!("it {}{why}", state.in_words())));
    }
    // What crash-loops now and then runs, and never for long.
    if let (ReplicaState::CrashLoops, why) = facts.state(pod) {
        return Some(Some(format!(
            "it crash-loops{}",
            why.map(|why| format!(": {why}")).unwrap_or_default()
        )));
    }
    match (holder.node(), pod.node()) {
        (Some(held), Some(node)) if held == node => Some(Some(format!("it is on the holder's node, {node}"))),
        _ => None,
    }
}

fn gaps(facts: &Facts<'_>, all: bool) -> BTreeSet<Gap> {
    let snapshot = facts.snapshot;
    let mut gaps = BTreeSet::new();
    if let Err(missing) = snapshot.nodes.all() {
        gaps.insert(Gap::unread("which nodes answer, and which of them hold leases by their names", &missing).decisive());
    }
    for workload in &facts.workloads {
        if let Some(missing) = &workload.unread {
            gaps.insert(Gap::unread("which replicas could hold a lease", missing).decisive());
        }
        for led in &workload.elections {
            match (&led.lease, &led.holder) {
                (Err(missing), _) => gaps.insert(Gap::unread("who leads", missing).decisive()),
                (_, Some(Holder::Unknown(missing))) => gaps.insert(Gap::unread("who leads", missing).decisive()),
                _ => false,
            };
        }
    }
    if snapshot.observed_at.is_none() && facts.workloads.iter().any(|workload| !workload.elections.is_empty()) {
        gaps.insert(Gap::undecided(
            "how old the last renewals are",
            "the files do not say when they were captured; without that no lease is called stale",
        ));
    }
    if all && let Err(missing) = snapshot.leases.all() {
        gaps.insert(Gap::unread("the leases of all namespaces", &missing).decisive());
    }
    gaps
}
