//! Upkeep: what is kept for a time and then goes, and what should have happened and did not.
//!
//! Each step goes on while there is something left, within bounds; what is left after that is for the next sweep, a second later. Nothing
//! waits for a lock longer than a moment.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, PgPool};
use tokio::time::Instant;

use super::hold::{Cause, hold_scan};
use super::store;
use crate::db;
use crate::ids::{GrantId, ScanId, TenantId};
use crate::tenants;

/// The most rows of one transaction.
const PASS: i64 = 1_000;
/// How long a step goes on.
const STEP: Duration = Duration::from_millis(500);
/// How long the answer to an order is kept for its repetition (jobs-api, "Idempotency-Key").
const ORDERS_KEPT: SignedDuration = SignedDuration::from_hours(48);
/// How long the events of a scan are kept after its end (jobs-api, "Scans").
const EVENTS_KEPT: SignedDuration = SignedDuration::from_hours(24);
/// The most rows of events of one transaction: some tenths of a second.
const EVENTS_PASS: i64 = 50_000;
/// The most callers that one pass removes: what is left of each is a scan of a few items.
const TENANTS_PASS: i64 = 200;
/// How long the row of a dead process is kept, for whoever wants to know what happened.
const DEAD_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// One pass over all steps; `false`: something is left, and the next pass should come soon.
pub(super) async fn pass(pool: &PgPool, now: Timestamp) -> bool {
    let steps = [
        ("expired keys", wipe_expired_keys(pool, now).boxed()),
        (
            "scans without a key",
            hold_scans_without_key(pool, now).boxed(),
        ),
        (
            "answers to orders",
            while_full(pool, PASS, now, drop_orders).boxed(),
        ),
        (
            "rows of dead workers",
            while_full(pool, PASS, now, drop_workers).boxed(),
        ),
        (
            "events",
            while_full(pool, EVENTS_PASS, now, drop_events).boxed(),
        ),
        (
            "ended scans",
            while_full(pool, PASS, now, end_scans).boxed(),
        ),
        (
            "callers that were never accepted",
            remove_callers(pool, now).boxed(),
        ),
    ];
    let mut is_done = true;
    for (step, doing) in steps {
        match doing.await {
            Ok(done) => is_done &= done,
            Err(error) => {
                tracing::warn!(step, %error, "a step of the upkeep failed; the next pass goes on with it")
            }
        }
    }
    is_done
}

/// Removes callers that no marketplace accepted, each in a transaction of its own.
async fn remove_callers(pool: &PgPool, now: Timestamp) -> sqlx::Result<bool> {
    let removed = tenants::store::acceptance::remove_left(pool, TENANTS_PASS, now).await?;
    if removed > 0 {
        tracing::info!(removed, "callers that no marketplace accepted were removed");
    }
    Ok(i64::try_from(removed).is_ok_and(|removed| removed < TENANTS_PASS))
}

/// One transaction of a step; how many rows it took.
type Step = for<'a> fn(&'a mut PgConnection, Timestamp) -> BoxFuture<'a, sqlx::Result<u64>>;

/// Goes on while a transaction takes as much as it may; `false`: there was no time for the rest.
async fn while_full(pool: &PgPool, most: i64, now: Timestamp, one: Step) -> sqlx::Result<bool> {
    let until = Instant::now() + STEP;
    loop {
        let mut tx = db::begin(pool).await?;
        db::wait_briefly(&mut tx).await?;
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

fn drop_orders(conn: &mut PgConnection, now: Timestamp) -> BoxFuture<'_, sqlx::Result<u64>> {
    async move {
        let dropped = sqlx::query!(
            "delete from idempotency_keys where ctid = any (array(
                 select ctid from idempotency_keys where created_at < $1 order by created_at limit $2 for update skip locked))",
            (now - ORDERS_KEPT).to_sqlx() as _,
            PASS,
        );
        Ok(dropped.execute(conn).await?.rows_affected())
    }
    .boxed()
}

fn drop_workers(conn: &mut PgConnection, now: Timestamp) -> BoxFuture<'_, sqlx::Result<u64>> {
    async move {
        let dropped = sqlx::query!(
            "delete from workers where worker_id = any (array(
                 select w.worker_id from workers w
                 where w.dead and w.lease_until < $1
                   and not exists (select from scan_items i where i.worker_id = w.worker_id and i.state in ('claimed', 'calling'))
                 limit $2 for update skip locked))",
            (now - DEAD_KEPT).to_sqlx() as _,
            PASS,
        );
        Ok(dropped.execute(conn).await?.rows_affected())
    }
    .boxed()
}

fn drop_events(conn: &mut PgConnection, now: Timestamp) -> BoxFuture<'_, sqlx::Result<u64>> {
    async move {
        let dropped = sqlx::query_scalar!(
            r#"select drop_old_events($1, $2) as "dropped!""#,
            (now - EVENTS_KEPT).to_sqlx() as _,
            EVENTS_PASS
        );
        Ok(dropped.fetch_one(conn).await?.unsigned_abs())
    }
    .boxed()
}

fn end_scans(conn: &mut PgConnection, now: Timestamp) -> BoxFuture<'_, sqlx::Result<u64>> {
    async move {
        let ended = store::end_finished_scans(conn, PASS, now).await?;
        if ended > 0 {
            tracing::error!(ended, "scans had not ended with their last item");
        }
        Ok(ended)
    }
    .boxed()
}

/// Each by itself: one that somebody holds keeps no other key.
async fn wipe_expired_keys(pool: &PgPool, now: Timestamp) -> sqlx::Result<bool> {
    let expired = sqlx::query!(
        "select tenant_id, grant_id from key_grants where wiped_at is null and expires_at <= $1 order by expires_at limit $2",
        now.to_sqlx() as _,
        PASS
    );
    let expired = expired.fetch_all(pool).await?;
    let mut wiped = 0;
    for grant in &expired {
        let wiping = async {
            let mut tx = db::begin(pool).await?;
            db::wait_briefly(&mut tx).await?;
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
                tracing::warn!(%error, "an expired key was not wiped; the next pass goes on with it")
            }
        }
    }
    Ok(wiped < PASS)
}

/// A scan that outlives its key pauses (security.md, "Wiped"). After the keys: a scan that somebody holds keeps no key.
async fn hold_scans_without_key(pool: &PgPool, now: Timestamp) -> sqlx::Result<bool> {
    let scans = sqlx::query!(
        "select s.tenant_id, s.scan_id from scans s join key_grants g on g.tenant_id = s.tenant_id and g.grant_id = s.grant_id
         where s.finished_at is null and s.status in ('queued', 'running') and g.expires_at <= $1 limit $2",
        now.to_sqlx() as _,
        PASS
    );
    let mut held = 0;
    for scan in scans.fetch_all(pool).await? {
        let holding = async {
            let mut tx = db::begin(pool).await?;
            db::wait_briefly(&mut tx).await?;
            let is_held = hold_scan(
                &mut *tx,
                TenantId::from(scan.tenant_id),
                ScanId::from(scan.scan_id),
                &Cause::KeyGone,
            )
            .await?;
            tx.commit().await?;
            Ok::<_, sqlx::Error>(is_held)
        };
        match holding.await {
            Ok(is_held) => held += i64::from(is_held),
            Err(error) => {
                tracing::warn!(%error, "a scan without a key was not paused; the next pass goes on with it")
            }
        }
    }
    Ok(held < PASS)
}
