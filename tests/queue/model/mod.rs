//! The queue's moves in random order on a real Postgres, against a small model that predicts every row.
//!
//! One move at a time (`races` has them at the same time): after each, items, attempts and scans are exactly what the model says, and the
//! model's own invariants hold. A seed that failed is repeated with `FARESCAN_SEED`.

mod predict;

use farescan::ids::{AttemptId, ItemId, ScanId};
use farescan::queue::hold::{Cause, hold_scan};
use farescan::queue::store::{self, FinishedCall, LaneClaims, Visit};
use farescan::queue::{Claim, WorkerId};
use farescan::scans::control::{pause, resume};
use farescan::scans::{cancel, retry};
use jiff::Timestamp;
use predict::{End, Model};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use uuid::Uuid;

use super::yard::{degraded, done, ok, rejected};
use crate::worker::stage::Stage;

/// Enough for a scan to end, be retried and end again.
const MOVES: usize = 70;

struct Trial {
    stage: Stage,
    dice: StdRng,
    model: Model,
    workers: Vec<WorkerId>,
    /// Every claim that was ever given, the newest last: acting on an old one must do nothing wrong.
    claims: Vec<Claim>,
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_done_in_whatever_order_every_row_is_as_predicted() {
    let seed = crate::faults::seed();
    let rounds = if std::env::var_os("FARESCAN_SOAK").is_some() {
        200
    } else {
        8
    };
    for round in 0..rounds {
        let mut trial = Trial::begin(seed.wrapping_add(round)).await;
        let mut moves = Vec::new();
        for _ in 0..MOVES {
            moves.push(trial.step().await);
            let (seen, expected) = (trial.rows().await, trial.model.rows());
            assert_eq!(
                seen,
                expected,
                "FARESCAN_SEED={} after {moves:#?}",
                seed.wrapping_add(round)
            );
            trial.model.check();
        }
    }
}

impl Trial {
    async fn begin(seed: u64) -> Self {
        let stage = Stage::new().await;
        let mut trial = Self {
            stage,
            dice: StdRng::seed_from_u64(seed),
            model: Model::default(),
            workers: Vec::new(),
            claims: Vec::new(),
        };
        for _ in 0..2 {
            let worker = trial.worker().await;
            trial.workers.push(worker);
        }
        // Until the marketplace has accepted the key there is one scan.
        trial.submit(1, 1, None).await;
        trial.claim(0, 1).await;
        trial.begin_calls(1).await;
        trial.record(trial.claims[0], End::Ok, 1).await;
        assert_eq!(trial.rows().await, trial.model.rows());
        trial.submit(4, 2, Some(5)).await;
        trial.submit(3, 1, None).await;
        trial
    }

    async fn worker(&self) -> WorkerId {
        let id = "insert into workers (lease_until) values (clock_timestamp() + interval '1 hour') returning worker_id";
        WorkerId(
            sqlx::query_scalar(id)
                .fetch_one(self.stage.pool())
                .await
                .unwrap(),
        )
    }

    /// One move; gives what it was.
    async fn step(&mut self) -> String {
        let scans = self.model.scans();
        let scan = *scans.choose(&mut self.dice).unwrap();
        match self.dice.random_range(0..100) {
            0..4 if scans.len() < 6 => {
                let (items, attempts) =
                    (self.dice.random_range(1..5), self.dice.random_range(1..4));
                let max = self
                    .dice
                    .random_bool(0.5)
                    .then(|| items + self.dice.random_range(0..3));
                self.submit(items, attempts, max).await
            }
            0..25 => {
                let (worker, slots) = (self.dice.random_range(0..2), self.dice.random_range(1..5));
                self.claim(worker, slots).await
            }
            25..45 => {
                let count = self.dice.random_range(1..5);
                self.begin_calls(count).await
            }
            45..50 => self.second_place().await,
            50..72 => {
                let Some(claim) = self.recent() else {
                    return "nothing to record".to_owned();
                };
                let end = *End::ALL.choose(&mut self.dice).unwrap();
                let billed = self.dice.random_range(0..3);
                let said = self.record(claim, end, billed).await;
                if self.dice.random_bool(0.2) {
                    self.record(claim, End::Ok, 1).await + " twice"
                } else {
                    said
                }
            }
            72..79 => {
                let mut claims: Vec<_> = (0..2).filter_map(|_| self.recent()).collect();
                // A process drops a claim once.
                claims.dedup();
                let unsent = self.dice.random_bool(0.3);
                self.give_up(&claims, unsent).await
            }
            79..82 => self.bury().await,
            82..87 => self.release().await,
            87..89 => {
                let held = hold_scan(
                    self.stage.pool(),
                    self.stage.tenant().await,
                    scan,
                    &Cause::BudgetSpent,
                )
                .await
                .unwrap();
                assert_eq!(held, self.model.hold(scan));
                format!("hold {scan}: {held}")
            }
            89..92 => {
                let went = pause::pause(self.stage.desk(), scan).await.is_ok();
                assert_eq!(went, self.model.pause(scan), "pause {scan}");
                format!("pause {scan}: {went}")
            }
            92..97 => {
                let went = resume::resume(self.stage.desk(), scan, &serde_json::Map::new(), None)
                    .await
                    .is_ok();
                assert_eq!(went, self.model.resume(scan), "resume {scan}");
                format!("resume {scan}: {went}")
            }
            97..98 => {
                let went = cancel::cancel(self.stage.desk(), scan).await.is_ok();
                assert_eq!(went, self.model.cancel(scan), "cancel {scan}");
                format!("cancel {scan}: {went}")
            }
            _ => {
                let body = json!({"search_status": ["degraded", "failed"]});
                let went = retry::retry(self.stage.desk(), scan, body.as_object().unwrap(), None)
                    .await
                    .is_ok();
                assert_eq!(went, self.model.retry(scan), "retry {scan}");
                format!("retry {scan}: {went}")
            }
        }
    }

    /// A claim, mostly one of the last.
    fn recent(&mut self) -> Option<Claim> {
        let from = if self.dice.random_bool(0.85) {
            self.claims.len().saturating_sub(8)
        } else {
            0
        };
        self.claims[from..].choose(&mut self.dice).copied()
    }

    async fn submit(&mut self, items: i32, attempts: i32, max: Option<i32>) -> String {
        let mut more = json!({"retry": {"max_attempts": attempts, "delay_seconds": 1}});
        if let Some(max) = max {
            more["max_requests"] = json!(max);
        }
        let scan = self.stage.submit(items.into(), &more).await;
        // A retry is due at once.
        sqlx::query("update scans set retry_delay = '0'")
            .execute(self.stage.pool())
            .await
            .unwrap();
        let rows: Vec<(Uuid, i32)> =
            sqlx::query_as("select item_id, position from scan_items where scan_id = $1")
                .bind(scan.uuid())
                .fetch_all(self.stage.pool())
                .await
                .unwrap();
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
        // What is pending is found, at the latest by the timer's next look.
        for look in 0.. {
            let Visit::Claims(claims, wait_ms) = store::claim(self.stage.pool(), worker, slots)
                .await
                .unwrap()
            else {
                panic!("a live worker is fenced");
            };
            if claims.is_empty() && self.model.has_work() {
                assert!(
                    look < 100,
                    "pending items are not found: {:#?}",
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
        unreachable!("it looks until it finds")
    }

    async fn begin_calls(&mut self, count: usize) -> String {
        let mut claims: Vec<_> = (0..count).filter_map(|_| self.recent()).collect();
        claims.sort_unstable_by_key(|claim| (claim.item, claim.number));
        // A process begins a claim once, but it may have several claims of one item: the older ones of before a pause.
        claims.dedup();
        let asked: Vec<_> = claims
            .iter()
            .map(|claim| (*claim, AttemptId::new()))
            .collect();
        let expected = self.model.begin(&claims);
        for _ in 0..2 {
            let verdicts = store::begin(self.stage.pool(), &asked, Timestamp::now())
                .await
                .unwrap();
            // Asked again, what was refused may have become refused for another reason; what has begun has begun.
            let begun = |verdict: &store::Verdict| *verdict == store::Verdict::Begun;
            assert_eq!(
                verdicts.iter().map(begun).collect::<Vec<_>>(),
                expected.iter().map(begun).collect::<Vec<_>>()
            );
        }
        format!("begin {claims:?}: {expected:?}")
    }

    async fn second_place(&mut self) -> String {
        let Some(claim) = self.recent() else {
            return "no second place".to_owned();
        };
        let taken = store::second_place(self.stage.pool(), claim).await.unwrap();
        assert_eq!(taken, self.model.second_place(claim), "{claim:?}");
        format!("second place of {claim:?}: {taken}")
    }

    async fn record(&mut self, claim: Claim, end: End, billed: u16) -> String {
        let call = FinishedCall {
            billed,
            ..Self::finished(claim, end)
        };
        let mut tx = farescan::db::begin(self.stage.pool()).await.unwrap();
        let fresh = store::record_calls(&mut tx, &[&call], Timestamp::now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(
            !fresh.is_empty(),
            self.model.record(claim, end, billed.into()),
            "record {claim:?} {end:?}"
        );
        format!(
            "record {claim:?} {end:?}, {billed} billed: {}",
            !fresh.is_empty()
        )
    }

    fn finished(claim: Claim, end: End) -> FinishedCall {
        match end {
            End::Ok => ok(claim),
            End::Empty => done(claim, farescan::contract::SearchStatus::Empty),
            End::Degraded => degraded(claim),
            End::Failed => FinishedCall {
                ending: store::Ending::Failed,
                search_status: None,
                may_retry: false,
                ..degraded(claim)
            },
            End::Returned => rejected(claim),
        }
    }

    async fn give_up(&mut self, claims: &[Claim], unsent: bool) -> String {
        let lane = LaneClaims {
            tenant: self.stage.tenant().await,
            api: "flights".to_owned(),
            items: claims.iter().map(|claim| claim.item.uuid()).collect(),
            numbers: claims.iter().map(|claim| claim.number).collect(),
        };
        if unsent {
            store::take_back(self.stage.pool(), &lane).await.unwrap();
            self.model.take_back(claims);
        }
        let lost = store::give_up(self.stage.pool(), &lane, Timestamp::now())
            .await
            .unwrap()
            .len();
        assert_eq!(lost, self.model.give_up(claims), "give up {claims:?}");
        format!("give up {claims:?}, unsent: {unsent}: {lost} lost")
    }

    async fn bury(&mut self) -> String {
        let place = self.dice.random_range(0..2);
        let fresh = self.worker().await;
        let dead = std::mem::replace(&mut self.workers[place], fresh);
        sqlx::query("update workers set lease_until = clock_timestamp() - interval '1 s' where worker_id = $1")
            .bind(dead.0)
            .execute(self.stage.pool())
            .await
            .unwrap();
        sqlx::query("select bury_workers('0')")
            .execute(self.stage.pool())
            .await
            .unwrap();
        for lane in store::orphans(self.stage.pool(), 1_000, &store::BusyLanes::default())
            .await
            .unwrap()
        {
            store::give_up(self.stage.pool(), &lane, Timestamp::now())
                .await
                .unwrap();
        }
        self.model.bury(dead);
        assert!(matches!(
            store::claim(self.stage.pool(), dead, 1).await.unwrap(),
            Visit::Fenced
        ));
        format!("bury {dead:?}")
    }

    async fn release(&mut self) -> String {
        let tenant = self.stage.tenant().await.uuid();
        let moved: i64 = sqlx::query_scalar("select release_delayed(now(), $1, 'flights', 1000)")
            .bind(tenant)
            .fetch_one(self.stage.pool())
            .await
            .unwrap();
        assert_eq!(usize::try_from(moved).unwrap(), self.model.release());
        format!("release {moved}")
    }

    /// All items, attempts and scans, as the model writes them.
    async fn rows(&self) -> Vec<String> {
        let mut rows = Vec::new();
        let items: Vec<(Uuid, String)> = sqlx::query_as(
            "select item_id, concat_ws(' ', state, attempt, calls, counted_calls, requests_spent, search_status, reason,
                                       case when worker_id is not null then 'of ' || worker_id end)
             from scan_items order by item_id",
        )
        .fetch_all(self.stage.pool())
        .await
        .unwrap();
        rows.extend(
            items
                .into_iter()
                .map(|(item, row)| format!("{}: {row}", ItemId::from(item))),
        );
        let attempts: Vec<(Uuid, i32, String)> = sqlx::query_as(
            "select item_id, number, concat_ws(' ', requests_spent, case when ended_at is null then 'open' end, search_status, reason)
             from attempts order by item_id, number",
        )
        .fetch_all(self.stage.pool())
        .await
        .unwrap();
        rows.extend(
            attempts
                .into_iter()
                .map(|(item, number, row)| format!("{} {number}: {row}", ItemId::from(item))),
        );
        let scans: Vec<(Uuid, String)> = sqlx::query_as(
            "select scan_id, concat_ws(' ', status, status_reason, ok, empty, partial, degraded, failed, cancelled, requests_spent,
                                       case when finished_at is not null then 'finished' end)
             from scans order by scan_id",
        )
        .fetch_all(self.stage.pool())
        .await
        .unwrap();
        rows.extend(
            scans
                .into_iter()
                .map(|(scan, row)| format!("{}: {row}", ScanId::from(scan))),
        );
        rows
    }
}
