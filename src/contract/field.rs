//! What one field of a body is: how it is read, sent on and described.
//!
//! Here: [`FieldValue`], the one trait behind every field type, so that a check and its description cannot drift
//! apart, and [`FieldSpec`], a row of an endpoint's field table. Not here: the field types (`primitives`).

use super::fault::{Fault, Faults};
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Ref, RefOr};

/// Named schemas, as `utoipa` collects them.
pub(crate) type Components = Vec<(String, RefOr<Schema>)>;

/// A type that a field of a request body can have.
pub trait FieldValue: Sized {
    /// What a sweep may do with such a field.
    const KIND: FieldKind = FieldKind::Scalar;
    /// The name under which the description has it as a component; `None` for what stands inline.
    const COMPONENT: Option<&'static str> = None;

    /// What is accepted, in words that complete "allowed: …".
    fn allowed() -> Cow<'static, str>;

    /// Reads and checks a value. The faults' paths are relative to it: empty for the value itself, `[2]` for an
    /// element.
    fn read(value: &Value) -> Result<Self, Faults>;

    /// The value as it is sent upstream.
    fn to_value(&self) -> Value;

    /// The same rule as [`FieldValue::read`], for the interface description.
    fn schema() -> Schema;

    /// Adds the components that the schema refers to.
    fn parts(_: &mut Components) {}

    /// The schema as other schemas hold it: inline, or a reference to the component.
    fn referred() -> RefOr<Schema> {
        Self::COMPONENT.map_or_else(
            || Self::schema().into(),
            |name| Ref::from_schema_name(name).into(),
        )
    }

    /// Adds the components that [`FieldValue::referred`] leads to.
    fn components(components: &mut Components) {
        if let Some(name) = Self::COMPONENT {
            components.push((name.to_owned(), Self::schema().into()));
        }
        Self::parts(components);
    }
}

/// The fault of a value that is not a `T`.
pub(crate) fn refused<T: FieldValue>(value: &Value) -> Faults {
    Fault::new("", value, T::allowed()).into()
}

/// What a sweep may do with a field: dates take ranges, lists take lists of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A calendar date.
    Date,
    /// A JSON array.
    List,
    /// A JSON object.
    Object,
    /// A string, number or boolean.
    Scalar,
}

/// One row of a body's field table (specification 2.1, 2.2, 2.5, 2.8, 2.10, 2.12).
#[derive(Debug, Clone, Copy)]
pub struct FieldSpec {
    /// The exact wire name.
    pub name: &'static str,
    /// Whether a body without it is refused.
    pub required: bool,
    /// What a sweep may do with it.
    pub kind: FieldKind,
    /// What it means, for people.
    pub doc: &'static str,
    /// The documented default, as JSON. Never sent upstream (contract 2).
    pub default: Option<fn() -> Value>,
    /// The fields that this one stands for when it is only an alias (specification 4.2), else empty.
    pub alias_of: &'static [&'static str],
    /// Checks one value by itself and gives it as it would be sent upstream.
    pub read: fn(&Value) -> Result<Value, Faults>,
    /// What is accepted, in words.
    pub allowed: fn() -> Cow<'static, str>,
    /// The value's schema, inline or by name.
    pub schema: fn() -> RefOr<Schema>,
    /// Adds the components that the schema leads to.
    pub(crate) components: fn(&mut Components),
}

impl FieldSpec {
    /// The row of a required field of type `T`.
    pub(crate) const fn required<T: FieldValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            required: true,
            ..Self::optional::<T>(name, doc)
        }
    }

    /// The row of an optional field of type `T`.
    pub(crate) const fn optional<T: FieldValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            required: false,
            kind: T::KIND,
            doc: doc.trim_ascii(),
            default: None,
            alias_of: &[],
            read: |value| T::read(value).map(|read| read.to_value()),
            allowed: T::allowed,
            schema: T::referred,
            components: T::components,
        }
    }

    /// The same row with a documented default.
    pub(crate) const fn with_default(mut self, default: fn() -> Value) -> Self {
        self.default = Some(default);
        self
    }

    /// The same row as an alias of other fields of the table.
    pub(crate) const fn standing_for(mut self, targets: &'static [&'static str]) -> Self {
        self.alias_of = targets;
        self
    }

    /// The documented default, if there is one.
    #[must_use]
    pub fn default_value(&self) -> Option<Value> {
        self.default.map(|default| default())
    }
}
