//! `/monitors/{id}/parity`: the markets of a monitor over its runs, to read, print or pass on.

use axum::Router;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::parity::{RULE, market_name, markets, runs, sentence};
use farescan_sheets::trip::{body_facts, body_title};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::one::own;
use crate::charts::{ChartAxis, LineChart, LineNames, Point, Unit};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, page};
use crate::links;
use crate::parts;
use crate::session::Session;
use crate::sheet;
use farescan_core::app::AppState;
use farescan_core::contract::monitors::{Monitor, ParityHistory, ParityQuery};
use farescan_core::ids::Kind;
use farescan_core::monitors::parity::history;

/// Charts on the page; the tables have all markets.
const MOST_CHARTS: usize = 6;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/monitors/{id}/parity", get(show))
}

async fn show(
    session: Session,
    Path(id): Path<String>,
    fields: FormFields,
) -> Result<Response, PageFailure> {
    let monitor = own(&session, &id).await?;
    let query = ParityQuery::from_query(fields.pairs().filter(|(_, text)| !text.is_empty()))?;
    let tenant = session.tenant().ok_or(Kind::Monitor)?;
    let _permits = session.heavy_read_permits().await?;
    let context = session.context()?;
    let (pool, ring) = (session.pool()?, context.ring);
    let found = history(pool, ring, tenant, monitor.id, &query, context.now).await?;
    let scan = monitor
        .scan
        .read::<Map<String, Value>>()
        .unwrap_or_default();
    let hotel = body_title(&scan).unwrap_or_else(|| monitor.name.clone());
    let facts = body_facts(&scan).join(" · ");
    let body = html! {
        (parts::head(&html! { a href=(links::monitor(monitor.id)) { (monitor.name) } }, &format!("Markets over time: {hotel}"), &html! { (facts) br; (sentence(&found)) " " (RULE) }, &html! {
            button type="button" data-print hidden { "Print" }
            a class="button" href=(links::monitor(monitor.id)) { "The monitor" }
        }))
        (baselines(&monitor, &found))
        @if found.runs.is_empty() {
            section class="card" { (parts::empty_state(&html! { p { "Each run of the monitor adds a line here, once it has ended." } })) }
        } @else {
            section class="card" { h2 { "Over all runs" } (sheet::table(&markets(&found))) }
            section class="card" { h2 { "Run by run" } (sheet::table(&runs(&found))) }
            (charts(&monitor, &found))
        }
        (parts::same_as(
            &format!("/v1/monitors/{}/parity?baseline={}", monitor.id, found.baseline),
            &format!("farescan monitors parity {} --baseline {}", monitor.id, found.baseline),
        ))
    };
    let title = format!("Markets over time: {}", monitor.name);
    Ok(page(&session, &title, NavItem::Monitors, body))
}

/// Links to the same page with another baseline.
fn baselines(monitor: &Monitor, found: &ParityHistory) -> Markup {
    let mut all: Vec<_> = found.markets.iter().map(|market| &market.market).collect();
    all.insert(0, &found.baseline);
    all.sort();
    html! {
        @if all.len() > 1 {
            nav class="tabs no-print" aria-label="Compared with" {
                span class="muted" { "Compared with" }
                @for market in all {
                    a href=(links::with_query(&links::parity(monitor.id), "baseline", market)) aria-current=[(*market == found.baseline).then_some("true")] { (market_name(market)) }
                }
            }
        }
    }
}

/// The median difference of each market, with its range over the stays, oldest run first.
fn charts(monitor: &Monitor, found: &ParityHistory) -> Markup {
    let zone = TimeZone::get(&monitor.schedule.timezone).unwrap_or(TimeZone::UTC);
    let runs = found.runs.iter().rev();
    let slots: Vec<_> = runs.map(|run| run.slot.to_zoned(zone.clone())).collect();
    let baseline = market_name(&found.baseline);
    let markets = found.markets.iter();
    let charted = markets.filter(|market| market.difference_percent.is_some());
    html! {
        @if found.runs.len() > 1 {
            @for (place, market) in charted.take(MOST_CHARTS).enumerate() {
                @let title = format!("{} against {baseline}", market_name(&market.market));
                section class="card" {
                    h2 { (title) }
                    p class="sub" { "Each run by its slot in " (monitor.schedule.timezone) "." }
                    (LineChart {
                        id: &format!("market-{place}"),
                        title: &title,
                        unit: Unit::Percent,
                        axis: ChartAxis::Runs(&slots),
                        names: LineNames { value: "Median difference", reference: "", band: "Lowest to highest" },
                        points: points(found, &market.market),
                    }.markup())
                }
            }
        }
    }
}

fn points(found: &ParityHistory, market: &str) -> Vec<Point> {
    let runs = found.runs.iter().rev().enumerate();
    let points = runs.map(|(place, run)| {
        let own = run.markets.iter().find(|own| own.market == market);
        let range = own.and_then(|own| own.difference_percent.as_ref());
        Point {
            value: range.map(|range| range.median),
            band: range.map(|range| (range.lowest, range.highest)),
            ..Point::of_run(place)
        }
    });
    points.collect()
}
