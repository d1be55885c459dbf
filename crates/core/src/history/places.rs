//! The routes, hotels and places that a caller has a history of.

use sqlx::PgConnection;

use super::store::products;
pub use super::store::products::KnownPlace;
use crate::ids::TenantId;

/// Routes and places in one answer. A caller with more types the name.
const MAX_PLACES: i64 = 500;

/// At most 500 routes and places, by endpoint and name. Names that differ in case or outer space
/// are one place.
pub async fn places(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<Vec<KnownPlace>> {
    products::places(conn, tenant, MAX_PLACES).await
}
