//! `version`: what this is, and what the cluster is.

use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::connection::ConnectionFlags;
use crate::cli::version::{VersionArgs, VersionFormat};
use crate::cluster::connect::{Connection, Environment};
use crate::cluster::live::Reader;
use crate::report::text::harmless;
use crate::report::{json, yaml};

use super::failure::Failure;

/// Versions of Kubernetes whose control plane every prediction of the tests was held against.
pub const PROVEN_WITH: &[&str] = &["v1.36.3"];

/// What `version` says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    api_version: &'static str,
    kind: &'static str,
    client: Client,
    /// `null` where it was not asked, or did not answer.
    server: Option<Server>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Client {
    version: &'static str,
    commit: Option<&'static str>,
    date: Option<Timestamp>,
    target: Option<&'static str>,
    proven_with: &'static [&'static str],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Server {
    context: Option<String>,
    server: String,
    /// `null` where it may not be asked for.
    version: Option<String>,
}

/// Runs the command; the result is the exit code.
///
/// As with kubectl, this tool's own version is printed even if the cluster does not answer.
///
/// # Errors
/// The cluster does not answer.
pub async fn run(args: &VersionArgs, connection: &ConnectionFlags) -> Result<u8, Failure> {
    let server = if args.client {
        Ok(None)
    } else {
        server(connection).await.map(Some)
    };
    let (server, failure) = match server {
        Ok(server) => (server, None),
        Err(failure) => (None, Some(failure)),
    };
    let version = Version {
        api_version: "gpustack-ha/v1",
        kind: "Version",
        client: Client {
            version: concat!("v", env!("CARGO_PKG_VERSION")),
            commit: option_env!("GPUSTACK_HA_COMMIT"),
            date: option_env!("GPUSTACK_HA_DATE")
                .and_then(|seconds| seconds.parse().ok())
                .and_then(|seconds| Timestamp::from_second(seconds).ok()),
            target: option_env!("GPUSTACK_HA_TARGET"),
            proven_with: PROVEN_WITH,
        },
        server,
    };
    let mut out = io::stdout().lock();
    let written = match args.output {
        Some(VersionFormat::Json) => json::write(&version, &mut out),
        Some(VersionFormat::Yaml) => yaml::write(&version, &mut out),
        None => out.write_all(version.text().as_bytes()),
    };
    super::printed(written)?;
    match failure {
        None => Ok(0),
        Some(mut failure) => {
            let hint = "--client asks no cluster";
            failure.hint = Some(failure.hint.map_or(hint.to_owned(), |first| format!("{first}; {hint}")));
            Err(failure)
        }
    }
}

async fn server(flags: &ConnectionFlags) -> Result<Server, Failure> {
    let connection = Connection::open(flags, &Environment::of_process()).await?;
    let reader = Reader::new(connection, flags.verbose);
    let version = reader.version().await?;
    let connection = reader.connection();
    Ok(Server {
        context: connection.context.clone(),
        server: connection.server.clone(),
        version: version.map(|version| version.git_version),
    })
}

impl Version {
    fn text(&self) -> String {
        let Client {
            version,
            commit,
            date,
            target,
            ..
        } = &self.client;
        let date = date.map(|date| date.to_string());
        let mut lines = vec![
            format!("Client:       {version}"),
            format!("Commit:       {}", commit.unwrap_or("<none>")),
            format!("Date:         {}", date.as_deref().unwrap_or("<none>")),
            format!("Target:       {}", target.unwrap_or("<unknown>")),
            format!("Proven with:  Kubernetes {}", PROVEN_WITH.join(", ")),
        ];
        if let Some(server) = &self.server {
            let at = match &server.context {
                Some(context) => format!("context {context}"),
                None => server.server.clone(),
            };
            let version = server.version.as_deref().unwrap_or("<unknown>");
            lines.push(format!("Server:       {} ({})", harmless(version, false), harmless(&at, false)));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}
