//! Resuming a scan.

use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::{require_live, store};
use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::contract::scans::{ResumeRequest, Scan, ScanStatus};
use crate::contract::{FieldValue as _, ValidationError};
use crate::ids::{Kind, ScanId};
use crate::scans::store::lock::{LockedScan, api_of};
use crate::scans::{retry, submit};

/// Resumes a paused scan, and seals the key of this request for its remaining items. A pause of its
/// lane that waits for the caller (`key_rejected`, `not_subscribed`, `quota_exhausted`) ends too,
/// for all scans of the lane; a pause for the rate ends by itself. A running scan is returned
/// unchanged.
///
/// # Errors
/// `ValidationErrors` for the body, or when the budget is spent and no higher one is given;
/// `NotFound`; `InvalidState` when the scan has ended; `IdempotencyMismatch`.
pub async fn resume(
    context: RequestContext<'_>,
    id: ScanId,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Scan>, CommandError> {
    let idempotent = IdempotentRequest::new(format!("/v1/scans/{id}/resume"), body, key);
    if let Some(replay) = idempotent.find_response(context).await? {
        return Ok(replay);
    }
    let request = ResumeRequest::from_body(body)?;
    let (tx, tenant) = context.begin_locked(Kind::Scan).await?;
    let work = async |conn: &mut PgConnection| {
        let api = api_of(conn, tenant, id).await?.ok_or(Kind::Scan)?;
        // First, because the lock does not wake a lane that is still paused.
        store::resume_lane(conn, tenant, api).await?;
        let mut scan = LockedScan::lock(conn, tenant, id)
            .await?
            .ok_or(Kind::Scan)?;
        let status = require_live(&scan.row, "resumed")?;
        check_max_requests(&request, &scan, status)?;
        store::resume(&mut scan, &request).await?;
        retry::reseal_key(&mut scan, context).await?;
        submit::reload(conn, tenant, id).await
    };
    idempotent.run(context, tx, tenant, work).await
}

/// Refuses a `max_requests` that would pause the scan again at once.
fn check_max_requests(
    request: &ResumeRequest,
    scan: &LockedScan<'_>,
    status: ScanStatus,
) -> Result<(), CommandError> {
    let spent = i64::from(scan.row.requests_spent);
    let least = spent + i64::from(scan.needs_requests);
    let expected = format!("at least {least}: {spent} requests are spent");
    let fault = match request.max_requests {
        Some(max) if i64::from(max.get()) < least => {
            ValidationError::new("max_requests", &max.to_value(), expected)
        }
        None if status == ScanStatus::Paused
            && scan
                .row
                .max_requests
                .is_some_and(|max| i64::from(max) < least) =>
        {
            ValidationError::missing("max_requests", expected)
        }
        _ => return Ok(()),
    };
    Err(CommandError::ValidationErrors(fault.into()))
}
