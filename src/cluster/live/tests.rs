use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use http::Response;
use kube::Client;

use super::decode::STEP;
use super::*;
use crate::cluster::connect::Credential;

/// An answer: status, headers, body.
type Answer = (u16, Vec<(&'static str, &'static str)>, String);

fn json(body: impl Into<String>) -> Answer {
    (200, vec![("content-type", "application/json")], body.into())
}

fn status(code: u16, message: &str) -> Answer {
    let body = format!(r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"{message}","code":{code}}}"#);
    (code, vec![("content-type", "application/json")], body)
}

fn pods(names: &[&str], token: &str) -> Answer {
    let items: Vec<String> = names
        .iter()
        .map(|name| format!(r#"{{"metadata":{{"name":"{name}","namespace":"ns"}}}}"#))
        .collect();
    json(format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"1","continue":"{token}"}},"items":[{}]}}"#,
        items.join(",")
    ))
}

/// A server that answers the nth request to it as a function says, and notes what was asked.
fn server(answer: impl Fn(usize, &str) -> Answer + Send + Sync + 'static) -> (Reader, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (noted, answer) = (asked.clone(), Arc::new(answer));
    let service = tower::service_fn(move |request: Request<Body>| {
        assert_eq!(request.method(), http::Method::GET, "nothing but GET is ever sent");
        let path = request.uri().to_string();
        let index = {
            let mut noted = noted.lock().unwrap();
            noted.push(path.clone());
            noted.len() - 1
        };
        let (code, headers, body) = answer(index, &path);
        let mut response = Response::builder().status(code);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        let response = response.body(Body::from(body.into_bytes()));
        async move { response }
    });
    (reader(Client::new(service, "default")), asked)
}

fn reader(client: Client) -> Reader {
    let connection = Connection {
        client,
        context: Some("test".to_owned()),
        server: "https://test".to_owned(),
        timeout: Some(Duration::from_secs(5)),
        credential: Credential::Token,
        proxy: None,
    };
    let mut reader = Reader::new(connection, 0);
    reader.patience.first = Duration::from_millis(1);
    reader
}

/// A server on a socket that sends these bytes to each request, and then ends the connection or keeps it.
fn socket(bytes: Vec<u8>, keep: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer);
            let _ = stream.write_all(&bytes);
            if keep {
                kept.push(stream);
            }
        }
    });
    address
}

fn socket_reader(address: SocketAddr) -> Reader {
    let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
    config.default_retry = false;
    config.root_cert = Some(Vec::new());
    reader(Client::try_from(config).unwrap())
}

async fn list(reader: &Reader) -> Result<Listings, ListError> {
    reader.list(Kind::Pod, &Scope::Cluster, None).await
}

async fn names(reader: &Reader) -> Vec<String> {
    list(reader)
        .await
        .unwrap()
        .pods
        .all()
        .unwrap()
        .iter()
        .map(|pod| pod.metadata.name.clone())
        .collect()
}

async fn reason(reader: &Reader) -> Reason {
    match list(reader).await {
        Err(ListError::NotRead(missing)) => missing.reason,
        other => panic!("{other:?}"),
    }
}

async fn failure(reader: &Reader) -> String {
    match reason(reader).await {
        Reason::Failed(message) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn pages_are_followed_to_the_last() {
    let (reader, asked) = server(|index, _| match index {
        0 => pods(&["a", "b"], "next/=&"),
        1 => pods(&[], "other"),
        _ => pods(&["c"], ""),
    });
    assert_eq!(names(&reader).await, ["a", "b", "c"]);
    assert_eq!(
        *asked.lock().unwrap(),
        [
            "/api/v1/pods?limit=500",
            "/api/v1/pods?limit=500&continue=next%2F%3D%26",
            "/api/v1/pods?limit=500&continue=other"
        ]
    );
    assert_eq!(reader.requests(), 3);
    assert!(reader.bytes() > 200);
}

#[tokio::test]
async fn scopes_and_selectors_are_asked_for() {
    let (reader, asked) = server(|_, _| pods(&["a"], ""));
    let node = Scope::Node("cp-1".to_owned());
    let list = reader.list(Kind::Pod, &node, None).await.unwrap();
    assert!(list.pods.on_node("cp-1").is_ok());
    assert!(list.pods.all().is_err());
    let namespace = Scope::Namespace("../../x y".to_owned());
    let list = reader.list(Kind::Pod, &namespace, Some("a=b,c in (d)")).await.unwrap();
    assert_eq!(list.count(Kind::Pod), 1);
    assert!(!list.tried(Kind::Pod), "a part of a list is not the list");
    assert_eq!(
        *asked.lock().unwrap(),
        [
            "/api/v1/pods?limit=500&fieldSelector=spec.nodeName%3Dcp-1",
            "/api/v1/namespaces/..%2F..%2Fx%20y/pods?limit=500&labelSelector=a%3Db%2Cc%20in%20%28d%29"
        ]
    );
    assert_eq!(encode(".."), "%2E%2E");
}

#[tokio::test]
async fn a_refused_credential_ends_the_run() {
    let (reader, _) = server(|_, _| status(401, "Unauthorized"));
    match list(&reader).await {
        Err(ListError::Connect(error @ ConnectError::Unauthorized { .. })) => assert!(error.hint().unwrap().contains("expired")),
        other => panic!("{other:?}"),
    }
    assert!(reader.begin().await.is_err());
    let mut snapshot = Snapshot::default();
    assert!(
        reader
            .read(&[(Kind::Node, Scope::Cluster), (Kind::Pod, Scope::Cluster)], &mut snapshot)
            .await
            .is_err()
    );

    // Later in the run it is one list that was not read.
    let (reader, _) = server(|index, _| {
        if index == 0 {
            pods(&["a"], "")
        } else {
            status(401, "Unauthorized")
        }
    });
    assert_eq!(names(&reader).await, ["a"]);
    assert!(failure(&reader).await.contains("401"));
}

#[tokio::test]
async fn impersonation_that_is_refused_ends_the_run_unless_some_of_it_is_allowed() {
    let no = || status(403, "forbidden: User 'b' cannot impersonate-on:user-info:get");
    let wanted = [(Kind::Node, Scope::Cluster), (Kind::Pod, Scope::Cluster)];
    let (reader, _) = server(move |_, _| no());
    let mut snapshot = reader.begin().await.unwrap();
    let error = reader.read(&wanted, &mut snapshot).await.unwrap_err();
    assert!(matches!(error, ConnectError::Impersonation { .. }), "{error:?}");

    let (reader, _) = server(move |_, path| if path.contains("pods") { pods(&["a"], "") } else { no() });
    let mut snapshot = reader.begin().await.unwrap();
    reader.read(&wanted, &mut snapshot).await.unwrap();
    assert_eq!(snapshot.pods.all().unwrap().len(), 1);
    assert!(matches!(snapshot.nodes.all().unwrap_err().reason, Reason::Failed(_)));
}

#[tokio::test]
async fn a_forbidden_list_is_not_an_empty_one() {
    let (reader, _) = server(|_, path| {
        if path.starts_with("/api/v1/nodes") {
            status(403, "nodes is forbidden")
        } else {
            pods(&["a"], "")
        }
    });
    let mut snapshot = Snapshot::default();
    reader
        .read(&[(Kind::Node, Scope::Cluster), (Kind::Pod, Scope::Cluster)], &mut snapshot)
        .await
        .unwrap();
    assert_eq!(snapshot.nodes.all().unwrap_err().reason, Reason::Forbidden);
    assert_eq!(snapshot.pods.all().unwrap().len(), 1);

    // A proxy's own 403 says nothing about rights.
    let (reader, _) = server(|_, _| (403, vec![("content-type", "text/html")], "<h1>blocked</h1>".to_owned()));
    assert!(failure(&reader).await.contains("blocked"));
}

#[tokio::test]
async fn only_what_no_version_of_its_group_has_is_empty() {
    const OTHER: &str = r#"{"name":"podsecuritypolicies"}"#;
    const WANTED: &str = r#"{"name":"poddisruptionbudgets"}"#;
    let discovery = |groups: &'static str, resources: &'static [(&'static str, &'static str)]| {
        server(move |_, path| {
            if path == "/apis" {
                return json(format!(r#"{{"kind":"APIGroupList","groups":[{groups}]}}"#));
            }
            let listed = resources.iter().find(|(version, _)| path == format!("/apis/{version}"));
            listed.map_or_else(
                || (404, vec![("content-type", "text/plain")], "404 page not found".to_owned()),
                |(version, names)| {
                    json(format!(
                        r#"{{"kind":"APIResourceList","groupVersion":"{version}","resources":[{names}]}}"#
                    ))
                },
            )
        })
        .0
    };
    let budgets = async |reader: Reader| reader.list(Kind::PodDisruptionBudget, &Scope::Cluster, None).await;
    let no_group = budgets(discovery(r#"{"name":"apps","versions":[]}"#, &[])).await.unwrap();
    assert_eq!(no_group.budgets.all().unwrap().len(), 0);

    let both = r#"{"name":"policy","versions":[{"version":"v1"},{"version":"v1beta1"}]}"#;
    let nowhere = budgets(discovery(both, &[("policy/v1", OTHER), ("policy/v1beta1", OTHER)]))
        .await
        .unwrap();
    assert_eq!(nowhere.budgets.all().unwrap().len(), 0);
    for there in [
        &[("policy/v1", WANTED), ("policy/v1beta1", OTHER)],
        &[("policy/v1", OTHER), ("policy/v1beta1", WANTED)],
        // What tells of no resource at all proves nothing.
        &[("policy/v1", ""), ("policy/v1beta1", OTHER)],
        &[("policy/v1", OTHER), ("policy/v2", OTHER)],
    ] {
        assert!(
            matches!(budgets(discovery(both, there)).await, Err(ListError::NotRead(_))),
            "{there:?}"
        );
    }
    // A core kind is everywhere, and a server that lists no groups proves nothing.
    assert!(failure(&discovery("", &[])).await.contains("404"));
    let (mute, _) = server(|_, _| (404, vec![], String::new()));
    assert!(matches!(budgets(mute).await, Err(ListError::NotRead(_))));
}

#[tokio::test]
async fn an_expired_list_begins_anew() {
    let (reader, asked) = server(|index, _| match index {
        0 => pods(&["gone"], "t1"),
        1 => status(410, "too old"),
        2 => pods(&["a"], "t2"),
        _ => pods(&["b"], ""),
    });
    assert_eq!(names(&reader).await, ["a", "b"]);
    assert_eq!(asked.lock().unwrap()[2], "/api/v1/pods?limit=500");

    let (reader, asked) = server(|_, path| {
        if path.contains("continue") {
            status(410, "too old")
        } else {
            pods(&["a"], "t")
        }
    });
    assert!(failure(&reader).await.contains("expired"));
    assert_eq!(asked.lock().unwrap().len(), 2 * (MAX_RESTARTS as usize + 1));
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let (reader, _) = server(|index, _| match index {
        0 => {
            let (code, mut headers, body) = status(429, "too many requests");
            headers.push(("retry-after", "1"));
            (code, headers, body)
        }
        _ => pods(&["a"], ""),
    });
    let started = Instant::now();
    assert_eq!(names(&reader).await, ["a"]);
    assert!(started.elapsed() >= Duration::from_secs(1));

    let hour = Refusal {
        status: StatusCode::TOO_MANY_REQUESTS,
        message: String::new(),
        genuine: true,
        named: false,
        retry_after: Some(Duration::from_secs(3600)),
    };
    assert_eq!(Fault::Refused(hour).pause(0, PATIENCE, true), Some(PATIENCE.longest));
}

#[tokio::test]
async fn a_server_error_is_asked_again_but_not_for_ever() {
    let (reader, _) = server(|index, _| if index < 2 { status(500, "etcd") } else { pods(&["a"], "") });
    assert_eq!(names(&reader).await, ["a"]);
    let (reader, asked) = server(|_, _| status(500, "etcd is down"));
    assert!(failure(&reader).await.contains("etcd is down"));
    assert_eq!(asked.lock().unwrap().len(), MAX_RETRIES as usize + 1);
    let (reader, _) = server(|_, _| (503, vec![], "<html>no backend</html>".to_owned()));
    assert!(matches!(reader.begin().await, Err(ConnectError::Unreachable { .. })));
}

#[tokio::test]
async fn a_bad_request_is_not_repeated() {
    let (reader, asked) = server(|_, _| status(400, "unable to parse selector"));
    assert!(failure(&reader).await.contains("unable to parse"));
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn garbage_is_no_list() {
    for (body, said) in [
        ("", "ends after 0"),
        ("{", "ends after 0"),
        ("nonsense", "not a JSON list"),
        ("[]", "not a JSON list"),
        ("{}", "not a PodList"),
        (r#"{"kind":"PodList"}"#, "not a PodList"),
        (r#"{"items":[]}"#, "not a PodList"),
        (r#"{"kind":"NodeList","items":[]}"#, "NodeList"),
        (r#"{"kind":"Status","items":[]}"#, "Status"),
        (r#"{"kind":"PodList","items":{}}"#, "invalid type"),
        (r#"{"kind":"PodList","items":[1]}"#, "object 1"),
        (r#"{"kind":"PodList","items":[null]}"#, "object 1"),
        (r#"{"kind":"PodList","items":[{},{"spec":{"containers":{}}}]}"#, "object 2"),
        (r#"{"kind":"PodList","items":[{}],"items":[]}"#, "twice"),
        (r#"{"kind":"PodList","items":[{}]} trailing"#, "not a JSON list"),
        (r#"{"kind":"PodList","items":[{}"#, "ends after 1"),
        (r#"{"kind":"PodList","items":[{}]"#, "ends after 1"),
        (r#"{"kind":"PodList","items":[{"metadata":{"name":"a"#, "ends after 0"),
        (r#"{"kind":"PodList","metadata":{"continue":7},"items":[]}"#, "invalid type"),
        ("{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"\u{1}\"}}]}", "object 1"),
    ] {
        let (reader, _) = server(move |_, _| json(body));
        let message = failure(&reader).await;
        assert!(message.contains(said), "{body}: {message}");
    }
    let deep = format!(
        r#"{{"kind":"PodList","other":{0}{1},"items":[{{"spec":{0}{1}}}]}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let (reader, _) = server(move |_, _| json(deep.clone()));
    assert!(failure(&reader).await.contains("cannot be read"));
}

#[tokio::test]
async fn a_web_page_is_no_list() {
    let page = || {
        (
            200,
            vec![("content-type", "text/html; charset=utf-8")],
            "<html>log in</html>".to_owned(),
        )
    };
    let (reader, _) = server(move |_, _| page());
    assert!(matches!(
        list(&reader).await,
        Err(ListError::Connect(ConnectError::NotKubernetes { .. }))
    ));
    let (reader, _) = server(move |index, _| if index == 0 { pods(&[], "") } else { page() });
    assert!(names(&reader).await.is_empty());
    assert!(failure(&reader).await.contains("text/html"));
    let (reader, _) = server(move |_, _| (302, vec![("location", "/login")], String::new()));
    assert!(matches!(reader.begin().await, Err(ConnectError::NotKubernetes { .. })));
}

#[tokio::test]
async fn a_list_without_end_ends() {
    let (reader, asked) = server(|_, _| pods(&[], "again"));
    assert!(failure(&reader).await.contains("repeats"));
    assert_eq!(asked.lock().unwrap().len(), 2);
    let (reader, _) = server(|index, _| pods(&[], &index.to_string()));
    assert!(failure(&reader).await.contains("empty pages"));
}

#[tokio::test]
async fn missing_null_and_unknown_fields_are_taken_as_the_server_takes_them() {
    let (reader, _) = server(|_, _| {
        json(
            r#" {"unknown": [1, {"items": [2]}, "x"], "items": [ {}, {"metadata": null, "spec": null, "new": {"a": [1.5e3, true]}},
                {"metadata": {"name": "a", "labels": null}, "spec": {"containers": null, "nodeName": "n"}} ], "number": 17, "word": null,
                "apiVersion": "v1", "kind": "PodList", "metadata": {"continue": null, "remainingItemCount": 3}} "#,
        )
    });
    let list = list(&reader).await.unwrap();
    assert_eq!(list.count(Kind::Pod), 3);
    assert_eq!(list.pods.seen()[2].node(), Some("n"));
    let (reader, _) = server(|_, _| json(r#"{"kind":"PodList","metadata":null,"items":null}"#));
    assert!(names(&reader).await.is_empty());
}

#[test]
fn a_page_decodes_alike_however_it_is_cut() {
    let body = r#"{"kind":"PodList","n":-12.5e+1,"w":true,"items":[{"metadata":{"name":"é\u00e9\""}, "x":[-1.5E-7, "\ud83d\ude00\n", null]},
        {"spec":{"priority":12}}],"metadata":{"continue":"t"}}"#;
    for step in 1..body.len() {
        let mut decoder = ListDecoder::new(Kind::Pod);
        for chunk in body.as_bytes().chunks(step) {
            decoder.wanted = 0;
            decoder.take(chunk).unwrap();
        }
        let page = decoder.finish().unwrap();
        assert_eq!((page.count, page.token.as_deref()), (2, Some("t")), "{step}");
        assert_eq!(page.objects.pods.seen()[0].metadata.name, "éé\"");
        assert_eq!(page.objects.pods.seen()[1].spec.priority, Some(12));
    }
    for length in 0..body.len() {
        let mut decoder = ListDecoder::new(Kind::Pod);
        decoder.take(&body.as_bytes()[..length]).unwrap();
        assert!(matches!(decoder.finish(), Err(Fault::Cut(_))), "{length}");
    }
}

#[test]
fn the_text_kept_is_bounded() {
    let mut decoder = ListDecoder::new(Kind::Pod);
    decoder.take(br#"{"kind":"PodList","items":[{"metadata":{"name":""#).unwrap();
    let chunk = [b'x'; 1 << 20];
    let error = (0..64).find_map(|_| decoder.take(&chunk).err()).unwrap();
    assert!(error.contains("larger than"), "{error}");

    let mut decoder = ListDecoder::new(Kind::Pod);
    decoder.take(br#"{"kind":"PodList","items":["#).unwrap();
    let pod = format!(r#"{{"metadata":{{"name":"a"}},"x":"{}"}},"#, "y".repeat(10_000));
    for _ in 0..1000 {
        decoder.take(pod.as_bytes()).unwrap();
        assert!(decoder.text.len() < 4 * STEP);
    }
}

#[tokio::test]
async fn ten_thousand_objects_come_in_pages() {
    let (reader, _) = server(|_, path| {
        let page: usize = path.split_once("continue=").map_or(0, |(_, token)| token.parse().unwrap());
        let names: Vec<String> = (0..500).map(|index| format!("pod-{:05}", page * 500 + index)).collect();
        pods(
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
            &if page < 19 { (page + 1).to_string() } else { String::new() },
        )
    });
    let mut snapshot = Snapshot::default();
    reader.read(&[(Kind::Pod, Scope::Cluster)], &mut snapshot).await.unwrap();
    assert_eq!(snapshot.pods.all().unwrap().len(), 10_000);
    assert!(snapshot.pods.find("ns", "pod-09999").is_some());
    assert_eq!(reader.requests(), 20);
}

#[tokio::test]
async fn the_servers_clock_and_version_are_known() {
    let (reader, _) = server(|_, _| {
        (
            200,
            vec![("content-type", "application/json"), ("date", "Mon, 30 Nov 2026 16:00:00 GMT")],
            r#"{"major":"1","gitVersion":"v1.36.3+k3s1"}"#.to_owned(),
        )
    });
    let snapshot = reader.begin().await.unwrap();
    assert_eq!(snapshot.observed_at, Some("2026-11-30T16:00:00Z".parse().unwrap()));
    assert_eq!(snapshot.server_version.unwrap().minor(), Some(36));
    assert_eq!(snapshot.context.as_deref(), Some("test"));
    let (reader, _) = server(|_, _| status(403, "no"));
    assert_eq!(reader.begin().await.unwrap().server_version, None);
}

#[tokio::test]
async fn a_cut_connection_is_noticed() {
    let whole = r#"{"kind":"PodList","metadata":{},"items":[{}]}"#;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    for answer in [
        format!("{head}Content-Length: 100\r\n\r\n{whole}"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{whole}\r\n", whole.len()),
        format!("{head}Connection: close\r\n\r\n{}", &whole[..40]),
    ] {
        let reader = socket_reader(socket(answer.clone().into_bytes(), false));
        let message = failure(&reader).await;
        assert!(message.contains("broke off"), "{answer}: {message}");
        assert_eq!(reader.requests(), u64::from(MAX_RETRIES) + 1);
    }
    let reader = socket_reader(socket(format!("{head}Connection: close\r\n\r\n{whole}").into_bytes(), false));
    assert_eq!(list(&reader).await.unwrap().count(Kind::Pod), 1);
    let reader = socket_reader(socket(b"\x00\x01\x02 nonsense\r\n\r\n".to_vec(), false));
    assert!(matches!(list(&reader).await, Err(ListError::Connect(_))));
}

#[tokio::test]
async fn a_silent_server_and_a_body_without_end_end_in_time() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
    for (answer, connect) in [
        (String::new(), true),
        (format!("{head}{{\"kind\":\"PodList\",\"items\":[{{}}"), false),
    ] {
        let mut reader = socket_reader(socket(answer.into_bytes(), true));
        reader.connection.timeout = Some(Duration::from_millis(300));
        let started = Instant::now();
        match list(&reader).await {
            Err(ListError::Connect(error)) if connect => assert!(error.to_string().contains("300ms"), "{error}"),
            Err(ListError::NotRead(NotRead {
                reason: Reason::Failed(message),
                ..
            })) if !connect => assert!(message.contains("300ms"), "{message}"),
            other => panic!("{other:?}"),
        }
        assert!(started.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test]
async fn a_half_read_list_never_enters_a_snapshot() {
    let (reader, _) = server(|index, _| if index == 0 { pods(&["a"], "t") } else { status(400, "no") });
    let mut snapshot = Snapshot::default();
    reader.read(&[(Kind::Pod, Scope::Cluster)], &mut snapshot).await.unwrap();
    assert_eq!(snapshot.pods.seen().len(), 0);
    assert!(snapshot.pods.all().is_err());
}
