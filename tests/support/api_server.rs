//! A small API server on loopback: it lists objects in pages, and can be told to fail.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use gpustack_ha::cluster::kinds::Kind;
use serde_json::{Value, json};

/// What it answers to a request.
pub enum Reply {
    /// What is asked for.
    Asked,
    /// These bytes, and then the end of the connection.
    Bytes(Vec<u8>),
    /// These bytes, and then nothing while the connection stays.
    Hold(Vec<u8>),
    /// The first bytes once, and the others over and over.
    Endless(Vec<u8>, Vec<u8>),
}

/// A list that is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub kind: Kind,
    pub namespace: Option<String>,
    pub node: Option<String>,
    /// The continue token.
    pub token: Option<String>,
    /// How often this kind's lists were asked for before.
    pub before: usize,
}

/// The server; it lives as long as the process.
pub struct ApiServer {
    pub address: String,
    pub asked: Arc<Mutex<Vec<Asked>>>,
}

impl ApiServer {
    /// Serves the objects, unless `reply` says otherwise for a list.
    pub fn start(objects: Vec<Value>, reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (noted, shared) = (asked.clone(), Arc::new((objects, reply)));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (noted, shared) = (noted.clone(), shared.clone());
                std::thread::spawn(move || serve(stream, &shared.0, &shared.1, &noted));
            }
        });
        Self { address, asked }
    }

    /// A kubeconfig for it in the folder, as an argument.
    pub fn kubeconfig(&self, folder: &Path) -> String {
        let path = folder.join("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: prod\nclusters: [{{name: prod, cluster: {{server: '{}'}}}}]\n\
             users: [{{name: admin, user: {{}}}}]\ncontexts: [{{name: prod, context: {{cluster: prod, user: admin}}}}]\n",
            self.address
        );
        std::fs::write(&path, text).unwrap();
        format!("--kubeconfig={}", path.display())
    }
}

/// An answer with a body; the clock stands still.
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nDate: Thu, 01 Jan 2026 00:00:30 GMT\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// An answer in JSON.
pub fn json_answer(status: &str, body: &Value) -> Vec<u8> {
    answer(status, "Content-Type: application/json\r\n", &body.to_string())
}

/// What an API server says when it refuses.
pub fn refusal(status: &str, headers: &str, message: &str) -> Vec<u8> {
    let code: u16 = status[..3].parse().unwrap();
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code});
    answer(status, &format!("Content-Type: application/json\r\n{headers}"), &body.to_string())
}

/// A 403 as RBAC gives it.
pub fn forbidden(asked: &Asked) -> Reply {
    let place = asked.namespace.as_ref().map_or("at the cluster scope".to_owned(), |namespace| {
        format!("in the namespace \"{namespace}\"")
    });
    let info = asked.kind.info();
    let message = format!(
        "{} is forbidden: User \"u\" cannot list resource \"{}\" in API group \"{}\" {place}",
        info.plural, info.plural, info.group
    );
    Reply::Bytes(refusal("403 Forbidden", "", &message))
}

/// Whether an object is of the kind.
pub fn is(object: &Value, kind: Kind) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    Kind::of(version, object["kind"].as_str().unwrap_or_default()) == Some(kind)
}

fn serve(stream: TcpStream, objects: &[Value], reply: &impl Fn(&Asked) -> Reply, noted: &Mutex<Vec<Asked>>) {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let Some(request) = lines.next() else { return };
    while lines.next().is_some_and(|line| !line.is_empty()) {}
    let mut words = request.split(' ');
    assert_eq!(words.next(), Some("GET"), "nothing but GET is ever sent");
    let target = words.next().unwrap_or_default();
    let mut stream = &stream;
    // A client that has enough, or gave up, is no error.
    let _ = match asked(target) {
        None => stream.write_all(&document(target)),
        Some(mut list) => {
            let mut noted = noted.lock().unwrap();
            list.before = noted.iter().filter(|before| before.kind == list.kind).count();
            noted.push(list.clone());
            drop(noted);
            match reply(&list) {
                Reply::Asked => stream.write_all(&page(&list, objects)),
                Reply::Bytes(bytes) => stream.write_all(&bytes),
                Reply::Hold(bytes) => stream.write_all(&bytes).map(|()| {
                    loop {
                        std::thread::park();
                    }
                }),
                Reply::Endless(first, bytes) => {
                    let mut sent = stream.write_all(&first);
                    while sent.is_ok() {
                        sent = stream.write_all(&bytes);
                    }
                    sent
                }
            }
        }
    };
}

/// Everything that is no list.
fn document(target: &str) -> Vec<u8> {
    match target {
        "/version" => json_answer("200 OK", &json!({"gitVersion": "v1.36.3"})),
        "/apis" => {
            let groups: Vec<Value> = Kind::ALL
                .iter()
                .map(|kind| json!({"name": kind.info().group, "versions": [{"version": kind.info().version}]}))
                .collect();
            json_answer("200 OK", &json!({"kind": "APIGroupList", "groups": groups}))
        }
        _ => refusal("404 Not Found", "", "the server could not find the requested resource"),
    }
}

fn asked(target: &str) -> Option<Asked> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    };
    let namespace = path
        .split_once("/namespaces/")
        .and_then(|(_, rest)| rest.split_once('/'))
        .map(|(name, _)| name);
    let kind = Kind::ALL
        .iter()
        .copied()
        .find(|kind| kind.path(None) == path || namespace.is_some() && kind.path(namespace) == path)?;
    Some(Asked {
        kind,
        namespace: namespace.map(str::to_owned),
        node: parameter("fieldSelector").map(|selector| selector.trim_start_matches("spec.nodeName%3D").to_owned()),
        token: parameter("continue"),
        before: 0,
    })
}

/// A page of at most 500 objects.
pub fn page(list: &Asked, objects: &[Value]) -> Vec<u8> {
    let start: usize = list.token.as_ref().map_or(0, |token| token.parse().unwrap());
    let mut matching = objects
        .iter()
        .filter(|object| is(object, list.kind))
        .filter(|object| {
            list.namespace
                .as_ref()
                .is_none_or(|namespace| object["metadata"]["namespace"] == **namespace)
        })
        .filter(|object| list.node.as_ref().is_none_or(|node| object["spec"]["nodeName"] == **node))
        .skip(start);
    let items: Vec<&Value> = matching.by_ref().take(500).collect();
    let token = matching.next().map(|_| (start + 500).to_string()).unwrap_or_default();
    let info = list.kind.info();
    json_answer(
        "200 OK",
        &json!({
            "kind": format!("{}List", info.kind), "apiVersion": list.kind.api_version(), "metadata": {"continue": token}, "items": items
        }),
    )
}
