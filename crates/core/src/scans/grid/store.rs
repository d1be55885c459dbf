//! Reads the items of a scan for a grid.

use sqlx::PgPool;

use super::PlacedItem;
use super::cell::{BestOffer, ItemObservation};
use super::layout::GridLayout;
use crate::ids::{ScanId, TenantId};

/// All items of a scan in the order of their positions, at most 10,000: the values of the grid's
/// fields, and the offers of items with a price.
pub(super) async fn items(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    layout: &GridLayout,
) -> sqlx::Result<Vec<PlacedItem>> {
    let (rows, columns) = (&layout.rows, layout.columns.as_ref());
    let found = sqlx::query!(
        r#"select i.item_id, i.state, i.search_status, i.reason, i.best_price, i.currency,
                  i.body -> $3::text as row_field, i.body -> $4::text as row_since, i.body -> $5::text as column_field,
                  i.body -> $6::text as column_since,
                  o.item_id is not null as "has_offer!", o.seller as "seller?", o.board as "board?", o.link as "link?",
                  o.band_low as "band_low?", o.band_high as "band_high?", o.verdict as "verdict?"
           from scan_items i left join item_offers o on o.tenant_id = i.tenant_id and o.item_id = i.item_id
           where i.tenant_id = $1 and i.scan_id = $2
           order by i.position"#,
        tenant.uuid(),
        scan.uuid(),
        rows.field,
        rows.start_field.as_deref(),
        columns.map(|columns| columns.field.as_str()),
        columns.and_then(|columns| columns.start_field.as_deref()),
    )
    .fetch_all(pool)
    .await?;
    let placed = found.into_iter().map(|row| PlacedItem {
        row: rows.value(row.row_field, row.row_since),
        column: columns.map(|columns| columns.value(row.column_field, row.column_since)),
        observation: ItemObservation {
            is_implausible: false,
            item: row.item_id.into(),
            state: row.state.into(),
            search_status: row.search_status,
            reason: row.reason,
            price: row.best_price.zip(row.currency),
            offer: row.has_offer.then_some(BestOffer {
                seller: row.seller,
                board: row.board,
                link: row.link,
                band_low: row.band_low,
                band_high: row.band_high,
                verdict: row.verdict,
            }),
        },
    });
    Ok(placed.collect())
}

/// As [`items`], without their offers, whose join takes longer than all the rest.
pub(super) async fn items_without_offers(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    layout: &GridLayout,
) -> sqlx::Result<Vec<PlacedItem>> {
    let (rows, columns) = (&layout.rows, layout.columns.as_ref());
    let found = sqlx::query!(
        "select item_id, state, search_status, reason, best_price, currency,
                body -> $3::text as row_field, body -> $4::text as row_since, body -> $5::text as column_field,
                body -> $6::text as column_since
         from scan_items where tenant_id = $1 and scan_id = $2
         order by position",
        tenant.uuid(),
        scan.uuid(),
        rows.field,
        rows.start_field.as_deref(),
        columns.map(|columns| columns.field.as_str()),
        columns.and_then(|columns| columns.start_field.as_deref()),
    )
    .fetch_all(pool)
    .await?;
    let placed = found.into_iter().map(|row| PlacedItem {
        row: rows.value(row.row_field, row.row_since),
        column: columns.map(|columns| columns.value(row.column_field, row.column_since)),
        observation: ItemObservation {
            is_implausible: false,
            item: row.item_id.into(),
            state: row.state.into(),
            search_status: row.search_status,
            reason: row.reason,
            price: row.best_price.zip(row.currency),
            offer: None,
        },
    });
    Ok(placed.collect())
}
