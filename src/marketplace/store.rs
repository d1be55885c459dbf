//! The row that says which marketplace a database belongs to, and the leases under it.

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};

/// The marketplace; none if no process has started on it yet.
pub(super) async fn held(pool: &PgPool) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select marketplace from installation")
        .fetch_one(pool)
        .await
}

/// Notes the first one; `only_without_callers`: not if anybody has stored work here. `false`: it is left as it is.
pub(super) async fn note(
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

/// The same as [`held`]; until the transaction ends nobody takes a lease.
pub(super) async fn locked(tx: &mut PgConnection) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select marketplace from installation for update")
        .fetch_one(tx)
        .await
}

/// When the last lease ends that has not run out.
pub(super) async fn leased_until(tx: &mut PgConnection) -> sqlx::Result<Option<Timestamp>> {
    let until = sqlx::query_scalar!(
        r#"select max(lease_until) as "until: jiff_sqlx::Timestamp" from workers where not dead and lease_until > clock_timestamp()"#
    );
    Ok(until.fetch_one(tx).await?.map(|until| until.to_jiff()))
}

/// What is left under leases that have run out belongs to the old marketplace: their processes get no lease again, and the sweep gives up
/// what they had claimed.
pub(super) async fn bury_all(tx: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("update workers set dead = true, marketplace = null")
        .execute(tx)
        .await
        .map(drop)
}

/// Notes another one.
pub(super) async fn change(tx: &mut PgConnection, marketplace: &str) -> sqlx::Result<()> {
    let change = sqlx::query!(
        "update installation set marketplace = $1, marketplace_since = clock_timestamp()",
        marketplace
    );
    change.execute(tx).await.map(drop)
}
