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
    tolerations.iter().map(|toleration| one(toleration, taint, comparisons)).max().unwrap_or(Tolerance::No)
}

fn one(toleration: &Toleration, taint: &Taint, comparisons: bool) -> Tolerance {
    let concerns = (toleration.effect.is_empty() || toleration.effect == taint.effect)
        && (toleration.key.is_empty() || toleration.key == taint.key);
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
        self.node.spec.taints.iter().filter(move |taint| !by_cordon(taint)).chain(self.cordoned.then(|| &*CORDON))
    }
}

struct Written<'a>(&'a Taint);

impl fmt::Display for Written<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Taint { key, value, effect } = self.0;
        if value.is_empty() { write!(formatter, "{key}:{effect}") } else { write!(formatter, "{key}={value}:{effect}") }
    }
}

/// `NoSchedule` and `NoExecute` taints must be tolerated.
pub(super) fn filter(node: &NodeState<'_>, incoming: &Incoming<'_>, comparisons: bool) -> Decision {
    let hard = node.taints().filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"));
    let worst = hard.map(|taint| (tolerance(&incoming.spec.tolerations, taint, comparisons), taint)).min_by_key(|(tolerance, _)| *tolerance);
    match worst {
        Some((Tolerance::No, taint)) => Decision::Refused(format!("node(s) had untolerated taint(s): {}", Written(taint))),
        Some((Tolerance::Perhaps, taint)) => {
            Decision::Unknown(format!("whether tolerations that compare numbers hold for the taint {}", Written(taint)))
        }
        Some((Tolerance::Yes, _)) | None => Decision::Fits,
    }
}
