//! A line of prices with its band: by date, or by days before departure.

use jiff::Zoned;
use jiff::civil::Date;
use maud::{Markup, html};
use rust_decimal::Decimal;

use super::scale::{Tick, ValueScale, date_ticks, day_number, day_of, lead_ticks, run_ticks};
use super::{ChartTable, Unit, path, percent, value_lines};

/// Labels at the horizontal axis: more would touch each other on a phone.
const MOST_TICKS: usize = 6;
/// Lines across the plot.
const LINES: u32 = 4;
/// The paths are drawn in a square of this side and stretched.
const SIDE: f64 = 1_000.0;

/// What the horizontal axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartAxis<'a> {
    /// Dates, the earliest on the left.
    Dates,
    /// Runs in their order, each point the place of one in these slots.
    Runs(&'a [Zoned]),
    /// Days before departure or check-in, 0 on the right.
    DaysBefore,
    /// The same; each point is the week that begins with its day.
    WeeksBefore,
}

impl ChartAxis<'_> {
    /// Whether it counts days before, from the right.
    const fn is_lead(self) -> bool {
        matches!(self, Self::DaysBefore | Self::WeeksBefore)
    }

    /// Its name under the labels; dates need none.
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Dates => None,
            Self::Runs(_) => Some("runs, oldest first"),
            Self::DaysBefore | Self::WeeksBefore => Some("days before departure"),
        }
    }
}

/// One place of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Days since 1970, days before departure, or the place of a run: see [`Point::on`],
    /// [`Point::before`] and [`Point::of_run`].
    pub at: i32,
    /// The line; `None`: searched without a price, the line has a gap.
    pub value: Option<Decimal>,
    /// The dashed line.
    pub reference: Option<Decimal>,
    /// Bottom and top of the band.
    pub band: Option<(Decimal, Decimal)>,
}

impl Point {
    /// A point of a chart by date.
    pub fn on(day: Date) -> Self {
        Self::at(day_number(day))
    }

    /// A point of a chart by days before departure.
    pub fn before(days: i32) -> Self {
        Self::at(days)
    }

    /// A point of a chart by runs.
    pub fn of_run(place: usize) -> Self {
        Self::at(i32::try_from(place).unwrap_or(i32::MAX))
    }

    const fn at(at: i32) -> Self {
        Self {
            at,
            value: None,
            reference: None,
            band: None,
        }
    }

    fn values(&self) -> impl Iterator<Item = Decimal> {
        let (low, high) = self.band.unzip();
        [self.value, self.reference, low, high]
            .into_iter()
            .flatten()
    }
}

/// What the parts of a chart are called in its legend and table.
#[derive(Debug, Clone, Copy)]
pub struct LineNames<'a> {
    /// The line: `Lowest fare`.
    pub value: &'a str,
    /// The dashed line: `Median`.
    pub reference: &'a str,
    /// The band: `Provider's low to high`.
    pub band: &'a str,
}

/// A line with its band.
#[derive(Debug, Clone)]
pub struct LineChart<'a> {
    /// Unique on the page.
    pub id: &'a str,
    /// What a screen reader says first.
    pub title: &'a str,
    /// What the numbers are.
    pub unit: Unit<'a>,
    /// What the horizontal axis counts.
    pub axis: ChartAxis<'a>,
    /// The names of its parts.
    pub names: LineNames<'a>,
    /// The points in any order.
    pub points: Vec<Point>,
}

/// The places of the points in the plot.
struct Plot<'a> {
    chart: &'a LineChart<'a>,
    points: Vec<Point>,
    scale: ValueScale,
    first: i32,
    last: i32,
}

impl LineChart<'_> {
    /// The chart; nothing if no point has a value.
    pub fn markup(&self) -> Markup {
        let Some(plot) = self.plot() else {
            return html! {};
        };
        html! {
            figure class="chart" {
                div class="chart-frame" {
                    (plot.svg())
                }
                (plot.legend())
                (self.table(&plot.points))
            }
        }
    }

    fn plot(&self) -> Option<Plot<'_>> {
        let mut points = self.points.clone();
        let is_lead = self.axis.is_lead();
        points.sort_by_key(|point| if is_lead { -point.at } else { point.at });
        points.iter().find(|point| point.value.is_some())?;
        let ends = points.iter().map(|point| point.at);
        let (first, last) = (ends.clone().min()?, ends.max()?);
        let scale = ValueScale::around(
            points.iter().flat_map(Point::values),
            LINES,
            self.unit.smallest_step(),
        );
        Some(Plot {
            chart: self,
            points,
            scale,
            // Days before a departure go on to the departure.
            first: if is_lead { 0 } else { first },
            last,
        })
    }

    fn label(&self, at: i32) -> String {
        match self.axis {
            ChartAxis::Dates => day_of(at).strftime("%a %-d %b %Y").to_string(),
            ChartAxis::Runs(slots) => {
                let slot = usize::try_from(at).ok().and_then(|at| slots.get(at));
                let text = slot.map(|slot| slot.strftime("%a %-d %b %Y, %H:%M").to_string());
                text.unwrap_or_default()
            }
            ChartAxis::WeeksBefore => format!("{at} to {} days before", at + 6),
            ChartAxis::DaysBefore if at == 1 => "1 day before".to_owned(),
            ChartAxis::DaysBefore => format!("{at} days before"),
        }
    }

    /// A point in words, for its tooltip.
    fn sentence(&self, point: &Point) -> String {
        let number = |number| self.unit.label(number);
        let value = point.value.map_or_else(|| "no price".to_owned(), number);
        let reference = point.reference.map_or_else(String::new, |reference| {
            let name = self.names.reference.to_lowercase();
            format!(", {name} {}", number(reference))
        });
        let band = point.band.map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", number(low), number(high))
        });
        format!("{}: {value}{reference}{band}", self.label(point.at))
    }

    fn table(&self, points: &[Point]) -> Markup {
        let names = self.names;
        let has_reference = points.iter().any(|point| point.reference.is_some());
        let has_band = points.iter().any(|point| point.band.is_some());
        let band = [format!("{}: from", names.band), "to".to_owned()];
        let mut columns = vec![
            match self.axis {
                ChartAxis::Dates => "Date",
                ChartAxis::Runs(_) => "Run",
                ChartAxis::DaysBefore | ChartAxis::WeeksBefore => "Before departure",
            },
            names.value,
        ];
        columns.extend(has_reference.then_some(names.reference));
        columns.extend(band.iter().filter(|_| has_band).map(String::as_str));
        let number = |number: Option<Decimal>| {
            number.map_or_else(|| "–".to_owned(), |number| self.unit.label(number))
        };
        let row = |point: &Point| {
            let (low, high) = point.band.unzip();
            let mut row = vec![self.label(point.at), number(point.value)];
            row.extend(has_reference.then(|| number(point.reference)));
            row.extend(
                has_band
                    .then(|| [number(low), number(high)])
                    .into_iter()
                    .flatten(),
            );
            row
        };
        ChartTable {
            caption: self.title,
            columns,
            rows: points.iter().map(row).collect(),
        }
        .markup()
    }
}

impl Plot<'_> {
    /// From 0 on the left to 1 on the right.
    fn across(&self, at: i32) -> f64 {
        if self.first == self.last {
            return 0.5;
        }
        let share = f64::from(at - self.first) / f64::from(self.last - self.first);
        if self.chart.axis.is_lead() {
            1.0 - share
        } else {
            share
        }
    }

    /// From 0 at the top to 1 at the bottom, as SVG counts.
    fn down(&self, value: Decimal) -> f64 {
        1.0 - self.scale.share(value)
    }

    fn place(&self, at: i32, value: Decimal) -> String {
        format!(
            "{:.1} {:.1}",
            self.across(at) * SIDE,
            self.down(value) * SIDE
        )
    }

    fn svg(&self) -> Markup {
        let chart = self.chart;
        let (title, description) = (format!("{}-title", chart.id), format!("{}-desc", chart.id));
        let line = self.line(|point| point.value);
        let reference = self.line(|point| point.reference);
        let side = format!("0 0 {SIDE} {SIDE}");
        html! {
            svg class="chart-plot" role="img" aria-labelledby=(format!("{title} {description}")) {
                title id=(title) { (chart.title) }
                desc id=(description) { (self.description()) }
                (value_lines(&self.scale, chart.unit))
                (self.axis_labels())
                svg width="100%" height="100%" viewBox=(side) preserveAspectRatio="none" {
                    @for band in self.bands() {
                        path class="chart-band" d=(band) {}
                    }
                    @if !reference.is_empty() {
                        path class="chart-reference" d=(reference) vector-effect="non-scaling-stroke" {}
                    }
                    path class="chart-line" d=(line) vector-effect="non-scaling-stroke" {}
                }
                (self.marks())
            }
        }
    }

    /// The chart in words: its range, its newest value, and its lowest.
    fn description(&self) -> String {
        let chart = self.chart;
        let priced: Vec<_> = self
            .points
            .iter()
            .filter_map(|point| Some((point.at, point.value?)))
            .collect();
        let name = chart.names.value;
        let describe = |(at, value): &(i32, Decimal)| {
            format!("{} ({})", chart.unit.label(*value), chart.label(*at))
        };
        let lowest = priced.iter().min_by_key(|(_, value)| *value);
        let highest = priced.iter().max_by_key(|(_, value)| *value);
        match (lowest, highest, priced.last()) {
            (Some(lowest), Some(highest), Some(last)) => format!(
                "{name}: {} with a price; lowest {}, highest {}, last {}.",
                match priced.len() {
                    1 => "1 point".to_owned(),
                    points => format!("{points} points"),
                },
                describe(lowest),
                describe(highest),
                describe(last)
            ),
            _ => String::new(),
        }
    }

    fn axis_labels(&self) -> Markup {
        let ticks: Vec<Tick> = match self.chart.axis {
            ChartAxis::Dates => date_ticks(self.first, self.last, MOST_TICKS),
            ChartAxis::Runs(slots) => run_ticks(slots, MOST_TICKS),
            ChartAxis::DaysBefore | ChartAxis::WeeksBefore => lead_ticks(self.last, MOST_TICKS + 1),
        };
        html! {
            @for tick in ticks {
                @let place = percent(self.across(tick.at));
                text class="chart-label chart-label-x" x=(place) y="100%" dy="1.6em" { (tick.text) }
            }
            @if let Some(name) = self.chart.axis.name() {
                text class="chart-label chart-axis-name" x="100%" y="100%" dy="3em" { (name) }
            }
        }
    }

    /// A path through the points that have a value, broken where a point has none.
    fn line(&self, value: impl Fn(&Point) -> Option<Decimal>) -> String {
        path(
            self.points
                .iter()
                .map(|point| Some(self.place(point.at, value(point)?))),
        )
    }

    /// A closed path for each run of points that have a band.
    fn bands(&self) -> Vec<String> {
        let mut bands = Vec::new();
        for run in self.points.split(|point| point.band.is_none()) {
            let edges: Vec<_> = run
                .iter()
                .filter_map(|point| Some((point.at, point.band?)))
                .collect();
            if edges.len() < 2 {
                continue;
            }
            let top = edges.iter().map(|(at, band)| self.place(*at, band.1));
            let bottom = edges.iter().rev().map(|(at, band)| self.place(*at, band.0));
            let places: Vec<_> = top.chain(bottom).collect();
            bands.push(format!("M{}Z", places.join("L")));
        }
        bands
    }

    /// The place of each point with its tooltip; the last one is always shown, and so are points
    /// that no line reaches.
    fn marks(&self) -> Markup {
        let last = self.points.iter().rposition(|point| point.value.is_some());
        let has_value = |place: Option<usize>| {
            place
                .and_then(|place| self.points.get(place))
                .is_some_and(|point| point.value.is_some())
        };
        html! {
            @for (place, point) in self.points.iter().enumerate() {
                @if let Some(value) = point.value {
                    @let is_alone = !has_value(place.checked_sub(1)) && !has_value(Some(place + 1));
                    @let is_shown = last == Some(place) || is_alone;
                    g class=(if is_shown { "chart-point chart-point-shown" } else { "chart-point" }) {
                        title { (self.chart.sentence(point)) }
                        circle class="chart-hit" cx=(percent(self.across(point.at))) cy=(percent(self.down(value))) r="9" {}
                        circle class="chart-dot" cx=(percent(self.across(point.at))) cy=(percent(self.down(value))) r="3.5" {}
                    }
                }
            }
        }
    }

    fn legend(&self) -> Markup {
        let names = self.chart.names;
        let has_reference = self.line(|point| point.reference).contains('L');
        let has_band = !self.bands().is_empty();
        html! {
            ul class="chart-legend" {
                li { span class="chart-key chart-key-line" {} (names.value) }
                @if has_band {
                    li { span class="chart-key chart-key-band" {} (names.band) }
                }
                @if has_reference {
                    li { span class="chart-key chart-key-reference" {} (names.reference) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn chart(axis: ChartAxis<'static>, points: Vec<Point>) -> LineChart<'static> {
        LineChart {
            id: "prices",
            title: "Lowest fare by day",
            unit: Unit::Money("EUR"),
            axis,
            names: LineNames {
                value: "Lowest fare",
                reference: "Median",
                band: "Provider's low to high",
            },
            points,
        }
    }

    fn point(day: i8, value: Option<i64>, band: Option<(i64, i64)>) -> Point {
        Point {
            value: value.map(Decimal::from),
            band: band.map(|(low, high)| (low.into(), high.into())),
            ..Point::on(date(2026, 11, day))
        }
    }

    /// The attribute `d` of the path of a class.
    fn paths<'a>(page: &'a str, class: &str) -> Vec<&'a str> {
        page.split(&format!("class=\"{class}\" d=\""))
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect()
    }

    #[test]
    fn a_line_has_a_gap_where_a_search_found_nothing() {
        let points = vec![
            point(1, Some(300), Some((200, 500))),
            point(2, Some(400), Some((200, 500))),
            point(3, None, None),
            point(5, Some(500), Some((200, 500))),
        ];
        let page = chart(ChartAxis::Dates, points).markup().into_string();
        assert_eq!(
            paths(&page, "chart-line"),
            ["M0.0 666.7L250.0 333.3M1000.0 0.0"]
        );
        assert_eq!(
            paths(&page, "chart-band"),
            ["M0.0 0.0L250.0 0.0L250.0 1000.0L0.0 1000.0Z"]
        );
        assert_eq!(
            page.matches("chart-point-shown").count(),
            1,
            "the last point, which no line reaches"
        );
    }

    #[test]
    fn points_stand_in_the_order_of_their_axis() {
        let before = |days, value: i64| Point {
            value: Some(value.into()),
            ..Point::before(days)
        };
        let page = chart(
            ChartAxis::DaysBefore,
            vec![before(0, 100), before(10, 200), before(5, 150)],
        )
        .markup()
        .into_string();
        assert_eq!(
            paths(&page, "chart-line"),
            ["M0.0 0.0L500.0 500.0L1000.0 1000.0"]
        );
        assert!(page.contains("10 days before"));
    }

    #[test]
    fn a_chart_is_also_words_and_a_table() {
        let page = chart(
            ChartAxis::Dates,
            vec![point(1, Some(300), Some((250, 400))), point(2, None, None)],
        )
        .markup()
        .into_string();
        assert!(page.contains(
            "Lowest fare: 1 point with a price; lowest 300 EUR (Sun 1 Nov 2026), highest 300 EUR (Sun 1 Nov 2026)"
        ));
        assert!(page.contains(
            r#"<tr><th scope="row">Sun 1 Nov 2026</th><td class="num">300 EUR</td><td class="num">250 EUR</td><td class="num">400 EUR</td></tr>"#
        ));
        assert!(page.contains(
            r#"<tr><th scope="row">Mon 2 Nov 2026</th><td class="num">–</td><td class="num">–</td><td class="num">–</td></tr>"#
        ));
        assert!(page.contains(r#"aria-labelledby="prices-title prices-desc""#));
        assert!(page.contains(r#"<title id="prices-title">Lowest fare by day</title>"#));
    }

    #[test]
    fn a_chart_has_no_inline_style_or_colour() {
        let page = chart(
            ChartAxis::Dates,
            vec![
                point(1, Some(300), Some((250, 400))),
                point(2, Some(310), None),
            ],
        )
        .markup()
        .into_string();
        for forbidden in ["style=", "fill=", "stroke=", "<script", "onload"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn without_any_price_there_is_no_chart() {
        for points in [vec![], vec![point(1, None, Some((1, 2)))]] {
            assert_eq!(chart(ChartAxis::Dates, points).markup().into_string(), "");
        }
    }

    #[test]
    fn text_from_outside_is_escaped() {
        let mut chart = chart(ChartAxis::Dates, vec![point(1, Some(1), None)]);
        chart.title = "<script>alert(1)</script>";
        let page = chart.markup().into_string();
        assert!(!page.contains("<script"));
    }
}
