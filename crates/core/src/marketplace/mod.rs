//! Binds a database to one marketplace.
//!
//! A database with two marketplaces would mix their prices, alerts and quotas, and would send keys
//! to the wrong one. The first process on a database stores its marketplace; a process with another
//! one does not start. Only `farescan marketplace set` changes it, while no worker has a lease.
//! Leases refer to the marketplace by a foreign key, so that no worker can start between check and
//! change.
//!
//! `upstream::Marketplace` derives the identity from the settings.

mod store;

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::db;
use crate::upstream::Marketplace;

/// Pause before the next attempt after a database error.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Why a process cannot use a database, or its marketplace cannot change.
#[derive(Debug, thiserror::Error)]
pub enum MarketplaceError {
    /// The database belongs to another marketplace.
    #[error(
        "the {database} belongs to the marketplace `{stored}`, but the settings name `{configured}`: nothing was \
         started. Use the settings of the former or another {variable}. If the marketplace has a new address, \
         stop every process and run `farescan marketplace set` with the new settings"
    )]
    Mismatch {
        /// "database" or "replica".
        database: &'static str,
        /// The setting with its URL.
        variable: &'static str,
        /// The database's marketplace.
        stored: String,
        /// This process's marketplace.
        configured: String,
    },
    /// An old version created it. Real callers must not get simulated prices.
    #[error(
        "the database has callers but no recorded marketplace, so the sandbox must not answer them. Set another \
         DATABASE_URL, or none; if it holds only prices of a sandbox, run `farescan marketplace set --sandbox`"
    )]
    UnknownMarketplace,
    /// A worker still uses the old marketplace.
    #[error(
        "a worker has a lease until {0}: stop every `serve` and `worker` of this database, or wait until the lease \
         expires"
    )]
    InUse(Timestamp),
    /// May be transient.
    #[error("cannot read the database's marketplace: {0}")]
    Database(#[from] sqlx::Error),
}

/// Stores the marketplace if the database has none; rejects a different one. Concurrent calls are
/// safe: the first wins.
pub async fn bind(pool: &PgPool, configured: &Marketplace) -> Result<(), MarketplaceError> {
    if let Some(stored) = store::stored(pool).await? {
        return check_same(&stored, configured);
    }
    let is_first = store::set_first(pool, configured.as_str(), configured.is_sandbox()).await?;
    let stored = store::stored(pool)
        .await?
        .ok_or(MarketplaceError::UnknownMarketplace)?;
    if is_first {
        tracing::info!(marketplace = %stored, "bound the database to this marketplace");
    }
    check_same(&stored, configured)
}

/// [`bind`] with retries while the database is unavailable; `false` if `stop` came first.
pub async fn bind_with_retry(
    pool: &PgPool,
    configured: &Marketplace,
    stop: &CancellationToken,
) -> Result<bool, MarketplaceError> {
    loop {
        match bind(pool, configured).await {
            Ok(()) => return Ok(true),
            Err(MarketplaceError::Database(error)) if db::is_unavailable(&error) => {
                tracing::warn!(%error, "failed to read the database's marketplace; retrying");
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(false),
            () = tokio::time::sleep(RETRY_INTERVAL) => {}
        }
    }
}

/// Rejects a replica of another marketplace's database. If the replica is unavailable or lacks the
/// table, it is accepted: the service works without it.
pub async fn check_replica(
    reads: &PgPool,
    configured: &Marketplace,
) -> Result<(), MarketplaceError> {
    match store::stored(reads).await {
        Ok(Some(stored)) if stored != configured.as_str() => Err(mismatch(
            "replica",
            "FARESCAN_READ_DATABASE_URL",
            &stored,
            configured,
        )),
        Ok(_) => Ok(()),
        Err(error) => {
            tracing::warn!(%error, "failed to read the replica's marketplace");
            Ok(())
        }
    }
}

/// The marketplace that a database belongs to, if any.
pub async fn stored(pool: &PgPool) -> Result<Option<String>, MarketplaceError> {
    Ok(store::stored(pool).await?)
}

/// Moves a database to another marketplace. Returns the previous one.
///
/// # Errors
/// [`MarketplaceError::InUse`] while a worker has a lease.
pub async fn set(
    pool: &PgPool,
    configured: &Marketplace,
) -> Result<Option<String>, MarketplaceError> {
    let mut tx = db::begin(pool).await?;
    let stored = store::lock(&mut tx).await?;
    if let Some(until) = store::leased_until(&mut tx).await? {
        return Err(MarketplaceError::InUse(until));
    }
    store::expire_workers(&mut tx).await?;
    store::set(&mut tx, configured.as_str()).await?;
    tx.commit().await?;
    Ok(stored)
}

fn check_same(stored: &str, configured: &Marketplace) -> Result<(), MarketplaceError> {
    if stored == configured.as_str() {
        Ok(())
    } else {
        Err(mismatch("database", "DATABASE_URL", stored, configured))
    }
}

fn mismatch(
    database: &'static str,
    variable: &'static str,
    stored: &str,
    configured: &Marketplace,
) -> MarketplaceError {
    MarketplaceError::Mismatch {
        database,
        variable,
        stored: stored.to_owned(),
        configured: configured.to_string(),
    }
}
