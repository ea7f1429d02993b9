//! The binary from its outside: what it prints where, and how it exits.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use clap::Parser;
use gpustack_ha::cli::Cli;
use serde_json::Value;
use tempfile::TempDir;

const KUEUE: &str = "examples/two-kueue-replicas.yaml";
const SAFE: &str = "examples/high-availability.yaml";

/// The binary, away from the caller's clusters and terminal.
fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-gpustack_ha"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name != "PATH" && name != "SystemRoot" {
            command.env_remove(name);
        }
    }
    command.env("HOME", "/nonexistent").env("RUST_BACKTRACE", "1");
    command
}

fn run(words: &[&str]) -> Output {
    binary().args(words).output().unwrap()
}

/// `drain-preflight` with the words.
fn preflight(words: &[&str]) -> Output {
    run(&[&["drain-preflight"], words].concat())
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// One error on standard error, with these parts; nothing on standard output.
#[track_caller]
fn refuses(output: &Output, code: i32, parts: &[&str]) {
    let text = err(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(out(output), "", "{text}");
    assert!(text.starts_with("error: "), "{text}");
    assert_eq!(text.matches("error: ").count(), 1, "{text}");
    assert!(!text.contains("panicked") && !text.contains("backtrace"), "{text}");
    let harmless = |character: char| character == '\n' || !character.is_control();
    assert!(text.chars().all(harmless), "{text:?}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// An answer with this exit code, and nothing on standard error.
#[track_caller]
fn answers(output: &Output, code: i32) -> String {
    assert_eq!((output.status.code(), err(output).as_str()), (Some(code), ""));
    let text = out(output);
    assert!(!text.is_empty());
    text
}

fn json(words: &[&str]) -> Value {
    serde_json::from_slice(&preflight(&[words, &["-o", "json"]].concat()).stdout).unwrap()
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

fn node(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}\n\
         status: {{allocatable: {{cpu: '8', memory: 32Gi, pods: '110'}}, conditions: [{{type: Ready, status: 'True'}}]}}\n---\n"
    )
}

/// A ready pod without a controller, which no drain removes without `--force`.
fn bare_pod(name: &str, on: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: app}}\n\
         spec: {{nodeName: {on}, containers: [{{name: main, image: example}}]}}\n\
         status: {{phase: Running, conditions: [{{type: Ready, status: 'True'}}]}}\n---\n"
    )
}

// Bad input

#[test]
fn a_file_that_cannot_be_understood() {
    let files = Files::new();
    let nodes = node("a");
    let cases: Vec<(&str, Vec<u8>, &[&str])> = vec![
        (
            "not-yaml.yaml",
            b"hello: [unclosed\n".to_vec(),
            &["line 1, column 8", "not YAML", "^", "hint: "],
        ),
        (
            "cut.json",
            b"{\"apiVersion\": \"v1\",\n \"kind\": \"No".to_vec(),
            &["line 2, column", "hint: the input is cut"],
        ),
        (
            "cut.yaml",
            b"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n".to_vec(),
            &["kind", "hint: "],
        ),
        (
            "cut-quote.yaml",
            b"apiVersion: v1\nkind: \"No".to_vec(),
            &["line 2, column", "not YAML", "hint: "],
        ),
        (
            "tabs.yaml",
            b"apiVersion: v1\nkind: Node\nmetadata:\n\tname: a\n".to_vec(),
            &["line 4, column", "hint: YAML is indented with spaces"],
        ),
        (
            "type.yaml",
            b"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec:\n  taints: 5\n".to_vec(),
            &["line 5, column 11", "Node a: spec.taints: expected a list", "hint: "],
        ),
        (
            "broken.yaml",
            format!("{nodes}kind: Node\napiVersion: v1\nmetadata: {{name: b\n---\n{nodes}").into_bytes(),
            &["document 2", "line 8, column 11", "hint: "],
        ),
        (
            "unknown.yaml",
            b"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n".to_vec(),
            &["Widget (1)", "hint: "],
        ),
        (
            "deep.yaml",
            format!("a: {}", "[".repeat(100_000)).into_bytes(),
            &["line 1, column", "recursion", "hint: "],
        ),
        ("deep.json", "{\"a\":".repeat(100_000).into_bytes(), &["hint: "]),
        ("nul.yaml", b"a\0b".to_vec(), &["line 1, column 2", "0x00", "hint: "]),
        (
            "binary.yaml",
            vec![0x7f, b'E', b'L', b'F', 0xff, 0xfe],
            &["line 1, column", "not text", "hint: "],
        ),
        ("empty.yaml", Vec::new(), &["nothing in it", "hint: "]),
    ];
    for (name, content, parts) in cases {
        let path = files.write(name, content);
        for complete in [&[][..], &["--complete"]] {
            let output = preflight(&[&["a", "-f", &path], complete].concat());
            refuses(&output, 3, &[&[name], parts].concat());
        }
    }
}

#[test]
fn aliases_that_grow() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        text.push_str(&format!("a{level}: &a{level} [{}]\n", [below.as_str(); 9].join(", ")));
    }
    let files = Files::new();
    let path = files.write("aliases.yaml", text);
    refuses(&preflight(&["a", "-f", &path]), 3, &["line ", "column ", "aliases (*)", "hint: "]);
}

#[test]
fn a_path_that_cannot_be_read() {
    let files = Files::new();
    files.write("notes/readme.txt", "hello");
    refuses(
        &preflight(&["a", "-f", &files.path("notes")]),
        3,
        &["notes", "without manifests", "hint: ", ".yaml"],
    );
    refuses(
        &preflight(&["a", "-f", &files.path("missing.yaml")]),
        3,
        &["missing.yaml", "no such file"],
    );
    let inside = format!("{}/a.yaml", files.write("file.yaml", "a"));
    refuses(&preflight(&["a", "-f", &inside]), 3, &["file.yaml/a.yaml"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("loop.yaml", files.path("loop.yaml")).unwrap();
        refuses(&preflight(&["a", "-f", &files.path("loop.yaml")]), 3, &["loop.yaml"]);
        // The superuser may read everything.
        use std::os::unix::fs::PermissionsExt;
        let path = files.write("secret.yaml", node("a"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
        if fs::read(&path).is_err() {
            refuses(&preflight(&["a", "-f", &path]), 3, &["secret.yaml", "permission"]);
        }
    }
}

#[test]
fn nodes_that_are_not_there() {
    refuses(
        &preflight(&["cp1", "-f", KUEUE]),
        2,
        &["there is no node cp1", "did you mean cp-1?"],
    );
    refuses(
        &preflight(&["gpu-77", "-f", KUEUE]),
        2,
        &["there is no node gpu-77", "cp-1, cp-2, cp-3"],
    );
    refuses(&preflight(&["-f", KUEUE]), 2, &["which node?", "hint: "]);
    refuses(&preflight(&["--each", "--one-by-one", "-f", KUEUE]), 2, &["--each", "--one-by-one"]);
    refuses(&preflight(&["cp-1", "-l", "a=b", "-f", KUEUE]), 2, &["-l", "hint: "]);
    refuses(&preflight(&["-l", "a=b", "-f", KUEUE]), 2, &["matches no node", "hint: "]);
    refuses(&preflight(&["-l", "a in (", "-f", KUEUE]), 2, &["a in (", "not closed"]);
    let files = Files::new();
    let path = files.write("pods.yaml", bare_pod("p", "a"));
    refuses(&preflight(&["a", "-f", &path]), 3, &["no nodes", "hint: ", "kubectl get nodes"]);
    refuses(&preflight(&["a", "-f", &path, "--complete"]), 3, &["no node"]);
    for name in ["node/cp-1", "nodes/cp-1", "no/cp-1"] {
        assert_eq!(json(&[name, "-f", KUEUE, "--complete"])["nodes"], serde_json::json!(["cp-1"]));
    }
}

#[test]
fn each_node_has_a_row_in_every_form() {
    let ask = |words: &[&str]| {
        let output = preflight(&[&["--each", "--complete", "-f", KUEUE], words].concat());
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (exit, table) = ask(&["--no-headers"]);
    assert_eq!(exit, Some(1));
    let rows = ["cp-1   unsafe", "cp-2   unsafe", "cp-3   safe"].map(|row| table.find(row).unwrap_or_else(|| panic!("{row}: {table}")));
    assert!(rows.is_sorted(), "{table}");
    for format in ["wide", "json", "yaml", "markdown", "html"] {
        let (exit, text) = ask(&["-o", format]);
        assert!(
            exit == Some(1) && ["cp-1", "cp-2", "cp-3", "pdb-blocks-drain"].iter().all(|word| text.contains(word)),
            "{text}"
        );
    }
    assert_eq!(ask(&["-o", "name"]), (Some(1), "node/cp-1\nnode/cp-2\nnode/cp-3\n".to_owned()));
    assert_eq!(ask(&["cp-3", "-o", "name"]), (Some(0), "node/cp-3\n".to_owned()));
    assert_eq!(
        ask(&["-l", "kubernetes.io/hostname=cp-2", "-o", "name"]),
        (Some(1), "node/cp-2\n".to_owned())
    );
    assert_eq!(ask(&["--accept", "pdb-blocks-drain"]).0, Some(0));
    assert_eq!(ask(&["-l", "no=node"]).0, Some(2));
}

#[test]
fn flags_that_are_wrong() {
    let wrong: &[(&[&str], &[&str])] = &[
        (&["--accept", "not-assessed"], &["cannot be accepted"]),
        (&["--accept", "pdb-block-drain"], &["did you mean pdb-blocks-drain?"]),
        (&["--accept", "zzzzzzzzzzz"], &["there is no finding code `zzzzzzzzzzz`"]),
        (&["--accept", "leader-moves="], &["name is missing"]),
        (&["--timeout", "5 parsecs"], &["--timeout", "such as 30s, 5m or 1h30m"]),
        (&["--timeout", "10"], &["--timeout", "such as 30s, 5m or 1h30m"]),
        (&["--request-timeout", "soon"], &["--request-timeout", "such as 30s"]),
        (&["--grace-period", "long"], &["--grace-period"]),
        (&["--pod-selector", "a in"], &["--pod-selector", "a in"]),
        (&["-o", "jsn"], &["jsn", "json"]),
        (&["--fail-on", "risk"], &["at-risk"]),
        (&["--colour", "always"], &["--color"]),
    ];
    for (words, parts) in wrong {
        refuses(&preflight(&[&["cp-1", "-f", KUEUE], *words].concat()), 2, parts);
    }
    refuses(&preflight(&["cp-1", "--complete"]), 2, &["--filename"]);
    refuses(&run(&["drain-preflght", "cp-1"]), 2, &["drain-preflight"]);
}

// Servers

/// Reads the head of a request, and answers it.
fn answer(stream: &mut (impl Read + Write), text: &str) {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(length @ 1..) => head.extend_from_slice(&buffer[..length]),
            _ => return,
        }
    }
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.flush();
}

/// A server on loopback that does the same with every connection; the result is its port.
fn server(each: impl Fn(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(each));
    port
}

/// A server whose certificate is for `name`, and that certificate.
fn tls_server(name: &str) -> (u16, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec![name.to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().unwrap())
        .unwrap();
    let config = Arc::new(config);
    let port = server(move |stream| {
        let connection = rustls::ServerConnection::new(config.clone()).unwrap();
        answer(
            &mut rustls::StreamOwned::new(connection, stream),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        );
    });
    (port, certificate.pem())
}

/// A kubeconfig with one context `prod` for this server and user.
fn kubeconfig(server: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\n\
         clusters: [{{name: prod, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: admin, user: {user}}}]\n\
         contexts: [{{name: prod, context: {{cluster: prod, user: admin}}}}]\n"
    )
}

#[test]
fn servers_that_do_not_answer() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refuses(
        &preflight(&["a", "-s", &format!("https://{closed}")]),
        3,
        &[&closed.to_string(), "refused", "hint: "],
    );
    let held = std::sync::Mutex::new(Vec::new());
    let silent = server(move |stream| held.lock().unwrap().push(stream));
    refuses(
        &preflight(&["a", "-s", &format!("http://127.0.0.1:{silent}"), "--request-timeout", "500ms"]),
        3,
        &["127.0.0.1", "hint: ", "--request-timeout"],
    );
}

#[test]
fn a_credential_that_has_expired() {
    let body = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
    let text = format!(
        "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let port = server(move |mut stream| answer(&mut stream, &text));
    let files = Files::new();
    let path = files.write("config", kubeconfig(&format!("http://127.0.0.1:{port}"), "{token: s3cret}"));
    let output = preflight(&["a", "--kubeconfig", &path]);
    refuses(&output, 3, &["127.0.0.1", "hint: "]);
    assert!(!err(&output).contains("s3cret"));
}

#[test]
fn a_certificate_of_someone_else() {
    let (port, certificate) = tls_server("other.example");
    let address = format!("https://127.0.0.1:{port}");
    let (_, stranger) = tls_server("other.example");
    let files = Files::new();
    let own = files.write("own.crt", certificate);
    let stranger = files.write("stranger.crt", stranger);
    refuses(
        &preflight(&["a", "-s", &address, "--certificate-authority", &own]),
        3,
        &[&address, "hint: ", "--tls-server-name"],
    );
    refuses(
        &preflight(&["a", "-s", &address, "--certificate-authority", &stranger]),
        3,
        &[&address, "hint: ", "--certificate-authority"],
    );
}

#[test]
fn a_kubeconfig_that_does_not_lead_to_a_cluster() {
    refuses(
        &preflight(&["a"]),
        3,
        &["no kubeconfig", "/nonexistent/.kube/config", "hint: ", "-f"],
    );
    let files = Files::new();
    let missing = files.path("missing");
    let output = preflight(&["a", "--kubeconfig", &missing]);
    refuses(&output, 3, &[&missing, "hint: "]);
    assert_eq!(err(&output).to_lowercase().matches("no such file").count(), 1);
    let broken = files.write("broken", "clusters: [\n");
    refuses(
        &preflight(&["a", "--kubeconfig", &broken]),
        3,
        &[&broken, "hint: ", &format!("kubectl --kubeconfig {broken} config view")],
    );
    let plugin = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: Never}}";
    let plugin = files.write("plugin", kubeconfig("https://127.0.0.1:1", plugin));
    refuses(&preflight(&["a", "--kubeconfig", &plugin]), 3, &["no-such-plugin", "hint: install"]);
    refuses(
        &preflight(&["a", "--kubeconfig", &plugin, "--context", "prd"]),
        3,
        &["prd", "did you mean \"prod\"?"],
    );
}

// Input forms

#[test]
fn the_same_from_a_file_a_stream_a_directory_and_pieces() {
    let expected = answers(&preflight(&["cp-1", "-f", KUEUE, "--complete", "-o", "json"]), 1);
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(KUEUE)).unwrap();
    let files = Files::new();
    let (first, second) = text.split_at(text.rfind("\n---\n").unwrap() + 1);
    let first = files.write("dir/1.yaml", first);
    let second = files.write("dir/sub/2.yml", second);

    let mut stdin = binary()
        .args(["drain-preflight", "cp-1", "-f", "-", "--complete", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    stdin.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert_eq!(answers(&stdin.wait_with_output().unwrap(), 1), expected);

    let form = |words: &[&str]| answers(&preflight(&[&["cp-1", "--complete", "-o", "json"], words].concat()), 1);
    assert_eq!(form(&["-f", &files.path("dir")]), expected);
    assert_eq!(form(&["-f", &first, "-f", &second]), expected);
    assert_eq!(form(&["--filename", KUEUE, "-f", &first]), expected);

    let script = format!(
        "'{}' drain-preflight cp-1 -f <(cat '{first}') -f <(cat '{second}') --complete -o json",
        env!("CARGO_BIN_EXE_kubectl-gpustack_ha")
    );
    if let Ok(output) = Command::new("bash").args(["-c", &script]).output() {
        assert_eq!(answers(&output, 1), expected);
    }
}

#[test]
#[cfg(unix)]
fn a_reader_that_has_read_enough_is_no_error() {
    for format in ["table", "wide", "json", "yaml", "name", "markdown", "html"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = binary()
            .args(["drain-preflight", "cp-1", "-f", KUEUE, "--complete", "-o", format])
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        assert_eq!((output.status.code(), err(&output).as_str()), (Some(1), ""), "{format}");
    }
}

// Output

#[test]
fn every_format_tells_the_same_verdict() {
    let base = ["cp-1", "-f", KUEUE, "--complete"];
    let form = |format: &str| answers(&preflight(&[&base[..], &["-o", format]].concat()), 1);
    let document: Value = serde_json::from_str(&form("json")).unwrap();
    let yaml: Value = serde_yaml::from_str(&form("yaml")).unwrap();
    assert_eq!(document, yaml);
    assert_eq!(document["verdict"], "unsafe");
    assert_eq!(form("table"), answers(&preflight(&base), 1));
    assert!(form("table").starts_with("UNSAFE "));
    assert!(form("wide").starts_with("UNSAFE "));
    assert!(
        form("wide").contains("gpustack-operator-model-manager"),
        "wide shows the pods that stay, too"
    );
    assert!(form("markdown").starts_with("## Drain of cp-1\n\n**UNSAFE** Draining cp-1 hangs: "));
    assert!(form("html").starts_with("<!doctype html>\n") && form("html").contains(">UNSAFE</span>Draining cp-1 hangs: "));
    assert_eq!(form("name"), "pod/gpustack-operator-worker-645ff7d7c5-dv2rt\n", "the pods that go");
}

#[test]
fn the_first_three_lines_say_the_verdict_the_reason_and_what_to_do() {
    let first = |file: &str| -> String {
        let output = binary()
            .args(["drain-preflight", "cp-1", "-f", file, "--complete"])
            .env("COLUMNS", "100")
            .output()
            .unwrap();
        out(&output).lines().take(3).collect::<Vec<_>>().join("\n")
    };
    let unsafe_ = first(KUEUE);
    for part in [
        "UNSAFE",
        "hangs",
        "kueue-manager-pdb",
        "To do:",
        "3 replicas of kueue-controller-manager",
    ] {
        assert!(unsafe_.contains(part), "{part:?} is not in {unsafe_}");
    }
    let safe = first(SAFE);
    for part in ["SAFE", "finishes", "To do:", "drain cp-1", "uncordon"] {
        assert!(safe.contains(part), "{part:?} is not in {safe}");
    }
}

#[test]
fn headers_and_colours_as_asked() {
    let with = |words: &[&str], variable: Option<(&str, &str)>| {
        let mut command = binary();
        command
            .args(["drain-preflight", "cp-1", "-f", KUEUE, "--complete"])
            .args(words)
            .envs(variable);
        answers(&command.output().unwrap(), 1)
    };
    assert!(with(&[], None).contains("ROUND"));
    let bare = with(&["--no-headers"], None);
    assert!(!bare.contains("ROUND") && !bare.contains("LEADER OF"));
    assert!(!with(&[], None).contains('\x1b'), "a pipe gets no colours");
    assert!(with(&["--color", "always"], None).contains('\x1b'));
    assert!(
        with(&["--color", "always"], Some(("NO_COLOR", "1"))).contains('\x1b'),
        "a flag outranks the environment"
    );
    assert!(!with(&[], Some(("NO_COLOR", "1"))).contains('\x1b'));
    assert!(!with(&["--color", "never"], Some(("CLICOLOR_FORCE", "1"))).contains('\x1b'));
    assert!(with(&["--ascii"], Some(("COLUMNS", "60"))).is_ascii());
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in [60, 80, 100, 200] {
        for file in [KUEUE, SAFE] {
            let output = binary()
                .args(["drain-preflight", "cp-1", "-f", file])
                .env("COLUMNS", columns.to_string())
                .output()
                .unwrap();
            for line in out(&output)
                .lines()
                .filter(|line| !line.contains("kubectl") && !line.contains(".k8s.io"))
            {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
    }
}

#[test]
fn exit_codes_follow_the_verdict() {
    let code = |words: &[&str]| preflight(words).status.code();
    assert_eq!(code(&["cp-1", "-f", SAFE, "--complete"]), Some(0));
    assert_eq!(code(&["cp-1", "-f", KUEUE, "--complete"]), Some(1));
    assert_eq!(code(&["cp-1", "-f", SAFE]), Some(3));
    assert_eq!(code(&["cp-1", "-f", SAFE, "--fail-on", "unsafe"]), Some(3), "unknown is never 0");
    assert_eq!(code(&["cp-1", "-f", KUEUE, "--complete", "--fail-on", "unsafe"]), Some(1));
    let files = Files::new();
    let bare = files.write("bare.yaml", node("a") + &node("b") + &bare_pod("p", "a"));
    let refused = ["a", "-f", &bare, "--complete"];
    assert_eq!(json(&refused)["verdict"], "unsafe");
    let forced = [&refused[..], &["--force"]].concat();
    assert_eq!(json(&forced)["verdict"], "at-risk");
    assert_eq!(code(&forced), Some(1));
    assert_eq!(code(&[&forced[..], &["--fail-on", "unsafe"]].concat()), Some(0));
    assert_eq!(code(&[&forced[..], &["--accept", "unmanaged-pod"]].concat()), Some(0));
    assert_eq!(code(&[&forced[..], &["--accept", "unmanaged-pod=app/p"]].concat()), Some(0));
    assert_eq!(code(&[&forced[..], &["--accept", "unmanaged-pod=other/p"]].concat()), Some(1));
    assert!(
        json(&[&forced[..], &["--accept", "unmanaged-pod"]].concat())["findings"][0]["accepted"]
            .as_bool()
            .unwrap()
    );
}

#[test]
fn names_cannot_steer_the_terminal() {
    let evil = r#""p\e[31m\nSAFE  all is well\r\u202e""#;
    let files = Files::new();
    let pod = bare_pod(evil, "a").replace("namespace: app", r#"namespace: "app\e]0;x\a""#);
    let path = files.write("evil.yaml", node("a") + &node(r#""b\e[2J\nb""#) + &pod);
    for words in [
        &[][..],
        &["--force"],
        &["-o", "wide"],
        &["-o", "json"],
        &["-o", "yaml"],
        &["-o", "name", "--force"],
        &["-o", "markdown", "--force"],
        &["-o", "html", "--force"],
    ] {
        let text = answers(&preflight(&[&["a", "-f", &path, "--complete"], words].concat()), 1);
        assert!(
            text.chars().all(|character| character == '\n' || !character.is_control()),
            "{text:?}"
        );
        assert!(
            !text.contains('\u{202e}') || words.contains(&"json") || words.contains(&"yaml"),
            "{text:?}"
        );
        assert!(!text.lines().any(|line| line.trim_start().starts_with("SAFE")), "{text}");
    }
    let names = answers(&preflight(&["a", "-f", &path, "--complete", "-o", "name", "--force"]), 1);
    assert_eq!(
        names,
        "pod/p\\u{1b}[31m\\u{a}SAFE\\u{20}\\u{20}all\\u{20}is\\u{20}well\\u{d}\\u{202e}\n"
    );
    refuses(&preflight(&["c\u{1b}[2J\nSAFE", "-f", &path]), 2, &["there is no node"]);
    let wrong = files.write(
        "wrong.yaml",
        "apiVersion: v1\nkind: Node\nmetadata: {name: \"a\\e[2Jb\"}\nspec: {taints: 5}\n",
    );
    refuses(&preflight(&["a", "-f", &wrong]), 3, &["spec.taints"]);
}

#[test]
fn markup_in_names_is_text() {
    let evil = r#""<script>alert(1)</script>|`x` @team""#;
    let files = Files::new();
    let path = files.write("markup.yaml", node("a") + &node("b") + &bare_pod(evil, "a"));
    let form = |format: &str| answers(&preflight(&["a", "-f", &path, "--complete", "--force", "-o", format]), 1);
    let html = form("html");
    assert!(
        !html.contains("<script") && html.contains("&lt;script&gt;alert(1)&lt;/script&gt;|`x` @team"),
        "{html}"
    );
    let markdown = form("markdown");
    let text = r"pod/&lt;script>alert(1)&lt;/script>\|\`x\` @&#8203;team";
    assert!(markdown.contains(text), "{markdown}");
    for row in markdown.lines().filter(|line| line.starts_with('|')) {
        let cells = row.replace(r"\|", "").matches('|').count();
        assert_eq!(
            cells,
            markdown
                .lines()
                .find(|line| line.starts_with("| ROUND"))
                .unwrap()
                .matches('|')
                .count(),
            "{row}"
        );
    }
}

#[test]
fn holders_and_budgets_cannot_act_in_any_form() {
    let evil = r"x\e[2J\nSAFE\u202e<script>|`@team_1";
    let holder = "gpustack-operator-worker-645ff7d7c5-8m4zk_7f0f3a52-9b0e-4c2c-8f0e-1f4c2f6a9a11";
    let text = shipped(SAFE)
        .replace(holder, &format!("\"{evil}\""))
        .replace("  name: kueue-manager-pdb\n", &format!("  name: \"{evil}\"\n"));
    assert_eq!(text.matches(evil).count(), 2);
    let files = Files::new();
    let path = files.write("evil.yaml", text);
    for view in ["placement", "pdb", "leases"] {
        for format in ["table", "wide", "json", "yaml", "name", "markdown", "html"] {
            let text = answers(&run(&[view, "-f", &path, "--complete", "-o", format]), 0);
            let plain = |character: char| character == '\n' || !character.is_control();
            assert!(text.chars().all(plain), "{view} {format}: {text:?}");
            assert!(
                !text.lines().any(|line| line.starts_with("SAFE<") || line.starts_with("SAFE\\")),
                "{view} {format}: {text}"
            );
            match format {
                "json" | "yaml" => continue,
                "html" => assert!(!text.contains("<script"), "{view}: {text}"),
                "markdown" => assert!(!text.contains("<script") && !text.contains("@team"), "{view}: {text}"),
                _ => {}
            }
            assert!(!text.contains('\u{202e}'), "{view} {format}: {text:?}");
        }
    }
    assert!(answers(&run(&["leases", "-f", &path, "--complete", "-o", "wide"]), 0).contains("\\u{202e}<script>|"));
    assert!(answers(&run(&["pdb", "-f", &path, "--complete"]), 0).contains("\\u{202e}<script>|"));
}

// Explain

#[test]
fn every_finding_is_explained() {
    let list = answers(&run(&["explain"]), 0);
    assert!(list.starts_with("CODE "), "{list}");
    assert!(!answers(&run(&["explain", "--no-headers"]), 0).contains("MEANING"));
    let names = answers(&run(&["explain", "-o", "name"]), 0);
    for code in gpustack_ha::checks::codes::Code::ALL {
        let name = code.as_str();
        assert!(names.lines().any(|line| line == name), "{name}");
        assert!(list.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}");
    }
    let page = answers(&run(&["explain", "pdb-blocks-drain"]), 0);
    assert!(
        page.starts_with("Severity: unsafe, at-risk\n\nA disruption budget refuses"),
        "{page}"
    );
    assert!(page.contains("\nHOW TO FIX IT\n"), "{page}");
    let markdown = answers(&run(&["explain", "pdb-blocks-drain", "-o", "markdown"]), 0);
    assert!(markdown.starts_with("## pdb-blocks-drain\n"), "{markdown}");
    assert!(markdown.contains("\n### How to fix it\n"), "{markdown}");
    let html = answers(&run(&["explain", "pdb-blocks-drain", "-o", "html"]), 0);
    assert!(html.contains("<code>minAvailable: 2</code>"), "{html}");
    let document: Value = serde_json::from_str(&answers(&run(&["explain", "-o", "json"]), 0)).unwrap();
    assert_eq!(document["kind"], "Explanation");
    assert_eq!(document["codes"].as_array().unwrap().len(), names.lines().count());
    for columns in ["60", "100", "200"] {
        for words in [&["explain"][..], &["explain", "not-assessed"], &["explain", "single-replica"]] {
            let output = binary().args(words).env("COLUMNS", columns).output().unwrap();
            for line in answers(&output, 0).lines() {
                assert!(line.chars().count() <= columns.parse().unwrap(), "{columns}: {line}");
            }
        }
    }
}

#[test]
fn a_code_that_is_none() {
    refuses(&run(&["explain", "pdb-block-drain"]), 2, &["did you mean pdb-blocks-drain?"]);
    refuses(&run(&["explain", "overlap"]), 2, &["did you mean pdb-overlap?"]);
    refuses(&run(&["explain", "webhook"]), 2, &["webhook-unserved", " or "]);
    refuses(&run(&["explain", "zzzzzzzzz"]), 2, &["kubectl gpustack-ha explain"]);
}

// Progress

/// The command on a terminal of its own, with what is typed there after two seconds; what the terminal got, and how it ended.
#[cfg(target_os = "linux")]
fn on_a_terminal(words: &str, typed: &[u8]) -> Option<(String, Option<i32>)> {
    let mut command = binary();
    command.env("TERM", "xterm").args(["-qefc", words, "/dev/null"]);
    let mut script = Command::new("script");
    script.args(command.get_args()).current_dir(env!("CARGO_MANIFEST_DIR")).env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            script.env(name, value);
        }
    }
    script.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut keys = child.stdin.take().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let _ = keys.write_all(typed);
    let output = child.wait_with_output().unwrap();
    drop(keys);
    Some((String::from_utf8(output.stdout).unwrap(), output.status.code()))
}

#[test]
#[cfg(target_os = "linux")]
fn what_takes_long_is_said_on_a_terminal_and_leaves_it_clean() {
    let held = std::sync::Mutex::new(Vec::new());
    let silent = server(move |stream| held.lock().unwrap().push(stream));
    let words = |limit: &str| {
        let binary = env!("CARGO_BIN_EXE_kubectl-gpustack_ha");
        format!("'{binary}' drain-preflight a -s http://127.0.0.1:{silent} --request-timeout {limit}")
    };
    let line = format!("asking http://127.0.0.1:{silent}");
    let Some((shown, code)) = on_a_terminal(&words("3s"), b"") else {
        return;
    };
    assert_eq!(code, Some(3), "{shown:?}");
    let (progress, rest) = shown.rsplit_once("\r\u{1b}[K").unwrap_or_else(|| panic!("{shown:?}"));
    assert!(progress.contains(&line) && progress.contains(", 1 s"), "{shown:?}");
    assert!(rest.starts_with("error: "), "{shown:?}");

    let (shown, code) = on_a_terminal(&words("30s"), b"\x03").unwrap();
    assert_eq!(code, Some(130), "{shown:?}");
    assert!(shown.contains(&line) && shown.ends_with("\r\u{1b}[K"), "{shown:?}");

    let (shown, _) = on_a_terminal(&format!("{} -v", words("3s")), b"").unwrap();
    assert!(!shown.contains(&line), "each request is printed instead: {shown:?}");
    let quiet = preflight(&["a", "-s", &format!("http://127.0.0.1:{silent}"), "--request-timeout", "2s"]);
    assert!(!err(&quiet).contains(&line), "not where nobody looks");
}

/// Every command in a document, and every piece of text that holds one.
fn commands(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(text) if key == "command" || key == "drainCommand" => drop(found.insert(text.to_owned())),
                    _ => commands(value, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| commands(value, found)),
        _ => {}
    }
}

#[test]
fn every_printed_command_reaches_the_same_cluster() {
    let flags = ["--kubeconfig", "my config", "--context", "prod", "--as", "admin"];
    let start = "kubectl --kubeconfig 'my config' --context prod --as admin ";
    for file in [KUEUE, SAFE] {
        for complete in [&["--complete"][..], &[]] {
            let mut found = BTreeSet::new();
            commands(&json(&[&["cp-1", "-f", file], complete, &flags].concat()), &mut found);
            assert!(!found.is_empty());
            for command in found {
                assert!(command.starts_with(start), "{command}");
            }
        }
    }
    let files = Files::new();
    let pods = files.write("pods.yaml", bare_pod("p", "a"));
    let widget = files.write("widget.yaml", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n");
    for words in [&["a", "-f", &pods][..], &["a", "-f", &widget], &["-l", "a=b", "-f", KUEUE]] {
        let output = preflight(&[words, &flags].concat());
        assert!(err(&output).contains(&format!("{start}get ")), "{}", err(&output));
    }
}

#[test]
fn help_fits_a_terminal() {
    for words in [
        &["-h"][..],
        &["--help"],
        &["drain-preflight", "-h"],
        &["drain-preflight", "--help"],
        &["help"],
        &["--version"],
    ] {
        let text = answers(&run(words), 0);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
    assert_eq!(answers(&run(&[]), 0), answers(&run(&["--help"]), 0), "as kubectl without words");
}

// What is written down

fn shipped(path: &str) -> String {
    fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

const BEGIN: &str = "<!-- output: ";
const END: &str = "<!-- /output -->";

/// With `BLESS=1` it writes what is printed into the README.
#[test]
fn the_readme_shows_what_is_printed() {
    let readme = shipped("README.md");
    let mut text = String::new();
    let mut rest = readme.as_str();
    let mut asked = Vec::new();
    while let Some((before, block)) = rest.split_once(BEGIN) {
        let (words, _) = block.split_once(" -->").unwrap();
        let output = binary().args(words.split(' ')).env("COLUMNS", "100").output().unwrap();
        assert!(!output.stdout.is_empty(), "{words}");
        text.push_str(&format!(
            "{before}{BEGIN}{words} -->\n```\n$ kubectl gpustack-ha {words}\n{}```\n{END}",
            String::from_utf8(output.stdout).unwrap()
        ));
        rest = block.split_once(END).unwrap().1;
        asked.push(words);
    }
    text.push_str(rest);
    if std::env::var_os("BLESS").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"), text).unwrap();
        return;
    }
    assert_eq!(readme, text, "`BLESS=1 cargo test --test cli readme` writes it anew");
    let (_, after) = readme.split_once(END).unwrap();
    assert_eq!(
        after.split("```\n").nth(1).unwrap(),
        format!("cargo run -- {}\n", asked[0]),
        "the first command is the one whose output is shown"
    );
}

/// Words of a command line as a shell splits them, as far as ours need it.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect()
}

#[track_caller]
fn parses(line: &str) {
    let (_, ours) = line.split_once("kubectl gpustack-ha ").unwrap();
    let ours = ours.split(['|', '`', '>']).next().unwrap();
    if let Err(error) = Cli::try_parse_from(["kubectl gpustack-ha".to_owned()].into_iter().chain(words(ours))) {
        panic!("{line}: {error}");
    }
}

#[test]
fn every_command_written_down_is_one_of_ours() {
    let plugins: Value = serde_yaml::from_str(&shipped("plugins.yaml")).unwrap();
    for plugin in plugins["plugins"].as_object().unwrap().values() {
        let mut args = plugin["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        let script = args.nth(1).unwrap().replace(" 2>&1", "");
        parses(&script.replace("\"$@\"", &args.skip(1).collect::<Vec<_>>().join(" ")));
    }
    for path in ["README.md", KUEUE, SAFE, "src/cli/help.rs"] {
        let text = shipped(path).replace("\\n", "\n");
        for line in text.lines().filter(|line| line.contains("kubectl gpustack-ha drain-preflight ")) {
            parses(line.trim_end_matches("\","));
        }
    }
}

#[test]
fn two_installs_are_both_named() {
    let second: Vec<String> = shipped(SAFE)
        .split("\n---\n")
        .filter(|document| document.contains("kind: Deployment\n"))
        .map(|document| {
            document
                .replace("namespace: gpustack-system", "namespace: second")
                .replace("app.kubernetes.io/instance: gpustack-operator", "app.kubernetes.io/instance: other")
        })
        .collect();
    let files = Files::new();
    let second = files.write("second.yaml", second.join("\n---\n"));
    let asked = ["cp-1", "-f", SAFE, "-f", &second, "--complete"];
    refuses(
        &preflight(&asked),
        2,
        &[
            "more than one",
            "--release gpustack-operator -n gpustack-system",
            "--release other -n second",
        ],
    );
    let install = |words: &[&str]| json(&[&asked[..], words].concat())["install"]["namespace"].clone();
    assert_eq!(install(&["--release", "other"]), "second");
    assert_eq!(install(&["-n", "gpustack-system"]), "gpustack-system");
}

// version

#[test]
fn version_of_the_client_contacts_nobody() {
    for words in [
        &["version", "--client"][..],
        &["version", "--client", "-o", "json"],
        &["version", "--client", "-o", "yaml"],
    ] {
        let text = answers(&run(words), 0);
        assert!(
            text.contains(concat!("v", env!("CARGO_PKG_VERSION"))) && text.contains("v1.36"),
            "{text}"
        );
    }
    let document: Value = serde_json::from_str(&answers(&run(&["version", "--client", "-o", "json"]), 0)).unwrap();
    assert_eq!((document["kind"].as_str(), &document["server"]), (Some("Version"), &Value::Null));
}

#[test]
fn version_is_printed_even_without_a_cluster() {
    let output = run(&["version", "-o", "json"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["server"], Value::Null);
    assert!(
        err(&output).starts_with("error: no kubeconfig") && err(&output).contains("--client"),
        "{}",
        err(&output)
    );
}

#[test]
fn version_of_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let answer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        let body = r#"{"gitVersion": "v1.30.2"}"#;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
    });
    let text = answers(&run(&["version", "--server", &server]), 0);
    answer.join().unwrap();
    assert!(text.contains(&format!("Server:       v1.30.2 ({server})")), "{text}");
}

#[test]
fn a_slip_of_the_finger_is_understood() {
    for (words, meant) in [
        (&["drian-preflight"][..], "'drain-preflight'"),
        (&["drain-preflight", "a", "--forse"], "'--force'"),
    ] {
        refuses(&run(words), 2, &[meant]);
    }
}
