//! Plain, blocking requests to the API server.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::Runtime;

/// A connection of one thread.
pub struct Api {
    runtime: Runtime,
    client: Client,
    /// `apiVersion/kind` to the plural and whether it is namespaced.
    kinds: RefCell<HashMap<String, (String, bool)>>,
}

/// What the server said instead of doing it; code 0 if it said nothing.
#[derive(Debug)]
pub struct Refusal {
    pub code: u16,
    pub message: String,
}

impl Api {
    pub fn new(kubeconfig: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let client = runtime.block_on(async {
            let file = Kubeconfig::read_from(kubeconfig).expect("the kubeconfig");
            let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .expect("a client configuration");
            config.read_timeout = Some(Duration::from_secs(20));
            // A refusal is what is asked for: the default would hide a 503 by asking again.
            config.default_retry = false;
            Client::try_from(config).expect("a client")
        });
        Self {
            runtime,
            client,
            kinds: RefCell::default(),
        }
    }

    fn call(&self, method: &str, path: &str, content_type: &str, body: Option<&Value>) -> Result<Value, Refusal> {
        let body = body.map(|body| serde_json::to_vec(body).expect("JSON")).unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content_type)
            .body(body)
            .expect("a request");
        self.runtime
            .block_on(self.client.request_text(request))
            .map_err(refusal)
            .map(|text| {
                // Some paths, like /readyz, answer with a plain word.
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            })
    }

    pub fn get(&self, path: &str) -> Result<Value, Refusal> {
        self.call("GET", path, "application/json", None)
    }

    /// The items of a list, from the server's cache; asked again for ten seconds before it gives up.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let start = Instant::now();
        loop {
            match self.get(&format!("{path}?resourceVersion=0")) {
                Ok(mut list) => {
                    let items = list["items"].as_array_mut();
                    return items.map(std::mem::take).unwrap_or_default();
                }
                Err(refusal) => assert!(start.elapsed() < Duration::from_secs(10), "cannot list {path}: {refusal:?}"),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        self.call("POST", path, "application/json", Some(body))
    }

    pub fn merge(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        self.call("PATCH", path, "application/merge-patch+json", Some(body))
    }

    /// As kubelets patch: lists are merged by their keys, so that nobody else's condition is lost.
    pub fn strategic_merge(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        self.call("PATCH", path, "application/strategic-merge-patch+json", Some(body))
    }

    pub fn delete(&self, path: &str, options: &Value) -> Result<Value, Refusal> {
        self.call("DELETE", path, "application/json", Some(options))
    }

    /// The path of the collection that `object` belongs to, by asking the server for its kind.
    pub fn collection(&self, object: &Value) -> Result<String, Refusal> {
        let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
        let root = if version.contains('/') {
            format!("/apis/{version}")
        } else {
            format!("/api/{version}")
        };
        let key = format!("{version}/{kind}");
        if !self.kinds.borrow().contains_key(&key) {
            for resource in self.get(&root)?["resources"].as_array().into_iter().flatten() {
                let name = text(resource, "/name");
                if !name.contains('/') {
                    let known = (name.to_owned(), resource["namespaced"] == true);
                    self.kinds
                        .borrow_mut()
                        .insert(format!("{version}/{}", text(resource, "/kind")), known);
                }
            }
        }
        let kinds = self.kinds.borrow();
        let (plural, namespaced) = kinds.get(&key).ok_or_else(|| Refusal {
            code: 404,
            message: format!("the server does not know {key}"),
        })?;
        Ok(if *namespaced {
            format!("{root}/namespaces/{}/{plural}", namespace(object))
        } else {
            format!("{root}/{plural}")
        })
    }
}

fn refusal(error: kube::Error) -> Refusal {
    match error {
        kube::Error::Api(status) => Refusal {
            code: status.code,
            message: status.message.clone(),
        },
        other => Refusal {
            code: 0,
            message: other.to_string(),
        },
    }
}

/// The string at `pointer`, or an empty one.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The namespace of an object, `default` if it names none.
pub fn namespace(object: &Value) -> &str {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default")
}

/// Whether a pod's condition of this type is true.
pub fn condition(object: &Value, kind: &str) -> bool {
    object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == kind && condition["status"] == "True")
}
