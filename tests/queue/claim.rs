//! Which items a claim takes, and when.

use std::sync::atomic::{AtomicUsize, Ordering};

use farescan::ids::TenantId;
use farescan::queue::store::{self, ClaimResult};
use farescan::search::PlanQuota;
use jiff::Timestamp;
use sqlx::PgConnection;

use super::fixture::{QueueFixture, ok, scan_of};

#[tokio::test]
async fn five_items_behind_ten_thousand_are_claimed_soon() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(10_000)).await;
    let before = fixture.claim(worker, 100).await.len();
    let small = fixture.submit(scan_of(5)).await;
    let mut claimed = 0;
    while fixture
        .count_by_state(small)
        .await
        .get("claimed")
        .copied()
        .unwrap_or(0)
        < 5
    {
        claimed += fixture.claim(worker, 4).await.len();
        assert!(
            claimed <= 12,
            "the small scan waits: {claimed} items were claimed before it"
        );
    }
    assert_eq!(before, 100);
}

#[tokio::test]
async fn scheduled_scans_get_a_tenth_beside_interactive_ones() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scheduled = fixture.submit(scan_of(100).scheduled()).await;
    let interactive = fixture.submit(scan_of(100)).await;
    fixture.claim(worker, 50).await;
    assert_eq!(fixture.count_by_state(interactive).await["claimed"], 45);
    assert_eq!(fixture.count_by_state(scheduled).await["claimed"], 5);
}

#[tokio::test]
async fn a_big_caller_does_not_take_a_small_callers_share() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let other = TenantId::new();
    fixture.add_lane(other, 60_000.0, 10_000).await;
    fixture.submit(scan_of(5_000)).await;
    fixture.submit_for(other, scan_of(20)).await;
    let claims = fixture.claim(worker, 40).await;
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
async fn no_window_exceeds_burst_and_rate() {
    let (per_minute, burst) = (1_200.0, 40);
    let fixture = QueueFixture::with_lane(per_minute, 10_000).await;
    let workers = [fixture.worker().await, fixture.worker().await];
    fixture.submit(scan_of(1_000)).await;
    let claimed = AtomicUsize::new(0);
    let (one, two) = (
        claim_repeatedly(&fixture, workers[0], &claimed),
        claim_repeatedly(&fixture, workers[1], &claimed),
    );
    tokio::join!(one, two);

    let times: Vec<f64> = values!(
        &fixture.pool,
        "select extract(epoch from claimed_at)::float8 from scan_items where state = 'claimed' order by 1"
    );
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

/// The burst, and the claims of some seconds after it.
const CLAIMS: usize = 80;

/// Claims without a break until both workers together have [`CLAIMS`].
async fn claim_repeatedly(
    fixture: &QueueFixture,
    worker: farescan::queue::WorkerId,
    claimed: &AtomicUsize,
) {
    while claimed.load(Ordering::Relaxed) < CLAIMS {
        claimed.fetch_add(fixture.claim(worker, 7).await.len(), Ordering::Relaxed);
    }
}

#[tokio::test]
async fn claims_never_exceed_max_in_flight() {
    let fixture = QueueFixture::with_lane(60_000.0, 8).await;
    let worker = fixture.worker().await;
    fixture.submit(scan_of(20)).await;
    assert_eq!(fixture.claim_and_begin(worker, 8).await.len(), 8);
    assert_eq!(fixture.claim(worker, 50).await.len(), 0);
}

#[tokio::test]
async fn a_completed_call_frees_a_full_lane_at_once() {
    let fixture = QueueFixture::with_lane(60_000.0, 2).await;
    let worker = fixture.worker().await;
    fixture.submit(scan_of(20)).await;
    let calls = fixture.claim_and_begin(worker, 2).await;
    fixture.record(&[ok(calls[0])]).await;
    assert_eq!(
        fixture.claim(worker, 5).await.len(),
        0,
        "a full lane is next due in a second"
    );
    assert_eq!(fixture.update_lane(PlanQuota::default()).await, 1);
    assert_eq!(fixture.claim(worker, 5).await.len(), 1);
}

#[tokio::test]
async fn plan_headers_are_stored_in_the_lane() {
    let fixture = QueueFixture::new().await;
    let plan = PlanQuota {
        limit: Some(5_000),
        remaining: Some(4_321),
        reset_seconds: Some(60),
        window: None,
    };
    assert_eq!(fixture.update_lane(plan).await, 0, "it was not full");
    fixture.update_lane(PlanQuota::default()).await;
    let known = "select concat_ws(' ', plan_limit, plan_remaining, plan_reset_at - plan_seen_at) from lanes where tenant_id = $1";
    assert_eq!(
        fixture.lane_value(known).await.as_deref(),
        Some("5000 4321 00:01:00")
    );
}

#[tokio::test]
async fn an_empty_lane_is_not_due_until_something_is_submitted() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(3)).await;
    assert_eq!(fixture.claim(worker, 10).await.len(), 3);
    assert_eq!(fixture.claim(worker, 10).await.len(), 0);
    assert_eq!(
        fixture
            .lane_value("select next_at::text from lanes where tenant_id = $1")
            .await,
        None
    );
    fixture.submit(scan_of(1)).await;
    assert_eq!(fixture.claim(worker, 10).await.len(), 1);
}

/// A late answer changes its item without the lane's lock: a claim waits for the item and then passes
/// over it, because it is another version of the row.
#[tokio::test]
async fn a_claim_that_passed_over_a_changed_item_leaves_the_lane_due() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(3)).await;
    let mut late_answer = farescan::db::begin(&fixture.pool).await.unwrap();
    execute!(
        &mut *late_answer,
        "update scan_items set requests_spent = 1 where position = 1"
    );
    let claim = fixture.claim(worker, 10);
    let commit = async {
        let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        loop {
            let waiting: i64 = value!(&fixture.pool, waits);
            if waiting > 0 {
                break;
            }
        }
        late_answer.commit().await.unwrap();
    };
    let (claimed, ()) = tokio::join!(claim, commit);
    assert_eq!(claimed.len(), 2, "the third was changed meanwhile");
    assert_eq!(fixture.claim(worker, 10).await.len(), 1);
}

#[tokio::test]
async fn a_claim_returns_when_the_next_claim_can_succeed() {
    let fixture = QueueFixture::with_lane(120.0, 100).await; // a call each half second, four at once
    let worker = fixture.worker().await;
    let ClaimResult::Claims(_, idle_ms) = store::claim(&fixture.pool, worker, 10).await.unwrap()
    else {
        panic!("fenced")
    };
    assert_eq!(idle_ms, 1000);
    fixture.submit(scan_of(50)).await;
    let ClaimResult::Claims(claims, wait_ms) =
        store::claim(&fixture.pool, worker, 10).await.unwrap()
    else {
        panic!("fenced")
    };
    assert_eq!(claims.len(), 4);
    assert!((400..=500).contains(&wait_ms), "{wait_ms}");
}

#[tokio::test]
async fn a_paused_lane_yields_nothing_until_its_pause_ends() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(9)).await;
    fixture
        .lane_value("select pause_lane($1, 'flights', 'rate_limited', 0.2)::text")
        .await;
    assert_eq!(fixture.claim(worker, 3).await.len(), 0);
    assert_eq!(
        fixture
            .lane_value("select pause_reason from lanes where tenant_id = $1")
            .await
            .as_deref(),
        Some("rate_limited")
    );
    let paused_at = Timestamp::now();
    while fixture.claim(worker, 3).await.is_empty() {
        assert!(paused_at.duration_until(Timestamp::now()).as_secs() < 5);
    }
    assert_eq!(
        fixture
            .lane_value("select pause_reason from lanes where tenant_id = $1")
            .await,
        None
    );
}

#[tokio::test]
async fn a_lane_paused_without_an_end_is_never_due() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture
        .lane_value("select pause_lane($1, 'flights', 'key_rejected', null)::text")
        .await;
    // Neither a submit nor a shorter pause ends it.
    fixture.submit(scan_of(3)).await;
    fixture
        .lane_value("select pause_lane($1, 'flights', 'rate_limited', 0.0)::text")
        .await;
    assert_eq!(fixture.claim(worker, 3).await.len(), 0);
    assert_eq!(
        fixture
            .lane_value("select next_at::text from lanes where tenant_id = $1")
            .await,
        None
    );
    assert_eq!(
        fixture
            .lane_value("select pause_reason from lanes where tenant_id = $1")
            .await
            .as_deref(),
        Some("key_rejected")
    );
}

#[tokio::test]
async fn a_worker_without_a_lease_claims_nothing() {
    let fixture = QueueFixture::new().await;
    fixture.submit(scan_of(3)).await;
    for lapse in [
        "update workers set dead = true",
        "update workers set lease_until = clock_timestamp()",
    ] {
        let worker = fixture.worker().await;
        fixture.execute(lapse).await;
        assert!(
            matches!(
                store::claim(&fixture.pool, worker, 3).await.unwrap(),
                ClaimResult::Fenced
            ),
            "{lapse}"
        );
    }
}

/// Counts the rows that the server reads inside the transaction. A claim must use the index of
/// pending items, and its reads must not grow with the backlog. Statistics are stale on purpose (no
/// ANALYZE after the load).
#[tokio::test]
async fn the_cost_of_a_claim_does_not_grow_with_the_backlog() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    for _ in 0..4 {
        fixture.submit(scan_of(10_000)).await;
    }
    for round in 0..8 {
        let mut tx = farescan::db::begin(&fixture.pool).await.unwrap();
        let before = row_reads(&mut tx).await;
        let ClaimResult::Claims(claims, _) = store::claim(&mut *tx, worker, 20).await.unwrap()
        else {
            panic!("fenced")
        };
        let after = row_reads(&mut tx).await;
        tx.commit().await.unwrap();
        assert_eq!(claims.len(), 20);
        assert_eq!(
            after.0 - before.0,
            0,
            "visit {round}: the table was scanned"
        );
        // Twenty picked and twenty read again, plus the calls in flight. Planning may read the ends
        // of an index.
        let fetched = after.1 - before.1;
        assert!(
            fetched <= 50 + 20 * round,
            "visit {round}: {fetched} rows were fetched for 20"
        );
    }
}

/// Sequential scans of the items, and rows fetched by an index. Both add up over transactions.
async fn row_reads(connection: &mut PgConnection) -> (i64, i64) {
    row!(
        connection,
        "select seq_scan, idx_tup_fetch from pg_stat_xact_user_tables where relname = 'scan_items'"
    )
}
