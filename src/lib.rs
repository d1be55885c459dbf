pub mod config;
pub mod db;
pub mod ids;
