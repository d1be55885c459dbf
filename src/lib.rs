pub mod config;
pub mod contract;
pub mod db;
pub mod history;
pub mod ids;
pub mod scans;
pub mod search;
pub mod tenants;
