//! Whether something adds nodes for pods that find none: the cluster autoscaler, or Karpenter.

use crate::cluster::objects::Deployment;
use crate::cluster::snapshot::Snapshot;

const CLUSTER_AUTOSCALER: &str = "cluster-autoscaler";

/// What scales the nodes, as a person would name it; `None` where nothing is seen that does.
///
/// The cluster autoscaler is a Deployment that is named so, labelled so, or runs an image of that name; Karpenter is known
/// by its custom resources. One that a provider runs outside of the cluster is not seen.
pub fn autoscaler(snapshot: &Snapshot) -> Option<String> {
    let scaler = snapshot.deployments.seen().iter().find(|deployment| is_autoscaler(deployment));
    if let Some(scaler) = scaler {
        return Some(format!("Deployment {}/{}", scaler.metadata.namespace, scaler.metadata.name));
    }
    let karpenter = ["nodepools.karpenter.sh", "nodeclaims.karpenter.sh"];
    let found = karpenter
        .into_iter()
        .find(|name| snapshot.custom_resources.find("", name).is_some())?;
    Some(format!("Karpenter (custom resource {found})"))
}

fn is_autoscaler(deployment: &Deployment) -> bool {
    const NAMES: [&str; 3] = ["app.kubernetes.io/name", "k8s-app", "app"];
    if deployment.spec.replicas == Some(0) {
        return false;
    }
    let labels = [&deployment.metadata.labels, &deployment.spec.template.metadata.labels];
    deployment.metadata.name == CLUSTER_AUTOSCALER
        || labels.iter().any(|labels| {
            NAMES
                .iter()
                .any(|name| labels.get(*name).is_some_and(|value| value.ends_with(CLUSTER_AUTOSCALER)))
        })
        || deployment
            .spec
            .template
            .spec
            .containers
            .iter()
            .any(|container| runs(&container.image))
}

/// Whether an image is the autoscaler's, whatever its registry and tag; some builds append their architecture.
fn runs(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    let name = name.split(['@', ':']).next().unwrap_or_default();
    name.starts_with(CLUSTER_AUTOSCALER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::testing::snapshot;

    #[test]
    fn by_name_label_image_or_custom_resource() {
        let deployment = |meta: &str, replicas: i64, spec: &str| {
            let text = format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{namespace: kube-system, {meta}}}\nspec: {{replicas: {replicas}, template: {spec}}}"
            );
            autoscaler(&snapshot(&text))
        };
        let image = |image: &str| format!("{{spec: {{containers: [{{name: c, image: '{image}'}}]}}}}");
        assert_eq!(
            deployment("name: cluster-autoscaler", 1, "{}").as_deref(),
            Some("Deployment kube-system/cluster-autoscaler")
        );
        assert_eq!(deployment("name: cluster-autoscaler", 0, "{}"), None);
        assert!(deployment("name: x, labels: {app.kubernetes.io/name: aws-cluster-autoscaler}", 1, "{}").is_some());
        assert!(deployment("name: x", 1, "{metadata: {labels: {k8s-app: cluster-autoscaler}}}").is_some());
        assert!(
            deployment(
                "name: x",
                2,
                &image("registry.example:5000/a/cluster-autoscaler-amd64:v1.33.0@sha256:0")
            )
            .is_some()
        );
        assert_eq!(deployment("name: x", 1, &image("example/vertical-pod-autoscaler:1")), None);
        let resource = |name: &str| {
            autoscaler(&snapshot(&format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}}}"
            )))
        };
        assert_eq!(
            resource("nodepools.karpenter.sh").as_deref(),
            Some("Karpenter (custom resource nodepools.karpenter.sh)")
        );
        assert_eq!(resource("nodepools.example.com"), None);
    }
}
