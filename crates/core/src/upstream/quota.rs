//! Parses the marketplace's quota headers (gateway.md, rule 1). Pure.
//!
//! `queue` derives a lane's pace from them.

use reqwest::header::HeaderMap;

use super::classify::{MAX_HEADERS, is_within_limit};
use crate::search::{PlanQuota, RateWindow};

/// The quota headers as forwarded to the caller, in order.
///
/// Allow-list: `x-plan-*` unchanged; `x-ratelimit-REST` as `x-plan-REST`, unless that header exists
/// too.
pub(super) fn forwarded(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut forwarded = Vec::new();
    for (name, value) in headers {
        let Some(text) = value
            .to_str()
            .ok()
            .filter(|_| is_within_limit(name.as_str(), value))
        else {
            continue;
        };
        let outgoing = match name.as_str().strip_prefix("x-ratelimit-") {
            Some(rest) => format!("x-plan-{rest}"),
            None => name.as_str().to_owned(),
        };
        let shadowed = outgoing != name.as_str() && headers.contains_key(&outgoing);
        if outgoing.len() > PREFIX.len() && outgoing.starts_with(PREFIX) && !shadowed {
            forwarded.push((outgoing, text.to_owned()));
        }
    }
    forwarded.truncate(MAX_HEADERS);
    forwarded
}

const PREFIX: &str = "x-plan-";

/// The numbers in forwarded quota headers; `None` for anything else.
pub(super) fn read(forwarded: &[(String, String)]) -> PlanQuota {
    let number = |name: &str| {
        let (_, value) = forwarded.iter().find(|(forwarded, _)| forwarded == name)?;
        value
            .trim()
            .parse::<i64>()
            .ok()
            .map(|number| u64::try_from(number).unwrap_or(0))
    };
    PlanQuota {
        limit: number("x-plan-requests-limit"),
        remaining: number("x-plan-requests-remaining"),
        reset_seconds: number("x-plan-requests-reset"),
        window: number("x-plan-limit").map(|limit| RateWindow {
            limit,
            remaining: number("x-plan-remaining"),
            reset_seconds: number("x-plan-reset"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
        rows.iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_bytes(value.as_bytes()).unwrap(),
                )
            })
            .collect()
    }

    fn forward(rows: &[(&'static str, &str)]) -> Vec<(String, String)> {
        forwarded(&headers(rows))
    }

    fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
        rows.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn quota_headers_pass_by_allow_list() {
        type Headers<'a> = &'a [(&'static str, &'a str)];
        let rows: &[(Headers, Headers)] = &[
            (
                &[("x-plan-requests-limit", "10")],
                &[("x-plan-requests-limit", "10")],
            ),
            (
                &[("x-plan-anything", "as it is")],
                &[("x-plan-anything", "as it is")],
            ),
            (
                &[("x-ratelimit-requests-remaining", "9")],
                &[("x-plan-requests-remaining", "9")],
            ),
            (&[("x-ratelimit-limit", "150")], &[("x-plan-limit", "150")]),
            (
                &[("x-ratelimit-limit", "1"), ("x-plan-limit", "2")],
                &[("x-plan-limit", "2")],
            ),
            (
                &[
                    ("x-plan-", "1"),
                    ("x-ratelimit-", "1"),
                    ("ratelimit-limit", "1"),
                    ("x-rate-limit", "1"),
                ],
                &[],
            ),
            (
                &[
                    ("set-cookie", "a=b"),
                    ("server", "s"),
                    ("x-search-status", "ok"),
                    ("x-planet", "earth"),
                ],
                &[],
            ),
            (&[("x-plan-limit", "\u{fc}")], &[]),
        ];
        for (received, forwarded_headers) in rows {
            assert_eq!(forward(received), pairs(forwarded_headers), "{received:?}");
        }
    }

    #[test]
    fn plan_and_rate_window_are_parsed() {
        let all = forward(&[
            ("x-ratelimit-requests-limit", "2500"),
            ("x-ratelimit-requests-remaining", "2400"),
            ("x-ratelimit-requests-reset", "86400"),
            ("x-ratelimit-limit", "150"),
            ("x-ratelimit-remaining", " 149 "),
            ("x-ratelimit-reset", "60"),
        ]);
        let window = RateWindow {
            limit: 150,
            remaining: Some(149),
            reset_seconds: Some(60),
        };
        let expected = PlanQuota {
            limit: Some(2500),
            remaining: Some(2400),
            reset_seconds: Some(86_400),
            window: Some(window),
        };
        assert_eq!(read(&all), expected);
    }

    #[test]
    fn values_that_are_no_numbers_are_unknown() {
        assert_eq!(read(&[]), PlanQuota::default());
        assert_eq!(
            read(&pairs(&[
                ("x-plan-requests-remaining", "many"),
                ("x-plan-remaining", "1")
            ])),
            PlanQuota::default()
        );
        let overdrawn = read(&pairs(&[("x-plan-requests-remaining", "-3")]));
        assert!(
            overdrawn.is_used_up(),
            "beyond the quota there is nothing left: {overdrawn:?}"
        );
    }
}
