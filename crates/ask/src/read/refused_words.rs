//! Words that are not read, and what is missing.

use super::Reader;
use crate::answer::{RefusedWords, Suggestion};
use crate::lexer::TokenKind;
use crate::{clauses, countries, dates, places};

/// The most unknown words for which names are looked for, which takes time.
const MAX_SUGGESTED: usize = 4;
/// The least likeness of a word of the grammar that is suggested.
const MIN_LIKENESS: f64 = 0.7;
/// Words of the grammar that are suggested.
const WORDS: &str = "january february march april may june july august september october november december \
    monday tuesday wednesday thursday friday saturday sunday tomorrow weekend below under \
    nights adults children nonstop direct business economy markets weekends return hotel hotels \
    check every email phone class round trip daily weekly easter christmas";

impl Reader<'_> {
    /// Refuses the next word, and those after it that are unknown with it.
    pub(super) fn unknown(&mut self) {
        let first = self.at;
        let token = &self.tokens[first];
        if matches!(token.word(), Some("hotel" | "hotels")) {
            let span = self.take(1);
            let says = "The word for hotels comes first; expected `hotel NAME, dates`.";
            self.refuse(&span, says, Vec::new());
            return;
        }
        if matches!(token.word(), Some("book" | "buy" | "reserve" | "cancel")) {
            let span = self.take(1);
            let says =
                "Nothing is booked here: this says what a trip costs, and links to the offer.";
            self.refuse(
                &span,
                says,
                vec![("what it costs".to_owned(), String::new())],
            );
            return;
        }
        let is_word = |at: usize| self.tokens.get(at).and_then(|token| token.word());
        let is_unknown = |at: usize| {
            is_word(at).is_some_and(|word| {
                !clauses::is_reserved(word)
                    && places::named(word).is_empty()
                    && countries::country(word).is_none()
                    && places::airport_of(&word.to_ascii_uppercase()).is_none()
            })
        };
        let mut count = 1;
        if is_word(first).is_some() {
            while count < 3 && is_unknown(first + count) {
                count += 1;
            }
        }
        let is_text = matches!(token.kind, TokenKind::Word(_));
        let is_code = count == 1 && token.capitals && self.text[token.span.clone()].len() == 3;
        let mut choices = Vec::new();
        if is_text && self.suggested < MAX_SUGGESTED {
            self.suggested += 1;
            // Two words may be one name, or two that are wrong.
            choices = self.suggestions(first, count);
            while choices.is_empty() && count > 1 {
                count -= 1;
                choices = self.suggestions(first, count);
            }
        }
        let span = self.take(count);
        let says = if is_code && self.draft.is_flights() {
            "No airport or city has this code."
        } else if is_text {
            "These words are not known."
        } else {
            "This sign has no meaning here."
        };
        // What is like a date is the date that would be missing, and all else the place.
        let is_date = |choice: &(String, String)| dates::is_date_word(&choice.1);
        let draft = &mut self.draft;
        if choices.iter().any(is_date) {
            draft.is_refused_date = true;
        } else {
            draft.is_refused_place = true;
        }
        self.refuse(&span, says, choices);
        if let Some(fix) = self.fixes.last_mut() {
            fix.is_word = true;
        }
    }

    /// What unknown words could mean.
    fn suggestions(&self, first: usize, count: usize) -> Vec<(String, String)> {
        let tokens = &self.tokens[first..first + count];
        let words: Vec<_> = tokens.iter().filter_map(|token| token.word()).collect();
        let words = words.join(" ");
        let mut found = Vec::new();
        if count == 1 {
            let like = |word: &&str| strsim::normalized_damerau_levenshtein(word, &words);
            let best = WORDS
                .split(' ')
                .max_by(|one, other| like(one).total_cmp(&like(other)));
            if let Some(best) = best.filter(|best| like(best) >= MIN_LIKENESS) {
                found.push((best.to_owned(), best.to_owned()));
            }
        }
        if self.draft.is_flights() {
            let places = places::similar(&words);
            found.extend(places.iter().map(|place| (place.text(), place.words())));
            let is_code = count == 1 && words.len() == 3;
            if is_code {
                let near = places::similar_codes(&words);
                found.extend(near.into_iter().map(|place| (place.text(), place.words())));
            }
        } else {
            let mut near = countries::similar(&words);
            near.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
            let near = near
                .into_iter()
                .filter(|(likeness, ..)| *likeness >= MIN_LIKENESS);
            found.extend(near.take(2).map(|(_, name, code)| {
                (format!("{code} {}", countries::country_name(code)), name)
            }));
        }
        found.truncate(4);
        found
    }

    /// Adds what is missing.
    pub(super) fn check(&mut self) {
        if let Some(hotel) = &self.draft.hotel
            && hotel.name.value.is_none()
            && (hotel.is_one || hotel.area.value.is_none())
        {
            let says = "Which hotel? Expected its name, or `hotels in` and a city.";
            self.refusals.push(RefusedWords {
                words: String::new(),
                says: says.to_owned(),
                choices: Vec::new(),
            });
        }
        for (says, add) in self.draft.faults() {
            let text = self.text.trim().trim_end_matches(',');
            let choices = add.into_iter().map(|words| Suggestion {
                text: words.to_owned(),
                question: format!("{text}, {words}"),
            });
            let choices = choices.collect();
            self.refusals.push(RefusedWords {
                words: String::new(),
                says,
                choices,
            });
        }
        if self
            .draft
            .dates
            .value
            .is_some_and(|_| !self.draft.weekdays.value.is_empty())
        {
            self.check_days();
        }
    }

    /// Days of the week that a range does not have.
    fn check_days(&mut self) {
        let Some((from, to)) = self.draft.dates.value else {
            return;
        };
        let days = &self.draft.weekdays.value;
        let has = |day: jiff::civil::Date| {
            days.iter()
                .any(|one| jiff::civil::Weekday::from(*one) == day.weekday())
        };
        let mut week = from
            .series(jiff::Span::new().days(1))
            .take(7)
            .take_while(|day| *day <= to);
        if !week.any(has) {
            let span = self.draft.weekdays.spans.first().cloned().unwrap_or(0..0);
            let says = format!("{} has no such day.", dates::shown(from, to));
            self.refuse(&span, says, Vec::new());
        }
    }
}
