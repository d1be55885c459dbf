//! One cell of a calendar or matrix of a scan: its class, its text, its words, and their legend.

use farescan_sheets::cell::CellValue;
use farescan_sheets::fifths::{PriceFifths, most_frequent};
use farescan_sheets::numbers::amount;
use farescan_sheets::trip::words;
use maud::{Markup, html};
use rust_decimal::Decimal;

use farescan_core::contract::SearchStatus;
use farescan_core::contract::scans::GridCell;
use farescan_core::ids::ItemId;

/// The class of a cell without a plausible price.
pub(super) const fn mark_class(value: CellValue) -> &'static str {
    match value {
        CellValue::Price(_) => "",
        CellValue::Implausible(_) => "implausible",
        CellValue::Empty => "none",
        CellValue::Incomplete => "degraded",
        CellValue::Failed => "failed",
        CellValue::Running => "busy",
        CellValue::Waiting => "wait",
        CellValue::NotSearched => "out",
    }
}

/// The mark and the price of a cell in words.
pub(super) fn cell_words(cell: &GridCell) -> String {
    let value = CellValue::of_scan(cell);
    let spoken = value.words(cell.currency.as_deref());
    match (value, cell.reason.as_deref()) {
        (CellValue::Price(_), _) if cell.search_status == Some(SearchStatus::Partial) => {
            format!("{spoken}, part of the search failed")
        }
        (CellValue::Empty | CellValue::Incomplete | CellValue::Failed, Some(reason)) => {
            format!("{spoken}: {}", words(reason))
        }
        _ => spoken,
    }
}

/// The plausible prices of a grid in its most frequent currency, for colours and the cheapest cell.
#[derive(Debug, Default)]
pub(super) struct PriceScale {
    pub(super) currency: String,
    pub(super) prices: PriceFifths,
    /// The first cell with the lowest price.
    pub(super) cheapest: Option<ItemId>,
}

impl PriceScale {
    pub(super) fn of<'a>(cells: impl Iterator<Item = &'a GridCell> + Clone) -> Self {
        let cells = cells.filter(|cell| !cell.implausible);
        let currencies = cells.clone().filter_map(|cell| cell.currency.as_deref());
        let Some(currency) = most_frequent(currencies) else {
            return Self::default();
        };
        let priced = cells
            .filter(|cell| cell.currency.as_deref() == Some(currency))
            .filter_map(|cell| Some((cell.price?, cell.item_id)));
        let cheapest = priced.clone().min_by_key(|(price, _)| *price);
        Self {
            currency: currency.to_owned(),
            prices: priced.map(|(price, _)| price).collect(),
            cheapest: cheapest.map(|(_, item)| item),
        }
    }

    /// The fifth of the prices that a cell is in. `None` for a cell without a plausible price or in
    /// another currency.
    pub(super) fn fifth(&self, cell: &GridCell) -> Option<usize> {
        let price = CellValue::of_scan(cell).price()?;
        let is_of_scale = cell.currency.as_deref() == Some(self.currency.as_str());
        is_of_scale.then(|| self.prices.fifth(price))
    }

    /// `12 % under 240, the median of the 30 prices below`, or nothing if there is no difference.
    pub(super) fn against_median(&self) -> Option<String> {
        let (lowest, median) = (self.prices.lowest()?, self.prices.median()?);
        let percent = median
            .checked_sub(lowest)?
            .checked_mul(Decimal::ONE_HUNDRED)?
            .checked_div(median)?;
        (self.prices.count() > 2 && percent >= Decimal::ONE).then(|| {
            let (percent, median, count) = (percent.round(), amount(median), self.prices.count());
            format!("{percent} % under {median}, the median of the {count} prices below")
        })
    }
}

/// The classes of a cell: its fifth or its mark, and whether it is the cheapest.
pub(super) fn class(cell: &GridCell, scale: &PriceScale) -> String {
    let mut class = match scale.fifth(cell) {
        Some(fifth) => format!("q{fifth}"),
        None => mark_class(CellValue::of_scan(cell)).to_owned(),
    };
    if scale.cheapest == Some(cell.item_id) {
        class.push_str(" best");
    }
    if cell.price.is_some() && cell.search_status == Some(SearchStatus::Partial) {
        class.push_str(" part");
    }
    class
}

/// The colours and marks in words.
pub(super) fn legend() -> Markup {
    html! {
        ul class="legend" {
            li {
                "Cheap "
                @for fifth in 1..=5 { span class={ "swatch q" (fifth) } {} }
                " dear"
            }
            li { span class="swatch best" {} " cheapest" }
            li { "~ a part of the search failed" }
            li { s { "60" } " implausible" }
            (mark_legend())
        }
    }
}

/// The marks of cells without a price.
pub(super) fn mark_legend() -> Markup {
    html! {
        @for mark in CellValue::MARKS {
            li { span class={ "swatch " (mark_class(mark)) } { (mark.text()) } " " (mark.words(None)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farescan_core::contract::scans::ItemState;

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
        assert_eq!(scale.prices.lowest(), Some(Decimal::from(200)));
    }

    #[test]
    fn each_mark_has_its_own_class() {
        let classes: std::collections::BTreeSet<_> =
            CellValue::MARKS.into_iter().map(mark_class).collect();
        assert_eq!(classes.len(), CellValue::MARKS.len());
    }
}
