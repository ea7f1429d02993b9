//! A drain played out by the rules of [`crate::kubernetes`].
//!
//! [`cast`] gathers once what takes part: the pods on the drained nodes, their owners, the budgets over them, and
//! what is served by them. [`state`] is an overlay over the immutable snapshot that changes round by round to a
//! fixpoint. [`explore`] follows every choice that can matter later, merges equal states and stops at a bound.
//! Its result is a [`trace::Trace`].

pub mod assume;
pub mod cast;
pub mod explore;
pub mod state;
pub mod successor;
pub mod trace;

#[cfg(test)]
mod tests;
