//! One stay, priced from several markets: each market's price and how far it lies from the first market's.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Color, Table};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::{Seen, styled};

/// Below this many percent a difference is not worth a colour.
const WORTH_A_COLOUR_PERCENT: f64 = 3.0;

/// One market and what was seen from it.
#[derive(Debug, Clone)]
pub struct Market {
    /// Two-letter country code.
    pub country: String,
    pub seen: Seen,
    /// What the price is for: a difference between two rooms is no difference between markets.
    pub room: Option<String>,
}

/// A stay over its markets, the baseline first.
#[derive(Debug, Clone)]
pub struct Markets {
    pub currency: String,
    pub markets: Vec<Market>,
}

impl Markets {
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
        styled(&mut table, colour);
        for (row, market) in self.markets.iter().enumerate() {
            let difference = baseline
                .filter(|_| row > 0)
                .and_then(|baseline| percent(baseline.seen.price()?, market.seen.price()?));
            table.add_row([
                Cell::new(market.country.to_uppercase()),
                Cell::new(market.seen.text()).set_alignment(CellAlignment::Right),
                difference_cell(row == 0, difference),
                Cell::new(market.room.as_deref().unwrap_or("")),
            ]);
        }
        table
    }
}

/// How far `price` lies from `baseline`, in percent; `None` where the baseline is nothing to measure by.
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
