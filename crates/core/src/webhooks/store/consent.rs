//! Codes and confirmations of addresses, in the rows of their endpoints.

use std::time::Duration;

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use sqlx::PgPool;

use super::LeasedDelivery;
use super::lock::EndpointLock;
use crate::ids::{ChannelId, TenantId};

/// The code that was mailed last.
pub(in crate::webhooks) struct MailedCode {
    pub(in crate::webhooks) is_confirmed: bool,
    pub(in crate::webhooks) digest: Option<Vec<u8>>,
    pub(in crate::webhooks) until: Option<Timestamp>,
    pub(in crate::webhooks) failures: i16,
}

/// Locks an endpoint and reads its code; `None` if it does not exist.
pub(in crate::webhooks) async fn lock_code(
    lock: &mut EndpointLock<'_>,
) -> sqlx::Result<Option<MailedCode>> {
    let row = sqlx::query!(
        r#"select confirmed_at is not null as "is_confirmed!", code_digest, code_until as "code_until: SqlTimestamp", code_failures
           from webhook_endpoints where tenant_id = $1 and endpoint_id = $2 for no key update"#,
        lock.tenant().uuid(),
        lock.owner().uuid(),
    );
    let row = row.fetch_optional(lock.conn()).await?;
    Ok(row.map(|row| MailedCode {
        is_confirmed: row.is_confirmed,
        digest: row.code_digest,
        until: row.code_until.map(SqlTimestamp::to_jiff),
        failures: row.code_failures,
    }))
}

/// Locks the endpoint of a channel and reads when a code was last asked for.
pub(in crate::webhooks) async fn lock_asked_at(
    lock: &mut EndpointLock<'_>,
) -> sqlx::Result<Option<Timestamp>> {
    let asked = sqlx::query_scalar!(
        r#"select code_asked_at as "code_asked_at: SqlTimestamp" from webhook_endpoints
           where tenant_id = $1 and endpoint_id = $2 for no key update"#,
        lock.tenant().uuid(),
        lock.owner().uuid(),
    );
    let asked = asked.fetch_one(lock.conn()).await?;
    Ok(asked.map(SqlTimestamp::to_jiff))
}

/// Counts a code of the caller; `Some`: it has had `most` within a day, and may have another after this
/// time.
pub(in crate::webhooks) async fn count_code(
    lock: &mut EndpointLock<'_>,
    most: i32,
) -> sqlx::Result<Option<Duration>> {
    let counted = sqlx::query!(
        "update tenants
         set codes_asked = (codes_asked || clock_timestamp())[greatest(1, cardinality(codes_asked) + 2 - $2::integer):]
         where tenant_id = $1 and (cardinality(codes_asked) < $2 or codes_asked[1] <= clock_timestamp() - interval '1 day')",
        lock.tenant().uuid(),
        most,
    );
    if counted.execute(lock.conn()).await?.rows_affected() > 0 {
        return Ok(None);
    }
    let wait = sqlx::query_scalar!(
        r#"select extract(epoch from codes_asked[1] + interval '1 day' - clock_timestamp())::double precision
           from tenants where tenant_id = $1"#,
        lock.tenant().uuid(),
    );
    let wait = wait.fetch_optional(lock.conn()).await?.flatten();
    Ok(Some(
        Duration::try_from_secs_f64(wait.unwrap_or_default()).unwrap_or_default(),
    ))
}

/// Ends code and confirmation, and switches the endpoint off until the next one.
pub(in crate::webhooks) async fn begin(
    lock: &mut EndpointLock<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhook_endpoints
         set off_at = coalesce(off_at, $3), off_reason = 'unconfirmed', next_at = null, failing_since = null, epoch = epoch + 1,
             confirmed_at = null, code_digest = null, code_until = null, code_failures = 0, code_asked_at = $3
         where tenant_id = $1 and endpoint_id = $2",
        lock.tenant().uuid(),
        lock.owner().uuid(),
        now.to_sqlx() as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Counts a wrong code.
pub(in crate::webhooks) async fn count_wrong(lock: &mut EndpointLock<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhook_endpoints set code_failures = code_failures + 1 where tenant_id = $1 and endpoint_id = $2",
        lock.tenant().uuid(),
        lock.owner().uuid(),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Records that the address is confirmed, and switches the endpoint on.
pub(in crate::webhooks) async fn confirm(
    lock: &mut EndpointLock<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhook_endpoints
         set off_at = null, off_reason = null, next_at = null, failing_since = null, epoch = epoch + 1,
             confirmed_at = $3, code_digest = null, code_until = null, code_failures = 0
         where tenant_id = $1 and endpoint_id = $2",
        lock.tenant().uuid(),
        lock.owner().uuid(),
        now.to_sqlx() as _,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Whether the confirmation of this time has not ended.
pub(in crate::webhooks) async fn is_current(
    pool: &PgPool,
    tenant: TenantId,
    channel: ChannelId,
    confirmed_at: Timestamp,
) -> sqlx::Result<bool> {
    let is_current = sqlx::query_scalar!(
        r#"select exists (select from webhook_endpoints
                          where tenant_id = $1 and endpoint_id = $2 and confirmed_at = $3) as "is_current!""#,
        tenant.uuid(),
        channel.uuid(),
        confirmed_at.to_sqlx() as _,
    );
    is_current.fetch_one(pool).await
}

/// Ends the confirmation of this time; `false`: it has ended already.
pub(in crate::webhooks) async fn withdraw(
    lock: &mut EndpointLock<'_>,
    confirmed_at: Timestamp,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let ended = sqlx::query!(
        "update webhook_endpoints
         set off_at = coalesce(off_at, $4), off_reason = 'unsubscribed', next_at = null, epoch = epoch + 1, confirmed_at = null
         where tenant_id = $1 and endpoint_id = $2 and confirmed_at = $3",
        lock.tenant().uuid(),
        lock.owner().uuid(),
        confirmed_at.to_sqlx() as _,
        now.to_sqlx() as _,
    );
    Ok(ended.execute(lock.conn()).await?.rows_affected() > 0)
}

/// Stores the code that a try is about to mail. `false`: the address was confirmed or changed since the
/// delivery was leased, and what the try has read may be the earlier address.
pub(in crate::webhooks) async fn set_code(
    pool: &PgPool,
    leased: &LeasedDelivery,
    digest: &[u8],
    until: Timestamp,
) -> sqlx::Result<bool> {
    let set = sqlx::query!(
        "update webhook_endpoints set code_digest = $4, code_until = $5, code_failures = 0
         where tenant_id = $1 and endpoint_id = $2 and taken_delivery = $3 and taken_epoch = epoch and confirmed_at is null
           and off_reason = 'unconfirmed'",
        leased.tenant.uuid(),
        leased.owner.uuid(),
        leased.delivery.uuid(),
        digest,
        until.to_sqlx() as _,
    );
    Ok(set.execute(pool).await?.rows_affected() > 0)
}

/// When the address of a leased delivery was confirmed; `None`: it is not, or was changed since.
pub(in crate::webhooks) async fn confirmed_at(
    pool: &PgPool,
    leased: &LeasedDelivery,
) -> sqlx::Result<Option<Timestamp>> {
    let confirmed = sqlx::query_scalar!(
        r#"select confirmed_at as "confirmed_at: SqlTimestamp" from webhook_endpoints
           where tenant_id = $1 and endpoint_id = $2 and taken_delivery = $3 and taken_epoch = epoch"#,
        leased.tenant.uuid(),
        leased.owner.uuid(),
        leased.delivery.uuid(),
    );
    let confirmed = confirmed.fetch_optional(pool).await?.flatten();
    Ok(confirmed.map(SqlTimestamp::to_jiff))
}
