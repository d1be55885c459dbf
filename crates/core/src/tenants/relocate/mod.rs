//! Moves a caller from one installation's database to another's (docs/scaling.md, "Cells").
//!
//! It pauses the caller's lanes, waits for calls in flight, copies all rows from one snapshot, and
//! deletes them at the source after the copy is committed. Until then the copy is parked: nothing
//! of it can be called or sent. So at most one installation works for the caller whenever the
//! process or a database fails, and the same command run again finishes the move.

mod store;

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::{PgPool, Postgres, Transaction};
use tokio::time::{Instant, sleep};

use super::master_keys::Keyring;
use crate::db;
use crate::ids::TenantId;

pub use store::TABLES;
pub(super) use store::{delete, lock};

/// How often to query the source for calls in flight.
const POLL: Duration = Duration::from_millis(100);

/// Why a caller was not moved.
#[derive(Debug, thiserror::Error)]
pub enum RelocateError {
    /// Neither database has the tenant.
    #[error("there is no caller {0} at the source")]
    UnknownTenant(TenantId),
    /// The target works for this tenant already.
    #[error("the target has the caller {0} already and works for it")]
    AlreadyAtTarget(TenantId),
    /// The target could not open the sealed keys.
    #[error(
        "the target's master key lacks the entries {0}: add them, or run `farescan keys rewrap` at the source"
    )]
    MissingMasterKeys(String),
    /// Calls, unrecorded answers or webhook deliveries did not end in time.
    #[error(
        "{0} calls or deliveries were still in flight, so the caller stays at the source; try again later"
    )]
    InFlight(i64),
    /// A statement failed; run the command again.
    #[error("the move stopped: {0}; run the command again to finish it")]
    Database(#[from] sqlx::Error),
}

/// The result of a move.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Relocated {
    /// Rows by table, in the order of [`TABLES`]. Empty: an earlier run moved them, and this one
    /// only released the caller at the target.
    pub rows: Vec<(&'static str, u64)>,
}

/// Moves a caller; `patience` bounds the wait for calls in flight.
///
/// # Errors
/// [`RelocateError`]. In every case one of the databases has all rows of the caller, and at most
/// one works for it.
pub async fn relocate(
    source: &PgPool,
    target: &PgPool,
    target_ring: &Keyring,
    tenant: TenantId,
    patience: Duration,
) -> Result<Relocated, RelocateError> {
    if !store::exists(source, tenant).await? {
        if !store::exists(target, tenant).await? {
            return Err(RelocateError::UnknownTenant(tenant));
        }
        store::release(&mut *target.acquire().await?, tenant).await?;
        return Ok(Relocated::default());
    }
    check_ring(source, target_ring, tenant).await?;
    if store::exists(target, tenant).await? {
        remove_parked(target, tenant).await?;
    }
    store::pause(source, tenant).await?;
    let moved = move_rows(source, target, tenant, patience).await;
    if moved.is_err() {
        // The source has all rows and continues. If it does not answer, its lanes stay paused until
        // the next run.
        if let Ok(mut conn) = source.acquire().await {
            let _ = store::release(&mut conn, tenant).await;
        }
    }
    let rows = moved?;
    store::release(&mut *target.acquire().await?, tenant).await?;
    Ok(Relocated { rows })
}

async fn check_ring(
    source: &PgPool,
    ring: &Keyring,
    tenant: TenantId,
) -> Result<(), RelocateError> {
    let missing: BTreeSet<_> = store::master_keys(source, tenant)
        .await?
        .into_iter()
        .filter(|id| ring.key(id).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(RelocateError::MissingMasterKeys(
        missing.into_iter().collect::<Vec<_>>().join(", "),
    ))
}

/// Deletes the copy that an interrupted move left at the target. The source still has everything,
/// and the copy was never used.
async fn remove_parked(target: &PgPool, tenant: TenantId) -> Result<(), RelocateError> {
    let mut tx = begin(target).await?;
    if !store::is_parked(&mut tx, tenant).await? {
        return Err(RelocateError::AlreadyAtTarget(tenant));
    }
    store::delete(&mut tx, tenant).await?;
    Ok(tx.commit().await?)
}

async fn move_rows(
    source: &PgPool,
    target: &PgPool,
    tenant: TenantId,
    patience: Duration,
) -> Result<Vec<(&'static str, u64)>, RelocateError> {
    wait_until_quiet(source, tenant, patience).await?;
    // Locked until the rows are deleted: each submission, resume, tick or delivery of this caller
    // waits, and then finds nothing.
    let mut locked = begin(source).await?;
    store::lock(&mut locked, tenant).await?;
    let in_flight = store::in_flight(&mut *locked, tenant).await?;
    if in_flight > 0 {
        return Err(RelocateError::InFlight(in_flight));
    }
    let rows = copy(source, target, tenant).await?;
    store::delete(&mut locked, tenant).await?;
    locked.commit().await?;
    Ok(rows)
}

async fn wait_until_quiet(
    source: &PgPool,
    tenant: TenantId,
    patience: Duration,
) -> Result<(), RelocateError> {
    let deadline = Instant::now() + patience;
    loop {
        let in_flight = store::in_flight(source, tenant).await?;
        if in_flight == 0 {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(RelocateError::InFlight(in_flight));
        }
        sleep(POLL).await;
    }
}

/// Copies all rows from one snapshot and parks them, in one transaction at the target.
async fn copy(
    source: &PgPool,
    target: &PgPool,
    tenant: TenantId,
) -> Result<Vec<(&'static str, u64)>, RelocateError> {
    let mut from = db::snapshot(source.acquire().await?).await?;
    store::lift_time_limits(&mut from).await?;
    let mut to = begin(target).await?;
    store::make_partitions(&mut from, &mut to, tenant).await?;
    let mut rows = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        rows.push((
            *table,
            store::copy_table(&mut from, &mut to, table, tenant).await?,
        ));
    }
    store::park(&mut to, tenant).await?;
    to.commit().await?;
    Ok(rows)
}

async fn begin(pool: &PgPool) -> sqlx::Result<Transaction<'static, Postgres>> {
    let mut tx = db::begin(pool).await?;
    store::lift_time_limits(&mut tx).await?;
    Ok(tx)
}
