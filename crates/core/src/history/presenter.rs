//! Presents a product in a row: only the fields that have no column of their own.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::product::Product;
use super::series::product_fields;
use crate::contract::Endpoint;
use crate::contract::history::ProductFields;

/// A product's JSON from the database, not parsed.
pub(super) type RawProduct = Box<RawValue>;

/// Size of the cache: nearly all answers have fewer products.
const MAX_CACHED: usize = 1_000;

/// Parses each product of an answer once and caches it.
pub(super) struct ProductPresenter<P> {
    cache: HashMap<Endpoint, HashMap<String, ProductFields>>,
    product: PhantomData<fn() -> P>,
}

impl<P> Default for ProductPresenter<P> {
    fn default() -> Self {
        Self {
            cache: HashMap::new(),
            product: PhantomData,
        }
    }
}

impl<P: Product> ProductPresenter<P> {
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
        let other_fields = other_fields::<P>(endpoint, &fields);
        cache.insert(product.get().to_owned(), other_fields.clone());
        other_fields
    }
}

/// The same for a product that is already parsed.
pub(super) fn other_fields<P: Product>(endpoint: Endpoint, product: &Value) -> ProductFields {
    let fields = endpoint
        .fields()
        .iter()
        .filter(|field| !P::COLUMNS.contains(&field.name));
    Arc::new(
        fields
            .filter_map(|field| Some((field.name.to_owned(), product.get(field.name)?.clone())))
            .collect(),
    )
}

/// The fields that `product` can have in a row.
pub fn product_field_names<P: Product>() -> Vec<&'static str> {
    let mut names = Vec::new();
    for field in P::ENDPOINTS
        .iter()
        .flat_map(|endpoint| product_fields(*endpoint))
    {
        if !P::COLUMNS.contains(&field.name) && !names.contains(&field.name) {
            names.push(field.name);
        }
    }
    names
}
