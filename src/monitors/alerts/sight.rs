//! What a run has seen, as rules look at it: of the whole scan, of a cell, of a market beside its baseline. Pure.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::{Map, Value};

use super::state::{Mark, short};
use crate::contract::scans::{ItemState, Parity, ParityVerdict};
use crate::contract::{SearchStatus, Verdict};
use crate::scans::cells::{Cell, Cells, Searched, Seen, parity};

/// The field that a market scan sweeps.
const MARKET: &str = "proxy_country";
/// An honest answer that says nothing of availability: the name fits no hotel.
const NO_MATCH: &str = "no_match";
/// What an engine answers in that is asked for no currency.
const DEFAULT_CURRENCY: &str = "USD";

/// What one run shows a rule of one scope.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sight {
    /// The lowest price in each currency, in the order of the currencies.
    pub(super) prices: Vec<Price>,
    pub(super) standing: Standing,
    /// Whether any search of it had an answer; `None`: none was made.
    pub(super) answered: Option<bool>,
    /// Where markets are compared and can be.
    pub(super) gap: Option<Gap>,
}

/// The lowest price of a scope.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Price {
    pub(super) amount: Decimal,
    pub(super) currency: String,
    pub(super) verdict: Option<Verdict>,
    pub(super) at: Timestamp,
    /// Nothing cheaper was there, as far as can be known: every search of the cell is whole and in this currency; of a scan, every cell's,
    /// or that of the cell where the lowest price was, or that is of this scan no more.
    pub(super) firm: bool,
    /// Of a scan: the short key of the cell that has it.
    pub(super) cell: Option<String>,
    /// Where it stands: its cell and which of its searches.
    pub(super) found: (usize, usize),
}

impl Price {
    pub(super) fn mark(&self) -> Mark {
        Mark {
            price: self.amount,
            at: self.at,
        }
    }
}

/// Whether there is a price at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// There is.
    Priced,
    /// Every search of it was whole and found none.
    Nothing,
    /// It is not known.
    #[default]
    Unknown,
}

/// How far a market lies from its baseline.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gap {
    /// In percent of the baseline, either way.
    pub(super) percent: Decimal,
    pub(super) verdict: ParityVerdict,
}

/// A run that has ended, laid out so that a cell is found by its key.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) cells: Cells,
    places: HashMap<String, usize>,
}

/// A market beside its baseline, for the same stay.
pub(super) struct Compared {
    /// The market's cell.
    pub(super) market: usize,
    /// The baseline's.
    pub(super) baseline: usize,
    pub(super) parity: Parity,
    pub(super) sight: Sight,
}

impl Run {
    pub(super) fn new(cells: Cells) -> Self {
        let places = cells
            .all
            .iter()
            .enumerate()
            .map(|(place, cell)| (short(&cell.key).into_owned(), place))
            .collect();
        Self { cells, places }
    }

    pub(super) fn cell(&self, key: &str) -> Option<&Cell> {
        self.places
            .get(&*short(key))
            .map(|place| &self.cells.all[*place])
    }

    /// The currency that was asked for: in a cell, or without one in the whole scan.
    pub(super) fn asked(&self, cell: Option<&Cell>) -> String {
        let swept = cell
            .or(self.cells.all.first())
            .and_then(|cell| cell.values.get("currency"));
        let asked = swept
            .or(self.cells.request.get("currency"))
            .and_then(Value::as_str);
        asked.unwrap_or(DEFAULT_CURRENCY).to_ascii_uppercase()
    }

    /// The whole scan. `anchor`: the cell where its lowest price was.
    pub(super) fn of_scan(&self, anchor: Option<&str>) -> Sight {
        let is_known = |currency: &str| {
            let whole = |cell: &Cell| is_whole(cell, currency);
            let anchored = anchor.is_some_and(|key| self.cell(key).is_none_or(whole));
            anchored
                || self
                    .cells
                    .all
                    .iter()
                    .filter(|cell| was_wanted(cell))
                    .all(whole)
        };
        let mut sight = seen(self.cells.all.iter().enumerate());
        for price in &mut sight.prices {
            price.firm = is_known(&price.currency);
            price.cell = Some(short(&self.cells.all[price.found.0].key).into_owned());
        }
        sight
    }

    /// One cell.
    pub(super) fn of_cell(&self, place: usize) -> Sight {
        let cell = &self.cells.all[place];
        let mut sight = seen(std::iter::once((place, cell)));
        for price in &mut sight.prices {
            price.firm = is_whole(cell, &price.currency);
        }
        sight
    }

    /// Every market beside `baseline`, for each combination of what else is swept.
    pub(super) fn of_markets(&self, baseline: &str) -> Vec<Compared> {
        let is_baseline = |cell: &Cell| {
            cell.values
                .get(MARKET)
                .and_then(Value::as_str)
                .is_some_and(|it| it.eq_ignore_ascii_case(baseline))
        };
        let stay = |cell: &Cell| {
            let others: Map<_, _> = cell
                .values
                .iter()
                .filter(|(word, _)| *word != MARKET)
                .map(|(w, v)| (w.clone(), v.clone()))
                .collect();
            Value::Object(others).to_string()
        };
        let cells = || self.cells.all.iter().enumerate();
        let baselines: HashMap<_, _> = cells()
            .filter(|(_, cell)| is_baseline(cell))
            .map(|(place, cell)| (stay(cell), place))
            .collect();
        let markets = cells().filter(|(_, cell)| !is_baseline(cell));
        let compared = markets.filter_map(|(market, cell)| {
            let baseline = *baselines.get(&stay(cell))?;
            let parity = parity(
                &whole_answers(&self.cells.all[baseline]),
                &whole_answers(cell),
            );
            let percent = parity.difference_percent.map(|percent| percent.abs());
            let gap = percent
                .filter(|_| matches!(parity.verdict, ParityVerdict::Gap | ParityVerdict::Noise))
                .map(|percent| Gap {
                    percent,
                    verdict: parity.verdict,
                });
            Some(Compared {
                market,
                baseline,
                parity,
                sight: Sight {
                    gap,
                    ..self.of_cell(market)
                },
            })
        });
        compared.collect()
    }
}

/// A part of an answer may lack the cheapest room, which looks like a gap.
fn whole_answers(cell: &Cell) -> Vec<Seen> {
    let whole = |searched: &&Searched| searched.seen.search_status == Some(SearchStatus::Ok);
    cell.items
        .iter()
        .filter(whole)
        .map(|searched| searched.seen.clone())
        .collect()
}

/// Some search of it was to be made: a scan in two phases leaves cells out.
pub(super) fn was_wanted(cell: &Cell) -> bool {
    cell.items
        .iter()
        .any(|searched| searched.seen.state != ItemState::Skipped)
}

/// Every search of it came to its end, with a price in this currency or with none.
fn is_whole(cell: &Cell, currency: &str) -> bool {
    let wanted = cell
        .items
        .iter()
        .filter(|searched| searched.seen.state != ItemState::Skipped);
    wanted.clone().next().is_some()
        && wanted.map(|searched| &searched.seen).all(|seen| {
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

/// What the searches of some cells have seen together; nothing of it is firm yet.
fn seen<'a>(cells: impl Iterator<Item = (usize, &'a Cell)>) -> Sight {
    let mut lowest = BTreeMap::<&str, ((Decimal, i32), Price)>::new();
    let (mut wanted, mut nothing) = (false, true);
    let mut answered = None;
    for (place, cell) in cells {
        for (at, searched) in cell.items.iter().enumerate() {
            let seen = &searched.seen;
            if seen.state == ItemState::Skipped {
                continue;
            }
            wanted = true;
            nothing &= is_nothing(seen);
            answered = answered.max(is_answered(seen));
            let Some((amount, currency)) = price_of(seen) else {
                continue;
            };
            // The first of equals, whatever the order of the cells.
            let rank = (*amount, searched.position);
            if lowest
                .get(currency.as_str())
                .is_none_or(|(held, _)| rank < *held)
            {
                let price = Price {
                    amount: *amount,
                    currency: currency.clone(),
                    verdict: seen.offer.as_ref().and_then(|offer| offer.verdict),
                    at: searched.observed_at.unwrap_or(Timestamp::UNIX_EPOCH),
                    firm: false,
                    cell: None,
                    found: (place, at),
                };
                lowest.insert(currency, (rank, price));
            }
        }
    }
    let prices: Vec<_> = lowest.into_values().map(|(_, price)| price).collect();
    let standing = match prices.is_empty() {
        false => Standing::Priced,
        true if wanted && nothing => Standing::Nothing,
        true => Standing::Unknown,
    };
    Sight {
        prices,
        standing,
        answered,
        gap: None,
    }
}

/// A price counts where there was an answer: a degraded search has none.
fn price_of(seen: &Seen) -> Option<&(Decimal, String)> {
    let has_answer = matches!(
        seen.search_status,
        Some(SearchStatus::Ok | SearchStatus::Partial)
    );
    seen.price
        .as_ref()
        .filter(|_| seen.state == ItemState::Done && has_answer)
}

/// The engine says that there is none. Rows that fell to the caller's own filter, or a name that fits no hotel, say nothing of that.
fn is_nothing(seen: &Seen) -> bool {
    seen.state == ItemState::Done
        && seen.search_status == Some(SearchStatus::Empty)
        && seen.reason.as_deref() != Some(NO_MATCH)
}

/// Whether a search had an answer, whole or with a price; `None`: it was not made.
fn is_answered(seen: &Seen) -> Option<bool> {
    match (seen.state, seen.search_status) {
        (ItemState::Done, Some(SearchStatus::Ok | SearchStatus::Empty)) => Some(true),
        (ItemState::Done, _) => Some(price_of(seen).is_some()),
        (ItemState::Failed, _) => Some(false),
        _ => None,
    }
}
