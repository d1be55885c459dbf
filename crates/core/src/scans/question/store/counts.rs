//! Statements on what was counted of a caller's questions, and on the scans that are still to be
//! played again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::count;
use crate::contract::{Api, Endpoint};
use crate::ids::{ScanId, TenantId};
use crate::planner::{Known, MissCount, Misses, Replayed, Setting};
use crate::scans::question::DueScan;

pub(super) fn setting(percent_a_day: i16, is_patient: bool) -> Setting {
    Setting {
        percent_a_day: u8::try_from(percent_a_day).unwrap_or(u8::MAX),
        is_patient,
    }
}

pub(super) fn miss_count(questions: i32, missed: i32) -> MissCount {
    MissCount {
        questions: u32::try_from(questions).unwrap_or_default(),
        missed: u32::try_from(missed).unwrap_or_default(),
    }
}

/// What was counted of such questions of a caller, over what was counted elsewhere.
pub(in crate::scans) async fn misses(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
) -> sqlx::Result<Misses> {
    let rows = sqlx::query!(
        "select known, percent_a_day, is_patient, questions, missed from question_counts where tenant_id = $1 and api = $2",
        tenant.uuid(),
        api.as_str(),
    );
    let rows = rows.fetch_all(conn).await?;
    let own: BTreeMap<_, _> = rows
        .into_iter()
        .filter_map(|row| {
            let of = (
                Known::parse(&row.known)?,
                setting(row.percent_a_day, row.is_patient),
            );
            Some((of, miss_count(row.questions, row.missed)))
        })
        .collect();
    Ok(match api {
        Api::Flights => Misses::of_flights(own),
        Api::Hotels => Misses::of_stays(own),
    })
}

/// The same for the API of a scan.
pub(in crate::scans::question) async fn misses_of_scan(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<Misses> {
    let api = sqlx::query_scalar!(
        r#"select api as "api: Api" from scans where tenant_id = $1 and scan_id = $2"#,
        tenant.uuid(),
        scan.uuid(),
    );
    let api = api.fetch_one(&mut *conn).await?;
    misses(conn, tenant, api).await
}

/// Notes that a scan is to be played again once it has ended.
pub(in crate::scans) async fn insert_due(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into due_replays (tenant_id, scan_id) values ($1, $2)",
        tenant.uuid(),
        scan.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Scans that have ended and are to be played again, after the given one.
pub(in crate::scans::question) async fn find_due_replays(
    pool: &PgPool,
    (after_tenant, after_scan): (Uuid, Uuid),
    limit: i64,
) -> sqlx::Result<Vec<DueScan>> {
    sqlx::query_as!(
        DueScan,
        "select d.tenant_id as tenant, d.scan_id as scan
         from due_replays d join scans s on s.tenant_id = d.tenant_id and s.scan_id = d.scan_id
         where s.finished_at is not null and (d.tenant_id, d.scan_id) > ($2, $3)
         order by d.tenant_id, d.scan_id limit $1",
        limit,
        after_tenant,
        after_scan,
    )
    .fetch_all(pool)
    .await
}

/// A scan that is to be played again.
pub(in crate::scans::question) struct EndedScan {
    pub(in crate::scans::question) endpoint: Endpoint,
    pub(in crate::scans::question) request: Value,
    pub(in crate::scans::question) sweep: Value,
    pub(in crate::scans::question) created_at: Timestamp,
    /// By position; those of items that took an answer, or have none that is whole, are left out.
    pub(in crate::scans::question) found: Vec<FoundItem>,
}

/// An item with its own whole answer.
pub(in crate::scans::question) struct FoundItem {
    pub(in crate::scans::question) item: Uuid,
    pub(in crate::scans::question) position: usize,
    pub(in crate::scans::question) price: Option<rust_decimal::Decimal>,
    pub(in crate::scans::question) currency: Option<String>,
}

/// Takes a scan from those that are due, in the transaction that counts it; `None`: another has.
pub(in crate::scans::question) async fn take_due(
    conn: &mut PgConnection,
    due: &DueScan,
) -> sqlx::Result<Option<EndedScan>> {
    let row = sqlx::query!(
        r#"delete from due_replays d using scans s
           where d.tenant_id = $1 and d.scan_id = $2 and s.tenant_id = $1 and s.scan_id = $2 and s.finished_at is not null
           returning s.endpoint as "endpoint: Endpoint", s.request, s.sweep, s.created_at as "created_at: jiff_sqlx::Timestamp""#,
        due.tenant.uuid(),
        due.scan.uuid(),
    );
    let Some(row) = row.fetch_optional(&mut *conn).await? else {
        return Ok(None);
    };
    let items = sqlx::query!(
        "select item_id, position, best_price, currency from scan_items
         where tenant_id = $1 and scan_id = $2 and state = 'done' and search_status in ('ok', 'empty') and reused_at is null
         order by position",
        due.tenant.uuid(),
        due.scan.uuid(),
    );
    let items = items.fetch_all(conn).await?;
    let found = items.into_iter().map(|item| FoundItem {
        item: item.item_id,
        position: count(item.position),
        price: item.best_price,
        currency: item.currency,
    });
    Ok(Some(EndedScan {
        endpoint: row.endpoint,
        request: row.request,
        sweep: row.sweep,
        created_at: row.created_at.to_jiff(),
        found: found.collect(),
    }))
}

/// Adds what a replay has counted.
pub(in crate::scans::question) async fn add_counts(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
    replayed: &Replayed,
) -> sqlx::Result<()> {
    let of_settings = |of: fn(&(Setting, MissCount)) -> i32| -> Vec<i32> {
        replayed.counts.iter().map(of).collect()
    };
    let patient: Vec<_> = replayed
        .counts
        .iter()
        .map(|(setting, _)| setting.is_patient)
        .collect();
    sqlx::query!(
        "insert into question_counts as c (tenant_id, api, known, percent_a_day, is_patient, questions, missed)
         select $1, $2, $3, x.percent_a_day, x.is_patient, x.questions, x.missed
         from unnest($4::integer[], $5::boolean[], $6::integer[], $7::integer[]) as x (percent_a_day, is_patient, questions, missed)
         on conflict (tenant_id, api, known, percent_a_day, is_patient)
         do update set questions = c.questions + excluded.questions, missed = c.missed + excluded.missed",
        tenant.uuid(),
        api.as_str(),
        replayed.known.as_str(),
        &of_settings(|(setting, _)| setting.percent_a_day.into()),
        &patient,
        &of_settings(|(_, count)| i32::try_from(count.questions).unwrap_or(i32::MAX)),
        &of_settings(|(_, count)| i32::try_from(count.missed).unwrap_or(i32::MAX)),
    )
    .execute(conn)
    .await?;
    Ok(())
}
