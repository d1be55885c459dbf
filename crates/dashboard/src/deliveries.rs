//! `/deliveries`: events sent to webhooks, each with its tries.

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use farescan_sheets::numbers;
use maud::{Markup, html};

use super::failure::PageFailure;
use super::form::{FormFields, SessionForm};
use super::layout::{NavItem, page};
use super::links;
use super::once::{once_field, once_key};
use super::parts::{self, ConfirmationPage, Tone};
use super::reported::ReportedMonitors;
use super::session::Session;
use farescan_core::app::AppState;
use farescan_core::contract::webhooks::{
    DeliveriesQuery, Delivery, DeliveryDetail, DeliveryPage, DeliveryReason, DeliveryStatus,
    DeliveryTry, TryError,
};
use farescan_core::ids::DeliveryId;
use farescan_core::monitors::deliveries::resend_delivery;
use farescan_core::webhooks::read;

const PATH: &str = links::DELIVERIES;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, get(list))
        .route("/deliveries/{id}", get(one))
        .route("/deliveries/{id}/resend", post(resend))
}

async fn list(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let given = || query.pairs().filter(|(_, text)| !text.is_empty());
    let filter = DeliveriesQuery::from_query(given())?;
    let deliveries = match session.tenant() {
        Some(tenant) => read::deliveries(session.pool()?, tenant, &filter)
            .await?
            .ok_or_else(|| PageFailure::not_found("monitor"))?,
        None => DeliveryPage {
            data: Vec::new(),
            next_cursor: None,
        },
    };
    let monitors = match session.tenant() {
        Some(tenant) => {
            let ids = deliveries
                .data
                .iter()
                .filter_map(|delivery| delivery.monitor_id);
            ReportedMonitors::read(&session, tenant, ids).await?
        }
        None => ReportedMonitors::default(),
    };
    let is_filtered = filter.monitor_id.is_some() || filter.status.is_some();
    let here = parts::path_with(PATH, given().filter(|(name, _)| *name != "cursor"));
    let body = html! {
        div class="head" {
            div {
                h1 { "Deliveries" }
                p class="sub" {
                    "Events sent to the webhooks of your monitors, kept for 90 days after their end."
                    @if let Some(monitor) = filter.monitor_id {
                        " Of one " a href=(links::monitor(monitor)) { "monitor" } "; " a href=(PATH) { "show all" } "."
                    }
                }
            }
            div class="actions" { a class="button" href=(links::ALERTS) { "Alerts" } }
        }
        (status_filter(&filter))
        section class="card" {
            @if deliveries.data.is_empty() {
                (empty(is_filtered))
            } @else {
                div class="scroll" tabindex="0" role="region" aria-label="Deliveries" { (table(&deliveries.data, Some(&monitors))) }
                (parts::next_page(&here, deliveries.next_cursor.as_deref()))
            }
        }
    };
    Ok(page(&session, "Deliveries", NavItem::Alerts, body))
}

fn status_filter(filter: &DeliveriesQuery) -> Markup {
    let base = filter.monitor_id.map_or_else(
        || PATH.to_owned(),
        |monitor| parts::with_query(PATH, "monitor_id", &monitor.to_string()),
    );
    html! {
        nav class="tabs" aria-label="Status" {
            a href=(base) aria-current=[filter.status.is_none().then_some("true")] { "All" }
            @for status in DeliveryStatus::ALL {
                a href=(parts::with_query(&base, "status", status.as_str())) aria-current=[(filter.status == Some(*status)).then_some("true")] { (status_name(*status)) }
            }
        }
    }
}

fn empty(is_filtered: bool) -> Markup {
    parts::empty_state(&html! {
        @if is_filtered {
            p { "No delivery is in this state." }
            a class="button" href=(PATH) { "All deliveries" }
        } @else {
            p { "Nothing was sent yet. A monitor with a webhook sends its alerts; a test on its page shows whether the receiver answers." }
            a class="button primary" href=(links::MONITORS) { "Monitors" }
        }
    })
}

/// Deliveries as rows; with their `monitors` also the next try, and each one's monitor and trip.
pub(super) fn table(deliveries: &[Delivery], monitors: Option<&ReportedMonitors>) -> Markup {
    html! {
        table class="rows" {
            thead {
                tr {
                    th scope="col" { "Event" }
                    th scope="col" { "Occurred" }
                    th scope="col" { "Status" }
                    th scope="col" class="num" { "Tries" }
                    @if monitors.is_some() { th scope="col" { "Next try" } th scope="col" { "Monitor" } }
                }
            }
            tbody {
                @for delivery in deliveries {
                    tr {
                        td { a href=(links::delivery(delivery.id)) { (delivery.event_type) } }
                        td class="nowrap" { (parts::time(delivery.created_at)) }
                        td { (status(delivery)) }
                        td class="num" { (delivery.try_count) }
                        @if let Some(monitors) = monitors {
                            td class="nowrap" { @match delivery.next_try_at { Some(at) => { (parts::time(at)) } None => { span class="muted" { "–" } } } }
                            td {
                                @match delivery.monitor_id {
                                    Some(id) => {
                                        (monitors.link(id))
                                        div class="sub" { (monitors.trip(id).unwrap_or_default()) }
                                    }
                                    None => { span class="muted" { "–" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The header with the delivery's id.
fn id_header(delivery: &Delivery) -> &'static str {
    if delivery.channel_id.is_some() {
        "farescan-delivery"
    } else {
        "webhook-id"
    }
}

const fn status_name(status: DeliveryStatus) -> &'static str {
    match status {
        DeliveryStatus::Pending => "Pending",
        DeliveryStatus::Delivered => "Delivered",
        DeliveryStatus::Failed => "Failed",
    }
}

fn status(delivery: &Delivery) -> Markup {
    let tone = match delivery.status {
        DeliveryStatus::Pending => Tone::Info,
        DeliveryStatus::Delivered => Tone::Good,
        DeliveryStatus::Failed => Tone::Bad,
    };
    html! {
        (parts::chip(tone, status_name(delivery.status)))
        @if let Some(reason) = delivery.reason { " " span class="muted" { (reason_words(reason)) } }
    }
}

pub(super) const fn reason_words(reason: DeliveryReason) -> &'static str {
    match reason {
        DeliveryReason::TriesSpent => "all tries failed",
        DeliveryReason::TestFailed => "the test's only try failed",
        DeliveryReason::Gone => "the receiver answered 410",
        DeliveryReason::EndpointOff => "the receiver was switched off",
        DeliveryReason::EndpointClosed => "the webhook was removed",
        DeliveryReason::WorkerLost => "the processes of its tries died",
    }
}

const fn error_words(error: TryError) -> &'static str {
    match error {
        TryError::HttpStatus => "not answered with 2xx",
        TryError::Timeout => "no answer within 10 seconds",
        TryError::Unresolved => "the host has no public address; nothing was sent",
        TryError::AddressRefused => "the URL is not allowed any more; nothing was sent",
        TryError::Unconnected => "the connection or TLS failed",
        TryError::Broken => "the connection closed before the answer",
        TryError::SecretUnreadable => "the signing secret cannot be read; nothing was sent",
        TryError::WorkerLost => "the process died; it may have arrived",
    }
}

async fn one(session: Session, Path(id): Path<String>) -> Result<Response, PageFailure> {
    let unknown = || PageFailure::not_found("delivery");
    let id: DeliveryId = id.parse().map_err(|_| unknown())?;
    let tenant = session.tenant().ok_or_else(unknown)?;
    let detail = read::detail(session.pool()?, tenant, id)
        .await?
        .ok_or_else(unknown)?;
    let payload = serde_json::to_string_pretty(&detail.payload).unwrap_or_default();
    let delivery = &detail.delivery;
    let monitors = ReportedMonitors::read(&session, tenant, delivery.monitor_id).await?;
    let body = html! {
        div class="head" {
            div {
                p class="sub" { a href=(PATH) { "Deliveries" } }
                h1 { (delivery.event_type) " " (status(delivery)) }
                @if let Some(id) = delivery.monitor_id { p { b { (monitors.trip(id).unwrap_or_default()) } } }
                p class="sub" { @if let Some(id) = delivery.monitor_id { (monitors.link(id)) " · " } "occurred " (parts::time(delivery.created_at)) @if let Some(ended) = delivery.ended_at { ", ended " (parts::time(ended)) } }
            }
            div class="actions" {
                (send_again(&session, delivery))
            }
        }
        (tries(&detail))
        section class="card" {
            h2 { "What is sent" }
            p class="sub" { "Each try has the header " code { (id_header(delivery)) ": " (delivery.id) } ", by which the receiver detects a repetition." }
            pre tabindex="0" { (payload) }
        }
    };
    Ok(page(&session, &delivery.event_type, NavItem::Alerts, body))
}

/// The button that sends a delivery again.
pub(super) fn send_again(session: &Session, delivery: &Delivery) -> Markup {
    ConfirmationPage {
        action: &format!("{}/resend", links::delivery(delivery.id)),
        label: "Send again",
        question: html! {
            p { "The same event is sent now, with the same retries as the first time. It keeps its id, so a receiver that has it can ignore it." }
            p { "No search is made and nothing is billed." }
        },
        confirm: "Send again now",
        is_destructive: false,
        fields: once_field(),
    }
    .render(session)
}

fn tries(detail: &DeliveryDetail) -> Markup {
    html! {
        section class="card" {
            h2 { "Tries" }
            @if detail.tries.is_empty() {
                (parts::empty_state(&html! {
                    p { "Not tried yet." @if let Some(at) = detail.delivery.next_try_at { " The first try is due " (parts::time(at)) "." } }
                }))
            } @else {
                div class="scroll" tabindex="0" role="region" aria-label="Tries" {
                    table class="rows" {
                        thead {
                            tr {
                                th scope="col" class="num" { "Try" }
                                th scope="col" { "Began" }
                                th scope="col" class="num" { "Took" }
                                th scope="col" { "Result" }
                                th scope="col" { "The receiver's answer" }
                            }
                        }
                        tbody { @for one in &detail.tries { (try_row(one)) } }
                    }
                }
                @if let Some(at) = detail.delivery.next_try_at { p class="hint" { "Next try: " (parts::time(at)) "." } }
            }
        }
    }
}

fn try_row(one: &DeliveryTry) -> Markup {
    html! {
        tr {
            td class="num" { (one.number) }
            td class="nowrap" { (parts::time(one.started_at)) }
            td class="num" { @match one.latency_ms { Some(ms) => { (numbers::count(ms)) " ms" } None => { "–" } } }
            td {
                @match (one.error, one.ended_at) {
                    (Some(error), _) => { (parts::chip(Tone::Bad, "failed")) " " (error_words(error)) }
                    (None, Some(_)) => { (parts::chip(Tone::Good, "delivered")) }
                    (None, None) => { (parts::chip(Tone::Info, "running")) }
                }
                @if let Some(status) = one.http_status { " " span class="muted" { "HTTP " (status) } }
            }
            td { @if let Some(text) = one.response.as_deref().filter(|text| !text.is_empty()) { code { (text) } } @else { span class="muted" { "–" } } }
        }
    }
}

async fn resend(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let unknown = || PageFailure::not_found("delivery");
    let id: DeliveryId = id.parse().map_err(|_| unknown())?;
    let key = once_key(&form.fields)?;
    let sent = resend_delivery(form.session.context()?, id, key.as_ref()).await?;
    Ok(Redirect::to(&links::delivery(sent.response.id)).into_response())
}
