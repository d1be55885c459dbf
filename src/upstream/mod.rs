//! The marketplace client: one [`Search`](crate::search::Search) in, one [`Outcome`](crate::search::Outcome) out.
//!
//! Here: which marketplace it is (`marketplace`), where and how it is asked (`native`), sending with its time budget, bounds and the one second try
//! (`client`), what an answer means (`wire`, pure: contract.md's outcome table) and what its quota headers say (`quota`, pure).
//! Both faces of farescan go through [`Client::ask`]. Not here: HTTP routes, what a caller is answered (`http`), what a scan makes of
//! an outcome (`search::fate`), the database.

mod client;
mod marketplace;
mod native;
mod probe;
mod quota;
mod reply;
mod wire;

pub use client::Client;
pub use marketplace::Marketplace;
pub use native::{ConfigFault, UpstreamConfig};
pub use probe::{Probe, lightest};
