//! The lowest price of a scan that is plausible (history.md, rule 46).

use sqlx::PgConnection;

use super::store;
use crate::contract::scans::{BestPrice, ImplausiblePrice, Scan};
use crate::ids::{ScanId, TenantId};
use crate::scans::store::implausible::implausible_items;

/// Prices of a scan that are judged together, once its lowest one is implausible.
const AT_A_TIME: usize = 50;
/// So many implausible prices are left out. With more, no price of the scan is called its best.
const MOST_LEFT_OUT: usize = 150;

/// The lowest price of an ended scan, and those that were left out before it.
#[derive(Debug, Clone)]
pub struct BestOfScan {
    /// The scan.
    pub scan: ScanId,
    /// Its lowest price; `None` if it has none that is plausible.
    pub best: Option<BestPrice>,
    /// Implausible prices below it, the lowest first.
    pub implausible: Vec<ImplausiblePrice>,
}

/// Leaves implausible prices out of the best prices of scans that have ended. Of one that runs the
/// next prices may show that they have all moved.
pub(super) async fn leave_out_implausible(
    conn: &mut PgConnection,
    tenant: TenantId,
    scans: &mut [Scan],
) -> sqlx::Result<()> {
    let mut ended: Vec<_> = scans
        .iter_mut()
        .filter(|scan| scan.finished_at.is_some())
        .collect();
    let lowest = ended.iter().map(|scan| BestOfScan {
        scan: scan.id,
        best: scan.best.clone(),
        implausible: Vec::new(),
    });
    let mut lowest: Vec<_> = lowest.collect();
    find_plausible(conn, tenant, &mut lowest).await?;
    for (scan, lowest) in ended.iter_mut().zip(lowest) {
        scan.best = lowest.best;
        scan.implausible = lowest.implausible;
    }
    Ok(())
}

/// Puts the lowest plausible price of each scan in the place of its lowest one. All are judged
/// together, so that a product is read once for many runs of it.
pub async fn find_plausible(
    conn: &mut PgConnection,
    tenant: TenantId,
    prices: &mut [BestOfScan],
) -> sqlx::Result<()> {
    let with_price = prices.iter_mut().filter_map(|price| {
        let lowest = vec![price.best.take()?];
        Some((price, lowest))
    });
    let mut open: Vec<_> = with_price.collect();
    while !open.is_empty() {
        let items = open.iter().flat_map(|(_, lowest)| lowest);
        let items: Vec<_> = items.map(|price| price.item.uuid()).collect();
        let implausible = implausible_items(conn, tenant, &items).await?;
        let mut still_open = Vec::new();
        for (price, lowest) in open {
            let mut currency = String::new();
            for lowest in lowest {
                currency.clone_from(&lowest.currency);
                let Some(usual) = implausible.get(&lowest.item.uuid()) else {
                    price.best = Some(lowest);
                    break;
                };
                price.implausible.push(ImplausiblePrice {
                    price: lowest.price,
                    currency: lowest.currency,
                    item: lowest.item,
                    usual: usual.clone(),
                });
            }
            if price.best.is_none() {
                let next = next_lowest(conn, tenant, price, &currency).await?;
                if !next.is_empty() {
                    still_open.push((price, next));
                }
            }
        }
        open = still_open;
    }
    Ok(())
}

/// The next prices of a scan to judge; none if enough are left out.
async fn next_lowest(
    conn: &mut PgConnection,
    tenant: TenantId,
    price: &BestOfScan,
    currency: &str,
) -> sqlx::Result<Vec<BestPrice>> {
    let left_out: Vec<_> = price.implausible.iter().map(|price| price.item).collect();
    let limit = AT_A_TIME.min((MOST_LEFT_OUT + 1).saturating_sub(left_out.len()));
    let limit = i64::try_from(limit).unwrap_or_default();
    let next = store::lowest_prices(conn, tenant, price.scan, currency, &left_out, limit).await?;
    let next = next.into_iter().map(|(item, price)| BestPrice {
        price,
        currency: currency.to_owned(),
        item,
    });
    Ok(next.collect())
}
