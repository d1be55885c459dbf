//! The flights engine's bodies: gateway.md, rules 23 to 26 under the native paths.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape::{BodyField, BodyFieldKind, Detail, optional, read, required, value_error};

const ANY: i64 = i64::MAX;
const HOUR: BodyFieldKind = BodyFieldKind::Whole(0, 23);
const SORTS: &[&str] = &["Overall", "Price", "Duration"];

const ONEWAY: &[BodyField] = &[
    required("from_airport", BodyFieldKind::Text),
    required("to_airport", BodyFieldKind::Text),
    required("departure_date", BodyFieldKind::Date),
    optional("max_stops", BodyFieldKind::Whole(0, ANY)),
    optional("airline_codes", BodyFieldKind::Texts),
    optional("exclude_airline_codes", BodyFieldKind::Texts),
    optional("departure_time_min", HOUR),
    optional("departure_time_max", HOUR),
    optional("departure_arrival_time_min", HOUR),
    optional("departure_arrival_time_max", HOUR),
    optional("sort_type", BodyFieldKind::OneOf(SORTS)),
    optional("currency", BodyFieldKind::Currency),
    optional("max_price", BodyFieldKind::Whole(0, ANY)),
    optional("seat_type", BodyFieldKind::Cabin),
    optional("passengers", BodyFieldKind::Passengers),
    optional("limit", BodyFieldKind::Whole(1, ANY)),
    optional("use_fallback", BodyFieldKind::Flag),
    optional("strict", BodyFieldKind::Flag),
    optional("use_ext_proxy", BodyFieldKind::Flag),
];

const ROUNDTRIP: &[BodyField] = &[
    required("from_airport", BodyFieldKind::Text),
    required("to_airport", BodyFieldKind::Text),
    required("departure_date", BodyFieldKind::Date),
    required("return_date", BodyFieldKind::Date),
    optional("max_departure_stops", BodyFieldKind::Whole(0, ANY)),
    optional("max_return_stops", BodyFieldKind::Whole(0, ANY)),
    optional("departure_airline_codes", BodyFieldKind::Texts),
    optional("return_airline_codes", BodyFieldKind::Texts),
    optional("departure_exclude_airline_codes", BodyFieldKind::Texts),
    optional("return_exclude_airline_codes", BodyFieldKind::Texts),
    optional("departure_departure_time_min", HOUR),
    optional("departure_departure_time_max", HOUR),
    optional("departure_arrival_time_min", HOUR),
    optional("departure_arrival_time_max", HOUR),
    optional("return_departure_time_min", HOUR),
    optional("return_departure_time_max", HOUR),
    optional("return_arrival_time_min", HOUR),
    optional("return_arrival_time_max", HOUR),
    optional("sort_type", BodyFieldKind::OneOf(SORTS)),
    optional("currency", BodyFieldKind::Currency),
    optional("max_price", BodyFieldKind::Whole(0, ANY)),
    optional("seat_type", BodyFieldKind::Cabin),
    optional("passengers", BodyFieldKind::Passengers),
    optional("limit", BodyFieldKind::Whole(1, ANY)),
    optional("use_fallback", BodyFieldKind::Flag),
    optional("strict", BodyFieldKind::Flag),
    optional("use_ext_proxy", BodyFieldKind::Flag),
];

/// How rows are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(in crate::sandbox) enum Sort {
    #[default]
    Overall,
    Price,
    Duration,
}

/// The fields that both flight bodies share.
#[derive(Clone, Debug, Deserialize)]
pub(in crate::sandbox) struct Terms {
    pub(in crate::sandbox) from_airport: String,
    pub(in crate::sandbox) to_airport: String,
    pub(in crate::sandbox) departure_date: Date,
    #[serde(default)]
    pub(in crate::sandbox) sort_type: Sort,
    #[serde(default = "dollars")]
    pub(in crate::sandbox) currency: String,
    pub(in crate::sandbox) max_price: Option<i64>,
    #[serde(default = "economy")]
    pub(in crate::sandbox) seat_type: i64,
    #[serde(default = "one_adult")]
    pub(in crate::sandbox) passengers: Vec<i64>,
    #[serde(default = "ten")]
    pub(in crate::sandbox) limit: i64,
    #[serde(default = "yes")]
    pub(in crate::sandbox) use_fallback: bool,
    #[serde(default)]
    pub(in crate::sandbox) strict: bool,
    #[serde(default = "yes")]
    pub(in crate::sandbox) use_ext_proxy: bool,
}

pub(super) fn dollars() -> String {
    "USD".to_owned()
}

fn economy() -> i64 {
    1
}

fn one_adult() -> Vec<i64> {
    vec![1]
}

fn ten() -> i64 {
    10
}

fn yes() -> bool {
    true
}

/// Filters on a leg. Hours are local and inclusive; an earliest above the latest spans midnight.
#[derive(Clone, Debug, Default)]
pub(in crate::sandbox) struct LegRules {
    pub(in crate::sandbox) max_stops: Option<i64>,
    pub(in crate::sandbox) only_airlines: Vec<String>,
    pub(in crate::sandbox) without_airlines: Vec<String>,
    pub(in crate::sandbox) departs: (Option<i64>, Option<i64>),
    pub(in crate::sandbox) arrives: (Option<i64>, Option<i64>),
}

/// A valid one-way body.
#[derive(Clone, Debug)]
pub(in crate::sandbox) struct Oneway {
    pub(in crate::sandbox) terms: Terms,
    pub(in crate::sandbox) rules: LegRules,
}

/// A valid round-trip body.
#[derive(Clone, Debug)]
pub(in crate::sandbox) struct Roundtrip {
    pub(in crate::sandbox) terms: Terms,
    pub(in crate::sandbox) return_date: Date,
    pub(in crate::sandbox) outbound: LegRules,
    pub(in crate::sandbox) inbound: LegRules,
}

impl Oneway {
    /// Reads a body, or lists all its faults.
    pub(in crate::sandbox) fn read(body: &Value) -> Result<Self, Vec<Detail>> {
        let terms = read(ONEWAY, body)?;
        let rules = LegRules {
            max_stops: body["max_stops"].as_i64(),
            only_airlines: texts(&body["airline_codes"]),
            without_airlines: texts(&body["exclude_airline_codes"]),
            departs: hours(body, "departure_time"),
            arrives: hours(body, "departure_arrival_time"),
        };
        Ok(Self { terms, rules })
    }
}

impl Roundtrip {
    /// Reads a body, or lists all its faults.
    pub(in crate::sandbox) fn read(body: &Value) -> Result<Self, Vec<Detail>> {
        #[derive(Deserialize)]
        struct Shape {
            return_date: Date,
            #[serde(flatten)]
            terms: Terms,
        }
        let Shape { return_date, terms } = read(ROUNDTRIP, body)?;
        if return_date < terms.departure_date {
            return Err(value_error(
                "return_date",
                "return_date is before departure_date",
                body,
            ));
        }
        let rules = |leg: &str| LegRules {
            max_stops: body[format!("max_{leg}_stops").as_str()].as_i64(),
            only_airlines: texts(&body[format!("{leg}_airline_codes").as_str()]),
            without_airlines: texts(&body[format!("{leg}_exclude_airline_codes").as_str()]),
            departs: hours(body, &format!("{leg}_departure_time")),
            arrives: hours(body, &format!("{leg}_arrival_time")),
        };
        Ok(Self {
            terms,
            return_date,
            outbound: rules("departure"),
            inbound: rules("return"),
        })
    }
}

fn texts(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn hours(body: &Value, field: &str) -> (Option<i64>, Option<i64>) {
    let bound = |end: &str| body[format!("{field}_{end}").as_str()].as_i64();
    (bound("min"), bound("max"))
}

/// The provider's price rating, in the requested currency. Omitted if the request sorts by price or
/// caps it (gateway.md, rule 3).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::sandbox) struct Insight {
    #[serde(rename = "price_range_in_relation_to_other_periods")]
    pub(in crate::sandbox) verdict: Option<&'static str>,
    #[serde(rename = "price_insights_low")]
    pub(in crate::sandbox) low: Option<i64>,
    #[serde(rename = "price_insights_high")]
    pub(in crate::sandbox) high: Option<i64>,
}

/// A stop count, or `Unknown` if the page was unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(in crate::sandbox) enum RowStops {
    Count(usize),
    Unreadable(&'static str),
}

/// One row of the one-way answer (gateway.md, rule 25).
#[derive(Clone, Debug, Serialize)]
pub(in crate::sandbox) struct OnewayRow {
    #[serde(flatten)]
    pub(in crate::sandbox) insight: Option<Insight>,
    pub(in crate::sandbox) from_airport: String,
    pub(in crate::sandbox) to_airport: String,
    pub(in crate::sandbox) departure_date: Date,
    pub(in crate::sandbox) price: String,
    pub(in crate::sandbox) price_as_number: i64,
    pub(in crate::sandbox) duration: String,
    pub(in crate::sandbox) duration_seconds: i64,
    pub(in crate::sandbox) buy_link: String,
    pub(in crate::sandbox) airline: &'static str,
    pub(in crate::sandbox) stops: RowStops,
    pub(in crate::sandbox) stops_info: Vec<StopRow>,
    pub(in crate::sandbox) departure_description: String,
    pub(in crate::sandbox) arrival_description: String,
}

/// One change of planes in a row.
#[derive(Clone, Debug, Serialize)]
pub(in crate::sandbox) struct StopRow {
    pub(in crate::sandbox) stop_airport: String,
    pub(in crate::sandbox) stop_duration_seconds: i64,
}

/// One row of the round-trip answer (gateway.md, rule 26).
#[derive(Clone, Debug, Serialize)]
pub(in crate::sandbox) struct RoundtripRow {
    #[serde(flatten)]
    pub(in crate::sandbox) insight: Option<Insight>,
    pub(in crate::sandbox) from_airport: String,
    pub(in crate::sandbox) to_airport: String,
    pub(in crate::sandbox) departure_date: Date,
    pub(in crate::sandbox) return_date: Date,
    pub(in crate::sandbox) total_price: String,
    pub(in crate::sandbox) total_price_as_number: i64,
    pub(in crate::sandbox) total_duration_seconds: i64,
    pub(in crate::sandbox) total_stops: usize,
    pub(in crate::sandbox) buy_link: String,
    pub(in crate::sandbox) departure_flight_departure_description: String,
    pub(in crate::sandbox) departure_flight_arrival_description: String,
    pub(in crate::sandbox) departure_flight_airline: &'static str,
    pub(in crate::sandbox) departure_flight_duration: String,
    pub(in crate::sandbox) departure_flight_stops: usize,
    pub(in crate::sandbox) return_flight_departure_description: String,
    pub(in crate::sandbox) return_flight_arrival_description: String,
    pub(in crate::sandbox) return_flight_airline: &'static str,
    pub(in crate::sandbox) return_flight_duration: String,
    pub(in crate::sandbox) return_flight_stops: usize,
}
