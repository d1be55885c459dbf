//! Tenants, their fingerprints and their grants in the database.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::{Acquire as _, PgConnection, PgPool};
use uuid::Uuid;

use super::fingerprint::Fingerprint;
use super::grant::{GrantTerms, NotOpened, Purpose, SealedKey};
use super::keyring::Keyring;
use crate::ids::{GrantId, TenantId};
use crate::search::CallerKey;

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

/// The tenant that a key belongs to, if it ever ordered anything. Its fingerprint is renewed under the primary.
///
/// # Errors
/// When the database does not answer.
pub async fn find(conn: &mut PgConnection, ring: &Keyring, key: &CallerKey, now: Timestamp) -> sqlx::Result<Option<TenantId>> {
    look_up(conn, &Fingerprint::all(ring, key), now).await
}

/// The same for a transaction that seals the key: until its end the tenant stays the key's, a rotation waits for it. To be called before
/// any lane is locked.
///
/// # Errors
/// When the database does not answer.
pub async fn find_and_hold(
    conn: &mut PgConnection,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    look_up_and_hold(conn, &Fingerprint::all(ring, key), now).await
}

/// The same for a tenant that is known, where no key came with the work: a rotation waits, or has been. To be called before the key of any
/// grant is opened to be sealed again.
///
/// # Errors
/// When the database does not answer.
pub async fn hold(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<()> {
    sqlx::query!("select from tenant_keys where tenant_id = $1 order by key_id for key share", tenant.uuid())
        .execute(conn)
        .await?;
    Ok(())
}

/// Overwrites the key of a grant whose work is over.
///
/// # Errors
/// When the database does not answer.
pub async fn wipe(conn: &mut PgConnection, tenant: TenantId, grant: GrantId, now: Timestamp) -> sqlx::Result<()> {
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

/// The tenant that a key belongs to, made now if there is none, and held as by [`find_and_hold`]. To be called inside a transaction: first
/// requests of one caller wait for each other, so that they make one tenant, also between processes whose rings differ while a new primary
/// is rolled out.
///
/// # Errors
/// When the database does not answer.
pub async fn find_or_make(conn: &mut PgConnection, ring: &Keyring, key: &CallerKey, now: Timestamp) -> sqlx::Result<TenantId> {
    let prints = Fingerprint::all(ring, key);
    if let Some(tenant) = look_up_and_hold(conn, &prints, now).await? {
        return Ok(tenant);
    }
    lock(conn, &prints).await?;
    if let Some(tenant) = look_up_and_hold(conn, &prints, now).await? {
        return Ok(tenant);
    }
    let tenant = TenantId::new();
    sqlx::query!("insert into tenants (tenant_id, created_at) values ($1, $2)", tenant.uuid(), now.to_sqlx())
        .execute(&mut *conn)
        .await?;
    give_fingerprints(conn, tenant, &prints, now).await?;
    Ok(tenant)
}

/// The tenants that fingerprints lead to; of many callers at once.
///
/// # Errors
/// When the database does not answer.
pub async fn find_all(pool: &PgPool, prints: &[&Fingerprint]) -> sqlx::Result<HashMap<Fingerprint, TenantId>> {
    let (key_ids, digests): (Vec<_>, Vec<_>) = prints.iter().map(|print| (print.key_id.clone(), print.digest.to_vec())).unzip();
    let rows = sqlx::query!(
        "select k.key_id, k.fingerprint, k.tenant_id
         from (select distinct * from unnest($1::text[], $2::bytea[]) as x (key_id, fingerprint)) x
         join tenant_keys k on k.key_id = x.key_id and k.fingerprint = x.fingerprint",
        &key_ids,
        &digests,
    );
    let rows = rows.fetch_all(pool).await?;
    let known = rows.into_iter().filter_map(|row| {
        let digest = row.fingerprint.try_into().ok()?;
        Some((Fingerprint { key_id: row.key_id, digest }, TenantId::from(row.tenant_id)))
    });
    Ok(known.collect())
}

fn columns(prints: &[Fingerprint]) -> (Vec<String>, Vec<Vec<u8>>) {
    prints.iter().map(|print| (print.key_id.clone(), print.digest.to_vec())).unzip()
}

/// Until the transaction ends, nobody else makes a tenant of these fingerprints, renews them or passes them on.
pub(super) async fn lock(conn: &mut PgConnection, prints: impl IntoIterator<Item = &Fingerprint>) -> sqlx::Result<()> {
    let mut locks: Vec<_> = prints.into_iter().map(Fingerprint::lock).collect();
    locks.sort_unstable();
    for lock in locks {
        sqlx::query!("select pg_advisory_xact_lock($1)", lock).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Whose fingerprints these are; and whether the primary's is among those that are known.
async fn rows_of(conn: &mut PgConnection, prints: &[Fingerprint]) -> sqlx::Result<Option<(TenantId, bool)>> {
    let (key_ids, digests) = columns(prints);
    let found = sqlx::query!(
        "select key_id, tenant_id from tenant_keys
         where (key_id, fingerprint) in (select * from unnest($1::text[], $2::bytea[])) order by created_at",
        &key_ids,
        &digests,
    )
    .fetch_all(conn)
    .await?;
    let Some(first) = found.first() else { return Ok(None) };
    Ok(Some((first.tenant_id.into(), found.iter().any(|row| row.key_id == prints[0].key_id))))
}

/// Whose fingerprints these are.
pub(super) async fn owner(conn: &mut PgConnection, prints: &[Fingerprint]) -> sqlx::Result<Option<TenantId>> {
    Ok(rows_of(conn, prints).await?.map(|(tenant, _)| tenant))
}

async fn look_up(conn: &mut PgConnection, prints: &[Fingerprint], now: Timestamp) -> sqlx::Result<Option<TenantId>> {
    match rows_of(conn, prints).await? {
        Some((_, false)) => renew(conn, prints, now).await,
        found => Ok(found.map(|(tenant, _)| tenant)),
    }
}

/// Adds the fingerprint under the primary. Looks again under the lock: a key that has passed on meanwhile must not come back.
async fn renew(conn: &mut PgConnection, prints: &[Fingerprint], now: Timestamp) -> sqlx::Result<Option<TenantId>> {
    let mut tx = conn.begin().await?;
    lock(&mut tx, prints).await?;
    let found = rows_of(&mut tx, prints).await?;
    if let Some((tenant, false)) = found {
        give_fingerprints(&mut tx, tenant, &prints[..1], now).await?;
    }
    tx.commit().await?;
    Ok(found.map(|(tenant, _)| tenant))
}

/// After the look-up, because a renewal takes its lock before any row, as a rotation does.
async fn look_up_and_hold(conn: &mut PgConnection, prints: &[Fingerprint], now: Timestamp) -> sqlx::Result<Option<TenantId>> {
    let Some(tenant) = look_up(conn, prints, now).await? else { return Ok(None) };
    let (key_ids, digests) = columns(prints);
    let held = sqlx::query!(
        "select from tenant_keys
         where (key_id, fingerprint) in (select * from unnest($1::text[], $2::bytea[])) and tenant_id = $3
         order by key_id for key share",
        &key_ids,
        &digests,
        tenant.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(Some(tenant).filter(|_| held.rows_affected() > 0))
}

/// Makes a tenant known by these fingerprints: for a new tenant under every key of the ring, because a process that does not have the new
/// primary yet must find it too.
pub(super) async fn give_fingerprints(
    conn: &mut PgConnection,
    tenant: TenantId,
    prints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<()> {
    let (key_ids, digests) = columns(prints);
    sqlx::query!(
        "insert into tenant_keys (key_id, fingerprint, tenant_id, created_at)
         select x.key_id, x.fingerprint, $1, $2 from unnest($3::text[], $4::bytea[]) as x (key_id, fingerprint)",
        tenant.uuid(),
        now.to_sqlx(),
        &key_ids,
        &digests,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Stores a key, sealed under its terms.
///
/// # Errors
/// When the database does not answer.
pub async fn insert_grant(conn: &mut PgConnection, terms: &GrantTerms, sealed: &SealedKey, now: Timestamp) -> sqlx::Result<()> {
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
pub async fn replace_grant(conn: &mut PgConnection, terms: &GrantTerms, sealed: &SealedKey) -> sqlx::Result<()> {
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
    database: impl sqlx::PgExecutor<'_>,
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
    let sealed = SealedKey { key_id: row.key_id, nonce: row.nonce, ciphertext: row.ciphertext };
    let opened = Purpose::parse(&row.purpose).ok_or(NotOpened::Altered).and_then(|purpose| {
        let terms = GrantTerms { tenant, grant, purpose, expires_at: row.expires_at.to_jiff() };
        terms.open(ring, &sealed)
    });
    opened.map_err(|why| GrantError::NotOpened { why, nonce: sealed.nonce })
}

/// Destroys the key of a grant that has expired: the columns are overwritten. A grant that was sealed anew meanwhile is left alone.
///
/// # Errors
/// When the database does not answer.
pub async fn wipe_expired(conn: &mut PgConnection, tenant: TenantId, grant: GrantId, now: Timestamp) -> sqlx::Result<()> {
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
    let (tenant, grant) = after.map_or((Uuid::nil(), Uuid::nil()), |(tenant, grant)| (tenant.uuid(), grant.uuid()));
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
        sealed: SealedKey { key_id: row.key_id, nonce: row.nonce, ciphertext: row.ciphertext },
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
pub async fn swap_sealed(conn: &mut PgConnection, swaps: &[(HeldGrant, SealedKey)]) -> sqlx::Result<u64> {
    let tenants: Vec<_> = swaps.iter().map(|(held, _)| held.id.0.uuid()).collect();
    let grants: Vec<_> = swaps.iter().map(|(held, _)| held.id.1.uuid()).collect();
    let old: Vec<_> = swaps.iter().map(|(held, _)| held.sealed.nonce.clone()).collect();
    let key_ids: Vec<_> = swaps.iter().map(|(_, sealed)| sealed.key_id.clone()).collect();
    let nonces: Vec<_> = swaps.iter().map(|(_, sealed)| sealed.nonce.clone()).collect();
    let ciphertexts: Vec<_> = swaps.iter().map(|(_, sealed)| sealed.ciphertext.clone()).collect();
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

/// How many callers are known under an entry and not under `primary`: those that have not called since it is the primary.
///
/// # Errors
/// When the database does not answer.
pub async fn strangers_to(conn: &mut PgConnection, primary: &str) -> sqlx::Result<Vec<(String, i64)>> {
    let rows = sqlx::query!(
        r#"select key_id, count(distinct tenant_id) as "callers!" from tenant_keys k
           where not exists (select from tenant_keys p where p.tenant_id = k.tenant_id and p.key_id = $1)
           group by key_id order by key_id"#,
        primary,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.key_id, row.callers)).collect())
}

/// The check at start: every grant that is still live can be opened by this ring.
///
/// # Errors
/// [`RingCheckError::KeysMissing`] names the entries that the ring lacks.
pub async fn check_ring(pool: &PgPool, ring: &Keyring) -> Result<(), RingCheckError> {
    let named = sqlx::query_scalar!("select distinct key_id from key_grants where wiped_at is null order by key_id")
        .fetch_all(pool)
        .await?;
    let missing: Vec<_> = named.into_iter().filter(|id| ring.key(id).is_none()).collect();
    if missing.is_empty() { Ok(()) } else { Err(RingCheckError::KeysMissing(missing)) }
}
