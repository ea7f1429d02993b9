//! What stops being answered: `webhook-unserved`, `webhook-deadlock`, `webhook-blocks-eviction`, `apiservice-unserved`,
//! `conversion-webhook-unserved`, `service-unserved`.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::objects::Webhook;
use crate::gpustack::install::{is_kueue_or_worker_service, is_worker_configuration};
use crate::kubernetes::admission;
use crate::report::document::{ServedKind, UnservedRow, Until};
use crate::report::finding::{Certainty, Finding, Remedy, Severity};
use crate::simulation::state::{Old, Progress, State};
use crate::simulation::trace::{Paths, Trace};

use super::codes::Code;
use super::{Context, count, finding, graded, listed, object, scalable};

/// How something stops being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Until when, on the worst path.
    pub until: Until,
    /// On how many paths there is a moment without an answer.
    pub gap: Paths,
    /// On how many paths it is not served again by a replacement that certainly runs off the drained nodes.
    pub lasting: Paths,
    /// Whether it refuses what would serve it again.
    pub deadlock: bool,
    /// Whether `until` holds on every path.
    pub same: bool,
}

/// How the drain takes something served; `None` where it stays served, or that cannot be told.
pub fn loss(trace: &Trace<'_>, served: usize) -> Option<Loss> {
    let entry = &trace.cast.served[served];
    if entry.unknown.is_some() {
        return None;
    }
    if entry.broken.is_some() || entry.before() == 0 {
        return Some(Loss {
            until: Until::Already,
            gap: Paths::All,
            lasting: Paths::None,
            deadlock: false,
            same: true,
        });
    }
    let gone = |end: &State<'_>, possible: bool| {
        let low = end.served_lows[served];
        (if possible { low.possible } else { low.certain }) == 0
    };
    if trace.paths(|end| gone(end, true)) == Paths::None {
        return None;
    }
    let certain = trace.paths(|end| gone(end, false)) == Paths::All;
    let untils: BTreeSet<Until> = trace
        .ends
        .iter()
        .filter(|end| gone(end, true))
        .map(|end| until(trace, end, served))
        .collect();
    // Whether one that is back on a drained node stays is not sure.
    let lasting = match (
        trace.paths(|end| gone(end, false) && end.endpoints(&trace.cast, served, false) == 0),
        trace.paths(|end| gone(end, false) && sure_endpoints(trace, end, served) == 0),
    ) {
        (Paths::All, _) => Paths::All,
        (_, Paths::None) => Paths::None,
        _ => Paths::Some,
    };
    let deadlock = trace.ends.iter().any(|end| deadlocked(trace, end, served));
    Some(Loss {
        until: untils.last().copied().unwrap_or(Until::ReplacementReady),
        gap: if certain { Paths::All } else { Paths::Some },
        lasting,
        deadlock,
        same: untils.len() == 1,
    })
}

/// Endpoints at the end that certainly stay: on nodes that are not drained.
fn sure_endpoints(trace: &Trace<'_>, end: &State<'_>, served: usize) -> i64 {
    let returning = end
        .new
        .iter()
        .filter(|new| trace.cast.served[served].sets[new.set] && trace.returns(new) && end.ready(&trace.cast, new))
        .count();
    end.endpoints(&trace.cast, served, false) - count(returning)
}

fn until(trace: &Trace<'_>, end: &State<'_>, served: usize) -> Until {
    if end.endpoints(&trace.cast, served, false) > 0 {
        return Until::ReplacementReady;
    }
    if deadlocked(trace, end, served) {
        return Until::Never;
    }
    let back = end
        .new
        .iter()
        .enumerate()
        .filter(|(_, new)| trace.cast.served[served].sets[new.set] && trace.cast.sets[new.set].becomes_ready)
        .any(|(index, new)| match new.progress {
            Progress::Pending => trace.placeable_after_uncordon(end, index),
            Progress::Gated => true,
            Progress::NotCreated | Progress::Nominated { .. } | Progress::Placed { .. } => false,
        });
    if back { Until::Uncordon } else { Until::Never }
}

/// Whether a replacement that would serve again is refused, directly or through others, by what it would serve.
fn deadlocked(trace: &Trace<'_>, end: &State<'_>, served: usize) -> bool {
    if end.endpoints(&trace.cast, served, false) > 0 {
        return false;
    }
    refusing(trace, end, served)
        .into_iter()
        .any(|other| other == served || refusing(trace, end, other).contains(&served))
}

/// What is called, and down, where a replacement that would serve again is created, bound or reported.
fn refusing(trace: &Trace<'_>, end: &State<'_>, served: usize) -> Vec<usize> {
    let mut found = Vec::new();
    for new in end.new.iter().filter(|new| trace.cast.served[served].sets[new.set]) {
        let set = &trace.cast.sets[new.set];
        let hooks = match new.progress {
            Progress::NotCreated => &set.create_hooks,
            Progress::Pending | Progress::Nominated { .. } => &set.bind_hooks,
            Progress::Placed { .. } if !new.reported => &set.status_hooks,
            Progress::Gated | Progress::Placed { .. } => continue,
        };
        let down = hooks.iter().filter(|(hook, _)| end.down(&trace.cast, *hook));
        found.extend(down.filter_map(|(hook, _)| trace.cast.hooks[*hook].served));
    }
    found
}

/// The severity of a loss by the table: `briefly` for what may not be missing even for a moment.
fn severity(loss: &Loss, briefly: bool) -> (Severity, Certainty) {
    let certainty = loss.gap.certainty().unwrap_or(Certainty::Possible);
    if loss.until == Until::Already {
        return (Severity::Info, Certainty::Certain);
    }
    if briefly {
        return graded(loss.gap, Severity::Unsafe, Severity::AtRisk).unwrap_or((Severity::Info, certainty));
    }
    match (loss.lasting, loss.gap) {
        (Paths::All, _) => (Severity::Unsafe, Certainty::Certain),
        (Paths::Some, _) => (Severity::AtRisk, Certainty::Possible),
        (Paths::None, Paths::All) => (Severity::AtRisk, Certainty::Certain),
        _ => (Severity::Info, Certainty::Possible),
    }
}

fn when(loss: &Loss) -> &'static str {
    match loss.until {
        Until::Already => "already, before the drain",
        Until::ReplacementReady => "until a replacement is Ready",
        Until::Uncordon => "until the uncordon",
        Until::Never => "for ever, unless somebody acts",
    }
}

fn verb(loss: &Loss, several: bool) -> &'static str {
    match (loss.gap, several) {
        (Paths::All, false) => "has",
        (Paths::All, true) => "have",
        _ => "may have",
    }
}

/// Webhooks by what serves them.
fn by_service(context: &Context<'_>) -> BTreeMap<usize, Vec<usize>> {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, hook) in context.trace.cast.hooks.iter().enumerate() {
        if let Some(served) = hook.served {
            groups.entry(served).or_default().push(index);
        }
    }
    groups
}

fn service_name(context: &Context<'_>, served: usize) -> String {
    let entry = &context.trace.cast.served[served];
    if entry.namespace.is_empty() {
        return entry.name.clone();
    }
    format!("{}/{}", entry.namespace, entry.name)
}

/// Whether the Service belongs to the install's Kueue or worker.
fn ours(context: &Context<'_>, served: usize) -> bool {
    let entry = &context.trace.cast.served[served];
    context
        .install
        .is_some_and(|install| is_kueue_or_worker_service(context.snapshot, install, &entry.namespace, &entry.name))
}

fn nodes_of_backends(context: &Context<'_>, served: usize) -> Vec<String> {
    let trace = context.trace;
    let entry = &trace.cast.served[served];
    let mut evidence: Vec<String> = entry
        .candidates
        .iter()
        .map(|candidate| {
            let candidate = &trace.cast.candidates[*candidate];
            format!(
                "endpoint {} on {}, {}",
                candidate.pod.metadata.name,
                trace.cast.node_of(candidate),
                if candidate.victim {
                    "where it may be preempted"
                } else {
                    "which is drained"
                }
            )
        })
        .collect();
    evidence.extend(entry.others.iter().map(|node| {
        if node.is_empty() {
            "another endpoint".to_owned()
        } else {
            format!("another endpoint on {node}")
        }
    }));
    if let Some(why) = &entry.broken {
        evidence.push(why.clone());
    }
    if evidence.is_empty() {
        evidence.push("no ready endpoint".to_owned());
    }
    evidence
}

/// What gives a Service a second endpoint elsewhere.
fn more_replicas(context: &Context<'_>, served: usize) -> Remedy {
    let trace = context.trace;
    let entry = &trace.cast.served[served];
    if entry.namespace.is_empty() {
        return Remedy {
            text: format!(
                "have the webhook called by a Service, or at an address that the drain leaves alone, instead of {}",
                entry.name
            ),
            ..Remedy::default()
        };
    }
    let workload = entry
        .candidates
        .iter()
        .find_map(|candidate| trace.cast.candidates[*candidate].workload)
        .map(|index| &trace.cast.workloads[index])
        .filter(|workload| scalable(&workload.key));
    let Some(workload) = workload else {
        return Remedy {
            text: "see who should answer".to_owned(),
            command: Some(context.kubectl.line([
                "get",
                "endpointslices",
                "-n",
                &entry.namespace,
                "-l",
                &format!("kubernetes.io/service-name={}", entry.name),
            ])),
            values_key: None,
        };
    };
    let replicas = (workload.wanted.unwrap_or(1) + 1).max(2);
    let text = format!("run a replica of {} on another node before the drain", workload.key.name);
    context.scaled(&workload.key, replicas, &text)
}

/// Admission webhooks.
pub fn webhooks(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut found = Vec::new();
    for (served, hooks) in by_service(context) {
        let Some(loss) = loss(trace, served) else { continue };
        let (closed, open): (Vec<usize>, Vec<usize>) = hooks
            .iter()
            .partition(|hook| admission::fails_closed(trace.cast.hooks[**hook].configured.webhook));
        let by_name = || {
            hooks.iter().any(|hook| {
                let hook = &trace.cast.hooks[*hook];
                hook.url.is_some() && is_worker_configuration(&hook.configured.configuration.metadata.name)
            })
        };
        let briefly = !closed.is_empty()
            && (ours(context, served)
                || by_name()
                || closed
                    .iter()
                    .any(|hook| admission::covers_pods(context.snapshot, trace.cast.hooks[*hook].configured.webhook)));
        let (severity, certainty) = if closed.is_empty() {
            (Severity::Info, severity(&loss, false).1)
        } else {
            severity(&loss, briefly)
        };
        let name = service_name(context, served);
        let entry = &trace.cast.served[served];
        let called: Vec<&Webhook> = if closed.is_empty() { &open } else { &closed }
            .iter()
            .map(|hook| trace.cast.hooks[*hook].configured.webhook)
            .collect();
        let blast = admission::blast(context.snapshot, &called);
        let mut configurations: Vec<String> = hooks
            .iter()
            .map(|hook| trace.cast.hooks[*hook].configured.configuration.metadata.name.clone())
            .collect();
        configurations.dedup();
        let mut item = finding(
            Code::WebhookUnserved,
            severity,
            certainty,
            match trace.cast.hooks[hooks[0]].url {
                Some(_) => object(
                    trace.cast.hooks[hooks[0]].configured.kind(),
                    "",
                    &trace.cast.hooks[hooks[0]].configured.configuration.metadata.name,
                ),
                None => object("Service", &entry.namespace, &entry.name),
            },
            format!(
                "the webhooks of {} {} no ready endpoint, {}",
                listed(&configurations),
                verb(&loss, true),
                when(&loss)
            ),
        );
        item.node = entry
            .candidates
            .first()
            .map(|candidate| trace.cast.node_of(&trace.cast.candidates[*candidate]).to_owned());
        item.evidence = nodes_of_backends(context, served);
        item.consequence = if closed.is_empty() {
            "failurePolicy is Ignore: requests wait for the timeout and pass unchecked and unchanged".to_owned()
        } else {
            format!("the API server refuses meanwhile: {}", blast.join("; "))
        };
        item.remedy = more_replicas(context, served);
        let refusing = trace.paths(|end| deadlocked(trace, end, served));
        if let Some((severity, certainty)) = graded(refusing, severity, severity.min(Severity::AtRisk)) {
            let mut deadlock = item.clone();
            (deadlock.severity, deadlock.certainty) = (severity, certainty);
            deadlock.code = Code::WebhookDeadlock;
            deadlock.message = format!("{name} refuses the creation of the very pods that would serve it again");
            found.push(deadlock);
        }
        found.push(item);
    }
    found
}

/// Webhooks that are called for the evictions themselves.
pub fn blocked_evictions(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, candidate) in trace.cast.candidates.iter().enumerate() {
        for (hook, _) in &candidate.eviction_hooks {
            let hook_served = trace.cast.hooks[*hook].served;
            let backs = hook_served.is_some_and(|served| trace.cast.served[served].candidates.contains(&index));
            let lost = hook_served.map_or(trace.cast.hooks[*hook].url.is_none(), |served| loss(trace, served).is_some());
            if lost && !backs {
                groups.entry(*hook).or_default().push(index);
            }
        }
    }
    let mut found = Vec::new();
    for (hook, pods) in groups {
        let (failed, names) = given_up(trace, &pods);
        // Evictions that are sent while the last backend ends may come too late for it.
        let (severity, certainty) = graded(failed, Severity::Unsafe, Severity::AtRisk).unwrap_or((Severity::AtRisk, Certainty::Possible));
        let configured = &trace.cast.hooks[hook].configured;
        let mut item = finding(
            Code::WebhookBlocksEviction,
            severity,
            certainty,
            object(configured.kind(), "", &configured.configuration.metadata.name),
            format!(
                "webhook {} is called for evictions, and {} nobody answers it",
                configured.webhook.name,
                if failed == Paths::None {
                    "once its last backend ends"
                } else {
                    "then"
                }
            ),
        );
        item.node = Some(trace.cast.node_of(&trace.cast.candidates[pods[0]]).to_owned());
        item.evidence = vec![format!("evictions that it is asked about: {}", listed(&names))];
        item.consequence = "kubectl gives these pods up; they stay on the cordoned node".to_owned();
        item.remedy = match trace.cast.hooks[hook].served {
            Some(served) => more_replicas(context, served),
            None => Remedy {
                text: "give the webhook an endpoint".to_owned(),
                ..Remedy::default()
            },
        };
        found.push(item);
    }
    found
}

/// Whether kubectl gives up the eviction of one of the pods, and their names.
fn given_up(trace: &Trace<'_>, pods: &[usize]) -> (Paths, Vec<String>) {
    let failed = trace.paths(|end| pods.iter().any(|pod| matches!(end.old[*pod], Old::Failed(_))));
    let names = pods.iter().map(|pod| trace.cast.candidates[*pod].pod.metadata.name.clone());
    (failed, names.collect())
}

/// Policies that may deny evictions; one finding per namespace.
pub fn denied_evictions(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, candidate) in trace.cast.candidates.iter().enumerate() {
        if candidate.may_be_denied {
            groups.entry(&candidate.pod.metadata.namespace).or_default().push(index);
        }
    }
    let mut found = Vec::new();
    for (namespace, pods) in groups {
        let (failed, names) = given_up(trace, &pods);
        let Some((severity, certainty)) = graded(failed, Severity::Unsafe, Severity::AtRisk) else {
            continue;
        };
        let mut item = finding(
            Code::WebhookBlocksEviction,
            severity,
            certainty,
            object("Namespace", "", namespace),
            format!("a validating admission policy may deny the eviction of {}", listed(&names)),
        );
        item.evidence = vec!["a policy with a binding that denies concerns pods/eviction there".to_owned()];
        item.consequence = "kubectl gives these pods up, and the drain fails".to_owned();
        item.remedy = Remedy {
            text: "read what it says".to_owned(),
            command: Some(context.kubectl.line(["get", "validatingadmissionpolicies", "-o", "yaml"])),
            values_key: None,
        };
        found.push(item);
    }
    found
}

/// Aggregated APIs.
pub fn api_services(context: &Context<'_>) -> Vec<Finding> {
    let apis = context.trace.cast.apis.iter();
    lost_by_service(
        context,
        apis.map(|(api, served)| (*served, api.metadata.name.clone())),
        Code::ApiServiceUnserved,
        ["the aggregated API", "the aggregated APIs"],
        "requests to it get 503, discovery reports errors, and namespaces cannot finish terminating",
    )
}

/// Conversion webhooks.
pub fn conversions(context: &Context<'_>) -> Vec<Finding> {
    let definitions = context.trace.cast.conversions.iter();
    lost_by_service(
        context,
        definitions.map(|(definition, served)| (*served, definition.metadata.name.clone())),
        Code::ConversionWebhookUnserved,
        ["the conversion webhook of", "the conversion webhooks of"],
        "objects stored in another version than the one asked for can be neither read nor written",
    )
}

/// One finding for each Service, with the names of all that it answers for; what these are, for one and for several.
fn lost_by_service(
    context: &Context<'_>,
    named: impl Iterator<Item = (usize, String)>,
    code: Code,
    what: [&str; 2],
    consequence: &str,
) -> Vec<Finding> {
    let mut groups: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (served, name) in named {
        groups.entry(served).or_default().push(name);
    }
    let found = groups.iter().filter_map(|(served, names)| {
        let loss = loss(context.trace, *served)?;
        Some(lost(context, *served, &loss, code, names, what, consequence))
    });
    found.collect()
}

fn lost(context: &Context<'_>, served: usize, loss: &Loss, code: Code, names: &[String], what: [&str; 2], consequence: &str) -> Finding {
    let entry = &context.trace.cast.served[served];
    let (severity, certainty) = severity(loss, ours(context, served));
    let several = names.len() > 1;
    let what = what[usize::from(several)];
    let mut item = finding(
        code,
        severity,
        certainty,
        object("Service", &entry.namespace, &entry.name),
        format!("{what} {} {} no ready endpoint, {}", listed(names), verb(loss, several), when(loss)),
    );
    item.node = entry
        .candidates
        .first()
        .map(|candidate| context.trace.cast.node_of(&context.trace.cast.candidates[*candidate]).to_owned());
    item.evidence = nodes_of_backends(context, served);
    item.consequence = consequence.to_owned();
    item.remedy = more_replicas(context, served);
    item
}

/// Plain Services: information only.
pub fn services(context: &Context<'_>) -> Vec<Finding> {
    let trace = context.trace;
    let mut found = Vec::new();
    for served in trace.cast.plain_services.iter().copied() {
        let Some(loss) = loss(trace, served).filter(|loss| loss.until != Until::Already) else {
            continue;
        };
        let entry = &trace.cast.served[served];
        let mut item = finding(
            Code::ServiceUnserved,
            Severity::Info,
            loss.gap.certainty().unwrap_or(Certainty::Possible),
            object("Service", &entry.namespace, &entry.name),
            format!("Service {} {} no ready endpoint, {}", entry.name, verb(&loss, false), when(&loss)),
        );
        item.evidence = nodes_of_backends(context, served);
        item.consequence = "connections to it are refused meanwhile".to_owned();
        item.remedy = more_replicas(context, served);
        found.push(item);
    }
    found
}

/// The rows of the document: one per webhook configuration, APIService, custom resource and Service.
pub fn rows(context: &Context<'_>) -> Vec<UnservedRow> {
    let trace = context.trace;
    let mut rows = Vec::new();
    let mut push = |what, name: &str, served: usize, blast: Vec<String>| {
        let Some(loss) = loss(trace, served) else { return };
        rows.push(UnservedRow {
            what,
            name: name.to_owned(),
            service: Some(service_name(context, served)).filter(|_| !trace.cast.served[served].namespace.is_empty()),
            until: loss.until,
            deadlock: loss.deadlock,
            certainty: loss.gap.certainty().filter(|_| loss.same).unwrap_or(Certainty::Possible),
            blast,
        });
    };
    let mut configurations: BTreeMap<(String, bool, usize), Vec<&Webhook>> = BTreeMap::new();
    for hook in &trace.cast.hooks {
        if let Some(served) = hook.served {
            let key = (
                hook.configured.configuration.metadata.name.clone(),
                hook.configured.mutating,
                served,
            );
            configurations.entry(key).or_default().push(hook.configured.webhook);
        }
    }
    for ((name, _, served), webhooks) in &configurations {
        push(ServedKind::Webhook, name, *served, admission::blast(context.snapshot, webhooks));
    }
    for (api, served) in &trace.cast.apis {
        push(
            ServedKind::ApiService,
            &api.metadata.name,
            *served,
            vec![format!("all requests to {}/{}", api.spec.group, api.spec.version)],
        );
    }
    for (definition, served) in &trace.cast.conversions {
        push(
            ServedKind::Conversion,
            &definition.metadata.name,
            *served,
            vec![format!("{} in other versions than the stored one", definition.metadata.name)],
        );
    }
    for served in &trace.cast.plain_services {
        if loss(trace, *served).is_some_and(|loss| loss.until != Until::Already) {
            push(
                ServedKind::Service,
                &trace.cast.served[*served].name,
                *served,
                vec!["connections to the Service".to_owned()],
            );
        }
    }
    rows.sort_by(|a, b| (a.what, &a.name, &a.service).cmp(&(b.what, &b.name, &b.service)));
    rows
}
