//! Taking an order for a scan: all of it is stored, or nothing.

use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::idempotency::{IdempotencyKey, Post};
use super::plan::{Plan, earliest_today, plan};
use super::{Answered, Desk, ScanError, expand, read, store, two_phase};
use crate::config::PaceConfig;
use crate::contract::FieldValue as _;
use crate::contract::scans::{Priority, Scan, ScanEndpoint};
use crate::db;
use crate::ids::{GrantId, MonitorId, ScanId, TenantId};
use crate::tenants::{self, GrantTerms, Purpose};

/// How long a scan's key is held at most (security.md, "Wiped").
const KEY_HELD: SignedDuration = SignedDuration::from_hours(35 * 24);
/// The most live scans of a caller (security.md, "Limits").
const MAX_LIVE_SCANS: i64 = 100;
/// The most items of a caller that have not ended.
const MAX_OPEN_ITEMS: i64 = 100_000;
/// How long an order waits until others are planned.
const PLAN_PATIENCE: Duration = Duration::from_secs(5);
/// When it is worth asking again after a limit was met.
const LIMIT_WAIT: Duration = Duration::from_secs(60);

/// How far apart the turns of a scan's items are. A scan that nobody waits for takes one turn where others take nine.
pub(super) const fn stride(priority: Priority) -> i64 {
    match priority {
        Priority::Interactive => 1,
        Priority::Scheduled => 9,
    }
}

/// Until when a key that is sealed now is held.
pub(super) fn held_until(now: Timestamp) -> Timestamp {
    db::kept_time(now.checked_add(KEY_HELD).unwrap_or(Timestamp::MAX))
}

/// Checks, plans and stores a scan; a worker may take its first item as soon as this returns.
///
/// # Errors
/// `Faults` with every fault of the body; `TooMuch` at a limit of the caller's; `Busy`; `IdempotencyMismatch`; `Database`. Nothing is stored
/// then.
pub async fn submit(
    desk: Desk<'_>,
    pace: &PaceConfig,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Answered<Scan>, ScanError> {
    let post = Post::new("/v1/scans".to_owned(), body, key);
    if let Some(answer) = post.repeated(desk).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    if let Err(refused) = refuse_early(desk, body).await {
        // An equal order may have been taken since the first look.
        return post
            .repeated(desk)
            .await?
            .map(|answer| Answered {
                answer,
                replayed: true,
            })
            .ok_or(refused);
    }
    let plan = planned(body.clone(), desk.now).await?;

    let mut tx = db::begin(desk.pool).await?;
    let tenant = tenants::store::find_or_make(&mut tx, desk.ring, desk.key, desk.now).await?;
    if let Some(answer) = post.take(&mut tx, tenant, desk.now).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    let answer = place(&mut tx, desk, pace, tenant, &plan, None).await?;
    post.keep(&mut tx, tenant, &answer).await?;
    tx.commit().await?;
    Ok(Answered {
        answer,
        replayed: false,
    })
}

/// Refuses a caller that is not accepted yet before its order is planned: planning is what costs. Whoever passes is checked again in the
/// transaction.
async fn refuse_early(desk: Desk<'_>, body: &Map<String, Value>) -> Result<(), ScanError> {
    let Some(Ok(endpoint)) = body.get("endpoint").map(ScanEndpoint::read) else {
        return Ok(());
    };
    let (mut conn, tenant) =
        tenants::store::find_connected(desk.pool, desk.ring, desk.key, desk.now).await?;
    if let Some(tenant) = tenant
        && tenants::store::acceptance::is_accepted(&mut *conn, tenant).await?
    {
        return Ok(());
    }
    let probation = store::probation(&mut conn, tenant, endpoint.get().api(), desk.now).await?;
    Ok(probation.check(0, desk.now)?)
}

/// Stores a plan in the transaction that found its caller and holds it: the sealed key, the lane, the scan, its items. Of a caller that is
/// not accepted yet only the first item is stored (`expand`).
pub(crate) async fn place(
    conn: &mut sqlx::PgConnection,
    desk: Desk<'_>,
    pace: &PaceConfig,
    tenant: TenantId,
    plan: &Plan,
    monitor: Option<MonitorId>,
) -> Result<Scan, ScanError> {
    store::lock_orders(conn, tenant).await?;
    let load = store::load(conn, tenant).await?;
    refuse_too_much(&load, plan.items.len())?;
    let api = plan.order.endpoint.get().api();
    if !load.accepted {
        store::probation(conn, Some(tenant), api, desk.now)
            .await?
            .check(order_bytes(plan), desk.now)?;
        tenants::store::acceptance::record_order(conn, tenant, desk.now).await?;
    }

    let terms = GrantTerms {
        tenant,
        grant: GrantId::new(),
        purpose: Purpose::Scan,
        expires_at: held_until(desk.now),
    };
    tenants::store::insert_grant(conn, &terms, &terms.seal(desk.ring, desk.key), desk.now).await?;
    let start = store::start_turns(conn, tenant, plan, pace).await?;
    let id = ScanId::new();
    store::insert_scan(conn, tenant, id, terms.grant, plan, monitor, desk.now).await?;
    let kept = if load.accepted { plan.items.len() } else { 1 };
    let turns = store::Turns {
        start,
        stride: stride(plan.order.priority_or_default()),
    };
    store::insert_items(conn, tenant, id, plan, 0..kept, &turns).await?;
    if kept < plan.items.len() {
        let strategy = plan
            .order
            .strategy
            .as_ref()
            .map(|strategy| strategy.to_value());
        expand::insert(conn, tenant, id, strategy.as_ref()).await?;
    }
    if let Some(phases) = &plan.two_phase {
        let deferred = (0..plan.items.len())
            .filter(|position| !phases.is_coarse(*position))
            .count();
        two_phase::store::insert(conn, tenant, id, phases, deferred).await?;
    }
    stored(conn, tenant, id).await
}

/// How long what is kept of an order is, as JSON.
pub(super) fn order_bytes(plan: &Plan) -> usize {
    let length = |value: serde_json::Value| value.to_string().len();
    length(plan.order.request.to_value())
        + plan
            .order
            .sweep
            .as_ref()
            .map_or(0, |sweep| length(sweep.to_value()))
}

/// The plan of thousands of items takes a while of pure work: not on a thread that others' requests wait for, and no more at a time than
/// there are processors.
pub(crate) async fn planned(body: Map<String, Value>, now: Timestamp) -> Result<Plan, ScanError> {
    let permit = plan_permit().await?;
    let planning = move || {
        // Held by the work itself: it goes on when the client has gone.
        let _permit = permit;
        plan(&body, earliest_today(now))
    };
    match tokio::task::spawn_blocking(planning).await {
        Ok(planned) => Ok(planned?),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// The permit to make a plan.
///
/// # Errors
/// `Busy` when there is none in time.
async fn plan_permit() -> Result<SemaphorePermit<'static>, ScanError> {
    static PERMITS: LazyLock<Semaphore> =
        LazyLock::new(|| Semaphore::new(available_parallelism().map_or(1, NonZeroUsize::get)));
    match timeout(PLAN_PATIENCE, PERMITS.acquire()).await {
        Ok(Ok(permit)) => Ok(permit),
        // It is never closed.
        Ok(Err(_)) | Err(_) => Err(ScanError::Busy),
    }
}

/// The scan that was stored just now.
pub(super) async fn stored(
    conn: &mut sqlx::PgConnection,
    tenant: TenantId,
    id: ScanId,
) -> Result<Scan, ScanError> {
    Ok(read::scan_of(conn, tenant, id)
        .await?
        .ok_or(sqlx::Error::RowNotFound)?)
}

fn refuse_too_much(load: &store::Load, items: usize) -> Result<(), ScanError> {
    match too_much(load, items) {
        Some(message) => Err(ScanError::TooMuch {
            message,
            wait: LIMIT_WAIT,
        }),
        None => Ok(()),
    }
}

/// Which bound of a caller's a scan of so many items would meet now.
pub(super) fn too_much(load: &store::Load, items: usize) -> Option<String> {
    if load.live_scans >= MAX_LIVE_SCANS {
        return Some(format!(
            "{} scans are underway, and a caller may have {MAX_LIVE_SCANS}: wait until one ends",
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
            "{open} items are underway, and a caller may have {MAX_OPEN_ITEMS}: there is no room for {items} more until some end"
        ));
    }
    None
}
