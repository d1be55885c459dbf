//! Which fields of answers are always there.
//!
//! A field of ours that may be null is always there; one that may be absent is never null, and says `nullable = false`. What the
//! marketplace wrote is passed on as it came, so nothing of it is required.

use std::collections::BTreeSet;

use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, Schema, SchemaType, Type};
use utoipa::openapi::{OpenApi, RefOr};

use crate::contract::flights::{OnewayFlight, RoundtripItinerary, StopInfo};
use crate::contract::hotels::{
    HotelByNameResponse, HotelProperty, HotelRoom, HotelRoomsResponse, HotelSearchResponse,
    ResolveResponse,
};
use crate::contract::monitors::MonitorScan;
use crate::contract::scans::{CellValues, SearchFields};

/// Requires every field that may be null, but in what the marketplace or the caller wrote.
pub(super) fn describe(openapi: &mut OpenApi) {
    let Some(components) = &mut openapi.components else {
        return;
    };
    let written_by_others = written_by_others();
    let ours = components
        .schemas
        .iter_mut()
        .filter(|(name, _)| !written_by_others.contains(name.as_str()));
    for (_, schema) in ours {
        if let RefOr::T(schema) = schema {
            require(schema);
        }
    }
}

fn require(schema: &mut Schema) {
    match schema {
        Schema::Object(object) if object.additional_properties.is_none() => require_fields(object),
        // A flattened struct: the fields of both.
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

/// The names of what the marketplace or the caller wrote.
fn written_by_others() -> BTreeSet<String> {
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
