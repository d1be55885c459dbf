//! Connections to a server that takes no writes any more: a primary that has become a standby, or was fenced off.
//!
//! Such a connection works, so a pool would keep it for as long as it lives, and whoever gets it is refused. When a write has been refused
//! for that (SQLSTATE 25006), connections that are older than the refusal are not given out again: new ones ask the address anew.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The SQLSTATE of a write in a session that takes none.
pub(super) const READ_ONLY: &str = "25006";

/// When a write was last refused.
static REFUSED_AT: Mutex<Option<Instant>> = Mutex::new(None);

/// A write was refused just now.
pub(super) fn refused() {
    *REFUSED_AT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Whether a connection of this age was made before the last refusal.
pub(super) fn may_lead_there(age: Duration) -> bool {
    let refused_at = *REFUSED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    refused_at.is_some_and(|at| at.elapsed() <= age)
}
