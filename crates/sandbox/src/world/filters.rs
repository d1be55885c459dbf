//! The filters of the hotels engine, with the amenities among them.

use std::sync::LazyLock;

use serde::Deserialize;

/// A value of gateway.md, rule 28. An amenity has the share of the simplest and of the most
/// luxurious hotels that have it.
#[derive(Debug, Deserialize)]
pub(crate) struct SandboxFilter {
    pub(crate) name: String,
    simple: Option<f64>,
    luxury: Option<f64>,
}

impl SandboxFilter {
    /// The share of hotels with this amenity; `luxury` is between 0 and 1.
    pub(crate) fn share(&self, luxury: f64) -> Option<f64> {
        let (simple, grand) = self.simple.zip(self.luxury)?;
        Some(simple + (grand - simple) * luxury)
    }
}

pub(crate) static FILTERS: LazyLock<Vec<SandboxFilter>> =
    LazyLock::new(|| super::table(include_str!("filters.csv")));

/// Every filter.
pub(crate) fn filter_names() -> Vec<&'static str> {
    FILTERS.iter().map(|filter| filter.name.as_str()).collect()
}
