pub mod config;
pub mod contract;
pub mod db;
pub mod ids;
pub mod search;
pub mod upstream;
