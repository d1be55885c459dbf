//! A finished call in the forms in which it is stored. Pure.

use std::cell::RefCell;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value};
use zstd::bulk::Compressor;

use super::circuit::Sign;
use super::store::{Claimed, Ending, FinishedCall};
use crate::contract::{Api, Offer, Request, SearchStatus};
use crate::history::{Observation, SeenPrice, Subject};
use crate::ids::AttemptId;
use crate::search::fate::{self, Fate, ItemFate};
use crate::search::{CallerKey, Finding, Outcome, PlanQuota, Search, Sight};

/// zstd's level: three times smaller than JSON, at a fraction of a millisecond (store.md).
const COMPRESSION: i32 = 3;
/// The longest text of the marketplace that is kept as an error or reason.
const LONGEST_TEXT: usize = 500;
/// The longest deep link that is kept, in bytes: browsers and servers take no longer ones for sure.
const LONGEST_LINK: usize = 8_192;

/// Why a stored search is not sent: it is none that its endpoint takes, because another version of this program checked it, or its date
/// has passed.
#[derive(Debug)]
pub(super) struct Unaskable {
    pub(super) reason: &'static str,
    pub(super) error: String,
}

/// Everything that is stored of a call, in one transaction.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) call: FinishedCall,
    pub(super) lane: Api,
    /// The whole answer, zstd.
    pub(super) answer: Option<Bytes>,
    /// The outcome without its answer, zstd; of a search that went upstream as its caller wrote it.
    pub(super) kept: Option<Bytes>,
    pub(super) observation: Option<Observation>,
    /// The offer that has the item's price.
    pub(super) best: Option<Offer>,
    pub(super) plan: PlanQuota,
    /// What it says of the marketplace's health.
    pub(super) sign: Option<Sign>,
}

impl Finished {
    /// What became of the call of `claimed`, whose answer came at `now`.
    pub(super) fn of(
        claimed: &Claimed,
        search: &Search,
        outcome: &Outcome,
        now: Timestamp,
    ) -> Self {
        let mut fate = fate::of(search, outcome);
        if claimed.is_as_written() {
            fate.item = fate.item.settled();
        }
        let answer = match &outcome.finding {
            Finding::Answer(answer) => Some(answer),
            _ => None,
        };
        let mut sight = answer.map(|answer| Sight::of(search, answer));
        if let (
            Some(sight),
            ItemFate::Done {
                status: SearchStatus::Degraded,
                ..
            },
        ) = (&mut sight, &fate.item)
        {
            // Rows of a search that did not complete are no price.
            sight.best = None;
        }
        let call = call(claimed, outcome, &fate, sight.as_ref(), now);
        let best = sight.and_then(|sight| sight.best).map(|(offer, _)| offer);
        let observation = observation(search.request(), &call, best.as_ref());
        let answer = answer.and_then(|answer| compressed(answer.body.text()));
        let sign = Sign::of(outcome);
        Self {
            call,
            lane: claimed.lane,
            answer,
            kept: None,
            observation,
            best,
            plan: outcome.plan,
            sign,
        }
    }

    /// The same with the attempt that it is on record as.
    pub(super) fn of_attempt(mut self, attempt: AttemptId) -> Self {
        self.call.attempt_id = Some(attempt.uuid());
        self
    }

    /// The same with its outcome kept.
    pub(super) fn keeping(self, outcome: &Outcome, key: &CallerKey) -> Self {
        Self {
            kept: serde_json::to_vec(&outcome.to_keep(key))
                .ok()
                .and_then(|text| compressed(&text)),
            ..self
        }
    }

    /// The same some time after it ended: of what the plan headers said then, what holds still.
    pub(super) fn aged(self, now: Timestamp) -> Self {
        let seconds = now.duration_since(self.call.ended_at).as_secs();
        Self {
            plan: self.plan.after(u64::try_from(seconds).unwrap_or(0)),
            ..self
        }
    }

    /// The same without a stop of the lane: the key that was refused is not the caller's any more.
    pub(super) fn without_pause(mut self) -> Self {
        (self.call.pause_reason, self.call.pause_seconds) = (None, None);
        self
    }

    /// Nothing in it says that calls should stop: no refused key, no limit, no quota at its end, no failure.
    pub(super) fn is_good_news(&self) -> bool {
        self.sign == Some(Sign::Good) && self.call.pause_reason.is_none() && !self.plan.is_used_up()
    }

    /// How its item ended, in one word of a fixed few: for metrics.
    pub(super) fn end(&self) -> &'static str {
        match (self.call.ending, self.call.search_status) {
            (Ending::Done, Some(status)) => status.as_str(),
            (Ending::Done, None) => "done",
            (Ending::Failed, _) => "failed",
            (Ending::Returned, _) => "returned",
        }
    }

    /// Nothing was sent.
    pub(super) fn unaskable(claimed: &Claimed, why: Unaskable, now: Timestamp) -> Self {
        let ending = (
            Ending::Failed,
            None,
            Some(why.reason.to_owned()),
            Some(why.error),
        );
        Self {
            call: blank(claimed, ending, now),
            lane: claimed.lane,
            answer: None,
            kept: None,
            observation: None,
            best: None,
            plan: PlanQuota::default(),
            sign: None,
        }
    }
}

type HowItEnded = (Ending, Option<SearchStatus>, Option<String>, Option<String>);

fn blank(
    claimed: &Claimed,
    (ending, search_status, reason, error): HowItEnded,
    now: Timestamp,
) -> FinishedCall {
    FinishedCall {
        tenant_id: claimed.claim.tenant.uuid(),
        item_id: claimed.claim.item.uuid(),
        number: claimed.claim.number,
        attempt_id: None,
        ended_at: now,
        ending,
        may_retry: false,
        http_status: None,
        search_status,
        reason: reason.map(|text| storable(&text)),
        error: error.map(|text| storable(&text)),
        search_headers: Map::new(),
        latency_ms: 0,
        billed: 0,
        results: None,
        best_price: None,
        currency: None,
        pause_reason: None,
        pause_seconds: None,
    }
}

fn call(
    claimed: &Claimed,
    outcome: &Outcome,
    fate: &Fate,
    sight: Option<&Sight>,
    now: Timestamp,
) -> FinishedCall {
    let best = sight.and_then(|sight| sight.best.as_ref());
    let headers = outcome
        .search_headers
        .iter()
        .map(|(name, value)| (storable(name), Value::String(storable(value))));
    FinishedCall {
        // Degraded, but not because there were too many requests already (jobs-api: never for those two).
        may_retry: matches!(
            fate.item,
            ItemFate::Done {
                status: SearchStatus::Degraded,
                ..
            }
        ) && fate.lane.is_none(),
        http_status: outcome.http_status,
        search_headers: headers.collect(),
        latency_ms: outcome.latency.as_millis().try_into().unwrap_or(i32::MAX),
        billed: outcome.billed_requests,
        results: sight.map(|sight| sight.results.try_into().unwrap_or(i32::MAX)),
        best_price: best.map(|(offer, _)| offer.price.to_string()),
        currency: best.map(|(_, currency)| currency.clone()),
        pause_reason: fate.lane.map(fate::LanePause::reason),
        pause_seconds: fate
            .lane
            .and_then(fate::LanePause::lasts)
            .map(|time| time.as_secs_f64()),
        ..blank(claimed, how_it_ended(&fate.item, sight), now)
    }
}

fn how_it_ended(item: &ItemFate, sight: Option<&Sight>) -> HowItEnded {
    match item {
        ItemFate::Done { status, .. } if sight.is_some_and(|sight| sight.filtered_out) => (
            Ending::Done,
            Some(*status),
            Some("filtered_out".to_owned()),
            None,
        ),
        ItemFate::Done { status, reason } => (Ending::Done, Some(*status), reason.clone(), None),
        ItemFate::Failed { reason, error } => (
            Ending::Failed,
            None,
            Some((*reason).to_owned()),
            Some(error.clone()),
        ),
        ItemFate::Returned {
            status,
            reason,
            error,
        } => (
            Ending::Returned,
            Some(*status),
            Some((*reason).to_owned()),
            Some(error.clone()),
        ),
    }
}

/// Every finished attempt leaves one (jobs-api, "History"); a question that was refused asked nothing. `best` is the offer that has the
/// call's price.
pub(super) fn observation(
    request: &Request,
    call: &FinishedCall,
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
        best: best.map(|offer| SeenPrice {
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

/// What was not asked for: of a place which hotel, of a hotel which room.
fn seller<'a>(request: &Request, offer: &'a Offer) -> Option<&'a str> {
    match request {
        Request::HotelSearch(_) => offer.hotel.as_deref(),
        _ => offer.carrier_or_room.as_deref(),
    }
}

fn compressed(text: &[u8]) -> Option<Bytes> {
    thread_local! {
        /// Making one costs several times what compressing an answer does.
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    }
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(Compressor::new(COMPRESSION).ok()?),
        };
        compressor.compress(text).ok().map(Bytes::from)
    })
}

/// A deep link that can be kept whole; half a link leads nowhere.
pub(super) fn is_storable_link(link: &str) -> bool {
    link.len() <= LONGEST_LINK && !link.contains('\0')
}

/// Text as the database takes it: it holds no NUL.
pub(super) fn storable(text: &str) -> String {
    text.chars()
        .filter(|character| *character != '\0')
        .take(LONGEST_TEXT)
        .collect()
}
