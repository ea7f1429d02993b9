//! `leases`: who leads.

use crate::checks::assessed::Request;
use crate::checks::leases;
use crate::cli::views::{LeasesArgs, ViewFlags};
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::Snapshot;
use crate::gpustack::install::Install;
use crate::report::finding::Verdict;
use crate::report::leases::LeaseStatus;

use super::reading::views::Wanted;
use super::view::View;

impl View for LeasesArgs {
    type Document = LeaseStatus;

    fn flags(&self) -> &ViewFlags {
        &self.view
    }

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
