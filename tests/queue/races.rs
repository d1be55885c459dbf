//! All operations of the queue concurrently, and the invariants that must hold afterwards in any
//! order.

use farescan::contract::SearchStatus;
use farescan::ids::AttemptId;
use farescan::ids::ScanId;
use farescan::queue::WorkerId;
use farescan::queue::pause_scan::{PauseCause, pause_scan};
use farescan::queue::store::{self, BeginVerdict, ClaimResult, LaneClaims};
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::fixture::{QueueFixture, degraded, done, ok, rejected, scan_of};

/// A worker that claims, begins, and then records, abandons or does both, in random order.
async fn run_worker(fixture: &QueueFixture, worker: WorkerId, seed: u64, rounds: usize) {
    let mut rng = StdRng::seed_from_u64(seed);
    let slots = rng.random_range(1..8);
    for _ in 0..rounds {
        let ClaimResult::Claims(claims, _) =
            retry(|| store::claim(&fixture.pool, worker, slots)).await
        else {
            return;
        };
        if rng.random_bool(0.1) {
            continue; // the response is lost: `leaked_claims` finds these claims
        }
        let attempts: Vec<_> = claims
            .iter()
            .map(|claimed| (claimed.claim, AttemptId::new()))
            .collect();
        let verdicts =
            retry(|| store::begin(&fixture.pool, &attempts, &[], Timestamp::now())).await;
        let begun = attempts
            .iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| **verdict == BeginVerdict::Begun)
            .map(|((claim, _), _)| *claim);
        let calls: Vec<_> = begun
            .map(|claim| match rng.random_range(0..10) {
                0..5 => ok(claim),
                5 => done(claim, SearchStatus::Empty),
                6..9 => degraded(claim),
                _ => rejected(claim),
            })
            .collect();
        let lane = lane_of(
            fixture,
            attempts
                .iter()
                .map(|(claim, _)| (claim.item.uuid(), claim.number)),
        );
        if rng.random_bool(0.3) {
            retry(|| store::abandon(&fixture.pool, &lane, Timestamp::now())).await;
        }
        retry(async || {
            let mut tx = farescan::db::begin(&fixture.pool).await?;
            let calls: Vec<_> = calls.iter().collect();
            let open = store::open_calls(&mut tx, &calls).await?;
            let without_offers: Vec<_> = calls.iter().map(|call| (*call, None)).collect();
            store::record_calls(&mut tx, &without_offers, &open, Timestamp::now()).await?;
            tx.commit().await
        })
        .await;
        retry(|| store::abandon(&fixture.pool, &lane, Timestamp::now())).await;
    }
}

fn lane_of(fixture: &QueueFixture, claims: impl Iterator<Item = (uuid::Uuid, i32)>) -> LaneClaims {
    let (items, numbers) = claims.unzip();
    LaneClaims {
        tenant: fixture.tenant,
        api: "flights".to_owned(),
        items,
        numbers,
    }
}

/// Retries a deadlock or a serialization failure, as the engine does; any other error fails the
/// test.
async fn retry<T, F: Future<Output = sqlx::Result<T>>>(mut once: impl FnMut() -> F) -> T {
    for _ in 0..20 {
        match once().await {
            Ok(done) => return done,
            Err(sqlx::Error::Database(error))
                if matches!(error.code().as_deref(), Some("40P01" | "40001")) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("tried 20 times");
}

async fn upkeep(fixture: &QueueFixture, workers: &[WorkerId], rounds: usize) {
    for _ in 0..rounds {
        fixture.execute("update lanes set paused_until = null, pause_reason = null, next_at = clock_timestamp()").await;
        fixture
            .lane_value("select release_delayed(now(), $1, 'flights', 50)::text")
            .await;
        for worker in workers {
            for lane in store::leaked_claims(&fixture.pool, *worker, &[], 0.05)
                .await
                .unwrap()
            {
                retry(|| store::abandon(&fixture.pool, &lane, Timestamp::now())).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_steps_lose_nothing_and_count_once() {
    let seed = crate::faults::seed();
    let fixture = QueueFixture::with_lane(60_000.0, 500).await;
    let workers = [
        fixture.worker().await,
        fixture.worker().await,
        fixture.worker().await,
    ];
    let mut scans = Vec::new();
    for attempts in [1, 2, 3] {
        scans.push(fixture.submit(scan_of(60).max_attempts(attempts)).await);
        scans.push(
            fixture
                .submit(scan_of(20).max_attempts(attempts).max_requests(25))
                .await,
        );
    }
    let cancelled = scans[2];
    tokio::join!(
        run_worker(&fixture, workers[0], seed, 40),
        run_worker(&fixture, workers[1], seed.wrapping_add(1), 40),
        run_worker(&fixture, workers[2], seed.wrapping_add(2), 40),
        upkeep(&fixture, &workers, 60),
        async {
            while fixture.scan(cancelled).await.ok < 5 {
                tokio::task::yield_now().await;
            }
            fixture.cancel(cancelled).await;
        },
    );
    for scan in scans {
        complete_scan(&fixture, &workers, scan).await;
        check_counters(&fixture, scan).await;
    }
}

/// Completes the items that the random part left, without random choices.
async fn complete_scan(fixture: &QueueFixture, workers: &[WorkerId], scan: ScanId) {
    for _ in 0..1_000 {
        let seen = fixture.scan(scan).await;
        if seen.finished || seen.status == "paused" {
            return;
        }
        upkeep(fixture, workers, 1).await;
        let claims = fixture.claim(workers[0], 50).await;
        let verdicts = fixture.begin(&claims).await;
        let begun = claims
            .iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| **verdict == BeginVerdict::Begun);
        fixture
            .record(
                &begun
                    .map(|(claimed, _)| ok(claimed.claim))
                    .collect::<Vec<_>>(),
            )
            .await;
        for (claimed, verdict) in claims.iter().zip(&verdicts) {
            if *verdict == BeginVerdict::BudgetSpent {
                pause_scan(
                    &fixture.pool,
                    fixture.tenant,
                    claimed.scan,
                    &PauseCause::BudgetSpent,
                )
                .await
                .unwrap();
            }
        }
    }
    panic!(
        "the scan does not end: {:?} {:?}",
        fixture.scan(scan).await,
        fixture.count_by_state(scan).await
    );
}

/// The scan's counters agree with its items and attempts.
async fn check_counters(fixture: &QueueFixture, scan: ScanId) {
    let seen = fixture.scan(scan).await;
    let (ended, spent, attempts, most): (i64, i64, i64, i64) = row!(&fixture.pool, "select (select count(*) from scan_items where scan_id = $1 and state in ('done', 'failed', 'cancelled')),
                (select coalesce(sum(requests_spent), 0) from attempts where scan_id = $1),
                (select coalesce(sum(calls), 0) from scan_items where scan_id = $1) - (select count(*) from attempts where scan_id = $1),
                (select max(counted_calls)::bigint - max(max_attempts) from scan_items join scans using (scan_id) where scan_id = $1)", scan.uuid());
    let counted =
        seen.ok + seen.empty + seen.partial + seen.degraded + seen.failed + seen.cancelled;
    assert_eq!(i64::from(counted), ended, "{seen:?}");
    assert_eq!(i64::from(seen.requests_spent), spent, "{seen:?}");
    assert_eq!(attempts, 0, "every call is on record: {seen:?}");
    assert!(
        most <= 0,
        "an item was tried more often than its scan allows: {seen:?}"
    );
    for (status, count) in [
        ("ok", seen.ok),
        ("empty", seen.empty),
        ("degraded", seen.degraded),
    ] {
        let items: i64 = value!(
            &fixture.pool,
            "select count(*) from scan_items where scan_id = $1 and state = 'done' and search_status = $2",
            scan.uuid(),
            status
        );
        assert_eq!(i64::from(count), items, "{status}: {seen:?}");
    }
}
