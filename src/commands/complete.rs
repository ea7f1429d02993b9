//! Answers to a shell that asks what could follow the words typed.
//!
//! kubectl runs this binary under a second name with the words after `gpustack-ha`, the last one unfinished, and wants
//! lines `value<TAB>help` and at the end `:4`, or `:0` where file names may follow
//! (`k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go`). The scripts of `completion` ask through a variable.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use clap::{Arg, Command, FromArgMatches, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};

use crate::checks::codes::Code;
use crate::cli::connection::ConnectionFlags;
use crate::cli::help;
use crate::cluster::connect::{Connection, Environment, KubeconfigNames};
use crate::cluster::files;
use crate::cluster::kinds::Kind;
use crate::cluster::live::Reader;
use crate::cluster::snapshot::{Scope, Snapshot};
use crate::gpustack::install::{self, Found};

/// The name under which kubectl looks for completion.
pub const LINK: &str = "kubectl_complete-gpustack_ha";

/// Names the shell that asks.
pub const ASKED: &str = "KUBECTL_GPUSTACK_HA_COMPLETE";

/// How long the answer may take; after that there is none. The two seconds that people wait have room for the rest.
const PATIENCE: Duration = Duration::from_millis(1800);

/// Room for the parsers of files, as the first thread has.
const STACK: usize = 8 << 20;

/// Who asks, and so how the answer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Kubectl,
    Bash,
    Zsh,
    Other,
}

/// What is asked.
#[derive(Debug)]
struct Question {
    asker: Asker,
    /// The words before the one under the cursor, without the program's name.
    before: Vec<OsString>,
    /// The word under the cursor, as far as it is typed.
    word: OsString,
}

/// Answers, if this process was started to complete. Nothing is ever written to standard error.
pub fn answer() -> Option<ExitCode> {
    let question = Question::asked(std::env::args_os().collect(), |name| std::env::var(name).ok())?;
    let asker = question.asker;
    let (sender, receiver) = mpsc::channel();
    std::panic::set_hook(Box::new(|_| {}));
    let thread = std::thread::Builder::new().stack_size(STACK);
    let text = thread
        .spawn(move || sender.send(question.answer()))
        .ok()
        .and_then(|_| receiver.recv_timeout(PATIENCE).ok())
        .unwrap_or_else(|| asker.text(&[], false));
    let _ = std::io::stdout().write_all(text.as_bytes());
    Some(ExitCode::SUCCESS)
}

impl Question {
    /// What a process with these arguments and variables was asked; `None` if it was started for something else.
    fn asked(arguments: Vec<OsString>, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let mut words = arguments.into_iter();
        let program = words.next()?;
        let (asker, mut words, index) = if Path::new(&program).file_stem().is_some_and(|name| name == LINK) {
            (Asker::Kubectl, words.collect::<Vec<_>>(), None)
        } else {
            let asker = match variable(ASKED)?.as_str() {
                "bash" => Asker::Bash,
                "zsh" => Asker::Zsh,
                _ => Asker::Other,
            };
            // After `--` the command line as typed, with the program's name.
            let words = words.skip_while(|word| word != "--").skip(2).collect();
            let index = variable("_CLAP_COMPLETE_INDEX").and_then(|index| index.parse::<usize>().ok());
            (asker, words, index.map(|index| index.saturating_sub(1)))
        };
        let index = index.unwrap_or(words.len().saturating_sub(1)).min(words.len());
        let word = words.get(index).cloned().unwrap_or_default();
        words.truncate(index);
        Some(Self {
            asker,
            before: words,
            word,
        })
    }

    fn answer(self) -> String {
        let Self { asker, before, word } = self;
        let (files, typed) = (Arc::new(AtomicBool::new(false)), Arc::new(Typed::of(&before)));
        let of_files = (asker == Asker::Kubectl).then(|| Arc::clone(&files));
        let mut command = attach(help::command(), &typed, of_files.as_ref());
        let words: Vec<OsString> = std::iter::once("kubectl".into()).chain(before).chain([word.clone()]).collect();
        let index = words.len() - 1;
        let here = std::env::current_dir().ok();
        let mut candidates = complete(&mut command, words, index, here.as_deref()).unwrap_or_default();
        let word = word.to_string_lossy();
        if !word.starts_with('-') {
            candidates.retain(|candidate| !candidate.get_value().to_string_lossy().starts_with('-'));
        }
        let flag = word
            .split_once('=')
            .map(|(flag, _)| format!("{flag}="))
            .filter(|flag| flag.starts_with("--"));
        let lines: Vec<(String, String)> = candidates
            .iter()
            .map(|candidate| {
                let value = candidate.get_value().to_string_lossy();
                // kubectl's scripts put the flag before the value again.
                let value = match &flag {
                    Some(flag) if asker == Asker::Kubectl => value.strip_prefix(flag.as_str()).unwrap_or(&value),
                    _ => &value,
                };
                let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
                (value.to_owned(), help.lines().next().unwrap_or_default().to_owned())
            })
            .collect();
        asker.text(&lines, files.load(Ordering::Relaxed))
    }
}

impl Asker {
    /// Values and their help, as the shell's script reads them.
    fn text(self, lines: &[(String, String)], files: bool) -> String {
        let line = |(value, help): &(String, String)| match self {
            Self::Bash => value.clone(),
            Self::Zsh if help.is_empty() => value.replace('\\', "\\\\").replace(':', "\\:"),
            Self::Zsh => format!("{}:{}", value.replace('\\', "\\\\").replace(':', "\\:"), help.replace('\\', "\\\\")),
            _ if help.is_empty() => value.clone(),
            _ => format!("{value}\t{help}"),
        };
        let separator = if self == Self::Bash { "\u{b}" } else { "\n" };
        let mut text = lines.iter().map(line).collect::<Vec<_>>().join(separator);
        if self == Self::Kubectl {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(if files { ":0\n" } else { ":4\n" });
        }
        text
    }
}

/// What the words before the cursor say about where names come from.
#[derive(Debug, Default)]
struct Typed {
    connection: ConnectionFlags,
    files: Vec<PathBuf>,
    nodes: BTreeSet<String>,
}

impl Typed {
    fn of(words: &[OsString]) -> Self {
        let words = std::iter::once(OsString::from("kubectl")).chain(words.iter().cloned());
        // The line is unfinished, so what is wrong with it does not matter.
        let Ok(matches) = help::command().ignore_errors(true).try_get_matches_from(words) else {
            return Self::default();
        };
        let inner = matches.subcommand().map(|(_, inner)| inner);
        let files = inner.and_then(|inner| inner.try_get_many::<PathBuf>("filename").ok().flatten());
        let nodes = inner.and_then(|inner| inner.try_get_many::<String>("nodes").ok().flatten());
        Self {
            connection: ConnectionFlags::from_arg_matches(&matches).unwrap_or_default(),
            files: files.into_iter().flatten().cloned().collect(),
            nodes: nodes.into_iter().flatten().cloned().collect(),
        }
    }
}

/// Gives each argument that takes a name what it can be. `files` is set once a path may follow: kubectl's scripts
/// complete paths themselves.
fn attach(command: Command, typed: &Arc<Typed>, files: Option<&Arc<AtomicBool>>) -> Command {
    command
        .mut_args(|arg| argument(arg, typed, files))
        .mut_subcommands(|subcommand| attach(subcommand, typed, files))
}

fn argument(arg: Arg, typed: &Arc<Typed>, files: Option<&Arc<AtomicBool>>) -> Arg {
    if arg.is_require_equals_set() {
        // The word after it is not its value.
        return arg.add(ArgValueCompleter::new(|_: &OsStr| Vec::new()));
    }
    if let Some(name) = Name::of(arg.get_id().as_str()) {
        let typed = Arc::clone(typed);
        return arg.add(ArgValueCompleter::new(move |word: &OsStr| name.candidates(word, &typed)));
    }
    match (files, arg.get_value_hint()) {
        (Some(files), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath) => {
            let files = Arc::clone(files);
            arg.add(ArgValueCompleter::new(move |_: &OsStr| {
                files.store(true, Ordering::Relaxed);
                Vec::new()
            }))
        }
        _ => arg,
    }
}

/// What an argument names.
#[derive(Clone, Copy, Debug)]
enum Name {
    Node,
    Namespace,
    Context,
    Cluster,
    User,
    Release,
    Code,
}

impl Name {
    fn of(argument: &str) -> Option<Self> {
        Some(match argument {
            "node" | "nodes" => Self::Node,
            "namespace" => Self::Namespace,
            "context" => Self::Context,
            "cluster" => Self::Cluster,
            "user" => Self::User,
            "release" => Self::Release,
            "accept" | "code" | "codes" => Self::Code,
            _ => return None,
        })
    }

    fn candidates(self, word: &OsStr, typed: &Typed) -> Vec<CompletionCandidate> {
        let word = word.to_string_lossy();
        let kubeconfig = || KubeconfigNames::read(&typed.connection, &Environment::of_process()).unwrap_or_default();
        let without_help = |names: Vec<String>| names.into_iter().map(|name| (name, String::new())).collect();
        let names: Vec<(String, String)> = match self {
            Self::Node => nodes(&word, typed),
            Self::Namespace => {
                let snapshot = read(typed, &[(Kind::Namespace, Scope::Cluster)]);
                without_help(snapshot.namespaces.seen().iter().map(|it| it.metadata.name.clone()).collect())
            }
            Self::Context => without_help(kubeconfig().contexts),
            Self::Cluster => without_help(kubeconfig().clusters),
            Self::User => without_help(kubeconfig().users),
            Self::Release => releases(typed),
            Self::Code => Code::ALL
                .iter()
                .map(|code| (code.as_str().to_owned(), code.meaning().to_owned()))
                .collect(),
        };
        let mut names: Vec<_> = names
            .into_iter()
            .filter(|(name, _)| name.starts_with(word.as_ref()) && plain(name))
            .collect();
        names.sort();
        names.dedup();
        names
            .into_iter()
            .map(|(name, help)| CompletionCandidate::new(name).help((!help.is_empty()).then(|| help.into())))
            .collect()
    }
}

/// Whether a name means itself to every shell. Other names, which files and kubeconfigs may hold, are not offered.
fn plain(name: &str) -> bool {
    let harmless = |character: char| character.is_ascii_alphanumeric() || "._-:/@+".contains(character);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(harmless)
}

/// Nodes that are not on the line yet, in the form that the word has.
fn nodes(word: &str, typed: &Typed) -> Vec<(String, String)> {
    let prefix = ["node/", "nodes/", "no/"]
        .into_iter()
        .find(|prefix| word.starts_with(prefix))
        .unwrap_or_default();
    read(typed, &[(Kind::Node, Scope::Cluster)])
        .nodes
        .seen()
        .iter()
        .map(|node| {
            let help = if node.spec.unschedulable { "cordoned" } else { "" };
            (format!("{prefix}{}", node.metadata.name), help.to_owned())
        })
        .filter(|(name, _)| !typed.nodes.contains(name))
        .collect()
}

/// Releases of the installs, with their namespaces.
fn releases(typed: &Typed) -> Vec<(String, String)> {
    let snapshot = read(typed, &[(Kind::Deployment, Scope::Cluster), (Kind::DaemonSet, Scope::Cluster)]);
    let installs = match install::find(&snapshot, None, typed.connection.namespace.as_deref()) {
        Found::One(install) => vec![install],
        Found::Several(installs) => installs,
        Found::None | Found::Unknown(_) => Vec::new(),
    };
    installs
        .iter()
        .map(|install| (install.release.to_owned(), format!("in namespace {}", install.namespace)))
        .collect()
}

/// What was read of the files typed, or else of the cluster; empty where that fails.
fn read(typed: &Typed, wanted: &[(Kind, Scope)]) -> Snapshot {
    if !typed.files.is_empty() {
        // A pipe can be read once, and that is for the command.
        let at_rest = typed.files.iter().all(|path| path.is_file() || path.is_dir());
        let read = at_rest.then(|| files::read(&typed.files, true).ok());
        return read.flatten().unwrap_or_default();
    }
    let mut snapshot = Snapshot::default();
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
        let _ = runtime.block_on(async {
            let connection = Connection::open(&typed.connection, &Environment::of_process()).await?;
            Reader::new(connection, 0).read(wanted, &mut snapshot).await
        });
    }
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(asker: Asker, words: &[&str]) -> String {
        let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let word = words.pop().unwrap();
        Question {
            asker,
            before: words,
            word,
        }
        .answer()
    }

    fn values(words: &[&str]) -> Vec<String> {
        let text = ask(Asker::Kubectl, words);
        assert!(text.ends_with(":4\n"), "{text}");
        text.lines()
            .take_while(|line| !line.starts_with(':'))
            .map(|line| line.split('\t').next().unwrap().to_owned())
            .collect()
    }

    const EXAMPLE: &str = "examples/high-availability.yaml";

    #[test]
    fn commands_and_flags() {
        assert!(values(&[""]).contains(&"drain-preflight".to_owned()));
        assert_eq!(values(&["drain-p"]), ["drain-preflight"]);
        assert!(values(&[""]).iter().all(|value| !value.starts_with('-')), "no flags before a dash");
        assert!(values(&["drain-preflight", "--"]).contains(&"--context".to_owned()));
        assert_eq!(values(&["drain-preflight", "--one"]), ["--one-by-one"]);
        assert_eq!(values(&["completion", "b"]), ["bash"]);
    }

    #[test]
    fn values_of_flags() {
        for words in [&["drain-preflight", "-o", ""][..], &["drain-preflight", "--output="]] {
            assert!(values(words).contains(&"json".to_owned()), "{words:?}");
        }
        assert_eq!(values(&["drain-preflight", "--output=j"]), ["json"], "without the flag");
        assert_eq!(ask(Asker::Bash, &["drain-preflight", "--output=j"]), "--output=json");
        assert_eq!(values(&["drain-preflight", "--accept", "webhook-d"]), ["webhook-deadlock"]);
        assert_eq!(values(&["explain", "pdb-blocks"]), ["pdb-blocks-drain"]);
        assert_eq!(values(&["drain-preflight", "-f", EXAMPLE, "--release", ""]), ["gpustack-operator"]);
        assert!(values(&["drain-preflight", "-f", EXAMPLE, "-n", "gp"]).contains(&"gpustack-system".to_owned()));
    }

    #[test]
    fn nodes_of_files() {
        assert_eq!(values(&["drain-preflight", "-f", EXAMPLE, ""]), ["cp-1", "cp-2", "cp-3"]);
        assert_eq!(values(&["drain-preflight", "--force", "-f", EXAMPLE, "cp-1", ""]), ["cp-2", "cp-3"]);
        assert_eq!(
            values(&["drain-preflight", "-f", EXAMPLE, "node/cp-1", "node/"]),
            ["node/cp-2", "node/cp-3"]
        );
        for file in ["-", "/no/such/file", "/dev/stdin"] {
            assert_eq!(values(&["drain-preflight", "-f", file, ""]), Vec::<String>::new(), "{file}");
        }
    }

    #[test]
    fn paths_are_the_shells() {
        for words in [&["drain-preflight", "-f", ""][..], &["drain-preflight", "--kubeconfig", "x"]] {
            assert_eq!(ask(Asker::Kubectl, words), ":0\n");
        }
        assert_eq!(ask(Asker::Bash, &["drain-preflight", "-f", "examples/high"]), EXAMPLE);
    }

    #[test]
    fn contexts_are_the_kubeconfigs() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let contexts = "contexts: [{name: prod}, {name: 'arn:aws:eks:a:1:cluster/b'}, {name: '$(touch x)'}, {name: \"a\\nb\"}]\n\
                        clusters: [{name: one}]\nusers: [{name: me}]\n";
        std::fs::write(file.path(), contexts).unwrap();
        let path = file.path().to_str().unwrap();
        let of = |flag| values(&["drain-preflight", "--kubeconfig", path, flag, ""]);
        assert_eq!(
            of("--context"),
            ["arn:aws:eks:a:1:cluster/b", "prod"],
            "and nothing that a shell would run"
        );
        assert_eq!((of("--cluster"), of("--user")), (vec!["one".to_owned()], vec!["me".to_owned()]));
        let zsh = ask(Asker::Zsh, &["drain-preflight", "--kubeconfig", path, "--context", "a"]);
        assert_eq!(zsh, r"arn\:aws\:eks\:a\:1\:cluster/b");
    }

    #[test]
    fn who_asks() {
        let asked = |words: &[&str], variables: &[(&str, &str)]| {
            let find = |name: &str| {
                variables
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| (*value).to_owned())
            };
            Question::asked(words.iter().map(OsString::from).collect(), find)
        };
        assert!(asked(&["/bin/kubectl-gpustack_ha", "version"], &[]).is_none());
        for program in ["/bin/kubectl_complete-gpustack_ha", "kubectl_complete-gpustack_ha.exe"] {
            let question = asked(&[program, "drain-preflight", ""], &[]).unwrap();
            assert_eq!(
                (question.asker, question.before.len(), question.word),
                (Asker::Kubectl, 1, "".into())
            );
        }
        let question = asked(
            &["x", "--", "kubectl-gpustack_ha", "drain-preflight", "c", "after"],
            &[(ASKED, "bash"), ("_CLAP_COMPLETE_INDEX", "2")],
        )
        .unwrap();
        assert_eq!((question.asker, question.before.len(), question.word), (Asker::Bash, 1, "c".into()));
        // zsh leaves an empty last word out.
        let question = asked(
            &["x", "--", "kubectl-gpustack_ha", "version"],
            &[(ASKED, "zsh"), ("_CLAP_COMPLETE_INDEX", "2")],
        )
        .unwrap();
        assert_eq!((question.before.len(), question.word), (1, "".into()));
    }
}
