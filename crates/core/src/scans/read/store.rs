//! Queries of lists and single resources. Every condition begins with the tenant.

pub(super) mod export;

use std::collections::HashMap;

use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use rust_decimal::Decimal;
use serde_json::{Map, Value};
use sqlx::types::Json;
use sqlx::{PgConnection, PgExecutor, PgPool};

use super::rows::{AttemptRow, ConfirmingRow, ItemRow, ScanRow, StrategyRow, decompress_json};
use super::{ItemsForm, PagePosition, ScanConditions};
use crate::contract::scans::{ItemsQuery, ScansQuery, SoughtText};
use crate::contract::{Endpoint, RawJson};
use crate::ids::{ItemId, MonitorId, ScanId, TenantId};
use crate::scans::item_state::stored_states;
use crate::search::StoredHeaders;

pub(super) async fn scan(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
) -> sqlx::Result<Option<ScanRow>> {
    sqlx::query_as!(
        ScanRow,
        r#"select scan_id as "scan_id!", endpoint as "endpoint!", request as "request!", sweep as "sweep!", label, tags as "tags!",
                  status as "status!", status_reason, total as "total!", ok as "ok!", empty as "empty!", partial as "partial!",
                  degraded as "degraded!", failed as "failed!", cancelled as "cancelled!", running as "running!",
                  requests_spent as "requests_spent!", max_requests, best_price, best_currency, best_item_id, seconds_per_search,
                  key_held_until, created_at as "created_at!", started_at, finished_at, monitor_id,
                  max_age_seconds, reused as "reused!", joined as "joined!",
                  strategy as "strategy: Json<StrategyRow>"
           from shown_scans where tenant_id = $1 and scan_id = $2"#,
        tenant.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await
}

pub(super) async fn scans(
    pool: &PgPool,
    tenant: TenantId,
    query: &ScansQuery,
    more: &ScanConditions,
    before: Option<ScanId>,
    limit: i64,
) -> sqlx::Result<Vec<ScanRow>> {
    let monitors: Vec<_> = more.monitors.iter().map(|monitor| monitor.uuid()).collect();
    // In an array of airports each code stands in quotes.
    let quoted = |code: &Option<String>| code.as_ref().map(|code| format!("\"{code}\""));
    sqlx::query_as!(
        ScanRow,
        r#"select scan_id as "scan_id!", endpoint as "endpoint!", request as "request!", sweep as "sweep!", label, tags as "tags!",
                  status as "status!", status_reason, total as "total!", ok as "ok!", empty as "empty!", partial as "partial!",
                  degraded as "degraded!", failed as "failed!", cancelled as "cancelled!", running as "running!",
                  requests_spent as "requests_spent!", max_requests, best_price, best_currency, best_item_id, seconds_per_search,
                  key_held_until, created_at as "created_at!", started_at, finished_at, monitor_id,
                  max_age_seconds, reused as "reused!", joined as "joined!",
                  strategy as "strategy: Json<StrategyRow>"
           from shown_scans
           where tenant_id = $1 and ($2::uuid is null or scan_id < $2) and ($3::text is null or status = $3)
             and ($4::text is null or endpoint = $4) and ($5::text is null or $5 = any (tags))
             and ($6::uuid is null or monitor_id = $6)
             and ($8::text is null or upper(request ->> 'from_airport') = $8 or position($9 in upper(sweep ->> 'from_airport')) > 0)
             and ($10::text is null or upper(request ->> 'to_airport') = $10 or position($11 in upper(sweep ->> 'to_airport')) > 0)
             and ($12::text is null or position(lower($12) in lower(concat_ws(' ', request ->> 'hotel_name', request ->> 'destination',
                  request ->> 'hotel_booking_id', sweep ->> 'hotel_name', sweep ->> 'destination', sweep ->> 'hotel_booking_id'))) > 0)
             and ($13::text is null or position(lower($13) in lower(label)) > 0)
             and ($14::timestamptz is null or created_at >= $14) and ($15::timestamptz is null or created_at < $15)
             and (not $16::boolean or partial + degraded + failed > 0)
             and (not exists (select from unnest($17::text[]) word where position(lower(word) in lower(concat_ws(' ', label, array_to_string(tags, ' '),
                  request ->> 'from_airport', sweep ->> 'from_airport', request ->> 'to_airport', sweep ->> 'to_airport',
                  request ->> 'hotel_name', request ->> 'destination', sweep ->> 'hotel_name', sweep ->> 'destination'))) = 0)
                  or monitor_id = any ($20))
             and (not $21::boolean or monitor_id is not null)
             and ($18::text is null or lower(request ->> $18) = lower($19)
                  or position(lower(to_json($19::text)::text) in lower(sweep ->> $18)) > 0)
             and (not $22::boolean or not exists (select from dismissed_scans d
                  where d.tenant_id = $1 and d.scan_id = shown_scans.scan_id and d.dismissed_at >= shown_scans.finished_at))
           order by scan_id desc limit $7"#,
        tenant.uuid(),
        before.map(ScanId::uuid),
        query.status.map(|status| status.as_str()),
        query.endpoint.map(|endpoint| endpoint.get().as_str()),
        query.tag.as_ref().map(|tag| tag.as_str()),
        query.monitor_id.map(MonitorId::uuid),
        limit,
        more.from_airport.as_deref(),
        quoted(&more.from_airport),
        more.to_airport.as_deref(),
        quoted(&more.to_airport),
        more.hotel.as_deref(),
        more.label.as_deref(),
        more.created_from.map(|from| from.to_sqlx()) as Option<SqlTimestamp>,
        more.created_before.map(|before| before.to_sqlx()) as Option<SqlTimestamp>,
        more.has_undone,
        &query.text.as_ref().map(SoughtText::words).unwrap_or_default(),
        more.place.as_ref().map(|place| place.field),
        more.place.as_ref().map(|place| place.text.as_str()),
        &monitors,
        more.is_run,
        more.is_undismissed,
    )
    .fetch_all(pool)
    .await
}

/// The scans that have not ended, by their own index.
pub(super) async fn live_scans(pool: &PgPool, tenant: TenantId) -> sqlx::Result<Vec<ScanRow>> {
    sqlx::query_as!(
        ScanRow,
        r#"select scan_id as "scan_id!", endpoint as "endpoint!", request as "request!", sweep as "sweep!", label, tags as "tags!",
                  status as "status!", status_reason, total as "total!", ok as "ok!", empty as "empty!", partial as "partial!",
                  degraded as "degraded!", failed as "failed!", cancelled as "cancelled!", running as "running!",
                  requests_spent as "requests_spent!", max_requests, best_price, best_currency, best_item_id, seconds_per_search,
                  key_held_until, created_at as "created_at!", started_at, finished_at, monitor_id,
                  max_age_seconds, reused as "reused!", joined as "joined!",
                  strategy as "strategy: Json<StrategyRow>"
           from shown_scans
           where tenant_id = $1 and finished_at is null and status in ('queued', 'running', 'paused')
           order by scan_id desc"#,
        tenant.uuid(),
    )
    .fetch_all(pool)
    .await
}

/// What the form of a scan's items depends on; `None`: there is no such scan.
pub(super) async fn items_form(
    pool: &PgPool,
    tenant: TenantId,
    id: ScanId,
) -> sqlx::Result<Option<ItemsForm>> {
    sqlx::query_as!(
        ItemsForm,
        r#"select endpoint, max_age is not null as "may_reuse!" from scans where tenant_id = $1 and scan_id = $2"#,
        tenant.uuid(),
        id.uuid()
    )
    .fetch_optional(pool)
    .await
}

/// The endpoints and bodies of some items of any scans. Those of deleted ones are absent.
pub async fn searches(
    pool: &PgPool,
    tenant: TenantId,
    items: &[ItemId],
) -> sqlx::Result<HashMap<ItemId, (Endpoint, Map<String, Value>)>> {
    let ids: Vec<_> = items.iter().map(|item| item.uuid()).collect();
    let rows = sqlx::query!(
        r#"select i.item_id, s.endpoint as "endpoint: Endpoint", i.body as "body: Json<Map<String, Value>>"
           from scan_items i join scans s on s.tenant_id = i.tenant_id and s.scan_id = i.scan_id
           where i.tenant_id = $1 and i.item_id = any ($2)"#,
        tenant.uuid(),
        &ids,
    );
    let rows = rows.fetch_all(pool).await?.into_iter();
    Ok(rows
        .map(|row| (row.item_id.into(), (row.endpoint, row.body.0)))
        .collect())
}

/// The lowest prices of a scan in a currency, ascending, without those of some items.
pub(super) async fn lowest_prices(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    currency: &str,
    without: &[ItemId],
    limit: i64,
) -> sqlx::Result<Vec<(ItemId, Decimal)>> {
    let without: Vec<_> = without.iter().map(|item| item.uuid()).collect();
    let rows = sqlx::query!(
        r#"select item_id, best_price as "best_price!" from scan_items
           where tenant_id = $1 and scan_id = $2 and state = 'done' and best_price is not null and currency = $3
             and item_id <> all ($4)
           order by best_price, position limit $5"#,
        tenant.uuid(),
        scan.uuid(),
        currency,
        &without,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows
        .map(|row| (row.item_id.into(), row.best_price.normalize()))
        .collect())
}

/// The row of the query for changes.
pub(super) struct ChangesRow {
    pub(super) scan: ScanRow,
    pub(super) items: Vec<(u64, ItemRow)>,
    pub(super) event_count: i64,
    pub(super) events_from: i64,
}

/// A scan, its events after an id with their items, and the bounds of its event ids. One statement,
/// so one snapshot.
pub(super) async fn changes(
    pool: &PgPool,
    tenant: TenantId,
    id: ScanId,
    after: i64,
    limit: i64,
) -> sqlx::Result<Option<ChangesRow>> {
    let row = sqlx::query!(
        r#"select s.scan_id as "scan_id!", s.endpoint as "endpoint!", s.request as "request!", s.sweep as "sweep!", s.label, s.tags as "tags!",
                  s.status as "status!", s.status_reason, s.total as "total!", s.ok as "ok!", s.empty as "empty!", s.partial as "partial!",
                  s.degraded as "degraded!", s.failed as "failed!", s.cancelled as "cancelled!", s.running as "running!",
                  s.requests_spent as "requests_spent!", s.max_requests, s.best_price, s.best_currency, s.best_item_id,
                  s.seconds_per_search, s.key_held_until, s.created_at as "created_at!", s.started_at, s.finished_at, s.monitor_id,
                  s.max_age_seconds, s.reused as "reused!", s.joined as "joined!",
                  s.strategy as "strategy: Json<StrategyRow>",
                  n.event_count, n.events_from,
                  (select coalesce(json_agg(json_build_array(e.id, json_build_object(
                              'item_id', i.item_id, 'scan_id', i.scan_id, 'endpoint', n.endpoint, 'position', i.position, 'body', i.body,
                              'state', i.state, 'search_status', i.search_status, 'reason', i.reason, 'calls', i.calls,
                              'requests_spent', i.requests_spent, 'results', i.results, 'best_price', i.best_price::text,
                              'currency', i.currency, 'observed_at', i.observed_at, 'latency_ms', i.latency_ms, 'error', i.error, 'reused_item', i.reused_item,
                              'reused_from', i.reused_from,
                              'reused_at', i.reused_at, 'confirming', i.earlier
                          )) order by e.id), '[]')
                   from (select v.first_id + cardinality(v.items) - x.place as id, x.item_id
                         from scan_events v cross join lateral unnest(v.items) with ordinality as x (item_id, place)
                         where v.tenant_id = $1 and v.scan_id = $2
                           and v.first_id >= coalesce((select max(b.first_id) from scan_events b
                                                       where b.tenant_id = $1 and b.scan_id = $2 and b.first_id <= $3), 0)
                           and x.item_id is not null and v.first_id + cardinality(v.items) - x.place > $3
                         order by v.first_id, x.place desc limit $4) e
                   join scan_items i on i.tenant_id = $1 and i.item_id = e.item_id) as "items!: Json<Vec<(u64, ItemRow)>>"
           from shown_scans s join scans n on n.tenant_id = s.tenant_id and n.scan_id = s.scan_id
           where s.tenant_id = $1 and s.scan_id = $2"#,
        tenant.uuid(),
        id.uuid(),
        after,
        limit,
    )
    .fetch_optional(pool)
    .await?;
    Ok(row.map(|row| ChangesRow {
        scan: ScanRow {
            scan_id: row.scan_id,
            endpoint: row.endpoint,
            request: row.request,
            sweep: row.sweep,
            label: row.label,
            tags: row.tags,
            status: row.status,
            status_reason: row.status_reason,
            total: row.total,
            ok: row.ok,
            empty: row.empty,
            partial: row.partial,
            degraded: row.degraded,
            failed: row.failed,
            cancelled: row.cancelled,
            running: row.running,
            requests_spent: row.requests_spent,
            max_requests: row.max_requests,
            best_price: row.best_price,
            best_currency: row.best_currency,
            best_item_id: row.best_item_id,
            seconds_per_search: row.seconds_per_search,
            key_held_until: row.key_held_until,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            monitor_id: row.monitor_id,
            max_age_seconds: row.max_age_seconds,
            reused: row.reused,
            joined: row.joined,
            strategy: row.strategy,
        },
        items: row.items.0,
        event_count: row.event_count,
        events_from: row.events_from,
    }))
}

pub(super) async fn items_by_position(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    query: &ItemsQuery,
    after: &PagePosition,
    limit: i64,
) -> sqlx::Result<Vec<ItemRow>> {
    let states = query.state.map(stored_states);
    sqlx::query_as!(
        ItemRow,
        r#"select i.item_id, i.scan_id, s.endpoint, i.position, i.body, i.state, i.search_status, i.reason, i.calls, i.requests_spent,
                i.results, i.best_price, i.currency, i.observed_at, i.latency_ms, i.error, i.reused_item, i.reused_from, i.reused_at,
                i.earlier as "confirming: Json<ConfirmingRow>"
         from scan_items i join scans s on s.tenant_id = i.tenant_id and s.scan_id = i.scan_id
         where i.tenant_id = $1 and i.scan_id = $2 and i.position > $3 and ($4::text[] is null or i.state = any ($4))
           and ($5::text is null or i.search_status = $5) and ($6::text is null or i.reason = $6)
         order by i.position limit $7"#,
        tenant.uuid(),
        scan.uuid(),
        after.position,
        states.as_deref(),
        query.search_status.map(|status| status.as_str()),
        query.reason.as_ref().map(|reason| reason.as_str()),
        limit,
    )
    .fetch_all(pool)
    .await
}

/// Cheapest first, equal prices by position, items without a price last.
pub(super) async fn items_by_price(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    query: &ItemsQuery,
    after: &PagePosition,
    limit: i64,
) -> sqlx::Result<Vec<ItemRow>> {
    let states = query.state.map(stored_states);
    sqlx::query_as!(
        ItemRow,
        r#"select i.item_id, i.scan_id, s.endpoint, i.position, i.body, i.state, i.search_status, i.reason, i.calls, i.requests_spent,
                i.results, i.best_price, i.currency, i.observed_at, i.latency_ms, i.error, i.reused_item, i.reused_from, i.reused_at,
                i.earlier as "confirming: Json<ConfirmingRow>"
         from scan_items i join scans s on s.tenant_id = i.tenant_id and s.scan_id = i.scan_id
         where i.tenant_id = $1 and i.scan_id = $2 and ($4::text[] is null or i.state = any ($4))
           and ($5::text is null or i.search_status = $5) and ($6::text is null or i.reason = $6)
           and case when $8::numeric is null then i.best_price is null and i.position > $3
                    else i.best_price is null or (i.best_price, i.position) > ($8, $3) end
         order by i.best_price nulls last, i.position limit $7"#,
        tenant.uuid(),
        scan.uuid(),
        after.position,
        states.as_deref(),
        query.search_status.map(|status| status.as_str()),
        query.reason.as_ref().map(|reason| reason.as_str()),
        limit,
        after.price as Option<Decimal>,
    )
    .fetch_all(pool)
    .await
}

pub(super) async fn item(
    pool: &PgPool,
    tenant: TenantId,
    id: ItemId,
) -> sqlx::Result<Option<ItemRow>> {
    sqlx::query_as!(
        ItemRow,
        r#"select i.item_id, i.scan_id, s.endpoint, i.position, i.body, i.state, i.search_status, i.reason, i.calls, i.requests_spent,
                i.results, i.best_price, i.currency, i.observed_at, i.latency_ms, i.error, i.reused_item, i.reused_from, i.reused_at,
                i.earlier as "confirming: Json<ConfirmingRow>"
         from scan_items i join scans s on s.tenant_id = i.tenant_id and s.scan_id = i.scan_id
         where i.tenant_id = $1 and i.item_id = $2"#,
        tenant.uuid(),
        id.uuid(),
    )
    .fetch_optional(pool)
    .await
}

pub(super) async fn attempts(
    pool: &PgPool,
    tenant: TenantId,
    item: ItemId,
) -> sqlx::Result<Vec<AttemptRow>> {
    sqlx::query_as!(
        AttemptRow,
        r#"select attempt_id, item_id, number, started_at, ended_at, requests_spent, http_status, search_status, reason,
                  search_headers as "search_headers: Json<StoredHeaders>", latency_ms, error
           from attempts where tenant_id = $1 and item_id = $2 order by number"#,
        tenant.uuid(),
        item.uuid(),
    )
    .fetch_all(pool)
    .await
}

/// The answer of each item that has one: that of its price, which need not be that of its last
/// attempt (monitors.md, rule 87), or the last.
pub(super) async fn answers(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    items: &[ItemId],
) -> sqlx::Result<HashMap<ItemId, RawJson>> {
    let ids: Vec<_> = items.iter().map(|item| item.uuid()).collect();
    let rows = sqlx::query!(
        "select distinct on (a.item_id) a.item_id, a.body
         from answers a join scan_items i on i.tenant_id = $1 and i.item_id = a.item_id
         where a.tenant_id = $1 and a.item_id = any ($2)
         order by a.item_id, a.observed_at is not distinct from i.observed_at desc, a.number desc",
        tenant.uuid(),
        &ids,
    )
    .fetch_all(executor)
    .await?;
    rows.into_iter()
        .map(|row| Ok((row.item_id.into(), decompress_json(&row.body)?)))
        .collect()
}
