//! The words of a hotel: `hotel Arts Barcelona`, `hotel "Arts" in Barcelona`, `hotels in Rome`.

use std::ops::Range;

use super::Reader;
use super::draft::HotelWords;
use crate::lexer::{Token, TokenKind};
use crate::{clauses, countries, dates, places};

/// The longest name of a hotel or place, in characters.
const MAX_NAME: usize = 200;
/// The most tokens of an area that is not quoted.
const MAX_AREA_TOKENS: usize = 12;

impl Reader<'_> {
    /// Reads what is asked about: a hotel if the text begins so, else flights.
    pub(super) fn subject(&mut self) {
        let is_kind = |token: &Token| matches!(token.word(), Some("hotel" | "hotels"));
        let Some(first) = self.tokens.iter().position(is_kind) else {
            return;
        };
        let next = self.tokens.get(first + 1).and_then(Token::word);
        let is_of_area = matches!(next, Some("in" | "prices" | "price" | "rates" | "rate"));
        let one = self.tokens[first].word() == Some("hotel") && !is_of_area;
        let after = first + 1;
        self.draft.hotel = Some(HotelWords {
            is_one: one,
            ..HotelWords::default()
        });
        // `Arts Barcelona hotel, 3 march`: the name is before the word.
        let is_name = |token: &Token| token.word().is_some_and(|word| !clauses::is_reserved(word));
        let start = (0..first).find(|at| is_name(&self.tokens[*at]));
        let is_after = after >= self.tokens.len() || self.ends_name(after);
        if let Some(start) = start.filter(|_| one && is_after) {
            self.before_kind(start);
            self.name(start..first);
            // Markets at the end of the name.
            self.before_kind(first);
            self.at = after;
            return;
        }
        self.before_kind(first);
        self.at = after;
        if !one {
            return;
        }
        if let Some(TokenKind::Quoted(name)) = self.rest().first().map(|token| &token.kind) {
            let span = self.take(1);
            self.set_name(name.clone(), span);
            return;
        }
        let end = (self.at..self.tokens.len()).find(|at| self.ends_name(*at));
        let end = end.unwrap_or(self.tokens.len());
        self.name(self.at..end);
    }

    /// What stands before the word for hotels: `all`, `check daily`, `rome`.
    fn before_kind(&mut self, first: usize) {
        let all = self.tokens;
        self.tokens = &all[..first];
        self.is_before_kind = true;
        while self.at < first {
            self.step();
        }
        self.tokens = all;
        self.is_before_kind = false;
    }

    /// Whether the name of a hotel ends before this token.
    fn ends_name(&self, at: usize) -> bool {
        let rest = &self.tokens[at..];
        let is_end = matches!(
            rest[0].kind,
            TokenKind::Comma | TokenKind::Quoted(_) | TokenKind::Iso(..)
        );
        let joins = matches!(
            rest[0].word(),
            Some(
                "in" | "from"
                    | "market"
                    | "markets"
                    | "for"
                    | "cheaper"
                    | "parity"
                    | "arrival"
                    | "arriving"
                    | "check"
                    | "checkin"
            )
        );
        // `3 nigths` is no part of a name.
        let is_like_unit = |word: &str| {
            let like = |unit| strsim::normalized_damerau_levenshtein(word, unit) > 0.6;
            like("nights") || like("adults")
        };
        let is_count = rest[0].whole().is_some()
            && rest.get(1).and_then(Token::word).is_some_and(is_like_unit);
        let is_part = !matches!(
            clauses::part(rest),
            None | Some((clauses::Part::Fault(..), _))
        );
        let is_below = matches!(rest[0].word(), Some("below" | "under"));
        is_end
            || joins
            || is_count
            || is_part
            || is_below
            || dates::when(rest, self.today).is_some()
    }

    /// The tokens of a name, perhaps with markets and a city at their end.
    fn name(&mut self, range: Range<usize>) {
        let (start, mut end) = (range.start, range.end);
        while end > start + 1 && self.is_market_code(end - 1) {
            end -= 1;
        }
        let city = (1..=3)
            .rev()
            .filter(|words| end > start + words)
            .find(|words| {
                let words = self.folded(end - words..end);
                let found = places::named(&words);
                found.iter().any(places::Place::is_city)
            });
        let city = city.unwrap_or(0);
        if start < end - city {
            self.at = start;
            let span = self.take(end - city - start);
            let mut name = titled(&self.text[span.clone()]);
            if !name.is_empty() {
                name.insert_str(0, "Hotel ");
            }
            let kind = start.checked_sub(1).map(|at| &self.tokens[at]);
            let kind = kind.filter(|token| token.word() == Some("hotel"));
            let start = kind.map_or(span.start, |token| token.span.start);
            self.set_name(name, start..span.end);
        }
        if city > 0 {
            self.at = end - city;
            let span = self.take(city);
            self.set_area(titled(&self.text[span.clone()]), span);
        }
        self.at = end.max(start);
    }

    fn folded(&self, range: Range<usize>) -> String {
        let words: Vec<_> = self.tokens[range].iter().filter_map(Token::word).collect();
        words.join(" ")
    }

    fn is_market_code(&self, at: usize) -> bool {
        let word = self.tokens[at].word();
        word.is_some_and(|word| word.len() == 2 && countries::country(word).is_some())
    }

    fn set_name(&mut self, name: String, span: Range<usize>) {
        if name.is_empty() || name.chars().count() > MAX_NAME {
            let says = format!("Expected the name of a hotel, of at most {MAX_NAME} characters.");
            self.refuse(&span, says, Vec::new());
            return;
        }
        if let Some(hotel) = &mut self.draft.hotel {
            hotel.name.value = Some(name);
            hotel.name.spans = vec![span];
        }
    }

    fn set_area(&mut self, area: String, span: Range<usize>) {
        if let Some(hotel) = &mut self.draft.hotel {
            hotel.area.value = Some(area);
            hotel.area.spans = vec![span];
        }
    }

    /// Where a hotel is: a quoted name, or the words up to a comma or another part.
    pub(super) fn area(&mut self) -> bool {
        let Some(hotel) = &self.draft.hotel else {
            return false;
        };
        if hotel.area.value.is_some() {
            return false;
        }
        if let TokenKind::Quoted(area) = &self.tokens[self.at].kind {
            if area.is_empty() {
                return false;
            }
            let area = area.clone();
            let span = self.take(1);
            self.set_area(area, span);
            return true;
        }
        if self.word(0).is_none() {
            return false;
        }
        // Before the word for hotels only a city that is known is one.
        let is_named = hotel.is_one || self.is_before_kind;
        let most = self.tokens.len().min(self.at + MAX_AREA_TOKENS);
        let end = (self.at + 1..most).find(|at| self.ends_name(*at));
        let mut end = end.unwrap_or(most);
        while end > self.at + 1 && self.is_market_code(end - 1) {
            end -= 1;
        }
        let follows_in = self.at > 0 && self.tokens[self.at - 1].word() == Some("in");
        let is_city = places::named(&self.folded(self.at..end))
            .iter()
            .any(places::Place::is_city);
        if is_named && !follows_in && !is_city {
            return false;
        }
        let joint = (self.at..end).find(|at| matches!(self.tokens[*at].word(), Some("and" | "or")));
        if let Some(joint) = joint.filter(|joint| *joint > self.at && joint + 1 < end) {
            let words = |range: Range<usize>| {
                self.text[self.tokens[range.start].span.start..self.tokens[range.end - 1].span.end]
                    .to_owned()
            };
            let choices =
                [words(self.at..joint), words(joint + 1..end)].map(|words| (words.clone(), words));
            let span = self.take(end - self.at);
            self.refuse(
                &span,
                "Hotels are asked for in one city at a time; expected one.",
                choices.to_vec(),
            );
            let text = self.text[span.clone()].to_owned();
            self.set_area(text, span);
            return true;
        }
        let span = self.take(end - self.at);
        self.set_area(titled(&self.text[span.clone()]), span);
        true
    }
}

/// A name as it was written; in small letters with capitals at the beginnings.
fn titled(text: &str) -> String {
    let text = text.replace('"', "");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().any(char::is_uppercase) {
        return text;
    }
    let mut titled = String::with_capacity(text.len());
    let mut is_first = true;
    for c in text.chars() {
        if is_first {
            titled.extend(c.to_uppercase());
        } else {
            titled.push(c);
        }
        is_first = c.is_whitespace();
    }
    titled
}
