//! Deletes rows and keys that have expired, and repairs scans that should have ended.
//!
//! Each step is bounded in time; the next sweep, a second later, does the rest. Lock waits are
//! short.

use std::time::Duration;

use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, PgPool};
use tokio::time::Instant;

use crate::commands::IDEMPOTENCY_RETENTION;
use crate::db;
use crate::ids::{GrantId, ScanId, TenantId};
use crate::queue::pause_scan::{PauseCause, pause_scan};
use crate::tenants;
use crate::tenants::rotate::REPLAY_WINDOW;

/// The most rows of one transaction.
const MAX_ROWS: i64 = 1_000;
/// How long a step may take.
const STEP_TIME: Duration = Duration::from_millis(500);
/// How long the events of a scan are kept after its end (scans.md, rule 70).
const EVENTS_KEPT: SignedDuration = SignedDuration::from_hours(24);
/// The most event rows of one transaction: some tenths of a second.
const MAX_EVENT_ROWS: i64 = 50_000;
/// How long webhook deliveries are kept after their end (monitors.md, rule 61).
const DELIVERIES_KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);
/// The most callers that one pass removes; each has one scan of a few items.
const MAX_TENANTS: i64 = 200;
/// How long the row of a dead worker is kept, for diagnosis.
const DEAD_WORKERS_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// Runs all steps; `false`: something is left for the next pass.
pub(super) async fn delete(pool: &PgPool, now: Timestamp) -> bool {
    let steps = [
        ("expired keys", wipe_expired_keys(pool, now).boxed()),
        (
            "scans without a key",
            pause_scans_without_key(pool, now).boxed(),
        ),
        (
            "idempotency keys",
            repeat_while_full(pool, MAX_ROWS, now, delete_idempotency_keys).boxed(),
        ),
        (
            "rotated keys",
            repeat_while_full(pool, MAX_ROWS, now, delete_rotations).boxed(),
        ),
        (
            "dead workers",
            repeat_while_full(pool, MAX_ROWS, now, delete_dead_workers).boxed(),
        ),
        (
            "events",
            repeat_while_full(pool, MAX_EVENT_ROWS, now, delete_events).boxed(),
        ),
        (
            "deliveries",
            repeat_while_full(pool, MAX_ROWS, now, delete_deliveries).boxed(),
        ),
        (
            "addresses",
            repeat_while_full(pool, MAX_ROWS, now, delete_addresses).boxed(),
        ),
        (
            "ended scans",
            repeat_while_full(pool, MAX_ROWS, now, end_finished_scans).boxed(),
        ),
        (
            "callers that were not accepted",
            remove_unaccepted_tenants(pool, now).boxed(),
        ),
    ];
    let mut is_complete = true;
    for (step, task) in steps {
        match task.await {
            Ok(done) => is_complete &= done,
            Err(error) => {
                tracing::warn!(step, %error, "upkeep step failed; the next pass retries");
            }
        }
    }
    is_complete
}

/// Removes callers that no marketplace accepted, each in a transaction of its own.
async fn remove_unaccepted_tenants(pool: &PgPool, now: Timestamp) -> sqlx::Result<bool> {
    let removed = tenants::store::acceptance::remove_unaccepted(pool, MAX_TENANTS, now).await?;
    if removed > 0 {
        tracing::info!(
            removed,
            "removed callers that the marketplace did not accept"
        );
    }
    Ok(i64::try_from(removed).is_ok_and(|removed| removed < MAX_TENANTS))
}

/// Repeats a transaction while it reaches its limit of rows; `false`: out of time. `one` returns the
/// number of rows.
async fn repeat_while_full(
    pool: &PgPool,
    most: i64,
    now: Timestamp,
    one: impl AsyncFn(&mut PgConnection, Timestamp) -> sqlx::Result<u64>,
) -> sqlx::Result<bool> {
    let until = Instant::now() + STEP_TIME;
    loop {
        let mut tx = db::begin(pool).await?;
        db::set_brief_lock_timeout(&mut tx).await?;
        let taken = one(&mut tx, now).await?;
        tx.commit().await?;
        if taken < most.unsigned_abs() {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
    }
}

async fn delete_idempotency_keys(conn: &mut PgConnection, now: Timestamp) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from idempotency_keys where ctid = any (array(
             select ctid from idempotency_keys where created_at < $1 order by created_at limit $2 for update skip locked))",
        (now - IDEMPOTENCY_RETENTION).to_sqlx() as _,
        MAX_ROWS,
    );
    Ok(deleted.execute(conn).await?.rows_affected())
}

/// The fingerprints of keys that were rotated, once neither a repetition nor a restore needs them.
async fn delete_rotations(conn: &mut PgConnection, now: Timestamp) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from passed_keys where ctid = any (array(
             select ctid from passed_keys where passed_at < $1 order by passed_at limit $2 for update skip locked))",
        (now - REPLAY_WINDOW).to_sqlx() as _,
        MAX_ROWS,
    );
    Ok(deleted.execute(conn).await?.rows_affected())
}

async fn delete_dead_workers(conn: &mut PgConnection, now: Timestamp) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from workers where worker_id = any (array(
             select w.worker_id from workers w
             where w.dead and w.lease_until < $1
               and not exists (select from scan_items i where i.worker_id = w.worker_id and i.worker_id is not null)
             limit $2 for update skip locked))",
        (now - DEAD_WORKERS_KEPT).to_sqlx() as _,
        MAX_ROWS,
    );
    Ok(deleted.execute(conn).await?.rows_affected())
}

async fn delete_events(conn: &mut PgConnection, now: Timestamp) -> sqlx::Result<u64> {
    let deleted = sqlx::query_scalar!(
        r#"select delete_old_events($1, $2) as "dropped!""#,
        (now - EVENTS_KEPT).to_sqlx() as _,
        MAX_EVENT_ROWS
    );
    Ok(deleted.fetch_one(conn).await?.unsigned_abs())
}

/// Skips locked rows: a deletion of a monitor locks its deliveries in another order.
async fn delete_deliveries(conn: &mut PgConnection, now: Timestamp) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from deliveries where ctid = any (array(
             select ctid from deliveries where ended_at < $1 order by ended_at limit $2 for update skip locked))",
        (now - DELIVERIES_KEPT).to_sqlx() as _,
        MAX_ROWS,
    );
    Ok(deleted.execute(conn).await?.rows_affected())
}

/// Addresses whose codes do not count any more.
async fn delete_addresses(conn: &mut PgConnection, now: Timestamp) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from mailed_addresses where address_digest = any (array(
             select address_digest from mailed_addresses where ends_at < $1 order by ends_at limit $2 for update skip locked))",
        now.to_sqlx() as _,
        MAX_ROWS,
    );
    Ok(deleted.execute(conn).await?.rows_affected())
}

/// Ends scans whose counters show that all items have ended. Only a bug elsewhere leaves such a
/// scan; its caller must not wait forever.
async fn end_finished_scans(conn: &mut PgConnection, now: Timestamp) -> sqlx::Result<u64> {
    let ended = sqlx::query!(
        "select from (select tenant_id, scan_id from scans
                      where finished_at is null and ok + empty + partial + degraded + failed + cancelled = total
                      order by tenant_id, scan_id limit $2 for no key update skip locked) s
         cross join lateral count_ended($1, s.tenant_id, s.scan_id, 0, 0, 0, 0, 0, 0, 0)",
        now.to_sqlx() as _,
        MAX_ROWS
    );
    let ended = ended.execute(conn).await?.rows_affected();
    if ended > 0 {
        tracing::error!(ended, "ended scans whose items had all ended");
    }
    Ok(ended)
}

/// Each in its own transaction, so that a locked key does not delay the others.
async fn wipe_expired_keys(pool: &PgPool, now: Timestamp) -> sqlx::Result<bool> {
    let expired = sqlx::query!(
        "select tenant_id, grant_id from key_grants where wiped_at is null and expires_at <= $1 order by expires_at limit $2",
        now.to_sqlx() as _,
        MAX_ROWS
    );
    let expired = expired.fetch_all(pool).await?;
    let mut wiped = 0;
    for grant in &expired {
        let wiping = async {
            let mut tx = db::begin(pool).await?;
            db::set_brief_lock_timeout(&mut tx).await?;
            tenants::store::wipe_expired(
                &mut tx,
                grant.tenant_id.into(),
                GrantId::from(grant.grant_id),
                now,
            )
            .await?;
            tx.commit().await
        };
        match wiping.await {
            Ok(()) => wiped += 1,
            Err(error) => {
                tracing::warn!(%error, "wiping an expired key failed; the next pass retries");
            }
        }
    }
    Ok(wiped < MAX_ROWS)
}

/// A scan that outlives its key pauses (security.md, rule 8). Runs after the keys are wiped, so
/// that a locked scan delays no key.
async fn pause_scans_without_key(pool: &PgPool, now: Timestamp) -> sqlx::Result<bool> {
    let scans = sqlx::query!(
        "select s.tenant_id, s.scan_id from scans s join key_grants g on g.tenant_id = s.tenant_id and g.grant_id = s.grant_id
         where s.finished_at is null and s.status in ('queued', 'running') and g.expires_at <= $1 limit $2",
        now.to_sqlx() as _,
        MAX_ROWS
    );
    let mut paused = 0;
    for scan in scans.fetch_all(pool).await? {
        let pausing = async {
            let mut tx = db::begin(pool).await?;
            db::set_brief_lock_timeout(&mut tx).await?;
            let is_paused = pause_scan(
                &mut *tx,
                TenantId::from(scan.tenant_id),
                ScanId::from(scan.scan_id),
                &PauseCause::KeyGone,
            )
            .await?;
            tx.commit().await?;
            Ok::<_, sqlx::Error>(is_paused)
        };
        match pausing.await {
            Ok(is_paused) => paused += i64::from(is_paused),
            Err(error) => {
                tracing::warn!(%error, "pausing a scan without a key failed; the next pass retries");
            }
        }
    }
    Ok(paused < MAX_ROWS)
}
