//! Finding the install.

use std::collections::BTreeSet;

use crate::cluster::objects::{Deployment, Meta};
use crate::cluster::snapshot::{NotRead, Snapshot};

use super::components::{COMPONENT, ComponentId, INSTANCE, PART_OF, label};

/// The release that a worker makes by itself for the components, where no chart release holds them.
const OWN_RELEASE: &str = "gpustack-operator-device-manager";
/// Where an install lies unless somebody chose otherwise.
pub const DEFAULT_NAMESPACE: &str = "gpustack-system";
/// Label of the Service that stands for workers outside the cluster.
const FAKE_ROUTING: &str = "gpustack.ai/fake-routing";

/// How the worker came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The operator chart, with all components in one release.
    Chart,
    /// GPUStack's server renders the worker, and the worker installs the rest: no values can be set.
    Image,
    /// The worker runs outside the cluster and is called by its address.
    Outside,
}

/// An install of GPUStack's operator.
#[derive(Clone, Debug)]
pub struct Install<'a> {
    /// Helm release.
    pub release: &'a str,
    /// Namespace: the worker's, else Kueue's.
    pub namespace: &'a str,
    /// Version of the operator chart, where a label tells.
    pub chart_version: Option<String>,
    /// How the worker came to be.
    pub mode: Mode,
    /// The components that run as Deployments, in the order of [`ComponentId::ALL`].
    pub components: Vec<(ComponentId, &'a Deployment)>,
}

/// What was found.
#[derive(Clone, Debug)]
pub enum Found<'a> {
    /// One install.
    One(Install<'a>),
    /// None, and it would have been seen.
    None,
    /// Several, sorted by namespace and release.
    Several(Vec<Install<'a>>),
    /// It cannot be told.
    Unknown(NotRead),
}

/// Finds installs by their labels, narrowed down to a release and a namespace where given.
///
/// An install is known by its worker, by the DaemonSets of the operator chart, or by the release that a worker makes
/// by itself. A Kueue, an NFD or a CSI driver alone is somebody's own. The others count by the release's label,
/// and only in the install's namespace or where no other install of that release lies, as `namespaceOverride` moves
/// the worker and leaves them.
///
/// Without a namespace, all Deployments must have been read; with one, those of the namespace.
pub fn find<'a>(snapshot: &'a Snapshot, release: Option<&str>, namespace: Option<&str>) -> Found<'a> {
    let read = match namespace {
        Some(namespace) => snapshot.deployments.in_namespace(namespace).map(|_| ()),
        None => snapshot.deployments.all().map(|_| ()),
    };
    if let Err(missing) = read {
        return Found::Unknown(missing);
    }
    let mut installs: Vec<Install<'a>> = installs(snapshot)
        .into_iter()
        .filter(|install| release.is_none_or(|release| install.release == release))
        .filter(|install| namespace.is_none_or(|namespace| install.lies_in(namespace)))
        .collect();
    match installs.len() {
        0 => Found::None,
        1 => installs.pop().map_or(Found::None, Found::One),
        _ => Found::Several(installs),
    }
}

fn installs(snapshot: &Snapshot) -> Vec<Install<'_>> {
    let deployments: Vec<(ComponentId, &Deployment)> = snapshot
        .deployments
        .seen()
        .iter()
        .filter_map(|deployment| Some((ComponentId::of(deployment)?, deployment)))
        .collect();
    let outside = called_by_address(snapshot) || snapshot.services.seen().iter().any(|service| fake(&service.metadata));

    // By namespace and release: what tells that an install is there.
    let mut anchors: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (_, deployment) in deployments.iter().filter(|(id, _)| *id == ComponentId::Worker) {
        anchors.insert((&deployment.metadata.namespace, release_of_worker(deployment)));
    }
    let own = deployments
        .iter()
        .filter(|(_, deployment)| instance(deployment) == Some(OWN_RELEASE))
        .map(|(_, deployment)| &deployment.metadata);
    let daemons = snapshot.daemon_sets.seen().iter().map(|set| &set.metadata).filter(|meta| {
        label(&meta.labels, PART_OF) == Some("gpustack-operator")
            && matches!(label(&meta.labels, COMPONENT), Some("device-manager" | "model-manager"))
    });
    let rest: Vec<(&str, &str)> = own
        .chain(daemons)
        .map(|meta| (meta.namespace.as_str(), label(&meta.labels, INSTANCE).unwrap_or(OWN_RELEASE)))
        .collect();
    for (namespace, release) in rest {
        // Before the subcharts, a worker made its components' release beside its own.
        if !anchors.iter().any(|anchor| anchor.1 == release || anchor.0 == namespace) {
            anchors.insert((namespace, release));
        }
    }
    if anchors.is_empty() {
        let fakes = snapshot
            .services
            .seen()
            .iter()
            .map(|service| &service.metadata)
            .filter(|meta| fake(meta));
        anchors.extend(fakes.map(|meta| (meta.namespace.as_str(), OWN_RELEASE)));
        if anchors.is_empty() && outside {
            anchors.insert((DEFAULT_NAMESPACE, OWN_RELEASE));
        }
    }

    anchors
        .iter()
        .map(|anchor| assemble(*anchor, &anchors, &deployments, outside))
        .collect()
}

fn assemble<'a>(
    (namespace, release): (&'a str, &'a str),
    anchors: &BTreeSet<(&str, &str)>,
    deployments: &[(ComponentId, &'a Deployment)],
    outside: bool,
) -> Install<'a> {
    let alone = anchors.iter().filter(|anchor| anchor.1 == release).count() == 1;
    let mut components: Vec<(ComponentId, &Deployment)> = deployments
        .iter()
        .copied()
        .filter(|(id, deployment)| {
            let here = deployment.metadata.namespace == namespace;
            let elsewhere = anchors.iter().any(|anchor| anchor.0 == deployment.metadata.namespace);
            match (id, instance(deployment)) {
                (ComponentId::Worker, _) => here && release_of_worker(deployment) == release,
                (_, Some(instance)) if here => instance == release || instance == OWN_RELEASE,
                (_, Some(instance)) => instance == release && alone && !elsewhere,
                // Not every template labels what it renders.
                (_, None) => here,
            }
        })
        .collect();
    components.sort_by_key(|(id, deployment)| (*id, &deployment.metadata.namespace, &deployment.metadata.name));
    let worker = components
        .iter()
        .find(|(id, _)| *id == ComponentId::Worker)
        .map(|(_, deployment)| *deployment);
    let mode = match worker {
        _ if outside => Mode::Outside,
        Some(worker) if rendered(worker) => Mode::Image,
        None if release == OWN_RELEASE => Mode::Image,
        _ => Mode::Chart,
    };
    let chart_version = worker
        .and_then(|worker| label(&worker.metadata.labels, "helm.sh/chart"))
        .and_then(|chart| chart.strip_prefix("gpustack-operator-"))
        .map(str::to_owned);
    Install {
        release,
        namespace,
        chart_version,
        mode,
        components,
    }
}

/// Whether GPUStack's server rendered the worker, as its component label tells.
fn rendered(worker: &Deployment) -> bool {
    label(&worker.spec.template.metadata.labels, COMPONENT) == Some("worker")
}

/// The release that a worker's components are in.
fn release_of_worker(worker: &Deployment) -> &str {
    match instance(worker) {
        _ if rendered(worker) => OWN_RELEASE,
        Some(instance) => instance,
        None => label(&worker.metadata.annotations, "meta.helm.sh/release-name").unwrap_or("gpustack-operator"),
    }
}

/// The release, by the label of the object or of its pods: the S3 driver's Deployment itself has none.
fn instance(deployment: &Deployment) -> Option<&str> {
    label(&deployment.metadata.labels, INSTANCE).or_else(|| label(&deployment.spec.template.metadata.labels, INSTANCE))
}

fn fake(meta: &Meta) -> bool {
    label(&meta.labels, FAKE_ROUTING) == Some("true")
}

/// Whether a webhook of the worker's is called by an address: the sign of a worker outside the cluster.
fn called_by_address(snapshot: &Snapshot) -> bool {
    let configurations = snapshot.mutating_webhooks.seen().iter().chain(snapshot.validating_webhooks.seen());
    configurations
        .filter(|configuration| is_worker_configuration(&configuration.metadata.name))
        .flat_map(|configuration| &configuration.webhooks)
        .any(|webhook| webhook.client_config.service.is_none() && webhook.client_config.url.is_some())
}

impl<'a> Install<'a> {
    /// The Deployment of a component, if the install has it.
    pub fn component(&self, id: ComponentId) -> Option<&'a Deployment> {
        self.components
            .iter()
            .find(|(found, _)| *found == id)
            .map(|(_, deployment)| *deployment)
    }

    /// The component that the Deployment is in this install.
    pub fn component_of(&self, namespace: &str, name: &str) -> Option<ComponentId> {
        self.components
            .iter()
            .find(|(_, deployment)| deployment.metadata.namespace == namespace && deployment.metadata.name == name)
            .map(|(id, _)| *id)
    }

    /// Whether the install, or a component of it, lies in the namespace.
    pub fn lies_in(&self, namespace: &str) -> bool {
        self.namespace == namespace
            || self
                .components
                .iter()
                .any(|(_, deployment)| deployment.metadata.namespace == namespace)
    }
}

/// Whether the Service is the one by which the API server reaches the install's Kueue (its webhooks and conversion, not
/// its visibility API) or its worker: by its name, or because it selects their pods.
pub fn is_kueue_or_worker_service(snapshot: &Snapshot, install: &Install<'_>, namespace: &str, name: &str) -> bool {
    let place = |id| {
        install
            .component(id)
            .map_or(install.namespace, |deployment| deployment.metadata.namespace.as_str())
    };
    let worker = install
        .component(ComponentId::Worker)
        .map_or("gpustack-operator-worker", |deployment| deployment.metadata.name.as_str());
    if name == "kueue-webhook-service" && namespace == place(ComponentId::Kueue)
        || name == worker && namespace == place(ComponentId::Worker)
    {
        return true;
    }
    let Some(service) = snapshot.services.find(namespace, name) else {
        return false;
    };
    // The API server calls neither of these on behalf of a write.
    if name.contains("visibility") || name.contains("metrics") {
        return false;
    }
    let selector = &service.spec.selector;
    !selector.is_empty()
        && [ComponentId::Worker, ComponentId::Kueue]
            .into_iter()
            .filter_map(|id| install.component(id))
            .any(|deployment| {
                deployment.metadata.namespace == namespace
                    && selector
                        .iter()
                        .all(|(key, value)| label(&deployment.spec.template.metadata.labels, key) == Some(value))
            })
}

/// Whether a webhook configuration of this name is the worker's.
pub fn is_worker_configuration(name: &str) -> bool {
    matches!(name, "gpustack-worker-mutation" | "gpustack-worker-validation")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::kinds::Kind;
    use crate::kubernetes::testing::{snapshot, without};

    fn worker(namespace: &str, release: &str, component: &str) -> String {
        let labels = format!(
            "{{app.kubernetes.io/part-of: gpustack-operator, app.kubernetes.io/component: {component}, app.kubernetes.io/instance: {release}, helm.sh/chart: gpustack-operator-0.11.2}}"
        );
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: gpustack-operator-worker, namespace: {namespace}, labels: {labels}}}, spec: {{template: {{metadata: {{labels: {labels}}}}}}}}}\n---\n"
        )
    }

    fn kueue(namespace: &str, release: &str) -> String {
        let labels = format!("{{app.kubernetes.io/name: kueue, app.kubernetes.io/instance: {release}, control-plane: controller-manager}}");
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: kueue-controller-manager, namespace: {namespace}, labels: {labels}}}, spec: {{template: {{metadata: {{labels: {labels}}}}}}}}}\n---\n"
        )
    }

    fn csi(namespace: &str, app: &str, release: &str) -> String {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {app}, namespace: {namespace}}}, spec: {{template: {{metadata: {{labels: {{app: {app}, app.kubernetes.io/instance: {release}}}}}}}}}}}\n---\n"
        )
    }

    fn told(snapshot: &Snapshot, release: Option<&str>, namespace: Option<&str>) -> Vec<String> {
        let tell = |install: &Install<'_>| {
            let components: Vec<String> = install
                .components
                .iter()
                .map(|(id, deployment)| format!("{id:?}@{}", deployment.metadata.namespace))
                .collect();
            format!(
                "{}/{} {:?} {}",
                install.namespace,
                install.release,
                install.mode,
                components.join(" ")
            )
        };
        match find(snapshot, release, namespace) {
            Found::None => vec!["none".to_owned()],
            Found::One(install) => vec![tell(&install)],
            Found::Several(installs) => installs.iter().map(tell).collect(),
            Found::Unknown(missing) => vec![format!("unknown {}", missing.kind)],
        }
    }

    #[test]
    fn the_chart() {
        let cluster = snapshot(
            &(worker("ai", "my-rel", "operator")
                + &kueue("ai", "my-rel")
                + &csi("ai", "csi-s3-controller", "my-rel")
                + &csi("kube-system", "csi-nfs-controller", "nfs")),
        );
        assert_eq!(told(&cluster, None, None), ["ai/my-rel Chart Worker@ai Kueue@ai S3Controller@ai"]);
        assert_eq!(
            told(&cluster, Some("my-rel"), Some("ai")),
            ["ai/my-rel Chart Worker@ai Kueue@ai S3Controller@ai"]
        );
        assert_eq!(told(&cluster, Some("other"), None), ["none"]);
        assert_eq!(told(&cluster, None, Some("gpustack-system")), ["none"]);
        match find(&cluster, None, None) {
            Found::One(install) => assert_eq!(install.chart_version.as_deref(), Some("0.11.2")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn somebodys_own_kueue_is_no_install() {
        assert_eq!(told(&snapshot(&kueue("kueue-system", "kueue")), None, None), ["none"]);
        let beside = snapshot(&(kueue("kueue-system", "kueue") + &worker("gpustack-system", "gpustack-operator", "operator")));
        assert_eq!(
            told(&beside, None, None),
            ["gpustack-system/gpustack-operator Chart Worker@gpustack-system"]
        );
    }

    #[test]
    fn a_namespace_override_moves_the_worker_alone() {
        let cluster = snapshot(&(worker("other", "r", "operator") + &kueue("ai", "r")));
        assert_eq!(told(&cluster, None, None), ["other/r Chart Worker@other Kueue@ai"]);
        assert_eq!(told(&cluster, None, Some("ai")), ["other/r Chart Worker@other Kueue@ai"]);
    }

    #[test]
    fn several() {
        let cluster = snapshot(&(worker("a", "r", "operator") + &kueue("a", "r") + &worker("b", "r", "operator") + &kueue("b", "r")));
        assert_eq!(
            told(&cluster, None, None),
            ["a/r Chart Worker@a Kueue@a", "b/r Chart Worker@b Kueue@b"]
        );
        assert_eq!(told(&cluster, None, Some("b")), ["b/r Chart Worker@b Kueue@b"]);
    }

    #[test]
    fn the_other_topologies() {
        let image = snapshot(&(worker("gpustack-system", "x", "worker") + &kueue("gpustack-system", OWN_RELEASE)));
        assert_eq!(
            told(&image, None, None),
            [format!(
                "gpustack-system/{OWN_RELEASE} Image Worker@gpustack-system Kueue@gpustack-system"
            )]
        );

        let fake = "{apiVersion: v1, kind: Service, metadata: {name: gpustack-operator-worker, namespace: gpustack-system, labels: {gpustack.ai/fake-routing: 'true'}}}";
        let outside = snapshot(&(kueue("gpustack-system", OWN_RELEASE) + fake));
        assert_eq!(
            told(&outside, None, None),
            [format!("gpustack-system/{OWN_RELEASE} Outside Kueue@gpustack-system")]
        );

        let address = "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: gpustack-worker-mutation}, webhooks: [{name: a, clientConfig: {url: 'https://10.0.0.7:31443/'}}]}";
        assert_eq!(
            told(&snapshot(address), None, None),
            [format!("gpustack-system/{OWN_RELEASE} Outside ")]
        );
    }

    #[test]
    fn the_components_may_be_a_release_of_their_own() {
        let cluster = snapshot(&(worker("ai", "r", "operator") + &kueue("ai", OWN_RELEASE)));
        assert_eq!(told(&cluster, None, None), ["ai/r Chart Worker@ai Kueue@ai"]);
    }

    #[test]
    fn a_worker_that_is_gone_is_still_an_install() {
        let daemons = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: m, namespace: ai, labels: {app.kubernetes.io/part-of: gpustack-operator, app.kubernetes.io/component: device-manager, app.kubernetes.io/instance: r}}}";
        assert_eq!(told(&snapshot(&(kueue("ai", "r") + daemons)), None, None), ["ai/r Chart Kueue@ai"]);
    }

    #[test]
    fn what_was_not_read() {
        let unread = without(&[Kind::Deployment], "");
        assert_eq!(told(&unread, None, None), ["unknown deployments"]);
        assert_eq!(told(&unread, None, Some("ai")), ["unknown deployments"]);
    }

    #[test]
    fn services_of_kueue_and_the_worker() {
        let selector = "{app.kubernetes.io/name: kueue, control-plane: controller-manager}";
        let service = |name: &str| {
            format!("{{apiVersion: v1, kind: Service, metadata: {{name: {name}, namespace: ai}}, spec: {{selector: {selector}}}}}\n---\n")
        };
        let cluster =
            snapshot(&(worker("ai", "r", "operator") + &kueue("ai", "r") + &service("renamed") + &service("kueue-visibility-server")));
        let Found::One(install) = find(&cluster, None, None) else {
            panic!()
        };
        let is = |namespace, name| is_kueue_or_worker_service(&cluster, &install, namespace, name);
        assert!(is("ai", "kueue-webhook-service") && is("ai", "gpustack-operator-worker") && is("ai", "renamed"));
        assert!(!is("ai", "kueue-visibility-server") && !is("kueue-system", "kueue-webhook-service") && !is("ai", "other"));
    }
}
