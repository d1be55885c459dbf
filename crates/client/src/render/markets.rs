//! One stay from several markets: each market's price and its difference to the first market's.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};
use farescan_sheets::cell::CellValue;
use farescan_sheets::numbers::{percent_of, signed_percent};
use rust_decimal::Decimal;

use super::{CellTone, cell_text, set_styling, tone};
use farescan_contract::scans::ParityVerdict;

/// Differences below this percentage have no colour.
const WORTH_A_COLOUR_PERCENT: Decimal = Decimal::from_parts(3, 0, 0, false, 0);

/// One market and its price.
#[derive(Debug, Clone)]
pub struct MarketRow {
    /// Two-letter country code.
    pub country: String,
    pub value: CellValue,
    /// The priced room: prices of different rooms do not compare.
    pub room: Option<String>,
    /// Whether the difference to the baseline is significant, if the service compared them.
    pub parity: Option<ParityVerdict>,
}

/// A stay's markets, the baseline first.
#[derive(Debug, Clone)]
pub struct MarketTable {
    pub currency: String,
    pub markets: Vec<MarketRow>,
}

impl MarketTable {
    /// The table: market, price, difference to the baseline, room.
    pub fn table(&self, colour: bool) -> Table {
        let baseline = self.markets.first();
        let mut table = Table::new();
        let versus = baseline.map_or_else(String::new, |market| {
            format!("vs {}", market.country.to_uppercase())
        });
        let right = |text: &str| Cell::new(text).set_alignment(CellAlignment::Right);
        let has_parity = self.markets.iter().any(|market| market.parity.is_some());
        let mut header = vec![
            Cell::new("Market"),
            right(&self.currency),
            right(&versus),
            Cell::new("Room"),
        ];
        if has_parity {
            header.insert(3, Cell::new("Difference is"));
        }
        table.load_style(UTF8_FULL_CONDENSED).set_header(header);
        set_styling(&mut table, colour);
        for (row, market) in self.markets.iter().enumerate() {
            let difference = baseline
                .filter(|_| row > 0)
                .and_then(|baseline| percent_of(market.value.price()?, baseline.value.price()?));
            let mut cells = vec![
                Cell::new(market.country.to_uppercase()),
                tone(market.value)
                    .apply(Cell::new(cell_text(market.value)).set_alignment(CellAlignment::Right)),
                difference_cell(row == 0, difference),
                Cell::new(market.room.as_deref().unwrap_or("")),
            ];
            if has_parity {
                cells.insert(3, parity_cell(market.parity));
            }
            table.add_row(cells);
        }
        table
    }
}

fn difference_cell(is_baseline: bool, difference: Option<Decimal>) -> Cell {
    let cell = match (is_baseline, difference) {
        (true, _) => Cell::new("base"),
        (false, Some(percent)) => Cell::new(signed_percent(percent)),
        (false, None) => Cell::new(""),
    };
    let cell = cell.set_alignment(CellAlignment::Right);
    match difference {
        Some(percent) if percent <= -WORTH_A_COLOUR_PERCENT => CellTone::Good.apply(cell),
        Some(percent) if percent >= WORTH_A_COLOUR_PERCENT => CellTone::Bad.apply(cell),
        _ => cell,
    }
}

/// The verdict of the service in words.
fn parity_cell(verdict: Option<ParityVerdict>) -> Cell {
    let (text, tone) = match verdict {
        None => ("", CellTone::Plain),
        Some(ParityVerdict::Gap) => ("real", CellTone::Warning),
        Some(ParityVerdict::Noise) => ("noise", CellTone::Quiet),
        Some(ParityVerdict::Insufficient) => ("unsure: too few samples", CellTone::Quiet),
        Some(ParityVerdict::NotComparable) => ("of another room", CellTone::Quiet),
    };
    tone.apply(Cell::new(text))
}
