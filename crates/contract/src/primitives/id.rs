//! Ids in queries and bodies.

use crate::field::{FieldValue, invalid_value};
use crate::ids::{ChannelId, MonitorId};
use crate::validation::ValidationErrors;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};

/// Declares an id as a field. Only its format is checked.
macro_rules! id_field {
    ($name:ident, $expected:literal) => {
        impl FieldValue for $name {
            fn expected() -> Cow<'static, str> {
                $expected.into()
            }

            fn read(value: &Value) -> Result<Self, ValidationErrors> {
                value
                    .as_str()
                    .and_then(|text| text.parse().ok())
                    .ok_or_else(|| invalid_value::<Self>(value))
            }

            fn to_value(&self) -> Value {
                self.to_string().into()
            }

            fn schema() -> Schema {
                match <Self as utoipa::PartialSchema>::schema() {
                    RefOr::T(schema) => schema,
                    RefOr::Ref(_) => ObjectBuilder::new().into(),
                }
            }
        }
    };
}

id_field!(
    MonitorId,
    "the id of a monitor: mon_ and 32 hexadecimal digits"
);
id_field!(
    ChannelId,
    "the id of a channel: chn_ and 32 hexadecimal digits"
);
