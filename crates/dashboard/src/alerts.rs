//! `/alerts`: what rules have reported, each with the values by which it fired.

use axum::Router;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::alert::{self, Reported};
use farescan_sheets::{fare, rule};
use maud::{Markup, html};
use tokio::time::timeout;

use super::failure::PageFailure;
use super::form::FormFields;
use super::layout::{NavItem, page};
use super::links;
use super::parts::{self, VERDICT_TIMEOUT};
use super::reported::ReportedMonitors;
use super::session::Session;
use super::sheet;
use farescan_core::app::AppState;
use farescan_core::contract::monitors::{Alert, AlertPage, AlertsQuery, Monitor, RuleType};
use farescan_core::ids::{AlertId, Kind, TenantId};
use farescan_core::monitors::alerts::read;
use farescan_core::scans;

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
            .ok_or(Kind::Monitor)?,
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
        (parts::head(&html! {}, "Alerts", &html! {
            "What the rules of your monitors have reported."
            @if let Some(monitor) = filter.monitor_id {
                " Of one " a href=(links::monitor(monitor)) { "monitor" } "; " a href=(PATH) { "show all" } "."
            }
        }, &html! {}))
        (type_filter(&filter))
        section class="card" {
            @if alerts.data.is_empty() {
                (empty(is_filtered))
            } @else {
                (sheet::table(&alert::table(&alerts.data, |of| monitors.of_alert(of))))
                (parts::next_page(&here, alerts.next_cursor.as_deref()))
            }
        }
    };
    Ok(page(&session, "Alerts", NavItem::Alerts, body))
}

fn type_filter(filter: &AlertsQuery) -> Markup {
    let base = filter.monitor_id.map_or_else(
        || PATH.to_owned(),
        |monitor| links::with_query(PATH, "monitor_id", &monitor.to_string()),
    );
    let types = RuleType::ALL.iter();
    let types = types.map(|rule| (rule.as_str(), rule::type_name(*rule).to_owned()));
    let chosen = filter.r#type.map(RuleType::as_str);
    parts::filter_tabs("Type of rule", &base, "type", chosen, types)
}

/// The newest alerts of some monitors, at most `most`; `None` without any.
pub(super) async fn of_monitors(
    session: &Session,
    monitors: &[Monitor],
    most: u16,
) -> Result<Option<Markup>, PageFailure> {
    let Some(tenant) = session.tenant() else {
        return Ok(None);
    };
    let limit = most.to_string();
    let mut alerts = Vec::new();
    for monitor in monitors {
        let id = monitor.id.to_string();
        let query = AlertsQuery::from_query([("monitor_id", id.as_str()), ("limit", &limit)])?;
        let page = read::alerts(session.pool()?, tenant, &query).await?;
        alerts.extend(page.into_iter().flat_map(|page| page.data));
    }
    // Ids sort by the time of their creation.
    alerts.sort_by(|one, other| other["id"].as_str().cmp(&one["id"].as_str()));
    alerts.truncate(most.into());
    if alerts.is_empty() {
        return Ok(None);
    }
    let reported = ReportedMonitors::of_alerts(session, tenant, &alerts).await?;
    let table = alert::table(&alerts, |of| reported.of_alert(of));
    Ok(Some(sheet::table(&table)))
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

async fn one(session: Session, Path(id): Path<String>) -> Result<Response, PageFailure> {
    let (tenant, id) = session.owned::<AlertId>(&id)?;
    let stored = read::alert(session.pool()?, tenant, id).await?;
    let mut stored = stored.ok_or(Kind::Alert)?;
    let json = serde_json::to_string_pretty(&stored).unwrap_or_default();
    // Without the answer the page shows no times, and without the history no verdict.
    let of: Option<Alert> = serde_json::from_value(stored.clone()).ok();
    let fare = match &of {
        Some(of) => timeout(VERDICT_TIMEOUT, fare_of(&session, tenant, of)).await,
        None => Ok(Ok(None)),
    };
    let fare = fare.ok().and_then(Result::ok).flatten();
    let judged = async {
        let _permits = session.heavy_read_permits().await?;
        let (history, alerts) = (session.history_pool()?, std::slice::from_mut(&mut stored));
        read::judge(session.pool()?, history, tenant, alerts).await?;
        Ok::<_, PageFailure>(())
    };
    drop(timeout(VERDICT_TIMEOUT, judged).await);
    let monitors =
        ReportedMonitors::of_alerts(&session, tenant, std::slice::from_ref(&stored)).await?;
    let of: Option<Alert> = serde_json::from_value(stored).ok();
    let offer = of.as_ref().and_then(alert::offer).map(str::to_owned);
    let shown = of.map(|of| {
        let reported = monitors.of_alert(&of);
        alert::sheet(&of, Reported { fare, ..reported })
    });
    let title = shown.as_ref().map_or("Alert", |shown| &shown.title);
    let body = html! {
        (parts::head(&html! { a href=(PATH) { "Alerts" } }, title, &html! { @if let Some(shown) = &shown { (sheet::facts(shown)) } }, &html! {
            @if let Some(offer) = offer { a class="button primary" href=(offer) rel="noreferrer noopener external" { "Open the offer" } }
        }))
        @if let Some(shown) = &shown {
            (sheet::figures(&shown.figures))
            div class="grid2" { @for part in &shown.sections { (sheet::section(part, &html! {}, &html! {})) } }
        }
        section class="card" {
            details class="fold" open[shown.is_none()] {
                summary { "The alert as JSON" }
                pre tabindex="0" { (json) }
            }
        }
    };
    Ok(page(&session, title, NavItem::Alerts, body))
}

/// The fare of an alert's price: airline, times, duration, stops.
async fn fare_of(
    session: &Session,
    tenant: TenantId,
    alert: &Alert,
) -> Result<Option<String>, PageFailure> {
    // Hotels have no `buy_link`.
    let (Some(item), Some(price), Some(link)) = (alert.item_id, alert.price, &alert.buy_link)
    else {
        return Ok(None);
    };
    let _permits = session.heavy_read_permits().await?;
    let pool = session.pool()?;
    let searched = scans::read::searches(pool, tenant, &[item]).await?;
    let answer = scans::read::answer(&mut *pool.acquire().await?, tenant, item).await?;
    let found = searched.get(&item).zip(answer);
    Ok(found.and_then(|((endpoint, _), answer)| {
        fare::line(*endpoint, answer.as_str(), price, Some(link))
    }))
}
