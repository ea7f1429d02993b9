//! `pdb`: which budgets hold.

use crate::checks::assessed::Request;
use crate::checks::pdb;
use crate::cli::views::{PdbArgs, ViewFlags};
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::Snapshot;
use crate::gpustack::install::Install;
use crate::report::budgets::BudgetStatus;
use crate::report::finding::Verdict;

use super::reading::views::Wanted;
use super::view::View;

impl View for PdbArgs {
    type Document = BudgetStatus;

    fn flags(&self) -> &ViewFlags {
        &self.view
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            cluster: &[Kind::CustomResourceDefinition],
            namespaced: &[
                Kind::Pod,
                Kind::ReplicaSet,
                Kind::ReplicationController,
                Kind::StatefulSet,
                Kind::Job,
                Kind::DaemonSet,
                Kind::PodDisruptionBudget,
                Kind::HorizontalPodAutoscaler,
            ],
            ports: false,
            all: self.all,
        }
    }

    fn assess(&self, snapshot: &Snapshot, install: Option<&Install<'_>>, request: &Request) -> (BudgetStatus, Verdict) {
        let document = pdb::assess(snapshot, install, request);
        let verdict = document.verdict;
        (document, verdict)
    }
}
