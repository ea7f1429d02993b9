//! Required affinity and anti-affinity to pods, and the anti-affinity of pods already there
//! (`pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`). Terminating pods count.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Decision, Incoming, NodeState, Placement, first, merge_label_keys};
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
            Cow::Owned(selector) => Cow::Owned(merge_label_keys(&selector, &spec.mismatch_label_keys, SelectorOperator::NotIn, labels).into_owned()),
        }
    };
    specs
        .iter()
        .map(|spec| Term { spec, selector: spec.label_selector.as_ref().map(|selector| merged(spec, selector)), namespace })
        .collect()
}

fn affinity(spec: &PodSpec) -> &[PodAffinityTerm] {
    &spec.affinity.pod_affinity.required_during_scheduling_ignored_during_execution
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
                    this.shunned.record(node, &term.spec.topology_key, &term.means(placement, pod.namespace, pod.labels));
                }
                let theirs = anti_affinity(pod.spec);
                if !theirs.is_empty() {
                    for term in terms(theirs, pod.namespace, pod.labels) {
                        this.shunning.record(node, &term.spec.topology_key, &term.means(placement, incoming.namespace, incoming.labels));
                    }
                }
            }
        }
        this
    }

    /// One pod must be meant by all affinity terms in each term's domain, and no pod by an anti-affinity term, either way.
    pub(super) fn filter(&self, node: &NodeState<'_>) -> Decision {
        first(
            [
                self.satisfied(node),
                self.shunned.refuse(node, "node(s) didn't match pod anti-affinity rules"),
                self.shunning.refuse(node, "node(s) didn't satisfy existing pods anti-affinity rules"),
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
            let Some(value) = node.node.metadata.labels.get(&term.spec.topology_key) else { return refused() };
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
