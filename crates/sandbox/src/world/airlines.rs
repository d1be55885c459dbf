//! Airlines: price levels, hubs and low-cost regions.

use std::sync::LazyLock;

use serde::Deserialize;

use super::airports::{Region, SandboxAirport};

/// One airline.
#[derive(Debug, Deserialize)]
pub(crate) struct Airline {
    /// IATA code, upper-case.
    pub(crate) code: String,
    pub(crate) name: String,
    /// Its price relative to the route's level.
    pub(crate) level: f64,
    /// Set for a low-cost airline: it flies nonstop within this region and sells no connections.
    pub(crate) roams: Option<Region>,
    /// Codes with spaces between them.
    hubs: String,
}

pub(crate) static AIRLINES: LazyLock<Vec<Airline>> =
    LazyLock::new(|| super::table(include_str!("airlines.csv")));

impl Airline {
    /// Airports where its flights start and its passengers change planes.
    pub(crate) fn hubs(&self) -> impl Iterator<Item = &'static SandboxAirport> {
        self.hubs.split(' ').filter_map(SandboxAirport::find)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hub_is_a_known_airport_and_codes_are_unique() {
        let mut seen = std::collections::HashSet::new();
        for airline in AIRLINES.iter() {
            assert!(seen.insert(&airline.code), "{} twice", airline.code);
            let known = airline.hubs().count();
            assert_eq!(known, airline.hubs.split(' ').count(), "{}", airline.code);
        }
    }
}
