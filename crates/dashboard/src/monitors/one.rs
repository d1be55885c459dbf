//! `/monitors/{id}`: one monitor.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::numbers;
use farescan_sheets::trip;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use super::{RUNS, forecast, implausible_note, parity, price_line, rules, slots, state, webhook};
use crate::alerts as alert_pages;
use crate::charts::{ChartAxis, LineChart, LineNames, Point, Unit};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, page_with_status};
use crate::links;
use crate::once::once_field;
use crate::parts::{self, ConfirmationPage};
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::contract::monitors::{
    AlertsQuery, Monitor, MonitorStatus, SlotPage, SlotsQuery,
};
use farescan_core::contract::scans::{StrategyProgress, WatchProgress};
use farescan_core::contract::webhooks::{DeliveriesQuery, Delivery};
use farescan_core::ids::{MonitorId, TenantId};
use farescan_core::monitors::alerts::read as alerts;
use farescan_core::monitors::read;
use farescan_core::monitors::run_prices::{RunPrice, run_prices};
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
    runs: Vec<RunPrice>,
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
    let monitor = &shown.monitor;
    let title = monitor.name.clone();
    let body = html! {
        (head(session, monitor))
        @if let Some((_, message)) = refused {
            p class="notice bad" role="alert" { "Nothing was done: " (message) "." }
        }
        (stats(monitor, &shown.runs, shown.watch.as_ref()))
        div class="grid2 wide-left" {
            (chart(monitor, &shown.runs))
            (slots::coming(monitor, context.now))
        }
        (rules::card(monitor))
        div class="grid2" {
            (recent_alerts(monitor, &shown.alerts))
            (webhook::card(session, monitor, &shown.deliveries))
        }
        (slots::past(monitor, &shown.slots.data, parts::next_page(&links::monitor(id), shown.slots.next_cursor.as_deref())))
        @match &monitor.forecast {
            Some(forecast) => { (forecast::card(forecast, monitor.requests.max_per_month)) }
            None => {
                section class="card" {
                    h2 { "Cost of a month" }
                    p class="notice warn" { "The scan of the next run is not valid any more, usually because its dates have passed. Create a monitor with dates relative to its runs, such as " code { "+7d" } "." }
                }
            }
        }
        (definition(monitor))
    };
    let status = refused.map_or(StatusCode::OK, |(status, _)| status);
    Ok(page_with_status(
        status,
        session,
        &title,
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
    let runs = {
        let mut conn = pool.acquire().await?;
        run_prices(&mut conn, tenant, &[id], CHART_RUNS)
            .await?
            .remove(&id)
            .unwrap_or_default()
    };
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
    runs: &[RunPrice],
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

fn head(session: &Session, monitor: &Monitor) -> Markup {
    html! {
        div class="head" {
            div {
                p class="sub" { a href=(links::MONITORS) { "Monitors" } }
                h1 { (monitor.name) " " (state(monitor)) }
                p class="sub" { (trip::monitor_scan(&monitor.scan)) }
            }
            div class="actions" { (actions(session, monitor)) }
        }
    }
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
        @if parity::compares_markets(monitor) { a class="button" href=(parity::path(monitor)) { "Markets over time" } }
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

fn stats(monitor: &Monitor, runs: &[RunPrice], watch: Option<&WatchProgress>) -> Markup {
    let requests = monitor.requests;
    let last = runs
        .iter()
        .rev()
        .find_map(|run| Some((run, run.best.as_ref()?)));
    let recent = &runs[runs.len().saturating_sub(usize::from(RUNS))..];
    html! {
        div class="stats" {
            div class="stat" {
                div class="label" { "Last lowest price" }
                @match last {
                    Some((run, (price, currency))) => {
                        div class="value" { (numbers::amount(*price)) " " small { (currency) } }
                        div class="note" { a href=(parts::scan_path(run.scan)) { (parts::time(run.slot)) } (implausible_note(run)) }
                    }
                    None => { div class="value" { "–" } div class="note" { "no run with a price yet" } }
                }
            }
            div class="stat" {
                div class="label" { "Last " (numbers::counted(recent.len() as u64, "run")) }
                (price_line(&monitor.name, recent))
            }
            @if let Some(watch) = watch { (watch_stat(watch)) }
            div class="stat" {
                div class="label" { "Next slot" }
                @match monitor.next_slot {
                    Some(slot) => { div class="stat-line" { (parts::zoned(slot, &monitor.schedule.timezone)) } }
                    None => { div class="stat-line muted" { "none" } }
                }
            }
            div class="stat" {
                div class="label" { "Requests this month" }
                @match requests.max_per_month {
                    Some(most) => {
                        div class="value" { (numbers::count(requests.this_month)) " " small { "of " (numbers::count(most)) } }
                        progress max=(most) value=(requests.this_month.min(most.into())) aria-label="Requests of this month against the limit" {}
                    }
                    None => {
                        div class="value" { (numbers::count(requests.this_month)) }
                        div class="note" { "no limit set" }
                    }
                }
                @if let Some(forecast) = &monitor.forecast {
                    div class="note" { "forecast of a month: " (numbers::request_range(forecast.requests_per_month)) }
                }
            }
        }
    }
}

/// What the last run of a watch declares about what it did not search.
fn watch_stat(watch: &WatchProgress) -> Markup {
    let all = watch.searched + watch.reused + watch.unsearched;
    html! {
        div class="stat" {
            div class="label" { "Risk of a miss" }
            div class="value" {
                @match watch.risk_of_miss {
                    Some(risk) => { ((risk * 1e3).round() / 10.0) " %" }
                    None => { "–" }
                }
            }
            div class="note" { "last run: " (watch.searched + watch.reused) " of " (all) " searched" }
        }
    }
}

/// The lowest price of each run: by date, or in their order if a day has several.
fn chart(monitor: &Monitor, runs: &[RunPrice]) -> Markup {
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
            p class="sub" { "Created " (parts::time(monitor.created_at)) ", changed " (parts::time(monitor.updated_at)) ". "
                @if monitor.key_custody.is_some() { "Your key is stored, sealed, until you pause or delete the monitor." } @else { "No key is stored while the monitor is paused." }
            }
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
