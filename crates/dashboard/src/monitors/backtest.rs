//! What a monitor would have reported in the past days, by the caller's own stored prices
//! (monitors.md, rules 80 to 83): of a new monitor before it is created, and of a stored one.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use farescan_sheets::sheet::Section;
use farescan_sheets::{backtest, trip};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::new_form::{BACKTEST, DAYS, error_notice};
use super::one::own;
use crate::charts::{Bar, BarChart};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, page};
use crate::links;
use crate::parts;
use crate::session::Session;
use crate::sheet;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::monitors::{Backtest, BacktestQuery};

const RANGES: [&str; 4] = ["30", "90", "180", "366"];
const DEFAULT_RANGE: &str = RANGES[1];

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/monitors/{id}/backtest", get(show))
}

/// A replayed monitor, or why its days cannot be replayed.
pub(super) struct Replay {
    days: String,
    outcome: Result<(Section, Backtest), ApiError>,
}

impl Replay {
    /// Replays the body of a form whose step asks for it.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) async fn of_step(
        session: &Session,
        body: &Map<String, Value>,
        fields: &FormFields,
    ) -> Result<Option<Self>, ApiError> {
        match fields.text("step") {
            Some(BACKTEST) => Self::of(session, body, fields).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Replays the body of a monitor on the days that the form names.
    ///
    /// # Errors
    /// Those of the API that no other days or fields would mend.
    async fn of(
        session: &Session,
        body: &Map<String, Value>,
        fields: &FormFields,
    ) -> Result<Self, ApiError> {
        let days = fields.text(DAYS).unwrap_or(DEFAULT_RANGE).to_owned();
        let outcome = match replayed(session, body, &days).await {
            Ok(found) => Ok((backtest::of_body(&found, body), found)),
            Err(error) if error.details().is_empty() => return Err(error),
            Err(error) => Err(error),
        };
        Ok(Self { days, outcome })
    }

    /// The status of the page that shows it.
    pub(super) fn status(&self) -> StatusCode {
        match &self.outcome {
            Ok(_) => StatusCode::OK,
            Err(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    fn markup(&self) -> Markup {
        match &self.outcome {
            Ok((section, found)) => html! {
                (sheet::content(section))
                @if !found.alerts.is_empty() && is_whole(found) { (by_day(found)) }
            },
            Err(error) => error_notice(error.details()),
        }
    }
}

async fn replayed(
    session: &Session,
    body: &Map<String, Value>,
    days: &str,
) -> Result<Backtest, ApiError> {
    let query = BacktestQuery::from_query([("days", days)])?;
    let context = session.context()?;
    session.app().backtest(context, body, &query).await
}

/// The section: the days with a button, and beneath it what was replayed. `form` wraps the button in
/// the form that asks for it.
pub(super) fn section(replay: Option<&Replay>, form: impl Fn(Markup) -> Markup) -> Markup {
    let chosen = replay.map_or(DEFAULT_RANGE, |replay| replay.days.as_str());
    let controls = html! {
        div class="field" {
            label for=(DAYS) { "On the past" }
            select id=(DAYS) name=(DAYS) {
                @for days in RANGES { option value=(days) selected[days == chosen] { (days) " days" } }
                @if !RANGES.contains(&chosen) { option value=(chosen) selected { (chosen) " days" } }
            }
        }
        button type="submit" name="step" value=(BACKTEST) {
            @if replay.is_some() { "Replay again" } @else { "Replay" }
        }
    };
    html! {
        section class="card" id=(BACKTEST) {
            h2 { "What would this have reported?" }
            p class="sub" { "Replays the rules on the prices that you have already paid for, day by day. No search is made and nothing is billed." }
            (form(controls))
            @if let Some(replay) = replay { (replay.markup()) }
        }
    }
}

/// The page of a stored monitor.
async fn show(
    session: Session,
    Path(id): Path<String>,
    query: FormFields,
) -> Result<Response, PageFailure> {
    let monitor = own(&session, &id).await?;
    let path = links::monitor(monitor.id);
    let body = monitor.backtest_body().unwrap_or_default();
    let replay = Replay::of(&session, &body, &query).await?;
    let form = |controls: Markup| {
        html! { form class="filters" method="get" action={ (path) "/backtest" } { (controls) } }
    };
    let title = format!("{}: replayed", monitor.name);
    let body = html! {
        (parts::head(&html! { a href=(path) { (monitor.name) } }, "Its rules on the past", &html! { (trip::monitor_scan(&monitor.scan)) }, &html! { a class="button" href={ (path) "/edit" } { "Change the rules" } }))
        (section(Some(&replay), form))
    };
    let status = replay.status();
    Ok((status, page(&session, &title, NavItem::Monitors, body)).into_response())
}

fn day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// Whether all alerts are known.
fn is_whole(found: &Backtest) -> bool {
    usize::try_from(found.fired).is_ok_and(|fired| fired == found.alerts.len())
}

/// How often it would have reported.
fn by_day(found: &Backtest) -> Markup {
    let mut bars: Vec<Bar> = Vec::new();
    for alert in &found.alerts {
        let on = day(alert.slot);
        match bars.last_mut().filter(|bar| bar.day == on) {
            Some(bar) => bar.value += 1,
            None => bars.push(Bar {
                day: on,
                value: 1,
                others: Vec::new(),
            }),
        }
    }
    let chart = BarChart {
        id: "backtest-by-day",
        title: "Alerts by day (UTC)",
        names: &["alerts"],
        range: (day(found.since), day(found.until)),
        bars,
    };
    html! { h3 { "Alerts by day (UTC)" } (chart.markup()) }
}
