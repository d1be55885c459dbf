//! A caller's word over scans while a worker works on them: everything through HTTP, the marketplace's ledger compared with what is
//! stored.

mod budget;
mod delete;
mod filters;
pub mod house;
mod pause;
mod preview;
mod races;
mod retry;
