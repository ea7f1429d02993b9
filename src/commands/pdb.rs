//! `pdb`: which budgets hold.

use crate::checks::assessed::Request;
use crate::checks::pdb;
use crate::cli::connection::ConnectionFlags;
use crate::cli::views::PdbArgs;
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::Snapshot;
use crate::gpustack::install::Install;
use crate::report::budgets::BudgetStatus;
use crate::report::finding::Verdict;

use super::failure::Failure;
use super::reading::views::Wanted;
use super::view::{self, View};

impl View for PdbArgs {
    type Document = BudgetStatus;

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

/// Runs the command; the result is the exit code.
///
/// # Errors
/// A wrong question; no install; a cluster or file that cannot be read.
pub async fn run(args: &PdbArgs, connection: &ConnectionFlags) -> Result<u8, Failure> {
    view::run(args, &args.view, connection).await
}
