//! The `sweep` of a scan: which fields take which values.
//!
//! Here: its shape. Not here: whether a swept field exists and its values fit, and which searches come of it
//! (`scans::plan`, which has the endpoint's table).

use crate::contract::declare::request;
use crate::contract::fault::Faults;
use crate::contract::field::{FieldKind, FieldSpec, FieldValue, refused};
use crate::contract::primitives::{Date, NonEmpty, whole_number};
use crate::contract::words::words;
use serde_json::{Map, Value};
use std::borrow::Cow;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema};

/// The swept fields in the caller's order, and the two words that are not fields.
///
/// jobs-api lists `nights` and `samples` in the paragraph of `sweep`, so both are read here: `sweep.nights`,
/// `sweep.samples`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sweep {
    /// Field name → values. The names are not checked here.
    pub fields: Vec<(String, SweepValue)>,
    /// Lengths of stay: each sets `return_date` or `checkout_date` from the start date.
    pub nights: Option<NonEmpty<Nights>>,
    /// How often every combination is asked.
    pub samples: Option<Samples>,
}

impl Sweep {
    /// Reads one word of a sweep; null is the same as absent.
    ///
    /// # Errors
    /// Its faults, relative to the word. Nothing is added then.
    pub fn read_word(&mut self, name: &str, value: &Value) -> Result<(), Faults> {
        match name {
            _ if value.is_null() => {}
            "nights" => self.nights = Some(FieldValue::read(value)?),
            "samples" => self.samples = Some(FieldValue::read(value)?),
            _ => self.fields.push((name.to_owned(), FieldValue::read(value)?)),
        }
        Ok(())
    }
}

/// What one field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum SweepValue {
    /// These values, as given; at least one. For a field that is itself a list: a list of lists.
    Values(Vec<Value>),
    /// For date fields: a range of days.
    Range(DateRange),
}

words! {
    /// A day of the week.
    pub enum Weekday {
        /// Monday.
        Monday = "mon",
        /// Tuesday.
        Tuesday = "tue",
        /// Wednesday.
        Wednesday = "wed",
        /// Thursday.
        Thursday = "thu",
        /// Friday.
        Friday = "fri",
        /// Saturday.
        Saturday = "sat",
        /// Sunday.
        Sunday = "sun",
    }
}

impl From<Weekday> for jiff::civil::Weekday {
    fn from(day: Weekday) -> Self {
        match day {
            Weekday::Monday => Self::Monday,
            Weekday::Tuesday => Self::Tuesday,
            Weekday::Wednesday => Self::Wednesday,
            Weekday::Thursday => Self::Thursday,
            Weekday::Friday => Self::Friday,
            Weekday::Saturday => Self::Saturday,
            Weekday::Sunday => Self::Sunday,
        }
    }
}

whole_number! {
    /// Nights of a stay or between two flights.
    pub struct Nights(u16): 1..=366;
}

whole_number! {
    /// Days from one date of a range to the next.
    pub struct StepDays(u16): 1..=366;
}

impl StepDays {
    /// Every day.
    pub const ONE: Self = Self(1);
}

whole_number! {
    /// How often every combination is asked, because prices are noisy.
    pub struct Samples(u8): 1..=10;
}

request! {
    /// A range of days, both ends included.
    pub struct DateRange for "a range of dates" {
        required {
            /// The first day.
            from: Date;
            /// The last day, if a step lands on it.
            to: Date;
        }
        optional {
            /// Days from one date to the next.
            step_days: StepDays = StepDays::ONE => step_days_or_default;
            /// Of those, only these days of the week.
            weekdays: NonEmpty<Weekday>;
        }
        order { to not_before from; }
        example { "from": "2027-01-01", "to": "2027-01-31", "weekdays": ["thu", "fri"] }
    }
}

const NIGHTS: FieldSpec = FieldSpec::optional::<NonEmpty<Nights>>(
    "nights",
    "Lengths of stay: each sets `return_date` or `checkout_date` from the start date.",
);
const SAMPLES: FieldSpec = FieldSpec::optional::<Samples>("samples", "How often every combination is asked.");

impl FieldValue for Sweep {
    const KIND: FieldKind = FieldKind::Object;

    fn allowed() -> Cow<'static, str> {
        "an object of field names, each with its values".into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        let Value::Object(object) = value else {
            return Err(refused::<Self>(value));
        };
        let (mut sweep, mut faults) = (Self::default(), Faults::default());
        for (name, value) in object {
            if let Err(wrong) = sweep.read_word(name, value) {
                faults.merge(wrong.prefix(name));
            }
        }
        faults.or_else_build(|| Some(sweep))
    }

    fn to_value(&self) -> Value {
        let mut object: Map<_, _> = self.fields.iter().map(|(name, values)| (name.clone(), values.to_value())).collect();
        if let Some(nights) = &self.nights {
            object.insert(NIGHTS.name.to_owned(), nights.to_value());
        }
        if let Some(samples) = &self.samples {
            object.insert(SAMPLES.name.to_owned(), samples.to_value());
        }
        Value::Object(object)
    }

    fn schema() -> Schema {
        let swept = AdditionalProperties::RefOr(SweepValue::schema().into());
        let mut object = ObjectBuilder::new().additional_properties(Some(swept));
        for word in [NIGHTS, SAMPLES] {
            object = object.property(word.name, crate::contract::describe::field_schema(&word));
        }
        object.into()
    }
}

impl FieldValue for SweepValue {
    fn allowed() -> Cow<'static, str> {
        "a list of at least one value, or for a date field a range {from, to, step_days?, weekdays?}".into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        match value {
            Value::Array(values) if !values.is_empty() => Ok(Self::Values(values.clone())),
            Value::Object(range) => DateRange::from_body(range).map(Self::Range),
            _ => Err(refused::<Self>(value)),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Values(values) => Value::Array(values.clone()),
            Self::Range(range) => range.to_value(),
        }
    }

    fn schema() -> Schema {
        let any = ObjectBuilder::new().schema_type(utoipa::openapi::schema::SchemaType::AnyValue);
        let values =
            utoipa::openapi::schema::ArrayBuilder::new().items(any).min_items(Some(1)).description(Some("These values."));
        OneOfBuilder::new().item(values).item(DateRange::schema()).into()
    }
}
