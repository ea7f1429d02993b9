//! The service account that a pod names must exist (`plugin/pkg/admission/serviceaccount/admission.go`).

use super::Obstacle;
use crate::cluster::objects::PodSpec;
use crate::cluster::snapshot::{Snapshot, Source};

/// Whether an account can be missing: `default` is made again as soon as it is gone.
pub fn named_account(name: &str) -> bool {
    !name.is_empty() && name != "default"
}

/// What stands against the pod.
///
/// Every namespace has service accounts, so files that hold none of a namespace are written by hand and do not tell:
/// to refuse every pod for what such a file leaves out would help nobody.
pub(super) fn obstacle(snapshot: &Snapshot, namespace: &str, spec: &PodSpec) -> Option<Obstacle> {
    let name = spec.service_account_name.as_deref().filter(|name| named_account(name))?;
    let accounts = &snapshot.service_accounts;
    match accounts.get(namespace, name) {
        Ok(Some(_)) => None,
        Ok(None) if snapshot.source == Source::Files && !accounts.seen().iter().any(|account| account.metadata.namespace == namespace) => {
            None
        }
        Ok(None) => Some(Obstacle::Refused(format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        ))),
        Err(missing) => Some(Obstacle::Unread {
            what: format!("whether the service accounts of namespace {namespace} still exist"),
            missing,
        }),
    }
}
