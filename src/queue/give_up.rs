//! Ending claims that nobody will carry on: back to be claimed again, or, once the call had begun, lost.

use jiff::Timestamp;
use sqlx::{PgPool, Postgres, Transaction};

use super::store::{self, LaneClaims, LostCall};
use crate::contract::{Endpoint, Request, SearchStatus};
use crate::db;
use crate::history::{self, Observation, Subject};
use crate::measure;

/// Gives up claims of one lane in a transaction of its own. A lost call leaves an observation too, so that the gap is visible
/// (jobs-api, "History"). Gives how many were lost.
///
/// # Errors
/// When the database does not answer. Again is no error: a claim is given up once.
pub async fn give_up(pool: &PgPool, lane: &LaneClaims) -> sqlx::Result<usize> {
    give_up_in(db::begin(pool).await?, lane).await
}

/// The same, but it waits for locks only briefly.
pub(super) async fn give_up_briefly(pool: &PgPool, lane: &LaneClaims) -> sqlx::Result<usize> {
    let mut tx = db::begin(pool).await?;
    db::wait_briefly(&mut tx).await?;
    give_up_in(tx, lane).await
}

/// The same of claims whose calls were certainly not sent: what of them is on record is taken off it, so none is lost.
///
/// # Errors
/// When the database does not answer.
pub async fn give_up_unsent(pool: &PgPool, lane: &LaneClaims) -> sqlx::Result<usize> {
    let mut tx = db::begin(pool).await?;
    store::take_back(&mut *tx, lane).await?;
    give_up_in(tx, lane).await
}

async fn give_up_in(
    mut tx: Transaction<'static, Postgres>,
    lane: &LaneClaims,
) -> sqlx::Result<usize> {
    let now = Timestamp::now();
    let lost = store::give_up(&mut *tx, lane, now).await?;
    let gaps: Vec<_> = lost
        .iter()
        .filter_map(|call| gap(lane, call, now))
        .collect();
    history::record(&mut tx, &gaps).await?;
    tx.commit().await?;
    measure::items_ended(measure::LOST, lost.len() as u64);
    Ok(lost.len())
}

fn gap(lane: &LaneClaims, call: &LostCall, now: Timestamp) -> Option<Observation> {
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
