//! `/monitors/{id}`: one monitor.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use farescan_sheets::sheet::{Figure, Link, Section, Value};
use farescan_sheets::{alert, monitor, numbers};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use super::{RUNS, price_line, price_of_run, webhook};
use crate::channels;
use crate::charts::{ChartAxis, LineChart, LineNames, Point, Unit};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, page};
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
use farescan_core::ids::{Kind, MonitorId, TenantId};
use farescan_core::monitors::alerts::read as alerts;
use farescan_core::monitors::markets::markets;
use farescan_core::monitors::read;
use farescan_core::monitors::run_prices::{RunPrice, run_prices};
use farescan_core::monitors::schedule::Schedule;
use farescan_core::scans;
use farescan_core::webhooks::read as deliveries;

/// Coming slots on the page.
const NEXT: usize = 5;
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
    let (tenant, id) = session.owned::<MonitorId>(&id)?;
    render(&session, tenant, id, query.text("cursor"), None).await
}

/// A monitor of the caller.
pub(super) async fn own(session: &Session, id: &str) -> Result<Monitor, PageFailure> {
    let (tenant, id) = session.owned(id)?;
    let context = session.context()?;
    read::monitor(session.pool()?, context.ring, tenant, id, context.now)
        .await?
        .ok_or_else(|| Kind::Monitor.into())
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
    let sheet = monitor::sheet(monitor, &shown.slots.data, shown.watch.as_ref());
    let [times, rules, hook, slots, month] = &monitor::sections(monitor, &shown.slots.data);
    let figures: Vec<_> = of_runs(monitor, &shown.runs)
        .into_iter()
        .chain(sheet.figures)
        .collect();
    let older = parts::next_page(&links::monitor(id), shown.slots.next_cursor.as_deref());
    let plans = monitor.forecast.as_ref().map_or(&[][..], |of| &of.plans);
    let plans = sheet::plans(plans);
    let nobody = channels::notice_of_monitor(session, monitor).await?;
    let body = html! {
        (head(session, monitor, &sheet.facts))
        @if let Some((_, message)) = refused {
            p class="notice bad" role="alert" { "Nothing was done: " (message) "." }
        }
        (nobody)
        (sheet::figures(&figures))
        div class="grid2 wide-left" {
            (chart(monitor, &shown.runs))
            (sheet::section(times, &html! {}, &coming(monitor, context.now)))
        }
        (rule_card(monitor, rules))
        div class="grid2" {
            (recent_alerts(monitor, &shown.alerts))
            (webhook::card(session, monitor, hook, &shown.deliveries))
        }
        div id="slots" {
            (sheet::section(slots, &html! { a href=(links::with_query("/scans", "monitor_id", &id.to_string())) { "All scans of this monitor" } }, &older))
        }
        (sheet::section(month, &html! {}, &plans))
        (definition(monitor))
    };
    let status = refused.map_or(StatusCode::OK, |(status, _)| status);
    Ok((status, page(session, &title, NavItem::Monitors, body)).into_response())
}

async fn load(
    session: &Session,
    tenant: TenantId,
    id: MonitorId,
    cursor: Option<&str>,
    now: Timestamp,
) -> Result<ShownMonitor, PageFailure> {
    let pool = session.pool()?;
    let ring = session.context()?.ring;
    let monitor = read::monitor(pool, ring, tenant, id, now)
        .await?
        .ok_or(Kind::Monitor)?;
    let pairs = [("limit", SLOTS)]
        .into_iter()
        .chain(cursor.map(|cursor| ("cursor", cursor)));
    let slots = read::slots(pool, tenant, id, &SlotsQuery::from_query(pairs)?)
        .await?
        .ok_or(Kind::Monitor)?;
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
        .ok_or(Kind::Monitor)?
        .data;
    let deliveries = deliveries::deliveries(pool, tenant, &DeliveriesQuery::from_query(recent)?)
        .await?
        .ok_or(Kind::Monitor)?
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

fn head(session: &Session, monitor: &Monitor, facts: &[Value]) -> Markup {
    html! {
        (parts::head(&html! { a href=(links::MONITORS) { "Monitors" } }, &monitor.name, &html! { (sheet::side_by_side(facts)) }, &html! { (actions(session, monitor)) }))
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
    let run_now = (format!("{path}/run"), format!("Run now for {cost}"));
    let run_now = ConfirmationPage::new(&run_now.0, "Run now", &run_now.1, html! {
            p { "One run costs " b { (cost) } ", billed to your plan. The schedule stays as it is." }
            @if let Some(most) = monitor.requests.max_per_month {
                p { (numbers::count(monitor.requests.this_month)) " of " (numbers::count(most)) " requests of this month are used." }
            }
        }).fields(once_field());
    let month = monitor.forecast.as_ref().map_or_else(
        || "what its runs need".to_owned(),
        |forecast| numbers::request_range(forecast.requests_per_month),
    );
    html! {
        @if run.is_some() { (run_now.render(session)) }
        @if markets(&monitor.scan).len() > 1 { a class="button" href=(links::parity(monitor.id)) { "Markets over time" } }
        a class="button" href={ (path) "/edit" } { "Change" }
        @if monitor.status == MonitorStatus::Active {
            (ConfirmationPage::new(&format!("{path}/pause"), "Pause", "Pause the monitor", html! {
                p { "No slot starts a run until you resume, and the stored key is destroyed. A run that goes on ends as planned. This costs nothing." }
            }).render(session))
        } @else {
            (ConfirmationPage::new(&format!("{path}/resume"), "Resume", "Resume the monitor", html! {
                p { "The monitor goes on from its next slot with the key of your session. A month costs " b { (month) } "." }
            }).fields(once_field()).render(session))
        }
        (ConfirmationPage::new(&format!("{path}/delete"), "Delete", "Delete for good", html! {
            p { "The monitor goes with its slots, alerts and deliveries; nothing brings them back. Its scans and prices stay. This costs nothing." }
        }).destructive().render(session))
    }
}

/// The last lowest price and those of the last runs.
fn of_runs(monitor: &Monitor, runs: &[RunPrice]) -> Vec<Figure> {
    let recent = &runs[runs.len().saturating_sub(usize::from(RUNS))..];
    let last = runs.iter().rev().find(|run| run.best.is_some());
    let last = last.map(|run| {
        let mut price = price_of_run(run).into_iter();
        let figure = Figure::new(
            "Last lowest price",
            price.next().unwrap_or(Value::Absent("–")),
        );
        let slot = Value::Zoned(run.slot, monitor.schedule.timezone.clone());
        figure
            .note(slot)
            .note(Value::Link(Link::of(run.scan), None))
            .notes(price)
    });
    let prices = Figure::of(
        "Lowest price of each run",
        price_line(&monitor.name, recent),
    );
    let runs = format!("last {}", numbers::counted(recent.len() as u64, "run"));
    last.into_iter()
        .chain(prices.map(|prices| prices.note(runs)))
        .collect()
}

/// The slots that come next, in the zone of the schedule.
fn coming(monitor: &Monitor, now: Timestamp) -> Markup {
    let schedule = Schedule::parse(&monitor.schedule.cron, &monitor.schedule.timezone);
    let slots = schedule
        .zip(monitor.next_slot)
        .into_iter()
        .flat_map(|(schedule, next)| {
            let later: Vec<_> = schedule.slots_after(next.max(now)).take(NEXT - 1).collect();
            std::iter::once(next).chain(later)
        });
    html! {
        h3 { "Next runs" }
        ol class="plain-list" { @for slot in slots { li { (parts::zoned(slot, &monitor.schedule.timezone)) } } }
        @if monitor.next_slot.is_none() { p class="hint" { "No slot is due. A paused monitor has none; resume it to go on." } }
    }
}

fn rule_card(monitor: &Monitor, rules: &Section) -> Markup {
    let path = links::monitor(monitor.id);
    let has_rules = !monitor.alerts.is_empty();
    let beside = html! { @if has_rules { a href={ (path) "/backtest" } { "What would they have reported?" } } };
    let more =
        html! { @if !has_rules { a class="button" href={ (path) "/edit" } { "Add a rule" } } };
    sheet::section(rules, &beside, &more)
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
                        axis: if has_several { ChartAxis::Runs(&slots) } else { ChartAxis::Dates },
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
    let all = links::with_query(links::ALERTS, "monitor_id", &monitor.id.to_string());
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
                    @for alert in alerts { li { (sheet::side_by_side(&alert::line(alert))) } }
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
