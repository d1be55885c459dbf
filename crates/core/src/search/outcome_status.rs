//! Maps an [`Outcome`] to the state of the item and its lane (scans.md, rule 34).
//!
//! ```text
//!  outcome                                  item                            lane
//!  Answer        rows                       done ok, or the header's status
//!                none                       done empty; for hotels with a reason
//!  Nothing                                  done empty
//!  Incomplete                               done degraded, with its reason
//!  RateLimited   plan left or unknown       done degraded, rate_limited     pauses for the window
//!                plan used up               done degraded, quota_exhausted  pauses until the reset
//!  KeyRejected, NotSubscribed               pending again, not counted      pauses until a resume
//!  Refused                                  failed, invalid_request
//! ```

use std::time::Duration;

use super::{Answer, Finding, Outcome, Search};
use crate::contract::{Api, Endpoint, SearchStatus};

/// The consequences for the item and its lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disposition {
    pub item: ItemDisposition,
    /// Why the lane pauses; `None` if it continues.
    pub lane: Option<LanePause>,
}

/// How the attempt ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemDisposition {
    /// The search was answered, did not complete, or has no results.
    Done {
        status: SearchStatus,
        reason: Option<String>,
    },
    /// The marketplace rejected the request: a retry cannot succeed.
    Failed { reason: &'static str, error: String },
    /// Back to pending. The attempt is recorded but does not count against `max_attempts`.
    Requeued {
        status: SearchStatus,
        reason: &'static str,
        error: String,
    },
}

/// Why a lane pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanePause {
    /// Rate limit of the plan's window; resumes after this time.
    RateLimited(Duration),
    /// No requests left in the plan; resumes after this time, or by a caller's resume if unknown.
    QuotaExhausted(Option<Duration>),
    /// Unknown key; a caller's resume ends the pause.
    KeyRejected,
    /// No subscription to the API; a caller's resume ends the pause.
    NotSubscribed,
}

impl LanePause {
    /// The scan's `status_reason` and the lane's `pause_reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::RateLimited(_) => "rate_limited",
            Self::QuotaExhausted(_) => "quota_exhausted",
            Self::KeyRejected => "key_rejected",
            Self::NotSubscribed => "not_subscribed",
        }
    }

    /// `None`: until a caller's resume.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::RateLimited(time) => Some(time),
            Self::QuotaExhausted(time) => time,
            Self::KeyRejected | Self::NotSubscribed => None,
        }
    }
}

/// The rate window of every plan that has one.
const RATE_WINDOW: Duration = Duration::from_secs(60);
/// Upper bound on a pause that a header requests: a plan's month.
const MAX_PAUSE: Duration = Duration::from_secs(31 * 24 * 3600);

impl ItemDisposition {
    /// For a synchronous search, which is sent once: a rejected key fails the item.
    #[must_use]
    pub fn without_requeue(self) -> Self {
        match self {
            Self::Requeued { reason, error, .. } => Self::Failed { reason, error },
            ended => ended,
        }
    }
}

/// The disposition of an item whose search ended with `outcome`.
pub fn of(search: &Search, outcome: &Outcome) -> Disposition {
    let endpoint = search.endpoint();
    let degraded = |reason: &str| ItemDisposition::Done {
        status: SearchStatus::Degraded,
        reason: Some(reason.to_owned()),
    };
    match &outcome.finding {
        Finding::Answer(answer) => done(classify_answer(search, answer)),
        Finding::Nothing { .. } => {
            let reason = if endpoint == Endpoint::HotelsSearch {
                "no_property"
            } else {
                "no_match"
            };
            done(ItemDisposition::Done {
                status: SearchStatus::Empty,
                reason: Some(reason.to_owned()),
            })
        }
        Finding::Incomplete(cause) => done(degraded(cause.reason())),
        Finding::RateLimited(limit) => {
            let pause = if outcome.plan.is_used_up() {
                LanePause::QuotaExhausted(outcome.plan.reset_seconds.map(clamped))
            } else {
                let window = outcome.plan.window.and_then(|window| window.reset_seconds);
                LanePause::RateLimited(
                    limit
                        .retry_after_seconds()
                        .or(window)
                        .map_or(RATE_WINDOW, clamped),
                )
            };
            Disposition {
                item: degraded(pause.reason()),
                lane: Some(pause),
            }
        }
        Finding::KeyRejected { message } => requeued(LanePause::KeyRejected, message),
        Finding::NotSubscribed { message, .. } => requeued(LanePause::NotSubscribed, message),
        Finding::Refused { message } => done(ItemDisposition::Failed {
            reason: "invalid_request",
            error: message.clone(),
        }),
    }
}

fn done(item: ItemDisposition) -> Disposition {
    Disposition { item, lane: None }
}

fn requeued(pause: LanePause, message: &str) -> Disposition {
    let item = ItemDisposition::Requeued {
        status: SearchStatus::Degraded,
        reason: pause.reason(),
        error: message.to_owned(),
    };
    Disposition {
        item,
        lane: Some(pause),
    }
}

fn clamped(seconds: u64) -> Duration {
    Duration::from_secs(seconds).clamp(Duration::from_secs(1), MAX_PAUSE)
}

/// A stated status decides. Without one, an empty array means no results only if flights were
/// searched with `strict`, as scans do (gateway.md, rule 37).
fn classify_answer(search: &Search, answer: &Answer) -> ItemDisposition {
    let is_empty = answer.results == 0;
    let is_unknown = is_empty
        && answer.stated.is_none()
        && search.endpoint().api() == Api::Flights
        && !search.is_strict();
    if is_unknown {
        return ItemDisposition::Done {
            status: SearchStatus::Degraded,
            reason: Some("not_stated".to_owned()),
        };
    }
    let status = answer.stated.unwrap_or(if is_empty {
        SearchStatus::Empty
    } else {
        SearchStatus::Ok
    });
    let reason_if_empty = || {
        is_empty
            .then(|| empty_reason(search.endpoint(), answer))
            .flatten()
            .map(str::to_owned)
    };
    // The marketplace also reports why a first try failed; a complete answer needs no reason.
    let stated = answer.reason.clone().filter(|_| status != SearchStatus::Ok);
    ItemDisposition::Done {
        status,
        reason: stated.or_else(reason_if_empty),
    }
}

fn empty_reason(endpoint: Endpoint, answer: &Answer) -> Option<&'static str> {
    match endpoint {
        Endpoint::HotelsSearch => Some("no_property"),
        Endpoint::HotelsRooms => Some("no_rooms"),
        Endpoint::HotelsByName
            if answer
                .body
                .value()
                .get("name")
                .is_some_and(|name| !name.is_null()) =>
        {
            Some("sold_out")
        }
        Endpoint::HotelsByName | Endpoint::HotelsResolve => Some("no_match"),
        Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::Request;

    #[test]
    fn a_complete_answer_has_no_reason() {
        let body =
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"});
        let request = Request::check(Endpoint::FlightsOneway, body.as_object().unwrap())
            .unwrap()
            .request;
        let search = Search::for_caller(request);
        let reason = |stated: SearchStatus| {
            let reason = Some("upstream_status".to_owned());
            let answer = Answer {
                body: json!([{}]).into(),
                results: 1,
                stated: Some(stated),
                reason,
            };
            match classify_answer(&search, &answer) {
                ItemDisposition::Done { reason, .. } => reason,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(reason(SearchStatus::Ok), None);
        for incomplete in [SearchStatus::Partial, SearchStatus::Degraded] {
            assert_eq!(
                reason(incomplete).as_deref(),
                Some("upstream_status"),
                "{incomplete}"
            );
        }
    }
}
