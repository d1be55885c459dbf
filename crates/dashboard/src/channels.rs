//! `/channels`: where a person hears of alerts; add one, confirm its address, test it, pause it, remove it.

mod joining;
mod phone;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use farescan_sheets::channel::{kind_words, list};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::failure::{PageFailure, correctable};
use super::form::{FormFields, SessionForm, token_field};
use super::layout::{NavItem, page};
use super::links;
use super::once::{once_field, once_key};
use super::parts::{ConfirmationPage, empty_state, faults};
use super::session::Session;
use super::sheet;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::channels::{confirm, create, delete, read, send_test, update};
use farescan_core::commands::CommandError;
use farescan_core::contract::channels::{
    Channel, ChannelKind, ChannelPause, ChannelStatus, ChannelsQuery, NoticePriority,
};
use farescan_core::ids::{ChannelId, Kind};

const PATH: &str = links::CHANNELS;
/// Channels on the page: more than a caller may have.
const MOST: &str = "500";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, get(show).post(add))
        .route(
            phone::ACTION,
            get(async || Redirect::to(PATH)).post(phone::add),
        )
        .route("/channels/{id}/monitors", post(joining::join))
        .route("/channels/{id}/confirm", post(confirm_address))
        .route("/channels/{id}/test", post(test))
        .route("/channels/{id}/status", post(set_status))
        .route("/channels/{id}/remove", post(remove))
}

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

async fn show(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let of = query.text(joining::OF).and_then(|id| id.parse().ok());
    render(&session, &FormFields::default(), of, None).await
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
        Some(channel) => joining::card(session, channel).await?,
        None => html! {},
    };
    let status = refused.as_ref().map_or(StatusCode::OK, ApiError::status);
    let body = html! {
        div class="head" {
            div {
                h1 { "Channels" }
                p class="sub" { "Where you hear of alerts. A new monitor of these pages or of the command line names each active channel, unless you choose others." }
            }
        }
        @if let Some(error) = &refused {
            @if error.details().is_empty() {
                p class="notice bad" role="alert" { "Nothing was done: " (error.message()) }
            } @else {
                (faults(error, "Nothing was done. Please correct:"))
            }
        }
        (joining)
        (phone::card(session, &channels))
        section class="card" {
            @if channels.is_empty() {
                (empty_state(&html! { p { "No channel yet: alerts are only shown here." } }))
            } @else {
                (sheet::table_with(&list(&channels), |place| buttons(session, &channels[place])))
            }
        }
        (new_channel(session, entered))
    };
    Ok((status, page(session, "Channels", NavItem::Channels, body)).into_response())
}

fn buttons(session: &Session, channel: &Channel) -> Markup {
    let path = format!("{PATH}/{}", channel.id);
    let (label, status) = match channel.status {
        ChannelStatus::Active => ("Pause", ChannelStatus::Paused),
        ChannelStatus::Paused => ("Resume", ChannelStatus::Active),
    };
    let wants_code = matches!(
        channel.status_reason,
        Some(ChannelPause::Unconfirmed | ChannelPause::Unsubscribed)
    );
    html! {
        @if wants_code {
            form method="post" action={ (path) "/confirm" } {
                (token_field(session))
                input name="code" aria-label={ "Code for " (channel.name) } placeholder="Code of the mail" required maxlength="16" size="12" autocomplete="one-time-code" spellcheck="false" autocapitalize="characters";
                button class="primary" type="submit" { "Confirm" }
            }
            form method="post" action={ (path) "/confirm" } { (token_field(session)) button type="submit" { "Mail another code" } }
        } @else {
            (test_form(session, channel))
            @if channel.status == ChannelStatus::Active { a class="button" href=(joining::path(channel.id)) { "Monitors" } }
            form method="post" action={ (path) "/status" } {
                (token_field(session))
                input type="hidden" name="status" value=(status.as_str());
                button type="submit" { (label) }
            }
        }
        (ConfirmationPage::new(&format!("{path}/remove"), "Remove", "Remove the channel", html! {
            p { "Nothing is sent to it any more. This costs nothing." }
        }).destructive().render(session))
    }
}

/// The button that sends a test.
pub(super) fn test_form(session: &Session, channel: &Channel) -> Markup {
    html! {
        form method="post" action={ (PATH) "/" (channel.id) "/test" } { (token_field(session)) (once_field()) button type="submit" { "Test" } }
    }
}

fn new_channel(session: &Session, entered: &FormFields) -> Markup {
    let text = |name: &str| entered.text(name).unwrap_or_default().to_owned();
    let guard = session.app().webhook_guard();
    let target = if guard.check_kind(ChannelKind::Email).is_ok() {
        "The URL of the topic or of the incoming webhook, or a mail address, which gets a code first. It is stored sealed."
    } else {
        "The URL of the topic, or of the incoming webhook. It is stored sealed. This server has no mail server, so a mail address is not possible."
    };
    html! {
        section class="card" {
            h2 { "Another channel" }
            form class="stack" method="post" action=(PATH) {
                (token_field(session))
                (once_field())
                (field("name", "Name", html! { input id="name" name="name" value=(text("name")) required maxlength="100" placeholder="my phone"; }, ""))
                (field("kind", "Kind", html! {
                    select id="kind" name="kind" {
                        @for kind in ChannelKind::ALL.iter().filter(|kind| guard.check_kind(**kind).is_ok()) {
                            option value=(kind.as_str()) selected[text("kind") == kind.as_str()] { (kind_words(*kind)) }
                        }
                    }
                }, "ntfy reaches a phone by its app. Slack's form also fits Mattermost, Rocket.Chat and Discord."))
                (field("url", "Target", html! { input id="url" name="url" required maxlength="2000" autocomplete="off" spellcheck="false" placeholder="https://ntfy.sh/fares-3f9a2c71d0"; }, target))
                details class="fold" {
                    summary { "Token, quiet hours, daily message" }
                    (field("token", "Access token of a protected topic", html! { input id="token" name="token" type="password" autocomplete="off" maxlength="500"; }, ""))
                    (field("least_priority", "Which alerts", html! {
                        select id="least_priority" name="least_priority" {
                            option value="" { "all" }
                            option value=(NoticePriority::Normal.as_str()) selected[text("least_priority") == "normal"] { "prices, not that something is gone" }
                            option value=(NoticePriority::High.as_str()) selected[text("least_priority") == "high"] { "only what you wait for" }
                        }
                    }, ""))
                    (field("quiet_from", "Quiet from", html! { input id="quiet_from" name="quiet_from" type="time" value=(text("quiet_from")); }, ""))
                    (field("quiet_until", "Quiet until", html! { input id="quiet_until" name="quiet_until" type="time" value=(text("quiet_until")); }, ""))
                    (field("digest_at", "One message a day at", html! { input id="digest_at" name="digest_at" type="time" value=(text("digest_at")); }, ""))
                    (field("timezone", "Time zone", html! { input id="timezone" name="timezone" value=(text("timezone")) placeholder="UTC"; }, ""))
                }
                button class="primary" type="submit" { "Add" }
            }
        }
    }
}

fn field(name: &str, label: &str, input: Markup, hint: &str) -> Markup {
    html! {
        div class="field" {
            label for=(name) { (label) }
            (input)
            @if !hint.is_empty() { span class="hint" { (hint) } }
        }
    }
}

/// The body of the API, as it was entered.
fn body(entered: &FormFields) -> Map<String, Value> {
    let given = |name: &str| entered.text(name).filter(|text| !text.is_empty());
    let names = ["name", "kind", "url", "token", "least_priority", "timezone"];
    let fields = names
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), json!(given(name)?))));
    let mut body: Map<String, Value> = fields.collect();
    let mut notify = Map::new();
    let quiet = [("from", "quiet_from"), ("until", "quiet_until")];
    let quiet: Map<String, Value> = quiet
        .into_iter()
        .filter_map(|(name, field)| Some((name.to_owned(), json!(given(field)?))))
        .collect();
    if !quiet.is_empty() {
        notify.insert("quiet_hours".to_owned(), quiet.into());
    }
    if let Some(at) = given("digest_at") {
        notify.insert("digest_at".to_owned(), json!(at));
    }
    if !notify.is_empty() {
        body.insert("notify".to_owned(), notify.into());
    }
    body
}

async fn add(form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let key = once_key(&fields)?;
    let guard = session.app().webhook_guard();
    let added = create(session.context()?, guard, &body(&fields), key.as_ref()).await;
    let added = added.map(|added| joining::path(added.response.id));
    answer(&session, &fields, added).await
}

/// Goes to a path after success; a refusal that a person can mend is shown with what was entered.
async fn answer(
    session: &Session,
    entered: &FormFields,
    done: Result<String, CommandError>,
) -> Result<Response, PageFailure> {
    match correctable(done)? {
        Ok(path) => Ok(Redirect::to(&path).into_response()),
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
    let confirmed = confirmed.map(|channel| joining::path(channel.id));
    answer(&form.session, &FormFields::default(), confirmed).await
}

async fn set_status(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let status = form.fields.text("status").unwrap_or_default();
    let patch = Map::from_iter([("status".to_owned(), json!(status))]);
    let guard = form.session.app().webhook_guard();
    update(form.session.context()?, guard, own(&id)?, &patch).await?;
    Ok(Redirect::to(PATH).into_response())
}

async fn remove(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let removed = delete(form.session.context()?, own(&id)?).await;
    let removed = removed.map(|()| PATH.to_owned());
    answer(&form.session, &FormFields::default(), removed).await
}
