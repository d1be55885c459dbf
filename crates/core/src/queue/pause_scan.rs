//! Pauses a scan that cannot go on. Not here: pauses by the caller (`scans::control`) and of a lane
//! (`pause_lane`).

use sqlx::PgExecutor;

use crate::ids::{ScanId, TenantId};

/// Why a scan cannot go on, as the process has seen it. The database checks the cause again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PauseCause {
    /// `max_requests` is reached.
    BudgetSpent,
    /// The scan has no key.
    KeyGone,
    /// The scan's key does not open; a key that was sealed again has another nonce.
    KeyUnopened {
        /// The nonce of the key that did not open.
        nonce: Vec<u8>,
    },
}

/// Pauses a scan and its items that were not sent; `false`: nothing to pause, or the cause is gone.
pub async fn pause_scan(
    conn: impl PgExecutor<'_>,
    tenant: TenantId,
    scan: ScanId,
    cause: &PauseCause,
) -> sqlx::Result<bool> {
    let (reason, unopened) = match cause {
        PauseCause::BudgetSpent => ("budget_spent", None),
        PauseCause::KeyGone => ("key_expired", None),
        PauseCause::KeyUnopened { nonce } => ("key_expired", Some(nonce.as_slice())),
    };
    sqlx::query_scalar!(
        r#"select pause_scan($1, $2, $3, $4) as "held!""#,
        tenant.uuid(),
        scan.uuid(),
        reason,
        unopened
    )
    .fetch_one(conn)
    .await
}
