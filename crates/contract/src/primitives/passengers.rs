//! Passengers and cabin: integer codes in JSON.

use crate::field::{FieldValue, invalid_value};
use crate::validation::ValidationErrors;

use super::integer::non_negative_integer;
use super::list::NonEmpty;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

/// Declares an enum whose values are integers in JSON.
macro_rules! integer_enum {
    (
        $(#[doc = $doc:literal])+
        pub enum $name:ident: $expected:literal {
            $( $(#[doc = $code_doc:literal])+ $variant:ident = $code:literal, )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[doc = $code_doc])+ $variant = $code, )+
        }

        impl FieldValue for $name {
            fn expected() -> Cow<'static, str> {
                $expected.into()
            }

            fn read(value: &Value) -> Result<Self, ValidationErrors> {
                match non_negative_integer(value) {
                    $( Some($code) => Ok(Self::$variant), )+
                    _ => Err(invalid_value::<Self>(value)),
                }
            }

            fn to_value(&self) -> Value {
                (*self as u8).into()
            }

            fn schema() -> Schema {
                ObjectBuilder::new()
                    .schema_type(Type::Integer)
                    .enum_values(Some([$( $code ),+]))
                    .into()
            }
        }
    };
}

integer_enum! {
    /// The cabin (gateway.md, rule 23).
    pub enum SeatType: "1 (economy) or 3 (business)" {
        /// Economy.
        Economy = 1,
        /// Business.
        Business = 3,
    }
}

integer_enum! {
    /// The type of one passenger (gateway.md, rule 23).
    pub enum PassengerKind: "1 (adult), 2 (child), 3 (infant on lap) or 4 (infant in seat)" {
        /// Adult.
        Adult = 1,
        /// Child.
        Child = 2,
        /// Infant on a lap.
        InfantOnLap = 3,
        /// Infant in a seat.
        InfantInSeat = 4,
    }
}

/// The passengers: at least one (gateway.md, rule 8).
pub type Passengers = NonEmpty<PassengerKind>;
