//! Who answers behind a Service's port.

use crate::cluster::objects::{Pod, PodSpec, Service, ServicePort, StringMap};
use crate::cluster::snapshot::{NotRead, Snapshot};

/// Where a call to a Service's port ends up.
#[derive(Clone, Debug)]
pub enum Route<'a> {
    /// At pods that the Service selects.
    Pods(PodRoute<'a>),
    /// At endpoints that somebody else wrote, as the Service has no selector.
    Slices {
        /// How many ready endpoints there are.
        ready: usize,
        /// The node of each ready endpoint that names one, sorted: one entry per endpoint.
        nodes: Vec<&'a str>,
    },
    /// Nowhere, whoever is ready; the reason.
    Broken(String),
    /// It cannot be told.
    Unknown(NotRead),
}

/// A port of a Service with a selector.
#[derive(Clone, Copy, Debug)]
pub struct PodRoute<'a> {
    service: &'a Service,
    port: &'a ServicePort,
}

impl<'a> PodRoute<'a> {
    /// Each port of a Service; none for a Service without a selector.
    pub fn of(service: &'a Service) -> impl Iterator<Item = Self> {
        service.spec.ports.iter().filter(|_| !service.spec.selector.is_empty()).map(move |port| Self { service, port })
    }

    /// The Service.
    pub fn service(&self) -> &'a Service {
        self.service
    }

    /// The port.
    pub fn port(&self) -> &'a ServicePort {
        self.port
    }

    /// Whether a pod like this is a backend: the selector matches, and a target port given by name exists on it.
    pub fn selects(&self, namespace: &str, labels: &StringMap, spec: &PodSpec) -> bool {
        let _ = (namespace, labels, spec);
        false
    }

    /// Whether the pod answers now: it is selected, has a node, is Ready (or need not be), has not finished and is not terminating.
    pub fn answers(&self, pod: &Pod) -> bool {
        self.selects(&pod.metadata.namespace, &pod.metadata.labels, &pod.spec)
    }

    /// Whether pods that are not Ready are published too.
    pub fn publishes_not_ready(&self) -> bool {
        self.service.spec.publish_not_ready_addresses
    }
}

/// Where the API server ends up when it calls a webhook or an aggregated API; `None` means port 443.
pub fn route<'a>(snapshot: &'a Snapshot, namespace: &str, name: &str, port: Option<i64>) -> Route<'a> {
    let _ = (snapshot, namespace, name, port);
    Route::Broken(String::new())
}
