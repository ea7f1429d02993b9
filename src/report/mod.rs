//! What a person or a program reads: findings, verdicts, the documents, and one renderer per format.

pub mod budgets;
pub mod document;
pub mod each;
pub mod explanation;
pub mod finding;
pub mod html;
pub mod json;
pub mod leases;
pub mod manual;
pub mod markdown;
pub mod names;
pub mod page;
pub mod placement;
pub mod preflight;
pub mod shell;
pub mod style;
pub mod table;
pub mod terminal;
pub mod text;
pub mod view;
pub mod words;
pub mod yaml;

#[cfg(test)]
#[path = "../../tests/support/documents.rs"]
mod documents;
