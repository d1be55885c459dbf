pub mod contract;
pub mod ids;
pub mod search;
pub mod upstream;
