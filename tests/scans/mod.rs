//! Scans, through HTTP and against a real database. `support::steps` runs the queue's steps one by
//! one, so that a test decides the time and outcome of every search.

mod cancel;
mod grid;
mod idempotency;
mod read;
mod refused;
mod retry;
mod submit;
