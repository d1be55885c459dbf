//! The places of a flight, and the markets of a hotel.

use std::ops::Range;

use super::draft::{Draft, Role};
use super::{MAX_AIRPORTS, Reader};
use crate::answer::Suggestion;
use crate::clauses;
use crate::countries::{self, country_name};
use crate::lexer::TokenKind;
use crate::places::{self, Place};

impl Reader<'_> {
    /// The folded words of the next tokens: of each count the words and the tokens. Dashes inside do
    /// not count.
    fn phrases(&self) -> Vec<(String, usize, usize)> {
        let mut words = String::new();
        let (mut count, mut found) = (0, Vec::new());
        for (ahead, token) in self.rest().iter().enumerate() {
            match &token.kind {
                TokenKind::Word(word) if !word.is_empty() => {
                    if count > 0 {
                        words.push(' ');
                    }
                    words.push_str(word);
                    count += 1;
                    found.push((words.clone(), count, ahead + 1));
                }
                TokenKind::Dash | TokenKind::Sign('.') if token.glued && count > 0 => {}
                _ => break,
            }
            if count == places::MAX_WORDS {
                break;
            }
        }
        found
    }

    /// A city or airport by its name, of at least so many words.
    pub(super) fn place_of(&mut self, least: usize) -> bool {
        if !self.draft.is_flights() {
            return false;
        }
        let phrases = self.phrases();
        let named = phrases.iter().rev().find_map(|(words, count, used)| {
            let candidates = places::named(words);
            let is_long_enough = *count >= least && !(*count == 1 && clauses::is_reserved(words));
            (is_long_enough && !candidates.is_empty()).then_some((candidates, *used))
        });
        let Some((candidates, used)) = named else {
            return false;
        };
        let start = self.tokens[self.at].span.start;
        self.take(used);
        let (qualified, more) = self.qualified(candidates);
        if more > 0 {
            self.take(more);
        }
        let span = start..self.tokens[self.at - 1].span.end;
        if !places::is_clear(&qualified) {
            let says = format!("{} places have this name; which one?", qualified.len());
            let choices = qualified
                .iter()
                .take(6)
                .map(|place| (option(place), place.words()));
            let choices = choices.collect();
            self.refuse(&span, says, choices);
            self.draft.is_refused_place = true;
            return true;
        }
        let others = qualified[1..].iter().take(3).map(|other| Suggestion {
            text: option(other),
            question: self.replaced(&span, &other.words()),
        });
        let others = others.collect();
        self.add_place(qualified[0].clone(), span, others);
        true
    }

    /// Those of several places that the country or region after their name means.
    fn qualified(&self, candidates: &[Place]) -> (Vec<Place>, usize) {
        let comma = self
            .rest()
            .first()
            .is_some_and(|token| token.kind == TokenKind::Comma);
        let skip = usize::from(comma);
        let mut ahead = Self {
            tokens: self.tokens,
            at: self.at + skip,
            draft: Draft::default(),
            refusals: Vec::new(),
            fixes: Vec::new(),
            ..*self
        };
        ahead.at = ahead.at.min(self.tokens.len());
        for (words, _, used) in ahead.phrases().iter().rev() {
            if clauses::is_filler(words) {
                continue;
            }
            let country = countries::country(words);
            let fits = |place: &&Place| {
                let region = place.region.map(countries::folded_words);
                Some(place.country) == country || region.as_ref() == Some(words)
            };
            let fitting: Vec<Place> = candidates.iter().filter(fits).cloned().collect();
            if !fitting.is_empty() {
                return (fitting, skip + used);
            }
        }
        (candidates.to_vec(), 0)
    }

    fn add_place(&mut self, place: Place, span: Range<usize>, choices: Vec<Suggestion>) {
        if self.draft.airports() + place.airports.len() > 2 * MAX_AIRPORTS {
            self.refuse(
                &span,
                format!("Expected at most {MAX_AIRPORTS} airports."),
                Vec::new(),
            );
            return;
        }
        self.draft.add_place(place, span, choices, self.text);
    }

    /// A code in capitals while places are missing, or right after one: `MAR` is Maracaibo then, and March
    /// later.
    pub(super) fn capital_code(&mut self) -> bool {
        let follows = self
            .at
            .checked_sub(1)
            .map(|before| self.tokens[before].span.end);
        let follows = follows.is_some_and(|end| self.draft.last_place_ends_at(end));
        let is_place = self.draft.is_incomplete() || self.is_in_list() || follows;
        self.tokens[self.at].capitals && is_place && self.code()
    }

    /// Whether `or` or a comma after a place is before the next token.
    fn is_in_list(&self) -> bool {
        let Some([place, joint]) = self
            .at
            .checked_sub(2)
            .and_then(|at| self.tokens.get(at..at + 2))
        else {
            return false;
        };
        let joins = match &joint.kind {
            TokenKind::Word(word) => word == "or" || word == "and",
            TokenKind::Sign(sign) => "/&".contains(*sign),
            TokenKind::Comma => self.draft.role != Role::Unsaid,
            _ => false,
        };
        joins && self.draft.last_place_ends_at(place.span.end)
    }

    /// A code of an airport or city.
    pub(super) fn code(&mut self) -> bool {
        let token = &self.tokens[self.at];
        let written = &self.text[token.span.clone()];
        let is_code = written.len() == 3 && written.bytes().all(|byte| byte.is_ascii_alphabetic());
        let Some(word) = token.word().filter(|_| is_code && self.draft.is_flights()) else {
            return false;
        };
        if !token.capitals && clauses::is_reserved(word) {
            return false;
        }
        // In small letters it may be any word.
        if !token.capitals && !self.draft.is_incomplete() && !self.is_in_list() {
            return false;
        }
        let code = word.to_ascii_uppercase();
        let place = places::coded(&code).or_else(|| {
            // Small airports are known by their code in capitals only.
            let is_known = token.capitals && places::exists(&code);
            is_known.then(|| Place::of_code(&code)).flatten()
        });
        let Some(place) = place else {
            return false;
        };
        let span = self.take(1);
        self.add_place(place, span, Vec::new());
        true
    }

    /// A country: a market of a hotel; of flights it is refused with its airports.
    pub(super) fn market(&mut self) -> bool {
        if matches!(self.word(0), Some("market" | "markets")) {
            self.take(1);
            if self.draft.is_flights() {
                let span = self.tokens[self.at - 1].span.clone();
                self.refuse(&span, "Markets are compared for hotels only.", Vec::new());
            }
            // `IN` is India here.
            while let Some((country, span)) = self.capital_country() {
                self.draft.add_market(country, span);
            }
            return true;
        }
        let phrases = self.phrases();
        let found = phrases.iter().rev().find_map(|(words, _, used)| {
            let country = countries::country(words)?;
            // A city's own name comes first: Singapore, Luxembourg.
            let is_place = self.draft.is_flights() && !places::named(words).is_empty();
            (!is_place).then_some((country, *used))
        });
        let Some((country, used)) = found else {
            return false;
        };
        // Three letters are the code of an airport first.
        let is_code = used == 1 && self.word(0).is_some_and(|word| word.len() == 3);
        if self.draft.is_flights()
            && is_code
            && places::airport_of(&self.word(0).unwrap_or_default().to_ascii_uppercase()).is_some()
        {
            return false;
        }
        let span = self.take(used);
        if self.draft.is_flights() {
            self.refuse_country(country, &span);
        } else {
            self.draft.add_market(country, span);
        }
        true
    }

    /// The country of a code of two capitals.
    fn capital_country(&mut self) -> Option<(&'static str, Range<usize>)> {
        let token = self.tokens.get(self.at).filter(|token| token.capitals)?;
        let word = token.word().filter(|word| word.len() == 2)?;
        let country = countries::country(word)?;
        Some((country, self.take(1)))
    }

    fn refuse_country(&mut self, country: &'static str, span: &Range<usize>) {
        let says = format!(
            "{} is a country; expected a city or an airport.",
            country_name(country)
        );
        let large = places::of_country(country);
        let choices = large
            .iter()
            .take(4)
            .map(|place| (place.text(), place.words()));
        let choices = choices.collect();
        self.refuse(span, says, choices);
        self.draft.is_refused_place = true;
    }
}

/// `Portland, Oregon (PDX)`.
fn option(place: &Place) -> String {
    format!("{} ({})", place.full_name(), place.airports.join(", "))
}
