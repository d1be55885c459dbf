//! What the marketplace's headers say of the caller's plan (contract 1). Pure.
//!
//! Here: which headers come back under which name, and their numbers. Not here: what a scan's pace makes of them (`queue`).

use reqwest::header::HeaderMap;

use super::wire::{MAX_HEADERS, fits};
use crate::search::{PlanQuota, RateWindow};

/// The quota headers under the names they go out with, in the order they came.
///
/// By allow-list: `x-plan-*` as it is; `x-ratelimit-REST` becomes `x-plan-REST`, unless a header of that name came itself.
pub(super) fn forwarded(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut forwarded = Vec::new();
    for (name, value) in headers {
        let Some(text) = value.to_str().ok().filter(|_| fits(name.as_str(), value)) else {
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

/// The numbers in forwarded quota headers; what is not a number is not known.
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
    fn contract_1_which_headers_come_back() {
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
        for (came, goes) in rows {
            assert_eq!(forward(came), pairs(goes), "{came:?}");
        }
    }

    #[test]
    fn the_plan_and_its_window_are_read() {
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
    fn what_is_not_a_number_is_not_known() {
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
