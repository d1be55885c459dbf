//! Every move against every other at the same time: what must hold afterwards, whatever the order was.

use farescan::contract::SearchStatus;
use farescan::ids::AttemptId;
use farescan::ids::ScanId;
use farescan::queue::WorkerId;
use farescan::queue::hold::{Cause, hold_scan};
use farescan::queue::store::{self, LaneClaims, Verdict, Visit};
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::yard::{Yard, degraded, done, ok, rejected, scan_of};

/// A worker that claims, begins, and then records, gives up or does both, in random order.
async fn work(yard: &Yard, worker: WorkerId, seed: u64, rounds: usize) {
    let mut dice = StdRng::seed_from_u64(seed);
    let slots = dice.random_range(1..8);
    for _ in 0..rounds {
        let Visit::Claims(claims, _) = retried(|| store::claim(&yard.pool, worker, slots)).await
        else {
            return;
        };
        if dice.random_bool(0.1) {
            continue; // the answer is lost: strays finds them
        }
        let asked: Vec<_> = claims
            .iter()
            .map(|claimed| (claimed.claim, AttemptId::new()))
            .collect();
        let verdicts = retried(|| store::begin(&yard.pool, &asked, Timestamp::now())).await;
        let begun = asked
            .iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| **verdict == Verdict::Begun)
            .map(|((claim, _), _)| *claim);
        let calls: Vec<_> = begun
            .map(|claim| match dice.random_range(0..10) {
                0..5 => ok(claim),
                5 => done(claim, SearchStatus::Empty),
                6..9 => degraded(claim),
                _ => rejected(claim),
            })
            .collect();
        let lane = lane_of(
            yard,
            asked
                .iter()
                .map(|(claim, _)| (claim.item.uuid(), claim.number)),
        );
        if dice.random_bool(0.3) {
            retried(|| store::give_up(&yard.pool, &lane, Timestamp::now())).await;
        }
        retried(async || {
            let mut tx = farescan::db::begin(&yard.pool).await?;
            store::record_calls(&mut tx, &calls.iter().collect::<Vec<_>>(), Timestamp::now())
                .await?;
            tx.commit().await
        })
        .await;
        retried(|| store::give_up(&yard.pool, &lane, Timestamp::now())).await;
    }
}

fn lane_of(yard: &Yard, claims: impl Iterator<Item = (uuid::Uuid, i32)>) -> LaneClaims {
    let (items, numbers) = claims.unzip();
    LaneClaims {
        tenant: yard.tenant,
        api: "flights".to_owned(),
        items,
        numbers,
    }
}

/// As the engine does: a deadlock or a serialization failure is tried again, anything else fails the test.
async fn retried<T, F: Future<Output = sqlx::Result<T>>>(mut once: impl FnMut() -> F) -> T {
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

async fn upkeep(yard: &Yard, workers: &[WorkerId], rounds: usize) {
    for _ in 0..rounds {
        yard.run("update lanes set paused_until = null, pause_reason = null, next_at = clock_timestamp()").await;
        yard.lane("select release_delayed(now(), $1, 'flights', 50)::text")
            .await;
        for worker in workers {
            for lane in store::strays(&yard.pool, *worker, &[], 0.05).await.unwrap() {
                retried(|| store::give_up(&yard.pool, &lane, Timestamp::now())).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_order_nothing_is_lost_or_counted_twice() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let yard = Yard::with_lane(60_000.0, 500).await;
    let workers = [
        yard.worker().await,
        yard.worker().await,
        yard.worker().await,
    ];
    let mut scans = Vec::new();
    for attempts in [1, 2, 3] {
        scans.push(yard.submit(scan_of(60).max_attempts(attempts)).await);
        scans.push(
            yard.submit(scan_of(20).max_attempts(attempts).max_requests(25))
                .await,
        );
    }
    let cancelled = scans[2];
    tokio::join!(
        work(&yard, workers[0], seed, 40),
        work(&yard, workers[1], seed.wrapping_add(1), 40),
        work(&yard, workers[2], seed.wrapping_add(2), 40),
        upkeep(&yard, &workers, 60),
        async {
            while yard.scan(cancelled).await.ok < 5 {
                tokio::task::yield_now().await;
            }
            yard.cancel(cancelled).await;
        },
    );
    for scan in scans {
        settle(&yard, &workers, scan).await;
        books_are_right(&yard, scan).await;
    }
}

/// Works off what the random part left, without chance.
async fn settle(yard: &Yard, workers: &[WorkerId], scan: ScanId) {
    for _ in 0..1_000 {
        let seen = yard.scan(scan).await;
        if seen.finished || seen.status == "paused" {
            return;
        }
        upkeep(yard, workers, 1).await;
        let claims = yard.claim(workers[0], 50).await;
        let verdicts = yard.begin(&claims).await;
        let begun = claims
            .iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| **verdict == Verdict::Begun);
        yard.record(
            &begun
                .map(|(claimed, _)| ok(claimed.claim))
                .collect::<Vec<_>>(),
        )
        .await;
        for (claimed, verdict) in claims.iter().zip(&verdicts) {
            if *verdict == Verdict::NoRoom {
                hold_scan(&yard.pool, yard.tenant, claimed.scan, &Cause::BudgetSpent)
                    .await
                    .unwrap();
            }
        }
    }
    panic!(
        "the scan does not end: {:?} {:?}",
        yard.scan(scan).await,
        yard.states(scan).await
    );
}

/// The scan's counters are what its items and attempts say.
async fn books_are_right(yard: &Yard, scan: ScanId) {
    let seen = yard.scan(scan).await;
    let (ended, spent, attempts, most): (i64, i64, i64, i64) = sqlx::query_as(
        "select (select count(*) from scan_items where scan_id = $1 and state in ('done', 'failed', 'cancelled')),
                (select coalesce(sum(requests_spent), 0) from attempts where scan_id = $1),
                (select coalesce(sum(calls), 0) from scan_items where scan_id = $1) - (select count(*) from attempts where scan_id = $1),
                (select max(counted_calls)::bigint - max(max_attempts) from scan_items join scans using (scan_id) where scan_id = $1)",
    )
    .bind(scan.uuid())
    .fetch_one(&yard.pool)
    .await
    .unwrap();
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
        let items: i64 =
            sqlx::query_scalar("select count(*) from scan_items where scan_id = $1 and state = 'done' and search_status = $2")
                .bind(scan.uuid())
                .bind(status)
                .fetch_one(&yard.pool)
                .await
                .unwrap();
        assert_eq!(i64::from(count), items, "{status}: {seen:?}");
    }
}
