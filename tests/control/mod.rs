//! Commands on scans while a worker processes them: through HTTP only, with the marketplace's
//! ledger compared with the stored scans.

mod bounds;
mod budget;
mod delete;
mod fair;
mod filters;
mod pause;
mod plan;
mod preview;
mod races;
mod retry;
