//! Grids of the last known prices whose cheapest one is plausible (history.md, rule 46).

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::PgConnection;
use uuid::Uuid;

use super::grid::{self, HistoryLayout};
use super::known_price::KnownPrice;
use super::past_prices::implausibly_low;
use super::query::PriceQuery;
use super::series_key::SeriesKey;
use super::store::grid::HistoryGridRow;
use crate::contract::Endpoint;
use crate::contract::history_grid::HistoryGrids;
use crate::ids::TenantId;

/// Prices of a product that are judged together, once its lowest one is implausible.
const AT_A_TIME: usize = 50;

/// The last known prices as grids.
pub async fn grids(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &PriceQuery,
    now: Timestamp,
) -> sqlx::Result<HistoryGrids> {
    let read = grid::read(conn, tenant, query).await?;
    let implausible = implausible_lowest(conn, tenant, &read.0).await?;
    Ok(grid::build(
        read,
        &implausible,
        &HistoryLayout::of(query),
        now,
    ))
}

/// The last known prices of these products, each a grid of these dates, both inclusive. `nights` are the
/// wanted lengths of the trip or stay, of which a date shows the cheapest; empty: all.
pub async fn of_products(
    conn: &mut PgConnection,
    tenant: TenantId,
    products: &[SeriesKey],
    dates: (Date, Date),
    nights: &[i32],
    now: Timestamp,
) -> sqlx::Result<HistoryGrids> {
    let read = grid::read_products(conn, tenant, products, dates, nights).await?;
    let implausible = implausible_lowest(conn, tenant, &read.0).await?;
    let layout = HistoryLayout::by_date(dates);
    Ok(grid::build(read, &implausible, &layout, now))
}

/// The items of implausible prices that are lower than every plausible one of their product.
async fn implausible_lowest(
    conn: &mut PgConnection,
    tenant: TenantId,
    known: &[HistoryGridRow],
) -> sqlx::Result<HashSet<Uuid>> {
    let mut products = BTreeMap::<_, Vec<_>>::new();
    for price in known.iter().filter_map(known_price) {
        products.entry(price.1.series).or_default().push(price);
    }
    let mut open: Vec<_> = products.into_values().collect();
    for prices in &mut open {
        // The lowest last.
        prices.sort_by_key(|(_, known)| std::cmp::Reverse(known.price));
    }
    let mut found = HashSet::new();
    let mut at_a_time = 1;
    while !open.is_empty() {
        let lowest = open.iter().flat_map(|prices| {
            let prices = prices.iter().rev().take(at_a_time);
            prices.map(|(_, known)| *known)
        });
        let lowest: Vec<_> = lowest.collect();
        let mut usual = implausibly_low(conn, tenant, &lowest).await?.into_iter();
        open.retain_mut(|prices| {
            let asked = at_a_time.min(prices.len());
            let judged: Vec<_> = usual.by_ref().take(asked).collect();
            let left_out = judged.iter().take_while(|usual| usual.is_some()).count();
            let below = prices.split_off(prices.len() - left_out);
            found.extend(below.into_iter().map(|(item, _)| item));
            left_out == asked && !prices.is_empty()
        });
        at_a_time = AT_A_TIME;
    }
    Ok(found)
}

fn known_price(row: &HistoryGridRow) -> Option<(Uuid, KnownPrice)> {
    let seen_at = row.observed_at?.to_jiff();
    let is_trip = row.endpoint != Endpoint::FlightsOneway;
    let known = KnownPrice {
        series: SeriesKey(row.series.as_slice().try_into().ok()?),
        api: row.endpoint.api(),
        first_date: row.first_date.to_jiff(),
        last_date: is_trip.then(|| row.last_date.to_jiff()),
        price: row.price?,
        seen_at,
        before: seen_at,
    };
    Some((row.item_id?, known))
}
