//! A database with one caller's lane and scans, made by SQL alone: these tests need no HTTP and no
//! marketplace.

use std::collections::BTreeMap;

use farescan::contract::{Api, SearchStatus};
use farescan::ids::{AttemptId, GrantId, ItemId, ScanId, TenantId};
use farescan::queue::lanes::{self, LaneUpdate};
use farescan::queue::store::{
    self, BeginVerdict, CallEnding, CallRecord, ClaimResult, ClaimRow, LaneClaims,
};
use farescan::queue::{Claim, WorkerId};
use farescan::search::{PlanQuota, StoredHeaders};
use jiff::Timestamp;

use sqlx::PgPool;

use crate::support::db::TestDb;

/// One caller with a flights lane.
pub struct QueueFixture {
    _db: TestDb,
    pub pool: PgPool,
    pub tenant: TenantId,
}

/// A scan to be submitted.
pub struct ScanSpec {
    items: i32,
    stride: i64,
    max_attempts: i16,
    retry_delay_ms: f64,
    max_requests: Option<i32>,
}

pub fn scan_of(items: i32) -> ScanSpec {
    ScanSpec {
        items,
        stride: 1,
        max_attempts: 1,
        retry_delay_ms: 0.0,
        max_requests: None,
    }
}

impl ScanSpec {
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

impl QueueFixture {
    /// A lane so fast that tests of other rules need not wait for its pace.
    pub async fn new() -> Self {
        Self::with_lane(60_000.0, 10_000).await
    }

    /// The same, and a worker.
    pub async fn with_worker() -> (Self, WorkerId) {
        let fixture = Self::new().await;
        let worker = fixture.worker().await;
        (fixture, worker)
    }

    pub async fn with_lane(per_minute: f64, max_in_flight: i32) -> Self {
        let db = TestDb::new().await;
        let fixture = Self {
            pool: db.pool().clone(),
            _db: db,
            tenant: TenantId::new(),
        };
        fixture
            .add_lane(fixture.tenant, per_minute, max_in_flight)
            .await;
        fixture
    }

    pub async fn add_lane(&self, tenant: TenantId, per_minute: f64, max_in_flight: i32) {
        execute!(
            &self.pool,
            "insert into tenants (tenant_id, created_at) values ($1, now())",
            tenant.uuid()
        );
        execute!(
            &self.pool,
            "select create_lane($1, 'flights', $2, $3)",
            tenant.uuid(),
            per_minute,
            max_in_flight
        );
    }

    pub async fn worker(&self) -> WorkerId {
        let id = "insert into workers (lease_until) values (clock_timestamp() + interval '1 hour') returning worker_id";
        WorkerId(value!(&self.pool, id))
    }

    pub async fn submit(&self, spec: ScanSpec) -> ScanId {
        self.submit_for(self.tenant, spec).await
    }

    pub async fn submit_for(&self, tenant: TenantId, spec: ScanSpec) -> ScanId {
        let (scan, grant) = (ScanId::new(), GrantId::new());
        let mut tx = farescan::db::begin(&self.pool).await.unwrap();
        let start: i64 = value!(
            &mut *tx,
            "select reserve_sequence($1, 'flights', $2, $3)",
            tenant.uuid(),
            spec.items,
            spec.stride
        );
        execute!(
            &mut *tx,
            "insert into key_grants values ($1, $2, 'scan', 'k', '\\x01', '\\x02', now(), now() + interval '35 days', null)",
            tenant.uuid(),
            grant.uuid()
        );
        execute!(&mut *tx, "insert into scans (tenant_id, scan_id, endpoint, api, request, sweep, priority, max_attempts, retry_delay, status,
                                total, max_requests, grant_id, created_at)
             values ($1, $2, 'flights/oneway', 'flights', '{}', '{}', $3, $4, make_interval(secs => $5), 'queued', $6, $7, $8, now())", tenant.uuid(), scan.uuid(), if spec.stride == 1 { "interactive" } else { "scheduled" }, spec.max_attempts, spec.retry_delay_ms / 1000.0, spec.items, spec.max_requests, grant.uuid());
        execute!(&mut *tx, "insert into scan_items (tenant_id, item_id, scan_id, api, position, body, turn)
             select $1, gen_random_uuid(), $2, 'flights', position, '{}', $3 + (position - 1) * $4 from generate_series(1, $5) position", tenant.uuid(), scan.uuid(), start, spec.stride, spec.items);
        tx.commit().await.unwrap();
        scan
    }

    pub async fn claim(&self, worker: WorkerId, slots: usize) -> Vec<ClaimRow> {
        match store::claim(&self.pool, worker, slots).await.unwrap() {
            ClaimResult::Claims(claims, _) => claims,
            ClaimResult::Fenced => panic!("fenced"),
        }
    }

    pub async fn begin(&self, claims: &[ClaimRow]) -> Vec<BeginVerdict> {
        let claims: Vec<_> = claims
            .iter()
            .map(|claimed| (claimed.claim, AttemptId::new()))
            .collect();
        store::begin(&self.pool, &claims, &[], Timestamp::now())
            .await
            .unwrap()
    }

    /// Claims `slots` items and begins them all.
    pub async fn claim_and_begin(&self, worker: WorkerId, slots: usize) -> Vec<Claim> {
        let claims = self.claim(worker, slots).await;
        assert_eq!(claims.len(), slots);
        assert!(
            self.begin(&claims)
                .await
                .iter()
                .all(|verdict| *verdict == BeginVerdict::Begun)
        );
        claims.into_iter().map(|claimed| claimed.claim).collect()
    }

    /// Records calls; returns how many were new.
    pub async fn record(&self, calls: &[CallRecord]) -> usize {
        let mut tx = farescan::db::begin(&self.pool).await.unwrap();
        let calls: Vec<_> = calls.iter().collect();
        let open = store::open_calls(&mut tx, &calls).await.unwrap();
        let without_offers: Vec<_> = calls.iter().map(|call| (*call, None)).collect();
        store::record_calls(&mut tx, &without_offers, &open, Timestamp::now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        open.numbers.len()
    }

    /// Updates the lane after a call has ended; returns how many lanes were full.
    pub async fn update_lane(&self, plan: PlanQuota) -> i64 {
        lanes::update(
            &self.pool,
            &[LaneUpdate::answered(self.tenant, Api::Flights, plan)],
        )
        .await
        .unwrap()
    }

    pub async fn abandon(&self, claims: &[Claim]) -> usize {
        let lane = LaneClaims {
            tenant: self.tenant,
            api: "flights".to_owned(),
            items: claims.iter().map(|claim| claim.item.uuid()).collect(),
            numbers: claims.iter().map(|claim| claim.number).collect(),
        };
        store::abandon(&self.pool, &lane, Timestamp::now())
            .await
            .unwrap()
            .len()
    }

    /// Changes a scan's items and status as a cancel does.
    pub async fn cancel(&self, scan: ScanId) {
        let mut tx = farescan::db::begin(&self.pool).await.unwrap();
        execute!(
            &mut *tx,
            "select wake_lane($1, 'flights')",
            self.tenant.uuid()
        );
        let moved = execute!(&mut *tx, "update scan_items set state = 'cancelled', worker_id = null
             where tenant_id = $1 and item_id in (select item_id from scan_items where scan_id = $2 and tenant_id = $1
                                                  and state in ('pending', 'claimed', 'delayed', 'held') order by item_id for update)
               and state in ('pending', 'claimed', 'delayed', 'held')", self.tenant.uuid(), scan.uuid());
        execute!(
            &mut *tx,
            "update scans set status = 'cancelled', finished_at = now(), cancelled = cancelled + $3 where tenant_id = $1 and scan_id = $2",
            self.tenant.uuid(),
            scan.uuid(),
            i32::try_from(moved).unwrap()
        );
        tx.commit().await.unwrap();
    }

    /// How many items of a scan are in each state.
    pub async fn count_by_state(&self, scan: ScanId) -> BTreeMap<String, i64> {
        rows!(&self.pool, "select state, count(*) from scan_items where scan_id = $1 group by 1", scan.uuid(), => (String, i64))
        .into_iter()
        .collect()
    }

    /// An item as `state search_status reason`.
    pub async fn item(&self, item: ItemId) -> String {
        value!(
            &self.pool,
            "select concat_ws(' ', state, search_status, reason) from scan_items where item_id = $1",
            item.uuid()
        )
    }

    /// An attempt as `requests_spent search_status reason`, `open` while it has not ended.
    pub async fn attempt(&self, claim: Claim) -> String {
        value!(&self.pool, "select concat_ws(' ', requests_spent, search_status, reason, case when ended_at is null then 'open' end)
             from attempts where item_id = $1 and number = $2", claim.item.uuid(), claim.number)
    }

    pub async fn scan(&self, scan: ScanId) -> ScanRow {
        row!(&self.pool, "select status, status_reason, ok, empty, partial, degraded, failed, cancelled, requests_spent, best_price::text,
                    finished_at is not null as finished, (select wiped_at is not null from key_grants g where g.grant_id = s.grant_id) as wiped
             from scans s where scan_id = $1", scan.uuid())
    }

    /// One value of the lane's row, as text.
    pub async fn lane_value(&self, sql: &'static str) -> Option<String> {
        value!(&self.pool, sql, self.tenant.uuid())
    }

    pub async fn execute(&self, sql: &'static str) {
        execute!(&self.pool, sql);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ScanRow {
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
pub fn done(claim: Claim, status: SearchStatus) -> CallRecord {
    CallRecord {
        tenant_id: claim.tenant.uuid(),
        item_id: claim.item.uuid(),
        number: claim.number,
        attempt_id: None,
        ended_at: Timestamp::now(),
        ending: CallEnding::Done,
        may_retry: status == SearchStatus::Degraded,
        http_status: Some(200),
        search_status: Some(status),
        reason: None,
        error: None,
        search_headers: StoredHeaders::from_iter([(
            "x-search-status".to_owned(),
            status.as_str().to_owned(),
        )]),
        latency_ms: 1600,
        billed: 1,
        results: Some(1),
        best_price: None,
        currency: None,
        pause_reason: None,
        pause_seconds: None,
    }
}

pub fn ok(claim: Claim) -> CallRecord {
    done(claim, SearchStatus::Ok)
}

pub fn degraded(claim: Claim) -> CallRecord {
    CallRecord {
        reason: Some("upstream_timeout".to_owned()),
        results: None,
        ..done(claim, SearchStatus::Degraded)
    }
}

pub fn priced(claim: Claim, price: &str) -> CallRecord {
    CallRecord {
        best_price: Some(price.to_owned()),
        currency: Some("USD".to_owned()),
        ..ok(claim)
    }
}

/// The key was rejected: the item is requeued and the lane stops.
pub fn rejected(claim: Claim) -> CallRecord {
    CallRecord {
        ending: CallEnding::Requeued,
        reason: Some("key_rejected".to_owned()),
        pause_reason: Some("key_rejected"),
        may_retry: false,
        ..degraded(claim)
    }
}
