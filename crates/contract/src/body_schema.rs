//! From field tables to the OpenAPI document.
//!
//! Here: the schema of a body from its `FieldSpec` rows. Not here: the schema of a single value,
//! which is beside its check in `primitives`.

use super::field::FieldSpec;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};

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

/// The value's own schema with the field's description and default. An inline value is a
/// `Schema::Object` (also a string or a number) or an array; a reference has no default.
pub(crate) fn field_schema(field: &FieldSpec) -> RefOr<Schema> {
    let mut schema = (field.schema)();
    let (description, default) = match &mut schema {
        RefOr::Ref(reference) => {
            field.doc.clone_into(&mut reference.description);
            return schema;
        }
        RefOr::T(Schema::Object(Object {
            description,
            default,
            ..
        })) => (description, default),
        RefOr::T(Schema::Array(array)) => (&mut array.description, &mut array.default),
        RefOr::T(_) => return schema,
    };
    *description = Some(field.doc.to_owned());
    *default = field.default_value();
    schema
}

/// The same schema, nullable.
pub(crate) fn or_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.schema_type = and_null(object.schema_type);
            if let Some(words) = &mut object.enum_values {
                words.push(Value::Null);
            }
            object.into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = and_null(array.schema_type);
            array.into()
        }
        named => {
            let null = ObjectBuilder::new().schema_type(Type::Null);
            OneOfBuilder::new().item(null).item(named).into()
        }
    }
}

fn and_null(kind: SchemaType) -> SchemaType {
    match kind {
        SchemaType::Type(one) => SchemaType::Array(vec![one, Type::Null]),
        several => several,
    }
}

/// Implements `utoipa`'s `ToSchema` for field types.
macro_rules! impl_to_schema {
    ($( $name:ident ),+) => { $(
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                <Self as $crate::field::FieldValue>::schema().into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn schemas(components: &mut $crate::field::Components) {
                <Self as $crate::field::FieldValue>::nested_components(components);
            }
        }
    )+ };
}
pub(crate) use impl_to_schema;
