//! `/activity`: scans, runs of monitors, alerts and deliveries as one list, newest first. Not here: the
//! lists of one kind, which have more filters (`scans`, `alerts`, `deliveries`).

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::activity::{ActivityLine, of_alert, of_delivery, of_scan};
use farescan_sheets::numbers::counted;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use maud::{Markup, html};
use serde_json::json;

use super::failure::PageFailure;
use super::form::{FormFields, MAX_FILTER_CHARS, short_text};
use super::layout::{NavItem, page};
use super::parts;
use super::reported::ReportedMonitors;
use super::session::Session;
use super::{links, sheet};
use farescan_core::activity::{Activity, ActivityConditions, ActivityKind, ActivityPage, activity};
use farescan_core::app::AppState;
use farescan_core::contract::primitives::Cursor;
use farescan_core::contract::{FieldValue as _, ValidationError, ValidationErrors};
use farescan_core::ids::ScanId;

const PATH: &str = links::ACTIVITY;
/// Rows of a page.
const ROWS: u16 = 30;
const TEXT: &str = "text";
const KIND: &str = "kind";
const ATTENTION: &str = "attention";
const CURSOR: &str = "cursor";
/// The kinds by their values in the URL, with their names.
const KINDS: [(&str, &str, ActivityKind); 4] = [
    ("scans", "Scans and runs", ActivityKind::Scans),
    ("runs", "Runs of monitors", ActivityKind::Runs),
    ("alerts", "Alerts", ActivityKind::Alerts),
    ("deliveries", "Deliveries", ActivityKind::Deliveries),
];

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(PATH, get(list))
}

/// What a page of the list shows.
struct Filters {
    conditions: ActivityConditions,
    cursor: Option<Cursor>,
    /// Those that are chosen, as in the URL.
    chosen: Vec<(&'static str, String)>,
}

impl Filters {
    /// Reads the query of a URL.
    ///
    /// # Errors
    /// The first filter that is unknown or invalid.
    fn read(fields: &FormFields) -> Result<Self, ValidationErrors> {
        let known = [TEXT, KIND, ATTENTION, CURSOR];
        if let Some((other, value)) = fields.pairs().find(|(name, _)| !known.contains(name)) {
            return Err(ValidationError::new(other, &value.into(), "no such filter").into());
        }
        let kind = fields.text(KIND).map(read_kind).transpose()?;
        let cursor = fields.text(CURSOR).map(|text| Cursor::read(&json!(text)));
        let filters = [TEXT, KIND, ATTENTION].into_iter();
        let chosen = filters.filter_map(|name| Some((name, fields.text(name)?.to_owned())));
        Ok(Self {
            conditions: ActivityConditions {
                kind,
                text: short_text(fields, TEXT)?,
                needs_attention: fields.text(ATTENTION).is_some(),
                without: Vec::new(),
            },
            cursor: cursor.transpose()?,
            chosen: chosen.collect(),
        })
    }

    /// Whether the database may read all rows of the caller to find the few that fit.
    fn may_read_all(&self) -> bool {
        let conditions = &self.conditions;
        conditions.text.is_some()
            || conditions.needs_attention
            || conditions.kind == Some(ActivityKind::Runs)
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.chosen
            .iter()
            .any(|(of, text)| *of == name && text == value)
    }

    /// The path of the list with these filters, without one of them.
    fn path_without(&self, name: &str) -> String {
        let others = self.chosen.iter().filter(|(of, _)| *of != name);
        parts::path_with(PATH, others.map(|(of, text)| (*of, text)))
    }

    fn tabs(&self) -> Markup {
        let all = self.path_without(ATTENTION);
        let needed = links::with_query(&all, ATTENTION, "true");
        let chosen = self.conditions.needs_attention;
        html! {
            nav class="tabs" aria-label="State" {
                a href=(all) aria-current=[(!chosen).then_some("true")] { "Everything" }
                a href=(needed) aria-current=[chosen.then_some("true")] { "Incomplete and failed" }
            }
        }
    }

    fn form(&self) -> Markup {
        html! {
            form class="filters" method="get" action=(PATH) role="search" aria-label="Activity" {
                @if self.conditions.needs_attention { input type="hidden" name=(ATTENTION) value="true"; }
                div class="field grows" {
                    label for="text" { "Trip, label, tag or monitor" }
                    input id="text" name=(TEXT) type="search" value=[self.conditions.text.as_deref()] maxlength=(MAX_FILTER_CHARS) spellcheck="false";
                }
                div class="field" {
                    label for="kind" { "Kind" }
                    select id="kind" name=(KIND) {
                        option value="" { "All kinds" }
                        @for (value, name, _) in KINDS { option value=(value) selected[self.has(KIND, value)] { (name) } }
                    }
                }
                button type="submit" { "Filter" }
            }
        }
    }
}

fn read_kind(text: &str) -> Result<ActivityKind, ValidationErrors> {
    let known = KINDS.iter().find(|(value, ..)| *value == text);
    known.map(|(.., kind)| *kind).ok_or_else(|| {
        let values: Vec<_> = KINDS
            .iter()
            .map(|(value, ..)| format!("`{value}`"))
            .collect();
        let expected = format!("one of {}", values.join(", "));
        ValidationError::new(KIND, &text.into(), expected).into()
    })
}

async fn list(session: Session, fields: FormFields) -> Result<Response, PageFailure> {
    let filters = Filters::read(&fields)?;
    let now = session.app().now()?;
    let permits = if filters.may_read_all() {
        Some(session.heavy_read_permits().await?)
    } else {
        None
    };
    let (conditions, cursor) = (&filters.conditions, filters.cursor.as_ref());
    let (lines, older) = read(&session, conditions, ROWS, cursor).await?;
    drop(permits);
    let body = html! {
        (parts::head(&html! {}, "Activity", &html! {}, &html! { a class="button primary" href="/scans/new" { "New scan" } }))
        div class="card" {
            div class="list-head" { (filters.tabs()) (filters.form()) }
            @if lines.is_empty() { (nothing(&filters)) } @else { (days(&lines, now, false)) }
            (pager(&filters, older.as_deref()))
        }
    };
    Ok(page(&session, "Activity", NavItem::Activity, body))
}

/// The newest rows of a caller, of any kind, without some scans; `None` without any.
pub(super) async fn latest(
    session: &Session,
    most: u16,
    others: &[ScanId],
    now: Timestamp,
) -> Result<Option<Markup>, PageFailure> {
    let conditions = ActivityConditions {
        without: others.to_vec(),
        ..ActivityConditions::default()
    };
    let (lines, _) = read(session, &conditions, most, None).await?;
    Ok((!lines.is_empty()).then(|| days(&lines, now, true)))
}

/// The lines of a page, and the cursor of the next one.
async fn read(
    session: &Session,
    conditions: &ActivityConditions,
    limit: u16,
    cursor: Option<&Cursor>,
) -> Result<(Vec<ActivityLine>, Option<String>), PageFailure> {
    let Some(tenant) = session.tenant() else {
        return Ok((Vec::new(), None));
    };
    let ActivityPage { data, next_cursor } =
        activity(session.pool()?, tenant, conditions, limit, cursor).await?;
    let monitors = ReportedMonitors::of_activity(session, tenant, &data).await?;
    let of = |id: Option<_>| id.map(|id| monitors.of(id)).unwrap_or_default();
    let lines = data.iter().map(|row| match row {
        Activity::Scan(scan) => of_scan(scan, of(scan.monitor_id)),
        Activity::Alert(at, id, stored) => {
            of_alert(*at, *id, stored, |alert| monitors.of_alert(alert))
        }
        Activity::Delivery(delivery) => of_delivery(delivery, of(delivery.monitor_id)),
    });
    Ok((lines.collect(), next_cursor))
}

/// The lines below their days of UTC, the newest first. `is_part`: they stand below a heading of the page.
fn days(lines: &[ActivityLine], now: Timestamp, is_part: bool) -> Markup {
    let date = |at: Timestamp| at.to_zoned(TimeZone::UTC).date();
    let today = date(now);
    // Clocks of different processes differ: a line that is a moment too new stays below its neighbour.
    let mut day = Date::MAX;
    let days: Vec<_> = lines
        .iter()
        .map(|line| {
            day = day.min(date(line.at));
            day
        })
        .collect();
    let lines: Vec<_> = lines.iter().zip(days).collect();
    html! {
        @for of_day in lines.chunk_by(|(_, one), (_, other)| one == other) {
            @if let Some((_, day)) = of_day.first() {
                @let name = day_name(*day, today);
                @if is_part { h3 class="day" { (name) } } @else { h2 class="day" { (name) } }
            }
            ol class="stream" {
                @for (line, _) in of_day { (entry(line, now)) }
            }
        }
    }
}

/// `Today` and `Yesterday` with their dates, `Thu 26 Nov 2026` before.
fn day_name(day: Date, today: Date) -> Markup {
    let name = if day == today {
        "Today"
    } else if day.saturating_add(1.day()) == today {
        "Yesterday"
    } else {
        return html! { (day.strftime("%a %-d %b %Y")) };
    };
    html! { (name) " " span class="muted" { (day.strftime("%a %-d %b")) } }
}

fn entry(line: &ActivityLine, now: Timestamp) -> Markup {
    html! {
        li {
            span class="kind" { (line.kind) }
            div class="what" {
                a href=(sheet::href(&line.of)) title=(line.title) { (line.title) }
                @if !line.details.is_empty() {
                    div class="sub" {
                        @for (place, part) in line.details.iter().enumerate() {
                            @if place > 0 { " · " }
                            (sheet::value(part))
                        }
                    }
                }
            }
            span class="price" { @if let Some(price) = &line.price { (sheet::value(price)) } }
            span class="state" { @if !line.status.is_empty() { (sheet::side_by_side(&line.status)) } }
            span class="cost" { @if let Some(requests) = line.requests { (counted(requests, "request")) } }
            (parts::age(line.at, now))
        }
    }
}

fn nothing(filters: &Filters) -> Markup {
    parts::empty_state(&html! {
        @if filters.chosen.is_empty() && filters.cursor.is_none() {
            p { "Nothing yet. A scan finds the cheapest date of a range, or compares markets." }
            a class="button primary" href="/scans/new" { "New scan" }
        } @else {
            p { "Nothing fits these filters." }
            a class="button" href=(PATH) { "Show everything" }
        }
    })
}

fn pager(filters: &Filters, older: Option<&str>) -> Markup {
    let here = filters.path_without(CURSOR);
    html! {
        @if older.is_some() || filters.cursor.is_some() {
            nav class="pager" aria-label="Pages of the list" {
                @if filters.cursor.is_some() { a class="button" href=(here) { "Newest" } }
                @if let Some(cursor) = older { a class="button" rel="next" href=(links::with_query(&here, CURSOR, cursor)) { "Older" } }
            }
        }
    }
}
