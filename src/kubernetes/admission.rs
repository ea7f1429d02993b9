//! What admission webhooks are called for.

use crate::cluster::objects::{StringMap, Webhook, WebhookClientConfig, WebhookConfiguration};
use crate::cluster::snapshot::{NotRead, Snapshot};

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
        if self.mutating { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" }
    }
}

/// The webhooks that were read, and what was not.
pub fn webhooks(snapshot: &Snapshot) -> (Vec<Configured<'_>>, Vec<NotRead>) {
    let _ = snapshot;
    (Vec::new(), Vec::new())
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

/// Whether the webhook is called for the request.
pub fn called(snapshot: &Snapshot, webhook: &Webhook, request: &Request<'_>) -> Called {
    let _ = (snapshot, webhook, request);
    Called::No
}

/// Whether a call that fails refuses the request: `Fail`, which is also the default.
pub fn fails_closed(webhook: &Webhook) -> bool {
    webhook.failure_policy.as_deref().is_none_or(|policy| policy != "Ignore")
}

/// Whether the webhook, unserved, refuses any CREATE or UPDATE of pods in some namespace.
pub fn covers_pods(snapshot: &Snapshot, webhook: &Webhook) -> bool {
    let _ = (snapshot, webhook);
    false
}

/// What is refused while the webhooks are unserved, for people.
pub fn blast(snapshot: &Snapshot, webhooks: &[&Webhook]) -> Vec<String> {
    let _ = (snapshot, webhooks);
    Vec::new()
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

/// Where the webhook is called.
pub fn endpoint(config: &WebhookClientConfig) -> Endpoint<'_> {
    let _ = config;
    Endpoint::Broken
}
