//! Taints (`pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go`,
//! `k8s.io/api/core/v1/toleration.go`).

use std::fmt;
use std::sync::LazyLock;

use super::{Decision, Incoming, NodeState};
use crate::cluster::objects::{Taint, Toleration};

/// The taint that the node lifecycle controller keeps on a cordoned node
/// (`pkg/controller/nodelifecycle/node_lifecycle_controller.go`, doNoScheduleTaintingPass).
pub(super) static CORDON: LazyLock<Taint> = LazyLock::new(|| Taint {
    key: "node.kubernetes.io/unschedulable".to_owned(),
    value: String::new(),
    effect: "NoSchedule".to_owned(),
});

/// Whether a taint is tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tolerance {
    No,
    /// Only if the scheduler compares numbers, which depends on a feature gate.
    Perhaps,
    Yes,
}

/// Whether tolerations tolerate a taint.
///
/// `comparisons` tells whether the scheduler may know `Lt` and `Gt`; up to 1.36 it does not by default.
pub(super) fn tolerance(tolerations: &[Toleration], taint: &Taint, comparisons: bool) -> Tolerance {
    tolerations
        .iter()
        .map(|toleration| one(toleration, taint, comparisons))
        .max()
        .unwrap_or(Tolerance::No)
}

fn one(toleration: &Toleration, taint: &Taint, comparisons: bool) -> Tolerance {
    let concerns =
        (toleration.effect.is_empty() || toleration.effect == taint.effect) && (toleration.key.is_empty() || toleration.key == taint.key);
    if !concerns {
        return Tolerance::No;
    }
    let numbers = || Some((toleration.value.parse::<i64>().ok()?, taint.value.parse::<i64>().ok()?));
    let tolerated = match toleration.operator.as_str() {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        "Lt" if comparisons && numbers().is_some_and(|(bound, value)| value < bound) => return Tolerance::Perhaps,
        "Gt" if comparisons && numbers().is_some_and(|(bound, value)| value > bound) => return Tolerance::Perhaps,
        _ => false,
    };
    if tolerated { Tolerance::Yes } else { Tolerance::No }
}

impl NodeState<'_> {
    /// The taints of the node; that of a cordon comes and goes with it.
    fn taints(&self) -> impl Iterator<Item = &Taint> {
        let by_cordon = |taint: &Taint| self.node.spec.unschedulable && taint.key == CORDON.key && taint.effect == CORDON.effect;
        self.node
            .spec
            .taints
            .iter()
            .filter(move |taint| !by_cordon(taint))
            .chain(self.cordoned.then(|| &*CORDON))
    }
}

struct Written<'a>(&'a Taint);

impl fmt::Display for Written<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Taint { key, value, effect } = self.0;
        if value.is_empty() {
            write!(formatter, "{key}:{effect}")
        } else {
            write!(formatter, "{key}={value}:{effect}")
        }
    }
}

/// `NoSchedule` and `NoExecute` taints must be tolerated.
pub(super) fn filter(node: &NodeState<'_>, incoming: &Incoming<'_>, comparisons: bool) -> Decision {
    let hard = node
        .taints()
        .filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"));
    let worst = hard
        .map(|taint| (tolerance(&incoming.spec.tolerations, taint, comparisons), taint))
        .min_by_key(|(tolerance, _)| *tolerance);
    match worst {
        Some((Tolerance::No, taint)) => Decision::Refused(format!("node(s) had untolerated taint(s): {}", Written(taint))),
        Some((Tolerance::Perhaps, taint)) => Decision::Unknown(format!(
            "whether tolerations that compare numbers hold for the taint {}",
            Written(taint)
        )),
        Some((Tolerance::Yes, _)) | None => Decision::Fits,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Placement;
    use super::super::testing::{cluster, said, said_of};
    use crate::cluster::snapshot::ServerVersion;

    fn with(tolerations: &str) -> String {
        format!("{{spec: {{tolerations: [{tolerations}]}}}}")
    }

    #[test]
    fn taints() {
        for (taint, tolerations, fits) in [
            ("{key: k, value: v, effect: NoSchedule}", "", false),
            ("{key: k, value: v, effect: NoExecute}", "", false),
            ("{key: k, value: v, effect: PreferNoSchedule}", "", true),
            ("{key: k, value: v, effect: NoSchedule}", "{key: k, value: v}", true),
            (
                "{key: k, value: v, effect: NoSchedule}",
                "{key: k, operator: Equal, value: v, effect: NoSchedule}",
                true,
            ),
            (
                "{key: k, value: v, effect: NoSchedule}",
                "{key: k, operator: Equal, value: w}",
                false,
            ),
            ("{key: k, value: v, effect: NoSchedule}", "{key: k, operator: Exists}", true),
            (
                "{key: k, value: v, effect: NoSchedule}",
                "{key: k, operator: Exists, effect: NoExecute}",
                false,
            ),
            ("{key: k, value: v, effect: NoSchedule}", "{operator: Exists}", true),
            (
                "{key: k, value: v, effect: NoSchedule}",
                "{key: l, operator: Exists}, {key: k, operator: Exists}",
                true,
            ),
            (
                "{key: k, value: '5', effect: NoSchedule}",
                "{key: k, operator: Gt, value: '4'}",
                false,
            ),
            ("{key: k, value: v, effect: NoSchedule}", "{key: k, operator: Odd, value: v}", false),
        ] {
            let snapshot = cluster(&format!("node a {{spec: {{taints: [{taint}]}}}}"));
            let expected = if fits {
                "fits".to_owned()
            } else {
                format!(
                    "node(s) had untolerated taint(s): k={}:{}",
                    if taint.contains("'5'") { "5" } else { "v" },
                    if taint.contains("NoExecute") { "NoExecute" } else { "NoSchedule" }
                )
            };
            assert_eq!(said(&snapshot, &with(tolerations)), [expected], "{taint} {tolerations}");
        }
    }

    #[test]
    fn numbers_are_compared_only_where_the_scheduler_may_know_how() {
        let mut snapshot = cluster("node a {spec: {taints: [{key: k, value: '5', effect: NoSchedule}]}}");
        for (version, toleration, expected) in [
            (
                "v1.36.0",
                "{key: k, operator: Gt, value: '4'}",
                "node(s) had untolerated taint(s): k=5:NoSchedule",
            ),
            (
                "v1.37.0",
                "{key: k, operator: Lt, value: '4'}",
                "node(s) had untolerated taint(s): k=5:NoSchedule",
            ),
            (
                "v1.37.0",
                "{key: k, operator: Lt, value: '6'}",
                "? whether tolerations that compare numbers hold for the taint k=5:NoSchedule",
            ),
            (
                "v1.37.0",
                "{key: k, operator: Lt, value: '5'}",
                "node(s) had untolerated taint(s): k=5:NoSchedule",
            ),
            (
                "v1.37.0",
                "{key: k, operator: Gt, value: '5'}",
                "node(s) had untolerated taint(s): k=5:NoSchedule",
            ),
            (
                "v1.37.0",
                "{key: k, operator: Gt, value: '4'}",
                "? whether tolerations that compare numbers hold for the taint k=5:NoSchedule",
            ),
        ] {
            snapshot.server_version = Some(ServerVersion {
                git_version: version.to_owned(),
            });
            assert_eq!(said(&snapshot, &with(toleration)), [expected], "{version} {toleration}");
        }
    }

    #[test]
    fn a_cordon_is_tolerated_like_its_taint() {
        let cordoned = "node a {spec: {unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}}";
        let later = "node a {spec: {unschedulable: true}}";
        for (tolerations, expected) in [
            ("", "node(s) were unschedulable"),
            ("{operator: Exists}", "fits"),
            ("{operator: Exists, effect: NoSchedule}", "fits"),
            ("{operator: Exists, effect: NoExecute}", "node(s) were unschedulable"),
            ("{key: node.kubernetes.io/unschedulable, operator: Exists}", "fits"),
        ] {
            for text in [cordoned, later] {
                assert_eq!(said(&cluster(text), &with(tolerations)), [expected], "{tolerations}");
            }
        }
        let snapshot = cluster(cordoned);
        let mut placement = Placement::new(&snapshot);
        placement.uncordon(0);
        assert_eq!(said_of(&placement, &with("")), ["fits"]);
        let taint_alone = "node a {spec: {taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}}";
        assert_eq!(
            said(&cluster(taint_alone), &with("")),
            ["node(s) had untolerated taint(s): node.kubernetes.io/unschedulable:NoSchedule"]
        );
    }
}
