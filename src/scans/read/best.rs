//! The lowest price of a scan that is plausible (history.md, rule 46).

use sqlx::PgConnection;

use super::store;
use crate::contract::scans::{BestPrice, ImplausiblePrice, Scan};
use crate::ids::TenantId;
use crate::scans::implausible::implausible_items;

/// Prices that are judged together, once the lowest one is implausible.
const AT_A_TIME: i64 = 50;
/// So many implausible prices are left out. With more, no price of the scan is called its best.
const MOST_LEFT_OUT: usize = 150;

/// Leaves implausible prices out of the best prices of scans that have ended. Of one that runs the
/// next prices may show that they have all moved.
pub(super) async fn leave_out_implausible(
    conn: &mut PgConnection,
    tenant: TenantId,
    scans: &mut [Scan],
) -> sqlx::Result<()> {
    let has_ended = |scan: &&mut Scan| scan.finished_at.is_some() && scan.best.is_some();
    let mut ended: Vec<_> = scans.iter_mut().filter(has_ended).collect();
    let best = ended.iter().filter_map(|scan| scan.best.as_ref());
    let best: Vec<_> = best.map(|best| best.item.uuid()).collect();
    if best.is_empty() {
        return Ok(());
    }
    let implausible = implausible_items(conn, tenant, &best).await?;
    let is_left_out = |scan: &&mut Scan| {
        let best = scan.best.as_ref();
        best.is_some_and(|best| implausible.contains_key(&best.item.uuid()))
    };
    for scan in ended.iter_mut().filter(|scan| is_left_out(scan)) {
        find_plausible(conn, tenant, scan).await?;
    }
    Ok(())
}

/// Judges the prices of a scan from the lowest one on, up to the first plausible one.
async fn find_plausible(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: &mut Scan,
) -> sqlx::Result<()> {
    let Some(BestPrice { currency, .. }) = scan.best.take() else {
        return Ok(());
    };
    while scan.implausible.len() < MOST_LEFT_OUT {
        let left_out: Vec<_> = scan.implausible.iter().map(|price| price.item).collect();
        let lowest =
            store::lowest_prices(conn, tenant, scan.id, &currency, &left_out, AT_A_TIME).await?;
        let items: Vec<_> = lowest.iter().map(|(item, _)| item.uuid()).collect();
        let mut implausible = implausible_items(conn, tenant, &items).await?;
        if lowest.is_empty() {
            break;
        }
        for (item, price) in lowest {
            let currency = currency.clone();
            let Some(usual) = implausible.remove(&item.uuid()) else {
                scan.best = Some(BestPrice {
                    price,
                    currency,
                    item,
                });
                return Ok(());
            };
            scan.implausible.push(ImplausiblePrice {
                price,
                currency,
                item,
                usual,
            });
        }
    }
    Ok(())
}
