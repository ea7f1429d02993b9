//! `--explain-rbac`: the least rights that a command needs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::Serialize;

use crate::cli::Command;
use crate::cluster::kinds::Kind;
use crate::report::shell::Kubectl;
use crate::report::text::harmless;
use crate::report::yaml;

use super::failure::Failure;
use super::reading;
use super::view::View;

/// What a command lists; no command needs another verb.
#[derive(Clone, Debug)]
pub struct Rights {
    /// The command.
    pub command: &'static str,
    /// Kinds that it may list.
    pub kinds: BTreeSet<Kind>,
    /// Namespaced kinds of which one namespace is not enough.
    pub everywhere: &'static [Kind],
}

/// What a command lists, where it is asked to say so.
pub fn asked_about(command: &Command) -> Option<Rights> {
    let (rights, asked) = match command {
        Command::DrainPreflight(args) => (reading::drain::rights(), args.source.explain_rbac),
        Command::Snapshot(args) => (reading::whole::rights(), args.source.explain_rbac),
        Command::Placement(args) => (args.wanted().rights("placement"), args.view.source.explain_rbac),
        Command::Pdb(args) => (args.wanted().rights("pdb"), args.view.source.explain_rbac),
        Command::Leases(args) => (args.wanted().rights("leases"), args.view.source.explain_rbac),
        Command::Explain(_) | Command::Completion(_) | Command::Version(_) => return None,
    };
    asked.then_some(rights)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Role {
    api_version: &'static str,
    kind: &'static str,
    metadata: BTreeMap<&'static str, String>,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: [&'static str; 1],
    resources: Vec<&'static str>,
    verbs: [&'static str; 1],
}

/// One rule for each API group.
fn rules(kinds: impl Iterator<Item = Kind>) -> Vec<Rule> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds {
        groups.entry(kind.info().group).or_default().push(kind.info().plural);
    }
    let rule = |(group, resources)| Rule {
        api_groups: [group],
        resources,
        verbs: ["list"],
    };
    groups.into_iter().map(rule).collect()
}

/// Prints the roles, and how to grant them: for the whole cluster, or as far as one namespace suffices for it alone.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(rights: &Rights, namespace: Option<&str>, kubectl: &Kubectl) -> Result<u8, Failure> {
    match write(rights, namespace, kubectl, &mut io::stdout().lock()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::unreadable(format!("cannot write the answer: {error}"), None))
        }
        _ => Ok(0),
    }
}

fn write(rights: &Rights, namespace: Option<&str>, kubectl: &Kubectl, out: &mut dyn Write) -> io::Result<()> {
    let name = format!("gpustack-ha-{}", rights.command);
    let grant = |kind: &str, place: &[&str]| {
        let (binding, role) = (format!("{kind}binding"), format!("--{kind}={name}"));
        let words = ["create", &binding, &name, &role, "--user=USER"];
        kubectl.line(words.iter().chain(place).map(|word| (*word).to_owned()))
    };
    let cluster = |kind: &Kind| namespace.is_none() || !kind.info().namespaced || rights.everywhere.contains(kind);
    let mut roles = vec![Role {
        api_version: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRole",
        metadata: BTreeMap::from([("name", name.clone())]),
        rules: rules(rights.kinds.iter().copied().filter(cluster)),
    }];
    writeln!(out, "# All that {} reads. Apply it, and grant it to USER:", rights.command)?;
    writeln!(out, "#   {}", harmless(&grant("clusterrole", &[]), false))?;
    if let Some(namespace) = namespace {
        writeln!(out, "#   {}", harmless(&grant("role", &["-n", namespace]), false))?;
        writeln!(out, "# What lies in other namespaces is then unknown where it could matter.")?;
        roles.push(Role {
            kind: "Role",
            api_version: "rbac.authorization.k8s.io/v1",
            metadata: BTreeMap::from([("name", name.clone()), ("namespace", namespace.to_owned())]),
            rules: rules(rights.kinds.iter().copied().filter(|kind| !cluster(kind))),
        });
    }
    for (index, role) in roles.iter().enumerate() {
        if index > 0 {
            writeln!(out, "---")?;
        }
        yaml::write(role, out)?;
    }
    Ok(())
}
