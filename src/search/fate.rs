//! What a scan makes of an [`Outcome`]: the item's end and what its lane does. jobs-api's outcome table, stated once.
//!
//! ```text
//!  Answer        rows                        done ok, or what the header says
//!                none                        done empty (no_rooms, sold_out, no_match, no_property for hotels)
//!  Nothing                                   done empty
//!  Incomplete                                done degraded, with its reason
//!  RateLimited   plan left or unknown        done degraded, rate_limited      lane pauses for the window
//!                plan used up                done degraded, quota_exhausted   lane pauses until the reset
//!  KeyRejected, NotSubscribed                pending again, not counted       lane pauses until a resume
//!  Refused                                   failed, invalid_request
//! ```

use std::time::Duration;

use super::{Answer, Finding, Outcome, Search};
use crate::contract::{Api, Endpoint, SearchStatus};

/// What becomes of the item and its lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    pub item: ItemFate,
    /// The lane stops, and why; `None`: it goes on.
    pub lane: Option<LanePause>,
}

/// How the attempt ends for its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemFate {
    /// The search has an answer, or is known to have none.
    Done {
        status: SearchStatus,
        reason: Option<String>,
    },
    /// The question itself was refused: asking again cannot help.
    Failed { reason: &'static str, error: String },
    /// Back to pending; the attempt stays on record but does not count against `max_attempts`.
    Returned {
        status: SearchStatus,
        reason: &'static str,
        error: String,
    },
}

/// Why a lane stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanePause {
    /// Too fast for the plan's window; goes on after this long.
    RateLimited(Duration),
    /// The plan is used up; goes on after this long, or with a resume where the reset is not known.
    QuotaExhausted(Option<Duration>),
    /// The marketplace does not know the key; goes on with a resume.
    KeyRejected,
    /// The key has no subscription to the API; goes on with a resume.
    NotSubscribed,
}

impl LanePause {
    /// The word for it: the scan's `status_reason` and the lane's `pause_reason`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::RateLimited(_) => "rate_limited",
            Self::QuotaExhausted(_) => "quota_exhausted",
            Self::KeyRejected => "key_rejected",
            Self::NotSubscribed => "not_subscribed",
        }
    }

    /// How long it lasts; `None`: until a resume.
    #[must_use]
    pub fn lasts(self) -> Option<Duration> {
        match self {
            Self::RateLimited(time) => Some(time),
            Self::QuotaExhausted(time) => time,
            Self::KeyRejected | Self::NotSubscribed => None,
        }
    }
}

/// The rate window of every plan that has one.
const RATE_WINDOW: Duration = Duration::from_secs(60);
/// The longest pause that a marketplace's header can order: a plan's month.
const LONGEST_PAUSE: Duration = Duration::from_secs(31 * 24 * 3600);

impl ItemFate {
    /// The same for a search that somebody waits for and that is asked once: a key that was refused is its end too.
    #[must_use]
    pub fn settled(self) -> Self {
        match self {
            Self::Returned { reason, error, .. } => Self::Failed { reason, error },
            ended => ended,
        }
    }
}

/// The fate of an item whose search came to `outcome`.
#[must_use]
pub fn of(search: &Search, outcome: &Outcome) -> Fate {
    let endpoint = search.endpoint();
    let degraded = |reason: &str| ItemFate::Done {
        status: SearchStatus::Degraded,
        reason: Some(reason.to_owned()),
    };
    match &outcome.finding {
        Finding::Answer(answer) => done(of_answer(search, answer)),
        Finding::Nothing { .. } => {
            let reason = if endpoint == Endpoint::HotelsSearch {
                "no_property"
            } else {
                "no_match"
            };
            done(ItemFate::Done {
                status: SearchStatus::Empty,
                reason: Some(reason.to_owned()),
            })
        }
        Finding::Incomplete(cause) => done(degraded(cause.reason())),
        Finding::RateLimited(limit) => {
            let pause = if outcome.plan.is_used_up() {
                LanePause::QuotaExhausted(outcome.plan.reset_seconds.map(bounded))
            } else {
                let window = outcome.plan.window.and_then(|window| window.reset_seconds);
                LanePause::RateLimited(
                    limit
                        .retry_after_seconds()
                        .or(window)
                        .map_or(RATE_WINDOW, bounded),
                )
            };
            Fate {
                item: degraded(pause.reason()),
                lane: Some(pause),
            }
        }
        Finding::KeyRejected { message } => returned(LanePause::KeyRejected, message),
        Finding::NotSubscribed { message, .. } => returned(LanePause::NotSubscribed, message),
        Finding::Refused { message } => done(ItemFate::Failed {
            reason: "invalid_request",
            error: message.clone(),
        }),
    }
}

fn done(item: ItemFate) -> Fate {
    Fate { item, lane: None }
}

fn returned(pause: LanePause, message: &str) -> Fate {
    let item = ItemFate::Returned {
        status: SearchStatus::Degraded,
        reason: pause.reason(),
        error: message.to_owned(),
    };
    Fate {
        item,
        lane: Some(pause),
    }
}

fn bounded(seconds: u64) -> Duration {
    Duration::from_secs(seconds).clamp(Duration::from_secs(1), LONGEST_PAUSE)
}

/// Only the stated status decides where there is one. Where there is none, an empty array is known to be empty if flights were asked
/// `strict`, as scans do; asked otherwise it says nothing (specification 4.3).
fn of_answer(search: &Search, answer: &Answer) -> ItemFate {
    let nothing = answer.results == 0;
    let says_nothing = nothing
        && answer.stated.is_none()
        && search.endpoint().api() == Api::Flights
        && !search.is_strict();
    if says_nothing {
        return ItemFate::Done {
            status: SearchStatus::Degraded,
            reason: Some("not_stated".to_owned()),
        };
    }
    let status = answer.stated.unwrap_or(if nothing {
        SearchStatus::Empty
    } else {
        SearchStatus::Ok
    });
    let why = || {
        nothing
            .then(|| why_empty(search.endpoint(), answer))
            .flatten()
            .map(str::to_owned)
    };
    // A complete answer needs no reason: the marketplace tells of a first try that failed, too.
    let stated = answer.reason.clone().filter(|_| status != SearchStatus::Ok);
    ItemFate::Done {
        status,
        reason: stated.or_else(why),
    }
}

fn why_empty(endpoint: Endpoint, answer: &Answer) -> Option<&'static str> {
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

    /// The marketplace says why a first try failed, also where the second one was answered.
    #[test]
    fn a_complete_answer_has_no_reason() {
        let body =
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"});
        let request = Request::check(Endpoint::FlightsOneway, body.as_object().unwrap())
            .unwrap()
            .request;
        let search = Search::of_caller(request);
        let reason = |stated: SearchStatus| {
            let reason = Some("upstream_status".to_owned());
            let answer = Answer {
                body: json!([{}]).into(),
                results: 1,
                stated: Some(stated),
                reason,
            };
            match of_answer(&search, &answer) {
                ItemFate::Done { reason, .. } => reason,
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
