//! An item: what its result means, and its figures.

use farescan_contract::history_verdict::{HistoryVerdict, PriceClass};
use farescan_contract::scans::{Item, ItemState};
use farescan_contract::{KnownReason, SearchStatus};

use crate::numbers::{amount, counted, duration, price};
use crate::sheet::{Figure, NextStep, Notice, Tone, Value};
use crate::trip::words;

/// What the result means; `None` of a complete search with a price.
pub fn notice(item: &Item) -> Option<Notice> {
    if let Some(first) = &item.confirming {
        let price = price(first.price, &first.currency);
        return Some(Notice {
            tone: Tone::Plain,
            lead: format!("A rule waits for the confirmation of {price}."),
            text: "It fires if this search finds such a price once more.".to_owned(),
            next: &[],
        });
    }
    let (tone, lead) = match (item.state, item.search_status) {
        (ItemState::Pending, _) => (Tone::Plain, "It waits for its search."),
        (ItemState::Running, _) => (Tone::Plain, "It is being searched now."),
        (ItemState::Done, Some(SearchStatus::Degraded)) => (
            Tone::Warn,
            "The search did not complete, so it says nothing about prices.",
        ),
        (ItemState::Done, Some(SearchStatus::Partial)) => (
            Tone::Warn,
            "A part of the search failed: what is here is true, and more may exist.",
        ),
        (ItemState::Done, Some(SearchStatus::Empty)) => (
            Tone::Plain,
            "The search completed, and nothing is on offer.",
        ),
        (ItemState::Failed, _) => (
            Tone::Bad,
            "The marketplace refused the request. Asking again helps only once the cause is mended.",
        ),
        (ItemState::Skipped, _) => (
            Tone::Plain,
            "Not searched: the scan's strategy left it out.",
        ),
        (ItemState::Cancelled, _) => (Tone::Plain, "Not searched: the scan was cancelled before."),
        (ItemState::Done, _) if item.best_price.is_some() => return None,
        (ItemState::Done, _) => (Tone::Plain, "The search has no price."),
    };
    let reason = item.reason.as_deref();
    let error = item.error.as_ref();
    let text = [
        reason.map(|reason| format!("Reason: {}.", words(reason))),
        reason.and_then(explain).map(str::to_owned),
        error.map(|error| format!("The marketplace's message: {error}")),
    ];
    let is_incomplete = item.state == ItemState::Done && tone == Tone::Warn;
    Some(Notice {
        tone,
        lead: lead.to_owned(),
        text: text.into_iter().flatten().collect::<Vec<_>>().join(" "),
        next: if is_incomplete {
            &[NextStep::AskAgain]
        } else {
            &[]
        },
    })
}

/// A reason for people.
fn explain(reason: &str) -> Option<&'static str> {
    Some(match KnownReason::parse(reason)? {
        KnownReason::UpstreamTimeout => "The marketplace did not answer in time.",
        KnownReason::UpstreamStatus => "The marketplace answered with a server error twice.",
        KnownReason::UpstreamConnection => {
            "The marketplace could not be reached, or the connection broke."
        }
        KnownReason::UnreadableResponse => "The marketplace's response could not be read.",
        KnownReason::NotStated => "The marketplace did not say whether the search completed.",
        KnownReason::BlockedPage => "The searched site blocked the marketplace.",
        KnownReason::RateLimited => "Your plan's rate window was full.",
        KnownReason::QuotaExhausted => "Your plan's quota was used up.",
        KnownReason::KeyRejected => "The marketplace does not know the key.",
        KnownReason::NotSubscribed => "The key has no subscription to this API.",
        KnownReason::InvalidRequest => "The marketplace refused the request as invalid.",
        KnownReason::DatePassed => "The date had passed when its turn came; nothing was sent.",
        KnownReason::WorkerLost => {
            "The process died during the call. It may have been billed and is not repeated by itself."
        }
        KnownReason::FilteredOut => "The filters of the request removed all results.",
        KnownReason::NoProperty => "The place has no property for the stay.",
        KnownReason::NoMatch => "No hotel matched the name.",
        KnownReason::NoRooms => "The hotel has no room for the stay.",
        KnownReason::SoldOut => "The hotel is sold out for the stay.",
    })
}

/// Whether a search completed.
pub fn status(status: SearchStatus) -> Value {
    let tone = match status {
        SearchStatus::Ok => Tone::Good,
        SearchStatus::Empty => Tone::Plain,
        SearchStatus::Partial => Tone::Warn,
        SearchStatus::Degraded => Tone::Bad,
    };
    Value::Word(tone, status.to_string())
}

/// The price, the cost and the time of an item.
pub fn figures(item: &Item) -> [Figure; 3] {
    let price = item.best_price.map(|price| amount(price).into());
    let mut cheapest = Figure::new("Cheapest", price.unwrap_or(Value::Absent("–")));
    cheapest.unit = item.currency.clone().filter(|_| item.best_price.is_some());
    let found = item.confirming.as_ref();
    let reused = item.reused_item.zip(item.age_seconds);
    let notes = [
        item.results.map(|results| counted(results, "offer").into()),
        found.map(|first| Value::Time("found first", first.at)),
        reused.map(|(of, age)| format!("the answer of {of}, {} old", duration(age)).into()),
        verdict(item),
    ];
    cheapest.notes.extend(notes.into_iter().flatten());
    let latency = item.latency_ms.map(|ms| latency(ms).into());
    let mut answer = Figure::new("Answer took", latency.unwrap_or(Value::Absent("–")));
    let answered = item.observed_at.map(|at| Value::Time("answered", at));
    answer.notes.extend(answered);
    let attempts = format!("in {}", counted(item.attempts, "attempt"));
    let cost = counted(item.requests_spent, "request");
    [cheapest, Figure::new("Cost", cost).note(attempts), answer]
}

/// The verdict on the price, if it has one.
pub(crate) fn verdict(item: &Item) -> Option<Value> {
    let is_known = |verdict: &&HistoryVerdict| verdict.class != PriceClass::Insufficient;
    let verdict = item.history_verdict.as_ref().filter(is_known);
    verdict.cloned().map(Value::Verdict)
}

/// `1.61 s`, `240 ms`.
pub fn latency(milliseconds: u32) -> String {
    if milliseconds < 1_000 {
        format!("{milliseconds} ms")
    } else {
        format!("{:.2} s", f64::from(milliseconds) / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_reason_is_explained() {
        for reason in KnownReason::ALL {
            assert!(explain(reason.as_str()).is_some(), "{reason}");
        }
    }
}
