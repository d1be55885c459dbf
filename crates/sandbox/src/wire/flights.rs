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
pub(crate) enum Sort {
    #[default]
    Overall,
    Price,
    Duration,
}

/// The fields that both flight bodies share.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Terms {
    pub(crate) from_airport: String,
    pub(crate) to_airport: String,
    pub(crate) departure_date: Date,
    #[serde(default)]
    pub(crate) sort_type: Sort,
    #[serde(default = "dollars")]
    pub(crate) currency: String,
    pub(crate) max_price: Option<i64>,
    #[serde(default = "economy")]
    pub(crate) seat_type: i64,
    #[serde(default = "one_adult")]
    pub(crate) passengers: Vec<i64>,
    #[serde(default = "ten")]
    pub(crate) limit: i64,
    #[serde(default = "yes")]
    pub(crate) use_fallback: bool,
    #[serde(default)]
    pub(crate) strict: bool,
    #[serde(default = "yes")]
    pub(crate) use_ext_proxy: bool,
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
pub(crate) struct LegRules {
    pub(crate) max_stops: Option<i64>,
    pub(crate) only_airlines: Vec<String>,
    pub(crate) without_airlines: Vec<String>,
    pub(crate) departs: (Option<i64>, Option<i64>),
    pub(crate) arrives: (Option<i64>, Option<i64>),
}

/// A valid one-way body.
#[derive(Clone, Debug)]
pub(crate) struct Oneway {
    pub(crate) terms: Terms,
    pub(crate) rules: LegRules,
}

/// A valid round-trip body.
#[derive(Clone, Debug)]
pub(crate) struct Roundtrip {
    pub(crate) terms: Terms,
    pub(crate) return_date: Date,
    pub(crate) outbound: LegRules,
    pub(crate) inbound: LegRules,
}

impl Oneway {
    /// Reads a body, or lists all its faults.
    pub(crate) fn read(body: &Value) -> Result<Self, Vec<Detail>> {
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
    pub(crate) fn read(body: &Value) -> Result<Self, Vec<Detail>> {
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
pub(crate) struct Insight {
    #[serde(rename = "price_range_in_relation_to_other_periods")]
    pub(crate) verdict: Option<&'static str>,
    #[serde(rename = "price_insights_low")]
    pub(crate) low: Option<i64>,
    #[serde(rename = "price_insights_high")]
    pub(crate) high: Option<i64>,
}

/// A stop count, or `Unknown` if the page was unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum RowStops {
    Count(usize),
    Unreadable(&'static str),
}

/// One row of the one-way answer (gateway.md, rule 25).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OnewayRow {
    #[serde(flatten)]
    pub(crate) insight: Option<Insight>,
    pub(crate) from_airport: String,
    pub(crate) to_airport: String,
    pub(crate) departure_date: Date,
    pub(crate) price: String,
    pub(crate) price_as_number: i64,
    pub(crate) duration: String,
    pub(crate) duration_seconds: i64,
    pub(crate) buy_link: String,
    pub(crate) airline: &'static str,
    pub(crate) stops: RowStops,
    pub(crate) stops_info: Vec<StopRow>,
    pub(crate) departure_description: String,
    pub(crate) arrival_description: String,
}

/// One change of planes in a row.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StopRow {
    pub(crate) stop_airport: String,
    pub(crate) stop_duration_seconds: i64,
}

/// One row of the round-trip answer (gateway.md, rule 26).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RoundtripRow {
    #[serde(flatten)]
    pub(crate) insight: Option<Insight>,
    pub(crate) from_airport: String,
    pub(crate) to_airport: String,
    pub(crate) departure_date: Date,
    pub(crate) return_date: Date,
    pub(crate) total_price: String,
    pub(crate) total_price_as_number: i64,
    pub(crate) total_duration_seconds: i64,
    pub(crate) total_stops: usize,
    pub(crate) buy_link: String,
    pub(crate) departure_flight_departure_description: String,
    pub(crate) departure_flight_arrival_description: String,
    pub(crate) departure_flight_airline: &'static str,
    pub(crate) departure_flight_duration: String,
    pub(crate) departure_flight_stops: usize,
    pub(crate) return_flight_departure_description: String,
    pub(crate) return_flight_arrival_description: String,
    pub(crate) return_flight_airline: &'static str,
    pub(crate) return_flight_duration: String,
    pub(crate) return_flight_stops: usize,
}
