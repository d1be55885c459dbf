//! `/monitors/{id}`: one monitor.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::monitor::{self, Run, Runs};
use farescan_sheets::numbers;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use super::{forecast, slots, webhook};
use crate::alerts as alert_pages;
use crate::charts::{ChartAxis, LineChart, LineNames, Point, Unit};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, page_with_status};
use crate::links;
use crate::once::once_field;
use crate::parts::{self, ConfirmationPage};
use crate::session::Session;
use crate::sheet;
use farescan_core::app::AppState;
use farescan_core::contract::monitors::{
    AlertsQuery, Monitor, MonitorStatus, SlotPage, SlotsQuery,
};
use farescan_core::contract::scans::{StrategyProgress, WatchProgress};
use farescan_core::contract::webhooks::{DeliveriesQuery, Delivery};
use farescan_core::ids::{MonitorId, TenantId};
use farescan_core::monitors::alerts::read as alerts;
use farescan_core::monitors::read;
use farescan_core::scans;
use farescan_core::webhooks::read as deliveries;

/// Alerts and deliveries on the page; the lists have all.
const RECENT: &str = "5";
const SLOTS: &str = "20";
/// Runs of the chart.
const CHART_RUNS: u16 = 90;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/monitors/{id}", get(show))
}

async fn show(
    session: Session,
    Path(id): Path<String>,
    query: FormFields,
) -> Result<Response, PageFailure> {
    let (tenant, id) = own_monitor(&session, &id)?;
    render(&session, tenant, id, query.text("cursor"), None).await
}

/// The caller's tenant and the id of a path. Another caller's id gets the same page as an unknown
/// or malformed one.
pub(super) fn own_monitor(
    session: &Session,
    id: &str,
) -> Result<(TenantId, MonitorId), PageFailure> {
    let unknown = || PageFailure::not_found("monitor");
    let id = id.parse().map_err(|_| unknown())?;
    Ok((session.tenant().ok_or_else(unknown)?, id))
}

/// A monitor of the caller.
pub(super) async fn own(session: &Session, id: &str) -> Result<Monitor, PageFailure> {
    let (tenant, id) = own_monitor(session, id)?;
    let context = session.context()?;
    read::monitor(session.pool()?, context.ring, tenant, id, context.now)
        .await?
        .ok_or_else(|| PageFailure::not_found("monitor"))
}

/// What is read for the page.
struct ShownMonitor {
    monitor: Monitor,
    slots: SlotPage,
    runs: Vec<Run>,
    watch: Option<WatchProgress>,
    alerts: Vec<serde_json::Value>,
    deliveries: Vec<Delivery>,
}

/// The page, with a notice of what was not possible.
pub(super) async fn render(
    session: &Session,
    tenant: TenantId,
    id: MonitorId,
    cursor: Option<&str>,
    refused: Option<(StatusCode, &str)>,
) -> Result<Response, PageFailure> {
    let context = session.context()?;
    let shown = load(session, tenant, id, cursor, context.now).await?;
    let of = &shown.monitor;
    let runs = Runs {
        runs: &shown.runs,
        watch: shown.watch.as_ref(),
    };
    let sheet = monitor::sheet(of, runs);
    let body = html! {
        div class="head" {
            div {
                p class="sub" { a href=(links::MONITORS) { "Monitors" } }
                h1 { (sheet.title) }
                p class="sub" { (sheet::facts(&sheet)) }
            }
            div class="actions" { (actions(session, of)) }
        }
        @if let Some((_, message)) = refused {
            p class="notice bad" role="alert" { "Nothing was done: " (message) "." }
        }
        (sheet::figures(&sheet.figures))
        div class="grid2 wide-left" {
            (chart(of, &shown.runs))
            (slots::coming(of, context.now))
        }
        (rules(of))
        div class="grid2" {
            (recent_alerts(of, &shown.alerts))
            (webhook::card(session, of, &shown.deliveries))
        }
        (past_slots(of, &shown.slots))
        (forecast::card(of.forecast.as_ref(), of.requests.max_per_month))
        (definition(of))
    };
    let status = refused.map_or(StatusCode::OK, |(status, _)| status);
    Ok(page_with_status(
        status,
        session,
        &sheet.title,
        NavItem::Monitors,
        body,
    ))
}

async fn load(
    session: &Session,
    tenant: TenantId,
    id: MonitorId,
    cursor: Option<&str>,
    now: Timestamp,
) -> Result<ShownMonitor, PageFailure> {
    let unknown = || PageFailure::not_found("monitor");
    let pool = session.pool()?;
    let ring = session.context()?.ring;
    let monitor = read::monitor(pool, ring, tenant, id, now)
        .await?
        .ok_or_else(unknown)?;
    let pairs = [("limit", SLOTS)]
        .into_iter()
        .chain(cursor.map(|cursor| ("cursor", cursor)));
    let slots = read::slots(pool, tenant, id, &SlotsQuery::from_query(pairs)?)
        .await?
        .ok_or_else(unknown)?;
    let runs = super::runs(session, tenant, &[id], CHART_RUNS).await?;
    let runs = runs.into_values().next().unwrap_or_default();
    let watch = last_watch(session, tenant, &runs).await?;
    let of_monitor = id.to_string();
    let recent = [("monitor_id", of_monitor.as_str()), ("limit", RECENT)];
    let alerts = alerts::alerts(pool, tenant, &AlertsQuery::from_query(recent)?)
        .await?
        .ok_or_else(unknown)?
        .data;
    let deliveries = deliveries::deliveries(pool, tenant, &DeliveriesQuery::from_query(recent)?)
        .await?
        .ok_or_else(unknown)?
        .data;
    Ok(ShownMonitor {
        monitor,
        slots,
        runs,
        watch,
        alerts,
        deliveries,
    })
}

/// What the last run says, if it watches.
async fn last_watch(
    session: &Session,
    tenant: TenantId,
    runs: &[Run],
) -> Result<Option<WatchProgress>, PageFailure> {
    let Some(last) = runs.last() else {
        return Ok(None);
    };
    let scan = scans::read::scan(session.pool()?, tenant, last.scan).await?;
    Ok(match scan.and_then(|scan| scan.strategy) {
        Some(StrategyProgress::Watch(watch)) => Some(watch),
        _ => None,
    })
}

fn actions(session: &Session, monitor: &Monitor) -> Markup {
    let path = links::monitor(monitor.id);
    let run = monitor
        .forecast
        .as_ref()
        .map(|forecast| numbers::request_range(forecast.requests_per_run));
    let cost = run
        .clone()
        .unwrap_or_else(|| "an unknown number of requests".to_owned());
    let run_now = ConfirmationPage {
        action: &format!("{path}/run"),
        label: "Run now",
        question: html! {
            p { "One run costs " b { (cost) } ", billed to your plan. The schedule stays as it is." }
            @if let Some(most) = monitor.requests.max_per_month {
                p { (numbers::count(monitor.requests.this_month)) " of " (numbers::count(most)) " requests of this month are used." }
            }
        },
        confirm: &format!("Run now for {cost}"),
        is_destructive: false,
        fields: once_field(),
    };
    let month = monitor.forecast.as_ref().map_or_else(
        || "what its runs need".to_owned(),
        |forecast| numbers::request_range(forecast.requests_per_month),
    );
    html! {
        @if run.is_some() { (run_now.render(session)) }
        a class="button" href={ (path) "/edit" } { "Change" }
        @if monitor.status == MonitorStatus::Active {
            (ConfirmationPage {
                action: &format!("{path}/pause"),
                label: "Pause",
                question: html! { p { "No slot starts a run until you resume, and the stored key is destroyed. A run that goes on ends as planned. This costs nothing." } },
                confirm: "Pause the monitor",
                is_destructive: false,
                fields: html! {},
            }.render(session))
        } @else {
            (ConfirmationPage {
                action: &format!("{path}/resume"),
                label: "Resume",
                question: html! { p { "The monitor goes on from its next slot with the key of your session. A month costs " b { (month) } "." } },
                confirm: "Resume the monitor",
                is_destructive: false,
                fields: once_field(),
            }.render(session))
        }
        (ConfirmationPage {
            action: &format!("{path}/delete"),
            label: "Delete",
            question: html! { p { "The monitor goes with its slots, alerts and deliveries; nothing brings them back. Its scans and prices stay. This costs nothing." } },
            confirm: "Delete for good",
            is_destructive: true,
            fields: html! {},
        }.render(session))
    }
}

fn rules(of: &Monitor) -> Markup {
    let path = links::monitor(of.id);
    let is_empty = of.alerts.is_empty();
    let more = html! { @if !is_empty { a href={ (path) "/backtest" } { "What would they have reported?" } } };
    let below =
        html! { @if is_empty { a class="button" href={ (path) "/edit" } { "Add a rule" } } };
    sheet::section(&monitor::rules(of), &more, &below)
}

fn past_slots(of: &Monitor, page: &SlotPage) -> Markup {
    let scans = parts::with_query("/scans", "monitor_id", &of.id.to_string());
    let more = html! { a href=(scans) { "All scans of this monitor" } };
    let next = parts::next_page(&links::monitor(of.id), page.next_cursor.as_deref());
    let past = monitor::slots(&page.data, &of.schedule.timezone);
    sheet::section(&past, &more, &next)
}

/// The lowest price of each run: by date, or in their order if a day has several.
fn chart(monitor: &Monitor, runs: &[Run]) -> Markup {
    let zone = TimeZone::get(&monitor.schedule.timezone).unwrap_or(TimeZone::UTC);
    let currency = runs
        .iter()
        .rev()
        .find_map(|run| run.best.as_ref().map(|(_, currency)| currency.clone()));
    let slots: Vec<_> = runs
        .iter()
        .map(|run| run.slot.to_zoned(zone.clone()))
        .collect();
    let has_several = slots.windows(2).any(|two| two[0].date() == two[1].date());
    let names: Vec<_> = slots
        .iter()
        .map(|slot| slot.strftime("%a %-d %b %Y, %H:%M").to_string())
        .collect();
    let points = runs.iter().zip(&slots).enumerate();
    let points = points.map(|(place, (run, slot))| {
        let best = run.best.as_ref();
        let best = best.filter(|(_, of)| Some(of) == currency.as_ref());
        let point = if has_several {
            Point::of_run(place)
        } else {
            Point::on(slot.date())
        };
        Point {
            value: best.map(|(price, _)| *price),
            ..point
        }
    });
    html! {
        section class="card" {
            h2 { "Lowest price of each run" }
            p class="sub" { (if has_several { "Each run by its slot in " } else { "By day in " }) (monitor.schedule.timezone) "." }
            @match &currency {
                Some(currency) => {
                    (LineChart {
                        id: "runs",
                        title: "Lowest price of each run",
                        unit: Unit::Money(currency),
                        axis: if has_several { ChartAxis::Runs(&names) } else { ChartAxis::Dates },
                        names: LineNames { value: "Lowest price", reference: "", band: "" },
                        points: points.collect(),
                    }.markup())
                }
                None => { (parts::empty_state(&html! { p { "No run has found a price yet." } })) }
            }
        }
    }
}

fn recent_alerts(monitor: &Monitor, alerts: &[serde_json::Value]) -> Markup {
    let all = parts::with_query(links::ALERTS, "monitor_id", &monitor.id.to_string());
    html! {
        section class="card" {
            div class="card-head" {
                h2 { "Alerts" }
                @if !alerts.is_empty() { a href=(all) { "All alerts" } }
            }
            @if alerts.is_empty() {
                (parts::empty_state(&html! { p { "No rule has fired yet." } }))
            } @else {
                ul class="plain-list" {
                    @for alert in alerts { li { (alert_pages::line(alert)) } }
                }
            }
        }
    }
}

fn definition(monitor: &Monitor) -> Markup {
    let scan = monitor
        .scan
        .read::<serde_json::Value>()
        .and_then(|scan| serde_json::to_string_pretty(&scan))
        .unwrap_or_default();
    html! {
        section class="card" {
            h2 { "Definition" }
            details class="fold" {
                summary { "The scan of each run as JSON" }
                pre tabindex="0" { (scan) }
            }
            details class="fold" {
                summary { "The same with curl" }
                pre tabindex="0" { "curl -H \"x-api-key: $FARESCAN_API_KEY\" \"$FARESCAN_URL/v1/monitors/" (monitor.id) "\"" }
            }
        }
    }
}
