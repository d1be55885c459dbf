//! Charts as SVG, from data to markup. Pure: no request, no clock.
//!
//! A chart fills the width of its container. Shapes and labels stand at percentages of the plot, so
//! text keeps its size at any width. All colours come from classes of the style sheet, because the
//! content security policy forbids inline styles and because there are two themes. Each chart has
//! a title and a description for screen readers, and the same numbers as a table beneath.

mod bars;
mod line;
mod scale;
mod segments;
mod sparkline;
mod unit;

use farescan_sheets::numbers;
use maud::{Markup, html};

pub use bars::{Bar, BarChart};
pub use line::{ChartAxis, LineChart, LineNames, Point};
pub use segments::{Segment, segments};
pub use sparkline::sparkline;
pub use unit::Unit;

/// A percentage of the width or height of a plot, as an attribute.
fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}%", if text == "-0" { "0" } else { text })
}

/// The attribute `d` of a line through places, broken at each `None`.
fn path(places: impl IntoIterator<Item = Option<String>>) -> String {
    let mut path = String::new();
    let mut is_open = false;
    for place in places {
        if let Some(place) = &place {
            path.push(if is_open { 'L' } else { 'M' });
            path.push_str(place);
        }
        is_open = place.is_some();
    }
    path
}

/// A table of the numbers of a chart, closed until it is asked for.
struct ChartTable<'a> {
    caption: &'a str,
    /// The first column names the row; the others are numbers.
    columns: Vec<&'a str>,
    rows: Vec<Vec<String>>,
}

impl ChartTable<'_> {
    fn markup(&self) -> Markup {
        html! {
            details class="chart-table" {
                summary { "Show as a table" }
                div class="table-scroll" tabindex="0" role="region" aria-label=(self.caption) {
                    table {
                        caption class="visually-hidden" { (self.caption) }
                        thead {
                            tr {
                                @for (place, column) in self.columns.iter().enumerate() {
                                    th scope="col" class=[(place > 0).then_some("num")] { (column) }
                                }
                            }
                        }
                        tbody {
                            @for row in &self.rows {
                                tr {
                                    @for (place, cell) in row.iter().enumerate() {
                                        @if place == 0 {
                                            th scope="row" { (cell) }
                                        } @else {
                                            td class="num" { (cell) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The horizontal lines of a plot with their values on the left.
fn value_lines(scale: &scale::ValueScale, unit: Unit<'_>) -> Markup {
    html! {
        @if let Some(name) = unit.name() {
            text class="chart-label chart-label-y" x="-8" y="0" dy="-1em" { (name) }
        }
        @for tick in scale.ticks() {
            @let height = percent(1.0 - scale.share(tick));
            line class="chart-grid" x1="0" x2="100%" y1=(height) y2=(height) {}
            text class="chart-label chart-label-y" x="-8" y=(height) dy="0.32em" { (numbers::amount(tick)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_has_no_needless_digits() {
        for (share, written) in [
            (0.0, "0%"),
            (-0.000_000_1, "0%"),
            (1.0, "100%"),
            (0.5, "50%"),
            (1.0 / 3.0, "33.33%"),
            (0.1, "10%"),
        ] {
            assert_eq!(percent(share), written);
        }
    }
}
