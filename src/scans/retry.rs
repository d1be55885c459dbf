//! Asking again what was degraded, partial or refused, because its caller says so. Nothing is asked twice otherwise.

use serde_json::{Map, Value};

use super::idempotency::{IdempotencyKey, Post};
use super::plan::earliest_today;
use super::submit::{held_until, stored, stride};
use super::{Answered, Desk, ScanError, store};
use crate::contract::scans::{Priority, RetryAccepted, RetryRequest, ScanStatus};
use crate::contract::{Fault, FieldValue as _};
use crate::db;
use crate::ids::{GrantId, ScanId, TenantId};
use crate::tenants::{self, GrantTerms, Purpose};

/// Makes ended items of a scan pending again, and seals the key of this request for them. Their old attempts stay on record; items
/// whose date has passed are left alone and counted. Items that run on by themselves are not touched.
///
/// # Errors
/// `Faults` for the body, or a ceiling below what the scan has spent and this would spend; `NotFound`; `InvalidState` for a cancelled
/// scan; `IdempotencyMismatch`; `Database`.
pub async fn retry(
    desk: Desk<'_>,
    id: ScanId,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Answered<RetryAccepted>, ScanError> {
    let post = Post::new(format!("/v1/scans/{id}/retry"), body, key);
    if let Some(answer) = post.repeated(desk).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    let wanted = RetryRequest::from_body(body)?;

    let mut tx = db::begin(desk.pool).await?;
    let tenant = tenants::store::find_and_hold(&mut tx, desk.ring, desk.key, desk.now)
        .await?
        .ok_or(ScanError::NotFound)?;
    let api = store::api_of(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    if let Some(answer) = post.take(&mut tx, tenant, desk.now).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    let start = store::arm_lane(&mut tx, tenant, &api).await?;
    let found = store::lock_ended_items(&mut tx, tenant, id, &wanted).await?;
    let scan = store::lock_scan(&mut tx, tenant, id)
        .await?
        .ok_or(ScanError::NotFound)?;
    if scan.status == ScanStatus::Cancelled.as_str() {
        return Err(ScanError::InvalidState(
            "the scan was cancelled by its caller: submit a new one".to_owned(),
        ));
    }
    let today = earliest_today(desk.now);
    let (again, passed): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|item| item.first_date.is_none_or(|date| date.to_jiff() >= today));
    refuse_low_ceiling(&wanted, &scan, again.len())?;
    if !again.is_empty() {
        // A pause whose cause this retry removes ends with it; any other stays, and the items are held under it.
        let resumes = match scan.status_reason.as_deref() {
            Some("budget_spent") => wanted.max_requests.is_some(),
            Some("key_expired") => true,
            _ => false,
        };
        let turns = store::Turns {
            start,
            stride: stride(Priority::parse(&scan.priority).unwrap_or(Priority::Interactive)),
        };
        store::ask_again(&mut tx, tenant, id, &again, &turns, resumes, &wanted).await?;
        seal_anew(&mut tx, desk, tenant, scan.grant_id.map(GrantId::from)).await?;
    }
    let answer = RetryAccepted {
        items_retried: count(again.len()),
        items_skipped: count(passed.len()),
        scan: stored(&mut tx, tenant, id).await?,
    };
    post.keep(&mut tx, tenant, &answer).await?;
    tx.commit().await?;
    Ok(Answered {
        answer,
        replayed: false,
    })
}

fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

fn refuse_low_ceiling(
    wanted: &RetryRequest,
    scan: &store::LockedScan,
    again: usize,
) -> Result<(), ScanError> {
    let least =
        i64::from(scan.requests_spent).saturating_add(i64::try_from(again).unwrap_or(i64::MAX));
    match wanted.max_requests {
        Some(max) if i64::from(max.get()) < least => {
            let allowed = format!(
                "at least {least}: {} requests are spent, and this asks for {again} more",
                scan.requests_spent
            );
            Err(ScanError::Faults(
                Fault::new("max_requests", &max.to_value(), allowed).into(),
            ))
        }
        _ => Ok(()),
    }
}

/// The grant keeps its id, so that claims in flight open it still.
pub(super) async fn seal_anew(
    conn: &mut sqlx::PgConnection,
    desk: Desk<'_>,
    tenant: TenantId,
    grant: Option<GrantId>,
) -> Result<(), ScanError> {
    let Some(grant) = grant else { return Ok(()) };
    let terms = GrantTerms {
        tenant,
        grant,
        purpose: Purpose::Scan,
        expires_at: held_until(desk.now),
    };
    Ok(tenants::store::replace_grant(conn, &terms, &terms.seal(desk.ring, desk.key)).await?)
}
