//! Limit ranges give containers requests and limits, and refuse those out of bounds
//! (`plugin/pkg/admission/limitranger/admission.go`).

use super::Obstacle;
use super::resources::{Amounts, limits, read, requests};
use crate::cluster::objects::{Container, LimitRangeItem, PodSpec, QuantityText, ResourceList};
use crate::cluster::snapshot::Snapshot;
use crate::kubernetes::quantity::{Quantity, QuantityError};

/// Limits and requests that an item gives containers that state none. What it leaves out follows from its bounds, as
/// the API server stores it (`pkg/apis/core/v1/defaults.go`, SetDefaults_LimitRangeItem).
fn given(item: &LimitRangeItem) -> (ResourceList, ResourceList) {
    if item.kind != "Container" {
        return (ResourceList::new(), ResourceList::new());
    }
    let missing = |into: &mut ResourceList, from: &ResourceList| {
        for (name, amount) in from {
            into.entry(name.clone()).or_insert_with(|| amount.clone());
        }
    };
    let (mut limits, mut requests) = (item.default.clone(), item.default_request.clone());
    missing(&mut limits, &item.max);
    missing(&mut requests, &limits);
    missing(&mut requests, &item.min);
    (limits, requests)
}

fn items<'a>(snapshot: &'a Snapshot, namespace: &str) -> impl Iterator<Item = &'a LimitRangeItem> {
    let ranges = snapshot.limit_ranges.in_namespace(namespace).unwrap_or_default();
    ranges.iter().flat_map(|range| &range.spec.limits)
}

/// Gives containers what they do not state.
pub(super) fn add_defaults(snapshot: &Snapshot, namespace: &str, spec: &mut PodSpec) {
    for (limits, requests) in items(snapshot, namespace).map(given) {
        for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut()) {
            let own = &mut *container.resources;
            for (into, from) in [(&mut own.limits, &limits), (&mut own.requests, &requests)] {
                for (name, amount) in from {
                    into.entry(name.clone()).or_insert_with(|| amount.clone());
                }
            }
        }
    }
}

/// What stands against the pod, or may.
pub(super) fn obstacles(snapshot: &Snapshot, namespace: &str, spec: &PodSpec) -> Vec<Obstacle> {
    if let Err(missing) = snapshot.limit_ranges.in_namespace(namespace) {
        return vec![Obstacle::Unread {
            what: format!("whether a limit range of namespace {namespace} refuses replacements"),
            missing,
        }];
    }
    let unknown = |why: String| Obstacle::Undecided {
        what: format!("the limit ranges of namespace {namespace}"),
        why,
    };
    let mut found: Vec<Obstacle> = contradiction(snapshot, namespace).map(unknown).into_iter().collect();
    for item in items(snapshot, namespace) {
        match refusals(item, spec) {
            Ok(refused) => found.extend(refused.into_iter().map(Obstacle::Refused)),
            Err(error) => found.push(unknown(error.to_string())),
        }
    }
    found
}

/// Two ranges that give different amounts: which one comes first is chance.
fn contradiction(snapshot: &Snapshot, namespace: &str) -> Option<String> {
    let mut all: [ResourceList; 2] = Default::default();
    for (limits, requests) in items(snapshot, namespace).map(given) {
        for (known, given) in all.iter_mut().zip([limits, requests]) {
            for (name, amount) in given {
                let first = known.entry(name.clone()).or_insert_with(|| amount.clone());
                if quantity(first) != quantity(&amount) {
                    return Some(format!("two of them give containers a different {name}"));
                }
            }
        }
    }
    None
}

fn quantity(text: &QuantityText) -> Option<Quantity> {
    text.try_into().ok()
}

/// Bounds of an item that the pod is out of.
fn refusals(item: &LimitRangeItem, spec: &PodSpec) -> Result<Vec<String>, QuantityError> {
    let mut refused = Vec::new();
    match item.kind.as_str() {
        "Container" => {
            for Container { resources, .. } in spec.containers.iter().chain(&spec.init_containers) {
                bounds(item, &read(&resources.requests)?, &read(&resources.limits)?, &mut refused)?;
            }
        }
        "Pod" => bounds(item, &requests(spec, false)?, &limits(spec, false)?, &mut refused)?,
        _ => {}
    }
    refused.dedup();
    Ok(refused)
}

fn bounds(item: &LimitRangeItem, requests: &Amounts, limits: &Amounts, refused: &mut Vec<String>) -> Result<(), QuantityError> {
    let kind = &item.kind;
    for (name, text) in &item.min {
        let (bound, least) = (format!("minimum {name} usage per {kind} is {}", text.0), Quantity::try_from(text)?);
        match (requests.get(name), limits.get(name)) {
            (None, _) => refused.push(format!("{bound}.  No request is specified")),
            (Some(request), _) if *request < least => refused.push(format!("{bound}, but request is {request}")),
            (_, Some(limit)) if *limit < least => refused.push(format!("{bound}, but limit is {limit}")),
            _ => {}
        }
    }
    for (name, text) in &item.max {
        let (bound, most) = (format!("maximum {name} usage per {kind} is {}", text.0), Quantity::try_from(text)?);
        match (requests.get(name), limits.get(name)) {
            (_, None) => refused.push(format!("{bound}.  No limit is specified")),
            (_, Some(limit)) if *limit > most => refused.push(format!("{bound}, but limit is {limit}")),
            (Some(request), _) if *request > most => refused.push(format!("{bound}, but request is {request}")),
            _ => {}
        }
    }
    for (name, text) in &item.max_limit_request_ratio {
        let bound = format!("{name} max limit to request ratio per {kind} is {}", text.0);
        let most = Quantity::try_from(text)?.milli() as f64 / 1000.0;
        let positive = |amounts: &Amounts| amounts.get(name).map(|amount| amount.milli()).filter(|amount| *amount != 0);
        match (positive(requests), positive(limits)) {
            (None, _) => refused.push(format!("{bound}, but no request is specified or request is 0")),
            (_, None) => refused.push(format!("{bound}, but no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                let ratio = limit as f64 / request as f64;
                if ratio > most {
                    refused.push(format!("{bound}, but provided ratio is {ratio:.6}"));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{against, spec};
    use crate::cluster::kinds::Kind;
    use crate::kubernetes::creation::admitted;
    use crate::kubernetes::testing::{snapshot, without};

    fn range(name: &str, items: &str) -> String {
        format!("{{apiVersion: v1, kind: LimitRange, metadata: {{name: {name}, namespace: app}}, spec: {{limits: [{items}]}}}}")
    }

    fn container(resources: &str) -> String {
        format!("containers: [{{name: main, resources: {{{resources}}}}}]")
    }

    #[test]
    fn defaults_are_given_and_follow_from_bounds() {
        for (item, requests, limits) in [
            ("default: {cpu: 2}, defaultRequest: {cpu: 1}", "1", "2"),
            ("default: {cpu: 2}", "2", "2"),
            ("max: {cpu: 3}", "3", "3"),
            ("min: {cpu: 1}", "1", ""),
        ] {
            let read = snapshot(&range("a", &format!("{{type: Container, {item}}}")));
            let made = admitted(&read, "app", &spec(&container("")));
            let own = &made.containers[0].resources;
            let text = |list: &super::ResourceList| list.get("cpu").map_or(String::new(), |amount| amount.0.clone());
            assert_eq!(
                (text(&own.requests).as_str(), text(&own.limits).as_str()),
                (requests, limits),
                "{item}"
            );
        }
    }

    #[test]
    fn what_is_stated_stays_and_a_request_follows_its_own_limit() {
        let read = snapshot(&range("a", "{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 1}}"));
        let made = admitted(&read, "app", &spec(&container("limits: {cpu: 500m}")));
        assert_eq!(made.containers[0].resources.requests["cpu"].0, "500m");
    }

    #[test]
    fn bounds_refuse_in_the_words_of_the_api_server() {
        for (item, resources, words) in [
            (
                "type: Container, min: {cpu: 100m}",
                "requests: {cpu: 50m}",
                "minimum cpu usage per Container is 100m, but request is 50m",
            ),
            (
                "type: Container, min: {cpu: 100m}",
                "requests: {cpu: 100m}, limits: {cpu: 50m}",
                "minimum cpu usage per Container is 100m, but limit is 50m",
            ),
            (
                "type: Container, max: {cpu: 1}",
                "requests: {cpu: 2}, limits: {cpu: 1}",
                "maximum cpu usage per Container is 1, but request is 2",
            ),
            (
                "type: Container, max: {memory: 1Gi}",
                "limits: {memory: 2Gi}",
                "maximum memory usage per Container is 1Gi, but limit is 2Gi",
            ),
            (
                "type: Pod, max: {cpu: 1}",
                "",
                "maximum cpu usage per Pod is 1.  No limit is specified",
            ),
            (
                "type: Pod, min: {cpu: 1}",
                "",
                "minimum cpu usage per Pod is 1.  No request is specified",
            ),
            (
                "type: Container, maxLimitRequestRatio: {cpu: 2}",
                "requests: {cpu: 1}, limits: {cpu: 3}",
                "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
            ),
        ] {
            let read = snapshot(&range("a", &format!("{{{item}}}")));
            assert_eq!(against(&read, &container(resources)), [words]);
        }
        let fine = snapshot(&range(
            "a",
            "{type: Container, min: {cpu: 100m}, max: {cpu: 1}, maxLimitRequestRatio: {cpu: 2}}",
        ));
        assert!(against(&fine, &container("requests: {cpu: 500m}, limits: {cpu: 1}")).is_empty());
        assert!(against(&fine, &container("requests: {cpu: 100m}, limits: {cpu: 100m}")).is_empty());
        let claims = snapshot(&range("a", "{type: PersistentVolumeClaim, max: {storage: 1Gi}}"));
        assert!(against(&claims, &container("")).is_empty());
    }

    #[test]
    fn what_cannot_be_told() {
        assert_eq!(against(&without(&[Kind::LimitRange], ""), ""), ["limitranges"]);
        let two = |amount: &str| {
            let one = range("a", "{type: Container, default: {cpu: 1}}");
            let other = range("b", &format!("{{type: Container, default: {{cpu: {amount}}}}}"));
            against(&snapshot(&format!("{one}\n---\n{other}")), &container(""))
        };
        assert!(two("1000m").is_empty());
        assert_eq!(two("2"), ["not known: two of them give containers a different cpu"]);
        let odd = snapshot(&range("a", "{type: Pod, max: {cpu: lots}}"));
        assert_eq!(
            against(&odd, &container("limits: {cpu: 1}")),
            ["not known: `lots` is not a resource quantity"]
        );
    }
}
