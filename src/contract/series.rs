//! Prices over time on the wire (jobs-api, "History"): what was seen of a product, bucket by bucket.

use super::declare::request;
use super::endpoint::Endpoint;
use super::fault::{Fault, Faults};
use super::field::FieldValue as _;
use super::history::{Product, one_day_or_range, one_subject};
use super::primitives::{
    Adults, Airport, Children, CountryCode, Currency, Date, FreeText, HotelBookingId, ListFormat,
    Zone,
};
use super::query::query;
use super::scans::SearchFields;
use super::words::words;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest range of time, in days: a year and what is left of its last month.
pub const MAX_DAYS: i64 = 400;
/// The range of a query that names none, in days.
pub const USUAL_DAYS: i64 = 365;

words! {
    /// How long a bucket is.
    pub enum Bucket {
        /// From midnight to midnight.
        Day = "day",
        /// From Monday to Sunday.
        Week = "week",
    }
}

request! {
    /// The query of `GET /v1/history/flights/series`.
    pub struct FlightSeriesQuery for "the query of the fares over time" {
        required {
            /// Origin IATA code.
            from_airport: Airport;
            /// Destination IATA code.
            to_airport: Airport;
        }
        optional {
            /// Only journeys that depart on this day. Not beside `departure_from` or `departure_to`.
            departure_date: Date;
            /// Only journeys that depart on or after this day.
            departure_from: Date;
            /// Only journeys that depart on or before this day.
            departure_to: Date;
            /// Only round trips that return on this day.
            return_date: Date;
            /// Only prices in this currency.
            currency: Currency;
            /// How long a bucket is.
            bucket: Bucket = Bucket::Day => bucket_or_default;
            /// The time zone whose midnights part the buckets.
            timezone: Zone = Zone::utc() => timezone_or_default;
            /// Only what was seen at or after this time: 365 days before `until` unless given, at most 400.
            since: Timestamp;
            /// Only what was seen before this time: now unless given.
            until: Timestamp;
            /// The form: a page of JSON, or all rows as a file. It goes before the header `Accept`; without both it is JSON.
            format: ListFormat;
        }
        order { departure_to not_before departure_from; }
        example { "from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14", "bucket": "day" }
    }
}

request! {
    /// The query of `GET /v1/history/hotels/series`: exactly one of `hotel_name`, `destination`, `hotel_booking_id`.
    pub struct HotelSeriesQuery for "the query of the rates over time" {
        required {}
        optional {
            /// The hotel's name, as by-name scans asked for it.
            hotel_name: FreeText;
            /// The place, as search scans asked for it.
            destination: FreeText;
            /// The hotel's id, as rooms scans asked for it.
            hotel_booking_id: HotelBookingId;
            /// Only stays that begin on this day. Not beside `checkin_from` or `checkin_to`.
            checkin_date: Date;
            /// Only stays that begin on or after this day.
            checkin_from: Date;
            /// Only stays that begin on or before this day.
            checkin_to: Date;
            /// Only stays that end on this day.
            checkout_date: Date;
            /// Only prices for this many adults.
            adults: Adults;
            /// Only prices for this many children.
            children: Children;
            /// Only prices in this currency.
            currency: Currency;
            /// Only prices seen from this market.
            proxy_country: CountryCode;
            /// How long a bucket is.
            bucket: Bucket = Bucket::Day => bucket_or_default;
            /// The time zone whose midnights part the buckets.
            timezone: Zone = Zone::utc() => timezone_or_default;
            /// Only what was seen at or after this time: 365 days before `until` unless given, at most 400.
            since: Timestamp;
            /// Only what was seen before this time: now unless given.
            until: Timestamp;
            /// The form: a page of JSON, or all rows as a file. It goes before the header `Accept`; without both it is JSON.
            format: ListFormat;
        }
        order { checkin_to not_before checkin_from; }
        example { "hotel_name": "Grand Hotel", "checkin_date": "2027-01-14", "proxy_country": "de", "bucket": "week" }
    }
}

query!(FlightSeriesQuery => spanning, HotelSeriesQuery => spanning);

impl FlightSeriesQuery {
    fn spanning(&self) -> Faults {
        one_day_or_range(
            "departure",
            self.departure_date,
            self.departure_from.or(self.departure_to),
        )
    }

    /// The range of time that is asked for, where it is `now`.
    ///
    /// # Errors
    /// A fault of a range that is too long, or that ends before it begins.
    pub fn times(&self, now: Timestamp) -> Result<(Timestamp, Timestamp), Faults> {
        times(self.since, self.until, now)
    }
}

impl HotelSeriesQuery {
    fn spanning(&self) -> Faults {
        let mut faults = one_subject(&self.to_body());
        faults.merge(one_day_or_range(
            "checkin",
            self.checkin_date,
            self.checkin_from.or(self.checkin_to),
        ));
        faults
    }

    /// The range of time that is asked for, where it is `now`.
    ///
    /// # Errors
    /// A fault of a range that is too long, or that ends before it begins.
    pub fn times(&self, now: Timestamp) -> Result<(Timestamp, Timestamp), Faults> {
        times(self.since, self.until, now)
    }
}

/// Where both ends of a range are given: the one comes before the other.
pub(in crate::contract) fn in_order(since: Option<Timestamp>, until: Option<Timestamp>) -> Faults {
    match since.zip(until) {
        Some((since, until)) if since >= until => ends_before_it_begins(since, until),
        _ => Faults::default(),
    }
}

fn ends_before_it_begins(since: Timestamp, until: Timestamp) -> Faults {
    Fault::new(
        "since",
        &since.to_value(),
        format!("a time before {until}, where the range ends"),
    )
    .into()
}

fn times(
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    now: Timestamp,
) -> Result<(Timestamp, Timestamp), Faults> {
    let days = |days: i64| SignedDuration::from_hours(24 * days);
    let ends = until.unwrap_or(now);
    let begins =
        since.unwrap_or_else(|| ends.checked_sub(days(USUAL_DAYS)).unwrap_or(Timestamp::MIN));
    if begins >= ends {
        return Err(ends_before_it_begins(begins, ends));
    }
    let last = begins.checked_add(days(MAX_DAYS)).unwrap_or(Timestamp::MAX);
    if ends > last {
        let allowed = format!("a time up to {last}: a range has at most {MAX_DAYS} days");
        return Err(match until {
            Some(until) => Fault::new("until", &until.to_value(), allowed).into(),
            None => Fault::missing("until", format!("{allowed}, and this one ends now")).into(),
        });
    }
    Ok((begins, ends))
}

/// What was seen of fares of one product in one bucket of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "bucket": "2026-12-01", "endpoint": "flights/oneway", "from_airport": "TLV", "to_airport": "LHR",
    "product": {"passengers": [1]}, "currency": "USD", "observations": 24, "prices": 21, "minimum": 164, "median": 181.5, "maximum": 240,
    "price_insights_low": 180, "price_insights_high": 320, "empty": 1, "degraded": 2, "degraded_share": 0.0833
})))]
pub struct FlightBucket {
    /// The first day of the bucket, in the time zone of the query.
    #[schema(value_type = String, format = Date)]
    pub bucket: Date,
    /// One way or round trip.
    pub endpoint: Endpoint,
    /// Origin IATA code.
    pub from_airport: String,
    /// Destination IATA code.
    pub to_airport: String,
    /// The other fields that name the product: party, cabin, filters. Products never mix.
    #[schema(value_type = SearchFields)]
    pub product: Product,
    /// ISO currency code. Currencies never mix.
    pub currency: String,
    /// How often it was looked at.
    pub observations: u64,
    /// How many of the looks brought a price.
    pub prices: u64,
    /// The lowest price, in major units; null where there was none.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub minimum: Option<Decimal>,
    /// The middle price; of an even number the mean of the two in the middle.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub median: Option<Decimal>,
    /// The highest price.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub maximum: Option<Decimal>,
    /// The lowest bottom of the provider's historical bands.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub price_insights_low: Option<Decimal>,
    /// The highest top of the bands.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub price_insights_high: Option<Decimal>,
    /// How many of the looks found that nothing exists.
    pub empty: u64,
    /// How many of the looks did not complete.
    pub degraded: u64,
    /// The same as a part of all looks, from 0 to 1, to four decimals: what the figures are not based on.
    pub degraded_share: f64,
}

/// What was seen of rates of one product, from one market, in one bucket of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "bucket": "2026-12-01", "endpoint": "hotels/by-name", "place": "Grand Hotel", "proxy_country": "de",
    "product": {"adults": 2, "children": 0}, "currency": "USD", "observations": 24, "prices": 24, "minimum": 312, "median": 330,
    "maximum": 351, "empty": 0, "degraded": 0, "degraded_share": 0.0
})))]
pub struct HotelBucket {
    /// The first day of the bucket, in the time zone of the query.
    #[schema(value_type = String, format = Date)]
    pub bucket: Date,
    /// Which kind of search saw it.
    pub endpoint: Endpoint,
    /// The hotel name, destination or booking id that was asked for.
    pub place: String,
    /// The market; null for the worldwide pool.
    pub proxy_country: Option<String>,
    /// The other fields that name the product: party, filters. Products never mix.
    #[schema(value_type = SearchFields)]
    pub product: Product,
    /// ISO currency code. Currencies never mix.
    pub currency: String,
    /// How often it was looked at.
    pub observations: u64,
    /// How many of the looks brought a price.
    pub prices: u64,
    /// The lowest price of a whole stay, in major units; null where there was none. Stays of different lengths are told apart by asking
    /// for one `checkin_date` and `checkout_date`.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub minimum: Option<Decimal>,
    /// The middle price; of an even number the mean of the two in the middle.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub median: Option<Decimal>,
    /// The highest price.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub maximum: Option<Decimal>,
    /// How many of the looks found that nothing exists.
    pub empty: u64,
    /// How many of the looks did not complete.
    pub degraded: u64,
    /// The same as a part of all looks, from 0 to 1, to four decimals: what the figures are not based on.
    pub degraded_share: f64,
}

/// Fares over time: by product, and by time within a product. A bucket in which nobody looked has no row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlightSeries {
    /// From when.
    pub since: Timestamp,
    /// Before when. A bucket that an end of the range cuts has what is inside of it.
    pub until: Timestamp,
    /// How long a bucket is.
    pub bucket: Bucket,
    /// The time zone whose midnights part the buckets.
    pub timezone: String,
    /// The buckets.
    pub data: Vec<FlightBucket>,
    /// More products fit than an answer takes: narrow the query, or ask for CSV or NDJSON.
    pub truncated: bool,
}

/// Rates over time: by product and market, and by time within them. A bucket in which nobody looked has no row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HotelSeries {
    /// From when.
    pub since: Timestamp,
    /// Before when. A bucket that an end of the range cuts has what is inside of it.
    pub until: Timestamp,
    /// How long a bucket is.
    pub bucket: Bucket,
    /// The time zone whose midnights part the buckets.
    pub timezone: String,
    /// The buckets.
    pub data: Vec<HotelBucket>,
    /// More products fit than an answer takes: narrow the query, or ask for CSV or NDJSON.
    pub truncated: bool,
}
