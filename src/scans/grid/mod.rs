//! A scan as a grid: the cheapest price of each cell, and what a market's prices are worth against another's.
//!
//! Here: reading a scan's cells and putting them together; which fields there are (`axes`), which item speaks for a cell (`cell`) and
//! parity (`parity`) are pure. Not here: two scans side by side (`compare`).

mod axes;
pub(super) mod cell;
pub(super) mod parity;
mod store;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::Value;
use sqlx::PgPool;

use self::axes::Layout;
use self::cell::Seen;
use super::{ScanError, read};
use crate::contract::scans::{Grid, GridAxis, GridCell, GridQuery};
use crate::contract::{Api, Endpoint};
use crate::ids::{ScanId, TenantId};

pub(super) use self::axes::{SweptFields, SweptName};

/// The cheapest price for each value of one or two swept fields, also while the scan runs.
///
/// # Errors
/// `NotFound`; `Faults` for fields that the scan does not sweep, or a baseline that it cannot have; `Database`.
pub async fn grid(
    pool: &PgPool,
    tenant: TenantId,
    id: ScanId,
    query: &GridQuery,
) -> Result<Grid, ScanError> {
    let scan = read::scan(pool, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    let layout = Layout::of(&scan, query)?;
    let items = store::items(pool, tenant, id, &layout).await?;
    Ok(laid_out(id, scan.endpoint, &layout, items))
}

/// An item of the scan at its place in the grid.
#[derive(Debug, Clone)]
struct Placed {
    row: Value,
    column: Option<Value>,
    seen: Seen,
}

/// The values of one side in the order of the items, each with its place.
#[derive(Default)]
struct Side {
    values: Vec<Value>,
    places: HashMap<String, usize>,
}

impl Side {
    fn place(&mut self, value: &Value) -> usize {
        *self.places.entry(value.to_string()).or_insert_with(|| {
            self.values.push(value.clone());
            self.values.len() - 1
        })
    }
}

/// Items come in the order of their positions, which is the order of the swept values too.
fn laid_out(scan_id: ScanId, endpoint: Endpoint, layout: &Layout, items: Vec<Placed>) -> Grid {
    let (mut rows, mut columns) = (Side::default(), Side::default());
    let mut cells = HashMap::<(usize, Option<usize>), Vec<Seen>>::new();
    for item in items {
        let at = (
            rows.place(&item.row),
            item.column.as_ref().map(|value| columns.place(value)),
        );
        cells.entry(at).or_default().push(item.seen);
    }
    let mut places: Vec<_> = cells.keys().copied().collect();
    places.sort_unstable();
    let shown = places.iter().filter_map(|at| {
        let seen = cells.get(at)?;
        let mut cell = shown(endpoint, cell::speaker(seen)?);
        cell.row = rows.values[at.0].clone();
        cell.column = at.1.map(|column| columns.values[column].clone());
        if let Some(baseline) = layout.baseline.as_ref() {
            let base = if baseline.in_rows {
                rows.values
                    .iter()
                    .position(|value| baseline.is(value))
                    .map(|row| (row, at.1))
            } else {
                columns
                    .values
                    .iter()
                    .position(|value| baseline.is(value))
                    .map(|column| (at.0, Some(column)))
            };
            let base = base.filter(|base| base != at);
            cell.parity =
                base.map(|base| parity::parity(cells.get(&base).map_or(&[], Vec::as_slice), seen));
        }
        Some(cell)
    });
    let cells = shown.collect();
    let side = |field: &axes::SweptName, side: Side| GridAxis {
        field: field.word.clone(),
        values: side.values,
    };
    Grid {
        scan_id,
        endpoint,
        rows: side(&layout.rows, rows),
        columns: layout.columns.as_ref().map(|field| side(field, columns)),
        cells,
    }
}

/// The cell that an item speaks for, still without its place.
fn shown(endpoint: Endpoint, seen: &Seen) -> GridCell {
    let offer = seen
        .offer
        .clone()
        .filter(|_| seen.price.is_some())
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
        state: seen.state,
        search_status: seen.search_status,
        reason: seen.reason.clone(),
        price: seen.price.as_ref().map(|(price, _)| price.normalize()),
        currency: seen.price.as_ref().map(|(_, currency)| currency.clone()),
        price_insights_low: offer.band_low.map(|price| price.normalize()),
        price_insights_high: offer.band_high.map(|price| price.normalize()),
        verdict: offer.verdict,
        room: offer.seller.filter(|_| !flights),
        item_id: seen.item,
        buy_link,
        link,
        parity: None,
    }
}
