//! Amounts that a caller sets. Prices of answers are in `offer`.

use crate::contract::fault::Faults;
use crate::contract::field::{FieldValue, refused};
use serde_json::{Number, Value};
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

/// The highest price PER NIGHT in the request currency: a number above 0, kept as it was written (specification 2.5,
/// contract 8).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BudgetPerNight(Number);

impl BudgetPerNight {
    /// The amount, to compare prices with.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.0.as_f64().unwrap_or(f64::INFINITY)
    }
}

impl FieldValue for BudgetPerNight {
    fn allowed() -> Cow<'static, str> {
        "a number above 0".into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        match value {
            Value::Number(number) if number.as_f64().is_some_and(|amount| amount > 0.0) => {
                Ok(Self(number.clone()))
            }
            _ => Err(refused::<Self>(value)),
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
