//! A request to the marketplace.

use serde_json::{Map, Value, json};

use crate::contract::{Api, Endpoint, Request};

/// A validated request, prepared for the marketplace.
///
/// The gateway sends the caller's request ([`Search::for_caller`]). A scan sends more
/// ([`Search::for_item`]): `strict`, so that an empty array reliably means no results, and a larger
/// row limit.
#[derive(Debug, Clone)]
pub struct Search {
    request: Request,
    body: Map<String, Value>,
    strict: bool,
}

impl Search {
    /// The caller's request, unchanged (gateway.md, rule 2).
    pub fn for_caller(request: Request) -> Self {
        let body = request.to_body();
        let strict = request.strict();
        Self {
            request,
            body,
            strict,
        }
    }

    /// A scan item (scans.md, rule 32): flights get `strict` and `rows` as limit. Unless
    /// `upstream_filters`, two fields are left out because they would cost the price band
    /// (gateway.md, rule 3); [`ItemSummary`](super::ItemSummary) applies them.
    pub fn for_item(request: Request, rows: u32, upstream_filters: bool) -> Self {
        let mut body = request.to_body();
        let flights = request.endpoint().api() == Api::Flights;
        if flights {
            body.insert("strict".into(), json!(true));
            body.insert("limit".into(), json!(rows));
            if !upstream_filters {
                body.shift_remove("max_price");
                if body.get("sort_type").is_some_and(|sort| sort == "Price") {
                    body.shift_remove("sort_type");
                }
            }
        }
        Self {
            request,
            body,
            strict: flights,
        }
    }

    pub fn endpoint(&self) -> Endpoint {
        self.request.endpoint()
    }

    /// The caller's request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The body that is sent.
    pub fn body(&self) -> &Map<String, Value> {
        &self.body
    }

    /// The engine reports an incomplete search, so an empty array means no results.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// For flights, the `limit` that is sent: the maximum number of rows.
    pub fn row_cap(&self) -> Option<usize> {
        if self.endpoint().api() != Api::Flights {
            return None;
        }
        let limit = self
            .body
            .get("limit")
            .and_then(Value::as_u64)
            .or(self.request.limit().map(u64::from))?;
        usize::try_from(limit).ok()
    }
}
