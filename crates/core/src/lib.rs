//! The scanner of farescan: everything beneath the HTTP API and the dashboard.
//!
//! The modules are in reading order. `tests/architecture.rs` of the workspace lists which may use
//! which.

pub use farescan_contract::{self as contract, ids, visible_text};

pub mod search;
pub mod upstream;

pub mod config;
pub mod db;
pub mod marketplace;
pub mod metrics;
pub mod open_files;
pub mod paging;
pub mod passes;
pub mod tenants;

pub mod commands;

pub mod account;
pub mod history;
pub use farescan_planner as planner;
pub mod scans;

pub mod notices;
pub mod notify;
pub mod webhooks;

pub mod channels;

pub mod monitors;

pub mod activity;

pub mod queue;

pub mod charges;
pub mod search_recorder;
pub mod upkeep;
pub mod worker;

pub mod app;
