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
    /// 1 if the incoming pod matches its own selector, else 0.
    own: i64,
    /// Matching pods per domain.
    domains: BTreeMap<&'a str, i64>,
    /// The global minimum.
    minimum: i64,
    /// What keeps the counts from being known.
    unknown: Option<String>,
}

impl Constraint<'_> {
    /// An empty selector counts nothing, though the pod itself matches it (countPodsMatchSelector).
    fn counts(&self) -> bool {
        self.selector.as_ref().is_some_and(|selector| !empty(selector))
    }

    /// The fewest in any domain, 0 with fewer domains than `minDomains` (minMatchNum).
    fn global_minimum(&self) -> i64 {
        let domains = i64::try_from(self.domains.len()).unwrap_or(i64::MAX);
        if domains < self.spec.min_domains.unwrap_or(1) {
            0
        } else {
            self.domains.values().min().copied().unwrap_or(0)
        }
    }
}

/// The hard constraints of a pod, and what they count now.
pub(super) struct TopologySpread<'a> {
    constraints: Vec<Constraint<'a>>,
}

impl<'a> TopologySpread<'a> {
    /// Counts once for all nodes.
    pub(super) fn new(placement: &Placement<'a>, incoming: &Incoming<'a>) -> Self {
        let hard = incoming
            .spec
            .topology_spread_constraints
            .iter()
            .filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule");
        let mut constraints: Vec<_> = hard
            .map(|spec| {
                let selector = spec
                    .label_selector
                    .as_ref()
                    .map(|selector| merge_label_keys(selector, &spec.match_label_keys, SelectorOperator::In, incoming.labels));
                let own = i64::from(selector.as_ref().is_some_and(|selector| matches(selector, incoming.labels)));
                Constraint {
                    spec,
                    selector,
                    own,
                    domains: BTreeMap::new(),
                    minimum: 0,
                    unknown: None,
                }
            })
            .collect();
        if constraints.is_empty() {
            return Self { constraints };
        }
        let unread = placement
            .nodes_known()
            .and_then(|()| placement.namespace_known(incoming.namespace))
            .err();
        if let Some(unread) = unread {
            for constraint in constraints.iter_mut().filter(|constraint| constraint.counts()) {
                constraint.unknown = Some(format!("how the pods are spread: {unread}"));
            }
        }
        for node in &placement.nodes {
            let labels = &node.node.metadata.labels;
            if constraints
                .iter()
                .all(|constraint| labels.contains_key(&constraint.spec.topology_key))
            {
                let suits = node_suits(incoming.spec, node.node);
                for constraint in &mut constraints {
                    constraint.count(placement, node, incoming, suits);
                }
            }
        }
        for constraint in &mut constraints {
            constraint.minimum = constraint.global_minimum();
        }
        Self { constraints }
    }

    /// Whether it passes every node.
    pub(super) fn passes_all(&self) -> bool {
        self.constraints.is_empty()
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
            if count + constraint.own - constraint.minimum > constraint.spec.max_skew {
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
                own: constraint.own,
                minimum: constraint.minimum,
                domains: constraint
                    .domains
                    .iter()
                    .map(|(domain, count)| ((*domain).to_owned(), *count))
                    .collect(),
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
                let pods = node
                    .occupants()
                    .filter(|pod| !pod.terminating && pod.namespace == incoming.namespace);
                pods.filter(|pod| matches(selector, pod.labels)).count()
            }
            _ => 0,
        };
        if let Some(domain) = node.node.metadata.labels.get(&self.spec.topology_key) {
            *self.domains.entry(domain).or_insert(0) += i64::try_from(matching).unwrap_or(i64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, incoming, partial, pod, said};
    use super::super::{SpreadCounts, spread_counts};
    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::cluster::snapshot::Scope;

    const SKEWED: &str = "node(s) didn't match pod topology spread constraints";
    const KEYLESS: &str = "node(s) didn't match pod topology spread constraints (missing required label): ";
    const CORDONED: &str = "node(s) were unschedulable";

    /// Three nodes, the last one cordoned, and a pod of `app: x` on each of the others.
    const DRAINED: &str = "
        node a
        node b
        node c {spec: {unschedulable: true}}
        pod d/1 @a {metadata: {labels: {app: x}}}
        pod d/2 @b {metadata: {labels: {app: x}}}
        pod d/3 @c {metadata: {labels: {app: x}, deletionTimestamp: 2026-01-01T00:00:00Z}}
        pod d/4 @c {metadata: {labels: {app: x}}, status: {phase: Failed}}
        pod d/5 @a {metadata: {labels: {app: y}}}
        pod other/1 @a {metadata: {labels: {app: x}}}
    ";

    fn spread(extra: &str) -> String {
        let selector = if extra.contains("labelSelector") {
            ""
        } else {
            "labelSelector: {matchLabels: {app: x}}, "
        };
        format!(
            "{{metadata: {{labels: {{app: x}}}}, spec: {{topologySpreadConstraints: [{{maxSkew: 1, topologyKey: host, whenUnsatisfiable: DoNotSchedule, {selector}{extra}}}]}}}}"
        )
    }

    #[test]
    fn a_cordoned_node_is_an_empty_domain_unless_taints_are_honoured() {
        for (extra, expected) in [
            ("", [SKEWED, SKEWED, CORDONED]),
            ("nodeTaintsPolicy: Ignore", [SKEWED, SKEWED, CORDONED]),
            ("nodeTaintsPolicy: Honor", ["fits", "fits", CORDONED]),
            ("nodeTaintsPolicy: Honor, minDomains: 2", ["fits", "fits", CORDONED]),
            ("nodeTaintsPolicy: Honor, minDomains: 3", [SKEWED, SKEWED, CORDONED]),
            ("labelSelector: null", ["fits", "fits", CORDONED]),
            ("labelSelector: {}", ["fits", "fits", CORDONED]),
            ("labelSelector: {}, matchLabelKeys: [app]", [SKEWED, SKEWED, CORDONED]),
            ("labelSelector: {}, matchLabelKeys: [none]", ["fits", "fits", CORDONED]),
            ("labelSelector: null, matchLabelKeys: [app]", ["fits", "fits", CORDONED]),
            ("matchLabelKeys: [app]", [SKEWED, SKEWED, CORDONED]),
            ("labelSelector: {matchLabels: {app: y}}", ["fits", "fits", CORDONED]),
            ("labelSelector: {matchLabels: {app: z}}", ["fits", "fits", CORDONED]),
        ] {
            assert_eq!(said(&cluster(DRAINED), &spread(extra)), expected, "{extra}");
        }
        assert_eq!(
            said(&cluster(DRAINED), &spread("").replace("maxSkew: 1", "maxSkew: 2")),
            ["fits", "fits", CORDONED]
        );
        assert_eq!(
            said(&cluster(DRAINED), &spread("").replace("DoNotSchedule", "ScheduleAnyway")),
            ["fits", "fits", CORDONED]
        );
        let tolerant = spread("nodeTaintsPolicy: Honor").replace("spec: {", "spec: {tolerations: [{operator: Exists}], ");
        assert_eq!(said(&cluster(DRAINED), &tolerant), [SKEWED, SKEWED, "fits"]);
    }

    #[test]
    fn the_pod_counts_itself_only_if_it_matches() {
        let snapshot = cluster("node a\nnode b\npod d/1 @a {metadata: {labels: {app: y}}}\npod d/2 @a {metadata: {labels: {app: y}}}");
        let selector = "labelSelector: {matchLabels: {app: y}}";
        assert_eq!(said(&snapshot, &spread(selector)), [SKEWED, "fits"]);
        assert_eq!(
            said(&snapshot, &spread(selector).replace("maxSkew: 1", "maxSkew: 2")),
            ["fits", "fits"]
        );
        let same = spread(selector).replace("metadata: {labels: {app: x}}", "metadata: {labels: {app: y}}");
        assert_eq!(said(&snapshot, &same.replace("maxSkew: 1", "maxSkew: 2")), [SKEWED, "fits"]);
    }

    #[test]
    fn nodes_that_the_pod_cannot_use_are_no_domains_unless_affinity_is_ignored() {
        let text = "
            node a {metadata: {labels: {zone: x}}}
            node b {metadata: {labels: {zone: x}}}
            node c {metadata: {labels: {zone: y}}}
            pod d/1 @a {metadata: {labels: {app: x}}}
            pod d/2 @b {metadata: {labels: {app: x}}}
        ";
        let other = "node(s) didn't match Pod's node affinity/selector";
        let select = |extra: &str| spread(extra).replace("spec: {", "spec: {nodeSelector: {zone: x}, ");
        assert_eq!(said(&cluster(text), &select("")), ["fits", "fits", other]);
        assert_eq!(said(&cluster(text), &select("nodeAffinityPolicy: Honor")), ["fits", "fits", other]);
        assert_eq!(said(&cluster(text), &select("nodeAffinityPolicy: Ignore")), [SKEWED, SKEWED, other]);
    }

    #[test]
    fn domains_span_nodes() {
        let text = "
            node a {metadata: {labels: {zone: x}}}
            node b {metadata: {labels: {zone: x}}}
            node c {metadata: {labels: {zone: y}}}
            node e
            pod d/1 @a {metadata: {labels: {app: x}}}
        ";
        let keyless = format!("{KEYLESS}zone");
        assert_eq!(
            said(&cluster(text), &spread("").replace("topologyKey: host", "topologyKey: zone")),
            [SKEWED, SKEWED, "fits", &keyless]
        );
        assert_eq!(
            said(
                &cluster(text),
                &spread("labelSelector: null").replace("topologyKey: host", "topologyKey: zone")
            ),
            ["fits", "fits", "fits", &keyless]
        );
    }

    #[test]
    fn a_key_of_one_constraint_narrows_the_domains_of_the_others() {
        let text = "
            node a {metadata: {labels: {zone: x}}}
            node b {metadata: {labels: {zone: x}}}
            node c
            pod d/1 @a {metadata: {labels: {app: x}}}
            pod d/2 @b {metadata: {labels: {app: x}}}
        ";
        assert_eq!(said(&cluster(text), &spread("")), [SKEWED, SKEWED, "fits"]);
        let second = "}, {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: null";
        let both = spread("labelSelector: {matchLabels: {app: x}}").replace("}]}}", &format!("{second}}}]}}}}"));
        assert_eq!(said(&cluster(text), &both), ["fits", "fits", &format!("{KEYLESS}zone")]);
    }

    #[test]
    fn no_domain_at_all() {
        let text = "node a {spec: {taints: [{key: k, effect: NoSchedule}]}}";
        let nowhere = spread("nodeTaintsPolicy: Honor");
        assert_eq!(said(&cluster(text), &nowhere), ["node(s) had untolerated taint(s): k:NoSchedule"]);
        assert_eq!(
            spread_counts(&Placement::new(&cluster(text)), &incoming(&pod(&nowhere)))[0].minimum,
            0
        );
    }

    #[test]
    fn counts() {
        let snapshot = cluster(DRAINED);
        let domains = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 1), ("c".to_owned(), 0)]);
        let expected = SpreadCounts {
            topology_key: "host".to_owned(),
            max_skew: 1,
            own: 1,
            minimum: 0,
            domains,
        };
        assert_eq!(spread_counts(&Placement::new(&snapshot), &incoming(&pod(&spread("")))), [expected]);
    }

    #[test]
    fn unread_pods_leave_counts_open() {
        let mut snapshot = partial(DRAINED);
        snapshot.objects.cover(Kind::Node, Scope::Cluster, Ok(()));
        let unknown = "? how the pods are spread: pods in namespace d were not read";
        let refused = |snapshot: &_, extra: &str| {
            let pod = pod(&spread(extra));
            let placement = Placement::new(snapshot);
            let spread = TopologySpread::new(&placement, &incoming(&pod));
            super::super::testing::words(spread.filter(&placement.nodes[0]))
        };
        assert_eq!(refused(&snapshot, ""), unknown);
        assert_eq!(refused(&snapshot, "labelSelector: {}"), "fits");
        snapshot.objects.cover(Kind::Pod, Scope::Namespace("d".to_owned()), Ok(()));
        assert_eq!(refused(&snapshot, ""), SKEWED);
    }
}
