//! Sealed keys in the database. Whose they are is the rest of the store's.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, PgExecutor, PgPool};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::ids::{GrantId, TenantId};
use crate::search::CallerKey;
use crate::tenants::grant::{GrantTerms, NotOpened, Purpose, SealedKey};
use crate::tenants::keyring::Keyring;

/// Why a grant gives no key.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// There is no such grant, or it was wiped or has expired: the work that it was for cannot go on.
    #[error("the key was held no longer")]
    Gone,
    /// It is there and does not open.
    #[error("{why}")]
    NotOpened {
        /// What is wrong with it.
        why: NotOpened,
        /// The nonce of what did not open: a key that was sealed anew has another.
        nonce: Vec<u8>,
    },
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// What became of opening grants, by tenant and grant.
pub type OpenedGrants = HashMap<(TenantId, GrantId), Result<CallerKey, GrantError>>;

/// Why the program must not start with this ring.
#[derive(Debug, thiserror::Error)]
pub enum RingCheckError {
    /// A live grant could never be opened.
    #[error("the master key lacks the entries that sealed keys still in use: {}. Put them back, behind the primary", .0.join(", "))]
    KeysMissing(Vec<String>),
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Stores a key, sealed under its terms.
///
/// # Errors
/// When the database does not answer.
pub async fn insert_grant(
    conn: &mut PgConnection,
    terms: &GrantTerms,
    sealed: &SealedKey,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into key_grants (tenant_id, grant_id, purpose, key_id, nonce, ciphertext, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        terms.tenant.uuid(),
        terms.grant.uuid(),
        terms.purpose.as_str(),
        sealed.key_id,
        sealed.nonce,
        sealed.ciphertext,
        now.to_sqlx(),
        terms.expires_at.to_sqlx(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Seals a key anew in a grant that is there, whether it is live or was wiped.
///
/// # Errors
/// When the database does not answer.
pub async fn replace_grant(
    conn: &mut PgConnection,
    terms: &GrantTerms,
    sealed: &SealedKey,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update key_grants set key_id = $3, nonce = $4, ciphertext = $5, expires_at = $6, wiped_at = null
         where tenant_id = $1 and grant_id = $2",
        terms.tenant.uuid(),
        terms.grant.uuid(),
        sealed.key_id,
        sealed.nonce,
        sealed.ciphertext,
        terms.expires_at.to_sqlx(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The key that a tenant's grant holds.
///
/// # Errors
/// [`GrantError::Gone`] for a grant that is not there, is another tenant's, was wiped or has expired.
pub async fn open_grant(
    database: impl PgExecutor<'_>,
    ring: &Keyring,
    tenant: TenantId,
    grant: GrantId,
) -> Result<CallerKey, GrantError> {
    open_grants(database, ring, &[(tenant, grant)])
        .await?
        .remove(&(tenant, grant))
        .unwrap_or(Err(GrantError::Gone))
}

/// A key for each of these grants, or why it does not open; nothing for one that is gone.
///
/// # Errors
/// When the database does not answer.
pub async fn open_grants(
    database: impl PgExecutor<'_>,
    ring: &Keyring,
    held: &[(TenantId, GrantId)],
) -> sqlx::Result<OpenedGrants> {
    let (tenants, grants): (Vec<_>, Vec<_>) = held
        .iter()
        .map(|(tenant, grant)| (tenant.uuid(), grant.uuid()))
        .unzip();
    let rows = sqlx::query!(
        r#"select x.tenant_id as "tenant_id!", x.grant_id as "grant_id!", g.purpose, g.key_id, g.nonce, g.ciphertext, g.expires_at
           from unnest($1::uuid[], $2::uuid[]) as x (tenant_id, grant_id)
           join key_grants g on g.tenant_id = x.tenant_id and g.grant_id = x.grant_id
           where g.wiped_at is null and g.expires_at > clock_timestamp()"#,
        &tenants,
        &grants,
    )
    .fetch_all(database)
    .await?;
    let opened = rows.into_iter().map(|row| {
        let held = (TenantId::from(row.tenant_id), GrantId::from(row.grant_id));
        let sealed = SealedKey {
            key_id: row.key_id,
            nonce: row.nonce,
            ciphertext: row.ciphertext,
        };
        let opened = Purpose::parse(&row.purpose)
            .ok_or(NotOpened::Altered)
            .and_then(|purpose| {
                let terms = GrantTerms {
                    tenant: held.0,
                    grant: held.1,
                    purpose,
                    expires_at: row.expires_at.to_jiff(),
                };
                terms.open(ring, &sealed)
            });
        (
            held,
            opened.map_err(|why| GrantError::NotOpened {
                why,
                nonce: sealed.nonce,
            }),
        )
    });
    Ok(opened.collect())
}

/// Secrets that a tenant's grants hold, with the time that each of them ends, in the order of `grants`; those that were wiped or have
/// expired at `now` are left out.
///
/// # Errors
/// [`GrantError::NotOpened`] when one of them does not open.
pub async fn open_secrets(
    conn: &mut PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    grants: &[GrantId],
    now: Timestamp,
) -> Result<Vec<HeldSecret>, GrantError> {
    let ids: Vec<_> = grants.iter().map(|grant| grant.uuid()).collect();
    let rows = sqlx::query!(
        "select grant_id, purpose, key_id, nonce, ciphertext, expires_at from key_grants
         where tenant_id = $1 and grant_id = any ($2) and wiped_at is null and expires_at > $3
         order by array_position($2, grant_id)",
        tenant.uuid(),
        &ids,
        now.to_sqlx() as _,
    )
    .fetch_all(conn)
    .await?;
    let opened = rows.into_iter().map(|row| {
        let sealed = SealedKey {
            key_id: row.key_id,
            nonce: row.nonce,
            ciphertext: row.ciphertext,
        };
        let (grant, expires_at) = (row.grant_id.into(), row.expires_at.to_jiff());
        let opened = Purpose::parse(&row.purpose)
            .ok_or(NotOpened::Altered)
            .and_then(|purpose| {
                GrantTerms {
                    tenant,
                    grant,
                    purpose,
                    expires_at,
                }
                .open_secret(ring, &sealed)
            });
        let secret = opened.map_err(|why| GrantError::NotOpened {
            why,
            nonce: sealed.nonce,
        })?;
        Ok(HeldSecret {
            grant,
            secret,
            expires_at,
        })
    });
    opened.collect()
}

/// A secret that was opened. It is wiped from memory when dropped.
pub struct HeldSecret {
    /// Where it is held.
    pub grant: GrantId,
    /// The secret.
    pub secret: Zeroizing<Vec<u8>>,
    /// Until when.
    pub expires_at: Timestamp,
}

/// Removes grants that nothing names any more.
///
/// # Errors
/// When the database does not answer.
pub async fn remove_grants(
    conn: &mut PgConnection,
    tenant: TenantId,
    grants: &[GrantId],
) -> sqlx::Result<()> {
    let ids: Vec<_> = grants.iter().map(|grant| grant.uuid()).collect();
    sqlx::query!(
        "delete from key_grants where tenant_id = $1 and grant_id = any ($2)",
        tenant.uuid(),
        &ids
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Destroys the key of a grant that has expired: the columns are overwritten. A grant that was sealed anew meanwhile is left alone.
///
/// # Errors
/// When the database does not answer.
pub async fn wipe_expired(
    conn: &mut PgConnection,
    tenant: TenantId,
    grant: GrantId,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update key_grants set nonce = '', ciphertext = '', wiped_at = $3
         where tenant_id = $1 and grant_id = $2 and wiped_at is null and expires_at <= $3",
        tenant.uuid(),
        grant.uuid(),
        now.to_sqlx(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Grants that are held under another key than `primary`, after one of them in the order of their ids; `None` begins.
///
/// # Errors
/// When the database does not answer.
pub async fn grants_beside(
    conn: &mut PgConnection,
    primary: &str,
    after: Option<(TenantId, GrantId)>,
    most: i64,
) -> sqlx::Result<Vec<HeldGrant>> {
    let (tenant, grant) = after.map_or((Uuid::nil(), Uuid::nil()), |(tenant, grant)| {
        (tenant.uuid(), grant.uuid())
    });
    let rows = sqlx::query!(
        "select tenant_id, grant_id, purpose, key_id, nonce, ciphertext, expires_at from key_grants
         where wiped_at is null and key_id <> $1 and (tenant_id, grant_id) > ($2, $3)
         order by tenant_id, grant_id limit $4",
        primary,
        tenant,
        grant,
        most,
    )
    .fetch_all(conn)
    .await?;
    let held = rows.into_iter().map(|row| HeldGrant {
        id: (row.tenant_id.into(), row.grant_id.into()),
        purpose: Purpose::parse(&row.purpose),
        expires_at: row.expires_at.to_jiff(),
        sealed: SealedKey {
            key_id: row.key_id,
            nonce: row.nonce,
            ciphertext: row.ciphertext,
        },
    });
    Ok(held.collect())
}

/// A grant as it stands in its row.
#[derive(Debug)]
pub struct HeldGrant {
    /// Whose, and which.
    pub id: (TenantId, GrantId),
    /// `None`: one that this program does not know.
    pub purpose: Option<Purpose>,
    /// When it is wiped at the latest.
    pub expires_at: Timestamp,
    /// The key.
    pub sealed: SealedKey,
}

/// Puts keys that were sealed anew in place of what was read. A row that was wiped or sealed by another since then is left alone: its
/// nonce, drawn anew for each seal, is another. Gives how many were put.
///
/// # Errors
/// When the database does not answer.
pub async fn swap_sealed(
    conn: &mut PgConnection,
    swaps: &[(HeldGrant, SealedKey)],
) -> sqlx::Result<u64> {
    let tenants: Vec<_> = swaps.iter().map(|(held, _)| held.id.0.uuid()).collect();
    let grants: Vec<_> = swaps.iter().map(|(held, _)| held.id.1.uuid()).collect();
    let old: Vec<_> = swaps
        .iter()
        .map(|(held, _)| held.sealed.nonce.clone())
        .collect();
    let key_ids: Vec<_> = swaps
        .iter()
        .map(|(_, sealed)| sealed.key_id.clone())
        .collect();
    let nonces: Vec<_> = swaps
        .iter()
        .map(|(_, sealed)| sealed.nonce.clone())
        .collect();
    let ciphertexts: Vec<_> = swaps
        .iter()
        .map(|(_, sealed)| sealed.ciphertext.clone())
        .collect();
    let swapped = sqlx::query!(
        "update key_grants g set key_id = x.key_id, nonce = x.nonce, ciphertext = x.ciphertext
         from unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::text[], $5::bytea[], $6::bytea[])
              as x (tenant_id, grant_id, old, key_id, nonce, ciphertext)
         where g.tenant_id = x.tenant_id and g.grant_id = x.grant_id and g.nonce = x.old and g.wiped_at is null",
        &tenants,
        &grants,
        &old,
        &key_ids,
        &nonces,
        &ciphertexts,
    )
    .execute(conn)
    .await?;
    Ok(swapped.rows_affected())
}

/// Overwrites the key of a grant whose work is over.
///
/// # Errors
/// When the database does not answer.
pub async fn wipe(
    conn: &mut PgConnection,
    tenant: TenantId,
    grant: GrantId,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update key_grants set nonce = '', ciphertext = '', wiped_at = $3
         where tenant_id = $1 and grant_id = $2 and wiped_at is null",
        tenant.uuid(),
        grant.uuid(),
        now.to_sqlx(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The check at start: every grant that is still live can be opened by this ring.
///
/// # Errors
/// [`RingCheckError::KeysMissing`] names the entries that the ring lacks.
pub async fn check_ring(pool: &PgPool, ring: &Keyring) -> Result<(), RingCheckError> {
    let named = sqlx::query_scalar!(
        "select distinct key_id from key_grants where wiped_at is null order by key_id"
    )
    .fetch_all(pool)
    .await?;
    let missing: Vec<_> = named
        .into_iter()
        .filter(|id| ring.key(id).is_none())
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(RingCheckError::KeysMissing(missing))
    }
}
