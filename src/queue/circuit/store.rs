//! The circuits' rows: one for each API.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use sqlx::types::Json;
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;

use super::{Circuit, Sign, Tally, Turn};
use crate::contract::Api;
use crate::db;
use crate::queue::finished::Finished;
use crate::queue::retry::MOVE_TIMEOUT;

/// How long good news may wait.
const SELDOM: Duration = Duration::from_secs(1);

/// Brings what this process's calls say of the marketplace to the database: failures at once, good news once a second.
#[derive(Debug, Default)]
pub(in crate::queue) struct Reporter {
    /// Calls in the order in which they ended: their API, item and sign.
    waiting: Vec<(Api, Uuid, Sign)>,
    last: Option<Instant>,
}

impl Reporter {
    /// Takes note of calls that have ended.
    pub(in crate::queue) async fn saw(&mut self, pool: &PgPool, calls: &[&Finished]) {
        let signs = calls
            .iter()
            .filter_map(|call| Some((call.lane, call.call.item_id, call.sign?)));
        self.waiting.extend(signs);
        let has_news = self.waiting.iter().any(|(_, _, sign)| *sign == Sign::Bad);
        if has_news || (!self.waiting.is_empty() && self.is_due()) {
            self.tell(pool).await;
        }
    }

    fn is_due(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= SELDOM)
    }

    /// Returns when good news has waited long enough; never while there is none.
    pub(in crate::queue) async fn due(&self) {
        match self.last {
            Some(last) if !self.waiting.is_empty() => sleep_until(last + SELDOM).await,
            _ => std::future::pending().await,
        }
    }

    /// Tells what waits. What cannot be told is forgotten: it is about now.
    pub(in crate::queue) async fn tell(&mut self, pool: &PgPool) {
        self.last = Some(Instant::now());
        for api in Api::ALL {
            let calls: Vec<_> = self
                .waiting
                .iter()
                .filter(|(of, ..)| of == api)
                .map(|(_, item, sign)| (*item, *sign))
                .collect();
            if calls.is_empty() {
                continue;
            }
            match timeout(MOVE_TIMEOUT, report(pool, *api, &calls)).await {
                Ok(Ok(Turn::Stays)) => {}
                Ok(Ok(Turn::Opens)) => {
                    tracing::error!(%api, "the marketplace fails: nothing but probes is asked of it")
                }
                Ok(Ok(Turn::Closes)) => tracing::info!(%api, "the marketplace answers again"),
                Ok(Err(error)) => tracing::debug!(%error, "the marketplace's health was not told"),
                Err(_) => tracing::debug!("the marketplace's health was not told in time"),
            }
        }
        self.waiting.clear();
    }
}

/// Counts calls of one API, under its row's lock.
async fn report(pool: &PgPool, api: Api, calls: &[(Uuid, Sign)]) -> sqlx::Result<Turn> {
    let mut tx = db::begin(pool).await?;
    let row = sqlx::query!(
        r#"select tally, opened_at is not null as "is_open!", probes, clock_timestamp() as "now!"
           from circuits where api = $1 for update"#,
        api.as_str()
    )
    .fetch_one(&mut *tx)
    .await?;
    let now: Timestamp = row.now.to_jiff();
    // What another version of this program counted is not worth a failure.
    let tally = serde_json::from_value::<Tally>(row.tally).unwrap_or_default();
    let mut circuit = Circuit {
        tally,
        is_open: row.is_open,
    };
    let before = circuit.clone();
    let calls: Vec<_> = calls
        .iter()
        .map(|(item, sign)| (*sign, row.probes.contains(item)))
        .collect();
    let turn = circuit.see(&calls, now);
    match turn {
        Turn::Stays if circuit == before => return Ok(turn),
        Turn::Stays => {
            sqlx::query!(
                "update circuits set tally = $2 where api = $1",
                api.as_str(),
                Json(&circuit.tally) as _
            )
            .execute(&mut *tx)
            .await?;
        }
        Turn::Opens => {
            sqlx::query!("select from open_circuit($1)", api.as_str())
                .execute(&mut *tx)
                .await?;
        }
        Turn::Closes => {
            sqlx::query!("select from close_circuit($1)", api.as_str())
                .execute(&mut *tx)
                .await?;
        }
    }
    tx.commit().await?;
    Ok(turn)
}
