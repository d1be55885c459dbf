//! One bar for each day.

use jiff::civil::Date;
use maud::{Markup, html};
use rust_decimal::Decimal;

use super::scale::{ValueScale, date_ticks, day_number};
use super::{ChartTable, Unit, percent, value_lines};

const MOST_TICKS: usize = 6;
const LINES: u32 = 4;
/// The part of a day's width that its bar fills.
const BAR: f64 = 0.72;

/// The numbers of one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// The day.
    pub day: Date,
    /// How high the bar is.
    pub value: u64,
    /// Further numbers, only for the tooltip and the table.
    pub others: Vec<u64>,
}

/// Bars by day. Days between the first and the last one without a bar are 0.
#[derive(Debug, Clone)]
pub struct BarChart<'a> {
    /// Unique on the page.
    pub id: &'a str,
    /// What a screen reader says first.
    pub title: &'a str,
    /// The name of the value, then of the others, in the plural: `billed requests`, `degraded`.
    pub names: &'a [&'a str],
    /// The first and the last day of the plot.
    pub range: (Date, Date),
    /// The days that have numbers, in any order.
    pub bars: Vec<Bar>,
}

impl BarChart<'_> {
    /// The chart; nothing if it has no bar.
    pub fn markup(&self) -> Markup {
        if self.bars.is_empty() {
            return html! {};
        }
        html! {
            figure class="chart" {
                div class="chart-frame" {
                    (self.svg())
                }
                (self.table())
            }
        }
    }

    fn svg(&self) -> Markup {
        let (title, description) = (format!("{}-title", self.id), format!("{}-desc", self.id));
        let values = self.bars.iter().map(|bar| Decimal::from(bar.value));
        let unit = Unit::Count;
        let scale = ValueScale::around(
            values.chain([Decimal::ZERO, Decimal::ONE]),
            LINES,
            unit.smallest_step(),
        );
        let (first, last) = (day_number(self.range.0), day_number(self.range.1));
        let day = 1.0 / f64::from((last - first + 1).max(1));
        let left = |at: i32| f64::from(at - first) * day;
        html! {
            svg class="chart-plot chart-plot-low" role="img" aria-labelledby=(format!("{title} {description}")) {
                title id=(title) { (self.title) }
                desc id=(description) { (self.description()) }
                (value_lines(&scale, unit))
                @for tick in date_ticks(first, last, MOST_TICKS) {
                    text class="chart-label chart-label-x" x=(percent(left(tick.at) + day / 2.0)) y="100%" dy="1.6em" { (tick.text) }
                }
                @for bar in &self.bars {
                    @let height = scale.share(Decimal::from(bar.value));
                    g class="chart-point" {
                        title { (self.sentence(bar)) }
                        rect class="chart-hit" x=(percent(left(day_number(bar.day)))) width=(percent(day)) y="0" height="100%" {}
                        rect class="chart-bar" x=(percent(left(day_number(bar.day)) + day * (1.0 - BAR) / 2.0)) width=(percent(day * BAR))
                            y=(percent(1.0 - height)) height=(percent(height)) {}
                    }
                }
            }
        }
    }

    fn description(&self) -> String {
        let total: u64 = self.bars.iter().map(|bar| bar.value).sum();
        let name = self.names.first().copied().unwrap_or_default();
        let most = self.bars.iter().max_by_key(|bar| bar.value);
        let most = most.map_or_else(String::new, |bar| {
            format!(
                "; the most on {}: {}",
                bar.day.strftime("%a %-d %b %Y"),
                Unit::Count.label(bar.value.into())
            )
        });
        format!(
            "{} from {} to {}{most}.",
            numbered(total, name),
            self.range.0.strftime("%-d %b %Y"),
            self.range.1.strftime("%-d %b %Y"),
        )
    }

    fn sentence(&self, bar: &Bar) -> String {
        let numbers: Vec<_> = std::iter::once(&bar.value)
            .chain(&bar.others)
            .zip(self.names)
            .map(|(number, name)| numbered(*number, name))
            .collect();
        format!("{}: {}", bar.day.strftime("%a %-d %b"), numbers.join(", "))
    }

    fn table(&self) -> Markup {
        let mut bars: Vec<_> = self.bars.iter().collect();
        bars.sort_by_key(|bar| std::cmp::Reverse(bar.day));
        let row = |bar: &&Bar| {
            let numbers = std::iter::once(&bar.value).chain(&bar.others);
            std::iter::once(bar.day.strftime("%a %-d %b %Y").to_string())
                .chain(numbers.map(|number| Unit::Count.label((*number).into())))
                .collect()
        };
        ChartTable {
            caption: self.title,
            columns: std::iter::once("Date (UTC)")
                .chain(self.names.iter().copied())
                .collect(),
            rows: bars.iter().map(row).collect(),
        }
        .markup()
    }
}

/// `2 alerts`, `1 alert`.
fn numbered(number: u64, plural: &str) -> String {
    let name = match (number, plural.strip_suffix('s')) {
        (1, Some(singular)) => singular,
        _ => plural,
    };
    format!("{} {name}", Unit::Count.label(number.into()))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn chart(bars: &[(i8, u64)]) -> String {
        let bar = |(day, value): &(i8, u64)| Bar {
            day: date(2026, 11, *day),
            value: *value,
            others: vec![1],
        };
        BarChart {
            id: "usage",
            title: "Billed requests by day",
            names: &["billed requests", "degraded"],
            range: (date(2026, 11, 1), date(2026, 11, 10)),
            bars: bars.iter().map(bar).collect(),
        }
        .markup()
        .into_string()
    }

    #[test]
    fn a_bar_stands_on_its_day_from_zero() {
        let page = chart(&[(1, 50), (10, 100)]);
        assert!(
            page.contains(r#"class="chart-bar" x="1.4%" width="7.2%" y="50%" height="50%""#),
            "{page}"
        );
        assert!(page.contains(r#"class="chart-bar" x="91.4%" width="7.2%" y="0%" height="100%""#));
        assert!(page.contains("Sun 1 Nov: 50 billed requests, 1 degraded"));
        assert!(page.contains(
            "150 billed requests from 1 Nov 2026 to 10 Nov 2026; the most on Tue 10 Nov 2026: 100."
        ));
    }

    #[test]
    fn one_is_no_plural() {
        let page = chart(&[(2, 1)]);
        assert!(
            page.contains("Mon 2 Nov: 1 billed request, 1 degraded"),
            "{page}"
        );
        assert!(page.contains("1 billed request from 1 Nov 2026"));
    }

    #[test]
    fn the_table_has_the_newest_day_first() {
        let page = chart(&[(1, 50), (10, 100)]);
        let places = ["Tue 10 Nov 2026</th>", "Sun 1 Nov 2026</th>"].map(|day| page.find(day));
        assert!(places[0].is_some() && places[0] < places[1]);
    }

    #[test]
    fn no_day_is_no_chart_and_zero_is_a_chart() {
        assert_eq!(chart(&[]), "");
        assert!(chart(&[(3, 0)]).contains(r#"height="0%""#));
    }
}
