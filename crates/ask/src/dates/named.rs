//! Dates that have a name: seasons, years, parts and weeks of a month, holidays.

use jiff::ToSpan as _;
use jiff::civil::Date;

use super::range::{PartialDate, checked, point, year_at};
use super::{DateRead, When, days_later, monday, month, word};
use crate::countries::currency_of;
use crate::lexer::{Token, TokenKind};

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

/// Whether a word is a season.
pub(super) fn is_season(word: &str) -> bool {
    SEASONS.iter().any(|(name, _)| *name == word)
}

/// `spring`, `next summer`, `autumn of 2027`.
pub(super) fn season(tokens: &[Token], today: Date) -> DateRead {
    let is_next = word(tokens, 0) == Some("next");
    let at = usize::from(is_next || matches!(word(tokens, 0), Some("this" | "coming")));
    let name = word(tokens, at)?;
    // `if flights fall below 150`.
    let is_verb = matches!(
        word(tokens, at + 1),
        Some("below" | "under" | "beneath" | "to")
    );
    if name == "fall" && is_verb {
        return None;
    }
    let (_, month) = SEASONS.iter().find(|(season, _)| *season == name)?;
    let skip = usize::from(word(tokens, at + 1) == Some("of"));
    let year = year_at(tokens, at + 1 + skip);
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
pub(super) fn year(tokens: &[Token], today: Date) -> DateRead {
    let this = today.year();
    match (word(tokens, 0), word(tokens, 1)) {
        (Some("next"), Some("year")) => return Some((When::Year(this + 1), 2)),
        (Some("this"), Some("year")) => return Some((When::Year(this), 2)),
        _ => {}
    }
    let year = year_at(tokens, 0)?;
    let is_money = tokens
        .get(1)
        .is_some_and(|token| currency_of(token).is_some());
    let is_near = (this..=this + MAX_YEARS).contains(&year);
    (is_near && !is_money).then_some((When::Year(year), 1))
}

/// A year from today on; `None` of one that has passed.
pub(crate) fn whole_year(year: i16, today: Date) -> Option<(Date, Date)> {
    let (from, to) = (Date::new(year, 1, 1).ok()?, Date::new(year, 12, 31).ok()?);
    (to >= today).then(|| (from.max(today), to))
}

/// `early march`, `mid-march 2027`, `end of march`.
pub(super) fn part_of_month(tokens: &[Token], today: Date) -> DateRead {
    let (part, mut at) = match (word(tokens, 0)?, word(tokens, 1)) {
        ("early", _) => (0, 1),
        ("mid", _) => (1, 1),
        ("late", _) => (2, 1),
        ("beginning" | "start", Some("of")) => (0, 2),
        ("middle", Some("of")) => (1, 2),
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

/// `first week of march`, `second weekend in may`, `the week of 8 march`.
pub(super) fn week_of(tokens: &[Token], today: Date) -> DateRead {
    let nth = match word(tokens, 0)? {
        "first" => Some(0),
        "second" => Some(1),
        "third" => Some(2),
        "fourth" => Some(3),
        "last" => None,
        "week" | "weekend" if word(tokens, 1) == Some("of") => {
            let skip = 2 + usize::from(word(tokens, 2) == Some("the"));
            let (day, used) = point(tokens.get(skip..)?)?;
            let (day, _) = day.day.and(day.resolve(today).ok())?;
            let monday = monday(day);
            let first = i64::from(word(tokens, 0) == Some("weekend")) * 5;
            let (from, to) = (days_later(monday, first), days_later(monday, 6));
            let when = checked(from, to, today);
            return Some((of_weekend(when, first > 0), skip + used));
        }
        _ => return None,
    };
    let is_weekend = match word(tokens, 1)? {
        "week" => false,
        "weekend" => true,
        _ => return None,
    };
    let skip = 2 + usize::from(matches!(word(tokens, 2), Some("of" | "in")));
    let (month, used) = point(tokens.get(skip..)?)?;
    let (first, last) = if month.day.is_none() {
        month.resolve(today).ok()?
    } else {
        return None;
    };
    let saturday = |day: Date| {
        days_later(
            day,
            i64::from((5 - day.weekday().to_monday_zero_offset()).rem_euclid(7)),
        )
    };
    let (from, to) = match (nth, is_weekend) {
        (Some(nth), false) => (days_later(first, 7 * nth), days_later(first, 7 * nth + 6)),
        (None, false) => (days_later(last, -6), last),
        (Some(nth), true) => (
            days_later(saturday(first), 7 * nth),
            days_later(saturday(first), 7 * nth + 1),
        ),
        (None, true) => (
            saturday(days_later(last, -7)),
            days_later(saturday(days_later(last, -7)), 1),
        ),
    };
    Some((
        of_weekend(checked(from, to, today), is_weekend),
        skip + used,
    ))
}

fn of_weekend(when: When, is_weekend: bool) -> When {
    match when {
        When::Range(from, to) if is_weekend => When::Weekend(from, to),
        when => when,
    }
}

/// `christmas`, `new year's eve`, `easter 2027`.
pub(super) fn holiday(tokens: &[Token], today: Date) -> DateRead {
    type FirstAndDays = fn(i16) -> Option<(Date, i32)>;
    let (of_year, used): (FirstAndDays, _) =
        match (word(tokens, 0)?, word(tokens, 1), word(tokens, 2)) {
            ("christmas" | "xmas", ..) => (|year| Some((Date::new(year, 12, 24).ok()?, 2)), 1),
            ("new", Some("year's" | "years" | "year’s"), Some("eve")) => {
                (|year| Some((Date::new(year, 12, 31).ok()?, 0)), 3)
            }
            ("easter", ..) => (|year| Some((days_later(easter(year)?, -2), 3)), 1),
            _ => return None,
        };
    let year = year_at(tokens, used);
    let years = year.map_or(today.year()..=today.year() + 1, |year| year..=year);
    let ends = |year| of_year(year).map(|(from, days)| (from, days_later(from, days.into())));
    let is_it = |(_, to): &(Date, Date)| year.is_some() || *to >= today;
    let (from, to) = years.filter_map(ends).find(is_it)?;
    Some((checked(from, to, today), used + usize::from(year.is_some())))
}

/// Easter Sunday, by the anonymous Gregorian rule.
fn easter(year: i16) -> Option<Date> {
    let year = i32::from(year);
    let (golden, century, rest) = (year % 19, year / 100, year % 100);
    let epact =
        (19 * golden + century - century / 4 - (century - (century + 8) / 25 + 1) / 3 + 15) % 30;
    let weekday = (32 + 2 * (century % 4) + 2 * (rest / 4) - epact - rest % 4) % 7;
    let late = (golden + 11 * epact + 22 * weekday) / 451;
    let days = epact + weekday - 7 * late + 114;
    let (month, day) = (
        i8::try_from(days / 31).ok()?,
        i8::try_from(days % 31 + 1).ok()?,
    );
    Date::new(i16::try_from(year).ok()?, month, day).ok()
}
