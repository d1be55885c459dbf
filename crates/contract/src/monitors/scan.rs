//! The scan of a monitor: the body of `POST /v1/scans`, in which dates may be relative.
//!
//! Here: its schema. Not here: its validation, which resolves the dates for the next slot
//! (`monitors::validate`).

use crate::body_schema::{body_schema, or_null};
use crate::field::{Components, FieldKind, FieldSpec};
use crate::primitives::raw_object;
use crate::scans::{
    DateRange, SWEEP_VALUES, ScanRequest, search_fields, sweep_schema, sweep_value_schema,
    sweep_values,
};
use serde_json::json;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};

raw_object! {
    /// The scan request of each run, as given.
    pub struct MonitorScan {
        schema: monitor_scan(),
        nested_components: nested_components,
    }
}

const FIELDS: &str = "MonitorSearchFields";
const SWEEP: &str = "MonitorSweep";
const SWEEP_VALUE: &str = "MonitorSweepValue";
const DATE_RANGE: &str = "MonitorDateRange";

fn component_ref(name: &str) -> RefOr<Schema> {
    Ref::from_schema_name(name).into()
}

fn monitor_scan() -> Schema {
    let fields: Vec<_> = ScanRequest::FIELDS
        .iter()
        .map(|field| adapt_field(*field))
        .collect();
    let example = json!({
        "endpoint": "flights/oneway",
        "request": {"from_airport": "TLV", "to_airport": "LHR", "currency": "USD"},
        "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}
    });
    nullable(body_schema(
        "The body of `POST /v1/scans` for each run. Its dates may be relative.",
        &fields,
        example,
    ))
}

fn adapt_field(field: FieldSpec) -> FieldSpec {
    match field.name {
        "request" => FieldSpec {
            schema: || component_ref(FIELDS),
            ..field
        },
        "sweep" => FieldSpec {
            schema: || component_ref(SWEEP),
            ..field
        },
        "priority" => FieldSpec {
            doc: "The priority of its searches. Default: `scheduled`.",
            default: None,
            ..field
        },
        _ => field,
    }
}

/// The response shows the given request, in which optional fields may be null.
fn nullable(schema: Schema) -> Schema {
    let Schema::Object(mut object) = schema else {
        return schema;
    };
    for (name, property) in &mut object.properties {
        if !object.required.contains(name) {
            *property = or_null(std::mem::take(property));
        }
    }
    object.into()
}

fn nested_components(components: &mut Components) {
    let range: Vec<_> = DateRange::FIELDS
        .iter()
        .map(|field| with_relative_date(*field))
        .collect();
    let meaning = "A range of days, both ends included; each end a date or a number of days after the slot's date.";
    let range = body_schema(meaning, &range, json!({"from": "+7d", "to": "+36d"}));
    let fields = search_fields(
        "Fields of a search, in which dates may be relative. Null is the same as absent.",
        with_relative_date,
    );
    let sweep = nullable(sweep_schema(|| component_ref(SWEEP_VALUE)).into());
    components.extend([
        (FIELDS.to_owned(), fields.into()),
        (SWEEP.to_owned(), sweep.into()),
        (
            SWEEP_VALUE.to_owned(),
            sweep_value_schema(component_ref(DATE_RANGE)).into(),
        ),
        (SWEEP_VALUES.to_owned(), sweep_values()),
        (DATE_RANGE.to_owned(), nullable(range).into()),
    ]);
    for field in ScanRequest::FIELDS
        .iter()
        .filter(|field| !["request", "sweep"].contains(&field.name))
    {
        (field.components)(components);
    }
}

fn with_relative_date(field: FieldSpec) -> FieldSpec {
    match field.kind {
        FieldKind::Date => FieldSpec {
            schema: relative_date,
            ..field
        },
        FieldKind::List | FieldKind::Object | FieldKind::Scalar => field,
    }
}

/// A date, or days after the slot's date.
fn relative_date() -> RefOr<Schema> {
    let examples = ["+7d", "2027-01-13"];
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^(\d{4}-\d{2}-\d{2}|\+\d{1,3}d)$"))
        .examples(examples)
        .into()
}
