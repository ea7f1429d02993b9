//! Reading lists from a live API server, object by object as they arrive.
//!
//! Only GET requests are ever sent. A list enters a snapshot whole or not at all: what was cut, refused or not
//! understood becomes [`NotRead`], never a shorter list.
//!
//! `resourceVersion=0` is not used, though it would spare the server: it lets the server answer from a cache of any
//! age, and a budget or a pod that the cache does not have yet could make a drain look safe. Without it servers from
//! 1.31 on answer from the same cache, but only once that has caught up with etcd (`k8s.io/apiserver/pkg/storage/cacher`).

mod decode;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::client::Body;
use serde::Deserialize;

use self::decode::{Document, ListDecoder, MAX_DOCUMENT, Receiver};
use super::connect::{ConnectError, Connection, Unreachable, shown};
use super::kinds::{Kind, Listings};
use super::progress::Progress;
use super::snapshot::{NotRead, Reason, Scope, ServerVersion, Snapshot, Source};

/// Objects per page: kubectl's own `--chunk-size`. It keeps a page to a few megabytes and etcd's work short. Larger
/// pages save little: a page of 500 pods takes far longer to send than its request.
const PAGE_SIZE: u32 = 500;

/// Lists that are read side by side: enough to hide the way to the server, too few for its priority and fairness
/// rules to turn us away.
const SIDE_BY_SIDE: usize = 8;

/// How often one page is asked for again after a 429, a 5xx or a cut connection.
const MAX_RETRIES: u32 = 4;

/// How often a list begins anew because its continue token expired (after five minutes by default). A list that
/// cannot be read in that time will not be the third time either.
const MAX_RESTARTS: u32 = 3;

/// Pages of one list: ten million objects, more than an API server holds. It ends a list that never ends.
const MAX_PAGES: u32 = 20_000;

/// Pages in a row without an object. The server may send some when a field selector leaves none of a page.
const MAX_EMPTY_PAGES: u32 = 100;

/// API groups that every cluster serves; where one is missing, something else answers in its place.
const REQUIRED_GROUPS: [&str; 3] = ["", "apps", "batch"];

/// How long to wait before asking again.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// The first pause; each one after it is twice as long.
    first: Duration,
    /// The longest that a server's `Retry-After` may ask for, so that it cannot hold us for ever.
    longest: Duration,
}

const PATIENCE: Patience = Patience {
    first: Duration::from_millis(500),
    longest: Duration::from_secs(10),
};

/// Why a list was not read.
#[derive(Debug)]
pub enum ListError {
    /// This list was not; others may be.
    NotRead(NotRead),
    /// Nothing can be read: the server was never reached.
    Connect(ConnectError),
}

/// Reads lists over a connection, and counts what that took.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    verbose: u8,
    patience: Patience,
    requests: AtomicU64,
    bytes: AtomicU64,
    reached: AtomicBool,
    date: OnceLock<Timestamp>,
    began: Instant,
    lists: Mutex<Vec<Asked>>,
}

/// What one list, or another document, took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Path and query, without those of its pages.
    pub path: String,
    /// Requests: one for each page, and for each that was sent again.
    pub requests: u64,
    /// Objects of whole pages.
    pub objects: u64,
    /// Bytes of the answers, unpacked.
    pub bytes: u64,
    /// Time that the requests took; others may have been under way at the same time.
    pub time: Duration,
}

/// What became of one request.
#[derive(Debug)]
enum Fault {
    /// No answer, or one that every request would get.
    Connect(ConnectError),
    /// No whole answer within this time.
    Silent(Duration),
    /// The answer broke off.
    Cut(String),
    /// The server says no.
    Refused(Refusal),
    /// The answer is not what was asked for.
    Garbage(String),
}

/// An answer other than 2xx.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    message: String,
    /// Whether it is a Kubernetes `Status`, so that the API server itself said it.
    genuine: bool,
    /// Whether it names an object, so that the resource itself exists.
    named: bool,
    retry_after: Option<Duration>,
}

impl Fault {
    fn refused(&self, status: StatusCode) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) if refusal.status == status => Some(refusal),
            _ => None,
        }
    }

    /// How long to wait before asking again; `None` if it would be of no use.
    fn pause(&self, attempt: u32, patience: Patience, reached: bool) -> Option<Duration> {
        let backoff = patience.first.saturating_mul(1 << attempt.min(10)).min(patience.longest);
        match self {
            Self::Cut(_) => Some(backoff),
            // A first connection that fails is told at once; a later one may have met a restarting server.
            Self::Connect(ConnectError::Unreachable { .. }) if reached => Some(backoff),
            Self::Refused(Refusal { status, retry_after, .. }) if *status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
                Some(retry_after.map_or(backoff, |asked| asked.min(patience.longest)))
            }
            _ => None,
        }
    }

    fn reason(&self) -> Reason {
        match self {
            Self::Refused(Refusal {
                status: StatusCode::FORBIDDEN,
                genuine: true,
                ..
            }) => Reason::Forbidden,
            Self::Refused(Refusal { status, message, .. }) => Reason::Failed(format!("the server answers {status}: {message}")),
            Self::Connect(error) => Reason::Failed(error.to_string()),
            Self::Silent(limit) => Reason::Failed(format!("no whole answer within {limit:?} (--request-timeout)")),
            Self::Cut(message) => Reason::Failed(format!("the connection broke off: {message}")),
            Self::Garbage(message) => Reason::Failed(message.clone()),
        }
    }
}

impl Reader {
    /// A reader over a connection. From `verbose` 1 on, each request is printed to stderr.
    pub fn new(connection: Connection, verbose: u8) -> Self {
        Self {
            connection,
            verbose,
            patience: PATIENCE,
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            reached: AtomicBool::new(false),
            date: OnceLock::new(),
            began: Instant::now(),
            lists: Mutex::default(),
        }
    }

    /// How much is to be told of the requests: 0 nothing.
    pub fn verbose(&self) -> u8 {
        self.verbose
    }

    /// What each list took so far, in the order in which they were asked for first.
    pub fn asked(&self) -> Vec<Asked> {
        self.account().clone()
    }

    fn account(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to what the list of this path took.
    fn note(&self, path: &str, took: &Asked) {
        let path = without_page(path);
        let mut lists = self.account();
        let index = lists.iter().position(|list| list.path == path).unwrap_or_else(|| {
            let path = path.into_owned();
            lists.push(Asked { path, ..Asked::default() });
            lists.len() - 1
        });
        let list = &mut lists[index];
        list.requests += took.requests;
        list.objects += took.objects;
        list.bytes += took.bytes;
        list.time += took.time;
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// How many requests were sent.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How many bytes of answers were read, unpacked.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The API server's clock, from the `Date` of its first answer.
    pub fn observed_at(&self) -> Option<Timestamp> {
        self.date.get().copied()
    }

    /// Asks the server for its version and begins a snapshot of it.
    ///
    /// # Errors
    /// The server cannot be reached, or does not accept the credential.
    pub async fn begin(&self) -> Result<Snapshot, ConnectError> {
        let _progress = self.progress(format!("asking {}", shown(&self.connection.server)));
        let server_version = self.version().await?;
        Ok(Snapshot {
            source: Source::Live,
            context: self.connection.context.clone(),
            server: Some(self.connection.server.clone()),
            server_version,
            observed_at: self.observed_at(),
            ..Snapshot::default()
        })
    }

    /// The server's version; `None` where it may not be asked for.
    ///
    /// # Errors
    /// The server cannot be reached, or does not accept the credential.
    pub async fn version(&self) -> Result<Option<ServerVersion>, ConnectError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        match self.patiently("/version", Document::<Version>::default).await {
            Ok(version) => Ok(Some(ServerVersion {
                git_version: shown(&version.git_version),
            })),
            Err(Fault::Refused(refusal)) if refusal.status.is_client_error() => Ok(None),
            Err(Fault::Connect(ConnectError::Impersonation { .. })) => Ok(None),
            Err(Fault::Connect(error)) => Err(error),
            Err(Fault::Silent(limit)) => Err(self.connection.timeout_error(limit)),
            Err(Fault::Garbage(message)) => Err(ConnectError::NotKubernetes {
                server: self.connection.server.clone(),
                message,
            }),
            Err(fault @ (Fault::Cut(_) | Fault::Refused(_))) => Err(ConnectError::Unreachable {
                server: self.connection.server.clone(),
                how: Unreachable::Other,
                message: match fault.reason() {
                    Reason::Failed(message) => message,
                    _ => String::new(),
                },
            }),
        }
    }

    /// Reads parts of kinds side by side into a snapshot, with what came of each. What it has is not read again.
    ///
    /// # Errors
    /// The server was never reached, or does not accept the credential. All other failures are in the snapshot.
    pub async fn read(&self, wanted: &[(Kind, Scope)], into: &mut Snapshot) -> Result<(), ConnectError> {
        let wanted: Vec<(Kind, Scope)> = wanted
            .iter()
            .filter(|(kind, scope)| !into.objects.covered(*kind, scope))
            .cloned()
            .collect();
        let kinds: BTreeSet<&str> = wanted.iter().map(|(kind, _)| kind.info().plural).collect();
        let _progress = self.progress(format!("reading {}", Vec::from_iter(kinds).join(", ")));
        // In the order asked for, so that of an object read twice always the same one stays.
        let mut lists = futures::stream::iter(wanted.iter().map(|part| self.part(part))).buffered(SIDE_BY_SIDE);
        let mut refused = None;
        while let Some((kind, scope, outcome)) = lists.next().await {
            match outcome {
                Ok(list) => into.objects.absorb(list),
                Err(ListError::NotRead(missing)) => into.objects.cover(kind, scope, Err(missing)),
                // The right to impersonate may hold for some lists and not for others.
                Err(ListError::Connect(error @ ConnectError::Impersonation { .. })) => {
                    let reason = Reason::Failed(error.to_string());
                    into.objects.cover(kind, scope.clone(), Err(NotRead { kind, scope, reason }));
                    refused = Some(error);
                }
                Err(ListError::Connect(error)) => return Err(error),
            }
        }
        if let Some(error) = refused
            && !self.reached()
        {
            return Err(error);
        }
        into.objects.settle();
        if into.observed_at.is_none() {
            into.observed_at = self.observed_at();
        }
        Ok(())
    }

    /// Says what is read, unless each request is printed anyway.
    fn progress(&self, what: String) -> Option<Progress> {
        (self.verbose == 0).then(|| Progress::new(what, self.began))
    }

    async fn part(&self, (kind, scope): &(Kind, Scope)) -> (Kind, Scope, Result<Listings, ListError>) {
        (*kind, scope.clone(), self.list(*kind, scope, None).await)
    }

    /// Reads one list, whole. Without a selector, the listings say that the part was read; with a label selector
    /// they hold some of its objects, and claim nothing.
    ///
    /// # Errors
    /// What was not read, and why; or that the server was never reached.
    pub async fn list(&self, kind: Kind, scope: &Scope, selector: Option<&str>) -> Result<Listings, ListError> {
        let fault = match self.pages(kind, scope, selector).await {
            Ok(list) => return Ok(list),
            Err(fault) => fault,
        };
        if let Fault::Connect(error) = fault {
            if !self.reached() {
                return Err(ListError::Connect(error));
            }
            return Err(ListError::NotRead(NotRead {
                kind,
                scope: scope.clone(),
                reason: Reason::Failed(error.to_string()),
            }));
        }
        if let Fault::Silent(limit) = fault
            && !self.reached()
        {
            return Err(ListError::Connect(self.connection.timeout_error(limit)));
        }
        let reason = match fault.refused(StatusCode::NOT_FOUND) {
            Some(refusal) if !refusal.named => match self.absence(kind, refusal).await {
                Ok(()) => {
                    let mut list = Listings::default();
                    if selector.is_none() {
                        list.cover(kind, scope.clone(), Ok(()));
                    }
                    return Ok(list);
                }
                Err(message) => Reason::Failed(message),
            },
            _ => fault.reason(),
        };
        Err(ListError::NotRead(NotRead {
            kind,
            scope: scope.clone(),
            reason,
        }))
    }

    /// Whether a 404 means that there is nothing of a kind: only if the server lists its API groups, and what the
    /// versions of this one have, and the kind is in none. (Servers before 1.30 have no admission policies in
    /// `admissionregistration.k8s.io/v1`; one that knows budgets as `policy/v1beta1` alone has budgets.)
    async fn absence(&self, kind: Kind, refusal: &Refusal) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Groups {
            kind: String,
            groups: Vec<Group>,
        }
        #[derive(Deserialize)]
        struct Group {
            name: String,
            versions: Vec<Version>,
        }
        #[derive(Deserialize)]
        struct Version {
            version: String,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Resources {
            kind: String,
            group_version: String,
            resources: Vec<Resource>,
        }
        #[derive(Deserialize)]
        struct Resource {
            name: String,
        }
        let info = kind.info();
        let failed = || format!("the server answers 404: {}", refusal.message);
        if REQUIRED_GROUPS.contains(&info.group) {
            return Err(failed());
        }
        let groups = self
            .patiently("/apis", Document::<Groups>::default)
            .await
            .ok()
            .filter(|answer| answer.kind == "APIGroupList");
        let group = groups.ok_or_else(failed)?.groups.into_iter().find(|group| group.name == info.group);
        for Version { version } in group.into_iter().flat_map(|group| group.versions) {
            let group_version = format!("{}/{version}", info.group);
            let path = format!("/apis/{}/{}", info.group, encode(&version));
            let resources = self
                .patiently(&path, Document::<Resources>::default)
                .await
                .ok()
                .filter(|answer| answer.kind == "APIResourceList" && answer.group_version == group_version)
                .ok_or_else(failed)?
                .resources;
            let found = resources.is_empty() || resources.iter().any(|resource| resource.name == info.plural);
            if found && version == info.version {
                return Err(failed());
            }
            if found {
                let version = shown(&group_version);
                return Err(format!(
                    "the server has {} in {version}, not in {}",
                    info.plural,
                    kind.api_version()
                ));
            }
        }
        Ok(())
    }

    /// All pages of a list, from the start again when its continue token expires.
    async fn pages(&self, kind: Kind, scope: &Scope, selector: Option<&str>) -> Result<Listings, Fault> {
        let base = list_path(kind, scope, selector);
        let mut restarts = 0;
        'anew: loop {
            let mut list = Listings::default();
            let mut token = String::new();
            let mut empty = 0;
            for _ in 0..MAX_PAGES {
                let path = if token.is_empty() {
                    base.clone()
                } else {
                    format!("{base}&continue={}", encode(&token))
                };
                let page = match self.patiently(&path, || ListDecoder::new(kind)).await {
                    Ok(page) => page,
                    // The server offers a token to go on with what is there now. Objects that moved between the
                    // two moments could be missed, so we do not.
                    Err(fault) if !token.is_empty() && fault.refused(StatusCode::GONE).is_some() => {
                        if restarts == MAX_RESTARTS {
                            let message = format!("the list expired before its last page, {} times", restarts + 1);
                            return Err(Fault::Garbage(message));
                        }
                        restarts += 1;
                        continue 'anew;
                    }
                    Err(fault) => return Err(fault),
                };
                let objects = page.count as u64;
                self.note(
                    &path,
                    &Asked {
                        objects,
                        ..Asked::default()
                    },
                );
                list.absorb(page.objects);
                match page.token {
                    None => {
                        if selector.is_none() {
                            list.cover(kind, scope.clone(), Ok(()));
                        }
                        return Ok(list);
                    }
                    Some(next) if next == token => {
                        return Err(Fault::Garbage(
                            "the server repeats a continue token, so the list would never end".to_owned(),
                        ));
                    }
                    Some(next) => token = next,
                }
                empty = if page.count == 0 { empty + 1 } else { 0 };
                if empty == MAX_EMPTY_PAGES {
                    return Err(Fault::Garbage(format!(
                        "the server sends empty pages without end ({empty} in a row)"
                    )));
                }
            }
            return Err(Fault::Garbage(format!("the list does not end after {MAX_PAGES} pages")));
        }
    }

    /// One request, again where that may help.
    async fn patiently<R: Receiver>(&self, path: &str, receiver: impl Fn() -> R) -> Result<R::Output, Fault> {
        let mut attempt = 0;
        loop {
            let fault = match self.request(path, receiver()).await {
                Ok(output) => return Ok(output),
                Err(fault) => fault,
            };
            match fault.pause(attempt, self.patience, self.reached()) {
                Some(pause) if attempt < MAX_RETRIES => tokio::time::sleep(pause).await,
                _ => return Err(fault),
            }
            attempt += 1;
        }
    }

    /// One request with its whole body, within the time limit.
    async fn request<R: Receiver>(&self, path: &str, receiver: R) -> Result<R::Output, Fault> {
        let started = Instant::now();
        let mut seen = (None, 0);
        let exchange = self.exchange(path, receiver, &mut seen);
        let result = match self.connection.timeout {
            Some(limit) => tokio::time::timeout(limit, exchange).await.unwrap_or(Err(Fault::Silent(limit))),
            None => exchange.await,
        };
        let (status, bytes) = seen;
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let (requests, time) = (1, started.elapsed());
        self.note(
            path,
            &Asked {
                requests,
                bytes,
                time,
                ..Asked::default()
            },
        );
        if self.verbose > 0 {
            let status = status.map_or_else(|| "no answer".to_owned(), |status: StatusCode| status.to_string());
            let milliseconds = time.as_millis();
            anstream::eprintln!("GET {}{path} {status}, {bytes} bytes in {milliseconds} ms", self.connection.server);
        }
        result
    }

    async fn exchange<R: Receiver>(&self, path: &str, mut receiver: R, seen: &mut (Option<StatusCode>, u64)) -> Result<R::Output, Fault> {
        let request = Request::get(path)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("kubectl-gpustack_ha/", env!("CARGO_PKG_VERSION")))
            .body(Body::empty())
            .map_err(|error| Fault::Garbage(format!("cannot ask for {path}: {error}")))?;
        let response = self
            .connection
            .client
            .send(request)
            .await
            .map_err(|error| Fault::Connect(self.connection.transport_error(&error)))?;
        let status = response.status();
        seen.0 = Some(status);
        if let Some(date) = http_date(response.headers()) {
            self.date.get_or_init(|| date);
        }
        let (head, mut body) = response.into_parts();
        if !status.is_success() {
            return Err(self.refusal(status, &head.headers, &mut body, &mut seen.1).await);
        }
        if !is_json(&head.headers) {
            let sent = head
                .headers
                .get(header::CONTENT_TYPE)
                .map_or_else(|| "no content type".into(), |value| String::from_utf8_lossy(value.as_bytes()));
            let message = format!("it answers {} instead of JSON", shown(&sent));
            return Err(self.stranger(message));
        }
        self.reached.store(true, Ordering::Relaxed);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Fault::Cut(root_cause(&error)))?;
            if let Ok(data) = frame.into_data() {
                seen.1 += data.len() as u64;
                receiver.take(&data).map_err(Fault::Garbage)?;
            }
        }
        receiver.finish()
    }

    /// What an answer other than 2xx means.
    async fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: &mut Body, bytes: &mut u64) -> Fault {
        #[derive(Deserialize)]
        struct Status {
            kind: String,
            message: Option<String>,
            details: Option<Details>,
        }
        #[derive(Deserialize)]
        struct Details {
            name: Option<String>,
        }
        let mut text = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            if let Ok(data) = frame.into_data() {
                *bytes += data.len() as u64;
                text.extend_from_slice(&data);
            }
            if text.len() > MAX_DOCUMENT {
                break;
            }
        }
        let genuine = serde_json::from_slice::<Status>(&text)
            .ok()
            .filter(|answer| answer.kind == "Status");
        let named = genuine
            .as_ref()
            .and_then(|answer| answer.details.as_ref()?.name.as_ref())
            .is_some_and(|name| !name.is_empty());
        let message = match &genuine {
            Some(Status {
                message: Some(message), ..
            }) => shown(message),
            _ if text.is_empty() => "nothing more".to_owned(),
            _ => shown(&String::from_utf8_lossy(&text)),
        };
        let server = || self.connection.server.clone();
        if status == StatusCode::UNAUTHORIZED {
            return Fault::Connect(ConnectError::Unauthorized {
                server: server(),
                credential: self.connection.credential.clone(),
                message,
            });
        }
        if status == StatusCode::FORBIDDEN && genuine.is_some() && message.contains("cannot impersonate") {
            return Fault::Connect(ConnectError::Impersonation { server: server(), message });
        }
        if status.is_redirection() || message.contains("HTTP request to an HTTPS server") {
            return self.stranger(format!("it answers {status}: {message}"));
        }
        if genuine.is_some() {
            self.reached.store(true, Ordering::Relaxed);
        }
        let retry_after = headers
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        Fault::Refused(Refusal {
            status,
            message,
            genuine: genuine.is_some(),
            named,
            retry_after,
        })
    }

    /// That something other than an API server answers: fatal at first, a failed list later.
    fn stranger(&self, message: String) -> Fault {
        if self.reached() {
            Fault::Garbage(message)
        } else {
            Fault::Connect(ConnectError::NotKubernetes {
                server: self.connection.server.clone(),
                message,
            })
        }
    }

    /// Whether an API server has answered and accepted who we are.
    fn reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }
}

/// The path and query of the first page of a list.
fn list_path(kind: Kind, scope: &Scope, selector: Option<&str>) -> String {
    let mut path = match scope {
        Scope::Namespace(namespace) => kind.path(Some(&encode(namespace))),
        Scope::Cluster | Scope::Node(_) => kind.path(None),
    };
    // Writing to a string cannot fail.
    let _ = write!(path, "?limit={PAGE_SIZE}");
    if let Scope::Node(node) = scope {
        let _ = write!(path, "&fieldSelector={}", encode(&format!("spec.nodeName={node}")));
    }
    if let Some(selector) = selector {
        let _ = write!(path, "&labelSelector={}", encode(selector));
    }
    path
}

/// A path without the part of its query that asks for one page.
fn without_page(path: &str) -> Cow<'_, str> {
    let Some((path, query)) = path.split_once('?') else {
        return Cow::Borrowed(path);
    };
    let of_page = |part: &&str| part.starts_with("limit=") || part.starts_with("continue=");
    let rest: Vec<&str> = query.split('&').filter(|part| !of_page(part)).collect();
    match rest.is_empty() {
        true => Cow::Borrowed(path),
        false => Cow::Owned(format!("{path}?{}", rest.join("&"))),
    }
}

/// Text as a part of a path or a query.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~.".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    // A namespace cannot be a way up the path.
    if encoded.bytes().all(|byte| byte == b'.') {
        encoded.replace('.', "%2E")
    } else {
        encoded
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .eq_ignore_ascii_case("application/json")
}

fn http_date(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(header::DATE)?.to_str().ok()?;
    jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

/// The last cause of an error.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let last = std::iter::successors(Some(error), |error: &&(dyn std::error::Error + 'static)| (*error).source()).last();
    shown(&last.map(ToString::to_string).unwrap_or_default())
}

#[cfg(test)]
mod tests;
