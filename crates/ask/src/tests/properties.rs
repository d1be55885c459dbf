//! What holds for any text.

use farescan_contract::Endpoint;
use farescan_contract::channels::ChannelKind;
use farescan_contract::scans::Weekday;
use jiff::ToSpan as _;
use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::Value;

use super::TODAY;
use crate::question::{Checks, Question, QuestionSubject, SeatClass};
use crate::{MAX_CHARS, places, question_of, read};

const AIRPORTS: [&str; 8] = ["TLV", "LHR", "MAR", "SAT", "DEC", "JFK", "MAD", "ZZQ"];
const MARKETS: [&str; 4] = ["US", "DE", "GB", "IN"];

fn codes(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(AIRPORTS.to_vec(), count)
}

fn flights() -> impl Strategy<Value = QuestionSubject> {
    let cabin = proptest::option::of(prop_oneof![
        Just(SeatClass::Economy),
        Just(SeatClass::Business)
    ]);
    (codes(2..6), proptest::option::of(0..4_u32), cabin).prop_map(|(codes, max_stops, cabin)| {
        let (from, to) = codes.split_at(codes.len() / 2);
        let owned = |codes: &[&str]| codes.iter().map(|code| (*code).to_owned()).collect();
        QuestionSubject::Flights {
            from: owned(from),
            to: owned(to),
            max_stops,
            cabin,
        }
    })
}

fn hotels() -> impl Strategy<Value = QuestionSubject> {
    let name = "[A-Z][a-zé' ]{0,20}[a-z]";
    let markets = proptest::sample::subsequence(MARKETS.to_vec(), 0..4);
    (
        proptest::option::of(name),
        proptest::option::of(name),
        markets,
    )
        .prop_map(|(name, area, markets)| match (name, area) {
            (Some(name), area) => QuestionSubject::Hotel {
                name,
                area,
                markets,
            },
            (None, area) => QuestionSubject::Hotels {
                destination: area.unwrap_or_else(|| "Rome".to_owned()),
                markets,
            },
        })
}

prop_compose! {
    fn question()(
        subject in prop_oneof![flights(), hotels()],
        first in 0..500_i64,
        length in 0..365_i64,
        weekdays in proptest::sample::subsequence(Weekday::ALL.to_vec(), 0..4),
        nights in proptest::collection::btree_set(1..40_u16, 1..4),
        is_round in any::<bool>(),
        adults in 1..=9_u32,
        children in 0..=9_u32,
        currency in proptest::sample::select(vec!["USD", "EUR", "ILS", "ALL", "MAD"]),
        below in proptest::option::of(1..1_000_000_u32),
        checks in proptest::option::of(proptest::option::of(0..7_usize)),
        via in proptest::option::of(proptest::sample::select(ChannelKind::ALL.to_vec())),
    ) -> Question {
        let from = TODAY.saturating_add(first.days());
        // Days of the week need a week.
        let length = if weekdays.is_empty() { length } else { length.max(7) };
        let is_flight = matches!(subject, QuestionSubject::Flights { .. });
        let nights = if is_flight && !is_round { Vec::new() } else { nights.into_iter().collect() };
        Question {
            subject,
            from,
            to: from.saturating_add(length.days()),
            weekdays,
            nights,
            adults,
            children,
            currency,
            below: below.map(|cents| Decimal::new(cents.into(), 2).normalize()),
            checks: checks.map(|day| day.map_or(Checks::Daily, |day| Checks::Weekly(Weekday::ALL[day]))),
            via,
        }
    }
}

proptest! {
    #[test]
    fn the_words_of_a_question_are_that_question(question in question()) {
        let words = question.words();
        prop_assert_eq!(read(&words, TODAY).result, Ok(question), "{}", words);
    }

    #[test]
    fn the_scan_of_a_question_asks_it_again(question in question()) {
        let scan = question.find();
        let part = |name: &str| scan.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let endpoint = Endpoint::parse(scan["endpoint"].as_str().unwrap()).unwrap();
        let below = scan["strategy"].get("below");
        let again = question_of(endpoint, &part("request"), &part("sweep"), below, TODAY);
        prop_assert_eq!(again.map(|again| again.find()), Some(scan.clone()), "{}", question.words());
        let mut other = part("request");
        other.insert("limit".to_owned(), 5.into());
        prop_assert_eq!(question_of(endpoint, &other, &part("sweep"), below, TODAY), None, "it would be lost");
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let reading = read(&text, TODAY);
        match reading.result {
            Ok(question) => prop_assert_eq!(read(&question.words(), TODAY).result, Ok(question)),
            Err(refusals) => prop_assert!(!refusals.is_empty()),
        }
    }

    #[test]
    fn words_in_any_order_are_read_or_refused(
        words in proptest::collection::vec(proptest::sample::select(vec![
            "tel aviv", "london", "→", "to", "from", "march", "may", "4", "2027", "-", ",", "next", "weekend", "3", "nights",
            "below", "150", "€", "eur", "hotel", "hotels", "in", "arts", "\"", "us", "uk", "germany", "or", "and", "fri", "MAR",
            "every", "week", "friday", "daily", "by", "mail", "email", "me", "phone", "year", "spring", "of", "check",
            "2027-03-04", "adults", "round", "trip", "one", "way", "paris", "QQQ", "anywhere", "portland", "<", "/", "summer", "the",
        ]), 0..40),
    ) {
        let text = words.join(" ");
        let reading = read(&text, TODAY);
        if let Ok(question) = reading.result {
            prop_assert_eq!(read(&question.words(), TODAY).result, Ok(question), "{}", text);
        } else if let Err(refusals) = reading.result {
            prop_assert!(!refusals.is_empty());
        }
    }
}

#[test]
fn a_text_has_a_longest_length() {
    let of = |count: usize| read(&"é ".repeat(count / 2), TODAY).result.unwrap_err();
    assert!(
        of(MAX_CHARS)
            .iter()
            .all(|refusal| !refusal.says.contains("too long"))
    );
    let refusals = of(MAX_CHARS + 2);
    assert!(
        refusals[0].says.contains("at most 500 characters"),
        "{refusals:?}"
    );
}

#[test]
fn a_code_exists_or_has_near_ones() {
    for code in ["TLV", "lhr", "LON", "ZZZ", "ZZA", "RMO", "BSZ"] {
        assert!(places::exists(code), "{code}");
    }
    for code in ["QQQ", "AAAA", "", "T1V", "ÄÖÜ"] {
        assert!(!places::exists(code), "{code}");
    }
    assert!(
        places::nearest("LHQ").contains("LHR"),
        "{}",
        places::nearest("LHQ")
    );
}

#[test]
fn every_airport_has_a_country_of_the_contract() {
    let airports = include_str!("../../data/airports.tsv");
    for line in airports.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        assert!((5..=6).contains(&fields.len()), "{line}");
        let known = farescan_contract::codes::country(fields[1]);
        assert!(known.is_ok() || fields[1] == "XK", "{line}");
        assert!(places::airport_of(fields[0]).is_some(), "{line}");
    }
}

#[test]
fn every_main_city_has_an_airport() {
    for line in include_str!("../../data/metros.tsv").lines() {
        let name = line.split('\t').next().unwrap_or_default();
        let found = places::named(&crate::countries::folded_words(name));
        assert!(
            places::is_clear(found) && !found[0].airports.is_empty(),
            "{line}"
        );
    }
}
