//! Statements on what a question starts from: stored prices.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use rust_decimal::Decimal;
use sqlx::PgConnection;

use crate::contract::{Endpoint, Request};
use crate::ids::{ScanId, TenantId};
use crate::planner::trusted;
use crate::scans::question::view::Learned;
use crate::scans::searches::Searches;

/// How far back the answers before an answer are looked for.
const LOOKED_FOR: SignedDuration = SignedDuration::from_hours(90 * 24);

/// The searches of a stored scan, with their positions.
pub(in crate::scans::question) async fn searches(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<(Vec<i32>, Searches)> {
    let rows = sqlx::query!(
        r#"select s.endpoint as "endpoint: Endpoint", i.position, i.body
           from scans s join scan_items i on i.tenant_id = s.tenant_id and i.scan_id = s.scan_id
           where s.tenant_id = $1 and s.scan_id = $2 order by i.position"#,
        tenant.uuid(),
        scan.uuid(),
    );
    let rows = rows.fetch_all(conn).await?;
    let checked = rows.iter().filter_map(|row| {
        let request = Request::check(row.endpoint, row.body.as_object()?).ok()?;
        Some((row.position, request.request))
    });
    let requests: Vec<_> = checked.collect();
    let requests = requests
        .iter()
        .map(|(position, request)| (*position, request));
    Ok(Searches::of(requests))
}

/// The latest answers to searches, each a price or an empty answer, but for those of one scan. Each
/// look-up reads one row, however long the history is. For a watch those that it trusts, and the
/// searches that did not complete since.
pub(in crate::scans) async fn find_earlier(
    conn: &mut PgConnection,
    tenant: TenantId,
    (positions, searches): (&[i32], &Searches),
    except: Option<ScanId>,
    watches_at: Option<Timestamp>,
) -> sqlx::Result<Learned> {
    let [first_dates, last_dates] = searches.sql_dates();
    let rows = sqlx::query!(
        r#"select p.price as "price?", p.at as "at?: jiff_sqlx::Timestamp",
                  case when t.is_earlier and (l.sampled_at > p.at or p.at is null) then l.sampled_at end as "tried_at?: jiff_sqlx::Timestamp"
           from unnest($2::bytea[], $3::date[], $4::date[]) with ordinality as x (series, first_date, last_date, nth)
           left join latest_prices l
               on l.tenant_id = $1 and l.series = x.series and l.first_date = x.first_date and l.last_date = x.last_date
           cross join lateral (select not exists (select from scan_items i
                                                  where i.tenant_id = $1 and i.item_id = l.sample_item_id and i.scan_id = $5) as is_earlier) t
           left join lateral (
               select case when c.is_empty then null else l.price end as price, case when c.is_empty then l.sampled_at else l.observed_at end as at,
                      case when c.is_empty then l.sample_item_id else l.item_id end as item_id
               from (select l.sample_status = 'empty' and (l.observed_at is null or l.sampled_at > l.observed_at) as is_empty) c) p
               on not exists (select from scan_items i where i.tenant_id = $1 and i.item_id = p.item_id and i.scan_id = $5)
           order by x.nth"#,
        tenant.uuid(),
        &searches.series,
        &first_dates as _,
        &last_dates as _,
        except.map(ScanId::uuid),
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let before = match watches_at {
        Some(now) => {
            let times: Vec<_> = rows.iter().map(|row| row.at).collect();
            find_before(conn, tenant, searches, &times, now).await?
        }
        None => vec![None; rows.len()],
    };
    let mut learned = Learned::default();
    for ((position, row), before) in positions.iter().zip(rows).zip(before) {
        let mut tried_at = row.tried_at;
        if let Some(newest) = row.at {
            let (price, at) = trusted((row.price, newest), before);
            // What is not trusted was a look all the same.
            tried_at = tried_at.or((at != newest).then_some(newest));
            learned.add_stored(*position, price, at);
        }
        if let Some(at) = tried_at.filter(|_| watches_at.is_some()) {
            learned.tried_positions.push(*position);
            learned.tried_at.push(at);
        }
    }
    Ok(learned)
}

/// An answer, and when it was observed.
pub(in crate::scans::question) type AnswerAt = (Option<Decimal>, jiff_sqlx::Timestamp);

/// The last answer to each search before a time of its own, of the last 90 days: of the observations
/// of one product and its dates it reads from the newest back to that answer, more than one only where
/// searches in between did not complete.
pub(in crate::scans::question) async fn find_before(
    conn: &mut PgConnection,
    tenant: TenantId,
    searches: &Searches,
    times: &[Option<jiff_sqlx::Timestamp>],
    now: Timestamp,
) -> sqlx::Result<Vec<Option<AnswerAt>>> {
    let [first_dates, last_dates] = searches.sql_dates();
    let rows = sqlx::query!(
        r#"select b.price as "price?", b.observed_at as "at?: jiff_sqlx::Timestamp"
           from unnest($2::bytea[], $3::date[], $4::date[], $5::timestamptz[]) with ordinality as x (series, first_date, last_date, at, nth)
           left join lateral (
               select o.price, o.observed_at from observations o
               where o.tenant_id = $1 and o.series = x.series and o.first_date = x.first_date
                 and coalesce(o.last_date, o.first_date) = x.last_date and o.observed_at < x.at and o.observed_at > $6
                 and (o.price is not null or o.search_status = 'empty')
               order by o.observed_at desc limit 1) b on true
           order by x.nth"#,
        tenant.uuid(),
        &searches.series,
        &first_dates as _,
        &last_dates as _,
        times as _,
        (now - LOOKED_FOR).to_sqlx() as _,
    );
    let rows = rows.fetch_all(conn).await?;
    let answers = rows.into_iter().map(|row| Some((row.price, row.at?)));
    Ok(answers.collect())
}
