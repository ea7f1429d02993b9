//! What the API server calls: admission and conversion webhooks and aggregated APIs, and who answers.

use crate::cluster::objects::{Pod, ServiceReference};
use crate::cluster::snapshot::{NotRead, Snapshot};

use super::admission;
use super::endpoints::{self, PodRoute, Route};

/// Kinds of what is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CalledKind {
    /// An admission webhook configuration.
    Webhook,
    /// An aggregated API.
    ApiService,
    /// A custom resource's conversion webhook.
    Conversion,
}

/// Something that the API server calls by a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Called<'a> {
    /// Kind.
    pub kind: CalledKind,
    /// Name of the configuration, APIService or CRD.
    pub name: &'a str,
    /// Namespace and name of the Service.
    pub service: (&'a str, &'a str),
    /// Port of the Service; `None` means 443.
    pub port: Option<i64>,
    /// Whether requests are refused where nobody answers.
    pub closed: bool,
}

/// What of the kinds that name what is called was not read.
pub fn unread(snapshot: &Snapshot) -> Vec<(CalledKind, NotRead)> {
    let webhooks = [snapshot.mutating_webhooks.all().err(), snapshot.validating_webhooks.all().err()];
    let mut unread: Vec<(CalledKind, NotRead)> = webhooks
        .into_iter()
        .flatten()
        .map(|missing| (CalledKind::Webhook, missing))
        .collect();
    unread.extend(snapshot.api_services.all().err().map(|missing| (CalledKind::ApiService, missing)));
    unread.extend(
        snapshot
            .custom_resources
            .all()
            .err()
            .map(|missing| (CalledKind::Conversion, missing)),
    );
    unread
}

/// Everything that was read and is called by a Service, once for each Service and port.
pub fn called(snapshot: &Snapshot) -> Vec<Called<'_>> {
    fn entry<'a>(kind: CalledKind, name: &'a str, service: &'a ServiceReference, closed: bool) -> Called<'a> {
        Called {
            kind,
            name,
            service: (&service.namespace, &service.name),
            port: service.port,
            closed,
        }
    }
    let mut found = Vec::new();
    for configuration in snapshot.mutating_webhooks.seen().iter().chain(snapshot.validating_webhooks.seen()) {
        for webhook in &configuration.webhooks {
            if let Some(service) = &webhook.client_config.service {
                let closed = admission::fails_closed(webhook);
                found.push(entry(CalledKind::Webhook, &configuration.metadata.name, service, closed));
            }
        }
    }
    for api in snapshot.api_services.seen() {
        if let Some(service) = &api.spec.service {
            found.push(entry(CalledKind::ApiService, &api.metadata.name, service, true));
        }
    }
    for definition in snapshot.custom_resources.seen() {
        let conversion = &definition.spec.conversion;
        let webhook = conversion.webhook.as_ref().filter(|_| conversion.strategy == "Webhook");
        if let Some(service) = webhook.and_then(|webhook| webhook.client_config.service.as_ref()) {
            found.push(entry(CalledKind::Conversion, &definition.metadata.name, service, true));
        }
    }
    // Of a configuration's webhooks the one that refuses counts.
    found.sort_by(|a, b| (a.kind, a.name, a.service, a.port, b.closed).cmp(&(b.kind, b.name, b.service, b.port, a.closed)));
    found.dedup_by(|a, b| (a.kind, a.name, a.service, a.port) == (b.kind, b.name, b.service, b.port));
    found
}

/// Who answers now where the API server calls.
#[derive(Clone, Debug)]
pub enum Answering<'a> {
    /// These pods, by a Service that selects pods.
    Pods(PodRoute<'a>, Vec<&'a Pod>),
    /// Nobody in the cluster that could be told by its pods.
    Elsewhere,
    /// It cannot be told.
    Unknown(NotRead),
}

/// The pods that answer what is called.
pub fn answering<'a>(snapshot: &'a Snapshot, called: &Called<'_>) -> Answering<'a> {
    let (namespace, name) = called.service;
    match endpoints::route(snapshot, namespace, name, called.port) {
        Route::Pods(route) => match snapshot.pods.in_namespace(&route.service().metadata.namespace) {
            // A pod on a node that does not answer stays Ready until the node controller says otherwise.
            Ok(pods) => Answering::Pods(
                route,
                pods.iter().filter(|pod| route.answers(pod) && snapshot.node_answers(pod)).collect(),
            ),
            Err(missing) => Answering::Unknown(missing),
        },
        Route::Slices(_) | Route::External(_) | Route::Broken(_) => Answering::Elsewhere,
        Route::Unknown(missing) => Answering::Unknown(missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::kubernetes::testing::{snapshot, without};

    const CLUSTER: &str = "
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: v}, webhooks: [
  {name: a, failurePolicy: Ignore, clientConfig: {service: {namespace: n, name: s}}},
  {name: b, clientConfig: {service: {namespace: n, name: s}}},
  {name: c, clientConfig: {url: 'https://10.0.0.1'}}]}
---
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a}, spec: {service: {namespace: n, name: absent}}}
---
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.}, spec: {}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: c.x}, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {namespace: n, name: s}}}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: s, namespace: n}, spec: {selector: {a: b}, ports: [{port: 443}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: n, labels: {a: b}}, spec: {nodeName: x}, status: {conditions: [{type: Ready, status: 'True'}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: n, labels: {a: b}}, spec: {nodeName: y}, status: {conditions: [{type: Ready, status: 'False'}]}}
";

    fn told(snapshot: &Snapshot) -> Vec<String> {
        called(snapshot)
            .iter()
            .map(|called| {
                let who = match answering(snapshot, called) {
                    Answering::Pods(_, pods) => pods.iter().map(|pod| pod.metadata.name.as_str()).collect::<Vec<_>>().join(","),
                    Answering::Elsewhere => "elsewhere".to_owned(),
                    Answering::Unknown(missing) => format!("unknown {}", missing.kind),
                };
                format!("{:?} {} {} {who}", called.kind, called.name, called.closed)
            })
            .collect()
    }

    #[test]
    fn who_answers() {
        assert_eq!(
            told(&snapshot(CLUSTER)),
            ["Webhook v true p", "ApiService v1.a true elsewhere", "Conversion c.x true p"]
        );
        assert_eq!(told(&without(&[Kind::Pod], ""))[..], Vec::<String>::new()[..]);
    }

    #[test]
    fn what_was_not_read() {
        let unread = super::unread(&without(&[Kind::ApiService], CLUSTER));
        assert_eq!(unread.len(), 1);
        assert_eq!(unread[0].0, CalledKind::ApiService);
        assert!(told(&without(&[Kind::Service], ""))[..].is_empty());
    }
}
