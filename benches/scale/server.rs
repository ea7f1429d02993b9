//! A read-only API server on loopback: pages, gzip, field and label selectors, namespaces, single objects.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use gpustack_ha::cluster::kinds::Kind;
use serde_json::json;

use crate::cluster::{Item, List};

struct Server {
    lists: HashMap<String, List>,
    /// Indexes of the items of a namespace or a node, by path and either.
    parts: HashMap<(String, String), Vec<usize>>,
    packed: Mutex<HashMap<String, Arc<Vec<u8>>>>,
}

/// What is asked for.
struct Request {
    path: String,
    query: HashMap<String, String>,
    target: String,
    gzip: bool,
}

/// Serves until the process ends, after telling its address on standard output.
pub fn serve(mut lists: Vec<List>) -> io::Result<()> {
    for kind in Kind::ALL {
        let info = kind.info();
        if !lists.iter().any(|list| list.kind == info.kind) {
            lists.push(List {
                api_version: kind.api_version().leak(),
                kind: info.kind,
                plural: info.plural,
                items: Vec::new(),
            });
        }
    }
    let mut parts: HashMap<(String, String), Vec<usize>> = HashMap::new();
    for list in &lists {
        for (index, item) in list.items.iter().enumerate() {
            for (what, name) in [("namespace", &item.namespace), ("node", &item.node)] {
                if !name.is_empty() {
                    parts.entry((list.path(), format!("{what}/{name}"))).or_default().push(index);
                }
            }
        }
    }
    let server = Arc::new(Server {
        lists: lists.into_iter().map(|list| (list.path(), list)).collect(),
        parts,
        packed: Mutex::default(),
    });
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    for stream in listener.incoming().flatten() {
        let server = server.clone();
        std::thread::spawn(move || server.connection(&stream));
    }
    Ok(())
}

fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            None => bytes.extend(part.as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn request(lines: &mut impl BufRead) -> Option<Request> {
    let mut first = String::new();
    lines.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut gzip = false;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        gzip |= line.starts_with("accept-encoding:") && line.contains("gzip");
    }
    let target = first.split(' ').nth(1)?.to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    Some(Request {
        path: path.trim_end_matches('/').to_owned(),
        query: pairs.map(|(key, value)| (key.to_owned(), decoded(value))).collect(),
        target: target.clone(),
        gzip,
    })
}

impl Server {
    fn connection(&self, stream: &TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut lines = BufReader::new(stream);
        while let Some(request) = request(&mut lines) {
            // A client that has enough is no error.
            if self.answer(&request, stream).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Request, out: &TcpStream) -> io::Result<()> {
        let Some((list, namespace, name)) = self.list(&request.path) else {
            return self.document(request, out);
        };
        let items = self.selected(list, namespace, request);
        if let Some(name) = name {
            return match items.iter().find(|item| item.name == name) {
                Some(item) => {
                    let head = format!("{{\"apiVersion\":\"{}\",\"kind\":\"{}\",", list.api_version, list.kind);
                    send(out, "200 OK", "", &[head.as_bytes(), &item.text.as_bytes()[1..]])
                }
                None => missing(out),
            };
        }
        let number = |name: &str| request.query.get(name).and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        let start = number("continue").min(items.len());
        let end = match number("limit") {
            0 => items.len(),
            limit => items.len().min(start + limit),
        };
        let token = if end < items.len() { end.to_string() } else { String::new() };
        let head = format!(
            "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{{\"resourceVersion\":\"99\",\"continue\":\"{token}\"}},\"items\":[",
            list.kind, list.api_version
        );
        let mut body: Vec<&[u8]> = vec![head.as_bytes()];
        for (index, item) in items[start..end].iter().enumerate() {
            if index > 0 {
                body.push(b",");
            }
            body.push(item.text.as_bytes());
        }
        body.push(b"]}\n");
        if !request.gzip {
            return send(out, "200 OK", "", &body);
        }
        let known = self.packed.lock().ok().and_then(|packed| packed.get(&request.target).cloned());
        let packed = match known {
            Some(packed) => packed,
            None => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                body.iter().try_for_each(|part| encoder.write_all(part))?;
                let packed = Arc::new(encoder.finish()?);
                if let Ok(mut known) = self.packed.lock() {
                    known.insert(request.target.clone(), packed.clone());
                }
                packed
            }
        };
        send(out, "200 OK", "Content-Encoding: gzip\r\n", &[&packed])
    }

    /// The list that a path is about, with the namespace and the object's name in it.
    fn list<'a>(&self, path: &'a str) -> Option<(&List, Option<&'a str>, Option<&'a str>)> {
        if let Some(list) = self.lists.get(path) {
            return Some((list, None, None));
        }
        if let Some((root, rest)) = path.split_once("/namespaces/")
            && let [namespace, plural, name @ ..] = rest.split('/').collect::<Vec<_>>().as_slice()
        {
            let list = self.lists.get(&format!("{root}/{plural}"))?;
            return Some((list, Some(namespace), name.first().copied()));
        }
        let (path, name) = path.rsplit_once('/')?;
        Some((self.lists.get(path)?, None, Some(name)))
    }

    fn selected<'a>(&self, list: &'a List, namespace: Option<&str>, request: &Request) -> Vec<&'a Item> {
        let fields = request.query.get("fieldSelector").map(String::as_str).unwrap_or_default();
        let node = fields.split(',').find_map(|part| part.strip_prefix("spec.nodeName="));
        let name = fields.split(',').find_map(|part| part.strip_prefix("metadata.name="));
        let part = |what: &str, name: &str| {
            self.parts
                .get(&(list.path(), format!("{what}/{name}")))
                .cloned()
                .unwrap_or_default()
        };
        let indexes = match (node, namespace) {
            (Some(node), _) => part("node", node),
            (None, Some(namespace)) => part("namespace", namespace),
            (None, None) => (0..list.items.len()).collect(),
        };
        let labels = request.query.get("labelSelector").map(String::as_str).unwrap_or_default();
        let wanted: Vec<(&str, &str)> = labels
            .split(',')
            .filter_map(|part| part.split_once('='))
            .map(|(key, value)| (key, value.trim_start_matches('=')))
            .collect();
        let matches = |item: &&Item| {
            let labelled = wanted
                .iter()
                .all(|(key, value)| item.labels.iter().any(|(own, is)| own == key && is == value));
            labelled && namespace.is_none_or(|namespace| item.namespace == namespace) && name.is_none_or(|name| item.name == name)
        };
        indexes.into_iter().map(|index| &list.items[index]).filter(matches).collect()
    }

    /// Everything that is no list.
    fn document(&self, request: &Request, out: &TcpStream) -> io::Result<()> {
        let text = match request.path.as_str() {
            "/version" => json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"}),
            "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
            "/apis" => {
                let mut groups: Vec<&str> = self
                    .lists
                    .values()
                    .filter_map(|list| list.api_version.split_once('/'))
                    .map(|(group, _)| group)
                    .collect();
                groups.sort_unstable();
                groups.dedup();
                let group = |name: &str| {
                    let version = self
                        .lists
                        .values()
                        .find_map(|list| list.api_version.strip_prefix(&format!("{name}/")))
                        .unwrap_or("v1");
                    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
                    json!({"name": name, "versions": [version], "preferredVersion": version})
                };
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.into_iter().map(group).collect::<Vec<_>>()})
            }
            path => {
                let version = path.trim_start_matches("/apis/").trim_start_matches("/api/");
                let resources: Vec<_> = self
                    .lists
                    .values()
                    .filter(|list| list.api_version == version)
                    .map(|list| {
                        let namespaced = Kind::ALL.iter().any(|kind| kind.info().kind == list.kind && kind.info().namespaced);
                        json!({"name": list.plural, "singularName": "", "namespaced": namespaced, "kind": list.kind, "verbs": ["get", "list"]})
                    })
                    .collect();
                if resources.is_empty() {
                    return missing(out);
                }
                json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources})
            }
        };
        send(out, "200 OK", "", &[text.to_string().as_bytes()])
    }
}

fn missing(out: &TcpStream) -> io::Result<()> {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"});
    send(out, "404 Not Found", "", &[status.to_string().as_bytes()])
}

fn send(mut out: &TcpStream, status: &str, headers: &str, body: &[&[u8]]) -> io::Result<()> {
    let length: usize = body.iter().map(|part| part.len()).sum();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n");
    let mut buffer = io::BufWriter::with_capacity(1 << 18, &mut out);
    buffer.write_all(head.as_bytes())?;
    body.iter().try_for_each(|part| buffer.write_all(part))?;
    buffer.flush()
}
