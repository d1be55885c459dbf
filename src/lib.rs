pub mod cli;
pub mod ids;
