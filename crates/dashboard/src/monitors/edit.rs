//! `/monitors/{id}/edit`: changes a monitor. The form, then what the change costs, then the change.
//! Only the last step stores something.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use farescan_sheets::draft::entered;
use farescan_sheets::numbers;
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::backtest::{self, Replay};
use super::edit_fields::{body_of, changes, fields_of};
use super::new_form::{self, MonitorForm, error_notice};
use super::one::own;
use super::{channel_choice, forecast, webhook};
use crate::channels;
use crate::failure::PageFailure;
use crate::form::{FormFields, SessionForm, token_field};
use crate::layout::{NavItem, page};
use crate::links;
use crate::once::{self, once_field, once_key};
use crate::parts;
use crate::session::Session;
use crate::suggestions::Suggestions;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::channels::Channel;
use farescan_core::contract::monitors::{Monitor, MonitorForecast, MonitorPreview};
use farescan_core::contract::{FieldError, ValidationError};
use farescan_core::monitors::preview;
use farescan_core::monitors::update::{self, FormUpdate};

/// The field with the time of the monitor's last change, as its form was shown.
const SEEN: &str = "seen";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/monitors/{id}/edit", get(show).post(check))
        .route("/monitors/{id}/change", post(store))
}

async fn show(session: Session, Path(id): Path<String>) -> Result<Response, PageFailure> {
    let monitor = own(&session, &id).await?;
    let fields = fields_of(&body_of(&monitor));
    form_page(&session, StatusCode::OK, &monitor, &fields, &[]).await
}

async fn form_page(
    session: &Session,
    status: StatusCode,
    monitor: &Monitor,
    fields: &FormFields,
    errors: &[FieldError],
) -> Result<Response, PageFailure> {
    let path = links::monitor(monitor.id);
    let seen = fields
        .text(SEEN)
        .map_or_else(|| monitor.updated_at.to_string(), str::to_owned);
    let form = new_form::markup(&MonitorForm {
        action: &format!("{path}/edit"),
        fields,
        errors,
        hidden: html! {
            (token_field(session))
            input type="hidden" name=(SEEN) value=(seen);
        },
        button: "Show what changes",
        suggestions: &Suggestions::read(session).await,
        channels: &channels::all(session).await?,
    });
    let body = html! {
        (parts::head(&html! { a href=(path) { (monitor.name) } }, "Change the monitor", &html! { "The next step shows what a month costs then. An empty field removes what it holds." }, &html! {}))
        (error_notice(errors))
        (form)
    };
    let page = page(session, "Change the monitor", NavItem::Monitors, body);
    Ok((status, page).into_response())
}

/// Shows what would change and its cost, or the form again with what is wrong.
async fn check(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let monitor = own(&session, &id).await?;
    if fields.text("step") == Some("edit") {
        return form_page(&session, StatusCode::OK, &monitor, &fields, &[]).await;
    }
    let previewed = match new_form::body(&fields) {
        Ok(body) => previewed(&session, &monitor, &body)
            .await
            .map(|previewed| (body, previewed)),
        Err(errors) => Err(errors.into()),
    };
    match previewed {
        Ok((body, previewed)) => {
            let replay = Replay::of_step(&session, &body, &fields).await?;
            let channels = channels::all(&session).await?;
            let (previewed, replay) = (previewed.as_ref(), replay.as_ref());
            Ok(confirm_page(
                &session, &monitor, &fields, &body, &channels, previewed, replay,
            ))
        }
        Err(error) if !error.details().is_empty() => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            form_page(&session, status, &monitor, &fields, error.details()).await
        }
        Err(error) => Err(error.into()),
    }
}

/// The forecast of the changed monitor. `None`: its next run cannot be planned, for a reason that
/// the change has nothing to do with, such as dates that have passed.
async fn previewed(
    session: &Session,
    monitor: &Monitor,
    body: &Map<String, Value>,
) -> Result<Option<MonitorPreview>, ApiError> {
    let _permits = session.submission_permits().await?;
    let guard = session.app().webhook_guard();
    let error = match preview::preview(session.context()?, guard, body).await {
        Ok(previewed) => return Ok(Some(previewed)),
        Err(error) => ApiError::from(error),
    };
    let patch = changes(&body_of(monitor), body);
    let is_touched = |detail: &FieldError| {
        let part = detail.field.split(['.', '[']).next().unwrap_or_default();
        let depends = ["alerts", "max_requests_per_month"].contains(&part);
        patch.contains_key(part) || depends && patch.contains_key("scan")
    };
    if error.details().is_empty() || error.details().iter().any(is_touched) {
        return Err(error);
    }
    Ok(None)
}

fn confirm_page(
    session: &Session,
    monitor: &Monitor,
    fields: &FormFields,
    wanted: &Map<String, Value>,
    channels: &[Channel],
    previewed: Option<&MonitorPreview>,
    replay: Option<&Replay>,
) -> Response {
    let path = links::monitor(monitor.id);
    let stored = body_of(monitor);
    let patch = changes(&stored, wanted);
    let body = html! {
        (parts::head(&html! { a href=(path) { (monitor.name) } " · step 2 of 2" }, "What changes", &html! {}, &html! {}))
        @if let Some(previewed) = previewed {
            @for warning in &previewed.schedule_warnings { p class="notice warn" { (warning) } }
        }
        (change_table(&stored, &patch, channels))
        @match previewed {
            Some(previewed) => { (forecast::cards(previewed, wanted, "Next runs", &html! {})) }
            None => {
                p class="notice warn" { "The next run cannot be planned, usually because its dates have passed, so its cost is unknown." }
            }
        }
        (backtest::section(replay, |controls| html! {
            form class="filters" method="post" action={ (path) "/edit#" (new_form::BACKTEST) } {
                (token_field(session))
                (new_form::entered(fields))
                (controls)
            }
        }))
        section class="card" {
            h2 { @if patch.is_empty() { "Nothing changes" } @else { "Save this?" } }
            p class="sub" { (cost_words(monitor, previewed)) " Saving bills nothing by itself." }
            div class="actions" {
                @if !patch.is_empty() {
                    form method="post" action={ (path) "/change" } {
                        (token_field(session))
                        (once_field())
                        input type="hidden" name=(SEEN) value=(fields.text(SEEN).unwrap_or_default());
                        input type="hidden" name="request" value=(Value::Object(patch.clone()).to_string());
                        button class="primary" type="submit" { "Save the changes" }
                    }
                }
                form method="post" action={ (path) "/edit" } {
                    (token_field(session))
                    (new_form::entered(fields))
                    button type="submit" name="step" value="edit" { "Change it again" }
                }
                a class="button" href=(path) { "Leave it as it is" }
            }
        }
    };
    let status = replay.map_or(StatusCode::OK, Replay::status);
    let page = page(session, "What changes", NavItem::Monitors, body);
    (status, page).into_response()
}

/// What a month costs, now and then.
fn cost_words(monitor: &Monitor, previewed: Option<&MonitorPreview>) -> String {
    let month = |forecast: &MonitorForecast| numbers::request_range(forecast.requests_per_month);
    let (now, then) = (
        monitor.forecast.as_ref().map(month),
        previewed.map(|previewed| month(&previewed.forecast)),
    );
    match (now, then) {
        (Some(now), Some(then)) if now == then => format!("A month bills {then}, as now."),
        (Some(now), Some(then)) => format!("A month bills {then}; now it is {now}."),
        (None, Some(then)) => format!("A month bills {then}."),
        (_, None) => "What a month bills is unknown.".to_owned(),
    }
}

fn change_table(
    stored: &Map<String, Value>,
    patch: &Map<String, Value>,
    channels: &[Channel],
) -> Markup {
    let cell = |name: &str, value: &Value| match name {
        "channels" => shown(&channel_choice::names(channels, value).into()),
        _ => shown(value),
    };
    html! {
        @if !patch.is_empty() {
            section class="card" {
                div class="scroll" tabindex="0" role="region" aria-label="Changes" {
                    table class="rows" {
                        thead { tr { th scope="col" { "Field" } th scope="col" { "Now" } th scope="col" { "Then" } } }
                        tbody {
                            @for (name, value) in patch {
                                tr {
                                    td { (field_name(name)) }
                                    td { (cell(name, stored.get(name).unwrap_or(&Value::Null))) }
                                    td { (cell(name, value)) }
                                }
                            }
                        }
                    }
                }
                @if patch.contains_key("scan") {
                    p class="hint" { "Another search begins anew: earlier prices are not compared with its own." }
                }
            }
        }
    }
}

fn shown(value: &Value) -> Markup {
    let text = match (value.get("cron"), value) {
        (Some(cron), _) => format!("{} ({})", entered(cron), entered(&value["timezone"])),
        (_, Value::Object(_) | Value::Array(_)) => {
            serde_json::to_string_pretty(value).unwrap_or_default()
        }
        _ => entered(value),
    };
    html! {
        @if text.is_empty() { span class="muted" { "none" } }
        @else if text.contains('\n') { pre tabindex="0" { (text) } }
        @else { (text) }
    }
}

fn field_name(field: &str) -> &'static str {
    match field {
        "name" => "Name",
        "schedule" => "Schedule",
        "scan" => "Search",
        "alerts" => "Rules",
        "channels" => "Channels",
        "webhook_url" => "Webhook",
        _ => "Most requests a month",
    }
}

/// Stores the change, unless somebody changed the monitor since its form was shown.
async fn store(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let monitor = own(&session, &id).await?;
    let patch = new_form::read_checked(&fields)?;
    let path = links::monitor(monitor.id);
    let missing = |field| ValidationError::missing(field, "the hidden field of the page's form");
    let seen = fields
        .text(SEEN)
        .and_then(|seen| seen.parse::<Timestamp>().ok());
    let seen = seen.ok_or_else(|| missing(SEEN))?;
    let key = once_key(&fields)?.ok_or_else(|| missing(once::FIELD))?;
    let _permits = session.submission_permits().await?;
    let guard = session.app().webhook_guard();
    let context = session.context()?;
    let updated = update::update_by_form(context, guard, monitor.id, &patch, seen, &key).await?;
    let FormUpdate::Stored(changed) = updated else {
        let monitor = own(&session, &id).await?;
        // The same change, of another page.
        if is_done(&monitor, &patch) {
            return Ok(Redirect::to(&path).into_response());
        }
        let channels = channels::all(&session).await?;
        return Ok(changed_meanwhile(&session, &monitor, &patch, &channels));
    };
    let title = format!("{} is changed", changed.name);
    Ok(
        webhook::secret_page(&session, &changed, &title, StatusCode::OK)
            .unwrap_or_else(|| Redirect::to(&path).into_response()),
    )
}

/// Whether the monitor is as the change wants it.
fn is_done(monitor: &Monitor, patch: &Map<String, Value>) -> bool {
    let stored = body_of(monitor);
    patch
        .iter()
        .all(|(name, value)| stored.get(name) == Some(value))
}

/// What the change would make of the monitor as it is now. It is checked and shown with its cost
/// again before it can be saved.
fn changed_meanwhile(
    session: &Session,
    monitor: &Monitor,
    patch: &Map<String, Value>,
    channels: &[Channel],
) -> Response {
    let path = links::monitor(monitor.id);
    let stored = body_of(monitor);
    let mut wanted = stored.clone();
    wanted.extend(patch.clone());
    let fields = fields_of(&wanted);
    let body = html! {
        (parts::head(&html! { a href=(path) { (monitor.name) } }, "Nothing was saved", &html! {}, &html! {}))
        div class="notice warn" role="alert" {
            p { "The monitor was changed since you opened its form, by another page or a program. Below is what your change would make of it now." }
        }
        (change_table(&stored, patch, channels))
        form method="post" action={ (path) "/edit" } class="actions" {
            (token_field(session))
            (new_form::entered(&fields))
            input type="hidden" name=(SEEN) value=(monitor.updated_at);
            button class="primary" type="submit" name="step" value="check" { "Show what it costs" }
            button type="submit" name="step" value="edit" { "Change it again" }
            a class="button" href=(path) { "Leave it as it is" }
        }
    };
    let page = page(session, "Nothing was saved", NavItem::Monitors, body);
    (StatusCode::CONFLICT, page).into_response()
}
