//! What went wrong with a request to the service, and what to do next.

use std::error::Error as _;
use std::fmt;

use crate::exit::ExitStatus;
use farescan_contract::{ErrorDetail, ErrorType};

/// A request to the service that did not succeed.
#[derive(Debug)]
pub enum ClientError {
    /// There was no answer.
    Unreachable {
        base: String,
        cause: String,
        /// Whether the service may have received the request.
        may_have_arrived: bool,
    },
    /// An error of the service.
    Service {
        detail: Box<ErrorDetail>,
        retry_after: Option<String>,
    },
    /// The marketplace's 429, passed on: the plan's quota or rate window is used up.
    PlanUsedUp {
        message: String,
        retry_after: Option<String>,
    },
    /// An answer that is not of this API.
    Unexpected { base: String, what: String },
}

impl std::error::Error for ClientError {}

impl ClientError {
    /// The exit code of a command that ends with this error.
    pub fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Service { detail, .. } => match detail.error_type {
                ErrorType::InvalidRequest if is_about_budget(detail) => ExitStatus::Refused,
                ErrorType::InvalidRequest => ExitStatus::Usage,
                ErrorType::SearchIncomplete => ExitStatus::Incomplete,
                _ => ExitStatus::Failed,
            },
            Self::PlanUsedUp { .. } => ExitStatus::Refused,
            Self::Unreachable { .. } | Self::Unexpected { .. } => ExitStatus::Failed,
        }
    }

    /// The type of an error of the service.
    pub fn error_type(&self) -> Option<ErrorType> {
        match self {
            Self::Service { detail, .. } => Some(detail.error_type),
            _ => None,
        }
    }

    /// Whether the resource was deleted, or its state does not allow the command any more.
    pub fn is_past(&self) -> bool {
        matches!(
            self.error_type(),
            Some(ErrorType::InvalidState | ErrorType::NotFound)
        )
    }

    /// Whether the same read may succeed soon: the service restarts, or is overloaded.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Service { detail, .. } => matches!(
                detail.error_type,
                ErrorType::Unavailable | ErrorType::TooManyRequests
            ),
            Self::PlanUsedUp { .. } | Self::Unexpected { .. } => false,
        }
    }

    /// What to do next; `None` where the message says it.
    fn next_step(&self) -> Option<String> {
        let later = |retry_after: &Option<String>| {
            retry_after.as_ref().map(|wait| match wait.parse::<u64>() {
                Ok(seconds) => format!("try again in {seconds} s"),
                Err(_) => format!("try again after {wait}"),
            })
        };
        match self {
            Self::Unreachable { may_have_arrived: true, .. } => Some(
                "the request may have arrived, and a search may have been billed: look with `farescan scans` and `farescan quota` before you repeat it"
                    .to_owned(),
            ),
            Self::Unreachable { base, .. } => Some(format!(
                "start the service (`farescan serve`, or `farescan serve --sandbox` to try it), or name its address with --url or FARESCAN_URL instead of {base}"
            )),
            Self::Service { detail, retry_after, .. } => match detail.error_type {
                ErrorType::MissingApiKey => {
                    Some("set FARESCAN_API_KEY, or run `farescan login`".to_owned())
                }
                ErrorType::InvalidApiKey => Some(
                    "check FARESCAN_API_KEY, or store another key with `farescan login`".to_owned(),
                ),
                ErrorType::NotSubscribed => Some(
                    "subscribe on the marketplace, then check with `farescan verify`".to_owned(),
                ),
                ErrorType::NotFound => Some(
                    "`farescan scans` and `farescan monitors` list what this key has stored; another key sees nothing of it".to_owned(),
                ),
                ErrorType::SearchIncomplete => {
                    Some("the same command again costs another request".to_owned())
                }
                ErrorType::TooManyRequests | ErrorType::Unavailable => later(retry_after),
                ErrorType::Internal => detail.request_id.as_ref().map(|id| {
                    format!("report it to the operator of the service with the request id {id}")
                }),
                ErrorType::UpstreamError
                | ErrorType::UpstreamUnreachable
                | ErrorType::UpstreamInvalidResponse
                | ErrorType::UpstreamTimeout => Some(
                    "try again later; `farescan usage` shows what scans have spent".to_owned(),
                ),
                ErrorType::KeyNotAccepted => Some(
                    "`farescan verify` makes that call; then repeat the command".to_owned(),
                ),
                _ => None,
            },
            Self::PlanUsedUp { retry_after, .. } => Some(format!(
                "`farescan quota` shows what is left{}",
                later(retry_after).map(|when| format!("; {when}")).unwrap_or_default()
            )),
            Self::Unexpected { .. } => {
                Some("check --url: it must be the address of a farescan service".to_owned())
            }
        }
    }
}

/// Whether the service refused a budget that is too small.
fn is_about_budget(detail: &ErrorDetail) -> bool {
    !detail.details.is_empty()
        && detail
            .details
            .iter()
            .all(|fault| fault.field == "max_requests")
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { base, cause, .. } => {
                write!(f, "{base} does not answer: {cause}")?;
            }
            Self::Service { detail, .. } if !detail.details.is_empty() => {
                write!(f, "the request is invalid; nothing was searched")?;
                for fault in &detail.details {
                    write!(f, "\n  {}: ", fault.field)?;
                    match &fault.found {
                        Some(found) => write!(f, "found {found}; ")?,
                        None => write!(f, "missing; ")?,
                    }
                    write!(f, "expected {}", fault.expected)?;
                }
            }
            Self::Service { detail, .. } => write!(f, "{}", detail.message)?,
            Self::PlanUsedUp { message, .. } => {
                write!(f, "the marketplace refused the search: {message}")?;
            }
            Self::Unexpected { base, what } => write!(f, "{base} {what}")?,
        }
        match self.next_step() {
            Some(next) => write!(f, "\n  next: {next}"),
            None => Ok(()),
        }
    }
}

/// The innermost cause, such as `Connection refused`. Outer ones name the whole URL.
pub fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.is_timeout() && error.source().is_none() {
        return "no answer in time".to_owned();
    }
    cause.to_string()
}
