//! A [`TestService`] whose items the test processes step by step: claim, begin, record.

use farescan::contract::SearchStatus;
use farescan::ids::AttemptId;
use farescan::queue::WorkerId;
use farescan::queue::store::{self, BeginVerdict, CallEnding, CallRecord, ClaimResult, ClaimRow};
use farescan::scans::question::{self, DueWork, Turn};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::PgPool;

use super::WAIT_LIMIT;
use super::service::{TestService, fares};

/// The outcome of a search.
#[derive(Clone, Copy)]
pub enum SearchOutcome {
    /// With a best price in dollars.
    Ok(u32),
    Empty,
    Partial(u32),
    Degraded(&'static str),
    Failed,
    /// The call stays on record as sent.
    InFlight,
}

/// Makes all decisions of strategies that are due; returns their number.
pub async fn decide_all(pool: &PgPool) -> sqlx::Result<usize> {
    do_due(pool, DueWork::Decisions).await
}

/// Does all that is due for scans now.
pub async fn do_due(pool: &PgPool, work: DueWork) -> sqlx::Result<usize> {
    let now = Timestamp::now();
    question::do_due(pool, work, &mut Turn::default(), WAIT_LIMIT, now).await
}

impl TestService {
    /// Submits a scan and completes all its items.
    pub async fn submit_and_complete(
        &self,
        body: &Value,
        outcome: impl Fn(usize) -> SearchOutcome,
    ) -> String {
        let id = self.submit(body).await;
        self.complete_all(outcome).await;
        id
    }

    /// Completes one scan, so that the marketplace has accepted the key and several scans may run.
    pub async fn accept_key_by_steps(&self) {
        self.submit_and_complete(&fares(1), |_| SearchOutcome::Ok(300))
            .await;
    }

    /// Completes all items that can be claimed; `outcome` receives their positions.
    pub async fn complete_all(&self, outcome: impl Fn(usize) -> SearchOutcome) {
        let claimable = "select count(*) from scan_items i join lanes l using (tenant_id, api)
                         where i.state = 'pending' and (l.paused_until <= clock_timestamp()) is not false";
        loop {
            let claims = self.claim().await;
            if claims.is_empty() {
                // A claim skips a lane that is locked or that its pace holds back.
                let left: i64 = value!(self.pool(), claimable);
                if left == 0 {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            for claimed in claims {
                let position = self.begin(&claimed).await;
                self.finish(&claimed, outcome(position)).await;
            }
        }
    }

    /// Claims all items that can be claimed.
    pub async fn claim(&self) -> Vec<ClaimRow> {
        let insert = "insert into workers (lease_until) values (clock_timestamp() + interval '1 hour') returning worker_id";
        let worker = async || WorkerId(value!(self.pool(), insert));
        let worker = self.worker.get_or_init(worker).await;
        match store::claim(self.pool(), *worker, 500).await.unwrap() {
            ClaimResult::Claims(claims, _) => claims,
            ClaimResult::Fenced => panic!("fenced"),
        }
    }

    /// Records a claim as sent; returns its position.
    pub async fn begin(&self, claimed: &ClaimRow) -> usize {
        assert_eq!(self.try_begin(claimed).await, BeginVerdict::Begun);
        let position = "select position from scan_items where item_id = $1";
        let position: i32 = value!(self.pool(), position, claimed.claim.item.uuid());
        position.try_into().unwrap()
    }

    pub async fn try_begin(&self, claimed: &ClaimRow) -> BeginVerdict {
        store::begin(
            self.db.pool(),
            &[(claimed.claim, AttemptId::new())],
            &[],
            Timestamp::now(),
        )
        .await
        .unwrap()[0]
    }

    pub async fn finish(&self, claimed: &ClaimRow, outcome: SearchOutcome) {
        let now = Timestamp::now();
        let call = match outcome {
            SearchOutcome::InFlight => return,
            SearchOutcome::Ok(price) => done(claimed, now, SearchStatus::Ok, None, Some(price)),
            SearchOutcome::Partial(price) => done(
                claimed,
                now,
                SearchStatus::Partial,
                Some("search_truncated"),
                Some(price),
            ),
            SearchOutcome::Empty => done(claimed, now, SearchStatus::Empty, None, None),
            SearchOutcome::Degraded(reason) => {
                done(claimed, now, SearchStatus::Degraded, Some(reason), None)
            }
            SearchOutcome::Failed => CallRecord {
                ending: CallEnding::Failed,
                may_retry: false,
                search_status: None,
                error: Some("no such airport".to_owned()),
                http_status: Some(422),
                ..done(
                    claimed,
                    now,
                    SearchStatus::Degraded,
                    Some("invalid_request"),
                    None,
                )
            },
        };
        let mut conn = self.db.pool().acquire().await.unwrap();
        let open = store::open_calls(&mut conn, &[&call]).await.unwrap();
        assert_eq!(open.numbers.len(), 1);
        store::record_calls(&mut conn, &[(&call, None)], &open, now)
            .await
            .unwrap();
    }
}

fn done(
    claimed: &ClaimRow,
    now: Timestamp,
    status: SearchStatus,
    reason: Option<&str>,
    price: Option<u32>,
) -> CallRecord {
    CallRecord {
        ended_at: now,
        reason: reason.map(str::to_owned),
        latency_ms: 12,
        results: (status != SearchStatus::Degraded).then_some(i32::from(price.is_some())),
        best_price: price.map(|price| price.to_string()),
        currency: price.map(|_| "USD".to_owned()),
        ..crate::queue::fixture::done(claimed.claim, status)
    }
}
