//! `/alerts`: what rules have reported, each with the values by which it fired.

use axum::Router;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::numbers;
use farescan_sheets::rule;
use farescan_sheets::trip;
use maud::{Markup, html};
use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::Value;
use tokio::time::timeout;

use super::failure::PageFailure;
use super::form::FormFields;
use super::layout::{NavItem, page};
use super::links;
use super::parts::{self, Tone, VERDICT_TIMEOUT};
use super::reported::ReportedMonitors;
use super::session::Session;
use super::sheet;
use farescan_core::app::AppState;
use farescan_core::contract::FieldValue as _;
use farescan_core::contract::monitors::{
    Alert, AlertPage, AlertsQuery, PriceMark, Rule, RuleState, RuleType,
};
use farescan_core::contract::scans::ParityVerdict;
use farescan_core::ids::AlertId;
use farescan_core::monitors::alerts::read;

const PATH: &str = links::ALERTS;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, get(list))
        .route("/alerts/{id}", get(one))
}

async fn list(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let given = || query.pairs().filter(|(_, text)| !text.is_empty());
    let filter = AlertsQuery::from_query(given())?;
    let alerts = match session.tenant() {
        Some(tenant) => read::alerts(session.pool()?, tenant, &filter)
            .await?
            .ok_or_else(|| PageFailure::not_found("monitor"))?,
        None => AlertPage {
            data: Vec::new(),
            next_cursor: None,
        },
    };
    let monitors = match session.tenant() {
        Some(tenant) => ReportedMonitors::of_alerts(&session, tenant, &alerts.data).await?,
        None => ReportedMonitors::default(),
    };
    let is_filtered = filter.monitor_id.is_some() || filter.r#type.is_some();
    let here = parts::path_with(PATH, given().filter(|(name, _)| *name != "cursor"));
    let body = html! {
        div class="head" {
            div {
                h1 { "Alerts" }
                p class="sub" {
                    "What the rules of your monitors have reported."
                    @if let Some(monitor) = filter.monitor_id {
                        " Of one " a href=(links::monitor(monitor)) { "monitor" } "; " a href=(PATH) { "show all" } "."
                    }
                }
            }
            div class="actions" { a class="button" href=(links::DELIVERIES) { "Deliveries" } }
        }
        (type_filter(&filter))
        section class="card" {
            @if alerts.data.is_empty() {
                (empty(is_filtered))
            } @else {
                div class="scroll" tabindex="0" role="region" aria-label="Alerts" { (table(&alerts.data, &monitors)) }
                (parts::next_page(&here, alerts.next_cursor.as_deref()))
            }
        }
    };
    Ok(page(&session, "Alerts", NavItem::Alerts, body))
}

fn type_filter(filter: &AlertsQuery) -> Markup {
    let base = filter.monitor_id.map_or_else(
        || PATH.to_owned(),
        |monitor| parts::with_query(PATH, "monitor_id", &monitor.to_string()),
    );
    html! {
        nav class="tabs" aria-label="Type of rule" {
            a href=(base) aria-current=[filter.r#type.is_none().then_some("true")] { "All" }
            @for rule in RuleType::ALL {
                a href=(parts::with_query(&base, "type", rule.as_str())) aria-current=[(filter.r#type == Some(*rule)).then_some("true")] { (rule::type_name(*rule)) }
            }
        }
    }
}

fn empty(is_filtered: bool) -> Markup {
    parts::empty_state(&html! {
        @if is_filtered {
            p { "No alert of this kind." }
            a class="button" href=(PATH) { "All alerts" }
        } @else {
            p { "No alerts yet. A monitor with a rule, such as a price below an amount, reports here and to its webhook." }
            a class="button primary" href="/monitors/new" { "New monitor" }
        }
    })
}

fn table(alerts: &[Value], monitors: &ReportedMonitors) -> Markup {
    html! {
        table class="rows" {
            thead {
                tr {
                    th scope="col" { "Fired" }
                    th scope="col" { "Rule" }
                    th scope="col" { "Trip" }
                    th scope="col" class="num" { "Price" }
                    th scope="col" class="num" { "Before" }
                    th scope="col" { "Monitor" }
                }
            }
            tbody { @for alert in alerts { (row(alert, monitors)) } }
        }
    }
}

/// Alerts are stored as they were sent; one that this program cannot read is still listed.
fn row(stored: &Value, monitors: &ReportedMonitors) -> Markup {
    let Ok(alert) = serde_json::from_value::<Alert>(stored.clone()) else {
        return html! { tr { td colspan="6" { a href=(stored_path(stored)) { "An alert of another version" } } } };
    };
    html! {
        tr {
            td class="nowrap" { a href=(path(alert.id)) { (parts::time(alert.fired_at)) } }
            td { (sentence(&alert)) }
            td { (trip(&alert, monitors)) }
            td class="num" { b { (price(&alert)) } }
            td class="num" { (before(&alert)) }
            td { (monitors.link(alert.monitor_id)) }
        }
    }
}

fn path(id: AlertId) -> String {
    format!("{PATH}/{id}")
}

fn stored_path(stored: &Value) -> String {
    let id = stored.get("id").and_then(Value::as_str).unwrap_or_default();
    format!("{PATH}/{id}")
}

/// One line of a stored alert, with its link.
pub(super) fn line(stored: &Value) -> Markup {
    let Ok(alert) = serde_json::from_value::<Alert>(stored.clone()) else {
        return html! { a href=(stored_path(stored)) { "An alert of another version" } };
    };
    html! {
        a href=(path(alert.id)) { (sentence(&alert)) }
        " " b { (price(&alert)) } " " span class="muted" { (cell_words(&alert)) " " (parts::time(alert.fired_at)) }
    }
}

/// The rule as a sentence; one of another version by its type alone.
fn sentence(alert: &Alert) -> String {
    Rule::read(&alert.rule).map_or_else(
        |_| trip::words(&alert.rule_type),
        |rule| rule::sentence(&rule, alert.currency.as_deref()),
    )
}

fn price(alert: &Alert) -> String {
    alert.price.map_or_else(
        || "no price".to_owned(),
        |price| numbers::amount_in(price, alert.currency.as_deref()),
    )
}

fn before(alert: &Alert) -> String {
    alert.before.as_ref().map_or_else(
        || "–".to_owned(),
        |before| numbers::amount_in(before.price, alert.currency.as_deref()),
    )
}

/// The swept values of the alert's search: `departure date 2027-01-14`.
fn cell_words(alert: &Alert) -> String {
    let value = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let words: Vec<_> = alert
        .cell
        .iter()
        .map(|(name, of)| format!("{} {}", trip::words(name), value(of)))
        .collect();
    words.join(", ")
}

/// What the alert's search was of. Without its search and monitor only the swept values are known.
fn trip(alert: &Alert, monitors: &ReportedMonitors) -> String {
    monitors
        .alert_trip(alert)
        .unwrap_or_else(|| cell_words(alert))
}

async fn one(session: Session, Path(id): Path<String>) -> Result<Response, PageFailure> {
    let unknown = || PageFailure::not_found("alert");
    let id: AlertId = id.parse().map_err(|_| unknown())?;
    let tenant = session.tenant().ok_or_else(unknown)?;
    let mut stored = read::alert(session.pool()?, tenant, id)
        .await?
        .ok_or_else(unknown)?;
    let json = serde_json::to_string_pretty(&stored).unwrap_or_default();
    // Without the history the page shows no verdict.
    let judged = async {
        let _permits = session.heavy_read_permits().await?;
        let (history, alerts) = (session.history_pool()?, std::slice::from_mut(&mut stored));
        read::judge(session.pool()?, history, tenant, alerts).await?;
        Ok::<_, PageFailure>(())
    };
    drop(timeout(VERDICT_TIMEOUT, judged).await);
    let monitors =
        ReportedMonitors::of_alerts(&session, tenant, std::slice::from_ref(&stored)).await?;
    let alert: Option<Alert> = serde_json::from_value(stored).ok();
    let title = alert.as_ref().map_or_else(|| "Alert".to_owned(), sentence);
    let body = html! {
        div class="head" {
            div {
                p class="sub" { a href=(PATH) { "Alerts" } }
                h1 { (title) }
                @if let Some(alert) = &alert {
                    p { b { (trip(alert, &monitors)) } }
                    p class="sub" { "Fired " (parts::time(alert.fired_at)) " · " (monitors.link(alert.monitor_id)) }
                }
            }
        }
        @if let Some(alert) = &alert {
            (stats(alert))
            div class="grid2" { (evidence(alert)) (rule_state(alert)) }
        }
        section class="card" {
            details class="fold" open[alert.is_none()] {
                summary { "The alert as JSON, as it was sent" }
                pre tabindex="0" { (json) }
            }
        }
    };
    Ok(page(&session, &title, NavItem::Alerts, body))
}

fn stats(alert: &Alert) -> Markup {
    let currency = alert.currency.as_deref();
    let change = alert
        .price
        .zip(alert.before.as_ref())
        .and_then(|(price, before)| numbers::percent_of(price, before.price));
    html! {
        div class="stats" {
            div class="stat" {
                div class="label" { "Price" }
                div class="value" { (price(alert)) }
                @if let Some(at) = alert.observed_at { div class="note" { "found " (parts::time(at)) } }
            }
            div class="stat" {
                div class="label" { "Before" }
                @match &alert.before {
                    Some(mark) => {
                        div class="value" { (numbers::amount_in(mark.price, currency)) }
                        div class="note" { (parts::time(mark.at)) }
                    }
                    None => { div class="value" { "–" } div class="note" { "the first price" } }
                }
            }
            div class="stat" {
                div class="label" { "Change" }
                div class="value" { @match change { Some(percent) => { (signed(percent)) " %" } None => { "–" } } }
            }
            div class="stat" {
                div class="label" { "Compared with" }
                div class="value" { (threshold(alert)) }
                @if let Some(reference) = &alert.reference {
                    div class="note" { "from " (numbers::amount_in(reference.price, currency)) ", " (parts::time(reference.at)) }
                }
            }
        }
    }
}

/// A percentage with its sign and one digit: `−12.5`.
fn signed(percent: Decimal) -> String {
    let rounded = percent
        .round_dp_with_strategy(1, RoundingStrategy::MidpointAwayFromZero)
        .normalize();
    if rounded.is_sign_negative() && !rounded.is_zero() {
        format!("\u{2212}{}", rounded.abs())
    } else {
        format!("+{rounded}")
    }
}

/// The compared value, in its unit.
fn threshold(alert: &Alert) -> String {
    let Some(threshold) = alert.threshold else {
        return "–".to_owned();
    };
    match alert.rule_type.parse() {
        Ok(RuleType::ParityGapPercent) => format!("{} %", threshold.normalize()),
        Ok(RuleType::PercentileAtMost) => format!("percentile {}", threshold.normalize()),
        Ok(RuleType::Stale) => {
            numbers::counted(u64::try_from(threshold).unwrap_or_default(), "run")
        }
        _ => numbers::amount_in(threshold, alert.currency.as_deref()),
    }
}

fn evidence(alert: &Alert) -> Markup {
    let currency = alert.currency.as_deref();
    let link = alert.buy_link.as_ref().or(alert.link.as_ref());
    html! {
        section class="card" {
            h2 { "Evidence" }
            dl class="kv" {
                @if let Some(item) = alert.item_id {
                    dt { "Search" } dd { a href=(parts::item_path(item)) { "The item with the price" } @if let Some(status) = alert.search_status { " " (parts::search_status(status)) } }
                }
                @if let Some(scan) = alert.scan_id { dt { "Run" } dd { a href=(parts::scan_path(scan)) { "The scan of the run" } } }
                dt { "Slot" } dd { (parts::time(alert.slot)) " " span class="muted" { "(" (alert.slot_kind) ")" } }
                @if let Some(room) = &alert.room { dt { "Room" } dd { (room) } }
                @if let Some((low, high)) = alert.price_insights_low.zip(alert.price_insights_high) {
                    dt { "Provider's usual range" } dd { (numbers::amount_in(low, None)) " to " (numbers::amount_in(high, currency)) }
                }
                @if let Some(verdict) = alert.verdict { dt { "Provider's verdict" } dd { (verdict) } }
                @if let Some(verdict) = &alert.history_verdict { dt { "By your past prices" } dd { (sheet::history_verdict(verdict)) } }
                @if let Some(first) = &alert.found_first { dt { "Found first" } dd { (mark_words(first, currency)) } }
                @if let Some(at) = alert.confirmed_at { dt { "Confirmed" } dd { "by one more search " (parts::time(at)) } }
                @if let Some(plan) = &alert.plan { dt { "Plan" } dd { (plan.sentence()) } }
                @if let Some(at) = alert.was_empty_at { dt { "Last without offers" } dd { (parts::time(at)) } }
                @if let Some(baseline) = &alert.baseline {
                    dt { "Baseline market" }
                    dd {
                        (baseline.proxy_country.to_uppercase())
                        @if let Some(price) = baseline.price { ": " (numbers::amount_in(price, currency)) }
                        @if let Some(percent) = alert.price.zip(baseline.price).filter(|_| baseline.difference.is_some()).and_then(|(price, base)| numbers::percent_of(price, base)) { ", difference " (signed(percent)) " %" }
                        " " (parity(baseline.verdict))
                        div class="sub" { (baseline.samples) " prices against " (baseline.baseline_samples) }
                    }
                }
                @if let Some(searched) = &alert.searched {
                    dt { "Searches of the run" }
                    dd { (searched.answered) " of " (searched.searches) " complete, " (searched.partial) " partial, " (searched.degraded) " degraded" }
                }
                @if let Some(link) = link.filter(|link| link.starts_with("https://")) {
                    dt { "Book" } dd { a href=(link) rel="noreferrer noopener external" { "Open the offer" } }
                }
            }
        }
    }
}

fn parity(verdict: ParityVerdict) -> Markup {
    match verdict {
        ParityVerdict::Gap => parts::chip(Tone::Warn, "gap"),
        ParityVerdict::Noise => parts::chip(Tone::Plain, "noise"),
        ParityVerdict::Insufficient => parts::chip(Tone::Plain, "too few prices"),
        ParityVerdict::NotComparable => parts::chip(Tone::Plain, "not comparable"),
    }
}

fn rule_state(alert: &Alert) -> Markup {
    let currency = alert.currency.as_deref();
    html! {
        section class="card" {
            h2 { "The rule" }
            p class="sub" { (sentence(alert)) ", judged by " (match alert.scope.as_str() { "cell" => "each date or market alone", _ => "the best price of the run" }) }
            div class="scroll" tabindex="0" role="region" aria-label="Evidence" {
                table {
                    thead { tr { th scope="col" { "State" } th scope="col" { "Before" } th scope="col" { "After" } } }
                    tbody {
                        tr { th scope="row" { "Armed" } td { (yes_no(Some(alert.state_before.armed))) } td { (yes_no(Some(alert.state_after.armed))) } }
                        (state_row("Lowest", alert, |state| state.lowest.as_ref().map(|mark| mark_words(mark, currency))))
                        (state_row("Last fired at", alert, |state| state.last_fired.as_ref().map(|mark| mark_words(mark, currency))))
                        (state_row("Had a price", alert, |state| state.had_price.map(|had| html! { (yes_no(Some(had))) })))
                        (state_row("Runs without an answer", alert, |state| state.runs_without_answer.map(|runs| html! { (runs) })))
                    }
                }
            }
        }
    }
}

fn mark_words(mark: &PriceMark, currency: Option<&str>) -> Markup {
    parts::price_mark(mark, currency)
}

/// A row of the states before and after; none if neither has the value.
fn state_row(name: &str, alert: &Alert, value: impl Fn(&RuleState) -> Option<Markup>) -> Markup {
    let (before, after) = (value(&alert.state_before), value(&alert.state_after));
    html! {
        @if before.is_some() || after.is_some() {
            tr {
                th scope="row" { (name) }
                td { @if let Some(before) = before { (before) } @else { "–" } }
                td { @if let Some(after) = after { (after) } @else { "–" } }
            }
        }
    }
}

fn yes_no(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "yes",
        Some(false) => "no",
        None => "–",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_sign_and_one_digit() {
        for (percent, shown) in [("-12.54", "\u{2212}12.5"), ("3.0", "+3"), ("-0.01", "+0")] {
            assert_eq!(
                signed(percent.parse().unwrap()).trim_start_matches("+-"),
                shown
            );
        }
    }
}
