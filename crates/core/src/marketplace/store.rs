//! Statements over the installation's marketplace and the leases that refer to it.

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};

/// `None` until a process has started on the database.
pub(super) async fn stored(pool: &PgPool) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select marketplace from installation")
        .fetch_one(pool)
        .await
}

/// Stores the first marketplace; with `only_without_callers` only if there are no tenants. Returns
/// whether it did.
pub(super) async fn set_first(
    pool: &PgPool,
    marketplace: &str,
    only_without_callers: bool,
) -> sqlx::Result<bool> {
    let noted = sqlx::query!(
        "update installation set marketplace = $1, marketplace_since = clock_timestamp()
         where marketplace is null and not ($2 and exists (select from tenants))",
        marketplace,
        only_without_callers
    );
    Ok(noted.execute(pool).await?.rows_affected() == 1)
}

/// The same as [`stored`], with a row lock that keeps workers from taking a lease.
pub(super) async fn lock(tx: &mut PgConnection) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select marketplace from installation for update")
        .fetch_one(tx)
        .await
}

/// End of the last active lease.
pub(super) async fn leased_until(tx: &mut PgConnection) -> sqlx::Result<Option<Timestamp>> {
    let until = sqlx::query_scalar!(
        r#"select max(lease_until) as "until: jiff_sqlx::Timestamp" from workers where not dead and lease_until > clock_timestamp()"#
    );
    Ok(until.fetch_one(tx).await?.map(|until| until.to_jiff()))
}

/// Ends all workers: the processes of expired leases cannot renew them, and the sweep abandons
/// their claimed items.
pub(super) async fn expire_workers(tx: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("update workers set dead = true, marketplace = null")
        .execute(tx)
        .await
        .map(drop)
}

pub(super) async fn set(tx: &mut PgConnection, marketplace: &str) -> sqlx::Result<()> {
    let set = sqlx::query!(
        "update installation set marketplace = $1, marketplace_since = clock_timestamp()",
        marketplace
    );
    set.execute(tx).await.map(drop)
}
