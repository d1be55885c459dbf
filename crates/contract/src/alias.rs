//! The alias rule (gateway.md, rule 5).
//!
//! Here: which rewrite a body requests. It follows from the raw object alone, so that it is known
//! before the key and the fields are checked (gateway.md, rule 4). Not here: the rewrite itself,
//! which `request_body!` does while it reads.

use super::endpoint::Endpoint;
use super::read_body::non_null;
use serde_json::{Map, Value};

/// An alias field and the fields that it set, as the header `X-Field-Aliased` reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldAlias {
    from: &'static str,
    to: Vec<&'static str>,
}

impl FieldAlias {
    /// The rewrite of `body`: only fields that are not given are set. Never fails: validation
    /// reports a value of a wrong type.
    pub fn detect(endpoint: Endpoint, body: &Map<String, Value>) -> Option<Self> {
        let alias = endpoint
            .fields()
            .iter()
            .find(|field| !field.alias_of.is_empty())?;
        non_null(body, alias.name)?;
        let unset = |target: &&'static str| non_null(body, target).is_none();
        let to: Vec<_> = alias.alias_of.iter().copied().filter(unset).collect();
        (!to.is_empty()).then_some(Self {
            from: alias.name,
            to,
        })
    }

    /// The value of `X-Field-Aliased`: `max_stops -> max_departure_stops, max_return_stops`.
    pub fn header_value(&self) -> String {
        format!("{} -> {}", self.from, self.to.join(", "))
    }
}
