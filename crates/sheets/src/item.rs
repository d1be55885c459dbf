//! An item: what its result means, and its figures.

use farescan_contract::history_verdict::{HistoryVerdict, PriceClass};
use farescan_contract::scans::{Item, ItemState, Scan};
use farescan_contract::{KnownReason, SearchStatus};

use crate::numbers::{amount, amount_in, counted, duration, price};
use crate::sheet::{Column, Figure, Link, NextStep, Notice, Table, Tone, Value, cell};
use crate::trip::{search_title, swept_words, words};

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
        item.history_verdict.clone().map(Value::Verdict),
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

/// The state of an item, or its search status once it is done.
pub fn state(item: &Item) -> Value {
    let (tone, word) = match (item.state, item.search_status) {
        (ItemState::Done, Some(status)) => (search_tone(status), status.as_str()),
        (ItemState::Running, _) => (Tone::Info, "running"),
        (ItemState::Failed, _) => (Tone::Bad, "failed"),
        (ItemState::Skipped, _) => (Tone::Plain, "left out"),
        (state, _) => (Tone::Plain, state.as_str()),
    };
    Value::Word(tone, word.to_owned())
}

/// What the colour of a search status repeats.
pub const fn search_tone(status: SearchStatus) -> Tone {
    match status {
        SearchStatus::Ok => Tone::Good,
        SearchStatus::Empty => Tone::Plain,
        SearchStatus::Partial => Tone::Warn,
        SearchStatus::Degraded => Tone::Bad,
    }
}

/// Searches of a scan as rows.
pub fn table(scan: &Scan, items: &[Item]) -> Table {
    let columns = [
        Column::text("Search"),
        Column::text("Result"),
        Column::number("Cheapest"),
        Column::number("Offers").rank(3),
        Column::number("Requests").rank(4),
        Column::text("Answered").rank(2),
    ];
    let rows = items.iter().map(|item| {
        let reason = item.reason.as_ref().map(|reason| words(reason));
        let confirms = item.confirming.as_ref();
        let confirms =
            confirms.map(|first| format!("confirms {}", price(first.price, &first.currency)));
        let notes = reason.into_iter().chain(confirms).map(Value::Muted);
        let is_implausible = scan.implausible.iter().any(|price| price.item == item.id);
        let best = item.best_price.map(|price| {
            let currency = item.currency.clone();
            if is_implausible {
                let price = amount_in(price, currency.as_deref());
                Value::Muted(format!("({price}) implausible"))
            } else {
                Value::Money(price, currency)
            }
        });
        let reused = item.reused_from.map(|_| Value::Muted("reused".to_owned()));
        let spent = std::iter::once(Value::Count(item.requests_spent.into()));
        let answered = item.observed_at.map(|at| Value::Time("", at));
        let cells = [
            vec![what(scan, item).into()],
            std::iter::once(state(item)).chain(notes).collect(),
            vec![best.unwrap_or(Value::Absent("–"))],
            cell([item.results.map(|results| Value::Count(results.into()))]),
            spent.chain(reused).collect(),
            cell([answered]),
        ];
        (Some(Link::of(item.id)), cells)
    });
    Table::new("Searches", columns, rows)
}

/// What tells this search from the others of its scan.
fn what(scan: &Scan, item: &Item) -> String {
    let title = search_title(scan.endpoint, &item.search);
    let has_samples = scan.sweep.contains_key("samples");
    // Samples alone are the same search.
    if has_samples && scan.sweep.len() == 1 {
        return format!("{title}, search {}", item.position + 1);
    }
    let swept = swept_words(scan.endpoint, &item.search, &scan.sweep);
    if swept.is_empty() {
        title
    } else {
        swept.join(" · ")
    }
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
