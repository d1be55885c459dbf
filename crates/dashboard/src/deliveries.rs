//! `/deliveries`: what is sent to channels and webhooks, each with its tries.

use std::collections::HashMap;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use farescan_sheets::alert::Reported;
use farescan_sheets::delivery;
use farescan_sheets::trip::capitalised;
use maud::{Markup, html};

use super::failure::PageFailure;
use super::form::{FormFields, SessionForm};
use super::layout::{NavItem, page};
use super::links;
use super::once::{once_field, once_key};
use super::parts::{self, ConfirmationPage};
use super::reported::ReportedMonitors;
use super::session::Session;
use super::sheet;
use farescan_core::app::AppState;
use farescan_core::channels::read::channels;
use farescan_core::contract::channels::ChannelsQuery;
use farescan_core::contract::webhooks::{DeliveriesQuery, Delivery, DeliveryPage, DeliveryStatus};
use farescan_core::ids::{ChannelId, DeliveryId, Kind};
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
            .ok_or(filter.owner_kind())?,
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
    let channels = channel_names(&session, &deliveries.data).await?;
    let is_filtered = filter.monitor_id.is_some() || filter.status.is_some();
    let here = parts::path_with(PATH, given().filter(|(name, _)| *name != "cursor"));
    let body = html! {
        (parts::head(&html! {}, "Deliveries", &html! {
            "What is sent to your channels and webhooks, kept for 90 days after its end."
            @if let Some(monitor) = filter.monitor_id {
                " Of one " a href=(links::monitor(monitor)) { "monitor" } "; " a href=(PATH) { "show all" } "."
            }
        }, &html! {}))
        (status_filter(&filter))
        section class="card" {
            @if deliveries.data.is_empty() {
                (empty(is_filtered))
            } @else {
                (sheet::table(&delivery::table(&deliveries.data, |id| monitors.of(id), |id| channels.get(&id).cloned())))
                (parts::next_page(&here, deliveries.next_cursor.as_deref()))
            }
        }
    };
    Ok(page(&session, "Deliveries", NavItem::Deliveries, body))
}

/// The names of the channels that some of these go to.
async fn channel_names(
    session: &Session,
    deliveries: &[Delivery],
) -> Result<HashMap<ChannelId, String>, PageFailure> {
    let has_channel = deliveries.iter().any(|of| of.channel_id.is_some());
    let Some(tenant) = session.tenant().filter(|_| has_channel) else {
        return Ok(HashMap::new());
    };
    let all = ChannelsQuery::from_query([("limit", "200")])?;
    let found = channels(session.pool()?, tenant, &all).await?.data;
    Ok(found.into_iter().map(|of| (of.id, of.name)).collect())
}

fn status_filter(filter: &DeliveriesQuery) -> Markup {
    let base = filter.monitor_id.map_or_else(
        || PATH.to_owned(),
        |monitor| links::with_query(PATH, "monitor_id", &monitor.to_string()),
    );
    let status = filter.status.map(DeliveryStatus::as_str);
    let all = DeliveryStatus::ALL
        .iter()
        .map(|of| (of.as_str(), capitalised(of.as_str())));
    parts::filter_tabs("Status", &base, "status", status, all)
}

fn empty(is_filtered: bool) -> Markup {
    parts::empty_state(&html! {
        @if is_filtered {
            p { "No delivery is in this state." }
            a class="button" href=(PATH) { "All deliveries" }
        } @else {
            p { "Nothing was sent yet. A monitor sends its alerts to its channels and its webhook." }
            a class="button primary" href=(links::MONITORS) { "Monitors" }
        }
    })
}

/// The header with the delivery's id.
const fn id_header(delivery: &Delivery) -> &'static str {
    if delivery.channel_id.is_some() {
        "farescan-delivery"
    } else {
        "webhook-id"
    }
}

fn reported(monitors: &ReportedMonitors, delivery: &Delivery) -> Reported {
    let monitor = delivery.monitor_id.map(|id| monitors.of(id));
    monitor.unwrap_or_default()
}

async fn one(session: Session, Path(id): Path<String>) -> Result<Response, PageFailure> {
    let (tenant, id) = session.owned::<DeliveryId>(&id)?;
    let detail = read::detail(session.pool()?, tenant, id).await?;
    let detail = detail.ok_or(Kind::Delivery)?;
    let payload = serde_json::to_string_pretty(&detail.payload).unwrap_or_default();
    let delivery = &detail.delivery;
    let monitors = ReportedMonitors::read(&session, tenant, delivery.monitor_id).await?;
    let shown = delivery::sheet(&detail, reported(&monitors, delivery));
    let body = html! {
        (parts::head(&html! { a href=(PATH) { "Deliveries" } }, &shown.title, &sheet::facts(&shown), &send_again(&session, delivery)))
        @for part in &shown.sections { (sheet::section(part, &html! {}, &html! {})) }
        section class="card" {
            h2 { "What is sent" }
            p class="sub" { "Each try has the header " code { (id_header(delivery)) ": " (delivery.id) } ", by which the receiver detects a repetition." }
            pre tabindex="0" { (payload) }
        }
    };
    Ok(page(
        &session,
        &delivery.event_type,
        NavItem::Deliveries,
        body,
    ))
}

/// The button that sends a delivery again.
pub(super) fn send_again(session: &Session, delivery: &Delivery) -> Markup {
    ConfirmationPage::new(&format!("{}/resend", links::delivery(delivery.id)), "Send again", "Send again now", html! {
            p { "The same event is sent now, with the same retries as the first time. It keeps its id, so a receiver that has it can ignore it." }
            p { "No search is made and nothing is billed." }
        }).fields(once_field())
    .render(session)
}

async fn resend(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let id: DeliveryId = id.parse().map_err(|_| Kind::Delivery)?;
    let key = once_key(&form.fields)?;
    let sent = resend_delivery(form.session.context()?, id, key.as_ref()).await?;
    Ok(Redirect::to(&links::delivery(sent.response.id)).into_response())
}
