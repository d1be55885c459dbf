//! From field tables to the interface description.
//!
//! Here: the schema of a body from its `FieldSpec` rows. Not here: the schema of a single value, which stands beside
//! its check in `primitives`.

use super::field::FieldSpec;
use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, Schema};

/// The schema of a JSON object with exactly these fields.
pub(crate) fn body_schema(doc: &str, fields: &[FieldSpec], example: Value) -> Schema {
    let mut object = ObjectBuilder::new()
        .description(Some(doc.trim()))
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        .examples([example]);
    for field in fields {
        object = object.property(field.name, field_schema(field));
        if field.required {
            object = object.required(field.name);
        }
    }
    object.into()
}

/// The value's own schema with the field's meaning and default on it. Every value is an object in the schema's sense (a
/// string and a number too) or an array.
pub(crate) fn field_schema(field: &FieldSpec) -> Schema {
    let mut schema = (field.schema)();
    let (description, default) = match &mut schema {
        Schema::Object(Object { description, default, .. }) => (description, default),
        Schema::Array(array) => (&mut array.description, &mut array.default),
        _ => return schema,
    };
    *description = Some(field.doc.to_owned());
    *default = field.default_value();
    schema
}
