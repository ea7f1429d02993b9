//! Any file: read, and what can be read goes through every rule, as a snapshot too.
#![no_main]

use std::path::PathBuf;

use gpustack_ha::checks::assessed;
use gpustack_ha::checks::preflight::{Request, assess};
use gpustack_ha::checks::{leases, pdb, placement};
use gpustack_ha::cluster::files;
use gpustack_ha::gpustack::install::{self, Found};
use gpustack_ha::kubernetes::drain::DrainFlags;
use gpustack_ha::report::shell::Kubectl;
use libfuzzer_sys::fuzz_target;

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("{name}-{}.json", std::process::id()))
}

fuzz_target!(|bytes: &[u8]| {
    let file = scratch("fuzz");
    std::fs::write(&file, bytes).expect("a file");
    let complete = bytes.len() % 2 == 0;
    let Ok(snapshot) = files::read(&[file], complete) else { return };
    // Written and read again, it is the same.
    let mut written = Vec::new();
    files::write(&snapshot, &mut written).expect("memory");
    let again = scratch("again");
    std::fs::write(&again, &written).expect("a file");
    let read = files::read(&[again], false).expect("what was written");
    let mut twice = Vec::new();
    files::write(&read, &mut twice).expect("memory");
    assert_eq!(String::from_utf8(written), String::from_utf8(twice));
    let found = match install::find(&snapshot, None, None) {
        Found::Several(mut installs) => Found::One(installs.swap_remove(0)),
        other => other,
    };
    let flags = DrainFlags {
        force: true,
        ignore_daemonsets: true,
        delete_emptydir_data: true,
        ..DrainFlags::default()
    };
    let nodes = snapshot.nodes.seen().iter().take(3).map(|node| node.metadata.name.clone()).collect();
    let request = Request {
        nodes,
        later: Vec::new(),
        flags,
        flag_words: Vec::new(),
        one_by_one: bytes.len() % 3 == 0,
        accept: Vec::new(),
        kubectl: Kubectl::default(),
        release: None,
        namespace: None,
    };
    if !request.nodes.is_empty() {
        serde_json::to_string(&assess(&snapshot, &found, &request)).expect("a document");
    }
    let about = assessed::Request {
        accept: Vec::new(),
        kubectl: Kubectl::default(),
        all: true,
    };
    let install = match &found {
        Found::One(install) => Some(install),
        _ => None,
    };
    serde_json::to_string(&placement::assess(&snapshot, install, &about)).expect("a document");
    serde_json::to_string(&pdb::assess(&snapshot, install, &about)).expect("a document");
    serde_json::to_string(&leases::assess(&snapshot, install, &about)).expect("a document");
});
