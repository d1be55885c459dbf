//! Compares the marketplace's ledger of received calls with the attempts and results in the
//! database.

use std::collections::HashMap;
use std::fmt;

use farescan::ids::{AttemptId, ScanId};
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::upstream::ScriptedServer;
use crate::worker::fixture::WorkerFixture;

/// The figures of a comparison, for one line of a report.
#[derive(Debug, Default)]
pub struct LedgerCheck {
    /// Requests that the marketplace received.
    requests: usize,
    attempts: usize,
    lost: usize,
    /// Lost attempts of which nothing was sent.
    lost_unsent: usize,
    answers: i64,
    observations: i64,
    scans: i64,
    items: i64,
    /// Items that took an answer instead of being searched.
    reused: i64,
    /// Requests of synchronous searches, and those of them that are stored.
    synchronous: usize,
    recorded: usize,
}

impl fmt::Display for LedgerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            requests,
            attempts,
            lost,
            lost_unsent,
            answers,
            observations,
            scans,
            items,
            reused,
            synchronous,
            recorded,
        } = self;
        write!(
            f,
            "ledger: {requests} requests; database: {attempts} attempts ({lost} lost, {lost_unsent} of them unsent), {answers} answers, \
             {observations} observations, {items} items of {scans} scans, {reused} of them reused; they agree"
        )?;
        if *recorded > 0 {
            write!(
                f,
                " (besides {synchronous} requests of synchronous searches, {recorded} of them stored)"
            )?;
        }
        Ok(())
    }
}

/// Queries that count violations; each must return 0.
const VIOLATIONS: [(&str, &str); 13] = [
    ("an item was called more often than its scan allows",
     "select count(*) from (select a.item_id from attempts a join scans s using (tenant_id, scan_id)
                            group by a.item_id, s.max_attempts
                            -- An item of a confirmation is searched once more.
                            having count(*) > s.max_attempts * (1 + (select count(*) from monitor_slots m
                                cross join lateral jsonb_array_elements(m.confirmation -> 'prices') c
                                where c ->> 0 = 'itm_' || replace(a.item_id::text, '-', '')))) x"),
    ("an item's calls do not match its attempts",
     "select count(*) from scan_items i where i.calls <> (select count(*) from attempts a where (a.tenant_id, a.item_id) = (i.tenant_id, i.item_id))"),
    ("an item's requests do not match its attempts",
     "select count(*) from scan_items i
      where i.requests_spent <> (select coalesce(sum(a.requests_spent), 0) from attempts a where (a.tenant_id, a.item_id) = (i.tenant_id, i.item_id))"),
    ("a scan's requests do not match its items",
     "select count(*) from scans s
      where s.requests_spent <> (select sum(i.requests_spent) from scan_items i where (i.tenant_id, i.scan_id) = (s.tenant_id, s.scan_id))"),
    ("a scan's counters do not match its items",
     "select count(*) from scans s join lateral (
          select count(*) filter (where i.state = 'done' and i.search_status = 'ok') as ok,
                 count(*) filter (where i.state = 'done' and i.search_status = 'empty') as empty,
                 count(*) filter (where i.state = 'done' and i.search_status = 'partial') as partial,
                 count(*) filter (where i.state = 'done' and i.search_status = 'degraded') as degraded,
                 count(*) filter (where i.state = 'failed') as failed,
                 count(*) filter (where i.state = 'cancelled') as cancelled
          from scan_items i where (i.tenant_id, i.scan_id) = (s.tenant_id, s.scan_id)) n on true
      where (s.ok, s.empty, s.partial, s.degraded, s.failed, s.cancelled) <> (n.ok, n.empty, n.partial, n.degraded, n.failed, n.cancelled)"),
    ("a scan's status does not match its counters",
     "select count(*) from scans s
      where (s.finished_at is not null) <> (s.ok + s.empty + s.partial + s.degraded + s.failed + s.cancelled = s.total)
         or (s.status = 'completed' and s.partial + s.degraded + s.failed > 0)
         or (s.status = 'incomplete' and s.partial + s.degraded + s.failed = 0)"),
    ("a good attempt has no answer, or a lost one has",
     "select count(*) from attempts a
      left join (select item_id, number, count(*) as kept from answers group by 1, 2) w using (item_id, number)
      where coalesce(w.kept, 0) <> case when a.search_status in ('ok', 'partial') then 1 when a.reason = 'worker_lost' then 0 else coalesce(w.kept, 0) end
         or w.kept > 1"),
    ("an ended attempt does not have exactly one observation",
     "select count(*) from attempts a
      left join (select item_id, number, count(*) as seen from observations group by 1, 2) o using (item_id, number)
      where a.ended_at is not null and a.search_status is not null and coalesce(o.seen, 0) <> 1"),
    ("an item is done and was neither searched nor reused",
     "select count(*) from scan_items i where i.state = 'done' and i.calls = 0 and i.reused_from is null"),
    ("an item that took an answer is not complete, or has none",
     "select count(*) from scan_items i
      where i.reused_from is not null
        and (i.state, i.search_status) <> ('done', 'ok')
        and (i.state, i.search_status) <> ('done', 'empty')
         or i.reused_from is not null and i.search_status = 'ok'
            and 1 <> (select count(*) from answers a where (a.tenant_id, a.item_id, a.observed_at) = (i.tenant_id, i.item_id, i.observed_at))"),
    ("a scan's avoided requests do not match its items",
     "select count(*) from scans s
      where s.reused + s.joined <> (select count(*) from scan_items i
                                    where (i.tenant_id, i.scan_id) = (s.tenant_id, s.scan_id) and i.reused_from is not null)"),
    ("a day's usage of a scan does not match its attempts",
     "select count(*)
      from (select tenant_id, scan_id, (started_at at time zone 'UTC')::date as day, count(*) as attempts, sum(requests_spent) as billed,
                   count(*) filter (where search_status = 'ok') as ok, count(*) filter (where search_status = 'empty') as empty,
                   count(*) filter (where search_status = 'partial') as partial, count(*) filter (where search_status = 'degraded') as degraded
            from attempts where worker_id <> 0 group by 1, 2, 3) a
      full join (select * from daily_usage where scan_id is not null) u using (tenant_id, scan_id, day)
      where array[a.attempts, a.billed, a.ok, a.empty, a.partial, a.degraded] is distinct from
            array[u.attempts, u.billed, u.ok, u.empty, u.partial, u.degraded]
        and (a.attempts is not null or u.attempts > 0)"),
    ("a finished scan's key is not wiped",
     "select count(*) from scans s join key_grants g using (tenant_id, grant_id) where s.finished_at is not null and g.wiped_at is null"),
];

/// An attempt: its id, requests, whether it has ended, whether it was lost, and its worker. The
/// worker of a stored synchronous search is 0, and its id is not sent.
type StoredCall = (Uuid, i16, bool, bool, i64);

/// A call of a scan that its caller then deleted.
#[derive(Clone)]
pub struct DeletedCall(StoredCall);

impl DeletedCall {
    /// The calls of a scan that the caller will delete; `None` while some are in flight, or when the
    /// database does not answer.
    pub async fn of(pool: &PgPool, scan: ScanId) -> Option<Vec<Self>> {
        let calls = "select attempt_id, requests_spent, ended_at is not null, coalesce(reason = 'worker_lost', false), worker_id
                     from attempts where scan_id = $1";
        let calls: Vec<StoredCall> = sqlx::query_as(calls)
            .bind(scan.uuid())
            .fetch_all(pool)
            .await
            .ok()?;
        calls
            .iter()
            .all(|(_, _, ended, ..)| *ended)
            .then(|| calls.into_iter().map(Self).collect())
    }

    /// The requests that it cost; 0 of a single search that was stored, which has no worker.
    pub fn requests_of_scan(&self) -> i64 {
        if self.0.4 == 0 { 0 } else { self.0.1.into() }
    }
}

impl LedgerCheck {
    /// Compares and panics at the first difference. Call it only when nothing is in flight.
    pub async fn run(fixture: &WorkerFixture) -> Self {
        Self::run_on(&fixture.upstream, fixture.pool()).await
    }

    /// The same for any marketplace and database.
    pub async fn run_on(upstream: &ScriptedServer, pool: &PgPool) -> Self {
        Self::run_checks(upstream, pool, &VIOLATIONS, &[]).await
    }

    /// The same after retries by callers, which allow an item more calls, and after deletions of
    /// scans.
    pub async fn run_with_deleted(fixture: &WorkerFixture, deleted: &[DeletedCall]) -> Self {
        Self::run_checks(&fixture.upstream, fixture.pool(), &VIOLATIONS[1..], deleted).await
    }

    async fn run_checks(
        upstream: &ScriptedServer,
        pool: &PgPool,
        violations: &[(&str, &'static str)],
        deleted: &[DeletedCall],
    ) -> Self {
        let count = async |sql: &'static str| value!(pool, sql, => i64);
        for (what, sql) in violations {
            assert_eq!(count(sql).await, 0, "{what}");
        }
        let mut attempts: Vec<StoredCall> = rows!(
            pool,
            "select attempt_id, requests_spent, ended_at is not null, coalesce(reason = 'worker_lost', false), worker_id from attempts"
        );
        attempts.extend(deleted.iter().map(|call| call.0));
        let mut sent = HashMap::<String, usize>::new();
        let calls = upstream.calls();
        for call in &calls {
            // A synchronous search has a request id of another form.
            if call.header("x-request-id").starts_with("att_") {
                *sent
                    .entry(call.header("x-request-id").to_owned())
                    .or_default() += 1;
            }
        }
        let synchronous = calls.len() - sent.values().sum::<usize>();
        let mut ledger = Self {
            requests: sent.values().sum(),
            synchronous,
            attempts: attempts.len(),
            ..Self::default()
        };
        for (attempt, spent, ended, lost, worker) in attempts {
            let name = AttemptId::from(attempt).to_string();
            let requests = sent.remove(&name).unwrap_or_default();
            let spent = usize::try_from(spent).unwrap();
            if worker == 0 && requests == 0 && !lost {
                ledger.attempts -= 1;
                ledger.recorded += spent;
                continue;
            }
            assert!(ended, "{name} is recorded as in flight, but nothing is");
            if lost {
                ledger.lost += 1;
                ledger.lost_unsent += usize::from(requests == 0);
                assert!(
                    requests <= spent,
                    "{name}, lost: {requests} requests were sent and {spent} are on record"
                );
            } else {
                assert_eq!(
                    requests, spent,
                    "{name}: requests sent and requests on record"
                );
            }
        }
        assert!(sent.is_empty(), "sent without being on record: {sent:?}");
        assert!(
            ledger.recorded <= ledger.synchronous,
            "more synchronous searches are stored than were sent: {ledger}"
        );
        ledger.answers = count("select count(*) from answers").await;
        ledger.observations = count("select count(*) from observations").await;
        ledger.scans = count("select count(*) from scans").await;
        ledger.items = count("select count(*) from scan_items").await;
        ledger.reused =
            count("select count(*) from scan_items where reused_from is not null").await;
        ledger
    }

    /// Panics if callers were shown a higher cost of synchronous searches than was sent.
    pub fn assert_synchronous_at_least(&self, reported: usize) {
        assert!(
            reported <= self.synchronous,
            "callers were shown {reported} requests of synchronous searches: {self}"
        );
    }

    /// Panics if a call was lost.
    pub fn without_losses(self) -> Self {
        assert_eq!(self.lost, 0, "{self}");
        self
    }
}
