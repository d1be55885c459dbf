//! Incomplete scans that need a decision: to ask again, or to leave them as they are.
//!
//! A scan that its caller dismisses is listed again once it has been retried and is incomplete again. Not
//! here: the retry (`retry`).

mod store;

use jiff::{SignedDuration, Timestamp};
use sqlx::PgPool;

use crate::ids::{ScanId, TenantId};

/// An older incomplete scan was left as it is.
pub const DECISION_AGE: SignedDuration = SignedDuration::from_hours(14 * 24);
/// The most scans of a list: as many as a caller may have underway (security.md, rule 21).
pub const MAX_LISTED: u16 = 100;

/// An incomplete scan, and what a retry of it would make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndecidedScan {
    pub id: ScanId,
    /// Degraded or partial.
    pub searches: u64,
    pub requests_spent: u64,
}

/// The newest [`MAX_LISTED`] scans that need a decision.
pub async fn list(
    pool: &PgPool,
    tenant: TenantId,
    now: Timestamp,
) -> sqlx::Result<Vec<UndecidedScan>> {
    store::list(pool, tenant, now - DECISION_AGE, MAX_LISTED.into()).await
}

/// Leaves these scans as they are. An id of another caller, or of a scan that is not incomplete, changes
/// nothing.
pub async fn dismiss(
    pool: &PgPool,
    tenant: TenantId,
    scans: &[ScanId],
    now: Timestamp,
) -> sqlx::Result<()> {
    store::dismiss(pool, tenant, scans, now).await
}
