//! From the trace of a drain to findings: one file per finding code or close family.

pub mod codes;
