//! `placement`: where the replicas are.

use crate::checks::assessed::Request;
use crate::checks::placement;
use crate::cli::views::{PlacementArgs, ViewFlags};
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::Snapshot;
use crate::gpustack::install::Install;
use crate::report::finding::Verdict;
use crate::report::placement::Placement;

use super::reading::views::Wanted;
use super::view::View;

impl View for PlacementArgs {
    type Document = Placement;

    fn flags(&self) -> &ViewFlags {
        &self.view
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            cluster: &[
                Kind::Node,
                Kind::Namespace,
                Kind::MutatingWebhookConfiguration,
                Kind::ValidatingWebhookConfiguration,
                Kind::ApiService,
                Kind::CustomResourceDefinition,
            ],
            namespaced: if self.all {
                &[
                    Kind::Pod,
                    Kind::ReplicaSet,
                    Kind::ReplicationController,
                    Kind::StatefulSet,
                    Kind::Job,
                    Kind::DaemonSet,
                    Kind::PodDisruptionBudget,
                    Kind::Lease,
                    Kind::Service,
                ]
            } else {
                &[
                    Kind::Pod,
                    Kind::ReplicaSet,
                    Kind::DaemonSet,
                    Kind::PodDisruptionBudget,
                    Kind::Lease,
                    Kind::Service,
                ]
            },
            ports: true,
            all: self.all,
        }
    }

    fn assess(&self, snapshot: &Snapshot, install: Option<&Install<'_>>, request: &Request) -> (Placement, Verdict) {
        let document = placement::assess(snapshot, install, request);
        let verdict = document.verdict;
        (document, verdict)
    }
}
