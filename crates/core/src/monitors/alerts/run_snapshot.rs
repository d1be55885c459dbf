//! The view of an ended run for rules: of the whole scan, of a cell, of a market against its
//! baseline. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::Value;

use super::state::{PricePoint, short_key};
use crate::contract::monitors::RuleScope;
use crate::contract::scans::{ItemState, Parity, ParityVerdict};
use crate::contract::usage::PlanForecast;
use crate::contract::{SearchStatus, Verdict};
use crate::history::past_prices::PastOfPrice;
use crate::ids::ItemId;
use crate::scans::cells::{CellItem, ItemObservation, ScanCell, ScanCells, compare_markets};

/// The reason of an empty result that says nothing about availability: the name matches no hotel.
const NO_MATCH: &str = "no_match";
/// The currency of results when the request names none.
const DEFAULT_CURRENCY: &str = "USD";

/// The view of one run in one scope.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ScopeView {
    /// The currency that the scan asks for in this scope.
    pub(super) requested_currency: String,
    /// The lowest price in each currency, in the order of the currencies.
    pub(super) prices: Vec<LowestPrice>,
    /// The same of the currencies that have implausible prices alone.
    pub(super) implausible: Vec<LowestPrice>,
    pub(super) availability: PriceAvailability,
    /// Whether any search got an answer; `None` if no search was made.
    pub(super) answered: Option<bool>,
    /// The gap between markets, if the rule compares markets and they are comparable.
    pub(super) gap: Option<Gap>,
    /// Whether the plan ends before its reset, if that is known and a rule asks. In a scan.
    pub(super) plan_ends: Option<bool>,
}

impl ScopeView {
    /// The prices of all offers: whether there is one does not depend on whether its price is right.
    pub(super) fn offers(&self) -> impl Iterator<Item = &LowestPrice> + Clone {
        self.prices.iter().chain(&self.implausible)
    }

    fn offers_mut(&mut self) -> impl Iterator<Item = &mut LowestPrice> {
        self.prices.iter_mut().chain(&mut self.implausible)
    }
}

/// The lowest price of a scope.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LowestPrice {
    pub(super) amount: Decimal,
    pub(super) currency: String,
    pub(super) verdict: Option<Verdict>,
    pub(super) at: Timestamp,
    /// Whether nothing cheaper existed, as far as can be known. In a cell: every search is complete
    /// and in this currency. In a scan: every searched cell is so, and none was left out that may be
    /// the cheapest; or the cell with the lowest price so far is so, or that cell has left the scan.
    pub(super) is_firm: bool,
    /// In a scan: the short key of its cell.
    pub(super) cell: Option<String>,
    /// The indexes of its cell and of the search in that cell.
    pub(super) location: (usize, usize),
    /// What the stored history says about it, if a rule asked.
    pub(super) past: Option<Arc<PastOfPrice>>,
}

impl LowestPrice {
    pub(super) fn mark(&self) -> PricePoint {
        PricePoint {
            price: self.amount,
            at: self.at,
        }
    }
}

/// Whether the scope has a price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PriceAvailability {
    /// It has one.
    Priced,
    /// Every search was complete and found no offer.
    NoOffers,
    /// Unknown.
    #[default]
    Unknown,
}

/// The distance of a market from its baseline.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gap {
    /// In percent of the baseline, above or below.
    pub(super) percent: Decimal,
    pub(super) verdict: ParityVerdict,
}

/// An ended run, with its cells indexed by key.
#[derive(Debug)]
pub(super) struct RunSnapshot {
    pub(super) cells: ScanCells,
    indexes: HashMap<String, usize>,
    past: HashMap<ItemId, Arc<PastOfPrice>>,
    /// The stored history could not be read for the rules that ask.
    pub(super) is_past_unread: bool,
    /// It could not be read for all prices, so none is known as implausible.
    pub(super) is_plausibility_unread: bool,
    /// When the plan ends, if a rule asked and it is known.
    pub(super) plan: Option<PlanForecast>,
}

/// A market and its baseline for the same stay.
pub(super) struct MarketComparison {
    /// The index of the market's cell.
    pub(super) market: usize,
    /// The index of the baseline's cell.
    pub(super) baseline: usize,
    pub(super) parity: Parity,
    pub(super) view: ScopeView,
}

impl RunSnapshot {
    pub(super) fn new(cells: ScanCells) -> Self {
        let indexes = cells
            .all
            .iter()
            .enumerate()
            .map(|(index, cell)| (short_key(&cell.key).into_owned(), index))
            .collect();
        Self {
            cells,
            indexes,
            past: HashMap::new(),
            is_past_unread: false,
            is_plausibility_unread: false,
            plan: None,
        }
    }

    /// Marks the prices of some items as implausible: rules see them as offers alone.
    pub(super) fn set_implausible(&mut self, items: &HashSet<ItemId>) {
        let all = self.cells.all.iter_mut();
        for searched in all.flat_map(|cell| &mut cell.items) {
            searched.is_implausible = items.contains(&searched.observation.item);
        }
    }

    /// The number of implausible prices.
    pub(super) fn count_implausible(&self) -> usize {
        let items = self.cells.all.iter().flat_map(|cell| &cell.items);
        items.filter(|searched| searched.is_implausible).count()
    }

    /// The items that have a price, with it and the time when it was found.
    pub(super) fn found_prices(&self) -> Vec<(ItemId, Decimal, String, Timestamp)> {
        let items = self.cells.all.iter().flat_map(|cell| &cell.items);
        let found = items.filter_map(|searched| {
            let (price, currency) = offered_price(searched)?;
            let item = searched.observation.item;
            Some((item, *price, currency.clone(), searched.observed_at?))
        });
        found.collect()
    }

    /// Sets the past of the prices of some items.
    pub(super) fn set_past(&mut self, past: impl IntoIterator<Item = (ItemId, PastOfPrice)>) {
        let past = past.into_iter();
        self.past = past.map(|(item, past)| (item, Arc::new(past))).collect();
    }

    /// The prices that rules of a scope evaluate.
    pub(super) fn evaluated_prices(&self, scope: RuleScope) -> Vec<LowestPrice> {
        let offers = |view: ScopeView| view.prices.into_iter().chain(view.implausible);
        match scope {
            RuleScope::Scan => offers(self.scan_view(None)).collect(),
            RuleScope::Cell => (0..self.cells.all.len())
                .flat_map(|index| offers(self.cell_view(index)))
                .collect(),
        }
    }

    /// The item that has a price.
    pub(super) fn item_of(&self, price: &LowestPrice) -> ItemId {
        self.found(price).observation.item
    }

    /// The search that found a price.
    pub(super) fn found(&self, price: &LowestPrice) -> &CellItem {
        let (cell, item) = price.location;
        &self.cells.all[cell].items[item]
    }

    pub(super) fn cell(&self, key: &str) -> Option<&ScanCell> {
        self.indexes
            .get(&*short_key(key))
            .map(|index| &self.cells.all[*index])
    }

    /// The requested currency of a cell; that of the first counts for the whole scan.
    fn requested_currency(&self, cell: usize) -> String {
        let swept = self.cells.all.get(cell);
        let swept = swept.and_then(|cell| cell.values.get("currency"));
        swept
            .or(self.cells.request.get("currency"))
            .and_then(Value::as_str)
            .unwrap_or(DEFAULT_CURRENCY)
            .to_ascii_uppercase()
    }

    /// The view of the whole scan. `anchor` is the key of the cell that had the lowest price so
    /// far.
    pub(super) fn scan_view(&self, anchor: Option<&str>) -> ScopeView {
        let is_known = |currency: &str| {
            let whole = |cell: &ScanCell| is_complete(cell, currency);
            let anchored = anchor.is_some_and(|key| self.cell(key).is_none_or(whole));
            let cells = || self.cells.all.iter();
            let are_searched = || self.cells.searched_known_low || cells().all(has_searches);
            anchored || are_searched() && cells().filter(|cell| has_searches(cell)).all(whole)
        };
        let mut view = self.view_of(None, |_| true);
        for price in view.offers_mut() {
            price.is_firm = is_known(&price.currency);
        }
        view.plan_ends = self.plan.as_ref().map(|plan| plan.ends_on.is_some());
        view
    }

    /// The view of one cell.
    pub(super) fn cell_view(&self, index: usize) -> ScopeView {
        let mut view = self.view_of(Some(index), |_| true);
        for price in view.offers_mut() {
            price.is_firm = is_complete(&self.cells.all[index], &price.currency);
        }
        view
    }

    /// The view of some searches of one cell or of the whole scan. Nothing is known about the others,
    /// so no price is firm.
    pub(super) fn view_of(
        &self,
        cell: Option<usize>,
        is_seen: impl Fn(&CellItem) -> bool,
    ) -> ScopeView {
        let all = &self.cells.all;
        let seen = cell.map_or(0..all.len(), |cell| cell..cell + 1);
        let mut view = view_of_cells(seen.map(|index| (index, &all[index])), is_seen);
        view.requested_currency = self.requested_currency(cell.unwrap_or(0));
        for price in view.offers_mut() {
            price.past = self.past.get(&self.item_of(price)).cloned();
            let key = || short_key(&all[price.location.0].key).into_owned();
            price.cell = cell.is_none().then(key);
        }
        view
    }

    /// Compares every market with `baseline`, for each combination of the other swept fields.
    pub(super) fn market_comparisons(&self, baseline: &str) -> Vec<MarketComparison> {
        let compared = compare_markets(&self.cells.all, baseline).into_iter();
        let comparisons = compared.map(|compared| {
            let parity = compared.parity;
            let percent = parity.difference_percent.map(|percent| percent.abs());
            let gap = percent
                .filter(|_| matches!(parity.verdict, ParityVerdict::Gap | ParityVerdict::Noise))
                .map(|percent| Gap {
                    percent,
                    verdict: parity.verdict,
                });
            MarketComparison {
                market: compared.market,
                baseline: compared.baseline,
                parity,
                view: ScopeView {
                    gap,
                    ..self.cell_view(compared.market)
                },
            }
        });
        comparisons.collect()
    }
}

/// Whether any search of the cell was planned: a two-phase scan skips cells.
pub(super) fn has_searches(cell: &ScanCell) -> bool {
    cell.items
        .iter()
        .any(|searched| searched.observation.state != ItemState::Skipped)
}

/// Whether every search is complete, with a plausible price in this currency or none.
fn is_complete(cell: &ScanCell, currency: &str) -> bool {
    let wanted = cell
        .items
        .iter()
        .filter(|searched| searched.observation.state != ItemState::Skipped);
    wanted.clone().next().is_some()
        && wanted.clone().all(|searched| !searched.is_implausible)
        && wanted
            .clone()
            .all(|searched| !is_unreadable(&searched.observation))
        && wanted.map(|searched| &searched.observation).all(|seen| {
            let complete = matches!(
                seen.search_status,
                Some(SearchStatus::Ok | SearchStatus::Empty)
            );
            seen.state == ItemState::Done
                && complete
                && seen
                    .price
                    .as_ref()
                    .is_none_or(|(_, other)| other == currency)
        })
}

/// Whether a search found offers of which none has a readable price, such as 0: something may be
/// on offer at any price.
fn is_unreadable(seen: &ItemObservation) -> bool {
    seen.search_status == Some(SearchStatus::Ok) && seen.price.is_none() && seen.reason.is_none()
}

/// The combined view of the searches of some cells that `is_seen` accepts, with prices that are not
/// firm.
fn view_of_cells<'a>(
    cells: impl Iterator<Item = (usize, &'a ScanCell)>,
    is_seen: impl Fn(&CellItem) -> bool,
) -> ScopeView {
    let mut lowest = BTreeMap::<&str, ((bool, Decimal, i32), LowestPrice)>::new();
    let (mut wanted, mut nothing) = (false, true);
    let mut answered = None;
    for (index, cell) in cells {
        for (at, searched) in cell.items.iter().enumerate() {
            let seen = &searched.observation;
            if seen.state == ItemState::Skipped || !is_seen(searched) {
                continue;
            }
            wanted = true;
            nothing &= is_empty_result(seen);
            answered = answered.max(was_answered(searched));
            let Some((amount, currency)) = offered_price(searched) else {
                continue;
            };
            // The position breaks ties, so the order of the cells does not matter.
            let rank = (searched.is_implausible, *amount, searched.position);
            if lowest
                .get(currency.as_str())
                .is_none_or(|(best, _)| rank < *best)
            {
                let price = LowestPrice {
                    amount: *amount,
                    currency: currency.clone(),
                    verdict: seen.offer.as_ref().and_then(|offer| offer.verdict),
                    at: searched.observed_at.unwrap_or(Timestamp::UNIX_EPOCH),
                    is_firm: false,
                    cell: None,
                    location: (index, at),
                    past: None,
                };
                lowest.insert(currency, (rank, price));
            }
        }
    }
    let availability = match lowest.is_empty() {
        false => PriceAvailability::Priced,
        true if wanted && nothing => PriceAvailability::NoOffers,
        true => PriceAvailability::Unknown,
    };
    let (implausible, prices): (Vec<_>, Vec<_>) = lowest
        .into_values()
        .partition(|((is_implausible, ..), _)| *is_implausible);
    let price = |(_, price)| price;
    ScopeView {
        prices: prices.into_iter().map(price).collect(),
        implausible: implausible.into_iter().map(price).collect(),
        availability,
        answered,
        ..ScopeView::default()
    }
}

/// The price of a search; a degraded search has none.
fn offered_price(searched: &CellItem) -> Option<&(Decimal, String)> {
    let seen = &searched.observation;
    let has_answer = matches!(
        seen.search_status,
        Some(SearchStatus::Ok | SearchStatus::Partial)
    );
    seen.price
        .as_ref()
        .filter(|_| seen.state == ItemState::Done && has_answer)
}

/// Whether a search found no offers. Rows removed by the caller's filter, or a name that matches no
/// hotel, do not count.
fn is_empty_result(seen: &ItemObservation) -> bool {
    seen.state == ItemState::Done
        && seen.search_status == Some(SearchStatus::Empty)
        && seen.reason.as_deref() != Some(NO_MATCH)
}

/// Whether a search got an answer, complete or with a price; `None` if it was not made.
fn was_answered(searched: &CellItem) -> Option<bool> {
    let seen = &searched.observation;
    match (seen.state, seen.search_status) {
        (ItemState::Done, Some(SearchStatus::Ok | SearchStatus::Empty)) => Some(true),
        (ItemState::Done, _) => Some(offered_price(searched).is_some()),
        (ItemState::Failed, _) => Some(false),
        _ => None,
    }
}
