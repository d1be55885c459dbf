//! Retrying degraded, partial or failed items on the caller's request.

use serde_json::{Map, Value};

use super::idempotency::{IdempotencyKey, IdempotentRequest};
use super::plan::earliest_today;
use super::submit::{key_expiry, reload, stride};
use super::{Replayable, RequestContext, ScanError, store};
use crate::contract::scans::{PauseReason, RetryAccepted, RetryRequest, ScanStatus};
use crate::contract::{FieldValue as _, ValidationError};
use crate::db;
use crate::ids::{GrantId, ScanId, TenantId};
use crate::tenants::{self, GrantTerms, Purpose};

/// Makes ended items of a scan pending again, and seals the key of this request for them. Their
/// earlier attempts stay on record. Items whose date has passed are counted as skipped.
///
/// # Errors
/// `ValidationErrors` for the body, or a `max_requests` below the requests spent plus those of this
/// retry; `NotFound`; `InvalidState` for a cancelled scan; `IdempotencyMismatch`; `Database`.
pub async fn retry(
    context: RequestContext<'_>,
    id: ScanId,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<RetryAccepted>, ScanError> {
    let idempotent = IdempotentRequest::new(format!("/v1/scans/{id}/retry"), body, key);
    if let Some(response) = idempotent.find_response(context).await? {
        return Ok(Replayable {
            response,
            replayed: true,
        });
    }
    let request = RetryRequest::from_body(body)?;

    let mut tx = db::begin(context.pool).await?;
    let tenant = tenants::store::find_and_lock(&mut tx, context.ring, context.key, context.now)
        .await?
        .ok_or(ScanError::NotFound)?;
    let api = store::api_of(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    if let Some(response) = idempotent.reserve(&mut tx, tenant, context.now).await? {
        return Ok(Replayable {
            response,
            replayed: true,
        });
    }
    let start = store::wake_lane(&mut tx, tenant, api).await?;
    let found = store::lock_ended_items(&mut tx, tenant, id, &request).await?;
    let scan = store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    if scan.status == ScanStatus::Cancelled {
        return Err(ScanError::InvalidState(
            "the scan was cancelled by its caller: submit a new one".to_owned(),
        ));
    }
    let today = earliest_today(context.now);
    let (again, passed): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|item| item.first_date.is_none_or(|date| date.to_jiff() >= today));
    check_max_requests(&request, &scan, again.len())?;
    if !again.is_empty() {
        // The retry ends a pause whose cause it removes; under any other pause its items are
        // `held`.
        let resumes = match scan.status_reason {
            Some(PauseReason::BudgetSpent) => request.max_requests.is_some(),
            Some(PauseReason::KeyExpired) => true,
            _ => false,
        };
        let sequence = store::Sequence {
            start,
            stride: stride(scan.priority),
        };
        store::requeue_items(&mut tx, tenant, id, &again, &sequence, resumes, &request).await?;
        reseal_key(&mut tx, context, tenant, scan.grant_id.map(GrantId::from)).await?;
    }
    let response = RetryAccepted {
        items_retried: count(again.len()),
        items_skipped: count(passed.len()),
        scan: reload(&mut tx, tenant, id).await?,
    };
    idempotent
        .store_response(&mut tx, tenant, &response)
        .await?;
    tx.commit().await?;
    Ok(Replayable {
        response,
        replayed: false,
    })
}

fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

fn check_max_requests(
    request: &RetryRequest,
    scan: &store::LockedScan,
    again: usize,
) -> Result<(), ScanError> {
    let least =
        i64::from(scan.requests_spent).saturating_add(i64::try_from(again).unwrap_or(i64::MAX));
    match request.max_requests {
        Some(max) if i64::from(max.get()) < least => {
            let expected = format!(
                "at least {least}: {} requests are spent, and this retry needs {again} more",
                scan.requests_spent
            );
            Err(ScanError::ValidationErrors(
                ValidationError::new("max_requests", &max.to_value(), expected).into(),
            ))
        }
        _ => Ok(()),
    }
}

/// Seals the key of this request into the scan's grant. The grant's id stays the same, so that
/// claims in flight can still open it.
pub(super) async fn reseal_key(
    conn: &mut sqlx::PgConnection,
    context: RequestContext<'_>,
    tenant: TenantId,
    grant: Option<GrantId>,
) -> Result<(), ScanError> {
    let Some(grant) = grant else { return Ok(()) };
    let terms = GrantTerms {
        tenant,
        grant,
        purpose: Purpose::Scan,
        expires_at: key_expiry(context.now),
    };
    Ok(tenants::store::replace_grant(conn, &terms, &terms.seal(context.ring, context.key)).await?)
}
