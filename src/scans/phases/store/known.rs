//! Statements on what a question starts from: stored prices, and how often they change.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use serde_json::Value;
use sqlx::PgConnection;

use super::{count, number};
use crate::contract::{Endpoint, Request};
use crate::ids::{ScanId, TenantId};
use crate::planner::ChangeRates;
use crate::scans::phases::rates::{CountedRates, PriceSample};
use crate::scans::phases::view::EarlierAnswer;
use crate::scans::searches::Searches;
use crate::scans::store::lock::LockedScan;

/// The most prices that the rates of a question count, and of how many products.
const MAX_SAMPLES: i64 = 5_000;
const MAX_SERIES: usize = 50;
/// The age up to which prices count for the rates.
const SAMPLED_FOR: SignedDuration = SignedDuration::from_hours(90 * 24);

/// The latest answers from before the scan to its searches, and how often such prices change, which
/// is stored for its later decisions.
pub(in crate::scans::phases) async fn stored_answers(
    lock: &mut LockedScan<'_>,
    now: Timestamp,
) -> sqlx::Result<(Vec<EarlierAnswer>, ChangeRates)> {
    let (tenant, scan) = (lock.tenant(), lock.id());
    let rows = sqlx::query!(
        r#"select s.endpoint as "endpoint: Endpoint", i.position, i.body
           from scans s join scan_items i on i.tenant_id = s.tenant_id and i.scan_id = s.scan_id
           where s.tenant_id = $1 and s.scan_id = $2 order by i.position"#,
        tenant.uuid(),
        scan.uuid(),
    );
    let rows = rows.fetch_all(lock.conn()).await?;
    let requests: Vec<_> = rows
        .into_iter()
        .filter_map(|row| {
            let Value::Object(body) = row.body else {
                return None;
            };
            let checked = Request::check(row.endpoint, &body).ok()?;
            Some((count(row.position), checked.request))
        })
        .collect();
    let requests = requests
        .iter()
        .map(|(position, request)| (*position, request));
    let (positions, searches) = Searches::of(requests);
    let stored = find_answers(lock.conn(), tenant, &positions, &searches, Some(scan)).await?;
    let CountedRates { rates, pairs } = find_rates(lock.conn(), tenant, &searches, now).await?;
    sqlx::query!(
        "update scan_strategies set rates = $3, pairs = $4 where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        scan.uuid(),
        &rates.counts(),
        number(pairs),
    )
    .execute(lock.conn())
    .await?;
    Ok((stored, rates))
}

/// How often the prices of these products have changed, by the newest of the caller's own. The work
/// is bounded by [`MAX_SAMPLES`], however long the history is.
pub(in crate::scans) async fn find_rates(
    conn: &mut PgConnection,
    tenant: TenantId,
    searches: &Searches,
    now: Timestamp,
) -> sqlx::Result<CountedRates> {
    let mut series = searches.series.clone();
    series.sort_unstable();
    series.dedup();
    series.truncate(MAX_SERIES);
    let each = MAX_SAMPLES / i64::try_from(series.len().max(1)).unwrap_or(1);
    let since = now - SAMPLED_FOR;
    let rows = sqlx::query!(
        r#"select x.series as "series!", o.first_date as "first_date: jiff_sqlx::Date", coalesce(o.last_date, o.first_date) as "last_date!: jiff_sqlx::Date",
                  o.observed_at as "observed_at: jiff_sqlx::Timestamp", o.price as "price!"
           from unnest($2::bytea[]) as x (series)
           cross join lateral (select * from observations o
                               where o.tenant_id = $1 and o.series = x.series and o.observed_at > $3 and o.price is not null
                               order by o.observed_at desc limit $4) o"#,
        tenant.uuid(),
        &series,
        since.to_sqlx() as _,
        each,
    );
    let rows = rows.fetch_all(conn).await?;
    let samples = rows.into_iter().map(|row| PriceSample {
        series: row.series,
        first_date: row.first_date.to_jiff(),
        last_date: row.last_date.to_jiff(),
        observed_at: row.observed_at.to_jiff(),
        price: row.price,
    });
    Ok(CountedRates::of(samples.collect()))
}

/// The latest answers to searches, each a price or an empty answer, but for those of one scan. Each
/// look-up reads one row, however long the history is.
pub(in crate::scans) async fn find_answers(
    conn: &mut PgConnection,
    tenant: TenantId,
    positions: &[usize],
    searches: &Searches,
    except: Option<ScanId>,
) -> sqlx::Result<Vec<EarlierAnswer>> {
    let [first_dates, last_dates] = searches.sql_dates();
    let rows = sqlx::query!(
        r#"select x.nth as "nth!", p.price, p.at as "at!: jiff_sqlx::Timestamp"
           from unnest($2::bytea[], $3::date[], $4::date[]) with ordinality as x (series, first_date, last_date, nth)
           cross join lateral (
               select case when c.is_empty then null else l.price end as price, case when c.is_empty then l.sampled_at else l.observed_at end as at,
                      case when c.is_empty then l.sample_item_id else l.item_id end as item_id
               from latest_prices l
               cross join lateral (select l.sample_status = 'empty' and (l.observed_at is null or l.sampled_at > l.observed_at) as is_empty) c
               where l.tenant_id = $1 and l.series = x.series and l.first_date = x.first_date and l.last_date = x.last_date) p
           where p.at is not null
             and not exists (select from scan_items i where i.tenant_id = $1 and i.item_id = p.item_id and i.scan_id = $5)
           order by x.nth"#,
        tenant.uuid(),
        &searches.series,
        &first_dates as _,
        &last_dates as _,
        except.map(ScanId::uuid),
    );
    let rows = rows.fetch_all(conn).await?;
    let answer = |nth: i64| positions.get(usize::try_from(nth - 1).ok()?).copied();
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            Some(EarlierAnswer {
                position: answer(row.nth)?,
                price: row.price,
                observed_at: row.at.to_jiff(),
            })
        })
        .collect())
}
