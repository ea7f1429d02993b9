//! Finding the install.

use crate::cluster::objects::Deployment;
use crate::cluster::snapshot::{NotRead, Snapshot};

use super::components::ComponentId;

/// How the worker came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The operator chart, with all components in one release.
    Chart,
    /// GPUStack's server renders the worker, and the worker installs the rest: no values can be set.
    Image,
    /// The worker runs outside the cluster and is called by its address.
    Outside,
}

/// An install of GPUStack's operator.
#[derive(Clone, Debug)]
pub struct Install<'a> {
    /// Helm release.
    pub release: &'a str,
    /// Namespace: the worker's, else Kueue's.
    pub namespace: &'a str,
    /// Version of the operator chart, where a label tells.
    pub chart_version: Option<String>,
    /// How the worker came to be.
    pub mode: Mode,
    /// The components that run as Deployments, in the order of [`ComponentId::ALL`].
    pub components: Vec<(ComponentId, &'a Deployment)>,
}

/// What was found.
#[derive(Clone, Debug)]
pub enum Found<'a> {
    /// One install.
    One(Install<'a>),
    /// None, and it would have been seen.
    None,
    /// Several, sorted by namespace and release.
    Several(Vec<Install<'a>>),
    /// It cannot be told.
    Unknown(NotRead),
}

/// Finds installs by their labels, narrowed down to a release and a namespace where given.
pub fn find<'a>(snapshot: &'a Snapshot, release: Option<&str>, namespace: Option<&str>) -> Found<'a> {
    let _ = (snapshot, release, namespace);
    Found::None
}

impl<'a> Install<'a> {
    /// The Deployment of a component, if the install has it.
    pub fn component(&self, id: ComponentId) -> Option<&'a Deployment> {
        self.components.iter().find(|(found, _)| *found == id).map(|(_, deployment)| *deployment)
    }

    /// The component that the Deployment is in this install.
    pub fn component_of(&self, namespace: &str, name: &str) -> Option<ComponentId> {
        self.components.iter().find(|(_, deployment)| deployment.metadata.namespace == namespace && deployment.metadata.name == name).map(|(id, _)| *id)
    }
}

/// Whether the Service is the one by which the API server reaches the install's Kueue (its webhooks and conversion, not its visibility API) or its worker.
pub fn is_kueue_or_worker_service(snapshot: &Snapshot, install: &Install<'_>, namespace: &str, name: &str) -> bool {
    let _ = (snapshot, install, namespace, name);
    false
}

/// Whether a webhook configuration of this name is the worker's.
pub fn is_worker_configuration(name: &str) -> bool {
    matches!(name, "gpustack-worker-mutation" | "gpustack-worker-validation")
}
