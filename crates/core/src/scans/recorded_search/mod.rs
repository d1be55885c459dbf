//! Synchronous searches that are stored after their call: each is a scan of one item that has ended,
//! as with `Prefer` (gateway.md, rules 54 and 57).
//!
//! Here: the rows of a call that was made without them, and the search for an answer that an equal
//! search may take. Not here: what the call came to (`queue::recorded_search`), and when a
//! synchronous search may take an answer (`api::gateway`).

mod store;

use jiff::{SignedDuration, Timestamp};
use sqlx::{PgConnection, PgPool};

use super::respond_async;
use super::searches::Searches;
use super::sequence::Sequence;
use super::store::{NewItems, ensure_lane, insert_items, insert_scan};
use crate::commands::CommandError;
use crate::config::PaceConfig;
use crate::contract::Request;
use crate::contract::scans::MaxAgeSeconds;
use crate::ids::{AttemptId, ItemId, ScanId, TenantId};
use crate::search::Outcome;

/// The number of the only call of a recorded search.
pub const CALL_NUMBER: i32 = 1;

/// The rows of a call that was made before they were written.
#[derive(Debug, Clone, Copy)]
pub struct RecordedCall {
    pub scan: ScanId,
    pub item: ItemId,
    pub attempt: AttemptId,
}

/// The outcome of an earlier equal search, with its answer.
#[derive(Debug)]
pub struct AgedOutcome {
    pub outcome: Outcome,
    /// How old the answer is.
    pub age: SignedDuration,
}

/// Inserts scan, item and attempt of a call that began at `started_at` and has cost `billed`
/// requests, as they were while it was in flight. The transaction must go on to record what it came
/// to.
///
/// # Errors
/// When the database does not answer, or the endpoint has no scans.
pub async fn insert_call(
    conn: &mut PgConnection,
    tenant: TenantId,
    pace: &PaceConfig,
    request: &Request,
    started_at: Timestamp,
    billed: u16,
) -> Result<RecordedCall, CommandError> {
    let plan = respond_async::plan(request)?;
    ensure_lane(conn, tenant, request.endpoint().api(), pace).await?;
    let scan = ScanId::new();
    insert_scan(conn, tenant, scan, None, &plan, None, started_at).await?;
    let sequence = Sequence::new(0, plan.scan_request.priority_or_default());
    let items = NewItems {
        positions: 0..1,
        accepted: true,
    };
    insert_items(conn, tenant, scan, &plan, items, &sequence, started_at).await?;
    let attempt = AttemptId::new();
    let item = store::begin_call(conn, tenant, scan, attempt, started_at, billed).await?;
    Ok(RecordedCall {
        scan,
        item,
        attempt,
    })
}

/// The youngest complete answer to an equal search of this caller that was sent as written, if one
/// is at most `max_age` old.
pub async fn find_answer(
    pool: &PgPool,
    tenant: TenantId,
    request: &Request,
    max_age: MaxAgeSeconds,
    now: Timestamp,
) -> sqlx::Result<Option<AgedOutcome>> {
    let (_, searches) = Searches::of(std::iter::once(((), request)));
    store::find_answer(pool, tenant, request.endpoint(), &searches, max_age, now).await
}
