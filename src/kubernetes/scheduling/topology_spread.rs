//! Hard topology spread constraints (`pkg/scheduler/framework/plugins/podtopologyspread/{filtering,common}.go`).
//!
//! The system's default constraints are all soft, so a pod without constraints is not refused.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Decision, Incoming, NodeState, Placement, SpreadCounts, merge_label_keys, taint_toleration};
use crate::cluster::objects::{LabelSelector, SelectorOperator, TopologySpreadConstraint};
use crate::kubernetes::selectors::{empty, matches, node_suits};

struct Constraint<'a> {
    spec: &'a TopologySpreadConstraint,
    /// With the incoming pod's `matchLabelKeys`; absent matches nothing.
    selector: Option<Cow<'a, LabelSelector>>,
    /// Matching pods per domain.
    domains: BTreeMap<&'a str, i64>,
    /// What keeps the counts from being known.
    unknown: Option<String>,
}

impl Constraint<'_> {
    /// An empty selector counts nothing, though the pod itself matches it (countPodsMatchSelector).
    fn counts(&self) -> bool {
        self.selector.as_ref().is_some_and(|selector| !empty(selector))
    }

    fn own(&self, incoming: &Incoming<'_>) -> i64 {
        i64::from(self.selector.as_ref().is_some_and(|selector| matches(selector, incoming.labels)))
    }

    fn minimum(&self) -> i64 {
        let domains = i64::try_from(self.domains.len()).unwrap_or(i64::MAX);
        if domains < self.spec.min_domains.unwrap_or(1) { 0 } else { self.domains.values().min().copied().unwrap_or(0) }
    }
}

/// The hard constraints of a pod, and what they count now.
pub(super) struct TopologySpread<'a> {
    incoming: Incoming<'a>,
    constraints: Vec<Constraint<'a>>,
}

impl<'a> TopologySpread<'a> {
    /// Counts once for all nodes.
    pub(super) fn new(placement: &Placement<'a>, incoming: &Incoming<'a>) -> Self {
        let hard = incoming.spec.topology_spread_constraints.iter().filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule");
        let mut constraints: Vec<_> = hard
            .map(|spec| Constraint {
                spec,
                selector: spec
                    .label_selector
                    .as_ref()
                    .map(|selector| merge_label_keys(selector, &spec.match_label_keys, SelectorOperator::In, incoming.labels)),
                domains: BTreeMap::new(),
                unknown: None,
            })
            .collect();
        if constraints.is_empty() {
            return Self { incoming: *incoming, constraints };
        }
        let unread = placement.nodes_known().and_then(|()| placement.namespace_known(incoming.namespace)).err();
        if let Some(unread) = unread {
            for constraint in constraints.iter_mut().filter(|constraint| constraint.counts()) {
                constraint.unknown = Some(format!("how the pods are spread: {unread}"));
            }
        }
        for node in &placement.nodes {
            let labels = &node.node.metadata.labels;
            if constraints.iter().all(|constraint| labels.contains_key(&constraint.spec.topology_key)) {
                let suits = node_suits(incoming.spec, node.node);
                for constraint in &mut constraints {
                    constraint.count(placement, node, incoming, suits);
                }
            }
        }
        Self { incoming: *incoming, constraints }
    }

    /// Refuses a node without a key, and one whose domain would lie more than the skew above the minimum.
    pub(super) fn filter(&self, node: &NodeState<'_>) -> Decision {
        let mut unknown = None;
        for constraint in &self.constraints {
            let Some(domain) = node.node.metadata.labels.get(&constraint.spec.topology_key) else {
                return Decision::Refused(format!(
                    "node(s) didn't match pod topology spread constraints (missing required label): {}",
                    constraint.spec.topology_key
                ));
            };
            if let Some(reason) = &constraint.unknown {
                unknown.get_or_insert(reason);
                continue;
            }
            let count = constraint.domains.get(domain.as_str()).copied().unwrap_or(0);
            if count + constraint.own(&self.incoming) - constraint.minimum() > constraint.spec.max_skew {
                return Decision::Refused("node(s) didn't match pod topology spread constraints".to_owned());
            }
        }
        unknown.map_or(Decision::Fits, |reason| Decision::Unknown(reason.clone()))
    }

    /// The counts, for those who compare placements.
    pub(super) fn counts(&self) -> Vec<SpreadCounts> {
        self.constraints
            .iter()
            .map(|constraint| SpreadCounts {
                topology_key: constraint.spec.topology_key.clone(),
                max_skew: constraint.spec.max_skew,
                own: constraint.own(&self.incoming),
                minimum: constraint.minimum(),
                domains: constraint.domains.iter().map(|(domain, count)| ((*domain).to_owned(), *count)).collect(),
            })
            .collect()
    }
}

impl<'a> Constraint<'a> {
    /// Adds a node that has every constraint's key, if it is eligible (matchNodeInclusionPolicies).
    ///
    /// By default a cordoned, tainted or NotReady node is: it makes a domain, which may be empty.
    fn count(&mut self, placement: &Placement<'a>, node: &NodeState<'a>, incoming: &Incoming<'_>, suits: bool) {
        if self.spec.node_affinity_policy.as_deref().unwrap_or("Honor") == "Honor" && !suits {
            return;
        }
        if self.spec.node_taints_policy.as_deref() == Some("Honor") {
            match taint_toleration::filter(node, incoming, placement.comparisons) {
                Decision::Fits => {}
                Decision::Refused(_) => return,
                Decision::Unknown(reason) => {
                    self.unknown.get_or_insert(reason);
                }
            }
        }
        let matching = match &self.selector {
            Some(selector) if !empty(selector) => {
                let pods = node.occupants().filter(|pod| !pod.terminating && pod.namespace == incoming.namespace);
                pods.filter(|pod| matches(selector, pod.labels)).count()
            }
            _ => 0,
        };
        if let Some(domain) = node.node.metadata.labels.get(&self.spec.topology_key) {
            *self.domains.entry(domain).or_insert(0) += i64::try_from(matching).unwrap_or(i64::MAX);
        }
    }
}
