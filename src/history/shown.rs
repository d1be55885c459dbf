//! What a row shows of its product: the fields that it does not show by themselves.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::series::product_fields;
use crate::contract::history::Product;
use crate::contract::{Api, Endpoint};

/// A product as the database holds it, not read yet.
pub(super) type RawProduct = Box<RawValue>;

/// Fields of a product that a fare shows by themselves.
const BY_FARES: [&str; 3] = ["from_airport", "to_airport", "currency"];
/// Fields of a product that a rate shows by themselves.
const BY_RATES: [&str; 5] = [
    "hotel_name",
    "destination",
    "hotel_booking_id",
    "currency",
    "proxy_country",
];

/// Whose name it is that stands beside a rate: of a place's hotels the hotel's, of a hotel's rooms the room's.
pub(super) fn hotel_or_room(
    endpoint: Endpoint,
    seller: Option<String>,
) -> (Option<String>, Option<String>) {
    if endpoint == Endpoint::HotelsSearch {
        (seller, None)
    } else {
        (None, seller)
    }
}

/// The most products that are kept: more than there are in nearly all answers.
const KEPT: usize = 1_000;

/// The products of an answer's rows: each is read once, however many rows it has.
#[derive(Debug)]
pub(super) struct Shown {
    apart: &'static [&'static str],
    read: HashMap<Endpoint, HashMap<String, Product>>,
}

impl Shown {
    pub(super) fn by_fares() -> Self {
        Self {
            apart: &BY_FARES,
            read: HashMap::new(),
        }
    }

    pub(super) fn by_rates() -> Self {
        Self {
            apart: &BY_RATES,
            read: HashMap::new(),
        }
    }

    /// The product without the fields that a row shows by themselves, in the contract's order.
    pub(super) fn product(&mut self, endpoint: Endpoint, product: &RawValue) -> Product {
        let read = self.read.entry(endpoint).or_default();
        if let Some(known) = read.get(product.get()) {
            return known.clone();
        }
        if read.len() >= KEPT {
            read.clear();
        }
        // What the database holds is an object.
        let fields: Value = serde_json::from_str(product.get()).unwrap_or_default();
        let others = others(endpoint, &fields, self.apart);
        read.insert(product.get().to_owned(), others.clone());
        others
    }
}

/// What a row shows of a product that it has read itself.
pub(super) fn product(endpoint: Endpoint, product: &Value) -> Product {
    others(
        endpoint,
        product,
        if endpoint.api() == Api::Flights {
            &BY_FARES
        } else {
            &BY_RATES
        },
    )
}

fn others(endpoint: Endpoint, product: &Value, apart: &[&str]) -> Product {
    let fields = endpoint
        .fields()
        .iter()
        .filter(|field| !apart.contains(&field.name));
    Arc::new(
        fields
            .filter_map(|field| Some((field.name.to_owned(), product.get(field.name)?.clone())))
            .collect(),
    )
}

/// The fields that `product` can have in a fare, whatever the journey.
#[must_use]
pub fn fare_products() -> Vec<&'static str> {
    names(
        &[Endpoint::FlightsOneway, Endpoint::FlightsRoundtrip],
        &BY_FARES,
    )
}

/// The fields that `product` can have in a rate, whatever was asked.
#[must_use]
pub fn rate_products() -> Vec<&'static str> {
    names(
        &[
            Endpoint::HotelsSearch,
            Endpoint::HotelsByName,
            Endpoint::HotelsRooms,
        ],
        &BY_RATES,
    )
}

fn names(endpoints: &[Endpoint], apart: &[&str]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for field in endpoints
        .iter()
        .flat_map(|endpoint| product_fields(*endpoint))
    {
        if !apart.contains(&field.name) && !names.contains(&field.name) {
            names.push(field.name);
        }
    }
    names
}
