//! What each command reads from a live API server: what its question needs, and no more. One file per command.

pub mod drain;
pub mod views;
pub mod whole;

use std::collections::BTreeSet;
use std::io;
use std::time::Instant;

use crate::cli::SourceFlags;
use crate::cli::connection::ConnectionFlags;
use crate::cluster::connect::{Connection, Environment};
use crate::cluster::files;
use crate::cluster::kinds::Kind;
use crate::cluster::live::{Asked, Reader};
use crate::cluster::progress::Progress;
use crate::cluster::snapshot::{Scope, Snapshot};
use crate::report::style::Style;
use crate::report::table::{Cell, Table};
use crate::report::text::harmless;

use super::failure::Failure;

/// Above this many namespaces one list of the whole cluster is less than one list each.
const NAMESPACES_EACH: usize = 3;

/// Where an install is looked for if searching everywhere is forbidden.
const USUAL_NAMESPACE: &str = "gpustack-system";

/// Connects, and begins a snapshot.
///
/// # Errors
/// The kubeconfig cannot be used, or the server cannot be reached or does not accept the credential.
pub async fn begin(flags: &ConnectionFlags) -> Result<(Reader, Snapshot), Failure> {
    let connection = Connection::open(flags, &Environment::of_process()).await?;
    let reader = Reader::new(connection, flags.verbose);
    let snapshot = reader.begin().await?;
    Ok((reader, snapshot))
}

/// Says on standard error what each list took, where that is asked for.
pub fn account(reader: &Reader) {
    if reader.verbose() == 0 {
        return;
    }
    let asked = reader.asked();
    let mut table = Table::new(&["REQUEST", "PAGES", "OBJECTS", "BYTES", "TIME"], 5);
    let mut row = |asked: &Asked| {
        let numbers = [asked.requests, asked.objects, asked.bytes].map(|number| Cell::new(number.to_string()));
        let mut cells = vec![Cell::new(&asked.path)];
        cells.extend(numbers);
        cells.push(Cell::new(format!("{} ms", asked.time.as_millis())));
        table.push(cells, Vec::new());
    };
    asked.iter().for_each(&mut row);
    row(&Asked {
        path: "in all".to_owned(),
        requests: asked.iter().map(|asked| asked.requests).sum(),
        objects: asked.iter().map(|asked| asked.objects).sum(),
        bytes: asked.iter().map(|asked| asked.bytes).sum(),
        time: asked.iter().map(|asked| asked.time).sum(),
    });
    let style = Style {
        color: false,
        width: usize::MAX,
        ascii: false,
        headers: true,
    };
    // Whoever closed standard error does not want it.
    let _ = table.write(&style, &mut io::stderr().lock());
}

/// Reads the files given.
///
/// # Errors
/// What cannot be read or understood.
pub fn from_files(source: &SourceFlags) -> Result<Snapshot, Failure> {
    let names: Vec<String> = source
        .filename
        .iter()
        .map(|file| match file.as_os_str() == "-" {
            true => "standard input".to_owned(),
            false => harmless(&file.to_string_lossy(), false).into_owned(),
        })
        .collect();
    let _progress = Progress::new(format!("reading {}", names.join(", ")), Instant::now());
    Ok(files::read(&source.filename, source.complete)?)
}

/// The namespace to look in where looking everywhere is forbidden: the one asked for, or the usual one.
pub fn one_namespace(flags: &ConnectionFlags) -> String {
    flags.namespace.clone().unwrap_or_else(|| USUAL_NAMESPACE.to_owned())
}

/// Namespaces of the Services that the API server calls.
pub fn called_namespaces(snapshot: &Snapshot) -> BTreeSet<String> {
    let webhooks = snapshot.mutating_webhooks.seen().iter().chain(snapshot.validating_webhooks.seen());
    let called = webhooks
        .flat_map(|configuration| &configuration.webhooks)
        .filter_map(|webhook| webhook.client_config.service.as_ref());
    let apis = snapshot.api_services.seen().iter().filter_map(|api| api.spec.service.as_ref());
    let conversions = snapshot
        .custom_resources
        .seen()
        .iter()
        .filter_map(|definition| definition.spec.conversion.webhook.as_ref()?.client_config.service.as_ref());
    called
        .chain(apis)
        .chain(conversions)
        .map(|service| service.namespace.clone())
        .collect()
}

/// Reads kinds of some namespaces: each, or the whole cluster where that is less and allowed.
///
/// # Errors
/// The server was never reached, or does not accept the credential.
pub async fn parts(reader: &Reader, snapshot: &mut Snapshot, kinds: &[Kind], namespaces: &BTreeSet<String>) -> Result<(), Failure> {
    let mut each = kinds.to_vec();
    if namespaces.len() > NAMESPACES_EACH {
        let wanted: Vec<_> = kinds.iter().map(|kind| (*kind, Scope::Cluster)).collect();
        reader.read(&wanted, snapshot).await?;
        each.retain(|kind| !snapshot.objects.covered(*kind, &Scope::Cluster));
    }
    let wanted: Vec<_> = each
        .iter()
        .flat_map(|kind| namespaces.iter().map(|namespace| (*kind, Scope::Namespace(namespace.clone()))))
        .collect();
    reader.read(&wanted, snapshot).await?;
    Ok(())
}
