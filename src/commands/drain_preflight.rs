//! `drain-preflight`: what `kubectl drain` of these nodes would do.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal, Write};

use crate::checks::preflight::{self, Request};
use crate::cli::FailOn;
use crate::cli::connection::ConnectionFlags;
use crate::cli::drain::DrainPreflightArgs;
use crate::cluster::connect::{Connection, Environment, closest};
use crate::cluster::files;
use crate::cluster::kinds::Kind;
use crate::cluster::live::Reader;
use crate::cluster::snapshot::{Scope, Snapshot};
use crate::gpustack::install::{self, Found, Install};
use crate::kubernetes::drain::{self, DrainFlags, Filtered};
use crate::kubernetes::workloads::{self, Owner};
use crate::kubernetes::{creation, scheduling, selectors};
use crate::report::finding::Verdict;
use crate::report::shell::Kubectl;
use crate::report::text::harmless;

use super::failure::Failure;

/// Above this many namespaces one list of the whole cluster is less than one list each.
const NAMESPACES_EACH: usize = 3;

/// Where an install is looked for if searching everywhere is forbidden.
const USUAL_NAMESPACE: &str = "gpustack-system";

/// Runs the command; the result is the exit code.
///
/// # Errors
/// A wrong question, or a cluster or file that cannot be read.
pub async fn run(args: &DrainPreflightArgs, connection: &ConnectionFlags) -> Result<u8, Failure> {
    let flags = args
        .drain
        .flags()
        .map_err(|error| Failure::usage(format!("--pod-selector: {error}"), None))?;
    if args.nodes.is_empty() && args.selector.is_none() {
        return Err(Failure::usage(
            "which node?",
            Some("kubectl gpustack-ha drain-preflight NODE, or -l SELECTOR".to_owned()),
        ));
    }
    if !args.nodes.is_empty() && args.selector.is_some() {
        return Err(Failure::usage(
            "names cannot be given with -l, as for kubectl drain",
            Some("leave out the names or -l".to_owned()),
        ));
    }
    let (snapshot, nodes) = if args.source.filename.is_empty() {
        live(args, connection, &flags).await?
    } else {
        let snapshot = files::read(&args.source.filename, args.source.complete)?;
        let nodes = named(args, &snapshot)?;
        (snapshot, nodes)
    };
    let found = install::find(&snapshot, args.source.release.as_deref(), connection.namespace.as_deref());
    let found = match found {
        Found::Several(installs) => Found::One(which(installs)?),
        other => other,
    };
    let request = Request {
        nodes,
        flags,
        flag_words: args.drain.words(),
        one_by_one: args.one_by_one,
        accept: args.accept.clone(),
        kubectl: Kubectl::new(connection.repeat()),
        release: args.source.release.clone(),
        namespace: connection.namespace.clone(),
    };
    let document = preflight::assess(&snapshot, &found, &request);
    super::print(&document, &args.output)?;
    Ok(match (document.verdict, args.fail_on) {
        (Verdict::Safe, _) | (Verdict::AtRisk, FailOn::Unsafe) => 0,
        (Verdict::AtRisk, FailOn::AtRisk) | (Verdict::Unsafe, _) => 1,
        (Verdict::Unknown, _) => 3,
    })
}

/// The install meant: asked for on a terminal, an error elsewhere.
fn which(mut installs: Vec<Install<'_>>) -> Result<Install<'_>, Failure> {
    let list: Vec<String> = installs
        .iter()
        .map(|install| format!("--release {} -n {}", install.release, install.namespace))
        .collect();
    let chosen = if io::stdin().is_terminal() && io::stderr().is_terminal() {
        choose(&list, &mut io::stdin().lock(), &mut io::stderr().lock())
    } else {
        None
    };
    match chosen {
        Some(index) => Ok(installs.swap_remove(index)),
        None => Err(Failure::usage(
            "there is more than one GPUStack install",
            Some(format!("say which: {}", list.join(", or "))),
        )),
    }
}

/// Asks for one of the items by its number, until the answer is one; `None` where nobody answers.
fn choose(items: &[String], answers: &mut impl BufRead, questions: &mut impl Write) -> Option<usize> {
    for (index, item) in items.iter().enumerate() {
        writeln!(questions, "{:>3}  {}", index + 1, harmless(item, false)).ok()?;
    }
    loop {
        write!(questions, "There is more than one GPUStack install. Which (1 to {})? ", items.len()).ok()?;
        questions.flush().ok()?;
        let mut answer = String::new();
        if answers.read_line(&mut answer).ok()? == 0 {
            return None;
        }
        match answer.trim().parse::<usize>() {
            Ok(number) if (1..=items.len()).contains(&number) => return Some(number - 1),
            _ => {}
        }
    }
}

/// The nodes meant, in the order in which kubectl takes them.
fn named(args: &DrainPreflightArgs, snapshot: &Snapshot) -> Result<Vec<String>, Failure> {
    let nodes = match snapshot.nodes.all() {
        Ok(nodes) => nodes,
        Err(missing) => {
            return Err(Failure::unreadable(
                format!("no nodes to drain: {missing}"),
                Some(match snapshot.source {
                    crate::cluster::snapshot::Source::Files => format!("capture what matters: {}", files::capture_command(Kind::ALL)),
                    crate::cluster::snapshot::Source::Live => {
                        "the right to list nodes is needed: where a replacement lands cannot be told without it".to_owned()
                    }
                }),
            ));
        }
    };
    if let Some(selector) = &args.selector {
        let chosen: Vec<String> = nodes
            .iter()
            .filter(|node| selectors::matches(selector, &node.metadata.labels))
            .map(|node| node.metadata.name.clone())
            .collect();
        if chosen.is_empty() {
            return Err(Failure::usage(
                "the selector matches no node",
                Some("see the labels: kubectl get nodes --show-labels".to_owned()),
            ));
        }
        return Ok(chosen);
    }
    let mut chosen: Vec<String> = Vec::new();
    for name in names(args) {
        if snapshot.nodes.find("", &name).is_none() {
            if nodes.is_empty() {
                return Err(Failure::unreadable(
                    format!("there is no node {name}: there are no nodes at all"),
                    None,
                ));
            }
            let hint = match closest(&name, nodes.iter().map(|node| node.metadata.name.as_str())) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!(
                    "there are: {}",
                    crate::checks::listed(&nodes.iter().map(|node| node.metadata.name.clone()).collect::<Vec<_>>())
                ),
            };
            return Err(Failure::usage(format!("there is no node {name}"), Some(hint)));
        }
        if !chosen.contains(&name) {
            chosen.push(name);
        }
    }
    Ok(chosen)
}

/// The names given, without `node/`.
fn names(args: &DrainPreflightArgs) -> Vec<String> {
    args.nodes
        .iter()
        .map(|name| {
            ["node/", "nodes/", "no/"]
                .iter()
                .find_map(|prefix| name.strip_prefix(prefix))
                .unwrap_or(name)
                .to_owned()
        })
        .collect()
}

/// Reads from the API server what the question needs, and no more.
async fn live(args: &DrainPreflightArgs, flags: &ConnectionFlags, drain: &DrainFlags) -> Result<(Snapshot, Vec<String>), Failure> {
    let connection = Connection::open(flags, &Environment::of_process()).await?;
    let reader = Reader::new(connection, flags.verbose);
    let mut snapshot = reader.begin().await?;
    let mut first = vec![
        (Kind::Node, Scope::Cluster),
        (Kind::Namespace, Scope::Cluster),
        (Kind::MutatingWebhookConfiguration, Scope::Cluster),
        (Kind::ValidatingWebhookConfiguration, Scope::Cluster),
        (Kind::ApiService, Scope::Cluster),
        (Kind::CustomResourceDefinition, Scope::Cluster),
        (Kind::Deployment, Scope::Cluster),
    ];
    first.extend(names(args).into_iter().map(|node| (Kind::Pod, Scope::Node(node))));
    reader.read(&first, &mut snapshot).await?;
    let nodes = named(args, &snapshot)?;
    if args.selector.is_some() {
        let pods: Vec<_> = nodes.iter().map(|node| (Kind::Pod, Scope::Node(node.clone()))).collect();
        reader.read(&pods, &mut snapshot).await?;
    }
    let removed = removed_namespaces(&snapshot, &nodes, drain);
    if snapshot.deployments.all().is_err() {
        let namespace = flags.namespace.clone().unwrap_or_else(|| USUAL_NAMESPACE.to_owned());
        eprintln!("note: not allowed to look for GPUStack everywhere, so only in namespace {namespace}");
        reader
            .read(&[(Kind::Deployment, Scope::Namespace(namespace))], &mut snapshot)
            .await?;
    }
    read_namespaced(&reader, &mut snapshot, &nodes, drain, removed).await?;
    Ok((snapshot, nodes))
}

/// Namespaces of the pods that the drain removes.
fn removed_namespaces(snapshot: &Snapshot, nodes: &[String], flags: &DrainFlags) -> BTreeSet<String> {
    let mut namespaces = BTreeSet::new();
    for node in nodes {
        for pod in snapshot.pods.on_node(node).into_iter().flatten() {
            // A pod whose DaemonSet was not read yet may be removed.
            if matches!(
                drain::filter(snapshot, pod, flags, snapshot.observed_at),
                Filtered::Remove | Filtered::Unknown(_)
            ) {
                namespaces.insert(pod.metadata.namespace.clone());
            }
        }
    }
    namespaces
}

/// Namespaces of the Services that the API server calls.
fn called_namespaces(snapshot: &Snapshot) -> BTreeSet<String> {
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

async fn read_namespaced(
    reader: &Reader,
    snapshot: &mut Snapshot,
    nodes: &[String],
    flags: &DrainFlags,
    removed: BTreeSet<String>,
) -> Result<(), Failure> {
    // DaemonSets tell which pods stay.
    let daemons: BTreeSet<String> = nodes
        .iter()
        .flat_map(|node| snapshot.pods.on_node(node).into_iter().flatten())
        .filter(|pod| pod.metadata.controller().is_some_and(|owner| owner.kind == "DaemonSet"))
        .map(|pod| pod.metadata.namespace.clone())
        .collect();
    parts(reader, snapshot, &[Kind::DaemonSet], &daemons).await?;
    let removed: BTreeSet<String> = if daemons.is_empty() {
        removed
    } else {
        removed_namespaces(snapshot, nodes, flags)
    };
    if removed.is_empty() {
        return Ok(());
    }
    let mut release = called_namespaces(snapshot);
    release.extend(removed.iter().cloned());
    parts(
        reader,
        snapshot,
        &[
            Kind::ReplicaSet,
            Kind::ReplicationController,
            Kind::StatefulSet,
            Kind::Job,
            Kind::PodDisruptionBudget,
            Kind::ResourceQuota,
            Kind::LimitRange,
            Kind::Lease,
        ],
        &removed,
    )
    .await?;
    read_for_creation(reader, snapshot, nodes, &removed).await?;
    parts(reader, snapshot, &[Kind::Service, Kind::EndpointSlice], &release).await?;
    // Where a replacement lands hangs on the pods of every node.
    reader.read(&[(Kind::Pod, Scope::Cluster)], snapshot).await?;
    if snapshot.pods.all().is_err() {
        parts(reader, snapshot, &[Kind::Pod], &release).await?;
    }
    read_storage(reader, snapshot, nodes, flags).await
}

/// Reads what the volumes and dynamic resource claims of the evicted pods hang on, if they have any.
async fn read_storage(reader: &Reader, snapshot: &mut Snapshot, nodes: &[String], flags: &DrainFlags) -> Result<(), Failure> {
    let (mut claims, mut devices, mut disks, mut made) = (BTreeSet::new(), BTreeSet::new(), false, false);
    for pod in nodes.iter().flat_map(|node| snapshot.pods.on_node(node).into_iter().flatten()) {
        if matches!(drain::filter(snapshot, pod, flags, snapshot.observed_at), Filtered::Keep(_)) {
            continue;
        }
        let owner = workloads::owner(snapshot, pod);
        let namespace = &pod.metadata.namespace;
        if matches!(owner, Owner::StatefulSet(set) if !set.spec.volume_claim_templates.is_empty()) {
            claims.insert(namespace.clone());
        }
        for spec in [&pod.spec].into_iter().chain(owner.template().map(|template| &template.spec)) {
            for volume in &spec.volumes {
                if volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some() {
                    claims.insert(namespace.clone());
                }
                made |= volume.ephemeral.is_some();
                disks |= volume.aws_elastic_block_store.is_some()
                    || volume.gce_persistent_disk.is_some()
                    || volume.azure_disk.is_some()
                    || volume.cinder.is_some()
                    || volume.portworx_volume.is_some();
            }
            if !spec.resource_claims.is_empty() {
                devices.insert(namespace.clone());
            }
        }
    }
    if !devices.is_empty() {
        parts(reader, snapshot, &[Kind::ResourceClaim], &devices).await?;
        reader.read(&[(Kind::DeviceClass, Scope::Cluster)], snapshot).await?;
    }
    if !claims.is_empty() {
        parts(reader, snapshot, &[Kind::PersistentVolumeClaim], &claims).await?;
        reader.read(&[(Kind::PersistentVolume, Scope::Cluster)], snapshot).await?;
        made |= claims.iter().any(|namespace| match snapshot.claims.in_namespace(namespace) {
            Ok(claims) => claims.iter().any(|claim| claim.spec.volume_name.is_empty()),
            Err(_) => true,
        });
        disks |= snapshot
            .volumes
            .all()
            .map_or(true, |volumes| volumes.iter().any(|volume| scheduling::driver(volume).is_some()));
    }
    if claims.is_empty() && !disks {
        return Ok(());
    }
    // A claim that is made anew has a class too, and one that is missing is made by its StatefulSet.
    let statefully = claims.iter().any(|namespace| {
        let sets = snapshot.stateful_sets.in_namespace(namespace);
        sets.is_ok_and(|sets| sets.iter().any(|set| !set.spec.volume_claim_templates.is_empty()))
    });
    let mut wanted = Vec::new();
    if made || statefully {
        wanted.push((Kind::StorageClass, Scope::Cluster));
    }
    if made || statefully || disks {
        wanted.extend([
            (Kind::CsiNode, Scope::Cluster),
            (Kind::CsiDriver, Scope::Cluster),
            (Kind::VolumeAttachment, Scope::Cluster),
        ]);
    }
    reader.read(&wanted, snapshot).await?;
    let mut drivers = snapshot.csi_nodes.seen().iter().flat_map(|node| &node.spec.drivers);
    if drivers.any(|driver| driver.allocatable.count.is_some()) {
        // A node's limit counts the volumes of all its pods, whatever their namespace.
        reader.read(&[(Kind::PersistentVolumeClaim, Scope::Cluster)], snapshot).await?;
        reader
            .read(
                &[(Kind::PersistentVolume, Scope::Cluster), (Kind::StorageClass, Scope::Cluster)],
                snapshot,
            )
            .await?;
    }
    Ok(())
}

/// Reads what decides whether new pods are created, as far as the pods of the nodes name it.
async fn read_for_creation(reader: &Reader, snapshot: &mut Snapshot, nodes: &[String], removed: &BTreeSet<String>) -> Result<(), Failure> {
    let named = |name: &Option<String>| name.as_deref().is_some_and(|name| !name.is_empty());
    let (mut accounts, mut priorities, mut runtimes) = (BTreeSet::new(), false, false);
    let pods = nodes.iter().flat_map(|node| snapshot.pods.on_node(node).into_iter().flatten());
    for pod in pods.filter(|pod| removed.contains(&pod.metadata.namespace)) {
        // The template can name another account or class than the pod, as in a rollout.
        let owner = workloads::owner(snapshot, pod);
        for spec in std::iter::once(&pod.spec).chain(owner.template().map(|template| &template.spec)) {
            if spec.service_account_name.as_deref().is_some_and(creation::named_account) {
                accounts.insert(pod.metadata.namespace.clone());
            }
            priorities |= named(&spec.priority_class_name);
            runtimes |= named(&spec.runtime_class_name);
        }
    }
    parts(reader, snapshot, &[Kind::ServiceAccount], &accounts).await?;
    let policies = creation::has_policies(snapshot);
    let wanted: Vec<(Kind, Scope)> = [
        (Kind::PriorityClass, priorities),
        (Kind::RuntimeClass, runtimes),
        (Kind::ValidatingAdmissionPolicy, policies),
        (Kind::ValidatingAdmissionPolicyBinding, policies),
    ]
    .into_iter()
    .filter(|(_, wanted)| *wanted)
    .map(|(kind, _)| (kind, Scope::Cluster))
    .collect();
    reader.read(&wanted, snapshot).await?;
    Ok(())
}

/// Reads kinds of some namespaces: each, or the whole cluster where that is less and allowed.
async fn parts(reader: &Reader, snapshot: &mut Snapshot, kinds: &[Kind], namespaces: &BTreeSet<String>) -> Result<(), Failure> {
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

#[cfg(test)]
mod tests {

    use super::choose;

    #[test]
    fn asks_until_the_answer_is_a_number_of_the_list() {
        let items = ["--release a -n one".to_owned(), "--release b\u{1b}[2J -n two".to_owned()];
        let ask = |answers: &str| {
            let mut questions = Vec::new();
            let chosen = choose(&items, &mut answers.as_bytes(), &mut questions);
            (chosen, String::from_utf8(questions).unwrap())
        };
        let (chosen, questions) = ask("0\nb\n3\n 2 \n");
        assert_eq!(chosen, Some(1));
        assert_eq!(questions.matches("Which (1 to 2)?").count(), 4);
        assert!(
            questions.contains("  1  --release a -n one\n") && !questions.contains('\u{1b}'),
            "{questions}"
        );
        assert_eq!(ask("1\n").0, Some(0));
        assert_eq!(ask("").0, None);
    }
}
