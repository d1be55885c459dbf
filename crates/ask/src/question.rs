//! A question, and its words.

use std::fmt::{self, Write as _};

use farescan_contract::channels::ChannelKind;
use farescan_contract::scans::Weekday;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::dates::{next_days, title};

/// Searches of each market that is compared: the fewest that tell a difference from chance (guide on rate parity).
pub(crate) const SAMPLES: u8 = 3;

/// The most routes whose known prices are read: no city has more than six airports (`metros.tsv`).
pub const MOST_KNOWN_ROUTES: usize = 36;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub subject: QuestionSubject,
    /// The first and the last day of departure or check-in.
    pub from: Date,
    pub to: Date,
    /// Only these days of the week; empty: all.
    pub weekdays: Vec<Weekday>,
    /// Lengths of stay. Of flights empty: one way.
    pub nights: Vec<u16>,
    pub adults: u32,
    pub children: u32,
    /// ISO 4217.
    pub currency: &'static str,
    /// The price below which an answer is wanted.
    pub below: Option<Decimal>,
    /// How often a watch looks; `None`: nothing was said.
    pub checks: Option<Checks>,
    /// Which kind of channels hear of a watch; `None`: all.
    pub via: Option<ChannelKind>,
}

/// How often a watch looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    Daily,
    /// Each week on this day.
    Weekly(Weekday),
}

impl Checks {
    /// `each day`, `each Monday`.
    pub fn words(self) -> String {
        match self {
            Self::Daily => "each day".to_owned(),
            Self::Weekly(day) => format!("each {}", title(Weekday::NAMES[day as usize])),
        }
    }

    /// The first day after this one on which it looks.
    pub(crate) fn first_day(self, today: Date) -> Date {
        let tomorrow = today.tomorrow().unwrap_or(today);
        match self {
            Self::Daily => tomorrow,
            Self::Weekly(day) => next_days(&[day], tomorrow).0,
        }
    }

    /// What a number of requests is for: `a day`.
    pub const fn each(self) -> &'static str {
        match self {
            Self::Daily => "a day",
            Self::Weekly(_) => "a week",
        }
    }

    /// At 06:00.
    pub(crate) fn cron(self) -> String {
        match self {
            Self::Daily => "0 6 * * *".to_owned(),
            Self::Weekly(day) => format!("0 6 * * {}", day.as_str()),
        }
    }

    /// In the longest month.
    pub(crate) const fn runs_of_month(self) -> u32 {
        match self {
            Self::Daily => 31,
            Self::Weekly(_) => 5,
        }
    }
}

/// The word of a kind of channel.
pub(crate) const fn channel_word(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Ntfy => "phone",
        ChannelKind::Slack => "Slack",
        ChannelKind::Email => "mail",
        ChannelKind::Apprise => "Telegram",
    }
}

/// What is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionSubject {
    /// Between each of these airports and each of those.
    Flights {
        from: Vec<String>,
        to: Vec<String>,
        max_stops: Option<u32>,
        cabin: Option<SeatClass>,
    },
    /// One hotel by its name.
    Hotel {
        name: String,
        area: Option<String>,
        markets: Vec<&'static str>,
    },
    /// The hotels of a place.
    Hotels {
        destination: String,
        markets: Vec<&'static str>,
    },
}

/// A cabin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeatClass {
    Economy,
    Business,
}

impl SeatClass {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Economy => "economy",
            Self::Business => "business",
        }
    }
}

impl Question {
    /// Words that are read as this question again, with no default left out.
    pub fn words(&self) -> String {
        self.to_string()
    }

    /// The days of departure or check-in, in order.
    pub fn dates(&self) -> impl Iterator<Item = Date> {
        let is_wanted = |day: &Date| {
            let is_one = |one: &Weekday| jiff::civil::Weekday::from(*one) == day.weekday();
            self.weekdays.is_empty() || self.weekdays.iter().any(is_one)
        };
        let days = self.from.series(jiff::Span::new().days(1));
        days.take_while(|day| *day <= self.to).filter(is_wanted)
    }

    /// How many searches it makes: those of each airport, date, stay, market and sample.
    pub fn searches(&self) -> u64 {
        let each = match &self.subject {
            QuestionSubject::Flights { from, to, .. } => from.len() * to.len(),
            QuestionSubject::Hotel { markets, .. } | QuestionSubject::Hotels { markets, .. } => {
                markets.len().max(1)
            }
        };
        let samples = if self.compares_markets() { SAMPLES } else { 1 };
        (self.dates().count() * each * self.nights.len().max(1)) as u64 * u64::from(samples)
    }

    /// Whether it compares one hotel in several markets.
    pub const fn compares_markets(&self) -> bool {
        match &self.subject {
            QuestionSubject::Hotel { markets, .. } => markets.len() > 1,
            _ => false,
        }
    }

    /// How often a watch of it looks.
    pub fn watch_checks(&self) -> Checks {
        self.checks.unwrap_or(if self.compares_markets() {
            Checks::Weekly(Weekday::Monday)
        } else {
            Checks::Daily
        })
    }

    /// The airports of each route; none of a hotel.
    pub fn routes(&self) -> impl Iterator<Item = (&str, &str)> {
        let ends: (&[String], &[String]) = match &self.subject {
            QuestionSubject::Flights { from, to, .. } => (from, to),
            _ => (&[], &[]),
        };
        let (from, to) = ends;
        from.iter()
            .flat_map(move |from| to.iter().map(move |to| (from.as_str(), to.as_str())))
    }

    /// Whether it is about flights.
    pub const fn is_of_flights(&self) -> bool {
        matches!(self.subject, QuestionSubject::Flights { .. })
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            QuestionSubject::Flights { from, to, .. } => {
                write!(f, "{} → {}", from.join(" or "), to.join(" or "))?;
            }
            QuestionSubject::Hotel { name, area, .. } => {
                write!(f, "hotel \"{name}\"")?;
                if let Some(area) = area {
                    write!(f, " in \"{area}\"")?;
                }
            }
            QuestionSubject::Hotels { destination, .. } => {
                write!(f, "hotels in \"{destination}\"")?;
            }
        }
        write!(f, ", {}", self.from)?;
        if self.to != self.from {
            write!(f, " to {}", self.to)?;
        }
        if !self.weekdays.is_empty() {
            let days: Vec<_> = self.weekdays.iter().map(|day| day.as_str()).collect();
            write!(f, ", {}", days.join(" "))?;
        }
        match (self.nights.is_empty(), &self.subject) {
            (true, _) => f.write_str(", one way")?,
            (false, _) => write!(f, ", {}", nights_text(&self.nights))?,
        }
        write!(f, ", {}", travellers_text(self.adults, self.children))?;
        self.write_options(f)?;
        write!(f, ", {}", self.currency)?;
        if let Some(below) = self.below {
            write!(f, ", below {below}")?;
        }
        if let Some(checks) = self.checks {
            write!(f, ", check {}", checks.words())?;
        }
        match self.via {
            Some(kind) => write!(f, ", by {}", channel_word(kind)),
            None => Ok(()),
        }
    }
}

impl Question {
    fn write_options(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            QuestionSubject::Flights {
                max_stops, cabin, ..
            } => {
                if let Some(stops) = max_stops {
                    write!(f, ", {}", stops_text(*stops))?;
                }
                cabin.map_or(Ok(()), |cabin| write!(f, ", {}", cabin.word()))
            }
            QuestionSubject::Hotel { markets, .. } | QuestionSubject::Hotels { markets, .. } => {
                if markets.is_empty() {
                    return Ok(());
                }
                write!(f, ", markets {}", markets.join(" "))
            }
        }
    }
}

/// `3 nights`, `7 or 10 nights`.
pub(crate) fn nights_text(nights: &[u16]) -> String {
    if nights == [1] {
        return "1 night".to_owned();
    }
    let each: Vec<_> = nights.iter().map(u16::to_string).collect();
    let is_run = nights.len() > 2 && nights.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match (each.first(), each.last()) {
        (Some(first), Some(last)) if is_run => format!("{first}-{last} nights"),
        _ => format!("{} nights", each.join(" or ")),
    }
}

/// `2 adults and 1 child`.
pub(crate) fn travellers_text(adults: u32, children: u32) -> String {
    let mut text = format!("{adults} adult{}", if adults == 1 { "" } else { "s" });
    if children > 0 {
        let word = if children == 1 { "child" } else { "children" };
        _ = write!(text, " and {children} {word}");
    }
    text
}

/// `nonstop`, `1 stop`.
pub(crate) fn stops_text(stops: u32) -> String {
    match stops {
        0 => "nonstop".to_owned(),
        1 => "1 stop".to_owned(),
        more => format!("{more} stops"),
    }
}
