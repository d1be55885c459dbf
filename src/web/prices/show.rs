//! The page of one route, hotel or place.

use std::collections::BTreeMap;

use axum::response::Response;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use maud::{Markup, html};

use super::calendar::{Calendar, short_age};
use super::product::{PriceBucket, PricePage, ProductName};
use super::subject::{Subject, path_with};
use super::{export, table};
use crate::contract::Verdict;
use crate::contract::history_grid::{HistoryCell, HistoryGrid, HistoryGrids};
use crate::contract::{HistoryQuery as _, ValidationError};
use crate::history::lead_times::{self, LeadTimes};
use crate::history::{buckets, grid};
use crate::web::charts::{Axis, LineChart, LineNames, Point, Unit};
use crate::web::failure::PageFailure;
use crate::web::form::FormFields;
use crate::web::layout::{NavItem, page as layout_page};
use crate::web::parts;
use crate::web::session::Session;

/// Dates of a calendar: as many as one query may have.
const DAYS: i64 = 400;
/// The ranges of the charts, in days back from now.
const RANGES: [u16; 3] = [30, 90, 365];
/// Up to this range a point is a day, above it a week.
const MOST_DAILY: u16 = 120;

/// What the URL chooses.
struct Choice<'a> {
    subject: &'a Subject,
    today: Date,
    from: Date,
    range: u16,
    product: Option<&'a str>,
    nights: Option<i64>,
    date: Option<Date>,
}

/// What the page shows.
struct Shown<'a> {
    choice: Choice<'a>,
    now: Timestamp,
    products: Vec<ProductName>,
    product: ProductName,
    /// The lengths of stay that were searched; empty for flights.
    lengths: Vec<i64>,
    nights: Option<i64>,
    cells: Vec<(Date, &'a HistoryCell)>,
    truncated: bool,
}

pub(super) async fn page<P: PricePage>(
    session: &Session,
    query: &FormFields,
    subject: &Subject,
) -> Result<Response, PageFailure> {
    let now = session.context()?.now;
    let choice = read_choice(query, subject, now)?;
    let grid_query = grid_query::<P>(&choice)?;
    let title = subject.title();
    let Some(tenant) = session.tenant() else {
        return Ok(empty_page(session, &title));
    };
    let permits = session.heavy_read_permits().await?;
    let grids = {
        let mut conn = session.history_pool()?.acquire().await?;
        grid::grids::<P>(&mut conn, tenant, &grid_query, now).await?
    };
    let Some(shown) = shown(choice, &grids, now) else {
        return Ok(empty_page(session, &title));
    };
    let series_query = series_query::<P>(&shown)?;
    let range = P::range(&series_query, now)?;
    let conn = session.history_pool()?.acquire().await?;
    let series = buckets::series::<P>(conn, tenant, &series_query, range.clone()).await?;
    let all_dates = P::SeriesQuery::read(borrowed(&shown.series_pairs::<P>(None)))?;
    let conn = session.history_pool()?.acquire().await?;
    let nights = shown.nights.and_then(|nights| i32::try_from(nights).ok());
    let leads = lead_times::lead_times::<P>(conn, tenant, &all_dates, &range, nights).await?;
    drop(permits);
    let link = |date: Date| format!("{}#over-time", shown.link(&[("date", date.to_string())]));
    let calendar = Calendar {
        link: &link,
        ..shown.calendar()
    };
    let body = html! {
        (shown.head())
        (shown.choices::<P>())
        (shown.stats())
        section class="card" {
            h2 { "Last known price of each " (P::FIRST_WORD.to_lowercase()) " date" }
            p class="sub" { (shown.product.label()) ". Choose a date to see its price over time." }
            (calendar.markup())
            @if shown.truncated {
                p class="hint" { "There are more products than fit here. The files have all of them." }
            }
            (shown.earlier::<P>())
        }
        (shown.over_time::<P>(P::buckets(series)))
        (shown.by_lead_time::<P>(&leads))
        (table::markup(&shown.product, &shown.cells, P::FIRST_WORD))
        (export::links(&shown.export_pairs::<P>(), subject.api()))
    };
    Ok(layout_page(session, &title, NavItem::Prices, body))
}

fn read_choice<'a>(
    query: &'a FormFields,
    subject: &'a Subject,
    now: Timestamp,
) -> Result<Choice<'a>, PageFailure> {
    let today = now.to_zoned(TimeZone::UTC).date();
    Ok(Choice {
        subject,
        today,
        from: date(query, "from")?.unwrap_or(today),
        range: query
            .text("days")
            .and_then(|days| days.parse().ok())
            .filter(|days| RANGES.contains(days))
            .unwrap_or(RANGES[1]),
        product: query.text("product"),
        nights: query.text("nights").and_then(|nights| nights.parse().ok()),
        date: date(query, "date")?,
    })
}

fn date(query: &FormFields, name: &str) -> Result<Option<Date>, PageFailure> {
    let Some(text) = query.text(name) else {
        return Ok(None);
    };
    match text.parse() {
        Ok(date) => Ok(Some(date)),
        Err(_) => Err(
            crate::contract::ValidationErrors::from(ValidationError::new(
                name,
                &text.into(),
                "a date such as 2027-01-14",
            ))
            .into(),
        ),
    }
}

fn grid_query<P: PricePage>(choice: &Choice<'_>) -> Result<P::GridQuery, PageFailure> {
    let last = choice.from.saturating_add((DAYS - 1).days());
    let mut pairs = choice.subject.pairs();
    let (from, to, rows) = match P::FIRST {
        "departure" => ("departure_from", "departure_to", "departure_date"),
        _ => ("checkin_from", "checkin_to", "checkin_date"),
    };
    pairs.extend([
        (from, choice.from.to_string()),
        (to, last.to_string()),
        ("rows", rows.to_owned()),
    ]);
    if P::HAS_NIGHTS {
        pairs.push(("columns", "nights".to_owned()));
    }
    Ok(P::GridQuery::read(borrowed(&pairs))?)
}

fn borrowed<'a>(
    pairs: &'a [(&'static str, String)],
) -> impl Iterator<Item = (&'a str, &'a str)> + Clone {
    pairs.iter().map(|(name, text)| (*name, text.as_str()))
}

/// The chosen product and length, else those with the most prices. `None`: nothing was searched.
fn shown<'a>(choice: Choice<'a>, grids: &'a HistoryGrids, now: Timestamp) -> Option<Shown<'a>> {
    let prices = |grid: &HistoryGrid| {
        grid.cells
            .iter()
            .filter(|cell| cell.price.is_some())
            .count()
    };
    let products: Vec<_> = grids.data.iter().map(ProductName::from).collect();
    let chosen = choice
        .product
        .and_then(|digest| {
            products
                .iter()
                .position(|product| product.digest() == digest)
        })
        .or_else(|| {
            let most = |place: &usize| prices(&grids.data[*place]);
            // The first of those with the most prices.
            (0..grids.data.len()).rev().max_by_key(most)
        })?;
    let grid = &grids.data[chosen];
    let mut lengths = BTreeMap::<i64, usize>::new();
    for cell in &grid.cells {
        if let Some(nights) = cell.column.as_ref().and_then(serde_json::Value::as_i64) {
            *lengths.entry(nights).or_default() += usize::from(cell.price.is_some());
        }
    }
    let nights = choice
        .nights
        .filter(|nights| lengths.contains_key(nights))
        .or_else(|| {
            let most = lengths.iter().rev().max_by_key(|(_, prices)| **prices);
            most.map(|(nights, _)| *nights)
        });
    let cells = grid
        .cells
        .iter()
        .filter(|cell| cell.column.as_ref().and_then(serde_json::Value::as_i64) == nights)
        .filter_map(|cell| Some((cell.row.as_str()?.parse().ok()?, cell)))
        .collect();
    Some(Shown {
        choice,
        now,
        product: products[chosen].clone(),
        products,
        lengths: lengths.into_keys().collect(),
        nights,
        cells,
        truncated: grids.truncated,
    })
}

/// The series of the chosen date, or of all dates.
fn series_query<P: PricePage>(shown: &Shown<'_>) -> Result<P::SeriesQuery, PageFailure> {
    let pairs = shown.series_pairs::<P>(shown.date::<P>());
    Ok(P::SeriesQuery::read(borrowed(&pairs))?)
}

impl Shown<'_> {
    /// The date whose price over time is shown. Stays always have one, because those of all dates
    /// and lengths do not compare.
    fn date<P: PricePage>(&self) -> Option<Date> {
        let cheapest = || self.calendar().cheapest().map(|(date, _)| date);
        self.choice
            .date
            .or_else(|| P::HAS_NIGHTS.then(cheapest).flatten())
    }

    fn series_pairs<P: PricePage>(&self, date: Option<Date>) -> Vec<(&'static str, String)> {
        let mut pairs = self.choice.subject.pairs();
        let since = self.now - SignedDuration::from_hours(24 * i64::from(self.choice.range));
        let bucket = if self.choice.range > MOST_DAILY {
            "week"
        } else {
            "day"
        };
        pairs.extend([
            ("since", since.to_string()),
            ("bucket", bucket.to_owned()),
            ("currency", self.product.currency.clone()),
        ]);
        pairs.extend(
            self.product
                .market
                .clone()
                .map(|market| ("proxy_country", market)),
        );
        if let Some(date) = date {
            pairs.extend(match P::FIRST {
                "departure" => vec![("departure_date", date.to_string())],
                _ => vec![("checkin_date", date.to_string())],
            });
            pairs.extend(self.nights.map(|nights| {
                (
                    "checkout_date",
                    date.saturating_add(nights.days()).to_string(),
                )
            }));
        }
        pairs
    }

    /// The query of a file of this route or hotel.
    fn export_pairs<P: PricePage>(&self) -> Vec<(&'static str, String)> {
        let mut pairs = self.choice.subject.pairs();
        pairs.push(("currency", self.product.currency.clone()));
        pairs.extend(
            self.product
                .market
                .clone()
                .map(|market| ("proxy_country", market)),
        );
        let last = self.choice.from.saturating_add((DAYS - 1).days());
        let (from, to) = match P::FIRST {
            "departure" => ("departure_from", "departure_to"),
            _ => ("checkin_from", "checkin_to"),
        };
        pairs.extend([(from, self.choice.from.to_string()), (to, last.to_string())]);
        pairs
    }

    /// This page with other choices; an empty text removes one.
    fn link(&self, changes: &[(&'static str, String)]) -> String {
        let mut pairs: Vec<(&'static str, String)> = self.choice.subject.pairs();
        let product = (self.products.len() > 1).then(|| self.product.digest());
        let stands = [
            ("product", product),
            ("nights", self.nights.map(|nights| nights.to_string())),
            (
                "days",
                (self.choice.range != RANGES[1]).then(|| self.choice.range.to_string()),
            ),
            (
                "from",
                (self.choice.from != self.choice.today).then(|| self.choice.from.to_string()),
            ),
            ("date", self.choice.date.map(|date| date.to_string())),
        ];
        for (name, value) in stands {
            let changed = changes.iter().find(|(changed, _)| *changed == name);
            let value = changed.map_or(value, |(_, text)| Some(text.clone()));
            pairs.extend(
                value
                    .filter(|text| !text.is_empty())
                    .map(|text| (name, text)),
            );
        }
        let base = match self.choice.subject {
            Subject::Route { .. } => super::FLIGHTS_PATH,
            Subject::Place { .. } => super::HOTELS_PATH,
        };
        path_with(base, pairs)
    }

    fn head(&self) -> Markup {
        html! {
            div class="head" {
                div {
                    p class="sub" { a href=(super::PATH) { "Prices" } }
                    h1 { (self.choice.subject.title()) }
                    p class="sub" { (self.product.label()) @if let Some(nights) = self.nights { ", " (parts::counted(nights.unsigned_abs(), "night")) } }
                }
                div class="actions" {
                    a class="button primary" href=(self.watch_link()) { "Watch this" }
                }
            }
        }
    }

    /// The form of a new monitor, filled with this product.
    fn watch_link(&self) -> String {
        let mut pairs: Vec<(&str, String)> =
            vec![("endpoint", self.product.endpoint.as_str().to_owned())];
        pairs.extend(self.choice.subject.pairs());
        pairs.push(("currency", self.product.currency.clone()));
        pairs.extend(
            self.product
                .market
                .clone()
                .map(|market| ("proxy_country", market)),
        );
        let mut fields = (*self.product.fields).clone();
        fields.shift_remove("proxy_country");
        if !fields.is_empty() {
            let fields = serde_json::Value::Object(fields).to_string();
            pairs.push(("fields", fields));
        }
        let trip = self.cells.iter().find_map(|(date, cell)| {
            cell.last_date
                .and_then(|last| date.until(last).ok())
                .map(|span| i64::from(span.get_days()))
        });
        pairs.extend(
            self.nights
                .or(trip)
                .map(|nights| ("nights", nights.to_string())),
        );
        match self.choice.date {
            Some(date) => pairs.extend([("first", date.to_string()), ("last", date.to_string())]),
            None => {
                let searched = self
                    .cells
                    .iter()
                    .filter(|(_, cell)| cell.looked_at.is_some());
                let dates: Vec<_> = searched.map(|(date, _)| *date).collect();
                if let (Some(first), Some(last)) = (dates.first(), dates.last()) {
                    pairs.extend([("first", first.to_string()), ("last", last.to_string())]);
                }
            }
        }
        path_with("/monitors/new", pairs)
    }

    fn choices<P: PricePage>(&self) -> Markup {
        html! {
            @if self.products.len() > 1 {
                nav class="tabs" aria-label="Product" {
                    @for product in &self.products {
                        a href=(self.link(&[("product", product.digest()), ("date", String::new())])) aria-current=[(*product == self.product).then_some("true")] { (product.label()) }
                    }
                }
            }
            @if self.lengths.len() > 1 {
                nav class="tabs" aria-label="Nights" {
                    @for nights in &self.lengths {
                        a href=(self.link(&[("nights", nights.to_string())])) aria-current=[(Some(*nights) == self.nights).then_some("true")] { (parts::counted(nights.unsigned_abs(), "night")) }
                    }
                }
            }
        }
    }

    fn calendar(&self) -> Calendar<'_> {
        Calendar {
            currency: &self.product.currency,
            cells: &self.cells,
            chosen: self.choice.date,
            link: &|_| String::new(),
        }
    }

    fn stats(&self) -> Markup {
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
                            div class="value" { (parts::amount(price)) " " small { (currency) } }
                            div class="note" { (date.strftime("%a %-d %b %Y")) @if let Some(age) = cell.age_seconds { ", found " (parts::duration(age)) " ago" } }
                        }
                        None => { div class="value" { "–" } div class="note" { "no price known" } }
                    }
                }
                div class="stat" {
                    div class="label" { "Verdict" }
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

    fn earlier<P: PricePage>(&self) -> Markup {
        let earlier = self.choice.from.saturating_sub(90.days());
        html! {
            p class="hint no-print" {
                a href=(self.link(&[("from", earlier.to_string()), ("date", String::new())])) { "Earlier " (P::FIRST_WORD.to_lowercase()) " dates" }
                @if self.choice.from != self.choice.today {
                    " · " a href=(self.link(&[("from", String::new())])) { "From today" }
                }
            }
        }
    }

    fn over_time<P: PricePage>(&self, found: Vec<PriceBucket>) -> Markup {
        let date = self.date::<P>();
        let points: Vec<_> = found
            .into_iter()
            .filter(|bucket| bucket.product == self.product)
            .map(|bucket| Point {
                value: bucket.lowest,
                reference: bucket.median.filter(|_| date.is_none()),
                band: bucket.band,
                ..Point::on(bucket.day)
            })
            .collect();
        let of = date.map_or_else(
            || format!("all {} dates together", P::FIRST_WORD.to_lowercase()),
            |date| {
                format!(
                    "{} {}",
                    P::FIRST_WORD.to_lowercase(),
                    date.strftime("%a %-d %b %Y")
                )
            },
        );
        let unit = if self.choice.range > MOST_DAILY {
            "week (UTC)"
        } else {
            "day (UTC)"
        };
        let title = format!("{} found each {unit}: {of}", P::PRICE);
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
                @if self.choice.date.is_some() {
                    p class="sub" { a href=(format!("{}#over-time", self.link(&[("date", String::new())]))) { "Back to all dates" } }
                }
                @if points.iter().any(|point| point.value.is_some()) {
                    (LineChart {
                        id: "over-time-chart",
                        title: &title,
                        unit: Unit::Money(&self.product.currency),
                        axis: Axis::Dates,
                        names: LineNames { value: P::PRICE, reference: "Median of the dates searched", band: "Provider's usual range" },
                        points,
                    }.markup())
                } @else {
                    (parts::empty_state(&html! { p { "Nothing was found in these " (self.choice.range) " days. Choose a longer range, or watch this to collect prices." } }))
                }
            }
        }
    }

    fn by_lead_time<P: PricePage>(&self, leads: &[LeadTimes]) -> Markup {
        let own = leads
            .iter()
            .find(|leads| ProductName::from(*leads) == self.product);
        let points: Vec<_> = own
            .into_iter()
            .flat_map(|leads| &leads.days)
            .map(|lead| Point {
                value: Some(lead.median),
                band: (lead.prices > 1).then_some((lead.lowest, lead.highest)),
                ..Point::before(lead.days)
            })
            .collect();
        let title = format!("Price by days before {}", P::FIRST_WORD.to_lowercase());
        html! {
            section class="card" {
                h2 { (title) }
                p class="sub" { "The median of everything found so many days ahead in the last " (self.choice.range) " days. It compares different dates, so read it as a tendency." }
                @if points.len() > 1 {
                    (LineChart {
                        id: "lead-chart",
                        title: &title,
                        unit: Unit::Money(&self.product.currency),
                        axis: Axis::DaysBefore,
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

/// The provider's verdict as a sentence.
fn verdict(cell: Option<&HistoryCell>, currency: &str) -> Markup {
    let Some(cell) = cell.filter(|cell| cell.price.is_some()) else {
        return html! { div class="value" { "–" } };
    };
    let band = cell.price_insights_low.zip(cell.price_insights_high);
    let (word, tone) = match cell.verdict {
        Some(Verdict::Low) => ("Low", "value good-text"),
        Some(Verdict::Typical) => ("Typical", "value"),
        Some(Verdict::High) => ("High", "value bad-text"),
        None => ("None", "value muted"),
    };
    html! {
        div class=(tone) { (word) }
        div class="note" {
            @match band {
                Some((low, high)) => { "usually " (parts::amount(low)) " to " (parts::price(high, currency)) }
                None => "the provider gave no usual range"
            }
        }
    }
}

fn empty_page(session: &Session, title: &str) -> Response {
    let body = html! {
        div class="head" {
            div {
                p class="sub" { a href=(super::PATH) { "Prices" } }
                h1 { (title) }
            }
        }
        div class="card" {
            (parts::empty_state(&html! {
                p { "No searched date from today on." }
                p { "Scan some dates, and their prices stay here." }
                a class="button primary" href="/scans/new" { "New scan" }
            }))
        }
    };
    layout_page(session, title, NavItem::Prices, body)
}
