//! The filters of the list of scans: from the URL to conditions, and back to a URL.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use maud::{Markup, html};

use super::PATH;
use crate::form::{FormFields, MAX_FILTER_CHARS, short_text};
use farescan_core::contract::scans::{ScanStatus, ScansQuery};
use farescan_core::contract::{Endpoint, ValidationError, ValidationErrors};
use farescan_core::scans::read::ScanConditions;

/// Filters of the API's list.
const OF_API: [&str; 7] = [
    "status",
    "endpoint",
    "tag",
    "monitor_id",
    "text",
    "limit",
    "cursor",
];
/// Filters of this page alone.
const OF_PAGE: [&str; 7] = [
    "from_airport",
    "to_airport",
    "hotel",
    "label",
    "created_from",
    "created_until",
    "failed",
];
/// The filters that a form shows only on request.
const FOLDED: [&str; 7] = [
    "text",
    "tag",
    "label",
    "monitor_id",
    "created_from",
    "created_until",
    "endpoint",
];

/// What a list shows.
#[derive(Debug)]
pub(super) struct ListFilters {
    pub(super) query: ScansQuery,
    pub(super) conditions: ScanConditions,
    fields: FormFields,
}

impl ListFilters {
    /// Reads the query of a URL.
    ///
    /// # Errors
    /// Every invalid or unknown filter.
    pub(super) fn read(fields: &FormFields) -> Result<Self, ValidationErrors> {
        let of_api = fields.filled().filter(|(name, _)| !OF_PAGE.contains(name));
        let query = ScansQuery::from_query(of_api)?;
        let conditions = ScanConditions {
            from_airport: airport(fields, "from_airport")?,
            to_airport: airport(fields, "to_airport")?,
            hotel: short_text(fields, "hotel")?,
            label: short_text(fields, "label")?,
            created_from: fields.date("created_from")?.map(begin_of),
            created_before: fields
                .date("created_until")?
                .map(|last| begin_of(last.saturating_add(1.day()))),
            has_undone: fields.text("failed").is_some(),
            ..ScanConditions::default()
        };
        Ok(Self {
            query,
            conditions,
            fields: fields.clone(),
        })
    }

    /// The filters as the query of a URL, in one order, without the place in the list. Empty: all
    /// scans.
    pub(super) fn encoded(&self) -> String {
        self.encoded_with(&[], None)
    }

    /// The path of the list without some filters, and with one more.
    pub(super) fn path_with(&self, without: &[&str], more: Option<(&str, &str)>) -> String {
        path(&self.encoded_with(without, more))
    }

    fn encoded_with(&self, without: &[&str], more: Option<(&str, &str)>) -> String {
        let kept = OF_API
            .iter()
            .chain(&OF_PAGE)
            .filter(|name| **name != "cursor" && !without.contains(name))
            .filter_map(|name| Some((*name, self.fields.text(name)?)));
        form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept.chain(more))
            .finish()
    }

    /// Whether anything but the number of rows is chosen.
    pub(super) fn is_empty(&self) -> bool {
        self.encoded_with(&["limit"], None).is_empty()
    }

    /// Whether the database may read all scans of the caller to find the few that fit: no index
    /// serves most filters.
    pub(super) fn may_read_all(&self) -> bool {
        !self.encoded_with(&["limit", "monitor_id"], None).is_empty()
    }

    /// The form above the list.
    pub(super) fn form(&self) -> Markup {
        let is_open = FOLDED.iter().any(|name| self.fields.text(name).is_some());
        let endpoint = self.query.endpoint.map(|endpoint| endpoint.get());
        let kept = ["status", "failed"];
        html! {
            form class="filters-form" method="get" action=(PATH) {
                @for name in kept {
                    @if let Some(value) = self.fields.text(name) { input type="hidden" name=(name) value=(value); }
                }
                div class="filters" {
                    (self.input("from_airport", "From", "TLV"))
                    (self.input("to_airport", "To", "LHR"))
                    (self.input("hotel", "Hotel or place", "a part of its name"))
                    div class="field" {
                        label for="limit" { "Rows" }
                        select id="limit" name="limit" {
                            @for limit in [50_u16, 100, 500] {
                                option value=(limit) selected[self.query.limit_or_default().get() == limit] { (limit) }
                            }
                        }
                    }
                    button type="submit" { "Filter" }
                }
                details class="fold" open[is_open] {
                    summary { "Label, tag, monitor, time" }
                    div class="filters" {
                        (self.input("text", "Any text", "label, tag, airport, hotel"))
                        div class="field" {
                            label for="endpoint" { "Search" }
                            select id="endpoint" name="endpoint" {
                                option value="" { "all" }
                                @for known in Endpoint::SEARCHES {
                                    option value=(known.as_str()) selected[endpoint == Some(*known)] { (known.as_str()) }
                                }
                            }
                        }
                        (self.input("label", "Label", "a part of it"))
                        (self.input("tag", "Tag", ""))
                        (self.input("monitor_id", "Monitor", "mon_…"))
                        (self.day("created_from", "Created from (UTC)"))
                        (self.day("created_until", "until (UTC)"))
                    }
                }
            }
        }
    }

    fn input(&self, name: &str, label: &str, placeholder: &str) -> Markup {
        html! {
            div class="field" {
                label for=(name) { (label) }
                input id=(name) name=(name) placeholder=(placeholder) value=[self.fields.text(name)] maxlength=(MAX_FILTER_CHARS) spellcheck="false";
            }
        }
    }

    fn day(&self, name: &str, label: &str) -> Markup {
        html! {
            div class="field" {
                label for=(name) { (label) }
                input id=(name) name=(name) type="date" value=[self.fields.text(name)];
            }
        }
    }

    /// The tabs above the list: each state, and the scans with searches that failed.
    pub(super) fn tabs(&self) -> Markup {
        const STATES: [(&str, Option<ScanStatus>); 7] = [
            ("All", None),
            ("Queued", Some(ScanStatus::Queued)),
            ("Running", Some(ScanStatus::Running)),
            ("Paused", Some(ScanStatus::Paused)),
            ("Incomplete", Some(ScanStatus::Incomplete)),
            ("Completed", Some(ScanStatus::Completed)),
            ("Cancelled", Some(ScanStatus::Cancelled)),
        ];
        let has_undone = self.conditions.has_undone;
        let without = ["status", "failed"];
        html! {
            nav class="tabs" aria-label="Status" {
                @for (name, status) in STATES {
                    @let field = status.map(|status| ("status", status.as_str()));
                    a href=(self.path_with(&without, field))
                        aria-current=[(self.query.status == status && !has_undone).then_some("true")] { (name) }
                }
                a href=(self.path_with(&without, Some(("failed", "true")))) aria-current=[has_undone.then_some("true")] {
                    "With failed searches"
                }
            }
        }
    }
}

/// The list with this query.
pub(super) fn path(query: &str) -> String {
    if query.is_empty() {
        PATH.to_owned()
    } else {
        format!("{PATH}?{query}")
    }
}

fn airport(fields: &FormFields, name: &str) -> Result<Option<String>, ValidationErrors> {
    let Some(text) = fields.text(name) else {
        return Ok(None);
    };
    if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok(Some(text.to_ascii_uppercase()));
    }
    Err(ValidationError::new(name, &text.into(), "an IATA code of three letters").into())
}

/// The beginning of a day in UTC; of a day that no clock reaches, the last time.
fn begin_of(day: Date) -> Timestamp {
    day.to_zoned(TimeZone::UTC)
        .map_or(Timestamp::MAX, |begin| begin.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<ListFilters, String> {
        ListFilters::read(&FormFields::parse(query.as_bytes())).map_err(|errors| errors.to_string())
    }

    #[test]
    fn the_last_day_is_whole_and_airports_are_upper_case() {
        let filters =
            read("to_airport=lhr&created_from=2026-12-01&created_until=2026-12-01").unwrap();
        let conditions = &filters.conditions;
        assert_eq!(conditions.to_airport.as_deref(), Some("LHR"));
        let begin = conditions.created_from.unwrap();
        let length = conditions.created_before.unwrap().duration_since(begin);
        assert_eq!(length.as_hours(), 24);
    }

    #[test]
    fn filters_are_encoded_in_one_order_without_the_place() {
        let one = read("hotel=Arts+%26+Co&status=paused&cursor=&limit=50").unwrap();
        assert_eq!(one.encoded(), "status=paused&limit=50&hotel=Arts+%26+Co");
        let other = read("limit=50&hotel=Arts+%26+Co&status=paused").unwrap();
        assert_eq!(one.encoded(), other.encoded());
    }

    #[test]
    fn a_wrong_filter_is_named() {
        for (query, name) in [
            ("from_airport=Tel+Aviv", "from_airport"),
            ("created_from=yesterday", "created_from"),
            ("colour=red", "colour"),
        ] {
            assert!(read(query).unwrap_err().contains(name), "{query}");
        }
    }
}
