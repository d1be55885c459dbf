//! The `sweep` of a scan: which fields take which values.
//!
//! Here: its shape. Not here: whether the endpoint has the swept fields and accepts their values,
//! and the resulting searches (`scans::plan`).

use crate::body_schema::{field_schema, impl_to_schema};
use crate::endpoint::Endpoint;
use crate::field::{Components, FieldKind, FieldSpec, FieldValue, invalid_value};
use crate::primitives::{Date, NonEmpty, bounded_integer};
use crate::request_body::request_body;
use crate::string_enum::string_enum;
use crate::validation::ValidationErrors;
use serde_json::{Map, Value};
use std::borrow::Cow;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType,
};
use utoipa::openapi::{Ref, RefOr};

/// The swept fields in the caller's order, and `nights` and `samples`, which are not fields
/// (scans.md, rules 9 and 10).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sweep {
    /// Field name → values. The names are not checked here.
    pub fields: Vec<(String, SweepValue)>,
    /// Lengths of stay: each sets `return_date` or `checkout_date` from the start date.
    pub nights: Option<NonEmpty<Nights>>,
    /// How often every combination is searched.
    pub samples: Option<Samples>,
}

impl Sweep {
    /// Reads one entry of a sweep; null is the same as absent.
    ///
    /// # Errors
    /// Its validation errors, relative to the entry. Nothing is added then.
    pub fn read_entry(&mut self, name: &str, value: &Value) -> Result<(), ValidationErrors> {
        match name {
            _ if value.is_null() => {}
            "nights" => self.nights = Some(FieldValue::read(value)?),
            "samples" => self.samples = Some(FieldValue::read(value)?),
            _ => self
                .fields
                .push((name.to_owned(), FieldValue::read(value)?)),
        }
        Ok(())
    }
}

/// The values of one swept field.
#[derive(Debug, Clone, PartialEq)]
pub enum SweepValue {
    /// These values, as given; at least one. For a field that is itself a list: a list of lists.
    Values(Vec<Value>),
    /// For date fields: a range of days.
    Range(DateRange),
}

string_enum! {
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

impl Weekday {
    /// Their names in English, from Monday.
    pub const NAMES: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];

    /// The days from one to another, both included, also over a Sunday.
    pub fn range(self, last: Self) -> Vec<Self> {
        let count = (last as usize + 7 - self as usize) % 7 + 1;
        let all = Self::ALL.iter().cycle().skip(self as usize);
        all.take(count).copied().collect()
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

bounded_integer! {
    /// Nights of a stay or between two flights.
    pub struct Nights(u16): 1..=366;
}

bounded_integer! {
    /// Days from one date of a range to the next.
    pub struct StepDays(u16): 1..=366;
}

impl StepDays {
    /// Every day.
    pub const ONE: Self = Self(1);
}

bounded_integer! {
    /// How often every combination is searched, because prices are noisy.
    pub struct Samples(u8): 1..=10;
}

request_body! {
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
const SAMPLES: FieldSpec =
    FieldSpec::optional::<Samples>("samples", "How often every combination is searched.");

impl FieldValue for Sweep {
    const KIND: FieldKind = FieldKind::Object;
    const COMPONENT: Option<&'static str> = Some("Sweep");

    fn expected() -> Cow<'static, str> {
        "an object of field names, each with its values".into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        let Value::Object(object) = value else {
            return Err(invalid_value::<Self>(value));
        };
        let (mut sweep, mut errors) = (Self::default(), ValidationErrors::default());
        for (name, value) in object {
            if let Err(wrong) = sweep.read_entry(name, value) {
                errors.merge(wrong.prefix(name));
            }
        }
        errors.ok_if_empty(|| Some(sweep))
    }

    fn to_value(&self) -> Value {
        let mut object: Map<_, _> = self
            .fields
            .iter()
            .map(|(name, values)| (name.clone(), values.to_value()))
            .collect();
        if let Some(nights) = &self.nights {
            object.insert(NIGHTS.name.to_owned(), nights.to_value());
        }
        if let Some(samples) = &self.samples {
            object.insert(SAMPLES.name.to_owned(), samples.to_value());
        }
        Value::Object(object)
    }

    fn schema() -> Schema {
        sweep_schema(SweepValue::schema_ref).into()
    }

    fn nested_components(components: &mut Components) {
        SweepValue::components(components);
    }
}

impl_to_schema!(Sweep);

/// The schema of a sweep over the fields of all endpoints, each with the schema `value`.
pub(crate) fn sweep_schema(value: fn() -> RefOr<Schema>) -> ObjectBuilder {
    let object = ObjectBuilder::new()
        .description(Some(
            "The swept fields of the endpoint, each with its values.",
        ))
        .additional_properties(Some(AdditionalProperties::FreeForm(false)));
    let swept = Endpoint::search_fields()
        .into_iter()
        .map(|field| FieldSpec {
            schema: value,
            default: None,
            ..*field
        });
    swept
        .chain([NIGHTS, SAMPLES])
        .fold(object, |object, field| {
            object.property(field.name, field_schema(&field))
        })
}

impl FieldValue for SweepValue {
    const COMPONENT: Option<&'static str> = Some("SweepValue");

    fn expected() -> Cow<'static, str> {
        "a list of at least one value, or for a date field a range {from, to, step_days?, weekdays?}".into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        match value {
            Value::Array(values) if !values.is_empty() => Ok(Self::Values(values.clone())),
            Value::Object(range) => DateRange::from_body(range).map(Self::Range),
            _ => Err(invalid_value::<Self>(value)),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Values(values) => Value::Array(values.clone()),
            Self::Range(range) => range.to_value(),
        }
    }

    fn schema() -> Schema {
        sweep_value_schema(DateRange::schema_ref()).into()
    }

    fn nested_components(components: &mut Components) {
        components.push((SWEEP_VALUES.to_owned(), sweep_values()));
        DateRange::components(components);
    }
}

/// The component of a list of values.
pub(crate) const SWEEP_VALUES: &str = "SweepValues";

/// The schema of a swept field: values, or for a date this range.
pub(crate) fn sweep_value_schema(range: RefOr<Schema>) -> OneOfBuilder {
    let meaning = "The values of a swept field, or for a date field a range of days.";
    OneOfBuilder::new()
        .description(Some(meaning))
        .item(Ref::from_schema_name(SWEEP_VALUES))
        .item(range)
}

/// Any values: a list may contain lists, for a field that is itself a list.
pub(crate) fn sweep_values() -> RefOr<Schema> {
    let any = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
    ArrayBuilder::new()
        .items(any)
        .min_items(Some(1))
        .description(Some(
            "The values of a swept field, as its endpoint accepts them.",
        ))
        .into()
}
