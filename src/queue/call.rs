//! One call: from a ticket to a recorded answer. The apalis handler; it never fails, because every outcome is data.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::time::{Instant, timeout};

use super::begin::Beginner;
use super::finished::{Finished, Unaskable};
use super::hold::{Cause, hold_scan};
use super::keys::Keys;
use super::lease::Lease;
use super::record::Writer;
use super::retry::{Failed, Until, retry};
use super::store::{self, Claimed, Verdict};
use super::{Claim, Ticket};
use crate::contract::{Endpoint, Request};
use crate::db::kept_time;
use crate::ids::AttemptId;
use crate::scans::plan::earliest_today;
use crate::search::{CallerKey, Finding, Search};
use crate::tenants::{self, Keyring};
use crate::upstream;

/// The rows that a flight scan asks for unless it says otherwise (jobs-api, "Scans").
const ROWS: u32 = 50;
/// A second place that is not taken by then is none: the call's own time budget runs.
const SECOND_PLACE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a look at the key that is held now may take: without an answer the lane stops, as for any refused key.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// Carries out calls.
#[derive(Debug)]
pub struct Caller {
    pub(super) pool: PgPool,
    pub(super) ring: Arc<Keyring>,
    pub(super) upstream: upstream::Client,
    pub(super) lease: Arc<Lease>,
    pub(super) keys: Keys,
    pub(super) begin: Beginner,
    pub(super) record: Writer,
}

impl Caller {
    /// Carries out one call: puts it on record, asks the marketplace, records what became of it. What cannot be begun goes back by the
    /// ticket's drop; a call that breaks off (a panic) counts as lost the same way.
    pub async fn carry_out(&self, mut ticket: Ticket) {
        let begin_until = self.lease.begin_until(ticket.asked_at());
        let until = Until::Deadline(begin_until);
        let search = search_of(&ticket.claimed, Timestamp::now());
        let key = match self.key_of(&ticket.claimed, begin_until).await {
            Some(Ok(key)) => key,
            Some(Err(cause)) => {
                tracing::warn!(scan = %ticket.claimed.scan, "the scan pauses: its key cannot be used");
                return self.hold(&ticket.claimed, &cause, &until).await;
            }
            None => return,
        };
        let attempt = AttemptId::new();
        let verdict = self
            .begin
            .begin(
                ticket.claim(),
                attempt,
                self.lease.begin_until(ticket.asked_at()),
            )
            .await;
        match verdict {
            Some(Verdict::Begun) => {}
            Some(Verdict::NoRoom) => {
                return self
                    .hold(&ticket.claimed, &Cause::BudgetSpent, &until)
                    .await;
            }
            Some(Verdict::Stopped | Verdict::Gone) | None => return,
        }
        ticket.sends();
        let finished = match search {
            Ok(search) => self.ask(&ticket, &search, &key, attempt).await,
            Err(why) => Finished::unaskable(&ticket.claimed, why, kept_time(Timestamp::now())),
        }
        .of_attempt(attempt);
        if finished.is_good_news() {
            ticket.leave_place().await;
        }
        self.record.record(finished, ticket).await;
    }

    async fn ask(
        &self,
        ticket: &Ticket,
        search: &Search,
        key: &CallerKey,
        attempt: AttemptId,
    ) -> Finished {
        let claim = ticket.claim();
        let outcome = self
            .upstream
            .ask(search, key, &attempt.to_string(), || {
                self.second_place(claim)
            })
            .await;
        let refused = matches!(
            outcome.finding,
            Finding::KeyRejected { .. } | Finding::NotSubscribed { .. }
        );
        let mut finished = Finished::of(
            &ticket.claimed,
            search,
            &outcome,
            kept_time(Timestamp::now()),
        );
        if ticket.claimed.is_as_written() {
            finished = finished.keeping(&outcome, key);
        }
        if refused && self.has_passed_on(&ticket.claimed, key).await {
            finished = finished.without_pause();
        }
        finished
    }

    /// Whether the caller has another key by now: that this one was refused says nothing of it, and must not stop its lane.
    async fn has_passed_on(&self, claimed: &Claimed, used: &CallerKey) -> bool {
        let Some(grant) = claimed.grant else {
            return false;
        };
        let held = tenants::store::open_grant(&self.pool, &self.ring, claimed.claim.tenant, grant);
        matches!(timeout(LOOK_TIMEOUT, held).await, Ok(Ok(held)) if held.expose() != used.expose())
    }

    /// Takes the second place of a call, before its second try is sent; without an answer there is none.
    async fn second_place(&self, claim: Claim) -> bool {
        matches!(
            timeout(SECOND_PLACE_TIMEOUT, store::second_place(&self.pool, claim)).await,
            Ok(Ok(true))
        )
    }

    /// The caller's key, opened for this call; or why the scan pauses. `None`: the database did not say in time.
    async fn key_of(&self, claimed: &Claimed, until: Instant) -> Option<Result<CallerKey, Cause>> {
        match claimed.grant {
            Some(grant) => self.keys.open(claimed.claim.tenant, grant, until).await,
            None => Some(Err(Cause::KeyGone)),
        }
    }

    async fn hold(&self, claimed: &Claimed, cause: &Cause, until: &Until) {
        let held = retry("hold_scan", until, || {
            hold_scan(&self.pool, claimed.claim.tenant, claimed.scan, cause)
        })
        .await;
        if let Err(Failed::Refused(error)) = held {
            tracing::error!(scan = %claimed.scan, %error, "the scan could not be paused");
        }
    }
}

/// The search that a stored item stands for, or why nothing is sent. One whose date has passed while its scan was held cannot have an
/// answer, and would be billed; what goes as its caller wrote it is the marketplace's to judge.
fn search_of(claimed: &Claimed, now: Timestamp) -> Result<Search, Unaskable> {
    let invalid = |error: String| Unaskable {
        reason: "invalid_request",
        error,
    };
    let endpoint = Endpoint::parse(&claimed.endpoint)
        .ok_or_else(|| invalid(format!("there is no endpoint {}", claimed.endpoint)))?;
    let checked =
        Request::check(endpoint, &claimed.body).map_err(|faults| invalid(faults.to_string()))?;
    if claimed.is_as_written() {
        return Ok(Search::of_caller(checked.request));
    }
    if let Some(date) = checked
        .request
        .first_date()
        .filter(|date| *date < earliest_today(now))
    {
        return Err(Unaskable {
            reason: "date_passed",
            error: format!("{date} had passed when its turn came: it was not searched"),
        });
    }
    Ok(Search::of_item(
        checked.request,
        claimed.upstream_limit.unwrap_or(ROWS),
        claimed.upstream_filters,
    ))
}
