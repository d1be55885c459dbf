//! Submitting a scan: the whole of it is stored, or nothing.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::default_age::with_default_age;
use super::plan::{ScanPlan, plan_blocking, plan_new};
use super::{after_acceptance, question, read, reuse, store};
use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::config::PaceConfig;
use crate::contract::FieldValue as _;
use crate::contract::scans::{Scan, ScanEndpoint};
use crate::db;
use crate::ids::{GrantId, MonitorId, ScanId, TenantId};
use crate::tenants::{self, GrantTerms, Purpose};

/// The scope of the keys of submits.
const PATH: &str = "/v1/scans";
/// The longest time that a scan's key is stored (security.md, rule 8).
const KEY_LIFETIME: SignedDuration = SignedDuration::from_hours(35 * 24);
/// The most live scans of a caller (security.md, rule 21).
const MAX_LIVE_SCANS: i64 = 100;
/// The most items of a caller that have not ended.
const MAX_OPEN_ITEMS: i64 = 100_000;
/// The most items of a caller that take an answer within an hour (scans.md, rule 79).
const MAX_REUSED_ITEMS: i64 = 100_000;
/// How long a caller at a limit should wait.
const LIMIT_RETRY_AFTER: Duration = Duration::from_secs(60);

/// When a key that is sealed now expires.
pub(super) fn key_expiry(now: Timestamp) -> Timestamp {
    db::truncate_to_micros(now.checked_add(KEY_LIFETIME).unwrap_or(Timestamp::MAX))
}

/// Checks, plans and stores a scan. A worker may claim its first item as soon as this returns.
///
/// # Errors
/// `ValidationErrors` with every fault of the body; `LimitExceeded`; `Busy`; `NotAccepted`;
/// `IdempotencyMismatch`.
pub async fn submit(
    context: RequestContext<'_>,
    pace: &PaceConfig,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Scan>, CommandError> {
    let asked_at = Instant::now();
    let idempotent = IdempotentRequest::new(PATH.to_owned(), body, key);
    // One look-up and one connection for all that is asked before the plan.
    let (mut conn, found) =
        tenants::store::find_with_connection(context.pool, context.ring, context.key, context.now)
            .await?;
    if let Some(replay) = idempotent
        .find_response_of(&mut conn, found, context.now)
        .await?
    {
        return Ok(replay);
    }
    if let Err(refused) = check_admission_early(&mut conn, found, body, context.now).await {
        drop(conn);
        // An equal request may have been stored since the first query.
        return idempotent.find_response(context).await?.ok_or(refused);
    }
    let body = with_default_age(&mut conn, found, body).await?.into_owned();
    drop(conn);
    let plan = plan_blocking(plan_new, body, context.now).await?;
    let mut tx = db::begin(context.pool).await?;
    // The ages of the answers that it takes count from here: planning and a connection may have been waited for.
    let now = context.now.saturating_add(asked_at.elapsed());
    let context = RequestContext {
        now: now.unwrap_or(context.now),
        ..context
    };
    let tenant =
        tenants::store::lock_or_create(&mut tx, context.ring, context.key, found, context.now)
            .await?;
    let work =
        async |conn: &mut PgConnection| store_plan(conn, context, pace, tenant, &plan, None).await;
    idempotent.run(context, tx, tenant, work).await
}

/// The scan that an earlier submit of this body with this key has stored, as it was then.
///
/// # Errors
/// `IdempotencyMismatch`; the database does not answer.
pub async fn find_submitted(
    context: RequestContext<'_>,
    body: &Map<String, Value>,
    key: &IdempotencyKey,
) -> Result<Option<Scan>, CommandError> {
    let idempotent = IdempotentRequest::new(PATH.to_owned(), body, Some(key));
    let earlier = idempotent.find_response::<Scan>(context).await?;
    Ok(earlier.map(|earlier| earlier.response))
}

/// Refuses a caller that is not accepted yet before its request is planned, because planning is
/// expensive. The transaction checks again.
async fn check_admission_early(
    conn: &mut PgConnection,
    tenant: Option<TenantId>,
    body: &Map<String, Value>,
    now: Timestamp,
) -> Result<(), CommandError> {
    let Some(Ok(endpoint)) = body.get("endpoint").map(ScanEndpoint::read) else {
        return Ok(());
    };
    if let Some(tenant) = tenant
        && tenants::store::acceptance::is_accepted(&mut *conn, tenant).await?
    {
        return Ok(());
    }
    let probation = store::probation(conn, tenant, endpoint.get().api(), now).await?;
    Ok(probation.check(0, now)?)
}

/// Stores a plan in the transaction that found and locked its caller: the sealed key, the lane, the
/// scan, its items. For a caller that is not accepted yet only the first item is stored (`after_acceptance`).
pub async fn store_plan(
    conn: &mut PgConnection,
    context: RequestContext<'_>,
    pace: &PaceConfig,
    tenant: TenantId,
    plan: &ScanPlan,
    monitor: Option<MonitorId>,
) -> Result<Scan, CommandError> {
    store::lock_submissions(conn, tenant).await?;
    let load = store::load(conn, tenant).await?;
    check_limits(&load, plan.items.len())?;
    if plan.scan_request.max_age_seconds.is_some() {
        check_reused(reuse::reused_within_hour(conn, tenant, context.now).await?)?;
    }
    let api = plan.scan_request.endpoint.get().api();
    if !load.accepted {
        store::probation(conn, Some(tenant), api, context.now)
            .await?
            .check(request_bytes(plan), context.now)?;
    }

    let terms = GrantTerms {
        tenant,
        grant: GrantId::new(),
        purpose: Purpose::Scan,
        expires_at: key_expiry(context.now),
    };
    tenants::store::insert_grant(
        conn,
        &terms,
        &terms.seal(context.ring, context.key),
        context.now,
    )
    .await?;
    let sequence = store::reserve_sequence(conn, tenant, plan, pace).await?;
    if !load.accepted {
        // After the lane, as a record of a call of this caller locks both.
        tenants::store::acceptance::record_order(conn, tenant, context.now).await?;
    }
    let id = ScanId::new();
    store::insert_scan(
        conn,
        tenant,
        id,
        Some(terms.grant),
        plan,
        monitor,
        context.now,
    )
    .await?;
    let stored = if load.accepted { plan.items.len() } else { 1 };
    let items = store::NewItems {
        positions: 0..stored,
        accepted: load.accepted,
    };
    store::insert_items(conn, tenant, id, plan, items, &sequence, context.now).await?;
    if stored < plan.items.len() {
        let strategy = plan
            .scan_request
            .strategy
            .as_ref()
            .map(|strategy| strategy.to_value());
        after_acceptance::insert(conn, tenant, id, strategy.as_ref()).await?;
    }
    // Of a caller that is not accepted yet the first item does not wait; how many others do is known
    // when they are stored.
    let deferred = plan.items.len() - usize::from(!load.accepted);
    question::store::insert(conn, tenant, id, plan, deferred).await?;
    question::insert_due_replay(conn, tenant, id, plan).await?;
    reload(conn, tenant, id).await
}

/// The length of the stored request, as JSON.
pub(super) fn request_bytes(plan: &ScanPlan) -> usize {
    let length = |value: serde_json::Value| value.to_string().len();
    length(plan.scan_request.request.to_value())
        + plan
            .scan_request
            .sweep
            .as_ref()
            .map_or(0, |sweep| length(sweep.to_value()))
}

/// Reads the scan back after its transaction has changed it.
pub(super) async fn reload(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
) -> Result<Scan, CommandError> {
    Ok(read::scan_on(conn, tenant, id)
        .await?
        .ok_or(sqlx::Error::RowNotFound)?)
}

/// Reused answers cost no requests, so nothing else limits how much they store.
fn check_reused(reused: i64) -> Result<(), CommandError> {
    if reused < MAX_REUSED_ITEMS {
        return Ok(());
    }
    Err(CommandError::LimitExceeded {
        message: format!(
            "this caller's items took {reused} answers within an hour and may take at most {MAX_REUSED_ITEMS}: wait, or submit with `max_age_seconds` 0"
        ),
        retry_after: LIMIT_RETRY_AFTER,
    })
}

fn check_limits(load: &store::TenantLoad, items: usize) -> Result<(), CommandError> {
    match exceeded_limit(load, items) {
        Some(message) => Err(CommandError::LimitExceeded {
            message,
            retry_after: LIMIT_RETRY_AFTER,
        }),
        None => Ok(()),
    }
}

/// The message for the limit that a scan with `items` items would exceed now.
pub(super) fn exceeded_limit(load: &store::TenantLoad, items: usize) -> Option<String> {
    if load.live_scans >= MAX_LIVE_SCANS {
        return Some(format!(
            "this caller has {} live scans and may have at most {MAX_LIVE_SCANS}: wait until one ends",
            load.live_scans
        ));
    }
    if load
        .open_items
        .saturating_add(i64::try_from(items).unwrap_or(i64::MAX))
        > MAX_OPEN_ITEMS
    {
        let open = load.open_items;
        return Some(format!(
            "this caller has {open} open items and may have at most {MAX_OPEN_ITEMS}: {items} more would exceed that; wait until some end"
        ));
    }
    None
}
