//! The charts of one product: its price over time, and by days before departure.

use farescan_sheets::numbers;
use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use super::chosen::{MOST_DAILY, RANGES, ShownProduct};
use super::product::ProductName;
use crate::charts::{ChartAxis, LineChart, LineNames, Point, Unit};
use crate::parts;
use farescan_core::history::buckets::{BucketStats, ProductBucket};
use farescan_core::history::lead_times::LeadTimes;

/// Days of a week.
const WEEK: i64 = 7;

impl ShownProduct<'_> {
    pub(super) fn over_time(&self, found: &[ProductBucket]) -> Markup {
        let date = self.date();
        let names = self.choice.subject.names();
        let found = found
            .iter()
            .filter(|bucket| ProductName::from(&*bucket.product) == self.product);
        let found: Vec<_> = found.map(|bucket| &bucket.stats).collect();
        let points: Vec<_> = found
            .iter()
            .map(|stats| {
                let (low, high) = stats.band();
                let median = stats.range.map(|range| range.middle);
                Point {
                    value: stats.range.map(|range| range.lowest),
                    reference: median.filter(|_| date.is_none()),
                    band: low.zip(high),
                    ..Point::on(stats.bucket)
                }
            })
            .collect();
        let first = names.first_word.to_lowercase();
        let of = match date {
            None => format!("all {first} dates together"),
            Some(date) => format!("{first} {}", date.strftime("%a %-d %b %Y")),
        };
        let unit = if self.choice.range > MOST_DAILY {
            "week (UTC)"
        } else {
            "day (UTC)"
        };
        let title = format!("{} found each {unit}: {of}", names.price);
        html! {
            section class="card" id="over-time" {
                div class="card-head" {
                    h2 { (title) }
                    nav class="tabs" aria-label="Range" {
                        @for days in RANGES {
                            a href=(format!("{}#over-time", self.link(&[("days", days.to_string())]))) aria-current=[(days == self.choice.range).then_some("true")] { (days) " days" }
                        }
                    }
                }
                @if let Some(words) = self.week_ago(&points, date.is_some()) { p { (words) } }
                (self.lower_before(&points))
                @if self.choice.date.is_some() {
                    p class="sub" { a href=(format!("{}#over-time", self.link(&[("date", String::new())]))) { "Back to all dates" } }
                }
                @if points.iter().any(|point| point.value.is_some()) {
                    @if points.len() == 1 {
                        p class="sub" { "One " (if self.choice.range > MOST_DAILY { "week" } else { "day" }) " so far. Each further day of search adds a point; a monitor does that by itself." }
                    }
                    (LineChart {
                        id: "over-time-chart",
                        title: &title,
                        unit: Unit::Money(&self.product.currency),
                        axis: ChartAxis::Dates,
                        names: LineNames { value: names.price, reference: "Median of the dates searched", band: "Provider's usual range" },
                        points,
                    }.markup())
                } @else {
                    (parts::empty_state(&html! { p { "No plausible price was found in these " (self.choice.range) " days. Choose a longer range, or watch this to collect prices." } }))
                }
                @if let Some(words) = self.left_out(&found) { p class="sub" { (words) } }
            }
        }
    }

    /// The implausible prices, of which the lowest is shown.
    fn left_out(&self, found: &[&BucketStats]) -> Option<Markup> {
        let lowest = found
            .iter()
            .filter_map(|stats| Some((stats.lowest_implausible()?, stats.bucket)))
            .min()?;
        let others = found.iter().map(|stats| stats.implausible).sum::<u64>() - 1;
        let (price, day) = lowest;
        let of = if self.choice.range > MOST_DAILY {
            "in the week of "
        } else {
            "on "
        };
        Some(html! {
            s { (numbers::price(price, &self.product.currency)) }
            " is implausible: far off its own history. Found " (of) (day.strftime("%a %-d %b %Y"))
            @if others > 0 { ", and " (numbers::counted(others, "other")) }
            "."
        })
    }

    /// Why the newest point is below the price of the card above.
    fn lower_before(&self, points: &[Point]) -> Markup {
        let shown = self.choice.date.or_else(|| self.cheapest());
        let cell = self.cells.iter().find(|(date, _)| Some(*date) == shown);
        let price = cell.and_then(|(_, cell)| cell.price);
        let newest = points.iter().max_by_key(|point| point.at);
        let is_lower = price
            .zip(newest.and_then(|point| point.value))
            .is_some_and(|(price, newest)| newest < price);
        let unit = if self.choice.range > MOST_DAILY {
            "week"
        } else {
            "day"
        };
        html! {
            @if let Some(price) = price.filter(|_| is_lower) {
                p class="sub" { "The price above, " (numbers::price(price, &self.product.currency)) ", is of the last search; a point is the lowest of all searches of its " (unit) "." }
            }
        }
    }

    /// The price of a week ago, or of the nearest search in the week before, beside the newest one.
    /// `None` where a point is a week.
    fn week_ago(&self, points: &[Point], is_one_date: bool) -> Option<Markup> {
        if self.choice.range > MOST_DAILY {
            return None;
        }
        let currency = &self.product.currency;
        let today = self.now.to_zoned(TimeZone::UTC).date();
        let on = |days: i64| Point::on(today.saturating_sub(days.days())).at;
        let priced = |from: i32, to: i32| {
            let between = points
                .iter()
                .filter(move |point| (from..=to).contains(&point.at));
            let newest = between.filter(|point| point.value.is_some());
            newest.max_by_key(|point| point.at)
        };
        let before = priced(on(WEEK + 6), on(WEEK))?;
        let old = before.value?;
        let newest = priced(on(WEEK - 1), on(0)).and_then(|point| point.value);
        let days = on(0) - before.at;
        Some(html! {
            @if !is_one_date { "Lowest of the dates searched. " }
            "A week ago" @if i64::from(days) > WEEK { " (" (days) " days)" } ": " b { (numbers::price(old, currency)) }
            @if let Some(new) = newest {
                "; newest: " b { (numbers::price(new, currency)) }
                // Prices of different dates do not compare.
                @if let Some(percent) = numbers::percent_of(new, old).filter(|_| is_one_date) { " (" (numbers::signed_percent(percent)) ")" }
            }
            "."
        })
    }

    pub(super) fn by_lead_time(&self, leads: &[LeadTimes]) -> Markup {
        let own = leads
            .iter()
            .find(|leads| ProductName::from(&leads.product) == self.product);
        let points: Vec<_> = own
            .into_iter()
            .flat_map(|leads| &leads.days)
            .map(|lead| Point {
                value: Some(lead.median),
                band: Some((lead.lowest, lead.highest)),
                ..Point::before(lead.days)
            })
            .collect();
        let implausible = own.map_or(0, |leads| leads.implausible);
        let title = format!(
            "Price by days before {}",
            self.choice.subject.names().first_word.to_lowercase()
        );
        html! {
            section class="card" {
                h2 { (title) }
                p class="sub" {
                    "The median of everything found so many days ahead in the last " (self.choice.range) " days. It compares different dates, so read it as a tendency."
                    @if implausible > 0 { " Left out: " (numbers::counted(implausible, "implausible price")) "." }
                }
                @if points.len() > 1 {
                    (LineChart {
                        id: "lead-chart",
                        title: &title,
                        unit: Unit::Money(&self.product.currency),
                        axis: if own.is_some_and(|leads| leads.is_weekly) { ChartAxis::WeeksBefore } else { ChartAxis::DaysBefore },
                        names: LineNames { value: "Median", reference: "", band: "Lowest to highest" },
                        points,
                    }.markup())
                } @else {
                    (parts::empty_state(&html! { p { "This needs prices of at least two days ahead. A monitor collects them." } a class="button" href=(self.watch_link()) { "Watch this" } }))
                }
            }
        }
    }
}
