//! A synchronous search as a scan of one item (`Prefer: respond-async`; scans.md, rules 29 to 31).
//!
//! The body goes upstream as the caller wrote it, so that the outcome equals that of the
//! synchronous endpoint: nothing is added, `strict` is the caller's, and every outcome ends the
//! item, including a rejected key. The last outcome is stored; the body of its answer is stored as
//! for any scan. Not here: parsing `Prefer`, and the HTTP response of an outcome (`api`).

mod store;

use serde_json::Map;
use sqlx::{PgConnection, PgPool};

use super::plan::{DateLines, ScanPlan};
use super::submit::store_plan;
use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::config::PaceConfig;
use crate::contract::scans::{Scan, ScanEndpoint, ScanRequest};
use crate::contract::{FieldValue as _, Request, ValidationErrors};
use crate::db;
use crate::ids::{ScanId, TenantId};
use crate::search::Outcome;
use crate::tenants;

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
/// After `CommitFailed` a worker may send the search, so it must not be sent again. After any other
/// error it may be sent synchronously instead.
pub async fn submit(
    context: RequestContext<'_>,
    pace: &PaceConfig,
    request: &Request,
    key: Option<&IdempotencyKey>,
) -> Result<AcceptedSearch, CommandError> {
    let idempotent = IdempotentRequest::new(
        format!("/v1/{}", request.endpoint()),
        &request.to_body(),
        key,
    );
    let mut tx = db::begin(context.pool).await?;
    let tenant =
        tenants::store::find_or_create(&mut tx, context.ring, context.key, context.now).await?;
    let work = async |conn: &mut PgConnection| {
        let plan = plan(request)?;
        store_plan(conn, context, pace, tenant, &plan, None).await
    };
    let scan = idempotent.run(context, tx, tenant, work).await?;
    Ok(AcceptedSearch { tenant, scan })
}

/// The plan of one search, sent once and unchanged.
///
/// # Errors
/// When the endpoint is not one of the five searches.
pub(super) fn plan(request: &Request) -> Result<ScanPlan, ValidationErrors> {
    let endpoint = ScanEndpoint::read(&request.endpoint().as_str().into())?;
    Ok(ScanPlan {
        scan_request: scan_request(endpoint, request.to_body()),
        items: vec![request.clone()],
        lines: DateLines::ALONE,
        question: None,
        verbatim: true,
    })
}

fn scan_request(endpoint: ScanEndpoint, request: Map<String, serde_json::Value>) -> ScanRequest {
    ScanRequest {
        endpoint,
        request: request.into(),
        sweep: None,
        label: None,
        tags: None,
        max_requests: None,
        retry: None,
        max_age_seconds: None,
        strategy: None,
        priority: None,
        upstream_filters: Some(true),
        upstream_limit: None,
    }
}

/// The outcome of the search. `None` while it is not known, and if it never will be: the process
/// died during the call (a late answer may still come), the scan was cancelled or deleted, or the
/// stored answer was removed.
pub async fn outcome(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<Option<Outcome>> {
    Ok(store::outcome(pool, tenant, scan)
        .await?
        .and_then(|(outcome, body)| outcome.with_body(body)))
}
