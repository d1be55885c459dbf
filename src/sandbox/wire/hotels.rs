//! The hotels engine's bodies: specification 2.5 to 2.12 under the native paths.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::flights::dollars;
use super::shape::{Detail, Field, Kind, optional, read, required, value_error};

/// The 24 values of specification 2.6.
pub(in crate::sandbox) const FILTERS: [&str; 24] = [
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

const SEARCH: &[Field] = &[
    required("destination", Kind::Text),
    required("checkin_date", Kind::Date),
    required("checkout_date", Kind::Date),
    optional("adults", Kind::Whole(1, MOST_GUESTS)),
    optional("children", Kind::Whole(0, MOST_GUESTS)),
    optional("currency", Kind::Currency),
    optional("proxy_country", Kind::Text),
    optional("budget_per_night", Kind::Amount),
    optional("filters", Kind::Texts),
];

const BY_NAME: &[Field] = &[
    required("hotel_name", Kind::Text),
    required("checkin_date", Kind::Date),
    required("checkout_date", Kind::Date),
    optional("area", Kind::Text),
    optional("adults", Kind::Whole(1, MOST_GUESTS)),
    optional("children", Kind::Whole(0, MOST_GUESTS)),
    optional("currency", Kind::Currency),
    optional("proxy_country", Kind::Text),
    optional("free_cancellation", Kind::Flag),
];

const ROOMS: &[Field] = &[
    required("hotel_booking_id", Kind::Text),
    required("checkin_date", Kind::Date),
    required("checkout_date", Kind::Date),
    optional("adults", Kind::Whole(1, MOST_GUESTS)),
    optional("children", Kind::Whole(0, MOST_GUESTS)),
    optional("currency", Kind::Currency),
    optional("proxy_country", Kind::Text),
    optional("free_cancellation", Kind::Flag),
];

const RESOLVE: &[Field] = &[
    required("hotel_name", Kind::Text),
    optional("proxy_country", Kind::Text),
];

/// Why the engine refuses a body.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::sandbox) enum Unreadable {
    /// 422 with its details.
    Shape(Vec<Detail>),
    /// 400 with a message (specification 2.6 and 4.4).
    Meaning(String),
}

impl From<Vec<Detail>> for Unreadable {
    fn from(details: Vec<Detail>) -> Self {
        Self::Shape(details)
    }
}

/// Nights, party, currency and market: what every priced hotel body shares.
#[derive(Clone, Debug, Deserialize)]
pub(in crate::sandbox) struct Stay {
    pub(in crate::sandbox) checkin_date: Date,
    pub(in crate::sandbox) checkout_date: Date,
    #[serde(default = "two")]
    pub(in crate::sandbox) adults: i64,
    /// None when the body did not say; the engine then echoes null.
    pub(in crate::sandbox) children: Option<i64>,
    #[serde(default = "dollars")]
    pub(in crate::sandbox) currency: String,
    pub(in crate::sandbox) proxy_country: Option<String>,
    #[serde(default)]
    pub(in crate::sandbox) free_cancellation: bool,
}

fn two() -> i64 {
    2
}

#[derive(Clone, Debug, Deserialize)]
pub(in crate::sandbox) struct HotelSearch {
    pub(in crate::sandbox) destination: String,
    #[serde(flatten)]
    pub(in crate::sandbox) stay: Stay,
    pub(in crate::sandbox) budget_per_night: Option<f64>,
    #[serde(default)]
    pub(in crate::sandbox) filters: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(in crate::sandbox) struct ByName {
    pub(in crate::sandbox) hotel_name: String,
    pub(in crate::sandbox) area: Option<String>,
    #[serde(flatten)]
    pub(in crate::sandbox) stay: Stay,
}

#[derive(Clone, Debug, Deserialize)]
pub(in crate::sandbox) struct Rooms {
    pub(in crate::sandbox) hotel_booking_id: String,
    #[serde(flatten)]
    pub(in crate::sandbox) stay: Stay,
}

#[derive(Clone, Debug, Deserialize)]
pub(in crate::sandbox) struct Resolve {
    pub(in crate::sandbox) hotel_name: String,
}

impl HotelSearch {
    /// Reads a body; `location` in place of `destination` and unknown filters have messages of their own.
    pub(in crate::sandbox) fn read(body: &Value) -> Result<Self, Unreadable> {
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
    pub(in crate::sandbox) fn read(body: &Value) -> Result<Self, Unreadable> {
        let query: Self = read(BY_NAME, body)?;
        query.stay.check(body)?;
        Ok(query)
    }
}

impl Rooms {
    pub(in crate::sandbox) fn read(body: &Value) -> Result<Self, Unreadable> {
        let query: Self = read(ROOMS, body)?;
        query.stay.check(body)?;
        Ok(query)
    }
}

impl Resolve {
    pub(in crate::sandbox) fn read(body: &Value) -> Result<Self, Unreadable> {
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

/// The answer of a hotel search (specification 2.7).
#[derive(Clone, Debug, Serialize)]
pub(in crate::sandbox) struct SearchAnswer {
    pub(in crate::sandbox) destination: String,
    pub(in crate::sandbox) checkin_date: Date,
    pub(in crate::sandbox) checkout_date: Date,
    pub(in crate::sandbox) applied_filters: Vec<String>,
    pub(in crate::sandbox) budget_per_night: Option<f64>,
    pub(in crate::sandbox) properties: Vec<PropertyRow>,
}

#[derive(Clone, Debug, Serialize)]
pub(in crate::sandbox) struct PropertyRow {
    pub(in crate::sandbox) name: String,
    pub(in crate::sandbox) price_string: String,
    pub(in crate::sandbox) price: i64,
    pub(in crate::sandbox) review_score: Option<f64>,
    pub(in crate::sandbox) review_count: Option<i64>,
    pub(in crate::sandbox) room_type: &'static str,
    pub(in crate::sandbox) location: String,
    pub(in crate::sandbox) image_url: Option<String>,
    pub(in crate::sandbox) link: String,
    pub(in crate::sandbox) nights: i64,
    pub(in crate::sandbox) adults: i64,
    pub(in crate::sandbox) children: Option<i64>,
}

/// The answer to a hotel's name (specification 2.9).
#[derive(Clone, Debug, Serialize)]
pub(in crate::sandbox) struct ByNameAnswer {
    pub(in crate::sandbox) name: String,
    pub(in crate::sandbox) available: bool,
    pub(in crate::sandbox) price_string: Option<String>,
    pub(in crate::sandbox) price: Option<i64>,
    pub(in crate::sandbox) review_score: Option<f64>,
    pub(in crate::sandbox) review_count: Option<i64>,
    pub(in crate::sandbox) room_type: Option<&'static str>,
    pub(in crate::sandbox) image_url: Option<String>,
    pub(in crate::sandbox) link: String,
    pub(in crate::sandbox) nights: i64,
    pub(in crate::sandbox) adults: i64,
    pub(in crate::sandbox) children: Option<i64>,
}

/// The rooms of a hotel (specification 2.11).
#[derive(Clone, Debug, Serialize)]
pub(in crate::sandbox) struct RoomsAnswer {
    pub(in crate::sandbox) hotel_booking_id: String,
    pub(in crate::sandbox) checkin_date: Date,
    pub(in crate::sandbox) checkout_date: Date,
    pub(in crate::sandbox) booking_url: String,
    pub(in crate::sandbox) rooms: Vec<RoomRow>,
}

#[derive(Clone, Debug, Serialize)]
pub(in crate::sandbox) struct RoomRow {
    pub(in crate::sandbox) room_type: &'static str,
    pub(in crate::sandbox) room_economy: String,
    pub(in crate::sandbox) guests: i64,
    pub(in crate::sandbox) price_as_number: i64,
    pub(in crate::sandbox) price: String,
}

/// The id of a hotel (specification 2.12).
#[derive(Clone, Debug, Serialize)]
pub(in crate::sandbox) struct ResolveAnswer {
    pub(in crate::sandbox) hotel_name: String,
    pub(in crate::sandbox) hotel_booking_id: String,
    pub(in crate::sandbox) matched_name: String,
}
