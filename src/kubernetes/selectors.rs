//! Label selectors (`k8s.io/apimachinery/pkg/labels/selector.go`).

use crate::cluster::objects::{LabelSelector, SelectorOperator, StringMap};

/// Whether the labels satisfy the selector; an empty selector matches everything.
pub fn matches(selector: &LabelSelector, labels: &StringMap) -> bool {
    selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
        && selector.match_expressions.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            let listed = || value.is_some_and(|value| requirement.values.contains(value));
            match requirement.operator {
                SelectorOperator::In => listed(),
                SelectorOperator::NotIn => !listed(),
                SelectorOperator::Exists => value.is_some(),
                SelectorOperator::DoesNotExist => value.is_none(),
                SelectorOperator::Gt | SelectorOperator::Lt | SelectorOperator::Unknown => false,
            }
        })
}
