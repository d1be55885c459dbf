//! Query strings, read by the same tables as bodies.
//!
//! Here: from decoded pairs to an object that `request!` types read, and from tables to documented parameters. Keys in
//! the query (contract 11) have been taken out before. Not here: which parameters there are.

use super::describe::field_schema;
use super::fault::{Fault, Faults};
use super::field::FieldSpec;
use serde_json::{Map, Value};
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};

/// The object that a query string stands for. Everything in a query is text, so a field that does not take text gets
/// the number or boolean that the text spells; an empty value is the same as none; a name may be given once, or it is a
/// fault.
pub(crate) fn read_pairs<'a>(
    fields: &[FieldSpec],
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> (Map<String, Value>, Faults) {
    let (mut object, mut faults) = (Map::new(), Faults::default());
    for (name, text) in pairs {
        if text.is_empty() {
            continue;
        }
        let value = fields
            .iter()
            .find(|field| field.name == name)
            .map_or_else(|| text.into(), |field| spelled(field, text));
        if let Some(first) = object.insert(name.to_owned(), value) {
            faults.push_with(|| Fault::new(name, &first, "one value; it is given more than once"));
        }
    }
    (object, faults)
}

fn spelled(field: &FieldSpec, text: &str) -> Value {
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

/// Makes a `request!` type a query: `from_query` and `utoipa::IntoParams`. A method named after `=>` gives the faults of
/// rules that span fields.
macro_rules! query {
    ($( $name:ident $( => $spanning:ident )? ),+) => { $(
        impl $name {
            /// Reads the decoded pairs of a query string: every fault of it, or none.
            pub fn from_query<'a>(
                pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
            ) -> Result<Self, $crate::contract::fault::Faults> {
                let (object, mut faults) = $crate::contract::query::read_pairs(Self::FIELDS, pairs);
                let query = Self::from_body(&object).map_err(|wrong| faults.merge(wrong)).ok();
                $( faults.merge(query.as_ref().map(Self::$spanning).unwrap_or_default()); )?
                faults.or_else_build(|| query)
            }
        }

        impl utoipa::IntoParams for $name {
            fn into_params(
                _: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
            ) -> Vec<utoipa::openapi::path::Parameter> {
                $crate::contract::query::parameters(Self::FIELDS)
            }
        }
    )+ };
}
pub(crate) use query;
