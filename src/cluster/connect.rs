//! From kubectl's flags and kubeconfig to a client, resolved as kubectl does
//! (`k8s.io/client-go/tools/clientcmd/client_config.go`), with errors that say what to do.

use std::error::Error as StdError;
use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::client::{AuthError, ClientBuilder, ConfigExt};
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError, NamedAuthInfo, NamedCluster, NamedContext,
};
use kube::{Client, Config};
use thiserror::Error;

use crate::cli::connection::ConnectionFlags;

/// How long a connection may take to come up where `--request-timeout` does not end it earlier, as in client-go.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How much of a message of a server or a plugin is shown, in characters.
const SHOWN: usize = 400;

/// The part of the process environment that decides which cluster is meant.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `KUBECONFIG`: a list of files.
    pub kubeconfig: Option<OsString>,
    /// The home directory, for `~/.kube/config`.
    pub home: Option<PathBuf>,
    /// `KUBERNETES_SERVICE_HOST`, set in a pod.
    pub service_host: Option<String>,
    /// `KUBERNETES_SERVICE_PORT`, set in a pod.
    pub service_port: Option<String>,
    /// Where a pod finds its token and the certificate authority.
    pub service_account: PathBuf,
    /// `HTTPS_PROXY` or `https_proxy`.
    pub https_proxy: Option<String>,
    /// `HTTP_PROXY` or `http_proxy`, for a server without TLS.
    pub http_proxy: Option<String>,
    /// `NO_PROXY` or `no_proxy`.
    pub no_proxy: Option<String>,
}

impl Environment {
    /// Of this process.
    pub fn of_process() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let either = |upper: &str| text(upper).or_else(|| text(&upper.to_ascii_lowercase()));
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG"),
            home: std::env::home_dir(),
            service_host: text("KUBERNETES_SERVICE_HOST"),
            service_port: text("KUBERNETES_SERVICE_PORT"),
            service_account: PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount"),
            https_proxy: either("HTTPS_PROXY"),
            http_proxy: either("HTTP_PROXY"),
            no_proxy: either("NO_PROXY"),
        }
    }
}

/// How we show who we are, as far as a hint about a refused credential needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Not at all.
    None,
    /// By a bearer token.
    Token,
    /// By a bearer token in a file.
    TokenFile(String),
    /// By a client certificate.
    Certificate,
    /// By what a command prints.
    Exec(String),
    /// By an `auth-provider` of the kubeconfig.
    Provider(String),
    /// By user name and password.
    Password,
}

/// A way to an API server.
#[derive(Clone)]
pub struct Connection {
    /// The client; it sends what it is given, once, with no time limit of its own.
    pub client: Client,
    /// Name of the kubeconfig context; `None` in a pod or with `--server` alone.
    pub context: Option<String>,
    /// URL of the API server, without a password.
    pub server: String,
    /// How long one request may take with its body; `None` is for ever.
    pub timeout: Option<Duration>,
    /// How we show who we are.
    pub credential: Credential,
    /// URL of the proxy on the way, without a password.
    pub proxy: Option<String>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("context", &self.context)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFailure {
    /// Nobody we trust vouches for the certificate.
    UnknownAuthority,
    /// The certificate is for another name.
    WrongName,
    /// The certificate's time is over, or has not come, by this machine's clock.
    Expired,
    /// The other side does not speak TLS.
    NotTls,
    /// The server did not accept our certificate, or misses one.
    ClientCertificate,
    /// Anything else.
    Other,
}

/// Why a server could not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// Nothing listens there.
    Refused,
    /// Its name does not resolve.
    Dns,
    /// It does not answer in time.
    Timeout,
    /// Anything else.
    Other,
}

/// A kind of entry of a kubeconfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A context.
    Context,
    /// A cluster.
    Cluster,
    /// A user.
    User,
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Context => "context",
            Self::Cluster => "cluster",
            Self::User => "user",
        })
    }
}

/// Why there is no connection: what was tried, and what happened. Nothing was read.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// No kubeconfig anywhere, and not in a pod.
    #[error("no kubeconfig: looked for {}; and this is not a pod with a service account", looked.join(", "))]
    NoKubeconfig {
        /// The files that were looked for.
        looked: Vec<String>,
    },
    /// A kubeconfig is there but cannot be read.
    #[error("cannot read the kubeconfig {}: {source}", path.display())]
    ReadKubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A kubeconfig does not parse.
    #[error("the kubeconfig {}{} is broken: {message}", path.display(), at(*.line))]
    BrokenKubeconfig {
        /// The file.
        path: PathBuf,
        /// Line and column, from 1.
        line: Option<(u64, u64)>,
        /// Why, without the text around it, which may be a secret.
        message: String,
    },
    /// The kubeconfig names no current context, and no flag does.
    #[error("the kubeconfig ({}) has no current context", files.join(", "))]
    NoCurrentContext {
        /// The files that were read.
        files: Vec<String>,
        /// The contexts they have.
        known: Vec<String>,
    },
    /// A name that the kubeconfig does not have.
    #[error("the kubeconfig has no {what} named {name:?}{}", if *.asked { "" } else { ", though it refers to it" })]
    UnknownName {
        /// What was named.
        what: Entry,
        /// The name.
        name: String,
        /// Names of that kind that exist.
        known: Vec<String>,
        /// Whether a flag named it, not the kubeconfig.
        asked: bool,
    },
    /// Settings that make no sense, alone or together.
    #[error("{0}")]
    Settings(String),
    /// A certificate or a token that cannot be loaded.
    #[error("cannot load {what}: {message}")]
    Material {
        /// What.
        what: &'static str,
        /// Why.
        message: String,
    },
    /// The command that should print the credential does not exist.
    #[error("the credential plugin {command:?}, which the kubeconfig names, was not found")]
    ExecMissing {
        /// The command.
        command: String,
        /// How to get it, as the kubeconfig says.
        install: Option<String>,
    },
    /// The command that should print the credential failed.
    #[error("the credential plugin {command:?} failed: {message}")]
    ExecFailed {
        /// The command.
        command: String,
        /// What it said.
        message: String,
    },
    /// The way through a proxy failed.
    #[error("cannot reach {server} through the proxy {proxy}: {message}")]
    Proxy {
        /// The API server.
        server: String,
        /// The proxy.
        proxy: String,
        /// What happened.
        message: String,
    },
    /// The server was not reached.
    #[error("cannot reach the API server {server}: {message}")]
    Unreachable {
        /// The API server.
        server: String,
        /// How.
        how: Unreachable,
        /// What happened.
        message: String,
    },
    /// The TLS handshake failed.
    #[error("no secure connection to the API server {server}: {message}")]
    Tls {
        /// The API server.
        server: String,
        /// How.
        how: TlsFailure,
        /// What happened.
        message: String,
    },
    /// The server does not accept the credential.
    #[error("the API server {server} does not accept the credential (401): {message}")]
    Unauthorized {
        /// The API server.
        server: String,
        /// What was shown to it.
        credential: Credential,
        /// What it said.
        message: String,
    },
    /// The user may not act as the one named by `--as`.
    #[error("the API server {server} refuses to impersonate (403): {message}")]
    Impersonation {
        /// The API server.
        server: String,
        /// What it said.
        message: String,
    },
    /// Something answers that is not an API server.
    #[error("{server} does not answer like a Kubernetes API server: {message}")]
    NotKubernetes {
        /// Where.
        server: String,
        /// What it said.
        message: String,
    },
}

fn at(line: Option<(u64, u64)>) -> String {
    line.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default()
}

impl ConnectError {
    /// What to do about it, where we know.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoKubeconfig { .. } => "set KUBECONFIG or give --kubeconfig FILE; or judge files instead of a cluster with -f".to_owned(),
            Self::ReadKubeconfig { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                "let this user read the file, or name another one with --kubeconfig".to_owned()
            }
            Self::ReadKubeconfig { .. } => "name a file that exists with --kubeconfig or KUBECONFIG".to_owned(),
            Self::BrokenKubeconfig { .. } => "`kubectl config view` fails on it too; correct that line".to_owned(),
            Self::NoCurrentContext { known, .. } if known.is_empty() => {
                "the kubeconfig has no context at all; name another file with --kubeconfig".to_owned()
            }
            Self::NoCurrentContext { known, .. } => format!("choose one with --context: {}", list(known)),
            Self::UnknownName { what, name, known, .. } => match closest(name, known.iter().map(String::as_str)) {
                Some(close) => format!("did you mean {close:?}?"),
                None if known.is_empty() => format!("the kubeconfig has no {what} at all"),
                None => format!("it has: {}", list(known)),
            },
            Self::Settings(_) => return None,
            Self::Material { .. } => "correct the path or the data in the kubeconfig, or fetch the credentials anew".to_owned(),
            Self::ExecMissing {
                install: Some(install), ..
            } => install.clone(),
            Self::ExecMissing { command, install: None } => format!("install {command:?}, or put its directory on PATH"),
            Self::ExecFailed { .. } => "log in again with the cloud's own command; `kubectl get nodes` fails in the same way".to_owned(),
            Self::Proxy { message, .. } if message.contains("authorization required") => {
                "put the user and password into the proxy's URL (proxy-url, HTTPS_PROXY)".to_owned()
            }
            Self::Proxy { .. } => {
                "check proxy-url in the kubeconfig and HTTPS_PROXY; NO_PROXY names servers that are reached directly".to_owned()
            }
            Self::Unreachable { how, .. } => match how {
                Unreachable::Refused => "nothing listens there: is the API server running, and is this its address and port?".to_owned(),
                Unreachable::Dns => "check the host name in the kubeconfig, the VPN and the DNS".to_owned(),
                Unreachable::Timeout => "check the VPN, firewalls and the address; --request-timeout gives it longer".to_owned(),
                Unreachable::Other => "check the address in the kubeconfig and the network on the way".to_owned(),
            },
            Self::Tls { how, .. } => match how {
                TlsFailure::UnknownAuthority => {
                    "give the cluster's own authority with --certificate-authority FILE, or fetch the kubeconfig anew \
                     (a rebuilt cluster has a new one)"
                        .to_owned()
                }
                TlsFailure::WrongName => "use an address that the certificate names, or give one with --tls-server-name".to_owned(),
                TlsFailure::Expired => "check this machine's clock; else renew the API server's certificate".to_owned(),
                TlsFailure::NotTls => "the port does not speak TLS: check the port, or use http:// if that is meant".to_owned(),
                TlsFailure::ClientCertificate => {
                    "fetch the kubeconfig anew: its client certificate is missing, expired or of another cluster".to_owned()
                }
                TlsFailure::Other => return None,
            },
            Self::Unauthorized { credential, .. } => match credential {
                Credential::None => "the kubeconfig gives no credential for this cluster: check its user, or give --token".to_owned(),
                Credential::Token => "the token has expired or is of another cluster: get a new one".to_owned(),
                Credential::TokenFile(path) => format!("the token in {path} has expired or is of another cluster: get a new one"),
                Credential::Certificate => {
                    "the client certificate is of another cluster or was signed by an old authority: fetch the kubeconfig anew".to_owned()
                }
                Credential::Exec(command) => format!("log in again for {command:?}; the server refused what it printed"),
                Credential::Provider(name) => format!("log in again for the auth provider {name:?}"),
                Credential::Password => "API servers stopped taking passwords in 1.19: fetch the kubeconfig anew".to_owned(),
            },
            Self::Impersonation { .. } => "leave out --as, or ask for the right to impersonate".to_owned(),
            Self::NotKubernetes { message, .. } if message.contains("HTTP request to an HTTPS server") => {
                "the port speaks TLS: use https://".to_owned()
            }
            Self::NotKubernetes { .. } => {
                "check the address: a login page, a load balancer or another service may be in its place".to_owned()
            }
        })
    }
}

/// The names of a list, the first ten.
fn list(names: &[String]) -> String {
    let mut text = names.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 10 {
        text.push_str(", …");
    }
    text
}

/// The name that was probably meant: the nearest, if no more than a third of it differs.
pub fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= name.chars().count().div_ceil(3).min(4))
        .map(|(_, candidate)| candidate)
}

/// How many characters to insert, remove or replace to make one from the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Text of a server or a plugin on one line, cut to a length that a person reads.
pub(crate) fn shown(text: &str) -> String {
    let mut words = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty());
    let mut line = words.next().unwrap_or_default().to_owned();
    for word in words {
        line.push(' ');
        line.push_str(word);
    }
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A URL without its user and password.
fn without_password(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let authority = rest.find(['/', '?']).unwrap_or(rest.len());
            let host = rest[..authority].rfind('@').map_or(0, |found| found + 1);
            format!("{scheme}://{}", &rest[host..])
        }
        None => url.to_owned(),
    }
}

/// What flags, kubeconfig and environment come to.
struct Resolved {
    context: Option<String>,
    cluster: Cluster,
    user: AuthInfo,
}

impl Connection {
    /// Finds the cluster and builds a client for it. Nothing is sent yet, but a credential plugin runs.
    ///
    /// To be called inside a tokio runtime.
    ///
    /// # Errors
    /// Everything that keeps kubectl from its first request: see [`ConnectError`].
    pub async fn open(flags: &ConnectionFlags, environment: &Environment) -> Result<Self, ConnectError> {
        let Resolved {
            context,
            mut cluster,
            user,
        } = resolve(flags, environment)?;
        let server = cluster.server.clone().unwrap_or_default();
        let proxy = match cluster.proxy_url.take().filter(|url| !url.is_empty()) {
            Some(url) => Some(url),
            None => environment_proxy(&server, environment),
        };
        let server_shown = without_password(&server);
        let proxy_shown = proxy.as_deref().map(without_password);
        let proxy_error = |message: String| ConnectError::Proxy {
            server: server_shown.clone(),
            proxy: proxy_shown.clone().unwrap_or_default(),
            message,
        };
        let proxy = proxy
            .map(|url| {
                let uri: http::Uri = url.parse().map_err(|error| proxy_error(format!("its URL is invalid: {error}")))?;
                match uri.scheme_str() {
                    Some("http" | "https" | "socks5") if uri.host().is_some() => Ok(uri),
                    _ => Err(proxy_error("its URL must begin with http://, https:// or socks5://".to_owned())),
                }
            })
            .transpose()?;

        let credential = credential(&user);
        let exec = user.exec.clone();
        let name = "cluster".to_owned();
        let kubeconfig = Kubeconfig {
            clusters: vec![NamedCluster {
                name: name.clone(),
                cluster: Some(cluster),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: name.clone(),
                auth_info: Some(user),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: name.clone(),
                context: Some(Context {
                    cluster: name.clone(),
                    user: Some(name.clone()),
                    ..Context::default()
                }),
                ..NamedContext::default()
            }],
            current_context: Some(name),
            ..Kubeconfig::default()
        };
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| kubeconfig_error(error, &proxy_error))?;
        // kube matches NO_PROXY with the proxy's own host; kubectl matches it with the server, and only for a
        // proxy that the environment names.
        config.proxy_url = proxy;
        // The reader retries by itself, so that it can tell what happened, and limits each request as a whole.
        config.default_retry = false;
        config.connect_timeout = Some(
            flags
                .request_timeout
                .0
                .map_or(CONNECT_TIMEOUT, |timeout| timeout.min(CONNECT_TIMEOUT)),
        );
        if config.cluster_url.scheme_str() == Some("http") {
            // Without TLS there is nothing to verify; machines without certificates of any authority exist.
            config.root_cert = Some(Vec::new());
        }

        let client_error = |error| client_error(error, exec.as_ref(), &proxy_error);
        let client = if config.auth_info.exec.is_some() {
            // kube runs a credential plugin for each thing that it builds from a configuration. The layer alone
            // runs it once, and again when the token expires.
            match config.auth_layer().map_err(client_error)? {
                Some(layer) => {
                    config.auth_info.exec = None;
                    let namespace = config.default_namespace.clone();
                    let inner = Client::try_from(config).map_err(client_error)?;
                    let send = tower::service_fn(move |request| {
                        let inner = inner.clone();
                        async move { inner.send(request).await.map_err(tower::BoxError::from) }
                    });
                    ClientBuilder::new(send, namespace).with_layer(&layer).build()
                }
                // It gave a certificate, which is part of TLS.
                None => Client::try_from(config).map_err(client_error)?,
            }
        } else {
            Client::try_from(config).map_err(client_error)?
        };
        Ok(Self {
            client,
            context,
            server: server_shown,
            timeout: flags.request_timeout.0,
            credential,
            proxy: proxy_shown,
        })
    }

    /// What a failure to get an answer means.
    pub(crate) fn transport_error(&self, error: &(dyn StdError + 'static)) -> ConnectError {
        let chain: Vec<&(dyn StdError + 'static)> =
            std::iter::successors(Some(error), |error: &&(dyn StdError + 'static)| (*error).source()).collect();
        if let Some(auth) = chain.iter().find_map(|error| error.downcast_ref::<AuthError>()) {
            let command = match &self.credential {
                Credential::Exec(command) | Credential::Provider(command) => command.clone(),
                _ => String::new(),
            };
            return auth_error(auth, command, None);
        }
        let io = chain
            .iter()
            .filter_map(|error| error.downcast_ref::<std::io::Error>())
            .map(std::io::Error::kind)
            .next_back();
        let text = chain.iter().map(ToString::to_string).collect::<Vec<_>>().join(": ");
        let last = shown(&chain.last().map(ToString::to_string).unwrap_or_default());
        let server = self.server.clone();
        let has = |part: &str| text.contains(part);

        if let Some(proxy) = &self.proxy
            && (has("tunnel error")
                || has("SOCKS")
                || has("socks")
                || io == Some(std::io::ErrorKind::ConnectionRefused)
                || has("dns error"))
        {
            let message = match last.as_str() {
                "tunnel error: unsuccessful" => "the proxy refused to connect to the server".to_owned(),
                _ if last.ends_with("failed to create underlying connection") => "the proxy cannot be reached".to_owned(),
                _ => last,
            };
            return ConnectError::Proxy {
                server,
                proxy: proxy.clone(),
                message,
            };
        }
        // A rebuilt cluster's authority has the old one's name and another key: a bad signature.
        let tls = if ["UnknownIssuer", "BadSignature", "CaUsedAsEndEntity"].into_iter().any(has) {
            Some((
                TlsFailure::UnknownAuthority,
                "its certificate is signed by an unknown authority".to_owned(),
            ))
        } else if has("not valid for name") {
            Some((TlsFailure::WrongName, tail(&text, "certificate not valid for name")))
        } else if has("certificate expired") || has("certificate not valid yet") {
            Some((TlsFailure::Expired, tail(&text, "certificate ")))
        } else if has("corrupt message") || has("InvalidContentType") {
            Some((TlsFailure::NotTls, "the answer is not TLS".to_owned()))
        } else if has("handshake eof") {
            Some((TlsFailure::NotTls, "the other side hung up during the TLS handshake".to_owned()))
        } else if has("received fatal alert") {
            Some((TlsFailure::ClientCertificate, tail(&text, "received fatal alert")))
        } else if has("peer certificate") || has("handshake") || has("peer is incompatible") {
            Some((TlsFailure::Other, last.clone()))
        } else {
            None
        };
        if let Some((how, message)) = tls {
            return ConnectError::Tls { server, how, message };
        }
        let (how, message) = match io {
            _ if has("dns error") => (Unreachable::Dns, format!("its host name does not resolve ({last})")),
            Some(std::io::ErrorKind::ConnectionRefused) => (Unreachable::Refused, "connection refused".to_owned()),
            Some(std::io::ErrorKind::TimedOut) => (Unreachable::Timeout, "no connection in time".to_owned()),
            _ => (Unreachable::Other, last),
        };
        ConnectError::Unreachable { server, how, message }
    }

    /// That the server gave no whole answer within the limit.
    pub(crate) fn timeout_error(&self, limit: Duration) -> ConnectError {
        ConnectError::Unreachable {
            server: self.server.clone(),
            how: Unreachable::Timeout,
            message: format!("no answer within {limit:?}"),
        }
    }
}

/// The end of a text from where a part begins.
fn tail(text: &str, part: &str) -> String {
    shown(text.rfind(part).map_or(text, |start| &text[start..]))
}

fn credential(user: &AuthInfo) -> Credential {
    // The order in which kube takes them.
    if let Some(provider) = &user.auth_provider {
        Credential::Provider(provider.name.clone())
    } else if user.username.is_some() && user.password.is_some() {
        Credential::Password
    } else if user.token.is_some() {
        Credential::Token
    } else if let Some(file) = &user.token_file {
        Credential::TokenFile(file.clone())
    } else if let Some(exec) = &user.exec {
        Credential::Exec(exec.command.clone().unwrap_or_default())
    } else if user.client_certificate.is_some() || user.client_certificate_data.is_some() {
        Credential::Certificate
    } else {
        Credential::None
    }
}

fn kubeconfig_error(error: KubeconfigError, proxy_error: &impl Fn(String) -> ConnectError) -> ConnectError {
    let material = |what, message: String| ConnectError::Material {
        what,
        message: shown(&message),
    };
    match error {
        KubeconfigError::LoadCertificateAuthority(error) => material("the certificate authority", load_error(&error)),
        KubeconfigError::ParseCertificates(error) => material("the certificate authority", error.to_string()),
        KubeconfigError::LoadClientCertificate(error) => material("the client certificate", load_error(&error)),
        KubeconfigError::LoadClientKey(error) => material("the client certificate's key", load_error(&error)),
        KubeconfigError::ParseClusterUrl(error) => ConnectError::Settings(format!("the API server's URL is invalid: {error}")),
        error @ (KubeconfigError::ParseProxyUrl(_) | KubeconfigError::ParseNoProxy(_)) => {
            let reason = error.source().map(|source| format!(": {source}")).unwrap_or_default();
            proxy_error(format!("{error}{reason}"))
        }
        error => ConnectError::Settings(shown(&error.to_string())),
    }
}

fn load_error(error: &LoadDataError) -> String {
    match error {
        LoadDataError::ReadFile(error, path) => format!("{}: {error}", path.display()),
        LoadDataError::DecodeBase64(error) => format!("its data is not base64: {error}"),
        LoadDataError::NoBase64DataOrFile => "the certificate and its key must both be given".to_owned(),
    }
}

fn client_error(
    error: kube::Error,
    exec: Option<&kube::config::ExecConfig>,
    proxy_error: &impl Fn(String) -> ConnectError,
) -> ConnectError {
    let command = exec.and_then(|exec| exec.command.clone()).unwrap_or_default();
    match error {
        kube::Error::Auth(error) => auth_error(&error, command, exec.and_then(|exec| exec.install_hint.as_deref())),
        kube::Error::InferKubeconfig(error) => kubeconfig_error(error, proxy_error),
        kube::Error::RustlsTls(error) => ConnectError::Material {
            what: "the TLS settings",
            message: shown(&error.to_string()),
        },
        error => ConnectError::Settings(shown(&error.to_string())),
    }
}

fn auth_error(error: &AuthError, command: String, install: Option<&str>) -> ConnectError {
    match error {
        AuthError::AuthExecStart(error) if error.kind() == std::io::ErrorKind::NotFound => ConnectError::ExecMissing {
            command,
            install: install.map(shown),
        },
        AuthError::AuthExecStart(error) => ConnectError::ExecFailed {
            command,
            message: shown(&error.to_string()),
        },
        // Never the command line, which is full of the environment.
        AuthError::AuthExecRun { out, .. } => {
            let said = shown(&String::from_utf8_lossy(&out.stderr));
            let message = if said.is_empty() {
                out.status.to_string()
            } else {
                format!("{}: {said}", out.status)
            };
            ConnectError::ExecFailed { command, message }
        }
        // Never what it printed, which may be a credential.
        AuthError::AuthExecParse(_) => ConnectError::ExecFailed {
            command,
            message: "it did not print an ExecCredential".to_owned(),
        },
        AuthError::ExecPluginFailed => ConnectError::ExecFailed {
            command,
            message: "it printed no credential".to_owned(),
        },
        AuthError::ReadTokenFile(error, path) => ConnectError::Material {
            what: "the token",
            message: format!("{}: {error}", path.display()),
        },
        error if command.is_empty() => ConnectError::Material {
            what: "the credential",
            message: shown(&error.to_string()),
        },
        error => ConnectError::ExecFailed {
            command,
            message: shown(&error.to_string()),
        },
    }
}

/// The merged kubeconfig files, and where was looked (with whether a file was there).
fn load(flags: &ConnectionFlags, environment: &Environment) -> Result<(Kubeconfig, Vec<(PathBuf, bool)>), ConnectError> {
    let paths: Vec<PathBuf> = match (&flags.kubeconfig, &environment.kubeconfig) {
        (Some(path), _) => vec![path.clone()],
        (None, Some(list)) if !list.is_empty() => std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty()).collect(),
        _ => environment.home.iter().map(|home| home.join(".kube").join("config")).collect(),
    };
    let mut merged = Kubeconfig::default();
    let mut looked = Vec::new();
    for path in paths {
        match read(&path) {
            Ok(file) => {
                merged = merged.merge(file).map_err(|error| ConnectError::BrokenKubeconfig {
                    path: path.clone(),
                    line: None,
                    message: error.to_string(),
                })?;
                looked.push((path, true));
            }
            // kubectl passes over files of the list that are not there, and insists on the one that it was told.
            Err(ConnectError::ReadKubeconfig { source, .. })
                if flags.kubeconfig.is_none() && source.kind() == std::io::ErrorKind::NotFound =>
            {
                looked.push((path, false));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((merged, looked))
}

/// One kubeconfig file, with paths in it made relative to where it is.
fn read(path: &Path) -> Result<Kubeconfig, ConnectError> {
    let mut file = Kubeconfig::read_from(path).map_err(|error| match error {
        KubeconfigError::ReadConfig(source, path) => ConnectError::ReadKubeconfig { path, source },
        KubeconfigError::Parse(error) => ConnectError::BrokenKubeconfig {
            path: path.to_owned(),
            line: error.location().map(|location| (location.line(), location.column())),
            message: shown(&error.without_snippet().to_string()),
        },
        error => ConnectError::BrokenKubeconfig {
            path: path.to_owned(),
            line: None,
            message: shown(&error.to_string()),
        },
    })?;
    // Nothing reads them, and kube refuses to merge files that differ in them.
    (file.kind, file.api_version) = (None, None);
    file.current_context = file.current_context.filter(|name| !name.is_empty());
    Ok(file)
}

/// Where nothing names a server, a pod's own service account (`k8s.io/client-go/rest/config.go`).
fn in_cluster(environment: &Environment) -> Option<(Cluster, AuthInfo)> {
    let (host, port) = (environment.service_host.as_ref()?, environment.service_port.as_ref()?);
    let token = environment.service_account.join("token");
    if !token.is_file() {
        return None;
    }
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let authority = environment.service_account.join("ca.crt");
    let cluster = Cluster {
        server: Some(format!("https://{host}:{port}")),
        certificate_authority: authority.is_file().then(|| authority.to_string_lossy().into_owned()),
        ..Cluster::default()
    };
    Some((
        cluster,
        AuthInfo {
            token_file: Some(token.to_string_lossy().into_owned()),
            ..AuthInfo::default()
        },
    ))
}

fn resolve(flags: &ConnectionFlags, environment: &Environment) -> Result<Resolved, ConnectError> {
    let (kubeconfig, looked) = load(flags, environment)?;
    let contexts = || kubeconfig.contexts.iter().map(|named| named.name.clone()).collect::<Vec<_>>();
    let clusters = || kubeconfig.clusters.iter().map(|named| named.name.clone()).collect::<Vec<_>>();
    let users = || kubeconfig.auth_infos.iter().map(|named| named.name.clone()).collect::<Vec<_>>();
    let given = |flag: &Option<String>| flag.clone().filter(|value| !value.is_empty());
    let nothing = || ConnectError::NoKubeconfig {
        looked: looked.iter().map(|(path, _)| path.display().to_string()).collect(),
    };
    if [&flags.context, &flags.cluster, &flags.user]
        .into_iter()
        .any(|flag| given(flag).is_some())
        && !looked.iter().any(|(_, found)| *found)
    {
        return Err(nothing());
    }

    let asked = given(&flags.context);
    let mut context_name = asked.clone().or_else(|| kubeconfig.current_context.clone());
    let context = match &context_name {
        None => Context::default(),
        Some(name) => kubeconfig
            .contexts
            .iter()
            .find(|named| named.name == *name)
            .map(|named| named.context.clone().unwrap_or_default())
            .ok_or_else(|| ConnectError::UnknownName {
                what: Entry::Context,
                name: name.clone(),
                known: contexts(),
                asked: asked.is_some(),
            })?,
    };

    let asked = given(&flags.cluster);
    let cluster_name = asked.clone().unwrap_or(context.cluster);
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|named| named.name == cluster_name)
        .and_then(|named| named.cluster.clone());
    if cluster.is_none() && !cluster_name.is_empty() && (asked.is_some() || flags.server.is_none()) {
        return Err(ConnectError::UnknownName {
            what: Entry::Cluster,
            name: cluster_name,
            known: clusters(),
            asked: asked.is_some(),
        });
    }
    let asked = given(&flags.user);
    let user_name = asked.clone().or(context.user).unwrap_or_default();
    let user = kubeconfig
        .auth_infos
        .iter()
        .find(|named| named.name == user_name)
        .and_then(|named| named.auth_info.clone());
    if user.is_none() && asked.is_some() {
        return Err(ConnectError::UnknownName {
            what: Entry::User,
            name: user_name,
            known: users(),
            asked: true,
        });
    }
    // A user that a context names and no file has is no credential, as in client-go.
    let (mut cluster, mut user) = (cluster.unwrap_or_default(), user.unwrap_or_default());

    let server = given(&flags.server);
    let has_server = server.is_some() || cluster.server.as_ref().is_some_and(|server| !server.is_empty());
    if !has_server {
        (cluster, user) = match in_cluster(environment) {
            Some(found) => {
                context_name = None;
                found
            }
            None if context_name.is_some() || !cluster_name.is_empty() => {
                return Err(ConnectError::Settings(format!(
                    "the kubeconfig's cluster {cluster_name:?} names no server"
                )));
            }
            None if kubeconfig.contexts.is_empty() && kubeconfig.clusters.is_empty() => {
                return Err(nothing());
            }
            None => {
                let files = looked
                    .iter()
                    .filter(|(_, found)| *found)
                    .map(|(path, _)| path.display().to_string())
                    .collect();
                return Err(ConnectError::NoCurrentContext { files, known: contexts() });
            }
        };
    }

    // From here on, the flags override, as in getCluster and getAuthInfo.
    if flags.tls_server_name.is_some() || server.is_some() {
        cluster.tls_server_name = given(&flags.tls_server_name);
    }
    cluster.tls_server_name = cluster.tls_server_name.filter(|name| !name.is_empty());
    cluster.server = server.or(cluster.server);
    if flags.insecure_skip_tls_verify || flags.certificate_authority.is_some() {
        cluster.insecure_skip_tls_verify = Some(flags.insecure_skip_tls_verify);
        cluster.certificate_authority = flags.certificate_authority.clone();
        cluster.certificate_authority_data = None;
    }
    let empty = |field: &Option<String>| field.as_ref().is_none_or(String::is_empty);
    if empty(&cluster.certificate_authority) {
        cluster.certificate_authority = None;
    }
    if empty(&cluster.certificate_authority_data) {
        cluster.certificate_authority_data = None;
    }
    let has_authority = cluster.certificate_authority.is_some() || cluster.certificate_authority_data.is_some();
    let insecure = cluster.insecure_skip_tls_verify == Some(true);
    if insecure && has_authority {
        return Err(ConnectError::Settings(
            "a certificate authority cannot be given together with insecure-skip-tls-verify".to_owned(),
        ));
    }

    if let Some(token) = given(&flags.token) {
        // As in client-go, a token beats what else would make one.
        (user.username, user.password, user.token_file, user.exec, user.auth_provider) = (None, None, None, None, None);
        set_token(&mut user, &token);
    }
    if flags.client_certificate.is_some() {
        (user.client_certificate, user.client_certificate_data) = (flags.client_certificate.clone(), None);
    }
    if flags.client_key.is_some() {
        (user.client_key, user.client_key_data) = (flags.client_key.clone(), None);
    }
    if let Some(name) = given(&flags.as_user) {
        // The groups and the UID belong to the user of the kubeconfig's own impersonation, not to this one.
        (
            user.impersonate,
            user.impersonate_uid,
            user.impersonate_groups,
            user.impersonate_user_extra,
        ) = (Some(name), None, None, None);
    }
    if flags.as_uid.is_some() {
        user.impersonate_uid = given(&flags.as_uid);
    }
    if !flags.as_group.is_empty() {
        user.impersonate_groups = Some(flags.as_group.clone());
    }
    if user.impersonate.is_none() && (user.impersonate_uid.is_some() || user.impersonate_groups.is_some()) {
        return Err(ConnectError::Settings(
            "--as-group and --as-uid need --as: whom to impersonate".to_owned(),
        ));
    }

    let has_certificate = user.client_certificate.is_some() || user.client_certificate_data.is_some();
    let server = cluster.server.unwrap_or_default();
    let server = match server.split_once("://") {
        Some(("http" | "https", _)) => server,
        Some((scheme, _)) => {
            return Err(ConnectError::Settings(format!(
                "the API server's URL must begin with https://, not {scheme}://"
            )));
        }
        // `k8s.io/client-go/rest/url_utils.go`
        None if has_authority || insecure || has_certificate => format!("https://{server}"),
        None => format!("http://{server}"),
    };
    check_address(&server)?;
    if server.starts_with("http://") {
        // As kubectl, which sends no credential in the clear.
        user = AuthInfo {
            impersonate: user.impersonate,
            impersonate_uid: user.impersonate_uid,
            impersonate_groups: user.impersonate_groups,
            impersonate_user_extra: user.impersonate_user_extra,
            ..AuthInfo::default()
        };
        cluster.certificate_authority = None;
        cluster.certificate_authority_data = None;
    }
    cluster.server = Some(server);
    check_token(&mut user)?;
    Ok(Resolved {
        context: context_name,
        cluster,
        user,
    })
}

/// Makes sure that an address means what it says: of a port that is none, http would make the default one.
fn check_address(server: &str) -> Result<(), ConnectError> {
    let invalid = |why: String| {
        ConnectError::Settings(format!("the API server's URL {:?} is invalid: {why}", without_password(server)))
    };
    let uri: http::Uri = server.parse().map_err(|error: http::uri::InvalidUri| invalid(error.to_string()))?;
    let authority = uri.authority().filter(|authority| !authority.host().is_empty());
    let authority = authority.ok_or_else(|| invalid("it names no host".to_owned()))?.as_str();
    match authority.rsplit_once(':') {
        Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() && port.parse::<u16>().is_err() => {
            Err(invalid(format!("there is no port {port}")))
        }
        _ => Ok(()),
    }
}

/// The bearer token of a user, if it is written there.
fn token(user: &AuthInfo) -> Option<String> {
    let fields = serde_json::to_value(user).ok()?;
    fields["token"].as_str().map(str::to_owned)
}

fn set_token(user: &mut AuthInfo, token: &str) {
    user.token = serde_json::from_value::<AuthInfo>(serde_json::json!({ "token": token }))
        .unwrap_or_default()
        .token;
}

/// Makes sure that the token can be sent.
fn check_token(user: &mut AuthInfo) -> Result<(), ConnectError> {
    let material = |message: String| ConnectError::Material {
        what: "the token",
        message,
    };
    let mut written = token(user).filter(|token| !token.is_empty());
    if written.is_none() {
        user.token = None;
        if let Some(path) = user.token_file.as_ref().filter(|path| !path.is_empty()) {
            // client-go drops the line break at its end, kube sends the file as it is.
            let text = std::fs::read_to_string(path).map_err(|error| material(format!("{path}: {error}")))?;
            let trimmed = text.trim();
            if trimmed.len() < text.len() {
                set_token(user, trimmed);
                written = Some(trimmed.to_owned());
            }
        }
    }
    match written {
        // kube would panic.
        Some(token) if http::HeaderValue::try_from(&token).is_err() => Err(material(
            "it holds a line break or another character that cannot be sent".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// The proxy that the environment names for a server, as Go's `golang.org/x/net/http/httpproxy` picks it.
fn environment_proxy(server: &str, environment: &Environment) -> Option<String> {
    let uri: http::Uri = server.parse().ok()?;
    let secure = uri.scheme_str() == Some("https");
    let proxy = if secure {
        environment.https_proxy.clone()
    } else {
        environment.http_proxy.clone()
    }?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let address: Option<IpAddr> = host.parse().ok();
    let local = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    let exempt = environment.no_proxy.as_deref().is_some_and(|list| {
        list.split(',')
            .map(|entry| entry.trim().to_ascii_lowercase())
            .any(|entry| exempts(&entry, &host, port, address))
    });
    if local || exempt {
        return None;
    }
    Some(if proxy.contains("://") { proxy } else { format!("http://{proxy}") })
}

/// Whether an entry of `NO_PROXY` means a host.
fn exempts(entry: &str, host: &str, port: u16, address: Option<IpAddr>) -> bool {
    if entry.is_empty() || entry == "*" {
        return entry == "*";
    }
    if let Some((network, bits)) = entry.split_once('/')
        && let (Ok(network), Ok(bits), Some(address)) = (network.parse::<IpAddr>(), bits.parse::<u32>(), address)
    {
        return match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                bits <= 32 && (u32::from(network) ^ u32::from(address)).checked_shr(32 - bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                bits <= 128 && (u128::from(network) ^ u128::from(address)).checked_shr(128 - bits).unwrap_or(0) == 0
            }
            _ => false,
        };
    }
    if let Ok(exact) = entry.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return address == Some(exact);
    }
    let (name, wanted) = match entry.rsplit_once(':').map(|(name, port)| (name, port.parse::<u16>())) {
        Some((name, Ok(wanted))) => (name.trim_start_matches('[').trim_end_matches(']'), Some(wanted)),
        _ => (entry, None),
    };
    if wanted.is_some_and(|wanted| wanted != port) {
        return false;
    }
    let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
    match name.strip_prefix('.') {
        Some(_) => host.ends_with(name),
        None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
    }
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
