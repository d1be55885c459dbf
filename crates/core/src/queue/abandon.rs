//! Abandons claims: their items can be claimed again or, once their call had begun, the call is
//! lost.

use jiff::Timestamp;
use sqlx::{PgPool, Postgres, Transaction};

use super::store::{self, LaneClaims, LostCall};
use crate::contract::{Endpoint, Request, SearchStatus};
use crate::db;
use crate::history::{self, Observation, Subject};
use crate::metrics;

/// Abandons claims of one lane in its own transaction. A lost call leaves an observation, so that
/// the gap is visible (history.md, rule 1). Returns the number of lost calls.
///
/// # Errors
/// When the database does not answer. Idempotent: a claim is abandoned once.
pub async fn abandon(pool: &PgPool, lane: &LaneClaims) -> sqlx::Result<usize> {
    abandon_in(db::begin(pool).await?, lane).await
}

/// The same with a lock timeout.
///
/// # Errors
/// When the database does not answer, or a lock is not available.
pub async fn abandon_with_lock_timeout(pool: &PgPool, lane: &LaneClaims) -> sqlx::Result<usize> {
    let mut tx = db::begin(pool).await?;
    db::set_brief_lock_timeout(&mut tx).await?;
    abandon_in(tx, lane).await
}

/// The same for claims whose calls were certainly not sent: their records are withdrawn, so none is
/// lost.
pub async fn abandon_unsent(pool: &PgPool, lane: &LaneClaims) -> sqlx::Result<usize> {
    let mut tx = db::begin(pool).await?;
    store::withdraw_unsent(&mut *tx, lane).await?;
    abandon_in(tx, lane).await
}

async fn abandon_in(
    mut tx: Transaction<'static, Postgres>,
    lane: &LaneClaims,
) -> sqlx::Result<usize> {
    let now = Timestamp::now();
    // Rows of the history are locked before scans, as a record of calls locks them.
    let observations: Vec<_> = store::lock_lost_calls(&mut *tx, lane)
        .await?
        .iter()
        .filter_map(|call| lost_observation(lane, call, now))
        .collect();
    history::insert(&mut tx, &observations).await?;
    let lost = store::abandon(&mut *tx, lane, now).await?;
    tx.commit().await?;
    metrics::items_ended(metrics::LOST, lost.len() as u64);
    Ok(lost.len())
}

fn lost_observation(lane: &LaneClaims, call: &LostCall, now: Timestamp) -> Option<Observation> {
    let request = Request::check(Endpoint::parse(&call.endpoint)?, &call.body)
        .ok()?
        .request;
    Some(Observation {
        tenant: lane.tenant,
        item: call.item,
        number: call.number,
        subject: Subject::of(&request)?,
        observed_at: now,
        best: None,
        results: None,
        status: SearchStatus::Degraded,
        reason: Some("worker_lost".to_owned()),
    })
}
