//! The search fields in requests and responses: kept unchanged, with a schema from the endpoints'
//! tables.

use crate::body_schema::{field_schema, or_null};
use crate::endpoint::Endpoint;
use crate::field::{FieldSpec, FieldValue};
use crate::primitives::raw_object;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};

raw_object! {
    /// Fields of a search, unchanged.
    pub struct SearchFields {
        schema: search_fields("The fields of a search, as its endpoint accepts them. Null is the same as absent.", |field| field),
        nested_components: |_| {},
    }
}

/// The schema of the fields of any search, all optional; `adapt` may change some of them.
pub(crate) fn search_fields(meaning: &str, adapt: fn(FieldSpec) -> FieldSpec) -> Schema {
    let object = ObjectBuilder::new().description(Some(meaning));
    let fields = Endpoint::search_fields().into_iter().map(|field| {
        adapt(FieldSpec {
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

/// The swept values of a cell. Only for the OpenAPI document.
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
