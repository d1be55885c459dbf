//! The rows of flight responses (gateway.md, rules 25 and 26).
//!
//! For the OpenAPI document and for code that reads single rows. The service passes rows on
//! unchanged, with every field, known or not (gateway.md, rule 14). So every field is optional
//! here.

use crate::status::Verdict;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One itinerary of a one-way search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "price_range_in_relation_to_other_periods": "low",
    "price_insights_low": 180, "price_insights_high": 320,
    "from_airport": "Tel Aviv (TLV)", "to_airport": "London (LHR)", "departure_date": "2027-01-14",
    "price": "$164", "price_as_number": 164,
    "duration": "5 hr 25 min", "duration_seconds": 19_500,
    "buy_link": "https://flights.example/search?tfs=CBwQAhoe&curr=USD",
    "airline": "Example Air", "stops": 0, "stops_info": [],
    "departure_description": "7:15 AM on Thu, Jan 14", "arrival_description": "10:40 AM on Thu, Jan 14"
})))]
pub struct OnewayFlight {
    /// The provider's verdict on the fare against the route's historical range.
    pub price_range_in_relation_to_other_periods: Option<Verdict>,
    /// Bottom of the historical band, in the requested currency; null when no band is published.
    pub price_insights_low: Option<f64>,
    /// Top of the historical band, by the same rules.
    pub price_insights_high: Option<f64>,
    /// Display string of the form `City (IATA)`, not a bare code.
    #[schema(nullable = false)]
    pub from_airport: Option<String>,
    /// Display string of the form `City (IATA)`, not a bare code.
    #[schema(nullable = false)]
    pub to_airport: Option<String>,
    /// Day of departure.
    #[schema(nullable = false, format = Date)]
    pub departure_date: Option<String>,
    /// Formatted display price.
    #[schema(nullable = false)]
    pub price: Option<String>,
    /// Numeric price; use this for arithmetic.
    #[schema(nullable = false)]
    pub price_as_number: Option<f64>,
    /// Human-readable duration.
    #[schema(nullable = false)]
    pub duration: Option<String>,
    /// Duration in seconds.
    #[schema(nullable = false)]
    pub duration_seconds: Option<i64>,
    /// Deep link that reopens exactly this itinerary; its `curr` query parameter holds the
    /// currency.
    #[schema(nullable = false, format = "uri")]
    pub buy_link: Option<String>,
    /// The airline.
    #[schema(nullable = false)]
    pub airline: Option<String>,
    /// Number of stops, or the string `Unknown` when it could not be read.
    #[schema(nullable = false)]
    pub stops: Option<StopCount>,
    /// Where it stops; empty for non-stop.
    #[schema(nullable = false)]
    pub stops_info: Option<Vec<StopInfo>>,
    /// Local time and day of departure, as text.
    #[schema(nullable = false)]
    pub departure_description: Option<String>,
    /// Local time and day of arrival, as text.
    #[schema(nullable = false)]
    pub arrival_description: Option<String>,
}

/// A number of stops, or the text that the engine sent instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StopCount {
    /// How many.
    Known(u32),
    /// The text instead of a number: `Unknown`.
    Unreadable(String),
}

/// One stop on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StopInfo {
    /// Where.
    #[schema(nullable = false)]
    pub stop_airport: Option<String>,
    /// For how long.
    #[schema(nullable = false)]
    pub stop_duration_seconds: Option<i64>,
}

/// One outbound and return pair, priced together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "price_range_in_relation_to_other_periods": "typical",
    "price_insights_low": 310, "price_insights_high": 520,
    "from_airport": "Tel Aviv (TLV)", "to_airport": "London (LHR)",
    "departure_date": "2027-01-14", "return_date": "2027-01-21",
    "total_price": "$402", "total_price_as_number": 402, "total_duration_seconds": 37_800, "total_stops": 0,
    "buy_link": "https://flights.example/search?tfs=CBwQAhoe&curr=USD",
    "departure_flight_departure_description": "7:15 AM on Thu, Jan 14",
    "departure_flight_arrival_description": "10:40 AM on Thu, Jan 14",
    "departure_flight_airline": "Example Air", "departure_flight_duration": "5 hr 25 min", "departure_flight_stops": 0,
    "return_flight_departure_description": "2:30 PM on Thu, Jan 21",
    "return_flight_arrival_description": "9:35 PM on Thu, Jan 21",
    "return_flight_airline": "Example Air", "return_flight_duration": "5 hr 5 min", "return_flight_stops": 0
})))]
pub struct RoundtripItinerary {
    /// The provider's verdict on the fare against the route's historical range.
    pub price_range_in_relation_to_other_periods: Option<Verdict>,
    /// Bottom of the historical band, in the requested currency; null when no band is published.
    pub price_insights_low: Option<f64>,
    /// Top of the historical band, by the same rules.
    pub price_insights_high: Option<f64>,
    /// Display string of the form `City (IATA)`.
    #[schema(nullable = false)]
    pub from_airport: Option<String>,
    /// Display string of the form `City (IATA)`.
    #[schema(nullable = false)]
    pub to_airport: Option<String>,
    /// Day of the outbound departure.
    #[schema(nullable = false, format = Date)]
    pub departure_date: Option<String>,
    /// Day of the return departure.
    #[schema(nullable = false, format = Date)]
    pub return_date: Option<String>,
    /// Display price of the whole trip.
    #[schema(nullable = false)]
    pub total_price: Option<String>,
    /// Numeric price of the whole trip.
    #[schema(nullable = false)]
    pub total_price_as_number: Option<f64>,
    /// Duration of both legs in seconds.
    #[schema(nullable = false)]
    pub total_duration_seconds: Option<i64>,
    /// Stops of both legs.
    #[schema(nullable = false)]
    pub total_stops: Option<StopCount>,
    /// Deep link to the pair.
    #[schema(nullable = false, format = "uri")]
    pub buy_link: Option<String>,
    /// Outbound: local time and day of departure.
    #[schema(nullable = false)]
    pub departure_flight_departure_description: Option<String>,
    /// Outbound: local time and day of arrival.
    #[schema(nullable = false)]
    pub departure_flight_arrival_description: Option<String>,
    /// Outbound: the airline.
    #[schema(nullable = false)]
    pub departure_flight_airline: Option<String>,
    /// Outbound: human-readable duration.
    #[schema(nullable = false)]
    pub departure_flight_duration: Option<String>,
    /// Outbound: stops.
    #[schema(nullable = false)]
    pub departure_flight_stops: Option<StopCount>,
    /// Return: local time and day of departure.
    #[schema(nullable = false)]
    pub return_flight_departure_description: Option<String>,
    /// Return: local time and day of arrival.
    #[schema(nullable = false)]
    pub return_flight_arrival_description: Option<String>,
    /// Return: the airline.
    #[schema(nullable = false)]
    pub return_flight_airline: Option<String>,
    /// Return: human-readable duration.
    #[schema(nullable = false)]
    pub return_flight_duration: Option<String>,
    /// Return: stops.
    #[schema(nullable = false)]
    pub return_flight_stops: Option<StopCount>,
}
