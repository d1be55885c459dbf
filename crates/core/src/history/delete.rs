//! Deletes the observations of a scan's items at their caller's request.

use sqlx::PgConnection;

use super::observation::ObservedItem;
use super::store::write;
use crate::ids::TenantId;

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
