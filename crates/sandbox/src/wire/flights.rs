//! The flights engine's bodies: gateway.md, rules 23 to 26 under the native paths.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape::BodyFieldKind as Kind;
use super::shape::{BodyField, Detail, optional, read, required, value_error};
use crate::world::money::SandboxCurrency;

const ANY: i64 = i64::MAX;
const HOUR: Kind = Kind::Whole(0, 23);
const SORTS: &[&str] = &["Overall", "Price", "Duration"];

/// The first fields of both bodies.
const ROUTE: &[BodyField] = &[
    required("from_airport", Kind::Text),
    required("to_airport", Kind::Text),
    required("departure_date", Kind::Date),
];

const ONEWAY: &[BodyField] = &[
    optional("max_stops", Kind::Whole(0, ANY)),
    optional("airline_codes", Kind::TEXTS),
    optional("exclude_airline_codes", Kind::TEXTS),
    optional("departure_time_min", HOUR),
    optional("departure_time_max", HOUR),
    optional("departure_arrival_time_min", HOUR),
    optional("departure_arrival_time_max", HOUR),
];

const ROUNDTRIP: &[BodyField] = &[
    required("return_date", Kind::Date),
    optional("max_departure_stops", Kind::Whole(0, ANY)),
    optional("max_return_stops", Kind::Whole(0, ANY)),
    optional("departure_airline_codes", Kind::TEXTS),
    optional("return_airline_codes", Kind::TEXTS),
    optional("departure_exclude_airline_codes", Kind::TEXTS),
    optional("return_exclude_airline_codes", Kind::TEXTS),
    optional("departure_departure_time_min", HOUR),
    optional("departure_departure_time_max", HOUR),
    optional("departure_arrival_time_min", HOUR),
    optional("departure_arrival_time_max", HOUR),
    optional("return_departure_time_min", HOUR),
    optional("return_departure_time_max", HOUR),
    optional("return_arrival_time_min", HOUR),
    optional("return_arrival_time_max", HOUR),
];

/// The last fields of both bodies.
const TERMS: &[BodyField] = &[
    optional("sort_type", Kind::OneOf(SORTS)),
    optional("currency", Kind::Currency),
    optional("max_price", Kind::Whole(0, ANY)),
    optional("seat_type", Kind::Cabin),
    optional("passengers", Kind::PASSENGERS),
    optional("limit", Kind::Whole(1, ANY)),
    optional("use_fallback", Kind::Flag),
    optional("strict", Kind::Flag),
    optional("use_ext_proxy", Kind::Flag),
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
    #[serde(
        default = "SandboxCurrency::dollar",
        deserialize_with = "SandboxCurrency::of_code"
    )]
    pub(crate) currency: &'static SandboxCurrency,
    pub(crate) max_price: Option<i64>,
    pub(crate) seat_type: Option<i64>,
    pub(crate) passengers: Option<Vec<i64>>,
    pub(crate) limit: Option<usize>,
    pub(crate) use_fallback: Option<bool>,
    #[serde(default)]
    pub(crate) strict: bool,
    pub(crate) use_ext_proxy: Option<bool>,
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

/// A valid body.
#[derive(Clone, Debug)]
pub(crate) struct FlightSearch {
    pub(crate) terms: Terms,
    pub(crate) outbound: LegRules,
    /// Date and rules of the return; `None` for a one-way search.
    pub(crate) inbound: Option<(Date, LegRules)>,
}

impl FlightSearch {
    /// Reads a one-way body, or lists all its faults.
    pub(crate) fn oneway(body: &Value) -> Result<Self, Vec<Detail>> {
        Ok(Self {
            terms: read(&[ROUTE, ONEWAY, TERMS], body)?,
            outbound: LegRules::of(body, "", "departure_"),
            inbound: None,
        })
    }

    /// Reads a round-trip body, or lists all its faults.
    pub(crate) fn roundtrip(body: &Value) -> Result<Self, Vec<Detail>> {
        #[derive(Deserialize)]
        struct Shape {
            return_date: Date,
            #[serde(flatten)]
            terms: Terms,
        }
        let Shape { return_date, terms } = read(&[ROUTE, ROUNDTRIP, TERMS], body)?;
        if return_date < terms.departure_date {
            let message = "return_date is before departure_date";
            return Err(value_error("return_date", message, body));
        }
        Ok(Self {
            terms,
            outbound: LegRules::of(body, "departure_", "departure_"),
            inbound: Some((return_date, LegRules::of(body, "return_", "return_"))),
        })
    }
}

impl LegRules {
    /// The fields whose names begin with these words; that of the arrival's hours has its own.
    fn of(body: &Value, leg: &str, arrival: &str) -> Self {
        let number = |field: String| body[field].as_i64();
        let hours = |field: &str| {
            (
                number(format!("{field}_min")),
                number(format!("{field}_max")),
            )
        };
        let texts = |field: String| {
            let list = body[field].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            max_stops: number(format!("max_{leg}stops")),
            only_airlines: texts(format!("{leg}airline_codes")),
            without_airlines: texts(format!("{leg}exclude_airline_codes")),
            departs: hours(&format!("{leg}departure_time")),
            arrives: hours(&format!("{arrival}arrival_time")),
        }
    }
}

/// The provider's price rating, in the requested currency. Omitted if the request sorts by price or
/// caps it (gateway.md, rule 3).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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

/// One row of an answer.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum FlightRow {
    Oneway(OnewayRow),
    Roundtrip(RoundtripRow),
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
