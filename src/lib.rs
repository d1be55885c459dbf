pub mod config;
pub mod contract;
pub mod db;
pub mod http;
pub mod ids;
pub mod search;
pub mod telemetry;
pub mod upstream;
