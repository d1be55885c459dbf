//! Dates in words: months, days, ranges, days of the week, and days from now.

mod named;
mod range;

use farescan_contract::scans::Weekday;
use jiff::civil::Date;
use jiff::{Span, ToSpan as _};

pub(crate) use self::named::whole_year;
use self::range::{PartialDate, checked, joins, range};
use crate::lexer::{Token, TokenKind, is_one_of};

/// The most days of a range.
const MAX_DAYS: i32 = 366;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const NUMBERS: [&str; 13] = [
    "", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];
/// Words after a number that make it no day of a month.
pub(crate) const UNITS: &str = "night nights day days week weeks month months adult adults child children kid kids \
    people person persons passenger passengers guest guests traveller travellers travelers pax n nt nts \
    stop stops";

/// What a part of a text says about dates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum When {
    Range(Date, Date),
    /// From a day to another one: the ends of a stay as well.
    FromTo(Date, Date),
    /// The months of a season in the north, and the words of those in the south.
    Season(Date, Date, String),
    /// A year alone.
    Year(i16),
    /// The days of a weekend that is named.
    Weekend(Date, Date),
    /// Days of the week; as a filter, or the next ones.
    Days(Vec<Weekday>),
    /// What is wrong, and what could be meant: a text, and the words for it.
    Fault(String, Vec<(String, String)>),
}

/// The reading of the tokens at a place, and how many they are.
pub(crate) type DateRead = Option<(When, usize)>;

/// Reads the dates that begin with the first token.
pub(crate) fn when(tokens: &[Token], today: Date) -> DateRead {
    between(tokens, today)
        .or_else(|| named::season(tokens, today))
        .or_else(|| named::holiday(tokens, today))
        .or_else(|| named::part_of_month(tokens, today))
        .or_else(|| named::week_of(tokens, today))
        .or_else(|| relative(tokens, today))
        .or_else(|| slashes(tokens, today))
        .or_else(|| range(tokens, today))
        .or_else(|| weekdays(tokens))
        .or_else(|| named::year(tokens, today))
}

/// A number in digits or as a word; `a` is one.
pub(crate) fn count(token: &Token) -> Option<u32> {
    let named = |word: &str| {
        NUMBERS
            .iter()
            .position(|name| *name == word && !word.is_empty())
    };
    match token.word() {
        Some("a" | "an") => Some(1),
        Some(word) => named(word).and_then(|number| u32::try_from(number).ok()),
        None => token.whole(),
    }
}

/// Whether a word begins or is a part of a date.
pub(crate) fn is_date_word(word: &str) -> bool {
    month(word).is_some()
        || weekday(word).is_some()
        || named::is_season(word)
        || [
            "next",
            "this",
            "coming",
            "today",
            "tomorrow",
            "weekend",
            "weekends",
            "weekdays",
            "workdays",
            "early",
            "late",
            "mid",
            "year",
            "easter",
            "christmas",
        ]
        .contains(&word)
}

fn word(tokens: &[Token], at: usize) -> Option<&str> {
    tokens.get(at)?.word()
}

fn month(word: &str) -> Option<i8> {
    let is_it = |name: &&str| {
        **name == *word || name[..3] == *word || (word == "sept" && name.starts_with(word))
    };
    let at = MONTHS.iter().position(is_it)?;
    i8::try_from(at + 1).ok()
}

pub(crate) fn weekday(word: &str) -> Option<Weekday> {
    let stem = word
        .strip_suffix('s')
        .filter(|stem| stem.ends_with("day"))
        .unwrap_or(word);
    let is_it = |name: &&str| {
        **name == *stem
            || name[..3] == *stem
            || ["tues", "thur", "thurs"].contains(&stem) && name.starts_with(stem)
    };
    let at = Weekday::NAMES.iter().position(is_it)?;
    Weekday::ALL.get(at).copied()
}

fn days_later(day: Date, days: i64) -> Date {
    day.saturating_add(Span::new().days(days))
}

/// The Monday of a day's week.
fn monday(day: Date) -> Date {
    days_later(day, -i64::from(day.weekday().to_monday_zero_offset()))
}

/// `today`, `next weekend`, `this month`, `next 3 weeks`, `friday` of next week.
fn relative(tokens: &[Token], today: Date) -> DateRead {
    let first = word(tokens, 0)?;
    match first {
        "today" => return Some((When::Range(today, today), 1)),
        "tomorrow" => {
            let day = days_later(today, 1);
            return Some((When::Range(day, day), 1));
        }
        "day" if word(tokens, 1) == Some("after") && word(tokens, 2) == Some("tomorrow") => {
            let day = days_later(today, 2);
            return Some((When::Range(day, day), 3));
        }
        "in" => return days_from_now(tokens, today),
        "next" | "this" | "coming" => {}
        _ => return None,
    }
    let next = first == "next";
    let weeks = if next { 7 } else { 0 };
    let week = days_later(monday(today), weeks);
    let what = tokens.get(1)?;
    if let Some(number) = count(what).filter(|_| next) {
        let number = i64::from(number.min(1_000));
        let end = match word(tokens, 2)? {
            "days" | "day" => days_later(today, number),
            "weeks" | "week" => days_later(today, number * 7),
            "months" | "month" => today.saturating_add(number.months()),
            _ => return None,
        };
        let last = days_later(end, -1);
        return Some((checked(today, last, today), 3));
    }
    let meaning = match what.word()? {
        "weekend" => {
            let (from, to) = (days_later(week, 5), days_later(week, 6));
            When::Weekend(from.max(today), to)
        }
        "week" => When::Range(week.max(today), days_later(week, 6)),
        "month" => {
            let first = today.first_of_month();
            let first = if next {
                first.saturating_add(1.month())
            } else {
                first
            };
            When::Range(first.max(today), first.last_of_month())
        }
        other => {
            // `next march` is the next one anyway.
            if month(other).is_some() {
                let (meaning, used) = range(&tokens[1..], today)?;
                return Some((meaning, used + 1));
            }
            let day = weekday(other)?;
            let day = days_later(week, i64::from(day as u8));
            checked(day, day, today)
        }
    };
    Some((meaning, 2))
}

/// `in 10 days`, `in 3 weeks`.
fn days_from_now(tokens: &[Token], today: Date) -> DateRead {
    let number = i64::from(count(tokens.get(1)?)?.min(1_000));
    let day = match word(tokens, 2)? {
        "day" | "days" => days_later(today, number),
        "week" | "weeks" => days_later(today, 7 * number),
        "month" | "months" => today.saturating_add(number.months()),
        _ => return None,
    };
    Some((checked(day, day, today), 3))
}

/// `4/3/2027`, which is one day here and another one there; `25/3/2027` is one day.
fn slashes(tokens: &[Token], today: Date) -> DateRead {
    let number = |at: usize| tokens.get(at)?.whole();
    let slash = |at: usize| {
        tokens
            .get(at)
            .is_some_and(|token| token.kind == TokenKind::Sign('/'))
    };
    let (one, two) = (number(0)?, slash(1).then(|| number(2))??);
    let year = slash(3).then(|| number(4)).flatten();
    let used = if year.is_some() { 5 } else { 3 };
    let day_of = |day: u32, month: u32| {
        let (day, month) = (i8::try_from(day).ok(), i8::try_from(month).ok()?);
        let year = match year {
            Some(year) => Some(i16::try_from(if year < 100 { 2_000 + year } else { year }).ok()?),
            None => None,
        };
        let is_month = (1..=12).contains(&month) && day.is_some_and(|day| (1..=31).contains(&day));
        is_month
            .then_some(PartialDate { year, month, day })?
            .resolve(today)
            .ok()
    };
    let mut days: Vec<_> = [day_of(one, two), day_of(two, one)]
        .into_iter()
        .flatten()
        .collect();
    days.dedup();
    if let [(day, _)] = days.as_slice() {
        return Some((checked(*day, *day, today), used));
    }
    let choices = days.into_iter().map(|(day, _)| {
        let words = day.strftime("%-d %B %Y").to_string();
        (words.clone(), words)
    });
    let says = "A date with slashes is one day in one country and another day elsewhere; expected 4 March or 2027-03-04.";
    Some((When::Fault(says.to_owned(), choices.collect()), used))
}

pub(crate) fn title(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// `between 10 and 20 march`.
fn between(tokens: &[Token], today: Date) -> DateRead {
    const LONGEST: usize = 8;
    if word(tokens, 0)? != "between" {
        return None;
    }
    let mut ends: Vec<_> = tokens[1..].iter().take(LONGEST).cloned().collect();
    let and = ends.iter_mut().find(|token| token.word() == Some("and"))?;
    and.kind = TokenKind::Dash;
    let (when, used) = range(&ends, today)?;
    Some((when, used + 1))
}

/// One day from another one on, `8 march` or `the 10th`.
pub(crate) fn day_after(tokens: &[Token], from: Date, today: Date) -> Option<(Date, usize)> {
    if let Some((When::Range(day, to), used)) = when(tokens, today) {
        return (day == to).then_some((day, used));
    }
    let (day, used) = range::day_at(tokens, 0)?;
    let is_amount = word(tokens, used).is_some_and(|word| is_one_of(word, UNITS));
    let of_month = |months: i64| {
        from.first_of_month()
            .saturating_add(months.months())
            .with()
            .day(day)
            .build()
            .ok()
    };
    let mut days = (0..2).filter_map(of_month);
    let day = days.find(|day| *day > from).filter(|_| !is_amount)?;
    Some((day, used))
}

/// A range as people write it.
pub(crate) fn shown(from: Date, to: Date) -> String {
    let day = |day: Date| day.strftime("%a %-d %b %Y").to_string();
    if from == to {
        return day(from);
    }
    let start = if from.year() == to.year() {
        "%-d %b"
    } else {
        "%-d %b %Y"
    };
    format!("{} to {}", from.strftime(start), to.strftime("%-d %b %Y"))
}

/// One day of the week, or a range of them: `fridays`, `mon-fri`, `weekends`.
fn weekdays(tokens: &[Token]) -> DateRead {
    let first = word(tokens, 0)?;
    let group = match first {
        "weekend" | "weekends" => Some(&Weekday::ALL[5..]),
        "weekdays" | "workdays" => Some(&Weekday::ALL[..5]),
        _ => None,
    };
    if let Some(group) = group {
        return Some((When::Days(group.to_vec()), 1));
    }
    let from = weekday(first)?;
    let to = joins(tokens.get(1))
        .then(|| weekday(word(tokens, 2)?))
        .flatten();
    let Some(to) = to else {
        return Some((When::Days(vec![from]), 1));
    };
    Some((When::Days(from.range(to)), 3))
}

/// The next days that are one of these: a day, or two that follow each other.
pub(crate) fn next_days(days: &[Weekday], today: Date) -> (Date, Date) {
    let is_one = |day: Date| {
        days.iter()
            .any(|one| jiff::civil::Weekday::from(*one) == day.weekday())
    };
    let week = (0..7).map(|later| days_later(today, later));
    let from = week.clone().find(|day| is_one(*day)).unwrap_or(today);
    let mut to = from;
    while is_one(days_later(to, 1)) && (to - from).get_days() < 6 {
        to = days_later(to, 1);
    }
    (from, to)
}
