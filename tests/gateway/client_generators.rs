//! Rules of the OpenAPI document that client generators need: eight of nine failed without them.
//! `script/clients` runs the generators themselves.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::support::app::TestApp;
use crate::support::{array, text};

async fn description() -> Value {
    let app = TestApp::start().await;
    app.send(app.request("GET", "/openapi.json")).await.json()
}

/// Calls `seen` with each object of the description and its path.
fn walk(value: &Value, path: &str, seen: &mut impl FnMut(&Map<String, Value>, &str)) {
    match value {
        Value::Object(object) => {
            seen(object, path);
            for (name, value) in object
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "example" | "examples"))
            {
                walk(value, &format!("{path}/{name}"), seen);
            }
        }
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(at, value)| walk(value, &format!("{path}/{at}"), seen)),
        _ => {}
    }
}

fn all(description: &Value, wrong: impl Fn(&Map<String, Value>) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    walk(description, "#", &mut |object, path| {
        if wrong(object) {
            found.push(path.to_owned());
        }
    });
    found
}

/// Every operation as (path, method, operation).
fn operations(description: &Value) -> Vec<(&String, &String, &Value)> {
    let paths = description["paths"].as_object().unwrap().iter();
    paths
        .flat_map(|(path, item)| {
            item.as_object()
                .unwrap()
                .iter()
                .map(move |(method, it)| (path, method, it))
        })
        .collect()
}

fn may_be_null(schema: &Value) -> bool {
    let is_null = |kind: &Value| {
        kind == "null"
            || kind
                .as_array()
                .is_some_and(|several| several.contains(&"null".into()))
    };
    is_null(&schema["type"])
        || schema["oneOf"]
            .as_array()
            .is_some_and(|arms| arms.iter().any(|arm| is_null(&arm["type"])))
}

#[tokio::test]
async fn no_default_is_null_where_null_is_invalid() {
    let wrong = all(&description().await, |schema| {
        schema.get("default").is_some_and(Value::is_null)
            && !may_be_null(&Value::Object(schema.clone()))
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// An alternative is a component, null, or a scalar: generators invent names for everything else,
/// and these collide.
#[tokio::test]
async fn every_schema_alternative_has_a_name() {
    let has_name = |arm: &Value| {
        arm["$ref"].is_string()
            || arm["enum"].is_null()
                && matches!(arm["type"].as_str(), Some("null" | "string" | "integer"))
    };
    let arms = |schema: &Map<String, Value>, kind: &str| {
        schema
            .get(kind)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let wrong = all(&description().await, |schema| {
        arms(schema, "oneOf")
            .iter()
            .chain(&arms(schema, "anyOf"))
            .any(|arm| !has_name(arm))
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn objects_in_objects_are_components() {
    let wrong = all(&description().await["components"]["schemas"], |schema| {
        let properties = schema.get("properties").and_then(Value::as_object);
        properties
            .into_iter()
            .flat_map(Map::values)
            .any(|property| {
                let items = if property["items"].is_null() {
                    property
                } else {
                    &property["items"]
                };
                items["type"] == "object" && items["additionalProperties"]["type"].is_null()
            })
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Generators write one file per tag; an operation and an event with the same tag would share a
/// file.
#[tokio::test]
async fn no_tag_is_shared_by_paths_and_webhooks() {
    let description = description().await;
    let tags = |items: &Value| -> BTreeSet<String> {
        let operations = items
            .as_object()
            .unwrap()
            .values()
            .flat_map(|item| item.as_object().unwrap().values());
        operations
            .map(|operation| text(&operation["tags"][0]))
            .collect()
    };
    let (served, sent) = (tags(&description["paths"]), tags(&description["webhooks"]));
    assert!(served.is_disjoint(&sent), "{served:?} {sent:?}");
    let described: BTreeSet<_> = array(&description["tags"])
        .iter()
        .map(|tag| text(&tag["name"]))
        .collect();
    assert_eq!(
        described,
        served.union(&sent).cloned().collect(),
        "every tag is described, and used"
    );
}

#[tokio::test]
async fn every_operation_id_is_a_verb_and_its_object() {
    let verbs = [
        "backtest", "cancel", "check", "compare", "confirm", "create", "delete", "enable", "find",
        "get", "list", "pause", "preview", "resend", "resolve", "resume", "retry", "rotate", "run",
        "search", "set", "test", "update", "verify", "watch",
    ];
    for (path, method, operation) in operations(&description().await) {
        let id = operation["operationId"].as_str().unwrap();
        let (verb, object) = id.split_once('_').unwrap_or((id, ""));
        assert!(
            verbs.contains(&verb) && !object.is_empty(),
            "{method} {path}: {id}"
        );
        assert!(
            operation["description"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{method} {path} is described"
        );
    }
}

/// Only for responses of this service: the marketplace may omit any field.
#[tokio::test]
async fn nullable_response_fields_are_required() {
    let description = description().await;
    let theirs = [
        "OnewayFlight",
        "RoundtripItinerary",
        "HotelSearchResponse",
        "HotelProperty",
        "HotelByNameResponse",
        "SearchFields",
        "CellValues",
        "MonitorSearchFields",
    ];
    let schemas = description["components"]["schemas"].as_object().unwrap();
    let mut checked = 0;
    for (name, schema) in schemas
        .iter()
        .filter(|(name, _)| !theirs.contains(&name.as_str()))
    {
        if schema["additionalProperties"] == false {
            continue;
        }
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let required = schema["required"]
                .as_array()
                .is_some_and(|list| list.contains(&Value::from(field.as_str())));
            assert!(
                required || !may_be_null(property),
                "{name}.{field} may be null and absent"
            );
            checked += usize::from(may_be_null(property));
        }
    }
    assert!(checked > 100, "{checked}");
}

/// The example of each error response has the status of that response.
#[tokio::test]
async fn each_error_response_has_a_matching_example() {
    let mut seen = BTreeSet::new();
    for (path, method, operation) in operations(&description().await) {
        let answers = operation["responses"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(status, _)| status.as_str() >= "400");
        for (status, answer) in
            answers.filter(|(status, _)| !matches!(status.as_str(), "406" | "4XX"))
        {
            let kind = answer["content"]["application/json"]["example"]["error"]["type"]
                .as_str()
                .unwrap_or_default();
            // The marketplace's own 503 keeps its status.
            if (status.as_str(), kind) == ("503", "upstream_error") {
                continue;
            }
            let known = farescan::contract::ErrorType::parse(kind);
            let known = known.map(|kind| kind.status().to_string());
            assert_eq!(
                known.as_ref(),
                Some(status),
                "{method} {path} {status}: {kind}"
            );
            seen.insert(kind.to_owned());
        }
    }
    assert!(seen.len() > 12, "{seen:?}");
}

/// A reader of the OpenAPI document does not have the documents of the repository.
#[tokio::test]
async fn no_description_cites_an_internal_document() {
    let cites = |text: &str| {
        let text = text.to_lowercase();
        [
            "specification",
            "(contract",
            "contract ",
            "jobs-api",
            "security.md",
            ".md, rule",
            ".md)",
            "docs/",
        ]
        .iter()
        .any(|it| text.contains(it))
    };
    let wrong = all(&description().await, |object| {
        ["description", "summary"]
            .iter()
            .any(|name| object.get(*name).and_then(Value::as_str).is_some_and(cites))
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn every_idempotency_key_has_its_length_bounds() {
    let mut found = 0;
    for (path, _, operation) in operations(&description().await) {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        for parameter in parameters.filter(|parameter| parameter["name"] == "Idempotency-Key") {
            let bounds = (
                &parameter["schema"]["minLength"],
                &parameter["schema"]["maxLength"],
            );
            assert_eq!(bounds, (&1.into(), &255.into()), "{path}");
            found += 1;
        }
    }
    assert!(found >= 12, "{found}");
}
