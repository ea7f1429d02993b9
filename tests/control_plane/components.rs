//! The control plane's programs, built from Go modules once and kept outside the work tree.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const PROGRAMS: [&str; 5] = ["server", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];

/// The folder with etcd (`server`), the three components and kubectl; builds them first if they are not there.
pub fn built() -> Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(build).clone()
}

/// The module that names the versions: `components`, or `components-VERSION` where `KUBERNETES` asks for an older one.
fn module() -> PathBuf {
    let folder = match std::env::var("KUBERNETES") {
        Ok(version) => format!("components-{version}"),
        Err(_) => "components".to_owned(),
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control_plane").join(folder)
}

/// The version of Kubernetes that is tested with, `v1.X.Y`.
pub fn version() -> Result<String, String> {
    let file = module().join("go.mod");
    let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "k8s.io/kubernetes");
    let version = words
        .nth(1)
        .ok_or_else(|| format!("{} requires no k8s.io/kubernetes", file.display()))?;
    Ok(version.to_owned())
}

/// What the linker writes into each program: without it they call themselves `v0.0.0-master`.
fn stamp() -> Result<String, String> {
    let version = version()?;
    let minor = version.split('.').nth(1).unwrap_or_default();
    let set = |name: &str, value: &str| format!("-X k8s.io/component-base/version.{name}={value}");
    Ok([
        "-s -w".to_owned(),
        set("gitVersion", &version),
        set("gitMajor", "1"),
        set("gitMinor", minor),
    ]
    .join(" "))
}

fn build() -> Result<PathBuf, String> {
    let module = module();
    let cache = cache_root()?.join("kubectl-gpustack_ha/control-plane");
    let finished = cache.join(key(&module)?);
    let there = || PROGRAMS.iter().all(|program| finished.join(program).is_file());
    if there() {
        return Ok(finished);
    }
    fs::create_dir_all(&cache).map_err(|error| format!("cannot make {}: {error}", cache.display()))?;
    // Held until this function returns: a second run waits here instead of building the same.
    let lock = File::create(cache.join("lock")).map_err(|error| format!("cannot lock {}: {error}", cache.display()))?;
    lock.lock().map_err(|error| format!("cannot lock {}: {error}", cache.display()))?;
    if there() {
        return Ok(finished);
    }
    eprintln!(
        "building etcd, the control plane and kubectl once into {} (5 to 10 minutes)",
        finished.display()
    );
    let partial = tempfile::tempdir_in(&cache).map_err(|error| format!("cannot build in {}: {error}", cache.display()))?;
    let output = Command::new("go")
        .args(["install", "-trimpath", "-ldflags", &stamp()?, "tool"])
        .current_dir(&module)
        .env("GOBIN", partial.path())
        .env("GOFLAGS", "-mod=readonly")
        .output()
        .map_err(|error| format!("cannot run go ({error}): install Go 1.26 or newer from https://go.dev/dl and put it on PATH"))?;
    if !output.status.success() {
        return Err(format!(
            "go install failed in {}; it needs Go 1.26 or newer (https://go.dev/dl) and a module proxy:\n{}",
            module.display(),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let _ = fs::remove_dir_all(&finished);
    fs::rename(partial.keep(), &finished).map_err(|error| format!("cannot move the build to {}: {error}", finished.display()))?;
    Ok(finished)
}

/// Where what is built once is kept.
pub fn cache_root() -> Result<PathBuf, String> {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .ok_or_else(|| "set HOME or XDG_CACHE_HOME: the built components are kept below it".to_owned())
}

/// The first 16 hexadecimal digits of SHA-256 over `go.mod` and `go.sum`.
fn key(module: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    for file in ["go.mod", "go.sum"] {
        let path = module.join(file);
        bytes.extend(fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?);
    }
    let suite = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .ok_or("no SHA-256")?;
    let digest = suite.common.hash_provider.hash(&bytes);
    Ok(digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}
