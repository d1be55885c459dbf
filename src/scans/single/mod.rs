//! A synchronous search that became a scan of one item (jobs-api; issue: `Prefer: respond-async`).
//!
//! It goes upstream as its caller wrote it, so that what comes back is what the synchronous endpoint would have got: nothing is added to
//! the body, `strict` is the caller's, and every outcome ends the item, a refused key too. Its last outcome is kept, whole but for the
//! answer's body, which is stored as any scan's. Not here: the words of `Prefer`, and what an outcome is as an HTTP answer (`http`).

mod store;

use serde_json::Map;
use sqlx::PgPool;

use super::idempotency::{IdempotencyKey, Post};
use super::plan::Plan;
use super::submit::place;
use super::{Answered, Desk, ScanError};
use crate::config::PaceConfig;
use crate::contract::scans::{Scan, ScanEndpoint, ScanRequest};
use crate::contract::{FieldValue as _, Request};
use crate::db;
use crate::ids::{ScanId, TenantId};
use crate::search::Outcome;
use crate::tenants;

/// What `scans.upstream_limit` holds for a scan whose searches go upstream as their caller wrote them.
pub const AS_WRITTEN: u32 = 0;

/// Why a search did not become a scan.
#[derive(Debug, thiserror::Error)]
pub enum Declined {
    /// Nothing was stored and nothing will be asked: the search may be asked at once instead.
    #[error(transparent)]
    NotStored(ScanError),
    /// The answer to the commit was lost, so a worker may ask it: it must not be asked again.
    #[error(transparent)]
    MayBeStored(sqlx::Error),
}

impl<E: Into<ScanError>> From<E> for Declined {
    fn from(error: E) -> Self {
        Self::NotStored(error.into())
    }
}

/// A search that is a scan now, and whose it is.
#[derive(Debug)]
pub struct Accepted {
    pub tenant: TenantId,
    pub scan: Answered<Scan>,
}

/// Stores a checked request of one of the five searches as a scan of one item. A date in the past is fine, as it is for the synchronous
/// endpoint.
///
/// # Errors
/// [`Declined`] says whether the request may be asked at once instead.
pub async fn submit(
    desk: Desk<'_>,
    pace: &PaceConfig,
    request: &Request,
    key: Option<&IdempotencyKey>,
) -> Result<Accepted, Declined> {
    let endpoint = request.endpoint();
    let body = request.to_body();
    let post = Post::new(format!("/v1/{endpoint}"), &body, key);
    let mut tx = db::begin(desk.pool).await?;
    let tenant = tenants::store::find_or_make(&mut tx, desk.ring, desk.key, desk.now).await?;
    if let Some(answer) = post.take(&mut tx, tenant, desk.now).await? {
        return Ok(Accepted {
            tenant,
            scan: Answered {
                answer,
                replayed: true,
            },
        });
    }
    let plan = Plan {
        order: order(
            ScanEndpoint::read(&endpoint.as_str().into()).map_err(ScanError::Faults)?,
            body,
        ),
        items: vec![request.clone()],
        two_phase: None,
        as_written: true,
    };
    let answer = place(&mut tx, desk, pace, tenant, &plan, None).await?;
    post.keep(&mut tx, tenant, &answer).await?;
    tx.commit().await.map_err(Declined::MayBeStored)?;
    Ok(Accepted {
        tenant,
        scan: Answered {
            answer,
            replayed: false,
        },
    })
}

/// One search, once, as it is written.
fn order(endpoint: ScanEndpoint, request: Map<String, serde_json::Value>) -> ScanRequest {
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

/// What came of the search; `None` while it is not known, and where it never will be: the process died in its call (a late answer may
/// come), the scan was cancelled or deleted, the stored answer was dropped.
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
        .and_then(|(kept, body)| kept.with_body(body)))
}
