//! Retention: creates partitions ahead, and removes partitions and rows that are too old.
//!
//! One process at a time, in bounded passes. No table in use is locked for long: a partition is
//! detached concurrently, then dropped. The removal is recorded, so that any process can finish it.
//!
//! Not here: rows with a fixed time, such as deliveries, events and idempotency keys (`expired`).
//!
//! The periods are settings (`RetentionConfig`). By default answers are kept for 90 days, alerts
//! and monitor slots for a year, scans and observations without limit.

use std::time::Duration;

use jiff::{SignedDuration, Span, Timestamp, ToSpan as _, tz::TimeZone};
use jiff_sqlx::ToSqlx as _;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::commands::CommandError;
use crate::config::RetentionConfig;
use crate::db;
use crate::db::clock::DatabaseTime;
use crate::db::partitions::create_partitions_ahead;
use crate::ids::{ScanId, TenantId};
use crate::passes;
use crate::scans::control::delete;

/// The most scans of one query, and how long a pass may delete scans.
const MAX_SCANS: i64 = 200;
const SCAN_DELETION_TIME: Duration = Duration::from_secs(10);
/// The most alerts, and the most slots, of one pass.
const MAX_ROWS: i64 = 5_000;

/// The wait after a pass that removed something: there may be more.
const NEXT_PASS_WAIT: Duration = Duration::from_secs(1);

/// What a pass removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedRows {
    /// Partitions, by name.
    pub partitions: Vec<String>,
    pub scans: u64,
    pub alerts: u64,
    /// Slots of monitors.
    pub slots: u64,
}

/// Creates and removes until `stop`.
pub(super) async fn run(pool: PgPool, config: RetentionConfig, stop: CancellationToken) {
    let passes = passes::run(&stop, None, || async {
        let removed = run_pass(&pool, &config).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "retention pass failed; the next pass retries");
            RemovedRows::default()
        });
        if removed == RemovedRows::default() {
            config.upkeep()
        } else {
            NEXT_PASS_WAIT
        }
    });
    stop.run_until_cancelled(passes).await;
}

async fn run_pass(pool: &PgPool, config: &RetentionConfig) -> sqlx::Result<RemovedRows> {
    let now = DatabaseTime::read(pool).await?.now();
    if let Err(error) = create_partitions_ahead(pool, now).await {
        tracing::error!(%error, "creating partitions failed; the next pass retries");
    }
    let removed = remove_expired(pool, config, now).await?;
    if removed != RemovedRows::default() {
        let RemovedRows {
            partitions,
            scans,
            alerts,
            slots,
        } = &removed;
        tracing::info!(?partitions, scans, alerts, slots, "retention removed rows");
    }
    Ok(removed)
}

/// Removes what is too old at `now`: at most one partition of each table, and some rows. Does
/// nothing while another process does this.
///
/// # Errors
/// When the database does not answer, or a lock is not available; what was removed stays removed.
pub async fn remove_expired(
    pool: &PgPool,
    config: &RetentionConfig,
    now: Timestamp,
) -> sqlx::Result<RemovedRows> {
    // A connection of its own: the session holds the lock, so it ends with the connection.
    let mut conn = pool.acquire().await?.detach();
    let acquired = sqlx::query_scalar!(
        r#"select pg_try_advisory_lock(hashtextextended('farescan.retention', 0)) as "mine!""#
    );
    if !acquired.fetch_one(&mut conn).await? {
        conn.close().await?;
        return Ok(RemovedRows::default());
    }
    let partitions = remove_old_partitions(&mut conn, config, now).await;
    // Explicitly, because a session outlives its connection for a moment.
    sqlx::query!("select from pg_advisory_unlock(hashtextextended('farescan.retention', 0))")
        .execute(&mut conn)
        .await?;
    conn.close().await?;
    let mut removed = RemovedRows::default();
    if let Some(before) = config.scans_before(now) {
        removed.scans = delete_old_scans(pool, before).await?;
    }
    if let Some((alerts, slots)) = config.alerts_before(now).zip(config.slots_before(now)) {
        removed.alerts = delete_alerts(pool, alerts).await?;
        removed.slots = delete_slots(pool, slots).await?;
    }
    // Checked last: a partition that is read for hours must not delay the rows.
    Ok(RemovedRows {
        partitions: partitions?,
        ..removed
    })
}

/// Removes the oldest partition of each table if all of it is too old; returns their names.
async fn remove_old_partitions(
    conn: &mut PgConnection,
    config: &RetentionConfig,
    now: Timestamp,
) -> sqlx::Result<Vec<String>> {
    select_partitions(conn, config, now).await?;
    let (mut partitions, mut first_error) = (Vec::new(), None);
    // Packed days before their observations: otherwise a reader would see days that no list
    // contains.
    let chosen = sqlx::query!(
        "select partition, parent from retiring_partitions order by parent = 'observed_days' desc, partition"
    );
    for chosen in chosen.fetch_all(&mut *conn).await? {
        match detach(conn, &chosen.parent, &chosen.partition).await? {
            Ok(()) => {
                drop_detached(conn, &chosen.partition).await?;
                partitions.push(chosen.partition);
            }
            // It is hidden already, so its observations may follow; earlier readers may take hours.
            Err(error) => first_error = Some(error),
        }
    }
    first_error.map_or(Ok(partitions), Err)
}

/// Records which partitions to remove: the oldest of each table, in one commit, so that a process
/// that finishes the removal removes days with their observations. Selects none while some are
/// recorded.
async fn select_partitions(
    conn: &mut PgConnection,
    config: &RetentionConfig,
    now: Timestamp,
) -> sqlx::Result<()> {
    let (answers, observations) = (config.answers_before(now), config.observations_before(now));
    let tables = [
        ("answers", answers),
        ("observations", observations),
        ("observed_days", observations),
    ];
    let (parents, before): (Vec<_>, Vec<_>) = tables
        .into_iter()
        .filter_map(|(parent, before)| Some((parent.to_owned(), before?.to_sqlx())))
        .unzip();
    sqlx::query!(
        "insert into retiring_partitions (partition, parent, retired_at)
         select distinct on (stale.parent) p.partition, stale.parent, $3
         from unnest($1::text[], $2::timestamptz[]) as stale (parent, before)
         cross join lateral partitions_before(stale.parent, stale.before) p
         where not p.is_pending and not exists (select from retiring_partitions)
         order by stale.parent, p.ends_at",
        &parents,
        &before as &[jiff_sqlx::Timestamp],
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Detaches a partition, from whichever step it is at. The inner error: readers of the table held
/// it too long, but new readers do not see the partition any more.
async fn detach(
    conn: &mut PgConnection,
    parent: &str,
    partition: &str,
) -> sqlx::Result<sqlx::Result<()>> {
    let Some(is_pending) = pending_detach(conn, parent, partition).await? else {
        return Ok(Ok(()));
    };
    let step = sqlx::query_scalar!(
        r#"select format('alter table %I detach partition %I ', $1::text, $2::text)
                  || case when $3 then 'finalize' else 'concurrently' end as "step!""#,
        parent,
        partition,
        is_pending,
    );
    let step = step.fetch_one(&mut *conn).await?;
    // A statement of its own, because it runs two transactions; the first hides the partition.
    match sqlx::raw_sql(AssertSqlSafe(step)).execute(&mut *conn).await {
        Ok(_) => Ok(Ok(())),
        Err(error) => match pending_detach(conn, parent, partition).await? {
            Some(false) => Err(error),
            Some(true) | None => Ok(Err(error)),
        },
    }
}

/// Whether an attached partition is already hidden; `None`: it is detached.
async fn pending_detach(
    conn: &mut PgConnection,
    parent: &str,
    partition: &str,
) -> sqlx::Result<Option<bool>> {
    let pending = sqlx::query_scalar!(
        "select i.inhdetachpending from pg_inherits i
         where i.inhrelid = to_regclass(quote_ident($2)) and i.inhparent = to_regclass($1)",
        parent,
        partition,
    );
    pending.fetch_optional(conn).await
}

/// Drops a detached partition and its record. The partition may be missing if a process died in
/// between.
async fn drop_detached(conn: &mut PgConnection, partition: &str) -> sqlx::Result<()> {
    let step = sqlx::query_scalar!(
        r#"select format('drop table if exists %I', $1::text) as "step!""#,
        partition
    );
    let step = step.fetch_one(&mut *conn).await?;
    sqlx::raw_sql(AssertSqlSafe(step))
        .execute(&mut *conn)
        .await?;
    sqlx::query!(
        "delete from retiring_partitions where partition = $1",
        partition
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes scans that ended before a time, as their callers would. Usage and history keep their
/// data.
async fn delete_old_scans(pool: &PgPool, before: Timestamp) -> sqlx::Result<u64> {
    let (until, mut deleted) = (Instant::now() + SCAN_DELETION_TIME, 0);
    loop {
        let before_these = deleted;
        let old = sqlx::query!(
            r#"select tenant_id, scan_id from scans where finished_at < $1 order by finished_at limit $2"#,
            before.to_sqlx() as _,
            MAX_SCANS
        );
        for scan in old.fetch_all(pool).await? {
            if Instant::now() >= until {
                return Ok(deleted);
            }
            match delete::delete_expired(
                pool,
                TenantId::from(scan.tenant_id),
                ScanId::from(scan.scan_id),
            )
            .await
            {
                Ok(()) => deleted += 1,
                Err(CommandError::Database(error)) if db::is_disconnected(&error) => {
                    return Err(error);
                }
                Err(CommandError::Database(error)) => {
                    tracing::warn!(%error, "deleting an old scan failed; the next pass retries");
                }
                // Its caller has deleted or restarted it.
                Err(_) => {}
            }
        }
        if deleted == before_these {
            return Ok(deleted);
        }
    }
}

/// Deletes alerts that fired before a time, except those that wait to be sent. Skips locked rows, as [`delete_slots`] does, because
/// the deletion of a monitor locks rows in another order.
async fn delete_alerts(pool: &PgPool, before: Timestamp) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from alerts where ctid = any (array(
             select ctid from alerts where fired_at < $1 and not is_held order by fired_at limit $2 for update skip locked))",
        before.to_sqlx() as _,
        MAX_ROWS,
    );
    Ok(deleted.execute(pool).await?.rows_affected())
}

/// Deletes slots before a time, except those still to be evaluated and each monitor's newest slot,
/// which the monitor shows.
async fn delete_slots(pool: &PgPool, before: Timestamp) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from monitor_slots where ctid = any (array(
             select s.ctid from monitor_slots s
             where s.slot < $1
               and (s.evaluated_at is not null or s.scan_id is null and s.outcome not in ('failed', 'overlap'))
               and exists (select from monitor_slots n
                           where n.tenant_id = s.tenant_id and n.monitor_id = s.monitor_id and n.slot > s.slot)
             order by s.slot limit $2 for update of s skip locked))",
        before.to_sqlx() as _,
        MAX_ROWS,
    );
    Ok(deleted.execute(pool).await?.rows_affected())
}

impl RetentionConfig {
    /// The time before which answers are too old; `None`: kept without limit.
    fn answers_before(&self, now: Timestamp) -> Option<Timestamp> {
        cutoff(now, self.answer_retention_days)
    }

    /// The time before which ended scans are too old.
    fn scans_before(&self, now: Timestamp) -> Option<Timestamp> {
        cutoff(now, self.scan_retention_days)
    }

    /// The time before which alerts are too old.
    fn alerts_before(&self, now: Timestamp) -> Option<Timestamp> {
        cutoff(now, self.alert_retention_days)
    }

    /// The time before which slots are too old: never one of this calendar month or the last one,
    /// because monthly limits count their cost.
    fn slots_before(&self, now: Timestamp) -> Option<Timestamp> {
        // Every zone is less than a day away from UTC, in both directions.
        let this_month = now
            .to_zoned(TimeZone::UTC)
            .checked_sub(1.day())
            .ok()?
            .first_of_month()
            .ok()?
            .start_of_day()
            .ok()?;
        let last_month = this_month.checked_sub(1.month().days(1)).ok()?.timestamp();
        Some(self.alerts_before(now)?.min(last_month))
    }

    /// The time before which observations are too old.
    fn observations_before(&self, now: Timestamp) -> Option<Timestamp> {
        if self.observation_retention_months == 0 {
            return None;
        }
        let span = Span::new()
            .try_months(i64::from(self.observation_retention_months))
            .ok()?;
        Some(
            now.to_zoned(TimeZone::UTC)
                .checked_sub(span)
                .ok()?
                .timestamp(),
        )
    }
}

fn cutoff(now: Timestamp, days: u32) -> Option<Timestamp> {
    if days == 0 {
        None
    } else {
        now.checked_sub(SignedDuration::from_hours(24 * i64::from(days)))
            .ok()
    }
}
