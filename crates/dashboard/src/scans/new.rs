//! `/scans/new`: a form for each endpoint, then a preview with its cost, then the submission.

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::actions::idempotency_key;
use super::new_form::{PATH, endpoint_of, label, path_without_key};
use super::{WATCHED, already_started_path, live_cost, new_form, preview, read_own};
use crate::failure::PageFailure;
use crate::form::{FormFields, SessionForm};
use crate::layout::{NavItem, page};
use crate::links;
use crate::once::{self, has_page_key, new_page_key};
use crate::parts;
use crate::session::Session;
use crate::suggestions::{self, Suggestions};
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::commands::IdempotencyKey;
use farescan_core::contract::scans::Weekday;
use farescan_core::contract::{Endpoint, FieldKind, FieldSpec, MAX_DEPTH, read_object};
use farescan_core::ids::{MonitorId, ScanId};
use farescan_core::scans;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, get(show))
        .route("/scans/submit", post(submit))
}

/// The fields of each form that most people need, in their order; the others are folded.
const MAIN_FIELDS: [&str; 11] = [
    "from_airport",
    "to_airport",
    "destination",
    "hotel_name",
    "hotel_booking_id",
    "departure_date",
    "checkin_date",
    "proxy_country",
    "max_stops",
    "adults",
    "currency",
];

/// The preview of a scan like this one.
pub(super) fn preview_like(scan: ScanId) -> String {
    format!("{PATH}?like={scan}&preview=true")
}

/// `like` fills the form from an earlier scan; `preview` shows the cost below it.
///
/// A preview has a key in its URL. So its button is the same after Back, when the browser loads the
/// page again; and a bookmark of a preview whose button was pressed says so.
async fn show(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let is_preview = query.text("preview").is_some();
    if is_preview && !has_page_key(&query) {
        let path = path_without_key(&query);
        let path = links::with_query(&path, once::FIELD, &new_page_key());
        return Ok(Redirect::to(&path).into_response());
    }
    let fields = match query.text("like") {
        None => query.clone(),
        Some(id) => new_form::fields_of(&read_own(&session, id).await?),
    };
    let endpoint = endpoint_of(&fields);
    let (mut status, mut errors, mut shown) = (StatusCode::OK, None, None);
    if is_preview {
        let body = new_form::body(endpoint, &fields);
        match preview::section(&session, &query, &body).await {
            Ok(section) => shown = Some(section),
            Err(error) if error.details().is_empty() => return Err(error.into()),
            Err(error) => {
                status = StatusCode::UNPROCESSABLE_ENTITY;
                errors = Some(error);
            }
        }
    }
    let suggestions = Suggestions::read(&session).await;
    let body = html! {
        (parts::head(&html! {}, "New scan", &html! { "Nothing is searched before you have seen what it costs." }, &html! {}))
        @if let Some(error) = &errors { (parts::faults(error, "Nothing was searched. Please correct:")) }
        @if let Some(section) = shown {
            (section)
            details class="card fold" { summary { "Change the scan" } (form(endpoint, &fields, errors.as_ref(), &suggestions)) }
        } @else {
            div class="card" {
                (endpoint_links(endpoint))
                (form(endpoint, &fields, errors.as_ref(), &suggestions))
            }
        }
    };
    Ok((status, page(&session, "New scan", NavItem::Scans, body)).into_response())
}

/// Submits the previewed body. The form carries an `Idempotency-Key`, so a double click is one
/// scan, and a press of a button that was used before leads to its scan.
async fn submit(form: SessionForm) -> Result<Response, PageFailure> {
    let text = form.fields.text(preview::BODY_FIELD).unwrap_or_default();
    let body: Map<String, Value> = read_object(text.as_bytes(), MAX_DEPTH)?;
    let key = idempotency_key(&form.fields)?;
    start(&form.session, &body, &key, None).await
}

/// Submits a body once, and leads to its scan, which then names the monitor that was made with it.
pub(crate) async fn start(
    session: &Session,
    body: &Map<String, Value>,
    key: &IdempotencyKey,
    watch: Option<MonitorId>,
) -> Result<Response, PageFailure> {
    let _permits = session.submission_permits().await?;
    let context = session.submit_context().await?;
    let pace = &session.custody()?.pace;
    let submitted = scans::submit::submit(context, pace, body, Some(key)).await?;
    let mut path = links::of(submitted.response.id);
    if let Some(watch) = watch {
        path = links::with_query(&path, WATCHED, &watch.to_string());
    }
    if !submitted.replayed {
        return Ok(Redirect::to(&path).into_response());
    }
    let earlier = preview::EarlierScan::of(session, submitted.response).await?;
    if !earlier.is_deleted {
        let path = already_started_path(&path);
        return Ok(Redirect::to(&path).into_response());
    }
    let body = html! {
        (parts::head(&html! {}, "Nothing was started", &html! {}, &html! {}))
        (earlier.notice(PATH))
    };
    let title = "Nothing was started";
    Ok((
        StatusCode::CONFLICT,
        page(session, title, NavItem::Scans, body),
    )
        .into_response())
}

fn endpoint_links(active: Endpoint) -> Markup {
    let name = |endpoint| match endpoint {
        Endpoint::FlightsOneway => "One way",
        Endpoint::FlightsRoundtrip => "Round trip",
        Endpoint::HotelsSearch => "Hotels of a place",
        Endpoint::HotelsByName => "One hotel",
        Endpoint::HotelsRooms => "Rooms",
        Endpoint::HotelsResolve => "",
    };
    html! {
        nav class="tabs form-tabs" aria-label="Kind of search" {
            @for endpoint in Endpoint::SEARCHES {
                a href={ (PATH) "?endpoint=" (endpoint.as_str()) } aria-current=[(*endpoint == active).then_some("true")] {
                    (name(*endpoint))
                }
            }
        }
    }
}

fn form(
    endpoint: Endpoint,
    fields: &FormFields,
    error: Option<&ApiError>,
    suggestions: &Suggestions,
) -> Markup {
    let (main, others): (Vec<&FieldSpec>, Vec<&FieldSpec>) =
        new_form::search_fields(endpoint).partition(|field| MAIN_FIELDS.contains(&field.name));
    let is_wrong = |name: &str| {
        error.is_some_and(|error| {
            error
                .details()
                .iter()
                .any(|detail| detail.field.split(['.', '[']).any(|part| part == name))
        })
    };
    let is_open = others.iter().any(|field| fields.text(field.name).is_some());
    html! {
        form method="get" action=(PATH) class="stack" {
            input type="hidden" name="endpoint" value=(endpoint.as_str());
            (suggestions.markup())
            div class="fields" {
                @for field in main {
                    @if field.kind == FieldKind::Date { (date_fields(field, endpoint, fields, is_wrong(field.name))) }
                    @else { (text_field(field, fields, is_wrong(field.name))) }
                }
                @if endpoint.api() == farescan_core::contract::Api::Hotels {
                    (plain_field("samples", "Samples of each", "1", fields, "to tell a price gap from chance"))
                }
            }
            details class="fold" open[is_open] {
                summary { "More fields of the search" }
                div class="fields" { @for field in others { (text_field(field, fields, is_wrong(field.name))) } }
            }
            (options(fields))
            div class="actions" {
                button class="primary" type="submit" name="preview" value="true" { "Show what it costs" }
                span class="hint" aria-live="polite" data-cost=(live_cost::PATH) {}
            }
        }
    }
}

fn options(fields: &FormFields) -> Markup {
    html! {
        details class="fold" open[["label", "tags", "max_requests", "max_age_seconds", "max_risk", "below"].iter().any(|name| fields.text(name).is_some())] {
            summary { "Name, limit and strategy" }
            div class="fields" {
                (plain_field("label", "Label", "", fields, "a name for lists"))
                (plain_field("tags", "Tags", "", fields, "separated by commas"))
                (plain_field("max_requests", "Limit of requests", "", fields, "at least one for each search"))
                (ages(fields))
                div class="field" {
                    label for="max_attempts" { "If a search does not complete" }
                    select id="max_attempts" name="max_attempts" {
                        @for (value, text) in [("1", "leave it; decide later"), ("2", "ask once more"), ("3", "ask up to twice more")] {
                            option value=(value) selected[fields.text("max_attempts") == Some(value)] { (text) }
                        }
                    }
                }
                (risks(fields))
                (plain_field("below", "Only until one is below", "", fields, "a price; the search ends with the first one below it"))
            }
        }
    }
}

/// Whether to search only what can still be the cheapest.
fn risks(fields: &FormFields) -> Markup {
    let texts = [
        "Find the cheapest",
        "starts from the prices that you have; counted on such questions",
    ];
    let known = [
        ("", "search all"),
        ("0.02", "98 % sure"),
        ("0.05", "95 % sure"),
        ("0.2", "80 % sure"),
    ];
    let other = |risk: &str| format!("risk {risk}");
    choice(fields, "max_risk", texts, &known, other)
}

/// How old an answer may be that is not bought again.
fn ages(fields: &FormFields) -> Markup {
    let texts = [
        "Reuse answers up to",
        "what you have paid for is not bought again",
    ];
    let known = [
        ("", "the age of your account, if you have set one"),
        ("0", "no age: search all"),
        ("3600", "an hour old"),
        ("21600", "6 hours old"),
        ("86400", "a day old"),
        ("259200", "3 days old"),
        ("604800", "7 days old"),
    ];
    let other = |age: &str| format!("{age} seconds old");
    choice(fields, "max_age_seconds", texts, &known, other)
}

/// A choice of known values; a scan like this one may have another.
fn choice(
    fields: &FormFields,
    name: &str,
    [label, hint]: [&str; 2],
    known: &[(&str, &str)],
    other: impl Fn(&str) -> String,
) -> Markup {
    let given = fields.text(name).unwrap_or_default();
    html! {
        div class="field" {
            label for=(name) { (label) }
            select id=(name) name=(name) aria-describedby={ (name) "-hint" } {
                @for (value, text) in known {
                    option value=(value) selected[given == *value] { (text) }
                }
                @if known.iter().all(|(value, _)| *value != given) {
                    option value=(given) selected { (other(given)) }
                }
            }
            span class="hint" id={ (name) "-hint" } { (hint) }
        }
    }
}

fn plain_field(
    name: &str,
    label: &str,
    placeholder: &str,
    fields: &FormFields,
    hint: &str,
) -> Markup {
    html! {
        div class="field" {
            label for=(name) { (label) }
            input id=(name) name=(name) placeholder=(placeholder) value=[fields.text(name)] aria-describedby={ (name) "-hint" };
            span class="hint" id={ (name) "-hint" } { (hint) }
        }
    }
}

/// A date field as a range, with the days of the week and, for a stay, the nights.
fn date_fields(field: &FieldSpec, endpoint: Endpoint, fields: &FormFields, wrong: bool) -> Markup {
    let (from, to) = (format!("{}.from", field.name), format!("{}.to", field.name));
    let invalid = wrong.then_some("true");
    html! {
        div class="field" {
            label for=(from) { (label(field.name)) " from" }
            input id=(from) name=(from) type="date" required data-range=(to) value=[fields.text(&from)] aria-invalid=[invalid];
        }
        div class="field" {
            label for=(to) { "to" }
            input id=(to) name=(to) type="date" value=[fields.text(&to)] aria-invalid=[invalid];
            span class="hint" { "empty: only that day" }
        }
        @if new_form::end_of_stay(endpoint).is_some() {
            div class="field" {
                label for=(new_form::NIGHTS) { "Nights" }
                input id=(new_form::NIGHTS) name=(new_form::NIGHTS) required placeholder="7, 10-14" value=[fields.text(new_form::NIGHTS)];
            }
        }
        fieldset class="field wide" {
            legend { "Only on these days of the week" }
            div class="choices" {
                @for day in Weekday::ALL {
                    label {
                        input type="checkbox" name=(new_form::WEEKDAYS) value=(day.as_str())
                            checked[fields.all(new_form::WEEKDAYS).any(|chosen| chosen == day.as_str())];
                        (day.as_str())
                    }
                }
            }
        }
    }
}

fn text_field(field: &FieldSpec, fields: &FormFields, wrong: bool) -> Markup {
    let name = field.name;
    let hint = format!("{name}-hint");
    let choices = choices(field);
    html! {
        div class="field" {
            label for=(name) { (label(name)) }
            @if choices.is_empty() {
                input id=(name) name=(name) required[field.required] list=[suggestions::list_of(name)] data-values[may_be_swept(field)]
                    placeholder=(placeholder(field)) value=[fields.text(name)] autocapitalize="none" spellcheck="false"
                    aria-invalid=[wrong.then_some("true")] aria-describedby=(hint);
            } @else {
                select id=(name) name=(name) aria-invalid=[wrong.then_some("true")] aria-describedby=(hint) {
                    option value="" { "default" }
                    @for choice in choices { option value=(choice) selected[fields.text(name) == Some(choice.as_str())] { (choice) } }
                }
            }
            span class="hint" id=(hint) { (field_hint(field)) }
        }
    }
}

/// Whether several values with commas make several searches.
fn may_be_swept(field: &FieldSpec) -> bool {
    matches!(field.name, "from_airport" | "to_airport" | "proxy_country")
}

/// The values of a field that has few: booleans and enums.
fn choices(field: &FieldSpec) -> Vec<String> {
    let schema = serde_json::to_value((field.schema)()).unwrap_or_default();
    if schema["type"] == "boolean" {
        return ["true", "false"].map(str::to_owned).to_vec();
    }
    let words = schema["enum"].as_array().into_iter().flatten();
    words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}

fn placeholder(field: &FieldSpec) -> String {
    match field.name {
        "from_airport" => "TLV".to_owned(),
        "to_airport" => "LHR, CDG".to_owned(),
        "proxy_country" => "us, de, gb".to_owned(),
        _ => field
            .default_value()
            .map(|default| {
                default
                    .as_str()
                    .map_or_else(|| default.to_string(), str::to_owned)
            })
            .filter(|default| !matches!(default.as_str(), "[]" | "{}"))
            .unwrap_or_default(),
    }
}

fn field_hint(field: &FieldSpec) -> String {
    match field.name {
        "from_airport" | "to_airport" => {
            "airport codes, such as TLV; more than one is fine".to_owned()
        }
        "proxy_country" => "country codes; several compare markets".to_owned(),
        _ => first_sentence(field.doc),
    }
}

fn first_sentence(doc: &str) -> String {
    let text = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    text[..end].trim_end_matches('.').to_owned()
}
