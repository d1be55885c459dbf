//! Prices over time (history.md, rules 18 to 21): the observations of a product, aggregated by day
//! or week.

use super::endpoint::Endpoint;
use super::field::FieldValue as _;
use super::history::ProductFields;
use super::history_query::history_query;
use super::history_verdict::HistoryVerdict;
use super::primitives::{
    Adults, Airport, Children, CountryCode, Currency, Date, FreeText, HotelBookingId, ListFormat,
    TimeZoneName,
};
use super::scans::SearchFields;
use super::string_enum::string_enum;
use super::time_range::reversed_range_error;
use super::validation::{ValidationError, ValidationErrors};
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest range of time, in days: a year and what is left of its last month.
pub const MAX_DAYS: i64 = 400;
/// The default range, in days.
pub const DEFAULT_DAYS: i64 = 365;

string_enum! {
    /// How long a bucket is.
    pub enum Bucket {
        /// From midnight to midnight.
        Day = "day",
        /// From Monday to Sunday.
        Week = "week",
    }
}

history_query! {
    /// The query of `GET /v1/history/flights/series`.
    pub struct FlightSeriesQuery for "the query of the fares over time" {
        required {
            ..route;
        }
        optional {
            ..departures;
            ..fares;
            ..buckets;
            ..verdict;
            ..format;
        }
        example { "from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14", "bucket": "day" }
    }
}

history_query! {
    /// The query of `GET /v1/history/hotels/series`: exactly one of `hotel_name`, `destination`,
    /// `hotel_booking_id`.
    pub struct HotelSeriesQuery for "the query of the rates over time" {
        required {}
        optional {
            ..hotel;
            ..checkins;
            ..checkout;
            ..rates;
            ..buckets;
            ..verdict;
            ..format;
        }
        example { "hotel_name": "Grand Hotel", "checkin_date": "2027-01-14", "proxy_country": "de", "bucket": "week" }
    }
}

/// The requested time range, at the time `now`.
///
/// # Errors
/// The range is too long, or ends before it begins.
pub fn time_range(
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    now: Timestamp,
) -> Result<(Timestamp, Timestamp), ValidationErrors> {
    let days = |days: i64| SignedDuration::from_hours(24 * days);
    let ends = until.unwrap_or(now);
    let begins = since.unwrap_or_else(|| {
        ends.checked_sub(days(DEFAULT_DAYS))
            .unwrap_or(Timestamp::MIN)
    });
    if begins >= ends {
        return Err(reversed_range_error(begins, ends));
    }
    let last = begins.checked_add(days(MAX_DAYS)).unwrap_or(Timestamp::MAX);
    if ends > last {
        let expected = format!("a time up to {last}: a range has at most {MAX_DAYS} days");
        return Err(match until {
            Some(until) => ValidationError::new("until", &until.to_value(), expected).into(),
            None => ValidationError::missing("until", format!("{expected}, and this one ends now"))
                .into(),
        });
    }
    Ok((begins, ends))
}

/// The fares of one product in one bucket of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "bucket": "2026-12-01", "endpoint": "flights/oneway", "from_airport": "TLV", "to_airport": "LHR",
    "product": {"passengers": [1]}, "currency": "USD", "observations": 24, "prices": 21, "minimum": 164, "median": 181.5, "maximum": 240,
    "implausible": 0, "lowest_implausible": null,
    "price_insights_low": 180, "price_insights_high": 320, "empty": 1, "degraded": 2, "degraded_share": 0.0833
})))]
pub struct FlightBucket {
    /// The first day of the bucket, in the time zone of the query.
    pub bucket: Date,
    /// One way or round trip.
    pub endpoint: Endpoint,
    /// Origin IATA code.
    pub from_airport: String,
    /// Destination IATA code.
    pub to_airport: String,
    /// The other fields of the product: passengers, cabin, filters. Different products are never
    /// mixed.
    #[schema(value_type = SearchFields)]
    pub product: ProductFields,
    /// ISO currency code. Different currencies are never mixed.
    pub currency: String,
    /// Number of searches.
    pub observations: u64,
    /// Number of searches that found a price, without the implausible ones.
    pub prices: u64,
    /// The lowest plausible price, in major units; null if there was none.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub minimum: Option<Decimal>,
    /// The median of the plausible prices; of an even number the mean of the two in the middle.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub median: Option<Decimal>,
    /// The highest plausible price.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub maximum: Option<Decimal>,
    /// Number of prices that are left out, because they are far off their own history.
    pub implausible: u64,
    /// The lowest of them; null if there is none.
    #[serde(serialize_with = "crate::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub lowest_implausible: Option<Decimal>,
    /// The lowest bottom of the provider's historical bands.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price_insights_low: Option<Decimal>,
    /// The highest top of the bands.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price_insights_high: Option<Decimal>,
    /// Number of searches that completed and found nothing.
    pub empty: u64,
    /// Number of searches that did not complete.
    pub degraded: u64,
    /// `degraded` as a share of all searches, from 0 to 1, to four decimals.
    pub degraded_share: f64,
    /// The verdict on the lowest price, as of the day on which it was found, from your own history, if `history_verdict` asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub history_verdict: Option<HistoryVerdict>,
}

/// The rates of one product in one market and one bucket of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "bucket": "2026-12-01", "endpoint": "hotels/by-name", "place": "Grand Hotel", "proxy_country": "de",
    "product": {"adults": 2, "children": 0}, "currency": "USD", "observations": 24, "prices": 24, "minimum": 312, "median": 330,
    "maximum": 351, "implausible": 0, "lowest_implausible": null, "empty": 0, "degraded": 0, "degraded_share": 0.0
})))]
pub struct HotelBucket {
    /// The first day of the bucket, in the time zone of the query.
    pub bucket: Date,
    /// The endpoint of the searches.
    pub endpoint: Endpoint,
    /// The searched hotel name, destination or booking id.
    pub place: String,
    /// The market; null for the worldwide pool.
    pub proxy_country: Option<String>,
    /// The other fields of the product: guests, filters. Different products are never mixed.
    #[schema(value_type = SearchFields)]
    pub product: ProductFields,
    /// ISO currency code. Different currencies are never mixed.
    pub currency: String,
    /// Number of searches.
    pub observations: u64,
    /// Number of searches that found a price, without the implausible ones.
    pub prices: u64,
    /// The lowest plausible price of a whole stay, in major units; null where there was none. To
    /// separate stays of different lengths, query one `checkin_date` and `checkout_date`.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub minimum: Option<Decimal>,
    /// The median of the plausible prices; of an even number the mean of the two in the middle.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub median: Option<Decimal>,
    /// The highest plausible price.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub maximum: Option<Decimal>,
    /// Number of prices that are left out, because they are far off their own history.
    pub implausible: u64,
    /// The lowest of them; null if there is none.
    #[serde(serialize_with = "crate::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub lowest_implausible: Option<Decimal>,
    /// Number of searches that completed and found nothing.
    pub empty: u64,
    /// Number of searches that did not complete.
    pub degraded: u64,
    /// `degraded` as a share of all searches, from 0 to 1, to four decimals.
    pub degraded_share: f64,
    /// The verdict on the lowest price, as of the day on which it was found, from your own history, if `history_verdict` asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub history_verdict: Option<HistoryVerdict>,
}

/// Fares over time: by product, and by time within a product. A bucket without searches has no row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlightSeries {
    /// Begin of the time range.
    pub since: Timestamp,
    /// End of the time range, exclusive. A bucket at an end contains only what is inside the range.
    pub until: Timestamp,
    /// How long a bucket is.
    pub bucket: Bucket,
    /// The time zone whose midnights separate the buckets.
    pub timezone: String,
    /// The buckets.
    pub data: Vec<FlightBucket>,
    /// The response does not contain all products: narrow the query, or request CSV or NDJSON.
    pub truncated: bool,
}

/// Rates over time: by product and market, and by time within them. A bucket without searches has
/// no row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HotelSeries {
    /// Begin of the time range.
    pub since: Timestamp,
    /// End of the time range, exclusive. A bucket at an end contains only what is inside the range.
    pub until: Timestamp,
    /// How long a bucket is.
    pub bucket: Bucket,
    /// The time zone whose midnights separate the buckets.
    pub timezone: String,
    /// The buckets.
    pub data: Vec<HotelBucket>,
    /// The response does not contain all products: narrow the query, or request CSV or NDJSON.
    pub truncated: bool,
}
