//! Statements on synchronous searches that are stored after their call.

use std::time::Duration;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};

use super::{AgedOutcome, CALL_NUMBER};
use crate::contract::Endpoint;
use crate::contract::scans::MaxAgeSeconds;
use crate::ids::{AttemptId, ItemId, ScanId, TenantId};
use crate::scans::read::{decompress_bytes, decompress_json};
use crate::scans::searches::Searches;
use crate::search::{AnswerBody, Outcome, StoredHeaders};

/// Begins the call of a scan's only item in the ledger, as it was begun before it was stored. No
/// worker had claimed it.
pub(super) async fn begin_call(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    attempt: AttemptId,
    started_at: Timestamp,
    billed: u16,
) -> sqlx::Result<ItemId> {
    let item = sqlx::query_scalar!(
        "with item as (
             update scan_items
             set state = 'calling', worker_id = 0, attempt = $6, calls = 1, counted_calls = 1, requests_spent = $5
             where tenant_id = $1 and scan_id = $2
             returning item_id
         ), begun as (
             insert into attempts (tenant_id, item_id, number, attempt_id, scan_id, worker_id, started_at, requests_spent)
             select $1, item_id, $6, $3, $2, 0, $4, $5 from item
         ), counted as (
             update scans set status = 'running', started_at = $4, requests_spent = $5 where tenant_id = $1 and scan_id = $2
         )
         select item_id from item",
        tenant.uuid(),
        scan.uuid(),
        attempt.uuid(),
        started_at.to_sqlx() as _,
        i16::try_from(billed).unwrap_or(i16::MAX) as _,
        CALL_NUMBER,
    )
    .fetch_one(conn)
    .await?;
    Ok(item.into())
}

/// The answer that this one search may take.
pub(super) async fn find_answer(
    pool: &PgPool,
    tenant: TenantId,
    endpoint: Endpoint,
    searches: &Searches,
    max_age: MaxAgeSeconds,
    now: Timestamp,
) -> sqlx::Result<Option<AgedOutcome>> {
    let [first_dates, last_dates] = searches.sql_dates();
    let row = sqlx::query!(
        r#"select r.observed_at as "observed_at!: jiff_sqlx::Timestamp", o.outcome as "outcome?", a.body as "body?", i.results,
                  t.http_status, t.search_headers as "search_headers: Json<StoredHeaders>", t.latency_ms
           from reusable_answers($1, $2, make_interval(secs => $3), $4, true, array[sent_options(null, true, $5)], $6, $7, $8) r
           join scan_items i on i.tenant_id = $2 and i.item_id = r.item_id
           join attempts t on t.tenant_id = $2 and t.item_id = r.item_id and t.number = r.number
           left join search_outcomes o on o.tenant_id = $2 and o.item_id = r.item_id and o.number = r.number
           left join answers a on a.tenant_id = $2 and a.item_id = r.item_id and a.number = r.number and a.observed_at = r.observed_at"#,
        now.to_sqlx() as _,
        tenant.uuid(),
        f64::from(max_age.get()),
        endpoint.as_str(),
        searches.bodies.first(),
        &searches.series,
        &first_dates as _,
        &last_dates as _,
    )
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let body = row.body.as_deref().map(decompress_bytes).transpose()?;
    let body = body.map(AnswerBody::from_checked);
    let outcome = match row.outcome {
        Some(outcome) => decompress_json::<Outcome>(&outcome)?.with_body(body),
        // Of a scan's item, which is stored in columns.
        None => body.map(|body| {
            let results = row
                .results
                .and_then(|results| usize::try_from(results).ok());
            let latency = row
                .latency_ms
                .and_then(|latency| u64::try_from(latency).ok());
            Outcome::of_answer(
                body,
                results.unwrap_or_default(),
                row.http_status
                    .and_then(|status| u16::try_from(status).ok()),
                row.search_headers
                    .map(|Json(headers)| headers)
                    .unwrap_or_default(),
                Duration::from_millis(latency.unwrap_or_default()),
            )
        }),
    };
    Ok(outcome.map(|outcome| AgedOutcome {
        outcome,
        age: now.duration_since(row.observed_at.to_jiff()),
    }))
}
