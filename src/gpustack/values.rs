//! The chart's values keys with the values to set, for remedies.

use super::components::ComponentId;
use super::install::Mode;

/// Sets the replicas, such as `kueue.controllerManager.replicas: 3`; `None` where no values can be set.
pub fn replicas(mode: Mode, id: ComponentId, replicas: u32) -> Option<String> {
    (mode == Mode::Chart).then(|| format!("{}: {replicas}", id.info().replicas_key))
}

/// Switches the budget on; `None` where the chart has no budget for it or no values can be set.
pub fn budget(mode: Mode, id: ComponentId) -> Option<String> {
    let key = id.info().budget_key.filter(|_| mode == Mode::Chart)?;
    Some(format!("{key}: true"))
}

/// The key of the spread constraints; `None` where the chart renders none or no values can be set.
pub fn spread(mode: Mode, id: ComponentId) -> Option<String> {
    let _ = (mode, id);
    None
}

/// Sets the rollout strategy; `None` where the chart has no key for it or no values can be set.
pub fn strategy(mode: Mode, id: ComponentId, kind: &str) -> Option<String> {
    let _ = (mode, id, kind);
    None
}
