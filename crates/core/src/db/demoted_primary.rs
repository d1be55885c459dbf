//! Replaces connections to a server that has become read-only: a demoted or fenced-off primary.
//!
//! Such connections work, so a pool would keep them. After a refused write (SQLSTATE 25006) the
//! pool drops connections that are older than the refusal; new ones resolve the address again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// SQLSTATE of a write in a read-only session.
pub(super) const READ_ONLY: &str = "25006";

/// When a write was last refused.
static REFUSED_AT: Mutex<Option<Instant>> = Mutex::new(None);

/// Records that a write was refused just now.
pub(super) fn record_refusal() {
    *REFUSED_AT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Whether a connection of this age is older than the last refusal.
pub(super) fn predates_refusal(age: Duration) -> bool {
    let refused_at = *REFUSED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    refused_at.is_some_and(|at| at.elapsed() <= age)
}
