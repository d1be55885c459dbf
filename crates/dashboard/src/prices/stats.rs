//! The figures above the calendar: the cheapest or chosen date, its verdict, how much is known and
//! how old it is.

use farescan_sheets::numbers;
use maud::{Markup, html};
use rust_decimal::Decimal;

use super::calendar::short_age;
use super::chosen::ShownProduct;
use crate::parts;
use farescan_core::contract::Verdict;
use farescan_core::contract::history_grid::HistoryCell;

impl ShownProduct<'_> {
    pub(super) fn stats(&self) -> Markup {
        let currency = &self.product.currency;
        let chosen = self
            .choice
            .date
            .or_else(|| self.calendar().cheapest().map(|(date, _)| date));
        let cell = chosen.and_then(|date| self.cells.iter().find(|(day, _)| *day == date));
        let searched = self
            .cells
            .iter()
            .filter(|(_, cell)| cell.looked_at.is_some());
        let priced = self.cells.iter().filter(|(_, cell)| cell.price.is_some());
        let ages = priced.clone().filter_map(|(_, cell)| cell.age_seconds);
        let label = if self.choice.date.is_some() {
            "Chosen date"
        } else {
            "Cheapest date"
        };
        html! {
            div class="stats" {
                div class="stat" {
                    div class="label" { (label) }
                    @match cell.and_then(|(date, cell)| Some((date, cell, cell.price?))) {
                        Some((date, cell, price)) => {
                            div class="value" { (numbers::amount(price)) " " small { (currency) } }
                            div class="note" { (date.strftime("%a %-d %b %Y")) @if let Some(age) = cell.age_seconds { ", found " (numbers::duration(age)) " ago" } }
                            @if let Some(verdict) = self.verdict_on(cell) { div class="note" { (parts::history_verdict(verdict)) } }
                        }
                        None => { div class="value" { "–" } div class="note" { "no price known" } }
                    }
                }
                div class="stat" {
                    div class="label" { "Provider's verdict" }
                    (verdict(cell.map(|(_, cell)| *cell), currency))
                }
                div class="stat" {
                    div class="label" { "Dates with a price" }
                    div class="value" { (priced.count()) " " small { "of " (searched.count()) " searched" } }
                    div class="note" { "from " (self.choice.from.strftime("%-d %b %Y")) }
                }
                div class="stat" {
                    div class="label" { "Age of the prices" }
                    @match (ages.clone().min(), ages.max()) {
                        (Some(newest), Some(oldest)) => { div class="value" { (short_age(newest)) " " small { "to " (short_age(oldest)) } } div class="note" { "newest to oldest" } }
                        _ => { div class="value" { "–" } }
                    }
                }
            }
        }
    }
}

/// The provider's verdict as a sentence.
fn verdict(cell: Option<&HistoryCell>, currency: &str) -> Markup {
    let Some((cell, price)) = cell.and_then(|cell| Some((cell, cell.price?))) else {
        return html! { div class="value" { "–" } };
    };
    let band = cell.price_insights_low.zip(cell.price_insights_high);
    let (word, tone) = match cell.verdict {
        Some(Verdict::Low) => ("Low", "value good-text"),
        Some(Verdict::Typical) => ("Typical", "value"),
        Some(Verdict::High) => ("High", "value bad-text"),
        None => ("–", "value"),
    };
    html! {
        div class=(tone) { (word) }
        div class="note" {
            @match band {
                Some((low, high)) => { (numbers::price(price, currency)) " is " (against(price, low, high)) " the provider's usual " (numbers::amount(low)) " to " (numbers::price(high, currency)) "." }
                None => "the provider gave no usual range"
            }
        }
    }
}

/// Where a price is against a usual range.
fn against(price: Decimal, low: Decimal, high: Decimal) -> &'static str {
    if price < low {
        "below"
    } else if price > high {
        "above"
    } else {
        "within"
    }
}
