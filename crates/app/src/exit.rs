//! How a command ends: its exit code, and what it says where it could not do its work.

use std::process::ExitCode;

use nix::unistd::{Uid, User};
use turnwright_core::{IdError, TurnStatus, shell_word};
use turnwright_engine::{EngineError, StoreError};
use turnwright_host::{HostError, Problems};

/// The exit codes, part of the command line's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did its work.
    Done,
    /// It failed, reached the step limit or was stopped.
    Failed,
    /// What was asked for is wrong, or the configuration, or the database that it names.
    Usage,
    /// A turn waits for a decision.
    Parked,
    /// A person stopped it.
    Cancelled,
}

impl Exit {
    /// What a turn's end means.
    pub(crate) fn of(status: &TurnStatus) -> Self {
        match status {
            TurnStatus::Completed => Self::Done,
            TurnStatus::Cancelled => Self::Cancelled,
            TurnStatus::Failed { .. } | TurnStatus::StepLimit | TurnStatus::Stopped { .. } => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Parked => 3,
            Exit::Cancelled => 130,
        })
    }
}

/// Why a command did not do its work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// What is wrong; one line per problem.
    pub(crate) text: String,
    /// What would be right.
    pub(crate) hint: Option<String>,
}

/// What is to be done where something that is stored cannot be read.
pub(crate) const DAMAGED: &str = "`turnwright db check` says all that is damaged; restore it from a backup";

impl Failure {
    /// A conversation that was named could not be opened.
    pub(crate) fn to_open(error: EngineError) -> Self {
        let is_missing = matches!(error, EngineError::NotFound { .. });
        let failure = Self::from(error);
        if is_missing { failure.hint("`turnwright conversations list` shows those that there are") } else { failure }
    }

    /// What was asked for is wrong.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, text: text.into(), hint: None }
    }

    /// It could not be done.
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, text: text.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The lines to say.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let errors = self.text.lines().map(|line| format!("error: {line}"));
        errors.chain(self.hint.iter().map(|hint| format!("hint: {hint}")))
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::usage(problems.to_string())
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let failure = Self::usage(error.to_string());
        match error {
            HostError::Owner { uid, .. } => failure.hint(as_owner(uid)),
            HostError::Engine(error) => error.into(),
            HostError::Store(_)
            | HostError::Database { .. }
            | HostError::SealKey
            | HostError::Config(_)
            | HostError::ProviderName { .. }
            | HostError::Rule(_)
            | HostError::Roots(_)
            | HostError::DataDir { .. }
            | HostError::Nodes(_)
            | HostError::Webhook { .. } => failure,
        }
    }
}

/// How a command is run as the user to whom the data belongs.
fn as_owner(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let program = user.map_or_else(|| format!("setpriv --reuid={uid} --clear-groups"), |user| format!("sudo -u {}", user.name));
    format!("`{program} turnwright …`, or beside the unit of systemd as docs/operations.md says under \"Installing\"")
}

impl From<IdError> for Failure {
    fn from(error: IdError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match &error {
            EngineError::NoTool { .. } => {
                Self::usage(error.to_string()).hint("`turnwright tools list` shows those that there are")
            }
            EngineError::NotFound { .. } | EngineError::Misfilled { .. } | EngineError::Invalid { .. } => {
                Self::usage(error.to_string())
            }
            EngineError::OtherSettings { .. } => Self::usage(error.to_string()).hint(
                "`turnwright approvals decide` decides what waits in it; --retry stops it, so that nothing that waits runs, \
                 and begins its answer again with these; `turnwright conversations stop ID` only stops it",
            ),
            EngineError::OtherFolder { folder } => {
                Self::failed(error.to_string()).hint(format!("run it there: cd {}", shell_word(folder)))
            }
            EngineError::Store(StoreError::Damaged { .. }) => Self::failed(error.to_string()).hint(DAMAGED),
            EngineError::Exists { .. }
            | EngineError::NoOpenTurn { .. }
            | EngineError::TurnOpen { .. }
            | EngineError::SaidMeanwhile
            | EngineError::NotWaiting { .. }
            | EngineError::NotAsked { .. }
            | EngineError::NotAllowed { .. }
            | EngineError::PeopleOnly { .. }
            | EngineError::KeyReused { .. }
            | EngineError::OverLimit(_)
            | EngineError::OverBudget(_)
            | EngineError::Provider(_)
            | EngineError::Store(_)
            | EngineError::Journal(_)
            | EngineError::ShuttingDown => Self::failed(error.to_string()),
        }
    }
}
