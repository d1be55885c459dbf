//! Stores a synchronous search after its call (gateway.md, rules 57 and 59): in one transaction, as
//! if the queue had made it.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};

use super::completed_call::CompletedCall;
use super::record;
use super::store::ClaimRow;
use super::{Claim, WorkerId};
use crate::commands::CommandError;
use crate::config::PaceConfig;
use crate::db;
use crate::ids::TenantId;
use crate::scans::recorded_search::{self, CALL_NUMBER};
use crate::search::{Outcome, PlanQuota, Search};
use crate::tenants::acceptance::means_accepted;
use crate::tenants::store::{acceptance, find_by_fingerprints, find_or_create_by_fingerprints};
use crate::tenants::{Fingerprint, rotate};

/// How long a record waits for a lock. Another record of the same caller may hold it, and nothing
/// repeats a record; its connection is one of a few.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Who wants a search stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedBy {
    /// Its request.
    Request,
    /// The setting of its caller, if it still holds when the search is stored.
    Setting,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Stored,
    /// No marketplace has accepted the caller's key.
    NotAccepted,
    /// The caller's setting does not hold any more.
    Unwanted,
}

/// A synchronous search and what it came to.
#[derive(Debug)]
pub struct FinishedSearch {
    pub wanted_by: WantedBy,
    pub caller: Vec<Fingerprint>,
    pub search: Search,
    pub outcome: Outcome,
    /// The outcome as it is stored, without the caller's key.
    pub stored: Outcome,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
}

/// Stores the search as a scan that has ended, with its answer and its observation. A refusal does
/// not pause the lane: the call was not the lane's.
///
/// # Errors
/// When the database does not answer; nothing is stored then.
pub async fn record_search(
    pool: &PgPool,
    pace: &PaceConfig,
    finished: &FinishedSearch,
) -> Result<Recorded, CommandError> {
    let FinishedSearch {
        search,
        outcome,
        stored,
        started_at,
        ended_at,
        ..
    } = finished;
    let mut tx = db::begin_with_lock_timeout(pool, LOCK_WAIT).await?;
    let tenant = match find_caller(&mut tx, finished).await? {
        Ok(tenant) => tenant,
        Err(not_stored) => return Ok(not_stored),
    };
    let call = recorded_search::insert_call(
        &mut tx,
        tenant,
        pace,
        search.request(),
        *started_at,
        outcome.billed_requests,
    )
    .await?;
    let row = ClaimRow {
        claim: Claim {
            worker: WorkerId(0),
            tenant,
            item: call.item,
            number: CALL_NUMBER,
        },
        lane: search.endpoint().api(),
        scan: call.scan,
        endpoint: search.endpoint().as_str().to_owned(),
        body: search.body().clone(),
        upstream_filters: true,
        upstream_limit: None,
        verbatim: true,
        shares: false,
        grant: None,
    };
    let mut completed = CompletedCall::new(&row, search, outcome, *ended_at)
        .with_attempt(call.attempt)
        .with_outcome(stored)
        .without_pause();
    // The charge of the call updates the lane.
    completed.plan = PlanQuota::default();
    record::store_on(&mut tx, &[&completed]).await?;
    tx.commit().await?;
    Ok(Recorded::Stored)
}

/// The caller, if the search is to be stored; else why it is not.
async fn find_caller(
    tx: &mut PgConnection,
    finished: &FinishedSearch,
) -> sqlx::Result<Result<TenantId, Recorded>> {
    let known = find_known(tx, finished).await?;
    if finished.wanted_by == WantedBy::Request {
        let accepted = find_accepted(tx, known, finished).await?;
        return Ok(accepted.ok_or(Recorded::NotAccepted));
    }
    // Only an accepted caller has settings.
    let Some(tenant) = known else {
        return Ok(Err(Recorded::Unwanted));
    };
    let wanted = sqlx::query_scalar!(
        "select record_searches from account_settings where tenant_id = $1 for share",
        tenant.uuid()
    );
    let wanted = wanted.fetch_optional(tx).await?.unwrap_or(false);
    Ok(wanted.then_some(tenant).ok_or(Recorded::Unwanted))
}

/// The caller as it is known. A search that began before its key was rotated belongs to the caller
/// with the new key, as the calls of scans do.
async fn find_known(
    tx: &mut PgConnection,
    finished: &FinishedSearch,
) -> sqlx::Result<Option<TenantId>> {
    let FinishedSearch {
        caller,
        started_at,
        ended_at,
        ..
    } = finished;
    let known = find_by_fingerprints(tx, caller, *ended_at).await?;
    // After the look-up, which waits for a rotation under way.
    Ok(rotate::rotated_since(tx, caller, *started_at)
        .await?
        .or(known))
}

/// The caller, if the marketplace has accepted its key: others cannot store anything without
/// bounds. An answer shows that it does, so its caller is created.
async fn find_accepted(
    tx: &mut PgConnection,
    tenant: Option<TenantId>,
    finished: &FinishedSearch,
) -> sqlx::Result<Option<TenantId>> {
    let FinishedSearch {
        caller,
        outcome,
        ended_at,
        ..
    } = finished;
    if outcome.http_status.is_some_and(means_accepted) {
        let tenant = match tenant {
            Some(tenant) => tenant,
            None => find_or_create_by_fingerprints(tx, caller, *ended_at).await?,
        };
        acceptance::record_accepted(tx, &[tenant], *ended_at).await?;
        return Ok(Some(tenant));
    }
    let Some(tenant) = tenant else {
        return Ok(None);
    };
    Ok(acceptance::is_accepted(tx, tenant).await?.then_some(tenant))
}
