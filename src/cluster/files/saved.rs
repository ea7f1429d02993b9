//! A snapshot as a file: what was read, when, and what was not. `snapshot` writes it, and `-f` reads it.
//!
//! ```text
//! {"apiVersion": "gpustack-ha/v1", "kind": "Snapshot",
//!  "cluster": {…}, "observedAt": "…",
//!  "read": [{"group": "", "resource": "nodes", "namespace": null}, …],
//!  "notRead": [{"group": "policy", "resource": "poddisruptionbudgets", "namespace": null, "reason": "forbidden", …}, …],
//!  "items": [one object a line, with the fields that rules read]}
//! ```
//! An object in it does not say that its kind was read, as it does in other files: `read` does.

use std::io::{self, Write};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::{InputError, plain};
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::{NotRead, Reason, Scope, ServerVersion, Snapshot};
use crate::report::json::plain_json;

/// `apiVersion` of the document.
const API_VERSION: &str = "gpustack-ha/v1";

/// `kind` of the document.
const KIND: &str = "Snapshot";

/// Whether a document is a snapshot.
pub(super) fn is_one(api_version: &str, kind: &str) -> bool {
    kind == KIND && api_version.split_once('/').is_some_and(|(group, _)| group == "gpustack-ha")
}

/// What stands around the objects.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Frame {
    api_version: String,
    kind: String,
    cluster: Cluster,
    observed_at: Option<Timestamp>,
    read: Vec<Part>,
    not_read: Vec<Gap>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    context: Option<String>,
    server: Option<String>,
    server_version: Option<String>,
}

/// A part of a kind that is read in one list.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    group: String,
    resource: String,
    /// `null` for the whole cluster.
    namespace: Option<String>,
}

/// A part that was not read.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Gap {
    #[serde(flatten)]
    part: Part,
    reason: Why,
    /// The server's words, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The verb that was not allowed, on this part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missing_verb: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Why {
    Forbidden,
    Failed,
    NotInFiles,
    NotAsked,
}

impl Part {
    /// The part; `None` for the pods of one node, which no snapshot is made of.
    fn new(kind: Kind, scope: &Scope) -> Option<Self> {
        let info = kind.info();
        Some(Self {
            group: info.group.to_owned(),
            resource: info.plural.to_owned(),
            namespace: match scope {
                Scope::Cluster => None,
                Scope::Namespace(namespace) => Some(namespace.clone()),
                Scope::Node(_) => return None,
            },
        })
    }

    fn scope(&self) -> Scope {
        self.namespace
            .as_ref()
            .map_or(Scope::Cluster, |namespace| Scope::Namespace(namespace.clone()))
    }

    /// The kind; `None` for one of another version of this tool.
    fn kind(&self) -> Option<Kind> {
        Kind::ALL
            .iter()
            .copied()
            .find(|kind| kind.info().group == self.group && kind.info().plural == self.resource)
    }
}

impl Gap {
    fn new(missing: &NotRead) -> Option<Self> {
        let (reason, message) = match &missing.reason {
            Reason::Forbidden => (Why::Forbidden, None),
            Reason::Failed(message) => (Why::Failed, Some(message.clone())),
            Reason::NotInFiles | Reason::OneNamespace => (Why::NotInFiles, None),
            Reason::NotAsked => (Why::NotAsked, None),
        };
        Some(Self {
            part: Part::new(missing.kind, &missing.scope)?,
            missing_verb: matches!(reason, Why::Forbidden).then(|| "list".to_owned()),
            reason,
            message,
        })
    }

    /// Why it was not read; `None` where files may still have it.
    fn reason(&self) -> Option<Reason> {
        match self.reason {
            Why::Forbidden => Some(Reason::Forbidden),
            Why::Failed => Some(Reason::Failed(self.message.clone().unwrap_or_default())),
            Why::NotInFiles | Why::NotAsked => None,
        }
    }
}

impl Frame {
    /// Checks that it is of a version that is known.
    pub(super) fn known(&self) -> Result<(), InputError> {
        if self.api_version == API_VERSION {
            return Ok(());
        }
        Err(InputError::new(format!(
            "a snapshot of version {}; {API_VERSION} is known",
            plain(&self.api_version)
        ))
        .with_hint("read it with the version of this tool that wrote it, or write it again with this one"))
    }

    /// Puts what it says into a snapshot whose objects are there.
    pub(super) fn enter(self, snapshot: &mut Snapshot) {
        snapshot.context = self.cluster.context;
        snapshot.server = self.cluster.server;
        snapshot.server_version = self.cluster.server_version.map(|git_version| ServerVersion { git_version });
        snapshot.observed_at = self.observed_at;
        for part in &self.read {
            if let Some(kind) = part.kind() {
                snapshot.objects.cover(kind, part.scope(), Ok(()));
            }
        }
        for gap in &self.not_read {
            if let (Some(kind), Some(reason)) = (gap.part.kind(), gap.reason()) {
                let scope = gap.part.scope();
                let missing = NotRead {
                    kind,
                    scope: scope.clone(),
                    reason,
                };
                snapshot.objects.cover(kind, scope, Err(missing));
            }
        }
    }
}

/// Writes a snapshot: the same bytes for the same cluster, one object a line.
///
/// What could act on a terminal is escaped.
///
/// # Errors
/// What writing fails with.
pub fn write(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let cluster = Cluster {
        context: snapshot.context.clone(),
        server: snapshot.server.clone(),
        server_version: snapshot.server_version.as_ref().map(|version| version.git_version.clone()),
    };
    let parts = || {
        Kind::ALL
            .iter()
            .flat_map(|kind| snapshot.objects.coverage(*kind).map(move |part| (*kind, part)))
    };
    let read = parts().filter_map(|(kind, (scope, outcome))| Part::new(kind, scope).filter(|_| outcome.is_ok()));
    let not_read = parts().filter_map(|(_, (_, outcome))| Gap::new(outcome.as_ref().err()?));
    writeln!(out, "{{\n  \"apiVersion\": \"{API_VERSION}\",\n  \"kind\": \"{KIND}\",")?;
    writeln!(out, "  \"cluster\": {},", plain_json(&serde_json::to_string(&cluster)?))?;
    writeln!(out, "  \"observedAt\": {},", serde_json::to_string(&snapshot.observed_at)?)?;
    let mut list = List::begin("read", out)?;
    for part in read {
        list.item(&serde_json::to_string(&part)?)?;
    }
    list.end(",")?;
    let mut list = List::begin("notRead", out)?;
    for gap in not_read {
        list.item(&serde_json::to_string(&gap)?)?;
    }
    list.end(",")?;
    let mut list = List::begin("items", out)?;
    for kind in Kind::ALL {
        snapshot.objects.lines(*kind, |line| list.item(&line))?;
    }
    list.end("")?;
    out.write_all(b"}\n")?;
    out.flush()
}

/// A list in the document, one item a line.
struct List<'a> {
    out: &'a mut dyn Write,
    empty: bool,
}

impl<'a> List<'a> {
    fn begin(name: &str, out: &'a mut dyn Write) -> io::Result<Self> {
        write!(out, "  \"{name}\": [")?;
        Ok(Self { out, empty: true })
    }

    fn item(&mut self, json: &str) -> io::Result<()> {
        self.out.write_all(if self.empty { b"\n    " } else { b",\n    " })?;
        self.empty = false;
        self.out.write_all(plain_json(json).as_bytes())
    }

    fn end(self, separator: &str) -> io::Result<()> {
        writeln!(self.out, "{}]{separator}", if self.empty { "" } else { "\n  " })
    }
}
