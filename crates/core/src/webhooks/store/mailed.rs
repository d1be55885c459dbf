//! How many codes addresses were mailed, over all callers (channels.md, rule 21). A row has no address, only
//! its keyed digest, and no caller.
//!
//! Each function takes the digests of one address under every key of the ring, the primary's first.

use std::time::Duration;

use sqlx::{PgExecutor, PgPool};

use super::lock::EndpointLock;

/// Counts a code for an address; `Some`: it has had `most` within seven days of which none was entered, and
/// may have another after this time. Roll back then. The row stays locked until the transaction ends.
pub(in crate::webhooks) async fn count_code(
    lock: &mut EndpointLock<'_>,
    digests: &[Vec<u8>],
    most: i64,
) -> sqlx::Result<Option<Duration>> {
    let primary = digests.first().map(Vec::as_slice);
    sqlx::query!(
        "insert into mailed_addresses as m (address_digest, codes_asked, ends_at)
         values ($1, array[clock_timestamp()], clock_timestamp() + interval '7 days')
         on conflict (address_digest) do update
         set codes_asked = array(select asked from unnest(m.codes_asked) asked where asked > clock_timestamp() - interval '7 days' order by asked)
                           || clock_timestamp(),
             ends_at = greatest(clock_timestamp() + interval '7 days', m.refused_until)",
        primary,
    )
    .execute(lock.conn())
    .await?;
    // A reader who wants none looks like an address that has just had all: nobody else learns of it.
    let wait = sqlx::query_scalar!(
        r#"select case
               when bool_or(m.refused_until > clock_timestamp()) then extract(epoch from interval '7 days')
               else extract(epoch from (array_agg(asked order by asked))[greatest(1, count(asked) - $2)] + interval '7 days' - clock_timestamp())
           end::double precision
           from mailed_addresses m left join lateral unnest(m.codes_asked) asked on asked > clock_timestamp() - interval '7 days'
           where m.address_digest = any ($1)
           having count(asked) > $2 or bool_or(m.refused_until > clock_timestamp())"#,
        digests,
        most,
    );
    let wait = wait.fetch_optional(lock.conn()).await?;
    Ok(wait.map(|wait| Duration::try_from_secs_f64(wait.unwrap_or_default()).unwrap_or_default()))
}

/// Forgets the codes of an address of which one was entered.
pub(in crate::webhooks) async fn forget_codes(
    lock: &mut EndpointLock<'_>,
    digests: &[Vec<u8>],
) -> sqlx::Result<()> {
    sqlx::query!(
        "update mailed_addresses set codes_asked = '{}', ends_at = coalesce(refused_until, clock_timestamp()) where address_digest = any ($1)",
        digests,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Whether the reader of an address wants no code.
pub(in crate::webhooks) async fn is_refused(
    pool: &PgPool,
    digests: &[Vec<u8>],
) -> sqlx::Result<bool> {
    let is_refused = sqlx::query_scalar!(
        r#"select exists (select from mailed_addresses
                          where address_digest = any ($1) and refused_until > clock_timestamp()) as "is_refused!""#,
        digests,
    );
    is_refused.fetch_one(pool).await
}

/// Mails no code to an address for a year.
pub(in crate::webhooks) async fn refuse(
    executor: impl PgExecutor<'_>,
    digest: &[u8],
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into mailed_addresses as m (address_digest, refused_until, ends_at)
         values ($1, clock_timestamp() + interval '1 year', clock_timestamp() + interval '1 year')
         on conflict (address_digest) do update set refused_until = excluded.refused_until, ends_at = excluded.ends_at",
        digest,
    )
    .execute(executor)
    .await?;
    Ok(())
}
