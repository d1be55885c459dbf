//! Exit codes, and the errors that carry one. `report` prints them.

use crate::Failure;

/// How a command ended, for scripts. 0 is success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// It failed.
    Failed = 1,
    /// The arguments are invalid, or the service refused the request as invalid.
    Usage = 2,
    /// A search did not complete, or a scan ended or stopped without all of its answers.
    Incomplete = 3,
    /// Refused before anything was spent: a budget, a quota, or the answer to the question.
    Refused = 4,
    /// Ended by Ctrl-C.
    Interrupted = 130,
    /// A closed pipe, as of `farescan scans | head`: 128 and the number of SIGPIPE.
    ClosedPipe = 141,
}

/// An end with its own exit code. Without a message nothing is printed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CommandEnd {
    pub status: ExitStatus,
    pub message: String,
}

impl CommandEnd {
    /// An end whose output says everything already.
    pub fn silent(status: ExitStatus) -> Failure {
        Self::with(status, "")
    }

    /// An end with a message.
    pub fn with(status: ExitStatus, message: impl Into<String>) -> Failure {
        let message = message.into();
        Self { status, message }.into()
    }

    /// Invalid arguments.
    pub fn usage(message: impl Into<String>) -> Failure {
        Self::with(ExitStatus::Usage, message)
    }
}

/// A signal ended the command; the exit code shows it to the shell.
#[derive(Debug, thiserror::Error)]
#[error("ended by a signal")]
pub struct EndedBySignal {
    /// 130 for SIGINT, 143 for SIGTERM.
    pub code: u8,
}
