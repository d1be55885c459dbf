//! Scenarios: price processes for studies, in place of the sandbox's usual fares.
//!
//! A scenario is a TOML file: one family of prices and effects on it. Under a seed it gives a
//! [`PriceProcess`], a pure function of route, departure and instant: the same file and seed give
//! the same prices in any order of questions. docs/laboratory.md describes the file.
//!
//! Here: prices of flights. Not here: answers (`sandbox::flights`), and hotels, which answer as in
//! a sandbox without a scenario.

mod bounds;
mod disturbances;
mod error;
mod events;
mod file;
mod ladder;
mod process;
mod recorded;
mod sales;
mod structureless;
#[cfg(test)]
mod tests;
mod unchanged;
mod weekdays;

pub use error::ScenarioError;
pub use file::Scenario;
pub use process::{PriceProcess, ScenarioFare};

/// The longest time before departure in which it is sold.
const MAX_HORIZON_DAYS: u16 = 366;

/// One direction of a pair of airports, with codes in upper case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FareRoute {
    /// IATA code.
    pub origin: String,
    /// IATA code.
    pub destination: String,
}

impl FareRoute {
    /// The route between two codes in any letter case.
    pub fn new(origin: &str, destination: &str) -> Self {
        Self {
            origin: origin.trim().to_ascii_uppercase(),
            destination: destination.trim().to_ascii_uppercase(),
        }
    }

    /// The other direction.
    #[must_use]
    pub fn back(&self) -> Self {
        Self {
            origin: self.destination.clone(),
            destination: self.origin.clone(),
        }
    }
}

impl std::fmt::Display for FareRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.origin, self.destination)
    }
}
