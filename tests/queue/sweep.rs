//! Sweeps, one at a time, while somebody holds what they need.

use std::time::{Duration, Instant};

use farescan::config::RetentionConfig;
use farescan::ids::TenantId;
use farescan::queue::WorkerId;
use farescan::queue::retain::retire;
use farescan::queue::sweep::Sweep;
use jiff::Timestamp;
use sqlx::{Postgres, Transaction};

use super::yard::{Yard, degraded, scan_of};

const LEASE: Duration = Duration::from_secs(1);
/// How long a pass of the retention may go on with scans.
const PASS_TIME: Duration = Duration::from_secs(10);
/// The most sweeps that a step may need.
const SWEEPS: usize = 2;

/// Holds a caller's lane until it is dropped.
async fn locked(yard: &Yard, tenant: TenantId) -> Transaction<'static, Postgres> {
    let mut tx = farescan::db::begin(&yard.pool).await.unwrap();
    sqlx::query("select from lanes where tenant_id = $1 for update")
        .bind(tenant.uuid())
        .execute(&mut *tx)
        .await
        .unwrap();
    tx
}

/// Has the lane known as empty, so that a claim leaves all its places to others.
async fn leave(yard: &Yard, worker: WorkerId) {
    assert!(yard.claim(worker, 1).await.is_empty());
}

/// How many sweeps it takes until a number is 0.
async fn sweeps_until_none(yard: &Yard, sql: &'static str, tenant: TenantId) -> usize {
    let mut sweep = Sweep::new(yard.pool.clone(), LEASE);
    for sweeps in 0..=SWEEPS {
        let left: i64 = sqlx::query_scalar(sql)
            .bind(tenant.uuid())
            .fetch_one(&yard.pool)
            .await
            .unwrap();
        println!("after {sweeps} sweeps: {left}");
        if left == 0 {
            return sweeps;
        }
        sweep.once(true).await.unwrap();
        // The next look at dead workers is due at once.
        sweep = Sweep::new(yard.pool.clone(), LEASE);
    }
    panic!("it is not done after {SWEEPS} sweeps");
}

/// More dead calls than a round takes are of the caller whose lane is locked.
#[tokio::test]
async fn a_locked_lane_keeps_no_other_callers_dead_calls() {
    let yard = Yard::new().await;
    let (worker, other) = (yard.worker().await, TenantId::new());
    yard.submit(scan_of(1_100)).await;
    yard.call(worker, 1_100).await;
    leave(&yard, worker).await;
    yard.add_lane(other, 60_000.0, 100).await;
    yard.submit_for(other, scan_of(5)).await;
    yard.call(worker, 5).await;
    sqlx::query("update workers set lease_until = clock_timestamp() - interval '1 s'")
        .execute(&yard.pool)
        .await
        .unwrap();

    let held = locked(&yard, yard.tenant).await;
    let calling = "select count(*) from scan_items where tenant_id = $1 and state = 'calling'";
    assert!(sweeps_until_none(&yard, calling, other).await <= SWEEPS);
    let left: i64 = sqlx::query_scalar(calling)
        .bind(yard.tenant.uuid())
        .fetch_one(&yard.pool)
        .await
        .unwrap();
    assert_eq!(left, 1_100, "nothing was done past the lock");
    held.rollback().await.unwrap();
    assert!(sweeps_until_none(&yard, calling, yard.tenant).await <= SWEEPS);
}

/// More due retries than a round takes are of the caller whose lane is locked.
#[tokio::test]
async fn a_locked_lane_keeps_no_other_callers_retries() {
    let yard = Yard::new().await;
    let (worker, other) = (yard.worker().await, TenantId::new());
    yard.submit(scan_of(1_100).max_attempts(2)).await;
    let calls = yard.call(worker, 1_100).await;
    yard.record(&calls.into_iter().map(degraded).collect::<Vec<_>>())
        .await;
    leave(&yard, worker).await;
    yard.add_lane(other, 60_000.0, 100).await;
    yard.submit_for(other, scan_of(5).max_attempts(2)).await;
    let calls = yard.call(worker, 5).await;
    yard.record(&calls.into_iter().map(degraded).collect::<Vec<_>>())
        .await;

    let held = locked(&yard, yard.tenant).await;
    let delayed = "select count(*) from scan_items where tenant_id = $1 and state = 'delayed'";
    assert!(sweeps_until_none(&yard, delayed, other).await <= SWEEPS);
    held.rollback().await.unwrap();
    assert!(sweeps_until_none(&yard, delayed, yard.tenant).await <= SWEEPS);
}

/// A step that cannot work at all: here, its table is gone.
#[tokio::test]
async fn a_step_that_fails_is_not_in_the_way_of_the_others() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(3)).await;
    yard.call(worker, 3).await;
    sqlx::query("update workers set lease_until = clock_timestamp() - interval '1 s'")
        .execute(&yard.pool)
        .await
        .unwrap();
    let orders = "insert into idempotency_keys (tenant_id, path, key, body_digest, created_at)
                  select $1, '/v1/scans', n::text, sha256(n::text::bytea), now() - interval '3 days' from generate_series(1, 20000) n";
    sqlx::query(orders)
        .bind(yard.tenant.uuid())
        .execute(&yard.pool)
        .await
        .unwrap();
    for gone in ["scan_strategies", "scan_events"] {
        let rename = sqlx::AssertSqlSafe(format!("alter table {gone} rename to {gone}_gone"));
        sqlx::raw_sql(rename).execute(&yard.pool).await.unwrap();
    }
    sqlx::raw_sql("drop trigger number_items on scan_items")
        .execute(&yard.pool)
        .await
        .unwrap();
    let mut sweep = Sweep::new(yard.pool.clone(), LEASE);
    sweep.once(true).await.unwrap();
    assert_eq!(yard.states(scan).await.get("calling"), None);
    let left: i64 = sqlx::query_scalar("select count(*) from idempotency_keys")
        .fetch_one(&yard.pool)
        .await
        .unwrap();
    assert!(left < 20_000, "{left}");
}

/// A thousand rows of each step at least go in a sweep, and sweeps follow each other while something is left.
#[tokio::test]
async fn upkeep_goes_on_while_something_is_left() {
    let yard = Yard::new().await;
    let orders = "insert into idempotency_keys (tenant_id, path, key, body_digest, created_at)
                  select $1, '/v1/scans', n::text, sha256(n::text::bytea), now() - interval '3 days' from generate_series(1, 20500) n";
    sqlx::query(orders)
        .bind(yard.tenant.uuid())
        .execute(&yard.pool)
        .await
        .unwrap();
    let mut sweep = Sweep::new(yard.pool.clone(), LEASE);
    let mut left = 20_500_i64;
    let mut sweeps = 0;
    while left > 0 {
        sweep.once(true).await.unwrap();
        sweeps += 1;
        let before = left;
        left = sqlx::query_scalar("select count(*) from idempotency_keys")
            .fetch_one(&yard.pool)
            .await
            .unwrap();
        println!("after {sweeps} sweeps: {left}");
        assert!(before - left >= 1_000.min(before), "{before} {left}");
    }
}

/// Of 450 scans that are too old one is held: the others go, in one pass.
#[tokio::test]
async fn retention_takes_all_old_scans_but_one_that_is_held() {
    let yard = Yard::new().await;
    for _ in 0..450 {
        yard.submit(scan_of(1)).await;
    }
    let ended = "update scans set status = 'cancelled', cancelled = 1, finished_at = now() - interval '40 days'";
    sqlx::raw_sql(ended).execute(&yard.pool).await.unwrap();
    let mut holder = farescan::db::begin(&yard.pool).await.unwrap();
    sqlx::raw_sql("select from scans order by finished_at, scan_id limit 1 for update")
        .execute(&mut *holder)
        .await
        .unwrap();
    let config = RetentionConfig {
        scan_retention_days: 30,
        ..RetentionConfig::default()
    };
    let (mut deleted, mut passes) = (0, 0);
    // On a machine that is busy the time of a pass may not suffice for all.
    while deleted < 449 {
        let begun = Instant::now();
        let retired = retire(&yard.pool, &config, Timestamp::now())
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
