//! Whether a node has room for several pods at once.

use super::resources_fit::{self, Amounts};
use super::{Incoming, NodeState};

/// What some pods request in sum.
#[derive(Clone, Debug, Default)]
pub struct Load<'a> {
    pods: i128,
    requests: Amounts<'a>,
}

impl<'a> Load<'a> {
    /// Adds so many pods of a kind.
    pub fn add(&mut self, pod: &Incoming<'a>, count: usize) {
        let requests = resources_fit::pod_requests(pod.spec, None);
        for _ in 0..count {
            resources_fit::add(&mut self.requests, &requests);
        }
        self.pods = self.pods.saturating_add(i128::try_from(count).unwrap_or(i128::MAX));
    }
}

impl NodeState<'_> {
    /// Whether it has room for all of them together, beside what is there; false where that cannot be told.
    pub fn has_room_for(&self, load: &Load<'_>) -> bool {
        let here = i128::try_from(self.entries.len()).unwrap_or(i128::MAX);
        let places = matches!(self.allocatable.get("pods"), Some(Some(most)) if here.saturating_add(load.pods) <= *most);
        places && load.requests.iter().all(|(name, wanted)| {
            let room = self.allocatable.get(name).copied().unwrap_or(Some(0));
            let used = self.requested.get(name).copied().unwrap_or(Some(0));
            matches!((wanted, room, used), (Some(wanted), Some(room), Some(used)) if *wanted <= 0 || *wanted <= room.saturating_sub(used))
        })
    }
}
