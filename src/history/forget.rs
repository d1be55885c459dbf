//! Taking out what the items of a scan saw, because their caller says so.

use jiff::civil::Date;
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::series::{SeriesKey, Subject};
use super::store::keep;
use crate::contract::{Endpoint, Request};
use crate::ids::{ItemId, TenantId};

/// Where an item's observations are.
#[derive(Debug, Clone, Copy)]
pub struct SeenBy {
    pub(super) item: ItemId,
    pub(super) series: SeriesKey,
    pub(super) first_date: Date,
    /// The first where there is no second.
    pub(super) last_date: Date,
}

impl SeenBy {
    /// The place of what a search saw; `None` for a body that its endpoint does not take, which was never asked.
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

/// Takes out the observations of these items. A latest price that came from one of them falls back to the newest price that is left, or
/// goes. The series stay: they say what was asked for, not what was seen, and others may be about to use them.
///
/// # Errors
/// When the database does not answer.
pub async fn forget(
    conn: &mut PgConnection,
    tenant: TenantId,
    seen: &[SeenBy],
) -> sqlx::Result<()> {
    keep::delete_observations(conn, tenant, seen).await?;
    keep::fall_back(conn, tenant, seen).await
}
