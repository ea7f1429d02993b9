//! The chart's values keys with the values to set, for remedies.
//!
//! Each function gives `None` where the chart has no such key, or where no values can be set: only a release of the
//! chart itself takes any.

use crate::cluster::objects::Deployment;

use super::components::ComponentId;
use super::install::Mode;

/// Sets the replicas, such as `kueue.controllerManager.replicas: 3`.
pub fn replicas(mode: Mode, id: ComponentId, replicas: u32) -> Option<String> {
    settable(mode).map(|()| format!("{}: {replicas}", id.info().replicas_key))
}

/// Switches the budget on, such as `worker.podDisruptionBudget: {enabled: true, minAvailable: 2}`.
pub fn budget(mode: Mode, id: ComponentId, min_available: u32) -> Option<String> {
    settable(mode)?;
    let (key, switch) = id.info().budget?;
    Some(format!("{key}: {{{switch}: true, minAvailable: {min_available}}}"))
}

/// Keeps replicas on different nodes: by a spread constraint where the chart renders one, else by anti-affinity. The
/// selector is the Deployment's own; only the worker's constraint would be given one by the chart.
pub fn spread(mode: Mode, id: ComponentId, deployment: &Deployment) -> Option<String> {
    settable(mode)?;
    let labels = &deployment.spec.selector.match_labels;
    if labels.is_empty() {
        return None;
    }
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}: {}", quoted(value))).collect();
    let selector = format!("labelSelector: {{matchLabels: {{{}}}}}", labels.join(", "));
    let component = id.info();
    if let Some(key) = component.spread_key {
        return Some(format!(
            "{key}: [{{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, {selector}}}]"
        ));
    }
    let apart = format!(
        "podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: kubernetes.io/hostname, {selector}}}]}}"
    );
    // The CSI drivers' templates drop an affinity without `nodeSelectorTerms` whole.
    let kept = if matches!(id, ComponentId::S3Controller | ComponentId::SnapshotController) {
        "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]}]}}, "
    } else {
        ""
    };
    component.affinity_key.map(|key| format!("{key}: {{{kept}{apart}}}"))
}

/// Sets the type of the rollout strategy, such as `worker.strategyType: RollingUpdate`.
pub fn strategy(mode: Mode, id: ComponentId, kind: &str) -> Option<String> {
    settable(mode)?;
    id.info().strategy_key.map(|key| format!("{key}: {kind}"))
}

/// Sets the tolerations that the chart has: those of control-plane nodes, and no others.
pub fn tolerations(mode: Mode, id: ComponentId) -> Option<String> {
    settable(mode)?;
    let keys = [
        "node-role.kubernetes.io/master",
        "node-role.kubernetes.io/controlplane",
        "node-role.kubernetes.io/control-plane",
        "CriticalAddonsOnly",
    ];
    let list: Vec<String> = keys
        .iter()
        .map(|key| format!("{{key: {key}, operator: Exists, effect: NoSchedule}}"))
        .collect();
    Some(format!("{}: [{}]", id.info().tolerations_key, list.join(", ")))
}

/// Moves the port that the liveness probe binds on the node.
pub fn health_port(mode: Mode, id: ComponentId, port: u16) -> Option<String> {
    settable(mode)?;
    id.info().health_port_key.map(|key| format!("{key}: {port}"))
}

/// With a worker outside the cluster, the other components are a release that the worker makes by itself.
fn settable(mode: Mode) -> Option<()> {
    (mode == Mode::Chart).then_some(())
}

/// A YAML scalar that stays text.
fn quoted(value: &str) -> String {
    let plain = value.starts_with(|character: char| character.is_ascii_alphabetic())
        && value
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "-._".contains(character))
        && !matches!(
            value.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
        );
    if plain {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(labels: &str) -> Deployment {
        serde_saphyr::from_str(&format!("{{spec: {{selector: {{matchLabels: {{{labels}}}}}}}}}")).unwrap()
    }

    #[test]
    fn keys_of_the_chart() {
        assert_eq!(
            replicas(Mode::Chart, ComponentId::Kueue, 3).as_deref(),
            Some("kueue.controllerManager.replicas: 3")
        );
        assert_eq!(
            budget(Mode::Chart, ComponentId::Worker, 2).as_deref(),
            Some("worker.podDisruptionBudget: {enabled: true, minAvailable: 2}")
        );
        assert_eq!(
            budget(Mode::Chart, ComponentId::NfdMaster, 2).as_deref(),
            Some("node-feature-discovery.master.podDisruptionBudget: {enable: true, minAvailable: 2}")
        );
        assert_eq!(budget(Mode::Chart, ComponentId::NfsController, 1), None);
        assert_eq!(
            strategy(Mode::Chart, ComponentId::S3Controller, "RollingUpdate").as_deref(),
            Some("csi-driver-s3.controller.strategyType: RollingUpdate")
        );
        assert_eq!(strategy(Mode::Chart, ComponentId::Kueue, "RollingUpdate"), None);
        assert_eq!(replicas(Mode::Image, ComponentId::Kueue, 3), None);
    }

    #[test]
    fn what_keeps_replicas_apart_is_yaml_with_the_selector() {
        for (id, path) in [
            (ComponentId::NfsController, "csi-driver-nfs.controller.topologySpreadConstraints"),
            (ComponentId::S3Controller, "csi-driver-s3.controller.affinity"),
            (ComponentId::NfdMaster, "node-feature-discovery.master.affinity"),
        ] {
            let text = spread(Mode::Chart, id, &deployment("app: 'true'")).unwrap();
            let parsed: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
            let value = parsed.get(path).unwrap();
            let rendered = serde_yaml::to_string(value).unwrap();
            assert!(rendered.contains("app: 'true'"), "{rendered}");
            assert_eq!(rendered.contains("nodeSelectorTerms"), id == ComponentId::S3Controller);
        }
        assert_eq!(spread(Mode::Chart, ComponentId::Kueue, &deployment("")), None);
    }
}
