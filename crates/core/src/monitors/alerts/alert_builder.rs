//! Builds alerts and the webhook event from firings: the strongest first, bounded in number and
//! size. Pure.

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::{Map, Value};

use super::rule_key::RuleKey;
use super::rules::{self, FiringCause, RuleSubject};
use super::run_snapshot::{LowestPrice, RunSnapshot, ScopeView};
use super::state::{PricePoint, RuleMemory, ScopeState};
use crate::contract::monitors::{
    Alert, AlertBaseline, MonitorAlerts, PriceMark, Rule, RuleScope, RuleState, SearchedShare,
    SlotKind,
};
use crate::contract::scans::{ItemState, Parity};
use crate::contract::{Api, FieldValue as _, SearchStatus};
use crate::ids::{AlertId, MonitorId, ScanId};
use crate::monitors::markets::market_report;
use crate::monitors::store::FirstPrice;

/// The most stored alerts of one run. Further firings are only counted.
pub(super) const MAX_STORED_ALERTS: usize = 1_000;
/// The most alerts in a delivery.
pub(super) const MAX_SENT_ALERTS: usize = 100;
/// The largest size of a delivery's alerts, in bytes: links may be long.
const MAX_EVENT_BYTES: usize = 200_000;

/// The evaluated run.
#[derive(Debug, Clone)]
pub(super) struct RunInfo {
    pub(super) monitor: MonitorId,
    pub(super) name: String,
    pub(super) slot: Timestamp,
    pub(super) kind: SlotKind,
    pub(super) scan: Option<ScanId>,
    pub(super) fired_at: Timestamp,
}

/// A rule that fired in a scope.
#[derive(Debug, Clone)]
pub(super) struct Firing {
    /// The index of the rule.
    pub(super) rule: usize,
    /// The key of the state; empty for the whole scan.
    pub(super) key: String,
    /// The index of the cell in the run, if any.
    pub(super) cell: Option<usize>,
    pub(super) fired: FiringCause,
    pub(super) price: Option<LowestPrice>,
    /// With the index of the baseline's cell.
    pub(super) parity: Option<(Parity, usize)>,
    /// The price as it was found first, if a second search has found it again.
    pub(super) found_first: Option<FirstPrice>,
    pub(super) before: ScopeState,
    pub(super) after: ScopeState,
}

impl Firing {
    /// The firing with its price in a view, which the state after it has too.
    pub(super) fn with_price_of(mut self, view: &ScopeView) -> Self {
        let at = self.fired.price;
        self.price = at.and_then(|at| view.offers().nth(at)).cloned();
        if let Some(price) = &self.price {
            self.after.last_fired = Some(price.mark());
        }
        self
    }

    pub(super) fn scope(&self) -> RuleScope {
        if self.key.is_empty() {
            RuleScope::Scan
        } else {
            RuleScope::Cell
        }
    }

    /// The sort key: the whole scan before its cells, then the strongest first. It does not depend
    /// on the order of the cells.
    pub(super) fn rank(&self) -> (bool, std::cmp::Reverse<Decimal>, usize, &str) {
        (
            !self.key.is_empty(),
            std::cmp::Reverse(self.fired.strength),
            self.rule,
            &self.key,
        )
    }
}

/// The strongest firings, and the count of all.
#[derive(Debug)]
pub(super) struct StrongestFirings {
    pub(super) count: usize,
    most: usize,
    firings: Vec<Firing>,
}

impl Default for StrongestFirings {
    fn default() -> Self {
        Self::at_most(MAX_STORED_ALERTS)
    }
}

impl StrongestFirings {
    /// Keeps so many.
    pub(super) const fn at_most(most: usize) -> Self {
        Self {
            count: 0,
            most,
            firings: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, firing: Firing) {
        self.count += 1;
        self.firings.push(firing);
        if self.firings.len() >= 2 * self.most {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.firings
            .sort_by(|one, other| one.rank().cmp(&other.rank()));
        self.firings.truncate(self.most);
    }

    pub(super) fn in_order(mut self) -> Vec<Firing> {
        self.cut();
        self.firings
    }
}

/// Builds the alerts of firings. The weakest gets the first id, so that a list with the newest
/// first begins with the strongest.
pub(super) fn build_alerts(
    run_info: &RunInfo,
    rules: &[(RuleKey, Rule)],
    run: Option<&RunSnapshot>,
    firings: &[Firing],
) -> Vec<Alert> {
    let is_report = |firing: &Firing| matches!(rules[firing.rule].1, Rule::EveryRun(_));
    let reported = run.filter(|_| firings.iter().any(is_report));
    let markets =
        reported.and_then(|run| market_report(&run.cells, rules.iter().map(|(_, rule)| rule)));
    let searched = run.map(searched_share);
    let alert = |firing: &Firing| {
        let rule = &rules[firing.rule].1;
        Alert {
            markets: markets.clone().filter(|_| is_report(firing)),
            searched: searched.clone(),
            ..build_alert(run_info, rule, run, firing)
        }
    };
    let mut alerts: Vec<_> = firings.iter().rev().map(alert).collect();
    alerts.reverse();
    alerts
}

fn build_alert(
    run_info: &RunInfo,
    rule: &Rule,
    run: Option<&RunSnapshot>,
    firing: &Firing,
) -> Alert {
    let price = firing.price.as_ref();
    let (amount, currency) = price.map(|price| (price.amount, &price.currency)).unzip();
    let found = price.zip(run).and_then(|(price, run)| {
        let cell = run.cells.all.get(price.location.0)?;
        Some((cell, cell.items.get(price.location.1)?))
    });
    let item = found.map(|(_, item)| item);
    let seen = item.map(|item| &item.observation);
    let cell = found.map(|(cell, _)| cell);
    let cell = cell.or_else(|| run?.cells.all.get(firing.cell?));
    let offer = seen.and_then(|seen| seen.offer.clone()).unwrap_or_default();
    let flights = run.is_some_and(|run| run.cells.endpoint.api() == Api::Flights);
    let before = firing.before.last.as_ref();
    let parity = firing.parity.as_ref().zip(run);
    let found_first = firing.found_first.as_ref();
    let plan = run.and_then(|run| run.plan.clone());
    Alert {
        id: AlertId::new(),
        monitor_id: run_info.monitor,
        slot: run_info.slot,
        slot_kind: run_info.kind,
        scan_id: run_info.scan,
        rule_type: rule.rule_type().as_str().to_owned(),
        rule: rule.to_value(),
        scope: firing.scope(),
        cell: cell.map_or_else(|| cell_values(&firing.key), |cell| cell.values.clone()),
        price: amount.map(|amount| amount.normalize()),
        currency: currency.or(firing.before.currency.as_ref()).cloned(),
        item_id: seen.map(|seen| seen.item),
        observed_at: item.and_then(|item| item.observed_at),
        search_status: seen.and_then(|seen| seen.search_status),
        before: price_mark(before.filter(|_| is_same_currency(firing))),
        threshold: firing
            .fired
            .threshold
            .map(|threshold| threshold.normalize()),
        reference: price_mark(firing.fired.reference.as_ref()),
        baseline: parity.map(|((parity, index), run)| alert_baseline(run, *index, parity)),
        price_insights_low: offer.band_low.map(|price| price.normalize()),
        price_insights_high: offer.band_high.map(|price| price.normalize()),
        verdict: offer.verdict,
        room: offer.seller.filter(|_| !flights),
        buy_link: offer.link.clone().filter(|_| flights),
        link: offer.link.filter(|_| !flights),
        history_verdict: firing.fired.verdict.clone(),
        was_empty_at: firing.fired.last_answer.map(|answer| answer.at),
        confirmed_at: found_first.and(price).map(|price| price.at),
        found_first: found_first.map(|first| PriceMark {
            price: first.price.normalize(),
            at: first.at,
        }),
        plan: plan.filter(|_| rules::of(rule).subject() == RuleSubject::Plan),
        markets: None,
        searched: None,
        state_before: rule_state(&firing.before),
        state_after: rule_state(&firing.after),
        fired_at: run_info.fired_at,
        notify_at: None,
        delivery_id: None,
    }
}

/// Whether the earlier price has the currency of the new one; an alert shows only such a price.
fn is_same_currency(firing: &Firing) -> bool {
    firing
        .price
        .as_ref()
        .is_none_or(|price| firing.before.currency.as_ref() == Some(&price.currency))
}

/// The values of a cell from its key, which is their JSON unless it was shortened.
fn cell_values(key: &str) -> Map<String, Value> {
    serde_json::from_str(key).unwrap_or_default()
}

pub(super) fn price_mark(mark: Option<&PricePoint>) -> Option<PriceMark> {
    mark.map(|mark| PriceMark {
        price: mark.price.normalize(),
        at: mark.at,
    })
}

fn rule_state(state: &ScopeState) -> RuleState {
    RuleState {
        armed: state.armed,
        lowest: price_mark(state.memory.lowest()),
        last_fired: price_mark(state.last_fired.as_ref()),
        had_price: state.memory.presence(),
        runs_without_answer: matches!(state.memory, RuleMemory::Absent(_))
            .then(|| state.memory.absent()),
    }
}

fn alert_baseline(run: &RunSnapshot, index: usize, parity: &Parity) -> AlertBaseline {
    let lowest = run.cell_view(index).prices.into_iter().next();
    let cell = &run.cells.all[index];
    AlertBaseline {
        proxy_country: cell
            .values
            .get("proxy_country")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        price: lowest.as_ref().map(|price| price.amount.normalize()),
        item_id: lowest
            .and_then(|price| cell.items.get(price.location.1))
            .map(|searched| searched.observation.item),
        difference: parity.difference,
        difference_percent: parity.difference_percent,
        samples: parity.samples,
        baseline_samples: parity.baseline_samples,
        verdict: parity.verdict,
    }
}

fn searched_share(run: &RunSnapshot) -> SearchedShare {
    let mut share = SearchedShare {
        searches: 0,
        answered: 0,
        partial: 0,
        degraded: 0,
        share: 0.0,
    };
    let items = run
        .cells
        .all
        .iter()
        .flat_map(|cell| &cell.items)
        .map(|searched| &searched.observation);
    for seen in items.filter(|seen| seen.state != ItemState::Skipped) {
        share.searches += 1;
        match (seen.state, seen.search_status) {
            (ItemState::Done, Some(SearchStatus::Ok | SearchStatus::Empty)) => share.answered += 1,
            (ItemState::Done, Some(SearchStatus::Partial)) => share.partial += 1,
            (ItemState::Done | ItemState::Failed, _) => share.degraded += 1,
            _ => {}
        }
    }
    let answered = f64::from(share.answered + share.partial) / f64::from(share.searches.max(1));
    share.share = (answered * 1e4).round() / 1e4;
    share
}

/// The event for the monitor's webhook, with as many of the strongest alerts as fit.
pub(super) fn webhook_event(run_info: &RunInfo, fired: usize, alerts: &[Alert]) -> MonitorAlerts {
    let sent = fitting(alerts);
    MonitorAlerts {
        monitor_id: run_info.monitor,
        name: run_info.name.clone(),
        slot: run_info.slot,
        slot_kind: run_info.kind,
        scan_id: run_info.scan,
        fired: u32::try_from(fired).unwrap_or(u32::MAX),
        truncated: sent.len() < fired,
        alerts: sent,
    }
}

/// As many of the first alerts as fit into an event.
pub(super) fn fitting<T: Serialize + Clone>(alerts: &[T]) -> Vec<T> {
    let mut bytes = 0;
    let fit = alerts.iter().take(MAX_SENT_ALERTS).take_while(|alert| {
        bytes += serde_json::to_string(alert).map_or(0, |text| text.len());
        bytes <= MAX_EVENT_BYTES
    });
    fit.cloned().collect()
}
