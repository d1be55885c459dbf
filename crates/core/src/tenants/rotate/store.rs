//! The statements of a rotation, under the locks that it took.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, PgPool};

use super::Rotation;
use crate::ids::{GrantId, TenantId};
use crate::tenants::fingerprint::Fingerprint;
use crate::tenants::sealed_key::{GrantTerms, Purpose, SealedKey, UnsealError};

/// A fingerprint in the table `tenant_keys`.
pub(super) struct StoredFingerprint {
    pub(super) key_id: String,
    pub(super) fingerprint: Vec<u8>,
}

/// Deletes all fingerprints of a tenant, also those under ring keys that this process lacks. Waits
/// for every submission that locks them.
pub(super) async fn delete_fingerprints(
    conn: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<Vec<StoredFingerprint>> {
    sqlx::query_as!(
        StoredFingerprint,
        "delete from tenant_keys where tenant_id = $1 returning key_id, fingerprint",
        tenant.uuid()
    )
    .fetch_all(conn)
    .await
}

/// Locks all lanes, before any grant, and resumes those that the old key's refusal had paused.
/// Returns their APIs.
pub(super) async fn resume_refused_lanes(
    conn: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<Vec<String>> {
    sqlx::query!(
        "select from lanes where tenant_id = $1 order by api for no key update",
        tenant.uuid()
    )
    .execute(&mut *conn)
    .await?;
    // From now on an answer to a call with the old key proves nothing about the new one.
    sqlx::query!(
        "update lanes set resumes = resumes + 1 where tenant_id = $1",
        tenant.uuid()
    )
    .execute(&mut *conn)
    .await?;
    let resumed = sqlx::query_scalar!(
        "update lanes set paused_until = null, pause_reason = null
         where tenant_id = $1 and pause_reason in ('key_rejected', 'not_subscribed') returning api",
        tenant.uuid(),
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut resumed: Vec<String> = resumed.iter().map(ToString::to_string).collect();
    resumed.sort_unstable();
    sqlx::query!(
        "select from unnest($2::text[]) as x (api) cross join lateral wake_lane($1, x.api)",
        tenant.uuid(),
        &resumed
    )
    .execute(conn)
    .await?;
    Ok(resumed)
}

/// Locks the tenant's live grants and returns their terms, except those of webhook secrets.
pub(super) async fn lock_grants(
    conn: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<Vec<GrantTerms>> {
    let rows = sqlx::query!(
        "select grant_id, purpose, expires_at from key_grants
         where tenant_id = $1 and wiped_at is null and purpose not in ('webhook', 'webhook_url')
         order by grant_id for no key update",
        tenant.uuid(),
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let purpose = Purpose::parse(&row.purpose)
                .ok_or(sqlx::Error::Decode(UnsealError::Altered.into()))?;
            Ok(GrantTerms {
                tenant,
                grant: row.grant_id.into(),
                purpose,
                expires_at: row.expires_at.to_jiff(),
            })
        })
        .collect()
}

/// Replaces the sealed keys of these grants.
pub(super) async fn reseal_grants(
    conn: &mut PgConnection,
    tenant: TenantId,
    sealed: &[(GrantId, SealedKey)],
) -> sqlx::Result<()> {
    let grants: Vec<_> = sealed.iter().map(|(grant, _)| grant.uuid()).collect();
    let key_ids: Vec<_> = sealed.iter().map(|(_, key)| key.key_id.clone()).collect();
    let nonces: Vec<_> = sealed.iter().map(|(_, key)| key.nonce.clone()).collect();
    let texts: Vec<_> = sealed
        .iter()
        .map(|(_, key)| key.ciphertext.clone())
        .collect();
    sqlx::query!(
        "update key_grants g set key_id = x.key_id, nonce = x.nonce, ciphertext = x.ciphertext
         from unnest($2::uuid[], $3::text[], $4::bytea[], $5::bytea[]) as x (grant_id, key_id, nonce, ciphertext)
         where g.tenant_id = $1 and g.grant_id = x.grant_id",
        tenant.uuid(),
        &grants,
        &key_ids,
        &nonces,
        &texts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The tenant that was rotated away from these fingerprints since `since`, and the answer.
pub(super) async fn find_rotation(
    conn: &mut PgConnection,
    fingerprints: &[Fingerprint],
    since: Timestamp,
) -> sqlx::Result<Option<(TenantId, Rotation)>> {
    let (key_ids, digests) = columns(
        fingerprints
            .iter()
            .map(|fingerprint| (fingerprint.key_id.as_str(), &fingerprint.digest[..])),
    );
    let row = sqlx::query!(
        "select tenant_id, passed_at, held_keys, lanes_resumed from passed_keys
         where (key_id, fingerprint) in (select * from unnest($1::text[], $2::bytea[])) and passed_at >= $3
         order by passed_at desc limit 1",
        &key_ids,
        &digests,
        since.to_sqlx() as _,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| {
        let held_keys = u32::try_from(row.held_keys).unwrap_or_default();
        let rotation = Rotation {
            at: row.passed_at.to_jiff(),
            held_keys,
            lanes_resumed: row.lanes_resumed,
            repeated: true,
        };
        (row.tenant_id.into(), rotation)
    }))
}

/// Those of these fingerprints that were rotated away from a tenant since `since`, with the time.
pub(super) async fn find_rotated(
    pool: &PgPool,
    fingerprints: &[&Fingerprint],
    since: Timestamp,
) -> sqlx::Result<HashMap<Fingerprint, (TenantId, Timestamp)>> {
    let (key_ids, digests) = columns(
        fingerprints
            .iter()
            .map(|fingerprint| (fingerprint.key_id.as_str(), &fingerprint.digest[..])),
    );
    let rows = sqlx::query!(
        "select key_id, fingerprint, tenant_id, passed_at from passed_keys
         where (key_id, fingerprint) in (select * from unnest($1::text[], $2::bytea[])) and passed_at >= $3",
        &key_ids,
        &digests,
        since.to_sqlx() as _,
    );
    let rows = rows.fetch_all(pool).await?;
    let rotated = rows.into_iter().filter_map(|row| {
        let fingerprint = Fingerprint {
            key_id: row.key_id,
            digest: row.fingerprint.try_into().ok()?,
        };
        Some((fingerprint, (row.tenant_id.into(), row.passed_at.to_jiff())))
    });
    Ok(rotated.collect())
}

/// Whether a tenant has submitted or saved anything. A key that only searched has a tenant without anything.
pub(super) async fn owns_anything(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<bool> {
    let owns_anything = sqlx::query_scalar!(
        r#"select exists (select from lanes where tenant_id = $1) or exists (select from scans where tenant_id = $1)
               or exists (select from monitors where tenant_id = $1) or exists (select from channels where tenant_id = $1)
               or exists (select from account_settings where tenant_id = $1)
               or exists (select from saved_views where tenant_id = $1) as "owns!""#,
        tenant.uuid(),
    );
    owns_anything.fetch_one(conn).await
}

/// Processes know by their fingerprints whose searches are stored (gateway.md, rule 60).
pub(super) async fn notify_account_settings(
    conn: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "select pg_notify('farescan_account', $1::uuid::text) from account_settings where tenant_id = $1 and record_searches",
        tenant.uuid()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Locks a tenant's fingerprints, so that submissions wait.
pub(super) async fn lock_fingerprints(
    conn: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "select from tenant_keys where tenant_id = $1 order by key_id for update",
        tenant.uuid()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Stores the rotation and its answer; deletes the stored rotations of the new key and those before
/// `since`.
pub(super) async fn record_rotation(
    conn: &mut PgConnection,
    tenant: TenantId,
    old: &[StoredFingerprint],
    new: &[Fingerprint],
    rotation: &Rotation,
    since: Timestamp,
) -> sqlx::Result<()> {
    let (key_ids, digests) = columns(
        new.iter()
            .map(|fingerprint| (fingerprint.key_id.as_str(), &fingerprint.digest[..])),
    );
    sqlx::query!(
        "delete from passed_keys
         where passed_at < $3 or (key_id, fingerprint) in (select * from unnest($1::text[], $2::bytea[]))",
        &key_ids,
        &digests,
        since.to_sqlx() as _,
    )
    .execute(&mut *conn)
    .await?;
    let (key_ids, digests) = columns(
        old.iter()
            .map(|known| (known.key_id.as_str(), &known.fingerprint[..])),
    );
    sqlx::query!(
        "insert into passed_keys (key_id, fingerprint, tenant_id, passed_at, held_keys, lanes_resumed)
         select x.key_id, x.fingerprint, $3, $4, $5, $6 from unnest($1::text[], $2::bytea[]) as x (key_id, fingerprint)
         on conflict (key_id, fingerprint) do update
            set tenant_id = excluded.tenant_id, passed_at = excluded.passed_at, held_keys = excluded.held_keys,
                lanes_resumed = excluded.lanes_resumed",
        &key_ids,
        &digests,
        tenant.uuid(),
        rotation.at.to_sqlx() as _,
        i32::try_from(rotation.held_keys).unwrap_or(i32::MAX),
        &rotation.lanes_resumed,
    )
    .execute(conn)
    .await?;
    Ok(())
}

fn columns<'a>(rows: impl Iterator<Item = (&'a str, &'a [u8])>) -> (Vec<String>, Vec<Vec<u8>>) {
    rows.map(|(key_id, digest)| (key_id.to_owned(), digest.to_vec()))
        .unzip()
}
