//! kubectl's own flags that say which cluster is meant, and as whom.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::report::shell::shell_quote;

/// The value of `--request-timeout`: how long one request may take with its whole body; `None` is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTimeout(pub Option<Duration>);

impl Default for RequestTimeout {
    fn default() -> Self {
        Self(Some(Duration::from_secs(30)))
    }
}

/// Which cluster is meant, and as whom, with kubectl's names and meanings.
///
/// kubectl takes no flag before a plugin's name, so all of these go after it, and after a subcommand too.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection (as kubectl's)")]
pub struct ConnectionFlags {
    /// Path to the kubeconfig file, instead of $KUBECONFIG and ~/.kube/config
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,

    /// Name of the kubeconfig context to use
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// Name of the kubeconfig cluster to use
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Option<String>,

    /// Name of the kubeconfig user to use
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,

    /// Namespace of the install (never taken from the context)
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,

    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    pub as_user: Option<String>,

    /// Group to impersonate; may be repeated
    #[arg(long, global = true, value_name = "GROUP", action = ArgAction::Append)]
    pub as_group: Vec<String>,

    /// UID to impersonate
    #[arg(long, global = true, value_name = "UID")]
    pub as_uid: Option<String>,

    /// Address of the API server
    #[arg(short, long, global = true, value_name = "URL")]
    pub server: Option<String>,

    /// Bearer token
    #[arg(long, global = true, value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Path to the certificates that vouch for the API server
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub certificate_authority: Option<String>,

    /// Path to a client certificate
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub client_certificate: Option<String>,

    /// Path to the client certificate's key
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub client_key: Option<String>,

    /// Do not check the API server's certificate
    #[arg(long, global = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value_t = false, default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
          value_name = "BOOL")]
    pub insecure_skip_tls_verify: bool,

    /// Name to expect in the API server's certificate, instead of its host
    #[arg(long, global = true, value_name = "NAME")]
    pub tls_server_name: Option<String>,

    /// How long one request may take with its body: 30s, 1m, a bare number of seconds, 0 for ever
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", value_parser = request_timeout)]
    pub request_timeout: RequestTimeout,

    /// Print each request to stderr, and what each list took (as kubectl, -v=6 is taken too)
    #[arg(short, long, alias = "v", global = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value_t = 0, default_missing_value = "1", hide_default_value = true, value_name = "LEVEL")]
    pub verbose: u8,
}

impl ConnectionFlags {
    /// The given flags that say which cluster and who, as words for a shell, quoted where they need it.
    ///
    /// A command line that we print begins with `kubectl` and these, so that it reaches the same cluster as the
    /// same user. The token's value is a secret: `"$TOKEN"` stands for it.
    pub fn repeat(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |flag: &str, value: &str| {
            if value.starts_with('-') {
                words.push(format!("{flag}={}", shell_quote(value)));
            } else {
                words.extend([flag.to_owned(), shell_quote(value)]);
            }
        };
        if let Some(path) = &self.kubeconfig {
            add("--kubeconfig", &path.to_string_lossy());
        }
        let before = [
            ("--context", &self.context),
            ("--cluster", &self.cluster),
            ("--user", &self.user),
            ("--as", &self.as_user),
        ];
        for (flag, value) in before {
            if let Some(value) = value {
                add(flag, value);
            }
        }
        for group in &self.as_group {
            add("--as-group", group);
        }
        let after = [
            ("--as-uid", &self.as_uid),
            ("--server", &self.server),
            ("--certificate-authority", &self.certificate_authority),
            ("--client-certificate", &self.client_certificate),
            ("--client-key", &self.client_key),
            ("--tls-server-name", &self.tls_server_name),
        ];
        for (flag, value) in after {
            if let Some(value) = value {
                add(flag, value);
            }
        }
        if self.insecure_skip_tls_verify {
            words.push("--insecure-skip-tls-verify".to_owned());
        }
        if self.token.is_some() {
            words.push(r#"--token="$TOKEN""#.to_owned());
        }
        words
    }
}

/// Reads a duration as kubectl does: a bare number of seconds, or Go's syntax; zero means no limit
/// (`k8s.io/client-go/tools/clientcmd/helpers.go`).
fn request_timeout(text: &str) -> Result<RequestTimeout, String> {
    let duration = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => go_duration(text).ok_or("want a duration such as 30s, 1m or 500ms, or a bare number of seconds; 0 is no limit")?,
    };
    Ok(RequestTimeout(Some(duration).filter(|duration| !duration.is_zero())))
}

/// A duration in Go's syntax, such as `1m30s` or `1.5h`; `None` where it is not one, or negative, or too long.
pub fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    while {
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest
            .find(|character: char| character.is_ascii_digit() || character == '.')
            .unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        rest = &rest[letters..];
        total = total.checked_add(Duration::try_from_secs_f64(number * unit).ok()?)?;
        !rest.is_empty()
    } {}
    Some(total)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        connection: ConnectionFlags,
        #[command(subcommand)]
        command: Command,
    }

    #[derive(clap::Subcommand)]
    enum Command {
        Run { node: Option<String> },
    }

    fn parse(words: &str) -> Result<ConnectionFlags, clap::Error> {
        Cli::try_parse_from(["plugin", "run"].into_iter().chain(words.split_whitespace())).map(|cli| {
            let Command::Run { node } = cli.command;
            assert_eq!(node, None, "no flag's value becomes an argument");
            cli.connection
        })
    }

    #[test]
    fn flags_are_taken_after_the_subcommand() {
        let flags = parse("--context prod -n gpu -s https://h:6443 --as a --as-group g --as-group h --as-uid 7 --insecure-skip-tls-verify")
            .unwrap();
        assert_eq!(flags.context.as_deref(), Some("prod"));
        assert_eq!(flags.namespace.as_deref(), Some("gpu"));
        assert_eq!(flags.server.as_deref(), Some("https://h:6443"));
        assert_eq!(flags.as_group, ["g", "h"]);
        assert!(flags.insecure_skip_tls_verify);
        assert!(!parse("--insecure-skip-tls-verify=false").unwrap().insecure_skip_tls_verify);
        assert_eq!(parse("").unwrap().verbose, 0);
        for (words, level) in [("-v", 1), ("-v=6", 6), ("--v=6", 6), ("--verbose", 1)] {
            assert_eq!(parse(words).unwrap().verbose, level, "{words}");
        }
    }

    #[test]
    fn durations_are_kubectls() {
        let timeout = |text: &str| parse(&format!("--request-timeout={text}")).map(|flags| flags.request_timeout.0);
        assert_eq!(parse("").unwrap().request_timeout.0, Some(Duration::from_secs(30)));
        assert_eq!(parse("").unwrap().request_timeout, RequestTimeout::default());
        assert_eq!(timeout("5").unwrap(), Some(Duration::from_secs(5)));
        assert_eq!(timeout("1m30s").unwrap(), Some(Duration::from_secs(90)));
        assert_eq!(timeout("1.5h").unwrap(), Some(Duration::from_secs(5400)));
        assert_eq!(timeout("500ms").unwrap(), Some(Duration::from_millis(500)));
        assert_eq!(timeout("0").unwrap(), None);
        assert_eq!(timeout("0s").unwrap(), None);
        for bad in ["", "x", "5d", "-1", "-1s", "s", "1e400h", "99999999999999999999h", "1s2", ".s"] {
            assert_eq!(timeout(bad).unwrap_err().exit_code(), 2, "{bad:?}");
        }
    }

    #[test]
    fn a_printed_command_reaches_the_same_cluster() {
        let mut flags = parse("--context prod -n gpu --as a --as-group g --token s3cret --request-timeout 5 -v").unwrap();
        assert_eq!(flags.repeat().join(" "), r#"--context prod --as a --as-group g --token="$TOKEN""#);
        flags.kubeconfig = Some("my file".into());
        flags.context = Some("-odd".into());
        flags.token = None;
        flags.insecure_skip_tls_verify = true;
        assert_eq!(
            flags.repeat().join(" "),
            "--kubeconfig 'my file' --context=-odd --as a --as-group g --insecure-skip-tls-verify"
        );
        assert_eq!(ConnectionFlags::default().repeat(), Vec::<String>::new());
    }
}
