//! The lowest price of each run of a monitor, for a small chart.

use std::collections::HashMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::store;
use crate::ids::{MonitorId, ScanId, TenantId};
use crate::scans::read;

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
///
/// # Errors
/// When the database fails.
pub async fn run_prices(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitors: &[MonitorId],
    runs: u16,
) -> sqlx::Result<HashMap<MonitorId, Vec<RunPrice>>> {
    let mut prices = HashMap::<_, Vec<_>>::new();
    for row in store::run_prices(conn, tenant, monitors, runs.into()).await? {
        let scan = row.scan_id.into();
        let best = if row.implausible == 0 {
            row.price.map(|price| price.normalize()).zip(row.currency)
        } else {
            let scan = read::scan_on(conn, tenant, scan).await?;
            let best = scan.and_then(|scan| scan.best);
            best.map(|best| (best.price, best.currency))
        };
        prices
            .entry(row.monitor_id.into())
            .or_default()
            .push(RunPrice {
                slot: row.slot.to_jiff(),
                scan,
                best,
                implausible: u32::try_from(row.implausible).unwrap_or_default(),
            });
    }
    Ok(prices)
}
