//! The components of GPUStack's control plane that run as Deployments.

use crate::cluster::objects::Deployment;
use crate::kubernetes::leases::HolderForm;

/// A component of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentId {
    /// GPUStack's own API server and controllers.
    Worker,
    /// Kueue's controller manager.
    Kueue,
    /// Node Feature Discovery's master.
    NfdMaster,
    /// Node Feature Discovery's garbage collector.
    NfdGc,
    /// Controller of the NFS CSI driver.
    NfsController,
    /// Controller of the S3 CSI driver.
    S3Controller,
    /// The CSI snapshot controller.
    SnapshotController,
}

/// What the loss of a component's last replica means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// The API server calls it, and refuses requests without it.
    Served,
    /// NFD's master: node labels are not kept up.
    FeatureLabels,
    /// A CSI controller: claims are not provisioned; mounted volumes are not touched.
    Storage,
    /// Nothing that is missed soon.
    Housekeeping,
}

/// A component, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// Which.
    pub id: ComponentId,
    /// Its name for people, within a sentence.
    pub title: &'static str,
    /// What the loss of its last replica means.
    pub loss: Loss,
    /// Values key of the replicas.
    pub replicas_key: &'static str,
    /// Values key that switches its budget on; `None` where the chart has no budget for it.
    pub budget_key: Option<&'static str>,
    /// Values key of its spread constraints; `None` where the chart renders none.
    pub spread_key: Option<&'static str>,
    /// Values key of its affinity; `None` where the chart renders none.
    pub affinity_key: Option<&'static str>,
    /// Values key of its rollout strategy's type; `None` where the chart has none.
    pub strategy_key: Option<&'static str>,
    /// Values key of its tolerations.
    pub tolerations_key: &'static str,
}

/// An election that a component's replicas take part in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    /// What of the component is led, such as `csi-provisioner`.
    pub of: &'static str,
    /// Name of the lease.
    pub lease: String,
    /// Namespace of the lease.
    pub namespace: String,
    /// Seconds that a standby waits after the last renewal it saw.
    pub duration_seconds: i64,
    /// Seconds in which the leader must have renewed.
    pub renew_seconds: i64,
    /// Seconds between two tries.
    pub retry_seconds: i64,
    /// Whether a leader that ends cleanly empties the holder.
    pub released_on_exit: bool,
    /// What the holder identity is made of.
    pub holder: HolderForm,
}

impl ComponentId {
    /// Every component.
    pub const ALL: &[Self] = &[Self::Worker, Self::Kueue, Self::NfdMaster, Self::NfdGc, Self::NfsController, Self::S3Controller, Self::SnapshotController];

    /// The component's data.
    pub const fn info(self) -> Component {
        Component { id: self, title: "the worker", loss: Loss::Served, replicas_key: "worker.replicas", budget_key: None, spread_key: None, affinity_key: None, strategy_key: None, tolerations_key: "worker.tolerations" }
    }

    /// The component that a Deployment runs, told by its labels; it says nothing on whose it is.
    pub fn of(deployment: &Deployment) -> Option<Self> {
        let _ = deployment;
        None
    }

    /// The elections that the Deployment's replicas take part in; none where its arguments switch them off.
    pub fn elections(self, deployment: &Deployment) -> Vec<Election> {
        let _ = deployment;
        Vec::new()
    }
}
