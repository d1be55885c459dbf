//! What the books must say after a round of [`super::life`], besides
//! [`crate::faults::ledger::LedgerCheck`], and how long an item waited in vain.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::PgPool;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Queries that count violations; each must return 0.
const VIOLATIONS: [(&str, &str); 7] = [
    ("a scan's items are not billed, reused, not searched or without a call",
     "select count(*) from scans s
      where s.total <> (select count(*) filter (where i.reused_from is not null)
                             + count(*) filter (where i.reused_from is null and i.calls > 0)
                             + count(*) filter (where i.reused_from is null and i.calls = 0 and i.state in ('cancelled', 'failed'))
                        from scan_items i where (i.tenant_id, i.scan_id) = (s.tenant_id, s.scan_id))"),
    ("an answer was reused by another caller",
     "select count(*) from scan_items i join scan_items o on o.item_id = i.reused_item where o.tenant_id <> i.tenant_id"),
    ("a caller holds offers that were sold to another",
     "select count(*) from (select tenant_id from item_offers where seller is not null group by 1 having count(distinct seller) > 1) t"),
    ("a search was sent while an equal one was in flight",
     // Not: calls of a process that was stopped for longer than its lease, and further attempts.
     "select count(*) from (
          select a.tenant_id, a.item_id, a.number, a.attempt_id, a.started_at, a.ended_at, a.reason, i.body, s.endpoint
          from attempts a join scan_items i using (tenant_id, item_id) join scans s on (s.tenant_id, s.scan_id) = (a.tenant_id, a.scan_id)
          where s.max_age is not null and not s.verbatim and a.worker_id <> 0 and a.number = 1 and i.earlier is null) a
      join (select a.tenant_id, a.item_id, a.number, a.attempt_id, a.started_at, i.body, s.endpoint
            from attempts a join scan_items i using (tenant_id, item_id) join scans s on (s.tenant_id, s.scan_id) = (a.tenant_id, a.scan_id)
            where s.max_age is not null and not s.verbatim and a.worker_id <> 0 and a.number = 1 and i.earlier is null) b
        on (a.tenant_id, a.endpoint, a.body) = (b.tenant_id, b.endpoint, b.body) and a.item_id <> b.item_id
      where b.started_at > a.started_at and b.started_at < a.ended_at
        and a.reason is distinct from 'worker_lost' and a.ended_at - a.started_at < interval '2 seconds'"),
    ("something waits for a search, and nothing is open",
     "select count(*) from shared_searches where waits"),
    ("an ended question is not decided",
     "select count(*) from scan_strategies t join scans s using (tenant_id, scan_id) where s.finished_at is not null and not t.settled"),
    ("a slot has no outcome for its rules, or a scan two slots",
     "select (select count(*) from monitor_slots where evaluated_at is null and scan_id is not null)
           + (select count(*) - count(distinct scan_id) from monitor_slots where scan_id is not null)"),
];

pub async fn check(pool: &PgPool) {
    for (what, sql) in VIOLATIONS {
        assert_eq!(value!(pool, sql, => i64), 0, "{what}");
    }
}

/// Items that wait for another's search though no equal one is in flight any more, while neither
/// their scan nor their lane is paused.
const WAITING_IN_VAIN: &str = "select r.item_id
    from shared_searches r
    join scan_items i using (tenant_id, item_id)
    join scans s on (s.tenant_id, s.scan_id) = (i.tenant_id, i.scan_id) and s.status in ('queued', 'running')
    join lanes l on (l.tenant_id, l.api) = (i.tenant_id, i.api) and l.paused_until is null and l.pause_reason is null
    where r.waits and i.state = 'delayed'
      and not exists (select from shared_searches k join scan_items j using (tenant_id, item_id)
                      where k.tenant_id = r.tenant_id and k.search_key = r.search_key and k.item_id <> r.item_id and j.state = 'calling')";
/// The time from one sample to the next. What it takes longer is not counted: the database is not
/// there, or the machine has no time for anybody.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);

/// The longest that an item may wait for an answer that is there. Without a sweep it would be a minute.
pub const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The longest that an item waited after the answer was there, or after the search had ended
/// without one.
pub async fn longest_wait(pool: PgPool, stop: CancellationToken) -> Duration {
    let (mut waits, mut longest) = (HashMap::<Uuid, Duration>::new(), Duration::ZERO);
    // Later the database may be away; here an error is one of the statement.
    let _: Vec<Uuid> = values!(&pool, WAITING_IN_VAIN);
    while !stop.is_cancelled() {
        sleep(SAMPLE_EVERY).await;
        let seen = sqlx::query_scalar::<_, Uuid>(WAITING_IN_VAIN)
            .fetch_all(&pool)
            .await;
        let Ok(seen) = seen else {
            continue;
        };
        let mut still = HashMap::new();
        for item in seen {
            // The first time that it is seen begins its wait.
            let wait = waits
                .get(&item)
                .map_or(Duration::ZERO, |wait| *wait + SAMPLE_EVERY);
            longest = longest.max(wait);
            still.insert(item, wait);
        }
        waits = still;
    }
    longest
}
