//! Deliveries and their tries in the API. A delivery or monitor of another tenant counts as not
//! found: `None`.

use sqlx::{PgConnection, PgPool};

use super::store::lists as store;
use crate::contract::webhooks::{DeliveriesQuery, Delivery, DeliveryDetail, DeliveryPage};
use crate::db;
use crate::ids::{DeliveryId, MonitorId, TenantId};
use crate::paging::{self, PageError, limit_plus_one};

/// The most tries shown of one delivery.
const MAX_TRIES: i64 = 100;

/// A page of a tenant's deliveries, newest first; `None` if the monitor or the channel of the
/// query does not exist.
///
/// # Errors
/// When the cursor belongs to another list, or the database fails.
pub async fn deliveries(
    pool: &PgPool,
    tenant: TenantId,
    query: &DeliveriesQuery,
) -> Result<Option<DeliveryPage>, PageError> {
    let limit = usize::from(query.limit_or_default().get());
    let before = paging::decode_id(query.cursor.as_ref())?;
    if let Some(monitor) = query.monitor_id
        && !store::is_monitor(pool, tenant, monitor).await?
    {
        return Ok(None);
    }
    if let Some(channel) = query.channel_id
        && !store::is_channel(pool, tenant, channel).await?
    {
        return Ok(None);
    }
    let mut data =
        store::deliveries(pool, tenant, query, None, before, limit_plus_one(limit)).await?;
    let next_cursor =
        paging::truncate_page(&mut data, limit).map(|last| paging::encode_id(last.id));
    Ok(Some(DeliveryPage { data, next_cursor }))
}

/// The newest deliveries of all monitors or of some, before one: for a list that has other rows as well.
pub async fn deliveries_before(
    pool: &PgPool,
    tenant: TenantId,
    query: &DeliveriesQuery,
    of: Option<&[MonitorId]>,
    before: Option<DeliveryId>,
    limit: i64,
) -> sqlx::Result<Vec<Delivery>> {
    store::deliveries(pool, tenant, query, of, before, limit).await
}

/// One delivery with its payload and its newest tries.
pub async fn detail(
    pool: &PgPool,
    tenant: TenantId,
    id: DeliveryId,
) -> sqlx::Result<Option<DeliveryDetail>> {
    // One snapshot, so that the delivery and its tries are consistent.
    let mut moment = db::snapshot(pool.acquire().await?).await?;
    let Some((delivery, payload)) = store::delivery(&mut moment, tenant, id).await? else {
        return Ok(None);
    };
    let tries = store::tries(&mut moment, tenant, id, MAX_TRIES).await?;
    Ok(Some(DeliveryDetail {
        delivery,
        payload,
        tries,
    }))
}

/// One delivery, within the transaction on `conn`.
pub(super) async fn delivery(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: DeliveryId,
) -> sqlx::Result<Option<Delivery>> {
    Ok(store::delivery(conn, tenant, id)
        .await?
        .map(|(delivery, _)| delivery))
}
