//! Leaders on the drained nodes: `leader-moves`; [`crate::checks::workloads`] raises `leader-without-standby`.

use crate::cluster::objects::{Lease, Pod};
use crate::kubernetes::leases::{self, Holder, HolderForm};
use crate::kubernetes::workloads::{self, WorkloadKey};
use crate::report::document::LeaderRow;
use crate::report::finding::{Certainty, Finding, Remedy, Severity};

use super::codes::Code;
use super::{Context, finding, left, object};
use crate::simulation::state::State;

/// A leader on a drained node.
#[derive(Clone, Debug)]
pub struct Leader {
    /// The row of the document.
    pub row: LeaderRow,
    /// A candidate that leads, or may lead, and goes.
    pub candidate: usize,
    /// Whether the drain certainly ends it.
    pub certainty: Certainty,
    /// The pods that may lead and go.
    pub going: String,
}

struct Rule {
    form: HolderForm,
    released: bool,
    duration: i64,
    retry: i64,
    component: Option<WorkloadKey>,
}

/// The leaders that the drain ends.
pub fn leaders(context: &Context<'_>) -> Vec<Leader> {
    let trace = context.trace;
    let mut found = Vec::new();
    let going = leases::Identities::new(context.snapshot, trace.cast.candidates.iter().map(|candidate| candidate.pod));
    for lease in context.snapshot.leases.seen().iter().filter(|lease| going.may_hold(lease)) {
        let rule = rule(context, lease);
        // Without a component of its own a lease counts where its holder is a pod of the same namespace.
        let candidate = |pod: &Pod| match &rule.component {
            Some(key) => workloads::owner(context.snapshot, pod).key(&pod.metadata.namespace).as_ref() == Some(key),
            None => pod.metadata.namespace == lease.metadata.namespace,
        };
        // A node's name does not tell which of its pods leads: the lease moves for certain where all of them go.
        let holders: Vec<&Pod> = match leases::holder(context.snapshot, lease, rule.form, &candidate) {
            Holder::Pod(pod) | Holder::Node(_, Some(pod)) => vec![pod],
            Holder::Node(node, None) if rule.component.is_some() => leases::candidates(context.snapshot, lease, node, &candidate).collect(),
            Holder::Node(_, None) | Holder::Released | Holder::Unmatched(_) | Holder::Unknown(_) => Vec::new(),
        };
        let removed = |index: &usize| trace.cast.removed(&trace.cast.candidates[*index]);
        let indices: Vec<Option<usize>> = holders.iter().map(|pod| trace.cast.candidate_of(pod).filter(removed)).collect();
        let going: Vec<usize> = indices.iter().flatten().copied().filter(|index| context.leaves(*index)).collect();
        let Some(index) = going.first().copied() else { continue };
        let gone = |end: &State<'_>| indices.iter().all(|index| index.is_some_and(|index| left(end, index)));
        let moves = trace.paths(gone).certainty().unwrap_or(Certainty::Possible);
        let workload = trace.cast.candidates[index].workload;
        let staying = workload.map(|workload| trace.cast.workloads[workload].staying.as_slice());
        let kept = trace.cast.candidates.iter().enumerate().filter(|(index, candidate)| {
            workload.is_some() && candidate.workload == workload && !context.leaves(*index) && !candidate.pod.metadata.terminating()
        });
        let successors: Vec<String> = staying
            .into_iter()
            .flatten()
            .copied()
            .chain(kept.map(|(_, candidate)| candidate.pod))
            .filter(|pod| context.snapshot.runs(pod))
            .map(|pod| pod.metadata.name.clone())
            .collect();
        let seconds = |value: i64| u32::try_from(value.max(0)).unwrap_or(u32::MAX);
        let gap = if rule.released {
            [0, seconds(rule.retry)]
        } else {
            [seconds(rule.duration), seconds(rule.duration + rule.retry)]
        };
        found.push(Leader {
            row: LeaderRow {
                lease: lease.metadata.name.clone(),
                namespace: lease.metadata.namespace.clone(),
                holder: names(holders.iter().copied()),
                successors,
                gap_seconds: gap,
            },
            candidate: index,
            certainty: moves,
            going: names(going.iter().map(|index| trace.cast.candidates[*index].pod)),
        });
    }
    found
}

fn names<'a>(pods: impl Iterator<Item = &'a Pod>) -> String {
    pods.map(|pod| pod.metadata.name.as_str()).collect::<Vec<_>>().join(" or ")
}

/// How the lease's election works: by the catalogue, else the client library's defaults without a release.
fn rule(context: &Context<'_>, lease: &Lease) -> Rule {
    let known = context.install.and_then(|install| {
        install
            .components
            .iter()
            .flat_map(|(id, deployment)| id.elections(deployment).into_iter().map(move |election| (election, *deployment)))
            .find(|(election, _)| election.lease == lease.metadata.name && election.namespace == lease.metadata.namespace)
    });
    match known {
        Some((election, deployment)) => Rule {
            component: Some(WorkloadKey {
                kind: "Deployment".to_owned(),
                namespace: deployment.metadata.namespace.clone(),
                name: deployment.metadata.name.clone(),
            }),
            form: election.holder,
            released: election.released_on_exit,
            duration: election.duration_seconds,
            retry: election.retry_seconds,
        },
        None => Rule {
            form: HolderForm::Unknown,
            released: false,
            duration: lease.spec.lease_duration_seconds,
            retry: 2,
            component: None,
        },
    }
}

/// Leaders that move to a running standby.
pub fn moving(context: &Context<'_>) -> Vec<Finding> {
    leaders(context)
        .into_iter()
        .filter(|leader| !leader.row.successors.is_empty())
        .map(|leader| {
            let Leader { row, certainty, going, .. } = &leader;
            let [shortest, longest] = row.gap_seconds;
            let node = context.trace.cast.node_of(&context.trace.cast.candidates[leader.candidate]);
            let mut item = finding(
                Code::LeaderMoves,
                Severity::Info,
                *certainty,
                object("Lease", &row.namespace, &row.lease),
                format!(
                    "the leader {} from {going} to {}, after {shortest} to {longest} s",
                    if *certainty == Certainty::Certain { "moves" } else { "may move" },
                    row.successors.join(" or ")
                ),
            );
            item.node = Some(node.to_owned());
            item.evidence = vec![format!("{} holds the lease, on {node}", row.holder)];
            item.consequence = "nothing is reconciled in between; what is served stays served".to_owned();
            item.remedy = Remedy {
                text: "nothing; to watch it:".to_owned(),
                command: Some(context.kubectl.line(["get", "lease", &row.lease, "-n", &row.namespace, "-w"])),
                values_key: None,
            };
            item
        })
        .collect()
}
