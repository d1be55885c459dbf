//! Small parts of pages: times, prices, counts, states, and buttons that ask before they act.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use rust_decimal::{Decimal, RoundingStrategy};

use super::form::token_field;
use super::session::Session;
use crate::contract::history_verdict::{HistoryVerdict, PriceClass};
use crate::contract::{ScanStatus, SearchStatus};
use crate::ids::{ItemId, ScanId};

/// How long a page waits for verdicts on its prices; then it shows none.
pub(super) const VERDICT_TIMEOUT: Duration = Duration::from_secs(2);

/// A time with its zone: UTC, which the script replaces with the viewer's zone.
pub(super) fn time(at: Timestamp) -> Markup {
    let utc = at.to_zoned(TimeZone::UTC);
    html! {
        time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) { (utc.strftime("%-d %b %Y, %H:%M UTC")) }
    }
}

/// A price in whole units where it has no fraction, with thousands separated: `1,234.50`.
pub(super) fn amount(price: Decimal) -> String {
    let places = if price.is_integer() { 0 } else { 2 };
    let text = format!("{price:.places$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = whole
        .strip_prefix('-')
        .map_or(("", whole), |digits| ("-", digits));
    let grouped = group_digits(digits);
    if fraction.is_empty() {
        format!("{sign}{grouped}")
    } else {
        format!("{sign}{grouped}.{fraction}")
    }
}

/// A price with its currency: `1,234 USD`.
pub(super) fn price(price: Decimal, currency: &str) -> String {
    format!("{} {currency}", amount(price))
}

/// A number with thousands separated.
pub(super) fn count(number: u64) -> String {
    group_digits(&number.to_string())
}

/// A rate with at most one place: `1,200`, `2.5`.
pub(super) fn rate(number: f64) -> String {
    let text = format!("{number:.1}");
    let (whole, place) = text.split_once('.').unwrap_or((&text, "0"));
    match place {
        "0" => group_digits(whole),
        _ => format!("{}.{place}", group_digits(whole)),
    }
}

/// Whether a part of a whole can be seen in a bar: from a tenth of a per cent on.
pub(super) fn is_visible_share(part: u64, whole: u64) -> bool {
    part.saturating_mul(1_000) >= whole
}

/// `1 request`, `2 requests`.
pub(super) fn counted(number: u64, singular: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {singular}{ending}", count(number))
}

/// The difference of a price to an earlier or other one in percent, exact. Round it once, where it is
/// shown: the API's own percentage is rounded to two places already.
pub(super) fn percent_of(price: Decimal, base: Decimal) -> Option<Decimal> {
    price
        .checked_sub(base)?
        .checked_mul(Decimal::ONE_HUNDRED)?
        .checked_div(base)
}

/// `+5.8 %`, with a real minus sign.
pub(super) fn signed_percent(percent: Decimal) -> String {
    let rounded = percent.round_dp_with_strategy(1, RoundingStrategy::MidpointAwayFromZero);
    let sign = if rounded.is_sign_negative() && !rounded.is_zero() {
        "−"
    } else {
        "+"
    };
    format!("{sign}{:.1} %", rounded.abs())
}

fn group_digits(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A duration in its two largest units: `1 h 5 min`.
pub(super) fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) if minutes < 5 && !seconds.is_multiple_of(60) => {
            format!("{minutes} min {} s", seconds % 60)
        }
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// A price among the caller's own past prices: the class, and the sentence that says it.
pub(super) fn history_verdict(verdict: &HistoryVerdict) -> Markup {
    html! { (price_class(verdict.class)) " " span class="muted" { (verdict.sentence) } }
}

/// The class of a price among past ones.
pub(super) fn price_class(class: PriceClass) -> Markup {
    let (tone, word) = match class {
        PriceClass::Low => (BadgeTone::Good, "low"),
        PriceClass::Below => (BadgeTone::Good, "below typical"),
        PriceClass::Typical => (BadgeTone::Plain, "typical"),
        PriceClass::Above => (BadgeTone::Warn, "above typical"),
        PriceClass::High => (BadgeTone::Warn, "high"),
        PriceClass::Implausible => (BadgeTone::Warn, "implausible"),
        PriceClass::Insufficient => (BadgeTone::Plain, "too few past prices"),
    };
    chip(tone, word)
}

/// The colour of a chip; its text says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadgeTone {
    Plain,
    Info,
    Good,
    Warn,
    Bad,
}

/// A short state in a coloured frame.
pub(super) fn chip(tone: BadgeTone, text: &str) -> Markup {
    let class = match tone {
        BadgeTone::Plain => "chip",
        BadgeTone::Info => "chip info",
        BadgeTone::Good => "chip good",
        BadgeTone::Warn => "chip warn",
        BadgeTone::Bad => "chip bad",
    };
    html! { span class=(class) { (text) } }
}

/// The status of a scan.
pub(super) fn scan_status(status: ScanStatus) -> Markup {
    let (tone, text) = match status {
        ScanStatus::Queued => (BadgeTone::Plain, "Queued"),
        ScanStatus::Running => (BadgeTone::Info, "Running"),
        ScanStatus::Paused => (BadgeTone::Warn, "Paused"),
        ScanStatus::Completed => (BadgeTone::Good, "Completed"),
        ScanStatus::Incomplete => (BadgeTone::Warn, "Incomplete"),
        ScanStatus::Cancelled => (BadgeTone::Plain, "Cancelled"),
    };
    chip(tone, text)
}

/// The status of a search.
pub(super) fn search_status(status: SearchStatus) -> Markup {
    let (tone, text) = match status {
        SearchStatus::Ok => (BadgeTone::Good, "ok"),
        SearchStatus::Empty => (BadgeTone::Plain, "empty"),
        SearchStatus::Partial => (BadgeTone::Warn, "partial"),
        SearchStatus::Degraded => (BadgeTone::Bad, "degraded"),
    };
    chip(tone, text)
}

/// A reason or a word of the API for people: `blocked page`.
pub(super) fn words(word: &str) -> String {
    word.replace('_', " ")
}

/// The link to the next page of a list; `path` has its filters, without a cursor.
pub(super) fn next_page(path: &str, cursor: Option<&str>) -> Markup {
    html! {
        @if let Some(cursor) = cursor {
            nav class="pager" aria-label="More" {
                a class="button" rel="next" href=(with_query(path, "cursor", cursor)) { "Next page" }
            }
        }
    }
}

/// The page of an item.
pub(super) fn item_path(item: ItemId) -> String {
    format!("/items/{item}")
}

/// The page of a scan.
pub(super) fn scan_path(scan: ScanId) -> String {
    format!("/scans/{scan}")
}

/// `path` with one more field in its query.
pub(super) fn with_query(path: &str, name: &str, value: &str) -> String {
    let pair = form_urlencoded::Serializer::new(String::new())
        .append_pair(name, value)
        .finish();
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}{pair}")
}

/// What a list shows while it is empty: what to do next.
pub(super) fn empty_state(text: &Markup) -> Markup {
    html! { div class="empty" { (text) } }
}

/// A button that asks once before it spends or destroys. It opens a panel with the question; only
/// the button in the panel sends the form.
pub(super) struct ConfirmationPage<'a> {
    /// The path of the POST.
    pub(super) action: &'a str,
    /// The text of the button that opens the panel.
    pub(super) label: &'a str,
    /// What will happen and what it costs.
    pub(super) question: Markup,
    /// The text of the button that does it. It names the cost.
    pub(super) confirm: &'a str,
    /// Whether something is lost.
    pub(super) is_destructive: bool,
    /// Hidden or visible fields of the form.
    pub(super) fields: Markup,
}

impl ConfirmationPage<'_> {
    /// The button with its panel.
    pub(super) fn render(&self, session: &Session) -> Markup {
        let class = if self.is_destructive {
            "danger"
        } else {
            "primary"
        };
        html! {
            details class="confirm" {
                summary class="button" { (self.label) }
                form class="panel" method="post" action=(self.action) {
                    (token_field(session))
                    div class="question" { (self.question) }
                    (self.fields)
                    button class=(class) type="submit" { (self.confirm) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_separated_thousands_and_two_places() {
        for (given, shown) in [
            ("305", "305"),
            ("305.00", "305"),
            ("1234.5", "1,234.50"),
            ("-1234567", "-1,234,567"),
            ("0.5", "0.50"),
        ] {
            assert_eq!(amount(given.parse().unwrap()), shown);
        }
        assert_eq!([rate(1_200.0), rate(2.54)], ["1,200", "2.5"]);
        assert_eq!(counted(1, "request"), "1 request");
        assert_eq!(counted(12_000, "request"), "12,000 requests");
    }

    #[test]
    fn a_percentage_is_rounded_once() {
        // To two places it is 5.65, which would round to 5.7.
        let percent = percent_of("211.29".parse().unwrap(), "200".parse().unwrap());
        assert_eq!(signed_percent(percent.unwrap()), "+5.6 %");
        assert_eq!(percent_of(Decimal::ONE, Decimal::ZERO), None);
        for (percent, shown) in [
            ("14.45", "+14.5 %"),
            ("-2.65", "−2.7 %"),
            ("-18.7", "−18.7 %"),
            ("-0.04", "+0.0 %"),
        ] {
            assert_eq!(signed_percent(percent.parse().unwrap()), shown);
        }
    }

    #[test]
    fn a_part_is_visible_from_a_tenth_of_a_per_cent() {
        for (part, whole, visible) in [
            (1, 1_000, true),
            (999_999, 1_000_000_000, false),
            (1_000_000, 1_000_000_000, true),
            (u64::MAX, u64::MAX, true),
            (0, 10, false),
        ] {
            assert_eq!(is_visible_share(part, whole), visible, "{part} of {whole}");
        }
    }

    #[test]
    fn durations_have_two_units() {
        for (seconds, shown) in [
            (0, "0 s"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (600, "10 min"),
            (3_700, "1 h 1 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(seconds), shown);
        }
    }
}
