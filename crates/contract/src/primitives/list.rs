//! Lists, whose errors name the element (`filters[0]`).

use crate::field::{Components, FieldKind, FieldValue, invalid_value};
use crate::validation::ValidationErrors;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{Array, Schema};

/// A list of any length.
impl<T: FieldValue> FieldValue for Vec<T> {
    const KIND: FieldKind = FieldKind::List;

    fn expected() -> Cow<'static, str> {
        format!("a list, each element {}", T::expected()).into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        let Value::Array(elements) = value else {
            return Err(invalid_value::<Self>(value));
        };
        let mut errors = ValidationErrors::default();
        let mut list = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            match T::read(element) {
                Ok(read) => list.push(read),
                Err(wrong) => errors.merge(wrong.prefix(&format!("[{index}]"))),
            }
        }
        errors.ok_if_empty(|| Some(list))
    }

    fn to_value(&self) -> Value {
        self.iter().map(FieldValue::to_value).collect()
    }

    fn schema() -> Schema {
        Array::new(T::schema_ref()).into()
    }

    fn nested_components(components: &mut Components) {
        T::components(components);
    }
}

/// A list of `MIN` to `MAX` elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BoundedList<T, const MIN: usize, const MAX: usize>(Vec<T>);

/// A list of at least one element, bounded only by the body's size.
pub type NonEmpty<T> = BoundedList<T, 1, { usize::MAX }>;

impl<T> NonEmpty<T> {
    /// A list of one element.
    pub fn one(element: T) -> Self {
        Self(vec![element])
    }
}

impl<T, const MIN: usize, const MAX: usize> BoundedList<T, MIN, MAX> {
    /// The elements, in the caller's order.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }
}

impl<T: FieldValue, const MIN: usize, const MAX: usize> FieldValue for BoundedList<T, MIN, MAX> {
    const KIND: FieldKind = FieldKind::List;

    fn expected() -> Cow<'static, str> {
        let each = T::expected();
        match (MIN, MAX) {
            (_, usize::MAX) => format!("a list of at least {MIN}, each {each}").into(),
            (0, _) => format!("a list of at most {MAX}, each {each}").into(),
            _ => format!("a list of {MIN} to {MAX}, each {each}").into(),
        }
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        match value {
            Value::Array(elements) if (MIN..=MAX).contains(&elements.len()) => {
                Vec::read(value).map(Self)
            }
            _ => Err(invalid_value::<Self>(value)),
        }
    }

    fn to_value(&self) -> Value {
        self.0.to_value()
    }

    fn schema() -> Schema {
        let mut list = Array::new(T::schema_ref());
        list.min_items = (MIN > 0).then_some(MIN);
        list.max_items = (MAX < usize::MAX).then_some(MAX);
        list.into()
    }

    fn nested_components(components: &mut Components) {
        T::components(components);
    }
}
