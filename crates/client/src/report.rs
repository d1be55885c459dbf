//! Prints how a command failed, and returns its exit code.

use std::process::ExitCode;

use super::Failure;
use super::client::ClientError;
use super::exit::{CommandEnd, EndedBySignal, ExitStatus};
use super::wrap::note;
use farescan_contract::visible_text::VisibleText;

/// Prints a failure and returns its exit code. It prints nothing for a closed pipe, where SIGPIPE
/// would have ended the process silently.
pub fn exit_code(failure: &Failure) -> ExitCode {
    if let Some(signal) = failure.downcast_ref::<EndedBySignal>() {
        return ExitCode::from(signal.code);
    }
    let status = exit_status(failure);
    let message = VisibleText::lines(failure.to_string());
    if !message.is_empty() && status != ExitStatus::ClosedPipe {
        note!("farescan: {message}");
    }
    ExitCode::from(status as u8)
}

fn exit_status(failure: &Failure) -> ExitStatus {
    let io = failure.downcast_ref::<std::io::Error>();
    if io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
        return ExitStatus::ClosedPipe;
    }
    if let Some(end) = failure.downcast_ref::<CommandEnd>() {
        return end.status;
    }
    failure
        .downcast_ref::<ClientError>()
        .map_or(ExitStatus::Failed, ClientError::exit_status)
}
