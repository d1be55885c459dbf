//! The samples of many products, and the last complete answers of many dates.

use std::collections::HashMap;

use futures::{Stream, TryStreamExt as _};
use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::{Date, Timestamp as SqlTimestamp, ToSqlx as _};
use rust_decimal::Decimal;
use sqlx::PgConnection;

use crate::contract::SearchStatus;
use crate::history::known_price::KnownPrice;
use crate::history::sample::{RawSample, Sample};
use crate::ids::TenantId;

/// A product and the times of which its samples are read.
pub(in crate::history) struct SeriesRange {
    pub(in crate::history) series: Vec<u8>,
    pub(in crate::history) since: Timestamp,
    pub(in crate::history) until: Timestamp,
}

/// The columns of some ranges.
struct RangeColumns {
    series: Vec<Vec<u8>>,
    since: Vec<SqlTimestamp>,
    until: Vec<SqlTimestamp>,
    /// The first of `since`, so that the planner can prune partitions …
    first: SqlTimestamp,
    /// … and the last of `until`.
    last: SqlTimestamp,
}

impl RangeColumns {
    fn of(ranges: &[SeriesRange]) -> Self {
        let since = || ranges.iter().map(|range| range.since);
        let until = || ranges.iter().map(|range| range.until);
        Self {
            series: ranges.iter().map(|range| range.series.clone()).collect(),
            since: since().map(SqlTimestamp::from).collect(),
            until: until().map(SqlTimestamp::from).collect(),
            first: since().min().unwrap_or_default().to_sqlx(),
            last: until().max().unwrap_or_default().to_sqlx(),
        }
    }
}

/// The first day of each product that is not packed, `None` if all days are; products without a
/// history are absent.
pub(in crate::history) async fn unpacked_since(
    conn: &mut PgConnection,
    tenant: TenantId,
    series: &[Vec<u8>],
) -> sqlx::Result<HashMap<Vec<u8>, Option<Timestamp>>> {
    let rows = sqlx::query!(
        r#"select series, unpacked_since as "unpacked_since: SqlTimestamp" from series
           where tenant_id = $1 and series = any ($2)"#,
        tenant.uuid(),
        series,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows
        .map(|row| (row.series, row.unpacked_since.map(SqlTimestamp::to_jiff)))
        .collect())
}

/// The packed days of some products that begin within their ranges; those of each product oldest
/// first.
pub(in crate::history) fn packed<'a>(
    conn: &'a mut PgConnection,
    tenant: TenantId,
    ranges: &[SeriesRange],
) -> impl Stream<Item = sqlx::Result<(Vec<u8>, Vec<u8>)>> + Send + use<'a> {
    let RangeColumns {
        series,
        since,
        until,
        ..
    } = RangeColumns::of(ranges);
    let days = sqlx::query!(
        r#"select d.series, d.samples
           from unnest($2::bytea[], $3::timestamptz[], $4::timestamptz[]) as r (series, since, until)
           join observed_days d on d.tenant_id = $1 and d.series = r.series and d.begins_at >= r.since and d.begins_at < r.until
           order by d.series, d.begins_at"#,
        tenant.uuid(),
        &series,
        &since as &[SqlTimestamp],
        &until as &[SqlTimestamp],
    );
    days.fetch(conn).map_ok(|day| (day.series, day.samples))
}

/// The samples of some products within their ranges; those of each product oldest first.
pub(in crate::history) fn samples<'a>(
    conn: &'a mut PgConnection,
    tenant: TenantId,
    ranges: &[SeriesRange],
) -> impl Stream<Item = sqlx::Result<(Vec<u8>, Sample)>> + Send + use<'a> {
    let columns = RangeColumns::of(ranges);
    let rows = sqlx::query!(
        r#"select o.series as "series!", o.observed_at as "observed_at!: SqlTimestamp", o.first_date as "first_date!: Date",
                  o.last_date as "last_date: Date", o.search_status as "search_status!: SearchStatus", o.price as "price: Decimal"
           from unnest($2::bytea[], $3::timestamptz[], $4::timestamptz[]) as r (series, since, until)
           join observations o on o.tenant_id = $1 and o.series = r.series and o.observed_at >= r.since and o.observed_at < r.until
                               and o.observed_at >= $5 and o.observed_at < $6
           order by o.series, o.observed_at"#,
        tenant.uuid(),
        &columns.series,
        &columns.since as &[SqlTimestamp],
        &columns.until as &[SqlTimestamp],
        columns.first as _,
        columns.last as _,
    );
    rows.fetch(conn).map_ok(|row| {
        let sample = Sample::of(&RawSample {
            observed_at: row.observed_at.to_jiff(),
            first_date: row.first_date.to_jiff(),
            last_date: row.last_date.map(Date::to_jiff),
            status: row.search_status,
            price: row.price,
            band_low: None,
            band_high: None,
        });
        (row.series, sample)
    })
}

/// The empty answers within the ranges of some products that say that nothing has the name of their
/// hotel: the place of each product, and when they arrived, in microseconds since 1970.
pub(in crate::history) async fn unmatched(
    conn: &mut PgConnection,
    tenant: TenantId,
    ranges: &[SeriesRange],
) -> sqlx::Result<Vec<(usize, i64)>> {
    let columns = RangeColumns::of(ranges);
    let rows = sqlx::query!(
        r#"select r.place as "place!", o.observed_at as "at!: SqlTimestamp"
           from unnest($2::bytea[], $3::timestamptz[], $4::timestamptz[]) with ordinality as r (series, since, until, place)
           join observations o on o.tenant_id = $1 and o.series = r.series and o.observed_at >= r.since and o.observed_at < r.until
                               and o.observed_at >= $5 and o.observed_at < $6
           where o.search_status = 'empty' and o.reason = 'no_match'"#,
        tenant.uuid(),
        &columns.series,
        &columns.since as &[SqlTimestamp],
        &columns.until as &[SqlTimestamp],
        columns.first as _,
        columns.last as _,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows
        .filter_map(|row| {
            let place = usize::try_from(row.place).ok()?.checked_sub(1)?;
            Some((place, row.at.to_jiff().as_microsecond()))
        })
        .collect())
}

/// The products and dates of some prices, in columns.
struct DateColumns {
    series: Vec<Vec<u8>>,
    first: Vec<Date>,
    last: Vec<Option<Date>>,
}

impl DateColumns {
    fn of<'a>(prices: impl Iterator<Item = &'a KnownPrice> + Clone) -> Self {
        let last = |price: &KnownPrice| price.last_date.map(|date| date.to_sqlx());
        Self {
            series: prices
                .clone()
                .map(|price| price.series.0.to_vec())
                .collect(),
            first: prices
                .clone()
                .map(|price| price.first_date.to_sqlx())
                .collect(),
            last: prices.map(last).collect(),
        }
    }
}

/// The last complete answer of each product and dates before a time, at most `max_age` older: its
/// place, when it arrived, and whether it was empty. A name that matches no hotel is no answer about
/// its offers.
pub(in crate::history) async fn last_answers(
    conn: &mut PgConnection,
    tenant: TenantId,
    asked: &[&KnownPrice],
    max_age: SignedDuration,
) -> sqlx::Result<Vec<(usize, Timestamp, bool)>> {
    let DateColumns {
        series,
        first,
        last,
    } = DateColumns::of(asked.iter().copied());
    let before: Vec<SqlTimestamp> = asked.iter().map(|price| price.before.to_sqlx()).collect();
    let oldest = asked.iter().map(|price| price.before).min();
    let oldest = oldest.and_then(|oldest| oldest.checked_sub(max_age).ok());
    let rows = sqlx::query!(
        r#"select x.place as "place!", o.search_status = 'empty' as "is_empty!", o.observed_at as "at!: SqlTimestamp"
           from unnest($2::bytea[], $3::date[], $4::date[], $5::timestamptz[]) with ordinality
                as x (series, first_date, last_date, before, place)
           cross join lateral (
               select search_status, observed_at from observations
               where tenant_id = $1 and series = x.series and first_date = x.first_date
                 and last_date is not distinct from x.last_date and observed_at < x.before and observed_at >= $6
                 and (search_status = 'ok' or search_status = 'empty' and reason is distinct from 'no_match')
               order by observed_at desc limit 1) o"#,
        tenant.uuid(),
        &series,
        &first as &[Date],
        &last as _,
        &before as &[SqlTimestamp],
        oldest.unwrap_or(Timestamp::MIN).to_sqlx() as _,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows
        .filter_map(|row| {
            let place = usize::try_from(row.place).ok()?.checked_sub(1)?;
            Some((place, row.at.to_jiff(), row.is_empty))
        })
        .collect())
}

/// The places of the prices that an earlier price of the same product and dates is at least `factor`
/// times; within `max_age` before each.
pub(in crate::history) async fn far_below_earlier(
    conn: &mut PgConnection,
    tenant: TenantId,
    prices: &[KnownPrice],
    factor: f64,
    max_age: SignedDuration,
) -> sqlx::Result<Vec<usize>> {
    let DateColumns {
        series,
        first,
        last,
    } = DateColumns::of(prices.iter());
    let of: Vec<_> = prices.iter().map(|price| price.price).collect();
    let times = |age: SignedDuration| -> Vec<SqlTimestamp> {
        let time = |price: &KnownPrice| price.seen_at.checked_sub(age).unwrap_or(Timestamp::MIN);
        prices.iter().map(|price| time(price).to_sqlx()).collect()
    };
    let rows = sqlx::query_scalar!(
        r#"select x.place as "place!"
           from unnest($2::bytea[], $3::date[], $4::date[], $5::numeric[], $6::timestamptz[], $7::timestamptz[]) with ordinality
                as x (series, first_date, last_date, price, since, until, place)
           where exists (
               select from observations o
               where o.tenant_id = $1 and o.series = x.series and o.first_date = x.first_date
                 and o.last_date is not distinct from x.last_date and o.observed_at >= x.since and o.observed_at < x.until
                 and o.price >= $8::float8::numeric * x.price)"#,
        tenant.uuid(),
        &series,
        &first as &[Date],
        &last as _,
        &of,
        &times(max_age) as &[SqlTimestamp],
        &times(SignedDuration::ZERO) as &[SqlTimestamp],
        factor,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows
        .filter_map(|place| usize::try_from(place).ok()?.checked_sub(1))
        .collect())
}
