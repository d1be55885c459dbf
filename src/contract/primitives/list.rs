//! Lists, whose faults name the element (`filters[0]`).

use crate::contract::fault::Faults;
use crate::contract::field::{Components, FieldKind, FieldValue, refused};
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::schema::{Array, Schema};

/// A list of any length.
impl<T: FieldValue> FieldValue for Vec<T> {
    const KIND: FieldKind = FieldKind::List;

    fn allowed() -> Cow<'static, str> {
        format!("a list, each element {}", T::allowed()).into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        let Value::Array(elements) = value else {
            return Err(refused::<Self>(value));
        };
        let mut faults = Faults::default();
        let mut list = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            match T::read(element) {
                Ok(read) => list.push(read),
                Err(wrong) => faults.merge(wrong.prefix(&format!("[{index}]"))),
            }
        }
        faults.or_else_build(|| Some(list))
    }

    fn to_value(&self) -> Value {
        self.iter().map(FieldValue::to_value).collect()
    }

    fn schema() -> Schema {
        Array::new(T::referred()).into()
    }

    fn parts(components: &mut Components) {
        T::components(components);
    }
}

/// A list of `MIN` to `MAX` elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct List<T, const MIN: usize, const MAX: usize>(Vec<T>);

/// A list of at least one element, as long as the body's size allows.
pub type NonEmpty<T> = List<T, 1, { usize::MAX }>;

impl<T> NonEmpty<T> {
    /// A list of one element.
    pub fn one(element: T) -> Self {
        Self(vec![element])
    }
}

impl<T, const MIN: usize, const MAX: usize> List<T, MIN, MAX> {
    /// The elements, in the caller's order.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }
}

impl<T: FieldValue, const MIN: usize, const MAX: usize> FieldValue for List<T, MIN, MAX> {
    const KIND: FieldKind = FieldKind::List;

    fn allowed() -> Cow<'static, str> {
        let each = T::allowed();
        match (MIN, MAX) {
            (_, usize::MAX) => format!("a list of at least {MIN}, each {each}").into(),
            (0, _) => format!("a list of at most {MAX}, each {each}").into(),
            _ => format!("a list of {MIN} to {MAX}, each {each}").into(),
        }
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        match value {
            Value::Array(elements) if (MIN..=MAX).contains(&elements.len()) => {
                Vec::read(value).map(Self)
            }
            _ => Err(refused::<Self>(value)),
        }
    }

    fn to_value(&self) -> Value {
        self.0.to_value()
    }

    fn schema() -> Schema {
        let mut list = Array::new(T::referred());
        list.min_items = (MIN > 0).then_some(MIN);
        list.max_items = (MAX < usize::MAX).then_some(MAX);
        list.into()
    }

    fn parts(components: &mut Components) {
        T::components(components);
    }
}
