//! Label selectors and node selectors.

use crate::cluster::objects::{LabelSelector, Node, NodeSelector, StringMap};

/// A selector that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the selector `{selector}`: {reason}")]
pub struct SelectorError {
    /// The text as given.
    pub selector: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Whether labels match a selector. An empty selector matches everything.
pub fn matches(_selector: &LabelSelector, _labels: &StringMap) -> bool {
    false
}

/// Parses a selector given as text, such as `a=b,c!=d,e in (x,y),!f,g`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<LabelSelector, SelectorError> {
    Err(SelectorError { selector: text.to_owned(), reason: String::new() })
}

/// Whether a node matches a node selector.
pub fn matches_node(_selector: &NodeSelector, _node: &Node) -> bool {
    false
}
