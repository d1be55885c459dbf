//! The examples of each operation: its request and an answer of each status. `examples.json` was
//! recorded from a run of the service with the sandbox behind it, its lists shortened to two
//! elements. `tests/examples` sends them again and compares the answers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder};
use utoipa::openapi::schema::{Schema, SchemaType, Type};
use utoipa::openapi::{Content, OpenApi, RefOr};

use super::operations;

/// The examples of an operation.
#[derive(Deserialize)]
struct OperationExamples {
    parameters: BTreeMap<String, String>,
    body: Value,
    /// By status.
    responses: BTreeMap<String, Value>,
}

/// Adds the recorded examples.
pub(super) fn describe(openapi: &mut OpenApi) {
    let examples: BTreeMap<String, OperationExamples> =
        serde_json::from_str(include_str!("examples.json"))
            .expect("the test that writes it reads it");
    for item in openapi.paths.paths.values_mut() {
        for operation in operations(item) {
            let id = operation.operation_id.as_deref().unwrap_or_default();
            if let Some(examples) = examples.get(id) {
                add(operation, examples);
            }
        }
    }
}

fn add(operation: &mut Operation, examples: &OperationExamples) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter {
            set_parameter(parameter, examples.parameters.get(&parameter.name));
        }
    }
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        for content in body.content.values_mut() {
            set_content(content, &examples.body);
        }
    }
    for (status, response) in &mut operation.responses.responses {
        let (RefOr::T(response), Some(example)) = (response, examples.responses.get(status)) else {
            continue;
        };
        let media = if example.is_string() {
            "text/event-stream"
        } else {
            "application/json"
        };
        if let Some(content) = response.content.get_mut(media) {
            set_content(content, example);
        }
    }
}

fn set_content(content: &mut RefOr<Content>, example: &Value) {
    if let RefOr::T(content) = content {
        content.example = Some(example.clone());
    }
}

/// An optional parameter that the example does not send has no example either: pages that send
/// requests would send it.
fn set_parameter(parameter: &mut Parameter, example: Option<&String>) {
    let schema = match &mut parameter.schema {
        Some(RefOr::T(Schema::Object(object))) => Some(object),
        _ => None,
    };
    let is_integer = schema
        .as_ref()
        .is_some_and(|schema| matches!(&schema.schema_type, SchemaType::Type(Type::Integer)));
    if let Some(schema) = schema {
        schema.examples.clear();
    }
    let example = example.map(|text| match text.parse::<i64>() {
        Ok(number) if is_integer => Value::from(number),
        _ => Value::from(text.as_str()),
    });
    *parameter = ParameterBuilder::from(parameter.clone())
        .example(example)
        .build();
}
