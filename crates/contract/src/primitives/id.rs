//! Ids in queries.

use crate::field::{FieldValue, invalid_value};
use crate::ids::MonitorId;
use crate::validation::ValidationErrors;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};

/// A monitor's id. Only its format is checked.
impl FieldValue for MonitorId {
    fn expected() -> Cow<'static, str> {
        "the id of a monitor: mon_ and 32 hexadecimal digits".into()
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
