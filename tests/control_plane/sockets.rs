//! What the simulated processes listen on: real sockets, answering TLS and HTTP as webhooks and aggregated API servers do.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// Every pod's sockets, by its uid.
pub struct Sockets {
    pods: Arc<Mutex<BTreeMap<String, PodSockets>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct PodSockets {
    listeners: BTreeMap<u16, TcpListener>,
    connections: Vec<TcpStream>,
}

impl Sockets {
    pub fn new(config: Arc<ServerConfig>) -> Self {
        let pods: Arc<Mutex<BTreeMap<String, PodSockets>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (pods, stop) = (Arc::clone(&pods), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    for pod in pods.lock().expect("sockets").values_mut() {
                        pod.accept(&config);
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        Self {
            pods,
            stop,
            thread: Some(thread),
        }
    }

    /// Listens on those of `ports` that the pod does not hold yet; returns those that somebody else has.
    pub fn open(&self, uid: &str, address: IpAddr, ports: impl Iterator<Item = u16>) -> Vec<u16> {
        let mut pods = self.pods.lock().expect("sockets");
        let pod = pods.entry(uid.to_owned()).or_default();
        ports.filter(|&port| !pod.listen(address, port)).collect()
    }

    /// Ends a pod's listeners and its accepted connections: the API server keeps those alive and would go on being answered.
    pub fn close(&self, uid: &str) {
        if let Some(pod) = self.pods.lock().expect("sockets").remove(uid) {
            for connection in pod.connections {
                let _ = connection.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl PodSockets {
    fn listen(&mut self, address: IpAddr, port: u16) -> bool {
        if self.listeners.contains_key(&port) {
            return true;
        }
        match TcpListener::bind((address, port)) {
            Ok(listener) => {
                listener.set_nonblocking(true).expect("a listener that does not block");
                self.listeners.insert(port, listener);
                true
            }
            Err(error) => {
                assert_eq!(
                    error.kind(),
                    std::io::ErrorKind::AddrInUse,
                    "cannot listen on {address}:{port}: {error}"
                );
                false
            }
        }
    }

    fn accept(&mut self, config: &Arc<ServerConfig>) {
        for listener in self.listeners.values() {
            while let Ok((stream, _)) = listener.accept() {
                let _ = stream.set_nonblocking(false);
                if let Ok(copy) = stream.try_clone() {
                    self.connections.push(copy);
                    let config = Arc::clone(config);
                    std::thread::spawn(move || serve(stream, config));
                }
            }
        }
    }
}

/// Answers requests on one connection until it ends; `None` is that end.
fn serve(stream: TcpStream, config: Arc<ServerConfig>) -> Option<()> {
    let mut first = [0];
    stream.peek(&mut first).ok()?;
    // 22 opens a TLS handshake.
    if first[0] == 22 {
        answer(StreamOwned::new(ServerConnection::new(config).ok()?, stream))
    } else {
        answer(stream)
    }
}

fn answer(stream: impl Read + Write) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|&length| length > 0)?;
        let path = line.split(' ').nth(1)?.split('?').next()?.to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            stream.read_line(&mut header).ok().filter(|&length| length > 0)?;
            if header.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let reply = reply(&path, &serde_json::from_slice(&body).unwrap_or_default()).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            reply.len()
        );
        let out = stream.get_mut();
        out.write_all(head.as_bytes()).ok()?;
        out.write_all(reply.as_bytes()).ok()?;
        out.flush().ok()?;
    }
}

fn reply(path: &str, request: &Value) -> Value {
    let version = &request["apiVersion"];
    let uid = &request["request"]["uid"];
    match request["kind"].as_str() {
        Some("AdmissionReview") => {
            json!({"apiVersion": version, "kind": "AdmissionReview", "response": {"uid": uid, "allowed": true}})
        }
        Some("ConversionReview") => {
            let mut objects = request["request"]["objects"].clone();
            for object in objects.as_array_mut().into_iter().flatten() {
                object["apiVersion"] = request["request"]["desiredAPIVersion"].clone();
            }
            json!({"apiVersion": version, "kind": "ConversionReview",
                "response": {"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}})
        }
        _ => match path.trim_matches('/').split('/').collect::<Vec<_>>()[..] {
            ["apis", group, version] => {
                json!({"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": format!("{group}/{version}"), "resources": []})
            }
            _ => json!({}),
        },
    }
}
