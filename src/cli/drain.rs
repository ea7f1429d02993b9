//! `drain-preflight`, and the flags of `kubectl drain`.

use std::time::Duration;

use clap::{ArgAction, Args};

use super::connection::go_duration;
use super::{FailOn, InstallFlags, OutputFlags, SourceFlags};
use crate::checks::assessed::Accepted;
use crate::checks::codes::Code;
use crate::cluster::objects::LabelSelector;
use crate::kubernetes::drain::DrainFlags;
use crate::kubernetes::selectors;

/// Arguments of `drain-preflight`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Exit codes: 0 safe; 1 at-risk or unsafe (see --fail-on); 2 usage, unknown node, selector that matches none; 3 unknown, or the cluster or a file cannot be read."
)]
pub struct DrainPreflightArgs {
    /// Nodes to drain: NAME or node/NAME, as one `kubectl drain` of all of them
    #[arg(value_name = "NODE")]
    pub nodes: Vec<String>,

    /// Drain the nodes with these labels instead
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = selector)]
    pub selector: Option<LabelSelector>,

    /// Drain and uncordon each node in turn, instead of all in one drain
    #[arg(long)]
    pub one_by_one: bool,

    /// Say of each node what draining it alone would do, a row each, worst first; without names or -l of every node
    #[arg(long, conflicts_with = "one_by_one")]
    pub each: bool,

    /// kubectl drain's flags.
    #[command(flatten)]
    pub drain: KubectlDrainFlags,

    /// From which verdict on the exit code is 1; with `unsafe` every at-risk exits 0, possible hangs included
    #[arg(long, value_enum, default_value_t = FailOn::AtRisk, value_name = "VERDICT", help_heading = "Verdict")]
    pub fail_on: FailOn,

    /// Take a finding out of the verdict, and still show it: CODE, or CODE=[NAMESPACE/]NAME of its object
    #[arg(long, value_name = "CODE[=NAME]", value_parser = accepted, help_heading = "Verdict")]
    pub accept: Vec<Accepted>,

    /// Where the objects come from.
    #[command(flatten)]
    pub source: SourceFlags,

    /// Which install.
    #[command(flatten)]
    pub install: InstallFlags,

    /// How the answer is printed.
    #[command(flatten)]
    pub output: OutputFlags,
}

/// The flags of `kubectl drain`, with its meanings; two of them are taken as given.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "As kubectl drain's")]
pub struct KubectlDrainFlags {
    /// Remove pods that have no controller, too
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
          hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    pub force: bool,

    /// Leave DaemonSet pods in place; taken as given unless =false
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true",
          hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    pub ignore_daemonsets: bool,

    /// Remove pods with emptyDir volumes, too; taken as given unless =false
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true",
          hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    pub delete_emptydir_data: bool,

    /// Seconds for each pod to end; negative: the pod's own
    #[arg(long, default_value_t = -1, allow_negative_numbers = true, value_name = "SECONDS")]
    pub grace_period: i64,

    /// When to give up on a node, such as 5m; 0: never
    #[arg(long, default_value = "0s", value_parser = duration, value_name = "DURATION")]
    pub timeout: Duration,

    /// Delete instead of evicting, past all budgets
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
          hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    pub disable_eviction: bool,

    /// Only pods with these labels
    #[arg(long, value_name = "SELECTOR")]
    pub pod_selector: Option<String>,

    /// Pass over pods that have been terminating for longer than this many seconds; 0: never
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub skip_wait_for_delete_timeout: i64,
}

impl KubectlDrainFlags {
    /// The flags as rules read them.
    ///
    /// # Errors
    /// A pod selector that does not parse.
    pub fn flags(&self) -> Result<DrainFlags, String> {
        Ok(DrainFlags {
            force: self.force,
            ignore_daemonsets: self.ignore_daemonsets,
            delete_emptydir_data: self.delete_emptydir_data,
            grace_period: self.grace_period,
            timeout: Some(self.timeout).filter(|timeout| !timeout.is_zero()),
            disable_eviction: self.disable_eviction,
            pod_selector: self
                .pod_selector
                .as_deref()
                .filter(|text| !text.is_empty())
                .map(selector)
                .transpose()?,
            skip_wait_for_delete_timeout: self.skip_wait_for_delete_timeout,
        })
    }

    /// The flags as words of a command line; those at kubectl's own defaults are left out.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let switches = [
            (self.force, "--force"),
            (self.ignore_daemonsets, "--ignore-daemonsets"),
            (self.delete_emptydir_data, "--delete-emptydir-data"),
            (self.disable_eviction, "--disable-eviction"),
        ];
        words.extend(switches.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_owned()));
        if self.grace_period >= 0 {
            words.push(format!("--grace-period={}", self.grace_period));
        }
        if !self.timeout.is_zero() {
            words.push(format!("--timeout={}s", self.timeout.as_secs_f64()));
        }
        if let Some(selector) = self.pod_selector.as_deref().filter(|text| !text.is_empty()) {
            words.push(format!("--pod-selector={selector}"));
        }
        if self.skip_wait_for_delete_timeout > 0 {
            words.push(format!("--skip-wait-for-delete-timeout={}", self.skip_wait_for_delete_timeout));
        }
        words
    }
}

fn selector(text: &str) -> Result<LabelSelector, String> {
    selectors::parse(text).map_err(|error| error.to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    go_duration(text).ok_or_else(|| format!("`{text}` is not a duration such as 30s, 5m or 1h30m"))
}

/// Reads `CODE[=NAME]` of `--accept`.
pub(super) fn accepted(text: &str) -> Result<Accepted, String> {
    let (code, name) = match text.split_once('=') {
        Some((code, name)) => (code, Some(name.to_owned())),
        None => (text, None),
    };
    let code = super::explain::code(code)?;
    if code == Code::NotAssessed {
        return Err("what is not known cannot be accepted: read it, or judge it by hand".to_owned());
    }
    if name.as_ref().is_some_and(String::is_empty) {
        return Err("a name is missing after `=`".to_owned());
    }
    Ok(Accepted { code, name })
}
