//! Resuming a scan.

use serde_json::{Map, Value};

use super::{require_live, store};
use crate::contract::scans::{ResumeRequest, Scan, ScanStatus};
use crate::contract::{FieldValue as _, ValidationError};
use crate::db;
use crate::ids::{GrantId, ScanId};
use crate::scans::idempotency::{IdempotencyKey, IdempotentRequest};
use crate::scans::store::{self as scans_store, LockedScan, Sequence};
use crate::scans::{Replayable, RequestContext, ScanError, retry, submit};
use crate::tenants;

/// Resumes a paused scan, and seals the key of this request for its remaining items. A pause of its
/// lane that waits for the caller (`key_rejected`, `not_subscribed`, `quota_exhausted`) ends too,
/// for all scans of the lane; a pause for the rate ends by itself. A running scan is returned
/// unchanged.
///
/// # Errors
/// `ValidationErrors` for the body, or when the budget is spent and no higher one is given;
/// `NotFound`; `InvalidState` when the scan has ended; `IdempotencyMismatch`; `Database`.
pub async fn resume(
    context: RequestContext<'_>,
    id: ScanId,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Scan>, ScanError> {
    let idempotent = IdempotentRequest::new(format!("/v1/scans/{id}/resume"), body, key);
    if let Some(response) = idempotent.find_response(context).await? {
        return Ok(Replayable {
            response,
            replayed: true,
        });
    }
    let request = ResumeRequest::from_body(body)?;

    let mut tx = db::begin(context.pool).await?;
    let tenant = tenants::store::find_and_lock(&mut tx, context.ring, context.key, context.now)
        .await?
        .ok_or(ScanError::NotFound)?;
    let api = scans_store::api_of(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    if let Some(response) = idempotent.reserve(&mut tx, tenant, context.now).await? {
        return Ok(Replayable {
            response,
            replayed: true,
        });
    }
    store::resume_lane(&mut tx, tenant, api).await?;
    let start = scans_store::wake_lane(&mut tx, tenant, api).await?;
    let open_items = scans_store::lock_open_items(&mut tx, tenant, id).await?;
    let scan = scans_store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    let status = require_live(&scan, "resumed")?;
    check_max_requests(&request, &scan, status, open_items)?;

    let sequence = Sequence {
        start,
        stride: submit::stride(scan.priority),
    };
    store::resume(&mut tx, tenant, id, &sequence, &request).await?;
    retry::reseal_key(&mut tx, context, tenant, scan.grant_id.map(GrantId::from)).await?;
    let response = submit::reload(&mut tx, tenant, id).await?;
    idempotent
        .store_response(&mut tx, tenant, &response)
        .await?;
    tx.commit().await?;
    Ok(Replayable {
        response,
        replayed: false,
    })
}

/// Refuses a `max_requests` that would pause the scan again at once.
fn check_max_requests(
    request: &ResumeRequest,
    scan: &LockedScan,
    status: ScanStatus,
    open_items: u64,
) -> Result<(), ScanError> {
    let spent = i64::from(scan.requests_spent);
    let least = spent + i64::from(open_items > 0);
    let expected = format!("at least {least}: {spent} requests are spent");
    let fault = match request.max_requests {
        Some(max) if i64::from(max.get()) < least => {
            ValidationError::new("max_requests", &max.to_value(), expected)
        }
        None if status == ScanStatus::Paused
            && scan.max_requests.is_some_and(|max| i64::from(max) < least) =>
        {
            ValidationError::missing("max_requests", expected)
        }
        _ => return Ok(()),
    };
    Err(ScanError::ValidationErrors(fault.into()))
}
