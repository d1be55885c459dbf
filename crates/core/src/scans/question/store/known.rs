//! Statements on what a question starts from: stored prices.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use serde_json::Value;
use sqlx::PgConnection;

use super::count;
use crate::contract::{Endpoint, Request};
use crate::ids::{ScanId, TenantId};
use crate::planner::trusted;
use crate::scans::question::view::{Earlier, EarlierAnswer};
use crate::scans::searches::Searches;
use crate::scans::store::lock::LockedScan;

/// How far back the answers before an answer are looked for.
const LOOKED_FOR: SignedDuration = SignedDuration::from_hours(90 * 24);

/// What is known of a scan's searches from before it.
pub(in crate::scans::question) async fn earlier(
    lock: &mut LockedScan<'_>,
    is_watch: bool,
    now: Timestamp,
) -> sqlx::Result<Earlier> {
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
    let known = KnownSearches {
        positions: &positions,
        searches: &searches,
        except: Some(scan),
    };
    find_earlier(lock.conn(), tenant, &known, is_watch, now).await
}

/// Searches whose past is looked up.
pub(in crate::scans) struct KnownSearches<'a> {
    /// The position of each.
    pub(in crate::scans) positions: &'a [usize],
    pub(in crate::scans) searches: &'a Searches,
    /// The scan whose own answers are none from before it.
    pub(in crate::scans) except: Option<ScanId>,
}

/// What is known of searches: the latest answer to each; of a watch the one that it trusts, and
/// when it was last tried in vain.
pub(in crate::scans) async fn find_earlier(
    conn: &mut PgConnection,
    tenant: TenantId,
    known: &KnownSearches<'_>,
    is_watch: bool,
    now: Timestamp,
) -> sqlx::Result<Earlier> {
    let stored = find_answers(conn, tenant, known.positions, known.searches, known.except).await?;
    if is_watch {
        return doubt(conn, tenant, known, stored, now).await;
    }
    Ok(Earlier {
        stored,
        tried: Vec::new(),
    })
}

/// Replaces answers that are not trusted by the ones before them, and adds the searches that did
/// not complete since. Each look-up reads the latest price, and of the observations of one product
/// and its dates those of 90 days from the newest back to the first answer before it: more than one
/// only where searches in between did not complete.
async fn doubt(
    conn: &mut PgConnection,
    tenant: TenantId,
    known: &KnownSearches<'_>,
    stored: Vec<EarlierAnswer>,
    now: Timestamp,
) -> sqlx::Result<Earlier> {
    let mut newest: BTreeMap<_, _> = stored
        .into_iter()
        .map(|answer| (answer.position, (answer.price, answer.observed_at)))
        .collect();
    let times: Vec<_> = known
        .positions
        .iter()
        .map(|position| newest.get(position).map(|(_, at)| at.to_sqlx()))
        .collect();
    let [first_dates, last_dates] = known.searches.sql_dates();
    let rows = sqlx::query!(
        r#"select x.nth as "nth!", b.price as "price?", b.observed_at as "before_at?: jiff_sqlx::Timestamp",
                  case when l.sampled_at > x.at or x.at is null then l.sampled_at end as "tried_at?: jiff_sqlx::Timestamp"
           from unnest($2::bytea[], $3::date[], $4::date[], $5::timestamptz[]) with ordinality as x (series, first_date, last_date, at, nth)
           left join latest_prices l
                on l.tenant_id = $1 and l.series = x.series and l.first_date = x.first_date and l.last_date = x.last_date
                   and not exists (select from scan_items i where i.tenant_id = $1 and i.item_id = l.sample_item_id and i.scan_id = $7)
           left join lateral (
               select o.price, o.observed_at from observations o
               where o.tenant_id = $1 and o.series = x.series and o.first_date = x.first_date
                 and coalesce(o.last_date, o.first_date) = x.last_date and o.observed_at < x.at and o.observed_at > $6
                 and (o.price is not null or o.search_status = 'empty')
               order by o.observed_at desc limit 1) b on true
           order by x.nth"#,
        tenant.uuid(),
        &known.searches.series,
        &first_dates as _,
        &last_dates as _,
        &times as _,
        (now - LOOKED_FOR).to_sqlx() as _,
        known.except.map(ScanId::uuid),
    );
    let rows = rows.fetch_all(conn).await?;
    let mut tried = Vec::new();
    for row in rows {
        let nth = usize::try_from(row.nth - 1).ok();
        let Some(position) = nth.and_then(|nth| known.positions.get(nth)) else {
            continue;
        };
        tried.extend(row.tried_at.map(|at| (*position, at.to_jiff())));
        let before = row.before_at.map(|at| (row.price, at.to_jiff()));
        if let Some(answer) = newest.get_mut(position) {
            let goes_by = trusted([Some(*answer), before]).unwrap_or(*answer);
            // What is not trusted was a look all the same.
            if goes_by.1 != answer.1 && row.tried_at.is_none() {
                tried.push((*position, answer.1));
            }
            *answer = goes_by;
        }
    }
    let stored = newest
        .into_iter()
        .map(|(position, (price, observed_at))| EarlierAnswer {
            position,
            price,
            observed_at,
        });
    Ok(Earlier {
        stored: stored.collect(),
        tried,
    })
}

/// The latest answers to searches, each a price or an empty answer, but for those of one scan. Each
/// look-up reads one row, however long the history is.
async fn find_answers(
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

/// What was known of searches before a time: the last answer to each.
pub(in crate::scans::question) async fn find_before(
    conn: &mut PgConnection,
    tenant: TenantId,
    positions: &[usize],
    searches: &Searches,
    before: Timestamp,
) -> sqlx::Result<Earlier> {
    let [first_dates, last_dates] = searches.sql_dates();
    let rows = sqlx::query!(
        r#"select x.nth as "nth!", b.price as "price?", b.observed_at as "at!: jiff_sqlx::Timestamp"
           from unnest($2::bytea[], $3::date[], $4::date[]) with ordinality as x (series, first_date, last_date, nth)
           cross join lateral (
               select o.price, o.observed_at from observations o
               where o.tenant_id = $1 and o.series = x.series and o.first_date = x.first_date
                 and coalesce(o.last_date, o.first_date) = x.last_date and o.observed_at < $5 and o.observed_at > $6
                 and (o.price is not null or o.search_status = 'empty')
               order by o.observed_at desc limit 1) b
           order by x.nth"#,
        tenant.uuid(),
        &searches.series,
        &first_dates as _,
        &last_dates as _,
        before.to_sqlx() as _,
        (before - LOOKED_FOR).to_sqlx() as _,
    );
    let rows = rows.fetch_all(conn).await?;
    let answer = |nth: i64| positions.get(usize::try_from(nth - 1).ok()?).copied();
    let stored = rows.into_iter().filter_map(|row| {
        Some(EarlierAnswer {
            position: answer(row.nth)?,
            price: row.price,
            observed_at: row.at.to_jiff(),
        })
    });
    Ok(Earlier {
        stored: stored.collect(),
        tried: Vec::new(),
    })
}
