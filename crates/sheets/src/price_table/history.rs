//! The last known prices of a product.

use farescan_contract::SearchStatus;
use farescan_contract::history_grid::HistoryCell;
use farescan_contract::history_verdict::PriceClass;
use farescan_contract::ids::ItemId;
use farescan_contract::scans::GridAxis;
use jiff::civil::Date;

use super::{PriceCell, PriceLayout, PriceTable, SecondField, Shade, layout};
use crate::cell::CellValue;
use crate::fifths::PriceFifths;
use crate::numbers::{duration, price, short_age};

/// An age from which a price counts as old.
const DAY_SECONDS: u64 = 86_400;

impl PriceTable {
    /// The searched cells of a product; `class` is that of a price by the item that found it.
    pub fn of_history<'a>(
        currency: &str,
        rows: &GridAxis,
        columns: Option<&GridAxis>,
        cells: impl Iterator<Item = &'a HistoryCell> + Clone,
        class: impl Fn(ItemId) -> Option<PriceClass>,
    ) -> Self {
        let value = |cell: &HistoryCell| {
            let class = cell.item_id.and_then(&class);
            CellValue::of_history(cell).marked(class == Some(PriceClass::Implausible))
        };
        let searched = cells.filter(|cell| cell.looked_at.is_some());
        let prices = searched.clone().filter_map(|cell| value(cell).price());
        let prices: PriceFifths = prices.collect();
        let mut best = prices.lowest();
        let cells = searched.map(|cell| {
            let value = value(cell);
            let mut shown = PriceCell::new(value, words(cell, value, currency));
            if let Some(price) = value.price() {
                shown.shade = Shade::Fifth(prices.fifth(price));
                shown.is_best = best.take_if(|best| *best == price).is_some();
            }
            if let CellValue::Price(_) | CellValue::Implausible(_) = value {
                shown.note = cell.age_seconds.map(short_age).unwrap_or_default();
                shown.is_incomplete = cell.search_status == Some(SearchStatus::Degraded);
            }
            shown.is_old = cell.age_seconds.is_some_and(|age| age >= DAY_SECONDS);
            shown.item = cell.item_id;
            (&cell.row, columns.and(cell.column.as_ref()), shown)
        });
        Self {
            markets: None,
            title: format!("last known price in {currency}"),
            layout: layout(rows, columns, SecondField::Cheapest, cells),
            notes: "its age",
            prices,
        }
    }

    /// Adds those of the dates to its calendar that have no cell: never searched.
    pub fn add_unsearched(&mut self, dates: impl Iterator<Item = Date>) {
        let PriceLayout::Calendars(calendars) = &mut self.layout else {
            return;
        };
        let Some((_, days)) = calendars.first_mut() else {
            return;
        };
        for date in dates {
            let words = || format!("{date}: {}", CellValue::Waiting.words(None));
            days.entry(date)
                .or_insert_with(|| PriceCell::new(CellValue::Waiting, words()));
        }
    }
}

/// `300 USD, found 2 h 1 min ago; the last search did not complete`.
fn words(cell: &HistoryCell, value: CellValue, currency: &str) -> String {
    let found = match (cell.price, cell.age_seconds) {
        (Some(found), Some(age)) => {
            format!("{}, found {} ago", price(found, currency), duration(age))
        }
        _ => "no price".to_owned(),
    };
    let last = match cell.search_status {
        Some(SearchStatus::Empty) => "; the last search found nothing on sale",
        Some(SearchStatus::Degraded) => "; the last search did not complete",
        _ => "",
    };
    let implausible = match value {
        CellValue::Implausible(_) => "; implausible: far off its own history",
        _ => "",
    };
    format!("{found}{last}{implausible}")
}
