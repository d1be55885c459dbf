//! The items of a scan as its cells read them.

use jiff_sqlx::Timestamp as SqlTimestamp;
use serde_json::Value;
use sqlx::PgConnection;

use super::{BestOffer, Searched, Seen};
use crate::contract::{SearchStatus, Verdict};
use crate::ids::{ScanId, TenantId};
use crate::scans::grid::SweptName;
use crate::scans::read::shown_state;

/// What a scan asks.
pub(super) struct Asked {
    pub(super) endpoint: String,
    pub(super) request: Value,
    pub(super) sweep: Value,
}

pub(super) async fn asked(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<Option<Asked>> {
    sqlx::query_as!(
        Asked,
        "select endpoint, request, sweep from scans where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        scan.uuid(),
    )
    .fetch_optional(conn)
    .await
}

/// All items of a scan that has ended in the order of their positions: at most 10,000; none of any other scan. For each swept word the value of its field and of the field that
/// it counts from; nothing else of the bodies.
pub(super) async fn items(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    swept: &[SweptName],
) -> sqlx::Result<Vec<(Vec<Option<Value>>, Searched)>> {
    let fields: Vec<_> = swept
        .iter()
        .flat_map(|name| [name.field.clone(), name.since.clone().unwrap_or_default()])
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
        let seen = Seen {
            item: row.item_id.into(),
            state: shown_state(&row.state),
            search_status: row.search_status.as_deref().and_then(SearchStatus::parse),
            reason: row.reason,
            price: row.best_price.zip(row.currency),
            offer: row.has_offer.then_some(BestOffer {
                seller: row.seller,
                board: row.board,
                link: row.link,
                band_low: row.band_low,
                band_high: row.band_high,
                verdict: row.verdict.as_deref().and_then(Verdict::parse),
            }),
        };
        (
            row.held,
            Searched {
                position: row.position,
                observed_at: row.observed_at.map(SqlTimestamp::to_jiff),
                seen,
            },
        )
    });
    Ok(items.collect())
}
