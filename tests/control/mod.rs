//! A caller's word over scans while a worker works on them: everything through HTTP, the marketplace's ledger compared with what is
//! stored.

mod bounds;
mod budget;
mod delete;
mod fair;
mod filters;
pub mod house;
mod pause;
mod plan;
mod preview;
mod races;
mod retry;
