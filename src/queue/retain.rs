//! Room for what comes, and an end for what is old: partitions made ahead, and those taken away that hold nothing young enough.
//!
//! Any process, one at a time, a little in each pass; what is left waits for the next. Nothing here locks a table that is in use for
//! long: a partition is taken off concurrently, and only then dropped. What a pass began is on record, so that any other goes on with it.
//!
//! What an operator keeps he decides (`RetentionConfig`): whole answers for 90 days, scans and observations for good unless told otherwise.

use std::time::Duration;

use jiff::{SignedDuration, Span, Timestamp, tz::TimeZone};
use jiff_sqlx::ToSqlx as _;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::config::RetentionConfig;
use crate::ids::{ScanId, TenantId};
use crate::scans::ScanError;
use crate::scans::control::delete;

/// Partitions are there this many months before they are needed.
const MONTHS_AHEAD: i32 = 2;
/// The most scans of one pass, and how long it may go on with them.
const SCANS: i64 = 200;
const SCANS_TIME: Duration = Duration::from_secs(10);

/// What a pass took away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retired {
    /// Partitions, by name.
    pub partitions: Vec<String>,
    /// Scans that ended long ago.
    pub scans: u64,
}

/// Makes room and takes away until `stop`.
pub(super) async fn run(pool: PgPool, config: RetentionConfig, stop: CancellationToken) {
    let keeping = async {
        loop {
            let now = Timestamp::now();
            if let Err(error) = make_ahead(&pool, now).await {
                tracing::error!(%error, "partitions could not be made ahead; it is tried again");
            }
            match retire(&pool, &config, now).await {
                Ok(retired) if retired == Retired::default() => {}
                Ok(Retired { partitions, scans }) => tracing::info!(?partitions, scans, "what is too old was taken away"),
                Err(error) => tracing::warn!(%error, "what is too old was not all taken away; the next pass goes on"),
            }
            sleep(config.upkeep()).await;
        }
    };
    stop.run_until_cancelled(keeping).await;
}

/// Makes the partitions of this month and the next ones, where they are not there yet.
///
/// # Errors
/// When the database does not answer.
pub async fn make_ahead(pool: &PgPool, now: Timestamp) -> sqlx::Result<()> {
    sqlx::query!("select from make_partitions($1, $2)", now.to_sqlx() as _, MONTHS_AHEAD).execute(pool).await?;
    Ok(())
}

/// Makes the partition of one month, however long ago: for an answer that a spool held.
pub(super) async fn make_for(pool: &PgPool, time: Timestamp) -> sqlx::Result<()> {
    sqlx::query!("select from make_partitions($1, 0)", time.to_sqlx() as _).execute(pool).await?;
    Ok(())
}

/// Takes away what is too old at `now`: of each table at most one partition, and some scans. Does nothing while another process is at it.
///
/// # Errors
/// When the database does not answer, or somebody holds what is to be taken away; what is done stays done.
pub async fn retire(pool: &PgPool, config: &RetentionConfig, now: Timestamp) -> sqlx::Result<Retired> {
    // A connection of its own: the lock is its session's, and goes with it whatever becomes of this pass.
    let mut conn = pool.acquire().await?.detach();
    let mine = sqlx::query_scalar!(r#"select pg_try_advisory_lock(hashtextextended('farescan.retention', 0)) as "mine!""#);
    if !mine.fetch_one(&mut conn).await? {
        conn.close().await?;
        return Ok(Retired::default());
    }
    let mut retired = Retired::default();
    for begun in sqlx::query!("select partition, parent from retiring_partitions order by partition").fetch_all(&mut conn).await?
    {
        finish(&mut conn, &begun.parent, &begun.partition).await?;
        retired.partitions.push(begun.partition);
    }
    let (answers, observations) = (config.answers_before(now), config.observations_before(now));
    for (parent, before) in [("answers", answers), ("observations", observations), ("observed_days", observations)] {
        if let Some(before) = before {
            retired.partitions.extend(retire_oldest(&mut conn, parent, before, now).await?);
        }
    }
    // Said, because a session outlives its connection by some moments.
    sqlx::query!("select from pg_advisory_unlock(hashtextextended('farescan.retention', 0))").execute(&mut conn).await?;
    conn.close().await?;
    if let Some(before) = config.scans_before(now) {
        retired.scans = delete_ended(pool, before).await?;
    }
    Ok(retired)
}

/// Takes away the oldest partition, if all of it is older than `before`.
async fn retire_oldest(conn: &mut PgConnection, parent: &str, before: Timestamp, now: Timestamp) -> sqlx::Result<Option<String>> {
    let oldest = sqlx::query_scalar!(
        r#"insert into retiring_partitions (partition, parent, retired_at)
           select partition, $1, $3 from partitions_before($1, $2) where not is_pending order by ends_at limit 1
           returning partition"#,
        parent,
        before.to_sqlx() as _,
        now.to_sqlx() as _,
    );
    let Some(partition) = oldest.fetch_optional(&mut *conn).await? else { return Ok(None) };
    finish(conn, parent, &partition).await?;
    Ok(Some(partition))
}

/// Carries on from whichever step the partition is at, to the last.
async fn finish(conn: &mut PgConnection, parent: &str, partition: &str) -> sqlx::Result<()> {
    let steps = sqlx::query!(
        r#"select format('alter table %I detach partition %I ', $1::text, c.relname)
                  || case when i.inhdetachpending then 'finalize' else 'concurrently' end as detach,
                  format('drop table %I', c.relname) as "drop!", i.inhrelid is not null as "is_attached!"
           from pg_class c left join pg_inherits i on i.inhrelid = c.oid and i.inhparent = to_regclass($1)
           where c.oid = to_regclass(quote_ident($2))"#,
        parent,
        partition,
    );
    // Nothing: it was dropped, and its process died before it said so.
    if let Some(step) = steps.fetch_optional(&mut *conn).await? {
        if let Some(detach) = step.detach.filter(|_| step.is_attached) {
            // As one statement by itself: it is two transactions.
            sqlx::raw_sql(AssertSqlSafe(detach)).execute(&mut *conn).await?;
        }
        sqlx::raw_sql(AssertSqlSafe(step.drop)).execute(&mut *conn).await?;
    }
    sqlx::query!("delete from retiring_partitions where partition = $1", partition).execute(conn).await?;
    Ok(())
}

/// Deletes scans that ended before a time, each as its caller would. What they had cost stays in the usage, what they saw in the history.
async fn delete_ended(pool: &PgPool, before: Timestamp) -> sqlx::Result<u64> {
    let (until, mut deleted) = (Instant::now() + SCANS_TIME, 0);
    let old = sqlx::query!(
        r#"select tenant_id, scan_id from scans where finished_at < $1 order by finished_at limit $2"#,
        before.to_sqlx() as _,
        SCANS
    );
    for scan in old.fetch_all(pool).await? {
        if Instant::now() >= until {
            break;
        }
        match delete::ended(pool, TenantId::from(scan.tenant_id), ScanId::from(scan.scan_id)).await {
            Ok(()) => deleted += 1,
            Err(ScanError::Database(error)) => return Err(error),
            // Its caller was first, or has it run again.
            Err(_) => {}
        }
    }
    Ok(deleted)
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

    /// The time before which observations are too old.
    fn observations_before(&self, now: Timestamp) -> Option<Timestamp> {
        if self.observation_retention_months == 0 {
            return None;
        }
        let span = Span::new().try_months(i64::from(self.observation_retention_months)).ok()?;
        Some(now.to_zoned(TimeZone::UTC).checked_sub(span).ok()?.timestamp())
    }
}

fn before(now: Timestamp, days: u32) -> Option<Timestamp> {
    if days == 0 { None } else { now.checked_sub(SignedDuration::from_hours(24 * i64::from(days))).ok() }
}
