//! Rules of Kubernetes as pure functions of a snapshot.

pub mod admission;
pub mod endpoints;
pub mod leases;
pub mod selectors;
#[cfg(test)]
pub mod testing;
