//! What the rules take on a cluster of 5,000 nodes: `cargo bench --bench rules`.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use divan::{Bencher, black_box};
use gpustack_ha::cluster::kinds::{Kind, Listings};
use gpustack_ha::cluster::snapshot::{Scope, Snapshot};
use gpustack_ha::kubernetes::drain::DrainFlags;
use gpustack_ha::kubernetes::scheduling::{Incoming, Placement, decide};
use gpustack_ha::simulation::assume::Assume;
use gpustack_ha::simulation::cast::Props;
use gpustack_ha::simulation::trace;
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// Nodes in three zones, with 30 pods on the first one that are kept apart by the host name.
fn cluster(nodes: usize) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for kind in Kind::ALL {
        snapshot.objects.cover(*kind, Scope::Cluster, Ok(()));
    }
    let mut add = |kind: Kind, object: Value| snapshot.objects.insert(kind, object).unwrap();
    for index in 0..nodes {
        let name = format!("node-{index:04}");
        add(
            Kind::Node,
            json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("z{}", index % 3)}},
                "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]},
            }),
        );
    }
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec("")});
    add(
        Kind::ReplicaSet,
        json!({"metadata": {"name": "web", "namespace": "app"}, "spec": {"replicas": 30, "template": template}}),
    );
    for index in 0..30 {
        add(Kind::Pod, pod(index, "node-0000"));
    }
    snapshot.objects.settle();
    snapshot
}

fn spec(node: &str) -> Value {
    json!({
        "nodeName": node,
        "containers": [{"name": "web", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}],
        "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}}],
    })
}

fn pod(index: usize, node: &str) -> Value {
    json!({
        "metadata": {
            "name": format!("web-{index}"), "namespace": "app", "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": true}],
        },
        "spec": spec(node),
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// A drain of 30 pods played to its end.
#[divan::bench(args = [500, 5000], sample_count = 10)]
fn fixpoint(bencher: Bencher<'_, '_>, nodes: usize) {
    let snapshot = cluster(nodes);
    let drained = ["node-0000".to_owned()];
    let before = Placement::new(&snapshot);
    bencher.bench_local(|| {
        let props = Props::new(&snapshot, &drained, &BTreeSet::new());
        trace::play(&before, &props, &drained, &DrainFlags::default(), Assume::default()).states
    });
}

/// Where one pod with a hard spread may land.
#[divan::bench(args = [500, 5000])]
fn spread(bencher: Bencher<'_, '_>, nodes: usize) {
    let snapshot = cluster(nodes);
    let placement = Placement::new(&snapshot);
    let set = &snapshot.replica_sets.seen()[0];
    let incoming = Incoming {
        namespace: "app",
        labels: &set.spec.template.metadata.labels,
        spec: &set.spec.template.spec,
    };
    bencher.bench_local(|| decide(black_box(&placement), &incoming).len());
}

/// 1,000 pods from JSON text, each as an API server sends it.
#[divan::bench]
fn decoding(bencher: Bencher<'_, '_>) {
    let texts: Vec<String> = (0..1000).map(|index| pod(index, &format!("node-{index}")).to_string()).collect();
    bencher
        .counter(divan::counter::BytesCount::new(texts.iter().map(String::len).sum::<usize>()))
        .bench_local(|| {
            let mut listings = Listings::default();
            for text in &texts {
                listings.insert_first(Kind::Pod, text.as_bytes()).unwrap();
            }
            listings
        });
}
