//! The seven `/v1` endpoints (specification 4; contract 1 to 21), over the wire against the scripted marketplace.

mod clauses;
mod compression;
mod description;
pub mod endpoints;
mod errors;
pub mod keys;
mod outcomes;
mod raw;
mod requests;
mod rules;
mod secrets;
mod verify;
