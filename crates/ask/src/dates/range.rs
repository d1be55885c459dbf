//! A day, a month, or a range of them, with or without years.

use jiff::civil::{Date, date};

use super::{DateRead, MAX_DAYS, MONTHS, UNITS, When, month, shown, title, word};
use crate::lexer::{Token, TokenKind, is_one_of};

/// A day or month whose year or day may be left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PartialDate {
    pub(super) year: Option<i16>,
    pub(super) month: i8,
    pub(super) day: Option<i8>,
}

impl PartialDate {
    /// Its first and last day: without a year the next one that does not end before `after`.
    pub(super) fn resolve(self, after: Date) -> Result<(Date, Date), String> {
        let day = self.day.unwrap_or(1);
        let of_year = |year: i16| {
            let first = Date::new(year, self.month, day).ok()?;
            let last = if self.day.is_some() {
                first
            } else {
                first.last_of_month()
            };
            Some((first, last))
        };
        let years = match self.year {
            Some(year) => year..=year,
            // A 29 February may be eight years away.
            None => after.year()..=after.year().saturating_add(8),
        };
        let mut found = years.filter_map(of_year);
        let fits = |(_, last): &(Date, Date)| self.year.is_some() || *last >= after;
        found.find(fits).ok_or_else(|| {
            let name = usize::try_from(self.month - 1)
                .ok()
                .and_then(|at| MONTHS.get(at));
            let name = name.map_or_else(|| format!("Month {}", self.month), |name| title(name));
            format!("{name} has no day {day}; expected a day that exists.")
        })
    }
}

/// One day or month, and how many tokens it takes.
pub(super) fn point(tokens: &[Token]) -> Option<(PartialDate, usize)> {
    let first = tokens.first()?;
    if let TokenKind::Iso(year, month, day) = first.kind {
        let year = Some(year);
        return Some((PartialDate { year, month, day }, 1));
    }
    if let TokenKind::Dotted(day, month, year) = first.kind {
        let day = Some(day);
        return Some((PartialDate { year, month, day }, 1));
    }
    let day_at = |at: usize| day_at(tokens, at);
    let dash = |at: usize| {
        usize::from(
            tokens
                .get(at)
                .is_some_and(|token| token.kind == TokenKind::Dash && token.glued),
        )
    };
    if let Some((day, mut at)) = day_at(0) {
        at += usize::from(word(tokens, at) == Some("of"));
        // `4-mar-2027`.
        at += dash(at);
        let month = month(word(tokens, at)?)?;
        let skip = dash(at + 1);
        let year = year_at(tokens, at + 1 + skip).or_else(|| short_year_at(tokens, at + 1));
        let day = Some(day);
        let used = at + 1 + year.map_or(0, |_| skip + 1);
        return Some((PartialDate { year, month, day }, used));
    }
    let month = month(first.word()?)?;
    let skip = usize::from(word(tokens, 1) == Some("the"));
    let day = day_at(1 + skip).filter(|(_, used)| !is_amount(tokens, 1 + skip + used));
    let mut at = day.map_or(1, |(_, used)| 1 + skip + used);
    if day.is_some()
        && tokens
            .get(at)
            .is_some_and(|token| token.kind == TokenKind::Comma)
        && year_at(tokens, at + 1).is_some()
    {
        at += 1;
    }
    let year = year_at(tokens, at);
    let day = day.map(|(day, _)| day);
    Some((
        PartialDate { year, month, day },
        at + usize::from(year.is_some()),
    ))
}

/// A day of a month, `4` or `4th`.
pub(super) fn day_at(tokens: &[Token], at: usize) -> Option<(i8, usize)> {
    let day = i8::try_from(tokens.get(at)?.whole()?).ok();
    let day = day.filter(|day| (1..=31).contains(day))?;
    let ends = |token: &Token| {
        token.glued
            && token
                .word()
                .is_some_and(|word| ["st", "nd", "rd", "th"].contains(&word))
    };
    Some((day, 1 + usize::from(tokens.get(at + 1).is_some_and(ends))))
}

/// `27` of `4mar27`.
fn short_year_at(tokens: &[Token], at: usize) -> Option<i16> {
    let token = tokens.get(at).filter(|token| token.glued)?;
    let year = token.whole().filter(|year| (20..100).contains(year))?;
    i16::try_from(2_000 + year).ok()
}

pub(super) fn year_at(tokens: &[Token], at: usize) -> Option<i16> {
    let year = tokens.get(at)?.whole()?;
    (2000..=2100)
        .contains(&year)
        .then_some(i16::try_from(year).ok()?)
}

/// Whether a number before this place counts something: `march 3 nights`, `march 3-5 nights`.
fn is_amount(tokens: &[Token], at: usize) -> bool {
    let is_unit = |at: usize| word(tokens, at).is_some_and(|word| is_one_of(word, UNITS));
    let joins =
        |at: usize| is_dash(tokens.get(at)) || matches!(word(tokens, at), Some("or" | "to"));
    is_unit(at)
        || (is_dash(tokens.get(at)) && is_unit(at + 1))
        || (joins(at)
            && tokens
                .get(at + 1)
                .is_some_and(|token| token.whole().is_some())
            && is_unit(at + 2))
}

pub(super) fn is_dash(token: Option<&Token>) -> bool {
    token.is_some_and(|token| token.kind == TokenKind::Dash)
}

/// Whether the token joins the ends of a range.
pub(super) fn joins(token: Option<&Token>) -> bool {
    let is_word = |token: &Token| {
        token
            .word()
            .is_some_and(|word| ["to", "until", "till", "through"].contains(&word))
    };
    is_dash(token) || token.is_some_and(|token| is_word(token) || token.kind == TokenKind::Arrow)
}

/// `march`, `4 march`, `march to may`, `4-14 march`, `march 4 - 14`, `2027-02-04..2027-02-14`.
pub(super) fn range(tokens: &[Token], today: Date) -> DateRead {
    let (first, last, used) = ends(tokens)?;
    let resolved = match last {
        None => first.resolve(today),
        Some(last) => range_of(first, last, today),
    };
    let is_of_days = last.is_some_and(|last| last.day.is_some() && first.day.is_some());
    Some(match resolved {
        Ok((from, to)) => match checked(from, to, today) {
            When::Range(from, to) if is_of_days => (When::FromTo(from, to), used),
            when => (when, used),
        },
        Err(says) => (When::Fault(says, Vec::new()), used),
    })
}

/// The ends of a range as they are written.
fn ends(tokens: &[Token]) -> Option<(PartialDate, Option<PartialDate>, usize)> {
    // `4-14 march`.
    if let Some((day, at)) = day_at(tokens, 0).filter(|(_, at)| joins(tokens.get(*at)))
        && let Some((last, used)) = tokens.get(at + 1..).and_then(point)
        && last.day.is_some()
        && tokens[at + 1].whole().is_some()
    {
        let first = PartialDate {
            day: Some(day),
            ..last
        };
        return Some((first, Some(last), at + 1 + used));
    }
    let (first, used) = point(tokens)?;
    if !joins(tokens.get(used)) {
        return Some((first, None, used));
    }
    let rest = &tokens[used + 1..];
    if let Some((last, more)) = point(rest) {
        return Some((first, Some(last), used + 1 + more));
    }
    // `march 4 - 14`.
    if first.day.is_some()
        && let Some((day, more)) = day_at(rest, 0)
        && !is_amount(rest, more)
    {
        let year = year_at(rest, more);
        let last = PartialDate {
            day: Some(day),
            year: year.or(first.year),
            ..first
        };
        return Some((
            first,
            Some(last),
            used + 1 + more + usize::from(year.is_some()),
        ));
    }
    Some((first, None, used))
}

fn range_of(
    mut first: PartialDate,
    last: PartialDate,
    today: Date,
) -> Result<(Date, Date), String> {
    if let (None, Some(year)) = (first.year, last.year) {
        let is_before =
            (first.month, first.day.unwrap_or(1)) <= (last.month, last.day.unwrap_or(31));
        first.year = Some(if is_before { year } else { year - 1 });
    }
    let (from, _) = first.resolve(today)?;
    let (_, to) = last.resolve(from)?;
    if to < from {
        return Err(format!(
            "{to} is before {from}; expected the earlier date first."
        ));
    }
    Ok((from, to))
}

/// A range from today on that is not too long.
pub(super) fn checked(from: Date, to: Date, today: Date) -> When {
    let says = if to < today {
        format!(
            "{} has passed: today is {today}; expected a date from today on.",
            shown(from, to)
        )
    } else if (to - from).get_days() >= MAX_DAYS {
        format!(
            "{} are more than {MAX_DAYS} days; expected a shorter range.",
            shown(from, to)
        )
    } else if to > date(9000, 1, 1) {
        format!("{to} is too late; expected an earlier date.")
    } else {
        return When::Range(from.max(today), to);
    };
    When::Fault(says, Vec::new())
}
