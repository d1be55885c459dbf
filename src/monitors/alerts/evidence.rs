//! From what fired to what is told: the alert with all that it went by, the strongest first, in bounds. Pure.

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::{Map, Value};

use super::identity::RuleKey;
use super::rules::Fired;
use super::sight::{self, Price};
use super::state::{Mark, Memory, State};
use crate::contract::Api;
use crate::contract::SearchStatus;
use crate::contract::monitors::{
    Alert, AlertBaseline, MonitorAlerts, PriceMark, Rule, RuleScope, RuleState, SearchedShare,
    SlotKind,
};
use crate::contract::scans::{ItemState, Parity};
use crate::ids::{AlertId, MonitorId, ScanId};

/// The most alerts of one run that are kept. What fires beyond them has fired: it is counted.
pub(super) const MOST_KEPT: usize = 1_000;
/// The most alerts of a delivery.
const MOST_TOLD: usize = 100;
/// The most bytes of them: receivers like short bodies, and links may be long.
const MOST_BYTES: usize = 200_000;

/// The run that is judged.
#[derive(Debug, Clone)]
pub(super) struct Of {
    pub(super) monitor: MonitorId,
    pub(super) name: String,
    pub(super) slot: Timestamp,
    pub(super) kind: SlotKind,
    pub(super) scan: Option<ScanId>,
    pub(super) fired_at: Timestamp,
}

/// A rule that fired for a scope.
#[derive(Debug, Clone)]
pub(super) struct Firing {
    /// The rule's place in the monitor.
    pub(super) rule: usize,
    /// What the state is kept under; empty for the whole scan.
    pub(super) key: String,
    /// Of a cell: its place in the run, where there is one.
    pub(super) cell: Option<usize>,
    pub(super) fired: Fired,
    pub(super) price: Option<Price>,
    /// With the cell of the baseline.
    pub(super) parity: Option<(Parity, usize)>,
    pub(super) before: State,
    pub(super) after: State,
}

impl Firing {
    /// What is told first is less: the whole scan before its cells, the strongest before the weaker; the same whatever the order of the
    /// cells.
    fn rank(&self) -> (bool, std::cmp::Reverse<Decimal>, usize, &str) {
        (
            !self.key.is_empty(),
            std::cmp::Reverse(self.fired.strength),
            self.rule,
            &self.key,
        )
    }
}

/// The strongest of a run's firings, in their order, and how many there are in all.
#[derive(Debug, Default)]
pub(super) struct Strongest {
    pub(super) all: usize,
    held: Vec<Firing>,
}

impl Strongest {
    pub(super) fn add(&mut self, firing: Firing) {
        self.all += 1;
        self.held.push(firing);
        if self.held.len() >= 2 * MOST_KEPT {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.held
            .sort_by(|one, other| one.rank().cmp(&other.rank()));
        self.held.truncate(MOST_KEPT);
    }

    pub(super) fn in_order(mut self) -> Vec<Firing> {
        self.cut();
        self.held
    }
}

/// The alerts of firings. Ids are made from the weakest on: what is listed newest first begins with the strongest.
pub(super) fn alerts(
    of: &Of,
    rules: &[(RuleKey, Rule)],
    run: Option<&sight::Run>,
    firings: &[Firing],
) -> Vec<Alert> {
    let searched = run.map(searched);
    let mut alerts: Vec<_> = firings
        .iter()
        .rev()
        .map(|firing| alert(of, &rules[firing.rule].1, run, firing, searched.as_ref()))
        .collect();
    alerts.reverse();
    alerts
}

fn alert(
    of: &Of,
    rule: &Rule,
    run: Option<&sight::Run>,
    firing: &Firing,
    searched: Option<&SearchedShare>,
) -> Alert {
    let found = firing.price.as_ref().zip(run).and_then(|(price, run)| {
        let cell = run.cells.all.get(price.found.0)?;
        Some((cell, cell.items.get(price.found.1)?))
    });
    let cell = found
        .map(|(cell, _)| cell)
        .or_else(|| run?.cells.all.get(firing.cell?));
    let offer = found
        .and_then(|(_, searched)| searched.seen.offer.clone())
        .unwrap_or_default();
    let flights = run.is_some_and(|run| run.cells.endpoint.api() == Api::Flights);
    let (buy_link, link) = if flights {
        (offer.link, None)
    } else {
        (None, offer.link)
    };
    Alert {
        id: AlertId::new(),
        monitor_id: of.monitor,
        slot: of.slot,
        slot_kind: of.kind,
        scan_id: of.scan,
        rule_type: rule.rule_type(),
        rule: rule.clone(),
        scope: if firing.key.is_empty() {
            RuleScope::Scan
        } else {
            RuleScope::Cell
        },
        cell: cell.map_or_else(|| values(&firing.key), |cell| cell.values.clone()),
        price: firing.price.as_ref().map(|price| price.amount.normalize()),
        currency: firing
            .price
            .as_ref()
            .map(|price| price.currency.clone())
            .or_else(|| firing.before.currency.clone()),
        item_id: found.map(|(_, searched)| searched.seen.item),
        observed_at: found.and_then(|(_, searched)| searched.observed_at),
        search_status: found.and_then(|(_, searched)| searched.seen.search_status),
        before: shown(firing.before.last.as_ref().filter(|_| compares(firing))),
        threshold: firing
            .fired
            .threshold
            .map(|threshold| threshold.normalize()),
        reference: shown(firing.fired.reference.as_ref()),
        baseline: firing
            .parity
            .as_ref()
            .zip(run)
            .map(|((parity, place), run)| baseline(run, *place, parity)),
        price_insights_low: offer.band_low.map(|price| price.normalize()),
        price_insights_high: offer.band_high.map(|price| price.normalize()),
        verdict: offer.verdict,
        room: offer.seller.filter(|_| !flights),
        buy_link,
        link,
        searched: searched.cloned(),
        state_before: state(&firing.before),
        state_after: state(&firing.after),
        fired_at: of.fired_at,
    }
}

/// The price before is told only beside one of its own currency.
fn compares(firing: &Firing) -> bool {
    firing
        .price
        .as_ref()
        .is_none_or(|price| firing.before.currency.as_ref() == Some(&price.currency))
}

/// A cell's key is its values, and what tells of slots without a run keeps all of it.
fn values(key: &str) -> Map<String, Value> {
    serde_json::from_str(key).unwrap_or_default()
}

pub(super) fn shown(mark: Option<&Mark>) -> Option<PriceMark> {
    mark.map(|mark| PriceMark {
        price: mark.price.normalize(),
        at: mark.at,
    })
}

fn state(state: &State) -> RuleState {
    RuleState {
        armed: state.armed,
        lowest: shown(state.memory.lowest()),
        last_fired: shown(state.told.as_ref()),
        had_price: state.memory.presence(),
        runs_without_answer: matches!(state.memory, Memory::Absent(_))
            .then(|| state.memory.absent()),
    }
}

fn baseline(run: &sight::Run, place: usize, parity: &Parity) -> AlertBaseline {
    let lowest = run.of_cell(place).prices.into_iter().next();
    let cell = &run.cells.all[place];
    AlertBaseline {
        proxy_country: cell
            .values
            .get("proxy_country")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        price: lowest.as_ref().map(|price| price.amount.normalize()),
        item_id: lowest
            .and_then(|price| cell.items.get(price.found.1))
            .map(|searched| searched.seen.item),
        difference: parity.difference,
        difference_percent: parity.difference_percent,
        samples: parity.samples,
        baseline_samples: parity.baseline_samples,
        verdict: parity.verdict,
    }
}

fn searched(run: &sight::Run) -> SearchedShare {
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
        .map(|searched| &searched.seen);
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

/// What the monitor's webhook is told: the strongest alerts, as many as fit.
pub(super) fn told(of: &Of, fired: usize, alerts: &[Alert]) -> MonitorAlerts {
    let mut bytes = 0;
    let fit = alerts.iter().take(MOST_TOLD).take_while(|alert| {
        bytes += serde_json::to_string(alert).map_or(0, |text| text.len());
        bytes <= MOST_BYTES
    });
    let told: Vec<_> = fit.cloned().collect();
    MonitorAlerts {
        monitor_id: of.monitor,
        name: of.name.clone(),
        slot: of.slot,
        slot_kind: of.kind,
        scan_id: of.scan,
        fired: u32::try_from(fired).unwrap_or(u32::MAX),
        truncated: told.len() < fired,
        alerts: told,
    }
}
