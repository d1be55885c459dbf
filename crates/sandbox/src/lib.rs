//! The sandbox: a simulated marketplace with two travel engines, for development.
//!
//! It answers at the native paths (gateway.md, rule 44) with the statuses and headers of the real
//! listing: plans and rate windows per key (gateway.md, rule 42), quota and search headers
//! (gateway.md, rules 1 and 38), delays like the real engines'. Prices are invented and seeded: the
//! same seed, day, body and earlier calls of the key give the same answer. They change with the
//! day, so that a history varies. The sandbox shares no code with the service's own client, so that
//! the two cannot share a mistake.
//!
//! # Keys
//! Sent in `x-rapidapi-key` or `x-marketplace-key`. A key with a suffix (`sandbox-pro.alice`) has
//! the same plan and its own counters.
//!
//! | Key | Plan |
//! |---|---|
//! | `sandbox-basic` | both APIs, 10 requests a month each, then a hard stop |
//! | `sandbox-pro`, `sandbox-ultra`, `sandbox-mega` | both APIs with the quotas and windows of gateway.md, rule 42 |
//! | `sandbox-flights-only`, `sandbox-hotels-only` | plan Pro for one API, 403 for the other |
//! | `sandbox-unlimited` | both APIs without limits |
//! | `sandbox-demo` | both APIs with the quotas of Mega, without a window; departures and check-ins on a 13th are degraded on the first call, ok on the next |
//!
//! # Magic values
//! A destination airport, or the first word of a destination, hotel name or hotel id (`ZZE Hotel`,
//! `xx/zze-hotel`). "The next call" has the same key and exactly the same body.
//!
//! | Word | Flights | Hotels |
//! |---|---|---|
//! | `ZZE` | empty: 200 `[]` | search, by-name, resolve 404; rooms 200 with an empty list |
//! | `ZZP` | partial: half of the rows | half of the properties or rooms; by-name is sold out |
//! | `ZZD` | degraded always: 200 `[]`, to a strict request 503 `search_incomplete` | 503 `search_incomplete` |
//! | `ZZR` | degraded on the first call, ok on the next | the same |
//! | `ZZS` | 503 on the first call, ok on the next | the same |
//! | `ZZX` | 503 always | the same |
//! | `ZZT` | never answers | the same |
//! | `ZZG` | 200 with a web page | the same |
//! | `ZZQ` | 429 with `Retry-After: 1`, not counted | the same |
//!
//! There are no flights before today, more than 361 days ahead or for an unknown airport (`empty`).
//! Stays are sold up to 500 days ahead and up to 90 nights long.
//!
//! # Studies
//! A [`scenarios::Scenario`] replaces the prices of flights, a [`SandboxClock`] the time. With either,
//! each answer says the sandbox's date in `x-sandbox-date`.

mod clock;
mod draws;
mod flights;
mod hotels;
mod magic_values;
mod plans;
mod responses;
pub mod scenarios;
mod server;
mod wire;
mod world;

#[cfg(test)]
mod tests;

pub use clock::{ClockSpecError, SandboxClock};
pub use server::{router, serve, serve_with_days};

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// The key of demos: of both APIs, without a limit.
pub const DEMO_KEY: &str = "sandbox-demo";

/// How a sandbox behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxOptions {
    /// Seed of every price, timetable and delay.
    pub seed: u64,
    /// Factor of the delays: 1.0 is as slow as the real engines, 0.0 answers at once.
    pub latency_factor: f64,
    /// The current date of the simulation, for prices and quotas; `None`: the real one (UTC).
    pub today: Option<jiff::civil::Date>,
    /// A clock of its own, in place of `today`.
    pub clock: Option<SandboxClock>,
    /// Prices of flights in place of the usual ones.
    pub scenario: Option<Arc<scenarios::Scenario>>,
}

/// Days that a running sandbox is ahead of its current date, negative for days back. Clones share
/// the number.
#[derive(Clone, Debug, Default)]
pub struct DayShift(Arc<AtomicI32>);

impl DayShift {
    /// Moves the sandbox to this many days from its current date, for all later searches.
    pub fn set(&self, days: i32) {
        self.0.store(days, Ordering::SeqCst);
    }

    fn days(&self) -> i32 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Default for SandboxOptions {
    /// Seed 1, real delays, the real day.
    fn default() -> Self {
        Self {
            seed: 1,
            latency_factor: 1.0,
            today: None,
            clock: None,
            scenario: None,
        }
    }
}
