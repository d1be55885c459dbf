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
pub use integer::{Adults, Children, Hour, Limit, MaxPrice, Stops};
pub(crate) use integer::{whole, whole_number};
pub use jiff::civil::Date;
pub use list::{List, NonEmpty};
pub use money::BudgetPerNight;
pub use page::{Cursor, ListFormat, PageLimit};
pub use party::{PassengerKind, Passengers, SeatType};
pub(crate) use text::text;
pub use text::{AirlineCode, Airport, CountryCode, Currency, FreeText, HotelBookingId};
pub use zone::Zone;

use super::fault::Faults;
use super::field::{FieldValue, refused};
use super::words::words;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

words! {
    /// How flight results are ordered.
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

/// Declares a JSON object that is kept as it came, with its schema and the components that the schema refers to.
macro_rules! kept_object {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident {
            schema: $schema:expr,
            parts: $parts:expr,
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name(serde_json::Map<String, serde_json::Value>);

        impl From<serde_json::Map<String, serde_json::Value>> for $name {
            fn from(fields: serde_json::Map<String, serde_json::Value>) -> Self {
                Self(fields)
            }
        }

        impl std::ops::Deref for $name {
            type Target = serde_json::Map<String, serde_json::Value>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl $crate::contract::field::FieldValue for $name {
            const KIND: $crate::contract::field::FieldKind = $crate::contract::field::FieldKind::Object;
            const COMPONENT: Option<&'static str> = Some(stringify!($name));

            fn allowed() -> std::borrow::Cow<'static, str> {
                "an object".into()
            }

            fn read(value: &serde_json::Value) -> Result<Self, $crate::contract::fault::Faults> {
                value.as_object().cloned().map(Self).ok_or_else(|| $crate::contract::field::refused::<Self>(value))
            }

            fn to_value(&self) -> serde_json::Value {
                serde_json::Value::Object(self.0.clone())
            }

            fn schema() -> utoipa::openapi::schema::Schema {
                $schema
            }

            fn parts(components: &mut $crate::contract::field::Components) {
                let parts: fn(&mut $crate::contract::field::Components) = $parts;
                parts(components);
            }
        }

        $crate::contract::describe::described!($name);
    };
}
pub(crate) use kept_object;
