//! `Cache-Control` of a synchronous search, as RFC 9111 defines it for requests (gateway.md, rules
//! 53 to 58).
//!
//! ```text
//!  max-age=N ──► a stored answer that young: Age, no request
//!            ──► an equal search of this process in flight: its answer, no request
//!            ──► a search as without the header, which is stored after its response
//! ```
//!
//! Without `max-age` or `only-if-cached` the header changes nothing. Where the database cannot be
//! asked, the search is made: its answer is not reused later, and nothing else differs.

use std::time::Duration;

use axum::http::header::{AGE, CACHE_CONTROL};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};

use super::outcome_response::{MapFinding, outcome_response};
use super::prefer::{self, split};
use farescan_core::app::AppState;
use farescan_core::app::auth::ApiKey;
use farescan_core::app::error::ApiError;
use farescan_core::app::search_call::SearchCall;
use farescan_core::app::shared_calls::Joined;
use farescan_core::app::stored_answer;
use farescan_core::charges::CallUsage;
use farescan_core::contract::scans::MaxAgeSeconds;
use farescan_core::contract::{Endpoint, ErrorType, ValidationError};
use farescan_core::metrics;
use farescan_core::search::{Outcome, Search};

/// The known directives of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CacheControl {
    max_age: Option<u32>,
    min_fresh: Option<u32>,
    no_cache: bool,
    no_store: bool,
    only_if_cached: bool,
}

impl CacheControl {
    /// The directives that concern this service. Unknown directives are ignored (RFC 9111, 5.2.3);
    /// the first of a repeated one counts.
    ///
    /// # Errors
    /// When `max-age` or `min-fresh` is no number of seconds: the caller would pay for an answer that
    /// it wanted to reuse.
    fn of(headers: &HeaderMap) -> Result<Self, ValidationError> {
        let mut known = Self::default();
        for value in headers
            .get_all(CACHE_CONTROL)
            .iter()
            .filter_map(|value| value.to_str().ok())
        {
            for directive in split(value, ',') {
                let (name, argument) = directive
                    .split_once('=')
                    .map_or((directive, None), |(name, argument)| (name, Some(argument)));
                match name.trim().to_ascii_lowercase().as_str() {
                    "max-age" if known.max_age.is_none() => {
                        known.max_age = Some(seconds(directive, argument)?);
                    }
                    "min-fresh" if known.min_fresh.is_none() => {
                        known.min_fresh = Some(seconds(directive, argument)?);
                    }
                    "no-cache" => known.no_cache = true,
                    "no-store" => known.no_store = true,
                    "only-if-cached" => known.only_if_cached = true,
                    _ => {}
                }
            }
        }
        Ok(known)
    }

    /// Whether a stored answer may be taken, or the search is to be stored.
    const fn concerns_stored(self) -> bool {
        self.max_age.is_some() || self.only_if_cached
    }

    /// The oldest answer that may be reused; `None`: none may. Without `max-age`, `only-if-cached`
    /// takes an answer of any age.
    fn oldest(self) -> Option<MaxAgeSeconds> {
        if self.no_cache || self.no_store {
            return None;
        }
        let age = self.max_age.unwrap_or(u32::MAX);
        let age = age.saturating_sub(self.min_fresh.unwrap_or(0));
        MaxAgeSeconds::new(age.min(MaxAgeSeconds::MAX)).and_then(MaxAgeSeconds::nonzero)
    }
}

/// A number of seconds, which may be quoted. A larger one than fits counts as the largest.
fn seconds(directive: &str, argument: Option<&str>) -> Result<u32, ValidationError> {
    let digits = argument.unwrap_or_default().trim().trim_matches('"');
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ValidationError::new(
            "Cache-Control",
            &directive.into(),
            "a number of seconds after `=`, for example max-age=3600",
        ));
    }
    Ok(digits.parse().unwrap_or(u32::MAX))
}

/// The response of a search whose caller says how old its answer may be; `None`: it does not say.
///
/// # Errors
/// Those of a search; `not_cached` where only a stored answer is wanted and there is none.
pub(super) async fn respond(
    app: &AppState,
    parts: &Parts,
    caller: &ApiKey,
    search: &Search,
    map_finding: MapFinding,
) -> Result<Option<Response>, ApiError> {
    if !parts.headers.contains_key(CACHE_CONTROL)
        || !Endpoint::SEARCHES.contains(&search.endpoint())
    {
        return Ok(None);
    }
    let control = CacheControl::of(&parts.headers)?;
    if !control.concerns_stored() {
        return Ok(None);
    }
    // Boxed: a search without the header would keep the memory of this step while it waits.
    Box::pin(find_or_search(
        app,
        parts,
        caller,
        search,
        map_finding,
        control,
    ))
    .await
    .map(Some)
}

/// Whether the request wants its search not to be stored.
pub(super) fn forbids_storing(parts: &Parts) -> bool {
    parts.headers.contains_key(CACHE_CONTROL)
        && CacheControl::of(&parts.headers).is_ok_and(|control| control.no_store)
}

/// A stored answer, a scan if the request prefers one, the answer of an equal search in flight, or
/// a search.
async fn find_or_search(
    app: &AppState,
    parts: &Parts,
    caller: &ApiKey,
    search: &Search,
    map_finding: MapFinding,
    control: CacheControl,
) -> Result<Response, ApiError> {
    let oldest = control.oldest();
    if let Some(oldest) = oldest {
        match stored_answer::find(app, &caller.key, search, oldest).await {
            Ok(Some(stored)) => {
                metrics::search_reused("stored");
                app.charge(&caller.key, CallUsage::from_reuse(search, app.now().ok()));
                let age = stored.age.unsigned_abs();
                return Ok(reused_response(search, stored.outcome, age, map_finding));
            }
            Err(error) if control.only_if_cached => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
    if control.only_if_cached {
        return Err(ApiError::new(
            ErrorType::NotCached,
            "no stored answer to this search is as young as `Cache-Control` asks for; send it without `only-if-cached` to search",
        ));
    }
    if let Some(response) = prefer::respond_as_scan(app, parts, caller, search, map_finding).await?
    {
        return Ok(response);
    }
    let call = SearchCall::new(app, parts, caller, search);
    let outcome = match oldest {
        Some(oldest) => match app.shared_calls.join_or_start(call, oldest).await? {
            Joined::Own(outcome) => outcome,
            Joined::Other(outcome, age) => {
                metrics::search_reused("joined");
                app.charge(&caller.key, CallUsage::from_reuse(search, app.now().ok()));
                return Ok(reused_response(search, outcome, age, map_finding));
            }
        },
        None if control.no_store => call.admit().await?.run(false).await.0,
        None => app.shared_calls.start_alone(call).await?,
    };
    Ok(outcome_response(search, outcome, map_finding))
}

/// The response of an answer that was not searched for this request: its plan headers may no longer
/// hold, and it cost nothing.
fn reused_response(
    search: &Search,
    mut outcome: Outcome,
    age: Duration,
    map_finding: MapFinding,
) -> Response {
    outcome.plan_headers.clear();
    outcome.billed_requests = 0;
    let age = [(AGE, HeaderValue::from(age.as_secs()))];
    (age, outcome_response(search, outcome, map_finding)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(values: &[&'static str]) -> Result<Option<CacheControl>, String> {
        let headers = values
            .iter()
            .map(|value| (CACHE_CONTROL, HeaderValue::from_static(value)))
            .collect();
        let control = CacheControl::of(&headers).map_err(|error| error.found.unwrap())?;
        Ok(Some(control).filter(|control| control.concerns_stored()))
    }

    fn oldest(values: &[&'static str]) -> Option<u32> {
        control(values)
            .unwrap()
            .and_then(CacheControl::oldest)
            .map(MaxAgeSeconds::get)
    }

    #[test]
    fn directives_say_how_old_an_answer_may_be() {
        for (values, expected) in [
            (&["max-age=60"][..], Some(60)),
            (&["Max-Age = 60"], Some(60)),
            (&["max-age=\"60\""], Some(60)),
            (&["max-age=60, max-age=70"], Some(60)),
            (&["public, max-age=60, stale-if-error=9"], Some(60)),
            (&["max-age=60", "min-fresh=20"], Some(40)),
            (&["max-age=20, min-fresh=20"], None),
            (&["max-age=0"], None),
            (&["max-age=60, no-cache"], None),
            (&["max-age=60, no-store"], None),
            (&["max-age=9999999"], Some(2_678_400)),
            (&["max-age=99999999999999999999"], Some(2_678_400)),
            (&["only-if-cached"], Some(2_678_400)),
            (&["only-if-cached, max-age=5"], Some(5)),
        ] {
            assert_eq!(oldest(values), expected, "{values:?}");
        }
    }

    #[test]
    fn other_directives_change_nothing() {
        for values in [
            &["no-cache"][..],
            &["no-store"],
            &["min-fresh=5"],
            &["x"],
            &[""],
            &[],
        ] {
            assert_eq!(control(values), Ok(None), "{values:?}");
        }
    }

    #[test]
    fn an_age_that_is_no_number_is_a_fault() {
        for (values, found) in [
            ("max-age=6h", "\"max-age=6h\""),
            ("max-age", "\"max-age\""),
            ("max-age=-1", "\"max-age=-1\""),
            ("max-age=60, min-fresh=", "\"min-fresh=\""),
        ] {
            assert_eq!(control(&[values]), Err(found.to_owned()));
        }
    }
}
