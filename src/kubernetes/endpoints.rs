//! Who answers behind a Service's port.

use std::collections::BTreeMap;

use crate::cluster::kinds::Kind;
use crate::cluster::objects::{Endpoint, Pod, PodSpec, PortRef, Service, ServicePort, StringMap};
use crate::cluster::snapshot::{NotRead, Reason, Scope, Snapshot};

/// Where a call to a Service's port ends up.
#[derive(Clone, Debug)]
pub enum Route<'a> {
    /// At pods that the Service selects.
    Pods(PodRoute<'a>),
    /// At endpoints that somebody else wrote, as the Service has no selector: those that are ready, each once.
    Slices(Vec<&'a Endpoint>),
    /// At a name outside of what the cluster tells of.
    External(&'a str),
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
        service
            .spec
            .ports
            .iter()
            .filter(|_| selects_pods(service))
            .map(move |port| Self { service, port })
    }

    /// The Service.
    pub fn service(&self) -> &'a Service {
        self.service
    }

    /// The port.
    pub fn port(&self) -> &'a ServicePort {
        self.port
    }

    /// Whether a pod like this is a backend: the selector matches, and a target port given by name exists on it
    /// (`k8s.io/endpointslice/utils.go`, FindPort: containers and sidecars, of the same protocol).
    pub fn selects(&self, namespace: &str, labels: &StringMap, spec: &PodSpec) -> bool {
        let meta = &self.service.metadata;
        namespace == meta.namespace
            && selects_pods(self.service)
            && self.service.spec.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            && match &self.port.target_port {
                None | Some(PortRef::Number(_)) => true,
                Some(PortRef::Name(name)) => {
                    let sidecars = spec
                        .init_containers
                        .iter()
                        .filter(|container| container.restart_policy.as_deref() == Some("Always"));
                    spec.containers
                        .iter()
                        .chain(sidecars)
                        .flat_map(|container| &container.ports)
                        .any(|port| port.name == *name && protocol(&port.protocol) == protocol(&self.port.protocol))
                }
            }
    }

    /// Whether the pod answers now: it is selected, has a node, is Ready (or need not be), has not finished and is
    /// not terminating (`k8s.io/endpointslice/utils.go`, podToEndpoint; `util/controller_utils.go`,
    /// ShouldPodBeInEndpoints). A terminating pod never counts, even where it is still published: it is on its way out.
    pub fn answers(&self, pod: &Pod) -> bool {
        pod.node().is_some()
            && !pod.finished()
            && !pod.metadata.terminating()
            // A pod without an address is not published; one that is Ready has one, even if the file leaves it out.
            && (pod.ready() || self.publishes_not_ready() && !pod.status.pod_ip.is_empty())
            && self.selects(&pod.metadata.namespace, &pod.metadata.labels, &pod.spec)
    }

    /// Whether pods that are not Ready are published too.
    pub fn publishes_not_ready(&self) -> bool {
        self.service.spec.publish_not_ready_addresses
    }
}

/// The endpoint controllers leave alone what has no selector, or is only a DNS name.
fn selects_pods(service: &Service) -> bool {
    !service.spec.selector.is_empty() && service.spec.kind != "ExternalName"
}

fn protocol(text: &str) -> &str {
    if text.is_empty() { "TCP" } else { text }
}

/// Where the API server ends up when it calls a webhook or an aggregated API; `None` means port 443.
///
/// The API server calls the Service's cluster IP, or with `--enable-aggregator-routing` its endpoints
/// (`k8s.io/apiserver/pkg/util/proxy/proxy.go`, ResolveCluster, ResolveEndpoint). Only the second works for a headless
/// Service, only the first, which is the default, for an `ExternalName`: its name is called at the port asked for. Only
/// the API server's own pods tell which. A port that any other Service does not have never works.
pub fn route<'a>(snapshot: &'a Snapshot, namespace: &str, name: &str, port: Option<i64>) -> Route<'a> {
    let service = match snapshot.services.get(namespace, name) {
        Ok(Some(service)) => service,
        Ok(None) => return Route::Broken(format!("Service {namespace}/{name} does not exist")),
        Err(missing) => return Route::Unknown(missing),
    };
    if service.spec.kind == "ExternalName" {
        return match routes_to_endpoints(snapshot) {
            Some(true) => Route::Broken(format!(
                "Service {namespace}/{name} is an ExternalName, which an API server with {ROUTING} cannot call"
            )),
            Some(false) => Route::External(&service.spec.external_name),
            None => untold(
                namespace,
                format!("{name} is an ExternalName, which an API server calls only without {ROUTING}"),
            ),
        };
    }
    // A port of 0 is what an absent one decodes to (`k8s.io/apiserver/pkg/util/webhook/client.go`).
    let number = port.filter(|port| *port != 0).unwrap_or(443);
    let Some(port) = service.spec.ports.iter().find(|port| port.port == number) else {
        return Route::Broken(format!("Service {namespace}/{name} has no port {number}"));
    };
    if service.spec.cluster_ip == "None" {
        match routes_to_endpoints(snapshot) {
            Some(true) => {}
            Some(false) => {
                return Route::Broken(format!(
                    "Service {namespace}/{name} is headless, which the API server cannot call without {ROUTING}"
                ));
            }
            None => {
                return untold(
                    namespace,
                    format!("{name} is headless, which an API server calls only with {ROUTING}"),
                );
            }
        }
    }
    if selects_pods(service) {
        Route::Pods(PodRoute { service, port })
    } else {
        slices(snapshot, service, port)
    }
}

/// Flag of the API server.
const ROUTING: &str = "--enable-aggregator-routing";

/// Whether the API servers call endpoints themselves, as their static pods say; `None` where none of these is seen.
fn routes_to_endpoints(snapshot: &Snapshot) -> Option<bool> {
    let pods = snapshot.pods.seen_in("kube-system").iter();
    pods.filter(|pod| pod.metadata.labels.get("component").is_some_and(|value| value == "kube-apiserver"))
        .map(|pod| {
            let words = pod
                .spec
                .containers
                .iter()
                .flat_map(|container| container.command.iter().chain(&container.args));
            let mut values = words.filter_map(|word| word.strip_prefix(ROUTING));
            values.next_back().is_some_and(|value| matches!(value, "" | "=true" | "=1"))
        })
        .reduce(|one, other| one || other)
}

fn untold(namespace: &str, why: String) -> Route<'static> {
    Route::Unknown(NotRead {
        kind: Kind::Service,
        scope: Scope::Namespace(namespace.to_owned()),
        reason: Reason::Failed(why),
    })
}

/// The endpoints written for a Service without a selector (`pkg/proxy/endpointslicecache.go`: by the port's name).
fn slices<'a>(snapshot: &'a Snapshot, service: &Service, port: &ServicePort) -> Route<'a> {
    let slices = match snapshot.endpoint_slices.in_namespace(&service.metadata.namespace) {
        Ok(slices) => slices,
        Err(missing) => return Route::Unknown(missing),
    };
    // One backend is in a slice per address family: what it refers to, or else its address, tells it apart.
    let mut ready = BTreeMap::new();
    for slice in slices {
        let ours = slice
            .metadata
            .labels
            .get("kubernetes.io/service-name")
            .is_some_and(|name| *name == service.metadata.name);
        let reached = slice
            .ports
            .iter()
            .any(|candidate| candidate.name == port.name && candidate.port.is_some());
        if !ours || !reached {
            continue;
        }
        for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.conditions.ready.unwrap_or(true)) {
            let identity = match &endpoint.target_ref {
                Some(target) => Some((target.kind.as_str(), target.namespace.as_str(), target.name.as_str())),
                None => endpoint.addresses.first().map(|address| ("", "", address.as_str())),
            };
            if let Some(identity) = identity {
                ready.insert(identity, endpoint);
            }
        }
    }
    Route::Slices(ready.into_values().collect())
}

/// Whether a written endpoint is the pod: it refers to it, or has the address that the pod has for itself.
pub fn is_pod(endpoint: &Endpoint, namespace: &str, pod: &Pod) -> bool {
    match &endpoint.target_ref {
        Some(target) => {
            let of = if target.namespace.is_empty() {
                namespace
            } else {
                &target.namespace
            };
            target.kind == "Pod" && target.name == pod.metadata.name && of == pod.metadata.namespace
        }
        None => !pod.spec.host_network && !pod.status.pod_ip.is_empty() && endpoint.addresses.contains(&pod.status.pod_ip),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::testing::snapshot;

    const SERVICES: &str = r"
apiVersion: v1
kind: Service
metadata: {name: gpustack-operator-worker, namespace: gpustack-system}
spec:
  selector: {app.kubernetes.io/name: gpustack-operator-worker}
  ports: [{name: https, port: 443, targetPort: https}]
---
apiVersion: v1
kind: Service
metadata: {name: kueue-webhook-service, namespace: gpustack-system}
spec:
  selector: {control-plane: controller-manager}
  ports: [{port: 443, protocol: TCP, targetPort: 9443}]
---
apiVersion: v1
kind: Service
metadata: {name: headless, namespace: gpustack-system}
spec: {clusterIP: None, selector: {a: b}, ports: [{port: 443}]}
---
apiVersion: v1
kind: Service
metadata: {name: elsewhere, namespace: gpustack-system}
spec: {type: ExternalName, externalName: example.com, ports: [{port: 443}]}
---
apiVersion: v1
kind: Service
metadata: {name: unready, namespace: gpustack-system}
spec: {publishNotReadyAddresses: true, selector: {a: b}, ports: [{port: 443}]}
---
apiVersion: v1
kind: Service
metadata: {name: fake, namespace: gpustack-system, labels: {gpustack.ai/fake-routing: 'true'}}
spec: {ports: [{name: https, port: 443, targetPort: 31443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: fake-1, namespace: gpustack-system, labels: {kubernetes.io/service-name: fake}}
ports: [{name: https, port: 31443}]
endpoints:
- {addresses: [10.0.0.1], nodeName: cp-1}
- {addresses: [10.0.0.2], conditions: {ready: true}}
- {addresses: [10.0.0.3], conditions: {ready: false}, nodeName: cp-3}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: fake-2, namespace: gpustack-system, labels: {kubernetes.io/service-name: fake}}
ports: [{name: metrics, port: 1}]
endpoints: [{addresses: [10.0.0.9]}]
";

    fn pod(yaml: &str) -> Pod {
        serde_saphyr::from_str(yaml).unwrap()
    }

    fn worker(status: &str) -> Pod {
        pod(&format!(
            "metadata: {{name: w, namespace: gpustack-system, labels: {{app.kubernetes.io/name: gpustack-operator-worker, x: y}}}}
spec: {{nodeName: cp-1, containers: [{{name: main, ports: [{{name: https, containerPort: 31443}}]}}]}}
status: {status}"
        ))
    }

    fn pods<'a>(snapshot: &'a Snapshot, name: &str, port: Option<i64>) -> PodRoute<'a> {
        match route(snapshot, "gpustack-system", name, port) {
            Route::Pods(route) => route,
            other => panic!("{other:?}"),
        }
    }

    fn broken(route: &Route<'_>) -> String {
        match route {
            Route::Broken(why) => why.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_ready_pod_at_the_named_port_answers() {
        let snapshot = snapshot(SERVICES);
        let route = pods(&snapshot, "gpustack-operator-worker", None);
        assert_eq!(
            (route.service().metadata.name.as_str(), route.port().port),
            ("gpustack-operator-worker", 443)
        );
        let ready = worker("{phase: Running, conditions: [{type: Ready, status: 'True'}]}");
        assert!(route.answers(&ready));
        assert!(!route.answers(&worker(
            "{phase: Running, podIP: 10.1.1.1, conditions: [{type: Ready, status: 'False'}]}"
        )));
        assert!(!route.answers(&worker("{phase: Succeeded, conditions: [{type: Ready, status: 'True'}]}")));

        let mut other = ready.clone();
        other.metadata.namespace = "default".to_owned();
        assert!(!route.answers(&other));
        let mut other = ready.clone();
        other.metadata.labels.clear();
        assert!(!route.answers(&other));
        let mut other = ready.clone();
        other.metadata.deletion_timestamp.0 = Some("2026-01-01T00:00:00Z".parse().unwrap());
        assert!(!route.answers(&other));
        let mut other = ready.clone();
        other.node_name = String::new().into();
        assert!(!route.answers(&other));
    }

    #[test]
    fn a_named_port_must_exist_on_the_pod_with_its_protocol() {
        let snapshot = snapshot(SERVICES);
        let route = pods(&snapshot, "gpustack-operator-worker", Some(443));
        let mut pod = worker("{conditions: [{type: Ready, status: 'True'}]}");
        pod.spec.containers[0].ports[0].protocol = "UDP".to_owned();
        assert!(!route.answers(&pod));
        pod.spec.containers[0].ports[0].protocol = "TCP".to_owned();
        assert!(route.answers(&pod));
        // On an init container it counts only for a sidecar.
        pod.spec.init_containers = std::mem::take(&mut pod.spec.containers);
        assert!(!route.answers(&pod));
        pod.spec.init_containers[0].restart_policy = Some("Always".to_owned());
        assert!(route.answers(&pod));
    }

    #[test]
    fn a_numbered_port_needs_no_declaration() {
        let snapshot = snapshot(SERVICES);
        let route = pods(&snapshot, "kueue-webhook-service", None);
        let kueue = pod(
            "{metadata: {namespace: gpustack-system, labels: {control-plane: controller-manager}}, spec: {nodeName: a, containers: [{name: manager}]}, status: {conditions: [{type: Ready, status: 'True'}]}}",
        );
        assert!(route.answers(&kueue));
    }

    #[test]
    fn an_unready_pod_answers_where_it_is_published() {
        let snapshot = snapshot(SERVICES);
        let route = pods(&snapshot, "unready", None);
        assert!(route.publishes_not_ready());
        let unready = |ip: &str| {
            pod(&format!(
                "{{metadata: {{namespace: gpustack-system, labels: {{a: b}}}}, spec: {{nodeName: a}}, status: {{podIP: '{ip}'}}}}"
            ))
        };
        assert!(route.answers(&unready("10.1.1.1")));
        assert!(!route.answers(&unready("")));
    }

    #[test]
    fn some_services_never_work() {
        let snapshot = snapshot(SERVICES);
        let why = |name, port| broken(&route(&snapshot, "gpustack-system", name, port));
        assert_eq!(
            why("kueue-webhook-service", Some(8443)),
            "Service gpustack-system/kueue-webhook-service has no port 8443"
        );
        assert_eq!(why("gone", None), "Service gpustack-system/gone does not exist");
    }

    #[test]
    fn the_servers_flags_decide_over_some() {
        let server = |name: &str, words: &str| {
            format!(
                "{SERVICES}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: kube-system, labels: {{component: kube-apiserver}}}}\nspec: {{containers: [{{name: c, command: [kube-apiserver, {words}]}}]}}\n"
            )
        };
        let said = |yaml: &str, name: &str| match route(&snapshot(yaml), "gpustack-system", name, None) {
            Route::External(name) => format!("external {name}"),
            Route::Pods(_) => "pods".to_owned(),
            Route::Broken(why) => why,
            Route::Unknown(missing) => format!("? {missing}"),
            Route::Slices(_) => "slices".to_owned(),
        };
        let default = server("a", "--enable-aggregator-routing=false");
        let routing = server("a", "--enable-aggregator-routing=true");
        assert!(said(SERVICES, "headless").starts_with("? "), "{}", said(SERVICES, "headless"));
        assert!(said(&default, "headless").contains("is headless"));
        assert_eq!(said(&routing, "headless"), "pods");
        assert!(said(SERVICES, "elsewhere").starts_with("? "));
        assert_eq!(said(&default, "elsewhere"), "external example.com");
        assert!(said(&routing, "elsewhere").contains("is an ExternalName"));
        assert_eq!(said(&server("b", "--enable-aggregator-routing"), "headless"), "pods");
        assert!(said(&server("b", "--v=2"), "headless").contains("is headless"));
    }

    #[test]
    fn without_a_selector_the_slices_tell() {
        let snapshot = snapshot(SERVICES);
        match route(&snapshot, "gpustack-system", "fake", None) {
            Route::Slices(ready) => {
                let addresses: Vec<_> = ready.iter().map(|endpoint| endpoint.addresses[0].as_str()).collect();
                assert_eq!(addresses, ["10.0.0.1", "10.0.0.2"]);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_not_read_is_unknown() {
        let empty = Snapshot::default();
        assert!(matches!(
            route(&empty, "gpustack-system", "kueue-webhook-service", None),
            Route::Unknown(_)
        ));
        let mut partial = Snapshot::default();
        partial
            .objects
            .services
            .insert(serde_saphyr::from_str("{metadata: {name: fake, namespace: n}, spec: {ports: [{port: 443}]}}").unwrap());
        assert!(
            matches!(route(&partial, "n", "fake", None), Route::Unknown(missing) if missing.kind == crate::cluster::kinds::Kind::EndpointSlice)
        );
    }

    #[test]
    fn an_endpoint_is_the_pod_that_it_names_or_whose_address_it_has() {
        let status = "status: {podIP: 10.0.0.1}";
        let metadata = "metadata: {name: w, namespace: n}";
        let own = format!("{{{metadata}, {status}}}");
        for (endpoint, pod_yaml, same) in [
            ("targetRef: {kind: Pod, name: w, namespace: n}", own.as_str(), true),
            ("targetRef: {kind: Pod, name: w}", &own, true),
            ("targetRef: {kind: Pod, name: w, namespace: other}", &own, false),
            ("targetRef: {kind: Pod, name: x, namespace: n}", &own, false),
            ("targetRef: {kind: Node, name: w, namespace: n}", &own, false),
            ("addresses: [10.0.0.1]", &own, true),
            ("addresses: [10.0.0.2]", &own, false),
            (
                "addresses: [10.0.0.1]",
                &format!("{{{metadata}, spec: {{hostNetwork: true}}, {status}}}"),
                false,
            ),
            ("addresses: ['']", &format!("{{{metadata}}}"), false),
        ] {
            let read: Endpoint = serde_saphyr::from_str(&format!("{{{endpoint}}}")).unwrap();
            assert_eq!(is_pod(&read, "n", &pod(pod_yaml)), same, "{endpoint} {pod_yaml}");
        }
    }
}
