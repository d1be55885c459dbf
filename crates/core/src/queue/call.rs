//! One call: from a claimed item to a recorded answer. The apalis handler; it never fails, because
//! every outcome is data.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::time::timeout;

use super::begin::BeginHandle;
use super::completed_call::{CompletedCall, NotSendable};
use super::database_retry::{RetryError, RetryUntil, retry};
use super::lease::Lease;
use super::pause_scan::{PauseCause, pause_scan};
use super::pending_write::RecordHandle;
use super::store::{self, BeginVerdict, ClaimRow};
use super::{Claim, ClaimedItem};
use crate::contract::{Endpoint, Request};
use crate::db::truncate_to_micros;
use crate::ids::AttemptId;
use crate::scans::plan::earliest_today;
use crate::search::{CallerKey, Finding, Search};
use crate::tenants::{self, GrantError, Keyring};
use crate::upstream;

/// The rows that a flight scan requests unless it sets another limit (scans.md, rule 5).
const DEFAULT_ROWS: u32 = 50;
/// How long the reservation of a retry may take: the call's own time budget runs meanwhile.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the check for a replaced key may take; on a timeout the lane pauses as for any refused
/// key.
const KEY_CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Executes calls.
#[derive(Debug)]
pub struct CallExecutor {
    pub(super) pool: PgPool,
    pub(super) ring: Arc<Keyring>,
    pub(super) upstream: upstream::Client,
    pub(super) lease: Arc<Lease>,
    pub(super) begin: BeginHandle,
    pub(super) record: RecordHandle,
}

impl CallExecutor {
    /// Executes one call: begins it, calls the marketplace, records the result. A claim that cannot
    /// begin is released when its item is dropped; after a panic the drop counts the call as lost.
    pub async fn execute(&self, mut claimed_item: ClaimedItem) {
        let begin_until = self.lease.begin_until(claimed_item.requested_at());
        let until = RetryUntil::Deadline(begin_until);
        let search = build_search(&claimed_item.row, Timestamp::now());
        let key = match self.open_key(&claimed_item.row) {
            Ok(key) => key,
            Err(cause) => {
                tracing::warn!(scan = %claimed_item.row.scan, "pausing the scan: its key is unusable");
                drop(claimed_item.take_expected_begin());
                return self.pause(&claimed_item.row, &cause, &until).await;
            }
        };
        let attempt = AttemptId::new();
        let verdict = self
            .begin
            .begin(
                claimed_item.claim(),
                attempt,
                claimed_item.row.shares,
                claimed_item.take_expected_begin(),
                begin_until,
            )
            .await;
        match verdict {
            Some(BeginVerdict::Begun) => {}
            Some(BeginVerdict::Shared) => return claimed_item.mark_stored(),
            Some(BeginVerdict::BudgetSpent) => {
                return self
                    .pause(&claimed_item.row, &PauseCause::BudgetSpent, &until)
                    .await;
            }
            Some(BeginVerdict::Stopped | BeginVerdict::ClaimLost) | None => return,
        }
        claimed_item.mark_sent();
        let completed = match search {
            Ok(search) => {
                self.call_marketplace(&claimed_item, &search, &key, attempt)
                    .await
            }
            Err(why) => CompletedCall::not_sendable(
                &claimed_item.row,
                why,
                truncate_to_micros(Timestamp::now()),
            ),
        }
        .with_attempt(attempt);
        if completed.keeps_lane_running() {
            claimed_item.switch_to_storing_permit().await;
        }
        self.record.record(completed, claimed_item).await;
    }

    async fn call_marketplace(
        &self,
        claimed_item: &ClaimedItem,
        search: &Search,
        key: &CallerKey,
        attempt: AttemptId,
    ) -> CompletedCall {
        let claim = claimed_item.claim();
        let outcome = self
            .upstream
            .search(search, key, &attempt.to_string(), || {
                self.reserve_retry(claim)
            })
            .await;
        let refused = matches!(
            outcome.finding,
            Finding::KeyRejected { .. } | Finding::NotSubscribed { .. }
        );
        let mut completed = CompletedCall::new(
            &claimed_item.row,
            search,
            &outcome,
            truncate_to_micros(Timestamp::now()),
        );
        // An outcome without an answer is in no column, and a single search may take it.
        let has_no_columns = matches!(outcome.finding, Finding::Nothing { .. });
        if claimed_item.row.verbatim || has_no_columns {
            completed = completed.with_outcome(&outcome.to_stored(key));
        }
        if refused && self.key_was_replaced(&claimed_item.row, key).await {
            completed = completed.without_pause();
        }
        completed
    }

    /// Whether the caller has replaced the key: the refusal of the old one must not pause the lane.
    async fn key_was_replaced(&self, row: &ClaimRow, used: &CallerKey) -> bool {
        let Some((tenant, grant)) = row.grant.as_ref().map(|grant| grant.id) else {
            return false;
        };
        let current = tenants::open_grant(&self.pool, &self.ring, tenant, grant);
        matches!(
            timeout(KEY_CHECK_TIMEOUT, current).await,
            Ok(Ok(current)) if current.expose() != used.expose()
        )
    }

    /// Reserves the retry of a call before it is sent; on a timeout there is none.
    async fn reserve_retry(&self, claim: Claim) -> bool {
        matches!(
            timeout(RESERVE_TIMEOUT, store::reserve_retry(&self.pool, claim)).await,
            Ok(Ok(true))
        )
    }

    /// The caller's key, or why the scan pauses. It is not cached: each claim brings it as it is
    /// then, so a key that was wiped, replaced or has expired is not used for a later claim.
    fn open_key(&self, row: &ClaimRow) -> Result<CallerKey, PauseCause> {
        let grant = row.grant.as_ref().ok_or(PauseCause::KeyGone)?;
        grant.open(&self.ring).map_err(|error| {
            tracing::warn!(%error, "key unusable");
            match error {
                GrantError::NotOpened { nonce, .. } => PauseCause::KeyUnopened { nonce },
                GrantError::Gone | GrantError::Database(_) => PauseCause::KeyGone,
            }
        })
    }

    async fn pause(&self, row: &ClaimRow, cause: &PauseCause, until: &RetryUntil) {
        let paused = retry("pause_scan", until, || {
            pause_scan(&self.pool, row.claim.tenant, row.scan, cause)
        })
        .await;
        if let Err(RetryError::Permanent(error)) = paused {
            tracing::error!(scan = %row.scan, %error, "pausing the scan failed");
        }
    }
}

/// The search of a stored item, or why it is not sent. A search whose date passed while its scan
/// was paused would be billed without an answer. The marketplace validates a search that is sent as
/// its caller wrote it.
fn build_search(row: &ClaimRow, now: Timestamp) -> Result<Search, NotSendable> {
    let invalid = |error: String| NotSendable {
        reason: "invalid_request",
        error,
    };
    let endpoint = Endpoint::parse(&row.endpoint)
        .ok_or_else(|| invalid(format!("there is no endpoint {}", row.endpoint)))?;
    let checked =
        Request::check(endpoint, &row.body).map_err(|faults| invalid(faults.to_string()))?;
    if row.verbatim {
        return Ok(Search::for_caller(checked.request));
    }
    if let Some(date) = checked
        .request
        .first_date()
        .filter(|date| *date < earliest_today(now))
    {
        return Err(NotSendable {
            reason: "date_passed",
            error: format!("{date} had passed when its turn came: it was not searched"),
        });
    }
    Ok(Search::for_item(
        checked.request,
        row.upstream_limit.unwrap_or(DEFAULT_ROWS),
        row.upstream_filters,
    ))
}
