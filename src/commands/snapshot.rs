//! `snapshot`: all that the commands read, in one file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::Path;

use crate::cli::connection::ConnectionFlags;
use crate::cli::snapshot::SnapshotArgs;
use crate::cluster::files;
use crate::cluster::kinds::Kind;
use crate::cluster::snapshot::{Reason, Scope, Snapshot, Source};

use super::failure::Failure;
use super::reading;

/// Runs the command; the result is the exit code.
///
/// # Errors
/// The cluster or a file cannot be read, or the file cannot be written.
pub async fn run(args: &SnapshotArgs, connection: &ConnectionFlags) -> Result<u8, Failure> {
    if let Some(path) = &args.output_file
        && fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
    {
        return Err(Failure::usage(
            format!("{} is not a file", path.display()),
            Some("name a file with -O, or leave -O out and redirect standard output".to_owned()),
        ));
    }
    let snapshot = if args.source.filename.is_empty() {
        reading::whole::read(connection).await?
    } else {
        reading::from_files(&args.source)?
    };
    if Kind::ALL
        .iter()
        .all(|kind| !snapshot.objects.coverage(*kind).any(|(_, outcome)| outcome.is_ok()))
    {
        return Err(Failure::unreadable(
            "nothing could be read",
            Some("see what you may read: kubectl auth can-i --list".to_owned()),
        ));
    }
    match &args.output_file {
        None => match files::write(&snapshot, &mut BufWriter::new(io::stdout().lock())) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(0),
            outcome => outcome.map_err(|error| Failure::unreadable(format!("cannot write the snapshot: {error}"), None))?,
        },
        Some(path) => {
            replace(path, &snapshot).map_err(|error| Failure::unreadable(format!("cannot write {}: {error}", path.display()), None))?;
        }
    }
    tell(&snapshot);
    Ok(0)
}

/// Says on standard error what a live cluster did not give.
fn tell(snapshot: &Snapshot) {
    if snapshot.source == Source::Files {
        return;
    }
    for kind in Kind::ALL {
        for (scope, outcome) in snapshot.objects.coverage(*kind) {
            let Err(missing) = outcome else { continue };
            // What a namespace did give is not missing in it, and the cluster stands for the rest.
            if *scope == Scope::Cluster || missing.reason != Reason::Forbidden {
                eprintln!("note: {}", crate::report::text::harmless(&missing.to_string(), false));
            }
        }
    }
}

/// Writes a file beside the one meant, and puts it in its place when it is whole.
fn replace(path: &Path, snapshot: &Snapshot) -> io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let file = create(&beside)?;
    let written = fill(file, snapshot).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The error that counts is the first.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn fill(file: File, snapshot: &Snapshot) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    files::write(snapshot, &mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// Creates a file that does not exist yet, for its owner alone.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
