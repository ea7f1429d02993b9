//! What admission webhooks are called for.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::kinds::Kind;
use crate::cluster::objects::{LabelSelector, Namespace, StringMap, Webhook, WebhookClientConfig, WebhookConfiguration, WebhookRule};
use crate::cluster::snapshot::{NotRead, Reason, Scope, Snapshot};

use super::selectors::matches;

/// The label that every namespace carries with its own name (`pkg/apis/core/v1/defaults.go`, `SetDefaults_Namespace`).
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// A webhook and the configuration that holds it.
#[derive(Clone, Copy, Debug)]
pub struct Configured<'a> {
    /// Whether the configuration is a mutating one.
    pub mutating: bool,
    /// The configuration.
    pub configuration: &'a WebhookConfiguration,
    /// The webhook.
    pub webhook: &'a Webhook,
}

impl Configured<'_> {
    /// Kind of the configuration.
    pub fn kind(&self) -> &'static str {
        if self.mutating {
            "MutatingWebhookConfiguration"
        } else {
            "ValidatingWebhookConfiguration"
        }
    }
}

/// The webhooks that were read, and what was not. Nothing can be said for sure on what an unread one refuses.
pub fn webhooks(snapshot: &Snapshot) -> (Vec<Configured<'_>>, Vec<NotRead>) {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for (mutating, listing) in [(true, &snapshot.mutating_webhooks), (false, &snapshot.validating_webhooks)] {
        missing.extend(listing.all().err());
        for configuration in listing.seen() {
            found.extend(configuration.webhooks.iter().map(|webhook| Configured {
                mutating,
                configuration,
                webhook,
            }));
        }
    }
    (found, missing)
}

/// An operation, as rules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// `CREATE`.
    Create,
    /// `UPDATE`; a patch is one too.
    Update,
    /// `DELETE`.
    Delete,
    /// `CONNECT`: `exec`, `proxy` and the like.
    Connect,
}

impl Operation {
    /// Every operation.
    pub const ALL: &[Self] = &[Self::Create, Self::Update, Self::Delete, Self::Connect];

    /// As a rule writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A request that is admitted.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Operation.
    pub operation: Operation,
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Resource, plural.
    pub resource: &'a str,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace; `None` for cluster-scoped objects, the object's own name for Namespaces.
    pub namespace: Option<&'a str>,
    /// Labels of the object sent; an Eviction has none.
    pub labels: &'a StringMap,
}

/// Whether a webhook is called for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Called {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// That depends on what cannot be evaluated here.
    Possibly(String),
    /// It depends on what was not read.
    Unknown(NotRead),
}

/// Whether the webhook is called for the request
/// (`k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go`, `ShouldCallHook`).
///
/// With `matchPolicy: Equivalent` the versions of one resource count as the same; a resource that is served in
/// two groups (only events are) does not.
pub fn called(snapshot: &Snapshot, webhook: &Webhook, request: &Request<'_>) -> Called {
    if exempt(request) || !webhook.rules.iter().any(|rule| rule_matches(rule, request, exact(webhook))) {
        return Called::No;
    }
    // An empty selector needs no object; any other is held against the labels of the object
    // (`predicates/object/matcher.go`).
    if webhook
        .object_selector
        .as_ref()
        .is_some_and(|selector| !matches(selector, request.labels))
    {
        return Called::No;
    }
    match namespace_matches(snapshot, webhook.namespace_selector.as_ref(), request) {
        Ok(false) => return Called::No,
        Err(missing) => return Called::Unknown(missing),
        Ok(true) => {}
    }
    match webhook.match_conditions.as_slice() {
        [] => Called::Yes,
        conditions => {
            let names: Vec<&str> = conditions.iter().map(|condition| condition.name.as_str()).collect();
            Called::Possibly(format!("its matchConditions ({}) are not evaluated here", names.join(", ")))
        }
    }
}

/// Objects that no webhook is called for, so that a broken one can be repaired (`predicates/rules/rules.go`).
fn exempt(request: &Request<'_>) -> bool {
    request.group == "admissionregistration.k8s.io"
        && matches!(
            request.resource,
            "mutatingwebhookconfigurations"
                | "validatingwebhookconfigurations"
                | "mutatingadmissionpolicies"
                | "mutatingadmissionpolicybindings"
                | "validatingadmissionpolicies"
                | "validatingadmissionpolicybindings"
        )
}

fn exact(webhook: &Webhook) -> bool {
    webhook.match_policy.as_deref() == Some("Exact")
}

/// Whether a rule names the request (`k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go`).
fn rule_matches(rule: &WebhookRule, request: &Request<'_>, exact_version: bool) -> bool {
    let listed = |items: &[String], wanted: &str| items.iter().any(|item| item == "*" || item == wanted);
    let scope = match rule.scope.as_deref() {
        None | Some("" | "*") => true,
        Some("Namespaced") => !cluster_scoped(request),
        Some("Cluster") => cluster_scoped(request),
        Some(_) => false,
    };
    scope
        && listed(&rule.operations, request.operation.as_str())
        && listed(&rule.api_groups, request.group)
        // A rule without versions names nothing, whatever counts as equivalent.
        && (listed(&rule.api_versions, request.version) || !exact_version && !rule.api_versions.is_empty())
        && rule.resources.iter().any(|item| {
            let (resource, subresource) = item.split_once('/').unwrap_or((item, ""));
            (resource == "*" || resource == request.resource) && (subresource == "*" || subresource == request.subresource)
        })
}

fn cluster_scoped(request: &Request<'_>) -> bool {
    request.namespace.is_none_or(str::is_empty) || request.group.is_empty() && request.resource == "namespaces"
}

/// Whether the namespace selector lets the request through
/// (`k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace/matcher.go`).
fn namespace_matches(snapshot: &Snapshot, selector: Option<&LabelSelector>, request: &Request<'_>) -> Result<bool, NotRead> {
    let Some(selector) = selector.filter(|selector| !empty(selector)) else {
        return Ok(true);
    };
    let name = request.namespace.unwrap_or_default();
    if request.resource == "namespaces" {
        // The labels sent count, as the namespace that is stored has older ones or none; a deletion sends none.
        if request.subresource.is_empty() && matches!(request.operation, Operation::Create | Operation::Update) {
            return Ok(matches(selector, request.labels));
        }
    } else if name.is_empty() {
        return Ok(true);
    }
    selects_namespace(snapshot, selector, name)
}

/// Whether a selector matches a namespace. What it says on the namespace's name can be decided unread.
fn selects_namespace(snapshot: &Snapshot, selector: &LabelSelector, name: &str) -> Result<bool, NotRead> {
    let missing = match snapshot.namespaces.get("", name) {
        Ok(Some(namespace)) => return Ok(matches(selector, &labels(namespace))),
        Ok(None) => NotRead {
            kind: Kind::Namespace,
            scope: Scope::Cluster,
            reason: Reason::Failed(format!("namespace {name} is not among them")),
        },
        Err(missing) => missing,
    };
    let known = StringMap::from([(NAMESPACE_NAME.to_owned(), name.to_owned())]);
    let mut decided = true;
    let mut hold = |part: &LabelSelector, key: &str| {
        decided &= key == NAMESPACE_NAME;
        key != NAMESPACE_NAME || matches(part, &known)
    };
    let labels_hold = selector.match_labels.iter().all(|(key, value)| {
        hold(
            &LabelSelector {
                match_labels: StringMap::from([(key.clone(), value.clone())]),
                ..LabelSelector::default()
            },
            key,
        )
    });
    let all_hold = labels_hold
        && selector.match_expressions.iter().all(|requirement| {
            hold(
                &LabelSelector {
                    match_expressions: vec![requirement.clone()],
                    ..LabelSelector::default()
                },
                &requirement.key,
            )
        });
    match (all_hold, decided) {
        (false, _) => Ok(false),
        (true, true) => Ok(true),
        (true, false) => Err(missing),
    }
}

/// The labels of a namespace, with the one that every namespace has.
fn labels(namespace: &Namespace) -> StringMap {
    let mut labels = (*namespace.metadata.labels).clone();
    labels.insert(NAMESPACE_NAME.to_owned(), namespace.metadata.name.clone());
    labels
}

fn empty(selector: &LabelSelector) -> bool {
    selector.match_labels.is_empty() && selector.match_expressions.is_empty()
}

/// Whether a call that fails refuses the request: `Fail`, which is also the default.
pub fn fails_closed(webhook: &Webhook) -> bool {
    webhook.failure_policy.as_deref() != Some("Ignore")
}

/// Whether the webhook, unserved, refuses every CREATE or every UPDATE of pods in some namespace: it fails closed,
/// picks no objects and sets no conditions. Where Namespaces were not read, a namespace is taken to be covered.
pub fn covers_pods(snapshot: &Snapshot, webhook: &Webhook) -> bool {
    let pods = |operation| Request {
        operation,
        group: "",
        version: "v1",
        resource: "pods",
        subresource: "",
        namespace: Some("any"),
        labels: const { &StringMap::new() },
    };
    fails_closed(webhook)
        && webhook.match_conditions.is_empty()
        && webhook.object_selector.as_ref().is_none_or(empty)
        && [Operation::Create, Operation::Update].into_iter().any(|operation| {
            webhook
                .rules
                .iter()
                .any(|rule| rule_matches(rule, &pods(operation), exact(webhook)))
        })
        && webhook.namespace_selector.as_ref().is_none_or(|selector| {
            snapshot.namespaces.all().map_or(true, |all| {
                all.is_empty() || all.iter().any(|namespace| matches(selector, &labels(namespace)))
            })
        })
}

/// Lines that a blast radius has at most.
const LINES: usize = 8;
/// Names that a line lists at most.
const NAMES: usize = 4;

/// What is refused while the webhooks are unserved, for people: one line for pods, whose loss matters most, then one
/// for each set of resources that the same operations are refused for in the same place.
///
/// Webhooks that fail open refuse nothing and are passed over.
pub fn blast(snapshot: &Snapshot, webhooks: &[&Webhook]) -> Vec<String> {
    // By where and on which objects, then by resource: the operations of several rules and webhooks add up.
    let mut refused: BTreeMap<(String, String), BTreeSet<Operation>> = BTreeMap::new();
    for webhook in webhooks.iter().filter(|webhook| fails_closed(webhook)) {
        for rule in &webhook.rules {
            let Some(place) = place(snapshot, webhook, rule) else { continue };
            let operations = Operation::ALL
                .iter()
                .filter(|operation| rule.operations.iter().any(|item| item == "*" || item == operation.as_str()));
            let operations: BTreeSet<Operation> = operations.copied().collect();
            for group in &rule.api_groups {
                for resource in &rule.resources {
                    refused
                        .entry((place.clone(), resource_name(group, resource)))
                        .or_default()
                        .extend(&operations);
                }
            }
        }
    }
    let mut lines: BTreeMap<(bool, String, BTreeSet<Operation>), Vec<String>> = BTreeMap::new();
    for ((place, resource), operations) in refused {
        lines.entry((resource != "pods", place, operations)).or_default().push(resource);
    }
    let mut lines: Vec<String> = lines
        .into_iter()
        .filter(|((_, _, operations), _)| !operations.is_empty())
        .map(|((_, place, operations), resources)| {
            let operations: Vec<String> = operations.into_iter().map(|operation| operation.as_str().to_lowercase()).collect();
            format!("{} {}{place}", operations.join(", "), some_of(&resources))
        })
        .collect();
    if lines.len() > LINES {
        let more = lines.len() - (LINES - 1);
        lines.truncate(LINES - 1);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The first few names.
fn some_of<T: AsRef<str>>(names: &[T]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES).map(AsRef::as_ref).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A rule's resource as kubectl writes it.
fn resource_name(group: &str, resource: &str) -> String {
    let (plural, subresource) = resource
        .split_once('/')
        .map_or((resource, None), |(plural, subresource)| (plural, Some(subresource)));
    let plural = match (group, plural) {
        ("*", "*") => "every resource".to_owned(),
        ("*", plural) => format!("{plural} of every group"),
        ("", "*") => "every core resource".to_owned(),
        (group, "*") => format!("every resource of {group}"),
        ("", plural) => plural.to_owned(),
        (group, plural) => format!("{plural}.{group}"),
    };
    match subresource {
        None => plural,
        Some("*") => format!("{plural} with its subresources"),
        Some(subresource) => format!("{plural}/{subresource}"),
    }
}

/// Which objects of which namespaces a webhook is called for by a rule, as the end of a sentence; `None` where it is for
/// none. The namespace selector is passed over for cluster-scoped objects, and a rule seldom tells which those are.
fn place(snapshot: &Snapshot, webhook: &Webhook, rule: &WebhookRule) -> Option<String> {
    let scope = rule.scope.as_deref();
    let mut text = String::new();
    if let Some(selector) = webhook.object_selector.as_ref().filter(|selector| !empty(selector)) {
        text.push_str(&format!(" that match {}", selector_text(selector)));
    }
    if let Some(selector) = webhook
        .namespace_selector
        .as_ref()
        .filter(|selector| scope != Some("Cluster") && !empty(selector))
    {
        match snapshot.namespaces.all() {
            Ok(all) if !all.is_empty() => {
                let (inside, outside): (Vec<_>, Vec<_>) = all.iter().partition(|namespace| matches(selector, &labels(namespace)));
                let names = |namespaces: &[&Namespace]| {
                    some_of(
                        &namespaces
                            .iter()
                            .map(|namespace| namespace.metadata.name.as_str())
                            .collect::<Vec<_>>(),
                    )
                };
                let count = if inside.len() == 1 {
                    "1 namespace".to_owned()
                } else {
                    format!("{} namespaces", inside.len())
                };
                text.push_str(&match (inside.len(), outside.len()) {
                    (0, _) if scope == Some("Namespaced") => return None,
                    (0, _) => " of no namespace".to_owned(),
                    (_, 0) => " in every namespace".to_owned(),
                    (inside_count, outside_count) if inside_count < outside_count => format!(" in {count} ({})", names(&inside)),
                    _ => format!(" in {count} (not in {})", names(&outside)),
                });
            }
            _ => text.push_str(&format!(" in namespaces that match {}", selector_text(selector))),
        }
    }
    if !webhook.match_conditions.is_empty() {
        text.push_str(", if its matchConditions hold");
    }
    Some(text)
}

/// A selector as kubectl writes it.
fn selector_text(selector: &LabelSelector) -> String {
    use crate::cluster::objects::SelectorOperator as Operator;
    let equal = selector.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().map(|requirement| {
        let (key, values) = (&requirement.key, some_of(&requirement.values));
        match requirement.operator {
            Operator::In => format!("{key} in ({values})"),
            Operator::NotIn => format!("{key} notin ({values})"),
            Operator::Exists => key.clone(),
            Operator::DoesNotExist => format!("!{key}"),
            Operator::Gt => format!("{key} > {values}"),
            Operator::Lt => format!("{key} < {values}"),
            Operator::Unknown => format!("an unknown operator on {key}"),
        }
    });
    equal.chain(expressions).collect::<Vec<_>>().join(",")
}

/// Where a webhook is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint<'a> {
    /// By a Service.
    Service {
        /// Namespace.
        namespace: &'a str,
        /// Name.
        name: &'a str,
        /// Port; `None` means 443.
        port: Option<i64>,
    },
    /// By an address.
    Url {
        /// The address.
        url: &'a str,
        /// Its host, without brackets or port.
        host: String,
    },
    /// Neither, or an address that does not parse.
    Broken,
}

/// Where the webhook is called (`k8s.io/apiserver/pkg/util/webhook/client.go`: a Service goes before an address).
pub fn endpoint(config: &WebhookClientConfig) -> Endpoint<'_> {
    if let Some(service) = &config.service {
        return Endpoint::Service {
            namespace: &service.namespace,
            name: &service.name,
            port: service.port,
        };
    }
    let Some(url) = config.url.as_deref() else {
        return Endpoint::Broken;
    };
    let host = url
        .parse::<http::Uri>()
        .ok()
        .and_then(|parsed| parsed.host().map(|host| host.trim_matches(['[', ']']).to_owned()));
    match host {
        Some(host) if !host.is_empty() => Endpoint::Url { url, host },
        _ => Endpoint::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::testing::{snapshot, without};

    const NAMESPACES: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: default}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: gpustack-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, labels: {kubernetes.io/metadata.name: kube-system}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {queued: 'yes'}}}
";
    const EXCLUDED: &str =
        "{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, gpustack-system]}]}";

    fn hook(operations: &str, group: &str, resources: &str, more: &str) -> Webhook {
        serde_saphyr::from_str(&format!(
            "name: h\nrules: [{{operations: [{operations}], apiGroups: ['{group}'], apiVersions: [v1], resources: [{resources}]}}]\n{more}"
        ))
        .unwrap()
    }

    fn request<'a>(operation: Operation, resource: &'a str, subresource: &'a str, labels: &'a StringMap) -> Request<'a> {
        Request {
            operation,
            group: "",
            version: "v1",
            resource,
            subresource,
            namespace: Some("default"),
            labels,
        }
    }

    fn is_called(resources: &str, resource: &str, subresource: &str) -> bool {
        let webhook = hook("CREATE", "", resources, "");
        called(
            &Snapshot::default(),
            &webhook,
            &request(Operation::Create, resource, subresource, &StringMap::new()),
        ) == Called::Yes
    }

    #[test]
    fn resources_and_subresources() {
        assert!(is_called("pods", "pods", ""));
        for rule in ["pods", "'*'", "pods/status"] {
            assert!(!is_called(rule, "pods", "eviction"), "{rule}");
        }
        for rule in ["pods/eviction", "'pods/*'", "'*/eviction'", "'*/*'"] {
            assert!(is_called(rule, "pods", "eviction"), "{rule}");
        }
        // As upstream: `pods/*` and `*/*` name the object itself too.
        assert!(is_called("'pods/*'", "pods", ""));
        assert!(is_called("'*/*'", "pods", ""));
        assert!(!is_called("'*/eviction'", "pods", ""));
    }

    #[test]
    fn operations_groups_and_versions() {
        let labels = StringMap::new();
        let ask = |webhook: &Webhook, request: Request<'_>| called(&Snapshot::default(), webhook, &request) == Called::Yes;
        let create = request(Operation::Create, "pods", "", &labels);
        assert!(!ask(&hook("UPDATE", "", "pods", ""), create));
        assert!(ask(&hook("'*'", "", "pods", ""), create));
        assert!(!ask(&hook("CREATE", "apps", "pods", ""), create));
        assert!(ask(&hook("CREATE", "*", "pods", ""), create));
        let newer = Request { version: "v2", ..create };
        assert!(ask(&hook("CREATE", "", "pods", ""), newer));
        assert!(!ask(&hook("CREATE", "", "pods", "matchPolicy: Exact"), newer));
        let own = Request {
            group: "admissionregistration.k8s.io",
            resource: "mutatingwebhookconfigurations",
            namespace: None,
            ..create
        };
        assert!(!ask(&hook("CREATE", "*", "'*'", ""), own));
    }

    #[test]
    fn scope() {
        let labels = StringMap::new();
        let scoped = |scope: &str, request: &Request<'_>| {
            let mut webhook = hook("CREATE", "", "'*'", "");
            webhook.rules[0].scope = Some(scope.to_owned());
            called(&Snapshot::default(), &webhook, request) == Called::Yes
        };
        let pod = request(Operation::Create, "pods", "", &labels);
        let node = Request {
            namespace: None,
            resource: "nodes",
            ..pod
        };
        let namespace = Request {
            namespace: Some("default"),
            resource: "namespaces",
            ..pod
        };
        assert!(scoped("Namespaced", &pod) && !scoped("Namespaced", &node) && !scoped("Namespaced", &namespace));
        assert!(!scoped("Cluster", &pod) && scoped("Cluster", &node) && scoped("Cluster", &namespace));
        assert!(scoped("*", &pod) && scoped("*", &node) && !scoped("Other", &pod));
    }

    #[test]
    fn the_namespace_selector() {
        let cluster = snapshot(NAMESPACES);
        let webhook = hook("CREATE", "", "pods, nodes", &format!("namespaceSelector: {EXCLUDED}"));
        let labels = StringMap::new();
        let pod = request(Operation::Create, "pods", "", &labels);
        let in_namespace = |namespace| Request {
            namespace: Some(namespace),
            ..pod
        };
        assert_eq!(called(&cluster, &webhook, &in_namespace("default")), Called::Yes);
        assert_eq!(called(&cluster, &webhook, &in_namespace("gpustack-system")), Called::No);
        assert_eq!(
            called(
                &cluster,
                &webhook,
                &Request {
                    namespace: None,
                    resource: "nodes",
                    ..pod
                }
            ),
            Called::Yes
        );

        // Without Namespaces the names alone decide it.
        let unread = without(&[Kind::Namespace], "");
        assert_eq!(called(&unread, &webhook, &in_namespace("default")), Called::Yes);
        assert_eq!(called(&unread, &webhook, &in_namespace("kube-system")), Called::No);

        let by_label = hook("CREATE", "", "pods", "namespaceSelector: {matchLabels: {queued: 'yes'}}");
        assert_eq!(called(&cluster, &by_label, &in_namespace("team")), Called::Yes);
        assert_eq!(called(&cluster, &by_label, &in_namespace("default")), Called::No);
        assert!(matches!(called(&unread, &by_label, &in_namespace("team")), Called::Unknown(_)));
        assert!(matches!(called(&cluster, &by_label, &in_namespace("absent")), Called::Unknown(_)));

        let node = Request {
            namespace: None,
            resource: "nodes",
            ..pod
        };
        assert_eq!(
            called(
                &cluster,
                &hook("CREATE", "", "nodes", "namespaceSelector: {matchLabels: {queued: 'yes'}}"),
                &node
            ),
            Called::Yes
        );

        let label_first = hook(
            "CREATE",
            "",
            "pods",
            "namespaceSelector: {matchExpressions: [{key: a, operator: Exists}, {key: kubernetes.io/metadata.name, operator: In, values: [team]}]}",
        );
        assert_eq!(called(&unread, &label_first, &in_namespace("default")), Called::No);
        let both = hook(
            "CREATE",
            "",
            "pods",
            "namespaceSelector: {matchLabels: {queued: 'yes', kubernetes.io/metadata.name: team}}",
        );
        assert_eq!(called(&unread, &both, &in_namespace("default")), Called::No);
        assert!(matches!(called(&unread, &both, &in_namespace("team")), Called::Unknown(_)));
    }

    #[test]
    fn a_namespace_is_selected_by_the_labels_sent() {
        let cluster = snapshot(NAMESPACES);
        let webhook = hook(
            "CREATE, DELETE",
            "",
            "namespaces",
            "namespaceSelector: {matchLabels: {queued: 'yes'}}",
        );
        let labels = StringMap::from([("queued".to_owned(), "yes".to_owned())]);
        let create = Request {
            namespace: Some("default"),
            ..request(Operation::Create, "namespaces", "", &labels)
        };
        assert_eq!(called(&cluster, &webhook, &create), Called::Yes);
        assert_eq!(
            called(
                &cluster,
                &webhook,
                &Request {
                    operation: Operation::Delete,
                    ..create
                }
            ),
            Called::No
        );
    }

    #[test]
    fn objects_and_conditions() {
        let labels = StringMap::from([("kueue.x-k8s.io/queue-name".to_owned(), "q".to_owned())]);
        let queued = hook(
            "CREATE",
            "",
            "pods",
            "objectSelector: {matchExpressions: [{key: kueue.x-k8s.io/queue-name, operator: Exists}]}",
        );
        let none = StringMap::new();
        assert_eq!(
            called(&Snapshot::default(), &queued, &request(Operation::Create, "pods", "", &labels)),
            Called::Yes
        );
        assert_eq!(
            called(&Snapshot::default(), &queued, &request(Operation::Create, "pods", "", &none)),
            Called::No
        );
        let conditional = hook("CREATE", "", "pods", "matchConditions: [{name: queued, expression: 'true'}]");
        match called(&Snapshot::default(), &conditional, &request(Operation::Create, "pods", "", &none)) {
            Called::Possibly(why) => assert!(why.contains("queued")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn covering_pods() {
        let cluster = snapshot(NAMESPACES);
        let covers = |more: &str| covers_pods(&cluster, &hook("UPDATE", "", "pods", more));
        assert!(covers(""));
        assert!(covers("failurePolicy: Fail\nobjectSelector: {}"));
        assert!(!covers("failurePolicy: Ignore"));
        assert!(!covers("objectSelector: {matchLabels: {a: b}}"));
        assert!(!covers("matchConditions: [{name: a}]"));
        assert!(covers("namespaceSelector: {matchLabels: {queued: 'yes'}}"));
        assert!(!covers("namespaceSelector: {matchLabels: {queued: 'no'}}"));
        assert!(!covers_pods(&cluster, &hook("DELETE", "", "pods", "")));
        assert!(!covers_pods(&cluster, &hook("CREATE", "", "pods/status", "")));
        assert!(covers_pods(
            &without(&[Kind::Namespace], ""),
            &hook("CREATE", "", "pods", "namespaceSelector: {matchLabels: {queued: 'no'}}")
        ));
    }

    #[test]
    fn the_blast_radius_adds_operations_up() {
        let cluster = snapshot(NAMESPACES);
        let excluded = format!("namespaceSelector: {EXCLUDED}");
        let hooks = [
            hook("CREATE", "", "pods", &excluded),
            hook("CREATE, UPDATE", "", "pods", &excluded),
            hook("CREATE, UPDATE", "apps", "deployments, statefulsets", &excluded),
            hook("CREATE, UPDATE", "kueue.x-k8s.io", "workloads, workloads/status", ""),
            hook(
                "CREATE",
                "",
                "pods",
                "objectSelector: {matchExpressions: [{key: kueue.x-k8s.io/queue-name, operator: Exists}]}",
            ),
            hook("CREATE", "", "configmaps", "failurePolicy: Ignore"),
        ];
        let hooks: Vec<&Webhook> = hooks.iter().collect();
        assert_eq!(
            blast(&cluster, &hooks),
            [
                "create, update pods in 2 namespaces (not in gpustack-system, kube-system)",
                "create pods that match kueue.x-k8s.io/queue-name",
                "create, update workloads.kueue.x-k8s.io, workloads.kueue.x-k8s.io/status",
                "create, update deployments.apps, statefulsets.apps in 2 namespaces (not in gpustack-system, kube-system)",
            ]
        );
        for unread in [without(&[Kind::Namespace], ""), snapshot("")] {
            assert_eq!(
                blast(&unread, &hooks[..1]),
                ["create pods in namespaces that match kubernetes.io/metadata.name notin (kube-system, gpustack-system)"]
            );
        }
    }

    #[test]
    fn the_blast_radius_of_a_selector_that_matches_nothing_or_everything() {
        let cluster = snapshot(NAMESPACES);
        let lines = |more: &str, scope: Option<&str>| {
            let mut webhook = hook("CREATE", "g", "things", more);
            webhook.rules[0].scope = scope.map(str::to_owned);
            blast(&cluster, &[&webhook])
        };
        let nothing = "namespaceSelector: {matchLabels: {queued: 'no'}}";
        assert_eq!(lines(nothing, None), ["create things.g of no namespace"]);
        assert!(lines(nothing, Some("Namespaced")).is_empty());
        assert_eq!(lines(nothing, Some("Cluster")), ["create things.g"]);
        assert_eq!(
            lines(
                "namespaceSelector: {matchExpressions: [{key: queued, operator: NotIn, values: ['no']}]}",
                None
            ),
            ["create things.g in every namespace"]
        );
        assert_eq!(
            lines("namespaceSelector: {matchLabels: {queued: 'yes'}}", None),
            ["create things.g in 1 namespace (team)"]
        );
        assert_eq!(
            lines("matchConditions: [{name: a}]", None),
            ["create things.g, if its matchConditions hold"]
        );
    }

    #[test]
    fn the_blast_radius_is_bounded() {
        let hooks: Vec<Webhook> = (0..12)
            .map(|index| {
                hook(
                    "CREATE",
                    "g",
                    "things",
                    &format!("objectSelector: {{matchLabels: {{a: 'v{index}'}}}}"),
                )
            })
            .collect();
        let lines = blast(&Snapshot::default(), &hooks.iter().collect::<Vec<_>>());
        assert_eq!(lines.len(), 8);
        assert_eq!(lines[7], "and 5 more");
        assert_eq!(
            blast(&Snapshot::default(), &hooks[..8].iter().collect::<Vec<_>>())[7],
            "create things.g that match a=v7"
        );
        let wide = hook("'*'", "*", "'*/*'", "");
        assert_eq!(
            blast(&Snapshot::default(), &[&wide]),
            ["create, update, delete, connect every resource with its subresources"]
        );
        let many = hook("DELETE", "g", "a, b, c, d, e, f", "");
        assert_eq!(blast(&Snapshot::default(), &[&many]), ["delete a.g, b.g, c.g, d.g and 2 more"]);
    }

    #[test]
    fn endpoints() {
        let parse = |yaml: &str| serde_saphyr::from_str::<WebhookClientConfig>(yaml).unwrap();
        let config = parse("{service: {namespace: n, name: s}}");
        assert_eq!(
            endpoint(&config),
            Endpoint::Service {
                namespace: "n",
                name: "s",
                port: None
            }
        );
        let host = |url: &str| match endpoint(&parse(&format!("{{url: '{url}'}}"))) {
            Endpoint::Url { host, .. } => Some(host),
            _ => None,
        };
        assert_eq!(host("https://10.0.0.7:31443/mutate").as_deref(), Some("10.0.0.7"));
        assert_eq!(host("https://[fd00::1]:443/x").as_deref(), Some("fd00::1"));
        assert_eq!(host("not a url"), None);
        assert_eq!(host("https://[]:443/x"), None);
        assert_eq!(endpoint(&WebhookClientConfig::default()), Endpoint::Broken);
    }

    #[test]
    fn what_was_not_read_is_told() {
        let cluster = without(
            &[Kind::ValidatingWebhookConfiguration],
            "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: m}, webhooks: [{name: a}, {name: b}]}",
        );
        let (found, missing) = webhooks(&cluster);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|configured| configured.mutating));
        assert_eq!(missing.len(), 1);
    }

    #[test]
    fn only_the_configuration_of_admission_is_exempt() {
        let none = StringMap::new();
        for (group, resource, called) in [
            ("admissionregistration.k8s.io", "validatingwebhookconfigurations", false),
            ("admissionregistration.k8s.io", "others", true),
            ("example.com", "validatingwebhookconfigurations", true),
        ] {
            let request = Request {
                group,
                namespace: None,
                ..request(Operation::Create, resource, "", &none)
            };
            let exempt = super::called(&Snapshot::default(), &hook("'*'", "*", "'*/*'", ""), &request);
            assert_eq!(exempt == Called::Yes, called, "{group} {resource}");
        }
    }

    #[test]
    fn kinds_of_configurations() {
        let configuration = WebhookConfiguration::default();
        let webhook = Webhook::default();
        let kind = |mutating| {
            Configured {
                mutating,
                configuration: &configuration,
                webhook: &webhook,
            }
            .kind()
        };
        assert_eq!(
            (kind(true), kind(false)),
            ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        );
    }
}
