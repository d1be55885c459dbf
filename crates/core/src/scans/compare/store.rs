//! Reads the items of a scan for a comparison.

use serde_json::{Map, Value};
use sqlx::PgPool;
use sqlx::types::Json;

use crate::ids::{ScanId, TenantId};
use crate::scans::grid::cell::ItemObservation;

/// All items of a scan with their bodies, in the order of their positions: at most 10,000.
pub(super) async fn items(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<Vec<(Map<String, Value>, ItemObservation)>> {
    let found = sqlx::query!(
        r#"select item_id, body as "body: Json<Map<String, Value>>", state, search_status, reason, best_price, currency
           from scan_items where tenant_id = $1 and scan_id = $2 order by position"#,
        tenant.uuid(),
        scan.uuid(),
    )
    .fetch_all(pool)
    .await?;
    let items = found.into_iter().map(|row| {
        let observation = ItemObservation {
            is_implausible: false,
            item: row.item_id.into(),
            state: row.state.into(),
            search_status: row.search_status,
            reason: row.reason,
            price: row.best_price.zip(row.currency),
            offer: None,
        };
        (row.body.0, observation)
    });
    Ok(items.collect())
}
