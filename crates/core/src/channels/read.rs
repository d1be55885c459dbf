//! Channels in the API. A channel of another tenant counts as not found.

use sqlx::{PgConnection, PgPool};

use super::store;
use crate::contract::channels::{Channel, ChannelPage, ChannelsQuery};
use crate::ids::{ChannelId, TenantId};
use crate::paging::{self, PageError, limit_plus_one};

/// A page of a tenant's channels, newest first.
///
/// # Errors
/// When the cursor belongs to another list, or the database fails.
pub async fn channels(
    pool: &PgPool,
    tenant: TenantId,
    query: &ChannelsQuery,
) -> Result<ChannelPage, PageError> {
    let limit = usize::from(query.limit_or_default().get());
    let before = paging::decode_id(query.cursor.as_ref())?;
    let mut conn = pool.acquire().await?;
    let page = limit_plus_one(limit);
    let mut data = store::list(&mut conn, tenant, None, query.status, before, page).await?;
    let next_cursor =
        paging::truncate_page(&mut data, limit).map(|last| paging::encode_id(last.id));
    Ok(ChannelPage { data, next_cursor })
}

/// One channel; `None` if it does not exist.
pub async fn channel(
    pool: &PgPool,
    tenant: TenantId,
    id: ChannelId,
) -> sqlx::Result<Option<Channel>> {
    find(&mut *pool.acquire().await?, tenant, id).await
}

/// A channel that this transaction has stored.
pub(super) async fn read_back(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ChannelId,
) -> sqlx::Result<Channel> {
    find(conn, tenant, id)
        .await?
        .ok_or(sqlx::Error::RowNotFound)
}

async fn find(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ChannelId,
) -> sqlx::Result<Option<Channel>> {
    let mut found = store::list(conn, tenant, Some(id), None, None, 1).await?;
    Ok(found.pop())
}
