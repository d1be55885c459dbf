//! Which marketplace a database belongs to.
//!
//! Prices, alerts and quotas of two marketplaces in one database would be taken for one's, and a key would be shown to a marketplace that
//! it is not for. So the first process that starts on a database writes down which marketplace it asks, and a process that asks another one
//! does not start. `farescan marketplace set` alone changes it, while no worker holds a lease. A lease names its marketplace too, held by a
//! foreign key, so that a worker cannot slip in between a check and a change.
//!
//! Not here: which settings name which marketplace (`upstream::Marketplace`).

mod store;

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::db;
use crate::upstream::Marketplace;

/// How long after a failure the database is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Why a process may not work on a database, or its marketplace is not changed.
#[derive(Debug, thiserror::Error)]
pub enum MarketplaceError {
    /// It belongs to another one.
    #[error(
        "the {database} belongs to the marketplace `{held}`, and these settings name `{named}`: nothing was started. Give the settings of \
         the first, or another {variable}. If the marketplace has moved to a new address, stop every process and run \
         `farescan marketplace set` with the new settings"
    )]
    Another {
        /// The database or its replica, in words.
        database: &'static str,
        /// The variable that names it.
        variable: &'static str,
        /// Whose prices it holds.
        held: String,
        /// Whom this process would ask.
        named: String,
    },
    /// Made by a version that did not note it; real callers must not get invented prices.
    #[error(
        "the database has callers, and does not say which marketplace they use: a sandbox does not answer them. Set another DATABASE_URL, or \
         none; if it has only ever held prices of a sandbox, run `farescan marketplace set --sandbox`"
    )]
    UnknownToSandbox,
    /// Somebody would go on asking the old one.
    #[error(
        "a worker has a lease until {0}: stop every `serve` and `worker` of this database first, or wait until the lease is over"
    )]
    InUse(Timestamp),
    /// It may pass.
    #[error("the database does not say which marketplace it belongs to: {0}")]
    Database(#[from] sqlx::Error),
}

/// Notes the marketplace in a database that has none yet, and refuses another one than is noted. Any number of processes may come at once:
/// one is the first.
///
/// # Errors
/// [`MarketplaceError`].
pub async fn bind(pool: &PgPool, named: &Marketplace) -> Result<(), MarketplaceError> {
    if let Some(held) = store::held(pool).await? {
        return same(&held, named);
    }
    let is_first = store::note(pool, named.as_str(), named.is_sandbox()).await?;
    let held = store::held(pool)
        .await?
        .ok_or(MarketplaceError::UnknownToSandbox)?;
    if is_first {
        tracing::info!(marketplace = %held, "the database belongs to this marketplace from now on");
    }
    same(&held, named)
}

/// The same, tried again while the database is away; `false`: told to stop before it answered.
///
/// # Errors
/// [`MarketplaceError`], but for what passes.
pub async fn bind_when_it_answers(
    pool: &PgPool,
    named: &Marketplace,
    stop: &CancellationToken,
) -> Result<bool, MarketplaceError> {
    loop {
        match bind(pool, named).await {
            Ok(()) => return Ok(true),
            Err(MarketplaceError::Database(error)) if db::is_away(&error) => {
                tracing::warn!(%error, "the database does not say which marketplace it belongs to; asked again");
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(false),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// Refuses a replica of another marketplace's database. One that is away, or does not have the table, refuses nothing: what it holds cannot
/// be known, and the rest of the service does without it.
///
/// # Errors
/// [`MarketplaceError::Another`].
pub async fn check_replica(reads: &PgPool, named: &Marketplace) -> Result<(), MarketplaceError> {
    match store::held(reads).await {
        Ok(Some(held)) if held != named.as_str() => Err(another(
            "replica",
            "FARESCAN_READ_DATABASE_URL",
            &held,
            named,
        )),
        Ok(_) => Ok(()),
        Err(error) => {
            tracing::warn!(%error, "the replica does not say which marketplace it belongs to");
            Ok(())
        }
    }
}

/// Which marketplace a database belongs to.
///
/// # Errors
/// The database does not answer, or has no such table.
pub async fn held(pool: &PgPool) -> Result<Option<String>, MarketplaceError> {
    Ok(store::held(pool).await?)
}

/// Moves a database to another marketplace, while nobody works on it. Gives the one before.
///
/// # Errors
/// [`MarketplaceError::InUse`]; the database does not answer.
pub async fn set(pool: &PgPool, named: &Marketplace) -> Result<Option<String>, MarketplaceError> {
    let mut tx = db::begin(pool).await?;
    let held = store::locked(&mut tx).await?;
    if let Some(until) = store::leased_until(&mut tx).await? {
        return Err(MarketplaceError::InUse(until));
    }
    store::bury_all(&mut tx).await?;
    store::change(&mut tx, named.as_str()).await?;
    tx.commit().await?;
    Ok(held)
}

fn same(held: &str, named: &Marketplace) -> Result<(), MarketplaceError> {
    if held == named.as_str() {
        Ok(())
    } else {
        Err(another("database", "DATABASE_URL", held, named))
    }
}

fn another(
    database: &'static str,
    variable: &'static str,
    held: &str,
    named: &Marketplace,
) -> MarketplaceError {
    MarketplaceError::Another {
        database,
        variable,
        held: held.to_owned(),
        named: named.to_string(),
    }
}
