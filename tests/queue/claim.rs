//! Which items a claim takes, and when.

use std::sync::atomic::{AtomicUsize, Ordering};

use farescan::ids::TenantId;
use farescan::queue::store::{self, Visit};
use farescan::search::PlanQuota;
use jiff::Timestamp;
use sqlx::PgConnection;

use super::yard::{Yard, ok, scan_of};

#[tokio::test]
async fn five_items_behind_ten_thousand_end_within_a_few_grants() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(10_000)).await;
    let before = yard.claim(worker, 100).await.len();
    let small = yard.submit(scan_of(5)).await;
    let mut claimed = 0;
    while yard
        .states(small)
        .await
        .get("claimed")
        .copied()
        .unwrap_or(0)
        < 5
    {
        claimed += yard.claim(worker, 4).await.len();
        assert!(
            claimed <= 12,
            "the small scan waits: {claimed} places went by"
        );
    }
    assert_eq!(before, 100);
}

#[tokio::test]
async fn scheduled_scans_have_a_tenth_beside_interactive_ones() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scheduled = yard.submit(scan_of(100).scheduled()).await;
    let interactive = yard.submit(scan_of(100)).await;
    yard.claim(worker, 50).await;
    assert_eq!(yard.states(interactive).await["claimed"], 45);
    assert_eq!(yard.states(scheduled).await["claimed"], 5);
}

#[tokio::test]
async fn a_big_caller_leaves_its_share_to_a_small_one() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let other = TenantId::new();
    yard.add_lane(other, 60_000.0, 10_000).await;
    yard.submit(scan_of(5_000)).await;
    yard.submit_for(other, scan_of(20)).await;
    let claims = yard.claim(worker, 40).await;
    assert_eq!(
        claims
            .iter()
            .filter(|claimed| claimed.claim.tenant == other)
            .count(),
        20,
        "each of two lanes has half"
    );
    assert_eq!(claims.len(), 40);
}

#[tokio::test]
async fn the_pace_is_never_above_burst_and_rate_in_any_window() {
    let (per_minute, burst) = (1_200.0, 40);
    let yard = Yard::with_lane(per_minute, 10_000).await;
    let workers = [yard.worker().await, yard.worker().await];
    yard.submit(scan_of(1_000)).await;
    let claimed = AtomicUsize::new(0);
    let (one, two) = (
        hammer(&yard, workers[0], &claimed),
        hammer(&yard, workers[1], &claimed),
    );
    tokio::join!(one, two);

    let times: Vec<f64> =
        sqlx::query_scalar("select extract(epoch from claimed_at)::float8 from scan_items where state = 'claimed' order by 1")
            .fetch_all(&yard.pool)
            .await
            .unwrap();
    let emission = 60.0 / per_minute;
    for (first, from) in times.iter().enumerate() {
        for (last, to) in times.iter().enumerate().skip(first) {
            let seen = f64::from(u32::try_from(last - first + 1).unwrap());
            let allowed = f64::from(burst) + (to - from) / emission + 1e-3;
            assert!(
                seen <= allowed,
                "{seen} claims in {} s; {allowed} are allowed",
                to - from
            );
        }
    }
    assert!(times.len() >= CLAIMS, "{} claims", times.len());
}

/// The burst, and what comes after it in some seconds.
const CLAIMS: usize = 80;

/// Claims without a pause until both have so many.
async fn hammer(yard: &Yard, worker: farescan::queue::WorkerId, claimed: &AtomicUsize) {
    while claimed.load(Ordering::Relaxed) < CLAIMS {
        claimed.fetch_add(yard.claim(worker, 7).await.len(), Ordering::Relaxed);
    }
}

#[tokio::test]
async fn no_more_are_in_flight_than_the_lane_allows() {
    let yard = Yard::with_lane(60_000.0, 8).await;
    let worker = yard.worker().await;
    yard.submit(scan_of(20)).await;
    assert_eq!(yard.call(worker, 8).await.len(), 8);
    assert_eq!(yard.claim(worker, 50).await.len(), 0);
}

#[tokio::test]
async fn a_completion_frees_a_full_lane_at_once() {
    let yard = Yard::with_lane(60_000.0, 2).await;
    let worker = yard.worker().await;
    yard.submit(scan_of(20)).await;
    let calls = yard.call(worker, 2).await;
    yard.record(&[ok(calls[0])]).await;
    assert_eq!(
        yard.claim(worker, 5).await.len(),
        0,
        "a full lane is next due in a second"
    );
    assert_eq!(yard.tell(PlanQuota::default()).await, 1);
    assert_eq!(yard.claim(worker, 5).await.len(), 1);
}

#[tokio::test]
async fn a_lane_knows_what_the_plan_headers_said() {
    let yard = Yard::new().await;
    let plan = PlanQuota {
        limit: Some(5_000),
        remaining: Some(4_321),
        reset_seconds: Some(60),
        window: None,
    };
    assert_eq!(yard.tell(plan).await, 0, "it was not full");
    yard.tell(PlanQuota::default()).await;
    let known = "select concat_ws(' ', plan_limit, plan_remaining, plan_reset_at - plan_seen_at) from lanes where tenant_id = $1";
    assert_eq!(
        yard.lane(known).await.as_deref(),
        Some("5000 4321 00:01:00")
    );
}

#[tokio::test]
async fn an_empty_lane_is_not_due_until_something_is_submitted() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(3)).await;
    assert_eq!(yard.claim(worker, 10).await.len(), 3);
    assert_eq!(yard.claim(worker, 10).await.len(), 0);
    assert_eq!(
        yard.lane("select next_at::text from lanes where tenant_id = $1")
            .await,
        None
    );
    yard.submit(scan_of(1)).await;
    assert_eq!(yard.claim(worker, 10).await.len(), 1);
}

#[tokio::test]
async fn a_visit_says_when_the_next_is_of_use() {
    let yard = Yard::with_lane(120.0, 100).await; // a call each half second, four at once
    let worker = yard.worker().await;
    let Visit::Claims(_, idle_ms) = store::claim(&yard.pool, worker, 10).await.unwrap() else {
        panic!("fenced")
    };
    assert_eq!(idle_ms, 1000);
    yard.submit(scan_of(50)).await;
    let Visit::Claims(claims, wait_ms) = store::claim(&yard.pool, worker, 10).await.unwrap() else {
        panic!("fenced")
    };
    assert_eq!(claims.len(), 4);
    assert!((400..=500).contains(&wait_ms), "{wait_ms}");
}

#[tokio::test]
async fn a_paused_lane_gives_nothing_until_its_time_has_come() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(9)).await;
    yard.lane("select pause_lane($1, 'flights', 'rate_limited', 0.2)::text")
        .await;
    assert_eq!(yard.claim(worker, 3).await.len(), 0);
    assert_eq!(
        yard.lane("select pause_reason from lanes where tenant_id = $1")
            .await
            .as_deref(),
        Some("rate_limited")
    );
    let paused_at = Timestamp::now();
    while yard.claim(worker, 3).await.is_empty() {
        assert!(paused_at.duration_until(Timestamp::now()).as_secs() < 5);
    }
    assert_eq!(
        yard.lane("select pause_reason from lanes where tenant_id = $1")
            .await,
        None
    );
}

#[tokio::test]
async fn a_lane_that_waits_for_a_resume_is_never_due() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.lane("select pause_lane($1, 'flights', 'key_rejected', null)::text")
        .await;
    // Neither a submit nor a shorter pause opens it.
    yard.submit(scan_of(3)).await;
    yard.lane("select pause_lane($1, 'flights', 'rate_limited', 0.0)::text")
        .await;
    assert_eq!(yard.claim(worker, 3).await.len(), 0);
    assert_eq!(
        yard.lane("select next_at::text from lanes where tenant_id = $1")
            .await,
        None
    );
    assert_eq!(
        yard.lane("select pause_reason from lanes where tenant_id = $1")
            .await
            .as_deref(),
        Some("key_rejected")
    );
}

#[tokio::test]
async fn a_worker_without_a_lease_claims_nothing() {
    let yard = Yard::new().await;
    yard.submit(scan_of(3)).await;
    for lapse in [
        "update workers set dead = true",
        "update workers set lease_until = clock_timestamp()",
    ] {
        let worker = yard.worker().await;
        yard.run(lapse).await;
        assert!(
            matches!(
                store::claim(&yard.pool, worker, 3).await.unwrap(),
                Visit::Fenced
            ),
            "{lapse}"
        );
    }
}

/// The function's own work, counted by the server inside its transaction: what a claim reads must not grow with the backlog, and must
/// come through the index of pending items. Statistics are stale on purpose (no ANALYZE after the load).
#[tokio::test]
async fn a_claim_reads_what_it_takes_however_large_the_backlog() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    for _ in 0..4 {
        yard.submit(scan_of(10_000)).await;
    }
    for visit in 0..8 {
        let mut tx = farescan::db::begin(&yard.pool).await.unwrap();
        let before = reads(&mut tx).await;
        let Visit::Claims(claims, _) = store::claim(&mut *tx, worker, 20).await.unwrap() else {
            panic!("fenced")
        };
        let after = reads(&mut tx).await;
        tx.commit().await.unwrap();
        assert_eq!(claims.len(), 20);
        assert_eq!(
            after.0 - before.0,
            0,
            "visit {visit}: the table was scanned"
        );
        // Twenty picked and twenty read again; what is in flight is counted. Planning may look up the ends of an index.
        let fetched = after.1 - before.1;
        assert!(
            fetched <= 50 + 20 * visit,
            "visit {visit}: {fetched} rows were fetched for 20"
        );
    }
}

/// How often the items were scanned, and how many were fetched by an index. Counted on from transaction to transaction.
async fn reads(connection: &mut PgConnection) -> (i64, i64) {
    sqlx::query_as(
        "select seq_scan, idx_tup_fetch from pg_stat_xact_user_tables where relname = 'scan_items'",
    )
    .fetch_one(connection)
    .await
    .unwrap()
}
