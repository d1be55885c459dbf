//! A synchronous search as a scan of one item (`Prefer: respond-async`; scans.md, rules 29 to 31).
//!
//! The body goes upstream as the caller wrote it, so that the outcome equals that of the
//! synchronous endpoint: nothing is added, `strict` is the caller's, and every outcome ends the
//! item, including a rejected key. The last outcome is stored; the body of its answer is stored as
//! for any scan. Not here: parsing `Prefer`, and the HTTP response of an outcome (`http`).

mod store;

use serde_json::Map;
use sqlx::PgPool;

use super::idempotency::{IdempotencyKey, IdempotentRequest};
use super::plan::ScanPlan;
use super::submit::store_plan;
use super::{Replayable, RequestContext, ScanError};
use crate::config::PaceConfig;
use crate::contract::scans::{Scan, ScanEndpoint, ScanRequest};
use crate::contract::{FieldValue as _, Request};
use crate::db;
use crate::ids::{ScanId, TenantId};
use crate::search::Outcome;
use crate::tenants;

/// The value of `scans.upstream_limit` for a scan whose bodies go upstream as their caller wrote
/// them.
pub const VERBATIM: u32 = 0;

/// Why a search was not stored as a scan.
#[derive(Debug, thiserror::Error)]
pub enum AsyncSubmitError {
    /// Nothing was stored: the search may be sent synchronously instead.
    #[error(transparent)]
    NotStored(ScanError),
    /// The commit's result is unknown, so a worker may send the search: do not send it again.
    #[error(transparent)]
    MayBeStored(sqlx::Error),
}

impl<E: Into<ScanError>> From<E> for AsyncSubmitError {
    fn from(error: E) -> Self {
        Self::NotStored(error.into())
    }
}

/// A search that was stored as a scan, and its tenant.
#[derive(Debug)]
pub struct AcceptedSearch {
    pub tenant: TenantId,
    pub scan: Replayable<Scan>,
}

/// Stores a checked request of one of the five searches as a scan of one item. A past date is
/// allowed, as for the synchronous endpoint.
///
/// # Errors
/// [`AsyncSubmitError`] says whether the request may be sent synchronously instead.
pub async fn submit(
    context: RequestContext<'_>,
    pace: &PaceConfig,
    request: &Request,
    key: Option<&IdempotencyKey>,
) -> Result<AcceptedSearch, AsyncSubmitError> {
    let endpoint = request.endpoint();
    let body = request.to_body();
    let idempotent = IdempotentRequest::new(format!("/v1/{endpoint}"), &body, key);
    let mut tx = db::begin(context.pool).await?;
    let tenant =
        tenants::store::find_or_create(&mut tx, context.ring, context.key, context.now).await?;
    if let Some(response) = idempotent.reserve(&mut tx, tenant, context.now).await? {
        return Ok(AcceptedSearch {
            tenant,
            scan: Replayable {
                response,
                replayed: true,
            },
        });
    }
    let plan = ScanPlan {
        scan_request: scan_request(
            ScanEndpoint::read(&endpoint.as_str().into()).map_err(ScanError::ValidationErrors)?,
            body,
        ),
        items: vec![request.clone()],
        two_phase: None,
        verbatim: true,
    };
    let response = store_plan(&mut tx, context, pace, tenant, &plan, None).await?;
    idempotent
        .store_response(&mut tx, tenant, &response)
        .await?;
    tx.commit().await.map_err(AsyncSubmitError::MayBeStored)?;
    Ok(AcceptedSearch {
        tenant,
        scan: Replayable {
            response,
            replayed: false,
        },
    })
}

/// A scan request for one search, sent once and unchanged.
fn scan_request(endpoint: ScanEndpoint, request: Map<String, serde_json::Value>) -> ScanRequest {
    ScanRequest {
        endpoint,
        request: request.into(),
        sweep: None,
        label: None,
        tags: None,
        max_requests: None,
        retry: None,
        strategy: None,
        priority: None,
        upstream_filters: Some(true),
        upstream_limit: None,
    }
}

/// The outcome of the search. `None` while it is not known, and if it never will be: the process
/// died during the call (a late answer may still come), the scan was cancelled or deleted, or the
/// stored answer was removed.
///
/// # Errors
/// When the database does not answer.
pub async fn outcome(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<Option<Outcome>> {
    Ok(store::outcome(pool, tenant, scan)
        .await?
        .and_then(|(outcome, body)| outcome.with_body(body)))
}
