//! `Cache-Control` of a synchronous search, as RFC 9111 defines it for requests (gateway.md, rules
//! 53 to 58).
//!
//! ```text
//!  max-age=N ──► a stored answer that young: Age, no request
//!            ──► an equal search of this process in flight: its answer, no request
//!            ──► a search as without the header, which is stored after its response
//! ```
//!
//! Without `max-age` or `only-if-cached` the header changes nothing, except that `no-store` keeps the
//! search out of what the account's setting stores. Where the database cannot be asked, the search is
//! made: its answer is not reused later, and nothing else differs.

use axum::http::HeaderMap;
use axum::http::header::CACHE_CONTROL;

use super::directives::{directives, name_and_argument, seconds};
use farescan_core::contract::ValidationError;
use farescan_core::contract::scans::MaxAgeSeconds;

/// The known directives of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CacheControl {
    max_age: Option<u32>,
    min_fresh: Option<u32>,
    no_cache: bool,
    pub(super) no_store: bool,
    pub(super) only_if_cached: bool,
}

impl CacheControl {
    /// The directives that concern this service. Unknown directives are ignored (RFC 9111, 5.2.3);
    /// the first of a repeated one counts.
    ///
    /// # Errors
    /// When `max-age` or `min-fresh` is no number of seconds: the caller would pay for an answer that
    /// it wanted to reuse.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, ValidationError> {
        let mut known = Self::default();
        for directive in directives(headers, &CACHE_CONTROL) {
            let (name, argument) = name_and_argument(directive);
            match name.as_str() {
                "max-age" if known.max_age.is_none() => {
                    known.max_age = Some(age(directive, argument)?);
                }
                "min-fresh" if known.min_fresh.is_none() => {
                    known.min_fresh = Some(age(directive, argument)?);
                }
                "no-cache" => known.no_cache = true,
                "no-store" => known.no_store = true,
                "only-if-cached" => known.only_if_cached = true,
                _ => {}
            }
        }
        Ok(known)
    }

    /// Whether the search is stored after its response (gateway.md, rule 57).
    pub(super) const fn stores(self) -> bool {
        self.max_age.is_some() && !self.no_store
    }

    /// The oldest answer that may be reused; `None`: none may. Without `max-age`, `only-if-cached`
    /// takes an answer of any age.
    pub(super) fn oldest(self) -> Option<MaxAgeSeconds> {
        let age = self.max_age.or(self.only_if_cached.then_some(u32::MAX))?;
        if self.no_cache || self.no_store {
            return None;
        }
        let age = age.saturating_sub(self.min_fresh.unwrap_or(0));
        MaxAgeSeconds::new(age.min(MaxAgeSeconds::MAX)).and_then(MaxAgeSeconds::nonzero)
    }
}

/// A number of seconds. A larger one than fits counts as the largest.
fn age(directive: &str, argument: Option<&str>) -> Result<u32, ValidationError> {
    let Some(seconds) = argument.and_then(seconds) else {
        return Err(ValidationError::new(
            "Cache-Control",
            &directive.into(),
            "a number of seconds after `=`, for example max-age=3600",
        ));
    };
    Ok(u32::try_from(seconds).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn control(values: &[&'static str]) -> Result<CacheControl, String> {
        let headers = values
            .iter()
            .map(|value| (CACHE_CONTROL, HeaderValue::from_static(value)))
            .collect();
        CacheControl::of(&headers).map_err(|error| error.found.unwrap())
    }

    fn oldest(values: &[&'static str]) -> Option<u32> {
        control(values).unwrap().oldest().map(MaxAgeSeconds::get)
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
            let control = control(values).unwrap();
            assert_eq!(
                (control.oldest(), control.stores()),
                (None, false),
                "{values:?}"
            );
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
