//! A completed call in the forms in which it is stored. Pure.

use bytes::Bytes;
use jiff::Timestamp;

use super::circuit::CallHealth;
use super::storable_text::storable;
use super::store::{CallEnding, CallRecord, ClaimRow};
use crate::contract::{Api, Offer, Request, SearchStatus};
use crate::history::{Observation, ObservedPrice, Subject};
use crate::ids::AttemptId;
use crate::search::outcome_status::{self, Disposition, ItemDisposition};
use crate::search::{
    Finding, ItemSummary, Outcome, PlanQuota, Search, StoredHeaders, compress, compress_answer,
};

/// Why a stored search cannot be sent: its endpoint does not accept it (another version of this
/// program checked it), or its date has passed.
#[derive(Debug)]
pub(super) struct NotSendable {
    pub(super) reason: &'static str,
    pub(super) error: String,
}

/// All that one transaction stores of a call.
#[derive(Debug)]
pub(super) struct CompletedCall {
    pub(super) record: CallRecord,
    pub(super) lane: Api,
    /// The whole answer, compressed.
    pub(super) answer: Option<Bytes>,
    /// The outcome without its answer, compressed; only for a search that was sent as its caller wrote
    /// it.
    pub(super) stored_outcome: Option<Bytes>,
    pub(super) observation: Option<Observation>,
    /// The offer that has the item's price.
    pub(super) best: Option<Offer>,
    pub(super) plan: PlanQuota,
    /// What the call says about the marketplace's health.
    pub(super) health: Option<CallHealth>,
}

impl CompletedCall {
    /// The call of `row`, whose outcome arrived at `now`.
    pub(super) fn new(row: &ClaimRow, search: &Search, outcome: &Outcome, now: Timestamp) -> Self {
        let mut disposition = outcome_status::of(search, outcome);
        if row.verbatim {
            disposition.item = disposition.item.without_requeue();
        }
        let answer = match &outcome.finding {
            Finding::Answer(answer) => Some(answer),
            _ => None,
        };
        let mut summary = answer.map(|answer| ItemSummary::of(search, answer));
        if let (
            Some(summary),
            ItemDisposition::Done {
                status: SearchStatus::Degraded,
                ..
            },
        ) = (&mut summary, &disposition.item)
        {
            // A search that did not complete has no best price.
            summary.best = None;
        }
        let record = call_record(row, outcome, &disposition, summary.as_ref(), now);
        let best = summary
            .and_then(|summary| summary.best)
            .map(|(offer, _)| offer);
        let observation = observation(search.request(), &record, best.as_ref());
        let answer =
            answer.and_then(|answer| compress_answer(search.endpoint(), answer.body.text()));
        let health = CallHealth::of(outcome);
        Self {
            record,
            lane: row.lane,
            answer,
            stored_outcome: None,
            observation,
            best,
            plan: outcome.plan,
            health,
        }
    }

    /// Sets the attempt that the call was begun with.
    pub(super) fn with_attempt(mut self, attempt: AttemptId) -> Self {
        self.record.attempt_id = Some(attempt.uuid());
        self
    }

    /// Adds the outcome in its stored form ([`Outcome::to_stored`]).
    pub(super) fn with_outcome(self, stored: &Outcome) -> Self {
        Self {
            stored_outcome: serde_json::to_vec(stored)
                .ok()
                .and_then(|text| compress(&text)),
            ..self
        }
    }

    /// Drops what no longer holds of the plan headers at `now`, some time after the call ended.
    pub(super) fn aged(self, now: Timestamp) -> Self {
        let seconds = now.duration_since(self.record.ended_at).as_secs();
        Self {
            plan: self.plan.after(u64::try_from(seconds).unwrap_or(0)),
            ..self
        }
    }

    /// Removes the pause of the lane: the caller has replaced the key that was refused.
    pub(super) fn without_pause(mut self) -> Self {
        (self.record.pause_reason, self.record.pause_seconds) = (None, None);
        self
    }

    /// Whether the lane's next calls may begin before this one is stored: no refused key, no rate
    /// limit, no exhausted quota, no failure.
    pub(super) fn keeps_lane_running(&self) -> bool {
        self.health == Some(CallHealth::Success)
            && self.record.pause_reason.is_none()
            && !self.plan.is_used_up()
    }

    /// How the item ended: the label of a metric.
    pub(super) fn end(&self) -> &'static str {
        match (self.record.ending, self.record.search_status) {
            (CallEnding::Done, Some(status)) => status.as_str(),
            (CallEnding::Done, None) => "done",
            (CallEnding::Failed, _) => "failed",
            (CallEnding::Requeued, _) => "returned",
        }
    }

    /// A call that was not sent; its item fails.
    pub(super) fn not_sendable(row: &ClaimRow, why: NotSendable, now: Timestamp) -> Self {
        let ending = (
            CallEnding::Failed,
            None,
            Some(why.reason.to_owned()),
            Some(why.error),
        );
        Self {
            record: blank(row, ending, now),
            lane: row.lane,
            answer: None,
            stored_outcome: None,
            observation: None,
            best: None,
            plan: PlanQuota::default(),
            health: None,
        }
    }
}

type EndingFields = (
    CallEnding,
    Option<SearchStatus>,
    Option<String>,
    Option<String>,
);

fn blank(
    row: &ClaimRow,
    (ending, search_status, reason, error): EndingFields,
    now: Timestamp,
) -> CallRecord {
    CallRecord {
        tenant_id: row.claim.tenant.uuid(),
        item_id: row.claim.item.uuid(),
        number: row.claim.number,
        attempt_id: None,
        ended_at: now,
        ending,
        may_retry: false,
        http_status: None,
        search_status,
        reason: reason.map(|text| storable(&text)),
        error: error.map(|text| storable(&text)),
        search_headers: StoredHeaders::default(),
        latency_ms: 0,
        billed: 0,
        results: None,
        best_price: None,
        currency: None,
        pause_reason: None,
        pause_seconds: None,
    }
}

fn call_record(
    row: &ClaimRow,
    outcome: &Outcome,
    disposition: &Disposition,
    summary: Option<&ItemSummary>,
    now: Timestamp,
) -> CallRecord {
    let best = summary.and_then(|summary| summary.best.as_ref());
    let headers = outcome
        .search_headers
        .iter()
        .map(|(name, value)| (storable(name), storable(value)));
    CallRecord {
        // A degraded outcome, but not one that pauses the lane (scans.md, rule 20).
        may_retry: matches!(
            disposition.item,
            ItemDisposition::Done {
                status: SearchStatus::Degraded,
                ..
            }
        ) && disposition.lane.is_none(),
        http_status: outcome.http_status,
        search_headers: headers.collect(),
        latency_ms: outcome.latency.as_millis().try_into().unwrap_or(i32::MAX),
        billed: outcome.billed_requests,
        results: summary.map(|summary| summary.results.try_into().unwrap_or(i32::MAX)),
        best_price: best.map(|(offer, _)| offer.price.to_string()),
        currency: best.map(|(_, currency)| currency.clone()),
        pause_reason: disposition.lane.map(outcome_status::LanePause::reason),
        pause_seconds: disposition
            .lane
            .and_then(outcome_status::LanePause::duration)
            .map(|time| time.as_secs_f64()),
        ..blank(row, ending_fields(&disposition.item, summary), now)
    }
}

fn ending_fields(item: &ItemDisposition, summary: Option<&ItemSummary>) -> EndingFields {
    match item {
        ItemDisposition::Done { status, .. }
            if summary.is_some_and(|summary| summary.filtered_out) =>
        {
            (
                CallEnding::Done,
                Some(*status),
                Some("filtered_out".to_owned()),
                None,
            )
        }
        ItemDisposition::Done { status, reason } => {
            (CallEnding::Done, Some(*status), reason.clone(), None)
        }
        ItemDisposition::Failed { reason, error } => (
            CallEnding::Failed,
            None,
            Some((*reason).to_owned()),
            Some(error.clone()),
        ),
        ItemDisposition::Requeued {
            status,
            reason,
            error,
        } => (
            CallEnding::Requeued,
            Some(*status),
            Some((*reason).to_owned()),
            Some(error.clone()),
        ),
    }
}

/// Every finished attempt leaves one (history.md, rules 1 to 4); a refused request
/// searched nothing. `best` is the offer that has the call's price.
pub(super) fn observation(
    request: &Request,
    call: &CallRecord,
    best: Option<&Offer>,
) -> Option<Observation> {
    let subject = Subject::of(request)?;
    let best = best.filter(|_| call.currency.as_ref() == Some(&subject.series.currency));
    Some(Observation {
        tenant: call.tenant_id.into(),
        item: call.item_id.into(),
        number: call.number,
        subject,
        observed_at: call.ended_at,
        best: best.map(|offer| ObservedPrice {
            price: offer.price,
            seller: seller(request, offer).map(storable),
            band_low: offer.band_low,
            band_high: offer.band_high,
            verdict: offer.verdict,
        }),
        results: call.results,
        status: call.search_status?,
        reason: call.reason.clone(),
    })
}

/// What the request left open: the hotel of a place, the room of a hotel, the carrier of a flight.
fn seller<'a>(request: &Request, offer: &'a Offer) -> Option<&'a str> {
    match request {
        Request::HotelSearch(_) => offer.hotel.as_deref(),
        _ => offer.carrier_or_room.as_deref(),
    }
}
