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

mod store;

use jiff::{SignedDuration, Timestamp};
use sqlx::PgPool;

use super::fingerprint::Fingerprint;
use super::keyring::Keyring;
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
    let since = now.checked_sub(REMEMBERED).unwrap_or(Timestamp::MIN);
    let owner = directory::owner(&mut tx, &new_prints).await?;
    let Some(tenant) = directory::owner(&mut tx, &old_prints).await? else {
        return match store::passed_on(&mut tx, &old_prints, since).await? {
            Some((tenant, rotation)) if owner == Some(tenant) => Ok(rotation),
            _ => Err(RotateError::NothingOwned),
        };
    };
    if owner.is_some() {
        return Err(RotateError::Taken);
    }
    let known = store::take_fingerprints(&mut tx, tenant).await?;
    directory::give_fingerprints(&mut tx, tenant, &new_prints, now).await?;
    let lanes_resumed = store::resume_refused_lanes(&mut tx, tenant).await?;
    let held_keys = seal_anew(&mut tx, ring, tenant, new).await?;
    // As the database keeps it, so that a repetition is told the same.
    let at = db::kept_time(now);
    let rotation = Rotation { at, held_keys, lanes_resumed, repeated: false };
    store::remember_passed(&mut tx, tenant, &known, &new_prints, &rotation, since).await?;
    tx.commit().await?;
    Ok(rotation)
}

/// Every key of the tenant that is held, under its own terms.
async fn seal_anew(conn: &mut sqlx::PgConnection, ring: &Keyring, tenant: TenantId, key: &CallerKey) -> Result<u32, RotateError> {
    let grants = store::lock_grants(conn, tenant).await?;
    let sealed: Vec<_> = grants.iter().map(|terms| (terms.grant, terms.seal(ring, key))).collect();
    store::reseal_grants(conn, tenant, &sealed).await?;
    Ok(u32::try_from(sealed.len()).unwrap_or(u32::MAX))
}
