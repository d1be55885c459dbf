//! Presents a product in a row: only the fields that have no column of their own.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::series_key::{Series, product_fields};
use super::store::products::ProductRow;
use crate::contract::history::ProductFields;
use crate::contract::{Api, Endpoint};

/// Product fields that a row shows in columns of their own.
const COLUMNS: [&str; 7] = [
    "from_airport",
    "to_airport",
    "hotel_name",
    "destination",
    "hotel_booking_id",
    "currency",
    "proxy_country",
];

/// A product as answers show it.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// The endpoint of its searches.
    pub endpoint: Endpoint,
    /// Flights: the departure airport.
    pub(super) origin: Option<String>,
    /// Destination airport, or the searched name or id of a hotel or place.
    pub(super) place: String,
    /// ISO currency code.
    pub currency: String,
    /// Hotels: the market.
    pub market: Option<String>,
    /// Its other fields.
    pub fields: ProductFields,
}

impl Product {
    /// The product of a search.
    pub fn of(series: &Series) -> Self {
        Self {
            endpoint: series.endpoint,
            origin: series.origin.clone(),
            place: series.place.clone(),
            currency: series.currency.clone(),
            market: series.market.clone(),
            fields: other_fields(series.endpoint, &Value::Object(series.product.clone())),
        }
    }
}

/// Size of the cache: nearly all answers have fewer products.
const MAX_CACHED: usize = 1_000;

/// Parses each product of an answer once and caches it.
#[derive(Default)]
pub(super) struct ProductPresenter {
    cache: HashMap<Endpoint, HashMap<String, ProductFields>>,
}

impl ProductPresenter {
    pub(super) fn present(&mut self, row: ProductRow) -> Product {
        Product {
            fields: self.product(row.endpoint, &row.product),
            endpoint: row.endpoint,
            origin: row.origin,
            place: row.place,
            currency: row.currency,
            market: row.market,
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
        let other_fields = other_fields(endpoint, &fields);
        cache.insert(product.get().to_owned(), other_fields.clone());
        other_fields
    }
}

/// The same for a product that is already parsed.
pub(super) fn other_fields(endpoint: Endpoint, product: &Value) -> ProductFields {
    let fields = endpoint
        .fields()
        .iter()
        .filter(|field| !COLUMNS.contains(&field.name));
    Arc::new(
        fields
            .filter_map(|field| Some((field.name.to_owned(), product.get(field.name)?.clone())))
            .collect(),
    )
}

/// The fields that `product` can have in a row.
pub fn product_field_names(api: Api) -> Vec<&'static str> {
    let mut names = Vec::new();
    let searches = Endpoint::SEARCHES.iter();
    for field in searches
        .filter(|endpoint| endpoint.api() == api)
        .flat_map(|endpoint| product_fields(*endpoint))
    {
        if !COLUMNS.contains(&field.name) && !names.contains(&field.name) {
            names.push(field.name);
        }
    }
    names
}
