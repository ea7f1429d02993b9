//! Why there is no connection, and what to do about it.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::Credential;

/// How much of a message of a server or a plugin is shown, in characters.
pub(super) const SHOWN: usize = 400;

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
pub(super) fn without_password(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let authority = rest.find(['/', '?']).unwrap_or(rest.len());
            let host = rest[..authority].rfind('@').map_or(0, |found| found + 1);
            format!("{scheme}://{}", &rest[host..])
        }
        None => url.to_owned(),
    }
}
