//! Retrying degraded, partial or failed items on the caller's request.

use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::plan::earliest_today;
use super::question;
use super::store::{
    self,
    lock::{EndedItem, LockedScan, LockedScanRow},
};
use super::submit::{key_expiry, reload};
use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::contract::scans::{PauseReason, RetryAccepted, RetryRequest, ScanStatus};
use crate::contract::{FieldValue as _, ValidationError};
use crate::ids::{GrantId, Kind, ScanId};
use crate::tenants::{self, GrantTerms, Purpose};

/// Makes ended items of a scan pending again, and seals the key of this request for them. Their
/// earlier attempts stay on record. Items whose date has passed are counted as skipped.
///
/// # Errors
/// `ValidationErrors` for the body, or a `max_requests` below the requests spent plus those of this
/// retry; `NotFound`; `InvalidState` for a cancelled scan; `IdempotencyMismatch`.
pub async fn retry(
    context: RequestContext<'_>,
    id: ScanId,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<RetryAccepted>, CommandError> {
    let idempotent = IdempotentRequest::new(format!("/v1/scans/{id}/retry"), body, key);
    if let Some(replay) = idempotent.find_response(context).await? {
        return Ok(replay);
    }
    let request = RetryRequest::from_body(body)?;
    let (tx, tenant) = context.begin_locked(Kind::Scan).await?;
    let work = async |conn: &mut PgConnection| {
        let (mut scan, found) = LockedScan::lock_ended(conn, tenant, id, &request)
            .await?
            .ok_or(Kind::Scan)?;
        retry_items(&mut scan, context, &request, found).await
    };
    idempotent.run(context, tx, tenant, work).await
}

async fn retry_items(
    scan: &mut LockedScan<'_>,
    context: RequestContext<'_>,
    request: &RetryRequest,
    found: Vec<EndedItem>,
) -> Result<RetryAccepted, CommandError> {
    if scan.row.status == ScanStatus::Cancelled {
        return Err(CommandError::InvalidState(
            "the scan was cancelled by its caller: submit a new one".to_owned(),
        ));
    }
    let today = earliest_today(context.now);
    let (again, passed): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|item| item.first_date.is_none_or(|date| date.to_jiff() >= today));
    check_max_requests(request, &scan.row, again.len())?;
    if !again.is_empty() {
        // The retry ends a pause whose cause it removes; under any other pause its items are
        // `held`.
        let resumes = match scan.row.status_reason {
            Some(PauseReason::BudgetSpent) => request.max_requests.is_some(),
            Some(PauseReason::KeyExpired) => true,
            _ => false,
        };
        let max_requests = request
            .max_requests
            .and_then(|max| i32::try_from(max.get()).ok());
        store::requeue_items(scan, &again, resumes, max_requests).await?;
        question::store::reopen(scan).await?;
        reseal_key(scan, context).await?;
    }
    let (tenant, id) = (scan.tenant(), scan.id());
    Ok(RetryAccepted {
        items_retried: count(again.len()),
        items_skipped: count(passed.len()),
        scan: reload(scan.conn(), tenant, id).await?,
    })
}

fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

fn check_max_requests(
    request: &RetryRequest,
    scan: &LockedScanRow,
    again: usize,
) -> Result<(), CommandError> {
    let least =
        i64::from(scan.requests_spent).saturating_add(i64::try_from(again).unwrap_or(i64::MAX));
    match request.max_requests {
        Some(max) if i64::from(max.get()) < least => {
            let expected = format!(
                "at least {least}: {} requests are spent, and this retry needs {again} more",
                scan.requests_spent
            );
            Err(CommandError::ValidationErrors(
                ValidationError::new("max_requests", &max.to_value(), expected).into(),
            ))
        }
        _ => Ok(()),
    }
}

/// Seals the key of this request into the scan's grant. The grant's id stays the same, so that
/// claims in flight can still open it. A search that was stored after its call has no grant yet.
pub(super) async fn reseal_key(
    scan: &mut LockedScan<'_>,
    context: RequestContext<'_>,
) -> sqlx::Result<()> {
    let known = scan.row.grant_id.map(GrantId::from);
    let terms = GrantTerms {
        tenant: scan.tenant(),
        grant: known.unwrap_or_else(GrantId::new),
        purpose: Purpose::Scan,
        expires_at: key_expiry(context.now),
    };
    let sealed = terms.seal(context.ring, context.key);
    if known.is_some() {
        return tenants::store::replace_grant(scan.conn(), &terms, &sealed).await;
    }
    tenants::store::insert_grant(scan.conn(), &terms, &sealed, context.now).await?;
    store::set_grant(scan, terms.grant).await
}
