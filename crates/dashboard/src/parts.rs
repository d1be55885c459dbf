//! Small parts of pages: times, prices, counts, states, and buttons that ask before they act.

use std::time::Duration;

use farescan_sheets::item::search_tone;
use farescan_sheets::numbers::short_age;
use farescan_sheets::scan::status_tone;
pub(super) use farescan_sheets::sheet::Tone;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use super::form::token_field;
use super::links;
use super::session::Session;
use farescan_core::app::error::ApiError;
use farescan_core::contract::{ScanStatus, SearchStatus};

/// How long a page waits for verdicts on its prices; then it shows none.
pub(super) const VERDICT_TIMEOUT: Duration = Duration::from_secs(2);

/// Seconds.
const DAY: u64 = 24 * 60 * 60;

/// A time with its zone: UTC, which the script replaces with the viewer's zone.
pub(super) fn time(at: Timestamp) -> Markup {
    let utc = at.to_zoned(TimeZone::UTC);
    html! {
        time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) { (utc.strftime("%-d %b %Y, %H:%M UTC")) }
    }
}

/// A time within a day as its age, before as its clock in UTC; the exact one is behind it.
pub(super) fn age(at: Timestamp, now: Timestamp) -> Markup {
    let utc = at.to_zoned(TimeZone::UTC);
    let seconds = now.duration_since(at).as_secs().max(0).unsigned_abs();
    html! {
        time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) title=(utc.strftime("%-d %b %Y, %H:%M UTC")) data-age {
            @match seconds {
                0..60 => { "now" }
                60..DAY => { (short_age(seconds)) " ago" }
                _ => { (utc.strftime("%H:%M UTC")) }
            }
        }
    }
}

/// A time in the zone of its schedule, with the zone's name.
pub(super) fn zoned(at: Timestamp, zone: &str) -> Markup {
    let known = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let local = at.to_zoned(known);
    html! {
        time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) data-zone=(zone) {
            (local.strftime("%a %-d %b, %H:%M")) " " span class="muted" { (zone_name(zone)) }
        }
    }
}

/// A zone's city: `Europe/London` is long for a table, and its rule is the same.
fn zone_name(zone: &str) -> String {
    zone.rsplit('/').next().unwrap_or(zone).replace('_', " ")
}

/// Whether a part of a whole can be seen in a bar: from a tenth of a per cent on.
pub(super) fn is_visible_share(part: u64, whole: u64) -> bool {
    part.saturating_mul(1_000) >= whole
}

/// A short state in a coloured frame.
pub(super) fn chip(tone: Tone, text: &str) -> Markup {
    let class = match tone {
        Tone::Plain => "chip",
        Tone::Info => "chip info",
        Tone::Good => "chip good",
        Tone::Warn => "chip warn",
        Tone::Bad => "chip bad",
    };
    html! { span class=(class) { (text) } }
}

/// The status of a scan.
pub(super) fn scan_status(status: ScanStatus) -> Markup {
    chip(status_tone(status), status.as_str())
}

/// The status of a search.
pub(super) fn search_status(status: SearchStatus) -> Markup {
    chip(search_tone(status), status.as_str())
}

/// The link to the next page of a list; `path` has its filters, without a cursor.
pub(super) fn next_page(path: &str, cursor: Option<&str>) -> Markup {
    html! {
        @if let Some(cursor) = cursor {
            nav class="pager" aria-label="More" {
                a class="button" rel="next" href=(links::with_query(path, "cursor", cursor)) { "Next page" }
            }
        }
    }
}

/// The head of a page: what it belongs to, its title, what it is, and what can be done. What is empty is left
/// out.
pub(super) fn head(above: &Markup, title: &str, below: &Markup, actions: &Markup) -> Markup {
    let line = |text: &Markup| html! { @if !text.0.is_empty() { p class="sub" { (text) } } };
    html! {
        div class="head" {
            div { (line(above)) h1 { (title) } (line(below)) }
            @if !actions.0.is_empty() { div class="actions" { (actions) } }
        }
    }
}

/// A path with a query; the path alone without a pair.
pub(super) fn path_with(
    path: &str,
    pairs: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish();
    let separator = if query.is_empty() { "" } else { "?" };
    format!("{path}{separator}{query}")
}

/// The values of a filter of a list, each with its name, of which one may be chosen; `path` has the
/// other filters.
pub(super) fn filter_tabs(
    label: &str,
    path: &str,
    filter: &str,
    chosen: Option<&str>,
    values: impl Iterator<Item = (&'static str, String)>,
) -> Markup {
    html! {
        nav class="tabs" aria-label=(label) {
            a href=(path) aria-current=[chosen.is_none().then_some("true")] { "All" }
            @for (value, name) in values {
                a href=(links::with_query(path, filter, value)) aria-current=[(chosen == Some(value)).then_some("true")] { (name) }
            }
        }
    }
}

/// A page as data and as a command.
pub(super) fn same_as(path: &str, command: &str) -> Markup {
    html! {
        section class="card no-print" {
            details class="fold" {
                summary { "The same as curl and as a command" }
                pre tabindex="0" { code { (curl(path)) "\n" (command) } }
            }
        }
    }
}

/// The request that reads a path of the API.
pub(super) fn curl(path: &str) -> String {
    format!("curl -s -H \"x-api-key: $FARESCAN_API_KEY\" \"$FARESCAN_URL{path}\"")
}

/// What a list shows while it is empty: what to do next.
pub(super) fn empty_state(text: &Markup) -> Markup {
    html! { div class="empty" { (text) } }
}

/// A button that asks once before it spends or destroys. It opens a panel with the question; only
/// the button in the panel sends the form.
pub(super) struct ConfirmationPage<'a> {
    action: &'a str,
    label: &'a str,
    confirm: &'a str,
    question: Markup,
    is_destructive: bool,
    fields: Markup,
}

impl<'a> ConfirmationPage<'a> {
    /// A form that posts to `action`. `label` is the text of the button that opens the panel;
    /// `question` says what will happen and what it costs; `confirm` is the text of the button that
    /// does it, and names the cost.
    pub(super) fn new(action: &'a str, label: &'a str, confirm: &'a str, question: Markup) -> Self {
        Self {
            action,
            label,
            confirm,
            question,
            is_destructive: false,
            fields: html! {},
        }
    }

    /// Something is lost.
    pub(super) fn destructive(self) -> Self {
        Self {
            is_destructive: true,
            ..self
        }
    }

    /// Hidden or visible fields of the form.
    pub(super) fn fields(self, fields: Markup) -> Self {
        Self { fields, ..self }
    }

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

/// Each fault of a body below `lead`: its field, what it held, and what is expected.
pub(super) fn faults(error: &ApiError, lead: &str) -> Markup {
    html! {
        div class="notice bad" role="alert" {
            b { (lead) }
            ul {
                @for detail in error.details() {
                    li {
                        code { (detail.field) } ": "
                        @if let Some(found) = &detail.found { "found " (found) "; " }
                        "expected " (detail.expected)
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_shown_in_its_own_zone() {
        let page = zoned("2027-01-14T06:00:00Z".parse().unwrap(), "America/New_York").into_string();
        assert!(page.contains("Thu 14 Jan, 01:00"), "{page}");
        assert!(page.contains("New York"));
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
}
