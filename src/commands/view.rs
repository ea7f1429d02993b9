//! The way of every view: arguments to snapshot to install to document to exit code, once or again and again.

use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::time::Duration;

use serde_json::Value;

use crate::checks::assessed::Request;
use crate::cli::connection::ConnectionFlags;
use crate::cli::views::ViewFlags;
use crate::cli::{FailOn, Format};
use crate::cluster::files;
use crate::cluster::kinds::Kind;
use crate::cluster::progress::Progress;
use crate::cluster::snapshot::{NotRead, Reason, Snapshot};
use crate::gpustack::install::{self, Found, Install};
use crate::report::finding::Verdict;
use crate::report::page::Report;
use crate::report::shell::Kubectl;

use super::failure::Failure;
use super::{installs, reading};

/// How long a watch waits before it reads again: a change shows within two seconds.
const PAUSE: Duration = Duration::from_secs(1);

/// A view: what it reads, and what it makes of it.
pub trait View {
    /// Its document.
    type Document: Report;

    /// The flags that every view has.
    fn flags(&self) -> &ViewFlags;

    /// What it reads from a live API server.
    fn wanted(&self) -> reading::views::Wanted;

    /// The document, and its verdict.
    fn assess(&self, snapshot: &Snapshot, install: Option<&Install<'_>>, request: &Request) -> (Self::Document, Verdict);
}

/// Runs a view; the result is the exit code.
///
/// # Errors
/// A wrong question; no install where one is needed; a cluster or file that cannot be read.
pub async fn run(view: &impl View, connection: &ConnectionFlags) -> Result<u8, Failure> {
    let flags = view.flags();
    let request = Request {
        accept: flags.accept.clone(),
        kubectl: Kubectl::new(connection.repeat()),
        all: view.wanted().all,
    };
    if flags.watch {
        if flags.source.filename.iter().any(|file| file.as_os_str() == "-") {
            return Err(Failure::usage(
                "standard input cannot be watched",
                Some("give a file, or read the cluster".to_owned()),
            ));
        }
        return watch(view, flags, connection, &request).await;
    }
    let (document, verdict) = once(view, flags, connection, &request, &mut None).await?;
    super::print(&document, &flags.output)?;
    Ok(exit(verdict, flags.fail_on))
}

/// 0 where it could answer, unless that is asked to fail.
fn exit(verdict: Verdict, fail_on: Option<FailOn>) -> u8 {
    match (verdict, fail_on) {
        (Verdict::Unknown, _) => 3,
        (Verdict::Unsafe, Some(_)) | (Verdict::AtRisk, Some(FailOn::AtRisk)) => 1,
        _ => 0,
    }
}

async fn once<V: View>(
    view: &V,
    flags: &ViewFlags,
    connection: &ConnectionFlags,
    request: &Request,
    chosen: &mut Option<(String, String)>,
) -> Result<(V::Document, Verdict), Failure> {
    let release = chosen
        .as_ref()
        .map(|(release, _)| release)
        .or(flags.install.release.as_ref())
        .cloned();
    let release = release.as_deref();
    let snapshot = if flags.source.filename.is_empty() {
        reading::views::read(connection, release, &view.wanted()).await?
    } else {
        reading::from_files(&flags.source)?
    };
    let namespace = match chosen {
        Some((_, namespace)) => Some(namespace.clone()),
        None => reading::views::namespace_of(&snapshot, connection),
    };
    let install = match install::find(&snapshot, release, namespace.as_deref()) {
        Found::One(install) => Some(install),
        Found::Several(found) => {
            let install = installs::which(found)?;
            *chosen = Some((install.release.to_owned(), install.namespace.to_owned()));
            Some(install)
        }
        Found::None | Found::Unknown(_) if request.all => None,
        Found::None => return Err(no_install(release, namespace.as_deref())),
        Found::Unknown(missing) => return Err(cannot_look(&missing)),
    };
    Ok(view.assess(&snapshot, install.as_ref(), request))
}

fn no_install(release: Option<&str>, namespace: Option<&str>) -> Failure {
    let release = release.map(|release| format!(" of release {release}")).unwrap_or_default();
    let place = namespace.map_or_else(|| "in the cluster".to_owned(), |namespace| format!("in namespace {namespace}"));
    Failure::unreadable(
        format!("there is no GPUStack install{release} {place}"),
        Some("say where it is with -n NAMESPACE and --release NAME; -A looks at every workload instead".to_owned()),
    )
}

fn cannot_look(missing: &NotRead) -> Failure {
    let hint = match missing.reason {
        Reason::NotInFiles | Reason::OneNamespace => format!("capture what matters: {}", files::capture_command(Kind::ALL)),
        Reason::Forbidden => "say where it is with -n NAMESPACE; the right to list deployments there is needed".to_owned(),
        Reason::NotAsked | Reason::Failed(_) => "say where it is with -n NAMESPACE".to_owned(),
    };
    Failure::unreadable(format!("cannot look for the GPUStack install: {missing}"), Some(hint))
}

/// Shows the view whenever it differs, until Ctrl-C.
async fn watch(view: &impl View, flags: &ViewFlags, connection: &ConnectionFlags, request: &Request) -> Result<u8, Failure> {
    Progress::forbid();
    let screen = io::stdout().is_terminal() && matches!(flags.output.output, Format::Table | Format::Wide);
    let (mut shown, mut chosen, mut said): (Option<Vec<u8>>, _, _) = (None, None, String::new());
    // One listener for all turns: a new one each time would miss what comes between them.
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    loop {
        let turn = async {
            let (document, _) = once(view, flags, connection, request, &mut chosen).await?;
            let text = super::written(&document, &flags.output)?;
            // A screen shows how time goes by; a file gets a new document only for something new.
            let essence = if screen { text.clone() } else { essence(&document)? };
            Ok::<_, Failure>((text, essence))
        };
        let text = tokio::select! {
            text = turn => text,
            _ = &mut interrupt => return Ok(0),
        };
        let (text, essence) = match (text, &shown) {
            (Ok(found), _) => found,
            // What could be shown once may be shown again: a server that restarts is no reason to end.
            (Err(failure), Some(_)) => {
                if said != failure.text() {
                    said = failure.text();
                    eprintln!("{said}");
                }
                (Vec::new(), Vec::new())
            }
            (Err(failure), None) => return Err(failure),
        };
        if !text.is_empty() && shown.as_ref() != Some(&essence) {
            let mut out = io::stdout().lock();
            let clear: &[u8] = if screen { b"\x1b[H\x1b[2J" } else { b"" };
            let done = out.write_all(clear).and_then(|()| out.write_all(&text)).and_then(|()| out.flush());
            match done {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(0),
                Err(error) => return Err(Failure::unreadable(format!("cannot write the answer: {error}"), None)),
                Ok(()) => shown = Some(essence),
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = &mut interrupt => return Ok(0),
        }
    }
}

/// What a document says besides how late it is.
fn essence(document: &impl Report) -> Result<Vec<u8>, Failure> {
    let unwritten = |error: serde_json::Error| super::unwritten(&io::Error::other(error));
    let mut value = serde_json::to_value(document).map_err(unwritten)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("observedAt");
        for lease in fields.get_mut("leases").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(lease) = lease.as_object_mut() {
                lease.remove("ageSeconds");
            }
        }
    }
    serde_json::to_vec(&value).map_err(unwritten)
}
