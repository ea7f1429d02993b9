//! Required affinity and anti-affinity to pods, and the anti-affinity of pods already there
//! (`pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`). Terminating pods count.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Decision, Incoming, NodeState, Occupant, Placement, first, merge_label_keys};
use crate::cluster::objects::{LabelSelector, PodAffinityTerm, PodSpec, SelectorOperator, StringMap};
use crate::kubernetes::selectors::{empty, matches};

/// The label that the API server puts on every namespace (`pkg/apis/core/v1/defaults.go`, SetDefaults_Namespace).
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Whether something holds; unknown says what was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Holds {
    Yes,
    No,
    Unknown(String),
}

/// A term as its pod means it.
struct Term<'a> {
    spec: &'a PodAffinityTerm,
    /// With the pod's label keys merged in, as at creation (`pkg/registry/core/pod/strategy.go`, mutatePodAffinity).
    selector: Option<Cow<'a, LabelSelector>>,
    /// Namespace of the pod whose term it is.
    namespace: &'a str,
}

fn terms<'a>(specs: &'a [PodAffinityTerm], namespace: &'a str, labels: &StringMap) -> Vec<Term<'a>> {
    let merged = |spec: &'a PodAffinityTerm, selector: &'a LabelSelector| {
        let selector = merge_label_keys(selector, &spec.match_label_keys, SelectorOperator::In, labels);
        match selector {
            Cow::Borrowed(selector) => merge_label_keys(selector, &spec.mismatch_label_keys, SelectorOperator::NotIn, labels),
            Cow::Owned(selector) => {
                Cow::Owned(merge_label_keys(&selector, &spec.mismatch_label_keys, SelectorOperator::NotIn, labels).into_owned())
            }
        }
    };
    specs
        .iter()
        .map(|spec| Term {
            spec,
            selector: spec.label_selector.as_ref().map(|selector| merged(spec, selector)),
            namespace,
        })
        .collect()
}

fn affinity(spec: &PodSpec) -> &[PodAffinityTerm] {
    &spec.affinity.pod_affinity.required_during_scheduling_ignored_during_execution
}

/// Whether a pod requires others in its domain.
pub fn wants_company(spec: &PodSpec) -> bool {
    !affinity(spec).is_empty()
}

/// Whether a pod with a node is one that another one, which has none and wants company, requires in its domain: whether its
/// arrival is an event by which the scheduler tries that one again (`plugin.go`, isSchedulableAfterPodChange).
pub fn wants_to_be_near(placement: &Placement<'_>, waits: &Occupant<'_>, placed: &Occupant<'_>) -> bool {
    let terms = terms(affinity(waits.spec), waits.namespace, waits.labels);
    meant_by_all(&terms, placement, placed.namespace, placed.labels) == Holds::Yes
}

/// The required anti-affinity terms of a pod.
pub(super) fn anti_affinity(spec: &PodSpec) -> &[PodAffinityTerm] {
    &spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
}

impl Term<'_> {
    /// Whether a pod is meant (`k8s.io/kube-scheduler/framework/types.go`, AffinityTerm.Matches).
    fn means(&self, placement: &Placement<'_>, namespace: &str, labels: &StringMap) -> Holds {
        if !self.selector.as_ref().is_some_and(|selector| matches(selector, labels)) {
            return Holds::No;
        }
        match &self.spec.namespace_selector {
            _ if self.spec.namespaces.iter().any(|listed| listed == namespace) => Holds::Yes,
            None if self.spec.namespaces.is_empty() && self.namespace == namespace => Holds::Yes,
            None => Holds::No,
            Some(selector) if empty(selector) => Holds::Yes,
            Some(selector) => match placement.snapshot.namespaces.get("", namespace) {
                Ok(Some(found)) => {
                    let mut labels = Cow::Borrowed(&found.metadata.labels);
                    if !labels.contains_key(NAMESPACE_NAME) {
                        labels.to_mut().insert(NAMESPACE_NAME.to_owned(), namespace.to_owned());
                    }
                    if matches(selector, &labels) { Holds::Yes } else { Holds::No }
                }
                Ok(None) => Holds::Unknown(format!("the labels of namespace {namespace}: it is not there")),
                Err(unread) => Holds::Unknown(format!("the labels of namespace {namespace}: {unread}")),
            },
        }
    }
}

/// A pod must be meant by every term (podMatchesAllAffinityTerms).
fn meant_by_all(terms: &[Term<'_>], placement: &Placement<'_>, namespace: &str, labels: &StringMap) -> Holds {
    let mut result = Holds::Yes;
    for term in terms {
        match term.means(placement, namespace, labels) {
            Holds::No => return Holds::No,
            Holds::Unknown(reason) => result = Holds::Unknown(reason),
            Holds::Yes => {}
        }
    }
    result
}

/// Domains (label and value) with a pod that counts; the reason where that cannot be told.
#[derive(Default)]
struct Domains<'a>(BTreeMap<(&'a str, &'a str), Option<String>>);

impl<'a> Domains<'a> {
    fn record(&mut self, node: &NodeState<'a>, key: &'a str, holds: &Holds) {
        let reason = match holds {
            Holds::No => return,
            Holds::Yes => None,
            Holds::Unknown(reason) => Some(reason.clone()),
        };
        if let Some(value) = node.node.metadata.labels.get(key) {
            let present = self.0.entry((key, value)).or_insert_with(|| reason.clone());
            if reason.is_none() {
                *present = None;
            }
        }
    }

    fn holds(&self, key: &str, value: &str) -> Holds {
        match self.0.get(&(key, value)) {
            None => Holds::No,
            Some(None) => Holds::Yes,
            Some(Some(reason)) => Holds::Unknown(reason.clone()),
        }
    }

    /// Refuses a node that lies in one of the domains.
    fn refuse(&self, node: &NodeState<'_>, words: &str) -> Decision {
        if self.0.is_empty() {
            return Decision::Fits;
        }
        first(node.node.metadata.labels.iter().map(|(key, value)| match self.holds(key, value) {
            Holds::Yes => Decision::Refused(words.to_owned()),
            Holds::No => Decision::Fits,
            Holds::Unknown(reason) => Decision::Unknown(reason),
        }))
    }
}

/// The terms of a pod and those of the pods there, held against the pods there.
pub(super) struct InterPodAffinity<'a> {
    affinity: Vec<Term<'a>>,
    /// Where pods are that every affinity term means.
    wanted: Domains<'a>,
    /// Whether the pod is meant by its own affinity terms.
    own: Holds,
    /// Where pods are that an anti-affinity term means.
    shunned: Domains<'a>,
    /// Where pods are whose anti-affinity means the incoming pod.
    shunning: Domains<'a>,
    /// What was not read of the pods and nodes.
    unread: Option<String>,
}

impl<'a> InterPodAffinity<'a> {
    /// Looks at every pod once.
    pub(super) fn new(placement: &Placement<'a>, incoming: &Incoming<'a>) -> Self {
        let unread = placement.nodes_known().and_then(|()| placement.pods_known()).err();
        let affinity = terms(affinity(incoming.spec), incoming.namespace, incoming.labels);
        let anti = terms(anti_affinity(incoming.spec), incoming.namespace, incoming.labels);
        let mut this = Self {
            own: meant_by_all(&affinity, placement, incoming.namespace, incoming.labels),
            affinity,
            wanted: Domains::default(),
            shunned: Domains::default(),
            shunning: Domains::default(),
            unread: unread.map(|unread| format!("affinity between pods: {unread}")),
        };
        let own_terms = !this.affinity.is_empty() || !anti.is_empty();
        for node in placement.nodes.iter().filter(|node| own_terms || node.shunning > 0) {
            for pod in node.occupants() {
                if !this.affinity.is_empty() {
                    let meant = meant_by_all(&this.affinity, placement, pod.namespace, pod.labels);
                    for term in &this.affinity {
                        this.wanted.record(node, &term.spec.topology_key, &meant);
                    }
                }
                for term in &anti {
                    this.shunned
                        .record(node, &term.spec.topology_key, &term.means(placement, pod.namespace, pod.labels));
                }
                let theirs = anti_affinity(pod.spec);
                if !theirs.is_empty() {
                    for term in terms(theirs, pod.namespace, pod.labels) {
                        this.shunning.record(
                            node,
                            &term.spec.topology_key,
                            &term.means(placement, incoming.namespace, incoming.labels),
                        );
                    }
                }
            }
        }
        this
    }

    /// Whether it passes every node.
    pub(super) fn passes_all(&self) -> bool {
        self.affinity.is_empty() && self.shunned.0.is_empty() && self.shunning.0.is_empty() && self.unread.is_none()
    }

    /// One pod must be meant by all affinity terms in each term's domain, and no pod by an anti-affinity term, either way.
    pub(super) fn filter(&self, node: &NodeState<'_>) -> Decision {
        first(
            [
                self.satisfied(node),
                self.shunned.refuse(node, "node(s) didn't match pod anti-affinity rules"),
                self.shunning
                    .refuse(node, "node(s) didn't satisfy existing pods anti-affinity rules"),
                self.unread.clone().map_or(Decision::Fits, Decision::Unknown),
            ]
            .into_iter(),
        )
    }

    fn satisfied(&self, node: &NodeState<'_>) -> Decision {
        let refused = || Decision::Refused("node(s) didn't match pod affinity rules".to_owned());
        let mut missing = false;
        let mut unknown = None;
        for term in &self.affinity {
            let Some(value) = node.node.metadata.labels.get(&term.spec.topology_key) else {
                return refused();
            };
            match self.wanted.holds(&term.spec.topology_key, value) {
                Holds::Yes => {}
                Holds::No => missing = true,
                Holds::Unknown(reason) => unknown = Some(reason),
            }
        }
        if let Some(unread) = self.unread.as_ref().filter(|_| missing) {
            // A pod that was not read may be the one that is wanted.
            return Decision::Unknown(unread.clone());
        }
        match unknown {
            _ if missing && self.wanted.0.values().any(Option::is_none) => refused(),
            // The first of its kind may go anywhere (satisfyPodAffinity), if it is the first.
            _ if missing && self.wanted.0.is_empty() => match &self.own {
                Holds::Yes => Decision::Fits,
                Holds::No => refused(),
                Holds::Unknown(reason) => Decision::Unknown(reason.clone()),
            },
            _ if missing && self.own == Holds::No => refused(),
            Some(reason) => Decision::Unknown(reason),
            None if missing => Decision::Unknown(self.wanted.0.values().flatten().next().cloned().unwrap_or_default()),
            None => Decision::Fits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cluster, partial, said};
    use crate::cluster::kinds::Kind;
    use crate::cluster::snapshot::Scope;

    const AFFINITY: &str = "node(s) didn't match pod affinity rules";
    const ANTI: &str = "node(s) didn't match pod anti-affinity rules";
    const EXISTING: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

    fn with(kind: &str, terms: &str) -> String {
        format!(
            "{{metadata: {{labels: {{app: x, rev: '1'}}}}, spec: {{affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{terms}]}}}}}}}}"
        )
    }

    const NODES: &str = "
        node a {metadata: {labels: {zone: x}}}
        node b {metadata: {labels: {zone: x}}}
        node c {metadata: {labels: {zone: y}}}
        node e
        namespace d
        namespace o {metadata: {labels: {team: t}}}
    ";

    fn there(pods: &str) -> crate::cluster::snapshot::Snapshot {
        cluster(&format!("{NODES}{pods}"))
    }

    #[test]
    fn anti_affinity() {
        let snapshot = there(
            "pod d/1 @a {metadata: {labels: {app: x, rev: '0'}, deletionTimestamp: 2026-01-01T00:00:00Z}}\npod o/1 @c {metadata: {labels: {app: x, rev: '1'}}}",
        );
        let app = "labelSelector: {matchLabels: {app: x}}";
        for (term, expected) in [
            (format!("topologyKey: host, {app}"), [ANTI, "fits", "fits", "fits"]),
            (format!("topologyKey: zone, {app}"), [ANTI, ANTI, "fits", "fits"]),
            ("topologyKey: zone".to_owned(), ["fits"; 4]),
            ("topologyKey: zone, labelSelector: {}".to_owned(), [ANTI, ANTI, "fits", "fits"]),
            (format!("topologyKey: host, namespaces: [o], {app}"), ["fits", "fits", ANTI, "fits"]),
            (
                format!("topologyKey: host, namespaces: [o, d], {app}"),
                [ANTI, "fits", ANTI, "fits"],
            ),
            (
                format!("topologyKey: host, namespaceSelector: {{}}, {app}"),
                [ANTI, "fits", ANTI, "fits"],
            ),
            (
                format!("topologyKey: host, namespaceSelector: {{matchLabels: {{team: t}}}}, {app}"),
                ["fits", "fits", ANTI, "fits"],
            ),
            (
                format!("topologyKey: host, namespaceSelector: {{matchLabels: {{team: t}}}}, namespaces: [d], {app}"),
                [ANTI, "fits", ANTI, "fits"],
            ),
            (
                format!("topologyKey: host, namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: d}}}}, {app}"),
                [ANTI, "fits", "fits", "fits"],
            ),
            (format!("topologyKey: host, matchLabelKeys: [rev], {app}"), ["fits"; 4]),
            (
                format!("topologyKey: host, mismatchLabelKeys: [rev], {app}"),
                [ANTI, "fits", "fits", "fits"],
            ),
            (
                format!("topologyKey: host, matchLabelKeys: [rev], namespaces: [o], {app}"),
                ["fits", "fits", ANTI, "fits"],
            ),
            (
                format!("topologyKey: host, matchLabelKeys: [app], mismatchLabelKeys: [rev], namespaces: [o], {app}"),
                ["fits"; 4],
            ),
            (
                format!("topologyKey: host, matchLabelKeys: [none], {app}"),
                [ANTI, "fits", "fits", "fits"],
            ),
        ] {
            assert_eq!(
                said(&snapshot, &with("podAntiAffinity", &format!("{{{term}}}"))),
                expected,
                "{term}"
            );
        }
    }

    #[test]
    fn existing_pods_shun_too() {
        let shunning = |place: &str, term: &str| there(&format!("pod {place} {}", with("podAntiAffinity", &format!("{{{term}}}"))));
        let app = "labelSelector: {matchLabels: {app: x}}";
        let incoming = "{metadata: {labels: {app: x, rev: '1'}}}";
        for (place, term, expected) in [
            ("d/1 @a", format!("topologyKey: zone, {app}"), [EXISTING, EXISTING, "fits", "fits"]),
            ("d/1 @e", format!("topologyKey: zone, {app}"), ["fits"; 4]),
            ("o/1 @a", format!("topologyKey: zone, {app}"), ["fits"; 4]),
            (
                "o/1 @a",
                format!("topologyKey: zone, namespaceSelector: {{}}, {app}"),
                [EXISTING, EXISTING, "fits", "fits"],
            ),
            (
                "o/1 @a",
                format!("topologyKey: zone, namespaceSelector: {{matchLabels: {{team: t}}}}, {app}"),
                ["fits"; 4],
            ),
            (
                "d/1 @a",
                "topologyKey: host, labelSelector: {matchLabels: {app: y}}".to_owned(),
                ["fits"; 4],
            ),
            (
                "d/1 @a",
                "topologyKey: host, matchLabelKeys: [rev], labelSelector: {matchExpressions: [{key: rev, operator: In, values: ['1']}]}"
                    .to_owned(),
                [EXISTING, "fits", "fits", "fits"],
            ),
            (
                "d/1 @a",
                "topologyKey: host, matchLabelKeys: [rev], labelSelector: {matchExpressions: [{key: rev, operator: In, values: ['2']}]}"
                    .to_owned(),
                ["fits"; 4],
            ),
        ] {
            assert_eq!(said(&shunning(place, &term), incoming), expected, "{place} {term}");
        }
        // What was merged in at creation stays, whatever became of the pod's own label.
        let merged =
            "topologyKey: host, matchLabelKeys: [rev], labelSelector: {matchExpressions: [{key: rev, operator: In, values: ['2']}]}";
        assert_eq!(said(&shunning("d/1 @a", merged), "{metadata: {labels: {rev: '2'}}}")[0], EXISTING);
    }

    #[test]
    fn affinity() {
        let app = |value: &str| format!("labelSelector: {{matchLabels: {{app: {value}}}}}");
        let other = "pod d/1 @a {metadata: {labels: {app: y, tier: w}}}\npod o/1 @c {metadata: {labels: {app: z}}}";
        for (pods, terms, expected) in [
            (
                other,
                format!("{{topologyKey: zone, {}}}", app("y")),
                ["fits", "fits", AFFINITY, AFFINITY],
            ),
            (
                other,
                format!("{{topologyKey: host, {}}}", app("y")),
                ["fits", AFFINITY, AFFINITY, AFFINITY],
            ),
            (other, format!("{{topologyKey: host, {}}}", app("z")), [AFFINITY; 4]),
            (
                other,
                format!("{{topologyKey: host, namespaces: [o], {}}}", app("z")),
                [AFFINITY, AFFINITY, "fits", AFFINITY],
            ),
            // Nobody anywhere matches: the first may go where the keys are, if it matches itself.
            (
                other,
                format!("{{topologyKey: zone, {}}}", app("x")),
                ["fits", "fits", "fits", AFFINITY],
            ),
            (
                other,
                format!("{{topologyKey: zone, namespaces: [o], {}}}", app("x")),
                [AFFINITY; 4],
            ),
            // Somebody matches: the next one must go there.
            (
                "pod d/1 @a {metadata: {labels: {app: x}}}",
                format!("{{topologyKey: zone, {}}}", app("x")),
                ["fits", "fits", AFFINITY, AFFINITY],
            ),
            // One pod must match all terms; two pods that match one each do not.
            (
                other,
                format!(
                    "{{topologyKey: zone, {}}}, {{topologyKey: host, labelSelector: {{matchLabels: {{tier: w}}}}}}",
                    app("y")
                ),
                ["fits", AFFINITY, AFFINITY, AFFINITY],
            ),
            (
                "pod d/1 @a {metadata: {labels: {app: y}}}\npod d/2 @a {metadata: {labels: {tier: w}}}",
                format!(
                    "{{topologyKey: zone, {}}}, {{topologyKey: zone, labelSelector: {{matchLabels: {{tier: w}}}}}}",
                    app("y")
                ),
                [AFFINITY; 4],
            ),
            // A match on a node without the key is a match nowhere.
            (
                "pod d/1 @e {metadata: {labels: {app: x}}}",
                format!("{{topologyKey: zone, {}}}", app("x")),
                ["fits", "fits", "fits", AFFINITY],
            ),
        ] {
            assert_eq!(said(&there(pods), &with("podAffinity", &terms)), expected, "{pods} | {terms}");
        }
    }

    #[test]
    fn what_was_not_read() {
        let mut snapshot = partial("node a\npod o/1 @a {metadata: {labels: {app: x}}}\npod d/1 @a {metadata: {labels: {app: y}}}");
        for kind in [Kind::Node, Kind::Pod] {
            snapshot.objects.cover(kind, Scope::Cluster, Ok(()));
        }
        let selected = |kind: &str, app: &str| {
            with(
                kind,
                &format!(
                    "{{topologyKey: host, namespaceSelector: {{matchLabels: {{team: t}}}}, labelSelector: {{matchLabels: {{app: {app}}}}}}}"
                ),
            )
        };
        let labels = "? the labels of namespace o: namespaces were not read";
        assert_eq!(said(&snapshot, &selected("podAntiAffinity", "x")), [labels]);
        assert_eq!(said(&snapshot, &selected("podAntiAffinity", "z")), ["fits"]);
        assert_eq!(said(&snapshot, &selected("podAffinity", "x")), [labels]);
        assert_eq!(said(&snapshot, &selected("podAffinity", "z")), [AFFINITY]);
        let both = with(
            "podAntiAffinity",
            "{topologyKey: host, namespaceSelector: {matchLabels: {team: t}}, labelSelector: {}}, {topologyKey: host, labelSelector: {matchLabels: {app: y}}}",
        );
        assert_eq!(said(&snapshot, &both), [ANTI]);

        // Where one that may be wanted is not, only one of the pod's own kind may begin.
        let mut snapshot = partial("node a\nnode b\npod o/1 @a {metadata: {labels: {app: x}}}");
        for kind in [Kind::Node, Kind::Pod] {
            snapshot.objects.cover(kind, Scope::Cluster, Ok(()));
        }
        let wants = selected("podAffinity", "x");
        assert_eq!(said(&snapshot, &wants), [labels, labels]);
        assert_eq!(said(&snapshot, &wants.replacen("{app: x", "{app: w", 1)), [labels, AFFINITY]);

        // A pod that was not read may be the one that is wanted.
        let mut snapshot = partial("node a\npod d/1 @a {metadata: {labels: {app: y}}}");
        snapshot.objects.cover(Kind::Node, Scope::Cluster, Ok(()));
        snapshot.objects.cover(Kind::Pod, Scope::Node("a".to_owned()), Ok(()));
        let wants = |app: &str| {
            with(
                "podAffinity",
                &format!("{{topologyKey: host, labelSelector: {{matchLabels: {{app: {app}}}}}}}"),
            )
        };
        assert_eq!(said(&snapshot, &wants("z")), ["? affinity between pods: pods were not read"]);
        assert_eq!(
            said(&snapshot, &wants("z").replace("topologyKey: host", "topologyKey: none")),
            [AFFINITY]
        );
    }
}
