//! Query strings, read by the same tables as bodies.
//!
//! Here: from decoded pairs to an object that `request_body!` types read, and from tables to
//! documented parameters. `api` removes keys from the query before (gateway.md, rule 11). Not
//! here: the parameters of each query.

use super::body_schema::field_schema;
use super::field::FieldSpec;
use super::validation::{ValidationError, ValidationErrors};
use serde_json::{Map, Value};
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};

/// The JSON object of a query string. A field that does not accept text gets the number or boolean
/// that the text spells. An empty value counts as absent. A duplicate name is an error.
pub(crate) fn read_pairs<'a>(
    fields: &[FieldSpec],
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> (Map<String, Value>, ValidationErrors) {
    let (mut object, mut errors) = (Map::new(), ValidationErrors::default());
    for (name, text) in pairs {
        if text.is_empty() {
            continue;
        }
        let value = fields
            .iter()
            .find(|field| field.name == name)
            .map_or_else(|| text.into(), |field| parse_scalar(field, text));
        if let Some(first) = object.insert(name.to_owned(), value) {
            errors.push_lazily(|| {
                ValidationError::new(name, &first, "one value; it is given more than once")
            });
        }
    }
    (object, errors)
}

fn parse_scalar(field: &FieldSpec, text: &str) -> Value {
    let as_text = Value::from(text);
    match serde_json::from_str(text) {
        Ok(scalar @ (Value::Number(_) | Value::Bool(_))) if (field.read)(&as_text).is_err() => {
            scalar
        }
        _ => as_text,
    }
}

/// The documented parameters of a query.
pub(crate) fn parameters(fields: &[FieldSpec]) -> Vec<Parameter> {
    let parameter = |field: &FieldSpec| {
        ParameterBuilder::new()
            .name(field.name)
            .parameter_in(ParameterIn::Query)
            .required(if field.required {
                Required::True
            } else {
                Required::False
            })
            .description(Some(field.doc))
            .schema(Some(field_schema(field)))
            .build()
    };
    fields.iter().map(parameter).collect()
}

/// Makes a `request_body!` type a query: `from_query` and `utoipa::IntoParams`. The method after
/// `=>` returns the errors of rules across several fields.
macro_rules! query_string {
    ($( $name:ident $( => $cross_field_errors:ident )? ),+) => { $(
        impl $name {
            /// Reads the decoded pairs of a query string.
            ///
            /// # Errors
            /// All validation errors of the query.
            pub fn from_query<'a>(
                pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
            ) -> Result<Self, $crate::validation::ValidationErrors> {
                let (object, mut errors) = $crate::query_string::read_pairs(Self::FIELDS, pairs);
                let query = Self::from_body(&object).map_err(|wrong| errors.merge(wrong)).ok();
                $( errors.merge(query.as_ref().map(Self::$cross_field_errors).unwrap_or_default()); )?
                errors.ok_if_empty(|| query)
            }
        }

        impl utoipa::IntoParams for $name {
            fn into_params(
                _: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
            ) -> Vec<utoipa::openapi::path::Parameter> {
                $crate::query_string::parameters(Self::FIELDS)
            }
        }
    )+ };
}
pub(crate) use query_string;
