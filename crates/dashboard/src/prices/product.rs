//! The products of a route or hotel: what must be equal for prices to compare.

use farescan_sheets::prices::product;
use sha2::{Digest as _, Sha256};

use farescan_core::contract::history::ProductFields;
use farescan_core::contract::history_grid::HistoryGrid;
use farescan_core::contract::{Api, Endpoint};
use farescan_core::history::Product;

/// What distinguishes one product from another of the same route or hotel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProductName {
    pub(super) endpoint: Endpoint,
    pub(super) currency: String,
    pub(super) market: Option<String>,
    pub(super) fields: ProductFields,
}

impl ProductName {
    /// A short digest for URLs.
    pub(super) fn digest(&self) -> String {
        let market = self.market.as_deref().unwrap_or_default();
        let fields = serde_json::to_string(self.fields.as_ref()).unwrap_or_default();
        let text = format!("{}\n{}\n{market}\n{fields}", self.endpoint, self.currency);
        Sha256::digest(text)[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// The product in words: `one way, 1 adult, economy, USD`.
    pub(super) fn label(&self) -> String {
        let market = (self.endpoint.api() == Api::Hotels).then_some(self.market.as_deref());
        product(self.endpoint, &self.fields, market, &self.currency)
    }
}

impl From<&HistoryGrid> for ProductName {
    fn from(grid: &HistoryGrid) -> Self {
        Self {
            endpoint: grid.endpoint,
            currency: grid.currency.clone(),
            market: grid.proxy_country.clone(),
            fields: grid.product.clone(),
        }
    }
}

impl From<&Product> for ProductName {
    fn from(product: &Product) -> Self {
        Self {
            endpoint: product.endpoint,
            currency: product.currency.clone(),
            market: product.market.clone(),
            fields: product.fields.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn name(endpoint: Endpoint, market: Option<&str>, fields: Value) -> ProductName {
        let Value::Object(fields) = fields else {
            panic!("an object")
        };
        ProductName {
            endpoint,
            currency: "USD".to_owned(),
            market: market.map(str::to_owned),
            fields: Arc::new(fields),
        }
    }

    #[test]
    fn products_of_other_markets_have_other_digests() {
        let digest = |market| name(Endpoint::HotelsByName, market, json!({"adults": 2})).digest();
        assert_eq!(digest(Some("de")), digest(Some("de")));
        assert_ne!(digest(Some("de")), digest(Some("us")));
        assert_eq!(digest(None).len(), 12);
    }
}
