//! “Tell me below”: the watch of a question with an amount, which the question or its form names; and in
//! one act with it the search for the cheapest price.
//!
//! The watch comes first, because it costs nothing before its first run. Each half has a key of its own,
//! from the page's key and its body, which the page's other buttons have too: whatever is sent again, or
//! was sent by another button, is done once.

use axum::response::{IntoResponse as _, Redirect, Response};
use farescan_ask::Question;
use farescan_sheets::numbers::{amount, range, request_range};
use jiff::civil::Date;
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::{Map, Value};

use super::{
    FIELD, Priced, Ways, amount_words, is_refused, searched_requests, today, unless_faults,
    watch_hint,
};
use crate::failure::{PageFailure, correctable};
use crate::form::{FormFields, SessionForm, token_field};
use crate::layout::{NavItem, page};
use crate::once::{self, once_field_with, once_text_for};
use crate::parts::{faults, head};
use crate::prices::KnownPrices;
use crate::session::Session;
use crate::{links, scans as scan_pages};
use farescan_core::app::error::ApiError;
use farescan_core::commands::{IdempotencyKey, RequestContext};
use farescan_core::contract::channels::Channel;
use farescan_core::contract::monitors::{Monitor, MonitorPreview};
use farescan_core::contract::scans::ScanPreview;
use farescan_core::contract::{ValidationError, ValidationErrors};
use farescan_core::ids::MonitorId;
use farescan_core::monitors::{create, preview};
use farescan_core::scans;

/// The field of the amount.
const BELOW: &str = "below";
/// The field of a channel that hears of the alerts.
const CHANNEL: &str = "channel";
/// The field of the day on which the page was made: a page that is sent again after midnight asks the same.
const ASKED_ON: &str = "asked_on";
/// The field of the button that also searches.
const FIND: &str = "find";

/// What both buttons would cost.
pub(super) struct Tell {
    watch: Priced<MonitorPreview>,
    /// The search for the cheapest; `None` where it would be refused.
    find: Option<ScanPreview>,
}

impl Tell {
    /// `find`: the preview of the search for the cheapest, if the page has it already. Nothing that is
    /// forecast depends on the amount, so any stands for one that is not entered yet.
    pub(super) async fn read(
        session: &Session,
        context: RequestContext<'_>,
        question: &Question,
        channels: &[Channel],
        find: Option<ScanPreview>,
    ) -> Result<Self, ApiError> {
        let below = question.below.unwrap_or(Decimal::ONE);
        let channels = channels.iter().map(|channel| channel.id.to_string());
        let body = watch_body(question, today(session)?, below, channels.collect());
        let guard = session.app().webhook_guard();
        let watch = preview::preview(context, guard, &body).await;
        let find = match find {
            Some(find) => Some(find),
            None => {
                let pace = &session.custody()?.pace;
                let cheapest = scans::preview::preview(context, pace, &find_body(question)).await;
                unless_faults(cheapest.map_err(ApiError::from))?.ok()
            }
        };
        Ok(Self {
            watch: (body, unless_faults(watch.map_err(ApiError::from))?),
            find,
        })
    }

    /// An amount that nobody has named is not above the cheapest known price.
    pub(super) fn markup(
        &self,
        session: &Session,
        query: &FormFields,
        question: &Question,
        ways: &Ways,
        known: &KnownPrices,
    ) -> Markup {
        let (body, watch) = match &self.watch {
            (body, Ok(watch)) => (body, watch),
            (_, Err(error)) => return faults(error, "Not on a schedule:"),
        };
        let (run, checks) = (watch.forecast.requests_per_run, question.watch_checks());
        let amount_said = amount_words(question).map(|below| format!(" {below}"));
        let amount_said = amount_said.unwrap_or_default();
        // What would be searched for is known already.
        let is_found = known.is_below || query.text(links::WATCH).is_some();
        let finds_first = question.below.is_some() && !is_found;
        html! {
            form class="ask-tell" method="post" action=(links::ASK) {
                (token_field(session))
                (once_field_with(query.text(once::FIELD).unwrap_or_default()))
                input type="hidden" name=(FIELD) value=(without_amount(question).words());
                @if let Ok(today) = today(session) { input type="hidden" name=(ASKED_ON) value=(today); }
                @for channel in &ways.channels { input type="hidden" name=(CHANNEL) value=(channel.id); }
                @if let Some(below) = question.below {
                    input type="hidden" name=(BELOW) value=(below);
                } @else {
                    label {
                        "Tell me below "
                        input name=(BELOW) value=[known.cheapest.and_then(floor)] inputmode="decimal" size="7" required autocomplete="off" autofocus[query.text(links::WATCH).is_some()] data-select;
                        " " (question.currency)
                    }
                }
                @let tell = html! { button class=[is_found.then_some("primary")] type="submit" { "Tell me" (amount_said) " · " (request_range(run)) " " (checks.each()) } };
                @if !finds_first { (tell) }
                @if let Some(find) = &self.find {
                    @let (what, refused) = (if find.items == 1 { "Search" } else { "Find the cheapest" }, is_refused(find));
                    button class=[finds_first.then_some("primary")] type="submit" name=(FIND) value="true" disabled[refused] data-off[refused] {
                        (what) " and tell me" (amount_said) " · " (searched_requests(find, find.requests.least)) " now, " (range(run.least, run.most)) " " (checks.each())
                    }
                }
                @if finds_first { (tell) }
            }
            (watch_hint(&format!("Looks {} at 06:00 UTC", checks.words()), body, ways.all.1.items, watch))
        }
    }
}

/// A whole amount that is not above a price; `None` below 1.
fn floor(price: Decimal) -> Option<String> {
    let floor = price.floor();
    (floor >= Decimal::ONE).then(|| floor.normalize().to_string())
}

fn without_amount(question: &Question) -> Question {
    Question {
        below: None,
        ..question.clone()
    }
}

fn watch_body(
    question: &Question,
    today: Date,
    below: Decimal,
    channels: Vec<String>,
) -> Map<String, Value> {
    let asked = Question {
        below: Some(below),
        ..question.clone()
    };
    let searches = u32::try_from(asked.searches()).unwrap_or(u32::MAX);
    let mut body = asked.monitor(searches, today).unwrap_or_default();
    if !channels.is_empty() {
        body.insert("channels".to_owned(), channels.into());
    }
    body
}

/// The search for the cheapest, without the amount.
fn find_body(question: &Question) -> Map<String, Value> {
    let question = without_amount(question);
    if question.searches() == 1 {
        question.scan()
    } else {
        question.find()
    }
}

/// Makes the watch; with [`FIND`] it then searches.
pub(super) async fn tell(form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let text = fields.text(FIELD).unwrap_or_default();
    let today = today(&session)?;
    let asked_on = fields.text(ASKED_ON).and_then(|day| day.parse().ok());
    let is_recent = |day: &Date| *day <= today && Some(*day) >= today.yesterday().ok();
    let day = asked_on.filter(is_recent).unwrap_or(today);
    let Ok(question) = farescan_ask::read(text, day).result else {
        // The page of these words says why they are none.
        return Ok(Redirect::to(&links::question(text)).into_response());
    };
    let monitor = match correctable(watch(&session, &fields, &question, day).await)? {
        Ok(monitor) => monitor.id,
        Err(error) => return Ok(not_done(&session, &fields, None, &error)),
    };
    if fields.text(FIND).is_none() {
        return Ok(Redirect::to(&links::monitor(monitor)).into_response());
    }
    let body = find_body(&question);
    let searched = match key(&fields, &body) {
        Ok(key) => scan_pages::start(&session, &body, &key, Some(monitor)).await,
        Err(errors) => Err(errors.into()),
    };
    match searched {
        // Also where the service failed: the watch stands, and its page is not lost.
        Err(PageFailure::Api(error)) => Ok(not_done(&session, &fields, Some(monitor), &error)),
        searched => searched,
    }
}

async fn watch(
    session: &Session,
    fields: &FormFields,
    question: &Question,
    day: Date,
) -> Result<Monitor, ApiError> {
    let channels = fields.all(CHANNEL).map(str::to_owned);
    let body = watch_body(question, day, entered(fields)?, channels.collect());
    let key = key(fields, &body)?;
    let _permits = session.submission_permits().await?;
    let context = session.submit_context().await?;
    let guard = session.app().webhook_guard();
    let created = create::create(context, guard, &body, Some(&key)).await?;
    Ok(created.response)
}

/// The amount of the form.
fn entered(fields: &FormFields) -> Result<Decimal, ValidationErrors> {
    let text = fields.text(BELOW).unwrap_or_default();
    let amount = text.parse::<Decimal>().ok();
    amount
        .filter(|amount| *amount > Decimal::ZERO)
        .ok_or_else(|| {
            ValidationError::new(BELOW, &text.into(), "an amount above 0, such as 150").into()
        })
}

/// The key of a half.
fn key(fields: &FormFields, body: &Map<String, Value>) -> Result<IdempotencyKey, ValidationErrors> {
    if !once::has_page_key(fields) {
        return Err(
            ValidationError::missing(once::FIELD, "the hidden field of the page's form").into(),
        );
    }
    let json = Value::Object(body.clone()).to_string();
    IdempotencyKey::parse(once_text_for(fields, &json).as_bytes())
}

/// What was not done; with a monitor the second half.
fn not_done(
    session: &Session,
    fields: &FormFields,
    monitor: Option<MonitorId>,
    error: &ApiError,
) -> Response {
    let title = match monitor {
        Some(_) => "Watched, but not searched",
        None => "Nothing was done",
    };
    let text = fields.text(FIELD).unwrap_or_default();
    // With the same key: what was done is not done again.
    let page_key = fields.text(once::FIELD).unwrap_or_default();
    let back = links::with_query(&links::question(text), once::FIELD, page_key);
    let body = html! {
        (head(&html! {}, title, &html! {}, &html! { a class="button" href=(back) { "Back to the question" } }))
        @if let Some(monitor) = monitor {
            p class="notice" role="status" {
                a href=(links::monitor(monitor)) { "The monitor" } " is made: it alerts below " (entered(fields).map(amount).unwrap_or_default()) "."
            }
        }
        @if error.details().is_empty() {
            p class="notice bad" role="alert" { b { "Not done. " } (error.message()) }
        } @else {
            (faults(error, "Please correct:"))
        }
    };
    (error.status(), page(session, title, NavItem::Home, body)).into_response()
}
