//! Pages for errors, and the way of who is signed out to the login page.

use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::html;

use super::layout;
use super::links;
use farescan_core::app::error::ApiError;
use farescan_core::commands::CommandError;
use farescan_core::contract::{ValidationError, ValidationErrors};
use farescan_core::ids::Kind;
use farescan_core::paging::PageError;
use farescan_core::scans::watch::WatchError;

/// Why a page is not shown.
#[derive(Debug)]
pub(super) enum PageFailure {
    /// Nobody is signed in; after that the browser returns to this path.
    SignedOut(String),
    /// Another site sent the form, or it is of an earlier session.
    ForeignForm,
    /// The error that the API would answer.
    Api(ApiError),
}

impl PageFailure {
    /// A page for an id that the caller does not have. Another caller's gets the same.
    pub(super) fn not_found(what: &str) -> Self {
        Self::Api(ApiError::not_found(format!("There is no such {what}.")))
    }
}

/// What a person can correct, to be shown beside the form; other failures have a page of their own.
pub(super) fn correctable<T>(
    done: Result<T, impl Into<ApiError>>,
) -> Result<Result<T, ApiError>, PageFailure> {
    let done: Result<T, ApiError> = done.map_err(Into::into);
    match done {
        Err(error) if !error.status().is_client_error() => Err(error.into()),
        done => Ok(done),
    }
}

impl IntoResponse for PageFailure {
    fn into_response(self) -> Response {
        match self {
            Self::SignedOut(path) => {
                let target = HeaderValue::try_from(links::login_then(&path))
                    .unwrap_or(HeaderValue::from_static(links::LOGIN));
                (StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response()
            }
            Self::ForeignForm => layout::bare_page(
                StatusCode::FORBIDDEN,
                "Nothing was done",
                html! {
                    h1 { "Nothing was done" }
                    p { "This form was not sent by a page of your current session. Go back, reload the page and send the form again." }
                    p { a class="button" href=(links::OVERVIEW) { "Home" } }
                },
            ),
            Self::Api(error) => error_page(&error),
        }
    }
}

fn error_page(error: &ApiError) -> Response {
    let title = match error.status() {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        status if status.is_server_error() => "Not available",
        _ => "Not possible",
    };
    let mut response = layout::bare_page(
        error.status(),
        title,
        html! {
            h1 { (title) }
            p { (error.message()) }
            @if let Some(wait) = error.wait() {
                p { "Try again in " (wait.as_secs().max(1)) " s." }
            }
            (layout::ways_onward())
        },
    );
    if let Some(wait) = error.wait() {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
    }
    response
}

impl From<Kind> for PageFailure {
    fn from(kind: Kind) -> Self {
        Self::not_found(kind.noun())
    }
}

impl From<ApiError> for PageFailure {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<CommandError> for PageFailure {
    fn from(error: CommandError) -> Self {
        Self::Api(error.into())
    }
}

impl From<PageError> for PageFailure {
    fn from(error: PageError) -> Self {
        Self::Api(error.into())
    }
}

impl From<ValidationErrors> for PageFailure {
    fn from(errors: ValidationErrors) -> Self {
        Self::Api(errors.into())
    }
}

impl From<ValidationError> for PageFailure {
    fn from(error: ValidationError) -> Self {
        Self::Api(error.into())
    }
}

impl From<WatchError> for PageFailure {
    fn from(error: WatchError) -> Self {
        Self::Api(error.into())
    }
}

impl From<sqlx::Error> for PageFailure {
    fn from(error: sqlx::Error) -> Self {
        Self::Api(error.into())
    }
}
