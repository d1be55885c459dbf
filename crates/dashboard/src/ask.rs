//! `/ask`: a search in words. What was read stands as chips, what was not with what it could mean; below
//! it the cheapest known price, the buttons with their cost, and a calendar of known prices. The page
//! searches and stores nothing: its buttons are forms, whose handlers check the body again.

mod tell;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use farescan_ask::body::day_of_last_check;
use farescan_ask::{Checks, Chip, MAX_CHARS, Question, Reading, RefusedWords, Suggestion};
use farescan_sheets::numbers::{amount, count, counted, range, request_range};
use farescan_sheets::trip::{body_facts, body_title, value_text};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use self::tell::Tell;
use super::failure::PageFailure;
use super::form::{FormFields, token_field};
use super::layout::{NavItem, page};
use super::once::{self, has_page_key, new_page_key, once_field_for};
use super::parts::{faults, head};
use super::prices::KnownPrices;
use super::session::Session;
use super::{channels, links, prices};
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::channels::{Channel, ChannelKind};
use farescan_core::contract::monitors::{MAX_CHANNELS, MonitorPreview};
use farescan_core::contract::scans::{RequestRange, ScanPreview, WarningKind};
use farescan_core::{monitors, scans};

/// The field of the text.
const FIELD: &str = links::QUESTION;
const EXAMPLES: [&str; 3] = [
    "tel aviv london march below 150",
    "hotel Arts Barcelona, 3 nights in february, us de gb",
    "TLV → Rome or Milan, next weekend",
];

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(links::ASK, get(ask).post(tell::tell))
}

/// The box of a page whose text is found or asked; `text` stands in it.
pub(super) fn find_or_ask_box(text: &str) -> Markup {
    html! {
        (ask_box(links::FIND, text, text.is_empty()))
        p class="hint" { "Or a name, label or id: the box also finds scans and monitors." }
    }
}

/// The box whose text goes to a path.
fn ask_box(path: &str, text: &str, is_first: bool) -> Markup {
    html! {
        form class="ask-box" method="get" action=(path) role="search" {
            label for="ask" { "Where, and when?" }
            div class="ask-line" {
                input id="ask" name=(FIELD) value=(text) maxlength=(MAX_CHARS) placeholder="tel aviv london march below 150" autocomplete="off" autocapitalize="none" spellcheck="false" aria-keyshortcuts="/ Control+K" autofocus[is_first] required[path == links::FIND];
                button class="primary" type="submit" { "Ask" }
            }
        }
    }
}

/// A page with buttons has a key in its URL, so that they are the same after Back.
async fn ask(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let Some(text) = query.text(FIELD) else {
        return Ok(render(&session, StatusCode::OK, "", &[], &examples()));
    };
    let Reading {
        chips,
        corrected,
        result,
    } = read(&session, text)?;
    let question = match result {
        Err(refusals) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            let answer = refusal_list(&refusals, corrected.as_deref());
            return Ok(render(&session, status, text, &chips, &answer));
        }
        Ok(question) => question,
    };
    if !has_page_key(&query) {
        let page = match query.text(links::WATCH) {
            Some(_) => links::watch(text),
            None => links::question(text),
        };
        let path = links::with_query(&page, once::FIELD, &new_page_key());
        return Ok(Redirect::to(&path).into_response());
    }
    let known = prices::known(&session, &question);
    let (ways, known) = tokio::join!(Ways::read(&session, &question), known);
    let (status, ways) = match ways {
        Ok(ways) => (
            StatusCode::OK,
            ways.markup(&session, &query, &question, &known),
        ),
        Err(error) if !error.details().is_empty() => {
            let faults = faults(&error, "Nothing was searched. Please correct:");
            (StatusCode::UNPROCESSABLE_ENTITY, faults)
        }
        Err(error) => return Err(error.into()),
    };
    let answer = html! { (ways) (known.card) };
    Ok(render(&session, status, text, &chips, &answer))
}

fn read(session: &Session, text: &str) -> Result<Reading, ApiError> {
    Ok(farescan_ask::read(text, today(session)?))
}

fn today(session: &Session) -> Result<Date, ApiError> {
    Ok(session.app().now()?.to_zoned(TimeZone::UTC).date())
}

/// Whether a text is a question from its first to its last word: a route or a hotel, with dates.
pub(super) fn is_question(session: &Session, text: &str) -> Result<bool, ApiError> {
    Ok(read(session, text)?.result.is_ok())
}

/// Below a text the page does not say again what can be asked, so that the answer is seen at once.
fn render(
    session: &Session,
    status: StatusCode,
    text: &str,
    chips: &[Chip],
    answer: &Markup,
) -> Response {
    let below = html! { @if text.is_empty() { "Cities, airports or a hotel, and dates. Nothing is searched before you press a button." } };
    let body = html! {
        (head(&html! {}, "Ask", &below, &html! { a class="button" href="/scans/new" { "All fields" } }))
        section class="card" { (ask_box(links::ASK, text, text.is_empty())) (chip_list(chips)) }
        (answer)
    };
    (status, page(session, "Ask", NavItem::Home, body)).into_response()
}

fn examples() -> Markup {
    html! {
        section class="card" {
            h2 { "For example" }
            ul { @for example in EXAMPLES { li { a href=(links::question(example)) { (example) } } } }
        }
    }
}

/// What was understood: each part, and the words that it was read from.
fn chip_list(chips: &[Chip]) -> Markup {
    let others = chips
        .iter()
        .filter(|chip| !chip.choices.is_empty() || !chip.alone.is_empty());
    html! {
        @if !chips.is_empty() {
            dl class="read-chips" aria-label="What was read" {
                @for chip in chips {
                    div data-default[chip.words.is_none()] {
                        dt { (chip.kind.label()) " " }
                        dd {
                            b { (chip.text) }
                            @match &chip.words {
                                Some(words) => { " " span class="muted" { "from “" (words) "”" } }
                                None => { span class="visually-hidden" { ", not said" } }
                            }
                        }
                    }
                }
            }
            @for chip in others {
                p class="hint" {
                    (chip.kind.label()) ": "
                    @if !chip.choices.is_empty() { "or " (choice_links(&chip.choices)) }
                    @if !chip.choices.is_empty() && !chip.alone.is_empty() { " · " }
                    @if !chip.alone.is_empty() { "only " (choice_links(&chip.alone)) }
                }
            }
        }
    }
}

fn choice_links(choices: &[Suggestion]) -> Markup {
    html! {
        @for (index, choice) in choices.iter().enumerate() {
            @if index > 0 { ", " }
            a href=(links::question(&choice.question)) { (choice.text) }
        }
    }
}

fn refusal_list(refusals: &[RefusedWords], corrected: Option<&str>) -> Markup {
    html! {
        div class="notice bad" role="alert" {
            b { "Nothing was searched." }
            @if let Some(text) = corrected { p { "Did you mean " a href=(links::question(text)) { (text) } "?" } }
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

/// A body with its cost, or why it is refused.
type Priced<T> = (Map<String, Value>, Result<T, ApiError>);

/// What the dates of a monitor are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchDates {
    /// Those of the question.
    Fixed,
    /// As many days after each run as those of the question are after the first; see `parity_monitor`.
    Rolling,
}

/// What can be done with a question, with its cost.
struct Ways {
    all: (Map<String, Value>, ScanPreview),
    /// Of several searches.
    find: Option<Priced<ScanPreview>>,
    /// The channels that hear of a watch.
    channels: Vec<Channel>,
    has_mail_server: bool,
    /// A watch with an amount; `None` of a question that compares markets, of which there are these:
    tell: Option<Tell>,
    /// Comparisons on a schedule.
    watches: Vec<(WatchDates, Priced<MonitorPreview>)>,
}

/// Only a refusal that names fields is shown beside the other ways.
fn unless_faults<T>(previewed: Result<T, ApiError>) -> Result<Result<T, ApiError>, ApiError> {
    match previewed {
        Err(error) if error.details().is_empty() => Err(error),
        previewed => Ok(previewed),
    }
}

impl Ways {
    async fn read(session: &Session, question: &Question) -> Result<Self, ApiError> {
        let _permits = session.submission_permits().await?;
        let (context, pace) = (session.context()?, &session.custody()?.pace);
        let body = question.scan();
        let preview = scans::preview::preview(context, pace, &body).await?;
        let searches = preview.items;
        let mut find = None;
        // Markets are compared by all their prices.
        if searches > 1 && !question.compares_markets() {
            let body = question.find();
            let preview = scans::preview::preview(context, pace, &body)
                .await
                .map_err(ApiError::from);
            find = Some((body, unless_faults(preview)?));
        }
        let guard = session.app().webhook_guard();
        let mut channels = channels::active(session).await?;
        channels.retain(|channel| question.via.is_none_or(|kind| channel.kind == kind));
        channels.truncate(MAX_CHANNELS);
        let ids: Vec<_> = channels.iter().map(|channel| json!(channel.id)).collect();
        let mut watches = Vec::new();
        let checked = day_of_last_check(context.now);
        for dates in [WatchDates::Fixed, WatchDates::Rolling] {
            let rolls = dates == WatchDates::Rolling;
            let Some(mut body) = question.parity_monitor(searches, checked, rolls) else {
                continue;
            };
            if !ids.is_empty() {
                body.insert("channels".to_owned(), ids.clone().into());
            }
            let preview = monitors::preview::preview(context, guard, &body)
                .await
                .map_err(ApiError::from);
            watches.push((dates, (body, unless_faults(preview)?)));
        }
        let mut tell = None;
        if watches.is_empty() {
            let cheapest = match &find {
                _ if searches == 1 => Some(preview.clone()),
                Some((_, Ok(find))) if question.below.is_none() => Some(find.clone()),
                _ => None,
            };
            tell = Some(Tell::read(session, context, question, &channels, cheapest).await?);
        }
        Ok(Self {
            all: (body, preview),
            find,
            channels,
            has_mail_server: guard.check_kind(ChannelKind::Email).is_ok(),
            tell,
            watches,
        })
    }

    fn markup(
        &self,
        session: &Session,
        query: &FormFields,
        question: &Question,
        known: &KnownPrices,
    ) -> Markup {
        let (body, all) = &self.all;
        let requests = counted(all.requests.least, "request");
        let label = if question.compares_markets() {
            format!("Compare the markets · {requests}")
        } else if all.items == 1 {
            format!("Search · {requests}")
        } else {
            format!("Search all {} · {requests}", count(all.items))
        };
        // Who names an amount, or has searched, wants an alert.
        let is_telling = question.below.is_some() || query.text(links::WATCH).is_some();
        let is_watching = query.text(links::WATCH).is_some() && !self.watches.is_empty();
        let is_telling = is_telling && self.tell.is_some();
        let tell = html! {
            @if let Some(tell) = &self.tell { div class="wide" { (tell.markup(session, query, question, self, known)) } }
        };
        let watches = html! {
            @for watch in &self.watches {
                @match watch {
                    (dates, (body, Ok(watch))) => { div { (watch_form(session, query, (question.watch_checks(), *dates), (body, all.items), watch, is_watching && *dates == WatchDates::Rolling)) } }
                    (_, (_, Err(error))) => { div { (faults(error, "Not on a schedule:")) } }
                }
            }
        };
        html! {
            section class="card" {
                h2 { (body_title(body).unwrap_or_default()) }
                p class="sub" { (body_facts(body).join(" · ")) " · " (counted(all.items, "search")) }
                @if !known.answer.0.is_empty() { p class="known-answer" { (known.answer) } }
                @if !known.monitors.0.is_empty() { p { (known.monitors) "." } }
                div class="ask-ways" {
                    @if is_telling { (tell) }
                    @if is_watching { (watches) }
                    @match &self.find {
                        Some((body, Ok(find))) => { div { (find_form(session, query, question, (body, find), !known.is_below && !is_telling)) } }
                        Some((_, Err(error))) => { div { (faults(error, "Not as one question:")) } }
                        None => {}
                    }
                    div {
                        (scan_form(session, query, body, all, self.find.is_none() && !is_telling && !is_watching, &label))
                        @if question.compares_markets() { p class="hint" { "Each market is asked three times, so that a difference is not chance." } }
                        p class="hint" { (most(all)) }
                    }
                    @if !is_watching { (watches) }
                    @if !is_telling { (tell) }
                    p class="hint wide" { (self.heard_by(question, query.text(FIELD).unwrap_or_default())) }
                }
                @if session.app().is_sandbox() { p class="hint" { "Sandbox: nothing is billed." } }
            }
        }
    }
}

impl Ways {
    /// Who hears of the alerts of a watch.
    fn heard_by(&self, question: &Question, text: &str) -> Markup {
        html! {
            @if self.channels.is_empty() {
                @if question.via.is_some() { "You have no such channel yet. " }
                "Alerts stand on the page “" a href=(links::ALERTS) { "Alerts" } "”."
                @if self.has_mail_server { " The page of the watch takes a mail address." }
                " " a href=(links::channels_for(text)) { "Add a channel" } " to hear of them on a phone" @if self.has_mail_server { ", in a chat or by mail." } @else { " or in a chat." }
            } @else {
                @let names: Vec<_> = self.channels.iter().map(|channel| channel.name.as_str()).collect();
                "Alerts go to " (names.join(", ")) "."
            }
        }
    }
}

/// The most requests, what is reused, and what is left of the plan.
fn most(preview: &ScanPreview) -> String {
    let reused = preview.reused.filter(|reused| *reused > 0);
    let reused = reused.map(|reused| format!("{} reused.", counted(reused, "stored answer")));
    let left = preview.plan_requests_remaining;
    let left = left.map(|left| format!("{} left of your plan.", count(left)));
    let most = counted(preview.requests.most, "request");
    let parts = [
        Some(format!("At most {most}, with errors and retries.")),
        reused,
        left,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// `below 150 USD`.
fn amount_words(question: &Question) -> Option<String> {
    let below = question.below?;
    Some(format!("below {} {}", amount(below), question.currency))
}

/// `about 10 requests`, where that is known; otherwise each search once at most, as on the button that
/// searches all.
fn searched_requests(preview: &ScanPreview, least: u64) -> String {
    match preview.requests.expected {
        Some(expected) => format!("about {}", counted(expected, "request")),
        None => request_range(RequestRange {
            least,
            expected: None,
            most: preview.requests.most.min(preview.items.into()),
        }),
    }
}

/// Whether too much is underway for another scan.
fn is_refused(preview: &ScanPreview) -> bool {
    let mut warnings = preview.warnings.iter();
    warnings.any(|warning| warning.kind == WarningKind::TooMuchUnderway)
}

fn find_form(
    session: &Session,
    query: &FormFields,
    question: &Question,
    (body, preview): (&Map<String, Value>, &ScanPreview),
    is_primary: bool,
) -> Markup {
    let least = preview.requests.least;
    let (what, least, hint) = match amount_words(question) {
        // The first answer may end it.
        Some(below) => (
            format!("one {below}"),
            least.min(1),
            "Ends with the first price below the amount.",
        ),
        None => (
            "the cheapest".to_owned(),
            least,
            "Searches only dates that can still be the cheapest.",
        ),
    };
    let requests = searched_requests(preview, least);
    html! {
        (scan_form(session, query, body, preview, is_primary, &format!("Find {what} · {requests}")))
        p class="hint" { (hint) " " (most(preview)) }
    }
}

fn scan_form(
    session: &Session,
    query: &FormFields,
    body: &Map<String, Value>,
    preview: &ScanPreview,
    is_primary: bool,
    label: &str,
) -> Markup {
    let is_refused = is_refused(preview);
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
    (checks, dates): (Checks, WatchDates),
    (body, searches): (&Map<String, Value>, u32),
    preview: &MonitorPreview,
    is_primary: bool,
) -> Markup {
    let json = Value::Object(body.clone()).to_string();
    let run = request_range(preview.forecast.requests_per_run);
    // Stays in a hotel have nights, and so their dates are swept.
    let checkin = || {
        Some(value_text(
            body.get("scan")?.get("sweep")?.get("checkin_date")?,
        ))
    };
    let dates = match dates {
        WatchDates::Fixed => "these dates".to_owned(),
        WatchDates::Rolling => format!("always {}", checkin().unwrap_or_default()),
    };
    let then = match checks {
        Checks::Weekly(_) => "reports the result",
        Checks::Daily => "alerts of differences",
    };
    html! {
        form method="post" action=(links::MONITORS) {
            (token_field(session))
            (once_field_for(query, &json))
            input type="hidden" name="request" value=(json);
            button class=[is_primary.then_some("primary")] type="submit" { "Compare " (checks.words()) ", " (dates) " · " (run) " " (checks.each()) }
        }
        (watch_hint(&format!("Compares {} at 06:00 UTC and {then}", checks.words()), body, searches, preview))
    }
}

/// What a watch of so many searches costs; `when` says when it looks.
fn watch_hint(
    when: &str,
    body: &Map<String, Value>,
    searches: u32,
    preview: &MonitorPreview,
) -> Markup {
    let of_run = preview.forecast.requests_per_run;
    let limit = body.get("max_requests_per_month").and_then(Value::as_u64);
    html! {
        @for warning in &preview.schedule_warnings { p class="hint" { (warning) } }
        p class="hint" {
            (when)
            @if of_run.most < u64::from(searches) {
                " at " (range(of_run.least, of_run.most)) " of the " (counted(searches, "search"))
            }
            ": " (request_range(preview.forecast.requests_per_month)) " a month"
            @if let Some(limit) = limit { ", " (count(limit)) " at most" }
            ". Your key is stored, sealed, until you pause or delete the monitor."
        }
    }
}
