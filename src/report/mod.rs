//! What a person or a program reads: findings, verdicts, the documents, and one renderer per format.

pub mod document;
pub mod finding;
pub mod shell;
