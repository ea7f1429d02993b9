//! One control plane: the processes, their files, and their end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::KeyPair;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::Api;
use crate::authority::Authority;

/// Ended, by process id, when dropped.
pub struct Cluster {
    folder: TempDir,
    programs: PathBuf,
    children: Vec<Child>,
    pub kubeconfig: PathBuf,
    pub authority: Arc<Authority>,
}

impl Cluster {
    /// Starts etcd, the API server and the controllers, without the scheduler, and waits until they answer.
    pub fn start(programs: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Arc::new(Authority::new());
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, content: &str| fs::write(path(name), content).expect("a written file");
        let (certificate, key) = authority.issue(&["127.0.0.1", "localhost", "kubernetes.default.svc"]);
        let accounts = KeyPair::generate().expect("a key");
        write("ca.pem", &authority.pem());
        write("server.pem", &certificate.pem());
        write("server.key", &key.serialize_pem());
        write("accounts.pem", &accounts.public_key_pem());
        write("accounts.key", &accounts.serialize_pem());
        write(
            "audit.yaml",
            r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}"#,
        );
        write("tokens.csv", "admin,admin,admin,system:masters\n");
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority": path("ca.pem")}}],
            "users": [{"name": "admin", "user": {"token": "admin"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}]});
        write("kubeconfig", &kubeconfig.to_string());

        let mut cluster = Self {
            programs: programs.to_owned(),
            children: Vec::new(),
            kubeconfig: path("kubeconfig"),
            authority,
            folder,
        };
        let file = |flag: &str, name: &str| format!("--{flag}={}", cluster.folder.path().join(name).display());
        let etcd = vec![file("data-dir", "etcd"), "--unsafe-no-fsync".into(), "--log-level=error".into()];
        let server = vec![
            "--etcd-servers=http://127.0.0.1:2379".into(),
            "--bind-address=127.0.0.1".into(),
            "--advertise-address=10.10.255.1".into(),
            file("tls-cert-file", "server.pem"),
            file("tls-private-key-file", "server.key"),
            file("token-auth-file", "tokens.csv"),
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.96.0.0/16".into(),
            "--enable-aggregator-routing=true".into(),
            "--endpoint-reconciler-type=none".into(),
            "--allow-privileged=true".into(),
            "--enable-priority-and-fairness=false".into(),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            file("audit-policy-file", "audit.yaml"),
            file("audit-log-path", "audit.log"),
            file("service-account-key-file", "accounts.pem"),
            file("service-account-signing-key-file", "accounts.key"),
        ];
        let controllers = vec![
            file("kubeconfig", "kubeconfig"),
            "--leader-elect=false".into(),
            "--kube-api-qps=200".into(),
            "--kube-api-burst=400".into(),
            file("service-account-private-key-file", "accounts.key"),
            "--controllers=*,-node-ipam-controller,-service-lb-controller,-cloud-node-lifecycle-controller".into(),
        ];
        cluster.spawn("server", &etcd);
        cluster.spawn("kube-apiserver", &server);
        let api = Api::new(&cluster.kubeconfig);
        cluster.wait("the API server", || api.get("/readyz").is_ok());
        cluster.spawn("kube-controller-manager", &controllers);
        cluster.wait("the controllers", || {
            api.get("/api/v1/namespaces/default/serviceaccounts/default").is_ok()
        });
        cluster
    }

    pub fn start_scheduler(&mut self) {
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig.display()),
            "--leader-elect=false".to_owned(),
        ];
        self.spawn("kube-scheduler", &arguments);
    }

    fn spawn(&mut self, program: &str, arguments: &[String]) {
        let log = File::create(self.folder.path().join(format!("{program}.log"))).expect("a log");
        let child = Command::new(self.programs.join(program))
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
        self.children.push(child);
    }

    fn wait(&self, what: &str, ready: impl Fn() -> bool) {
        let start = Instant::now();
        while !ready() {
            assert!(start.elapsed() < Duration::from_secs(60), "{what} did not come up\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A file of this cluster's own folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// kubectl with this cluster's kubeconfig, not yet started.
    pub fn kubectl(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(self.programs.join("kubectl"));
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Runs kubectl to its end.
    pub fn run_kubectl(&self, arguments: &[String]) -> Output {
        self.kubectl(arguments).output().expect("kubectl")
    }

    /// The last lines that each process logged.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for program in ["server", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
            let log = fs::read_to_string(self.folder.path().join(format!("{program}.log"))).unwrap_or_default();
            let lines: Vec<&str> = log.lines().filter(|line| line.starts_with(['E', 'F', 'p'])).collect();
            text.push_str(&format!("--- {program}\n{}\n", lines[lines.len().saturating_sub(15)..].join("\n")));
        }
        text
    }

    /// The authority's certificate as webhook configurations carry it.
    pub fn ca_bundle(&self) -> Value {
        serde_json::to_value(k8s_openapi::ByteString(self.authority.pem().into_bytes())).expect("base64")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
