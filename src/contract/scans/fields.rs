//! The fields of a search where an order or an answer holds them: kept as they came, described by the endpoints' own tables.

use crate::contract::describe::{field_schema, or_null};
use crate::contract::endpoint::Endpoint;
use crate::contract::field::{FieldSpec, FieldValue};
use crate::contract::primitives::kept_object;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};

kept_object! {
    /// Fields of a search, as they came.
    pub struct SearchFields {
        schema: search_fields("Fields of a search: those that its endpoint takes. Null is the same as absent.", |field| field),
        parts: |_| {},
    }
}

/// The fields of any search, all of them optional; `described` may describe some of them in another way.
pub(crate) fn search_fields(meaning: &str, described: fn(FieldSpec) -> FieldSpec) -> Schema {
    let object = ObjectBuilder::new().description(Some(meaning));
    let fields = Endpoint::search_fields().into_iter().map(|field| {
        described(FieldSpec {
            default: None,
            ..*field
        })
    });
    fields
        .fold(object, |object, field| {
            object.property(field.name, or_null(field_schema(&field)))
        })
        .into()
}

/// What makes a cell: the values of what is swept. For the description alone.
#[derive(Debug)]
pub struct CellValues;

impl utoipa::PartialSchema for CellValues {
    fn schema() -> RefOr<Schema> {
        let meaning = "The values of a cell: of each swept field, and of `nights` where lengths of stay are swept.";
        match search_fields(meaning, |field| field) {
            Schema::Object(mut object) => {
                object
                    .properties
                    .insert("nights".to_owned(), or_null(super::Nights::schema().into()));
                object.into()
            }
            other => other.into(),
        }
    }
}

impl utoipa::ToSchema for CellValues {}
