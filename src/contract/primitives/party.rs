//! Who travels and in which cabin: values that are codes on the wire.

use crate::contract::fault::Faults;
use crate::contract::field::{FieldValue, refused};

use super::integer::whole;
use super::list::NonEmpty;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

/// Declares an enum whose values are integers on the wire.
macro_rules! codes {
    (
        $(#[doc = $doc:literal])+
        pub enum $name:ident: $allowed:literal {
            $( $(#[doc = $code_doc:literal])+ $variant:ident = $code:literal, )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[doc = $code_doc])+ $variant = $code, )+
        }

        impl FieldValue for $name {
            fn allowed() -> Cow<'static, str> {
                $allowed.into()
            }

            fn read(value: &Value) -> Result<Self, Faults> {
                match whole(value) {
                    $( Some($code) => Ok(Self::$variant), )+
                    _ => Err(refused::<Self>(value)),
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

codes! {
    /// The cabin (specification 2.1).
    pub enum SeatType: "1 (economy) or 3 (business)" {
        /// Economy.
        Economy = 1,
        /// Business.
        Business = 3,
    }
}

codes! {
    /// One traveller (specification 2.1).
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

/// Everyone who flies: at least one (contract 8).
pub type Passengers = NonEmpty<PassengerKind>;
