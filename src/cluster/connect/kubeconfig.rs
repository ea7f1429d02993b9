//! What flags, kubeconfig files and the environment come to
//! (`k8s.io/client-go/tools/clientcmd/{loader,client_config}.go`).

use std::path::{Path, PathBuf};

use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, KubeconfigError};

use super::Environment;
use super::error::{ConnectError, Entry, shown, without_password};
use crate::cli::connection::ConnectionFlags;

/// What flags, kubeconfig and environment come to.
pub(super) struct Resolved {
    pub(super) context: Option<String>,
    pub(super) cluster: Cluster,
    pub(super) user: AuthInfo,
}

/// The names in the kubeconfig files.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigNames {
    /// Of contexts.
    pub contexts: Vec<String>,
    /// Of clusters.
    pub clusters: Vec<String>,
    /// Of users.
    pub users: Vec<String>,
}

impl KubeconfigNames {
    /// Reads the files that are meant by flags and environment.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(flags: &ConnectionFlags, environment: &Environment) -> Result<Self, ConnectError> {
        let (files, _) = load(flags, environment)?;
        Ok(Self {
            contexts: files.contexts.into_iter().map(|named| named.name).collect(),
            clusters: files.clusters.into_iter().map(|named| named.name).collect(),
            users: files.auth_infos.into_iter().map(|named| named.name).collect(),
        })
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

pub(super) fn resolve(flags: &ConnectionFlags, environment: &Environment) -> Result<Resolved, ConnectError> {
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
    let invalid = |why: String| ConnectError::Settings(format!("the API server's URL {:?} is invalid: {why}", without_password(server)));
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
pub(super) fn token(user: &AuthInfo) -> Option<String> {
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
