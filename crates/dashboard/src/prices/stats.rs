//! The figures above the calendar: the cheapest or chosen date, its verdicts, how much is known and
//! how old it is.

use farescan_sheets::numbers::{amount, count, duration, price, short_age};
use farescan_sheets::sheet::{Figure, Tone, Value};
use jiff::civil::Date;
use maud::Markup;
use rust_decimal::Decimal;

use super::chosen::ShownProduct;
use crate::sheet;
use farescan_core::contract::Verdict;
use farescan_core::contract::history_grid::HistoryCell;

impl ShownProduct<'_> {
    pub(super) fn stats(&self) -> Markup {
        let searched = self.cells.iter().map(|(_, cell)| *cell);
        let searched = searched.filter(|cell| cell.looked_at.is_some());
        let priced = searched.clone().filter(|cell| cell.price.is_some());
        let ages = priced.clone().filter_map(|cell| cell.age_seconds);
        let from = self.choice.from.strftime("from %-d %b %Y");
        let mut dates = Figure::new("Dates with a price", count(priced.count() as u64));
        dates.unit = Some(format!("of {} searched", count(searched.count() as u64)));
        let age = match (ages.clone().min(), ages.max()) {
            (Some(newest), Some(oldest)) => {
                let mut age = Figure::new("Age of the prices", short_age(newest));
                age.unit = Some(format!("to {}", short_age(oldest)));
                age.note("newest to oldest")
            }
            _ => Figure::new("Age of the prices", Value::Absent("–")),
        };
        let provider = self.provider();
        sheet::figures(&[self.price(), provider, dates.note(from.to_string()), age])
    }

    /// The chosen or cheapest date with its price.
    fn shown(&self) -> Option<(Date, &HistoryCell, Decimal)> {
        let chosen = self.choice.date.or_else(|| self.cheapest())?;
        let (date, cell) = self.cells.iter().find(|(day, _)| *day == chosen)?;
        Some((*date, cell, cell.price?))
    }

    /// The price of the chosen or cheapest date, and what is said of it.
    fn price(&self) -> Figure {
        let label = match self.choice.date {
            Some(_) => "Chosen date",
            None => "Cheapest date",
        };
        let Some((date, cell, found)) = self.shown() else {
            return Figure::new(label, Value::Absent("–")).note("no price known");
        };
        let age = cell
            .age_seconds
            .map(|age| format!(", found {} ago", duration(age)));
        let day = date.strftime("%a %-d %b %Y");
        let mut figure =
            Figure::new(label, amount(found)).note(format!("{day}{}", age.unwrap_or_default()));
        figure.unit = Some(self.product.currency.clone());
        let verdict = self.verdict_on(cell).cloned().map(Value::Verdict);
        figure.notes.extend(verdict);
        figure
    }

    /// The provider's verdict on that price.
    fn provider(&self) -> Figure {
        const LABEL: &str = "Provider's verdict";
        let Some((_, cell, found)) = self.shown() else {
            return Figure::new(LABEL, Value::Absent("–"));
        };
        let figure = match cell.verdict {
            Some(Verdict::Low) => Figure::new(LABEL, "Low").tone(Tone::Good),
            Some(Verdict::Typical) => Figure::new(LABEL, "Typical"),
            Some(Verdict::High) => Figure::new(LABEL, "High").tone(Tone::Bad),
            None => Figure::new(LABEL, Value::Absent("–")),
        };
        let usual = usual(cell, found, &self.product.currency);
        figure.note(usual.unwrap_or_else(|| "the provider gave no usual range".to_owned()))
    }
}

/// Where a price is against the provider's usual range.
fn usual(cell: &HistoryCell, found: Decimal, currency: &str) -> Option<String> {
    let (low, high) = cell.price_insights_low.zip(cell.price_insights_high)?;
    let against = if found < low {
        "below"
    } else if found > high {
        "above"
    } else {
        "within"
    };
    let (found, low, high) = (price(found, currency), amount(low), price(high, currency));
    Some(format!(
        "{found} is {against} the provider's usual {low} to {high}"
    ))
}
