//! The values that fields hold, each of which cannot exist unless it obeys its rule (contract 8, 9).
//!
//! Here: one type per kind of value with its check, its words for a fault and its schema side by side. Not here: which
//! body has which field (`flights`, `hotels`, `scans`).

mod date;
mod hotel;
mod integer;
mod money;
mod party;
mod text;

pub use hotel::HotelFilter;
pub use integer::{Adults, Children, Hour, Limit, MaxPrice, Stops};
pub use jiff::civil::Date;
pub use money::BudgetPerNight;
pub use party::{PassengerKind, Passengers, SeatType};
pub use text::{AirlineCode, Airport, CountryCode, Currency, FreeText, HotelBookingId};

use super::fault::Faults;
use super::field::{FieldValue, refused};
use super::words::words;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

words! {
    /// How flight results are ordered (specification 2.1).
    pub enum SortType {
        /// The provider's own order.
        Overall = "Overall",
        /// Cheapest first.
        Price = "Price",
        /// Shortest first.
        Duration = "Duration",
    }
}

impl FieldValue for bool {
    fn allowed() -> Cow<'static, str> {
        "true or false".into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        value.as_bool().ok_or_else(|| refused::<Self>(value))
    }

    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }

    fn schema() -> Schema {
        ObjectBuilder::new().schema_type(Type::Boolean).into()
    }
}
