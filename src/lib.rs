//! What a drain would really do to GPUStack's control plane.
//!
//! One direction of travel: [`cluster`] reads objects into a snapshot, [`kubernetes`] holds the rules as pure
//! functions of it, [`simulation`] plays a drain by those rules, [`checks`] turn the trace into findings with the
//! help of [`gpustack`]'s catalogue, and [`report`] prints them. [`commands`] tie these together for [`cli`].

pub mod checks;
pub mod cli;
pub mod cluster;
pub mod commands;
pub mod gpustack;
pub mod kubernetes;
pub mod report;
pub mod simulation;
