//! Deletes the observations of a scan's items at their caller's request.

use jiff::civil::Date;
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::series::{SeriesKey, Subject};
use super::store::write;
use crate::contract::{Endpoint, Request};
use crate::ids::{ItemId, TenantId};

/// Locates an item's observations.
#[derive(Debug, Clone, Copy)]
pub struct ObservedItem {
    pub(super) item: ItemId,
    pub(super) series: SeriesKey,
    pub(super) first_date: Date,
    /// `first_date` for subjects with one date.
    pub(super) last_date: Date,
}

impl ObservedItem {
    /// `None` if the endpoint rejects the body: such an item was never sent.
    #[must_use]
    pub fn of(item: ItemId, endpoint: &str, body: &Map<String, Value>) -> Option<Self> {
        let checked = Request::check(Endpoint::parse(endpoint)?, body).ok()?;
        let Subject {
            series,
            first_date,
            last_date,
        } = Subject::of(&checked.request)?;
        Some(Self {
            item,
            series: series.key,
            first_date,
            last_date: last_date.unwrap_or(first_date),
        })
    }
}

/// Deletes the observations of these items. A latest price from one of them is replaced with the
/// newest remaining one, or deleted. Series stay: concurrent inserts may refer to them.
pub async fn delete(
    conn: &mut PgConnection,
    tenant: TenantId,
    items: &[ObservedItem],
) -> sqlx::Result<()> {
    write::delete_observations(conn, tenant, items).await?;
    write::fall_back(conn, tenant, items).await
}
