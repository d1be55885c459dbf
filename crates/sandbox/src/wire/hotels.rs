//! The hotels engine's bodies: gateway.md, rules 27 to 33 under the native paths.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape::BodyFieldKind as Kind;
use super::shape::{BodyField, Detail, optional, read, required, value_error};
use crate::draws::days_between;
use crate::world::filters::filter_names;
use crate::world::money::SandboxCurrency;

const MOST_GUESTS: i64 = 30;

/// The dates of every priced body.
const STAY: &[BodyField] = &[
    required("checkin_date", Kind::Date),
    required("checkout_date", Kind::Date),
];
/// The party of every priced body.
const PARTY: &[BodyField] = &[
    optional("adults", Kind::Whole(1, MOST_GUESTS)),
    optional("children", Kind::Whole(0, MOST_GUESTS)),
    optional("currency", Kind::Currency),
    PROXY_COUNTRY,
];
const DESTINATION: BodyField = required("destination", Kind::Text);
const BUDGET: BodyField = optional("budget_per_night", Kind::Amount);
const FILTER_LIST: BodyField = optional("filters", Kind::TEXTS);
const HOTEL_NAME: BodyField = required("hotel_name", Kind::Text);
const HOTEL_ID: BodyField = required("hotel_booking_id", Kind::Text);
const AREA: BodyField = optional("area", Kind::Text);
const CANCELLATION: BodyField = optional("free_cancellation", Kind::Flag);
const PROXY_COUNTRY: BodyField = optional("proxy_country", Kind::Text);

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
    #[serde(
        default = "SandboxCurrency::dollar",
        deserialize_with = "SandboxCurrency::of_code"
    )]
    pub(crate) currency: &'static SandboxCurrency,
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
        let search: Self = read(&[&[DESTINATION], STAY, PARTY, &[BUDGET, FILTER_LIST]], body)?;
        let (known, mut filters) = (filter_names(), search.filters.iter());
        if let Some(unknown) = filters.find(|filter| !known.contains(&filter.as_str())) {
            let known = known.join(", ");
            let text = format!("Unrecognised filter {unknown:?}. Valid filters: {known}");
            return Err(Unreadable::Meaning(text));
        }
        search.stay.check(body)?;
        Ok(search)
    }
}

impl ByName {
    pub(crate) fn read(body: &Value) -> Result<Self, Unreadable> {
        let query: Self = read(
            &[&[HOTEL_NAME], STAY, &[AREA], PARTY, &[CANCELLATION]],
            body,
        )?;
        query.stay.check(body)?;
        Ok(query)
    }
}

impl Rooms {
    pub(crate) fn read(body: &Value) -> Result<Self, Unreadable> {
        let query: Self = read(&[&[HOTEL_ID], STAY, PARTY, &[CANCELLATION]], body)?;
        query.stay.check(body)?;
        Ok(query)
    }
}

impl Resolve {
    pub(crate) fn read(body: &Value) -> Result<Self, Unreadable> {
        Ok(read(&[&[HOTEL_NAME, PROXY_COUNTRY]], body)?)
    }
}

impl Stay {
    pub(crate) fn nights(&self) -> i64 {
        days_between(self.checkin_date, self.checkout_date)
    }

    fn check(&self, body: &Value) -> Result<(), Vec<Detail>> {
        if self.checkout_date > self.checkin_date {
            Ok(())
        } else {
            let message = "checkout_date is not after checkin_date";
            Err(value_error("checkout_date", message, body))
        }
    }
}

/// A hotel in the answer to a search or to its name (gateway.md, rules 29 and 31).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HotelRow {
    pub(crate) name: String,
    /// Only in the answer to a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available: Option<bool>,
    pub(crate) price_string: Option<String>,
    pub(crate) price: Option<i64>,
    pub(crate) review_score: Option<f64>,
    pub(crate) review_count: Option<i64>,
    pub(crate) room_type: Option<&'static str>,
    /// Only in the answer to a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) location: Option<String>,
    pub(crate) image_url: Option<String>,
    pub(crate) link: String,
    pub(crate) nights: i64,
    pub(crate) adults: i64,
    pub(crate) children: Option<i64>,
}

/// A room of a hotel (gateway.md, rule 32).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RoomRow {
    pub(crate) room_type: &'static str,
    pub(crate) room_economy: String,
    pub(crate) guests: i64,
    pub(crate) price_as_number: i64,
    pub(crate) price: String,
}
