//! Why a command cannot answer.

use crate::cluster::connect::ConnectError;
use crate::cluster::files::InputError;
use crate::report::shell::Kubectl;
use crate::report::text::harmless;

/// An error at the edge: what happened, what to do, and how to exit.
#[derive(Debug)]
pub struct Failure {
    /// What was tried and what happened; the first line says it all.
    pub message: String,
    /// Causes, outermost first.
    pub causes: Vec<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Exit code: 2 for usage, 3 for what cannot be read.
    pub exit: u8,
}

impl Failure {
    /// A wrong question.
    pub fn usage(message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            message: message.into(),
            causes: Vec::new(),
            hint,
            exit: 2,
        }
    }

    /// A cluster or a file that cannot be read.
    pub fn unreadable(message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            message: message.into(),
            causes: Vec::new(),
            hint,
            exit: 3,
        }
    }

    /// The same, with the connection flags in the commands of its hint, so that they reach the same cluster.
    pub fn repeating(mut self, kubectl: &Kubectl) -> Self {
        for verb in ["get", "config"] {
            let plain = Kubectl::default().line([verb]);
            self.hint = self
                .hint
                .map(|hint| hint.replace(&format!("{plain} "), &format!("{} ", kubectl.line([verb]))));
        }
        self
    }

    /// The text for standard error.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("error: {}", clean(&self.message))];
        lines.extend(self.causes.iter().map(|cause| format!("  caused by: {}", clean(cause))));
        lines.extend(self.hint.iter().map(|hint| format!("hint: {}", clean(hint))));
        lines.join("\n")
    }
}

/// Text without control characters, line by line.
fn clean(text: &str) -> String {
    text.lines().map(|line| harmless(line, false)).collect::<Vec<_>>().join("\n")
}

fn causes(error: &dyn std::error::Error) -> Vec<String> {
    let said = error.to_string();
    std::iter::successors(error.source(), |error| error.source())
        .map(ToString::to_string)
        .filter(|cause| !said.contains(cause.as_str()))
        .collect()
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self {
            causes: causes(&error),
            hint: error.hint(),
            ..Self::unreadable(error.to_string(), None)
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self {
            causes: causes(&error),
            hint: error.hint(),
            ..Self::unreadable(error.to_string(), None)
        }
    }
}
