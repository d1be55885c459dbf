//! Deliveries and their tries as their caller sees them. Another caller's id is the same as one that never was: `None`.

use sqlx::{PgConnection, PgPool};

use super::store::lists as store;
use crate::contract::webhooks::{DeliveriesQuery, Delivery, DeliveryDetail, DeliveryPage};
use crate::db;
use crate::ids::{DeliveryId, TenantId};
use crate::paging::{self, PageError, one_more_than};

const DELIVERIES: &str = "deliveries";
/// The most tries that are shown of one delivery.
const MOST_TRIES: i64 = 100;

/// A page of a caller's deliveries, newest first; `None`: there is no such monitor.
///
/// # Errors
/// When the cursor is none of this list's, or the database does not answer.
pub async fn deliveries(
    pool: &PgPool,
    tenant: TenantId,
    query: &DeliveriesQuery,
) -> Result<Option<DeliveryPage>, PageError> {
    let limit = usize::from(query.limit_or_default().get());
    let before = match &query.cursor {
        None => None,
        Some(cursor) => {
            let [id] = paging::read(DELIVERIES, cursor)?;
            Some(
                id.parse::<DeliveryId>()
                    .map_err(|_| paging::refused(cursor))?,
            )
        }
    };
    if let Some(monitor) = query.monitor_id
        && !store::is_monitor(pool, tenant, monitor).await?
    {
        return Ok(None);
    }
    let mut data = store::deliveries(pool, tenant, query, before, one_more_than(limit)).await?;
    let next_cursor =
        paging::cut(&mut data, limit).map(|last| paging::after(DELIVERIES, [last.id.to_string()]));
    Ok(Some(DeliveryPage { data, next_cursor }))
}

/// One delivery with what was sent and its newest tries.
///
/// # Errors
/// When the database does not answer.
pub async fn detail(
    pool: &PgPool,
    tenant: TenantId,
    id: DeliveryId,
) -> sqlx::Result<Option<DeliveryDetail>> {
    // They must not contradict each other.
    let mut moment = db::snapshot(pool.acquire().await?).await?;
    let Some((delivery, payload)) = store::delivery(&mut moment, tenant, id).await? else {
        return Ok(None);
    };
    let tries = store::tries(&mut moment, tenant, id, MOST_TRIES).await?;
    Ok(Some(DeliveryDetail {
        delivery,
        payload,
        tries,
    }))
}

/// One delivery, as the transaction on `conn` sees it.
pub(super) async fn delivery(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: DeliveryId,
) -> sqlx::Result<Option<Delivery>> {
    Ok(store::delivery(conn, tenant, id)
        .await?
        .map(|(delivery, _)| delivery))
}
