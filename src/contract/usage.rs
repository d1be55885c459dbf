//! `GET /v1/usage` (scans.md, rule 71).

use super::field::FieldValue as _;
use super::primitives::{Cursor, Date, PageLimit};
use super::query_string::query_string;
use super::request_body::request_body;
use super::string_enum::string_enum;
use super::validation::{ValidationError, ValidationErrors};
use jiff::Span;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest range, in days: a year and what is left of its last month.
pub const MAX_DAYS: i32 = 400;
/// The default range, in days.
pub const DEFAULT_DAYS: i32 = 30;

string_enum! {
    /// How billed requests are grouped.
    pub enum UsageGroup {
        /// By the UTC day of their record.
        Day = "day",
        /// By endpoint.
        Endpoint = "endpoint",
        /// By scan; the cost of deleted scans is one row without a key.
        Scan = "scan",
        /// By the monitor that created the scans; the cost of other and of deleted scans is one row
        /// without a key.
        Monitor = "monitor",
    }
}

request_body! {
    /// The query of `GET /v1/usage`.
    pub struct UsageQuery for "the query of the usage" {
        required {}
        optional {
            /// The first day, UTC; the 30th day up to `until` unless given.
            since: Date;
            /// The last day, UTC, inclusive: today unless given. At most 400 days in all.
            until: Date;
            /// How to group.
            group: UsageGroup = UsageGroup::Day => group_or_default;
            /// The maximum rows of a page; only for `group=scan` and `group=monitor`: the others
            /// are not paged.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the previous page.
            cursor: Cursor;
        }
        order { until not_before since; }
        example { "since": "2026-11-01", "until": "2026-11-30", "group": "endpoint" }
    }
}

query_string!(UsageQuery => cross_field_errors);

impl UsageQuery {
    fn cross_field_errors(&self) -> ValidationErrors {
        let mut errors = ValidationErrors::default();
        if matches!(
            self.group_or_default(),
            UsageGroup::Scan | UsageGroup::Monitor
        ) {
            return errors;
        }
        let pages = [
            ("limit", self.limit.map(|limit| limit.to_value())),
            ("cursor", self.cursor.as_ref().map(|c| c.to_value())),
        ];
        for (name, given) in pages {
            if let Some(given) = given {
                errors.push(ValidationError::new(
                    name,
                    &given,
                    "no value unless `group` is `scan` or `monitor`: the other groups are not paged",
                ));
            }
        }
        errors
    }

    /// The first and the last requested day, on the day `today`.
    ///
    /// # Errors
    /// The range is too long, or it ends before it begins because one end is absent.
    pub fn date_range(&self, today: Date) -> Result<(Date, Date), ValidationErrors> {
        let until = self.until.unwrap_or(today);
        let since = self
            .since
            .unwrap_or_else(|| until.saturating_sub(Span::new().days(DEFAULT_DAYS - 1)));
        let last = since.saturating_add(Span::new().days(MAX_DAYS - 1));
        if since > until {
            return Err(ValidationError::new(
                "since",
                &since.to_value(),
                format!("a date up to {until}, where the range ends"),
            )
            .into());
        }
        if until > last {
            let error = match self.until {
                Some(until) => ValidationError::new(
                    "until",
                    &until.to_value(),
                    format!("a date up to {last}: a range has at most {MAX_DAYS} days"),
                ),
                None => ValidationError::missing(
                    "until",
                    format!(
                        "a date up to {last}: a range has at most {MAX_DAYS} days, and this one ends today"
                    ),
                ),
            };
            return Err(error.into());
        }
        Ok((since, until))
    }
}

/// The cost of a caller's scans, from the recorded attempts. Synchronous searches are included only
/// where they are stored (`Cache-Control: max-age`); each reports its cost in `X-Upstream-Requests`.
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
    /// The last day, UTC, inclusive.
    #[schema(value_type = String, format = Date)]
    pub until: Date,
    /// How the rows are grouped.
    pub group: UsageGroup,
    /// The totals of the whole range, on every page.
    pub totals: UsageTotals,
    /// The rows with attempts or avoided searches: days and endpoints in order, scans and monitors
    /// newest first.
    pub data: Vec<UsageRow>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}

/// The cost of one day, endpoint, scan or monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageRow {
    /// The day, the endpoint or the id of the scan or monitor; null for all deleted scans, and by
    /// monitor also for scans without a monitor.
    pub key: Option<String>,
    /// Billed requests, counted before their first byte is sent: calls in flight are included.
    pub requests: u64,
    /// Searches sent upstream; one may be billed twice, or not at all without a connection.
    pub attempts: u64,
    /// The attempts by search status.
    pub search_status: AttemptCounts,
    /// Searches that took an answer instead of a request; absent if none did.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(minimum = 1, required = false)]
    pub avoided: u64,
}

/// The cost of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageTotals {
    /// Billed requests.
    pub requests: u64,
    /// Searches sent upstream.
    pub attempts: u64,
    /// The attempts by search status.
    pub search_status: AttemptCounts,
    /// Searches that took an answer instead of a request; absent if none did.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(minimum = 1, required = false)]
    pub avoided: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Attempts by search status.
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
    /// No status: the marketplace refused the request, or has not responded yet.
    pub none: u64,
}
