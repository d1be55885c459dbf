//! What was read so far.

mod chips;

use std::ops::Range;

use farescan_contract::channels::ChannelKind;
use farescan_contract::scans::Weekday;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::SAID_BEFORE;
use crate::answer::Suggestion;
use crate::clauses::Part;
use crate::places::Place;
use crate::question::{Checks, Question, QuestionSubject, SeatClass};

/// A value with the places of its words in the text.
#[derive(Debug, Default)]
pub(super) struct Said<T> {
    pub(super) value: T,
    pub(super) spans: Vec<Range<usize>>,
}

impl<T> Said<Option<T>> {
    /// Sets it once.
    pub(super) fn set(&mut self, value: T, span: Range<usize>) -> bool {
        self.spans.push(span);
        self.value.replace(value).is_none()
    }
}

/// Which end of a flight follows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing said so.
    #[default]
    Unsaid,
    From,
    To,
}

/// How the range of the dates was said.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeKind {
    #[default]
    Other,
    /// As a weekend.
    Weekend,
    /// By its first and its last day.
    FromTo,
}

/// A place of a flight.
#[derive(Debug)]
pub(super) struct Mention {
    place: Place,
    span: Range<usize>,
    role: Role,
    choices: Vec<Suggestion>,
}

/// What a hotel question is about.
#[derive(Debug, Default)]
pub(super) struct HotelWords {
    /// Whether one hotel is meant, so that its name is needed.
    pub(super) is_one: bool,
    /// `None`: the hotels of the area.
    pub(super) name: Said<Option<String>>,
    pub(super) area: Said<Option<String>>,
    pub(super) markets: Said<Vec<&'static str>>,
}

#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) hotel: Option<HotelWords>,
    mentions: Vec<Mention>,
    pub(super) role: Role,
    pub(super) dates: Said<Option<(Date, Date)>>,
    pub(super) weekdays: Said<Vec<Weekday>>,
    pub(super) range: RangeKind,
    pub(super) back: Said<Option<Date>>,
    /// What the words of the dates could mean as well.
    pub(super) date_choices: Vec<Suggestion>,
    pub(super) year: Said<Option<i16>>,
    nights: Said<Option<Vec<u16>>>,
    one_way: Said<Option<bool>>,
    adults: Said<Option<u32>>,
    children: Said<Option<u32>>,
    stops: Said<Option<u32>>,
    cabin: Said<Option<SeatClass>>,
    currency: Said<Option<&'static str>>,
    below: Said<Option<Decimal>>,
    checks: Said<Option<Checks>>,
    via: Said<Option<ChannelKind>>,
    /// Whether a place or a date was refused, so that it is not missing as well.
    pub(super) is_refused_place: bool,
    pub(super) is_refused_date: bool,
}

impl Draft {
    pub(super) const fn is_flights(&self) -> bool {
        self.hotel.is_none()
    }

    /// Whether an end of a flight is not said yet.
    pub(super) fn is_incomplete(&self) -> bool {
        let is_open = self.role != Role::Unsaid
            && self
                .mentions
                .last()
                .is_none_or(|last| last.role != self.role);
        self.is_flights() && (self.mentions.len() < 2 || is_open)
    }

    pub(super) const fn has_nights(&self) -> bool {
        self.nights.value.is_some() || matches!(self.one_way.value, Some(true))
    }

    pub(super) const fn is_round_trip(&self) -> bool {
        matches!(self.one_way.value, Some(false))
    }

    pub(super) fn last_place_ends_at(&self, end: usize) -> bool {
        self.mentions
            .last()
            .is_some_and(|mention| mention.span.end == end)
    }

    pub(super) fn airports(&self) -> usize {
        self.mentions
            .iter()
            .map(|mention| mention.place.airports.len())
            .sum()
    }

    /// `to` and the arrow: what was said before is where it begins.
    pub(super) fn begin_destinations(&mut self) {
        for mention in &mut self.mentions {
            if mention.role == Role::Unsaid {
                mention.role = Role::From;
            }
        }
        self.role = Role::To;
    }

    /// Of three or more places of which nothing says where it begins: `WAW/KRK - DUB`, where one gap is not
    /// that of a list.
    pub(super) fn split_lists(&mut self, text: &str) {
        let is_joined = |pair: &[Mention]| {
            let between = text[pair[0].span.end..pair[1].span.start].to_lowercase();
            let joints = [",", "or", ", or", "and", ", and", "/", "&"];
            joints.contains(&between.trim())
        };
        let gaps: Vec<_> = self.mentions.windows(2).map(is_joined).collect();
        let is_unsaid = self
            .mentions
            .iter()
            .all(|mention| mention.role == Role::Unsaid);
        let mut splits = gaps
            .iter()
            .enumerate()
            .filter(|(_, is_joined)| !**is_joined);
        let (Some((split, _)), None) = (splits.next(), splits.next()) else {
            return;
        };
        if is_unsaid && self.mentions.len() > 2 {
            for (at, mention) in self.mentions.iter_mut().enumerate() {
                mention.role = if at <= split { Role::From } else { Role::To };
            }
        }
    }

    /// Adds a place. An airport right after its city is that airport alone: `Paris CDG`, `london (stansted)`.
    pub(super) fn add_place(
        &mut self,
        place: Place,
        mut span: Range<usize>,
        choices: Vec<Suggestion>,
        text: &str,
    ) {
        let role = self.role;
        let narrowed = self.mentions.pop_if(|last| {
            let between = text[last.span.end..span.start].trim();
            let is_in_it = place
                .airports
                .iter()
                .all(|code| last.place.airports.contains(code));
            ["", "("].contains(&between) && last.place.airports.len() > 1 && is_in_it
        });
        if let Some(city) = narrowed {
            span.start = city.span.start;
        }
        self.mentions.push(Mention {
            place,
            span,
            role,
            choices,
        });
    }

    pub(super) fn add_market(&mut self, country: &'static str, span: Range<usize>) {
        if let Some(hotel) = &mut self.hotel {
            if !hotel.markets.value.contains(&country) {
                hotel.markets.value.push(country);
            }
            hotel.markets.spans.push(span);
        }
    }

    /// Adds a part. The error says why it does not fit.
    pub(super) fn add(&mut self, part: Part, span: Range<usize>) -> Result<(), String> {
        let flights = self.is_flights();
        let of_flights = matches!(
            part,
            Part::MaxStops(_) | Part::Cabin(_) | Part::OneWay | Part::RoundTrip
        );
        if of_flights && !flights {
            return Err("This is for flights only.".to_owned());
        }
        let is_new = match part {
            Part::Fault(..) => true,
            Part::Below(price, currency) => {
                let is_new = currency.is_none_or(|code| self.currency.set(code, span.clone()));
                self.below.set(price, span) && is_new
            }
            Part::Nights(nights) => self.nights.set(nights, span),
            Part::Adults(number) => self.adults.set(number, span),
            Part::Children(number) => self.children.set(number, span),
            Part::MaxStops(number) => self.stops.set(number, span),
            Part::Cabin(cabin) => self.cabin.set(cabin, span),
            Part::OneWay => self.one_way.set(true, span),
            Part::RoundTrip => self.one_way.set(false, span),
            Part::Currency(code) => self.currency.set(code, span),
            Part::Checks(checks) => self.checks.set(checks, span),
            Part::Each(day) if flights => {
                self.weekdays.value.push(day);
                self.weekdays.spans.push(span);
                true
            }
            Part::Each(day) => self.checks.set(Checks::Weekly(day), span),
            Part::Via(kind) => self.via.set(kind, span),
        };
        if is_new {
            Ok(())
        } else {
            Err(SAID_BEFORE.to_owned())
        }
    }

    /// The two ends of a flight.
    fn ends(&self) -> [Vec<&Mention>; 2] {
        let of = |role: Role| {
            self.mentions
                .iter()
                .filter(move |mention| mention.role == role)
        };
        let unsaid: Vec<_> = of(Role::Unsaid).collect();
        let (mut from, mut to): (Vec<_>, Vec<_>) =
            (of(Role::From).collect(), of(Role::To).collect());
        match (from.is_empty(), to.is_empty(), unsaid.as_slice()) {
            (true, true, [one, other]) => (from, to) = (vec![*one], vec![*other]),
            (true, true, [one]) => from = vec![*one],
            (true, false, unsaid) => from.extend(unsaid),
            (_, true, unsaid) => to.extend(unsaid),
            _ => {}
        }
        [from, to]
    }

    fn codes(mentions: &[&Mention]) -> Vec<String> {
        let mut codes: Vec<String> = Vec::new();
        for code in mentions.iter().flat_map(|mention| &mention.place.airports) {
            if !codes.iter().any(|known| known == code) {
                codes.push((*code).to_owned());
            }
        }
        codes
    }

    fn nights_or_default(&self) -> Vec<u16> {
        match (&self.nights.value, &self.hotel) {
            (Some(nights), _) => nights.clone(),
            (None, Some(_)) => vec![if self.range == RangeKind::Weekend {
                2
            } else {
                1
            }],
            (None, None) => Vec::new(),
        }
    }

    /// Its dates. A weekend of a hotel is its Friday, for two nights.
    fn dates(&self, today: Date) -> Option<(Date, Date)> {
        let (from, to) = self.dates.value?;
        if self.range == RangeKind::Weekend
            && self.nights.value.is_none()
            && !self.is_flights()
            && self.weekdays.value.is_empty()
        {
            let friday = from.yesterday().unwrap_or(from);
            let is_saturday = from.weekday() == jiff::civil::Weekday::Saturday;
            let day = if is_saturday { friday.max(today) } else { from };
            return Some((day, day));
        }
        Some((from, to))
    }

    /// What is missing or does not fit: what it is, and words that could be added.
    pub(super) fn faults(&self) -> Vec<(String, Vec<&'static str>)> {
        let mut faults = Vec::new();
        let mut fault =
            |says: &str, add: &[&'static str]| faults.push((says.to_owned(), add.to_vec()));
        if self.is_flights() && !self.is_refused_place {
            let ends = self.ends();
            let [from, to] = ends.each_ref().map(|end| Self::codes(end));
            let unsaid = self
                .mentions
                .iter()
                .filter(|mention| mention.role == Role::Unsaid)
                .count();
            match (from.is_empty(), to.is_empty()) {
                _ if unsaid > 2 => fault(
                    "More than two places are named; expected `→` or `to` between the two ends.",
                    &[],
                ),
                (true, true) => fault(
                    "No place is named; expected two cities or airports, such as `tel aviv london`.",
                    &[],
                ),
                (true, false) => fault(
                    "Where does it begin? Expected a city or an airport before `→`.",
                    &[],
                ),
                (false, true) => fault("Where does it go? Expected a second city or airport.", &[]),
                _ if from.iter().any(|code| to.contains(code)) => {
                    fault("Both ends have the same airport; expected two places.", &[]);
                }
                _ => {}
            }
        }
        if self.dates.value.is_none() && !self.is_refused_date {
            fault(
                "When? Expected a month, a date or a range.",
                &["next weekend", "next month", "next 30 days"],
            );
        }
        match (self.one_way.value, &self.nights.value) {
            (Some(false), None) if self.range != RangeKind::FromTo => fault(
                "A round trip needs the nights until the return.",
                &["7 nights"],
            ),
            (Some(true), Some(_)) => fault("One way has no nights; expected one of the two.", &[]),
            _ => {}
        }
        faults
    }

    /// The question; `None` while a part is missing.
    pub(super) fn question(&self, today: Date) -> Option<Question> {
        let (from, to) = self.dates(today)?;
        let subject = match &self.hotel {
            None => {
                let ends = self.ends();
                let [from, to] = ends.each_ref().map(|end| Self::codes(end));
                if from.is_empty() || to.is_empty() {
                    return None;
                }
                let (max_stops, cabin) = (self.stops.value, self.cabin.value);
                QuestionSubject::Flights {
                    from,
                    to,
                    max_stops,
                    cabin,
                }
            }
            Some(HotelWords {
                name,
                area,
                markets,
                ..
            }) => {
                let markets = markets.value.clone();
                match (&name.value, &area.value) {
                    (Some(name), area) => QuestionSubject::Hotel {
                        name: name.clone(),
                        area: area.clone(),
                        markets,
                    },
                    (None, Some(area)) => QuestionSubject::Hotels {
                        destination: area.clone(),
                        markets,
                    },
                    (None, None) => return None,
                }
            }
        };
        let adults = if self.is_flights() { 1 } else { 2 };
        Some(Question {
            subject,
            from,
            to,
            weekdays: self.weekdays.value.clone(),
            nights: self.nights_or_default(),
            adults: self.adults.value.unwrap_or(adults),
            children: self.children.value.unwrap_or(0),
            currency: self.currency.value.unwrap_or("USD"),
            below: self.below.value,
            checks: self.checks.value,
            via: self.via.value,
        })
    }
}
