//! Creates the monthly partitions of the tables with answers and observations.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::PgPool;

/// How many months ahead partitions are created.
const MONTHS_AHEAD: i32 = 2;

/// Creates the missing partitions of this month and the next ones.
pub async fn create_partitions_ahead(pool: &PgPool, now: Timestamp) -> sqlx::Result<()> {
    create_partitions(pool, now, MONTHS_AHEAD).await
}

/// Creates the partition of one month, however old: for a spooled answer.
pub async fn create_partition_for(pool: &PgPool, time: Timestamp) -> sqlx::Result<()> {
    create_partitions(pool, time, 0).await
}

async fn create_partitions(pool: &PgPool, from: Timestamp, months: i32) -> sqlx::Result<()> {
    sqlx::query!(
        "select from create_partitions($1, $2)",
        from.to_sqlx() as _,
        months
    )
    .execute(pool)
    .await?;
    Ok(())
}
