//! Sweeps, one at a time, while another transaction locks rows that they need.

use std::time::{Duration, Instant};

use farescan::config::RetentionConfig;
use farescan::ids::TenantId;
use farescan::queue::WorkerId;
use farescan::upkeep::retention::remove_expired;
use farescan::upkeep::sweeper::Sweeper;
use jiff::Timestamp;
use sqlx::{Postgres, Transaction};

use super::fixture::{QueueFixture, degraded, scan_of};

const LEASE: Duration = Duration::from_secs(1);
/// How long a retention pass may remove scans.
const PASS_TIME: Duration = Duration::from_secs(10);
/// The most sweeps that a step may need.
const SWEEPS: usize = 2;

/// Locks a caller's lane until the transaction ends.
async fn lock_lane(fixture: &QueueFixture, tenant: TenantId) -> Transaction<'static, Postgres> {
    let mut tx = farescan::db::begin(&fixture.pool).await.unwrap();
    execute!(
        &mut *tx,
        "select from lanes where tenant_id = $1 for update",
        tenant.uuid()
    );
    tx
}

/// Marks the lane as empty, so that the next claim takes only items of other lanes.
async fn mark_lane_empty(fixture: &QueueFixture, worker: WorkerId) {
    assert!(fixture.claim(worker, 1).await.is_empty());
}

/// How many sweeps it takes until a number is 0.
async fn sweeps_until_none(fixture: &QueueFixture, sql: &'static str, tenant: TenantId) -> usize {
    let mut sweep = Sweeper::new(fixture.pool.clone(), LEASE);
    for sweeps in 0..=SWEEPS {
        let left: i64 = value!(&fixture.pool, sql, tenant.uuid());
        println!("after {sweeps} sweeps: {left}");
        if left == 0 {
            return sweeps;
        }
        sweep.run_once(true).await.unwrap();
        // A new sweeper checks for dead workers at once.
        sweep = Sweeper::new(fixture.pool.clone(), LEASE);
    }
    panic!("rows are left after {SWEEPS} sweeps");
}

/// The caller with the locked lane has more lost calls than a sweep takes at once.
#[tokio::test]
async fn a_locked_lane_delays_no_other_callers_lost_calls() {
    let fixture = QueueFixture::new().await;
    let (worker, other) = (fixture.worker().await, TenantId::new());
    fixture.submit(scan_of(1_100)).await;
    fixture.claim_and_begin(worker, 1_100).await;
    mark_lane_empty(&fixture, worker).await;
    fixture.add_lane(other, 60_000.0, 100).await;
    fixture.submit_for(other, scan_of(5)).await;
    fixture.claim_and_begin(worker, 5).await;
    execute!(
        &fixture.pool,
        "update workers set lease_until = clock_timestamp() - interval '1 s'"
    );

    let lane_lock = lock_lane(&fixture, fixture.tenant).await;
    let calling = "select count(*) from scan_items where tenant_id = $1 and state = 'calling'";
    assert!(sweeps_until_none(&fixture, calling, other).await <= SWEEPS);
    let left: i64 = value!(&fixture.pool, calling, fixture.tenant.uuid());
    assert_eq!(left, 1_100, "the locked lane's calls are unchanged");
    lane_lock.rollback().await.unwrap();
    assert!(sweeps_until_none(&fixture, calling, fixture.tenant).await <= SWEEPS);
}

/// The caller with the locked lane has more due retries than a sweep takes at once.
#[tokio::test]
async fn a_locked_lane_delays_no_other_callers_retries() {
    let fixture = QueueFixture::new().await;
    let (worker, other) = (fixture.worker().await, TenantId::new());
    fixture.submit(scan_of(1_100).max_attempts(2)).await;
    let calls = fixture.claim_and_begin(worker, 1_100).await;
    fixture
        .record(&calls.into_iter().map(degraded).collect::<Vec<_>>())
        .await;
    mark_lane_empty(&fixture, worker).await;
    fixture.add_lane(other, 60_000.0, 100).await;
    fixture.submit_for(other, scan_of(5).max_attempts(2)).await;
    let calls = fixture.claim_and_begin(worker, 5).await;
    fixture
        .record(&calls.into_iter().map(degraded).collect::<Vec<_>>())
        .await;

    let lane_lock = lock_lane(&fixture, fixture.tenant).await;
    let delayed = "select count(*) from scan_items where tenant_id = $1 and state = 'delayed'";
    assert!(sweeps_until_none(&fixture, delayed, other).await <= SWEEPS);
    lane_lock.rollback().await.unwrap();
    assert!(sweeps_until_none(&fixture, delayed, fixture.tenant).await <= SWEEPS);
}

/// A step fails because its table is missing.
#[tokio::test]
async fn a_failing_sweep_step_does_not_stop_the_others() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(3)).await;
    fixture.claim_and_begin(worker, 3).await;
    execute!(
        &fixture.pool,
        "update workers set lease_until = clock_timestamp() - interval '1 s'"
    );
    let orders = "insert into idempotency_keys (tenant_id, path, key, body_digest, created_at)
                  select $1, '/v1/scans', n::text, sha256(n::text::bytea), now() - interval '3 days' from generate_series(1, 20000) n";
    execute!(&fixture.pool, orders, fixture.tenant.uuid());
    for gone in ["scan_strategies", "scan_events"] {
        let rename = sqlx::AssertSqlSafe(format!("alter table {gone} rename to {gone}_gone"));
        execute!(&fixture.pool, rename);
    }
    execute!(&fixture.pool, "drop trigger number_items on scan_items");
    let mut sweep = Sweeper::new(fixture.pool.clone(), LEASE);
    sweep.run_once(true).await.unwrap();
    assert_eq!(fixture.count_by_state(scan).await.get("calling"), None);
    let left: i64 = value!(&fixture.pool, "select count(*) from idempotency_keys");
    assert!(left < 20_000, "{left}");
}

/// Each sweep removes at least a thousand rows per step, and sweeps repeat while rows are left.
#[tokio::test]
async fn sweeps_repeat_until_nothing_is_left() {
    let fixture = QueueFixture::new().await;
    let orders = "insert into idempotency_keys (tenant_id, path, key, body_digest, created_at)
                  select $1, '/v1/scans', n::text, sha256(n::text::bytea), now() - interval '3 days' from generate_series(1, 20500) n";
    execute!(&fixture.pool, orders, fixture.tenant.uuid());
    let mut sweep = Sweeper::new(fixture.pool.clone(), LEASE);
    let mut left = 20_500_i64;
    let mut sweeps = 0;
    while left > 0 {
        sweep.run_once(true).await.unwrap();
        sweeps += 1;
        let before = left;
        left = value!(&fixture.pool, "select count(*) from idempotency_keys");
        println!("after {sweeps} sweeps: {left}");
        assert!(before - left >= 1_000.min(before), "{before} {left}");
    }
}

/// One of 450 expired scans is locked; one pass removes the others.
#[tokio::test]
async fn retention_removes_all_old_scans_but_a_locked_one() {
    let fixture = QueueFixture::new().await;
    for _ in 0..450 {
        fixture.submit(scan_of(1)).await;
    }
    let ended = "update scans set status = 'cancelled', cancelled = 1, finished_at = now() - interval '40 days'";
    execute!(&fixture.pool, ended);
    let mut holder = crate::support::db::begin_holding(&fixture.pool).await;
    execute!(
        &mut *holder,
        "select from scans order by finished_at, scan_id limit 1 for update"
    );
    let config = RetentionConfig {
        scan_retention_days: 30,
        ..RetentionConfig::default()
    };
    let (mut deleted, mut passes) = (0, 0);
    // On a busy machine the time of one pass may not suffice for all.
    while deleted < 449 {
        let begun = Instant::now();
        let retired = remove_expired(&fixture.pool, &config, Timestamp::now())
            .await
            .unwrap()
            .scans;
        passes += 1;
        deleted += retired;
        println!("after {passes} passes: {deleted}");
        assert!(
            retired > 200 || deleted == 449 || begun.elapsed() >= PASS_TIME,
            "a pass goes on while it has time"
        );
    }
}
