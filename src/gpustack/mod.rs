//! What GPUStack's operator chart deploys, as data.

pub mod components;
pub mod install;
pub mod tenants;
pub mod values;
