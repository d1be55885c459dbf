//! What nobody else does: giving up what dead processes held, waking retries that are due, beginning second phases, the rest of scans, and
//! upkeep. Any
//! process, one at a time.
//!
//! Every pass is bounded; what is left waits for the next.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::give_up::give_up;
use super::hold::{Cause, hold_scan};
use super::lease::Lease;
use super::store;
use crate::db;
use crate::db::clock::DatabaseTime;
use crate::ids::{GrantId, ScanId, TenantId};
use crate::scans::{expand, two_phase};
use crate::tenants;

/// How often retries that are due are looked for.
const TICK: Duration = Duration::from_secs(1);
/// Looks for dead processes in the time of a lease.
const LOOKS: u32 = 6;
/// How often tables that have grown are looked for: until one is found, the first large scan of a fresh database goes by plans for none.
const COUNT: Duration = Duration::from_secs(2);
/// How often there is upkeep: old answers to repeated orders and events, keys that have expired.
const UPKEEP: Duration = Duration::from_secs(60);
/// The most items, lanes, scans or rows of one pass.
const PASS: i32 = 1000;
/// How long the answer to an order is kept for its repetition (jobs-api, "Idempotency-Key").
const ORDERS_KEPT: SignedDuration = SignedDuration::from_hours(48);
/// How long the events of a scan are kept after its end (jobs-api, "Scans").
const EVENTS_KEPT: SignedDuration = SignedDuration::from_hours(24);
/// The most rows of events of one pass: a minute's worth of the busiest service, in some tenths of a second.
const EVENTS_PASS: i64 = 50_000;
/// The most callers that one pass removes: what is left of each is a scan of a few items.
const TENANTS_PASS: i64 = 200;
/// How long the row of a dead process is kept, for whoever wants to know what happened.
const DEAD_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// Sweeps until `stop`.
pub(super) async fn run(pool: PgPool, lease: Arc<Lease>, stop: CancellationToken) {
    let sweeping = async {
        let mut sweep = Sweep { pool, lease, last_count: None, last_look: None, last_upkeep: None };
        loop {
            if let Err(error) = sweep.once().await {
                tracing::warn!(%error, "the sweep was not finished; the next goes on");
            }
            sleep(TICK).await;
        }
    };
    stop.run_until_cancelled(sweeping).await;
}

struct Sweep {
    pool: PgPool,
    lease: Arc<Lease>,
    last_count: Option<Instant>,
    last_look: Option<Instant>,
    last_upkeep: Option<Instant>,
}

impl Sweep {
    async fn once(&mut self) -> sqlx::Result<()> {
        // Held by an idle transaction, so that it goes with this process whatever becomes of it; from one that is stopped the database
        // takes it back after the time of a lease.
        let mut guard = db::begin(&self.pool).await?;
        let idle = format!("{}ms", self.lease.length().as_millis());
        sqlx::query_scalar!("select set_config('idle_in_transaction_session_timeout', $1, true)", idle)
            .fetch_one(&mut *guard)
            .await?;
        let mine = sqlx::query_scalar!(r#"select pg_try_advisory_xact_lock(hashtextextended('farescan.sweep', 0)) as "mine!""#);
        if !mine.fetch_one(&mut *guard).await? {
            return Ok(());
        }
        let now = DatabaseTime::read(&mut *guard).await?.now();
        self.release_retries(now).await?;
        two_phase::begin_due(&self.pool, now).await?;
        expand::expand_due(&self.pool, None, now).await?;
        if is_due(self.last_count, COUNT) {
            sqlx::query!("select from analyse_grown()").execute(&self.pool).await?;
            self.last_count = Some(Instant::now());
        }
        if is_due(self.last_look, self.lease.length() / LOOKS) && self.lease.is_settled() {
            self.bury_the_dead().await?;
            self.last_look = Some(Instant::now());
        }
        if is_due(self.last_upkeep, UPKEEP) {
            self.upkeep(now).await?;
            self.last_upkeep = Some(Instant::now());
        }
        guard.rollback().await
    }

    async fn release_retries(&self, now: Timestamp) -> sqlx::Result<()> {
        let lanes = sqlx::query!(r#"select tenant_id as "tenant_id!", api as "api!" from lanes_with_due_retries($1)"#, PASS);
        for lane in lanes.fetch_all(&self.pool).await? {
            let released =
                sqlx::query!("select from release_delayed($1, $2, $3, $4)", now.to_sqlx() as _, lane.tenant_id, lane.api, PASS);
            released.execute(&self.pool).await?;
        }
        Ok(())
    }

    /// Lane by lane, each in a transaction of its own.
    async fn bury_the_dead(&self) -> sqlx::Result<()> {
        sqlx::query!("select from bury_workers(make_interval(secs => $1))", self.lease.length().as_secs_f64())
            .execute(&self.pool)
            .await?;
        for lane in store::orphans(&self.pool, PASS).await? {
            let lost = give_up(&self.pool, &lane).await?;
            tracing::warn!(claims = lane.items.len(), lost, "claims of dead processes were given up");
        }
        Ok(())
    }

    async fn upkeep(&self, now: Timestamp) -> sqlx::Result<()> {
        sqlx::query!(
            "delete from idempotency_keys where ctid = any (array(select ctid from idempotency_keys where created_at < $1 limit $2))",
            (now - ORDERS_KEPT).to_sqlx() as _,
            i64::from(PASS)
        )
        .execute(&self.pool)
        .await?;
        sqlx::query!(
            "delete from workers where worker_id = any (array(
                 select w.worker_id from workers w
                 where w.dead and w.lease_until < $1
                   and not exists (select from scan_items i where i.worker_id = w.worker_id and i.state in ('claimed', 'calling'))
                 limit $2))",
            (now - DEAD_KEPT).to_sqlx() as _,
            i64::from(PASS)
        )
        .execute(&self.pool)
        .await?;
        sqlx::query!("select from drop_old_events($1, $2)", (now - EVENTS_KEPT).to_sqlx() as _, EVENTS_PASS)
            .execute(&self.pool)
            .await?;
        let ended = store::end_finished_scans(&self.pool, PASS.into(), now).await?;
        if ended > 0 {
            tracing::error!(ended, "scans had not ended with their last item");
        }
        let removed = tenants::store::acceptance::remove_left(&self.pool, TENANTS_PASS, now).await?;
        if removed > 0 {
            tracing::info!(removed, "callers that no marketplace accepted were removed");
        }
        self.wipe_expired_keys(now).await
    }

    /// A scan that outlives its key pauses (security.md, "Wiped").
    async fn wipe_expired_keys(&self, now: Timestamp) -> sqlx::Result<()> {
        let expired = sqlx::query!(
            "select g.tenant_id, g.grant_id, s.scan_id as \"scan_id?\"
             from key_grants g
             left join scans s on s.tenant_id = g.tenant_id and s.grant_id = g.grant_id and s.finished_at is null
             where g.wiped_at is null and g.expires_at <= $1
             order by g.expires_at limit $2",
            now.to_sqlx() as _,
            i64::from(PASS)
        );
        for grant in expired.fetch_all(&self.pool).await? {
            let tenant = TenantId::from(grant.tenant_id);
            if let Some(scan) = grant.scan_id {
                hold_scan(&self.pool, tenant, ScanId::from(scan), &Cause::KeyGone).await?;
            }
            let mut connection = self.pool.acquire().await?;
            tenants::store::wipe_expired(&mut connection, tenant, GrantId::from(grant.grant_id), now).await?;
        }
        Ok(())
    }
}

fn is_due(last: Option<Instant>, interval: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() >= interval)
}
