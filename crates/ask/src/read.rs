//! From words to a question: one pass over the tokens, each of which is read once or refused.

mod draft;
mod hotel;
mod place;
mod refused_words;

use std::ops::Range;

use farescan_contract::scans::Weekday;
use jiff::civil::Date;

use self::draft::{Draft, RangeKind, Role};
use crate::answer::{Reading, RefusedWords, Suggestion};
use crate::clauses::{self, Part};
use crate::dates::{self, When};
use crate::lexer::{Token, TokenKind, is_one_of, tokens};
use crate::question::nights_text;
use crate::{countries, places};

/// The most characters of a text.
pub const MAX_CHARS: usize = 500;
/// The most airports of each end.
const MAX_AIRPORTS: usize = 40;
/// The most refusals that are shown.
const MAX_REFUSALS: usize = 8;

const SAID_BEFORE: &str = "This was said before; expected it once.";
/// The most nights of a stay that is said by its first and last day.
const MAX_STAY: u16 = 14;

/// Reads a question. `today` is the caller's date.
pub fn read(text: &str, today: Date) -> Reading {
    read_text(text, today, true)
}

/// `corrects`: a refused text is read once more with its corrections.
fn read_text(text: &str, today: Date, corrects: bool) -> Reading {
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
        corrects,
        fixes: Vec::new(),
        suggested: 0,
        is_before_kind: false,
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
        corrected: None,
        result: Err(vec![refusal]),
    }
}

/// Whether a character is an emoji, or says how one is drawn.
const fn is_picture(sign: char) -> bool {
    matches!(sign, '\u{2600}'..='\u{27bf}' | '\u{fe0f}' | '\u{200d}' | '\u{1f000}'..='\u{1faff}')
}

/// What stands in place of refused words in a corrected text.
struct Fix {
    span: Range<usize>,
    /// The first of what they could mean, if there is any.
    words: Option<String>,
    /// Whether they are not known, which no other words decide.
    is_word: bool,
}

struct Reader<'a> {
    text: &'a str,
    today: Date,
    tokens: &'a [Token],
    at: usize,
    draft: Draft,
    refusals: Vec<RefusedWords>,
    corrects: bool,
    /// Of the refusals that have words.
    fixes: Vec<Fix>,
    /// Whether the word for hotels is still to come.
    is_before_kind: bool,
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
        self.fixes.push(Fix {
            span: span.clone(),
            words: choices.first().map(|(_, words)| words.clone()),
            is_word: false,
        });
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
            || self.back()
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
            // `how much is it to fly`.
            Some("to")
                if self
                    .word(1)
                    .is_some_and(|word| is_one_of(word, "fly go be get travel know see")) => {}
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
        let (when, span) = self.flexible(when, span);
        match when {
            When::Range(from, to) => self.add_range(from, to, &span),
            When::FromTo(from, to) => {
                self.add_range(from, to, &span);
                self.draft.range = RangeKind::FromTo;
            }
            When::Weekend(from, to) => {
                self.add_range(from, to, &span);
                self.draft.range = RangeKind::Weekend;
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
                if !self.draft.year.set(year, span.clone()) {
                    self.refuse(&span, SAID_BEFORE, Vec::new());
                }
            }
            When::Fault(says, choices) => {
                self.refuse(&span, says, choices);
                self.draft.is_refused_date = true;
            }
        }
        true
    }

    /// The day of the return or of leaving a hotel: `back 8 march`, `and return on the 10th`.
    fn back(&mut self) -> bool {
        const LEADS: &str = "back return returning home checkout departure leaving until";
        let lead = match (self.word(0), self.word(1)) {
            (Some("coming" | "come" | "fly" | "flying"), Some("back" | "home")) => 2,
            (Some("check"), _) if self.word(2) == Some("out") => 3,
            (Some("leaving"), _) if self.draft.is_flights() => return false,
            (Some(word), _) if is_one_of(word, LEADS) => 1,
            _ => return false,
        };
        let Some((from, _)) = self.draft.dates.value else {
            return false;
        };
        let is_skipped = |token: &&Token| {
            token.kind == TokenKind::Dash
                || token
                    .word()
                    .is_some_and(|word| is_one_of(word, "on the") || dates::weekday(word).is_some())
        };
        let rest = &self.rest()[lead..];
        let skip = rest.iter().take_while(is_skipped).count();
        let Some((day, used)) = dates::day_after(&rest[skip..], from, self.today) else {
            return false;
        };
        let span = self.take(lead + skip + used);
        if !self.draft.back.set(day, span.clone()) {
            self.refuse(&span, SAID_BEFORE, Vec::new());
        }
        true
    }

    /// The nights until the day of return.
    fn settle_back(&mut self) {
        let (Some(back), Some((from, to))) = (self.draft.back.value, self.draft.dates.value) else {
            return;
        };
        let span = self.draft.back.spans[0].clone();
        let nights = u16::try_from((back - from).get_days()).ok();
        let nights = nights
            .filter(|nights| from == to && (1..=clauses::MAX_NIGHTS).contains(&u32::from(*nights)));
        let added = match nights {
            Some(nights) => self.draft.add(Part::Nights(vec![nights]), span.clone()),
            None => Err("A day of return needs one earlier day on which the journey begins; expected nights.".to_owned()),
        };
        if let Err(says) = added {
            self.refuse(&span, says, Vec::new());
        }
    }

    /// A range of days is the stay in a hotel; of flights it may be the journey.
    fn settle_stay(&mut self) {
        let draft = &self.draft;
        let (Some((from, to)), [span]) = (draft.dates.value, draft.dates.spans.as_slice()) else {
            return;
        };
        let (span, length) = (span.clone(), (to - from).get_days());
        let is_stay = draft.range == RangeKind::FromTo
            && !draft.has_nights()
            && draft.weekdays.value.is_empty();
        let Some(nights) = u16::try_from(length)
            .ok()
            .filter(|nights| is_stay && (1..=MAX_STAY).contains(nights))
        else {
            return;
        };
        let stay = format!("{}, {}", from.strftime("%-d %B %Y"), nights_text(&[nights]));
        let each = format!("{}, 1 night", dates::shown(from, to));
        if self.draft.is_flights() {
            let choice = (stay.clone(), stay);
            if self.draft.is_round_trip() {
                self.refuse(
                    &span,
                    "These are days of departure or the days of a journey; which?",
                    vec![choice],
                );
            } else {
                let question = self.replaced(&span, &choice.1);
                self.draft.date_choices.push(Suggestion {
                    text: choice.0,
                    question,
                });
            }
            return;
        }
        let question = self.replaced(&span, &each);
        self.draft.date_choices.push(Suggestion {
            text: format!("each night of {}", dates::shown(from, to)),
            question,
        });
        self.draft.dates.value = Some((from, from));
        // Nothing was said before: this is always taken.
        _ = self.draft.add(Part::Nights(vec![nights]), span);
    }

    /// `4 march ± 3 days`, `4 march +/- 3`.
    fn flexible(&mut self, when: When, span: Range<usize>) -> (When, Range<usize>) {
        let When::Range(day, to) = when else {
            return (when, span);
        };
        let is_sign = |ahead: usize, sign: char| {
            self.rest()
                .get(ahead)
                .is_some_and(|token| token.kind == TokenKind::Sign(sign))
        };
        let dash = |ahead: usize| {
            self.rest()
                .get(ahead)
                .is_some_and(|token| token.kind == TokenKind::Dash)
        };
        let lead = match () {
            () if is_sign(0, '±') => 1,
            () if is_sign(0, '+') && is_sign(1, '/') && dash(2) => 3,
            () => return (when, span),
        };
        let days = self
            .rest()
            .get(lead)
            .and_then(Token::whole)
            .filter(|days| *days <= 31);
        let (Some(days), true) = (days, day == to) else {
            return (when, span);
        };
        let unit = usize::from(matches!(self.word(lead + 1), Some("day" | "days")));
        let more = self.take(lead + 1 + unit);
        let moved = |days: i64| day.saturating_add(jiff::Span::new().days(days));
        let days = i64::from(days);
        let when = When::Range(moved(-days).max(self.today), moved(days));
        (when, span.start..more.end)
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
                let mut choices = if is_near {
                    vec![(text, words)]
                } else {
                    Vec::new()
                };
                let nights = u16::try_from((from - first).get_days()).unwrap_or(0);
                if is_near && first == last && from == to && nights > 0 {
                    let trip = format!(
                        "{}, {}",
                        first.strftime("%-d %B %Y"),
                        nights_text(&[nights])
                    );
                    choices.insert(0, (trip.clone(), trip));
                }
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
            | TokenKind::Sign('/' | '&' | '.' | '?' | '!' | ':' | '+' | '(' | ')') => true,
            TokenKind::Sign(sign) => is_picture(*sign),
            TokenKind::Word(word) => {
                let token = &self.tokens[self.at];
                // In capitals `ALL` is a currency, and `AT` after `DE` a market.
                let is_code = token.capitals
                    && (countries::currency_of(token).is_some() || self.is_market_in_list());
                let is_of_flights = self.draft.is_flights() && !token.capitals;
                (clauses::is_filler(word) && !is_code)
                    || word.is_empty()
                    || (is_of_flights && clauses::is_short_filler(word))
            }
            _ => false,
        };
        if is_filler {
            self.take(1);
        }
        is_filler
    }

    /// Whether a code of a country follows another one, of a hotel's markets: `DE AT CH`.
    fn is_market_in_list(&self) -> bool {
        let is_country = |at: usize| {
            let token = self.tokens.get(at).filter(|token| token.capitals);
            let word = token.and_then(|token| token.word());
            word.is_some_and(|word| word.len() == 2 && countries::country(word).is_some())
        };
        !self.draft.is_flights() && self.at > 0 && is_country(self.at) && is_country(self.at - 1)
    }

    fn currency(&mut self) -> bool {
        let token = &self.tokens[self.at];
        let Some(code) = countries::currency_of(token) else {
            return false;
        };
        let follows = |word: &str| self.at > 0 && self.tokens[self.at - 1].word() == Some(word);
        if !clauses::is_plain_currency(token) && !follows("in") {
            return false;
        }
        // `saw-stn` is a route, though STN is the dobra of São Tomé.
        let is_place = |word: &str| {
            !clauses::is_reserved(word) && places::coded(&word.to_ascii_uppercase()).is_some()
        };
        if self.draft.is_incomplete() && token.word().is_some_and(is_place) {
            return false;
        }
        let span = self.take(1);
        if let Err(says) = self.draft.add(Part::Currency(code), span.clone()) {
            self.refuse(&span, says, Vec::new());
        }
        true
    }

    fn finish(mut self) -> Reading {
        self.draft.split_lists(self.text);
        self.settle_year();
        self.settle_days();
        self.settle_back();
        self.settle_stay();
        self.check();
        let corrected = self.corrected();
        self.refusals.truncate(MAX_REFUSALS);
        let draft = std::mem::take(&mut self.draft);
        let chips = draft.chips(&self);
        match draft
            .question(self.today)
            .filter(|_| self.refusals.is_empty())
        {
            Some(question) => Reading {
                chips,
                corrected: None,
                result: Ok(question),
            },
            None => {
                if self.refusals.is_empty() {
                    self.refuse(&(0..self.text.len()), "This is no question.", Vec::new());
                }
                Reading {
                    chips,
                    corrected,
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
            None => self.draft.dates.value = dates::whole_year(year, self.today),
        }
    }

    /// The whole text with the first of what each refused word could mean, if that is a question. A number
    /// beside a mistyped word is refused for that word alone: `2 marhc`.
    fn corrected(&self) -> Option<String> {
        if self.refusals.len() < 2 || !self.corrects {
            return None;
        }
        [true, false].into_iter().find_map(|only_words| {
            let text = self.with_fixes(only_words)?;
            let is_question = read_text(&text, self.today, false).result.is_ok();
            is_question.then_some(text)
        })
    }

    /// `only_words`: only where words are not known.
    fn with_fixes(&self, only_words: bool) -> Option<String> {
        let fixes = self.fixes.iter().filter(|fix| fix.is_word || !only_words);
        let mut fixes: Vec<_> = fixes.collect();
        fixes.sort_by_key(|fix| fix.span.start);
        let (mut text, mut end) = (String::new(), 0);
        for fix in fixes {
            text.push_str(self.text.get(end..fix.span.start)?);
            text.push_str(fix.words.as_deref()?);
            end = fix.span.end;
        }
        text.push_str(&self.text[end..]);
        Some(text)
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
        if days.as_slice() == &Weekday::ALL[5..] {
            draft.range = RangeKind::Weekend;
        }
        let (from, to) = dates::next_days(&days, self.today);
        draft.dates.value = Some((from, to));
        draft.dates.spans = std::mem::take(&mut draft.weekdays.spans);
    }
}
