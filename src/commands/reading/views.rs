//! What the views read: lists of the cluster, and lists of the install's namespaces.

use std::collections::BTreeSet;

use crate::cli::connection::ConnectionFlags;
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::{Scope, Snapshot};
use crate::commands::failure::Failure;
use crate::commands::rights::Rights;
use crate::gpustack::components::ComponentId;
use crate::gpustack::install::{self, Found};
use crate::kubernetes::{host_ports, surge};

use super::{account, begin, one_namespace, parts};

/// What a view asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Kinds that live in no namespace.
    pub cluster: &'static [Kind],
    /// Kinds of the install's namespaces.
    pub namespaced: &'static [Kind],
    /// Whether it matters who else binds host ports on the nodes of the components.
    pub ports: bool,
    /// Whether all namespaces are asked about.
    pub all: bool,
}

impl Wanted {
    /// What it lists.
    pub fn rights(&self, command: &'static str) -> Rights {
        let kinds = self.cluster.iter().chain(self.namespaced).copied();
        Rights {
            command,
            kinds: kinds.chain([Kind::Deployment]).collect(),
            everywhere: if self.ports { &[Kind::Pod] } else { &[] },
        }
    }
}

/// Reads what a view asks for, about the install named, or all of those found.
///
/// # Errors
/// The server cannot be reached, or does not accept the credential.
pub async fn read(connection: &ConnectionFlags, release: Option<&str>, wanted: &Wanted) -> Result<Snapshot, Failure> {
    let (reader, mut snapshot) = begin(connection).await?;
    let mut first: Vec<(Kind, Scope)> = wanted.cluster.iter().map(|kind| (*kind, Scope::Cluster)).collect();
    first.push((Kind::Deployment, Scope::Cluster));
    if wanted.all {
        first.extend(wanted.namespaced.iter().map(|kind| (*kind, Scope::Cluster)));
    }
    reader.read(&first, &mut snapshot).await?;
    let namespace = one_namespace(connection);
    if snapshot.deployments.all().is_err() {
        if connection.namespace.is_none() {
            eprintln!("note: not allowed to look for GPUStack everywhere, so only in namespace {namespace}");
        }
        let here = Scope::Namespace(namespace.clone());
        reader.read(&[(Kind::Deployment, here)], &mut snapshot).await?;
    }
    let mut namespaces: BTreeSet<String> = match install::find(&snapshot, release, namespace_of(&snapshot, connection).as_deref()) {
        Found::One(install) => vec![install],
        Found::Several(installs) => installs,
        Found::None | Found::Unknown(_) => Vec::new(),
    }
    .iter()
    .flat_map(|install| {
        let components = install
            .components
            .iter()
            .map(|(_, deployment)| deployment.metadata.namespace.clone());
        components.chain([install.namespace.to_owned()])
    })
    .collect();
    // Without a worker, DaemonSets tell where the install is.
    namespaces.extend(connection.namespace.clone());
    if namespaces.is_empty() {
        namespaces.insert(namespace);
    }
    let covered = |kind: &Kind| snapshot.objects.covered(*kind, &Scope::Cluster);
    let kinds: Vec<Kind> = wanted.namespaced.iter().copied().filter(|kind| !covered(kind)).collect();
    parts(&reader, &mut snapshot, &kinds, &namespaces).await?;
    if wanted.ports {
        let kinds = neighbours(&snapshot, &namespaces);
        reader.read(&kinds, &mut snapshot).await?;
    }
    account(&reader);
    Ok(snapshot)
}

/// The pods that may have a host port that a component needs: all, where a rollout may put a new pod anywhere; else those
/// on the nodes of its pods that are not Ready.
fn neighbours(snapshot: &Snapshot, namespaces: &BTreeSet<String>) -> Vec<(Kind, Scope)> {
    let mut deployments = snapshot
        .deployments
        .seen()
        .iter()
        .filter(|deployment| namespaces.contains(&deployment.metadata.namespace) && ComponentId::of(deployment).is_some());
    let surges = deployments.any(|deployment| {
        surge::fenceposts(deployment).is_some_and(|(surge, _)| surge > 0) && !host_ports::bound(&deployment.spec.template.spec).is_empty()
    });
    if surges {
        return vec![(Kind::Pod, Scope::Cluster)];
    }
    let pods = snapshot.pods.seen().iter().filter(|pod| {
        namespaces.contains(&pod.metadata.namespace) && !pod.ready() && !pod.finished() && !host_ports::bound(&pod.spec).is_empty()
    });
    let nodes: BTreeSet<&str> = pods.filter_map(|pod| pod.node()).collect();
    nodes.into_iter().map(|node| (Kind::Pod, Scope::Node(node.to_owned()))).collect()
}

/// The namespace to look for the install in: the one asked for, or the usual one where looking everywhere is forbidden.
pub fn namespace_of(snapshot: &Snapshot, connection: &ConnectionFlags) -> Option<String> {
    let everywhere = snapshot.deployments.all().is_ok();
    let usual = || {
        let namespace = one_namespace(connection);
        snapshot.deployments.in_namespace(&namespace).is_ok().then_some(namespace)
    };
    connection.namespace.clone().or_else(|| if everywhere { None } else { usual() })
}
