//! `/monitors/new`: a form, then its cost, then the monitor. Only the last step stores something.

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use farescan_sheets::draft::ScanDraft;
use farescan_sheets::monitor::same_as;
use farescan_sheets::numbers;
use farescan_sheets::rule::sentence;
use farescan_sheets::trip;
use maud::html;
use serde_json::{Map, Value};

use super::backtest::{self, Replay};
use super::new_form::MonitorForm;
use super::{NEW_PATH, PATH, channel_choice, edit_fields, forecast, new_form, webhook};
use crate::channels;
use crate::failure::PageFailure;
use crate::form::{FormFields, SessionForm, token_field};
use crate::layout::{NavItem, page};
use crate::links;
use crate::once::{once_field, once_field_for, once_key, once_of};
use crate::parts;
use crate::scans as scan_pages;
use crate::session::Session;
use crate::suggestions::Suggestions;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::RawJson;
use farescan_core::contract::channels::Channel;
use farescan_core::contract::monitors::{Monitor, MonitorPreview, MonitorsQuery, Rule};
use farescan_core::monitors::{create, preview, read, repeated};

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(NEW_PATH, get(show).post(check))
        .route(PATH, post(store))
}

/// `like` names a scan to repeat: its cost is shown at once, and the form only where something is
/// missing.
async fn show(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let Some(id) = query.text("like") else {
        let channels = channels::all(&session).await?;
        let fields = channel_choice::with_active(query, &channels);
        return form_page(&session, StatusCode::OK, &fields, None).await;
    };
    let scan = scan_pages::read_own(&session, id).await?;
    let name = trip::title(scan.endpoint, &scan.request, &scan.sweep);
    let like = edit_fields::body_like(&name, ScanDraft::from(&scan));
    let fields = edit_fields::fields_of(&like).with(once_of(&query));
    let channels = channels::all(&session).await?;
    let fields = channel_choice::with_active(fields, &channels);
    let body = new_form::body(&fields).unwrap_or_default();
    match previewed(&session, &body).await {
        Ok(previewed) => {
            let same = same(&session, &body).await?;
            Ok(cost_page(
                &session,
                &fields,
                &body,
                &channels,
                &previewed,
                same.as_ref(),
                None,
            ))
        }
        Err(error) if !error.details().is_empty() => {
            form_page(&session, StatusCode::OK, &fields, Some(&error)).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Shows what the monitor would cost, or the form again with what is wrong.
async fn check(form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    if fields.text("step") == Some("edit") {
        return form_page(&session, StatusCode::OK, &fields, None).await;
    }
    let previewed = match new_form::body(&fields) {
        Ok(body) => previewed(&session, &body)
            .await
            .map(|previewed| (body, previewed)),
        Err(errors) => Err(errors.into()),
    };
    match previewed {
        Ok((body, previewed)) => {
            let replay = Replay::of_step(&session, &body, &fields).await?;
            let channels = channels::all(&session).await?;
            let (same, replay) = (same(&session, &body).await?, replay.as_ref());
            Ok(cost_page(
                &session,
                &fields,
                &body,
                &channels,
                &previewed,
                same.as_ref(),
                replay,
            ))
        }
        Err(error) if !error.details().is_empty() => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            form_page(&session, status, &fields, Some(&error)).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn previewed(
    session: &Session,
    body: &Map<String, Value>,
) -> Result<MonitorPreview, ApiError> {
    let _permits = session.submission_permits().await?;
    let guard = session.app().webhook_guard();
    Ok(preview::preview(session.context()?, guard, body).await?)
}

/// That the caller has such a monitor, among the newest.
async fn same(session: &Session, body: &Map<String, Value>) -> Result<Option<String>, PageFailure> {
    let Some(tenant) = session.tenant() else {
        return Ok(None);
    };
    let context = session.context()?;
    let query = MonitorsQuery::from_query([("limit", "500")])?;
    let stored = read::monitors(session.pool()?, context.ring, tenant, &query, context.now);
    Ok(same_as(&stored.await?.data, body))
}

async fn form_page(
    session: &Session,
    status: StatusCode,
    fields: &FormFields,
    error: Option<&ApiError>,
) -> Result<Response, PageFailure> {
    let errors = error.map_or(&[][..], ApiError::details);
    let form = new_form::markup(&MonitorForm {
        action: NEW_PATH,
        fields,
        errors,
        hidden: html! { (token_field(session)) (once_field()) },
        button: "Show the cost of a month",
        suggestions: &Suggestions::read(session).await,
        channels: &channels::all(session).await?,
    });
    let body = html! {
        (parts::head(&html! { a href=(PATH) { "Monitors" } }, "New monitor", &html! { "A scan that repeats. The next step shows what a month costs." }, &html! {}))
        (new_form::error_notice(errors))
        (form)
    };
    let page = page(session, "New monitor", NavItem::Monitors, body);
    Ok((status, page).into_response())
}

fn cost_page(
    session: &Session,
    fields: &FormFields,
    body: &Map<String, Value>,
    channels: &[Channel],
    previewed: &MonitorPreview,
    same: Option<&String>,
    replay: Option<&Replay>,
) -> Response {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let scan = serde_json::value::to_raw_value(&body.get("scan")).map(RawJson::from);
    let month = numbers::request_range(previewed.forecast.requests_per_month);
    let alerts = alerts(body);
    let request = serde_json::to_string(body).unwrap_or_default();
    let pretty = serde_json::to_string_pretty(body).unwrap_or_default();
    let json = html! {
        details class="fold" {
            summary { "The request as JSON" }
            pre tabindex="0" { (pretty) }
        }
    };
    let cards = forecast::cards(previewed, body, "Next runs", &json);
    let body = html! {
        (parts::head(&html! { a href=(PATH) { "Monitors" } " · step 2 of 2" }, text("name"), &html! { @if let Ok(scan) = &scan { (trip::monitor_scan(scan)) } }, &html! {}))
        @for warning in previewed.schedule_warnings.iter().chain(same) {
            p class="notice warn" { (warning) }
        }
        (cards)
        (backtest::section(replay, |controls| html! {
            form class="filters" method="post" action={ (NEW_PATH) "#" (new_form::BACKTEST) } {
                (token_field(session))
                (new_form::entered(fields))
                (controls)
            }
        }))
        section class="card" {
            h2 { "Create this monitor?" }
            p class="sub" { "Its runs bill " b { (month) } " in a month. Your key is stored, sealed, until you pause or delete the monitor." }
            p class="sub" { (alert_words(&alerts)) }
            p class="sub" { (channel_words(body, channels)) }
            div class="actions" {
                form method="post" action=(PATH) {
                    (token_field(session))
                    (once_field_for(fields, &request))
                    input type="hidden" name="request" value=(request);
                    button class="primary" type="submit" { "Create for " (month) " a month" }
                }
                form method="post" action=(NEW_PATH) {
                    (token_field(session))
                    (new_form::entered(fields))
                    button type="submit" name="step" value="edit" { "Change it" }
                }
            }
        }
    };
    let status = replay.map_or(StatusCode::OK, Replay::status);
    let page = page(session, "New monitor", NavItem::Monitors, body);
    (status, page).into_response()
}

/// The rules of a checked body.
fn alerts(body: &Map<String, Value>) -> Vec<Rule> {
    let rules = body.get("alerts").cloned().unwrap_or_default();
    serde_json::from_value(rules).unwrap_or_default()
}

fn alert_words(alerts: &[Rule]) -> String {
    let rules: Vec<_> = alerts.iter().map(|rule| sentence(rule, None)).collect();
    if rules.is_empty() {
        "It has no alert: it only collects prices.".to_owned()
    } else {
        format!("Alerts: {}.", rules.join("; "))
    }
}

/// Who hears of the alerts.
fn channel_words(body: &Map<String, Value>, channels: &[Channel]) -> String {
    let ids = body.get("channels").unwrap_or(&Value::Null);
    match channel_choice::names(channels, ids) {
        none if none.is_empty() => "No channel hears of its alerts.".to_owned(),
        names => format!("Alerts go to {names}."),
    }
}

async fn store(form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let body = new_form::read_checked(&fields)?;
    let key = once_key(&fields)?;
    let _permits = session.submission_permits().await?;
    let context = session.submit_context().await?;
    let guard = session.app().webhook_guard();
    let mut created = create::create(context, guard, &body, key.as_ref()).await?;
    if created.replayed {
        // The first press of a double click has shown it, on a page that nobody saw.
        let secret = repeated::created_secret(session.context()?, &created.response).await?;
        created.response.webhook_secret = secret;
    }
    Ok(created_page(&session, &created.response))
}

/// The new monitor; with a webhook first its secret.
fn created_page(session: &Session, monitor: &Monitor) -> Response {
    let title = format!("{} is created", monitor.name);
    webhook::secret_page(session, monitor, &title, StatusCode::CREATED)
        .unwrap_or_else(|| Redirect::to(&links::monitor(monitor.id)).into_response())
}
