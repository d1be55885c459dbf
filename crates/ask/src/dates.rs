//! Dates in words: months, days, ranges, days of the week, and days from now.

mod range;

use farescan_contract::scans::Weekday;
use jiff::civil::Date;
use jiff::{Span, ToSpan as _};

use self::range::{PartialDate, checked, joins, point, range};
use crate::clauses::currency_of;
use crate::lexer::{Token, TokenKind};

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
/// The first months of the seasons in the north; in the south they are six months later.
const SEASONS: [(&str, i8); 5] = [
    ("spring", 3),
    ("summer", 6),
    ("autumn", 9),
    ("fall", 9),
    ("winter", 12),
];
/// A year alone is at most so many years from now.
const MAX_YEARS: i16 = 2;
/// Words after a number that make it no day of a month.
const UNITS: &str = "night nights day days week weeks month months adult adults child children kid kids \
    people person persons passenger passengers guest guests traveller travellers travelers \
    stop stops";

/// What a part of a text says about dates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum When {
    Range(Date, Date),
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
    season(tokens, today)
        .or_else(|| relative(tokens, today))
        .or_else(|| slashes(tokens))
        .or_else(|| part_of_month(tokens, today))
        .or_else(|| range(tokens, today))
        .or_else(|| weekdays(tokens))
        .or_else(|| year(tokens, today))
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
        || SEASONS.iter().any(|(name, _)| *name == word)
        || [
            "next", "this", "coming", "today", "tomorrow", "weekend", "weekends", "weekdays",
            "workdays", "early", "late", "mid", "year",
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

/// `4/3/2027`, which is one day here and another one there.
fn slashes(tokens: &[Token]) -> DateRead {
    let number = |at: usize| tokens.get(at)?.whole();
    let slash = |at: usize| {
        tokens
            .get(at)
            .is_some_and(|token| token.kind == TokenKind::Sign('/'))
    };
    let (one, two) = (number(0)?, slash(1).then(|| number(2))??);
    let year = slash(3).then(|| number(4)).flatten();
    let name = |day: u32, month: u32| {
        let name = MONTHS.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
        let year = year.map_or_else(String::new, |year| format!(" {year}"));
        (1..=31)
            .contains(&day)
            .then(|| format!("{day} {}{year}", title(name)))
    };
    let mut readings: Vec<_> = [name(one, two), name(two, one)]
        .into_iter()
        .flatten()
        .collect();
    readings.dedup();
    let choices = readings
        .into_iter()
        .map(|text| (text.clone(), text))
        .collect();
    let says = "A date with slashes is one day in one country and another day elsewhere; expected 4 March or 2027-03-04.";
    Some((
        When::Fault(says.to_owned(), choices),
        if year.is_some() { 5 } else { 3 },
    ))
}

pub(crate) fn title(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// `spring`, `next summer`, `autumn of 2027`.
fn season(tokens: &[Token], today: Date) -> DateRead {
    let is_next = word(tokens, 0) == Some("next");
    let at = usize::from(is_next || matches!(word(tokens, 0), Some("this" | "coming")));
    let name = word(tokens, at)?;
    let (_, month) = SEASONS.iter().find(|(season, _)| *season == name)?;
    let skip = usize::from(word(tokens, at + 1) == Some("of"));
    let year = range::year_at(tokens, at + 1 + skip);
    let used = at + 1 + year.map_or(0, |_| skip + 1);
    if let Some(year) = year.filter(|_| *month == 12) {
        let choice = |from: i16| {
            let words = format!("December {from} to February {}", from + 1);
            (words.clone(), words)
        };
        let says = "A winter has two years; expected its months.".to_owned();
        return Some((
            When::Fault(says, vec![choice(year - 1), choice(year)]),
            used,
        ));
    }
    let of_year = |year: i16| {
        let first = Date::new(year, *month, 1).ok()?;
        Some((first, first.saturating_add(2.months()).last_of_month()))
    };
    let mut seasons = year
        .map_or(today.year() - 1..=today.year() + 2, |year| year..=year)
        .filter_map(of_year);
    let is_it = |(first, last): &(Date, Date)| match year {
        Some(_) => true,
        None if is_next => *first > today,
        None => *last >= today,
    };
    let (from, to) = seasons.find(is_it)?;
    let south = from.saturating_add(6.months());
    let south_end = south.saturating_add(2.months());
    let words = format!(
        "{} to {}",
        south.strftime("%B %Y"),
        south_end.strftime("%B %Y")
    );
    Some(match checked(from, to, today) {
        When::Range(from, to) => (When::Season(from, to, words), used),
        fault => (fault, used),
    })
}

/// `2027`, `next year`.
fn year(tokens: &[Token], today: Date) -> DateRead {
    let this = today.year();
    match (word(tokens, 0), word(tokens, 1)) {
        (Some("next"), Some("year")) => return Some((When::Year(this + 1), 2)),
        (Some("this"), Some("year")) => return Some((When::Year(this), 2)),
        _ => {}
    }
    let year = range::year_at(tokens, 0)?;
    let is_money = tokens
        .get(1)
        .is_some_and(|token| currency_of(token).is_some());
    let is_near = (this..=this + MAX_YEARS).contains(&year);
    (is_near && !is_money).then_some((When::Year(year), 1))
}

/// A year from today on.
pub(crate) fn whole_year(year: i16, today: Date) -> When {
    match (Date::new(year, 1, 1), Date::new(year, 12, 31)) {
        (Ok(from), Ok(to)) => checked(from, to, today),
        _ => When::Fault(String::new(), Vec::new()),
    }
}

/// `early march`, `mid-march 2027`, `end of march`.
fn part_of_month(tokens: &[Token], today: Date) -> DateRead {
    let (part, mut at) = match (word(tokens, 0)?, word(tokens, 1)) {
        ("early", _) => (0, 1),
        ("mid", _) => (1, 1),
        ("late", _) => (2, 1),
        ("beginning" | "start", Some("of")) => (0, 2),
        ("end", Some("of")) => (2, 2),
        _ => return None,
    };
    at += usize::from(
        tokens
            .get(at)
            .is_some_and(|token| token.kind == TokenKind::Dash),
    );
    month(word(tokens, at)?)?;
    let month = PartialDate {
        day: None,
        ..point(&tokens[at..])?.0
    };
    let used = 1 + usize::from(month.year.is_some());
    let ends = |first: Date| match part {
        0 => (first, days_later(first, 9)),
        1 => (days_later(first, 10), days_later(first, 19)),
        _ => (days_later(first, 20), first.last_of_month()),
    };
    let mut first = month.resolve(today).ok()?.0.first_of_month();
    if month.year.is_none() && ends(first).1 < today {
        first = first.saturating_add(1.year());
    }
    let (from, to) = ends(first);
    Some((checked(from, to, today), at + used))
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
