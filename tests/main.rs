//! The one integration binary: the house seen from outside, a module for each part of it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod acceptance;
mod account;
mod alerts;
mod bounds;
mod control;
mod embedded;
mod events;
mod exports;
mod faults;
mod gateway;
mod history;
mod house;
mod isolation;
mod monitors;
mod operation;
mod prefer;
mod queue;
mod scaling;
mod scans;
mod support;
mod tenants;
mod webhooks;
mod worker;
