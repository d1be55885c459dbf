//! The budget of a hotel search. Prices of responses are in `offer`.

use crate::field::{FieldValue, invalid_value};
use crate::validation::ValidationErrors;
use serde_json::{Number, Value};
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

/// The highest price PER NIGHT in the request currency: a number above 0, kept as written
/// (gateway.md, rules 8 and 27).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BudgetPerNight(Number);

impl BudgetPerNight {
    /// The amount, for comparison with prices.
    pub fn get(&self) -> f64 {
        self.0.as_f64().unwrap_or(f64::INFINITY)
    }
}

impl FieldValue for BudgetPerNight {
    fn expected() -> Cow<'static, str> {
        "a number above 0".into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        match value {
            Value::Number(number) if number.as_f64().is_some_and(|amount| amount > 0.0) => {
                Ok(Self(number.clone()))
            }
            _ => Err(invalid_value::<Self>(value)),
        }
    }

    fn to_value(&self) -> Value {
        Value::Number(self.0.clone())
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::Number)
            .exclusive_minimum(Some(0_u8))
            .into()
    }
}
