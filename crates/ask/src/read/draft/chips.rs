//! What was understood, as chips.

use std::ops::Range;

use super::{Draft, HotelWords, Mention};
use crate::answer::{Chip, ChipKind, Suggestion};
use crate::countries::{country_name, currency_name};
use crate::dates;
use crate::places::listed;
use crate::question::{channel_word, nights_text, stops_text, travellers_text};
use crate::read::Reader;

impl Draft {
    /// What was understood.
    pub(in crate::read) fn chips(&self, reader: &Reader<'_>) -> Vec<Chip> {
        let mut chips = ChipList {
            text: reader.text,
            chips: Vec::new(),
        };
        match &self.hotel {
            None => self.flight_chips(reader, &mut chips),
            Some(hotel) => hotel.chips(&mut chips),
        }
        if let Some((from, to)) = self.dates(reader.today) {
            let spans = [self.dates.spans.as_slice(), &self.year.spans].concat();
            chips.push(ChipKind::Dates, dates::shown(from, to), &spans);
            if let Some(chip) = chips.chips.last_mut() {
                chip.choices.clone_from(&self.date_choices);
            }
        }
        if !self.weekdays.value.is_empty() {
            let days: Vec<_> = self.weekdays.value.iter().map(|day| day.as_str()).collect();
            chips.push(
                ChipKind::Weekdays,
                format!("only {}", days.join(", ")),
                &self.weekdays.spans,
            );
        }
        let nights = self.nights_or_default();
        if nights.is_empty() {
            chips.push(ChipKind::Nights, "one way".to_owned(), &self.one_way.spans);
        } else {
            let trip = if self.is_flights() {
                "round trip, "
            } else {
                ""
            };
            let spans = [self.nights.spans.as_slice(), &self.one_way.spans].concat();
            chips.push(
                ChipKind::Nights,
                format!("{trip}{}", nights_text(&nights)),
                &spans,
            );
        }
        let adults = self
            .adults
            .value
            .unwrap_or(if self.is_flights() { 1 } else { 2 });
        let travellers = travellers_text(adults, self.children.value.unwrap_or(0));
        let spans = [self.adults.spans.as_slice(), &self.children.spans].concat();
        chips.push(ChipKind::Travellers, travellers, &spans);
        let code = self.currency.value.unwrap_or("USD");
        chips.push(
            ChipKind::Currency,
            format!("{code}, {}", currency_name(code)),
            &self.currency.spans,
        );
        if let Some(below) = self.below.value {
            chips.push(
                ChipKind::Below,
                format!("below {below} {code}"),
                &self.below.spans,
            );
        }
        if let Some(checks) = self.checks.value {
            chips.push(ChipKind::Checks, checks.words(), &self.checks.spans);
        }
        if let Some(kind) = self.via.value {
            chips.push(
                ChipKind::Via,
                channel_word(kind).to_owned(),
                &self.via.spans,
            );
        }
        chips.chips.sort_by_key(|chip| chip.kind);
        chips.chips
    }

    fn flight_chips(&self, reader: &Reader<'_>, chips: &mut ChipList<'_>) {
        let [from, to] = self.ends();
        for (kind, end) in [(ChipKind::From, from), (ChipKind::To, to)] {
            for mention in end {
                let text = mention.place.text();
                chips.push(kind, text, std::slice::from_ref(&mention.span));
                if let Some(chip) = chips.chips.last_mut() {
                    chip.choices.clone_from(&mention.choices);
                    chip.alone = alone(reader, mention);
                }
            }
        }
        if let Some(stops) = self.stops.value {
            chips.push(ChipKind::Stops, stops_text(stops), &self.stops.spans);
        }
        if let Some(cabin) = self.cabin.value {
            chips.push(ChipKind::Cabin, cabin.word().to_owned(), &self.cabin.spans);
        }
    }
}

/// Each airport of a city that has several, with its code in place of the words.
fn alone(reader: &Reader<'_>, mention: &Mention) -> Vec<Suggestion> {
    let codes = mention.place.airports.iter();
    let codes = codes.filter(|_| mention.place.airports.len() > 1);
    let alone = codes.map(|code| Suggestion {
        text: (*code).to_owned(),
        question: reader.replaced(&mention.span, code),
    });
    alone.collect()
}

impl HotelWords {
    fn chips(&self, chips: &mut ChipList<'_>) {
        if let Some(name) = &self.name.value {
            chips.push(ChipKind::Hotel, name.clone(), &self.name.spans);
        }
        if let Some(area) = &self.area.value {
            let all = if self.name.value.is_none() {
                "all hotels of "
            } else {
                ""
            };
            chips.push(ChipKind::Area, format!("{all}{area}"), &self.area.spans);
        }
        let named = |code: &&'static str| format!("{code} {}", country_name(code));
        let markets: Vec<_> = self.markets.value.iter().map(named).collect();
        let text = if markets.is_empty() {
            "worldwide".to_owned()
        } else {
            listed(&markets).replace(" or ", " and ")
        };
        chips.push(ChipKind::Markets, text, &self.markets.spans);
    }
}

/// The chips of a text.
struct ChipList<'a> {
    text: &'a str,
    chips: Vec<Chip>,
}

impl ChipList<'_> {
    fn push(&mut self, kind: ChipKind, text: String, spans: &[Range<usize>]) {
        let words = spans.iter().map(|span| &self.text[span.clone()]);
        let words: Vec<_> = words.collect();
        self.chips.push(Chip {
            kind,
            text,
            words: (!words.is_empty()).then(|| words.join(", ")),
            choices: Vec::new(),
            alone: Vec::new(),
        });
    }
}
