//! Statements on sealed keys.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, PgExecutor, PgPool};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::ids::{GrantId, TenantId};
use crate::search::CallerKey;
use crate::tenants::master_keys::Keyring;
use crate::tenants::sealed_key::{GrantTerms, Purpose, SealedKey, UnsealError};

/// Why a grant yields no key.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// There is no such grant, or it was wiped or has expired: its work cannot continue.
    #[error("the key is no longer stored")]
    Gone,
    /// The grant does not open.
    #[error("{why}")]
    NotOpened {
        /// The cause.
        why: UnsealError,
        /// The nonce of the sealed key; a key that was sealed anew has another.
        nonce: Vec<u8>,
    },
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Why the process must not start with this ring.
#[derive(Debug, thiserror::Error)]
pub enum RingCheckError {
    /// The ring lacks the entry that sealed a live grant.
    #[error("the master key lacks the entries that sealed keys still in use: {}. Put them back, after the primary", .0.join(", "))]
    KeysMissing(Vec<String>),
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Stores a sealed key.
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

/// Replaces the sealed key of an existing grant, live or wiped.
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

/// Opens the key of a tenant's grant.
///
/// # Errors
/// [`GrantError::Gone`] for a grant that is missing, is another tenant's, was wiped or has expired.
pub async fn open_grant(
    database: impl PgExecutor<'_>,
    ring: &Keyring,
    tenant: TenantId,
    grant: GrantId,
) -> Result<CallerKey, GrantError> {
    let row = sqlx::query!(
        "select purpose, key_id, nonce, ciphertext, expires_at from key_grants
         where tenant_id = $1 and grant_id = $2 and wiped_at is null and expires_at > clock_timestamp()",
        tenant.uuid(),
        grant.uuid(),
    )
    .fetch_optional(database)
    .await?
    .ok_or(GrantError::Gone)?;
    let stored = StoredGrant {
        id: (tenant, grant),
        purpose: Purpose::parse(&row.purpose),
        expires_at: row.expires_at.to_jiff(),
        sealed: SealedKey {
            key_id: row.key_id,
            nonce: row.nonce,
            ciphertext: row.ciphertext,
        },
    };
    stored.open(ring)
}

/// Opens the secrets of a tenant's grants, in the order of `grants`. It omits those that were wiped
/// or have expired at `now`.
///
/// # Errors
/// [`GrantError::NotOpened`] when one of them does not open.
pub async fn open_secrets(
    conn: &mut PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    grants: &[GrantId],
    now: Timestamp,
) -> Result<Vec<OpenedSecret>, GrantError> {
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
            .ok_or(UnsealError::Altered)
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
        Ok(OpenedSecret {
            grant,
            secret,
            expires_at,
        })
    });
    opened.collect()
}

/// An opened secret. Dropping it wipes the memory.
pub struct OpenedSecret {
    /// Its grant.
    pub grant: GrantId,
    /// The secret.
    pub secret: Zeroizing<Vec<u8>>,
    /// When the grant expires.
    pub expires_at: Timestamp,
}

/// Deletes grants that nothing refers to any more.
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

/// Wipes the key of an expired grant by overwriting its columns. It skips a grant that was sealed
/// anew in the meantime.
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

/// A page of the grants sealed under another key than `primary`, in the order of their ids, after
/// `after` or from the first.
pub async fn grants_under_other_keys(
    conn: &mut PgConnection,
    primary: &str,
    after: Option<(TenantId, GrantId)>,
    most: i64,
) -> sqlx::Result<Vec<StoredGrant>> {
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
    let grants = rows.into_iter().map(|row| StoredGrant {
        id: (row.tenant_id.into(), row.grant_id.into()),
        purpose: Purpose::parse(&row.purpose),
        expires_at: row.expires_at.to_jiff(),
        sealed: SealedKey {
            key_id: row.key_id,
            nonce: row.nonce,
            ciphertext: row.ciphertext,
        },
    });
    Ok(grants.collect())
}

/// A row of the table `key_grants`.
#[derive(Debug, Clone)]
pub struct StoredGrant {
    /// Tenant and grant.
    pub id: (TenantId, GrantId),
    /// `None`: this version does not know the stored purpose.
    pub purpose: Option<Purpose>,
    /// When it is wiped at the latest.
    pub expires_at: Timestamp,
    /// The sealed key.
    pub sealed: SealedKey,
}

impl StoredGrant {
    /// Opens the key.
    ///
    /// # Errors
    /// [`GrantError::NotOpened`].
    pub fn open(&self, ring: &Keyring) -> Result<CallerKey, GrantError> {
        let opened = self
            .purpose
            .ok_or(UnsealError::Altered)
            .and_then(|purpose| {
                let terms = GrantTerms {
                    tenant: self.id.0,
                    grant: self.id.1,
                    purpose,
                    expires_at: self.expires_at,
                };
                terms.open(ring, &self.sealed)
            });
        opened.map_err(|why| GrantError::NotOpened {
            why,
            nonce: self.sealed.nonce.clone(),
        })
    }
}

/// Replaces sealed keys by new ones; returns how many. It skips a row that was wiped or sealed
/// again since it was read: each seal has its own random nonce.
pub async fn replace_sealed_keys(
    conn: &mut PgConnection,
    swaps: &[(StoredGrant, SealedKey)],
) -> sqlx::Result<u64> {
    let tenants: Vec<_> = swaps.iter().map(|(old, _)| old.id.0.uuid()).collect();
    let grants: Vec<_> = swaps.iter().map(|(old, _)| old.id.1.uuid()).collect();
    let old: Vec<_> = swaps
        .iter()
        .map(|(old, _)| old.sealed.nonce.clone())
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

/// Wipes the key of a grant whose work has ended.
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

/// The check at start: this ring has the entries that sealed the live grants.
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
