//! The queue's statements; most call one database function, in one round trip.
//!
//! Not here: when a statement runs, and what happens if the database does not answer (the callers).

use std::collections::HashMap;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use sqlx::types::Json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::storable_text::{is_storable_link, storable};
use super::{Claim, WorkerId};
use crate::contract::scans::PauseReason;
use crate::contract::{Api, Offer, SearchStatus, Verdict};
use crate::ids::{AttemptId, ItemId, ScanId, TenantId};
use crate::search::StoredHeaders;
use crate::tenants::store::StoredGrant;
use crate::tenants::{Purpose, SealedKey};

/// The result of a claim.
#[derive(Debug)]
pub enum ClaimResult {
    /// The claims, and the milliseconds until the next poll: at most 1000.
    Claims(Vec<ClaimRow>, u64),
    /// The worker has lost its lease.
    Fenced,
}

/// A claimed item, with the data of its call.
#[derive(Debug, Clone)]
pub struct ClaimRow {
    pub claim: Claim,
    /// The API of its lane.
    pub lane: Api,
    pub scan: ScanId,
    /// The endpoint's name, as the scan has it.
    pub endpoint: String,
    /// The complete body of the search.
    pub body: Map<String, Value>,
    /// The price filters are sent upstream instead of being applied here.
    pub upstream_filters: bool,
    /// The rows to request, where the scan sets them.
    pub upstream_limit: Option<u32>,
    /// Its search is sent as its caller wrote it, and its outcome is stored.
    pub verbatim: bool,
    /// It may take the answer of an equal search, or give its own to one.
    pub shares: bool,
    /// The sealed key, as it was at the claim; `None`: it was wiped or has expired.
    pub grant: Option<StoredGrant>,
}

/// The timeline of the database's log: each promotion of a standby starts a new one.
///
/// # Errors
/// When the database does not answer, is a standby, or does not report it.
pub async fn timeline(conn: &mut PgConnection) -> sqlx::Result<i32> {
    sqlx::query_scalar!(r#"select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer as "timeline!""#)
        .fetch_one(conn)
        .await
}

/// Claims up to `limit` items for `worker`.
///
/// # Errors
/// When the database does not answer. The claim may be committed: then [`leaked_claims`] finds it.
pub async fn claim(
    conn: impl PgExecutor<'_>,
    worker: WorkerId,
    limit: usize,
) -> sqlx::Result<ClaimResult> {
    let rows = sqlx::query!(
        r#"select tenant_id, api as "api: Api", item_id, scan_id, number, endpoint, body as "body: Json<Map<String, Value>>", upstream_filters,
                  upstream_limit, verbatim, shares, grant_id, key_purpose, key_id, key_nonce, key_ciphertext, key_expires_at, wait_ms
           from claim_items($1, $2)"#,
        worker.0,
        i32::try_from(limit).unwrap_or(i32::MAX),
    )
    .fetch_all(conn)
    .await?;
    let wait_ms = rows.last().and_then(|row| row.wait_ms).unwrap_or(0);
    let Ok(wait_ms) = u64::try_from(wait_ms) else {
        return Ok(ClaimResult::Fenced);
    };
    let claims = rows.into_iter().filter_map(|row| {
        let tenant = TenantId::from(row.tenant_id?);
        let grant = || {
            Some(StoredGrant {
                id: (tenant, row.grant_id?.into()),
                purpose: Purpose::parse(&row.key_purpose?),
                expires_at: row.key_expires_at?.to_jiff(),
                sealed: SealedKey {
                    key_id: row.key_id?,
                    nonce: row.key_nonce?,
                    ciphertext: row.key_ciphertext?,
                },
            })
        };
        Some(ClaimRow {
            claim: Claim {
                worker,
                tenant,
                item: row.item_id?.into(),
                number: row.number?,
            },
            lane: row.api?,
            scan: row.scan_id?.into(),
            endpoint: row.endpoint?,
            body: row.body?.0,
            upstream_filters: row.upstream_filters?,
            upstream_limit: row
                .upstream_limit
                .and_then(|limit| u32::try_from(limit).ok()),
            verbatim: row.verbatim?,
            shares: row.shares?,
            grant: grant(),
        })
    });
    Ok(ClaimResult::Claims(claims.collect(), wait_ms))
}

/// The decision of `begin_calls` on one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeginVerdict {
    /// Recorded: send it.
    Begun,
    /// The scan's budget is spent.
    BudgetSpent,
    /// It needs no call: its item took an answer, or waits for an equal search in flight.
    Shared,
    /// The scan or the lane has stopped, or the marketplace is down.
    Stopped,
    /// The claim is no longer the worker's, or its number is already recorded.
    ClaimLost,
}

/// Records claims as sent; one verdict for each, in their order. `sharing` are the items that may
/// take the answer of an equal search.
///
/// # Errors
/// When the database does not answer. Idempotent for the same attempt ids.
pub async fn begin(
    conn: impl PgExecutor<'_>,
    claims: &[(Claim, AttemptId)],
    sharing: &[Uuid],
    now: Timestamp,
) -> sqlx::Result<Vec<BeginVerdict>> {
    let workers: Vec<_> = claims.iter().map(|(claim, _)| claim.worker.0).collect();
    let tenants: Vec<_> = claims
        .iter()
        .map(|(claim, _)| claim.tenant.uuid())
        .collect();
    let items: Vec<_> = claims.iter().map(|(claim, _)| claim.item.uuid()).collect();
    let numbers: Vec<_> = claims.iter().map(|(claim, _)| claim.number).collect();
    let attempts: Vec<_> = claims.iter().map(|(_, attempt)| attempt.uuid()).collect();
    let rows = sqlx::query!(
        r#"select attempt_id as "attempt_id!", verdict as "verdict!" from begin_calls($1, $2, $3, $4, $5, $6, $7)"#,
        now.to_sqlx() as _,
        &workers,
        &tenants,
        &items,
        &numbers,
        &attempts,
        sharing,
    )
    .fetch_all(conn)
    .await?;
    let verdicts: HashMap<_, _> = rows
        .iter()
        .map(|row| (row.attempt_id, row.verdict.as_str()))
        .collect();
    let verdict = |attempt: &AttemptId| match verdicts.get(&attempt.uuid()) {
        Some(&"begun") => BeginVerdict::Begun,
        Some(&"no_room") => BeginVerdict::BudgetSpent,
        Some(&"shared") => BeginVerdict::Shared,
        Some(_) => BeginVerdict::Stopped,
        None => BeginVerdict::ClaimLost,
    };
    Ok(claims.iter().map(|(_, attempt)| verdict(attempt)).collect())
}

/// Fails the item of a claim whose call the database refuses to record: nothing was sent. Ignores a
/// claim that is no longer the worker's.
pub async fn fail_claim(
    conn: impl PgExecutor<'_>,
    claim: Claim,
    error: &str,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "select from fail_claim($1, $2, $3, $4, $5, $6)",
        now.to_sqlx() as _,
        claim.worker.0,
        claim.tenant.uuid(),
        claim.item.uuid(),
        claim.number,
        storable(error),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Reserves budget and pace for a call's retry; `false`: refused.
pub async fn reserve_retry(conn: impl PgExecutor<'_>, claim: Claim) -> sqlx::Result<bool> {
    let taken = sqlx::query_scalar!(
        r#"select reserve_retry($1, $2, $3) as "taken!""#,
        claim.tenant.uuid(),
        claim.item.uuid(),
        claim.number
    );
    taken.fetch_one(conn).await
}

/// A completed call in the form of the SQL type `finished_call`, and of the spool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    pub tenant_id: Uuid,
    pub item_id: Uuid,
    pub number: i32,
    /// The attempt that it was recorded as. `None`: from the spool of an older version.
    #[serde(default)]
    pub attempt_id: Option<Uuid>,
    pub ended_at: Timestamp,
    pub ending: CallEnding,
    pub may_retry: bool,
    pub http_status: Option<u16>,
    pub search_status: Option<SearchStatus>,
    pub reason: Option<String>,
    pub error: Option<String>,
    pub search_headers: StoredHeaders,
    pub latency_ms: i32,
    pub billed: u16,
    pub results: Option<i32>,
    /// A decimal number as text, so that no digit is lost.
    pub best_price: Option<String>,
    pub currency: Option<String>,
    #[serde(deserialize_with = "pause_reason")]
    pub pause_reason: Option<PauseReasonStr>,
    pub pause_seconds: Option<f64>,
}

impl CallRecord {
    /// Whether [`open_calls`] locks the call's lane: its item becomes pending again, or it may
    /// pause the lane.
    pub(super) fn locks_lane(&self) -> bool {
        self.ending == CallEnding::Requeued || self.pause_reason.is_some()
    }
}

/// A [`PauseReason`] as text. An alias, because serde would borrow a plain `&'static str` from its
/// input.
type PauseReasonStr = &'static str;

fn pause_reason<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PauseReasonStr>, D::Error> {
    Ok(Option::<PauseReason>::deserialize(deserializer)?.map(PauseReason::as_str))
}

/// How a call ends for its item. The names are those of the SQL type and of the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnding {
    Done,
    Failed,
    #[serde(rename = "returned")]
    Requeued,
}

/// A completed call that cannot be recorded, because it is not recorded as begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnrecordedCall {
    pub item: Uuid,
    /// Its item exists. A missing item was deleted with its scan, or lost in a failover.
    pub has_item: bool,
}

/// What the ledger has of completed calls.
#[derive(Debug, Default)]
pub struct OpenCalls {
    /// The items of the calls that are not recorded yet, with the numbers under which they are in
    /// the ledger. A number differs from the call's own if the call's row was lost in a failover
    /// and another call has its number now.
    pub numbers: HashMap<Uuid, i32>,
    /// Those that cannot be recorded.
    pub unknown: Vec<UnrecordedCall>,
    /// The attempts whose rows this transaction restored.
    restored: Vec<Uuid>,
    /// Some items no longer wait for these calls.
    some_late: bool,
}

/// Locks the items of completed calls of different items, and finds which of them are to be
/// recorded. Restores the rows that a failover lost. First locks the lanes of calls that may pause
/// them. Until the commit no other transaction records them.
pub async fn open_calls(conn: &mut PgConnection, calls: &[&CallRecord]) -> sqlx::Result<OpenCalls> {
    lock_lanes_of_calls(conn, calls).await?;
    let rows = sqlx::query!(
        r#"select item_id as "item!", number, is_open as "is_open!", is_current as "is_current!" from open_calls($1, $2, $3, $4)"#,
        &calls.iter().map(|call| call.tenant_id).collect::<Vec<_>>(),
        &calls.iter().map(|call| call.item_id).collect::<Vec<_>>(),
        &calls.iter().map(|call| call.number).collect::<Vec<_>>(),
        &calls.iter().map(|call| call.attempt_id).collect::<Vec<_>>() as _,
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut open = OpenCalls::default();
    let (mut lost, mut known) = (Vec::new(), HashMap::new());
    for row in rows {
        if let (Some(number), true) = (row.number, row.is_open) {
            open.numbers.insert(row.item, number);
        }
        open.some_late |= !row.is_current;
        known.insert(row.item, row.number.is_some());
    }
    for call in calls {
        match known.get(&call.item_id) {
            Some(true) => {}
            Some(false) if call.attempt_id.is_some() => lost.push(*call),
            found => open.unknown.push(UnrecordedCall {
                item: call.item_id,
                has_item: found.is_some(),
            }),
        }
    }
    if !lost.is_empty() {
        let restored = sqlx::query!(
            r#"select item_id as "item!", number as "number!" from restore_calls($1)"#,
            Json(&lost) as _
        )
        .fetch_all(conn)
        .await?;
        open.numbers
            .extend(restored.into_iter().map(|row| (row.item, row.number)));
        open.restored = lost.iter().filter_map(|call| call.attempt_id).collect();
        open.some_late = true;
    }
    Ok(open)
}

/// Locks the lanes of the calls that may pause them or put their items back: few.
async fn lock_lanes_of_calls(conn: &mut PgConnection, calls: &[&CallRecord]) -> sqlx::Result<()> {
    let calls: Vec<_> = calls.iter().filter(|call| call.locks_lane()).collect();
    if calls.is_empty() {
        return Ok(());
    }
    let puts_back = |call: &&&CallRecord| call.ending == CallEnding::Requeued;
    sqlx::query!(
        "select from lock_lanes_of_calls($1, $2, $3)",
        &calls.iter().map(|call| call.tenant_id).collect::<Vec<_>>(),
        &calls.iter().map(|call| call.item_id).collect::<Vec<_>>(),
        &calls.iter().map(puts_back).collect::<Vec<_>>(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A completed call in the form of the SQL type `finished_call`.
#[derive(Debug, Serialize)]
struct FinishedCall<'a> {
    #[serde(flatten)]
    record: CallRecord,
    offer: Option<OfferRecord<'a>>,
}

/// What a grid shows beside an item's price, in the form of the SQL type `offer_record`.
#[derive(Debug, Serialize)]
struct OfferRecord<'a> {
    seller: Option<String>,
    board: Option<String>,
    link: Option<&'a str>,
    band_low: Option<String>,
    band_high: Option<String>,
    verdict: Option<&'static str>,
}

impl<'a> OfferRecord<'a> {
    fn of(offer: &'a Offer) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(storable);
        let link = offer.link.as_deref();
        Self {
            seller: text(&offer.carrier_or_room),
            board: text(&offer.board),
            link: link.filter(|link| is_storable_link(link)),
            band_low: offer.band_low.map(|amount| amount.to_string()),
            band_high: offer.band_high.map(|amount| amount.to_string()),
            verdict: offer.verdict.map(Verdict::as_str),
        }
    }
}

/// Records those of the calls that are `open`; each with the offer that has its price. Takes the
/// locks of their scans, which the begins of other calls wait for, so it comes last in its
/// transaction.
///
/// # Errors
/// When the database does not answer, or rejects a call.
pub async fn record_calls(
    conn: &mut PgConnection,
    calls: &[(&CallRecord, Option<&Offer>)],
    open: &OpenCalls,
    now: Timestamp,
) -> sqlx::Result<()> {
    let calls: Vec<_> = calls
        .iter()
        .filter_map(|(call, offer)| {
            let number = *open.numbers.get(&call.item_id)?;
            Some(FinishedCall {
                record: CallRecord {
                    number,
                    ..(*call).clone()
                },
                offer: offer.map(OfferRecord::of),
            })
        })
        .collect();
    if calls.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "select from record_calls($1, $2, $3, $4)",
        now.to_sqlx() as _,
        Json(calls) as _,
        &open.restored,
        open.some_late,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A whole answer in its stored form.
#[derive(Debug)]
pub struct StoredAnswer<'a> {
    pub tenant: TenantId,
    pub item: ItemId,
    pub number: i32,
    pub observed_at: Timestamp,
    /// Compressed.
    pub body: &'a [u8],
}

/// Stores whole answers of calls that [`open_calls`] has found to be open, so none is stored yet: a
/// plain insert logs less than one that may meet rows.
///
/// # Errors
/// When the database does not answer, or lacks the month's partition.
pub async fn insert_answers(
    conn: &mut PgConnection,
    answers: &[StoredAnswer<'_>],
) -> sqlx::Result<()> {
    let tenants: Vec<_> = answers.iter().map(|answer| answer.tenant.uuid()).collect();
    let items: Vec<_> = answers.iter().map(|answer| answer.item.uuid()).collect();
    let numbers: Vec<_> = answers.iter().map(|answer| answer.number).collect();
    let times: Vec<_> = answers
        .iter()
        .map(|answer| answer.observed_at.to_sqlx())
        .collect();
    let bodies: Vec<_> = answers.iter().map(|answer| answer.body.to_vec()).collect();
    sqlx::query!(
        "insert into answers (tenant_id, item_id, number, observed_at, body)
         select * from unnest($1::uuid[], $2::uuid[], $3::integer[], $4::timestamptz[], $5::bytea[])",
        &tenants,
        &items,
        &numbers,
        &times as _,
        &bodies,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The outcome of a call whose search was sent as its caller wrote it.
#[derive(Debug)]
pub struct StoredOutcome<'a> {
    pub tenant: TenantId,
    pub item: ItemId,
    pub number: i32,
    /// JSON, compressed.
    pub outcome: &'a [u8],
}

/// Stores outcomes; replaces those of earlier calls.
pub async fn insert_outcomes(
    conn: &mut PgConnection,
    outcomes: &[StoredOutcome<'_>],
) -> sqlx::Result<()> {
    let tenants: Vec<_> = outcomes.iter().map(|row| row.tenant.uuid()).collect();
    let items: Vec<_> = outcomes.iter().map(|row| row.item.uuid()).collect();
    let numbers: Vec<_> = outcomes.iter().map(|row| row.number).collect();
    let bodies: Vec<_> = outcomes.iter().map(|row| row.outcome.to_vec()).collect();
    sqlx::query!(
        "insert into search_outcomes (tenant_id, item_id, number, outcome)
         select * from unnest($1::uuid[], $2::uuid[], $3::integer[], $4::bytea[])
         on conflict (tenant_id, item_id) do update set number = excluded.number, outcome = excluded.outcome
          where search_outcomes.number < excluded.number",
        &tenants,
        &items,
        &numbers,
        &bodies,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Locks claims of one lane, as [`abandon`] does, and returns the calls that it will give up as
/// lost.
pub async fn lock_lost_calls(
    conn: impl PgExecutor<'_>,
    lane: &LaneClaims,
) -> sqlx::Result<Vec<LostCall>> {
    sqlx::query_as!(
        LostCall,
        r#"select item_id as "item!", number as "number!", endpoint as "endpoint!", body as "body!: Json<Map<String, Value>>"
           from lock_lost_calls($1, $2, $3, $4)"#,
        lane.tenant.uuid(),
        lane.api,
        &lane.items,
        &lane.numbers,
    )
    .fetch_all(conn)
    .await
}

/// A call that was abandoned after it had begun.
#[derive(Debug)]
pub struct LostCall {
    pub item: ItemId,
    pub number: i32,
    /// The endpoint's name.
    pub endpoint: String,
    /// The complete body of the search.
    pub body: Json<Map<String, Value>>,
}

/// Abandons claims of one lane; returns the lost calls. Idempotent.
pub async fn abandon(
    conn: impl PgExecutor<'_>,
    lane: &LaneClaims,
    now: Timestamp,
) -> sqlx::Result<Vec<LostCall>> {
    sqlx::query_as!(
        LostCall,
        r#"select item_id as "item!", number as "number!", endpoint as "endpoint!", body as "body!: Json<Map<String, Value>>"
           from abandon_claims($1, $2, $3, $4, $5)"#,
        now.to_sqlx() as _,
        lane.tenant.uuid(),
        lane.api,
        &lane.items,
        &lane.numbers,
    )
    .fetch_all(conn)
    .await
}

/// Deletes the records of calls of one lane that were begun and certainly not sent.
pub async fn withdraw_unsent(conn: impl PgExecutor<'_>, lane: &LaneClaims) -> sqlx::Result<()> {
    sqlx::query!(
        "select from withdraw_unsent($1, $2, $3, $4)",
        lane.tenant.uuid(),
        lane.api,
        &lane.items,
        &lane.numbers
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Claims of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneClaims {
    pub tenant: TenantId,
    pub api: String,
    pub items: Vec<Uuid>,
    pub numbers: Vec<i32>,
}

/// Lanes that were locked: this pass skips them.
#[derive(Debug, Default)]
pub struct LockedLanes {
    tenants: Vec<Uuid>,
    apis: Vec<String>,
}

impl LockedLanes {
    /// Adds a lane.
    pub fn add(&mut self, tenant: TenantId, api: &str) {
        self.tenants.push(tenant.uuid());
        self.apis.push(api.to_owned());
    }
}

/// Claims of dead workers, at most `limit`, by lane, without busy lanes.
pub async fn orphaned_claims(
    conn: impl PgExecutor<'_>,
    limit: i32,
    busy: &LockedLanes,
) -> sqlx::Result<Vec<LaneClaims>> {
    sqlx::query_as!(
        LaneClaims,
        r#"select tenant_id as "tenant!", api as "api!", items as "items!", numbers as "numbers!" from orphaned_claims($1, $2, $3)"#,
        limit,
        &busy.tenants,
        &busy.apis,
    )
    .fetch_all(conn)
    .await
}

/// Lanes with due retries, up to `limit` items, without busy lanes.
pub async fn lanes_with_due_retries(
    conn: impl PgExecutor<'_>,
    limit: i32,
    busy: &LockedLanes,
) -> sqlx::Result<Vec<(TenantId, String)>> {
    let lanes = sqlx::query!(
        r#"select tenant_id as "tenant!", api as "api!" from lanes_with_due_retries($1, $2, $3)"#,
        limit,
        &busy.tenants,
        &busy.apis,
    );
    Ok(lanes
        .fetch_all(conn)
        .await?
        .into_iter()
        .map(|lane| (lane.tenant.into(), lane.api))
        .collect())
}

/// Items that wait for an equal search which is not called any more, up to `limit`, by lane,
/// without busy lanes.
pub async fn forgotten_waits(
    conn: impl PgExecutor<'_>,
    limit: i32,
    busy: &LockedLanes,
) -> sqlx::Result<Vec<(TenantId, String, Vec<ItemId>)>> {
    let lanes = sqlx::query!(
        r#"select tenant_id as "tenant!", api as "api!", items as "items!" from forgotten_waits($1, $2, $3)"#,
        limit,
        &busy.tenants,
        &busy.apis,
    );
    let items = |items: Vec<Uuid>| items.into_iter().map(ItemId::from).collect();
    Ok(lanes
        .fetch_all(conn)
        .await?
        .into_iter()
        .map(|lane| (lane.tenant.into(), lane.api, items(lane.items)))
        .collect())
}

/// Makes due retries of a lane pending again, at most `limit`.
///
/// # Errors
/// When the database does not answer, or the lane is busy.
pub async fn release_due_retries(
    conn: impl PgExecutor<'_>,
    tenant: TenantId,
    api: &str,
    limit: i32,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "select from release_delayed($1, $2, $3, $4)",
        now.to_sqlx() as _,
        tenant.uuid(),
        api,
        limit
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Claims of `worker` that are not in `open` (items and numbers) and are older than
/// `grace_seconds`, by lane.
pub async fn leaked_claims(
    conn: impl PgExecutor<'_>,
    worker: WorkerId,
    open: &[(Uuid, i32)],
    grace_seconds: f64,
) -> sqlx::Result<Vec<LaneClaims>> {
    let (items, numbers): (Vec<_>, Vec<_>) = open.iter().copied().unzip();
    sqlx::query_as!(
        LaneClaims,
        r#"select tenant_id as "tenant!", api as "api!", items as "items!", numbers as "numbers!"
           from leaked_claims($1, $2, $3, make_interval(secs => $4))"#,
        worker.0,
        &items,
        &numbers,
        grace_seconds
    )
    .fetch_all(conn)
    .await
}
