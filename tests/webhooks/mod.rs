//! Webhooks: real receivers over loopback, a resolver of the test's, real processes that are killed.
//!
//! The schedule is the database's: a test moves due times there instead of waiting. Receivers are at 127.0.0.1, which the setting for
//! tests opens; what must not be reached listens for real at 127.0.0.2, so a guard that lets something through is seen to.

mod endpoints;
mod fates;
mod kill;
mod lanes;
mod pairs;
pub mod post;
mod routes;
mod secrets;
mod shares;
