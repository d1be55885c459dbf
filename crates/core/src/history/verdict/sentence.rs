//! A verdict in English.

use super::{MIN_PRICES, WINDOW_DAYS};
use crate::contract::Api;
use crate::contract::history_verdict::{HistoryVerdict, LeadBin, PriceClass};

/// Says what was counted. Percentages are rounded down, so that none says more than the count.
pub(super) fn sentence(verdict: &HistoryVerdict, api: Api) -> String {
    let start = match api {
        Api::Flights => "departure",
        Api::Hotels => "check-in",
    };
    let Some(bin) = verdict.bin else {
        return format!("seen after {start}: there is nothing to compare with");
    };
    if let Some(usual) = &verdict.usual {
        let since = usual.since.strftime("%-d %B %Y");
        return format!(
            "implausible: the median of the last three days with a price, from {since} on, was {}",
            usual.price
        );
    }
    let days = format!("{} days before {start}", days(bin));
    let Some(since) = verdict.since else {
        return format!("no other price was seen {days} in the last {WINDOW_DAYS} days");
    };
    let n = verdict.n;
    let prices = if n == 1 { "price" } else { "prices" };
    let seen = format!("{prices} seen {days} since {}", since.strftime("%-d %B %Y"));
    let most = |count: u32| match u64::from(count) * 100 / u64::from(n) {
        100 => format!("all {n} {seen}"),
        percent => format!("{percent} % of {n} {seen}"),
    };
    match verdict.class {
        PriceClass::Insufficient if n < MIN_PRICES => {
            format!("only {n} {seen}: a verdict needs {MIN_PRICES}")
        }
        PriceClass::Insufficient => format!("most of {n} {seen} are the same"),
        _ if verdict.higher >= verdict.lower => {
            format!("cheaper than {}", most(verdict.higher))
        }
        _ => format!("dearer than {}", most(verdict.lower)),
    }
}

fn days(bin: LeadBin) -> String {
    match bin.to_days {
        Some(to_days) => format!("{} to {to_days}", bin.from_days),
        None => format!("{} or more", bin.from_days),
    }
}
