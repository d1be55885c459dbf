//! Moving what is held to a new primary, so that an old master key can leave the ring.
//!
//! Beside running processes and after a crash halfway nothing is lost: a grant is replaced only while it is what was read, and what was
//! moved is not read again. A process that does not have the new primary yet may seal more under the old one; so the new ring is given
//! to all of them first, and a second run finds what came in between.

use std::collections::BTreeMap;

use sqlx::PgPool;

use super::grant::{GrantTerms, SealedKey};
use super::keyring::Keyring;
use super::store::{self, HeldGrant};

/// Grants in one round trip: few enough that their keys are in memory for milliseconds.
const BATCH: i64 = 200;

/// What was moved.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rewrapped {
    /// The entry that everything was moved to.
    pub primary: String,
    /// Grants that were sealed anew.
    pub moved: u64,
    /// Grants that ended, or were sealed by their own process, before they could be.
    pub changed: u64,
    /// Grants that do not open, by the reason.
    pub unopened: BTreeMap<String, u64>,
    /// Callers that are known only under older entries, by the entry.
    pub strangers: Vec<(String, i64)>,
}

/// Moves every live grant to the ring's primary, in bounded batches.
///
/// # Errors
/// When the database does not answer; what was moved until then stays moved.
pub async fn rewrap(pool: &PgPool, ring: &Keyring) -> sqlx::Result<Rewrapped> {
    let mut done = Rewrapped {
        primary: ring.primary().id.clone(),
        ..Rewrapped::default()
    };
    let mut conn = pool.acquire().await?;
    let mut after = None;
    loop {
        let held = store::grants_beside(&mut conn, &done.primary, after, BATCH).await?;
        let Some(last) = held.last() else { break };
        after = Some(last.id);
        let mut swaps = Vec::with_capacity(held.len());
        for held in held {
            match sealed_anew(ring, &held) {
                Ok(sealed) => swaps.push((held, sealed)),
                Err(why) => *done.unopened.entry(why).or_default() += 1,
            }
        }
        let moved = store::swap_sealed(&mut conn, &swaps).await?;
        done.moved += moved;
        done.changed += swaps.len() as u64 - moved;
    }
    done.strangers = store::strangers_to(&mut conn, &done.primary).await?;
    Ok(done)
}

/// The same secret under the primary; the text says why it does not open.
fn sealed_anew(ring: &Keyring, held: &HeldGrant) -> Result<SealedKey, String> {
    let purpose = held
        .purpose
        .ok_or("this version does not know what they are for")?;
    let (tenant, grant) = held.id;
    let terms = GrantTerms {
        tenant,
        grant,
        purpose,
        expires_at: held.expires_at,
    };
    let secret = terms
        .open_secret(ring, &held.sealed)
        .map_err(|error| error.to_string())?;
    Ok(terms.seal_secret(ring, &secret))
}
