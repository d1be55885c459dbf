//! The last known prices as months: the number first, its colour second, and how old it is.

use std::collections::HashMap;

use farescan_sheets::calendar::{Month, WEEKDAYS};
use farescan_sheets::cell::CellValue;
use farescan_sheets::fifths::PriceFifths;
use farescan_sheets::numbers;
use jiff::civil::Date;
use maud::{Markup, html};
use rust_decimal::Decimal;

use crate::parts::cell_text;
use farescan_core::contract::SearchStatus;
use farescan_core::contract::history_grid::HistoryCell;
use farescan_core::contract::history_verdict::{HistoryVerdict, PriceClass};
use farescan_core::ids::ItemId;

/// The dates of a product, each with a link.
pub(super) struct PriceCalendar<'a> {
    pub(super) currency: &'a str,
    /// One cell for each date at most, in order.
    pub(super) cells: &'a [(Date, &'a HistoryCell)],
    /// The verdicts on the prices, by the items that found them.
    pub(super) verdicts: &'a HashMap<ItemId, HistoryVerdict>,
    /// The date that the page shows more of.
    pub(super) chosen: Option<Date>,
    /// Where a date leads.
    pub(super) link: &'a dyn Fn(Date) -> String,
}

impl PriceCalendar<'_> {
    /// A table for each month that has a searched date.
    pub(super) fn markup(&self) -> Markup {
        let searched = self
            .cells
            .iter()
            .filter(|(_, cell)| cell.looked_at.is_some());
        let months = Month::of_dates(searched.map(|(date, _)| *date));
        let fifths = self.fifths();
        let is_implausible = |cell| matches!(self.value(cell), CellValue::Implausible(_));
        let has_implausible = self.cells.iter().any(|(_, cell)| is_implausible(cell));
        html! {
            div class="price-months" {
                @for month in &months {
                    (self.month(month, &fifths))
                }
            }
            ul class="chart-legend" {
                li { "Cheap " span class="price-key q1" {} span class="price-key q2" {} span class="price-key q3" {} span class="price-key q4" {} span class="price-key q5" {} " dear, by fifths of the dates shown" }
                li { span class="price-key empty-cell" {} "nothing on sale" }
                li { span class="price-key degraded-cell" {} "? last search incomplete" }
                @if has_implausible { li { s { "60" } " implausible" } }
                li { "Outlined: cheapest. Below each price: its age." }
            }
        }
    }

    fn month(&self, month: &Month, fifths: &PriceFifths) -> Markup {
        html! {
            table class="price-month" {
                caption { (month.title) }
                thead { tr { @for (short, long) in WEEKDAYS { th scope="col" abbr=(long) { (short) } } } }
                tbody {
                    @for week in &month.weeks {
                        tr { @for day in week { (self.day(*day, fifths)) } }
                    }
                }
            }
        }
    }

    fn day(&self, day: Option<Date>, fifths: &PriceFifths) -> Markup {
        let Some(date) = day else {
            return html! { td class="blank" {} };
        };
        let cell = self.cells.iter().find(|(day, _)| *day == date);
        let Some((_, cell)) = cell.filter(|(_, cell)| cell.looked_at.is_some()) else {
            return html! { td class="unsearched" { span class="day" { (date.day()) } } };
        };
        let class = self.class(date, cell, fifths);
        html! {
            td class=(class) {
                a href=((self.link)(date)) title=(self.sentence(date, cell)) aria-current=[(self.chosen == Some(date)).then_some("date")] {
                    span class="day" { (date.day()) }
                    span class="price" { (cell_text(self.value(cell))) }
                    @if let (CellValue::Price(_) | CellValue::Implausible(_), Some(age)) = (self.value(cell), cell.age_seconds) { span class="age" { (short_age(age)) } }
                }
            }
        }
    }

    fn class(&self, date: Date, cell: &HistoryCell, fifths: &PriceFifths) -> String {
        let mut classes = Vec::new();
        match self.value(cell) {
            CellValue::Price(price) => classes.push(format!("q{}", fifths.fifth(price))),
            CellValue::Implausible(_) => classes.push("implausible".to_owned()),
            CellValue::Empty => classes.push("empty-cell".to_owned()),
            _ => classes.push("degraded-cell".to_owned()),
        }
        if cell.price.is_some() && cell.search_status == Some(SearchStatus::Degraded) {
            classes.push("stale-cell".to_owned());
        }
        let is_lowest = self.value(cell).price() == fifths.lowest() && fifths.count() > 0;
        if is_lowest && self.cheapest().is_some_and(|(best, _)| best == date) {
            classes.push("cheapest".to_owned());
        }
        if self.chosen == Some(date) {
            classes.push("chosen".to_owned());
        }
        classes.join(" ")
    }

    /// The last known price of a date, marked by its verdict too.
    fn value(&self, cell: &HistoryCell) -> CellValue {
        let verdict = cell.item_id.and_then(|item| self.verdicts.get(&item));
        let is_implausible =
            verdict.is_some_and(|verdict| verdict.class == PriceClass::Implausible);
        CellValue::of_history(cell).marked(is_implausible)
    }

    fn fifths(&self) -> PriceFifths {
        let prices = self.cells.iter();
        prices
            .filter_map(|(_, cell)| self.value(cell).price())
            .collect()
    }

    /// The lowest plausible price and its earliest date.
    pub(super) fn cheapest(&self) -> Option<(Date, Decimal)> {
        self.cells
            .iter()
            .filter_map(|(date, cell)| Some((*date, self.value(cell).price()?)))
            .min_by_key(|(_, price)| *price)
    }

    fn sentence(&self, date: Date, cell: &HistoryCell) -> String {
        let day = date.strftime("%a %-d %b %Y");
        let price = match (cell.price, cell.age_seconds) {
            (Some(price), Some(age)) => format!(
                "{}, found {} ago",
                numbers::price(price, self.currency),
                numbers::duration(age)
            ),
            _ => "no price".to_owned(),
        };
        let last = match cell.search_status {
            Some(SearchStatus::Empty) => "; the last search found nothing on sale",
            Some(SearchStatus::Degraded) => "; the last search did not complete",
            _ => "",
        };
        let mark = match self.value(cell) {
            CellValue::Implausible(_) => "; implausible: far off its own history",
            _ => "",
        };
        format!("{day}: {price}{last}{mark}")
    }
}

/// An age in its largest unit: `3 d`.
pub(super) fn short_age(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3_600, seconds / 60) {
        (0, 0, 0) => "now".to_owned(),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, _) => format!("{hours} h"),
        (days, ..) => format!("{days} d"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn cell(price: Option<i64>, status: SearchStatus, age: u64) -> HistoryCell {
        serde_json::from_value(serde_json::json!({
            "row": "2027-01-01", "column": null, "price": price, "first_date": null, "last_date": null, "seller": null,
            "observed_at": null, "age_seconds": price.map(|_| age), "item_id": null,
            "looked_at": "2026-12-01T09:00:02Z", "search_status": status.as_str(), "reason": null
        }))
        .unwrap()
    }

    #[test]
    fn a_month_shows_price_age_and_what_is_missing() {
        let cells = [
            cell(Some(300), SearchStatus::Ok, 7_300),
            cell(None, SearchStatus::Empty, 0),
            cell(Some(100), SearchStatus::Degraded, 90_000),
            cell(None, SearchStatus::Degraded, 0),
        ];
        let days: Vec<_> = (1..).map(|day| date(2027, 1, day)).zip(&cells).collect();
        let calendar = PriceCalendar {
            currency: "USD",
            cells: &days,
            verdicts: &HashMap::new(),
            chosen: Some(date(2027, 1, 1)),
            link: &|date| format!("?date={date}"),
        };
        let page = calendar.markup().into_string();
        assert_eq!(calendar.cheapest(), Some((date(2027, 1, 3), 100.into())));
        for expected in [
            "<caption>January 2027</caption>",
            r#"<td class="q3 chosen"><a href="?date=2027-01-01" title="Fri 1 Jan 2027: 300 USD, found 2 h 1 min ago" aria-current="date">"#,
            r#"<td class="empty-cell"><a href="?date=2027-01-02" title="Sat 2 Jan 2027: no price; the last search found nothing on sale">"#,
            r#"<td class="q1 stale-cell cheapest">"#,
            r#"<span class="age">1 d</span>"#,
            r#"<td class="degraded-cell">"#,
            r#"<td class="unsearched"><span class="day">5</span></td>"#,
        ] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
    }

    #[test]
    fn an_implausible_price_is_not_the_cheapest() {
        let item = ItemId::new();
        let cells = [
            cell(Some(300), SearchStatus::Ok, 60),
            HistoryCell {
                item_id: Some(item),
                ..cell(Some(100), SearchStatus::Ok, 60)
            },
        ];
        let days: Vec<_> = (1..).map(|day| date(2027, 1, day)).zip(&cells).collect();
        let verdict = serde_json::from_value(serde_json::json!({
            "class": "implausible", "percentile": null, "n": 0, "lower": 0, "higher": 0, "bin": null, "since": null,
            "sentence": "", "usual": {"price": 310, "since": "2026-11-28"}
        }));
        let calendar = PriceCalendar {
            currency: "USD",
            cells: &days,
            verdicts: &HashMap::from([(item, verdict.unwrap())]),
            chosen: None,
            link: &|_| String::new(),
        };
        assert_eq!(calendar.cheapest(), Some((date(2027, 1, 1), 300.into())));
        let page = calendar.markup().into_string();
        let expected =
            "Sat 2 Jan 2027: 100 USD, found 1 min ago; implausible: far off its own history";
        assert!(page.contains(expected), "{page}");
    }

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, written) in [(59, "now"), (60, "1 min"), (7_199, "1 h"), (90_000, "1 d")] {
            assert_eq!(short_age(seconds), written);
        }
    }
}
