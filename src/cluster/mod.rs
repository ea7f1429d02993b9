//! Getting the cluster's objects: from a live API server or from files, into one immutable [`snapshot::Snapshot`].

pub mod connect;
pub mod files;
pub mod kinds;
pub mod live;
pub mod objects;
pub mod progress;
pub mod shared;
pub mod snapshot;
