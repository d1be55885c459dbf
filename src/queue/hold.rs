//! Pausing a scan that cannot go on. Not here: pauses by the caller (`scans::control`) and of a whole lane (`pause_lane`).

use sqlx::PgExecutor;

use crate::ids::{ScanId, TenantId};

/// Why a scan cannot go on, as whoever asked for the pause has seen it. It may be over by now, so the database looks again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// `max_requests` is reached.
    BudgetSpent,
    /// No key is held for it.
    KeyGone,
    /// The key that is held for it does not open; one that was sealed anew has another nonce.
    KeyUnopened {
        /// The nonce of what did not open.
        nonce: Vec<u8>,
    },
}

/// Pauses a scan and holds what of it has not been sent; `false`: there was nothing to pause, or the cause is gone.
///
/// # Errors
/// When the database does not answer.
pub async fn hold_scan(
    conn: impl PgExecutor<'_>,
    tenant: TenantId,
    scan: ScanId,
    cause: &Cause,
) -> sqlx::Result<bool> {
    let (reason, unopened) = match cause {
        Cause::BudgetSpent => ("budget_spent", None),
        Cause::KeyGone => ("key_expired", None),
        Cause::KeyUnopened { nonce } => ("key_expired", Some(nonce.as_slice())),
    };
    sqlx::query_scalar!(
        r#"select hold_scan($1, $2, $3, $4) as "held!""#,
        tenant.uuid(),
        scan.uuid(),
        reason,
        unopened
    )
    .fetch_one(conn)
    .await
}
