//! `Prefer: respond-async` and `Prefer: wait=20` (RFC 7240) on the five searches: a synchronous
//! search may become a scan of one item.
//!
//! ```text
//!  respond-async            202 with the scan, at once
//!  respond-async, wait=20   the synchronous response if known within 20 s, else 202 with the scan
//!  wait=20                  the same: RFC 7240 (4.3) lets a server answer 202 when it takes longer
//! ```
//!
//! A preference is never an error: one that cannot be honoured is ignored, and the search runs
//! synchronously. That happens where this service has no database or master key, and where nothing
//! was stored because the database is unavailable, the caller is at a limit, or submits too fast.
//! With an `Idempotency-Key`, which only a stored search can honour, it is 503 or 429 instead. In
//! any case a request makes one call: a search that may have been stored is not run here.

use std::time::Duration;

use axum::Json;
use axum::http::header::VARY;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::directives::{directives, name_and_argument, seconds, split};
use super::outcome_response::outcome_response;
use farescan_core::app::AppState;
use farescan_core::app::api_request::{
    IDEMPOTENCY_KEY, idempotency_key, location, replayed_header, submit_context,
};
use farescan_core::app::auth::ApiKey;
use farescan_core::app::error::ApiError;
use farescan_core::commands::CommandError;
use farescan_core::contract::Endpoint;
use farescan_core::scans::respond_async::{self, AcceptedSearch};
use farescan_core::scans::watch::MAX_WAIT;
use farescan_core::search::Search;

const PREFER: HeaderName = HeaderName::from_static("prefer");
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The preferences of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Preference {
    respond_async: bool,
    /// At most [`MAX_WAIT`].
    wait: Option<Duration>,
}

impl Preference {
    /// The known preferences of the headers; `None` without one. The first of a repeated preference
    /// counts (RFC 7240, 2).
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let (mut respond_async, mut wait) = (None, None);
        for preference in directives(headers, &PREFER) {
            // After a semicolon come parameters, of which none is known.
            let word = split(preference, ';').into_iter().next();
            let (name, given) = name_and_argument(word.unwrap_or_default());
            match name.as_str() {
                "respond-async" => _ = respond_async.get_or_insert(given.is_none()),
                "wait" => _ = wait.get_or_insert_with(|| given.and_then(seconds)),
                _ => {}
            }
        }
        let known = Self {
            respond_async: respond_async.unwrap_or(false),
            wait: wait
                .flatten()
                .map(|wait| Duration::from_secs(wait).min(MAX_WAIT)),
        };
        Some(known).filter(|known| known.respond_async || known.wait.is_some())
    }

    /// The header `Preference-Applied`.
    fn applied(self) -> HeaderMap {
        let preferences = [
            self.respond_async.then(|| "respond-async".to_owned()),
            self.wait.map(|wait| format!("wait={}", wait.as_secs())),
        ];
        let text = preferences
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", ");
        HeaderValue::try_from(text)
            .ok()
            .map(|text| (APPLIED, text))
            .into_iter()
            .collect()
    }
}

/// Adds `Vary: Prefer`.
pub(super) fn add_vary(endpoint: Endpoint, response: &mut Response) {
    if Endpoint::SEARCHES.contains(&endpoint) {
        response
            .headers_mut()
            .append(VARY, HeaderValue::from_static("Prefer"));
    }
}

/// The response of a search that became a scan; `None`: it did not, so it runs synchronously.
pub(super) async fn respond_as_scan(
    app: &AppState,
    parts: &Parts,
    caller: &ApiKey,
    search: &Search,
    preference: Preference,
) -> Result<Option<Response>, ApiError> {
    let key = idempotency_key(parts.headers.get(IDEMPOTENCY_KEY))?;
    let (context, custody) = match (submit_context(app, caller).await, app.custody()) {
        (Ok(context), Ok(custody)) => (context, custody),
        // The first request may have been stored: a second call would be billed again.
        (Err(unavailable), _) | (_, Err(unavailable)) if key.is_some() => return Err(unavailable),
        _ => return Ok(None),
    };
    // A stored search counts as a submission.
    match app.check_rate_limit(&caller.key) {
        Err(too_fast) if key.is_some() => return Err(too_fast),
        Err(_) => return Ok(None),
        Ok(()) => {}
    }
    let permits = match app.concurrency.request(&caller.key, caller.is_write).await {
        Err(too_many) if key.is_some() => return Err(too_many),
        Err(_) => return Ok(None),
        Ok(permits) => permits,
    };
    let AcceptedSearch {
        tenant,
        scan: accepted,
    } = match respond_async::submit(context, &custody.pace, search.request(), key.as_ref()).await {
        Ok(accepted) => accepted,
        Err(why) if key.is_none() && !matches!(why, CommandError::CommitFailed(_)) => {
            tracing::info!(%why, "search not stored as a scan; running it synchronously");
            return Ok(None);
        }
        Err(why) => return Err(why.into()),
    };
    // A request that waits for its scan does not block the caller's other requests.
    drop(permits);
    let headers = (preference.applied(), replayed_header(accepted.replayed));
    let mut scan = accepted.response;
    if let Some(wait) = preference.wait {
        // The scan is stored: if anything fails from here on, the caller still gets its id.
        scan = custody
            .watch
            .wait(tenant, scan.id, wait)
            .await
            .unwrap_or(scan);
        if scan.finished_at.is_some()
            && let Ok(Some(outcome)) = respond_async::outcome(context.pool, tenant, scan.id).await
        {
            return Ok(Some(
                (headers, outcome_response(search, outcome)).into_response(),
            ));
        }
    }
    Ok(Some(
        (
            StatusCode::ACCEPTED,
            location(scan.id),
            headers.0,
            headers.1,
            Json(scan),
        )
            .into_response(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preference(values: &[&'static str]) -> Option<(bool, Option<u64>)> {
        let headers = values
            .iter()
            .map(|value| (PREFER, HeaderValue::from_static(value)))
            .collect();
        Preference::of(&headers)
            .map(|known| (known.respond_async, known.wait.map(|wait| wait.as_secs())))
    }

    #[test]
    fn known_preferences_are_parsed() {
        for (values, expected) in [
            (&["respond-async"][..], Some((true, None))),
            (&["Respond-Async, WAIT = 20"], Some((true, Some(20)))),
            (&["wait=20"], Some((false, Some(20)))),
            (
                &["wait=\"7\"; foo=\"a, wait=9\"", "respond-async;x"],
                Some((true, Some(7))),
            ),
            (
                &["return=\"a, respond-async\", wait=5"],
                Some((false, Some(5))),
            ),
            (&["return=\"a\\\", respond-async\""], None),
            (&["wait=1, wait=2"], Some((false, Some(1)))),
            (&["wait=soon, wait=2"], None),
            (&["wait=0"], Some((false, Some(0)))),
            (&["wait=61"], Some((false, Some(60)))),
            (&["wait=99999999999999999999999"], Some((false, Some(60)))),
            (&["wait=-1"], None),
            (&["wait"], None),
            (&["wait=\"\""], None),
            (&["respond-async=yes"], None),
            (&["return=minimal", "handling=lenient"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(preference(values), expected, "{values:?}");
        }
    }

    #[test]
    fn preference_applied_names_what_was_honoured() {
        let applied = |respond_async, wait: Option<u64>| {
            let headers = Preference {
                respond_async,
                wait: wait.map(Duration::from_secs),
            }
            .applied();
            headers[APPLIED].to_str().unwrap().to_owned()
        };
        assert_eq!(applied(true, Some(60)), "respond-async, wait=60");
        assert_eq!(
            (applied(true, None), applied(false, Some(0))),
            ("respond-async".into(), "wait=0".into())
        );
    }
}
