//! Undoing a rotation on the operator's order: with a leaked key or a typo, a rotation may give
//! everything to a wrong key.
//!
//! The old key or a third key owns the tenant again. The key that it was rotated to owns nothing
//! then.

use jiff::Timestamp;
use sqlx::PgPool;

use super::{RotateError, Rotation, directory, replay_window_start, store, transfer};
use crate::db;
use crate::search::CallerKey;
use crate::tenants::fingerprint::Fingerprint;
use crate::tenants::master_keys::Keyring;

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// No rotation of this key is stored.
    #[error("this key was not rotated within the last 48 hours, so there is nothing to restore")]
    NothingToUndo,
    /// The key that would own the tenant owns something else.
    #[error(
        "the key that would take over owns scans or monitors of its own, and two callers are never merged: give another key in a second line"
    )]
    NewKeyInUse,
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Transfers what `old` owned before its last rotation to `to`, which may be `old` itself. Seals
/// the stored keys anew and resumes the lanes that a refused key had paused.
///
/// # Errors
/// [`RestoreError`]; nothing has changed.
pub async fn restore(
    pool: &PgPool,
    ring: &Keyring,
    old: &CallerKey,
    to: &CallerKey,
    now: Timestamp,
) -> Result<Rotation, RestoreError> {
    let (old_fingerprints, to_fingerprints) =
        (Fingerprint::all(ring, old), Fingerprint::all(ring, to));
    let mut tx = db::begin(pool).await?;
    directory::take_advisory_locks(&mut tx, old_fingerprints.iter().chain(&to_fingerprints))
        .await?;
    let rotation =
        store::find_rotation(&mut tx, &old_fingerprints, replay_window_start(now)).await?;
    let Some((tenant, _)) = rotation else {
        return Err(RestoreError::NothingToUndo);
    };
    let rotation = transfer(&mut tx, ring, tenant, to, now)
        .await
        .map_err(|error| match error {
            RotateError::Database(error) => RestoreError::Database(error),
            RotateError::NewKeyInUse | RotateError::NothingOwned => RestoreError::NewKeyInUse,
        })?;
    tx.commit().await?;
    Ok(rotation)
}
