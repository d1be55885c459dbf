//! The events of scans, over real HTTP: seen live, resumed anywhere, by many at once.

pub mod client;
mod ends;
mod live;
mod many;
mod resume;
