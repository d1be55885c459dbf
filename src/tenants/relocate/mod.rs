//! Moves a caller from one installation's database to another's (docs/scaling.md, "Cells").
//!
//! The caller's lanes pause, calls in flight end, all rows are copied from one snapshot, and only after the copy is committed are they
//! deleted at the source. Until then the copy is parked: nothing of it can be called. So whenever the process or a database fails, at most
//! one of the two installations works for the caller, and the same command run again finishes the move.

mod store;

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::{PgPool, Postgres, Transaction};
use tokio::time::{Instant, sleep};

use super::keyring::Keyring;
use crate::db;
use crate::ids::TenantId;

pub use store::TABLES;
pub(super) use store::delete;

/// How often the source is asked whether calls are still in flight.
const POLL: Duration = Duration::from_millis(100);

/// Why a caller stays where it is.
#[derive(Debug, thiserror::Error)]
pub enum RelocateError {
    /// Neither database has the tenant.
    #[error("there is no caller {0} at the source")]
    UnknownTenant(TenantId),
    /// The target works for this tenant already.
    #[error("the target has the caller {0} already, and works for it")]
    AlreadyAtTarget(TenantId),
    /// The target could not open what is sealed.
    #[error(
        "the target's master key lacks the entries {0}: add them, or run `farescan keys rewrap` at the source"
    )]
    MissingMasterKeys(String),
    /// Calls, answers on their way to the database or webhook deliveries did not end in time.
    #[error(
        "{0} calls or deliveries were still in flight; the caller goes on at the source: try again later"
    )]
    InFlight(i64),
    /// A statement failed; run the command again.
    #[error("the move stopped: {0}; run it again, it goes on where that is safe")]
    Database(#[from] sqlx::Error),
}

/// What was moved.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Relocated {
    /// Rows by table, in the order of [`TABLES`]. Empty: an earlier run had moved them, and this one only set them going.
    pub rows: Vec<(&'static str, u64)>,
}

/// Moves a caller; `patience` bounds the wait for calls in flight.
///
/// # Errors
/// [`RelocateError`]. Whatever it is, the caller's rows are whole in one of the databases, and no more than one works for it.
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
        // The source has them all: it goes on. Without an answer its lanes stay paused until the next run.
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

/// Removes the copy that a broken move left at the target: the source still has everything, and nothing of the copy was ever called.
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
    // Held until the rows are gone: whoever wants to order, resume, tick or deliver for this caller waits, and then finds nothing.
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

/// Copies all rows from one snapshot, and parks them at the target, in one transaction there.
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
