//! Dates on the command line: `2027-02-04`, a month `2027-02`, a range `2027-02-01..2027-02-14`,
//! days from now `+7d`, and lists of them. They become values or a range of the contract.

use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde_json::Value;

use farescan_contract::FieldValue as _;
use farescan_contract::scans::{Nights, Weekday};
use farescan_sheets::draft::{ScanDraft, date_range, numbers};

const EXPECTED: &str = "a date 2027-02-04, a month 2027-02, a range 2027-02-01..2027-02-14, or a list of them with commas";
/// A scan has at most this many items, so a list has at most this many dates.
const MAX_DATES: usize = 10_000;

/// The dates of an argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Dates(Vec<DatePart>);

#[derive(Debug, Clone, Copy, PartialEq)]
enum DatePart {
    Day(Date),
    Range(Date, Date),
    /// Days after the slot of a monitor.
    Relative(u16),
    RelativeRange(u16, u16),
}

/// Which days of the ranges.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct DateArgs {
    /// Only these days of the week: `thu,fri`, `mon-fri`, `weekend`
    #[arg(long, value_name = "DAYS")]
    pub weekdays: Option<Weekdays>,
    /// Every n-th day of a range
    #[arg(long, value_name = "DAYS")]
    pub step: Option<u16>,
}

impl FromStr for Dates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Option<Vec<_>> = text
            .split(',')
            .map(|part| parse_part(part.trim()))
            .collect();
        parts
            .map(Self)
            .ok_or_else(|| format!("expected {EXPECTED}"))
    }
}

fn parse_part(text: &str) -> Option<DatePart> {
    match text.split_once("..") {
        None if text.starts_with('+') => relative(text).map(DatePart::Relative),
        None => day(text)
            .map(DatePart::Day)
            .or_else(|| month(text).map(|(first, last)| DatePart::Range(first, last))),
        Some((from, to)) if from.starts_with('+') => {
            Some(DatePart::RelativeRange(relative(from)?, relative(to)?))
        }
        Some((from, to)) => {
            let first = day(from).or_else(|| Some(month(from)?.0))?;
            let last = day(to).or_else(|| Some(month(to)?.1))?;
            (first <= last).then_some(DatePart::Range(first, last))
        }
    }
}

fn day(text: &str) -> Option<Date> {
    Date::read(&text.into()).ok()
}

/// The days of a month; of the current month those to come.
fn month(text: &str) -> Option<(Date, Date)> {
    let first = day(&format!("{text}-01"))?;
    let (last, today) = (first.last_of_month(), today());
    let begins = if (first..=last).contains(&today) {
        today
    } else {
        first
    };
    Some((begins, last))
}

fn relative(text: &str) -> Option<u16> {
    text.strip_prefix('+')?.strip_suffix('d')?.parse().ok()
}

/// The time of this machine.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The day in UTC, as the service counts.
pub fn today() -> Date {
    now().to_zoned(TimeZone::UTC).date()
}

impl Dates {
    /// One date, for a single search.
    pub fn single(&self) -> Option<Date> {
        match self.0.as_slice() {
            [DatePart::Day(date)] => Some(*date),
            _ => None,
        }
    }

    /// The first and the last date; `None` with relative ones.
    pub fn bounds(&self) -> Option<(Date, Date)> {
        let mut ends = Vec::new();
        for part in &self.0 {
            match part {
                DatePart::Day(date) => ends.push(*date),
                DatePart::Range(first, last) => ends.extend([*first, *last]),
                DatePart::Relative(_) | DatePart::RelativeRange(..) => return None,
            }
        }
        Some((*ends.iter().min()?, *ends.iter().max()?))
    }

    /// Sets the request field or the sweep that searches these dates.
    ///
    /// # Errors
    /// The filter leaves no date, or does not apply.
    pub fn set(&self, draft: &mut ScanDraft, name: &str, filter: &DateArgs) -> Result<(), String> {
        let is_filtered = filter.weekdays.is_some() || filter.step.is_some();
        let swept = match self.0.as_slice() {
            [DatePart::Day(date)] if !is_filtered => {
                draft.set(name, Some(date.to_value()));
                return Ok(());
            }
            [DatePart::Relative(days)] if !is_filtered => {
                draft.set(name, Some(format!("+{days}d")));
                return Ok(());
            }
            [DatePart::Range(first, last)] => filter.range(&first.to_string(), &last.to_string()),
            [DatePart::RelativeRange(first, last)] => {
                filter.range(&format!("+{first}d"), &format!("+{last}d"))
            }
            parts => filter.all_days(parts)?,
        };
        draft.sweep.insert(name.to_owned(), swept);
        Ok(())
    }
}

impl DateArgs {
    fn range(&self, from: &str, to: &str) -> Value {
        let weekdays = self.weekdays.iter().flat_map(|days| &days.0);
        let weekdays: Vec<_> = weekdays.map(|day| day.as_str()).collect();
        date_range(from, to, self.step.map(Value::from), &weekdays)
    }

    fn all_days(&self, parts: &[DatePart]) -> Result<Value, String> {
        let mut days = Vec::new();
        for part in parts {
            days.extend(self.days(*part)?);
            if days.len() > MAX_DATES {
                return Err(format!("more than {MAX_DATES} dates"));
            }
        }
        days.sort_unstable();
        days.dedup();
        if days.is_empty() {
            return Err("no date is left with --weekdays and --step".to_owned());
        }
        Ok(days.iter().map(ToString::to_string).collect())
    }

    fn days(&self, part: DatePart) -> Result<Vec<Date>, String> {
        let step = Span::new().days(i64::from(self.step.unwrap_or(1).max(1)));
        let (first, last) = match part {
            DatePart::Day(date) => (date, date),
            DatePart::Range(first, last) => (first, last),
            DatePart::Relative(_) | DatePart::RelativeRange(..) => {
                return Err(
                    "days from now (`+7d`) are one date or one range, not a list".to_owned(),
                );
            }
        };
        let days = first.series(step).take_while(|day| *day <= last);
        Ok(days
            .filter(|day| {
                self.weekdays.as_ref().is_none_or(|weekdays| {
                    weekdays
                        .0
                        .iter()
                        .any(|weekday| jiff::civil::Weekday::from(*weekday) == day.weekday())
                })
            })
            .take(MAX_DATES + 1)
            .collect())
    }
}

/// Days of the week as words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weekdays(Vec<Weekday>);

impl FromStr for Weekdays {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut days = Vec::new();
        for word in text.split(',').map(|word| word.trim().to_ascii_lowercase()) {
            match (word.as_str(), word.split_once('-')) {
                ("weekend", _) => days.extend([Weekday::Saturday, Weekday::Sunday]),
                ("workdays", _) => days.extend(&Weekday::ALL[..5]),
                (_, Some((from, to))) => days.extend(weekday(from)?.range(weekday(to)?)),
                (word, None) => days.push(weekday(word)?),
            }
        }
        days.sort_unstable();
        days.dedup();
        Ok(Self(days))
    }
}

/// A word that begins with the three letters of the contract: `thu`, `Thursday`, `thursdays`.
fn weekday(word: &str) -> Result<Weekday, String> {
    let stem = word
        .strip_suffix('s')
        .filter(|_| word.len() > 5)
        .unwrap_or(word);
    let found = Weekday::ALL
        .iter()
        .zip(Weekday::NAMES)
        .find(|(_, name)| stem.len() >= 3 && name.starts_with(stem));
    found.map(|(day, _)| *day).ok_or_else(|| {
        "expected days of the week such as `thu,fri`, `mon-fri` or `weekend`".to_owned()
    })
}

/// Lengths of stay: `7`, `7,10..14`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NightsList(pub Vec<u16>);

impl FromStr for NightsList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected nights from 1 to {}, such as 7 or 7,10..14",
                Nights::MAX
            )
        };
        let list = Vec::<Nights>::read(&numbers(text)).map_err(|_| expected())?;
        let mut list: Vec<_> = list.into_iter().map(Nights::get).collect();
        if list.is_empty() {
            return Err(expected());
        }
        list.sort_unstable();
        list.dedup();
        Ok(Self(list))
    }
}

#[cfg(test)]
mod tests {
    use farescan_contract::Endpoint;
    use serde_json::json;

    use super::*;

    /// The field and its sweep.
    fn sweep(
        text: &str,
        weekdays: Option<&str>,
        step: Option<u16>,
    ) -> Result<[Option<Value>; 2], String> {
        let filter = DateArgs {
            weekdays: weekdays.map(|days| days.parse().unwrap()),
            step,
        };
        let mut draft = ScanDraft::new(Endpoint::FlightsOneway);
        text.parse::<Dates>()?
            .set(&mut draft, "departure_date", &filter)?;
        let set = [draft.request, draft.sweep];
        Ok(set.map(|fields| fields.get("departure_date").cloned()))
    }

    #[test]
    fn a_date_is_a_field_and_more_dates_are_a_sweep() {
        for (text, weekdays, step, expected) in [
            ("2027-02-04", None, None, [Some(json!("2027-02-04")), None]),
            ("+7d", None, None, [Some(json!("+7d")), None]),
            (
                "2027-02",
                Some("thu,fri"),
                None,
                [
                    None,
                    Some(
                        json!({"from": "2027-02-01", "to": "2027-02-28", "weekdays": ["thu", "fri"]}),
                    ),
                ],
            ),
            (
                "2027-02..2027-03",
                None,
                Some(3),
                [
                    None,
                    Some(json!({"from": "2027-02-01", "to": "2027-03-31", "step_days": 3})),
                ],
            ),
            (
                "+7d..+13d",
                Some("weekend"),
                None,
                [
                    None,
                    Some(json!({"from": "+7d", "to": "+13d", "weekdays": ["sat", "sun"]})),
                ],
            ),
            (
                "2027-02-04,2027-02-01..2027-02-02",
                None,
                None,
                [
                    None,
                    Some(json!(["2027-02-01", "2027-02-02", "2027-02-04"])),
                ],
            ),
            (
                "2027-02-01..2027-02-07,2027-02-12",
                Some("Fridays"),
                None,
                [None, Some(json!(["2027-02-05", "2027-02-12"]))],
            ),
        ] {
            assert_eq!(sweep(text, weekdays, step), Ok(expected), "{text}");
        }
        for text in [
            "",
            "soon",
            "2027-13",
            "2027-02-30",
            "2027-02-02..2027-02-01",
            "+7",
            "2027",
        ] {
            assert!(sweep(text, None, None).is_err(), "{text}");
        }
        assert!(sweep("2027-02-01,2027-02-02", Some("sun"), None).is_err());
    }

    #[test]
    fn weekdays_are_words_and_ranges() {
        let days = |text: &str| {
            let days: Result<Weekdays, _> = text.parse();
            days.map(|days| {
                days.0
                    .iter()
                    .map(|day| day.as_str())
                    .collect::<Vec<_>>()
                    .join(",")
            })
        };
        for (text, expected) in [
            ("thu,fri", "thu,fri"),
            ("Thursday", "thu"),
            ("mon-fri", "mon,tue,wed,thu,fri"),
            ("fri-mon", "mon,fri,sat,sun"),
            ("workdays", "mon,tue,wed,thu,fri"),
            ("weekend", "sat,sun"),
        ] {
            assert_eq!(days(text).as_deref(), Ok(expected), "{text}");
        }
        assert!(days("th").is_err() && days("noday").is_err() && days("").is_err());
    }

    #[test]
    fn nights_are_lists_and_ranges() {
        let nights = |text: &str| text.parse::<NightsList>().map(|list| list.0);
        assert_eq!(nights("7"), Ok(vec![7]));
        assert_eq!(nights("10..12,7"), Ok(vec![7, 10, 11, 12]));
        for text in ["", "0", "7..3", "x", "400"] {
            assert!(nights(text).is_err(), "{text}");
        }
    }
}
