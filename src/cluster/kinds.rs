//! The kinds of objects that are read: one table for files, lists, rights and messages.

use std::fmt;

use serde::Serialize;

/// How a kind is named and reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// Kind, such as `Pod`.
    pub kind: &'static str,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version that is asked for.
    pub version: &'static str,
    /// Plural, as in a URL and in a right.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// Declares the kinds, the snapshot's listing of each, and how an object enters it.
macro_rules! kinds {
    ($($(#[$meta:meta])* $variant:ident => $field:ident: $object:ident, ($group:literal, $version:literal, $plural:literal, $kind:literal, $namespaced:literal);)*) => {
        /// A kind of object that is read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($(#[$meta])* $variant,)* }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Kind] = &[$(Kind::$variant,)*];

            /// How it is named and reached.
            pub const fn info(self) -> KindInfo {
                match self { $(Kind::$variant => KindInfo { kind: $kind, group: $group, version: $version, plural: $plural, namespaced: $namespaced },)* }
            }
        }

        /// What was read of each kind.
        #[derive(Clone, Debug)]
        pub struct Listings { $($(#[$meta])* pub $field: super::snapshot::Listing<super::objects::$object>,)* }

        impl Default for Listings {
            fn default() -> Self {
                Self { $($field: super::snapshot::Listing::new(Kind::$variant),)* }
            }
        }

        impl Listings {
            /// Adds an object of the kind.
            ///
            /// # Errors
            /// A field of a wrong type, as told by the deserializer.
            pub fn insert<'de, D: serde::Deserializer<'de>>(&mut self, kind: Kind, object: D) -> Result<(), D::Error> {
                match kind { $(Kind::$variant => self.$field.insert(serde::Deserialize::deserialize(object)?),)* }
                Ok(())
            }

            /// Adds the object of the kind with which JSON text begins, and gives its length in bytes; `None` where
            /// the text ends before the object does.
            ///
            /// # Errors
            /// Text that is not JSON, or a field of a wrong type.
            pub fn insert_first(&mut self, kind: Kind, text: &[u8]) -> serde_json::Result<Option<usize>> {
                match kind { $(Kind::$variant => Ok(super::shared::from_text(|| first(text))?.map(|(object, length)| {
                    self.$field.insert(object);
                    length
                })),)* }
            }

            /// Adds what another reading gave; where both have an object, settling keeps the other's.
            pub fn absorb(&mut self, other: Self) {
                $(self.$field.absorb(other.$field);)*
            }

            /// Records what came of reading a part of the kind.
            pub fn cover(&mut self, kind: Kind, scope: super::snapshot::Scope, outcome: Result<(), super::snapshot::NotRead>) {
                match kind { $(Kind::$variant => self.$field.cover(scope, outcome),)* }
            }

            /// Whether anything of the kind was read or tried.
            pub fn tried(&self, kind: Kind) -> bool {
                match kind { $(Kind::$variant => self.$field.tried(),)* }
            }

            /// Whether a part of the kind was read whole.
            pub fn covered(&self, kind: Kind, scope: &super::snapshot::Scope) -> bool {
                match kind { $(Kind::$variant => self.$field.covered(scope).is_ok(),)* }
            }

            /// What came of reading the kind's parts.
            pub fn coverage(&self, kind: Kind) -> impl Iterator<Item = (&super::snapshot::Scope, &Result<(), super::snapshot::NotRead>)> {
                match kind { $(Kind::$variant => self.$field.coverage(),)* }
            }

            /// What was not read, by a text that ends with it.
            pub fn unread(&self, text: &str) -> Option<&super::snapshot::NotRead> {
                let failures = Kind::ALL.iter().flat_map(|kind| self.coverage(*kind)).filter_map(|(_, outcome)| outcome.as_ref().err());
                failures.into_iter().find(|missing| text.ends_with(&missing.to_string()))
            }

            /// Gives every object of the kind as JSON on one line, with the fields that are read.
            ///
            /// # Errors
            /// What `take` fails with.
            pub fn lines(&self, kind: Kind, mut take: impl FnMut(String) -> std::io::Result<()>) -> std::io::Result<()> {
                let api_version = kind.api_version();
                match kind { $(Kind::$variant => for object in self.$field.seen() {
                    take(serde_json::to_string(&Typed { api_version: &api_version, kind: kind.info().kind, object })?)?;
                },)* }
                Ok(())
            }

            /// How many objects of the kind there are.
            pub fn count(&self, kind: Kind) -> usize {
                match kind { $(Kind::$variant => self.$field.seen().len(),)* }
            }

            /// Puts namespaced objects that name no namespace into `default`.
            pub fn default_namespace(&mut self) {
                $(self.$field.default_namespace();)*
            }

            /// The namespaces in which something that was read lies.
            pub fn namespaces(&self) -> std::collections::BTreeSet<&str> {
                let mut found = std::collections::BTreeSet::new();
                $(if $namespaced {
                    found.extend(self.$field.seen().iter().map(|object| super::snapshot::Object::meta(object).namespace.as_str()));
                })*
                found
            }

            /// Sorts every listing by namespace and name; of objects given twice the last stays.
            pub fn settle(&mut self) {
                $(self.$field.settle();)*
            }
        }
    };
}

/// An object that says what it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Typed<'a, T: Serialize> {
    api_version: &'a str,
    kind: &'a str,
    #[serde(flatten)]
    object: &'a T,
}

/// The value with which JSON text begins, and its length in bytes; `None` where the text ends before it does.
/// Text must not end within a number, of which nobody can tell whether it goes on.
pub(super) fn first<T: serde::de::DeserializeOwned>(text: &[u8]) -> serde_json::Result<Option<(T, usize)>> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter();
    match values.next() {
        Some(Ok(value)) => {
            let length = values.byte_offset();
            Ok(Some((value, length)))
        }
        Some(Err(error)) if error.is_eof() => Ok(None),
        Some(Err(error)) => Err(error),
        None => Ok(None),
    }
}

kinds! {
    /// Nodes.
    Node => nodes: Node, ("", "v1", "nodes", "Node", false);
    /// Namespaces.
    Namespace => namespaces: Namespace, ("", "v1", "namespaces", "Namespace", false);
    /// Pods.
    Pod => pods: Pod, ("", "v1", "pods", "Pod", true);
    /// Deployments.
    Deployment => deployments: Deployment, ("apps", "v1", "deployments", "Deployment", true);
    /// ReplicaSets.
    ReplicaSet => replica_sets: ReplicaSet, ("apps", "v1", "replicasets", "ReplicaSet", true);
    /// ReplicationControllers.
    ReplicationController => replication_controllers: ReplicaSet, ("", "v1", "replicationcontrollers", "ReplicationController", true);
    /// StatefulSets.
    StatefulSet => stateful_sets: StatefulSet, ("apps", "v1", "statefulsets", "StatefulSet", true);
    /// DaemonSets.
    DaemonSet => daemon_sets: DaemonSet, ("apps", "v1", "daemonsets", "DaemonSet", true);
    /// Jobs.
    Job => jobs: Job, ("batch", "v1", "jobs", "Job", true);
    /// Autoscalers of workloads.
    HorizontalPodAutoscaler => autoscalers: HorizontalPodAutoscaler, ("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true);
    /// Disruption budgets.
    PodDisruptionBudget => budgets: PodDisruptionBudget, ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true);
    /// Services.
    Service => services: Service, ("", "v1", "services", "Service", true);
    /// EndpointSlices.
    EndpointSlice => endpoint_slices: EndpointSlice, ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true);
    /// Mutating webhook configurations.
    MutatingWebhookConfiguration => mutating_webhooks: WebhookConfiguration, ("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", false);
    /// Validating webhook configurations.
    ValidatingWebhookConfiguration => validating_webhooks: WebhookConfiguration, ("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", false);
    /// Registrations of aggregated APIs.
    ApiService => api_services: ApiService, ("apiregistration.k8s.io", "v1", "apiservices", "APIService", false);
    /// Custom resource definitions.
    CustomResourceDefinition => custom_resources: CustomResourceDefinition, ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false);
    /// Leases.
    Lease => leases: Lease, ("coordination.k8s.io", "v1", "leases", "Lease", true);
    /// Claims for storage.
    PersistentVolumeClaim => claims: PersistentVolumeClaim, ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true);
    /// Volumes.
    PersistentVolume => volumes: PersistentVolume, ("", "v1", "persistentvolumes", "PersistentVolume", false);
    /// Storage classes.
    StorageClass => storage_classes: StorageClass, ("storage.k8s.io", "v1", "storageclasses", "StorageClass", false);
    /// The CSI drivers of each node.
    CsiNode => csi_nodes: CsiNode, ("storage.k8s.io", "v1", "csinodes", "CSINode", false);
    /// CSI drivers.
    CsiDriver => csi_drivers: CsiDriver, ("storage.k8s.io", "v1", "csidrivers", "CSIDriver", false);
    /// Volumes attached to nodes.
    VolumeAttachment => volume_attachments: VolumeAttachment, ("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", false);
    /// Dynamic resource claims.
    ResourceClaim => resource_claims: ResourceClaim, ("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true);
    /// Classes of devices.
    DeviceClass => device_classes: DeviceClass, ("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false);
    /// Quotas.
    ResourceQuota => quotas: ResourceQuota, ("", "v1", "resourcequotas", "ResourceQuota", true);
    /// Limit ranges.
    LimitRange => limit_ranges: LimitRange, ("", "v1", "limitranges", "LimitRange", true);
    /// Service accounts.
    ServiceAccount => service_accounts: ServiceAccount, ("", "v1", "serviceaccounts", "ServiceAccount", true);
    /// Priority classes.
    PriorityClass => priority_classes: PriorityClass, ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false);
    /// Runtime classes.
    RuntimeClass => runtime_classes: RuntimeClass, ("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false);
    /// Validating admission policies.
    ValidatingAdmissionPolicy => admission_policies: ValidatingAdmissionPolicy, ("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", false);
    /// Bindings of validating admission policies.
    ValidatingAdmissionPolicyBinding => admission_policy_bindings: ValidatingAdmissionPolicyBinding, ("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", false);
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.info().plural)
    }
}

impl Kind {
    /// The kind of an object, by its `apiVersion` and `kind`; any served version of a known group counts.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self::ALL
            .iter()
            .copied()
            .find(|candidate| candidate.info().kind == kind && candidate.info().group == group)
    }

    /// Whether servers that we know may lack the whole group. A capture leaves such kinds out, as kubectl refuses the
    /// whole command where one is unknown; so files that hold none, complete or not, do not say that there is none.
    pub fn optional(self) -> bool {
        self.info().group == "resource.k8s.io"
    }

    /// The resource as kubectl names it, with the group where the plural alone could mean another.
    pub fn resource(self) -> String {
        let info = self.info();
        match info.group {
            "" | "apps" | "batch" => info.plural.to_owned(),
            group => format!("{}.{group}", info.plural),
        }
    }

    /// Group and version, as an object says them.
    pub fn api_version(self) -> String {
        let info = self.info();
        match info.group {
            "" => info.version.to_owned(),
            group => format!("{group}/{}", info.version),
        }
    }

    /// The path of its list: of one namespace, or of the cluster.
    pub fn path(self, namespace: Option<&str>) -> String {
        let info = self.info();
        let root = if info.group.is_empty() {
            format!("/api/{}", info.version)
        } else {
            format!("/apis/{}/{}", info.group, info.version)
        };
        match namespace.filter(|_| info.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", info.plural),
            None => format!("{root}/{}", info.plural),
        }
    }
}
