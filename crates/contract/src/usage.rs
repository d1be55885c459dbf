//! `GET /v1/usage` (scans.md, rule 71).

use super::endpoint::Api;
use super::field::FieldValue as _;
use super::plans::PlanName;
use super::primitives::{Cursor, Date, PageLimit};
use super::query_string::query_string;
use super::request_body::request_body;
use super::string_enum::string_enum;
use super::validation::{ValidationError, ValidationErrors};
use jiff::{Span, Timestamp};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest range, in days: a year and what is left of its last month.
pub const MAX_DAYS: i32 = 400;
/// The default range, in days.
pub const DEFAULT_DAYS: i32 = 30;

string_enum! {
    /// How billed requests are grouped.
    pub enum UsageGroup {
        /// By the UTC day on which their calls began.
        Day = "day",
        /// By endpoint.
        Endpoint = "endpoint",
        /// By scan; the cost of deleted scans is one row without a key.
        Scan = "scan",
        /// By the monitor that created the scans; the cost of other scans and of deleted monitors is
        /// one row without a key.
        Monitor = "monitor",
    }
}

impl UsageGroup {
    /// The heading of its column in tables that people read.
    pub fn title(self) -> &'static str {
        match self {
            Self::Day => "Day",
            Self::Endpoint => "Endpoint",
            Self::Scan => "Scan",
            Self::Monitor => "Monitor",
        }
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

/// What a caller's searches cost: those of scans and monitors, single searches and key checks, from the
/// moment at which they are charged. Flights and hotels are two plans, and are never added up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "since": "2026-11-01", "until": "2026-11-30", "group": "endpoint",
    "totals": {
        "flights": {
            "asked": 60, "billed": 33, "reused": 20, "not_needed": 7, "attempts": 31,
            "search_status": {"ok": 28, "empty": 1, "partial": 0, "degraded": 2, "none": 0},
            "money": {"plan": "pro", "usd_per_request": 0.004, "billed_usd": 0.132, "saved_usd": 0.108}
        },
        "hotels": {
            "asked": 0, "billed": 0, "reused": 0, "not_needed": 0, "attempts": 0,
            "search_status": {"ok": 0, "empty": 0, "partial": 0, "degraded": 0, "none": 0}, "money": null
        }
    },
    "data": [{
        "key": "flights/oneway", "api": "flights", "asked": 60, "billed": 33, "reused": 20, "not_needed": 7, "attempts": 31,
        "search_status": {"ok": 28, "empty": 1, "partial": 0, "degraded": 2, "none": 0}
    }],
    "next_cursor": null,
    "forecast": {
        "flights": {
            "api": "flights", "requests_left": 900, "requests_per_day": 50.0, "resets_at": "2026-12-01T00:00:00Z", "ends_on": "2026-11-28",
            "causes": [{"key": "mon_019381f2a7c070008000000000000001", "name": "TLV to London", "percent": 82}]
        },
        "hotels": null
    }
})))]
pub struct Usage {
    /// The first day, UTC.
    pub since: Date,
    /// The last day, UTC, inclusive.
    pub until: Date,
    /// How the rows are grouped.
    pub group: UsageGroup,
    /// The totals of the whole range, on every page.
    pub totals: UsageTotals,
    /// The rows: days and endpoints in order; of scans and monitors first those without an id, on the
    /// first page and beyond its `limit`, then the others, newest first.
    pub data: Vec<UsageRow>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
    /// When the plans end at the present rate, whatever the range.
    pub forecast: PlanForecasts,
}

/// The cost of one day, endpoint, scan or monitor in one API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageRow {
    /// The day, the endpoint, or the id of the scan or monitor. By scan and monitor `single` is that of
    /// all single searches and key checks; null is that of all deleted scans, and by monitor of the
    /// scans without a monitor.
    pub key: Option<String>,
    /// The API, which has a plan of its own.
    pub api: Api,
    /// What was asked and what it cost.
    #[serde(flatten)]
    pub counts: UsageCounts,
}

/// The cost of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageTotals {
    /// Of flights.
    pub flights: UsageTotal,
    /// Of hotels.
    pub hotels: UsageTotal,
}

/// The cost of a range in one API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageTotal {
    /// What was asked and what it cost.
    #[serde(flatten)]
    pub counts: UsageCounts,
    /// The same in money; null while the plan is not known.
    pub money: Option<UsageMoney>,
}

impl UsageTotals {
    /// Those of an API.
    pub const fn of(&self, api: Api) -> &UsageTotal {
        match api {
            Api::Flights => &self.flights,
            Api::Hotels => &self.hotels,
        }
    }
}

/// What was asked and what it cost: `asked` = `billed` + `reused` + `not_needed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageCounts {
    /// Requests that the searches would have cost without reuse and strategies.
    pub asked: u64,
    /// Billed requests, counted before their first byte is sent: calls in flight are included.
    pub billed: u64,
    /// Searches that took an answer instead of a request.
    pub reused: u64,
    /// Searches that a strategy found needless.
    pub not_needed: u64,
    /// Searches sent upstream; one may be billed twice, or not at all without a connection.
    pub attempts: u64,
    /// The attempts by search status.
    pub search_status: AttemptCounts,
}

/// Requests at the price of an included request of the caller's plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageMoney {
    /// The plan: the one that the caller named, or the one with the reported monthly limit.
    pub plan: PlanName,
    /// Its monthly price divided by its requests, in US dollars.
    #[serde(serialize_with = "crate::money::price")]
    pub usd_per_request: Decimal,
    /// The billed requests at that price.
    #[serde(serialize_with = "crate::money::price")]
    pub billed_usd: Decimal,
    /// The requests that were reused or not needed, at that price.
    #[serde(serialize_with = "crate::money::price")]
    pub saved_usd: Decimal,
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
    /// No status: the marketplace refused the request, it checked a key, or there is no response yet.
    pub none: u64,
}

/// When the plans end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanForecasts {
    /// Of flights; null while the plan or its use is not known.
    pub flights: Option<PlanForecast>,
    /// Of hotels; null while the plan or its use is not known.
    pub hotels: Option<PlanForecast>,
}

impl PlanForecasts {
    /// That of an API.
    pub const fn of(&self, api: Api) -> Option<&PlanForecast> {
        match api {
            Api::Flights => self.flights.as_ref(),
            Api::Hotels => self.hotels.as_ref(),
        }
    }
}

/// When a plan ends at the present rate: the use of the last four weeks, by weekday.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanForecast {
    /// Whose plan it is.
    pub api: Api,
    /// The requests of its period; null if that is not reported.
    #[serde(default)]
    #[schema(required = true)]
    pub requests_limit: Option<u64>,
    /// What is left of it, as the marketplace last reported.
    pub requests_left: u64,
    /// The expected requests of a day, until it ends or resets.
    pub requests_per_day: f64,
    /// The requests that are expected from now on until it ends or resets; null in old alerts.
    #[serde(default)]
    #[schema(required = true)]
    pub requests_expected: Option<u64>,
    /// When its next period begins; null if that is not reported: then the forecast is of 31 days.
    pub resets_at: Option<Timestamp>,
    /// The UTC day on which nothing is left; null if the plan lasts.
    pub ends_on: Option<Date>,
    /// What uses most of it: the fewest sources that together use 80 %, at most five.
    pub causes: Vec<ForecastCause>,
}

/// A source of a plan's use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForecastCause {
    /// The id of a monitor; `single` for single searches, `scans` for scans without a monitor.
    pub key: String,
    /// The monitor's name.
    pub name: Option<String>,
    /// Its part of the expected use.
    pub percent: u8,
}
