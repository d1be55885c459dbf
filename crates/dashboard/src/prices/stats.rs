//! The figures above the calendar: the cheapest or chosen date, its verdicts, how much is known and
//! how old it is.

use farescan_sheets::numbers::{amount, count, duration, price, short_age};
use farescan_sheets::sheet::{Figure, Value};
use maud::Markup;
use rust_decimal::Decimal;

use super::chosen::ShownProduct;
use crate::sheet;
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
        sheet::figures(&[self.price(), dates.note(from.to_string()), age])
    }

    /// The price of the chosen or cheapest date, and what is said of it.
    fn price(&self) -> Figure {
        let label = match self.choice.date {
            Some(_) => "Chosen date",
            None => "Cheapest date",
        };
        let chosen = self.choice.date.or_else(|| self.cheapest());
        let cell = chosen.and_then(|date| self.cells.iter().find(|(day, _)| *day == date));
        let Some((date, cell, found)) =
            cell.and_then(|(date, cell)| Some((date, cell, cell.price?)))
        else {
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
        let usual = usual(cell, found, &self.product.currency).map(Value::Text);
        figure.notes.extend(verdict.into_iter().chain(usual));
        figure
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
    let verdict = cell.verdict.map(|verdict| format!("{verdict}: "));
    let (low, high) = (amount(low), price(high, currency));
    Some(format!(
        "{}{against} the provider's usual {low} to {high}",
        verdict.unwrap_or_default()
    ))
}
