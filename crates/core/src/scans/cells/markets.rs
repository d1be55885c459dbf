//! The markets of a scan, each compared with one of them for the same stay.

use std::collections::{HashMap, HashSet};

use rust_decimal::Decimal;
use serde_json::Value;
use sqlx::PgConnection;

use super::{CellItem, ItemObservation, ScanCell, is_whole, noise_percent, parity};
use crate::contract::scans::Parity;
use crate::ids::TenantId;
use crate::scans::store::implausible::implausible_items;

/// The field that a market scan sweeps.
const MARKET: &str = "proxy_country";
/// So many items are read at once.
const ITEMS_READ: usize = 500;

/// A market and its baseline for the same stay.
#[derive(Debug)]
pub struct ComparedMarkets {
    /// The index of the market's cell.
    pub market: usize,
    /// The index of the baseline's cell.
    pub baseline: usize,
    pub parity: Parity,
    /// How far prices of one market differ from each other, if they are compared.
    pub noise_percent: Option<Decimal>,
}

/// The market of a cell; `None` if its scan sweeps none.
pub fn market_of(cell: &ScanCell) -> Option<&str> {
    cell.values.get(MARKET).and_then(Value::as_str)
}

/// Compares every market with `baseline`, for each combination of the other swept fields.
pub fn compare_markets(cells: &[ScanCell], baseline: &str) -> Vec<ComparedMarkets> {
    let is_baseline = |cell: &ScanCell| {
        market_of(cell).is_some_and(|market| market.eq_ignore_ascii_case(baseline))
    };
    let stay = |cell: &ScanCell| {
        let mut values = cell.values.clone();
        values.remove(MARKET);
        Value::Object(values).to_string()
    };
    let all = || cells.iter().enumerate();
    let baselines: HashMap<_, _> = all()
        .filter(|(_, cell)| is_baseline(cell))
        .map(|(index, cell)| (stay(cell), index))
        .collect();
    let markets = all().filter(|(_, cell)| !is_baseline(cell));
    let compared = markets.filter_map(|(market, cell)| {
        let baseline = *baselines.get(&stay(cell))?;
        let (base, here) = (complete_results(&cells[baseline]), complete_results(cell));
        Some(ComparedMarkets {
            market,
            baseline,
            parity: parity(&base, &here),
            noise_percent: noise_percent(&base, &here),
        })
    });
    compared.collect()
}

/// Marks the prices that are far off their own history by what is stored now.
pub async fn mark_implausible(
    conn: &mut PgConnection,
    tenant: TenantId,
    cells: &mut [ScanCell],
) -> sqlx::Result<()> {
    let items = cells.iter().flat_map(|cell| &cell.items);
    let priced = items.filter(|item| item.observation.price.is_some());
    let ids: Vec<_> = priced.map(|item| item.observation.item.uuid()).collect();
    let mut implausible = HashSet::new();
    // Their requests are read on an async thread.
    for ids in ids.chunks(ITEMS_READ) {
        implausible.extend(implausible_items(conn, tenant, ids).await?.into_keys());
    }
    for item in cells.iter_mut().flat_map(|cell| &mut cell.items) {
        item.is_implausible = implausible.contains(&item.observation.item.uuid());
    }
    Ok(())
}

/// The results of a cell that may be compared.
fn complete_results(cell: &ScanCell) -> Vec<ItemObservation> {
    let whole = |searched: &&CellItem| is_whole(&searched.observation) && !searched.is_implausible;
    cell.items
        .iter()
        .filter(whole)
        .map(|searched| searched.observation.clone())
        .collect()
}
