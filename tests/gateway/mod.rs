//! The seven `/v1` endpoints (gateway.md, rules 1 to 21), over HTTP against the scripted
//! marketplace.

mod client_generators;
mod compression;
mod description;
pub mod endpoints;
mod errors;
pub mod keys;
mod outcomes;
mod raw_requests;
mod recorded;
mod requests;
mod secrets;
mod upstream_calls;
mod verify;
