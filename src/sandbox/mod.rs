//! The sandbox: a marketplace with two travel engines, good enough to develop against.
//!
//! It answers at the native paths of `contract.md` with the statuses, headers and habits that are known of the real
//! listing: plans and rate windows counted for each key (specification 8), quota and search headers (specification
//! 4.3), delays like the real engines'. Prices are invented, seeded and pure: the same seed, day, body and history of
//! the key give the same answer, and they move with the day so that a history has a shape. It shares no code with
//! the service's own client, so that the two cannot share a mistake.
//!
//! # Keys
//! Sent in `x-rapidapi-key` or `x-marketplace-key`. A suffix (`sandbox-pro.alice`) opens the same plan and has
//! counters of its own.
//!
//! | Key | Opens |
//! |---|---|
//! | `sandbox-basic` | both APIs, 10 requests a month each, then a hard stop |
//! | `sandbox-pro`, `sandbox-ultra`, `sandbox-mega` | both APIs with the quotas and windows of specification 8 |
//! | `sandbox-flights-only`, `sandbox-hotels-only` | plan Pro for one API, 403 for the other |
//! | `sandbox-unlimited` | both APIs without limits |
//! | `sandbox-demo` | the same; departures and check-ins on a 13th are degraded on the first ask, fine on the next |
//!
//! # Magic values
//! A destination airport, or the first word of a destination, hotel name or hotel id (`ZZE Hotel`, `xx/zze-hotel`).
//! "The next ask" is that of the same key with exactly the same body.
//!
//! | Word | Flights | Hotels |
//! |---|---|---|
//! | `ZZE` | empty: 200 `[]` | search, by-name, resolve 404; rooms 200 with an empty list |
//! | `ZZP` | partial: half of the rows | half of the properties or rooms; by-name is sold out |
//! | `ZZD` | degraded always: 200 `[]`, to a strict request 503 `search_incomplete` | 503 `search_incomplete` |
//! | `ZZR` | degraded on the first ask, fine on the next | the same |
//! | `ZZS` | 503 on the first ask, fine on the next | the same |
//! | `ZZX` | 503 always | the same |
//! | `ZZT` | never answers | the same |
//! | `ZZG` | 200 with a web page | the same |
//! | `ZZQ` | 429 with `Retry-After: 1`, not counted | the same |
//!
//! Flights that leave before today or more than 361 days ahead do not exist (`empty`), nor does an airport that is
//! not in the table; stays are sold 500 days ahead and up to 90 nights long.

mod answers;
mod draws;
mod faults;
mod flights;
mod front_page;
mod hotels;
mod plans;
mod server;
mod wire;
mod world;

#[cfg(test)]
mod tests;

pub use server::{router, serve};

/// How a sandbox behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SandboxOptions {
    /// Every price, timetable and delay follows from it.
    pub seed: u64,
    /// 1.0 is as slow as the real engines, 0.0 answers at once.
    pub latency_factor: f64,
    /// The day that prices are seen from, and whose month the quotas count in; none for the real one (UTC).
    pub today: Option<jiff::civil::Date>,
}

impl Default for SandboxOptions {
    /// Seed 1, real delays, the real day.
    fn default() -> Self {
        Self {
            seed: 1,
            latency_factor: 1.0,
            today: None,
        }
    }
}
