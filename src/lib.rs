pub mod ids;
pub mod sandbox;
