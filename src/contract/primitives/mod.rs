//! The values that fields hold, each of which cannot exist unless it obeys its rule (contract 8, 9).
//!
//! Here: one type per kind of value with its check, its words for a fault and its schema side by side. Not here: which
//! body has which field (`flights`, `hotels`, `scans`).

mod date;
mod hotel;
mod id;
mod integer;
mod list;
mod money;
mod page;
mod party;
mod text;
mod zone;

pub use hotel::HotelFilter;
pub(crate) use integer::whole_number;
pub use integer::{Adults, Children, Hour, Limit, MaxPrice, Stops};
pub use jiff::civil::Date;
pub use list::{List, NonEmpty};
pub use money::BudgetPerNight;
pub use page::{Cursor, PageLimit};
pub use party::{PassengerKind, Passengers, SeatType};
pub(crate) use text::text;
pub use text::{AirlineCode, Airport, CountryCode, Currency, FreeText, HotelBookingId};
pub use zone::Zone;

use super::fault::Faults;
use super::field::{FieldKind, FieldValue, refused};
use super::words::words;
use serde_json::{Map, Value};
use std::borrow::Cow;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};

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

/// Any JSON object, kept as it came.
impl FieldValue for Map<String, Value> {
    const KIND: FieldKind = FieldKind::Object;

    fn allowed() -> Cow<'static, str> {
        "an object".into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        value.as_object().cloned().ok_or_else(|| refused::<Self>(value))
    }

    fn to_value(&self) -> Value {
        Value::Object(self.clone())
    }

    fn schema() -> Schema {
        ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(true))).into()
    }
}
