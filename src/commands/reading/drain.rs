//! What `drain-preflight` reads.

use std::collections::BTreeSet;

use crate::cli::connection::ConnectionFlags;
use crate::cluster::kinds::Kind;
use crate::cluster::live::Reader;
use crate::cluster::snapshot::{Scope, Snapshot};
use crate::commands::failure::Failure;
use crate::commands::rights::Rights;
use crate::kubernetes::drain::{self, DrainFlags, Filtered};
use crate::kubernetes::workloads::{self, Owner};
use crate::kubernetes::{creation, preemption, scheduling};
use crate::simulation::trace;

use super::{account, begin, called_namespaces, one_namespace, parts};

/// What it lists.
pub fn rights() -> Rights {
    let kinds = [
        Kind::Node,
        Kind::Namespace,
        Kind::Pod,
        Kind::Deployment,
        Kind::ReplicaSet,
        Kind::ReplicationController,
        Kind::StatefulSet,
        Kind::DaemonSet,
        Kind::Job,
        Kind::PodDisruptionBudget,
        Kind::Service,
        Kind::EndpointSlice,
        Kind::MutatingWebhookConfiguration,
        Kind::ValidatingWebhookConfiguration,
        Kind::ApiService,
        Kind::CustomResourceDefinition,
        Kind::Lease,
        Kind::PersistentVolumeClaim,
        Kind::PersistentVolume,
        Kind::StorageClass,
        Kind::CsiNode,
        Kind::CsiDriver,
        Kind::VolumeAttachment,
        Kind::ResourceClaim,
        Kind::DeviceClass,
        Kind::ResourceQuota,
        Kind::LimitRange,
        Kind::ServiceAccount,
        Kind::PriorityClass,
        Kind::RuntimeClass,
        Kind::ValidatingAdmissionPolicy,
        Kind::ValidatingAdmissionPolicyBinding,
    ];
    Rights {
        command: "drain-preflight",
        kinds: kinds.into_iter().collect(),
        // Where a replacement lands hangs on the pods of every node.
        everywhere: &[Kind::Pod],
    }
}

/// Above this many nodes one list of all pods is less than one list each.
const NODES_EACH: usize = 8;

/// Which drain is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The nodes named.
    pub names: &'a [String],
    /// Whether each node is drained alone.
    pub each: bool,
    /// kubectl's flags.
    pub flags: &'a DrainFlags,
}

/// Reads what the question needs. `choose` gives the nodes meant, from a snapshot with all nodes.
///
/// # Errors
/// There is no connection, or `choose` finds no nodes.
pub async fn read(
    connection: &ConnectionFlags,
    question: &Question<'_>,
    choose: impl FnOnce(&Snapshot) -> Result<Vec<String>, Failure>,
) -> Result<(Snapshot, Vec<String>), Failure> {
    let (reader, mut snapshot) = begin(connection).await?;
    let mut first = vec![
        (Kind::Node, Scope::Cluster),
        (Kind::Namespace, Scope::Cluster),
        (Kind::MutatingWebhookConfiguration, Scope::Cluster),
        (Kind::ValidatingWebhookConfiguration, Scope::Cluster),
        (Kind::ApiService, Scope::Cluster),
        (Kind::CustomResourceDefinition, Scope::Cluster),
        (Kind::Deployment, Scope::Cluster),
    ];
    let pods = |nodes: &[String]| -> Vec<(Kind, Scope)> {
        match nodes.len() > NODES_EACH {
            true => vec![(Kind::Pod, Scope::Cluster)],
            false => nodes.iter().map(|node| (Kind::Pod, Scope::Node(node.clone()))).collect(),
        }
    };
    first.extend(pods(question.names));
    reader.read(&first, &mut snapshot).await?;
    let nodes = choose(&snapshot)?;
    if question.names.is_empty() {
        reader.read(&pods(&nodes), &mut snapshot).await?;
    }
    let removed = removed_namespaces(&snapshot, &nodes, question.flags);
    if snapshot.deployments.all().is_err() {
        let namespace = one_namespace(connection);
        eprintln!("note: not allowed to look for GPUStack everywhere, so only in namespace {namespace}");
        reader
            .read(&[(Kind::Deployment, Scope::Namespace(namespace))], &mut snapshot)
            .await?;
    }
    read_namespaced(&reader, &mut snapshot, &nodes, question, removed).await?;
    account(&reader);
    Ok((snapshot, nodes))
}

/// Namespaces of the pods that the drain removes.
fn removed_namespaces(snapshot: &Snapshot, nodes: &[String], flags: &DrainFlags) -> BTreeSet<String> {
    let mut namespaces = BTreeSet::new();
    for node in nodes {
        for pod in snapshot.pods.on_node(node).into_iter().flatten() {
            // A pod whose DaemonSet was not read yet may be removed.
            if matches!(
                drain::filter(snapshot, pod, flags, snapshot.observed_at),
                Filtered::Remove | Filtered::Unknown(_)
            ) {
                namespaces.insert(pod.metadata.namespace.clone());
            }
        }
    }
    namespaces
}

async fn read_namespaced(
    reader: &Reader,
    snapshot: &mut Snapshot,
    nodes: &[String],
    question: &Question<'_>,
    removed: BTreeSet<String>,
) -> Result<(), Failure> {
    let flags = question.flags;
    // DaemonSets tell which pods stay.
    let daemons: BTreeSet<String> = nodes
        .iter()
        .flat_map(|node| snapshot.pods.on_node(node).into_iter().flatten())
        .filter(|pod| pod.metadata.controller().is_some_and(|owner| owner.kind == "DaemonSet"))
        .map(|pod| pod.metadata.namespace.clone())
        .collect();
    parts(reader, snapshot, &[Kind::DaemonSet], &daemons).await?;
    let removed: BTreeSet<String> = if daemons.is_empty() {
        removed
    } else {
        removed_namespaces(snapshot, nodes, flags)
    };
    if removed.is_empty() {
        return Ok(());
    }
    let mut release = called_namespaces(snapshot);
    release.extend(removed.iter().cloned());
    parts(
        reader,
        snapshot,
        &[
            Kind::ReplicaSet,
            Kind::ReplicationController,
            Kind::StatefulSet,
            Kind::Job,
            Kind::PodDisruptionBudget,
            Kind::ResourceQuota,
            Kind::LimitRange,
            Kind::Lease,
        ],
        &removed,
    )
    .await?;
    read_for_creation(reader, snapshot, nodes, &removed).await?;
    parts(reader, snapshot, &[Kind::Service, Kind::EndpointSlice], &release).await?;
    // Where a replacement lands hangs on the pods of every node.
    reader.read(&[(Kind::Pod, Scope::Cluster)], snapshot).await?;
    if snapshot.pods.all().is_err() {
        parts(reader, snapshot, &[Kind::Pod], &release).await?;
    }
    read_storage(reader, snapshot, nodes, flags).await?;
    if question.each {
        // Who is preempted differs from node to node: all that may be.
        let mut priorities = snapshot.pods.seen().iter().map(|pod| preemption::priority(&pod.spec));
        let first = priorities.next();
        if priorities.any(|other| Some(other) != first) {
            let namespaces = snapshot.pods.seen().iter().map(|pod| pod.metadata.namespace.clone()).collect();
            return read_owners(reader, snapshot, &namespaces).await;
        }
        return Ok(());
    }
    read_victims(reader, snapshot, nodes, flags).await
}

/// Reads what becomes of pods that replacements preempt, if there may be any. Which those are hangs on what is read.
async fn read_victims(reader: &Reader, snapshot: &mut Snapshot, nodes: &[String], flags: &DrainFlags) -> Result<(), Failure> {
    let mut known: BTreeSet<String> = BTreeSet::new();
    loop {
        let namespaces: BTreeSet<String> = trace::victims(snapshot, nodes, flags)
            .into_iter()
            .map(|(namespace, _)| namespace)
            .filter(|namespace| !known.contains(namespace))
            .collect();
        if namespaces.is_empty() {
            return Ok(());
        }
        read_owners(reader, snapshot, &namespaces).await?;
        known.extend(namespaces);
    }
}

/// Reads what becomes of pods that are preempted in the namespaces.
async fn read_owners(reader: &Reader, snapshot: &mut Snapshot, namespaces: &BTreeSet<String>) -> Result<(), Failure> {
    let mut wanted = vec![
        (Kind::PodDisruptionBudget, Scope::Cluster),
        (Kind::PriorityClass, Scope::Cluster),
        (Kind::RuntimeClass, Scope::Cluster),
    ];
    if creation::has_policies(snapshot) {
        wanted.push((Kind::ValidatingAdmissionPolicy, Scope::Cluster));
        wanted.push((Kind::ValidatingAdmissionPolicyBinding, Scope::Cluster));
    }
    reader.read(&wanted, snapshot).await?;
    let kinds = [
        Kind::ReplicaSet,
        Kind::ReplicationController,
        Kind::StatefulSet,
        Kind::Job,
        Kind::DaemonSet,
        Kind::ResourceQuota,
        Kind::LimitRange,
        Kind::ServiceAccount,
        Kind::Service,
        Kind::EndpointSlice,
    ];
    parts(reader, snapshot, &kinds, namespaces).await
}

/// Reads what the volumes and dynamic resource claims of the evicted pods hang on, if they have any.
async fn read_storage(reader: &Reader, snapshot: &mut Snapshot, nodes: &[String], flags: &DrainFlags) -> Result<(), Failure> {
    let (mut claims, mut devices, mut disks, mut made) = (BTreeSet::new(), BTreeSet::new(), false, false);
    for pod in nodes.iter().flat_map(|node| snapshot.pods.on_node(node).into_iter().flatten()) {
        if matches!(drain::filter(snapshot, pod, flags, snapshot.observed_at), Filtered::Keep(_)) {
            continue;
        }
        let owner = workloads::owner(snapshot, pod);
        let namespace = &pod.metadata.namespace;
        if matches!(owner, Owner::StatefulSet(set) if !set.spec.volume_claim_templates.is_empty()) {
            claims.insert(namespace.clone());
        }
        for spec in std::iter::once(&*pod.spec).chain(owner.template().map(|template| &template.spec)) {
            for volume in &spec.volumes {
                if volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some() {
                    claims.insert(namespace.clone());
                }
                made |= volume.ephemeral.is_some();
                disks |= volume.aws_elastic_block_store.is_some()
                    || volume.gce_persistent_disk.is_some()
                    || volume.azure_disk.is_some()
                    || volume.cinder.is_some()
                    || volume.portworx_volume.is_some();
            }
            if !spec.resource_claims.is_empty() {
                devices.insert(namespace.clone());
            }
        }
    }
    if !devices.is_empty() {
        parts(reader, snapshot, &[Kind::ResourceClaim], &devices).await?;
        reader.read(&[(Kind::DeviceClass, Scope::Cluster)], snapshot).await?;
    }
    if !claims.is_empty() {
        parts(reader, snapshot, &[Kind::PersistentVolumeClaim], &claims).await?;
        reader.read(&[(Kind::PersistentVolume, Scope::Cluster)], snapshot).await?;
        made |= claims.iter().any(|namespace| match snapshot.claims.in_namespace(namespace) {
            Ok(claims) => claims.iter().any(|claim| claim.spec.volume_name.is_empty()),
            Err(_) => true,
        });
        disks |= snapshot
            .volumes
            .all()
            .map_or(true, |volumes| volumes.iter().any(|volume| scheduling::driver(volume).is_some()));
    }
    if claims.is_empty() && !disks {
        return Ok(());
    }
    // A claim that is made anew has a class too, and one that is missing is made by its StatefulSet.
    let statefully = claims.iter().any(|namespace| {
        let sets = snapshot.stateful_sets.in_namespace(namespace);
        sets.is_ok_and(|sets| sets.iter().any(|set| !set.spec.volume_claim_templates.is_empty()))
    });
    let mut wanted = Vec::new();
    if made || statefully {
        wanted.push((Kind::StorageClass, Scope::Cluster));
    }
    if made || statefully || disks {
        wanted.extend([
            (Kind::CsiNode, Scope::Cluster),
            (Kind::CsiDriver, Scope::Cluster),
            (Kind::VolumeAttachment, Scope::Cluster),
        ]);
    }
    reader.read(&wanted, snapshot).await?;
    let mut drivers = snapshot.csi_nodes.seen().iter().flat_map(|node| &node.spec.drivers);
    if drivers.any(|driver| driver.allocatable.count.is_some()) {
        // A node's limit counts the volumes of all its pods, whatever their namespace.
        reader.read(&[(Kind::PersistentVolumeClaim, Scope::Cluster)], snapshot).await?;
        reader
            .read(
                &[(Kind::PersistentVolume, Scope::Cluster), (Kind::StorageClass, Scope::Cluster)],
                snapshot,
            )
            .await?;
    }
    Ok(())
}

/// Reads what decides whether new pods are created, as far as the pods of the nodes name it.
async fn read_for_creation(reader: &Reader, snapshot: &mut Snapshot, nodes: &[String], removed: &BTreeSet<String>) -> Result<(), Failure> {
    let named = |name: &Option<String>| name.as_deref().is_some_and(|name| !name.is_empty());
    let (mut accounts, mut priorities, mut runtimes) = (BTreeSet::new(), false, false);
    let pods = nodes.iter().flat_map(|node| snapshot.pods.on_node(node).into_iter().flatten());
    for pod in pods.filter(|pod| removed.contains(&pod.metadata.namespace)) {
        // The template can name another account or class than the pod, as in a rollout.
        let owner = workloads::owner(snapshot, pod);
        for spec in std::iter::once(&*pod.spec).chain(owner.template().map(|template| &template.spec)) {
            if spec.service_account_name.as_deref().is_some_and(creation::named_account) {
                accounts.insert(pod.metadata.namespace.clone());
            }
            priorities |= named(&spec.priority_class_name);
            runtimes |= named(&spec.runtime_class_name);
        }
    }
    parts(reader, snapshot, &[Kind::ServiceAccount], &accounts).await?;
    let policies = creation::has_policies(snapshot);
    let wanted: Vec<(Kind, Scope)> = [
        (Kind::PriorityClass, priorities),
        (Kind::RuntimeClass, runtimes),
        (Kind::ValidatingAdmissionPolicy, policies),
        (Kind::ValidatingAdmissionPolicyBinding, policies),
    ]
    .into_iter()
    .filter(|(_, wanted)| *wanted)
    .map(|(kind, _)| (kind, Scope::Cluster))
    .collect();
    reader.read(&wanted, snapshot).await?;
    Ok(())
}
