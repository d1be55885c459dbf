//! Which fields of responses are always present.
//!
//! A nullable field of this service is always present; an optional field is never null and has
//! `nullable = false`. Fields of the marketplace are passed on unchanged, so none of them is
//! required.

use std::collections::BTreeSet;

use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, Schema, SchemaType, Type};
use utoipa::openapi::{OpenApi, RefOr};

use farescan_core::contract::flights::{OnewayFlight, RoundtripItinerary, StopInfo};
use farescan_core::contract::hotels::{
    HotelByNameResponse, HotelProperty, HotelRoom, HotelRoomsResponse, HotelSearchResponse,
    ResolveResponse,
};
use farescan_core::contract::monitors::MonitorScan;
use farescan_core::contract::scans::{CellValues, SearchFields};

/// Requires every nullable field, except in schemas of the marketplace or the caller.
pub(super) fn describe(openapi: &mut OpenApi) {
    let Some(components) = &mut openapi.components else {
        return;
    };
    let passed_through_schemas = passed_through_schemas();
    let ours = components
        .schemas
        .iter_mut()
        .filter(|(name, _)| !passed_through_schemas.contains(name.as_str()));
    for (_, schema) in ours {
        if let RefOr::T(schema) = schema {
            require(schema);
        }
    }
}

fn require(schema: &mut Schema) {
    match schema {
        Schema::Object(object) if object.additional_properties.is_none() => require_fields(object),
        // A flattened struct has the fields of both parts.
        Schema::AllOf(all) => {
            for part in &mut all.items {
                if let RefOr::T(Schema::Object(object)) = part {
                    require_fields(object);
                }
            }
        }
        _ => {}
    }
}

fn require_fields(object: &mut Object) {
    for (name, property) in &object.properties {
        if may_be_null(property) && !object.required.contains(name) {
            object.required.push(name.clone());
        }
    }
}

fn may_be_null(schema: &RefOr<Schema>) -> bool {
    let has_null = |kind: &SchemaType| match kind {
        SchemaType::Type(one) => *one == Type::Null,
        SchemaType::Array(several) => several.contains(&Type::Null),
        SchemaType::AnyValue => false,
    };
    match schema {
        RefOr::T(Schema::Object(object)) => has_null(&object.schema_type),
        RefOr::T(Schema::Array(array)) => has_null(&array.schema_type),
        RefOr::T(Schema::OneOf(one_of)) => one_of.items.iter().any(may_be_null),
        _ => false,
    }
}

/// The schemas whose fields the marketplace or the caller writes.
fn passed_through_schemas() -> BTreeSet<String> {
    fn name<T: ToSchema>() -> String {
        T::name().into_owned()
    }
    BTreeSet::from([
        name::<OnewayFlight>(),
        name::<RoundtripItinerary>(),
        name::<StopInfo>(),
        name::<HotelSearchResponse>(),
        name::<HotelProperty>(),
        name::<HotelByNameResponse>(),
        name::<HotelRoomsResponse>(),
        name::<HotelRoom>(),
        name::<ResolveResponse>(),
        name::<SearchFields>(),
        name::<CellValues>(),
        name::<MonitorScan>(),
        "MonitorSearchFields".to_owned(),
    ])
}
