//! A notice from the alerts of a run.

use std::cmp::Reverse;

use farescan_sheets::alert::{gap, is_report, outcome, title};
use farescan_sheets::numbers::amount_in;
use farescan_sheets::{fare, parity, trip};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use reqwest::Url;
use serde_json::{Map, Value};

use super::plain;
use crate::contract::channels::{ChannelNotice, NoticeLink, NoticePriority};
use crate::contract::monitors::{Alert, MonitorAlerts, RuleType};
use crate::contract::{Endpoint, RawJson};

/// The longest title and line, in characters.
const MAX_TITLE: usize = 150;
const MAX_LINE: usize = 200;
/// The longest link, in bytes.
const MAX_LINK: usize = 1_500;
/// The most alerts that a notice names beside the strongest.
const MAX_OTHERS: usize = 4;

/// The most markets of a report that a notice names.
const MAX_MARKETS: usize = 12;

/// The text of the link to an alert's page.
pub(super) const DETAILS: &str = "Details";

/// What a notice says of the run beside its alerts.
#[derive(Debug, Clone, Default)]
pub struct MonitorView {
    /// The scan of the run, with its dates.
    pub scan: Map<String, Value>,
    /// The fare of the first alert: airline, times, duration, stops.
    pub fare: Option<String>,
    /// The root of the dashboard's pages, if the service knows it.
    pub public_url: Option<String>,
}

/// What a channel wants to hear.
#[derive(Debug, Clone)]
pub struct ChannelView {
    /// Alerts of a lower priority are left out.
    pub least_priority: NoticePriority,
    /// The zone of the times in its messages.
    pub timezone: String,
}

/// The fare of an alert in the answer of its search: airline, times, duration, stops.
pub fn fare_of(endpoint: Endpoint, alert: &Alert, answer: &RawJson) -> Option<String> {
    fare::line(
        endpoint,
        answer.as_str(),
        alert.price?,
        alert.buy_link.as_deref(),
    )
}

/// Alerts in the order in which a notice names them: of one priority in the given order, the strongest
/// first, and a report last, as it comes with each run.
pub fn most_urgent_first(alerts: &[Alert]) -> Vec<Alert> {
    let mut sorted = alerts.to_vec();
    sorted.sort_by_key(|alert| (Reverse(priority(&alert.rule_type)), is_report(alert)));
    sorted
}

/// The notice of a run's alerts, [`most_urgent_first`], and how many it is about; `None`: all are of a
/// lower priority than the channel wants.
pub fn of_alerts(
    event: &MonitorAlerts,
    run: &MonitorView,
    channel: &ChannelView,
) -> Option<(ChannelNotice, u64)> {
    let is_wanted = |alert: &&Alert| priority(&alert.rule_type) >= channel.least_priority;
    let wanted: Vec<_> = event.alerts.iter().filter(is_wanted).collect();
    let (strongest, others) = wanted.split_first()?;
    // At most a thousand alerts of a run are stored, and rules may fire more often.
    let fired = if wanted.len() == event.alerts.len() {
        u64::from(event.fired)
    } else {
        wanted.len() as u64
    };
    // Its markets have lines of their own.
    let others: Vec<_> = others
        .iter()
        .filter(|alert| alert.markets.is_none())
        .collect();
    let report = wanted.iter().find_map(|alert| alert.markets.as_ref());
    let summary = report.filter(|_| strongest.markets.is_none());
    let summary = summary.map(|report| format!("Also: {}", parity::summary(report)));
    let markets = report.map_or_else(Vec::new, |report| parity::lines(report, MAX_MARKETS));
    let named = 1 + others.len().min(MAX_OTHERS) + usize::from(summary.is_some());
    let mut lines: Vec<_> = facts(strongest, run, &channel.timezone)
        .chain(summary)
        .chain(markets)
        .chain(others.iter().take(MAX_OTHERS).map(|alert| {
            let trip = trip_of(alert, run);
            format!("Also: {trip}: {}", outcome(alert))
        }))
        .collect();
    let left = fired.saturating_sub(named as u64);
    if left > 0 {
        lines.push(format!("and {left} more"));
    }
    lines.push(format!("Monitor: {}", event.name));
    let subject = match &strongest.markets {
        Some(report) => {
            let trip = trip::trip(&run.scan, &Map::new()).unwrap_or_else(|| event.name.clone());
            format!("{trip}: {}", parity::summary(report))
        }
        None => format!("{}: {}", trip_of(strongest, run), outcome(strongest)),
    };
    let notice = ChannelNotice {
        monitor_id: Some(event.monitor_id),
        alert_id: Some(strongest.id),
        title: plain(&subject, MAX_TITLE),
        lines: lines.iter().map(|line| plain(line, MAX_LINE)).collect(),
        price: strongest.price,
        currency: strongest.currency.clone(),
        observed_at: strongest.observed_at,
        verdict: strongest.verdict.map(|verdict| verdict.to_string()),
        priority: priority(&strongest.rule_type),
        links: links(strongest, run),
        fired_at: strongest.fired_at,
    };
    Some((notice, fired))
}

/// The priority of alerts of a rule. Types that no rule has any more are of old versions.
fn priority(rule_type: &str) -> NoticePriority {
    match RuleType::parse(rule_type) {
        Some(
            RuleType::PriceBelow
            | RuleType::Verdict
            | RuleType::BackInStock
            | RuleType::PlanEndsBeforeReset,
        ) => NoticePriority::High,
        Some(RuleType::SoldOut | RuleType::Stale) => NoticePriority::Low,
        Some(
            RuleType::DropPercent
            | RuleType::NewLow
            | RuleType::PercentileAtMost
            | RuleType::ParityGapPercent
            | RuleType::Available
            | RuleType::EveryRun,
        )
        | None => NoticePriority::Normal,
    }
}

/// The route or hotel and the dates of an alert.
fn trip_of(alert: &Alert, run: &MonitorView) -> String {
    trip::trip(&run.scan, &alert.cell).unwrap_or_else(|| "A trip".to_owned())
}

fn facts(alert: &Alert, run: &MonitorView, zone: &str) -> impl Iterator<Item = String> {
    let currency = alert.currency.as_deref();
    let band = alert.price_insights_low.zip(alert.price_insights_high);
    let band = band.map(|(low, high)| {
        let (low, high) = (amount_in(low, None), amount_in(high, currency));
        format!(" (usual: {low} to {high})")
    });
    let verdict = alert.verdict.map(|verdict| {
        let band = band.unwrap_or_default();
        format!("The provider calls it {verdict}{band}")
    });
    let before = alert.before.as_ref().filter(|_| alert.price.is_some());
    let before = before.map(|mark| format!("Before: {}", amount_in(mark.price, currency)));
    let seller = alert.room.clone().or_else(|| run.fare.clone());
    let searched = alert.searched.as_ref().filter(|_| is_report(alert));
    let searched = searched.map(|of| {
        let complete = of.answered + of.partial;
        format!("{complete} of {} searches completed", of.searches)
    });
    [
        alert.price.map(|_| title(alert)),
        gap(alert),
        searched,
        before,
        seller,
        verdict,
        alert
            .observed_at
            .map(|at| format!("Found {}", local_time(at, zone))),
    ]
    .into_iter()
    .flatten()
}

/// `1 Dec 2026, 06:00 (Europe/London)`.
fn local_time(time: Timestamp, zone: &str) -> String {
    let known = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let local = time.to_zoned(known).strftime("%-d %b %Y, %H:%M");
    format!("{local} ({zone})")
}

/// The alert's page, and where the trip is booked.
fn links(alert: &Alert, run: &MonitorView) -> Vec<NoticeLink> {
    let page = run.public_url.as_ref().map(|root| NoticeLink {
        text: DETAILS.to_owned(),
        url: format!("{}/alerts/{}", root.trim_end_matches('/'), alert.id),
    });
    let book = alert.buy_link.as_ref().or(alert.link.as_ref());
    let book = book.filter(|url| is_link(url)).map(|url| NoticeLink {
        text: "Book".to_owned(),
        url: url.clone(),
    });
    page.into_iter().chain(book).collect()
}

fn is_link(url: &str) -> bool {
    url.len() <= MAX_LINK
        && url.bytes().all(|byte| byte.is_ascii_graphic())
        && Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}
