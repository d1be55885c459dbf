//! The marketplace client: takes a [`Search`](crate::search::Search), returns an
//! [`Outcome`](crate::search::Outcome).
//!
//! - `client`: sends requests within a time budget, with at most one retry
//! - `endpoints`: URLs, paths and headers; `marketplace`: the identity of the marketplace
//! - `classify`: classifies responses (gateway.md, rule 45); `quota`: parses quota headers; both pure
//!
//! Gateway and scanner both use [`Client::search`]. The HTTP response is built in `api`; the
//! consequences for a scan are in `search::outcome_status`. Does not use the database.

mod classify;
mod client;
mod endpoints;
mod marketplace;
mod probe;
mod quota;
mod raw_response;

pub use client::Client;
pub use endpoints::{UpstreamConfig, UpstreamConfigError};
pub use marketplace::Marketplace;
pub use probe::{Probe, probe_endpoint};
