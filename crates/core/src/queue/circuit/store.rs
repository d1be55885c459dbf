//! The circuits' rows: one for each API.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use sqlx::types::Json;
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;

use super::{CallHealth, Circuit, CircuitChange, FailureWindow};
use crate::contract::Api;
use crate::db;
use crate::queue::database_retry::TRANSACTION_TIMEOUT;

/// How long successes may wait.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Reports the health of this process's calls to the database: failures at once, successes once a
/// second.
#[derive(Debug, Default)]
pub(in crate::queue) struct HealthReporter {
    /// Calls in the order in which they ended: API, item and health.
    waiting: Vec<(Api, Uuid, CallHealth)>,
    last: Option<Instant>,
}

impl HealthReporter {
    /// Adds calls that have ended.
    pub(in crate::queue) async fn record(
        &mut self,
        pool: &PgPool,
        calls: impl Iterator<Item = (Api, Uuid, CallHealth)>,
    ) {
        self.waiting.extend(calls);
        let has_failure = self
            .waiting
            .iter()
            .any(|(_, _, health)| *health == CallHealth::Failure);
        if has_failure || (!self.waiting.is_empty() && self.is_due()) {
            self.flush(pool).await;
        }
    }

    fn is_due(&self) -> bool {
        self.last
            .is_none_or(|last| last.elapsed() >= FLUSH_INTERVAL)
    }

    /// Returns when successes have waited long enough; never while none wait.
    pub(in crate::queue) async fn flush_due(&self) {
        match self.last {
            Some(last) if !self.waiting.is_empty() => sleep_until(last + FLUSH_INTERVAL).await,
            _ => std::future::pending().await,
        }
    }

    /// Reports the waiting calls. Drops them if that fails: they are soon out of date.
    pub(in crate::queue) async fn flush(&mut self, pool: &PgPool) {
        self.last = Some(Instant::now());
        for api in Api::ALL {
            let calls: Vec<_> = self
                .waiting
                .iter()
                .filter(|(of, ..)| of == api)
                .map(|(_, item, health)| (*item, *health))
                .collect();
            if calls.is_empty() {
                continue;
            }
            match timeout(TRANSACTION_TIMEOUT, update_circuit(pool, *api, &calls)).await {
                Ok(Ok(CircuitChange::Unchanged)) => {}
                Ok(Ok(CircuitChange::Opened)) => {
                    tracing::error!(%api, "circuit opened: the marketplace fails; only probes are sent");
                }
                Ok(Ok(CircuitChange::Closed)) => {
                    tracing::info!(%api, "circuit closed: the marketplace answers again");
                }
                Ok(Err(error)) => {
                    tracing::debug!(%error, "failed to report the marketplace's health");
                }
                Err(_) => tracing::debug!("reporting the marketplace's health timed out"),
            }
        }
        self.waiting.clear();
    }
}

/// Counts calls of one API, under its row's lock.
async fn update_circuit(
    pool: &PgPool,
    api: Api,
    calls: &[(Uuid, CallHealth)],
) -> sqlx::Result<CircuitChange> {
    let mut tx = db::begin(pool).await?;
    let row = sqlx::query!(
        r#"select tally, opened_at is not null as "is_open!", probes, clock_timestamp() as "now!"
           from circuits where api = $1 for update"#,
        api.as_str()
    )
    .fetch_one(&mut *tx)
    .await?;
    let now: Timestamp = row.now.to_jiff();
    // Another version of this program may have written another format.
    let window = serde_json::from_value::<FailureWindow>(row.tally).unwrap_or_default();
    let mut circuit = Circuit {
        window,
        is_open: row.is_open,
    };
    let before = circuit.clone();
    let calls: Vec<_> = calls
        .iter()
        .map(|(item, health)| (*health, row.probes.contains(item)))
        .collect();
    let change = circuit.record(&calls, now);
    match change {
        CircuitChange::Unchanged if circuit == before => return Ok(change),
        CircuitChange::Unchanged => {
            sqlx::query!(
                "update circuits set tally = $2 where api = $1",
                api.as_str(),
                Json(&circuit.window) as _
            )
            .execute(&mut *tx)
            .await?;
        }
        CircuitChange::Opened => {
            sqlx::query!("select from open_circuit($1)", api.as_str())
                .execute(&mut *tx)
                .await?;
        }
        CircuitChange::Closed => {
            sqlx::query!("select from close_circuit($1)", api.as_str())
                .execute(&mut *tx)
                .await?;
        }
    }
    tx.commit().await?;
    Ok(change)
}
