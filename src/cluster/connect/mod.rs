//! From kubectl's flags and kubeconfig to a client, resolved as kubectl does
//! (`k8s.io/client-go/tools/clientcmd/client_config.go`), with errors that say what to do.

mod error;
mod kubeconfig;
mod proxy;

use std::error::Error as StdError;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use kube::client::{AuthError, ClientBuilder, ConfigExt};
use kube::config::{AuthInfo, ExecAuthCluster, ExecConfig, KubeconfigError, LoadDataError};
use kube::{Client, Config};

pub(crate) use self::error::shown;
use self::error::without_password;
pub use self::error::{ConnectError, Entry, TlsFailure, Unreachable, closest};
pub use self::kubeconfig::KubeconfigNames;
use self::kubeconfig::{Resolved, resolve};
use self::proxy::environment_proxy;
use crate::cli::connection::ConnectionFlags;

/// How long a connection may take to come up where `--request-timeout` does not end it earlier, as in client-go.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

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
        // kube's own way from a kubeconfig to a configuration reads HTTPS_PROXY and NO_PROXY by other rules than
        // kubectl, and fails on a NO_PROXY that Go takes.
        let address = server
            .parse()
            .map_err(|error| ConnectError::Settings(format!("the API server's URL is invalid: {error}")))?;
        let described = ExecAuthCluster::try_from(&cluster).map_err(kubeconfig_error)?;
        let mut config = Config::new(address);
        config.root_cert = described.certificate_authority_data.as_deref().map(certificates).transpose()?;
        config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or_default();
        config.disable_compression = cluster.disable_compression.unwrap_or_default();
        config.tls_server_name = cluster.tls_server_name;
        config.proxy_url = proxy;
        config.auth_info = user;
        if let Some(exec) = &mut config.auth_info.exec
            && exec.provide_cluster_info
        {
            exec.cluster = Some(described);
        }
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

        let client_error = |error| client_error(error, exec.as_ref());
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

/// The certificates of a PEM file.
fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, ConnectError> {
    let text = String::from_utf8_lossy(pem);
    let bodies = text
        .split("-----BEGIN CERTIFICATE-----")
        .skip(1)
        .map(|part| part.split("-----END").next().unwrap_or_default());
    let decoded: Result<Vec<_>, _> = bodies
        .map(|body| base64::engine::general_purpose::STANDARD.decode(body.split_whitespace().collect::<String>()))
        .collect();
    let material = |message: String| ConnectError::Material {
        what: "the certificate authority",
        message,
    };
    match decoded {
        Ok(none) if none.is_empty() => Err(material("it holds no certificate in PEM".to_owned())),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(material(format!("a certificate in it is broken: {error}"))),
    }
}

fn kubeconfig_error(error: KubeconfigError) -> ConnectError {
    let material = |what, error: &LoadDataError| ConnectError::Material {
        what,
        message: load_error(error),
    };
    match error {
        KubeconfigError::LoadCertificateAuthority(error) => material("the certificate authority", &error),
        KubeconfigError::LoadClientCertificate(error) => material("the client certificate", &error),
        KubeconfigError::LoadClientKey(error) => material("the client certificate's key", &error),
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

fn client_error(error: kube::Error, exec: Option<&ExecConfig>) -> ConnectError {
    let command = exec.and_then(|exec| exec.command.clone()).unwrap_or_default();
    match error {
        kube::Error::Auth(error) => auth_error(&error, command, exec.and_then(|exec| exec.install_hint.as_deref())),
        kube::Error::InferKubeconfig(error) => kubeconfig_error(error),
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

#[cfg(test)]
mod tests;
