//! What the API server makes of a new pod, and what refuses it: one file for each admission plugin.
//!
//! Follows the plugins that are on by default (`pkg/kubeapiserver/options/plugins.go`), in their order: all changes
//! first ([`admitted`]), then the refusals ([`obstacles`]), and quotas last ([`quota`]), as only their answer changes
//! while the drain goes on. Webhooks are told by [`super::admission`].
//!
//! Pod Security is not among them: it compares a pod with the labels of its namespace, and the old pod of the same
//! template passed. It differs only where a namespace got a stricter label after its pods ran.

mod default_tolerations;
mod limit_range;
mod pod_security;
mod policies;
mod priority;
pub mod quota;
mod resources;
mod runtime_class;
mod service_account;

pub use self::policies::{has_policies, may_deny};
pub use self::service_account::named_account;

use crate::cluster::objects::{PodSpec, StringMap};
use crate::cluster::snapshot::{NotRead, Snapshot, Source};

/// Why a new pod is not created, or may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// It is refused, in the API server's words.
    Refused(String),
    /// Something that was not read could refuse it.
    Unread {
        /// What could not be told.
        what: String,
        /// What was not read.
        missing: NotRead,
    },
    /// Something that was read could refuse it.
    Undecided {
        /// What could not be told.
        what: String,
        /// Why.
        why: String,
    },
}

/// A pod's spec as it is stored, of the template that is sent: requests from limits (`pkg/apis/core/v1/defaults.go`,
/// SetDefaults_Pod), defaults of limit ranges, priority, what a runtime class adds, and tolerations of nodes that do not answer. What was not read adds nothing.
pub fn admitted(snapshot: &Snapshot, namespace: &str, template: &PodSpec) -> PodSpec {
    let mut spec = template.clone();
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut()) {
        let own = &mut *container.resources;
        for (resource, limit) in &own.limits {
            own.requests.entry(resource.clone()).or_insert_with(|| limit.clone());
        }
    }
    limit_range::add_defaults(snapshot, namespace, &mut spec);
    priority::resolve(snapshot, &mut spec);
    runtime_class::merge(snapshot, &mut spec);
    default_tolerations::add(&mut spec);
    spec
}

/// What refuses a new pod for as long as nobody changes it, or may; the spec is an [`admitted`] one.
pub fn obstacles(snapshot: &Snapshot, namespace: &str, labels: &StringMap, spec: &PodSpec) -> Vec<Obstacle> {
    let mut found: Vec<Obstacle> = terminating(snapshot, namespace).into_iter().collect();
    found.extend(service_account::obstacle(snapshot, namespace, spec));
    found.extend(priority::obstacle(snapshot, spec));
    found.extend(runtime_class::obstacles(snapshot, spec));
    found.extend(limit_range::obstacles(snapshot, namespace, spec));
    found.extend(pod_security::obstacle(snapshot, namespace, spec));
    found.extend(policies::obstacles(snapshot, namespace, labels));
    found
}

/// A namespace that is being deleted takes no new objects
/// (`k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go`).
fn terminating(snapshot: &Snapshot, namespace: &str) -> Option<Obstacle> {
    snapshot
        .namespaces
        .find("", namespace)
        .filter(|found| found.status.phase == "Terminating" || found.metadata.terminating())
        .map(|_| {
            Obstacle::Refused(format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            ))
        })
}

/// Whether classes were captured. Every cluster has the two priority classes `system-*`, so files without any are
/// written by hand and do not tell which classes there are.
fn classes_told(snapshot: &Snapshot) -> bool {
    snapshot.source == Source::Live || !snapshot.priority_classes.seen().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::cluster::objects::PodTemplate;
    use crate::kubernetes::testing::{snapshot, without};

    pub(super) fn spec(yaml: &str) -> PodSpec {
        let template: PodTemplate = serde_saphyr::from_str(&format!("{{spec: {{{yaml}}}}}")).unwrap();
        template.spec
    }

    /// What stands against a pod of the template in namespace `app`, one word for what is not known.
    pub(super) fn against(snapshot: &Snapshot, template: &str) -> Vec<String> {
        let spec = admitted(snapshot, "app", &spec(template));
        obstacles(snapshot, "app", &StringMap::from([("app".to_owned(), "web".to_owned())]), &spec)
            .into_iter()
            .map(|obstacle| match obstacle {
                Obstacle::Refused(why) => why,
                Obstacle::Unread { missing, .. } => missing.kind.info().plural.to_owned(),
                Obstacle::Undecided { why, .. } => format!("not known: {why}"),
            })
            .collect()
    }

    #[test]
    fn a_terminating_namespace_takes_nothing() {
        let active = "{apiVersion: v1, kind: Namespace, metadata: {name: app}, status: {phase: Active}}";
        assert!(against(&snapshot(active), "").is_empty());
        let ending = against(&snapshot(&active.replace("Active", "Terminating")), "");
        assert_eq!(
            ending,
            ["unable to create new content in namespace app because it is being terminated"]
        );
    }

    const ACCOUNTS: &str = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: app}}";

    #[test]
    fn a_service_account_must_exist() {
        let gone = "error looking up service account app/web: serviceaccount \"web\" not found";
        assert_eq!(against(&snapshot(ACCOUNTS), "serviceAccountName: web"), [gone]);
        let there = ACCOUNTS.replace("default", "web");
        assert!(against(&snapshot(&there), "serviceAccountName: web").is_empty());
        // It is made again at once.
        assert!(against(&snapshot(&there), "").is_empty());
        assert!(against(&snapshot(&there), "serviceAccountName: default").is_empty());
    }

    #[test]
    fn no_service_account_at_all_tells_nothing_but_live() {
        assert!(against(&snapshot(""), "serviceAccountName: web").is_empty());
        let elsewhere = ACCOUNTS.replace("app", "other");
        assert!(against(&snapshot(&elsewhere), "serviceAccountName: web").is_empty());
        let mut live = snapshot("");
        live.source = Source::Live;
        assert_eq!(against(&live, "serviceAccountName: web").len(), 1);
        let unread = without(&[Kind::ServiceAccount], "");
        assert_eq!(against(&unread, "serviceAccountName: web"), ["serviceaccounts"]);
        assert!(against(&unread, "").is_empty());
    }

    const PRIORITY: &str =
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7, preemptionPolicy: Never}";

    #[test]
    fn a_priority_class_must_exist() {
        let read = snapshot(PRIORITY);
        let of = |name: &str| against(&read, &format!("priorityClassName: {name}"));
        assert_eq!(of("low"), ["no PriorityClass with name low was found"]);
        assert!(of("high").is_empty() && of("system-node-critical").is_empty() && of("''").is_empty());
        assert!(against(&snapshot(""), "priorityClassName: low").is_empty());
        let unread = without(&[Kind::PriorityClass], "");
        assert_eq!(against(&unread, "priorityClassName: low"), ["priorityclasses"]);
        let made = admitted(&read, "app", &spec("priorityClassName: high"));
        assert_eq!((made.priority, made.preemption_policy.as_deref()), (Some(7), Some("Never")));
    }

    const RUNTIME: &str = "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}, handler: kata, overhead: {podFixed: {cpu: 250m}}, scheduling: {nodeSelector: {kata: 'yes'}, tolerations: [{key: kata, operator: Exists}]}}";

    #[test]
    fn a_runtime_class_adds_overhead_and_nodes() {
        let read = snapshot(&format!("{PRIORITY}\n---\n{RUNTIME}"));
        let made = admitted(
            &read,
            "app",
            &spec("runtimeClassName: kata, nodeSelector: {disk: ssd}, tolerations: [{key: a}]"),
        );
        assert_eq!(made.overhead["cpu"].0, "250m");
        assert_eq!(made.node_selector.keys().map(String::as_str).collect::<Vec<_>>(), ["disk", "kata"]);
        let keys: Vec<&str> = made.tolerations.iter().map(|toleration| toleration.key.as_str()).collect();
        assert_eq!(keys[..2], ["a", "kata"]);
        assert!(against(&read, "runtimeClassName: kata").is_empty());
        assert_eq!(
            against(&read, "runtimeClassName: kata, nodeSelector: {kata: 'no'}"),
            ["conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no"]
        );
        assert_eq!(
            against(&read, "runtimeClassName: gvisor"),
            ["pod rejected: RuntimeClass \"gvisor\" not found"]
        );
        assert!(against(&snapshot(""), "runtimeClassName: gvisor").is_empty());
        assert_eq!(
            against(&without(&[Kind::RuntimeClass], PRIORITY), "runtimeClassName: gvisor"),
            ["runtimeclasses"]
        );
    }

    #[test]
    fn a_policy_that_denies_is_not_evaluated() {
        let policy = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: strict}, spec: {matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}}}";
        let binding = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: strict}, spec: {policyName: strict, validationActions: [Deny]}}";
        let count = |policy: &str, binding: &str| against(&snapshot(&format!("{policy}\n---\n{binding}")), "").len();
        assert_eq!(count(policy, binding), 1);
        assert_eq!(count(policy, &binding.replace("Deny", "Warn")), 0);
        assert_eq!(count(&policy.replace("CREATE", "UPDATE"), binding), 0);
        assert_eq!(count(policy, ""), 0);
        let narrow = "validationActions: [Deny], matchResources: {objectSelector: {matchLabels: {app: other}}}";
        assert_eq!(count(policy, &binding.replace("validationActions: [Deny]", narrow)), 0);
        let mut old = without(&[Kind::ValidatingAdmissionPolicy, Kind::ValidatingAdmissionPolicyBinding], "");
        assert_eq!(against(&old, ""), ["validatingadmissionpolicies"]);
        old.server_version = Some(crate::cluster::snapshot::ServerVersion {
            git_version: "v1.29.4".to_owned(),
        });
        assert!(against(&old, "").is_empty());
    }

    #[test]
    fn a_policy_that_denies_pods_is_not_known() {
        let policy = |constraints: &str, narrowed: &str| {
            let read = snapshot(&format!(
                "{{apiVersion: v1, kind: Namespace, metadata: {{name: app, labels: {{team: a}}}}}}
---
{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {{name: p}}, spec: {{matchConstraints: {{{constraints}}}}}}}
---
{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {{name: b}}, spec: {{policyName: p, validationActions: [Deny]{narrowed}}}}}"
            ));
            against(&read, "").len()
        };
        let rules = |version: &str| {
            format!("resourceRules: [{{operations: [CREATE], apiGroups: [''], apiVersions: [{version}], resources: [pods]}}]")
        };
        let pods = rules("v1");
        for (constraints, narrowed, found) in [
            (pods.clone(), "", 1),
            // A policy without rules is for nothing, a binding without is for what its policy is for.
            (String::new(), "", 0),
            (pods.clone(), ", matchResources: {objectSelector: {matchLabels: {app: web}}}", 1),
            (pods.clone(), ", matchResources: {objectSelector: {matchLabels: {app: other}}}", 0),
            (format!("{pods}, namespaceSelector: {{matchLabels: {{team: a}}}}"), "", 1),
            (format!("{pods}, namespaceSelector: {{matchLabels: {{team: b}}}}"), "", 0),
            (rules("v2"), "", 1),
            (format!("{}, matchPolicy: Exact", rules("v2")), "", 0),
            (
                format!("{pods}, excludeResourceRules: [{{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: [pods]}}]"),
                "",
                0,
            ),
        ] {
            assert_eq!(policy(&constraints, narrowed), found, "{constraints} {narrowed}");
        }
    }
}
