//! The statement on whose searches are stored.

use sqlx::PgPool;

use crate::ids::TenantId;
use crate::tenants::Fingerprint;

/// The fingerprints of callers whose searches are stored, or of one such caller: at most `limit`, those
/// of the oldest settings.
pub(super) async fn recorded_callers(
    pool: &PgPool,
    only: Option<TenantId>,
    limit: i64,
) -> sqlx::Result<Vec<(Fingerprint, TenantId)>> {
    let rows = sqlx::query!(
        "select s.tenant_id, k.key_id, k.fingerprint
         from account_settings s join tenant_keys k on k.tenant_id = s.tenant_id
         where s.record_searches and ($1::uuid is null or s.tenant_id = $1)
         order by s.changed_at, s.tenant_id, k.key_id limit $2",
        only.map(TenantId::uuid),
        limit,
    )
    .fetch_all(pool)
    .await?;
    let known = rows.into_iter().filter_map(|row| {
        let digest = row.fingerprint.try_into().ok()?;
        let fingerprint = Fingerprint {
            key_id: row.key_id,
            digest,
        };
        Some((fingerprint, row.tenant_id.into()))
    });
    Ok(known.collect())
}
