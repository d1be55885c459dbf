//! The single integration test binary: one module per part of the service, tested from outside.

#![allow(clippy::too_many_lines, reason = "a scenario reads from top to bottom")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says where"
)]

#[macro_use]
mod support;

mod acceptance;
mod account;
mod alerts;
mod architecture;
mod bounds;
mod browser;
mod cache_control;
mod channels;
mod citations;
mod cli;
mod control;
mod documents;
mod embedded;
mod events;
mod examples;
mod exports;
mod faults;
mod find_cheapest;
mod gateway;
mod guides;
mod history;
mod import_circles;
mod isolation;
mod links;
mod monitors;
mod month;
mod operation;
mod prefer;
mod queue;
mod reuse;
mod scaling;
mod scans;
mod syntax;
mod tenants;
mod web;
mod webhooks;
mod worker;
