//! `/ask`: a search in words. What was read stands as chips, what was not with what it could mean; below
//! it the prices that are known and the buttons with their cost. The page searches and stores nothing:
//! its buttons are forms of scans and monitors, whose handlers check the body again.

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use farescan_ask::{Chip, MAX_CHARS, Question, QuestionSubject, Reading, RefusedWords, Suggestion};
use farescan_sheets::numbers::{count, counted, range};
use farescan_sheets::trip::{body_facts, body_title};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::failure::PageFailure;
use super::form::{FormFields, token_field};
use super::layout::{NavItem, page_with_status};
use super::once::{self, has_page_key, new_page_key, once_field_for};
use super::parts::with_query;
use super::session::Session;
use super::{links, prices};
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::monitors::MonitorPreview;
use farescan_core::contract::scans::{ScanPreview, WarningKind};
use farescan_core::{monitors, scans};

/// The field of the text.
const FIELD: &str = "q";
const EXAMPLES: [&str; 3] = [
    "tel aviv london march below 150",
    "hotel Arts Barcelona, 3 nights in february, us de gb",
    "TLV → Rome or Milan, next weekend",
];

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(links::ASK, get(ask))
}

/// The box that leads here; `text` stands in it.
pub(super) fn ask_box(text: &str, is_first: bool) -> Markup {
    html! {
        form class="ask-box" method="get" action=(links::ASK) role="search" {
            label for="ask" { "Where, and when?" }
            div class="ask-line" {
                input id="ask" name=(FIELD) value=(text) maxlength=(MAX_CHARS) placeholder="tel aviv london march below 150" autocomplete="off" autocapitalize="none" spellcheck="false" autofocus[is_first];
                button class="primary" type="submit" { "Ask" }
            }
        }
    }
}

/// A page with buttons has a key in its URL, so that they are the same after Back.
async fn ask(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let Some(text) = query.text(FIELD) else {
        return Ok(render(
            &session,
            StatusCode::OK,
            "",
            &html! { (examples()) },
        ));
    };
    let today = session.app().now()?.to_zoned(TimeZone::UTC).date();
    let Reading { chips, result } = farescan_ask::read(text, today);
    let question = match result {
        Err(refusals) => {
            let answer = html! { (refusal_list(&refusals)) (chip_list(&chips)) };
            return Ok(render(
                &session,
                StatusCode::UNPROCESSABLE_ENTITY,
                text,
                &answer,
            ));
        }
        Ok(question) => question,
    };
    if !has_page_key(&query) {
        let path = with_query(&path_of(text), once::FIELD, &new_page_key());
        return Ok(Redirect::to(&path).into_response());
    }
    let (status, ways) = match Ways::read(&session, &question).await {
        Ok(ways) => (StatusCode::OK, ways.markup(&session, &query, &question)),
        Err(error) if !error.details().is_empty() => {
            (StatusCode::UNPROCESSABLE_ENTITY, fault_list(&error))
        }
        Err(error) => return Err(error.into()),
    };
    let known = known_prices(&session, &question).await?;
    let answer = html! { (chip_list(&chips)) (ways) (known) };
    Ok(render(&session, status, text, &answer))
}

fn path_of(text: &str) -> String {
    with_query(links::ASK, FIELD, text)
}

fn render(session: &Session, status: StatusCode, text: &str, answer: &Markup) -> Response {
    let body = html! {
        div class="head" {
            div {
                h1 { "Ask" }
                p class="sub" { "Cities, airports or a hotel, and dates. Nothing is searched before you press a button." }
            }
            div class="actions" { a class="button" href="/scans/new" { "All fields" } }
        }
        section class="card" { (ask_box(text, text.is_empty())) }
        (answer)
    };
    page_with_status(status, session, "Ask", NavItem::Scans, body)
}

fn examples() -> Markup {
    html! {
        section class="card" {
            h2 { "For example" }
            ul { @for example in EXAMPLES { li { a href=(path_of(example)) { (example) } } } }
        }
    }
}

/// What was understood: each part, and the words that it was read from.
fn chip_list(chips: &[Chip]) -> Markup {
    html! {
        @if !chips.is_empty() {
            section class="card" {
                h2 { "What was read" }
                dl class="read-chips" {
                    @for chip in chips {
                        div data-default[chip.words.is_none()] {
                            dt { (chip.kind.label()) }
                            dd {
                                b { (chip.text) }
                                @match &chip.words {
                                    Some(words) => { span class="muted" { "from “" (words) "”" } }
                                    None => { span class="muted" { "not said" } }
                                }
                                @if !chip.choices.is_empty() {
                                    span { "Or: " (choice_links(&chip.choices)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn choice_links(choices: &[Suggestion]) -> Markup {
    html! {
        @for (index, choice) in choices.iter().enumerate() {
            @if index > 0 { ", " }
            a href=(path_of(&choice.question)) { (choice.text) }
        }
    }
}

fn refusal_list(refusals: &[RefusedWords]) -> Markup {
    html! {
        div class="notice bad" role="alert" {
            b { "Nothing was searched." }
            ul {
                @for refusal in refusals {
                    li {
                        @if !refusal.words.is_empty() { b { "“" (refusal.words) "”: " } }
                        (refusal.says)
                        @if !refusal.choices.is_empty() { " Did you mean: " (choice_links(&refusal.choices)) "?" }
                    }
                }
            }
        }
    }
}

/// What the service refuses, such as a scan that is too large.
fn fault_list(error: &ApiError) -> Markup {
    html! {
        div class="notice bad" role="alert" {
            b { "Nothing was searched." }
            ul { @for detail in error.details() { li { "Expected " (detail.expected) "." } } }
        }
    }
}

/// What can be done with a question, with its cost.
struct Ways {
    all: (Map<String, Value>, ScanPreview),
    find: Option<(Map<String, Value>, ScanPreview)>,
    watch: Option<(Map<String, Value>, MonitorPreview)>,
}

impl Ways {
    async fn read(session: &Session, question: &Question) -> Result<Self, ApiError> {
        let _permits = session.submission_permits().await?;
        let (context, pace) = (session.context()?, &session.custody()?.pace);
        let body = question.scan();
        let preview = scans::preview::preview(context, pace, &body).await?;
        let searches = preview.items;
        let mut find = None;
        if searches > 1 {
            let body = question.find_cheapest();
            // A question that cannot be asked of these searches leaves the other button.
            if let Ok(preview) = scans::preview::preview(context, pace, &body).await {
                find = Some((body, preview));
            }
        }
        let mut watch = None;
        if let Some(body) = question.monitor(searches, body_title) {
            let guard = session.app().webhook_guard();
            if let Ok(preview) = monitors::preview::preview(context, guard, &body).await {
                watch = Some((body, preview));
            }
        }
        Ok(Self {
            all: (body, preview),
            find,
            watch,
        })
    }

    fn markup(&self, session: &Session, query: &FormFields, question: &Question) -> Markup {
        let (body, all) = &self.all;
        let searches = counted(all.items, "search");
        let label = if all.items == 1 {
            "Search · 1 request".to_owned()
        } else {
            format!(
                "Search all {} · {}",
                count(all.items),
                counted(all.requests.least, "request")
            )
        };
        html! {
            section class="card" {
                h2 { (body_title(body).unwrap_or_default()) }
                p class="sub" { (body_facts(body).join(" · ")) " · " (searches) }
                div class="ask-ways" {
                    @if let Some((body, find)) = &self.find {
                        div {
                            (scan_form(session, query, body, find, true, &format!("Find the cheapest · about {}", counted(about(find), "request"))))
                            p class="hint" { "Searches only dates that can still be the cheapest. " (most(find)) }
                        }
                    }
                    div {
                        (scan_form(session, query, body, all, self.find.is_none(), &label))
                        p class="hint" { (most(all)) }
                    }
                    @match &self.watch {
                        Some((body, watch)) => { div { (watch_form(session, query, question, body, watch)) } }
                        None => { p class="hint" { "Add “below 150”, with your amount, to be told." } }
                    }
                }
                @if session.app().is_sandbox() { p class="hint" { "Sandbox: nothing is billed." } }
            }
        }
    }
}

/// The requests that a question probably needs.
fn about(preview: &ScanPreview) -> u64 {
    preview.requests.expected.unwrap_or(preview.requests.least)
}

/// The most requests, and what is left of the plan.
fn most(preview: &ScanPreview) -> String {
    let left = preview
        .plan_requests_remaining
        .map_or_else(String::new, |left| {
            format!(" {} left of your plan.", count(left))
        });
    format!(
        "At most {}, with errors and retries.{left}",
        counted(preview.requests.most, "request")
    )
}

fn scan_form(
    session: &Session,
    query: &FormFields,
    body: &Map<String, Value>,
    preview: &ScanPreview,
    is_primary: bool,
    label: &str,
) -> Markup {
    let is_refused = preview
        .warnings
        .iter()
        .any(|warning| warning.kind == WarningKind::TooMuchUnderway);
    let json = Value::Object(body.clone()).to_string();
    html! {
        form method="post" action="/scans/submit" {
            (token_field(session))
            (once_field_for(query, &json))
            input type="hidden" name="body" value=(json);
            button class=[is_primary.then_some("primary")] type="submit" disabled[is_refused] data-off[is_refused] { (label) }
        }
        @for warning in &preview.warnings { p class="hint" { (warning.message) } }
    }
}

fn watch_form(
    session: &Session,
    query: &FormFields,
    question: &Question,
    body: &Map<String, Value>,
    preview: &MonitorPreview,
) -> Markup {
    let json = Value::Object(body.clone()).to_string();
    let run = preview.forecast.requests_per_run;
    let day = range(run.least, run.most);
    let below = question.below.map_or_else(String::new, |below| {
        format!("{below} {}", question.currency)
    });
    let limit = body
        .get("max_requests_per_month")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    html! {
        form method="post" action=(links::MONITORS) {
            (token_field(session))
            (once_field_for(query, &json))
            input type="hidden" name="request" value=(json);
            button type="submit" { "Tell me below " (below) " · " (day) " requests a day" }
        }
        p class="hint" { "Looks each day at 06:00 UTC, and stops at " (counted(limit, "request")) " a month. The alert stands on the page “Alerts”." }
    }
}

/// The calendar of prices that are known, and links to those of other routes.
async fn known_prices(session: &Session, question: &Question) -> Result<Markup, PageFailure> {
    let subjects = subjects(question);
    let mut shown = None;
    if let [subject] = subjects.as_slice() {
        shown = prices::known(session, subject, question).await?;
    }
    Ok(html! {
        @match shown {
            Some(calendar) => { (calendar) }
            None => {
                section class="card" {
                    h2 { "Known prices" }
                    p class="hint" {
                        @for (index, subject) in subjects.iter().enumerate() {
                            @if index > 0 { " · " }
                            a href=(subject.path()) { (subject.title()) }
                        }
                    }
                }
            }
        }
    })
}

/// The routes, hotel or place of a question; of many routes the first.
fn subjects(question: &Question) -> Vec<prices::PriceSubject> {
    const MOST: usize = 12;
    let place = |field: &'static str, text: &String| {
        let text = text.clone();
        vec![prices::PriceSubject::Place { field, text }]
    };
    match &question.subject {
        QuestionSubject::Flights { from, to, .. } => {
            let route = |from: &String, to: &String| prices::PriceSubject::Route {
                from: from.clone(),
                to: to.clone(),
            };
            let routes = from
                .iter()
                .flat_map(|from| to.iter().map(move |to| route(from, to)));
            routes.take(MOST).collect()
        }
        QuestionSubject::Hotel { name, .. } => place("hotel_name", name),
        QuestionSubject::Hotels { destination, .. } => place("destination", destination),
    }
}
