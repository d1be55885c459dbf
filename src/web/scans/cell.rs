//! One cell of a calendar or matrix: its price and colour, or its mark for why there is none.

use rust_decimal::Decimal;

use crate::contract::SearchStatus;
use crate::contract::scans::{GridCell, ItemState};
use crate::ids::ItemId;
use crate::web::parts::{amount, words};

/// What a cell shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellContent {
    /// The lowest price, in major units.
    Price(Decimal),
    /// A price far off its own history.
    Implausible(Decimal),
    /// Searched completely: nothing is on offer.
    Empty,
    /// The search did not complete: whether there is a price is unknown.
    Incomplete,
    /// The marketplace refused the search.
    Failed,
    /// Being searched.
    Running,
    /// Not searched yet.
    Waiting,
    /// Will not be searched: cancelled, or left out by the strategy.
    NotSearched,
}

impl CellContent {
    pub(super) fn of(cell: &GridCell) -> Self {
        match (cell.price, cell.state, cell.search_status) {
            (Some(price), ..) if cell.implausible => Self::Implausible(price),
            (Some(price), ..) => Self::Price(price),
            (None, ItemState::Pending, _) => Self::Waiting,
            (None, ItemState::Running, _) => Self::Running,
            (None, ItemState::Failed, _) => Self::Failed,
            (None, ItemState::Cancelled | ItemState::Skipped, _) => Self::NotSearched,
            (None, ItemState::Done, Some(SearchStatus::Ok | SearchStatus::Empty)) => Self::Empty,
            (None, ItemState::Done, _) => Self::Incomplete,
        }
    }

    /// The class of a cell without a price.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Price(_) => "",
            Self::Implausible(_) => "implausible",
            Self::Empty => "none",
            Self::Incomplete => "degraded",
            Self::Failed => "failed",
            Self::Running => "busy",
            Self::Waiting => "wait",
            Self::NotSearched => "out",
        }
    }

    /// The text of the cell.
    pub(super) fn text(self) -> String {
        match self {
            Self::Price(price) | Self::Implausible(price) => amount(price.round()),
            Self::Empty => "–".to_owned(),
            Self::Incomplete => "?".to_owned(),
            Self::Failed => "!".to_owned(),
            Self::Running => "…".to_owned(),
            Self::Waiting => "·".to_owned(),
            Self::NotSearched => "×".to_owned(),
        }
    }
}

/// The mark and the price of a cell in words.
pub(super) fn cell_words(cell: &GridCell) -> String {
    let because = || {
        let reason = cell.reason.as_deref().map(words);
        reason.map_or_else(String::new, |reason| format!(": {reason}"))
    };
    match CellContent::of(cell) {
        CellContent::Price(price) => {
            let currency = cell.currency.as_deref().unwrap_or_default();
            let partial = if cell.search_status == Some(SearchStatus::Partial) {
                ", part of the search failed"
            } else {
                ""
            };
            format!("{} {currency}{partial}", amount(price))
        }
        CellContent::Implausible(price) => {
            let currency = cell.currency.as_deref().unwrap_or_default();
            format!(
                "{} {currency}, implausible: far off its own history",
                amount(price)
            )
        }
        CellContent::Empty => format!("nothing offered{}", because()),
        CellContent::Incomplete => format!("did not complete{}", because()),
        CellContent::Failed => format!("refused{}", because()),
        CellContent::Running => "being searched".to_owned(),
        CellContent::Waiting => "not searched yet".to_owned(),
        CellContent::NotSearched => "not searched".to_owned(),
    }
}

/// The plausible prices of a grid in its most frequent currency, for colours and the cheapest cell.
#[derive(Debug, Default)]
pub(super) struct PriceScale {
    pub(super) currency: String,
    /// Ascending.
    prices: Vec<Decimal>,
    /// The first cell with the lowest price.
    pub(super) cheapest: Option<ItemId>,
}

impl PriceScale {
    pub(super) fn of<'a>(cells: impl Iterator<Item = &'a GridCell> + Clone) -> Self {
        let cells = cells.filter(|cell| !cell.implausible);
        let mut counts = Vec::<(&str, usize)>::new();
        for currency in cells.clone().filter_map(|cell| cell.currency.as_deref()) {
            match counts.iter_mut().find(|(known, _)| *known == currency) {
                Some((_, count)) => *count += 1,
                None => counts.push((currency, 1)),
            }
        }
        // The first of equal counts.
        let Some((currency, _)) = counts.into_iter().rev().max_by_key(|(_, count)| *count) else {
            return Self::default();
        };
        let priced = cells
            .filter(|cell| cell.currency.as_deref() == Some(currency))
            .filter_map(|cell| Some((cell.price?, cell.item_id)));
        let cheapest = priced.clone().min_by_key(|(price, _)| *price);
        let mut prices: Vec<_> = priced.map(|(price, _)| price).collect();
        prices.sort_unstable();
        Self {
            currency: currency.to_owned(),
            prices,
            cheapest: cheapest.map(|(_, item)| item),
        }
    }

    /// The fifth of the prices that this one is in: 1 for the cheapest, 5 for the dearest. `None`
    /// for a cell without a plausible price or in another currency.
    pub(super) fn fifth(&self, cell: &GridCell) -> Option<usize> {
        let price = cell.price.filter(|_| !cell.implausible)?;
        if cell.currency.as_deref() != Some(self.currency.as_str()) {
            return None;
        }
        let cheaper = self.prices.partition_point(|other| *other < price);
        Some(1 + cheaper * 5 / self.prices.len().max(1))
    }

    pub(super) fn lowest(&self) -> Option<Decimal> {
        self.prices.first().copied()
    }

    /// The middle price.
    pub(super) fn median(&self) -> Option<Decimal> {
        self.prices.get(self.prices.len() / 2).copied()
    }

    /// How many cells have a price in this currency.
    pub(super) fn count(&self) -> usize {
        self.prices.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(price: Option<i64>, currency: &str) -> GridCell {
        GridCell {
            row: serde_json::Value::Null,
            column: None,
            state: ItemState::Done,
            search_status: Some(SearchStatus::Ok),
            reason: None,
            price: price.map(Decimal::from),
            currency: price.map(|_| currency.to_owned()),
            implausible: false,
            price_insights_low: None,
            price_insights_high: None,
            verdict: None,
            room: None,
            item_id: ItemId::new(),
            buy_link: None,
            link: None,
            parity: None,
        }
    }

    #[test]
    fn a_price_is_in_the_fifth_of_its_rank() {
        let cells: Vec<_> = (1..=10).map(|price| cell(Some(price), "USD")).collect();
        let scale = PriceScale::of(cells.iter());
        let fifths: Vec<_> = cells.iter().map(|cell| scale.fifth(cell)).collect();
        assert_eq!(
            fifths,
            [1, 1, 2, 2, 3, 3, 4, 4, 5, 5].map(Some),
            "{scale:?}"
        );
        assert_eq!(scale.cheapest, Some(cells[0].item_id));
        assert_eq!(scale.fifth(&cell(None, "USD")), None);
    }

    #[test]
    fn prices_of_another_currency_have_no_colour() {
        let cells = [
            cell(Some(5), "EUR"),
            cell(Some(300), "USD"),
            cell(Some(200), "USD"),
        ];
        let scale = PriceScale::of(cells.iter());
        assert_eq!(scale.currency, "USD");
        assert_eq!(scale.fifth(&cells[0]), None);
        assert_eq!(scale.lowest(), Some(Decimal::from(200)));
    }

    #[test]
    fn each_state_without_a_price_has_its_own_mark() {
        let with = |state, search_status| {
            CellContent::of(&GridCell {
                state,
                search_status,
                ..cell(None, "")
            })
        };
        let marks = [
            with(ItemState::Done, Some(SearchStatus::Empty)),
            with(ItemState::Done, Some(SearchStatus::Degraded)),
            with(ItemState::Failed, None),
            with(ItemState::Running, None),
            with(ItemState::Pending, None),
            with(ItemState::Skipped, None),
        ];
        let classes: std::collections::BTreeSet<_> =
            marks.iter().map(|mark| mark.class()).collect();
        let texts: std::collections::BTreeSet<_> = marks.iter().map(|mark| mark.text()).collect();
        assert_eq!([classes.len(), texts.len()], [marks.len(); 2]);
    }
}
