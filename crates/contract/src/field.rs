//! The fields of a body: how each is read, written and described.
//!
//! Here: [`FieldValue`], the trait of every field type, which keeps a check and its schema
//! together, and [`FieldSpec`], a row of an endpoint's field table. Not here: the field types
//! (`primitives`).

use super::validation::{ValidationError, ValidationErrors};
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Ref, RefOr};

/// Named schemas, as `utoipa` collects them.
pub(crate) type Components = Vec<(String, RefOr<Schema>)>;

/// A type that a field of a request body can have.
pub trait FieldValue: Sized {
    /// How a sweep treats such a field.
    const KIND: FieldKind = FieldKind::Scalar;
    /// The name of its OpenAPI component; `None` for an inline schema.
    const COMPONENT: Option<&'static str> = None;

    /// The accepted values, in words that complete "expected …".
    fn expected() -> Cow<'static, str>;

    /// Reads and validates a value.
    ///
    /// # Errors
    /// Paths are relative to the value: empty for the value itself, `[2]` for an element.
    fn read(value: &Value) -> Result<Self, ValidationErrors>;

    /// The value as it is sent upstream.
    fn to_value(&self) -> Value;

    /// The same rule as [`FieldValue::read`], for the OpenAPI document.
    fn schema() -> Schema;

    /// Adds the components that the schema refers to.
    fn nested_components(_: &mut Components) {}

    /// The schema for use in other schemas: inline, or a reference to the component.
    fn schema_ref() -> RefOr<Schema> {
        Self::COMPONENT.map_or_else(
            || Self::schema().into(),
            |name| Ref::from_schema_name(name).into(),
        )
    }

    /// Adds the components that [`FieldValue::schema_ref`] refers to, directly or not.
    fn components(components: &mut Components) {
        if let Some(name) = Self::COMPONENT {
            components.push((name.to_owned(), Self::schema().into()));
        }
        Self::nested_components(components);
    }
}

/// The error of a value that is not a `T`.
pub fn invalid_value<T: FieldValue>(value: &Value) -> ValidationErrors {
    ValidationError::new("", value, T::expected()).into()
}

/// How a sweep treats a field: dates take ranges, lists take lists of lists.
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

/// One row of a body's field table (gateway.md, rules 23, 24, 27, 30, 32 and 33).
#[derive(Debug, Clone, Copy)]
pub struct FieldSpec {
    /// The JSON name.
    pub name: &'static str,
    /// Whether a body without it is invalid.
    pub required: bool,
    /// How a sweep treats it.
    pub kind: FieldKind,
    /// Its OpenAPI description.
    pub doc: &'static str,
    /// The documented default, as JSON. Never sent upstream (gateway.md, rule 2).
    pub default: Option<fn() -> Value>,
    /// The fields that this alias sets (gateway.md, rule 5); empty for a normal field.
    pub alias_of: &'static [&'static str],
    /// Validates one value alone and returns it as it goes upstream.
    pub read: fn(&Value) -> Result<Value, ValidationErrors>,
    /// The accepted values, in words.
    pub expected: fn() -> Cow<'static, str>,
    /// The value's schema, inline or a reference.
    pub schema: fn() -> RefOr<Schema>,
    /// Adds the components that the schema refers to, directly or not.
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
            expected: T::expected,
            schema: T::schema_ref,
            components: T::components,
        }
    }

    /// The same row with a documented default.
    pub(crate) const fn with_default(mut self, default: fn() -> Value) -> Self {
        self.default = Some(default);
        self
    }

    /// The same row as an alias of other fields of the table.
    pub(crate) const fn alias_for(mut self, targets: &'static [&'static str]) -> Self {
        self.alias_of = targets;
        self
    }

    /// The documented default.
    pub fn default_value(&self) -> Option<Value> {
        self.default.map(|default| default())
    }
}
