//! Scans, through HTTP and against a real database. Where items have to be searched, [`office`] works the queue's own moves by hand,
//! so that every outcome comes when a test says.

mod cancel;
mod grid;
mod idempotency;
pub mod office;
mod read;
mod refused;
mod retry;
mod submit;
