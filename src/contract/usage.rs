//! `GET /v1/usage` on the wire (jobs-api, "Account").

use super::declare::request;
use super::fault::{Fault, Faults};
use super::field::FieldValue as _;
use super::primitives::{Cursor, Date, PageLimit};
use super::query::query;
use super::words::words;
use jiff::Span;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest range, in days: a year and what is left of its last month.
pub const MAX_DAYS: i32 = 400;
/// The range of a query that names none, in days.
pub const USUAL_DAYS: i32 = 30;

words! {
    /// By what billed requests are added up.
    pub enum UsageGroup {
        /// By the UTC day that they were put on record on.
        Day = "day",
        /// By endpoint.
        Endpoint = "endpoint",
        /// By scan; what deleted scans had cost is one row without a key.
        Scan = "scan",
        /// By the monitor that made the scans; what no monitor ordered and what deleted scans had cost is one row without a key.
        Monitor = "monitor",
    }
}

request! {
    /// The query of `GET /v1/usage`.
    pub struct UsageQuery for "the query of the usage" {
        required {}
        optional {
            /// The first day, UTC; the 30th day up to `until` unless given.
            since: Date;
            /// The last day, UTC, itself included: today unless given. At most 400 days in all.
            until: Date;
            /// By what to add up.
            group: UsageGroup = UsageGroup::Day => group_or_default;
            /// The most rows of a page; for `group=scan` and `group=monitor` alone, the others come whole.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the page before.
            cursor: Cursor;
        }
        order { until not_before since; }
        example { "since": "2026-11-01", "until": "2026-11-30", "group": "endpoint" }
    }
}

query!(UsageQuery => spanning);

impl UsageQuery {
    fn spanning(&self) -> Faults {
        let mut faults = Faults::default();
        if matches!(
            self.group_or_default(),
            UsageGroup::Scan | UsageGroup::Monitor
        ) {
            return faults;
        }
        let pages = [
            ("limit", self.limit.map(|limit| limit.to_value())),
            ("cursor", self.cursor.as_ref().map(|c| c.to_value())),
        ];
        for (name, given) in pages {
            if let Some(given) = given {
                faults.push(Fault::new(
                    name,
                    &given,
                    "no value unless `group` is `scan` or `monitor`: the other groups come whole",
                ));
            }
        }
        faults
    }

    /// The first and the last day that are asked for, where it is `today`.
    ///
    /// # Errors
    /// A fault of a range that is too long, or that ends before it begins because one end was left out.
    pub fn days(&self, today: Date) -> Result<(Date, Date), Faults> {
        let until = self.until.unwrap_or(today);
        let since = self
            .since
            .unwrap_or_else(|| until.saturating_sub(Span::new().days(USUAL_DAYS - 1)));
        let last = since.saturating_add(Span::new().days(MAX_DAYS - 1));
        if since > until {
            return Err(Fault::new(
                "since",
                &since.to_value(),
                format!("a date up to {until}, where the range ends"),
            )
            .into());
        }
        if until > last {
            let fault = match self.until {
                Some(until) => Fault::new(
                    "until",
                    &until.to_value(),
                    format!("a date up to {last}: a range has at most {MAX_DAYS} days"),
                ),
                None => Fault::missing(
                    "until",
                    format!(
                        "a date up to {last}: a range has at most {MAX_DAYS} days, and this one ends today"
                    ),
                ),
            };
            return Err(fault.into());
        }
        Ok((since, until))
    }
}

/// What a caller's scans have cost, from the attempts on record. What synchronous searches cost is not in it: nothing of them is kept,
/// each says so itself in `X-Upstream-Requests`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "since": "2026-11-01", "until": "2026-11-30", "group": "endpoint",
    "totals": {"requests": 33, "attempts": 31, "search_status": {"ok": 28, "empty": 1, "partial": 0, "degraded": 2, "none": 0}},
    "data": [{
        "key": "flights/oneway", "requests": 33, "attempts": 31,
        "search_status": {"ok": 28, "empty": 1, "partial": 0, "degraded": 2, "none": 0}
    }],
    "next_cursor": null
})))]
pub struct Usage {
    /// The first day, UTC.
    #[schema(value_type = String, format = Date)]
    pub since: Date,
    /// The last day, UTC, itself included.
    #[schema(value_type = String, format = Date)]
    pub until: Date,
    /// By what the rows are added up.
    pub group: UsageGroup,
    /// The whole range, whatever page this is.
    pub totals: UsageTotals,
    /// The rows that have attempts: days and endpoints in their order, scans and monitors newest first.
    pub data: Vec<UsageRow>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}

/// What one day, endpoint, scan or monitor has cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageRow {
    /// The day, the endpoint or the id of the scan or monitor; null for the scans that were deleted, together, and by monitor for those
    /// too that no monitor made.
    pub key: Option<String>,
    /// Billed requests. Counted before the first byte of each is sent, so calls in flight are in.
    pub requests: u64,
    /// Searches that went upstream; one may be billed twice, or not at all where there was no connection.
    pub attempts: u64,
    /// The attempts by what they came to.
    pub search_status: AttemptCounts,
}

/// What a range has cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageTotals {
    /// Billed requests.
    pub requests: u64,
    /// Searches that went upstream.
    pub attempts: u64,
    /// The attempts by what they came to.
    pub search_status: AttemptCounts,
}

/// Attempts by what their search said of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptCounts {
    /// Complete.
    pub ok: u64,
    /// Complete, and nothing exists.
    pub empty: u64,
    /// Part of it failed.
    pub partial: u64,
    /// It did not complete.
    pub degraded: u64,
    /// Nothing: the question was refused, or its answer is not in yet.
    pub none: u64,
}
