//! Queries of an export of items.

use sqlx::PgPool;
use sqlx::types::Json;

use crate::contract::Endpoint;
use crate::contract::scans::{Expand, ItemSort, ItemsQuery};
use crate::ids::{ScanId, TenantId};
use crate::scans::item_state::stored_states;
use crate::scans::read::rows::{ConfirmingRow, ItemRow, ItemWithAnswer};

/// A page ends once its compressed answers exceed this many bytes.
const ANSWER_BYTES: i64 = 1 << 20;

/// The positions of the matching items in the requested order; by price, items without one come
/// last.
pub(in crate::scans::read) async fn positions(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    query: &ItemsQuery,
) -> sqlx::Result<Vec<i32>> {
    let states = query.state.map(stored_states);
    sqlx::query_scalar!(
        "select position from scan_items
         where tenant_id = $1 and scan_id = $2 and ($3::text[] is null or state = any ($3))
           and ($4::text is null or search_status = $4) and ($5::text is null or reason = $5)
         order by case when $6 then best_price end nulls last, position",
        tenant.uuid(),
        scan.uuid(),
        states.as_deref(),
        query.search_status.map(|status| status.as_str()),
        query.reason.as_ref().map(|reason| reason.as_str()),
        query.sort_or_default() == ItemSort::Price,
    )
    .fetch_all(pool)
    .await
}

/// The items at these positions, in this order, with their last answers if requested, and whether
/// they still match. Fewer items if the answers are large; none once the scan is deleted.
pub(in crate::scans::read) async fn items_at(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    endpoint: Endpoint,
    query: &ItemsQuery,
    positions: &[i32],
) -> sqlx::Result<Vec<ItemWithAnswer>> {
    let states = query.state.map(stored_states);
    let rows = sqlx::query!(
        r#"select i.item_id, i.position, i.body, i.state, i.search_status, i.reason, i.calls, i.requests_spent, i.results, i.best_price,
                  i.currency, i.observed_at as "observed_at: jiff_sqlx::Timestamp", i.latency_ms, i.error, i.reused_item, i.reused_from,
                  i.reused_at as "reused_at: jiff_sqlx::Timestamp", i.earlier as "confirming: Json<ConfirmingRow>", answer as "answer?",
                  (($4::text[] is null or i.state = any ($4)) and ($5::text is null or coalesce(i.search_status = $5, false))
                   and ($6::text is null or coalesce(i.reason = $6, false))) as "fits!"
           from (
               select i.*, asked.place, a.body as answer,
                      sum(octet_length(a.body)) over (order by asked.place rows between unbounded preceding and 1 preceding) as bytes_before
               from unnest($3::int[]) with ordinality as asked (position, place)
               -- One row by the unique index for each: a join may be planned as a pass over the whole scan, for every page.
               cross join lateral (
                   select * from scan_items where tenant_id = $1 and scan_id = $2 and position = asked.position limit 1
               ) i
               left join lateral (
                   select body from answers a where $7 and a.tenant_id = i.tenant_id and a.item_id = i.item_id
                   order by a.observed_at is not distinct from i.observed_at desc, a.number desc limit 1
               ) a on true
           ) i
           where coalesce(i.bytes_before, 0) < $8::bigint
           order by i.place"#,
        tenant.uuid(),
        scan.uuid(),
        positions,
        states.as_deref(),
        query.search_status.map(|status| status.as_str()),
        query.reason.as_ref().map(|reason| reason.as_str()),
        query.expand == Some(Expand::Answer),
        ANSWER_BYTES,
    )
    .fetch_all(pool)
    .await?;
    let found = rows.into_iter().map(|row| ItemWithAnswer {
        matches: row.fits,
        answer: row.answer,
        item: ItemRow {
            item_id: row.item_id,
            scan_id: scan.uuid(),
            endpoint,
            position: row.position,
            body: row.body,
            state: row.state,
            search_status: row.search_status,
            reason: row.reason,
            calls: row.calls,
            requests_spent: row.requests_spent,
            results: row.results,
            best_price: row.best_price,
            currency: row.currency,
            observed_at: row.observed_at,
            latency_ms: row.latency_ms,
            error: row.error,
            reused_item: row.reused_item,
            reused_from: row.reused_from,
            reused_at: row.reused_at,
            confirming: row.confirming,
        },
    });
    Ok(found.collect())
}
