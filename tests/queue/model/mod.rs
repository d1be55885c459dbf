//! The queue's operations in random order on a real Postgres, against a small model that predicts
//! every row.
//!
//! One step at a time (`races` runs them concurrently). After each step, items, attempts and scans
//! equal the model's, and the model's own invariants hold. `FARESCAN_SEED` repeats a failed run.

mod predict;

use farescan::ids::{AttemptId, ItemId, ScanId};
use farescan::queue::pause_scan::{PauseCause, pause_scan};
use farescan::queue::store::{self, CallRecord, ClaimResult, LaneClaims};
use farescan::queue::{Claim, WorkerId};
use farescan::scans::control::{pause, resume};
use farescan::scans::{cancel, retry};
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use uuid::Uuid;

use predict::{CallOutcome, QueueModel};

use super::fixture::{degraded, done, ok, rejected};
use crate::worker::fixture::WorkerFixture;

/// Enough for a scan to end, be retried and end again.
const STEPS: usize = 70;

struct ModelRun {
    fixture: WorkerFixture,
    rng: StdRng,
    model: QueueModel,
    workers: Vec<WorkerId>,
    /// Every claim so far, the newest last: an operation on an old one must have no wrong effect.
    claims: Vec<Claim>,
}

#[tokio::test(flavor = "multi_thread")]
async fn after_random_steps_every_row_matches_the_model() {
    let seed = crate::faults::seed();
    let rounds = if std::env::var_os("FARESCAN_SOAK").is_some() {
        200
    } else {
        8
    };
    for round in 0..rounds {
        let mut run = ModelRun::begin(seed.wrapping_add(round)).await;
        let mut steps = Vec::new();
        for _ in 0..STEPS {
            steps.push(run.step().await);
            let (seen, expected) = (run.rows().await, run.model.rows());
            assert_eq!(
                seen,
                expected,
                "FARESCAN_SEED={} after {steps:#?}",
                seed.wrapping_add(round)
            );
            run.model.check();
        }
    }
}

impl ModelRun {
    async fn begin(seed: u64) -> Self {
        let fixture = WorkerFixture::new().await;
        let mut run = Self {
            fixture,
            rng: StdRng::seed_from_u64(seed),
            model: QueueModel::default(),
            workers: Vec::new(),
            claims: Vec::new(),
        };
        for _ in 0..2 {
            let worker = run.worker().await;
            run.workers.push(worker);
        }
        // Until the marketplace has accepted the key, the caller may have one scan.
        run.submit(1, 1, None).await;
        run.claim(0, 1).await;
        run.begin_calls(1).await;
        run.record(run.claims[0], CallOutcome::Ok, 1).await;
        assert_eq!(run.rows().await, run.model.rows());
        run.submit(4, 2, Some(5)).await;
        run.submit(3, 1, None).await;
        run
    }

    async fn worker(&self) -> WorkerId {
        let id = "insert into workers (lease_until) values (clock_timestamp() + interval '1 hour') returning worker_id";
        WorkerId(value!(self.fixture.pool(), id))
    }

    /// Runs one random step and returns its description.
    async fn step(&mut self) -> String {
        let scans = self.model.scans();
        let scan = *scans.choose(&mut self.rng).unwrap();
        match self.rng.random_range(0..100) {
            0..4 if scans.len() < 6 => {
                let (items, attempts) = (self.rng.random_range(1..5), self.rng.random_range(1..4));
                let max = self
                    .rng
                    .random_bool(0.5)
                    .then(|| items + self.rng.random_range(0..3));
                self.submit(items, attempts, max).await
            }
            0..25 => {
                let (worker, slots) = (self.rng.random_range(0..2), self.rng.random_range(1..5));
                self.claim(worker, slots).await
            }
            25..45 => {
                let count = self.rng.random_range(1..5);
                self.begin_calls(count).await
            }
            45..50 => self.reserve_retry().await,
            50..72 => {
                let Some(claim) = self.recent() else {
                    return "nothing to record".to_owned();
                };
                let end = *CallOutcome::ALL.choose(&mut self.rng).unwrap();
                let billed = self.rng.random_range(0..3);
                let description = self.record(claim, end, billed).await;
                if self.rng.random_bool(0.2) {
                    self.record(claim, CallOutcome::Ok, 1).await + " twice"
                } else {
                    description
                }
            }
            72..79 => {
                let mut claims: Vec<_> = (0..2).filter_map(|_| self.recent()).collect();
                // A process abandons a claim once.
                claims.dedup();
                let unsent = self.rng.random_bool(0.3);
                self.abandon(&claims, unsent).await
            }
            79..82 => self.expire_worker().await,
            82..87 => self.release().await,
            87..89 => {
                let paused = pause_scan(
                    self.fixture.pool(),
                    self.fixture.tenant().await,
                    scan,
                    &PauseCause::BudgetSpent,
                )
                .await
                .unwrap();
                assert_eq!(paused, self.model.pause_for_budget(scan));
                format!("pause for budget {scan}: {paused}")
            }
            89..92 => {
                let is_ok = pause::pause(self.fixture.context(), scan).await.is_ok();
                assert_eq!(is_ok, self.model.pause(scan), "pause {scan}");
                format!("pause {scan}: {is_ok}")
            }
            92..97 => {
                let is_ok =
                    resume::resume(self.fixture.context(), scan, &serde_json::Map::new(), None)
                        .await
                        .is_ok();
                assert_eq!(is_ok, self.model.resume(scan), "resume {scan}");
                format!("resume {scan}: {is_ok}")
            }
            97..98 => {
                let is_ok = cancel::cancel(self.fixture.context(), scan).await.is_ok();
                assert_eq!(is_ok, self.model.cancel(scan), "cancel {scan}");
                format!("cancel {scan}: {is_ok}")
            }
            _ => {
                let body = json!({"search_status": ["degraded", "failed"]});
                let is_ok = retry::retry(
                    self.fixture.context(),
                    scan,
                    body.as_object().unwrap(),
                    None,
                )
                .await
                .is_ok();
                assert_eq!(is_ok, self.model.retry(scan), "retry {scan}");
                format!("retry {scan}: {is_ok}")
            }
        }
    }

    /// A random claim, mostly a recent one.
    fn recent(&mut self) -> Option<Claim> {
        let from = if self.rng.random_bool(0.85) {
            self.claims.len().saturating_sub(8)
        } else {
            0
        };
        self.claims[from..].choose(&mut self.rng).copied()
    }

    async fn submit(&mut self, items: i32, attempts: i32, max: Option<i32>) -> String {
        let mut more = json!({"retry": {"max_attempts": attempts, "delay_seconds": 1}});
        if let Some(max) = max {
            more["max_requests"] = json!(max);
        }
        let scan = self.fixture.submit(items.into(), &more).await;
        // A retry is due at once.
        execute!(self.fixture.pool(), "update scans set retry_delay = '0'");
        let rows: Vec<(Uuid, i32)> = rows!(
            self.fixture.pool(),
            "select item_id, position from scan_items where scan_id = $1",
            scan.uuid()
        );
        self.model.submit(
            scan,
            attempts,
            max,
            rows.into_iter()
                .map(|(item, position)| (item.into(), position)),
        );
        format!("submit {scan}: {items} items, {attempts} attempts, at most {max:?}")
    }

    async fn claim(&mut self, worker: usize, slots: usize) -> String {
        let worker = self.workers[worker];
        // Pending items are claimed at the latest at the timer's next poll.
        for poll in 0.. {
            let ClaimResult::Claims(claims, wait_ms) =
                store::claim(self.fixture.pool(), worker, slots)
                    .await
                    .unwrap()
            else {
                panic!("a live worker is fenced");
            };
            if claims.is_empty() && self.model.has_work() {
                assert!(
                    poll < 100,
                    "pending items are not claimed: {:#?}",
                    self.model.rows()
                );
                tokio::time::sleep(std::time::Duration::from_millis(wait_ms.max(1))).await;
                continue;
            }
            for claimed in &claims {
                self.model.claimed(claimed.claim);
                self.claims.push(claimed.claim);
            }
            return format!("{worker:?} claims {} of {slots}", claims.len());
        }
        unreachable!("it polls until items are claimed")
    }

    async fn begin_calls(&mut self, count: usize) -> String {
        let mut claims: Vec<_> = (0..count).filter_map(|_| self.recent()).collect();
        claims.sort_unstable_by_key(|claim| (claim.item, claim.number));
        // A process begins a claim once, but may have several claims of one item, the older ones
        // from before a pause.
        claims.dedup();
        let calls: Vec<_> = claims
            .iter()
            .map(|claim| (*claim, AttemptId::new()))
            .collect();
        let expected = self.model.begin(&claims);
        for _ in 0..2 {
            let verdicts = store::begin(self.fixture.pool(), &calls, &[], Timestamp::now())
                .await
                .unwrap();
            // A repeated begin may be refused for another reason; calls that have begun stay begun.
            let begun = |verdict: &store::BeginVerdict| *verdict == store::BeginVerdict::Begun;
            assert_eq!(
                verdicts.iter().map(begun).collect::<Vec<_>>(),
                expected.iter().map(begun).collect::<Vec<_>>()
            );
        }
        format!("begin {claims:?}: {expected:?}")
    }

    async fn reserve_retry(&mut self) -> String {
        let Some(claim) = self.recent() else {
            return "no retry to reserve".to_owned();
        };
        let taken = store::reserve_retry(self.fixture.pool(), claim)
            .await
            .unwrap();
        assert_eq!(taken, self.model.reserve_retry(claim), "{claim:?}");
        format!("reserve retry of {claim:?}: {taken}")
    }

    async fn record(&mut self, claim: Claim, end: CallOutcome, billed: u16) -> String {
        let call = CallRecord {
            billed,
            ..Self::finished(claim, end)
        };
        let mut tx = farescan::db::begin(self.fixture.pool()).await.unwrap();
        let open = store::open_calls(&mut tx, &[&call]).await.unwrap();
        store::record_calls(&mut tx, &[(&call, None)], &open, Timestamp::now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(
            !open.numbers.is_empty(),
            self.model.record(claim, end, billed.into()),
            "record {claim:?} {end:?}"
        );
        format!(
            "record {claim:?} {end:?}, {billed} billed: {}",
            !open.numbers.is_empty()
        )
    }

    fn finished(claim: Claim, end: CallOutcome) -> CallRecord {
        match end {
            CallOutcome::Ok => ok(claim),
            CallOutcome::Empty => done(claim, farescan::contract::SearchStatus::Empty),
            CallOutcome::Degraded => degraded(claim),
            CallOutcome::Failed => CallRecord {
                ending: store::CallEnding::Failed,
                search_status: None,
                may_retry: false,
                ..degraded(claim)
            },
            CallOutcome::KeyRejected => rejected(claim),
        }
    }

    async fn abandon(&mut self, claims: &[Claim], unsent: bool) -> String {
        let lane = LaneClaims {
            tenant: self.fixture.tenant().await,
            api: "flights".to_owned(),
            items: claims.iter().map(|claim| claim.item.uuid()).collect(),
            numbers: claims.iter().map(|claim| claim.number).collect(),
        };
        if unsent {
            store::withdraw_unsent(self.fixture.pool(), &lane)
                .await
                .unwrap();
            self.model.withdraw_unsent(claims);
        }
        let lost = store::abandon(self.fixture.pool(), &lane, Timestamp::now())
            .await
            .unwrap()
            .len();
        assert_eq!(lost, self.model.abandon(claims), "abandon {claims:?}");
        format!("abandon {claims:?}, unsent: {unsent}: {lost} lost")
    }

    async fn expire_worker(&mut self) -> String {
        let at = self.rng.random_range(0..2);
        let fresh = self.worker().await;
        let dead = std::mem::replace(&mut self.workers[at], fresh);
        execute!(
            self.fixture.pool(),
            "update workers set lease_until = clock_timestamp() - interval '1 s' where worker_id = $1",
            dead.0
        );
        execute!(self.fixture.pool(), "select expire_workers('0')");
        for lane in
            store::orphaned_claims(self.fixture.pool(), 1_000, &store::LockedLanes::default())
                .await
                .unwrap()
        {
            store::abandon(self.fixture.pool(), &lane, Timestamp::now())
                .await
                .unwrap();
        }
        self.model.expire_worker(dead);
        assert!(matches!(
            store::claim(self.fixture.pool(), dead, 1).await.unwrap(),
            ClaimResult::Fenced
        ));
        format!("expire {dead:?}")
    }

    async fn release(&mut self) -> String {
        let tenant = self.fixture.tenant().await.uuid();
        let moved: i64 = value!(
            self.fixture.pool(),
            "select release_delayed(now(), $1, 'flights', 1000)",
            tenant
        );
        assert_eq!(usize::try_from(moved).unwrap(), self.model.release());
        format!("release {moved}")
    }

    /// All items, attempts and scans, in the format of [`QueueModel::rows`].
    async fn rows(&self) -> Vec<String> {
        let mut rows = Vec::new();
        let items: Vec<(Uuid, String)> = rows!(self.fixture.pool(), "select item_id, concat_ws(' ', state, attempt, calls, counted_calls, requests_spent, search_status, reason,
                                       case when worker_id is not null then 'of ' || worker_id end)
             from scan_items order by item_id");
        rows.extend(
            items
                .into_iter()
                .map(|(item, row)| format!("{}: {row}", ItemId::from(item))),
        );
        let attempts: Vec<(Uuid, i32, String)> = rows!(self.fixture.pool(), "select item_id, number, concat_ws(' ', requests_spent, case when ended_at is null then 'open' end, search_status, reason)
             from attempts order by item_id, number");
        rows.extend(
            attempts
                .into_iter()
                .map(|(item, number, row)| format!("{} {number}: {row}", ItemId::from(item))),
        );
        let scans: Vec<(Uuid, String)> = rows!(self.fixture.pool(), "select scan_id, concat_ws(' ', status, status_reason, ok, empty, partial, degraded, failed, cancelled, requests_spent,
                                       case when finished_at is not null then 'finished' end)
             from scans order by scan_id");
        rows.extend(
            scans
                .into_iter()
                .map(|(scan, row)| format!("{}: {row}", ScanId::from(scan))),
        );
        rows
    }
}
