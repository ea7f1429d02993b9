//! The cluster's objects from files, directories and streams, in YAML or JSON.
//!
//! ```text
//! inputs ─► format ─► json (text, item by item)  ─┐
//!                 └─► yaml (document by document) ─┴► sink (which kind? a list?) ─► Snapshot
//! ```
//! What the files do not hold was not read: `kubectl get a,b,c -o yaml` leaves no trace of a kind that has no
//! objects. Only a typed list that is empty, or the claim that the files are complete, tells that there are none.

mod error;
mod json;
mod node;
mod place;
mod saved;
mod sink;
#[cfg(test)]
mod tests;
mod yaml;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

pub use self::error::InputError;
use self::error::plain;
use self::node::{Mismatch, Node};
pub use self::place::Place;
pub use self::saved::write;
use self::sink::{Sink, Tally};
use super::kinds::Kind;
use super::snapshot::{NotRead, Reason, Scope, Snapshot, Source};

/// What to do about broken grammar.
const CORRECT: &str = "correct this place, or capture the objects again";

/// How much of an input is looked at to tell its format.
const BEGINNING: u64 = 1 << 20;

/// Stack for the YAML parser, in bytes: enough for its deepest document in a debug build.
const YAML_STACK: usize = 32 << 20;

/// What is read of an input at most, in bytes.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Of YAML, which is held in memory.
    yaml: u64,
    /// Of JSON, which is streamed.
    json: u64,
    /// Of one object in JSON.
    object: usize,
}

impl Limits {
    const DEFAULT: Self = Self {
        yaml: 256 << 20,
        json: 2 << 30,
        object: 256 << 20,
    };
}

/// Reads the inputs, each a file, a directory, a stream, or `-` for standard input, into one snapshot.
///
/// `complete` states that together they hold every object of the cluster of the kinds that matter.
///
/// # Errors
/// The first input that cannot be read, or holds nothing that is of use.
pub fn read(inputs: &[PathBuf], complete: bool) -> Result<Snapshot, InputError> {
    read_within(inputs, complete, Limits::DEFAULT)
}

fn read_within(inputs: &[PathBuf], complete: bool, limits: Limits) -> Result<Snapshot, InputError> {
    let mut snapshot = Snapshot {
        source: Source::Files,
        complete,
        ..Snapshot::default()
    };
    let listings = &mut snapshot.objects;
    let (mut stated, mut lists) = (BTreeSet::new(), BTreeSet::new());
    let mut saved = None;
    for input in inputs {
        let mut sink = Sink::new(listings);
        let name = name_of(input);
        if input.as_os_str() == "-" {
            stream(io::stdin().lock(), limits, &mut sink).map_err(|error| error.of_input(&name))?;
        } else if input.is_dir() {
            for file in manifests(input)? {
                open(&file, limits, &mut sink)?;
            }
        } else {
            open(input, limits, &mut sink)?;
        }
        useful(&sink.tally).map_err(|error| error.of_input(&name))?;
        stated.append(&mut sink.tally.stated);
        lists.append(&mut sink.tally.lists);
        if let Some(frame) = sink.tally.saved.take()
            && saved.replace(frame).is_some()
        {
            return Err(sink::two_snapshots().of_input(&name));
        }
    }
    if stated.is_empty() && saved.is_none() {
        let names: Vec<String> = inputs.iter().map(|input| name_of(input)).collect();
        return Err(InputError::new("no objects: the lists are empty")
            .of_input(&names.join(", "))
            .with_hint(capture_hint()));
    }
    snapshot.objects.default_namespace();
    // An object of a kind stands for the whole kind. But where kubelets run, what a cluster has lies in more than one
    // namespace: objects of a single one are what `kubectl get` without `-A` leaves, and a node has pods of others.
    let kubelet = |node: &super::objects::Node| !node.status.node_info.container_runtime_version.is_empty();
    let running = snapshot.objects.nodes.seen().iter().any(kubelet);
    let namespaces = snapshot.objects.namespaces();
    let alone = match namespaces.first() {
        Some(namespace) if namespaces.len() == 1 && running && !complete && !lists.contains(&Kind::Pod) => {
            Some(Scope::Namespace((*namespace).to_owned()))
        }
        _ => None,
    };
    for &kind in &stated {
        match &alone {
            Some(alone) if kind == Kind::Pod => {
                let (scope, reason) = (Scope::Cluster, Reason::OneNamespace);
                snapshot.objects.cover(kind, alone.clone(), Ok(()));
                snapshot.objects.cover(kind, scope.clone(), Err(NotRead { kind, scope, reason }));
            }
            _ => snapshot.objects.cover(kind, Scope::Cluster, Ok(())),
        }
    }
    if let Some(frame) = saved {
        frame.enter(&mut snapshot);
    }
    // What a snapshot says could not be read is not said to be absent by `complete`.
    for &kind in Kind::ALL.iter().filter(|kind| !snapshot.objects.tried(**kind)).collect::<Vec<_>>() {
        let outcome = if complete && !kind.optional() {
            Ok(())
        } else {
            Err(NotRead {
                kind,
                scope: Scope::Cluster,
                reason: Reason::NotInFiles,
            })
        };
        snapshot.objects.cover(kind, Scope::Cluster, outcome);
    }
    snapshot.objects.settle();
    Ok(snapshot)
}

fn name_of(input: &Path) -> String {
    if input.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        input.display().to_string()
    }
}

/// The manifests in a directory and below it, sorted. Links to files are followed, links to directories are not.
fn manifests(directory: &Path) -> Result<Vec<PathBuf>, InputError> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        let failed = |error: &io::Error| io_error(error).of_input(&name_of(&directory));
        for entry in fs::read_dir(&directory).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            let path = entry.path();
            if entry.file_type().map_err(|error| failed(&error))?.is_dir() {
                pending.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
                && path.is_file()
            {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        return Err(InputError::new("a directory without manifests")
            .of_input(&name_of(directory))
            .with_hint("manifests are files that end in .yaml, .yml or .json, here or in directories below"));
    }
    found.sort();
    Ok(found)
}

fn open(path: &Path, limits: Limits, sink: &mut Sink<'_>) -> Result<(), InputError> {
    File::open(path)
        .map_err(|error| io_error(&error))
        .and_then(|file| stream(file, limits, sink))
        .map_err(|error| error.of_input(&name_of(path)))
}

/// Reads an input to its end. Its first character tells the format.
fn stream(mut reader: impl Read, limits: Limits, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let mut beginning = Vec::new();
    reader
        .by_ref()
        .take(BEGINNING)
        .read_to_end(&mut beginning)
        .map_err(|error| io_error(&error))?;
    if beginning.starts_with(b"\xef\xbb\xbf") {
        beginning.drain(..3);
    }
    let whole = (beginning.len() as u64) < BEGINNING - 3;
    if beginning.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return text(beginning, reader, limits, sink);
    }
    match json::read(
        BufReader::with_capacity(1 << 18, beginning.as_slice().chain(&mut reader)),
        limits,
        sink,
    ) {
        // What begins with a brace may also be YAML in flow style, or JSON between `---` lines.
        Err(error) if whole => text(beginning, io::empty(), limits, sink).map_err(|_| error),
        outcome => outcome,
    }
}

/// Reads YAML.
fn text(mut bytes: Vec<u8>, reader: impl Read, limits: Limits, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let left = (limits.yaml + 1).saturating_sub(bytes.len() as u64);
    reader.take(left).read_to_end(&mut bytes).map_err(|error| io_error(&error))?;
    if bytes.len() as u64 > limits.yaml {
        return Err(over("YAML input", limits.yaml).with_hint(format!(
            "capture it as JSON, which may have {}: `kubectl get … -o json`",
            size(limits.json)
        )));
    }
    // A parser could take a NUL for the end of the text, and say nothing about the rest.
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let text = std::str::from_utf8(&bytes).map_err(|error| not_utf8(&bytes, error.valid_up_to().min(end), Place::START))?;
    if end < text.len() {
        return Err(not_utf8(&bytes, end, Place::START));
    }
    // The parser recurses with large frames, on some systems into a stack of 1 MiB.
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new()
            .stack_size(YAML_STACK)
            .spawn_scoped(scope, || yaml::read(text, sink));
        match parser.map_err(|error| io_error(&error))?.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// An input, or a part of it, that is longer than is read.
fn over(what: &str, limit: u64) -> InputError {
    InputError::new(format!("over the limit of {} for one {what}", size(limit)))
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}

/// Bytes that are no text, at the offset.
fn not_utf8(bytes: &[u8], offset: usize, start: Place) -> InputError {
    let (before, rest) = bytes.split_at(offset.min(bytes.len()));
    let byte = rest.first().copied().unwrap_or_default();
    let error = InputError::new(format!("neither YAML nor JSON: the byte 0x{byte:02x} is not text in UTF-8")).at(start.after(before));
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            error.with_hint("the file is UTF-16, as Windows PowerShell's > writes it: use `| Out-File -Encoding utf8`")
        }
        _ => error.with_hint("give manifests as text, such as `kubectl get … -o yaml` prints"),
    }
}

fn io_error(error: &io::Error) -> InputError {
    match error.kind() {
        io::ErrorKind::NotFound => InputError::new("no such file or directory"),
        io::ErrorKind::PermissionDenied => InputError::new("permission denied"),
        _ => InputError::new(error.to_string()),
    }
}

/// A field of a wrong type in an object, whose kind its list may have told.
fn wrong_type(object: &Node, kind: Option<Kind>, mismatch: &Mismatch) -> InputError {
    let metadata = object.get("metadata");
    let part = |name| plain(metadata.map_or("", |metadata| metadata.text(name)));
    let (namespace, name) = (part("namespace"), part("name"));
    let mut what = match (object.text("kind"), kind) {
        ("", Some(kind)) => kind.info().kind.to_owned(),
        ("", None) => "object".to_owned(),
        (kind, _) => plain(kind),
    };
    if !name.is_empty() {
        what.push(' ');
        if !namespace.is_empty() {
            what.push_str(&namespace);
            what.push('/');
        }
        what.push_str(&name);
    }
    let hint = if mismatch.wants_text() {
        "text that looks like a number, true or false needs quotes"
    } else {
        "the API server would refuse this object too: correct the field or capture the object again"
    };
    InputError::new(format!("{what}: {mismatch}")).with_hint(hint)
}

/// Whether an input held anything of use.
fn useful(tally: &Tally) -> Result<(), InputError> {
    if tally.documents == 0 {
        return Err(InputError::new("nothing in it").with_hint("did the command that wrote it fail?"));
    }
    if tally.known == 0 && tally.stated.is_empty() && tally.saved.is_none() && !tally.others.is_empty() {
        let kinds: Vec<String> = tally
            .others
            .iter()
            .take(8)
            .map(|(kind, count)| format!("{} ({count})", plain(kind)))
            .collect();
        let more = if tally.others.len() > kinds.len() { ", …" } else { "" };
        return Err(InputError::new(format!("unknown kind: it holds only {}{more}", kinds.join(", "))).with_hint(capture_hint()));
    }
    Ok(())
}

fn capture_hint() -> String {
    format!(
        "capture what matters: `{}`; if that printed no error, read it with `-f cluster.yaml --complete`",
        capture_command(Kind::ALL)
    )
}

/// The command that captures all objects of the kinds.
///
/// With every kind captured and no error printed, `-f cluster.yaml --complete` reads it: without `--complete` a kind
/// that has no objects stays unread, as kubectl leaves no trace of it.
pub fn capture_command(kinds: &[Kind]) -> String {
    let kinds = kinds.iter().filter(|kind| !kind.optional());
    let resources: Vec<String> = kinds.map(|kind| kind.resource()).collect();
    format!("kubectl get {} -A -o yaml > cluster.yaml", resources.join(","))
}
