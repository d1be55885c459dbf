//! Letting a scan go on by its caller's word.

use serde_json::{Map, Value};

use super::{live, store};
use crate::contract::scans::{Priority, ResumeRequest, Scan, ScanStatus};
use crate::contract::{Fault, FieldValue as _};
use crate::db;
use crate::ids::{GrantId, ScanId};
use crate::scans::idempotency::{IdempotencyKey, Post};
use crate::scans::store::{self as scans_store, LockedScan, Turns};
use crate::scans::{Answered, Desk, ScanError, retry, submit};
use crate::tenants;

/// Has a paused scan go on, with the key of this request sealed for what is left of it. A pause of its lane that waits for the caller
/// (`key_rejected`, `not_subscribed`, `quota_exhausted`) ends too, for all scans of the lane; one for the rate passes by itself. A scan
/// that runs is given as it is.
///
/// # Errors
/// `Faults` for the body, or when the budget is spent and no higher one is given; `NotFound`; `InvalidState` when the scan has ended;
/// `IdempotencyMismatch`; `Database`.
pub async fn resume(
    desk: Desk<'_>,
    id: ScanId,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Answered<Scan>, ScanError> {
    let post = Post::new(format!("/v1/scans/{id}/resume"), body, key);
    if let Some(answer) = post.repeated(desk).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    let wanted = ResumeRequest::from_body(body)?;

    let mut tx = db::begin(desk.pool).await?;
    let tenant = tenants::store::find_and_hold(&mut tx, desk.ring, desk.key, desk.now)
        .await?
        .ok_or(ScanError::NotFound)?;
    let api = scans_store::api_of(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    if let Some(answer) = post.take(&mut tx, tenant, desk.now).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    store::resume_lane(&mut tx, tenant, &api).await?;
    let start = scans_store::arm_lane(&mut tx, tenant, &api).await?;
    let waiting = scans_store::lock_open_items(&mut tx, tenant, id).await?;
    let scan = scans_store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    let status = live(&scan, "resumed")?;
    refuse_spent_budget(&wanted, &scan, status, waiting)?;

    let turns = Turns {
        start,
        stride: submit::stride(Priority::parse(&scan.priority).unwrap_or(Priority::Interactive)),
    };
    store::resume(&mut tx, tenant, id, &turns, &wanted).await?;
    retry::seal_anew(&mut tx, desk, tenant, scan.grant_id.map(GrantId::from)).await?;
    let answer = submit::stored(&mut tx, tenant, id).await?;
    post.keep(&mut tx, tenant, &answer).await?;
    tx.commit().await?;
    Ok(Answered {
        answer,
        replayed: false,
    })
}

/// A ceiling that would stop the scan again at once, said here instead.
fn refuse_spent_budget(
    wanted: &ResumeRequest,
    scan: &LockedScan,
    status: ScanStatus,
    waiting: u64,
) -> Result<(), ScanError> {
    let spent = i64::from(scan.requests_spent);
    let least = spent + i64::from(waiting > 0);
    let allowed = format!("at least {least}: {spent} requests are spent");
    let fault = match wanted.max_requests {
        Some(max) if i64::from(max.get()) < least => {
            Fault::new("max_requests", &max.to_value(), allowed)
        }
        None if status == ScanStatus::Paused
            && scan.max_requests.is_some_and(|max| i64::from(max) < least) =>
        {
            Fault::missing("max_requests", allowed)
        }
        _ => return Ok(()),
    };
    Err(ScanError::Faults(fault.into()))
}
