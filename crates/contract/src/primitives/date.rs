//! Calendar dates and times.

use crate::field::{FieldKind, FieldValue, invalid_value};
use crate::validation::ValidationErrors;
use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};

/// A date that exists, written `YYYY-MM-DD` (gateway.md, rules 8 and 22).
impl FieldValue for Date {
    const KIND: FieldKind = FieldKind::Date;

    fn expected() -> Cow<'static, str> {
        "a date that exists, as YYYY-MM-DD".into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        value
            .as_str()
            .and_then(parse_exact)
            .ok_or_else(|| invalid_value::<Self>(value))
    }

    fn to_value(&self) -> Value {
        self.to_string().into()
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
            .examples(["2027-01-13"])
            .into()
    }
}

/// jiff parses more formats than gateway.md, rule 22, allows (`20270113`, a date with a time, years
/// before 0), so the date must also format to the same text.
fn parse_exact(text: &str) -> Option<Date> {
    let date: Date = text.parse().ok()?;
    (date.year() >= 0 && date.to_string() == text).then_some(date)
}

/// The earliest time of RFC 3339. jiff has times from the year -9999 on, which Postgres cannot
/// store; both end in the year 9999.
const YEAR_0: Timestamp = Timestamp::constant(-62_167_219_200, 0);

/// Whether a time is in the years 0 to 9999. Every time that a client sends must be, in a field or
/// in a cursor.
pub fn is_accepted_time(time: &Timestamp) -> bool {
    *time >= YEAR_0
}

/// A time with its offset, as RFC 3339.
impl FieldValue for Timestamp {
    fn expected() -> Cow<'static, str> {
        "a time with its offset in the years 0 to 9999, as 2027-01-13T08:00:00Z".into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        let time = value
            .as_str()
            .and_then(|text| text.parse().ok())
            .filter(is_accepted_time);
        time.ok_or_else(|| invalid_value::<Self>(value))
    }

    fn to_value(&self) -> Value {
        self.to_string().into()
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .examples(["2027-01-13T08:00:00Z"])
            .into()
    }
}
