//! What `snapshot` reads: all that any command reads.

use std::collections::BTreeSet;

use crate::cli::connection::ConnectionFlags;
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::{NotRead, Reason, Scope, Snapshot};
use crate::commands::failure::Failure;
use crate::commands::rights::Rights;

use super::{account, begin, called_namespaces, one_namespace};

/// What it lists.
pub fn rights() -> Rights {
    Rights {
        command: "snapshot",
        kinds: Kind::ALL.iter().copied().collect(),
        everywhere: &[Kind::Pod],
    }
}

/// Reads every kind in the whole cluster; where that is forbidden, in the namespaces that matter.
///
/// # Errors
/// There is no connection.
pub async fn read(connection: &ConnectionFlags) -> Result<Snapshot, Failure> {
    let (reader, mut snapshot) = begin(connection).await?;
    let all: Vec<_> = Kind::ALL.iter().map(|kind| (*kind, Scope::Cluster)).collect();
    reader.read(&all, &mut snapshot).await?;
    let forbidden: Vec<Kind> = Kind::ALL
        .iter()
        .copied()
        .filter(|kind| kind.info().namespaced)
        .filter(|kind| {
            let mut coverage = snapshot.objects.coverage(*kind);
            coverage.any(|(_, outcome)| {
                matches!(
                    outcome,
                    Err(NotRead {
                        reason: Reason::Forbidden,
                        ..
                    })
                )
            })
        })
        .collect();
    let mut namespaces: BTreeSet<String> = called_namespaces(&snapshot);
    namespaces.insert(one_namespace(connection));
    namespaces.extend(snapshot.pods.seen().iter().map(|pod| pod.metadata.namespace.clone()));
    let each: Vec<_> = forbidden
        .iter()
        .flat_map(|kind| namespaces.iter().map(|namespace| (*kind, Scope::Namespace(namespace.clone()))))
        .collect();
    reader.read(&each, &mut snapshot).await?;
    account(&reader);
    Ok(snapshot)
}
