//! One cell of a calendar or matrix: its price, or its mark for why there is none.

use farescan_contract::SearchStatus;
use farescan_contract::history_grid::HistoryCell;
use farescan_contract::scans::{GridCell, ItemState};
use rust_decimal::Decimal;

use crate::numbers::{amount, amount_in};

/// The result of a cell's search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellValue {
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

impl CellValue {
    /// The marks of cells without a price, for a legend.
    pub const MARKS: [Self; 6] = [
        Self::Empty,
        Self::Incomplete,
        Self::Failed,
        Self::Running,
        Self::Waiting,
        Self::NotSearched,
    ];

    /// The value of an item.
    pub fn of(price: Option<Decimal>, state: ItemState, status: Option<SearchStatus>) -> Self {
        match (price, state, status) {
            (Some(price), ..) => Self::Price(price),
            (None, ItemState::Pending, _) => Self::Waiting,
            (None, ItemState::Running, _) => Self::Running,
            (None, ItemState::Failed, _) => Self::Failed,
            (None, ItemState::Cancelled | ItemState::Skipped, _) => Self::NotSearched,
            (None, ItemState::Done, Some(SearchStatus::Ok | SearchStatus::Empty)) => Self::Empty,
            (None, ItemState::Done, _) => Self::Incomplete,
        }
    }

    /// The value of a cell of a scan's grid.
    pub fn of_scan(cell: &GridCell) -> Self {
        Self::of(cell.price, cell.state, cell.search_status).marked(cell.implausible)
    }

    /// The last known price; without one, what the last search found. An empty last search is news:
    /// the old price is gone.
    pub fn of_history(cell: &HistoryCell) -> Self {
        let price = cell
            .price
            .filter(|_| cell.search_status != Some(SearchStatus::Empty));
        match cell.looked_at {
            None => Self::NotSearched,
            Some(_) => {
                Self::of(price, ItemState::Done, cell.search_status).marked(cell.implausible)
            }
        }
    }

    /// The same, as an implausible price if it is one.
    #[must_use]
    pub fn marked(self, is_implausible: bool) -> Self {
        match self {
            Self::Price(price) if is_implausible => Self::Implausible(price),
            value => value,
        }
    }

    /// The value of several searches without a price: empty only if all of them are, because one
    /// that did not complete or has not run may have a price.
    pub fn without_price(values: impl Iterator<Item = Self>) -> Self {
        let rank = |value: &Self| match value {
            Self::Empty | Self::Price(_) | Self::Implausible(_) => 0,
            Self::NotSearched => 1,
            Self::Failed => 2,
            Self::Incomplete => 3,
            Self::Running => 4,
            Self::Waiting => 5,
        };
        values.max_by_key(rank).unwrap_or(Self::NotSearched)
    }

    /// The plausible price.
    pub fn price(self) -> Option<Decimal> {
        match self {
            Self::Price(price) => Some(price),
            _ => None,
        }
    }

    /// The text of the cell: a price in whole units, or a mark of one character.
    pub fn text(self) -> String {
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

    /// The value in words.
    pub fn words(self, currency: Option<&str>) -> String {
        match self {
            Self::Price(found) => amount_in(found, currency),
            Self::Implausible(found) => {
                let found = amount_in(found, currency);
                format!("{found}, implausible: far off its own history")
            }
            Self::Empty => "nothing offered".to_owned(),
            Self::Incomplete => "did not complete".to_owned(),
            Self::Failed => "refused".to_owned(),
            Self::Running => "being searched".to_owned(),
            Self::Waiting => "not searched yet".to_owned(),
            Self::NotSearched => "not searched".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_state_without_a_price_has_its_own_mark() {
        let with = |state, status| CellValue::of(None, state, status);
        let marks = [
            with(ItemState::Done, Some(SearchStatus::Empty)),
            with(ItemState::Done, Some(SearchStatus::Degraded)),
            with(ItemState::Failed, None),
            with(ItemState::Running, None),
            with(ItemState::Pending, None),
            with(ItemState::Skipped, None),
        ];
        assert_eq!(marks, CellValue::MARKS);
        let texts: BTreeSet<_> = marks.iter().map(|mark| mark.text()).collect();
        let words: BTreeSet<_> = marks.iter().map(|mark| mark.words(None)).collect();
        assert_eq!([texts.len(), words.len()], [marks.len(); 2]);
        assert!(texts.iter().all(|text| text.chars().count() == 1));
    }

    #[test]
    fn several_searches_are_empty_only_if_all_are() {
        use CellValue::{Empty, Incomplete, Waiting};
        let of = |values: &[CellValue]| CellValue::without_price(values.iter().copied());
        assert_eq!(of(&[Empty, Empty]), Empty);
        assert_eq!(of(&[Empty, Incomplete]), Incomplete);
        assert_eq!(of(&[Waiting, Incomplete, Empty]), Waiting);
    }

    #[test]
    fn an_implausible_price_is_no_price() {
        let value = CellValue::Price(Decimal::from(60)).marked(true);
        assert_eq!(value.price(), None);
        assert_eq!(
            value.words(Some("USD")),
            "60 USD, implausible: far off its own history"
        );
        assert_eq!(CellValue::Incomplete.marked(true), CellValue::Incomplete);
    }
}
