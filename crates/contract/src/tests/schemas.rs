//! The OpenAPI schemas match the checks (gateway.md, rule 21).

use crate::account_settings::AccountSettingsUpdate;
use crate::channels::{ChannelPatch, ChannelRequest, ChannelsQuery};
use crate::flights::{OnewayRequest, RoundtripRequest};
use crate::history::{FlightHistoryQuery, HotelHistoryQuery};
use crate::hotels::{HotelByNameRequest, HotelRoomsRequest, HotelSearchRequest, ResolveRequest};
use crate::key_rotation::RotateKeyRequest;
use crate::monitors::{
    AlertQuery, AlertsQuery, Available, BackInStock, DropPercent, EveryRun, MonitorAlertsQuery,
    MonitorPatch, MonitorRequest, MonitorsQuery, NewLow, ParityGapPercent, ParityQuery,
    PercentileAtMost, PlanEndsBeforeReset, PriceBelow, RuleType, ScheduleRequest, SlotsQuery,
    SoldOut, Stale, VerdictLow,
};
use crate::primitives::{
    Adults, AirlineCode, Airport, BudgetPerNight, Children, CountryCode, Currency, Cursor, Date,
    FreeText, HotelBookingId, Hour, Limit, MaxPrice, PageLimit, Passengers, SeatType, SortType,
    Stops,
};
use crate::quota::{LaneBounds, LaneBoundsPatch};
use crate::scans::{
    DateRange, DeleteQuery, EventsQuery, ItemsQuery, ResumeRequest, RetryPolicy, RetryRequest,
    ScanEndpoint, ScanQuery, ScanRequest, ScansQuery, Sweep, SweepValue, Tag,
};
use crate::usage::UsageQuery;
use crate::{Endpoint, FieldSpec, FieldValue};
use jiff::Timestamp;
use serde_json::{Value, json};
use utoipa::openapi::path::ParameterIn;
use utoipa::{IntoParams, PartialSchema, ToSchema};

const COUNT: u64 = 2_147_483_647;

fn schema<T: FieldValue>() -> Value {
    json!(T::schema())
}

#[test]
fn each_kind_of_value_has_its_schema() {
    let text = |pattern: &str, example: &str| json!({"type": "string", "examples": [example], "pattern": pattern});
    let range = |min: u64, max: u64| json!({"type": "integer", "minimum": min, "maximum": max});
    let no_controls = r"^[^\u0000-\u001F\u007F-\u009F]*$";
    for (ours, documented) in [
        (schema::<Airport>(), text("^[A-Za-z]{3}$", "TLV")),
        (schema::<Currency>(), text("^[A-Za-z]{3}$", "USD")),
        (schema::<CountryCode>(), text("^[A-Za-z]{2}$", "de")),
        (schema::<AirlineCode>(), text("^[A-Za-z0-9]{2,3}$", "LY")),
        (
            schema::<Date>(),
            json!({"type": "string", "format": "date", "examples": ["2027-01-13"]}),
        ),
        (
            schema::<Timestamp>(),
            json!({"type": "string", "format": "date-time", "examples": ["2027-01-13T08:00:00Z"]}),
        ),
        (schema::<bool>(), json!({"type": "boolean"})),
        (schema::<Hour>(), range(0, 23)),
        (schema::<Stops>(), range(0, COUNT)),
        (schema::<Limit>(), range(1, COUNT)),
        (schema::<MaxPrice>(), range(0, 9_007_199_254_740_991)),
        (schema::<Adults>(), range(1, COUNT)),
        (schema::<Children>(), range(0, COUNT)),
        (schema::<PageLimit>(), range(1, 500)),
        (
            schema::<BudgetPerNight>(),
            json!({"type": "number", "exclusiveMinimum": 0}),
        ),
        (
            schema::<SeatType>(),
            json!({"type": "integer", "enum": [1, 3]}),
        ),
        (
            schema::<Passengers>(),
            json!({"type": "array", "items": {"type": "integer", "enum": [1, 2, 3, 4]}, "minItems": 1}),
        ),
        (
            schema::<Vec<SeatType>>(),
            json!({"type": "array", "items": {"type": "integer", "enum": [1, 3]}}),
        ),
        (
            schema::<FreeText>(),
            json!({"type": "string", "examples": ["Lisbon"], "minLength": 1, "maxLength": 300, "pattern": no_controls}),
        ),
        (
            schema::<HotelBookingId>(),
            json!({
                "type": "string", "examples": ["fr/grand-hotel"], "minLength": 3, "maxLength": 300,
                "pattern": r#"^(?=.*/)(?!/)(?!.*\.\.)(?!.*//)[!"$&-9;->A-\[\]-~]+$"#
            }),
        ),
        (
            schema::<Cursor>(),
            json!({
                "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"
            }),
        ),
        (
            schema::<ScanEndpoint>(),
            json!({"type": "string", "enum": ["flights/oneway", "flights/roundtrip", "hotels/search", "hotels/by-name", "hotels/rooms"]}),
        ),
    ] {
        assert_eq!(ours, documented);
    }
    assert_eq!(
        schema::<SortType>()["enum"],
        json!(["Overall", "Price", "Duration"])
    );
    let tags = schema::<crate::primitives::BoundedList<Tag, 0, 20>>();
    assert_eq!(
        (tags.get("minItems"), &tags["maxItems"]),
        (None, &json!(20))
    );
}

/// The body's schema has exactly the fields of its table, each with its description and default;
/// its example is valid.
fn describes<T: FieldValue + ToSchema>(fields: &[FieldSpec], example: &Value, name: &str) {
    assert_eq!(T::name(), name);
    let schema = json!(<T as PartialSchema>::schema());
    assert_eq!(
        (&schema["type"], &schema["additionalProperties"]),
        (&json!("object"), &json!(false)),
        "{name}"
    );
    assert!(
        schema["description"]
            .as_str()
            .is_some_and(|doc| !doc.is_empty() && doc.trim() == doc)
    );
    assert_eq!(schema["examples"], json!([example]));
    // A body without fields has no properties.
    let properties = schema["properties"].as_object();
    let described: Vec<_> = properties.into_iter().flat_map(|all| all.keys()).collect();
    assert_eq!(
        described,
        fields.iter().map(|field| field.name).collect::<Vec<_>>(),
        "{name}"
    );
    let required: Vec<_> = fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    assert_eq!(
        schema.get("required").cloned().unwrap_or(json!([])),
        json!(required),
        "{name}"
    );
    for field in fields {
        let property = &schema["properties"][field.name];
        assert_eq!(property["description"], field.doc, "{name}.{}", field.name);
        assert!(
            !field.doc.is_empty() && field.doc.trim() == field.doc && !field.doc.contains("  "),
            "{}",
            field.doc
        );
        assert_eq!(
            property.get("default"),
            field.default_value().as_ref(),
            "{name}.{}",
            field.name
        );
        if let Some(default) = field.default_value() {
            assert_eq!(
                (field.read)(&default),
                Ok(default.clone()),
                "the default of {name}.{} is taken",
                field.name
            );
        }
    }
    assert!(T::read(example).is_ok(), "{name}: {example}");
}

#[test]
fn each_body_schema_matches_its_field_table() {
    let mut covered = Vec::new();
    macro_rules! bodies {
        ($( $body:ident ),+ $(,)?) => { $(
            describes::<$body>($body::FIELDS, &$body::example(), stringify!($body));
            covered.push(stringify!($body));
        )+ };
    }
    bodies!(
        OnewayRequest,
        RoundtripRequest,
        HotelSearchRequest,
        HotelByNameRequest,
        HotelRoomsRequest,
        ResolveRequest,
        ScanRequest,
        RetryPolicy,
        RetryRequest,
        ResumeRequest,
        DeleteQuery,
        DateRange,
        ScanQuery,
        ScansQuery,
        EventsQuery,
        ItemsQuery,
        FlightHistoryQuery,
        HotelHistoryQuery,
        UsageQuery,
        RotateKeyRequest,
        LaneBounds,
        LaneBoundsPatch,
        AccountSettingsUpdate,
        AlertQuery,
        AlertsQuery,
        MonitorAlertsQuery,
        MonitorRequest,
        MonitorPatch,
        MonitorsQuery,
        ParityQuery,
        SlotsQuery,
        ChannelRequest,
        ChannelPatch,
        ChannelsQuery,
        ScheduleRequest,
        PriceBelow,
        DropPercent,
        VerdictLow,
        NewLow,
        Available,
        SoldOut,
        ParityGapPercent,
        Stale,
        PercentileAtMost,
        BackInStock,
        EveryRun,
        PlanEndsBeforeReset,
    );
    for body in RuleType::BODIES {
        assert!(covered.contains(body), "{body} is not on the list above");
    }
}

#[test]
fn the_sweep_schema_lists_the_swept_fields() {
    let sweep = schema::<Sweep>();
    for endpoint in Endpoint::SEARCHES {
        assert!(
            endpoint
                .fields()
                .iter()
                .all(|field| sweep["properties"][field.name]["$ref"].is_string()),
            "{endpoint}"
        );
    }
    assert_eq!(sweep["additionalProperties"], false);
    assert_eq!(sweep["properties"]["samples"]["maximum"], 10);
    assert_eq!(sweep["properties"]["nights"]["items"]["maximum"], 366);
    let shapes = json!(SweepValue::schema())["oneOf"].clone();
    let named = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    assert_eq!(shapes, json!([named("SweepValues"), named("DateRange")]));
}

#[test]
fn a_query_becomes_documented_parameters() {
    let described = FlightHistoryQuery::into_params(|| Some(ParameterIn::Query));
    let names: Vec<_> = described
        .iter()
        .map(|parameter| parameter.name.as_str())
        .collect();
    assert_eq!(
        names,
        FlightHistoryQuery::FIELDS
            .iter()
            .map(|field| field.name)
            .collect::<Vec<_>>()
    );
    let first = json!(described[0]);
    assert_eq!(
        (&first["in"], &first["required"]),
        (&json!("query"), &json!(true))
    );
    assert_eq!(first["description"], "Origin IATA code.");
    assert_eq!(first["schema"]["pattern"], "^[A-Za-z]{3}$");
    assert_eq!(json!(described[2])["required"], false);
}

fn may_be_null(schema: &Value) -> bool {
    let has_null = |kind: &Value| {
        kind == "null"
            || kind
                .as_array()
                .is_some_and(|kinds| kinds.contains(&json!("null")))
    };
    has_null(&schema["type"])
        || schema["oneOf"]
            .as_array()
            .is_some_and(|arms| arms.iter().any(may_be_null))
}

/// Every documented example of a response deserializes as that response.
#[test]
fn the_response_examples_deserialize() {
    macro_rules! answers {
        ($( $path:path ),+ $(,)?) => { $( {
            let schema = json!(<$path as PartialSchema>::schema());
            let example = &schema["examples"][0];
            assert!(example.is_object(), "{} has an example", stringify!($path));
            let read: $path = serde_json::from_value(example.clone()).unwrap();
            let written = json!(read);
            // A nullable field is always present: `api::openapi::required_fields` marks them all
            // as required.
            let properties = schema["properties"].as_object().unwrap();
            let nullable: Vec<_> = properties.iter().filter(|(_, property)| may_be_null(property)).map(|(name, _)| name).collect();
            let mut bare = example.clone();
            bare.as_object_mut().unwrap().retain(|name, _| !nullable.contains(&name));
            let bare = json!(serde_json::from_value::<$path>(bare).unwrap());
            assert!(nullable.iter().all(|name| bare.get(name.as_str()).is_some()), "{}: {nullable:?}", stringify!($path));
            for (name, value) in example.as_object().unwrap() {
                assert!(schema["properties"].get(name).is_some(), "{name} is a field of {}", stringify!($path));
                let same = *value == written[name] || value.as_f64().is_some() && value.as_f64() == written[name].as_f64();
                assert!(same || value.is_object() || value.is_array(), "{name}: {value} is {}", written[name]);
            }
        } )+ };
    }
    use crate::{
        account_settings, channels, flights, history, history_grid, hotels, key_rotation, monitors,
        quota, scans, series, usage, verify,
    };
    answers!(
        flights::OnewayFlight,
        flights::RoundtripItinerary,
        hotels::HotelSearchResponse,
        hotels::HotelByNameResponse,
        hotels::HotelRoomsResponse,
        hotels::ResolveResponse,
        verify::VerifyResponse,
        quota::Quota,
        key_rotation::KeyRotation,
        account_settings::AccountSettings,
        usage::Usage,
        crate::ErrorBody,
        scans::Scan,
        monitors::Alert,
        monitors::Monitor,
        channels::Channel,
        scans::EventsReset,
        scans::ScanPreview,
        scans::Item,
        scans::Attempt,
        history::FlightObservation,
        history::HotelObservation,
        series::FlightBucket,
        series::HotelBucket,
        history_grid::HistoryGrid,
    );
}
