use std::fmt::Write as _;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: x}\n";

/// Reads a text as one input.
fn load(content: impl AsRef<[u8]>) -> Result<Snapshot, InputError> {
    load_within(content, Limits::DEFAULT)
}

fn load_within(content: impl AsRef<[u8]>, limits: Limits) -> Result<Snapshot, InputError> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("in.yaml");
    fs::write(&path, content).unwrap();
    read_within(&[path], false, limits).map_err(|error| error.of_input("in.yaml"))
}

fn pods(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .pods
        .seen()
        .iter()
        .map(|pod| format!("{}/{}", pod.metadata.namespace, pod.metadata.name))
        .collect()
}

/// The error's text and hint, as a user sees them.
fn fault(content: impl AsRef<[u8]>) -> String {
    let error = load(content).unwrap_err();
    format!("{error}\nhint: {}", error.hint().unwrap_or_default())
}

#[test]
fn yaml_in_every_shape() {
    assert_eq!(pods(&load(POD).unwrap()), ["x/a"]);
    let several = format!(
        "# first\n---\n---\n{POD}\n# end\n---\n# nothing\n---\n{}...\n---\nnull\n--- # a node\nkind: Node\napiVersion: v1\n",
        POD.replace("name: a", "name: b")
    );
    let snapshot = load(&several).unwrap();
    assert_eq!(pods(&snapshot), ["x/a", "x/b"]);
    assert_eq!(snapshot.nodes.seen().len(), 1);
    assert_eq!(pods(&load(several.replace('\n', "\r\n")).unwrap()), ["x/a", "x/b"]);
    assert_eq!(pods(&load(format!("\u{feff}{POD}")).unwrap()), ["x/a"]);
    assert_eq!(pods(&load(format!("%YAML 1.2\n---\n{POD}")).unwrap()), ["x/a"]);
    let list = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a, namespace: x}\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: v1\n    kind: PodList\n    items:\n    - metadata: {name: b, namespace: x}\n- {apiVersion: v1, kind: ConfigMap}\nkind: List\nmetadata: {resourceVersion: \"\"}\n";
    assert_eq!(pods(&load(list).unwrap()), ["x/a", "x/b"]);
    let typed = "items:\n- metadata: {name: b}\n- metadata: {name: a}\nkind: PodList\napiVersion: v1\n";
    assert_eq!(pods(&load(typed).unwrap()), ["default/a", "default/b"]);
    assert_eq!(
        pods(&load("{apiVersion: v1, kind: Pod, metadata: {name: flow, namespace: x}}").unwrap()),
        ["x/flow"]
    );
}

#[test]
fn json_in_every_shape() {
    let pod = |name: &str| format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"x\"}}]"}}}}"#);
    // Too long to be read again as YAML, should JSON's reader fail.
    let names = |text: String| {
        load(text + &" ".repeat(2 << 20))
            .map(|snapshot| snapshot.pods.seen().iter().map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(names(pod("a")).unwrap(), ["a"]);
    assert_eq!(
        names(format!("{}{}\n\n {}\n", pod("a"), pod("b"), pod("c"))).unwrap(),
        ["a", "b", "c"]
    );
    assert_eq!(names(format!("\u{feff}\n{}", pod("a"))).unwrap(), ["a"]);
    assert!(
        load_within(
            format!("\u{feff}{}", pod("a")),
            Limits {
                yaml: 1,
                ..Limits::DEFAULT
            }
        )
        .is_ok()
    );
    assert_eq!(load(format!("{}\n---\n{}", pod("a"), pod("b"))).unwrap().pods.seen().len(), 2);
    for kind in [r#""apiVersion": "v1", "kind": "List","#, ""] {
        let end = if kind.is_empty() {
            r#", "kind": "List", "apiVersion": "v1""#
        } else {
            ""
        };
        assert_eq!(
            names(format!("{{ {kind} \"items\" : [ {} , {} ] {end} }}", pod("a"), pod("b"))).unwrap(),
            ["a", "b"]
        );
    }
    let bare = r#"[{"metadata":{"name":"a","labels":{"n":"19e5"}}},{"metadata":{"name":"b"}}]"#;
    assert_eq!(
        names(format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{}},"items":{bare}}}"#)).unwrap(),
        ["a", "b"]
    );
    assert_eq!(
        names(format!(r#"{{"apiVersion":"v1","items":{bare},"kind":"PodList"}}"#)).unwrap(),
        ["a", "b"]
    );
    let nested = format!(
        r#"{{"apiVersion":"v1","kind":"List","items":[{{"apiVersion":"v1","items":{bare},"kind":"PodList"}},{}]}}"#,
        pod("c")
    );
    assert_eq!(names(nested).unwrap(), ["a", "b", "c"]);
}

#[test]
fn of_an_object_given_twice_the_last_stays() {
    let snapshot = load(format!("{POD}spec: {{nodeName: one}}\n---\n{POD}spec: {{nodeName: two}}\n")).unwrap();
    assert_eq!(snapshot.pods.seen().len(), 1);
    assert_eq!(snapshot.pods.seen()[0].node(), Some("two"));
    let repeated_field = r#"{"kind":"Pod","apiVersion":"v1","spec":{"nodeName":"one","nodeName":"two"}}"#;
    assert_eq!(load(repeated_field).unwrap().pods.seen()[0].node(), Some("two"));
}

#[test]
fn fields_may_be_missing_null_or_unknown() {
    for text in [
        "apiVersion: v1\nkind: Pod\nmetadata:\nspec: null\nstatus: ~\nextra: {a: [1, .5, !!str x]}\n",
        r#"{"apiVersion":"v1","kind":"Pod","metadata":null,"spec":{"tolerations":null,"x":[1e300,-1]},"y":18446744073709551616}"#,
    ] {
        assert_eq!(load(text).unwrap().pods.seen().len(), 1, "{text}");
    }
    let labels = load("apiVersion: v1\nkind: Pod\nmetadata: {labels: {a: \"19e5\", b: \"true\", c: yes, 1: d}}\n").unwrap();
    let labels: Vec<_> = labels.pods.seen()[0]
        .metadata
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    assert_eq!(labels, ["1=d", "a=19e5", "b=true", "c=yes"]);
    // What kubectl prints without quotes, as its YAML library reads it back as text.
    for bare in [
        "inf",
        "nan",
        "NaN",
        "Infinity",
        "_1",
        "1e",
        "e5",
        "1.2.3",
        "6e87543",
        "-6E+87543",
        "0x",
        "0xg",
        "0b2",
        "0o8",
        "1e5e5",
        "y2",
        "1e+",
        "2a",
    ] {
        let snapshot = load(format!(
            "apiVersion: v1\nitems:\n- kind: Pod\n  apiVersion: v1\n  metadata: {{labels: {{a: {bare}}}}}\nkind: List\n"
        ));
        assert_eq!(
            snapshot
                .map(|snapshot| snapshot.pods.seen()[0].metadata.labels["a"].clone())
                .as_deref(),
            Ok(bare)
        );
    }
    for wrong in [".inf", ".nan", "1e5", "017", "true", "[]"] {
        assert!(
            load(format!("apiVersion: v1\nkind: Pod\nmetadata: {{labels: {{a: {wrong}}}}}\n")).is_err(),
            "{wrong}"
        );
    }
    let quantities = load("apiVersion: v1\nkind: Node\nstatus: {allocatable: {cpu: 2, memory: 1Gi, x: 0.5}}\n").unwrap();
    let quantities: Vec<_> = quantities.nodes.seen()[0]
        .status
        .allocatable
        .values()
        .map(|text| text.0.as_str())
        .collect();
    assert_eq!(quantities, ["2", "1Gi", "0.5"]);
}

#[test]
fn pods_of_one_namespace_do_not_tell_what_a_node_has() {
    let node =
        "---\n{apiVersion: v1, kind: Node, metadata: {name: n}, status: {nodeInfo: {containerRuntimeVersion: 'containerd://2.0.1'}}}\n";
    let pod = |namespace: &str| {
        format!("---\n{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: {namespace}}}, spec: {{nodeName: n}}}}\n")
    };
    let elsewhere = "---\n{apiVersion: v1, kind: Service, metadata: {name: s, namespace: kube-system}}\n";
    let on_node = |text: String| load(text).unwrap().pods.on_node("n").map(|pods| pods.count());

    let filtered = format!("{node}{}", pod("app"));
    let missing = on_node(filtered.clone()).unwrap_err();
    assert_eq!(missing.reason, Reason::OneNamespace);
    assert_eq!(missing.to_string(), "the files hold pods of one namespace alone");
    assert_eq!(load(filtered).unwrap().pods.in_namespace("app").unwrap().len(), 1);

    assert_eq!(on_node(format!("{node}{}{}", pod("app"), pod("kube-system"))), Ok(2));
    assert_eq!(on_node(format!("{node}{}{elsewhere}", pod("app"))), Ok(1));
    // Where no kubelet reports, it may be all there is; a typed list says so.
    assert_eq!(
        on_node(format!(
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n}}}}\n{}",
            pod("app")
        )),
        Ok(1)
    );
    assert_eq!(
        on_node(format!("{node}{}---\n{{apiVersion: v1, kind: PodList, items: []}}\n", pod("app"))),
        Ok(1)
    );
}

#[test]
fn what_is_absent_was_not_read() {
    let snapshot = load(format!(
        "{POD}---\napiVersion: v1\nkind: NodeList\nitems: []\n---\napiVersion: apps/v1\nkind: DeploymentList\n"
    ))
    .unwrap();
    assert_eq!(snapshot.pods.all().unwrap().len(), 1);
    assert!(snapshot.nodes.all().unwrap().is_empty());
    let missing = snapshot.deployments.all().unwrap_err();
    assert_eq!(
        missing,
        NotRead {
            kind: Kind::Deployment,
            scope: Scope::Cluster,
            reason: Reason::NotInFiles
        }
    );
    assert_eq!(snapshot.deployments.in_namespace("x").unwrap_err(), missing);
    assert!(!snapshot.complete);

    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.yaml");
    fs::write(&path, POD).unwrap();
    let snapshot = read(&[path], true).unwrap();
    assert!(snapshot.complete && snapshot.deployments.all().unwrap().is_empty());
}

#[test]
fn a_directory_is_read_in_order_and_below() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("a")).unwrap();
    fs::write(path("a/pod.yml"), format!("{POD}spec: {{nodeName: first}}")).unwrap();
    fs::write(
        path("b.json"),
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"x"},"spec":{"nodeName":"second"}}"#,
    )
    .unwrap();
    fs::write(path("c.yaml"), "apiVersion: v1\nkind: ConfigMap\n").unwrap();
    fs::write(path("notes.txt"), "not: {read").unwrap();
    let snapshot = read(&[directory.path().to_owned()], false).unwrap();
    assert_eq!(snapshot.pods.seen()[0].node(), Some("second"));
    let again = read(&[path("b.json"), path("a")], false).unwrap();
    assert_eq!(again.pods.seen()[0].node(), Some("first"));

    fs::remove_file(path("a/pod.yml")).unwrap();
    let error = read(&[path("a")], false).unwrap_err();
    assert!(error.to_string().ends_with("/a: a directory without manifests"), "{error}");
    assert!(error.hint().unwrap().contains(".yml"));
    let error = read(&[path("c.yaml")], false).unwrap_err();
    assert!(
        error.to_string().ends_with("c.yaml: unknown kind: it holds only ConfigMap (1)"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("kubectl get nodes,"));
    let error = read(&[path("none")], false).unwrap_err();
    assert!(error.to_string().ends_with("/none: no such file or directory"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_as_a_stream() {
    use std::os::fd::AsRawFd as _;
    let (reader, mut writer) = io::pipe().unwrap();
    let thread = std::thread::spawn(move || io::Write::write_all(&mut writer, POD.as_bytes()));
    let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    assert_eq!(pods(&read(&[path], false).unwrap()), ["x/a"]);
    thread.join().unwrap().unwrap();
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("secret.yaml");
    fs::write(&path, POD).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        return; // The superuser may read everything.
    }
    assert!(
        read(&[path], false)
            .unwrap_err()
            .to_string()
            .ends_with("secret.yaml: permission denied")
    );
}

#[test]
fn wrong_types_name_object_field_and_place() {
    insta::assert_snapshot!(fault(format!("---\n{POD}---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: b\n  namespace: x\nspec:\n  containers:\n  - name: c\n    ports:\n    - hostPort: http\n")), @r#"
    cannot read in.yaml, line 15, column 17 (document 2): Pod x/b: spec.containers[0].ports[0].hostPort: expected a whole number, found the text "http"
      15 |     - hostPort: http
         |                 ^
    hint: the API server would refuse this object too: correct the field or capture the object again
    "#);
    insta::assert_snapshot!(fault("apiVersion: v1\nkind: Node\nmetadata:\n  name: n\n  labels:\n    example.com/gpu: true\n"), @r#"
    cannot read in.yaml, line 6, column 22: Node n: metadata.labels["example.com/gpu"]: expected text, found true
      6 |     example.com/gpu: true
        |                      ^
    hint: text that looks like a number, true or false needs quotes
    "#);
    insta::assert_snapshot!(fault("apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n  spec: []\n"), @r#"
    cannot read in.yaml, line 6, column 9: Pod b: spec: expected an object, found a list
      6 |   spec: []
        |         ^
    hint: the API server would refuse this object too: correct the field or capture the object again
    "#);
    insta::assert_snapshot!(fault("{\"apiVersion\":\"v1\",\n \"items\": [\n  {\"kind\": \"Pod\", \"apiVersion\": \"v1\"},\n  {\"kind\": \"PodDisruptionBudget\", \"apiVersion\": \"policy/v1\",\n   \"metadata\": {\"name\": \"é\", \"namespace\": \"x\"},\n   \"spec\": {\"minAvailable\": [1]}}], \"kind\": \"List\"}"), @r#"
    cannot read in.yaml, line 6, column 29: PodDisruptionBudget x/é: spec.minAvailable: expected a whole number or text, found a list
      6 |    "spec": {"minAvailable": [1]}}
        |                             ^
    hint: the API server would refuse this object too: correct the field or capture the object again
    "#);
    insta::assert_snapshot!(fault(r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":[]}"#), @r#"
    cannot read in.yaml, line 1, column 64: Pod a: spec: expected an object, found a list
      1 | ind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":[]}
        |                                                             ^
    hint: the API server would refuse this object too: correct the field or capture the object again
    "#);
    insta::assert_snapshot!(fault(r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","ownerReferences":[{"controller":"yes"}]}}"#), @r#"
    cannot read in.yaml, line 1, column 89: Pod a: metadata.ownerReferences[0].controller: expected true or false, found the text "yes"
      1 | v1","metadata":{"name":"a","ownerReferences":[{"controller":"yes"}]}}
        |                                                             ^
    hint: the API server would refuse this object too: correct the field or capture the object again
    "#);
    insta::assert_snapshot!(fault(r#"{"kind":["Pod"],"apiVersion":"v1"}"#), @r#"
    cannot read in.yaml, line 1, column 9: object: kind: expected text, found a list
      1 | {"kind":["Pod"],"apiVersion":"v1"}
        |         ^
    hint: the API server would refuse this object too: correct the field or capture the object again
    "#);
    insta::assert_snapshot!(fault("apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 99999999999999999999}\n"), @r#"
    cannot read in.yaml, line 3, column 18: Deployment: spec.replicas: expected a whole number, found the number 1e+20
      3 | spec: {replicas: 99999999999999999999}
        |                  ^
    hint: the API server would refuse this object too: correct the field or capture the object again
    "#);
    insta::assert_snapshot!(fault("apiVersion: apps/v1\nkind: Deployment\nspec: {selector: {matchExpressions: [{operator: 1}]}}\n"), @r#"
    cannot read in.yaml, line 3, column 49: Deployment: spec.selector.matchExpressions[0].operator: expected text, found the number 1
      3 | spec: {selector: {matchExpressions: [{operator: 1}]}}
        |                                                 ^
    hint: text that looks like a number, true or false needs quotes
    "#);
}

#[test]
fn broken_inputs_say_where_and_why() {
    insta::assert_snapshot!(fault("Error from server (Forbidden): pods is forbidden\n"), @r#"
    cannot read in.yaml, line 1, column 1: no apiVersion and no kind: not a Kubernetes object
      1 | Error from server (Forbidden): pods is forbidden
        | ^
    hint: every document needs apiVersion and kind, as `kubectl get … -o yaml` prints them
    "#);
    insta::assert_snapshot!(fault("just a word\n"), @r#"
    cannot read in.yaml, line 1, column 1: expected a Kubernetes object, found the text "just a word"
      1 | just a word
        | ^
    hint: every document needs apiVersion and kind, as `kubectl get … -o yaml` prints them
    "#);
    insta::assert_snapshot!(fault(format!("{POD}spec:\n\tnodeName: n\n")), @r#"
    cannot read in.yaml, line 5, column 2: not YAML: tabs disallowed within this context (block indentation)
      5 |  nodeName: n
        |  ^
    hint: YAML is indented with spaces: replace the tabs
    "#);
    insta::assert_snapshot!(fault(format!("{POD}spec:\n  tolerations: [{{key: \"a")), @r#"
    cannot read in.yaml, line 5, column 23: not YAML: unclosed quote
      5 |   tolerations: [{key: "a
        |                       ^
    hint: the input may be cut, as it does not end with a line break: capture the objects again
    "#);
    insta::assert_snapshot!(fault(format!("{POD}---\n{POD}---\nkind: Pod\n  apiVersion: v1\n")), @r#"
    cannot read in.yaml, line 10, column 13 (document 3): not YAML: mapping values are not allowed in this context
      10 |   apiVersion: v1
         |             ^
    hint: correct this place, or capture the objects again
    "#);
    insta::assert_snapshot!(fault(format!("{POD}---\nmetadata: {{name: b}}\n")), @r#"
    cannot read in.yaml, line 5, column 1 (document 2): no apiVersion and no kind: not a Kubernetes object
      5 | metadata: {name: b}
        | ^
    hint: every document needs apiVersion and kind, as `kubectl get … -o yaml` prints them
    "#);
    insta::assert_snapshot!(fault(format!("{POD}---\nkind: Pod\nmetadata: {{name: b}}\n")), @r#"
    cannot read in.yaml, line 5, column 1 (document 2): Pod without apiVersion
      5 | kind: Pod
        | ^
    hint: every document needs apiVersion and kind, as `kubectl get … -o yaml` prints them
    "#);
    insta::assert_snapshot!(fault("apiVersion: v1\nkind: List\nitems: {}\n"), @r#"
    cannot read in.yaml, line 3, column 8: expected a list of objects, found an object
      3 | items: {}
        |        ^
    hint: every document needs apiVersion and kind, as `kubectl get … -o yaml` prints them
    "#);
    insta::assert_snapshot!(fault(r#"{"apiVersion": "v1", "kind": "PodList", "items": {"a": []}}"#), @r#"
    cannot read in.yaml, line 1, column 50: PodList: items: expected a list, found an object
      1 | {"apiVersion": "v1", "kind": "PodList", "items": {"a": []}}
        |                                                  ^
    hint: the API server would refuse this object too: correct the field or capture the object again
    "#);
    insta::assert_snapshot!(fault(format!("{POD}---\nkind: List\napiVersion: v1\nitems: [{{kind: NodeList, apiVersion: v1, items: 1}}]")), @r#"
    cannot read in.yaml, line 7, column 49 (document 2): NodeList: items: expected a list, found the number 1
      7 | items: [{kind: NodeList, apiVersion: v1, items: 1}]
        |                                                 ^
    hint: the API server would refuse this object too: correct the field or capture the object again
    "#);
    insta::assert_snapshot!(fault("apiVersion: v1\nkind: List\nitems: []\n"), @r#"
    cannot read in.yaml: no objects: the lists are empty
    hint: capture what matters: `kubectl get nodes,namespaces,pods,deployments,replicasets,replicationcontrollers,statefulsets,daemonsets,jobs,horizontalpodautoscalers.autoscaling,poddisruptionbudgets.policy,services,endpointslices.discovery.k8s.io,mutatingwebhookconfigurations.admissionregistration.k8s.io,validatingwebhookconfigurations.admissionregistration.k8s.io,apiservices.apiregistration.k8s.io,customresourcedefinitions.apiextensions.k8s.io,leases.coordination.k8s.io,persistentvolumeclaims,persistentvolumes,storageclasses.storage.k8s.io,csinodes.storage.k8s.io,csidrivers.storage.k8s.io,volumeattachments.storage.k8s.io,resourcequotas,limitranges,serviceaccounts,priorityclasses.scheduling.k8s.io,runtimeclasses.node.k8s.io,validatingadmissionpolicies.admissionregistration.k8s.io,validatingadmissionpolicybindings.admissionregistration.k8s.io -A -o yaml > cluster.yaml`; if that printed no error, read it with `-f cluster.yaml --complete`
    "#);
    insta::assert_snapshot!(fault("apiVersion: v1\nkind: PodList\nmetadata: {continue: abc}\nitems: []\n"), @r#"
    cannot read in.yaml, line 1, column 1: this PodList is one page of a longer list (metadata.continue is set)
      1 | apiVersion: v1
        | ^
    hint: capture the whole list, without a limit
    "#);
    insta::assert_snapshot!(fault(r#"{"kind":"Status","apiVersion":"v1","status":"Failure"}"#), @r#"
    cannot read in.yaml, line 1, column 1: an API server's error (kind Status) in place of objects
      1 | {"kind":"Status","apiVersion":"v1","status":"Failure"}
        | ^
    hint: capture the objects again
    "#);
    insta::assert_snapshot!(fault(""), @r#"
    cannot read in.yaml: nothing in it
    hint: did the command that wrote it fail?
    "#);
    insta::assert_snapshot!(fault("# only\n---\n"), @r#"
    cannot read in.yaml: nothing in it
    hint: did the command that wrote it fail?
    "#);
    insta::assert_snapshot!(fault(format!("{POD}kind: Node\n")), @r#"
    cannot read in.yaml, line 4, column 1: the field kind is there twice
      4 | kind: Node
        | ^
    hint: correct this place, or capture the objects again
    "#);
    insta::assert_snapshot!(fault(r#"[{"kind":"Pod"}]"#), @r#"
    cannot read in.yaml, line 1, column 1: expected a Kubernetes object, found a list
      1 | [{"kind":"Pod"}]
        | ^
    hint: every document needs apiVersion and kind, as `kubectl get … -o yaml` prints them
    "#);
    insta::assert_snapshot!(fault("{\"apiVersion\": \"v1\", \"items\": [\n  {\"kind\": \"Pod\", \"apiVersion\": \"v1\"},\n  {\"kind\": \"Pod\", \"api"), @r#"
    cannot read in.yaml, line 3, column 23: the input ends in the middle of a value
      3 | {"kind": "Pod", "api
        |                     ^
    hint: the input is cut: capture it again
    "#);
    insta::assert_snapshot!(fault("{\"apiVersion\": \"v1\",\n \"kind\": \"Pod\" \"x\"}\n"), @r#"
    cannot read in.yaml, line 2, column 16: not JSON: expected `,` or `}`
      2 |  "kind": "Pod" "x"}
        |                ^
    hint: correct this place, or capture the objects again
    "#);
    insta::assert_snapshot!(fault("{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n  {\"a\": 1} {\"b\": 2}]}"), @r#"
    cannot read in.yaml, line 2, column 3: no apiVersion and no kind: not a Kubernetes object
      2 | {"a": 1}
        | ^
    hint: every document needs apiVersion and kind, as `kubectl get … -o yaml` prints them
    "#);
    insta::assert_snapshot!(fault("{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n  {\"a\": {\"b\": \"c}},\n {}]}"), @r#"
    cannot read in.yaml, line 2, column 19: not JSON: control character (\u0000-\u001F) found while parsing a string
      2 | {"a": {"b": "c}},
        |                 ^
    hint: correct this place, or capture the objects again
    "#);
    insta::assert_snapshot!(fault("{\"kind\": \"Pod\", \"apiVersion\": \"v1\"}\nError: oh"), @r#"
    cannot read in.yaml, line 2, column 1: expected an object, found `E`
    hint: JSON input is one object after the other, each beginning with {
    "#);
}

#[test]
fn no_list_is_lost_for_how_its_items_are_spelt() {
    let list = r#"{"apiVersion": "v1", "kind": "PodList", "\u0069tems": [{}]}"#;
    assert_eq!(load(list).unwrap().pods.seen().len(), 1);
    // Too long to be read again as YAML.
    let error = load(format!("{list}{}", " ".repeat(2 << 20))).unwrap_err();
    assert_eq!(error.what, "a list whose items were not found");
}

#[test]
fn what_is_no_text() {
    insta::assert_snapshot!(fault(b"\x7fELF\x02\x01\x01\x00\x00\x00\x80"), @r#"
    cannot read in.yaml, line 1, column 8: neither YAML nor JSON: the byte 0x00 is not text in UTF-8
    hint: give manifests as text, such as `kubectl get … -o yaml` prints
    "#);
    insta::assert_snapshot!(fault(b"\xff\xfek\x00i\x00n\x00d\x00"), @r#"
    cannot read in.yaml, line 1, column 1: neither YAML nor JSON: the byte 0xff is not text in UTF-8
    hint: the file is UTF-16, as Windows PowerShell's > writes it: use `| Out-File -Encoding utf8`
    "#);
    insta::assert_snapshot!(fault(b"apiVersion: v1\nkind: \xc3\x28\n"), @r#"
    cannot read in.yaml, line 2, column 7: neither YAML nor JSON: the byte 0xc3 is not text in UTF-8
    hint: give manifests as text, such as `kubectl get … -o yaml` prints
    "#);
    insta::assert_snapshot!(fault(format!("{POD}---\n\0{POD}")), @r#"
    cannot read in.yaml, line 5, column 1: neither YAML nor JSON: the byte 0x00 is not text in UTF-8
    hint: give manifests as text, such as `kubectl get … -o yaml` prints
    "#);
    insta::assert_snapshot!(fault(b"{\"kind\": \"P\xc3\x28\"}"), @r#"
    cannot read in.yaml, line 1, column 12: neither YAML nor JSON: the byte 0xc3 is not text in UTF-8
    hint: give manifests as text, such as `kubectl get … -o yaml` prints
    "#);
    insta::assert_snapshot!(fault("{\"kind\": \"P\0\"}"), @r#"
    cannot read in.yaml, line 1, column 12: not JSON: control character (\u0000-\u001F) found while parsing a string
      1 | {"kind": "P "}
        |            ^
    hint: correct this place, or capture the objects again
    "#);
    insta::assert_snapshot!(fault("kind: Pod\napiVersion: v1\nmetadata: {name: \"\\u001b[31m\", labels: 1}\n"), @r#"
    cannot read in.yaml, line 3, column 40: Pod �[31m: metadata.labels: expected an object, found the number 1
      3 | metadata: {name: "\u001b[31m", labels: 1}
        |                                        ^
    hint: the API server would refuse this object too: correct the field or capture the object again
    "#);
}

#[test]
fn bombs_end_at_once() {
    let mut aliases = "apiVersion: v1\nkind: Pod\nmetadata:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        writeln!(
            aliases,
            "  a{level}: &a{level} [{}]",
            vec![format!("*a{}", level - 1); 9].join(", ")
        )
        .unwrap();
    }
    let error = load(&aliases).unwrap_err().to_string();
    assert!(error.contains("aliases (*) expand"), "{error}");
    for open in ["[", "{\"a\":", "- ", "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[", "? "] {
        let bomb = open.repeat(20_000);
        for text in [
            bomb.clone(),
            format!("apiVersion: v1\nkind: Pod\nspec: {bomb}"),
            format!("{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"spec\":{bomb}"),
        ] {
            assert!(load(&text).is_err());
        }
    }
    // Each anchor is deep by itself and holds the one before.
    let mut deep = "apiVersion: v1\nkind: Pod\nmetadata:\n  a0: &a0 x\n".to_owned();
    for level in 1..60 {
        writeln!(deep, "  a{level}: &a{level} {}*a{}{}", "[".repeat(100), level - 1, "]".repeat(100)).unwrap();
    }
    assert!(load(&deep).unwrap_err().to_string().contains("nested more than 128 deep"));
    assert!(load(deep.replace("\n  a", "\n  ? a").replace("x: &", "x\n  : &")).is_err());
    let closed = format!(
        "{}{}",
        "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[".repeat(50_000),
        "]}".repeat(50_000)
    );
    assert!(load(&closed).unwrap_err().to_string().contains("lists nested more than 8 deep"));
}

#[test]
fn over_the_limits() {
    let limits = Limits {
        yaml: 100,
        json: 200,
        object: 80,
    };
    let pod = |name: &str| format!("{{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"{name}\"}}}}\n");
    let text = |content: String| {
        load_within(content, limits)
            .map(|_| ())
            .map_err(|error| format!("{error}; {}", error.hint().unwrap_or_default()))
    };
    assert_eq!(text(POD.to_owned()), Ok(()));
    insta::assert_snapshot!(text(POD.repeat(2)).unwrap_err(), @r#"cannot read in.yaml: over the limit of 100 bytes for one YAML input; capture it as JSON, which may have 200 bytes: `kubectl get … -o json`"#);
    assert_eq!(text(pod("a").repeat(3)), Ok(()));
    insta::assert_snapshot!(text(pod("a").repeat(4)).unwrap_err(), @r#"cannot read in.yaml: over the limit of 200 bytes for one JSON input; capture fewer kinds at a time: -f may be repeated"#);
    insta::assert_snapshot!(text(pod(&"a".repeat(60))).unwrap_err(), @r#"
    cannot read in.yaml, line 1, column 44: over the limit of 80 bytes for one object
      1 | {"kind":"Pod","apiVersion":"v1","metadata":
        |                                            ^;
    "#);
}

#[test]
fn the_capture_command_names_resources() {
    assert_eq!(
        capture_command(&[Kind::Node, Kind::Deployment, Kind::PodDisruptionBudget]),
        "kubectl get nodes,deployments,poddisruptionbudgets.policy -A -o yaml > cluster.yaml"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is done to an input, it loads or fails, and says so on a line without control characters.
    #[test]
    fn nothing_panics(json in any::<bool>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 0..8), end in any::<prop::sample::Index>()) {
        let text = if json {
            r#"{"apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"é":"\"x"}},"spec":{"containers":[{"ports":[{"hostPort":1}]}]}},
               {"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"b"}}]}],"kind":"List"} {"kind":"Node","apiVersion":"v1"}"#.to_owned()
        } else {
            format!("{POD}spec:\n  containers:\n  - ports: [&a {{hostPort: 1}}, *a]\n---\napiVersion: v1\nitems:\n- kind: Node\n  apiVersion: v1\n  status: {{allocatable: {{cpu: 1}}}}\nkind: List\n---\n# é\n...\n")
        };
        let mut bytes = text.into_bytes();
        for (index, byte, change) in changes {
            if bytes.is_empty() {
                break;
            }
            let index = index.index(bytes.len());
            match change {
                0 => bytes[index] = byte,
                1 => bytes.insert(index, byte),
                2 => { bytes.remove(index); }
                _ => bytes[index] = b"{}[]:,\"'-&*#|>\n\t "[byte as usize % 17],
            }
        }
        if end.index(4) == 0 {
            bytes.truncate(end.index(bytes.len() + 1));
        }
        if let Err(error) = load(&bytes) {
            let text = error.to_string();
            prop_assert!(text.starts_with("cannot read in.yaml"));
            prop_assert!(text.lines().all(|line| !line.chars().any(char::is_control)), "{text:?}");
        }
    }
}
