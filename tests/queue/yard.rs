//! A database with one caller's lane and scans in it, made by SQL alone: these tests need no HTTP and no upstream.

use std::collections::BTreeMap;

use farescan::contract::{Api, SearchStatus};
use farescan::ids::{AttemptId, GrantId, ItemId, ScanId, TenantId};
use farescan::queue::lanes::{self, LaneNews};
use farescan::queue::store::{self, Claimed, Ending, FinishedCall, LaneClaims, Verdict, Visit};
use farescan::queue::{Claim, WorkerId};
use farescan::search::PlanQuota;
use jiff::Timestamp;
use serde_json::{Map, json};
use sqlx::PgPool;

use crate::support::db::TestDb;

/// One caller with a flights lane.
pub struct Yard {
    _db: TestDb,
    pub pool: PgPool,
    pub tenant: TenantId,
}

/// A scan to be submitted.
pub struct Order {
    items: i32,
    stride: i64,
    max_attempts: i16,
    retry_delay_ms: f64,
    max_requests: Option<i32>,
}

pub fn scan_of(items: i32) -> Order {
    Order {
        items,
        stride: 1,
        max_attempts: 1,
        retry_delay_ms: 0.0,
        max_requests: None,
    }
}

impl Order {
    pub fn scheduled(self) -> Self {
        Self { stride: 9, ..self }
    }

    pub fn max_attempts(self, max_attempts: i16) -> Self {
        Self {
            max_attempts,
            ..self
        }
    }

    pub fn max_requests(self, max: i32) -> Self {
        Self {
            max_requests: Some(max),
            ..self
        }
    }
}

impl Yard {
    /// A lane without a pace to speak of, so that tests of other things need not wait.
    pub async fn new() -> Self {
        Self::with_lane(60_000.0, 10_000).await
    }

    pub async fn with_lane(per_minute: f64, max_in_flight: i32) -> Self {
        let db = TestDb::new().await;
        let yard = Self {
            pool: db.pool().clone(),
            _db: db,
            tenant: TenantId::new(),
        };
        yard.add_lane(yard.tenant, per_minute, max_in_flight).await;
        yard
    }

    pub async fn add_lane(&self, tenant: TenantId, per_minute: f64, max_in_flight: i32) {
        sqlx::query("insert into tenants (tenant_id, created_at) values ($1, now())")
            .bind(tenant.uuid())
            .execute(&self.pool)
            .await
            .unwrap();
        sqlx::query("select make_lane($1, 'flights', $2, $3)")
            .bind(tenant.uuid())
            .bind(per_minute)
            .bind(max_in_flight)
            .execute(&self.pool)
            .await
            .unwrap();
    }

    pub async fn worker(&self) -> WorkerId {
        let id = sqlx::query_scalar(
            "insert into workers (lease_until) values (clock_timestamp() + interval '1 minute') returning worker_id",
        );
        WorkerId(id.fetch_one(&self.pool).await.unwrap())
    }

    pub async fn submit(&self, order: Order) -> ScanId {
        self.submit_for(self.tenant, order).await
    }

    pub async fn submit_for(&self, tenant: TenantId, order: Order) -> ScanId {
        let (scan, grant) = (ScanId::new(), GrantId::new());
        let mut tx = farescan::db::begin(&self.pool).await.unwrap();
        let start: i64 = sqlx::query_scalar("select start_turns($1, 'flights', $2, $3)")
            .bind(tenant.uuid())
            .bind(order.items)
            .bind(order.stride)
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        sqlx::query(
            "insert into key_grants values ($1, $2, 'scan', 'k', '\\x01', '\\x02', now(), now() + interval '35 days', null)",
        )
        .bind(tenant.uuid())
        .bind(grant.uuid())
        .execute(&mut *tx)
        .await
        .unwrap();
        sqlx::query(
            "insert into scans (tenant_id, scan_id, endpoint, api, request, sweep, priority, max_attempts, retry_delay, status,
                                total, max_requests, grant_id, created_at)
             values ($1, $2, 'flights/oneway', 'flights', '{}', '{}', $3, $4, make_interval(secs => $5), 'queued', $6, $7, $8, now())",
        )
        .bind(tenant.uuid())
        .bind(scan.uuid())
        .bind(if order.stride == 1 { "interactive" } else { "scheduled" })
        .bind(order.max_attempts)
        .bind(order.retry_delay_ms / 1000.0)
        .bind(order.items)
        .bind(order.max_requests)
        .bind(grant.uuid())
        .execute(&mut *tx)
        .await
        .unwrap();
        sqlx::query(
            "insert into scan_items (tenant_id, item_id, scan_id, api, position, body, turn)
             select $1, gen_random_uuid(), $2, 'flights', position, '{}', $3 + (position - 1) * $4 from generate_series(1, $5) position",
        )
        .bind(tenant.uuid())
        .bind(scan.uuid())
        .bind(start)
        .bind(order.stride)
        .bind(order.items)
        .execute(&mut *tx)
        .await
        .unwrap();
        tx.commit().await.unwrap();
        scan
    }

    pub async fn claim(&self, worker: WorkerId, slots: usize) -> Vec<Claimed> {
        match store::claim(&self.pool, worker, slots).await.unwrap() {
            Visit::Claims(claims, _) => claims,
            Visit::Fenced => panic!("fenced"),
        }
    }

    pub async fn begin(&self, claims: &[Claimed]) -> Vec<Verdict> {
        let claims: Vec<_> = claims
            .iter()
            .map(|claimed| (claimed.claim, AttemptId::new()))
            .collect();
        store::begin(&self.pool, &claims, Timestamp::now())
            .await
            .unwrap()
    }

    /// Claims `slots` items and begins them all.
    pub async fn call(&self, worker: WorkerId, slots: usize) -> Vec<Claim> {
        let claims = self.claim(worker, slots).await;
        assert_eq!(claims.len(), slots);
        assert!(
            self.begin(&claims)
                .await
                .iter()
                .all(|verdict| *verdict == Verdict::Begun)
        );
        claims.into_iter().map(|claimed| claimed.claim).collect()
    }

    /// Records calls; gives how many were new.
    pub async fn record(&self, calls: &[FinishedCall]) -> usize {
        let mut tx = farescan::db::begin(&self.pool).await.unwrap();
        let fresh =
            store::record_calls(&mut tx, &calls.iter().collect::<Vec<_>>(), Timestamp::now())
                .await
                .unwrap();
        tx.commit().await.unwrap();
        fresh.len()
    }

    /// Tells the lane that a call has ended; gives how many lanes were full.
    pub async fn tell(&self, plan: PlanQuota) -> i64 {
        lanes::tell(
            &self.pool,
            &[LaneNews::answered(self.tenant, Api::Flights, plan)],
        )
        .await
        .unwrap()
    }

    pub async fn give_up(&self, claims: &[Claim]) -> usize {
        let lane = LaneClaims {
            tenant: self.tenant,
            api: "flights".to_owned(),
            items: claims.iter().map(|claim| claim.item.uuid()).collect(),
            numbers: claims.iter().map(|claim| claim.number).collect(),
        };
        store::give_up(&self.pool, &lane, Timestamp::now())
            .await
            .unwrap()
            .len()
    }

    /// What a cancel does to a scan's items and status.
    pub async fn cancel(&self, scan: ScanId) {
        let mut tx = farescan::db::begin(&self.pool).await.unwrap();
        sqlx::query("select arm_lane($1, 'flights')")
            .bind(self.tenant.uuid())
            .execute(&mut *tx)
            .await
            .unwrap();
        let moved = sqlx::query(
            "update scan_items set state = 'cancelled', worker_id = null
             where tenant_id = $1 and item_id in (select item_id from scan_items where scan_id = $2 and tenant_id = $1
                                                  and state in ('pending', 'claimed', 'delayed', 'held') order by item_id for update)
               and state in ('pending', 'claimed', 'delayed', 'held')",
        )
        .bind(self.tenant.uuid())
        .bind(scan.uuid())
        .execute(&mut *tx)
        .await
        .unwrap()
        .rows_affected();
        sqlx::query("update scans set status = 'cancelled', finished_at = now(), cancelled = cancelled + $3 where tenant_id = $1 and scan_id = $2")
            .bind(self.tenant.uuid())
            .bind(scan.uuid())
            .bind(i32::try_from(moved).unwrap())
            .execute(&mut *tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    /// How many items of a scan are in each state.
    pub async fn states(&self, scan: ScanId) -> BTreeMap<String, i64> {
        sqlx::query_as::<_, (String, i64)>(
            "select state, count(*) from scan_items where scan_id = $1 group by 1",
        )
        .bind(scan.uuid())
        .fetch_all(&self.pool)
        .await
        .unwrap()
        .into_iter()
        .collect()
    }

    /// An item as `state search_status reason`.
    pub async fn item(&self, item: ItemId) -> String {
        sqlx::query_scalar("select concat_ws(' ', state, search_status, reason) from scan_items where item_id = $1")
            .bind(item.uuid())
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    /// An attempt as `requests_spent search_status reason`, `open` while it has not ended.
    pub async fn attempt(&self, claim: Claim) -> String {
        sqlx::query_scalar(
            "select concat_ws(' ', requests_spent, search_status, reason, case when ended_at is null then 'open' end)
             from attempts where item_id = $1 and number = $2",
        )
        .bind(claim.item.uuid())
        .bind(claim.number)
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    pub async fn scan(&self, scan: ScanId) -> Scan {
        sqlx::query_as(
            "select status, status_reason, ok, empty, partial, degraded, failed, cancelled, requests_spent, best_price::text,
                    finished_at is not null as finished, (select wiped_at is not null from key_grants g where g.grant_id = s.grant_id) as wiped
             from scans s where scan_id = $1",
        )
        .bind(scan.uuid())
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// One value of the lane's row, as text.
    pub async fn lane(&self, sql: &'static str) -> Option<String> {
        sqlx::query_scalar(sql)
            .bind(self.tenant.uuid())
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    pub async fn run(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&self.pool).await.unwrap();
    }
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Scan {
    pub status: String,
    pub status_reason: Option<String>,
    pub ok: i32,
    pub empty: i32,
    pub partial: i32,
    pub degraded: i32,
    pub failed: i32,
    pub cancelled: i32,
    pub requests_spent: i32,
    pub best_price: Option<String>,
    pub finished: bool,
    pub wiped: bool,
}

/// A call that ended `done` with this status, having cost one request.
pub fn done(claim: Claim, status: SearchStatus) -> FinishedCall {
    FinishedCall {
        tenant_id: claim.tenant.uuid(),
        item_id: claim.item.uuid(),
        number: claim.number,
        attempt_id: None,
        ended_at: Timestamp::now(),
        ending: Ending::Done,
        may_retry: status == SearchStatus::Degraded,
        http_status: Some(200),
        search_status: Some(status),
        reason: None,
        error: None,
        search_headers: Map::from_iter([("x-search-status".to_owned(), json!(status))]),
        latency_ms: 1600,
        billed: 1,
        results: Some(1),
        best_price: None,
        currency: None,
        pause_reason: None,
        pause_seconds: None,
    }
}

pub fn ok(claim: Claim) -> FinishedCall {
    done(claim, SearchStatus::Ok)
}

pub fn degraded(claim: Claim) -> FinishedCall {
    FinishedCall {
        reason: Some("upstream_timeout".to_owned()),
        results: None,
        ..done(claim, SearchStatus::Degraded)
    }
}

pub fn priced(claim: Claim, price: &str) -> FinishedCall {
    FinishedCall {
        best_price: Some(price.to_owned()),
        currency: Some("USD".to_owned()),
        ..ok(claim)
    }
}

/// The key was not taken: the item goes back and the lane stops.
pub fn rejected(claim: Claim) -> FinishedCall {
    FinishedCall {
        ending: Ending::Returned,
        reason: Some("key_rejected".to_owned()),
        pause_reason: Some("key_rejected"),
        may_retry: false,
        ..degraded(claim)
    }
}
