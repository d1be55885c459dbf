//! `/channels`: where a person hears of alerts; add one, confirm its address, test it, pause it, remove it.

mod entry;
mod joining;
mod of_monitor;
mod one_step;
mod phone;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use farescan_ask::MAX_CHARS;
use farescan_sheets::channel::list;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::failure::{PageFailure, correctable};
use super::form::{FormFields, SessionForm, token_field};
use super::layout::{NavItem, page};
use super::links;
use super::once::{once_field, once_key};
use super::parts::{self, ConfirmationPage, empty_state, faults};
use super::session::Session;
use super::sheet;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::channels::{confirm, create, delete, read, send_test, update};
use farescan_core::commands::CommandError;
use farescan_core::contract::channels::{Channel, ChannelPause, ChannelStatus, ChannelsQuery};
use farescan_core::ids::{ChannelId, Kind};

const PATH: &str = links::CHANNELS;
const PHONE: &str = "/channels/phone";
/// Channels on the page: more than a caller may have.
const MOST: &str = "500";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, get(show).post(add))
        .route(PHONE, get(async || Redirect::to(PATH)).post(phone::add))
        .route("/channels/{id}/monitors", post(joining::join))
        .route("/channels/{id}/monitor", post(of_monitor::add))
        .route("/channels/{id}/confirm", post(confirm_address))
        .route("/channels/{id}/test", post(test))
        .route("/channels/{id}/status", post(set_status))
        .route("/channels/{id}/remove", post(remove))
}

pub(super) use of_monitor::notice as notice_of_monitor;

/// The channels of the caller that receive something now.
pub(super) async fn active(session: &Session) -> Result<Vec<Channel>, ApiError> {
    of_caller(session, &[("status", ChannelStatus::Active.as_str())]).await
}

/// All channels of the caller, the newest first.
pub(super) async fn all(session: &Session) -> Result<Vec<Channel>, ApiError> {
    of_caller(session, &[]).await
}

/// The channels whose messages fail, or that are paused because they did (channels.md, rule 17).
pub(super) async fn failing(session: &Session) -> Result<Vec<Channel>, ApiError> {
    let mut channels = all(session).await?;
    channels.retain(|channel| match channel.status_reason {
        None => channel.failing_since.is_some(),
        Some(reason) => matches!(reason, ChannelPause::Failing | ChannelPause::Gone),
    });
    Ok(channels)
}

async fn of_caller(session: &Session, filter: &[(&str, &str)]) -> Result<Vec<Channel>, ApiError> {
    let Some(tenant) = session.tenant() else {
        return Ok(Vec::new());
    };
    let pairs = filter.iter().copied().chain([("limit", MOST)]);
    let query = ChannelsQuery::from_query(pairs)?;
    Ok(read::channels(session.pool()?, tenant, &query).await?.data)
}

/// Nothing else of the query is taken: a link enters no settings of a channel.
async fn show(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let of = query.text(joining::OF).and_then(|id| id.parse().ok());
    let question = question(&query).map(|text| (links::QUESTION.to_owned(), text.to_owned()));
    let monitor =
        of_monitor::origin(&query).map(|id| (of_monitor::MONITOR.to_owned(), id.to_string()));
    let entered = FormFields::from_pairs(question.into_iter().chain(monitor).collect());
    render(&session, &entered, of, None).await
}

/// The question in words from whose page a person came.
fn question(entered: &FormFields) -> Option<&str> {
    let text = entered.text(links::QUESTION);
    text.filter(|text| text.chars().count() <= MAX_CHARS)
}

/// A path of these pages that keeps the page from which a person came.
fn with_origin(path: &str, entered: &FormFields) -> String {
    let path = match question(entered) {
        Some(text) => links::with_query(path, links::QUESTION, text),
        None => path.to_owned(),
    };
    match of_monitor::origin(entered) {
        Some(monitor) if path.starts_with(PATH) => {
            links::with_query(&path, of_monitor::MONITOR, &monitor.to_string())
        }
        _ => path,
    }
}

/// The page from which a person came, for a form: a question or a monitor.
fn origin_fields(entered: &FormFields) -> Markup {
    html! {
        @if let Some(text) = question(entered) { input type="hidden" name=(links::QUESTION) value=(text); }
        @if let Some(monitor) = of_monitor::origin(entered) { input type="hidden" name=(of_monitor::MONITOR) value=(monitor); }
    }
}

/// Where a person goes on after a channel was made or confirmed: to the monitor from which they came, or
/// to the channel's monitors.
fn after(entered: &FormFields, channel: &Channel) -> String {
    let monitor = of_monitor::origin(entered);
    monitor.map_or_else(|| joining::path(channel.id), links::monitor)
}

/// The button that leads back to the question or monitor.
fn back(entered: &FormFields, is_primary: bool) -> Markup {
    html! {
        @if let Some(text) = question(entered) {
            a class={ "button clip" @if is_primary { " primary" } } href=(links::question(text)) { "Back to “" (text) "”" }
        }
        @if let Some(monitor) = of_monitor::origin(entered) {
            a class={ "button" @if is_primary { " primary" } } href=(links::monitor(monitor)) { "Back to the monitor" }
        }
    }
}

/// The page, with the monitors of a channel, a notice of what was not possible, and what was entered.
async fn render(
    session: &Session,
    entered: &FormFields,
    of: Option<ChannelId>,
    refused: Option<ApiError>,
) -> Result<Response, PageFailure> {
    let channels = all(session).await?;
    let of = channels
        .iter()
        .find(|channel| Some(channel.id) == of && channel.status == ChannelStatus::Active);
    let joining = match of {
        Some(channel) => joining::card(session, entered, channel).await?,
        None => html! {},
    };
    let status = refused.as_ref().map_or(StatusCode::OK, ApiError::status);
    let sub = "Where you hear of alerts. A new monitor of these pages or of the command line names each active channel, unless you choose others.";
    let body = html! {
        (parts::head(&html! {}, "Channels", &html! { (sub) }, &back(entered, of.is_some())))
        @if let Some(error) = &refused {
            @if error.details().is_empty() {
                p class="notice bad" role="alert" { "Nothing was done: " (error.message()) }
            } @else {
                (faults(error, "Nothing was done. Please correct:"))
            }
        }
        (joining)
        section class="card" {
            @if channels.is_empty() {
                (empty_state(&html! { p { "No channel yet: alerts stand on the page “" a href=(links::ALERTS) { "Alerts" } "” only." } }))
            } @else {
                (sheet::table_with(&list(&channels), |place| buttons(session, entered, &channels[place])))
            }
        }
        div class="grid2" {
            (one_step::mail(session, entered, &channels))
            (one_step::phone(session, entered, &channels))
        }
        (entry::form(session, entered))
    };
    Ok((status, page(session, "Channels", NavItem::Channels, body)).into_response())
}

fn buttons(session: &Session, entered: &FormFields, channel: &Channel) -> Markup {
    let path = format!("{PATH}/{}", channel.id);
    let (label, status) = match channel.status {
        ChannelStatus::Active => ("Pause", ChannelStatus::Paused),
        ChannelStatus::Paused => ("Resume", ChannelStatus::Active),
    };
    html! {
        @if wants_code(channel) {
            (code_forms(session, entered, channel))
        } @else {
            (test_form(session, channel))
            @if channel.status == ChannelStatus::Active { a class="button" href=(with_origin(&joining::path(channel.id), entered)) { "Monitors" } }
            form method="post" action={ (path) "/status" } {
                (token_field(session))
                (origin_fields(entered))
                input type="hidden" name="status" value=(status.as_str());
                button type="submit" { (label) }
            }
        }
        (ConfirmationPage::new(&format!("{path}/remove"), "Remove", "Remove the channel", html! {
            p { "Nothing is sent to it any more. This costs nothing." }
        }).destructive().fields(origin_fields(entered)).render(session))
    }
}

/// Whether the channel is an address that waits for its code.
fn wants_code(channel: &Channel) -> bool {
    matches!(
        channel.status_reason,
        Some(ChannelPause::Unconfirmed | ChannelPause::Unsubscribed)
    )
}

/// The forms that take the code, and mail another.
fn code_forms(session: &Session, entered: &FormFields, channel: &Channel) -> Markup {
    let path = format!("{PATH}/{}/confirm", channel.id);
    html! {
        form class="actions" method="post" action=(path) {
            (token_field(session))
            (origin_fields(entered))
            input name="code" aria-label={ "Code for " (channel.name) } placeholder="Code of the mail" required maxlength="16" size="12" autocomplete="one-time-code" spellcheck="false" autocapitalize="characters";
            button class="primary" type="submit" { "Confirm" }
        }
        form method="post" action=(path) { (token_field(session)) (origin_fields(entered)) button type="submit" { "Mail another code" } }
    }
}

/// The button that sends a test.
pub(super) fn test_form(session: &Session, channel: &Channel) -> Markup {
    html! {
        form method="post" action={ (PATH) "/" (channel.id) "/test" } { (token_field(session)) (once_field()) button type="submit" { "Test" } }
    }
}

/// Makes the channel of a form, once for each key of a page.
async fn created(
    session: &Session,
    fields: &FormFields,
) -> Result<Result<Channel, CommandError>, PageFailure> {
    let key = once_key(fields)?;
    let guard = session.app().webhook_guard();
    let body = entry::body(fields);
    let made = create(session.context()?, guard, &body, key.as_ref()).await;
    Ok(made.map(|made| made.response))
}

async fn add(form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let made = created(&session, &fields).await?;
    if let (Ok(channel), Some(monitor)) = (&made, of_monitor::origin(&fields)) {
        of_monitor::join(&session, &fields, monitor, channel.id).await?;
    }
    let made = made.map(|channel| after(&fields, &channel));
    answer(&session, &fields, made).await
}

/// Goes to a path after success; a refusal that a person can mend is shown with what was entered.
async fn answer(
    session: &Session,
    entered: &FormFields,
    done: Result<String, CommandError>,
) -> Result<Response, PageFailure> {
    match correctable(done)? {
        Ok(path) => Ok(Redirect::to(&with_origin(&path, entered)).into_response()),
        Err(error) => render(session, entered, None, Some(error)).await,
    }
}

fn own(id: &str) -> Result<ChannelId, PageFailure> {
    id.parse().map_err(|_| Kind::Channel.into())
}

async fn test(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let key = once_key(&form.fields)?;
    let sent = send_test(form.session.context()?, own(&id)?, key.as_ref()).await;
    let sent = sent.map(|sent| links::delivery(sent.response.id));
    answer(&form.session, &FormFields::default(), sent).await
}

/// Confirms with the entered code; without one another is mailed.
async fn confirm_address(
    Path(id): Path<String>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    let code = form.fields.text("code").map(|code| json!(code));
    let body: Map<String, Value> = code
        .map(|code| ("code".to_owned(), code))
        .into_iter()
        .collect();
    let guard = form.session.app().webhook_guard();
    let confirmed = confirm(form.session.context()?, guard, own(&id)?, &body).await;
    let confirmed = confirmed.map(|channel| after(&form.fields, &channel));
    answer(&form.session, &form.fields, confirmed).await
}

async fn set_status(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let status = form.fields.text("status").unwrap_or_default();
    let patch = Map::from_iter([("status".to_owned(), json!(status))]);
    let guard = form.session.app().webhook_guard();
    update(form.session.context()?, guard, own(&id)?, &patch).await?;
    Ok(Redirect::to(&with_origin(PATH, &form.fields)).into_response())
}

async fn remove(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let removed = delete(form.session.context()?, own(&id)?).await;
    let removed = removed.map(|()| PATH.to_owned());
    answer(&form.session, &form.fields, removed).await
}
