//! Ids in queries and bodies.

use crate::field::{FieldValue, invalid_value};
use crate::ids::{ChannelId, MonitorId, ResourceId};
use crate::validation::ValidationErrors;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};

/// Declares ids as fields. Only their format is checked.
macro_rules! id_fields {
    ($($name:ident),+) => { $(
        impl FieldValue for $name {
            fn expected() -> Cow<'static, str> {
                let kind = <Self as ResourceId>::KIND;
                let (noun, prefix) = (kind.noun(), kind.prefix());
                format!("the id of a {noun}: {prefix}_ and 32 hexadecimal digits").into()
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
    )+ };
}

id_fields!(MonitorId, ChannelId);
