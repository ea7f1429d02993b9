//! `probe-missing`.

use crate::gpustack::components::Loss;
use crate::report::finding::{Finding, Severity};

use super::facts::Facts;
use super::{about, remedy};
use crate::checks::codes::Code;

/// Components without a readiness probe.
pub fn missing(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in &facts.workloads {
        let (Some(id), Some((_, spec))) = (workload.id, workload.template) else {
            continue;
        };
        let info = id.info();
        let mut containers = spec
            .containers
            .iter()
            .chain(spec.init_containers.iter().filter(|container| container.restartable()));
        if info.loss == Loss::Housekeeping || containers.any(|container| container.readiness_probe.is_some()) {
            continue;
        }
        let mut item = about(
            workload,
            Code::ProbeMissing,
            Severity::Info,
            "no readiness probe: Ready says only that its containers run".to_owned(),
        );
        item.evidence = spec
            .containers
            .iter()
            .map(|container| format!("container {}: no readinessProbe", container.name))
            .collect();
        item.consequence = "a replica that hangs counts as Ready".to_owned();
        item.remedy = if info.loss == Loss::Storage {
            remedy(
                "the chart has none for it: look at its lease, which a hanging leader does not renew",
                None,
                None,
            )
        } else {
            remedy("the chart has one for it: find out who took it away", None, None)
        };
        found.push(item);
    }
    found
}
