//! A scan as a grid: the cheapest price of each cell, and each market's price gap to a baseline
//! market.
//!
//! Here: reading a scan's items and building the grid. Pure: its fields (`layout`), the item that
//! represents a cell (`cell`), parity (`parity`) and
//! what it comes to for each market (`by_market`). Not here: comparing two scans (`compare`).

pub mod by_market;
pub(super) mod cell;
mod layout;
pub(super) mod parity;
mod store;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use sqlx::PgPool;

use self::cell::ItemObservation;
use self::layout::GridLayout;
use super::read;
use crate::commands::CommandError;
use crate::contract::scans::{Grid, GridAxis, GridCell, GridQuery, MarketReport, Scan};
use crate::contract::{Api, Endpoint};
use crate::ids::{ItemId, Kind, ScanId, TenantId};

pub(super) use self::layout::{SweptDimension, SweptDimensions};

/// The cheapest price for each value of one or two swept fields, also while the scan runs.
///
/// # Errors
/// `NotFound`; `ValidationErrors` for fields that the scan does not sweep, or a baseline that it
/// cannot have.
pub async fn grid(
    pool: &PgPool,
    tenant: TenantId,
    id: ScanId,
    query: &GridQuery,
) -> Result<Grid, CommandError> {
    let scan = read::scan(pool, tenant, id).await?.ok_or(Kind::Scan)?;
    let layout = GridLayout::of(&scan, query)?;
    let items = store::items(pool, tenant, id, &layout).await?;
    Ok(build_grid(&scan, &layout, items))
}

/// As [`grid`], of a scan that was just read. Without a baseline the cells have no offers: no band,
/// verdict, room or link.
///
/// # Errors
/// As [`grid`].
pub async fn grid_of_prices(
    pool: &PgPool,
    tenant: TenantId,
    scan: &Scan,
    query: &GridQuery,
) -> Result<Grid, CommandError> {
    let layout = GridLayout::of(scan, query)?;
    let items = if layout.baseline.is_some() {
        store::items(pool, tenant, scan.id, &layout).await?
    } else {
        store::items_without_offers(pool, tenant, scan.id, &layout).await?
    };
    Ok(build_grid(scan, &layout, items))
}

/// An item of the scan with its row and column.
#[derive(Debug, Clone)]
struct PlacedItem {
    row: Value,
    column: Option<Value>,
    observation: ItemObservation,
}

/// The values of one axis in the order of the items, and the index of each.
#[derive(Default)]
struct AxisIndex {
    values: Vec<Value>,
    indexes: HashMap<String, usize>,
}

impl AxisIndex {
    fn insert(&mut self, value: &Value) -> usize {
        *self.indexes.entry(value.to_string()).or_insert_with(|| {
            self.values.push(value.clone());
            self.values.len() - 1
        })
    }
}

/// The items of prices that are left out of a scan's best.
pub(super) fn implausible_items(scan: &Scan) -> HashSet<ItemId> {
    scan.implausible.iter().map(|price| price.item).collect()
}

/// `items` are in the order of their positions, which is also the order of the swept values. A cell
/// shows an implausible price if it has no other.
fn build_grid(scan: &Scan, layout: &GridLayout, items: Vec<PlacedItem>) -> Grid {
    let implausible = implausible_items(scan);
    let mut rows = AxisIndex::default();
    let mut columns = AxisIndex::default();
    let mut cells = HashMap::<(usize, Option<usize>), Vec<ItemObservation>>::new();
    for mut item in items {
        item.observation.is_implausible = implausible.contains(&item.observation.item);
        let at = (
            rows.insert(&item.row),
            item.column.as_ref().map(|value| columns.insert(value)),
        );
        cells.entry(at).or_default().push(item.observation);
    }
    let mut order: Vec<_> = cells.keys().copied().collect();
    order.sort_unstable();
    let mut stays = Vec::new();
    let shown = order.iter().filter_map(|at| {
        let observations = cells.get(at)?;
        let mut cell = grid_cell(scan.endpoint, cell::representative(observations)?);
        cell.row = rows.values[at.0].clone();
        cell.column = at.1.map(|column| columns.values[column].clone());
        if let Some(baseline) = layout.baseline.as_ref() {
            let base = if baseline.in_rows {
                rows.values
                    .iter()
                    .position(|value| baseline.is_market(value))
                    .map(|row| (row, at.1))
            } else {
                columns
                    .values
                    .iter()
                    .position(|value| baseline.is_market(value))
                    .map(|column| (at.0, Some(column)))
            };
            let base = base.filter(|base| base != at);
            let all = |at: &_| cells.get(at).map_or(&[][..], Vec::as_slice);
            cell.parity = base.map(|base| parity::parity(all(&base), observations));
            let market = if baseline.in_rows {
                Some(&cell.row)
            } else {
                cell.column.as_ref()
            };
            let market = market.and_then(Value::as_str);
            if let Some((base, market)) = base.and_then(|base| cells.get(&base)).zip(market) {
                let (base, here) = (whole(base), whole(observations));
                let noise = parity::noise_percent(&base, &here);
                stays.push((
                    market.to_ascii_lowercase(),
                    parity::parity(&base, &here),
                    noise,
                ));
            }
        }
        Some(cell)
    });
    let cells = shown.collect();
    let markets = layout.baseline.as_ref().map(|baseline| MarketReport {
        baseline: baseline.country.to_ascii_lowercase(),
        markets: by_market::by_market(stays.iter()),
    });
    let axis = |field: &layout::SweptDimension, index: AxisIndex| GridAxis {
        field: field.key.clone(),
        values: index.values,
    };
    Grid {
        scan_id: scan.id,
        endpoint: scan.endpoint,
        rows: axis(&layout.rows, rows),
        columns: layout.columns.as_ref().map(|field| axis(field, columns)),
        cells,
        markets,
    }
}

fn whole(observations: &[ItemObservation]) -> Vec<ItemObservation> {
    let whole = observations.iter().filter(|of| parity::is_whole(of));
    whole.cloned().collect()
}

/// The cell that an item represents, without its row, column and parity.
fn grid_cell(endpoint: Endpoint, observation: &ItemObservation) -> GridCell {
    let offer = observation
        .offer
        .clone()
        .filter(|_| observation.price.is_some())
        .unwrap_or_default();
    let flights = endpoint.api() == Api::Flights;
    let (buy_link, link) = if flights {
        (offer.link, None)
    } else {
        (None, offer.link)
    };
    GridCell {
        row: Value::Null,
        column: None,
        state: observation.state,
        search_status: observation.search_status,
        reason: observation.reason.clone(),
        price: observation
            .price
            .as_ref()
            .map(|(price, _)| price.normalize()),
        currency: observation
            .price
            .as_ref()
            .map(|(_, currency)| currency.clone()),
        implausible: observation.is_implausible,
        price_insights_low: offer.band_low.map(|price| price.normalize()),
        price_insights_high: offer.band_high.map(|price| price.normalize()),
        verdict: offer.verdict,
        room: offer.seller.filter(|_| !flights),
        item_id: observation.item,
        buy_link,
        link,
        parity: None,
    }
}
