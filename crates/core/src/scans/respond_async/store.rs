//! The stored outcome of a search. The queue writes it together with the answer.

use sqlx::PgPool;

use crate::ids::{ScanId, TenantId};
use crate::scans::read::{decompress_bytes, decompress_json};
use crate::search::{AnswerBody, Outcome};

/// The outcome of the scan's last call, and the body of its answer if there is one.
pub(super) async fn outcome(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<Option<(Outcome, Option<AnswerBody>)>> {
    let row = sqlx::query!(
        r#"select o.outcome, a.body as "body?"
           from scan_items i
           -- Of its last call: what an earlier one came to says nothing any more.
           join search_outcomes o on o.tenant_id = i.tenant_id and o.item_id = i.item_id and o.number = i.attempt
           left join answers a on a.tenant_id = i.tenant_id and a.item_id = i.item_id and a.number = o.number
           where i.tenant_id = $1 and i.scan_id = $2 and i.state in ('done', 'failed')"#,
        tenant.uuid(),
        scan.uuid(),
    )
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some((
        decompress_json(&row.outcome)?,
        row.body
            .as_deref()
            .map(decompress_bytes)
            .transpose()?
            .map(AnswerBody::from_checked),
    )))
}
