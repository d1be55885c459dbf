//! What the URL chooses of a route or hotel, and the queries and links that follow from it.

use std::collections::{BTreeMap, HashMap};

use farescan_sheets::price_table::{PriceLayout, PriceTable};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use super::product::ProductName;
use super::subject::PriceSubject;
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::parts::path_with;
use farescan_core::contract::history_grid::{
    FlightGridQuery, HistoryCell, HistoryGrid, HistoryGrids, HotelGridQuery,
};
use farescan_core::contract::history_verdict::HistoryVerdict;
use farescan_core::contract::latest::{FlightLatestQuery, HotelLatestQuery};
use farescan_core::contract::scans::GridAxis;
use farescan_core::contract::series::{FlightSeriesQuery, HotelSeriesQuery};
use farescan_core::history::PriceQuery;
use farescan_core::ids::ItemId;

/// Dates of a calendar: as many as one query may have.
pub(super) const DAYS: i64 = 400;
/// The ranges of the charts, in days back from now.
pub(super) const RANGES: [u16; 3] = [30, 90, 365];
/// Up to this range a point is a day, above it a week.
pub(super) const MOST_DAILY: u16 = 120;

/// What the URL chooses.
pub(super) struct ChosenProduct<'a> {
    pub(super) subject: &'a PriceSubject,
    pub(super) today: Date,
    pub(super) from: Date,
    pub(super) range: u16,
    pub(super) product: Option<&'a str>,
    pub(super) nights: Option<i64>,
    pub(super) date: Option<Date>,
}

/// What the page shows.
pub(super) struct ShownProduct<'a> {
    pub(super) choice: ChosenProduct<'a>,
    pub(super) now: Timestamp,
    pub(super) products: Vec<ProductName>,
    pub(super) product: ProductName,
    /// The lengths of stay that were searched; empty for flights.
    pub(super) lengths: Vec<i64>,
    pub(super) nights: Option<i64>,
    /// The dates of the calendar.
    pub(super) dates: &'a GridAxis,
    pub(super) cells: Vec<(Date, &'a HistoryCell)>,
    pub(super) truncated: bool,
    /// The verdicts on the prices by the caller's own history, by the items that found them.
    pub(super) verdicts: HashMap<ItemId, HistoryVerdict>,
}

pub(super) fn read_choice<'a>(
    query: &'a FormFields,
    subject: &'a PriceSubject,
    now: Timestamp,
) -> Result<ChosenProduct<'a>, PageFailure> {
    let today = now.to_zoned(TimeZone::UTC).date();
    Ok(ChosenProduct {
        subject,
        today,
        from: query.date("from")?.unwrap_or(today),
        range: query
            .text("days")
            .and_then(|days| days.parse().ok())
            .filter(|days| RANGES.contains(days))
            .unwrap_or(RANGES[1]),
        product: query.text("product"),
        nights: query.text("nights").and_then(|nights| nights.parse().ok()),
        date: query.date("date")?,
    })
}

pub(super) fn grid_query(choice: &ChosenProduct<'_>) -> Result<PriceQuery, PageFailure> {
    let names = choice.subject.names();
    let mut pairs = choice.subject.pairs();
    pairs.extend(choice.range_pairs());
    pairs.push(("rows", names.date.to_owned()));
    if choice.subject.has_nights() {
        pairs.push(("columns", "nights".to_owned()));
    } else if let Some(nights) = choice.nights {
        pairs.push(("nights", nights.to_string()));
    }
    choice
        .subject
        .read::<FlightGridQuery, HotelGridQuery>(&pairs)
}

impl ChosenProduct<'_> {
    /// The range of dates of the calendar.
    fn range_pairs(&self) -> [(&'static str, String); 2] {
        let names = self.subject.names();
        let last = self.from.saturating_add((DAYS - 1).days());
        [
            (names.from, self.from.to_string()),
            (names.to, last.to_string()),
        ]
    }
}

/// The chosen product and length, else those with the most prices. `None`: nothing was searched.
pub(super) fn shown<'a>(
    choice: ChosenProduct<'a>,
    grids: &'a HistoryGrids,
    now: Timestamp,
) -> Option<ShownProduct<'a>> {
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
    Some(ShownProduct {
        choice,
        now,
        product: products[chosen].clone(),
        products,
        lengths: lengths.into_keys().collect(),
        nights,
        dates: &grid.rows,
        cells,
        truncated: grids.truncated,
        verdicts: HashMap::new(),
    })
}

impl ShownProduct<'_> {
    /// The date whose price over time is shown. Stays always have one, because those of all dates
    /// and lengths do not compare.
    pub(super) fn date(&self) -> Option<Date> {
        let cheapest = || self.cheapest();
        self.choice
            .date
            .or_else(|| self.choice.subject.has_nights().then(cheapest).flatten())
    }

    /// The series of one date, or of all dates.
    pub(super) fn series_query(&self, date: Option<Date>) -> Result<PriceQuery, PageFailure> {
        let mut pairs = self.product_pairs();
        let since = self.now - SignedDuration::from_hours(24 * i64::from(self.choice.range));
        let bucket = if self.choice.range > MOST_DAILY {
            "week"
        } else {
            "day"
        };
        pairs.extend([("since", since.to_string()), ("bucket", bucket.to_owned())]);
        if let Some(date) = date {
            pairs.push((self.choice.subject.names().date, date.to_string()));
            pairs.extend(self.nights.map(|nights| {
                (
                    "checkout_date",
                    date.saturating_add(nights.days()).to_string(),
                )
            }));
        }
        self.choice
            .subject
            .read::<FlightSeriesQuery, HotelSeriesQuery>(&pairs)
    }

    /// The route or hotel, the currency and the market.
    fn product_pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = self.choice.subject.pairs();
        pairs.push(("currency", self.product.currency.clone()));
        let market = self.product.market.clone();
        pairs.extend(market.map(|market| ("proxy_country", market)));
        pairs
    }

    /// The query of a file of this route or hotel.
    pub(super) fn export_pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = self.product_pairs();
        pairs.extend(self.choice.range_pairs());
        pairs
    }

    /// The query of the last prices of this route or hotel with their verdicts.
    pub(super) fn judged_query(&self) -> Result<PriceQuery, PageFailure> {
        let mut pairs = self.export_pairs();
        pairs.push(("history_verdict", "true".to_owned()));
        self.choice
            .subject
            .read::<FlightLatestQuery, HotelLatestQuery>(&pairs)
    }

    /// The verdict on the price of a cell.
    pub(super) fn verdict_on(&self, cell: &HistoryCell) -> Option<&HistoryVerdict> {
        self.verdicts.get(&cell.item_id?)
    }

    /// This page with other choices; an empty text removes one.
    pub(super) fn link(&self, changes: &[(&'static str, String)]) -> String {
        let mut pairs = Vec::new();
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
        self.choice.subject.path_with(pairs)
    }

    /// The form of a new monitor, filled with this product.
    pub(super) fn watch_link(&self) -> String {
        let mut pairs: Vec<(&str, String)> = vec![("name", self.choice.subject.title())];
        pairs.push(("endpoint", self.product.endpoint.as_str().to_owned()));
        pairs.extend(self.product_pairs());
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

    /// The last known prices of the chosen product and length.
    pub(super) fn table(&self) -> PriceTable {
        let cells = self.cells.iter().map(|(_, cell)| *cell);
        let class = |item| self.verdicts.get(&item).map(|verdict| verdict.class);
        PriceTable::of_history(&self.product.currency, self.dates, None, cells, class)
    }

    /// The lowest plausible price's date.
    pub(super) fn cheapest(&self) -> Option<Date> {
        let PriceLayout::Calendars(calendars) = self.table().layout else {
            return None;
        };
        let mut days = calendars.into_iter().flat_map(|(_, days)| days);
        days.find(|(_, cell)| cell.is_best).map(|(date, _)| date)
    }
}
