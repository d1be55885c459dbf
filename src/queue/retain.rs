//! Room for what comes, and an end for what is old: partitions made ahead, and those taken away that hold nothing young enough.
//!
//! Any process, one at a time, a little in each pass; what is left waits for the next. Nothing here locks a table that is in use for
//! long: a partition is taken off concurrently, and only then dropped. What a pass began is on record, so that any other goes on with it.
//!
//! What an operator keeps he decides (`RetentionConfig`): whole answers for 90 days, alerts and slots of monitors for a year, scans and
//! observations for good unless told otherwise.

use std::time::Duration;

use jiff::{SignedDuration, Span, Timestamp, ToSpan as _, tz::TimeZone};
use jiff_sqlx::ToSqlx as _;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::config::RetentionConfig;
use crate::db;
use crate::db::clock::DatabaseTime;
use crate::ids::{ScanId, TenantId};
use crate::scans::ScanError;
use crate::scans::control::delete;

/// Partitions are there this many months before they are needed.
const MONTHS_AHEAD: i32 = 2;
/// The most scans that are looked up at once, and how long a pass may go on with them.
const SCANS: i64 = 200;
const SCANS_TIME: Duration = Duration::from_secs(10);
/// The most alerts, and the most slots, of one pass.
const ROWS: i64 = 5_000;

/// After a pass that took something away: there may be more.
const AGAIN: Duration = Duration::from_secs(1);

/// What a pass took away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retired {
    /// Partitions, by name.
    pub partitions: Vec<String>,
    /// Scans that ended long ago.
    pub scans: u64,
    /// Alerts that fired long ago.
    pub alerts: u64,
    /// Slots of monitors from long ago.
    pub slots: u64,
}

/// Makes room and takes away until `stop`.
pub(super) async fn run(pool: PgPool, config: RetentionConfig, stop: CancellationToken) {
    let keeping = async {
        loop {
            let passed = pass(&pool, &config).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "what is too old was not all taken away; the next pass goes on");
                Retired::default()
            });
            sleep(if passed == Retired::default() {
                config.upkeep()
            } else {
                AGAIN
            })
            .await;
        }
    };
    stop.run_until_cancelled(keeping).await;
}

async fn pass(pool: &PgPool, config: &RetentionConfig) -> sqlx::Result<Retired> {
    let now = DatabaseTime::read(pool).await?.now();
    if let Err(error) = make_ahead(pool, now).await {
        tracing::error!(%error, "partitions could not be made ahead; it is tried again");
    }
    let retired = retire(pool, config, now).await?;
    if retired != Retired::default() {
        let Retired {
            partitions,
            scans,
            alerts,
            slots,
        } = &retired;
        tracing::info!(
            ?partitions,
            scans,
            alerts,
            slots,
            "what is too old was taken away"
        );
    }
    Ok(retired)
}

/// Makes the partitions of this month and the next ones, where they are not there yet.
///
/// # Errors
/// When the database does not answer.
pub async fn make_ahead(pool: &PgPool, now: Timestamp) -> sqlx::Result<()> {
    sqlx::query!(
        "select from make_partitions($1, $2)",
        now.to_sqlx() as _,
        MONTHS_AHEAD
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Makes the partition of one month, however long ago: for an answer that a spool held.
pub(super) async fn make_for(pool: &PgPool, time: Timestamp) -> sqlx::Result<()> {
    sqlx::query!("select from make_partitions($1, 0)", time.to_sqlx() as _)
        .execute(pool)
        .await?;
    Ok(())
}

/// Takes away what is too old at `now`: of each table at most one partition, and some rows. Does nothing while another process is at it.
///
/// # Errors
/// When the database does not answer, or somebody holds what is to be taken away; what is done stays done.
pub async fn retire(
    pool: &PgPool,
    config: &RetentionConfig,
    now: Timestamp,
) -> sqlx::Result<Retired> {
    // A connection of its own: the lock is its session's, and goes with it whatever becomes of this pass.
    let mut conn = pool.acquire().await?.detach();
    let mine = sqlx::query_scalar!(
        r#"select pg_try_advisory_lock(hashtextextended('farescan.retention', 0)) as "mine!""#
    );
    if !mine.fetch_one(&mut conn).await? {
        conn.close().await?;
        return Ok(Retired::default());
    }
    let partitions = retire_partitions(&mut conn, config, now).await;
    // Said, because a session outlives its connection by some moments.
    sqlx::query!("select from pg_advisory_unlock(hashtextextended('farescan.retention', 0))")
        .execute(&mut conn)
        .await?;
    conn.close().await?;
    let mut retired = Retired::default();
    if let Some(before) = config.scans_before(now) {
        retired.scans = delete_ended(pool, before).await?;
    }
    if let Some((alerts, slots)) = config.alerts_before(now).zip(config.slots_before(now)) {
        retired.alerts = delete_alerts(pool, alerts).await?;
        retired.slots = delete_slots(pool, slots).await?;
    }
    // Not before: a partition that somebody reads for hours is no reason to keep rows.
    Ok(Retired {
        partitions: partitions?,
        ..retired
    })
}

/// Takes away the oldest partition of each table, where all of it is too old; gives their names.
async fn retire_partitions(
    conn: &mut PgConnection,
    config: &RetentionConfig,
    now: Timestamp,
) -> sqlx::Result<Vec<String>> {
    choose(conn, config, now).await?;
    let (mut partitions, mut held) = (Vec::new(), None);
    // Packed days before the observations that they were made from: who read days whose observations are gone would tell what no list has.
    let chosen = sqlx::query!(
        "select partition, parent from retiring_partitions order by parent = 'observed_days' desc, partition"
    );
    for chosen in chosen.fetch_all(&mut *conn).await? {
        match take_off(conn, &chosen.parent, &chosen.partition).await? {
            Ok(()) => {
                drop_off(conn, &chosen.partition).await?;
                partitions.push(chosen.partition);
            }
            // Hidden it is, so that the observations follow their days at once; who read it before may take hours.
            Err(error) => held = Some(error),
        }
    }
    held.map_or(Ok(partitions), Err)
}

/// Puts on record which partitions go: the oldest of each table, all in one commit, so that who goes on after a process that died takes the
/// days with their observations. None while some are there: they go first.
async fn choose(
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

/// Takes a partition off its table, from whichever step it is at. Inside: who reads the table held it for too long, but whoever comes after
/// sees it without the partition already.
async fn take_off(
    conn: &mut PgConnection,
    parent: &str,
    partition: &str,
) -> sqlx::Result<sqlx::Result<()>> {
    let Some(is_pending) = attached(conn, parent, partition).await? else {
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
    // As one statement by itself: it is two transactions, and the first of them hides it.
    match sqlx::raw_sql(AssertSqlSafe(step)).execute(&mut *conn).await {
        Ok(_) => Ok(Ok(())),
        Err(error) => match attached(conn, parent, partition).await? {
            Some(false) => Err(error),
            Some(true) | None => Ok(Err(error)),
        },
    }
}

/// Whether a partition that is still one of its table is hidden already; `None`: it is none any more.
async fn attached(
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

/// Drops what was taken off, and says so. It may be gone: a process died before it could say it.
async fn drop_off(conn: &mut PgConnection, partition: &str) -> sqlx::Result<()> {
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

/// Deletes scans that ended before a time, each as its caller would. What they had cost stays in the usage, what they saw in the history.
async fn delete_ended(pool: &PgPool, before: Timestamp) -> sqlx::Result<u64> {
    let (until, mut deleted) = (Instant::now() + SCANS_TIME, 0);
    loop {
        let before_these = deleted;
        let old = sqlx::query!(
            r#"select tenant_id, scan_id from scans where finished_at < $1 order by finished_at limit $2"#,
            before.to_sqlx() as _,
            SCANS
        );
        for scan in old.fetch_all(pool).await? {
            if Instant::now() >= until {
                return Ok(deleted);
            }
            match delete::ended(
                pool,
                TenantId::from(scan.tenant_id),
                ScanId::from(scan.scan_id),
            )
            .await
            {
                Ok(()) => deleted += 1,
                Err(ScanError::Database(error)) if db::is_cut(&error) => return Err(error),
                Err(ScanError::Database(error)) => {
                    tracing::warn!(%error, "a scan that is too old was not deleted; the next pass goes on");
                }
                // Its caller was first, or has it run again.
                Err(_) => {}
            }
        }
        if deleted == before_these {
            return Ok(deleted);
        }
    }
}

/// Deletes alerts that fired before a time. Waits for no lock, as does the next: whoever deletes a monitor has its rows in another order.
async fn delete_alerts(pool: &PgPool, before: Timestamp) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from alerts where ctid = any (array(
             select ctid from alerts where fired_at < $1 order by fired_at limit $2 for update skip locked))",
        before.to_sqlx() as _,
        ROWS,
    );
    Ok(deleted.execute(pool).await?.rows_affected())
}

/// Deletes what became of slots before a time, but for what is still to be judged, and for each monitor's newest slot, which it shows.
async fn delete_slots(pool: &PgPool, before: Timestamp) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from monitor_slots where ctid = any (array(
             select s.ctid from monitor_slots s
             where s.slot < $1
               and (s.judged_at is not null or s.scan_id is null and s.outcome not in ('failed', 'overlap'))
               and exists (select from monitor_slots n
                           where n.tenant_id = s.tenant_id and n.monitor_id = s.monitor_id and n.slot > s.slot)
             order by s.slot limit $2 for update of s skip locked))",
        before.to_sqlx() as _,
        ROWS,
    );
    Ok(deleted.execute(pool).await?.rows_affected())
}

impl RetentionConfig {
    /// The time before which answers are too old; `None`: none ever is.
    fn answers_before(&self, now: Timestamp) -> Option<Timestamp> {
        before(now, self.answer_retention_days)
    }

    /// The time before which ended scans are too old.
    fn scans_before(&self, now: Timestamp) -> Option<Timestamp> {
        before(now, self.scan_retention_days)
    }

    /// The time before which alerts are too old.
    fn alerts_before(&self, now: Timestamp) -> Option<Timestamp> {
        before(now, self.alert_retention_days)
    }

    /// The time before which slots are too old: none of this calendar month or the last one is, because ceilings go by what these have cost.
    fn slots_before(&self, now: Timestamp) -> Option<Timestamp> {
        // No zone is a day away from UTC: neither the one where it is still the month before, nor the one where that began first.
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

fn before(now: Timestamp, days: u32) -> Option<Timestamp> {
    if days == 0 {
        None
    } else {
        now.checked_sub(SignedDuration::from_hours(24 * i64::from(days)))
            .ok()
    }
}
