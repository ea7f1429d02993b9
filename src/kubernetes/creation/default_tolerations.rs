//! Every new pod tolerates a node that stops to answer, for a while
//! (`k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds/admission.go`).

use crate::cluster::objects::{PodSpec, Toleration};

/// The taints that evict pods from nodes that do not answer.
const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Adds the tolerations that the template leaves out.
pub fn add(spec: &mut PodSpec) {
    for taint in TAINTS {
        let said = |toleration: &Toleration| {
            (toleration.key == taint || toleration.key.is_empty()) && matches!(toleration.effect.as_str(), "NoExecute" | "")
        };
        if !spec.tolerations.iter().any(said) {
            spec.tolerations.push(Toleration {
                key: taint.to_owned(),
                operator: "Exists".to_owned(),
                effect: "NoExecute".to_owned(),
                ..Toleration::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(tolerations: &str) -> Vec<String> {
        let mut spec: PodSpec = serde_saphyr::from_str(&format!("{{tolerations: {tolerations}}}")).unwrap();
        let before = spec.tolerations.len();
        add(&mut spec);
        spec.tolerations.drain(..before);
        let added = spec.tolerations.iter();
        added
            .map(|toleration| {
                let words = (toleration.operator.as_str(), toleration.effect.as_str());
                assert_eq!(words, ("Exists", "NoExecute"));
                toleration.key.clone()
            })
            .collect()
    }

    #[test]
    fn what_the_template_says_is_not_said_again() {
        assert_eq!(added("[]"), TAINTS);
        assert_eq!(added("[{operator: Exists, effect: NoSchedule}]"), TAINTS);
        assert_eq!(added("[{key: node.kubernetes.io/not-ready, operator: Exists}]"), TAINTS[1..]);
        assert!(added("[{operator: Exists, effect: NoExecute}]").is_empty());
        assert!(added("[{operator: Exists}]").is_empty());
    }
}
