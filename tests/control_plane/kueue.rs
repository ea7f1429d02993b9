//! A real Kueue, in states that ask for it: built once, installed as its chart does, and run as the process of each of its pods.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::{Api, text};
use crate::components;
use crate::observed;
use crate::state::{self, State};

const MODULE: &str = "sigs.k8s.io/kueue";
const VERSION: &str = "v0.17.0";
/// Names the folder with the program and its chart's templates for a process inside a namespace.
pub const FOLDER: &str = "CONTROL_PLANE_KUEUE";
const NAMESPACE: &str = "gpustack-system";
const SECRET: &str = "kueue-webhook-server-cert";
const LEASE: &str = "c1f6bfd2.kueue.x-k8s.io";
/// Health, metrics, webhooks: the process itself listens on them.
const PORTS: [u16; 3] = [HEALTH, 8443, 9443];
const HEALTH: u16 = 8081;
/// The chart's `terminationGracePeriodSeconds`.
const GRACE: Duration = Duration::from_secs(10);
/// How long nothing may change while a Kueue may be starting.
pub const PATIENCE: Duration = Duration::from_secs(45);

/// The folder of the Kueue to run, if the state asks for it.
pub fn wanted(state: &State) -> Option<PathBuf> {
    (state.kueue == state::Kueue::Real).then(|| std::env::var_os(FOLDER).expect("the folder of Kueue").into())
}

/// The folder with `kueue` and the templates; builds and copies them first if they are not there.
pub fn built() -> Result<PathBuf, String> {
    let cache = components::cache_root()?.join("kubectl-gpustack_ha/control-plane");
    let finished = cache.join(format!("kueue-{VERSION}"));
    let failed = |error: std::io::Error| format!("cannot build Kueue in {}: {error}", cache.display());
    fs::create_dir_all(&cache).map_err(failed)?;
    let lock = File::create(cache.join("lock-kueue")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    if finished.is_dir() {
        return Ok(finished);
    }
    eprintln!("building Kueue {VERSION} once into {} (about 10 minutes)", finished.display());
    let partial = tempfile::tempdir_in(&cache).map_err(failed)?;
    let go = |arguments: &[&str]| {
        let output = Command::new("go")
            .args(arguments)
            .env("GOBIN", partial.path())
            .current_dir(&cache)
            .output();
        let output = output.map_err(|error| format!("cannot run go ({error}): install Go 1.26 or newer from https://go.dev/dl"))?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(said(&output.stdout))
        } else {
            Err(format!("go {} failed:\n{}", arguments.join(" "), said(&output.stderr)))
        }
    };
    go(&["install", &format!("{MODULE}/cmd/kueue@{VERSION}")])?;
    let module = go(&["mod", "download", "-json", &format!("{MODULE}@{VERSION}")])?;
    let module: Value = serde_json::from_str(&module).map_err(|error| error.to_string())?;
    let templates = Path::new(text(&module, "/Dir")).join("charts/kueue/templates");
    for folder in ["crd", "webhook"] {
        fs::create_dir(partial.path().join(folder)).map_err(failed)?;
        for entry in fs::read_dir(templates.join(folder)).map_err(failed)? {
            let from = entry.map_err(failed)?;
            fs::copy(from.path(), partial.path().join(folder).join(from.file_name())).map_err(failed)?;
        }
    }
    fs::rename(partial.keep(), &finished).map_err(failed)?;
    Ok(finished)
}

/// The installed Kueue's objects that its own process needs before it is ready, as the chart makes them.
pub fn objects(folder: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder.join("crd"))
        .expect("the definitions")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    files.push(folder.join("webhook/manifests.yaml"));
    let documents = files.iter().flat_map(|file| {
        let template = fs::read_to_string(file).expect("a template");
        serde_saphyr::from_multiple::<Value>(&rendered(&template)).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    });
    // The templates give the configurations a namespace, which they do not have.
    let documents = documents.filter(|object| !object.is_null()).map(|mut object| {
        object["metadata"].as_object_mut().map(|metadata| metadata.remove("namespace"));
        object
    });
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NAMESPACE}});
    documents.chain([secret]).collect()
}

/// Whether the process itself, or what was installed for it, stands where a state has an object of its own.
pub fn replaces(installed: &[Value], object: &Value) -> bool {
    let key = observed::key(object);
    key == format!("Lease/{NAMESPACE}/{LEASE}") || installed.iter().any(|other| observed::key(other) == key)
}

/// Whether the pod's process is Kueue.
pub fn is_its(pod: &Value) -> bool {
    let labels = &pod["metadata"]["labels"];
    labels["app.kubernetes.io/name"] == "kueue" && labels["control-plane"] == "controller-manager"
}

/// Whether the real process listens on `port`, and not the harness.
pub fn listens(port: u16) -> bool {
    PORTS.contains(&port)
}

/// Which namespaces' workloads Kueue looks at, in GPUStack's values.
fn namespaces() -> Value {
    json!([{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}])
}

/// The few things that the chart's templates of these files ask of Helm.
fn rendered(template: &str) -> String {
    let (mut text, mut comment, mut conditions) = (String::new(), false, Vec::new());
    for line in template.lines() {
        let action = line.trim();
        if comment || action.starts_with("{{- /*") {
            comment = !action.ends_with("*/ -}}");
        } else if action.starts_with("{{/*") || action.contains(" := ") {
        } else if let Some(condition) = action.strip_prefix("{{- if ") {
            conditions.push(!condition.contains("enableCertManager"));
        } else if action.starts_with("{{- else") {
            conditions
                .last_mut()
                .map(|condition| *condition = !*condition)
                .expect("a condition");
        } else if action.starts_with("{{- end") {
            conditions.pop().expect("a condition");
        } else if conditions.iter().all(|condition| *condition) {
            let line = if action.contains("managedJobsNamespaceSelector") {
                format!("      matchExpressions: {}", namespaces())
            } else if action.contains("\"kueue.labels\"") {
                "    app.kubernetes.io/name: kueue".to_owned()
            } else {
                line.replace("{{ include \"kueue.fullname\" . }}", "kueue")
                    .replace("{{ .Release.Namespace }}", NAMESPACE)
                    .replace("{{ .Values.mutatingWebhook.reinvocationPolicy }}", "Never")
            };
            assert!(!line.contains("{{"), "not rendered: {line}");
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

/// The processes of Kueue's pods, by the pods' uids. They end with this.
pub struct Processes {
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: TempDir,
    running: BTreeMap<String, Process>,
    /// What was last read of the Secret: a volume of it follows it.
    certificate: Option<[Vec<u8>; 3]>,
    looked: Instant,
}

struct Process {
    child: Child,
    address: IpAddr,
    /// When it must have ended.
    ending: Option<Instant>,
    asked: Instant,
    answered: bool,
}

impl Processes {
    pub fn new(program: &Path, kubeconfig: &Path) -> Self {
        Self {
            program: program.join("kueue"),
            kubeconfig: kubeconfig.to_owned(),
            folder: tempfile::tempdir().expect("a folder"),
            running: BTreeMap::new(),
            certificate: None,
            looked: Instant::now(),
        }
    }

    /// Whether the pod's process is ready; starts it if there is none, or none any more.
    pub fn ready(&mut self, pod: &Value, address: IpAddr) -> bool {
        let (uid, name) = (text(pod, "/metadata/uid"), text(pod, "/metadata/name"));
        let alive = |process: &mut Process| process.child.try_wait().is_ok_and(|status| status.is_none());
        if !self.running.get_mut(uid).is_some_and(alive) {
            let process = self.start(uid, name, address);
            self.running.insert(uid.to_owned(), process);
        }
        let Some(process) = self.running.get_mut(uid) else {
            return false;
        };
        if process.asked.elapsed() > Duration::from_millis(500) {
            process.asked = Instant::now();
            // A busy machine answers late: what was ready stays so until its process ends.
            process.answered |=
                readyz(process.address).is_ok_and(|answer| answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"));
        }
        process.answered
    }

    fn start(&self, uid: &str, name: &str, address: IpAddr) -> Process {
        let folder = self.folder.path().join(uid);
        let certificates = folder.join("certificates");
        fs::create_dir_all(&certificates).expect("a folder");
        self.hand_over(&certificates);
        // `VisibilityOnDemand` listens on a port of every address, and all replicas are on this machine.
        let config = json!({"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": NAMESPACE,
            "health": {"healthProbeBindAddress": format!("{address}:{HEALTH}")}, "metrics": {"bindAddress": format!("{address}:8443")},
            "webhook": {"host": address, "port": 9443, "certDir": certificates},
            "leaderElection": {"leaderElect": true, "resourceName": LEASE, "resourceNamespace": NAMESPACE},
            "clientConnection": {"qps": 50, "burst": 100},
            "internalCertManagement": {"enable": true, "webhookServiceName": "kueue-webhook-service", "webhookSecretName": SECRET},
            "managedJobsNamespaceSelector": {"matchExpressions": namespaces()},
            "featureGates": {"VisibilityOnDemand": false},
            "integrations": {"frameworks": ["batch/job", "pod", "deployment", "statefulset"]}});
        let file = folder.join("config.yaml");
        fs::write(&file, config.to_string()).expect("a configuration");
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.folder.path().join(format!("{name}.log")))
            .expect("a log");
        // A pod's host name is its own, and Kueue's name in the lease.
        let child = Command::new("unshare")
            .args(["--uts", "sh", "-c", "hostname \"$0\" && exec \"$@\"", name])
            .arg(&self.program)
            .arg(format!("--config={}", file.display()))
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("unshare");
        Process {
            child,
            address,
            ending: None,
            asked: Instant::now(),
            answered: false,
        }
    }

    /// Asks the pod's process to end, the first time; says whether it has.
    pub fn ended(&mut self, uid: &str) -> bool {
        let Some(process) = self.running.get_mut(uid) else {
            return true;
        };
        let ending = *process.ending.get_or_insert_with(|| {
            let _ = Command::new("kill").args(["-TERM", &process.child.id().to_string()]).status();
            Instant::now() + GRACE
        });
        if process.child.try_wait().is_ok_and(|status| status.is_none()) {
            if Instant::now() < ending {
                return false;
            }
            process.kill();
        }
        self.running.remove(uid);
        true
    }

    /// Ends the pod's process at once, if there is one.
    pub fn kill(&mut self, uid: &str) {
        if let Some(mut process) = self.running.remove(uid) {
            process.kill();
        }
    }

    /// Lets every process have what the Secret holds, as the kubelets' volumes do.
    pub fn certify(&mut self, api: &Api) {
        if self.looked.elapsed() < Duration::from_millis(500) {
            return;
        }
        self.looked = Instant::now();
        let Ok(secret) = api.get(&format!("/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")) else {
            return;
        };
        let content = |name: &str| {
            let bytes: k8s_openapi::ByteString = serde_json::from_value(secret["data"][name].clone()).ok()?;
            Some(bytes.0)
        };
        let read = || Some([content("ca.crt")?, content("tls.key")?, content("tls.crt")?]);
        let certificate = read();
        if certificate.is_some() && certificate != self.certificate {
            self.certificate = certificate;
            for uid in self.running.keys() {
                self.hand_over(&self.folder.path().join(uid).join("certificates"));
            }
        }
    }

    /// The key first: the certificate is what Kueue waits for.
    fn hand_over(&self, folder: &Path) {
        let files = self.certificate.iter().flatten();
        for (name, content) in ["ca.crt", "tls.key", "tls.crt"].into_iter().zip(files) {
            fs::write(folder.join(name), content).expect("a certificate");
        }
    }
}

impl Process {
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.running.values_mut().for_each(Process::kill);
        if let Some(folder) = std::env::var_os("KUEUE_LOGS") {
            for entry in fs::read_dir(self.folder.path()).into_iter().flatten().flatten() {
                let _ = fs::copy(entry.path(), Path::new(&folder).join(entry.file_name()));
            }
        }
    }
}

fn readyz(address: IpAddr) -> std::io::Result<String> {
    let patience = Duration::from_millis(300);
    let mut stream = TcpStream::connect_timeout(&SocketAddr::new(address, HEALTH), patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n")?;
    let mut answer = [0; 15];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
