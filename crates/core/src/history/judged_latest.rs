//! Price calendars with a verdict on each price (history.md, rules 33 to 46).
//!
//! The calendar and the samples of its products are read in one snapshot. Not here: the formulas
//! (`verdict`), calendars without verdicts (`latest`).

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};

use super::buckets::{MAX_PRODUCTS, StoredSeries, for_each_sample};
use super::compute::compute;
use super::latest::{LatestPrice, MAX_ROWS, rows};
use super::presenter::ProductPresenter;
use super::query::PriceQuery;
use super::store::select::LatestRow;
use super::verdict::{self, DailyPrices, JudgedPrice};
use crate::contract::Endpoint;
use crate::contract::history_verdict::HistoryVerdict;
use crate::db;
use crate::ids::{ItemId, TenantId};

/// The last known lowest price of each date with its verdict, at the time `now`, and whether there
/// are more: of the first products alone, because each needs its history. `shown`: only of the
/// products whose prices these items found.
#[expect(clippy::implicit_hasher, reason = "callers have the usual set")]
pub async fn calendar(
    conn: PoolConnection<Postgres>,
    tenant: TenantId,
    query: &PriceQuery,
    shown: Option<&HashSet<ItemId>>,
    now: Timestamp,
) -> sqlx::Result<(Vec<LatestPrice>, bool)> {
    let mut snapshot = db::snapshot(conn).await?;
    let (rows, next) = rows(&mut snapshot, tenant, query, None, MAX_ROWS).await?;
    let mut by_product = BTreeMap::<_, Vec<_>>::new();
    for (place, row) in rows.iter().enumerate() {
        let product = (row.endpoint.as_str(), row.series.as_slice());
        by_product.entry(product).or_default().push(place);
    }
    let is_shown = |row: &LatestRow| shown.is_none_or(|shown| shown.contains(&row.item_id.into()));
    by_product.retain(|_, places| places.iter().any(|place| is_shown(&rows[*place])));
    let is_truncated = next.is_some() || by_product.len() > MAX_PRODUCTS;
    // `None`: of a product that is left out.
    let mut verdicts: Vec<_> = rows.iter().map(|_| None).collect();
    for places in by_product.into_values().take(MAX_PRODUCTS) {
        let of_product: Vec<_> = places.iter().map(|place| &rows[*place]).collect();
        let judged = judge(&mut snapshot, tenant, &of_product).await?;
        for (place, verdict) in places.into_iter().zip(judged) {
            verdicts[place] = Some(verdict);
        }
    }
    let mut presenter = ProductPresenter::default();
    let shown = rows.into_iter().zip(verdicts);
    let prices = shown.filter_map(|(row, verdict)| {
        let history_verdict = verdict?;
        Some(LatestPrice {
            history_verdict,
            ..LatestPrice::new(row, &mut presenter, now)
        })
    });
    Ok((prices.collect(), is_truncated))
}

/// The verdicts on the prices of one product, in their order.
async fn judge(
    conn: &mut PgConnection,
    tenant: TenantId,
    rows: &[&LatestRow],
) -> sqlx::Result<Vec<Option<HistoryVerdict>>> {
    let times = || rows.iter().map(|row| row.observed_at.to_jiff());
    let (Some(first), Some(last), Some(row)) = (times().min(), times().max(), rows.first()) else {
        return Ok(Vec::new());
    };
    let stored = StoredSeries {
        series: &row.series,
        unpacked_since: row.unpacked_since.map(|since| since.to_jiff()),
    };
    let mut prices = DailyPrices::default();
    let (since, until) = (verdict::compared_since(first), verdict::end_of_day(last));
    for_each_sample(conn, tenant, stored, since, until, |sample| {
        prices.add(sample);
    })
    .await?;
    let judged: Vec<_> = rows.iter().map(|row| judged_price(row)).collect();
    let api = row.endpoint.api();
    Ok(compute(move || verdict::verdicts(api, &prices.finish(), &judged)).await)
}

fn judged_price(row: &LatestRow) -> Option<JudgedPrice> {
    let seen_on = row.observed_at.to_jiff().to_zoned(TimeZone::UTC).date();
    let last_date = (row.endpoint != Endpoint::FlightsOneway).then(|| row.last_date.to_jiff());
    JudgedPrice::of_dates(seen_on, row.first_date.to_jiff(), last_date, row.price)
}
