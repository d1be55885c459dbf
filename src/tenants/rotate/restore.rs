//! Undoing a rotation by the operator's word: a key that leaked can pass everything to a stranger's key, and a typo to nobody's.
//!
//! The old key comes back, or a third key takes its place. Whoever holds the key that it had passed to owns nothing then.

use jiff::Timestamp;
use sqlx::PgPool;

use super::{RotateError, Rotation, directory, pass, remembered_since, store};
use crate::db;
use crate::search::CallerKey;
use crate::tenants::fingerprint::Fingerprint;
use crate::tenants::keyring::Keyring;

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// No rotation of this key is remembered.
    #[error(
        "this key has passed nothing on within the last 48 hours, so there is nothing to restore"
    )]
    NothingPassed,
    /// The key that is to own it owns something else.
    #[error(
        "the key that would take over owns scans or monitors of its own, and two callers are not made one: name another key in a second line"
    )]
    Taken,
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Passes what `old` owned before its last rotation to `to`, which may be `old` itself. The keys that are held are sealed anew; lanes that
/// a refusal had stopped go on.
///
/// # Errors
/// [`RestoreError`]; nothing has changed then.
pub async fn restore(
    pool: &PgPool,
    ring: &Keyring,
    old: &CallerKey,
    to: &CallerKey,
    now: Timestamp,
) -> Result<Rotation, RestoreError> {
    let (old_prints, to_prints) = (Fingerprint::all(ring, old), Fingerprint::all(ring, to));
    let mut tx = db::begin(pool).await?;
    directory::lock(&mut tx, old_prints.iter().chain(&to_prints)).await?;
    let passed = store::passed_on(&mut tx, &old_prints, remembered_since(now)).await?;
    let Some((tenant, _)) = passed else {
        return Err(RestoreError::NothingPassed);
    };
    let rotation = pass(&mut tx, ring, tenant, to, now)
        .await
        .map_err(|error| match error {
            RotateError::Database(error) => RestoreError::Database(error),
            RotateError::Taken | RotateError::NothingOwned => RestoreError::Taken,
        })?;
    tx.commit().await?;
    Ok(rotation)
}
