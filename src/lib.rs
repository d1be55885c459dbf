pub mod contract;
pub mod ids;
