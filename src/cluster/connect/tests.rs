use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::error::SHOWN;
use super::*;
use crate::cli::connection::RequestTimeout;
use crate::cluster::live::Reader;

const CONFIG: &str = r#"
apiVersion: v1
kind: Config
current-context: prod
clusters:
- name: prod
  cluster: {server: "https://prod.example:6443", certificate-authority: ca.crt, tls-server-name: other}
- name: dev
  cluster: {server: "https://dev.example/k8s/clusters/c-1", insecure-skip-tls-verify: true}
contexts:
- name: prod
  context: {cluster: prod, user: admin}
- name: development
  context: {cluster: dev, user: exec}
- name: dangling
  context: {cluster: gone, user: admin}
users:
- name: admin
  user: {token: from-file}
- name: exec
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin-of-ours, installHint: "see https://example.com", interactiveMode: Never}
"#;

fn write(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// A home with one kubeconfig.
fn home(text: &str) -> (TempDir, Environment) {
    let dir = TempDir::new().unwrap();
    write(&dir, ".kube/config", text);
    let environment = Environment {
        home: Some(dir.path().to_owned()),
        ..Environment::default()
    };
    (dir, environment)
}

fn flags() -> ConnectionFlags {
    ConnectionFlags {
        request_timeout: RequestTimeout(Some(Duration::from_secs(5))),
        ..ConnectionFlags::default()
    }
}

fn some(text: impl Into<String>) -> Option<String> {
    Some(text.into())
}

fn resolved(flags: &ConnectionFlags, environment: &Environment) -> Resolved {
    resolve(flags, environment).unwrap()
}

fn refused(flags: &ConnectionFlags, environment: &Environment) -> ConnectError {
    resolve(flags, environment).err().unwrap()
}

fn token(user: &AuthInfo) -> String {
    super::kubeconfig::token(user).unwrap_or_default()
}

#[test]
fn the_current_context_and_the_asked_one() {
    let (dir, environment) = home(CONFIG);
    let found = resolved(&flags(), &environment);
    assert_eq!(found.context.as_deref(), Some("prod"));
    assert_eq!(found.cluster.server.as_deref(), Some("https://prod.example:6443"));
    assert_eq!(
        found.cluster.certificate_authority,
        some(dir.path().join(".kube/ca.crt").to_string_lossy())
    );
    assert_eq!(token(&found.user), "from-file");

    let found = resolved(
        &ConnectionFlags {
            context: some("development"),
            ..flags()
        },
        &environment,
    );
    assert_eq!(found.cluster.server.as_deref(), Some("https://dev.example/k8s/clusters/c-1"));
    assert_eq!(credential(&found.user), Credential::Exec("no-such-plugin-of-ours".to_owned()));

    let found = resolved(
        &ConnectionFlags {
            cluster: some("dev"),
            user: some("admin"),
            ..flags()
        },
        &environment,
    );
    assert_eq!(found.context.as_deref(), Some("prod"));
    assert_eq!(found.cluster.insecure_skip_tls_verify, Some(true));
    assert_eq!(token(&found.user), "from-file");
}

#[test]
fn flags_override_as_kubectls_do() {
    let (_dir, environment) = home(CONFIG);
    let found = resolved(
        &ConnectionFlags {
            server: some("https://1.2.3.4"),
            token: some("given"),
            ..flags()
        },
        &environment,
    );
    assert_eq!(found.cluster.server.as_deref(), Some("https://1.2.3.4"));
    assert_eq!(found.cluster.tls_server_name, None, "--server alone clears the kubeconfig's name");
    assert!(found.cluster.certificate_authority.is_some());
    assert_eq!(token(&found.user), "given");

    let found = resolved(
        &ConnectionFlags {
            insecure_skip_tls_verify: true,
            ..flags()
        },
        &environment,
    );
    assert_eq!(found.cluster.certificate_authority, None);
    let found = resolved(
        &ConnectionFlags {
            context: some("development"),
            token: some("given"),
            ..flags()
        },
        &environment,
    );
    assert_eq!(credential(&found.user), Credential::Token, "a token beats the plugin");
    let both = ConnectionFlags {
        insecure_skip_tls_verify: true,
        certificate_authority: some("ca.crt"),
        ..flags()
    };
    assert!(matches!(refused(&both, &environment), ConnectError::Settings(_)));
    assert!(matches!(
        refused(
            &ConnectionFlags {
                as_uid: some("1"),
                ..flags()
            },
            &environment
        ),
        ConnectError::Settings(_)
    ));

    // No credential goes over a connection that anyone can read.
    let found = resolved(
        &ConnectionFlags {
            server: some("http://localhost:8001"),
            as_user: some("a"),
            ..flags()
        },
        &environment,
    );
    assert_eq!(credential(&found.user), Credential::None);
    assert_eq!(found.user.impersonate.as_deref(), Some("a"));
    // Without a scheme, what else is known about TLS decides.
    let found = resolved(
        &ConnectionFlags {
            server: some("1.2.3.4:6443"),
            ..flags()
        },
        &environment,
    );
    assert_eq!(found.cluster.server.as_deref(), Some("https://1.2.3.4:6443"));
    let nowhere = Environment::default();
    let found = resolved(
        &ConnectionFlags {
            server: some("localhost:8080"),
            ..flags()
        },
        &nowhere,
    );
    assert_eq!(
        (found.cluster.server.as_deref(), found.context),
        (Some("http://localhost:8080"), None)
    );
    assert!(matches!(
        refused(
            &ConnectionFlags {
                server: some("ftp://x"),
                ..flags()
            },
            &nowhere
        ),
        ConnectError::Settings(_)
    ));
}

#[test]
fn the_first_of_several_files_wins() {
    let dir = TempDir::new().unwrap();
    let one = write(
        &dir,
        "one",
        "current-context: ''\nclusters:\n- name: c\n  cluster: {server: 'https://first'}\n",
    );
    let two = write(
        &dir,
        "two",
        "apiVersion: v1\ncurrent-context: x\nclusters:\n- name: c\n  cluster: {server: 'https://second'}\n\
         contexts:\n- name: x\n  context: {cluster: c, user: u}\nusers:\n- name: u\n  user: {token: t}\n",
    );
    let three = write(&dir, "three", "current-context: y\n");
    let list = std::env::join_paths([Path::new(""), &one, Path::new("/nonexistent/file"), &two, &three]).unwrap();
    let environment = Environment {
        kubeconfig: Some(list),
        home: Some("/nonexistent".into()),
        ..Environment::default()
    };
    let found = resolved(&flags(), &environment);
    assert_eq!(found.context.as_deref(), Some("x"));
    assert_eq!(found.cluster.server.as_deref(), Some("https://first"));
    assert_eq!(token(&found.user), "t");

    // --kubeconfig is read instead of all others.
    let error = refused(
        &ConnectionFlags {
            kubeconfig: Some(one.clone()),
            ..flags()
        },
        &environment,
    );
    assert!(matches!(error, ConnectError::NoCurrentContext { .. }), "{error}");
    assert!(error.to_string().contains(&*one.to_string_lossy()));
}

#[test]
fn a_kubeconfig_that_is_not_there() {
    let environment = Environment {
        home: Some("/nonexistent".into()),
        ..Environment::default()
    };
    let error = refused(&flags(), &environment);
    assert!(error.to_string().contains("/nonexistent/.kube/config"), "{error}");
    assert!(error.hint().unwrap().contains("KUBECONFIG"));
    let error = refused(
        &ConnectionFlags {
            kubeconfig: Some("/nonexistent/k".into()),
            ..flags()
        },
        &environment,
    );
    assert!(
        matches!(error, ConnectError::ReadKubeconfig { .. }) && error.to_string().contains("/nonexistent/k"),
        "{error}"
    );
    let dir = TempDir::new().unwrap();
    let error = refused(
        &ConnectionFlags {
            kubeconfig: Some(dir.path().into()),
            ..flags()
        },
        &environment,
    );
    assert!(matches!(error, ConnectError::ReadKubeconfig { .. }), "{error}");
}

#[test]
fn a_broken_kubeconfig_names_file_and_line_and_no_secret() {
    for text in [
        "clusters:\n- name: c\n  cluster: {server: [s3cret}\n",
        "users:\n- name: u\n  user:\n\ttoken: s3cret\n",
        "users:\n- name: u\n  user: {token: [s3cret]}\n",
        "clusters: s3cret\n",
        "contexts:\n- context: {user: s3cret}\n",
    ] {
        let (dir, environment) = home(text);
        let error = refused(&flags(), &environment);
        let message = error.to_string();
        assert!(
            matches!(error, ConnectError::BrokenKubeconfig { line: Some(_), .. }),
            "{text}: {message}"
        );
        assert!(message.contains(&*dir.path().join(".kube/config").to_string_lossy()), "{message}");
        assert!(!message.contains("s3cret") && !message.contains('\n'), "{message}");
    }
    let (_dir, environment) = home("");
    assert!(matches!(refused(&flags(), &environment), ConnectError::NoKubeconfig { .. }));
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("k"), b"\xff\x00\x01\x02").unwrap();
    refused(
        &ConnectionFlags {
            kubeconfig: Some(dir.path().join("k")),
            ..flags()
        },
        &environment,
    );
}

#[test]
fn names_that_do_not_exist() {
    let (_dir, environment) = home(CONFIG);
    let error = refused(
        &ConnectionFlags {
            context: some("prdo"),
            ..flags()
        },
        &environment,
    );
    assert_eq!(error.hint().unwrap(), "did you mean \"prod\"?");
    let error = refused(
        &ConnectionFlags {
            context: some("staging"),
            ..flags()
        },
        &environment,
    );
    assert_eq!(error.hint().unwrap(), "it has: prod, development, dangling");
    let error = refused(
        &ConnectionFlags {
            context: some("dangling"),
            ..flags()
        },
        &environment,
    );
    assert!(error.to_string().contains("cluster named \"gone\""), "{error}");
    let error = refused(
        &ConnectionFlags {
            user: some("admim"),
            ..flags()
        },
        &environment,
    );
    assert_eq!(error.hint().unwrap(), "did you mean \"admin\"?");
    let nowhere = Environment {
        home: Some("/nonexistent".into()),
        ..Environment::default()
    };
    assert!(matches!(
        refused(
            &ConnectionFlags {
                context: some("prod"),
                ..flags()
            },
            &nowhere
        ),
        ConnectError::NoKubeconfig { .. }
    ));
    let (_dir, environment) = home(&CONFIG.replace("current-context: prod", ""));
    let error = refused(&flags(), &environment);
    assert_eq!(error.hint().unwrap(), "choose one with --context: prod, development, dangling");
}

#[test]
fn a_pod_uses_its_service_account() {
    let dir = TempDir::new().unwrap();
    let pod = Environment {
        home: Some("/nonexistent".into()),
        service_host: some("fd00::1"),
        service_port: some("443"),
        service_account: dir.path().to_owned(),
        ..Environment::default()
    };
    assert!(
        matches!(refused(&flags(), &pod), ConnectError::NoKubeconfig { .. }),
        "no token, no service account"
    );
    write(&dir, "token", "t");
    write(&dir, "ca.crt", "");
    let found = resolved(
        &ConnectionFlags {
            as_user: some("a"),
            ..flags()
        },
        &pod,
    );
    assert_eq!(found.cluster.server.as_deref(), Some("https://[fd00::1]:443"));
    assert_eq!(
        credential(&found.user),
        Credential::TokenFile(dir.path().join("token").to_string_lossy().into())
    );
    assert!(found.cluster.certificate_authority.is_some());
    assert_eq!(found.user.impersonate.as_deref(), Some("a"));
    // A kubeconfig comes first.
    let (_home, mut environment) = home(CONFIG);
    (environment.service_host, environment.service_port) = (pod.service_host, pod.service_port);
    environment.service_account = pod.service_account;
    assert_eq!(resolved(&flags(), &environment).context.as_deref(), Some("prod"));
}

#[test]
fn proxies_of_the_environment_are_gos() {
    let environment = |no_proxy: &str| Environment {
        https_proxy: some("proxy:3128"),
        http_proxy: some("socks5://plain:1080"),
        no_proxy: some(no_proxy),
        ..Environment::default()
    };
    let proxied = |server: &str, no_proxy: &str| environment_proxy(server, &environment(no_proxy)).is_some();
    assert_eq!(
        environment_proxy("https://api.example", &environment("")).as_deref(),
        Some("http://proxy:3128")
    );
    assert_eq!(
        environment_proxy("http://api.example", &environment("")).as_deref(),
        Some("socks5://plain:1080")
    );
    for (server, no_proxy, expected) in [
        ("https://localhost:6443", "", false),
        ("https://127.0.0.1:6443", "", false),
        ("https://[::1]:6443", "", false),
        ("https://api.example", "*", false),
        ("https://api.example", "other, api.example,", false),
        ("https://api.example", "example", false),
        ("https://example", ".example", true),
        ("https://api.example", "*.example", false),
        ("https://api.example:6443", "api.example:443", true),
        ("https://api.example", "api.example:443", false),
        ("https://apiexample", "example", true),
        ("https://10.1.2.3:6443", "10.0.0.0/8", false),
        ("https://11.1.2.3:6443", "10.0.0.0/8", true),
        ("https://11.1.2.3:6443", "0.0.0.0/0", false),
        ("https://10.1.2.3:6443", "10.1.2.3", false),
        ("https://[fd00::1]:6443", "fd00::/16", false),
        ("https://10.1.2.3:6443", "10.0.0.0/99", true),
    ] {
        assert_eq!(proxied(server, no_proxy), expected, "{server} with NO_PROXY={no_proxy}");
    }
}

#[test]
fn passwords_and_control_characters_are_not_shown() {
    assert_eq!(without_password("https://u:p@h:1/x@y"), "https://h:1/x@y");
    assert_eq!(without_password("https://h/x"), "https://h/x");
    assert_eq!(shown("a\n\x1b[31m  b"), "a [31m b");
    assert_eq!(shown(&"ä".repeat(1000)).chars().count(), SHOWN + 1);
}

#[test]
fn tokens_are_made_fit_to_be_sent() {
    let nowhere = Environment::default();
    let to = |token: &str| ConnectionFlags {
        server: some("https://h"),
        token: some(token),
        ..flags()
    };
    assert!(matches!(refused(&to("a\nb"), &nowhere), ConnectError::Material { .. }));
    assert_eq!(token(&resolved(&to("ab"), &nowhere).user), "ab");

    let (dir, environment) = home(&CONFIG.replace("token: from-file", "tokenFile: t"));
    let error = refused(&flags(), &environment);
    assert!(
        matches!(error, ConnectError::Material { .. }) && error.to_string().contains("/t: "),
        "{error}"
    );
    write(&dir, ".kube/t", "abc\n");
    assert_eq!(token(&resolved(&flags(), &environment).user), "abc");
    write(&dir, ".kube/t", "abc");
    let found = resolved(&flags(), &environment).user;
    assert!(
        matches!(credential(&found), Credential::TokenFile(_)),
        "a file that may be renewed is left to kube"
    );
}

#[tokio::test]
async fn odd_addresses_are_errors() {
    for server in [
        "https://",
        "https:///x",
        "https://?x",
        "https://[::1",
        "https://h:99999999",
        "https://a b",
        "http://\u{e9}",
        "/x",
        "https://h:",
    ] {
        let flags = ConnectionFlags {
            insecure_skip_tls_verify: true,
            ..to(server.to_owned())
        };
        let opened = Connection::open(&flags, &Environment::default()).await;
        assert!(
            matches!(opened, Err(ConnectError::Settings(_))) || server == "https://h:",
            "{server}: {opened:?}"
        );
    }
}

// With real sockets.

/// A certificate for a name, and a TLS server with it that answers every request alike and notes them.
struct TlsServer {
    port: u16,
    certificate: String,
    seen: Arc<Mutex<Vec<String>>>,
}

fn tls_server(name: &str, expired: bool, answer: &'static str) -> TlsServer {
    tls_server_for(None, name, expired, answer)
}

/// The same, for a client with this certificate only.
fn tls_server_for(client: Option<&rcgen::Certificate>, name: &str, expired: bool, answer: &'static str) -> TlsServer {
    let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    if expired {
        parameters.not_after = rcgen::date_time_ymd(2001, 1, 1);
        parameters.not_before = rcgen::date_time_ymd(2000, 1, 1);
    }
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match client {
        None => config.with_no_client_auth(),
        Some(client) => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(client.der().clone()).unwrap();
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .unwrap();
            config.with_client_cert_verifier(verifier)
        }
    };
    let config = config
        .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().unwrap())
        .unwrap();
    let config = Arc::new(config);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let mut stream = rustls::StreamOwned::new(rustls::ServerConnection::new(config.clone()).unwrap(), stream);
            let Some(request) = request(&mut stream) else { continue };
            noted.lock().unwrap().push(request);
            let _ = stream.write_all(answer.as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    TlsServer {
        port,
        certificate: certificate.pem(),
        seen,
    }
}

/// The head of a request.
fn request(stream: &mut impl Read) -> Option<String> {
    let mut text = Vec::new();
    let mut buffer = [0; 1024];
    while !text.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(length) => text.extend_from_slice(&buffer[..length]),
        }
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

const VERSION: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"gitVersion\":\"v1.36.3\"}";
const UNAUTHORIZED: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
                            {\"kind\":\"Status\",\"message\":\"Unauthorized\",\"code\":401}";

/// A plain server that answers alike.
fn plain_server(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream): Result<TcpStream, _> = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

/// A port where nothing listens.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn begin(flags: &ConnectionFlags, environment: &Environment) -> Result<String, ConnectError> {
    let connection = Connection::open(flags, environment).await?;
    Ok(Reader::new(connection, 0)
        .begin()
        .await?
        .server_version
        .unwrap_or_default()
        .git_version)
}

async fn failure(flags: &ConnectionFlags, environment: &Environment) -> ConnectError {
    begin(flags, environment).await.unwrap_err()
}

fn to(server: String) -> ConnectionFlags {
    ConnectionFlags {
        server: Some(server),
        ..flags()
    }
}

#[tokio::test]
async fn nobody_there() {
    let nowhere = Environment::default();
    for scheme in ["http", "https"] {
        let server = format!("{scheme}://127.0.0.1:{}", closed_port());
        let error = failure(
            &ConnectionFlags {
                insecure_skip_tls_verify: true,
                ..to(server.clone())
            },
            &nowhere,
        )
        .await;
        assert!(
            matches!(
                error,
                ConnectError::Unreachable {
                    how: Unreachable::Refused,
                    ..
                }
            ),
            "{error:?}"
        );
        assert_eq!(
            error.to_string(),
            format!("cannot reach the API server {server}: connection refused")
        );
    }
    // A label of 64 letters is no name that anyone is asked for.
    let error = failure(&to(format!("http://{}.invalid:6443", "x".repeat(64))), &nowhere).await;
    assert!(
        matches!(error, ConnectError::Unreachable { how: Unreachable::Dns, .. }),
        "{error:?}"
    );

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut flags = to(format!("https://{}", silent.local_addr().unwrap()));
    flags.insecure_skip_tls_verify = true;
    flags.request_timeout = RequestTimeout(Some(Duration::from_millis(300)));
    let error = failure(&flags, &nowhere).await;
    assert!(
        matches!(
            error,
            ConnectError::Unreachable {
                how: Unreachable::Timeout,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn certificates() {
    let dir = TempDir::new().unwrap();
    let nowhere = Environment::default();
    let server = tls_server("localhost", false, VERSION);
    let own = write(&dir, "own.crt", &server.certificate).to_string_lossy().into_owned();
    let other = write(&dir, "other.crt", &tls_server("localhost", false, VERSION).certificate)
        .to_string_lossy()
        .into_owned();
    let at = |host: &str, authority: &str| ConnectionFlags {
        certificate_authority: some(authority),
        ..to(format!("https://{host}:{}", server.port))
    };
    let how = |error: ConnectError| match error {
        ConnectError::Tls { how, message, .. } => (how, message),
        other => panic!("{other:?}"),
    };

    assert_eq!(begin(&at("localhost", &own), &nowhere).await.unwrap(), "v1.36.3");
    assert_eq!(
        how(failure(&at("localhost", &other), &nowhere).await).0,
        TlsFailure::UnknownAuthority
    );
    let (wrong, message) = how(failure(&at("127.0.0.1", &own), &nowhere).await);
    assert_eq!(wrong, TlsFailure::WrongName);
    assert!(message.contains("127.0.0.1") && message.contains("localhost"), "{message}");
    let named = ConnectionFlags {
        tls_server_name: some("localhost"),
        ..at("127.0.0.1", &own)
    };
    assert_eq!(begin(&named, &nowhere).await.unwrap(), "v1.36.3");
    let insecure = ConnectionFlags {
        insecure_skip_tls_verify: true,
        ..to(format!("https://127.0.0.1:{}", server.port))
    };
    assert_eq!(begin(&insecure, &nowhere).await.unwrap(), "v1.36.3");

    let expired = tls_server("localhost", true, VERSION);
    let own = write(&dir, "expired.crt", &expired.certificate).to_string_lossy().into_owned();
    let flags = ConnectionFlags {
        certificate_authority: Some(own.clone()),
        ..to(format!("https://localhost:{}", expired.port))
    };
    assert_eq!(how(failure(&flags, &nowhere).await).0, TlsFailure::Expired);

    let flags = ConnectionFlags {
        certificate_authority: Some(own),
        ..to(format!("https://localhost:{}", plain_server(VERSION)))
    };
    assert_eq!(how(failure(&flags, &nowhere).await).0, TlsFailure::NotTls);

    let missing = ConnectionFlags {
        certificate_authority: some("/nonexistent/ca.crt"),
        ..to("https://localhost".to_owned())
    };
    let error = failure(&missing, &nowhere).await;
    assert!(
        matches!(error, ConnectError::Material { .. }) && error.to_string().contains("/nonexistent/ca.crt"),
        "{error}"
    );
    for (text, said) in [
        ("nonsense", "no certificate"),
        ("-----BEGIN CERTIFICATE-----\n!\n-----END", "broken"),
        ("-----BEGIN CERTIFICATE-----\nYQ==\n", "TLS"),
    ] {
        let authority = write(&dir, "bad.crt", text).to_string_lossy().into_owned();
        let error = failure(&at("localhost", &authority), &nowhere).await;
        assert!(
            matches!(error, ConnectError::Material { .. }) && error.to_string().contains(said),
            "{error}"
        );
    }
    let half = ConnectionFlags {
        client_certificate: some("/nonexistent/c"),
        ..insecure
    };
    assert!(matches!(failure(&half, &nowhere).await, ConnectError::Material { .. }));
}

#[tokio::test]
async fn who_we_are_is_sent() {
    let server = tls_server("localhost", false, VERSION);
    let flags = ConnectionFlags {
        insecure_skip_tls_verify: true,
        token: some("t0ken"),
        as_user: some("jane"),
        as_uid: some("u-1"),
        as_group: vec!["a".to_owned(), "b".to_owned()],
        ..to(format!("https://127.0.0.1:{}/k8s/clusters/c-1/", server.port))
    };
    begin(&flags, &Environment::default()).await.unwrap();
    let request = server.seen.lock().unwrap()[0].clone();
    for part in [
        "GET /k8s/clusters/c-1/version HTTP/1.1",
        "authorization: Bearer t0ken",
        "impersonate-user: jane",
        "impersonate-uid: u-1",
        "impersonate-group: a",
        "impersonate-group: b",
    ] {
        assert!(request.contains(part), "{part} in {request}");
    }
}

#[tokio::test]
async fn an_expired_token() {
    let server = tls_server("localhost", false, UNAUTHORIZED);
    let url = format!("https://127.0.0.1:{}", server.port);
    let flags = ConnectionFlags {
        insecure_skip_tls_verify: true,
        token: some("old"),
        ..to(url.clone())
    };
    let error = failure(&flags, &Environment::default()).await;
    assert!(
        matches!(
            error,
            ConnectError::Unauthorized {
                credential: Credential::Token,
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        format!("the API server {url} does not accept the credential (401): Unauthorized")
    );
    assert!(error.hint().unwrap().contains("get a new one"));
    let error = failure(&ConnectionFlags { token: None, ..flags }, &Environment::default()).await;
    assert!(error.hint().unwrap().contains("no credential"));
}

#[tokio::test]
async fn a_plugin_that_is_missing_or_fails() {
    let (_dir, environment) = home(CONFIG);
    let error = failure(
        &ConnectionFlags {
            context: some("development"),
            ..flags()
        },
        &environment,
    )
    .await;
    assert!(
        matches!(&error, ConnectError::ExecMissing { command, .. } if command == "no-such-plugin-of-ours"),
        "{error:?}"
    );
    assert_eq!(error.hint().unwrap(), "see https://example.com");

    for (script, said) in [
        ("echo 'session expired' >&2; exit 3", "session expired"),
        ("echo s3cret", "did not print an ExecCredential"),
        (
            r#"echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"}'"#,
            "no credential",
        ),
    ] {
        let (_dir, environment) = home(&with_plugin(closed_port(), script));
        let error = failure(&flags(), &environment).await;
        let message = error.to_string();
        assert!(
            matches!(error, ConnectError::ExecFailed { .. }) && message.contains(said),
            "{message}"
        );
        assert!(
            !message.contains("s3cret") && !message.contains("KUBERNETES_EXEC_INFO"),
            "{message}"
        );
    }
}

fn with_plugin(port: u16, script: &str) -> String {
    format!(
        "current-context: x\nclusters:\n- name: x\n  cluster: {{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}\n\
         contexts:\n- name: x\n  context: {{cluster: x, user: x}}\nusers:\n- name: x\n  user:\n    exec:\n      \
         apiVersion: client.authentication.k8s.io/v1\n      interactiveMode: Never\n      command: sh\n      args:\n      - -c\n      - |\n        {script}\n"
    )
}

#[tokio::test]
async fn a_plugin_runs_once_and_its_token_is_used() {
    let server = tls_server("localhost", false, VERSION);
    let dir = TempDir::new().unwrap();
    let count = dir.path().join("count");
    for expiry in ["", r#","expirationTimestamp":"2999-01-01T00:00:00Z""#] {
        let script = format!(
            r#"echo x >> {}; echo '{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{{"token":"printed"{expiry}}}}}'"#,
            count.display()
        );
        let (_dir, environment) = home(&with_plugin(server.port, &script));
        assert_eq!(begin(&flags(), &environment).await.unwrap(), "v1.36.3");
        assert!(server.seen.lock().unwrap().pop().unwrap().contains("authorization: Bearer printed"));
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
        std::fs::remove_file(&count).unwrap();
    }
}

#[tokio::test]
async fn client_certificates() {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["client".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let server = tls_server_for(Some(&certificate), "localhost", false, VERSION);
    let dir = TempDir::new().unwrap();
    let path = |name: &str, text: &str| some(write(&dir, name, text).to_string_lossy());
    let without = ConnectionFlags {
        insecure_skip_tls_verify: true,
        ..to(format!("https://127.0.0.1:{}", server.port))
    };
    let with = ConnectionFlags {
        client_certificate: path("c.crt", &certificate.pem()),
        client_key: path("c.key", &key.serialize_pem()),
        ..without.clone()
    };
    let nowhere = Environment::default();
    assert_eq!(begin(&with, &nowhere).await.unwrap(), "v1.36.3");
    let error = failure(&without, &nowhere).await;
    assert!(
        matches!(
            error,
            ConnectError::Tls {
                how: TlsFailure::ClientCertificate,
                ..
            }
        ),
        "{error:?}"
    );
    let half = ConnectionFlags {
        client_key: None,
        ..with.clone()
    };
    assert!(failure(&half, &nowhere).await.to_string().contains("both"));
    let garbage = ConnectionFlags {
        client_certificate: path("bad.crt", "nonsense"),
        ..with
    };
    assert!(matches!(failure(&garbage, &nowhere).await, ConnectError::Material { .. }));

    // A plugin may print a certificate too.
    let credential = serde_json::json!({
        "kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
        "status": {"clientCertificateData": certificate.pem(), "clientKeyData": key.serialize_pem()},
    });
    let printed = path("credential", &credential.to_string()).unwrap();
    let (_dir, environment) = home(&with_plugin(server.port, &format!("cat {printed}")));
    assert_eq!(begin(&flags(), &environment).await.unwrap(), "v1.36.3");
}

#[tokio::test]
async fn proxies_that_fail() {
    let config = |proxy: String| {
        home(&format!(
            "current-context: x\nclusters:\n- name: x\n  cluster: {{server: 'https://api.invalid:6443', insecure-skip-tls-verify: true, proxy-url: '{proxy}'}}\n\
             contexts:\n- name: x\n  context: {{cluster: x, user: x}}\n"
        ))
    };
    let denies = plain_server("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let asks = plain_server("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
    for (proxy, said) in [
        (format!("http://user:s3cret@127.0.0.1:{}", closed_port()), "refused"),
        (format!("socks5://127.0.0.1:{}", closed_port()), "cannot be reached"),
        (format!("http://127.0.0.1:{denies}"), "the proxy refused"),
        (format!("http://127.0.0.1:{asks}"), "authorization required"),
        ("ftp://proxy".to_owned(), "must begin with"),
        ("http://bad host".to_owned(), "invalid"),
    ] {
        let (_dir, environment) = config(proxy.clone());
        let error = failure(&flags(), &environment).await;
        let message = error.to_string();
        assert!(
            matches!(error, ConnectError::Proxy { .. }) && message.contains(said),
            "{proxy}: {error:?}"
        );
        assert!(!message.contains("s3cret"), "{message}");
        assert!(error.hint().is_some());
    }
}

#[tokio::test]
async fn something_else_answers() {
    let nowhere = Environment::default();
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>",
        "HTTP/1.1 302 Found\r\nLocation: /login\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{}",
    ] {
        let error = failure(&to(format!("http://127.0.0.1:{}", plain_server(answer))), &nowhere).await;
        assert!(matches!(error, ConnectError::NotKubernetes { .. }), "{answer}: {error:?}");
        assert!(error.hint().unwrap().contains("https://") == answer.contains("HTTPS server"));
    }
}
