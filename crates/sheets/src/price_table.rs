//! Prices by date, or by one or two fields: what each cell shows, for every calendar and matrix.

mod comparison;
mod history;
mod scan;

use std::collections::{BTreeMap, HashMap};

use farescan_contract::ids::ItemId;
use farescan_contract::scans::GridAxis;
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde_json::Value;

use crate::cell::CellValue;
use crate::fifths::PriceFifths;
use crate::sheet::{Section, Table};
use crate::trip::{axis_name, axis_value};

pub use scan::GridFields;

/// The field of the market that is searched from.
pub const MARKET: &str = "proxy_country";
/// From these percentages on a difference has its first, second and third colour.
const STEPS: [i64; 3] = [2, 6, 12];

/// A table of prices.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceTable {
    /// What its prices are, with a small initial: `cheapest round trip in USD, by departure and nights`.
    pub title: String,
    /// The plausible prices in its most frequent currency.
    pub prices: PriceFifths,
    /// What the notes below prices are; empty without notes.
    pub notes: &'static str,
    pub layout: PriceLayout,
    /// What the table comes to: each market over several stays.
    pub markets: Option<Section>,
}

/// The cells of a calendar.
pub type CalendarCells = BTreeMap<Date, PriceCell>;

/// What becomes of the calendars of a second field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondField {
    /// One calendar of the cheapest of each date.
    Cheapest,
    /// So many calendars at most; of more values a matrix.
    Calendars(usize),
}

/// How the cells lie.
#[derive(Debug, Clone, PartialEq)]
pub enum PriceLayout {
    /// A calendar, or one for each value of a second field.
    Calendars(Vec<(Option<String>, CalendarCells)>),
    /// Rows and columns. `None`: there is no such combination.
    Matrix {
        corner: String,
        columns: Vec<String>,
        rows: Vec<(String, Vec<Option<PriceCell>>)>,
    },
    /// One stay from several markets.
    Markets(Table),
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceCell {
    pub value: CellValue,
    pub shade: Shade,
    /// A few characters below the price: its age, or its difference.
    pub note: String,
    /// How far the samples of a difference show it.
    pub doubt: Option<Doubt>,
    /// The cell in words.
    pub words: String,
    /// The search that found it.
    pub item: Option<ItemId>,
    /// The lowest price of the table, the first of equal ones.
    pub is_best: bool,
    /// Found a day ago or longer.
    pub is_old: bool,
    /// It has a price, and the last search was incomplete.
    pub is_incomplete: bool,
}

/// Why a difference may be none, which its note marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    Overlap,
    FewSamples,
}

impl Doubt {
    /// Its mark in the note, and what that means.
    pub const fn legend(self) -> (&'static str, &'static str) {
        match self {
            Self::Overlap => ("≈", "may be chance"),
            Self::FewSamples => ("(", "too few samples to tell"),
        }
    }
}

/// What the colour of a price repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shade {
    Plain,
    /// The fifth of the table's prices: 1 for the cheapest.
    Fifth(usize),
    /// Its difference to another price, from −3, far cheaper, to 3.
    Difference(i8),
    /// There was none before.
    New,
}

impl Shade {
    /// The colour of a difference: the larger it is, the stronger.
    fn of_percent(percent: Option<Decimal>) -> Self {
        let Some(percent) = percent else {
            return Self::Difference(0);
        };
        let reached = STEPS.map(|step| i8::from(percent.abs() >= Decimal::from(step)));
        let sign = if percent.is_sign_negative() { -1 } else { 1 };
        Self::Difference(sign * reached.iter().sum::<i8>())
    }
}

impl PriceCell {
    /// A cell with these words, and nothing else of note.
    fn new(value: CellValue, words: String) -> Self {
        Self {
            value,
            shade: Shade::Plain,
            note: String::new(),
            doubt: None,
            words,
            item: None,
            is_best: false,
            is_old: false,
            is_incomplete: false,
        }
    }
}

impl PriceTable {
    pub fn cells(&self) -> Box<dyn Iterator<Item = &PriceCell> + '_> {
        match &self.layout {
            PriceLayout::Calendars(calendars) => {
                Box::new(calendars.iter().flat_map(|(_, days)| days.values()))
            }
            PriceLayout::Matrix { rows, .. } => {
                Box::new(rows.iter().flat_map(|(_, cells)| cells).flatten())
            }
            PriceLayout::Markets(_) => Box::new(std::iter::empty()),
        }
    }

    /// Whether a cell has something that is true of it.
    pub fn has(&self, is: impl Fn(&PriceCell) -> bool) -> bool {
        self.cells().any(is)
    }

    /// The doubts that it has, in the order of a legend.
    pub fn doubts(&self) -> impl Iterator<Item = Doubt> {
        let doubts = [Doubt::Overlap, Doubt::FewSamples].into_iter();
        doubts.filter(|doubt| self.has(|cell| cell.doubt == Some(*doubt)))
    }

    /// The marks without a price that it has, in the order of a legend.
    pub fn marks(&self) -> impl Iterator<Item = CellValue> {
        let marks = CellValue::MARKS.into_iter();
        marks.filter(|mark| self.has(|cell| cell.value == *mark))
    }
}

/// A cell with the values of its row and column.
type Placed<'a> = (&'a Value, Option<&'a Value>, PriceCell);

/// Lays cells out by the values of their rows and columns, and adds these to their words.
fn layout<'a>(
    rows: &GridAxis,
    columns: Option<&GridAxis>,
    second: SecondField,
    cells: impl Iterator<Item = Placed<'a>>,
) -> PriceLayout {
    let is_shown = |value: &Value| match columns {
        Some(columns) => axis_value(&columns.field, value),
        None => String::new(),
    };
    let place =
        |row: &Value, column: Option<&Value>| (row.to_string(), column.map(Value::to_string));
    let mut placed: HashMap<_, PriceCell> = HashMap::new();
    for (row, column, mut cell) in cells {
        let names = std::iter::once(axis_value(&rows.field, row)).chain(column.map(is_shown));
        let names: Vec<_> = names.collect();
        cell.words = format!("{}: {}", names.join(", "), cell.words);
        placed.insert(place(row, column), cell);
    }
    let of_columns: Vec<Option<&Value>> = match columns {
        Some(columns) => columns.values.iter().map(Some).collect(),
        None => vec![None],
    };
    let has_room = match second {
        SecondField::Cheapest => true,
        SecondField::Calendars(most) => of_columns.len() <= most,
    };
    if is_calendar(rows, columns) && has_room {
        let mut days = vec![BTreeMap::new(); of_columns.len()];
        for row in &rows.values {
            let Some(date) = row.as_str().and_then(|text| text.parse::<Date>().ok()) else {
                continue;
            };
            for (days, column) in days.iter_mut().zip(&of_columns) {
                days.extend(placed.remove(&place(row, *column)).map(|cell| (date, cell)));
            }
        }
        let names = of_columns
            .iter()
            .map(|value| Some(calendar_name(columns?, (*value)?)));
        let calendars: Vec<_> = names.zip(days).collect();
        let is_merged = second == SecondField::Cheapest && calendars.len() > 1;
        return PriceLayout::Calendars(if is_merged {
            vec![(None, cheapest_days(calendars))]
        } else {
            calendars
        });
    }
    let mut row = |row: &Value| {
        let cells = of_columns.iter();
        let cells = cells.map(|column| placed.remove(&place(row, *column)));
        (axis_value(&rows.field, row), cells.collect::<Vec<_>>())
    };
    let of_rows = rows.values.iter().map(&mut row);
    PriceLayout::Matrix {
        corner: axis_name(&rows.field),
        rows: of_rows
            .filter(|(_, cells)| cells.iter().any(Option::is_some))
            .collect(),
        columns: of_columns
            .iter()
            .map(|value| value.map_or_else(|| "Price".to_owned(), is_shown))
            .collect(),
    }
}

/// The value of a calendar's second field, with the field's name where the value does not say it.
fn calendar_name(columns: &GridAxis, value: &Value) -> String {
    let shown = axis_value(&columns.field, value);
    match columns.field.as_str() {
        "from_airport" | "to_airport" | "currency" | "destination" | "hotel_name" => shown,
        field => format!("{} {shown}", axis_name(field)),
    }
}

/// Of each date the cheapest, with the name of its calendar. It is only empty if all of them are.
fn cheapest_days(calendars: Vec<(Option<String>, CalendarCells)>) -> CalendarCells {
    let mut dates: BTreeMap<Date, Vec<PriceCell>> = BTreeMap::new();
    for (name, days) in calendars {
        for (date, mut cell) in days {
            if let CellValue::Price(_) | CellValue::Implausible(_) = cell.value {
                cell.note = name.clone().unwrap_or_default();
            }
            dates.entry(date).or_default().push(cell);
        }
    }
    let cheapest = |cells: Vec<PriceCell>| {
        let without = CellValue::without_price(cells.iter().map(|cell| cell.value));
        cells.into_iter().min_by_key(|cell| match cell.value {
            CellValue::Price(price) => (0, price),
            CellValue::Implausible(price) => (1, price),
            // What stands for the date has the words and the search of its own cell.
            value => (if value == without { 2 } else { 3 }, Decimal::ZERO),
        })
    };
    let days = dates.into_iter();
    days.filter_map(|(date, cells)| Some((date, cheapest(cells)?)))
        .collect()
}

/// Whether dates are the rows, and no lengths or markets of them are compared.
fn is_calendar(rows: &GridAxis, columns: Option<&GridAxis>) -> bool {
    let compared = ["nights", "return_date", "checkout_date", MARKET];
    ["departure_date", "checkin_date"].contains(&rows.field.as_str())
        && columns.is_none_or(|columns| !compared.contains(&columns.field.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_difference_has_a_stronger_colour() {
        let shades = [-125, -60, -19, 0, 20, 119, 500]
            .map(|tenths| Shade::of_percent(Some(Decimal::new(tenths, 1))));
        assert_eq!(shades, [-3, -2, 0, 0, 1, 2, 3].map(Shade::Difference));
    }

    fn axis(field: &str, values: &[&str]) -> GridAxis {
        GridAxis {
            field: field.to_owned(),
            values: values.iter().map(|value| (*value).into()).collect(),
        }
    }

    /// One date to two airports: nothing is offered to the first, the search to the second failed.
    fn two_airports(second: SecondField) -> PriceLayout {
        let (rows, columns) = (
            axis("departure_date", &["2030-01-05"]),
            axis("to_airport", &["LHR", "LGW"]),
        );
        let marks = [CellValue::Empty, CellValue::Incomplete];
        let cells = columns.values.iter().zip(marks).map(|(airport, mark)| {
            let cell = PriceCell::new(mark, mark.words(None));
            (&rows.values[0], Some(airport), cell)
        });
        layout(&rows, Some(&columns), second, cells)
    }

    #[test]
    fn a_date_of_several_searches_has_the_words_of_its_mark() {
        let PriceLayout::Calendars(calendars) = two_airports(SecondField::Cheapest) else {
            panic!("no calendar")
        };
        let [(None, days)] = &calendars[..] else {
            panic!("{calendars:?}")
        };
        let cell = days.values().next().unwrap();
        assert_eq!(cell.value, CellValue::Incomplete);
        assert!(
            cell.words.contains("LGW: did not complete"),
            "{}",
            cell.words
        );
    }

    #[test]
    fn more_values_than_calendars_are_a_matrix() {
        let is_matrix = |most| {
            matches!(
                two_airports(SecondField::Calendars(most)),
                PriceLayout::Matrix { .. }
            )
        };
        assert_eq!([is_matrix(1), is_matrix(2)], [true, false]);
    }
}
