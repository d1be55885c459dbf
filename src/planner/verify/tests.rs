//! What is searched, when it ends, and the declared risk.

use jiff::civil::{Date, date};
use jiff::{SignedDuration, ToSpan as _};
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;
use crate::planner::{Candidate, Played, StoredPrice, play};

const TODAY: Date = date(2027, 3, 1);

/// Candidates from 30 days ahead on, with prices of so many days ago.
fn calendar(days: i64, prices: &[Option<i64>]) -> Vec<Candidate> {
    let dates = TODAY.saturating_add(30.days()).series(1.day());
    prices
        .iter()
        .zip(dates)
        .map(|(price, date)| Candidate {
            stored: Some(StoredPrice {
                price: price.map(Decimal::from),
                age: SignedDuration::from_hours(24 * days),
            }),
            ..Candidate::unknown(date)
        })
        .collect()
}

fn phases(dates: usize) -> TwoPhase {
    TwoPhase {
        coarse_step: 4,
        refine: 2,
        dates,
        inner_items: 1,
        combinations: dates,
    }
}

fn verify(max_risk: f64, rates: &ChangeRates, dates: usize) -> VerifyWinners<'_> {
    VerifyWinners {
        below: None,
        max_risk,
        ceiling: usize::MAX,
        batch: 2,
        today: TODAY,
        rates,
        otherwise: phases(dates),
    }
}

fn played(planner: &VerifyWinners<'_>, candidates: &[Candidate], now: &[Option<i64>]) -> Played {
    let mut candidates = candidates.to_vec();
    play(planner, &mut candidates, |position| {
        now[position].map(Decimal::from)
    })
}

/// Fares of a ladder, the cheapest dates in the middle.
fn fares(count: usize) -> Vec<Option<i64>> {
    (0..count)
        .map(|at| {
            [60, 73, 90, 109, 133, 163]
                .get(at.abs_diff(count / 2) / 3)
                .copied()
        })
        .map(|fare| fare.or(Some(200)))
        .collect()
}

#[test]
fn unchanged_winners_are_enough() {
    let (rates, prices) = (ChangeRates::default(), fares(90));
    let played = played(&verify(0.05, &rates, 90), &calendar(1, &prices), &prices);
    assert!(played.searched.len() <= 10, "{played:?}");
    assert!(played.searched.contains(&45) && prices[played.best.position.unwrap()] == Some(60));
    assert!(played.best.risk.unwrap() <= 0.05, "{played:?}");
}

#[test]
fn with_few_stored_prices_it_searches_as_two_phases_and_declares_no_risk() {
    let (rates, prices) = (ChangeRates::default(), fares(90));
    let stored = |count: usize| {
        let mut candidates = calendar(1, &prices);
        for candidate in &mut candidates[count..] {
            candidate.stored = None;
        }
        candidates
    };
    let planner = verify(0.05, &rates, 90);
    let two_phase = play(&phases(90), &mut stored(0), |position| {
        prices[position].map(Decimal::from)
    });
    for few in [0, 1, 44] {
        let played = played(&planner, &stored(few), &prices);
        assert_eq!(played.searched, two_phase.searched, "{few} stored");
        assert_eq!(played.best.risk, None);
    }
    let half = played(&planner, &stored(45), &prices);
    assert!(half.best.risk.unwrap() <= 0.05, "{half:?}");
}

#[test]
fn an_older_calendar_needs_more_searches() {
    let (rates, prices) = (ChangeRates::default(), fares(90));
    let searches = |days| {
        let planner = verify(0.05, &rates, 90);
        played(&planner, &calendar(days, &prices), &prices)
            .searched
            .len()
    };
    let by_age = [1, 3, 7, 14].map(searches);
    assert!(by_age.is_sorted() && by_age[0] < by_age[3], "{by_age:?}");
}

#[test]
fn many_changes_widen_the_search() {
    let (rates, prices) = (ChangeRates::default(), fares(90));
    let now: Vec<_> = prices
        .iter()
        .map(|price| price.map(|price| price * 6 / 5))
        .collect();
    let searches = |now: &[_]| {
        let planner = verify(0.05, &rates, 90);
        played(&planner, &calendar(1, &prices), now).searched.len()
    };
    assert!(searches(&now) > searches(&prices));
}

#[test]
fn prices_that_say_nothing_end_at_the_ceiling_with_the_unsearched_share() {
    let rates = ChangeRates::default();
    // Each price is drawn alone: a permutation of the stored ones.
    let prices: Vec<_> = (0..90).map(|at| Some(30 + at * 37 % 90 * 6)).collect();
    let now: Vec<_> = (0..90)
        .map(|at| Some(30 + (at * 53 + 45) % 90 * 6))
        .collect();
    let planner = VerifyWinners {
        ceiling: 45,
        ..verify(0.05, &rates, 90)
    };
    let played = played(&planner, &calendar(1, &prices), &now);
    assert_eq!(played.searched.len(), 45);
    let risk = played.best.risk.unwrap();
    assert!((risk - 0.5).abs() < 0.02, "{risk}");
}

#[test]
fn without_a_stored_price_it_is_two_phase_without_a_risk() {
    let (rates, now) = (ChangeRates::default(), fares(31));
    for candidates in [
        vec![Candidate::unknown(TODAY); 31],
        calendar(1, &[None; 31]),
    ] {
        let planner = verify(0.05, &rates, 31);
        let two_phase = play(&phases(31), &mut candidates.clone(), |at| {
            now[at].map(Decimal::from)
        });
        assert_eq!(played(&planner, &candidates, &now), two_phase);
        assert_eq!(two_phase.best.risk, None);
        let cut = VerifyWinners {
            ceiling: 5,
            ..planner
        };
        assert_eq!(
            played(&cut, &candidates, &now).searched,
            two_phase.searched[..5]
        );
    }
}

#[test]
fn a_candidate_without_a_stored_price_can_win() {
    let rates = ChangeRates::default();
    let mut candidates = calendar(1, &[Some(60), Some(200), Some(200), Some(200)]);
    candidates[2].stored = None;
    let now = [Some(60), Some(200), Some(10), Some(200)];
    let played = played(&verify(0.1, &rates, 4), &candidates, &now);
    assert_eq!(played.best.position, Some(2));
    assert!(
        played.searched[..2].contains(&2),
        "in the first batch: {played:?}"
    );
}

#[test]
fn nothing_found_is_a_risk_of_one_until_nothing_is_left() {
    let (rates, none) = (ChangeRates::default(), vec![None; 31]);
    let planner = verify(0.5, &rates, 31);
    let all = played(&planner, &calendar(1, &fares(31)), &none);
    assert_eq!(
        (all.searched.len(), all.best.position, all.best.risk),
        (31, None, Some(0.0))
    );
    let cut = VerifyWinners {
        ceiling: 3,
        ..planner
    };
    let some = played(&cut, &calendar(1, &fares(31)), &none);
    assert_eq!((some.searched.len(), some.best.risk), (3, Some(1.0)));
}

/// Stored answers, their ages in hours (none: unknown), and the prices now.
fn questions() -> impl proptest::strategy::Strategy<Value = (Vec<Candidate>, Vec<Option<i64>>)> {
    let price = || prop::option::weighted(0.9, 20_i64..400);
    let one = (
        prop::option::weighted(0.9, (price(), 0_i64..700)),
        price(),
        any::<bool>(),
    );
    prop::collection::vec(one, 1..60).prop_map(|all| {
        let dates = TODAY.saturating_add(2.days()).series(1.day());
        all.into_iter()
            .zip(dates)
            .map(|((stored, now, is_same), date)| {
                let candidate = Candidate {
                    stored: stored.map(|(price, hours)| StoredPrice {
                        price: price.map(Decimal::from),
                        age: SignedDuration::from_hours(hours),
                    }),
                    ..Candidate::unknown(date)
                };
                let same = stored.filter(|_| is_same).map(|(price, _)| price);
                (candidate, same.unwrap_or(now))
            })
            .unzip()
    })
}

proptest! {
    #[test]
    fn searches_are_bounded_and_a_lower_risk_never_searches_less(
        (candidates, now) in questions(), ceiling in 0_usize..70, batch in 0_usize..5,
        risks in (0.0..1.0_f64, 0.0..1.0_f64),
    ) {
        let rates = ChangeRates::default();
        let at = |max_risk| VerifyWinners { ceiling, batch, ..verify(max_risk, &rates, candidates.len()) };
        let (low, high) = (risks.0.min(risks.1), risks.0.max(risks.1));
        let careful = played(&at(low), &candidates, &now);
        let careless = played(&at(high), &candidates, &now);
        prop_assert_eq!(&careful, &played(&at(low), &candidates, &now), "the same again");
        prop_assert!(careful.searched.starts_with(&careless.searched));
        let mut positions = careful.searched.clone();
        positions.sort_unstable();
        positions.dedup();
        prop_assert_eq!(positions.len(), careful.searched.len(), "never twice");
        prop_assert!(positions.len() <= ceiling);
        let stored: Vec<_> = candidates.iter().filter_map(|candidate| candidate.stored).collect();
        let otherwise = phases(candidates.len());
        let is_enough = 2 * stored.len() >= candidates.len()
            || (0..candidates.len()).all(|position| otherwise.is_coarse(position));
        let verifies = is_enough && stored.iter().any(|stored| stored.price.is_some());
        prop_assert_eq!(careful.best.risk.is_some(), verifies);
        if let Some(risk) = careful.best.risk {
            prop_assert!((0.0..=1.0).contains(&risk));
            let is_all = positions.len() == candidates.len();
            prop_assert!(risk <= low || positions.len() == ceiling || is_all, "{} at {:?}", risk, positions);
            prop_assert!(!is_all || risk == 0.0);
        }
        // A planner that searches a position twice would end there, without an answer.
        let cheapest = careful.searched.iter().filter_map(|at| Some((now[*at]?, *at))).min();
        prop_assert_eq!(careful.best.position, cheapest.map(|(_, at)| at));
    }
}

#[test]
fn a_decision_takes_less_than_5_ms() {
    let rates = ChangeRates::default();
    for count in [90, 1_000] {
        let prices = fares(count);
        let mut candidates = calendar(7, &prices);
        for at in count / 2..count / 2 + count / 10 {
            candidates[at].searched = Some(prices[at].map(Decimal::from));
        }
        let view = SearchView {
            candidates: &candidates,
        };
        let planner = verify(0.0, &rates, count);
        // The fastest of many: the machine may be busy with other tests.
        let fastest = (0..30).map(|_| {
            let begun = std::time::Instant::now();
            std::hint::black_box(planner.decide(&view));
            begun.elapsed()
        });
        let fastest = fastest.min().unwrap();
        println!("{count} candidates: {fastest:?}");
        assert!(fastest.as_micros() < 5_000, "{count}: {fastest:?}");
    }
}
