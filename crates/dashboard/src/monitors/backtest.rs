//! What a monitor would have reported in the past days, by the caller's own stored prices
//! (monitors.md, rules 80 to 83): of a new monitor before it is created, and of a stored one.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::numbers;
use farescan_sheets::rule::{sentence, type_name};
use farescan_sheets::trip;
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
use crate::layout::{NavItem, page_with_status};
use crate::links;
use crate::parts;
use crate::session::Session;
use crate::sheet;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::monitors::{Backtest, BacktestAlert, BacktestCeiling, BacktestQuery};

const RANGES: [&str; 4] = ["30", "90", "180", "366"];
const DEFAULT_RANGE: &str = RANGES[1];

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/monitors/{id}/backtest", get(show))
}

/// A replayed monitor, or why its days cannot be replayed.
pub(super) struct Replay {
    days: String,
    zone: String,
    is_watch: bool,
    outcome: Result<Backtest, ApiError>,
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
        let part = |object: &str, name: &str| body.get(object)?.get(name).cloned();
        let zone = part("schedule", "timezone");
        let outcome = match replayed(session, body, &days).await {
            Err(error) if error.details().is_empty() => return Err(error),
            outcome => outcome,
        };
        Ok(Self {
            days,
            zone: zone
                .as_ref()
                .and_then(Value::as_str)
                .unwrap_or("UTC")
                .to_owned(),
            is_watch: part("scan", "strategy")
                .is_some_and(|strategy| strategy.get("watch").is_some()),
            outcome,
        })
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
            Ok(found) => html! {
                (stats(found))
                @if let Some(why) = why_none(found) { (parts::empty_state(&why)) }
                @else { (self.alerts(found)) }
                (notes(found, self.is_watch))
            },
            Err(error) => error_notice(error.details()),
        }
    }

    fn alerts(&self, found: &Backtest) -> Markup {
        let shown = u64::try_from(found.alerts.len()).unwrap_or(u64::MAX);
        html! {
            @if is_whole(found) { (by_day(found)) }
            h3 { "Each alert" }
            div class="scroll replayed" tabindex="0" role="region" aria-label="Alerts that would have been sent" {
                table class="rows" {
                    thead {
                        tr {
                            th scope="col" { "Run" }
                            th scope="col" { "Rule" }
                            th scope="col" { "Dates" }
                            th scope="col" class="num" { "Price" }
                            th scope="col" { "Compared with" }
                        }
                    }
                    tbody { @for alert in &found.alerts { (row(alert, &self.zone)) } }
                }
            }
            @if !is_whole(found) {
                p class="hint" {
                    "These are the first " (numbers::count(shown)) " of " (numbers::count(found.fired))
                    ". A stricter rule would report less often."
                }
            }
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
        div class="head" {
            div {
                p class="sub" { a href=(path) { (monitor.name) } }
                h1 { "Its rules on the past" }
                p class="sub" { (trip::monitor_scan(&monitor.scan)) }
            }
            div class="actions" { a class="button" href={ (path) "/edit" } { "Change the rules" } }
        }
        (section(Some(&replay), form))
    };
    let status = replay.status();
    Ok(page_with_status(
        status,
        &session,
        &title,
        NavItem::Monitors,
        body,
    ))
}

fn stats(found: &Backtest) -> Markup {
    html! {
        div class="stats flat" {
            div class="stat" {
                div class="label" { "Alerts" }
                div class="value" { (numbers::count(found.fired)) }
            }
            div class="stat" {
                div class="label" { "Days with prices" }
                div class="value" { (numbers::count(found.days_with_prices)) " " small { "of " (numbers::count(found.days)) } }
                div class="note" { (numbers::count(found.searches_with_prices)) " of " (numbers::count(found.searches)) " searches have one" }
            }
            div class="stat" {
                div class="label" { "Runs" }
                div class="value" { (numbers::count(found.runs)) @if found.runs < found.slots { " " small { "of " (numbers::counted(found.slots, "slot")) } } }
                div class="note" { (day(found.since).strftime("%-d %b %Y")) " to " (day(found.until).strftime("%-d %b %Y")) }
            }
            div class="stat" {
                div class="label" { "They would have cost" }
                div class="value" { (numbers::request_range(found.requests)) }
                div class="note" { "this replay: none" }
            }
        }
    }
}

fn day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// Why there is no alert; `None` if there are some.
fn why_none(found: &Backtest) -> Option<Markup> {
    if found.slots == 0 {
        return Some(html! { p { "The schedule has no run in this time." } });
    }
    if found.days_with_prices == 0 {
        return Some(html! {
            p { "Your history has no price of these searches in this time, so there is nothing to replay." }
            p { "Scans and the runs of monitors fill it. Dates relative to a run, such as " code { "+7d" } ", need prices of many departures." }
            a class="button" href="/scans/new" { "New scan" }
        });
    }
    (found.fired == 0).then(|| html! { p { "No rule would have fired." } })
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

fn row(alert: &BacktestAlert, zone: &str) -> Markup {
    let others = alert.other_values();
    html! {
        tr {
            td class="nowrap" { (parts::zoned(alert.slot, zone)) }
            td { (sentence(&alert.rule, Some(&alert.currency))) }
            td class="nowrap" {
                (alert.first_date.strftime("%a %-d %b %Y"))
                @if let Some(last) = alert.last_date { " – " (last.strftime("%a %-d %b %Y")) }
                @if !others.is_empty() { div class="sub" { (others.join(", ")) } }
            }
            td class="num" { b { (numbers::price(alert.price, &alert.currency)) } }
            td { (compared_with(alert)) }
        }
    }
}

/// The price or the past prices with which the rule compared.
fn compared_with(alert: &BacktestAlert) -> Markup {
    if let Some(verdict) = &alert.history_verdict {
        return sheet::history_verdict(verdict);
    }
    if let Some(at) = alert.was_empty_at {
        return html! { span class="muted" { "nothing on offer on " (day(at).strftime("%-d %b %Y")) } };
    }
    let price = |price| numbers::price(price, &alert.currency);
    let from = alert.reference.as_ref();
    let base = from.map(|mark| mark.price).or(alert.threshold);
    let change = base.and_then(|base| numbers::percent_of(alert.price, base));
    html! {
        @if let Some(mark) = from {
            (price(mark.price)) " " span class="muted" { "of " (day(mark.at).strftime("%-d %b %Y")) }
            @if let Some(threshold) = alert.threshold.filter(|threshold| *threshold != mark.price) { ", at most " (price(threshold)) }
        } @else if let Some(threshold) = alert.threshold { (price(threshold)) }
        @if let Some(change) = change { " " span class="muted" { "(" (numbers::signed_percent(change)) ")" } }
    }
}

fn without_run(why: &str, months: &[BacktestCeiling]) -> Markup {
    html! {
        @if !months.is_empty() {
            div class="notice warn" {
                (why)
                ul {
                    @for month in months {
                        li { b { (numbers::counted(month.slots, "slot")) " from " (day(month.slot).strftime("%-d %b %Y")) } ": " (month.reason) "." }
                    }
                }
            }
        }
    }
}

/// What the replay leaves out.
fn notes(found: &Backtest, is_watch: bool) -> Markup {
    html! {
        @if !found.not_replayed.is_empty() {
            div class="notice warn" {
                "Not replayed:"
                ul { @for rule in &found.not_replayed { li { b { (type_name(rule.rule_type)) } ": " (rule.reason) "." } } }
            }
        }
        (without_run("The searches of some slots cannot be planned:", &found.failed))
        (without_run("The monthly limit would have left slots without a run:", &found.monthly_ceiling))
        @if is_watch {
            p class="hint" { "Every date with a stored price is replayed. The watch searches fewer dates in each run, so it may report less." }
        }
    }
}
