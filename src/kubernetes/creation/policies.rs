//! Validating admission policies (`k8s.io/apiserver/pkg/admission/plugin/policy/validating`). What they say in CEL is
//! not evaluated: one that is in force for new pods, and denies, leaves it open whether a pod is created.

use super::Obstacle;
use crate::cluster::objects::{MatchResources, StringMap, Webhook, WebhookRule};
use crate::cluster::snapshot::Snapshot;
use crate::kubernetes::admission::{self, Called, Operation, Request};

/// The first version whose API server has them without being told to.
const SINCE_MINOR: u32 = 30;

/// Whether the API server may have policies.
pub fn has_policies(snapshot: &Snapshot) -> bool {
    let minor = snapshot.server_version.as_ref().and_then(|version| version.minor());
    minor.is_none_or(|minor| minor >= SINCE_MINOR)
}

/// What may stand against a new pod with these labels.
pub(super) fn obstacles(snapshot: &Snapshot, namespace: &str, labels: &StringMap) -> Vec<Obstacle> {
    let request = Request {
        operation: Operation::Create,
        group: "",
        version: "v1",
        resource: "pods",
        subresource: "",
        namespace: Some(namespace),
        labels,
    };
    may_deny(snapshot, &request, &format!("new pods of namespace {namespace}"))
}

/// Policies that may deny a request; `requested` is what is asked for, as a person would say it.
pub fn may_deny(snapshot: &Snapshot, request: &Request<'_>, requested: &str) -> Vec<Obstacle> {
    if !has_policies(snapshot) {
        return Vec::new();
    }
    let what = |name: &str| format!("whether {name} admits {requested}");
    let (policies, bindings) = match (snapshot.admission_policies.all(), snapshot.admission_policy_bindings.all()) {
        // Without a policy no binding, and without a binding no policy, is in force.
        (Ok([]), _) | (_, Ok([])) => return Vec::new(),
        (Ok(policies), Ok(bindings)) => (policies, bindings),
        (Err(missing), _) | (_, Err(missing)) => {
            return vec![Obstacle::Unread {
                what: what("every validating admission policy"),
                missing,
            }];
        }
    };
    let mut found = Vec::new();
    for policy in policies {
        let name = &policy.metadata.name;
        let denies = bindings
            .iter()
            .filter(|binding| binding.spec.policy_name == *name)
            .filter(|binding| binding.spec.validation_actions.iter().any(|action| action == "Deny"))
            .filter(|binding| {
                let narrowed = binding.spec.match_resources.as_ref();
                narrowed.is_none_or(|resources| concerns(snapshot, resources, request, true))
            })
            .count();
        if denies > 0 && concerns(snapshot, &policy.spec.match_constraints, request, false) {
            found.push(Obstacle::Undecided {
                what: what(&format!("the validating admission policy {name}")),
                why: "its CEL expressions are not evaluated".to_owned(),
            });
        }
    }
    found
}

/// Whether the request is, or may be, among those meant; a binding without rules takes those of its policy.
fn concerns(snapshot: &Snapshot, resources: &MatchResources, request: &Request<'_>, of_binding: bool) -> bool {
    let meant = |rules: &[WebhookRule], selectors: bool| {
        let webhook = Webhook {
            rules: rules.to_vec(),
            namespace_selector: resources.namespace_selector.clone().filter(|_| selectors),
            object_selector: resources.object_selector.clone().filter(|_| selectors),
            match_policy: resources.match_policy.clone(),
            ..Webhook::default()
        };
        admission::called(snapshot, &webhook, request)
    };
    let every = [WebhookRule {
        operations: vec!["*".to_owned()],
        api_groups: vec!["*".to_owned()],
        api_versions: vec!["*".to_owned()],
        // With every subresource (`pkg/admission/plugin/policy/matching/matching.go`, Matches).
        resources: vec!["*/*".to_owned()],
        scope: None,
    }];
    let rules = match resources.resource_rules.as_slice() {
        [] if of_binding => &every,
        rules => rules,
    };
    meant(rules, true) != Called::No && meant(&resources.exclude_resource_rules, false) != Called::Yes
}
