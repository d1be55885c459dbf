//! Presents a product in a row: only the fields that have no column of their own.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::series::product_fields;
use crate::contract::history::ProductFields;
use crate::contract::{Api, Endpoint};

/// A product's JSON from the database, not parsed.
pub(super) type RawProduct = Box<RawValue>;

/// Product fields that a fare shows in columns of their own.
const FARE_COLUMNS: [&str; 3] = ["from_airport", "to_airport", "currency"];
/// Product fields that a rate shows in columns of their own.
const RATE_COLUMNS: [&str; 5] = [
    "hotel_name",
    "destination",
    "hotel_booking_id",
    "currency",
    "proxy_country",
];

/// Assigns the seller's name: the hotel in a hotel search, otherwise the room.
pub(super) fn seller_as_hotel_or_room(
    endpoint: Endpoint,
    seller: Option<String>,
) -> (Option<String>, Option<String>) {
    if endpoint == Endpoint::HotelsSearch {
        (seller, None)
    } else {
        (None, seller)
    }
}

/// Size of the cache: nearly all answers have fewer products.
const MAX_CACHED: usize = 1_000;

/// Parses each product of an answer once and caches it.
#[derive(Debug)]
pub(super) struct ProductPresenter {
    columns: &'static [&'static str],
    cache: HashMap<Endpoint, HashMap<String, ProductFields>>,
}

impl ProductPresenter {
    pub(super) fn for_fares() -> Self {
        Self {
            columns: &FARE_COLUMNS,
            cache: HashMap::new(),
        }
    }

    pub(super) fn for_rates() -> Self {
        Self {
            columns: &RATE_COLUMNS,
            cache: HashMap::new(),
        }
    }

    /// The product fields without columns of their own, in the order of the field table.
    pub(super) fn product(&mut self, endpoint: Endpoint, product: &RawValue) -> ProductFields {
        let cache = self.cache.entry(endpoint).or_default();
        if let Some(known) = cache.get(product.get()) {
            return known.clone();
        }
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        // The column always holds an object.
        let fields: Value = serde_json::from_str(product.get()).unwrap_or_default();
        let other_fields = other_fields(endpoint, &fields, self.columns);
        cache.insert(product.get().to_owned(), other_fields.clone());
        other_fields
    }
}

/// The same for a product that is already parsed.
pub(super) fn product(endpoint: Endpoint, product: &Value) -> ProductFields {
    other_fields(
        endpoint,
        product,
        if endpoint.api() == Api::Flights {
            &FARE_COLUMNS
        } else {
            &RATE_COLUMNS
        },
    )
}

fn other_fields(endpoint: Endpoint, product: &Value, columns: &[&str]) -> ProductFields {
    let fields = endpoint
        .fields()
        .iter()
        .filter(|field| !columns.contains(&field.name));
    Arc::new(
        fields
            .filter_map(|field| Some((field.name.to_owned(), product.get(field.name)?.clone())))
            .collect(),
    )
}

/// The fields that `product` can have in a fare.
#[must_use]
pub fn fare_product_fields() -> Vec<&'static str> {
    product_field_names(
        &[Endpoint::FlightsOneway, Endpoint::FlightsRoundtrip],
        &FARE_COLUMNS,
    )
}

/// The fields that `product` can have in a rate.
#[must_use]
pub fn rate_product_fields() -> Vec<&'static str> {
    product_field_names(
        &[
            Endpoint::HotelsSearch,
            Endpoint::HotelsByName,
            Endpoint::HotelsRooms,
        ],
        &RATE_COLUMNS,
    )
}

fn product_field_names(endpoints: &[Endpoint], columns: &[&str]) -> Vec<&'static str> {
    let mut product_field_names = Vec::new();
    for field in endpoints
        .iter()
        .flat_map(|endpoint| product_fields(*endpoint))
    {
        if !columns.contains(&field.name) && !product_field_names.contains(&field.name) {
            product_field_names.push(field.name);
        }
    }
    product_field_names
}
