//! Calendar dates and times.

use crate::contract::fault::Faults;
use crate::contract::field::{FieldKind, FieldValue, refused};
use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};

/// A date that exists, written `YYYY-MM-DD` (specification 2, contract 8).
impl FieldValue for Date {
    const KIND: FieldKind = FieldKind::Date;

    fn allowed() -> Cow<'static, str> {
        "a date that exists, as YYYY-MM-DD".into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        value
            .as_str()
            .and_then(written)
            .ok_or_else(|| refused::<Self>(value))
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

/// jiff reads more forms than the specification allows (`20270113`, a date with a time, years before 0), so the text must
/// also be what the date is written as.
fn written(text: &str) -> Option<Date> {
    let date: Date = text.parse().ok()?;
    (date.year() >= 0 && date.to_string() == text).then_some(date)
}

/// The first moment that RFC 3339 can write. jiff reads times from the year -9999 on, which Postgres does not have; the last moment of both is
/// in the year 9999.
const YEAR_0: Timestamp = Timestamp::constant(-62_167_219_200, 0);

/// A time with its offset, as RFC 3339.
impl FieldValue for Timestamp {
    fn allowed() -> Cow<'static, str> {
        "a time with its offset in the years 0 to 9999, as 2027-01-13T08:00:00Z".into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        let time = value
            .as_str()
            .and_then(|text| text.parse().ok())
            .filter(|time| *time >= YEAR_0);
        time.ok_or_else(|| refused::<Self>(value))
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
