//! Webhooks: real receivers on loopback, a test resolver, and real processes that are killed.
//!
//! Due times are in the database, so a test changes them instead of waiting. Receivers listen at
//! 127.0.0.1, which the insecure setting allows. Forbidden targets listen at 127.0.0.2, so the
//! tests notice a guard that lets a call through.

mod concurrent_commands;
mod endpoints;
pub mod harness;
mod kill;
mod limits;
mod one_at_a_time;
mod outcomes;
mod routes;
mod secrets;
