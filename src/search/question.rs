//! One question to the marketplace.

use serde_json::{Map, Value, json};

use crate::contract::{Api, Endpoint, Request};

/// A checked request on its way upstream.
///
/// The gateway asks what the caller asked ([`Search::of_caller`]). A scan asks the same question so that its answer says more
/// ([`Search::of_item`]): always `strict`, so that an empty array is known to be empty, and for more rows than are shown.
#[derive(Debug, Clone)]
pub struct Search {
    request: Request,
    body: Map<String, Value>,
    strict: bool,
}

impl Search {
    /// The caller's own question: nothing is added to it and nothing taken away (contract 2).
    #[must_use]
    pub fn of_caller(request: Request) -> Self {
        let body = request.to_body();
        let strict = request.strict();
        Self {
            request,
            body,
            strict,
        }
    }

    /// A scan's item as it goes upstream (jobs-api, "Scans"): flights are asked `strict` and for `rows` rows, and, unless
    /// `upstream_filters`, without the two fields that would cost the price band (contract 3); [`Sight`](super::Sight) applies those.
    #[must_use]
    pub fn of_item(request: Request, rows: u32, upstream_filters: bool) -> Self {
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

    /// The endpoint it is for.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        self.request.endpoint()
    }

    /// The request as the caller made it.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The body that goes upstream.
    #[must_use]
    pub fn body(&self) -> &Map<String, Value> {
        &self.body
    }

    /// Whether it asks to be told when it did not complete, so that an empty array is an answer.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// The most rows that the answer may have: the `limit` that goes upstream, for flights.
    #[must_use]
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
