//! The parts of a question beside its places and dates: each reader takes the tokens that begin
//! with its part, and says how many they are.

use farescan_contract::channels::ChannelKind;
use farescan_contract::scans::Weekday;
use rust_decimal::Decimal;

use crate::countries::currency_of;
use crate::dates::{UNITS, count, weekday};
use crate::lexer::{Token, TokenKind, is_one_of};
use crate::question::{Checks, SeatClass};

/// The most nights of a stay.
pub(crate) const MAX_NIGHTS: u32 = 366;
/// The most travellers of each kind.
const MAX_TRAVELLERS: u32 = 9;
/// The most values of a list of nights.
const MAX_LENGTHS: usize = 31;

/// Words that mean nothing more than that something is asked.
const FILLERS: &str = "find search show me i we want need a an the please cheapest cheap lowest best price \
    hi hey hello please pls thanks thank dear sir kindly can could would like you go going looking does get give have \
    leaving depart departing leave leaves departs out say anytime sometime whenever about around all anything just there \
    every each over within seen prices fare fares flight flights fly flying ticket tickets trip in on of at for with and \
    or any airport airports date dates during between when only day days if tell alert alerts notify let know watch check monitor send report ideally trips cheaper vs versus against \
    plane planes arrival checkin scan parity rate rates compare goes drop fall falls drops costs cost how much what";

/// What a part says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Below(Decimal, Option<&'static str>),
    Nights(Vec<u16>),
    Adults(u32),
    Children(u32),
    MaxStops(u32),
    Cabin(SeatClass),
    OneWay,
    RoundTrip,
    Currency(&'static str),
    /// How often a watch looks.
    Checks(Checks),
    /// Days on which a watch looks, or a journey begins.
    Each(Weekday),
    Via(ChannelKind),
    /// What is wrong, and words that say it: a text and the words.
    Fault(String, Vec<(String, String)>),
}

type PartRead = Option<(Part, usize)>;

pub(crate) fn is_filler(word: &str) -> bool {
    is_one_of(word, FILLERS)
}

/// Whether a word says nothing in a question about flights, in which no country stands.
pub(crate) fn is_short_filler(word: &str) -> bool {
    is_one_of(word, "is are be it its my our im am do as so their")
}

/// Whether a word is one of the grammar, so that in small letters it is no code.
pub(crate) fn is_reserved(word: &str) -> bool {
    const OTHERS: &str = "to from below under less than night nights one two six ten non max day eur every each daily weekly mail email phone sms";
    is_filler(word) || is_one_of(word, OTHERS) || crate::dates::is_date_word(word)
}

/// Reads a part that begins with the first token.
pub(crate) fn part(tokens: &[Token]) -> PartRead {
    below(tokens)
        .or_else(|| at_most(tokens))
        .or_else(|| nights(tokens))
        .or_else(|| counted(tokens))
        .or_else(|| for_travellers(tokens))
        .or_else(|| flight_option(tokens))
        .or_else(|| checks(tokens))
        .or_else(|| via(tokens))
        .or_else(|| amount(tokens))
}

fn word(tokens: &[Token], at: usize) -> Option<&str> {
    tokens.get(at)?.word()
}

fn is_sign(tokens: &[Token], at: usize, sign: char) -> bool {
    tokens
        .get(at)
        .is_some_and(|token| token.kind == TokenKind::Sign(sign))
}

/// `below 150`, `under €150`, `less than 1,500 eur`, `< 150`, `max 150`, `150 or less`.
fn below(tokens: &[Token]) -> PartRead {
    let limit = limit_lead(tokens);
    let lead = match (word(tokens, 0), word(tokens, 1)) {
        (Some("below" | "under" | "beneath" | "sub"), _) => 1,
        (Some("less" | "cheaper"), Some("than")) => 2,
        _ if limit > 0 && money(&tokens[limit..]).is_some() => limit,
        _ if is_sign(tokens, 0, '<') => 1,
        _ => return None,
    };
    if limit > 0 && stops(&tokens[lead..]).is_some() {
        return None;
    }
    // `max 5 days` is no price.
    let has_unit = word(tokens, lead + 1).is_some_and(|unit| is_one_of(unit, UNITS));
    if has_unit && tokens.get(lead).and_then(count).is_some() {
        let says = "Only a price and stops have a limit; expected a number or a range, such as `3-5 nights`.";
        return Some((Part::Fault(says.to_owned(), Vec::new()), lead + 2));
    }
    let Some((price, currency, used)) = money(&tokens[lead..]) else {
        let says = "Below which price? Expected a number above 0 with at most two decimals.";
        return Some((Part::Fault(says.to_owned(), Vec::new()), lead));
    };
    let each = per_night(&tokens[lead + used..]);
    if each > 0 {
        let says = "An amount is for the whole journey or stay, of all travellers.";
        return Some((Part::Fault(says.to_owned(), Vec::new()), lead + used + each));
    }
    Some((Part::Below(price, currency), lead + used))
}

/// The tokens of `max`, `at most` or `up to`.
fn limit_lead(tokens: &[Token]) -> usize {
    match (word(tokens, 0), word(tokens, 1)) {
        (Some("max" | "maximum"), _) => 1,
        (Some("at"), Some("most")) | (Some("up"), Some("to")) => 2,
        _ => 0,
    }
}

/// The tokens of `per night`, `a night`, `/night`.
fn per_night(tokens: &[Token]) -> usize {
    let is_slash = is_sign(tokens, 0, '/');
    match (word(tokens, 0), word(tokens, 1)) {
        (Some("per" | "a"), Some("night" | "day" | "person"))
        | (Some("each"), Some("night" | "person")) => 2,
        (_, Some("night" | "person")) if is_slash => 2,
        (Some("each"), next)
            if !next
                .is_some_and(|next| weekday(next).is_some() || ["day", "week"].contains(&next)) =>
        {
            1
        }
        _ => 0,
    }
}

/// `1 stop`, `one stop`.
fn stops(tokens: &[Token]) -> Option<u32> {
    let is_stop = matches!(
        word(tokens, 1),
        Some("stop" | "stops" | "stopover" | "stopovers")
    );
    count(tokens.first()?).filter(|_| is_stop)
}

/// `150 or less`, `150 max`.
fn at_most(tokens: &[Token]) -> PartRead {
    let (price, currency, used) = money(tokens)?;
    let after = match (word(tokens, used), word(tokens, used + 1)) {
        (Some("max" | "maximum"), _) => 1,
        (Some("or"), Some("less" | "cheaper" | "below")) => 2,
        _ => return None,
    };
    Some((Part::Below(price, currency), used + after))
}

fn title(words: &str) -> String {
    words.replacen("below", "Below", 1)
}

fn words_of_price(price: Decimal, currency: Option<&str>) -> String {
    let currency = currency.map_or_else(String::new, |code| format!(" {code}"));
    format!("below {price}{currency}")
}

/// A price with its currency, before or after it.
fn money(tokens: &[Token]) -> Option<(Decimal, Option<&'static str>, usize)> {
    let before = tokens.first().and_then(currency_of);
    let mut at = usize::from(before.is_some());
    let TokenKind::Number(text) = &tokens.get(at)?.kind else {
        return None;
    };
    at += 1;
    let glued = |at: usize| tokens.get(at).filter(|token| token.glued);
    let mut price: Decimal = text.parse().ok()?;
    if price <= Decimal::ZERO || price.scale() > 2 || text.len() > 9 {
        return None;
    }
    // `49,99 €`: without a currency it is a list of two numbers.
    let cents = glued(at).filter(|token| token.kind == TokenKind::Comma);
    let cents = cents.and_then(|_| match &glued(at + 1)?.kind {
        TokenKind::Number(cents) if cents.len() == 2 => cents.parse::<i64>().ok(),
        _ => None,
    });
    let is_of_money = before.is_some()
        || tokens
            .get(at + 2)
            .is_some_and(|token| currency_of(token).is_some());
    if let Some(cents) = cents.filter(|_| is_of_money && price.scale() == 0) {
        price += Decimal::new(cents, 2);
        at += 2;
    }
    if glued(at).is_some_and(|token| token.word() == Some("k")) {
        price *= Decimal::ONE_THOUSAND;
        at += 1;
    }
    let after = tokens
        .get(at)
        .filter(|_| before.is_none())
        .and_then(currency_of);
    let used = at + usize::from(after.is_some());
    Some((price.normalize(), before.or(after), used))
}

/// Whether a word is a currency wherever it stands: no word of the language, as `all` or `try` are.
pub(crate) fn is_plain_currency(token: &Token) -> bool {
    const COMMON: &str = "all try top cop sos mop mad gel lak nad pen sar std cup ern";
    token.capitals || token.word().is_none_or(|word| !is_one_of(word, COMMON))
}

/// `3 nights`, `3-5 nights`, `3, 5 or 7 nights`, `a week`, `two weeks`.
fn nights(tokens: &[Token]) -> PartRead {
    let mut lengths = Vec::new();
    let mut at = 0;
    loop {
        let first = count(tokens.get(at)?)?;
        let dash = tokens
            .get(at + 1)
            .is_some_and(|token| token.kind == TokenKind::Dash);
        let is_range = dash || word(tokens, at + 1) == Some("to");
        let last = is_range
            .then(|| tokens.get(at + 2).and_then(count))
            .flatten();
        at += if last.is_some() { 3 } else { 1 };
        let last = last.unwrap_or(first);
        if first <= last && last - first < 60 && last <= MAX_NIGHTS {
            lengths.extend(first..=last);
        } else {
            lengths.push(0);
        }
        // A dash glues `3-night` together.
        at += usize::from(
            tokens
                .get(at)
                .is_some_and(|token| token.kind == TokenKind::Dash && token.glued),
        );
        match word(tokens, at) {
            Some("or" | "and") => at += 1,
            Some("night" | "nights" | "nts" | "nt" | "n") => break,
            Some("week" | "weeks") => {
                for weeks in &mut lengths {
                    *weeks *= 7;
                }
                break;
            }
            _ if tokens
                .get(at)
                .is_some_and(|token| token.kind == TokenKind::Comma) =>
            {
                at += 1;
            }
            _ => return None,
        }
        if lengths.len() > MAX_LENGTHS * 2 {
            return None;
        }
    }
    lengths.sort_unstable();
    lengths.dedup();
    let is_valid = lengths
        .iter()
        .all(|nights| (1..=MAX_NIGHTS).contains(nights));
    if !is_valid || lengths.len() > MAX_LENGTHS {
        let says =
            format!("Expected nights from 1 to {MAX_NIGHTS}, at most {MAX_LENGTHS} of them.");
        return Some((Part::Fault(says, Vec::new()), at + 1));
    }
    let lengths = lengths
        .into_iter()
        .filter_map(|nights| u16::try_from(nights).ok());
    Some((Part::Nights(lengths.collect()), at + 1))
}

/// `2 adults`, `1 child`, `1 stop`, `4 days`.
fn counted(tokens: &[Token]) -> PartRead {
    // `max 1 stop`, `at most one stop`, `2 stops max`.
    let lead = limit_lead(tokens);
    if let Some(number) = stops(&tokens[lead..]).filter(|number| *number <= MAX_TRAVELLERS) {
        let after = usize::from(matches!(word(tokens, lead + 2), Some("max" | "maximum")));
        return Some((Part::MaxStops(number), lead + 2 + after));
    }
    let number = match word(tokens, 0) {
        Some("no" | "without") => 0,
        _ => count(tokens.first()?)?,
    };
    let part = match word(tokens, 1)? {
        "adult" | "adults" | "people" | "persons" | "person" | "passengers" | "passenger"
        | "guest" | "guests" | "traveller" | "travellers" | "travelers" | "pax" | "seniors" => {
            Part::Adults(number)
        }
        "child" | "children" | "kid" | "kids" => Part::Children(number),
        "infant" | "infants" | "baby" | "babies" => {
            let says = "Infants are not asked for in words; expected adults and children. All fields have them.";
            return Some((Part::Fault(says.to_owned(), Vec::new()), 2));
        }
        "stop" | "stops" | "stopovers" => Part::MaxStops(number),
        "day" | "days" => {
            let nights = |number: u32| {
                let words = format!("{number} night{}", if number == 1 { "" } else { "s" });
                (words.clone(), words)
            };
            let says = "Days of a stay are counted in two ways; expected nights.".to_owned();
            let choices = [number.saturating_sub(1), number].map(|number| nights(number.max(1)));
            return Some((Part::Fault(says, choices.to_vec()), 2));
        }
        _ => return None,
    };
    let (least, most) = match part {
        Part::Adults(_) => (1, MAX_TRAVELLERS),
        _ => (0, MAX_TRAVELLERS),
    };
    if !(least..=most).contains(&number) {
        let says = format!("Expected a number from {least} to {most}.");
        return Some((Part::Fault(says, Vec::new()), 2));
    }
    Some((part, 2))
}

/// `for two`, at the end of a part: `for two nights` is none.
fn for_travellers(tokens: &[Token]) -> PartRead {
    if word(tokens, 0) != Some("for") || matches!(word(tokens, 1), Some("a" | "an")) {
        return None;
    }
    // `for 3, 5 or 7 nights` is a list of nights, `for two, 3 nights` is none.
    if let Some((_, length)) = nights(&tokens[1..]) {
        let list = &tokens[1..=length];
        let is_joined = |token: &Token| matches!(token.word(), Some("or" | "and"));
        let commas = list.iter().filter(|token| token.kind == TokenKind::Comma);
        if list.iter().any(is_joined) || commas.count() > 1 {
            return None;
        }
    }
    let number = count(tokens.get(1)?)?;
    let ends = match tokens.get(2) {
        None => true,
        Some(next) => {
            next.kind == TokenKind::Comma
                || next
                    .word()
                    .is_some_and(|word| is_one_of(word, "in from on below under nonstop"))
        }
    };
    let is_party = ends && (1..=MAX_TRAVELLERS).contains(&number);
    is_party.then_some((Part::Adults(number), 2))
}

/// `nonstop`, `direct`, `business class`, `round trip`, `one way`.
fn flight_option(tokens: &[Token]) -> PartRead {
    let dash = usize::from(
        tokens
            .get(1)
            .is_some_and(|token| token.kind == TokenKind::Dash),
    );
    let second = word(tokens, 1 + dash);
    Some(match (word(tokens, 0)?, second) {
        ("nonstop" | "direct", _) => (Part::MaxStops(0), 1),
        ("non", Some("stop")) => (Part::MaxStops(0), 2 + dash),
        ("business", Some("class")) => (Part::Cabin(SeatClass::Business), 2 + dash),
        ("business" | "biz", _) => (Part::Cabin(SeatClass::Business), 1),
        ("premium", Some("economy")) | ("first", Some("class")) => {
            let choices = ["business", "economy"].map(|class| (class.to_owned(), class.to_owned()));
            (
                Part::Fault(
                    "There are two classes; expected one of them.".to_owned(),
                    choices.to_vec(),
                ),
                2 + dash,
            )
        }
        ("couple", next) if next != Some("of") => (Part::Adults(2), 1),
        ("economy", Some("class")) => (Part::Cabin(SeatClass::Economy), 2 + dash),
        ("economy", _) => (Part::Cabin(SeatClass::Economy), 1),
        ("round" | "return", Some("trip")) => (Part::RoundTrip, 2 + dash),
        ("roundtrip" | "return" | "rt", _) => (Part::RoundTrip, 1),
        ("one", Some("way")) => (Part::OneWay, 2 + dash),
        ("oneway", _) => (Part::OneWay, 1),
        _ => return None,
    })
}

/// `daily`, `check every week`, `watch each monday`.
fn checks(tokens: &[Token]) -> PartRead {
    const LEADS: &str = "check checked checks checking look looks watch watched watching compare compared repeat again";
    let lead = usize::from(word(tokens, 0).is_some_and(|word| is_one_of(word, LEADS)));
    let once = usize::from(word(tokens, lead) == Some("once"));
    let lead = lead + once;
    let (checks, used) = match (word(tokens, lead)?, word(tokens, lead + 1)) {
        ("a", Some("day")) if once > 0 => (Part::Checks(Checks::Daily), 2),
        ("a", Some("week")) if once > 0 => (Part::Checks(Checks::Weekly(Weekday::Monday)), 2),
        ("hourly" | "monthly", _) => (too_often(), 1),
        ("twice", Some("a" | "daily")) => (
            too_often(),
            if word(tokens, lead + 1) == Some("a") {
                3
            } else {
                2
            },
        ),
        ("every", _) if tokens.get(lead + 1)?.whole().is_some() => (too_often(), 3),
        ("daily", _) => (Part::Checks(Checks::Daily), 1),
        ("weekly", _) => (Part::Checks(Checks::Weekly(Weekday::Monday)), 1),
        ("every" | "each", Some("day" | "morning")) => (Part::Checks(Checks::Daily), 2),
        ("every" | "each", Some("week")) => (Part::Checks(Checks::Weekly(Weekday::Monday)), 2),
        // `each saturday of may` are dates.
        ("every" | "each", Some(_))
            if lead == 0 && matches!(word(tokens, 2), Some("of" | "in")) =>
        {
            return None;
        }
        ("every" | "each", Some(day)) => {
            let day = weekday(day)?;
            let checks = if lead > 0 {
                Part::Checks(Checks::Weekly(day))
            } else {
                Part::Each(day)
            };
            (checks, 2)
        }
        // `watch` alone says nothing more than that something is asked.
        _ => return None,
    };
    Some((checks, lead + used))
}

fn too_often() -> Part {
    let says = "A watch that is asked in words looks each day or each week.";
    let choices = ["each day", "each week"].map(|words| (words.to_owned(), words.to_owned()));
    Part::Fault(says.to_owned(), choices.to_vec())
}

/// `by mail`, `email me`, `on my phone`.
fn via(tokens: &[Token]) -> PartRead {
    const LEADS: &str = "by via on to my per";
    let lead = (0..2).take_while(|at| word(tokens, *at).is_some_and(|word| is_one_of(word, LEADS)));
    let lead = lead.count();
    // `e-mail`.
    let is_dashed = word(tokens, lead) == Some("e")
        && tokens
            .get(lead + 1)
            .is_some_and(|token| token.kind == TokenKind::Dash && token.glued);
    let lead = if is_dashed { lead + 2 } else { lead };
    let kind = match word(tokens, lead)? {
        "mail" | "email" | "emails" => ChannelKind::Email,
        "phone" | "ntfy" => ChannelKind::Ntfy,
        // Mobile is a city, too.
        "mobile" if lead > 0 && word(tokens, lead - 1) != Some("to") => ChannelKind::Ntfy,
        "push"
            if matches!(
                word(tokens, lead + 1),
                Some("notification" | "notifications" | "message")
            ) =>
        {
            return Some((Part::Via(ChannelKind::Ntfy), lead + 2));
        }
        "slack" => ChannelKind::Slack,
        "telegram" => ChannelKind::Apprise,
        "sms" | "whatsapp" => {
            let says = "There are no such messages; expected a channel that exists.";
            let choices = ["by phone", "by mail"].map(|words| (words.to_owned(), words.to_owned()));
            return Some((Part::Fault(says.to_owned(), choices.to_vec()), lead + 1));
        }
        _ => return None,
    };
    let after = usize::from(word(tokens, lead + 1) == Some("me"));
    Some((Part::Via(kind), lead + 1 + after))
}

/// A number alone, or with a currency, says nothing.
fn amount(tokens: &[Token]) -> PartRead {
    let (price, currency, used) = money(tokens)?;
    let mut choices = Vec::new();
    if let (Some(number), None) = (tokens.first()?.whole(), currency)
        && (1..=MAX_TRAVELLERS).contains(&number)
    {
        for unit in ["night", "adult"] {
            let words = format!("{number} {unit}{}", if number == 1 { "" } else { "s" });
            choices.push((words.clone(), words));
        }
    } else {
        let words = words_of_price(price, currency);
        choices.push((title(&words), words));
    }
    let says = "A number needs a word that says what it counts.".to_owned();
    Some((Part::Fault(says, choices), used))
}
