//! One stay from several markets: each market's price and its difference to the first market's.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Color, Table};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::{CellValue, set_styling};

/// Differences below this percentage have no colour.
const WORTH_A_COLOUR_PERCENT: f64 = 3.0;

/// One market and its price.
#[derive(Debug, Clone)]
pub struct MarketRow {
    /// Two-letter country code.
    pub country: String,
    pub value: CellValue,
    /// The priced room: prices of different rooms do not compare.
    pub room: Option<String>,
}

/// A stay's markets, the baseline first.
#[derive(Debug, Clone)]
pub struct MarketTable {
    pub currency: String,
    pub markets: Vec<MarketRow>,
}

impl MarketTable {
    /// The table: market, price, difference to the baseline, room.
    #[must_use]
    pub fn table(&self, colour: bool) -> Table {
        let baseline = self.markets.first();
        let mut table = Table::new();
        let versus = baseline.map_or_else(String::new, |market| {
            format!("vs {}", market.country.to_uppercase())
        });
        let right = |text: &str| Cell::new(text).set_alignment(CellAlignment::Right);
        let header = [
            Cell::new("Market"),
            right(&self.currency),
            right(&versus),
            Cell::new("Room"),
        ];
        table.load_style(UTF8_FULL_CONDENSED).set_header(header);
        set_styling(&mut table, colour);
        for (row, market) in self.markets.iter().enumerate() {
            let difference = baseline
                .filter(|_| row > 0)
                .and_then(|baseline| percent(baseline.value.price()?, market.value.price()?));
            table.add_row([
                Cell::new(market.country.to_uppercase()),
                Cell::new(market.value.text()).set_alignment(CellAlignment::Right),
                difference_cell(row == 0, difference),
                Cell::new(market.room.as_deref().unwrap_or("")),
            ]);
        }
        table
    }
}

/// Difference of `price` to `baseline` in percent; `None` for a baseline of zero.
fn percent(baseline: Decimal, price: Decimal) -> Option<f64> {
    ((price - baseline) * Decimal::ONE_HUNDRED)
        .checked_div(baseline)?
        .to_f64()
}

fn difference_cell(is_baseline: bool, difference: Option<f64>) -> Cell {
    let cell = match (is_baseline, difference) {
        (true, _) => Cell::new("base"),
        (false, Some(percent)) => Cell::new(format!("{percent:+.1} %")),
        (false, None) => Cell::new(""),
    };
    let cell = cell.set_alignment(CellAlignment::Right);
    match difference {
        Some(percent) if percent <= -WORTH_A_COLOUR_PERCENT => cell.fg(Color::Green),
        Some(percent) if percent >= WORTH_A_COLOUR_PERCENT => cell.fg(Color::Red),
        _ => cell,
    }
}
