//! Reads the items of a scan for its cells.

use jiff::Timestamp;
use jiff_sqlx::Timestamp as SqlTimestamp;
use serde_json::Value;
use sqlx::PgConnection;

use super::{BestOffer, CellItem, ItemObservation};
use crate::contract::Endpoint;
use crate::ids::{ItemId, ScanId, TenantId};
use crate::scans::grid::SweptDimension;

/// The endpoint, request and sweep of a scan.
pub(super) struct ScanDefinition {
    pub(super) endpoint: Endpoint,
    pub(super) request: Value,
    pub(super) sweep: Value,
    pub(super) created_at: Timestamp,
    pub(super) searched_known_low: bool,
}

pub(super) async fn definition(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<Option<ScanDefinition>> {
    let row = sqlx::query!(
        r#"select s.endpoint as "endpoint: Endpoint", s.request, s.sweep, s.created_at as "created_at: SqlTimestamp",
                  t.watch is null and t.below is null
                      or exists (select from scan_decisions d
                                 where d.tenant_id = s.tenant_id and d.scan_id = s.scan_id and d.reason = 'cheapest_again')
                      as "searched_known_low!"
           from scans s left join scan_strategies t on t.tenant_id = s.tenant_id and t.scan_id = s.scan_id
           where s.tenant_id = $1 and s.scan_id = $2"#,
        tenant.uuid(),
        scan.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| ScanDefinition {
        endpoint: row.endpoint,
        request: row.request,
        sweep: row.sweep,
        created_at: row.created_at.to_jiff(),
        searched_known_low: row.searched_known_low,
    }))
}

/// The bodies of some of a scan's items.
pub(super) async fn bodies(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    items: &[ItemId],
) -> sqlx::Result<Vec<(ItemId, Value)>> {
    let ids: Vec<_> = items.iter().map(|item| item.uuid()).collect();
    let rows = sqlx::query!(
        "select item_id, body from scan_items where tenant_id = $1 and scan_id = $2 and item_id = any ($3)",
        tenant.uuid(),
        scan.uuid(),
        &ids,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.map(|row| (row.item_id.into(), row.body)).collect())
}

/// All items of a scan that has ended, at most 10,000, in the order of their positions; none if the
/// scan has not ended. Of the bodies it reads the values of each dimension's field and start field.
pub(super) async fn items(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    swept: &[SweptDimension],
) -> sqlx::Result<Vec<(Vec<Option<Value>>, CellItem)>> {
    let fields: Vec<_> = swept
        .iter()
        .flat_map(|dimension| {
            [
                dimension.field.clone(),
                dimension.start_field.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let found = sqlx::query!(
        r#"select i.item_id, i.position, i.state, i.search_status, i.reason, i.best_price, i.currency,
                  i.observed_at as "observed_at: SqlTimestamp",
                  array(select i.body -> f.name from unnest($3::text[]) with ordinality as f (name, place) order by f.place)
                      as "held!: Vec<Option<Value>>",
                  o.item_id is not null as "has_offer!", o.seller as "seller?", o.board as "board?", o.link as "link?",
                  o.band_low as "band_low?", o.band_high as "band_high?", o.verdict as "verdict?"
           from scan_items i
           -- In one statement with the items: a retry may have begun since.
           join scans s on s.tenant_id = i.tenant_id and s.scan_id = i.scan_id and s.finished_at is not null
           left join item_offers o on o.tenant_id = i.tenant_id and o.item_id = i.item_id
           where i.tenant_id = $1 and i.scan_id = $2
           order by i.position"#,
        tenant.uuid(),
        scan.uuid(),
        &fields,
    )
    .fetch_all(conn)
    .await?;
    let items = found.into_iter().map(|row| {
        let observation = ItemObservation {
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
        };
        (
            row.held,
            CellItem {
                position: row.position,
                observed_at: row.observed_at.map(SqlTimestamp::to_jiff),
                observation,
                is_implausible: false,
            },
        )
    });
    Ok(items.collect())
}
