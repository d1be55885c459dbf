//! One key takes over from another (security.md, "Rotation"): the tenant stays, its fingerprints and its sealed keys change.
//!
//! ```text
//!  old key owns a tenant, new key owns nothing ──► the tenant is the new key's, the old key is an unknown caller's
//!  old key owns nothing, and passed on to the new key lately ──► the same answer again: the first one was lost
//!  old key owns nothing otherwise ──► NothingOwned        new key owns something ──► Taken
//! ```
//!
//! One transaction. Locks, in this order: both keys' fingerprints (so that no process makes a tenant of either meanwhile, and of two
//! rotations one is first), the tenant's rows in the directory (so that every order under way with the old key has sealed it before the
//! grants are looked at, and every later one finds nothing), its lanes, its grants. A call in flight has opened the old key and ends with
//! it.

pub mod restore;
mod store;

use jiff::{SignedDuration, Timestamp};
use sqlx::PgPool;

use super::fingerprint::Fingerprint;
use super::keyring::Keyring;
use super::relocate;
use super::store as directory;
use crate::db;
use crate::ids::TenantId;
use crate::search::CallerKey;

/// How long a repetition is given the first answer.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(48);

/// What passed to the new key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// When.
    pub at: Timestamp,
    /// How many held keys were sealed anew.
    pub held_keys: u32,
    /// The words of the lanes that go on.
    pub lanes_resumed: Vec<String>,
    /// It was done before; nothing was done now.
    pub repeated: bool,
}

/// Why nothing passed.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The old key owns nothing: it never ordered anything, or passed on to another key than this.
    #[error("the key of this request owns nothing here")]
    NothingOwned,
    /// The new key owns something already; two callers are not made one.
    #[error("the new key owns something here already")]
    Taken,
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Passes everything that `old` owns to `new`, another key. Sent again within two days, it answers the same.
///
/// # Errors
/// [`RotateError`]; nothing has changed then.
pub async fn rotate(
    pool: &PgPool,
    ring: &Keyring,
    old: &CallerKey,
    new: &CallerKey,
    now: Timestamp,
) -> Result<Rotation, RotateError> {
    let (old_prints, new_prints) = (Fingerprint::all(ring, old), Fingerprint::all(ring, new));
    let mut tx = db::begin(pool).await?;
    directory::lock(&mut tx, old_prints.iter().chain(&new_prints)).await?;
    let tenant = match standing(&mut tx, &old_prints, &new_prints, now).await? {
        Standing::Owns(tenant) => tenant,
        Standing::Passed(rotation) => return Ok(rotation),
    };
    let rotation = pass(&mut tx, ring, tenant, new, now).await?;
    tx.commit().await?;
    Ok(rotation)
}

/// Whether the rotation can be made: `None`. `Some`: it was made before, and this is its answer. Nothing is changed. Who would have the
/// new key checked asks this first: only a key that owns something may have another one checked.
///
/// # Errors
/// [`RotateError`], as the rotation itself.
pub async fn look(
    pool: &PgPool,
    ring: &Keyring,
    old: &CallerKey,
    new: &CallerKey,
    now: Timestamp,
) -> Result<Option<Rotation>, RotateError> {
    let mut conn = pool.acquire().await?;
    match standing(
        &mut conn,
        &Fingerprint::all(ring, old),
        &Fingerprint::all(ring, new),
        now,
    )
    .await?
    {
        Standing::Owns(_) => Ok(None),
        Standing::Passed(rotation) => Ok(Some(rotation)),
    }
}

/// What the old key is now.
enum Standing {
    /// The key of this tenant, and the new key owns nothing.
    Owns(TenantId),
    /// It has passed on to the new key lately.
    Passed(Rotation),
}

async fn standing(
    conn: &mut sqlx::PgConnection,
    old: &[Fingerprint],
    new: &[Fingerprint],
    now: Timestamp,
) -> Result<Standing, RotateError> {
    let (before, after) = (
        directory::owner(conn, old).await?,
        directory::owner(conn, new).await?,
    );
    let owns = match before {
        Some(tenant) => store::owns(conn, tenant).await?,
        None => false,
    };
    // A key that passed on and then only searched owns nothing again: its repetition is one still.
    if !owns
        && let Some((tenant, rotation)) = store::passed_on(conn, old, remembered_since(now)).await?
        && after == Some(tenant)
    {
        return Ok(Standing::Passed(rotation));
    }
    let Some(tenant) = before else {
        return Err(RotateError::NothingOwned);
    };
    match after {
        Some(other) if store::owns(conn, other).await? => Err(RotateError::Taken),
        _ => Ok(Standing::Owns(tenant)),
    }
}

fn remembered_since(now: Timestamp) -> Timestamp {
    now.checked_sub(REMEMBERED).unwrap_or(Timestamp::MIN)
}

/// Passes a tenant to a key that owns nothing, under the locks of that key's fingerprints. A tenant that the key has only because the
/// marketplace accepted it in a search makes way.
async fn pass(
    conn: &mut sqlx::PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    to: &CallerKey,
    now: Timestamp,
) -> Result<Rotation, RotateError> {
    let prints = Fingerprint::all(ring, to);
    if let Some(empty) = directory::owner(conn, &prints)
        .await?
        .filter(|owner| *owner != tenant)
    {
        // Waits for an order that is under way, and sees it then.
        store::lock_fingerprints(conn, empty).await?;
        if store::owns(conn, empty).await? {
            return Err(RotateError::Taken);
        }
        relocate::delete(conn, empty).await?;
    }
    let known = store::take_fingerprints(conn, tenant).await?;
    directory::give_fingerprints(conn, tenant, &prints, now).await?;
    let lanes_resumed = store::resume_refused_lanes(conn, tenant).await?;
    let held_keys = seal_anew(conn, ring, tenant, to).await?;
    // As the database keeps it, so that a repetition is told the same.
    let at = db::kept_time(now);
    let rotation = Rotation {
        at,
        held_keys,
        lanes_resumed,
        repeated: false,
    };
    store::remember_passed(
        conn,
        tenant,
        &known,
        &prints,
        &rotation,
        remembered_since(now),
    )
    .await?;
    Ok(rotation)
}

/// Every key of the tenant that is held, under its own terms.
async fn seal_anew(
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
