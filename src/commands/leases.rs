//! `leases`: who leads.

use crate::checks::assessed::Request;
use crate::checks::leases;
use crate::cli::connection::ConnectionFlags;
use crate::cli::views::LeasesArgs;
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::Snapshot;
use crate::gpustack::install::Install;
use crate::report::finding::Verdict;
use crate::report::leases::LeaseStatus;

use super::failure::Failure;
use super::reading::views::Wanted;
use super::view::{self, View};

impl View for LeasesArgs {
    type Document = LeaseStatus;

    fn wanted(&self) -> Wanted {
        Wanted {
            cluster: &[Kind::Node],
            namespaced: &[Kind::Pod, Kind::ReplicaSet, Kind::Lease],
            ports: false,
            all: self.all,
        }
    }

    fn assess(&self, snapshot: &Snapshot, install: Option<&Install<'_>>, request: &Request) -> (LeaseStatus, Verdict) {
        let document = leases::assess(snapshot, install, request);
        let verdict = document.verdict;
        (document, verdict)
    }
}

/// Runs the command; the result is the exit code.
///
/// # Errors
/// A wrong question; no install; a cluster or file that cannot be read.
pub async fn run(args: &LeasesArgs, connection: &ConnectionFlags) -> Result<u8, Failure> {
    view::run(args, &args.view, connection).await
}
