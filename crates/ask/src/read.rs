//! From words to a question: one pass over the tokens, each of which is read once or refused.

mod draft;
mod hotel;
mod place;
mod refused_words;

use std::ops::Range;

use farescan_contract::scans::Weekday;
use jiff::civil::Date;

use self::draft::{Draft, Role};
use crate::answer::{Reading, RefusedWords, Suggestion};
use crate::clauses::{self, Part};
use crate::dates::{self, When};
use crate::lexer::{Token, TokenKind, tokens};

/// The most characters of a text.
pub const MAX_CHARS: usize = 500;
/// The most airports of each end.
const MAX_AIRPORTS: usize = 40;
/// The most refusals that are shown.
const MAX_REFUSALS: usize = 8;

/// Reads a question. `today` is the caller's date.
pub fn read(text: &str, today: Date) -> Reading {
    if text.chars().count() > MAX_CHARS {
        return refused(
            "",
            format!("The text is too long; expected at most {MAX_CHARS} characters."),
        );
    }
    let tokens = tokens(text);
    if tokens.is_empty() {
        return refused(
            "",
            "Nothing was asked; expected two places and dates, such as `tel aviv london march`.",
        );
    }
    let mut reader = Reader {
        text,
        today,
        tokens: &tokens,
        at: 0,
        draft: Draft::default(),
        refusals: Vec::new(),
        suggested: 0,
    };
    reader.subject();
    while reader.at < tokens.len() {
        reader.step();
    }
    reader.finish()
}

fn refused(words: &str, says: impl Into<String>) -> Reading {
    let refusal = RefusedWords {
        words: words.to_owned(),
        says: says.into(),
        choices: Vec::new(),
    };
    Reading {
        chips: Vec::new(),
        result: Err(vec![refusal]),
    }
}

struct Reader<'a> {
    text: &'a str,
    today: Date,
    tokens: &'a [Token],
    at: usize,
    draft: Draft,
    refusals: Vec<RefusedWords>,
    /// Unknown words for which names were looked for.
    suggested: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a [Token] {
        &self.tokens[self.at..]
    }

    fn word(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(self.at + ahead)?.word()
    }

    /// The bytes of the next tokens, which are read now.
    fn take(&mut self, count: usize) -> Range<usize> {
        let first = self.at;
        self.at = (first + count.max(1)).min(self.tokens.len());
        self.tokens[first].span.start..self.tokens[self.at - 1].span.end
    }

    /// The whole text with other words in a place.
    fn replaced(&self, span: &Range<usize>, words: &str) -> String {
        format!(
            "{}{words}{}",
            &self.text[..span.start],
            &self.text[span.end..]
        )
    }

    fn refuse(
        &mut self,
        span: &Range<usize>,
        says: impl Into<String>,
        choices: Vec<(String, String)>,
    ) {
        let question = |words: String| self.replaced(span, &words);
        let choices = choices.into_iter().map(|(text, words)| Suggestion {
            text,
            question: question(words),
        });
        let refusal = RefusedWords {
            words: self.text[span.clone()].to_owned(),
            says: says.into(),
            choices: choices.collect(),
        };
        self.refusals.push(refusal);
    }

    /// Reads what begins with the next token.
    fn step(&mut self) {
        let is_read = self.arrow()
            || self.anywhere()
            || self.place_of(2)
            || self.capital_code()
            || self.dates()
            || self.part()
            || self.role()
            || self.skipped()
            || self.currency()
            || self.market()
            || self.area()
            || self.place_of(1)
            || self.code();
        if !is_read {
            self.unknown();
        }
    }

    fn arrow(&mut self) -> bool {
        let token = &self.tokens[self.at];
        let is_arrow = token.kind == TokenKind::Arrow
            || (token.kind == TokenKind::Dash && !token.glued && self.draft.is_incomplete());
        if is_arrow && self.draft.is_flights() {
            self.take(1);
            self.draft.begin_destinations();
            return true;
        }
        false
    }

    /// `from` and `to`.
    fn role(&mut self) -> bool {
        let flights = self.draft.is_flights();
        match self.word(0) {
            Some("from") if flights => self.draft.role = Role::From,
            Some("to") if flights => self.draft.begin_destinations(),
            Some("from") => {}
            _ => return false,
        }
        self.take(1);
        true
    }

    fn anywhere(&mut self) -> bool {
        let used = match (self.word(0), self.word(1)) {
            (Some("anywhere" | "everywhere" | "somewhere"), _) => 1,
            (Some("any"), Some("where" | "place")) => 2,
            _ => return false,
        };
        let span = self.take(used);
        let says = "Each search is for two airports that you name, and costs a request; expected cities or airports, several with `or` between them.";
        let choices = ["Rome", "Paris or Rome"].map(|text| (text.to_owned(), text.to_owned()));
        self.refuse(&span, says, choices.to_vec());
        self.draft.is_refused_place = true;
        true
    }

    fn dates(&mut self) -> bool {
        let Some((when, used)) = dates::when(self.rest(), self.today) else {
            return false;
        };
        let span = self.take(used);
        match when {
            When::Range(from, to) => self.add_range(from, to, &span),
            When::Weekend(from, to) => {
                self.add_range(from, to, &span);
                self.draft.is_weekend = true;
            }
            When::Days(days) => {
                self.draft.weekdays.value.extend(days);
                self.draft.weekdays.spans.push(span);
            }
            When::Season(from, to, south) => {
                self.draft.date_choices.push(Suggestion {
                    text: format!("{south} (in the south)"),
                    question: self.replaced(&span, &south),
                });
                self.add_range(from, to, &span);
            }
            When::Year(year) => {
                self.draft.year.value = Some(year);
                self.draft.year.spans.push(span);
            }
            When::Fault(says, choices) => {
                self.refuse(&span, says, choices);
                self.draft.is_refused_date = true;
            }
        }
        true
    }

    fn add_range(&mut self, from: Date, to: Date, span: &Range<usize>) {
        if let Some((first, last)) = self.draft.dates.value {
            let touches = |one: Date, other: Date| (one - other).get_days() <= 1;
            if !(touches(from, last) && touches(first, to)) {
                let (one, other) = (dates::shown(first, last), dates::shown(from, to));
                let says =
                    format!("{one} and {other} are two ranges; expected one, or ask each alone.");
                let words = format!("{} to {}", first.min(from), last.max(to));
                let earlier = self.draft.dates.spans[0].start;
                let all = earlier..span.end;
                let text = dates::shown(first.min(from), last.max(to));
                // The words between them are kept only where there are none.
                let is_near = self.text[self.draft.dates.spans[0].end..span.start]
                    .trim()
                    .len()
                    <= 5;
                let choices = if is_near {
                    vec![(text, words)]
                } else {
                    Vec::new()
                };
                self.refuse(&all, says, choices);
                return;
            }
            self.draft.dates.value = Some((first.min(from), last.max(to)));
        } else {
            self.draft.dates.value = Some((from, to));
        }
        self.draft.dates.spans.push(span.clone());
    }

    fn part(&mut self) -> bool {
        let Some((part, used)) = clauses::part(self.rest()) else {
            return false;
        };
        let span = self.take(used);
        match part {
            Part::Fault(says, choices) => self.refuse(&span, says, choices),
            part => {
                if let Err(says) = self.draft.add(part, span.clone()) {
                    self.refuse(&span, says, Vec::new());
                }
            }
        }
        true
    }

    fn skipped(&mut self) -> bool {
        let is_filler = match &self.tokens[self.at].kind {
            TokenKind::Comma
            | TokenKind::Dash
            | TokenKind::Sign('/' | '&' | '.' | '?' | '!' | ':' | '+') => true,
            TokenKind::Word(word) => clauses::is_filler(word) || word.is_empty(),
            _ => false,
        };
        if is_filler {
            self.take(1);
        }
        is_filler
    }

    fn currency(&mut self) -> bool {
        let token = &self.tokens[self.at];
        let Some(code) = clauses::currency_of(token) else {
            return false;
        };
        let follows = |word: &str| self.at > 0 && self.tokens[self.at - 1].word() == Some(word);
        if !clauses::is_plain_currency(token) && !follows("in") {
            return false;
        }
        let span = self.take(1);
        if let Err(says) = self.draft.add(Part::Currency(code), span.clone()) {
            self.refuse(&span, says, Vec::new());
        }
        true
    }

    fn finish(mut self) -> Reading {
        self.settle_year();
        self.settle_days();
        self.check();
        self.refusals.truncate(MAX_REFUSALS);
        let draft = std::mem::take(&mut self.draft);
        let chips = draft.chips(&self);
        match draft
            .question(self.today)
            .filter(|_| self.refusals.is_empty())
        {
            Some(question) => Reading {
                chips,
                result: Ok(question),
            },
            None => {
                if self.refusals.is_empty() {
                    self.refuse(&(0..self.text.len()), "This is no question.", Vec::new());
                }
                Reading {
                    chips,
                    result: Err(self.refusals),
                }
            }
        }
    }

    /// A year alone is all of it; beside other dates it is theirs.
    fn settle_year(&mut self) {
        let Some(year) = self.draft.year.value else {
            return;
        };
        let span = self.draft.year.spans[0].clone();
        match self.draft.dates.value {
            Some((from, to)) if (from.year(), to.year()) == (year, year) => {}
            Some((from, to)) => {
                let shown = dates::shown(from, to);
                let says = format!(
                    "{shown} is not in {year}; expected the year beside its month, as in `march {year}`."
                );
                self.refuse(&span, says, Vec::new());
            }
            None => match dates::whole_year(year, self.today) {
                When::Range(from, to) => {
                    self.draft.dates.value = Some((from, to));
                }
                _ => self.refuse(&span, format!("{year} has passed."), Vec::new()),
            },
        }
    }

    /// Days of the week without a range are the next ones.
    fn settle_days(&mut self) {
        let draft = &mut self.draft;
        draft.weekdays.value.sort_unstable();
        draft.weekdays.value.dedup();
        if draft.dates.value.is_some() || draft.weekdays.value.is_empty() {
            return;
        }
        let days: Vec<Weekday> = std::mem::take(&mut draft.weekdays.value);
        draft.is_weekend = days.as_slice() == &Weekday::ALL[5..];
        let (from, to) = dates::next_days(&days, self.today);
        draft.dates.value = Some((from, to));
        draft.dates.spans = std::mem::take(&mut draft.weekdays.spans);
    }
}
