//! Seals stored keys anew under a new primary, so that an old entry can leave the master key.
//!
//! It may run beside running processes and again after a crash: it replaces a grant only if it is
//! unchanged since it was read. A process without the new primary still seals under the old one, so
//! every process gets the new ring first; a second run moves what was sealed in between.

use std::collections::BTreeMap;

use sqlx::PgPool;

use super::master_keys::Keyring;
use super::sealed_key::{GrantTerms, SealedKey};
use super::store::{self, StoredGrant};

/// Grants per round trip: few, so that their keys are in memory for milliseconds.
const BATCH: i64 = 200;

/// The result of a rewrap.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RewrapSummary {
    /// The entry that seals all grants now.
    pub primary: String,
    /// Grants that this run sealed anew.
    pub moved: u64,
    /// Grants that another process wiped or sealed during the run.
    pub changed: u64,
    /// Grants that do not open, by reason.
    pub unopened: BTreeMap<String, u64>,
    /// Callers with fingerprints only under older entries, by entry.
    pub callers_by_older_key: Vec<(String, i64)>,
}

/// Seals every live grant under the ring's primary, in bounded batches.
///
/// # Errors
/// When the database does not answer; the batches before the failure stay moved.
pub async fn rewrap(pool: &PgPool, ring: &Keyring) -> sqlx::Result<RewrapSummary> {
    let mut done = RewrapSummary {
        primary: ring.primary().id.clone(),
        ..RewrapSummary::default()
    };
    let mut conn = pool.acquire().await?;
    let mut after = None;
    loop {
        let grants = store::grants_under_other_keys(&mut conn, &done.primary, after, BATCH).await?;
        let Some(last) = grants.last() else { break };
        after = Some(last.id);
        let mut swaps = Vec::with_capacity(grants.len());
        for grant in grants {
            match reseal(ring, &grant) {
                Ok(sealed) => swaps.push((grant, sealed)),
                Err(why) => *done.unopened.entry(why).or_default() += 1,
            }
        }
        let moved = store::replace_sealed_keys(&mut conn, &swaps).await?;
        done.moved += moved;
        done.changed += swaps.len() as u64 - moved;
    }
    done.callers_by_older_key = store::count_callers_by_older_key(&mut conn, &done.primary).await?;
    Ok(done)
}

/// Seals the same secret under the primary; the error says why it does not open.
fn reseal(ring: &Keyring, stored: &StoredGrant) -> Result<SealedKey, String> {
    let purpose = stored
        .purpose
        .ok_or("this version does not know their purpose")?;
    let (tenant, grant) = stored.id;
    let terms = GrantTerms {
        tenant,
        grant,
        purpose,
        expires_at: stored.expires_at,
    };
    let secret = terms
        .open_secret(ring, &stored.sealed)
        .map_err(|error| error.to_string())?;
    Ok(terms.seal_secret(ring, &secret))
}
