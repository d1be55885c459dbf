//! The alias rule (specification 4.2, contract 5).
//!
//! Here: which rewrite a body asks for, from the raw object alone, so that it is known before the key and the fields
//! are looked at (contract 4). Not here: the rewrite itself, which `request!` makes while it reads.

use super::endpoint::Endpoint;
use super::read::given;
use serde_json::{Map, Value};

/// A field that stood in for others, and for which ones. Tells what the header `X-Field-Aliased` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    from: &'static str,
    to: Vec<&'static str>,
}

impl Alias {
    /// The rewrite that `body` asks for: only fields that it does not give itself are set. Never fails: a value of a
    /// wrong type is validation's to report.
    #[must_use]
    pub fn of(endpoint: Endpoint, body: &Map<String, Value>) -> Option<Self> {
        let alias = endpoint
            .fields()
            .iter()
            .find(|field| !field.alias_of.is_empty())?;
        given(body, alias.name)?;
        let unset = |target: &&'static str| given(body, target).is_none();
        let to: Vec<_> = alias.alias_of.iter().copied().filter(unset).collect();
        (!to.is_empty()).then_some(Self {
            from: alias.name,
            to,
        })
    }

    /// The value of `X-Field-Aliased`: `max_stops -> max_departure_stops, max_return_stops`.
    #[must_use]
    pub fn header_value(&self) -> String {
        format!("{} -> {}", self.from, self.to.join(", "))
    }
}
