//! The lowest price of each run of a monitor, for a small chart.

use std::collections::HashMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::store;
use crate::contract::scans::BestPrice;
use crate::ids::{MonitorId, ScanId, TenantId};
use crate::scans::read::{BestOfScan, find_plausible};

/// An ended run and its lowest price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPrice {
    /// The slot of the run.
    pub slot: Timestamp,
    /// Its scan.
    pub scan: ScanId,
    /// The lowest plausible price, in major units, with its ISO currency code; `None` if it found none.
    pub best: Option<(Decimal, String)>,
    /// How many of its prices the rules left out as implausible (monitors.md, rule 84).
    pub implausible: u32,
}

/// The newest `runs` ended runs of each monitor whose scan still exists, the oldest first. A
/// monitor without any is absent.
pub async fn run_prices(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitors: &[MonitorId],
    runs: u16,
) -> sqlx::Result<HashMap<MonitorId, Vec<RunPrice>>> {
    let rows = store::run_prices(conn, tenant, monitors, runs.into()).await?;
    let lowest = rows.iter().map(|row| BestOfScan {
        scan: row.scan_id.into(),
        best: best_price(row),
        implausible: Vec::new(),
    });
    let mut lowest: Vec<_> = lowest.collect();
    find_plausible(conn, tenant, &mut lowest).await?;
    let mut prices = HashMap::<_, Vec<_>>::new();
    for (row, lowest) in rows.into_iter().zip(lowest) {
        let runs = prices.entry(row.monitor_id.into()).or_default();
        runs.push(RunPrice {
            slot: row.slot.to_jiff(),
            scan: lowest.scan,
            best: lowest.best.map(|best| (best.price, best.currency)),
            implausible: u32::try_from(row.implausible).unwrap_or_default(),
        });
    }
    Ok(prices)
}

fn best_price(row: &store::RunPriceRow) -> Option<BestPrice> {
    Some(BestPrice {
        price: row.price?.normalize(),
        currency: row.currency.clone()?,
        item: row.item?.into(),
    })
}
