//! The hotels engine's bodies: gateway.md, rules 27 to 33 under the native paths.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::flights::dollars;
use super::shape::{BodyField, BodyFieldKind, Detail, optional, read, required, value_error};

/// The 24 values of gateway.md, rule 28.
pub(crate) const FILTERS: [&str; 24] = [
    "free_cancellation",
    "breakfast_included",
    "breakfast_and_lunch",
    "breakfast_and_dinner",
    "all_meals_included",
    "all_inclusive",
    "free_wifi",
    "swimming_pool",
    "gym",
    "parking",
    "front_desk_24h",
    "review_score_7",
    "review_score_8",
    "review_score_9",
    "private_bathroom",
    "air_conditioning",
    "stars_3",
    "stars_4",
    "stars_5",
    "pets_allowed",
    "adults_only",
    "sauna",
    "very_good_breakfast",
    "accepts_online_payment",
];

const MOST_GUESTS: i64 = 30;

const SEARCH: &[BodyField] = &[
    required("destination", BodyFieldKind::Text),
    required("checkin_date", BodyFieldKind::Date),
    required("checkout_date", BodyFieldKind::Date),
    optional("adults", BodyFieldKind::Whole(1, MOST_GUESTS)),
    optional("children", BodyFieldKind::Whole(0, MOST_GUESTS)),
    optional("currency", BodyFieldKind::Currency),
    optional("proxy_country", BodyFieldKind::Text),
    optional("budget_per_night", BodyFieldKind::Amount),
    optional("filters", BodyFieldKind::Texts),
];

const BY_NAME: &[BodyField] = &[
    required("hotel_name", BodyFieldKind::Text),
    required("checkin_date", BodyFieldKind::Date),
    required("checkout_date", BodyFieldKind::Date),
    optional("area", BodyFieldKind::Text),
    optional("adults", BodyFieldKind::Whole(1, MOST_GUESTS)),
    optional("children", BodyFieldKind::Whole(0, MOST_GUESTS)),
    optional("currency", BodyFieldKind::Currency),
    optional("proxy_country", BodyFieldKind::Text),
    optional("free_cancellation", BodyFieldKind::Flag),
];

const ROOMS: &[BodyField] = &[
    required("hotel_booking_id", BodyFieldKind::Text),
    required("checkin_date", BodyFieldKind::Date),
    required("checkout_date", BodyFieldKind::Date),
    optional("adults", BodyFieldKind::Whole(1, MOST_GUESTS)),
    optional("children", BodyFieldKind::Whole(0, MOST_GUESTS)),
    optional("currency", BodyFieldKind::Currency),
    optional("proxy_country", BodyFieldKind::Text),
    optional("free_cancellation", BodyFieldKind::Flag),
];

const RESOLVE: &[BodyField] = &[
    required("hotel_name", BodyFieldKind::Text),
    optional("proxy_country", BodyFieldKind::Text),
];

/// Why the engine refuses a body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Unreadable {
    /// 422 with its details.
    Shape(Vec<Detail>),
    /// 400 with a message (gateway.md, rules 7 and 8).
    Meaning(String),
}

impl From<Vec<Detail>> for Unreadable {
    fn from(details: Vec<Detail>) -> Self {
        Self::Shape(details)
    }
}

/// Nights, party, currency and market: the fields that every priced hotel body shares.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Stay {
    pub(crate) checkin_date: Date,
    pub(crate) checkout_date: Date,
    #[serde(default = "two")]
    pub(crate) adults: i64,
    /// `None` if the body has no such field; the engine then echoes null.
    pub(crate) children: Option<i64>,
    #[serde(default = "dollars")]
    pub(crate) currency: String,
    pub(crate) proxy_country: Option<String>,
    #[serde(default)]
    pub(crate) free_cancellation: bool,
}

fn two() -> i64 {
    2
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct HotelSearch {
    pub(crate) destination: String,
    #[serde(flatten)]
    pub(crate) stay: Stay,
    pub(crate) budget_per_night: Option<f64>,
    #[serde(default)]
    pub(crate) filters: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ByName {
    pub(crate) hotel_name: String,
    pub(crate) area: Option<String>,
    #[serde(flatten)]
    pub(crate) stay: Stay,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Rooms {
    pub(crate) hotel_booking_id: String,
    #[serde(flatten)]
    pub(crate) stay: Stay,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Resolve {
    pub(crate) hotel_name: String,
}

impl HotelSearch {
    /// Reads a body. `location` instead of `destination`, and unknown filters, have own messages.
    pub(crate) fn read(body: &Value) -> Result<Self, Unreadable> {
        if body.get("location").is_some() {
            return Err(Unreadable::Meaning(
                "Unknown field location. Required fields: destination, checkin_date, checkout_date"
                    .to_owned(),
            ));
        }
        let search: Self = read(SEARCH, body)?;
        if let Some(unknown) = search
            .filters
            .iter()
            .find(|filter| !FILTERS.contains(&filter.as_str()))
        {
            return Err(Unreadable::Meaning(format!(
                "Unrecognised filter {unknown:?}. Valid filters: {}",
                FILTERS.join(", ")
            )));
        }
        search.stay.check(body)?;
        Ok(search)
    }
}

impl ByName {
    pub(crate) fn read(body: &Value) -> Result<Self, Unreadable> {
        let query: Self = read(BY_NAME, body)?;
        query.stay.check(body)?;
        Ok(query)
    }
}

impl Rooms {
    pub(crate) fn read(body: &Value) -> Result<Self, Unreadable> {
        let query: Self = read(ROOMS, body)?;
        query.stay.check(body)?;
        Ok(query)
    }
}

impl Resolve {
    pub(crate) fn read(body: &Value) -> Result<Self, Unreadable> {
        Ok(read(RESOLVE, body)?)
    }
}

impl Stay {
    fn check(&self, body: &Value) -> Result<(), Vec<Detail>> {
        if self.checkout_date > self.checkin_date {
            Ok(())
        } else {
            Err(value_error(
                "checkout_date",
                "checkout_date is not after checkin_date",
                body,
            ))
        }
    }
}

/// The answer of a hotel search (gateway.md, rule 29).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SearchAnswer {
    pub(crate) destination: String,
    pub(crate) checkin_date: Date,
    pub(crate) checkout_date: Date,
    pub(crate) applied_filters: Vec<String>,
    pub(crate) budget_per_night: Option<f64>,
    pub(crate) properties: Vec<PropertyRow>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct PropertyRow {
    pub(crate) name: String,
    pub(crate) price_string: String,
    pub(crate) price: i64,
    pub(crate) review_score: Option<f64>,
    pub(crate) review_count: Option<i64>,
    pub(crate) room_type: &'static str,
    pub(crate) location: String,
    pub(crate) image_url: Option<String>,
    pub(crate) link: String,
    pub(crate) nights: i64,
    pub(crate) adults: i64,
    pub(crate) children: Option<i64>,
}

/// The answer to a hotel's name (gateway.md, rule 31).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ByNameAnswer {
    pub(crate) name: String,
    pub(crate) available: bool,
    pub(crate) price_string: Option<String>,
    pub(crate) price: Option<i64>,
    pub(crate) review_score: Option<f64>,
    pub(crate) review_count: Option<i64>,
    pub(crate) room_type: Option<&'static str>,
    pub(crate) image_url: Option<String>,
    pub(crate) link: String,
    pub(crate) nights: i64,
    pub(crate) adults: i64,
    pub(crate) children: Option<i64>,
}

/// The rooms of a hotel (gateway.md, rule 32).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RoomsAnswer {
    pub(crate) hotel_booking_id: String,
    pub(crate) checkin_date: Date,
    pub(crate) checkout_date: Date,
    pub(crate) booking_url: String,
    pub(crate) rooms: Vec<RoomRow>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct RoomRow {
    pub(crate) room_type: &'static str,
    pub(crate) room_economy: String,
    pub(crate) guests: i64,
    pub(crate) price_as_number: i64,
    pub(crate) price: String,
}

/// The id of a hotel (gateway.md, rule 33).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ResolveAnswer {
    pub(crate) hotel_name: String,
    pub(crate) hotel_booking_id: String,
    pub(crate) matched_name: String,
}
