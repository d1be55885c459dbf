//! Rotation: a new key replaces a caller's key (security.md, rule 10). The tenant stays; its
//! fingerprints and its sealed keys change.
//!
//! ```text
//!  old key owns a tenant, new key owns nothing ──► the new key owns the tenant
//!  old key owns nothing, was rotated to the new key lately ──► the same answer again
//!  old key owns nothing otherwise ──► NothingOwned
//!  new key owns something ──► NewKeyInUse
//! ```
//!
//! One transaction takes these locks, in this order:
//!
//! 1. the advisory locks of both keys' fingerprints, so that no process creates a tenant for either
//!    key, and concurrent rotations run one after the other;
//! 2. the tenant's rows in `tenant_keys`, so that every running submission with the old key has
//!    sealed it before the grants are read, and every later one finds no tenant;
//! 3. the tenant's lanes;
//! 4. its grants.
//!
//! A call in flight has opened the old key and ends with it.

pub mod restore;
mod store;

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use sqlx::PgPool;

use super::fingerprint::Fingerprint;
use super::master_keys::Keyring;
use super::relocate;
use super::store as directory;
use crate::db;
use crate::db::clock::DatabaseTime;
use crate::ids::TenantId;
use crate::search::CallerKey;

/// How long a rotation is stored: a repetition gets its answer, and `restore` can undo it.
pub const REPLAY_WINDOW: SignedDuration = SignedDuration::from_hours(48);

/// The result of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// When it happened.
    pub at: Timestamp,
    /// How many stored keys were sealed anew.
    pub held_keys: u32,
    /// The APIs of the lanes that were resumed.
    pub lanes_resumed: Vec<String>,
    /// An earlier request did it; this one changed nothing.
    pub repeated: bool,
}

/// Why a rotation is refused.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The old key owns nothing: it never submitted anything, or was rotated to another key.
    #[error("the key of this request owns nothing here")]
    NothingOwned,
    /// The new key owns something already; two callers are never merged.
    #[error("the new key owns something here already")]
    NewKeyInUse,
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Transfers everything that `old` owns to `new`, another key. Repeated within two days, it answers
/// the same.
///
/// # Errors
/// [`RotateError`]; nothing has changed.
pub async fn rotate(
    pool: &PgPool,
    ring: &Keyring,
    old: &CallerKey,
    new: &CallerKey,
    now: Timestamp,
) -> Result<Rotation, RotateError> {
    let (old_fingerprints, new_fingerprints) =
        (Fingerprint::all(ring, old), Fingerprint::all(ring, new));
    let mut tx = db::begin(pool).await?;
    directory::take_advisory_locks(&mut tx, old_fingerprints.iter().chain(&new_fingerprints))
        .await?;
    let tenant = match rotation_state(&mut tx, &old_fingerprints, &new_fingerprints, now).await? {
        RotationState::Ready(tenant) => tenant,
        RotationState::AlreadyRotated(rotation) => return Ok(rotation),
    };
    let rotation = transfer(&mut tx, ring, tenant, new, now).await?;
    tx.commit().await?;
    Ok(rotation)
}

/// Whether the rotation is possible, without changing anything. `None`: it is. `Some`: it was done
/// before, and this is its answer. Call it before having the marketplace check the new key: only a
/// key that owns something may cause such a check.
///
/// # Errors
/// [`RotateError`], as the rotation itself.
pub async fn check_rotation(
    pool: &PgPool,
    ring: &Keyring,
    old: &CallerKey,
    new: &CallerKey,
    now: Timestamp,
) -> Result<Option<Rotation>, RotateError> {
    let mut conn = pool.acquire().await?;
    match rotation_state(
        &mut conn,
        &Fingerprint::all(ring, old),
        &Fingerprint::all(ring, new),
        now,
    )
    .await?
    {
        RotationState::Ready(_) => Ok(None),
        RotationState::AlreadyRotated(rotation) => Ok(Some(rotation)),
    }
}

/// The state of the old key.
enum RotationState {
    /// It owns this tenant, and the new key owns nothing.
    Ready(TenantId),
    /// It was rotated to the new key lately.
    AlreadyRotated(Rotation),
}

async fn rotation_state(
    conn: &mut sqlx::PgConnection,
    old: &[Fingerprint],
    new: &[Fingerprint],
    now: Timestamp,
) -> Result<RotationState, RotateError> {
    let (before, after) = (
        directory::owner(conn, old).await?,
        directory::owner(conn, new).await?,
    );
    let owns_anything = match before {
        Some(tenant) => store::owns_anything(conn, tenant).await?,
        None => false,
    };
    // A rotated key that only searched since then owns nothing: its request is still a repetition.
    if !owns_anything
        && let Some((tenant, rotation)) =
            store::find_rotation(conn, old, replay_window_start(now)).await?
        && after == Some(tenant)
    {
        return Ok(RotationState::AlreadyRotated(rotation));
    }
    let Some(tenant) = before else {
        return Err(RotateError::NothingOwned);
    };
    match after {
        Some(other) if store::owns_anything(conn, other).await? => Err(RotateError::NewKeyInUse),
        _ => Ok(RotationState::Ready(tenant)),
    }
}

/// The tenant that was rotated away from this key since a time, within [`REPLAY_WINDOW`]: what began
/// with the key before is the tenant's.
pub async fn rotated_since(
    conn: &mut sqlx::PgConnection,
    fingerprints: &[Fingerprint],
    since: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    let rotation = store::find_rotation(conn, fingerprints, since).await?;
    Ok(rotation.map(|(tenant, _)| tenant))
}

/// The same for many fingerprints at once, each with the time of its rotation.
pub async fn all_rotated_since(
    pool: &PgPool,
    fingerprints: &[&Fingerprint],
    since: Timestamp,
) -> sqlx::Result<HashMap<Fingerprint, (TenantId, Timestamp)>> {
    store::find_rotated(pool, fingerprints, since).await
}

fn replay_window_start(now: Timestamp) -> Timestamp {
    now.checked_sub(REPLAY_WINDOW).unwrap_or(Timestamp::MIN)
}

/// Transfers a tenant to a key that owns nothing, under the advisory locks of that key's
/// fingerprints. It deletes a tenant that the key has only because the marketplace accepted it in a
/// search.
async fn transfer(
    conn: &mut sqlx::PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    to: &CallerKey,
    now: Timestamp,
) -> Result<Rotation, RotateError> {
    // The locks may have taken a while: what began meanwhile began before the rotation.
    let now = now.max(DatabaseTime::read(&mut *conn).await?.now());
    let fingerprints = Fingerprint::all(ring, to);
    if let Some(empty) = directory::owner(conn, &fingerprints)
        .await?
        .filter(|owner| *owner != tenant)
    {
        // Waits for a running submission, whose rows are then visible.
        store::lock_fingerprints(conn, empty).await?;
        if store::owns_anything(conn, empty).await? {
            return Err(RotateError::NewKeyInUse);
        }
        relocate::delete(conn, empty).await?;
    }
    let known = store::delete_fingerprints(conn, tenant).await?;
    directory::insert_fingerprints(conn, tenant, &fingerprints, now).await?;
    directory::end_sessions(&mut *conn, tenant).await?;
    store::notify_account_settings(conn, tenant).await?;
    let lanes_resumed = store::resume_refused_lanes(conn, tenant).await?;
    let held_keys = reseal_key(conn, ring, tenant, to).await?;
    // The database's precision, so that a repetition gets the same time.
    let at = db::truncate_to_micros(now);
    let rotation = Rotation {
        at,
        held_keys,
        lanes_resumed,
        repeated: false,
    };
    store::record_rotation(
        conn,
        tenant,
        &known,
        &fingerprints,
        &rotation,
        replay_window_start(now),
    )
    .await?;
    Ok(rotation)
}

/// Seals the key in every live grant of the tenant.
async fn reseal_key(
    conn: &mut sqlx::PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    key: &CallerKey,
) -> Result<u32, RotateError> {
    let grants = store::lock_grants(conn, tenant).await?;
    let sealed: Vec<_> = grants
        .iter()
        .map(|terms| (terms.grant, terms.seal(ring, key)))
        .collect();
    store::reseal_grants(conn, tenant, &sealed).await?;
    Ok(u32::try_from(sealed.len()).unwrap_or(u32::MAX))
}
