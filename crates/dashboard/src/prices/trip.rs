//! What watches a route, hotel or place, what was alerted of it, and its scans.

use maud::{Markup, html};
use tokio::time::timeout;

use super::subject::PriceSubject;
use crate::failure::PageFailure;
use crate::parts::{VERDICT_TIMEOUT, path_with};
use crate::session::Session;
use crate::{alerts, links, monitors, scans};
use farescan_core::contract::monitors::Monitor;
use farescan_core::contract::scans::ScansQuery;
use farescan_core::monitors::markets::markets;
use farescan_core::monitors::read::{self as read_monitors, MonitorConditions};
use farescan_core::scans::read::{self as read_scans, ScanConditions, SearchedPlace};

/// Rows of each table: the newest.
const MOST: u16 = 5;

/// The newest monitors, alerts and scans of a trip; nothing where there are none, or where they cannot be read in time: the page is about
/// the prices.
pub(super) async fn markup(session: &Session, subject: &PriceSubject) -> Markup {
    let read = timeout(VERDICT_TIMEOUT, read(session, subject)).await;
    read.ok().and_then(Result::ok).unwrap_or_default()
}

/// The newest monitors of a trip; none where they cannot be read in time.
pub(super) async fn watching(session: &Session, subject: &PriceSubject) -> Vec<Monitor> {
    let (of_monitors, _) = conditions(subject);
    let read = timeout(VERDICT_TIMEOUT, monitors_of(session, &of_monitors)).await;
    read.ok().and_then(Result::ok).unwrap_or_default()
}

async fn monitors_of(
    session: &Session,
    conditions: &MonitorConditions,
) -> Result<Vec<Monitor>, PageFailure> {
    let Some(tenant) = session.tenant() else {
        return Ok(Vec::new());
    };
    let context = session.context()?;
    let (pool, ring, now) = (session.pool()?, context.ring, context.now);
    Ok(read_monitors::monitors_where(pool, ring, tenant, conditions, MOST, now).await?)
}

async fn read(session: &Session, subject: &PriceSubject) -> Result<Markup, PageFailure> {
    let Some(tenant) = session.tenant() else {
        return Ok(html! {});
    };
    let (of_monitors, of_scans) = conditions(subject);
    let watching = monitors_of(session, &of_monitors).await?;
    let alerts = alerts::of_monitors(session, &watching, MOST).await?;
    let query = ScansQuery::from_query([("limit", MOST.to_string().as_str())])?;
    let scans = read_scans::scans_where(session.pool()?, tenant, &query, &of_scans).await?;
    let monitors = monitors::rows(session, &watching).await?;
    let compares = |of: &&Monitor| markets(&of.scan).len() > 1;
    let compared = watching.iter().find(compares);
    Ok(html! {
        @if !watching.is_empty() {
            section class="card" {
                div class="card-head" {
                    h2 { "Watched by" }
                    @if let Some(newest) = compared { a href=(links::parity(newest.id)) { "Markets over time" } }
                }
                (monitors)
            }
        }
        @if let Some(alerts) = alerts {
            section class="card" {
                div class="card-head" { h2 { "Alerts" } a href=(links::ALERTS) { "All alerts" } }
                (alerts)
            }
        }
        @if !scans.data.is_empty() {
            section class="card" {
                div class="card-head" { h2 { "Scans" } a href=(path_with("/scans", filter(subject))) { "All of them" } }
                (scans::table("Scans", &scans.data))
            }
        }
    })
}

/// What monitors and scans of the trip have.
fn conditions(subject: &PriceSubject) -> (MonitorConditions, ScanConditions) {
    let (from_airport, to_airport, place) = match subject {
        PriceSubject::Route { from, to } => (Some(from.clone()), Some(to.clone()), None),
        PriceSubject::Place { field, text } => {
            let text = text.clone();
            (None, None, Some(SearchedPlace { field, text }))
        }
    };
    let of_monitors = MonitorConditions {
        from_airport: from_airport.clone(),
        to_airport: to_airport.clone(),
        place: place.clone(),
    };
    let of_scans = ScanConditions {
        from_airport,
        to_airport,
        place,
        ..ScanConditions::default()
    };
    (of_monitors, of_scans)
}

/// The same as the filter of the list of scans.
fn filter(subject: &PriceSubject) -> Vec<(&'static str, String)> {
    match subject {
        PriceSubject::Route { .. } => subject.pairs(),
        PriceSubject::Place { text, .. } => vec![("hotel", text.clone())],
    }
}
