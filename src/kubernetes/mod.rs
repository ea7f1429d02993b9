//! Rules of Kubernetes as pure functions of a snapshot.

pub mod admission;
pub mod allowance;
pub mod autoscaling;
pub mod called;
pub mod creation;
pub mod disruption;
pub mod drain;
pub mod endpoints;
pub mod eviction;
pub mod host_ports;
pub mod leases;
pub mod preemption;
pub mod quantity;
pub mod scheduling;
pub mod selectors;
pub mod surge;
#[cfg(test)]
pub mod testing;
pub mod workloads;
