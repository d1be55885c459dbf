//! The grid of a scan.

use farescan_contract::scans::{Grid, GridCell, Parity, ParityVerdict, Scan};
use farescan_contract::{Endpoint, SearchStatus};
use rust_decimal::Decimal;
use serde_json::Value as Json;

use super::{
    Doubt, MARKET, PriceCell, PriceLayout, PriceTable, SecondField, Shade, is_calendar, layout,
};
use crate::cell::CellValue;
use crate::fifths::{PriceFifths, most_frequent};
use crate::numbers::{amount, percent_of, signed_percent};
use crate::parity;
use crate::sheet::{Column, Link, Section, Table, Tone, Value};
use crate::trip::{axis_name, axis_value, capitalised, words};

/// The fields of a scan's grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridFields {
    pub rows: String,
    pub columns: Option<String>,
    /// The market that the others are compared with.
    pub baseline: Option<String>,
}

impl GridFields {
    /// Markets are columns, unless nothing else is swept. A field swept over one value is no side.
    /// `None` if nothing is swept.
    pub fn of(scan: &Scan) -> Option<Self> {
        let is_axis = |name: &str, value: &Json| !value.is_null() && name != "samples";
        let all = || {
            let swept = scan.sweep.iter();
            swept.filter(|(name, value)| is_axis(name, value))
        };
        let has_several = |value: &Json| value.as_array().is_none_or(|values| values.len() > 1);
        let several = all().filter(|(_, value)| has_several(value));
        let mut swept: Vec<&str> = several.map(|(name, _)| name.as_str()).collect();
        if swept.is_empty() {
            swept = all().map(|(name, _)| name.as_str()).collect();
        }
        let has = |name: &str| swept.contains(&name);
        let rows = ["departure_date", "checkin_date"]
            .into_iter()
            .find(|date| has(date))
            .or_else(|| swept.iter().copied().find(|name| *name != MARKET))
            .or_else(|| swept.first().copied())?;
        let columns = ["currency", MARKET, "nights", "return_date", "checkout_date"]
            .into_iter()
            .find(|name| has(name) && *name != rows)
            .or_else(|| swept.iter().copied().find(|name| *name != rows));
        let compares_markets = matches!(
            scan.endpoint,
            Endpoint::HotelsByName | Endpoint::HotelsRooms
        ) && [Some(rows), columns].contains(&Some(MARKET))
            && swept.len() <= 2;
        let first_market = scan.sweep.get(MARKET);
        let first_market = first_market.and_then(|markets| markets.get(0)?.as_str());
        Some(Self {
            rows: rows.to_owned(),
            columns: columns.map(str::to_owned),
            baseline: first_market.filter(|_| compares_markets).map(str::to_owned),
        })
    }

    /// The query of the grid.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = [
            ("rows", Some(self.rows.as_str())),
            ("columns", self.columns.as_deref()),
            ("baseline", self.baseline.as_deref()),
        ];
        let given = fields.into_iter();
        given.filter_map(|(name, value)| Some((name, value?)))
    }
}

impl PriceTable {
    /// The grid of a scan.
    pub fn of_scan(grid: &Grid, second: SecondField) -> Self {
        let plausible = || grid.cells.iter().filter(|cell| !cell.implausible);
        let currencies = plausible().filter_map(|cell| cell.currency.as_deref());
        let currency = most_frequent(currencies);
        let is_of_table = |cell: &&GridCell| cell.currency.as_deref() == currency;
        let priced = || {
            let cells = plausible().filter(is_of_table);
            cells.filter_map(|cell| Some((cell.price?, cell.item_id)))
        };
        let prices: PriceFifths = priced().map(|(price, _)| price).collect();
        let best = priced()
            .min_by_key(|(price, _)| *price)
            .map(|(_, item)| item);
        let has_parity = grid.cells.iter().any(|cell| cell.parity.is_some());
        let cells = grid.cells.iter().map(|cell| {
            let mut shown = shown(cell, has_parity);
            let price = shown.value.price().filter(|_| is_of_table(&cell));
            if let Some(price) = price.filter(|_| !has_parity) {
                shown.shade = Shade::Fifth(prices.fifth(price));
            }
            shown.is_best = best == Some(cell.item_id);
            (&cell.row, cell.column.as_ref(), shown)
        });
        let columns = grid.columns.as_ref();
        // Prices in several currencies do not compare.
        let second = match columns {
            Some(columns) if columns.field == "currency" => SecondField::Calendars(0),
            _ => second,
        };
        Self {
            layout: if grid.rows.field == MARKET && columns.is_none() {
                PriceLayout::Markets(markets(grid))
            } else {
                layout(&grid.rows, columns, second, cells)
            },
            title: title(grid, currency),
            notes: if has_parity {
                "the difference to the first market"
            } else {
                ""
            },
            prices,
            markets: over_all_stays(grid),
        }
    }

    /// How the lowest price compares: `12 % under 240, the median of the 30 prices below`. Nothing if
    /// there is no difference.
    pub fn against_median(&self) -> Option<String> {
        let (lowest, median) = (self.prices.lowest()?, self.prices.median()?);
        let percent = percent_of(lowest, median)?.abs().round();
        (self.prices.count() > 2 && percent >= Decimal::ONE).then(|| {
            let (median, count) = (amount(median), self.prices.count());
            format!("{percent} % under {median}, the median of the {count} prices below")
        })
    }
}

/// `cheapest round trip in USD, by departure and nights`; of dates alone without these.
fn title(grid: &Grid, currency: Option<&str>) -> String {
    let what = match grid.endpoint {
        Endpoint::FlightsOneway => "cheapest one-way fare",
        Endpoint::FlightsRoundtrip => "cheapest round trip",
        _ => "lowest price of the stay",
    };
    let currency = currency.map_or_else(String::new, |currency| format!(" in {currency}"));
    let columns = grid.columns.as_ref();
    if is_calendar(&grid.rows, columns) {
        return format!("{what}{currency}");
    }
    let axes = std::iter::once(&grid.rows).chain(columns);
    let axes: Vec<_> = axes
        .map(|axis| axis_name(&axis.field).to_lowercase())
        .collect();
    format!("{what}{currency}, by {}", axes.join(" and "))
}

/// Each market over all stays of a grid. One stay alone is a table of its own.
fn over_all_stays(grid: &Grid) -> Option<Section> {
    grid.columns.as_ref()?;
    let report = grid.markets.as_ref()?;
    let is_known = report
        .markets
        .iter()
        .any(|market| market.difference_percent.is_some());
    is_known.then(|| {
        let summary = capitalised(&parity::summary(report));
        Section {
            sentence: Some(format!("{summary}. {}", parity::RULE)),
            ..parity::section(report)
        }
    })
}

/// One stay from several markets: each market's price, and its difference to the first one's.
fn markets(grid: &Grid) -> Table {
    let base = grid
        .rows
        .values
        .first()
        .map(|first| axis_value(MARKET, first));
    let versus = base.map_or_else(String::new, |base| format!("vs {base}"));
    let columns = [
        Column::text("Market"),
        Column::number("Price"),
        Column::number(versus),
        Column::text("Difference is").rank(1),
        Column::text("Room"),
    ];
    let rows = grid.cells.iter().map(|cell| {
        let shown = shown(cell, true);
        let price = Value::Link(Link::of(cell.item_id), Some(cell_words(cell, shown.value)));
        let difference = match (shown.shade, &cell.parity) {
            (Shade::Difference(step), Some(parity)) if parity.verdict == ParityVerdict::Gap => {
                let tone = if step < 0 { Tone::Good } else { Tone::Warn };
                Value::Word(tone, shown.note)
            }
            _ => shown.note.into(),
        };
        let verdict = cell.parity.as_ref().map(|parity| match parity.verdict {
            ParityVerdict::Gap => Value::Word(Tone::Warn, "real".to_owned()),
            ParityVerdict::Noise => "noise".into(),
            ParityVerdict::Insufficient => "unsure: too few samples".into(),
            ParityVerdict::NotComparable => "of another room".into(),
        });
        let cells = [
            vec![axis_value(MARKET, &cell.row).into()],
            vec![price],
            vec![difference],
            verdict.into_iter().collect(),
            cell.room.iter().cloned().map(Value::Text).collect(),
        ];
        (None, cells)
    });
    Table::new("Price by market", columns, rows)
}

/// What a cell shows besides its fifth. A market is compared with the first one.
fn shown(cell: &GridCell, has_parity: bool) -> PriceCell {
    let value = CellValue::of_scan(cell);
    let mut shown = PriceCell::new(value, cell_words(cell, value));
    shown.item = Some(cell.item_id);
    shown.is_incomplete =
        value.price().is_some() && cell.search_status == Some(SearchStatus::Partial);
    match (&cell.parity, value.price()) {
        (None, Some(_)) if has_parity => {
            shown.shade = Shade::Difference(0);
            "base".clone_into(&mut shown.note);
        }
        (Some(parity), Some(price)) => {
            (shown.shade, shown.note) = compared(parity, price);
            shown.doubt = doubt(parity.verdict).filter(|_| !shown.note.is_empty());
        }
        _ => {}
    }
    if let Some(parity) = &cell.parity {
        shown.words.push_str(parity_words(parity.verdict));
    }
    if let Some(room) = cell.room.as_ref().filter(|_| has_parity) {
        shown.words.extend(["; ", room]);
    }
    shown
}

/// The mark and the price of a cell in words.
fn cell_words(cell: &GridCell, value: CellValue) -> String {
    let spoken = value.words(cell.currency.as_deref());
    match (value, cell.reason.as_deref()) {
        (CellValue::Price(_), _) if cell.search_status == Some(SearchStatus::Partial) => {
            format!("{spoken}, part of the search failed")
        }
        (CellValue::Empty | CellValue::Incomplete | CellValue::Failed, Some(reason)) => {
            format!("{spoken}: {}", words(reason))
        }
        _ => spoken,
    }
}

/// The difference of a market's price to that of the baseline.
fn compared(parity: &Parity, price: Decimal) -> (Shade, String) {
    let base = parity.difference.and_then(|by| price.checked_sub(by));
    let percent = base.and_then(|base| percent_of(price, base));
    if parity.verdict == ParityVerdict::NotComparable {
        return (Shade::Difference(0), "other room".to_owned());
    }
    let note = percent
        .map(signed_percent)
        .map(|note| match doubt(parity.verdict) {
            Some(Doubt::Overlap) => format!("≈ {note}"),
            Some(Doubt::FewSamples) => format!("({note})"),
            None => note,
        });
    (Shade::of_percent(percent), note.unwrap_or_default())
}

const fn doubt(verdict: ParityVerdict) -> Option<Doubt> {
    match verdict {
        ParityVerdict::Noise => Some(Doubt::Overlap),
        ParityVerdict::Insufficient => Some(Doubt::FewSamples),
        ParityVerdict::Gap | ParityVerdict::NotComparable => None,
    }
}

const fn parity_words(verdict: ParityVerdict) -> &'static str {
    match verdict {
        ParityVerdict::Gap => "; a real gap: the samples do not overlap",
        ParityVerdict::Noise => "; the samples overlap: this may be chance",
        ParityVerdict::Insufficient => "; too few samples to tell a gap from chance",
        ParityVerdict::NotComparable => "; another room, board or currency: not comparable",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(endpoint: &str, sweep: serde_json::Value) -> Option<GridFields> {
        let scan = json!({
            "id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "endpoint": endpoint, "request": {}, "sweep": sweep,
            "label": null, "tags": [], "status": "running", "status_reason": null,
            "items": {
                "total": 1, "pending": 1, "running": 0, "ok": 0, "empty": 0, "partial": 0, "degraded": 0, "failed": 0,
                "cancelled": 0
            },
            "requests": {"planned": 1, "spent": 0, "max": null}, "strategy": null, "best": null,
            "progress": 0.0, "eta_seconds": null, "monitor_id": null, "key_custody": null,
            "created_at": "2026-12-01T08:00:00Z", "started_at": null, "finished_at": null
        });
        GridFields::of(&serde_json::from_value(scan).unwrap())
    }

    fn expected(rows: &str, columns: Option<&str>, baseline: Option<&str>) -> GridFields {
        GridFields {
            rows: rows.to_owned(),
            columns: columns.map(str::to_owned),
            baseline: baseline.map(str::to_owned),
        }
    }

    #[test]
    fn dates_are_rows_and_markets_are_compared_columns() {
        let dates = json!(["2030-01-01", "2030-01-02"]);
        for (endpoint, sweep, shown) in [
            (
                "flights/oneway",
                json!({"to_airport": ["LHR", "CDG"], "departure_date": dates}),
                Some(expected("departure_date", Some("to_airport"), None)),
            ),
            (
                "flights/roundtrip",
                json!({"departure_date": dates, "nights": [7, 10]}),
                Some(expected("departure_date", Some("nights"), None)),
            ),
            (
                "hotels/by-name",
                json!({"proxy_country": ["us", "de"], "checkin_date": dates, "nights": [3], "samples": 3}),
                Some(expected("checkin_date", Some("proxy_country"), Some("us"))),
            ),
            (
                "hotels/rooms",
                json!({"proxy_country": ["us", "de"]}),
                Some(expected("proxy_country", None, Some("us"))),
            ),
            (
                "hotels/search",
                json!({"proxy_country": ["us", "de"], "checkin_date": dates}),
                Some(expected("checkin_date", Some("proxy_country"), None)),
            ),
            ("flights/oneway", json!({}), None),
        ] {
            assert_eq!(fields(endpoint, sweep.clone()), shown, "{endpoint} {sweep}");
        }
    }
}
