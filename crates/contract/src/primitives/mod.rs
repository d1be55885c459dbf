//! Types of field values, each valid by construction (gateway.md, rules 8 and 9).
//!
//! Here: one type per kind of value with its check, its `expected` text and its schema. Not here:
//! the fields of each body (`flights`, `hotels`, `scans`).

mod budget;
mod date;
mod hotel_filter;
mod id;
mod integer;
mod list;
mod page;
mod passengers;
mod text;
mod time_zone;

pub use budget::BudgetPerNight;
pub use date::is_accepted_time;
pub use hotel_filter::HotelFilter;
pub use integer::{Adults, Children, Hour, Limit, MaxPrice, Stops};
pub(crate) use integer::{bounded_integer, non_negative_integer};
pub use jiff::civil::Date;
pub use list::{BoundedList, NonEmpty};
pub use page::{Cursor, ListFormat, PageLimit};
pub use passengers::{PassengerKind, Passengers, SeatType};
pub use text::{AirlineCode, Airport, CountryCode, Currency, FreeText, HotelBookingId};
pub(crate) use text::{MAX_URL_CHARS, is_mail_address, is_name, is_receiver, text_type};
pub use time_zone::TimeZoneName;

use super::field::{FieldValue, invalid_value};
use super::string_enum::string_enum;
use super::validation::ValidationErrors;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

string_enum! {
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
    fn expected() -> Cow<'static, str> {
        "true or false".into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        value.as_bool().ok_or_else(|| invalid_value::<Self>(value))
    }

    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }

    fn schema() -> Schema {
        ObjectBuilder::new().schema_type(Type::Boolean).into()
    }
}

/// Declares a type for an unchanged JSON object, with its schema and the components that the schema
/// refers to.
macro_rules! raw_object {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident {
            schema: $schema:expr,
            nested_components: $nested_components:expr,
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

        impl $crate::field::FieldValue for $name {
            const KIND: $crate::field::FieldKind = $crate::field::FieldKind::Object;
            const COMPONENT: Option<&'static str> = Some(stringify!($name));

            fn expected() -> std::borrow::Cow<'static, str> {
                "an object".into()
            }

            fn read(value: &serde_json::Value) -> Result<Self, $crate::validation::ValidationErrors> {
                value.as_object().cloned().map(Self).ok_or_else(|| $crate::field::invalid_value::<Self>(value))
            }

            fn to_value(&self) -> serde_json::Value {
                serde_json::Value::Object(self.0.clone())
            }

            fn schema() -> utoipa::openapi::schema::Schema {
                $schema
            }

            fn nested_components(components: &mut $crate::field::Components) {
                let nested_components: fn(&mut $crate::field::Components) = $nested_components;
                nested_components(components);
            }
        }

        $crate::body_schema::impl_to_schema!($name);
    };
}
pub(crate) use raw_object;
