//! Sums over a pod's containers, as quotas and limit ranges take them
//! (`k8s.io/component-helpers/resource/helpers.go`, PodRequests, PodLimits).

use std::collections::BTreeMap;

use crate::cluster::objects::{PodSpec, ResourceList, ResourceRequirements};
use crate::kubernetes::quantity::{Quantity, QuantityError};

/// Exact amounts by resource.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// A list, read.
pub(super) fn read(list: &ResourceList) -> Result<Amounts, QuantityError> {
    list.iter().map(|(name, text)| Ok((name.clone(), text.try_into()?))).collect()
}

/// Combines amounts into a sum.
fn merge(into: &mut Amounts, other: &Amounts, combine: impl Fn(Quantity, Quantity) -> Quantity) {
    for (name, amount) in other {
        let entry = into.entry(name.clone()).or_default();
        *entry = combine(*entry, *amount);
    }
}

/// The sum of the containers and restartable init containers, or the largest init container with the restartable ones
/// before it; amounts stated for the whole pod replace it.
fn sum(spec: &PodSpec, part: impl Fn(&ResourceRequirements) -> &ResourceList) -> Result<Amounts, QuantityError> {
    let mut total = Amounts::new();
    for container in &spec.containers {
        merge(&mut total, &read(part(&container.resources))?, Quantity::plus);
    }
    let (mut sidecars, mut largest) = (Amounts::new(), Amounts::new());
    for container in &spec.init_containers {
        let mut amounts = read(part(&container.resources))?;
        if container.restartable() {
            merge(&mut total, &amounts, Quantity::plus);
            merge(&mut sidecars, &amounts, Quantity::plus);
        } else {
            merge(&mut amounts, &sidecars, Quantity::plus);
            merge(&mut largest, &amounts, Quantity::max);
        }
    }
    merge(&mut total, &largest, Quantity::max);
    total.extend(read(part(&spec.resources))?);
    Ok(total)
}

/// Requests of a pod; with the overhead of its runtime class, if wanted.
pub(super) fn requests(spec: &PodSpec, overhead: bool) -> Result<Amounts, QuantityError> {
    let mut total = sum(spec, |resources| &resources.requests)?;
    if overhead {
        merge(&mut total, &read(&spec.overhead)?, Quantity::plus);
    }
    Ok(total)
}

/// Limits of a pod; with the overhead of its runtime class where there is a limit, if wanted.
pub(super) fn limits(spec: &PodSpec, overhead: bool) -> Result<Amounts, QuantityError> {
    let mut total = sum(spec, |resources| &resources.limits)?;
    if overhead {
        let mut fixed = read(&spec.overhead)?;
        fixed.retain(|name, _| total.get(name).is_some_and(|limit| *limit > Quantity::default()));
        merge(&mut total, &fixed, Quantity::plus);
    }
    Ok(total)
}
