//! The dates that each phase searches.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;

/// A sweep of one date range only.
fn range_only(coarse_step: usize, refine: usize, dates: usize) -> TwoPhase {
    TwoPhase {
        coarse_step,
        refine,
        dates,
        inner_items: 1,
        combinations: dates,
    }
}

fn coarse(phases: &TwoPhase, items: usize) -> Vec<usize> {
    (0..items)
        .filter(|position| phases.is_coarse(*position))
        .collect()
}

/// The dates that the second phase searches, with a price for each date.
fn second(phases: &TwoPhase, price_of: impl Fn(usize) -> Option<i64>, items: usize) -> Vec<usize> {
    let seen: BTreeSet<_> = coarse(phases, items).into_iter().collect();
    let prices: Vec<_> = seen
        .iter()
        .filter_map(|at| Some((*at, Decimal::from(price_of(*at)?))))
        .collect();
    let deferred: Vec<_> = (0..items)
        .filter(|position| !seen.contains(position))
        .collect();
    phases
        .second_phase(&prices, &deferred)
        .into_iter()
        .collect()
}

#[test]
fn the_first_phase_takes_every_nth_date_and_the_last() {
    assert_eq!(coarse(&range_only(4, 2, 10), 10), [0, 4, 8, 9]);
    assert_eq!(coarse(&range_only(4, 2, 9), 9), [0, 4, 8]);
    assert_eq!(coarse(&range_only(4, 2, 1), 1), [0]);
    assert_eq!(coarse(&range_only(90, 2, 31), 31), [0, 30]);
}

#[test]
fn the_second_phase_takes_the_dates_beside_the_cheapest() {
    let month = range_only(4, 1, 31);
    assert_eq!(
        second(&month, |at| Some(if at == 8 { 100 } else { 200 }), 31),
        [5, 6, 7, 9, 10, 11]
    );
    assert_eq!(
        second(&month, |at| Some(if at == 0 { 100 } else { 200 }), 31),
        [1, 2, 3]
    );
    assert_eq!(
        second(&month, |at| Some(if at == 30 { 100 } else { 200 }), 31),
        [27, 29],
        "28 was searched first"
    );
    let two = range_only(4, 2, 31);
    assert_eq!(
        second(&two, |at| Some(100 + i64::try_from(at).unwrap()), 31),
        [1, 2, 3, 5, 6, 7],
        "neighbours count once"
    );
}

#[test]
fn of_equal_prices_the_earlier_date_counts_as_cheaper() {
    assert_eq!(second(&range_only(4, 1, 31), |_| Some(100), 31), [1, 2, 3]);
}

#[test]
fn a_line_without_a_price_is_not_refined() {
    assert!(second(&range_only(4, 2, 31), |_| None, 31).is_empty());
    assert_eq!(
        second(&range_only(4, 3, 31), |at| (at == 12).then_some(5), 31),
        [9, 10, 11, 13, 14, 15],
        "fewer prices than `refine`"
    );
}

#[test]
fn each_line_is_refined_by_its_own_prices() {
    // Two origins (outer), nine dates, three markets (inner), two samples.
    let phases = TwoPhase {
        coarse_step: 4,
        refine: 1,
        dates: 9,
        inner_items: 3,
        combinations: 54,
    };
    let price = |position: usize| {
        let search = position % 54;
        let (line, date) = ((search / 27, search % 3), search / 3 % 9);
        // The first origin's second market is cheapest at the end, all others at the beginning.
        let cheap = if line == (0, 1) { 8 } else { 0 };
        Some(if date == cheap { 100 } else { 200 })
    };
    let wanted: BTreeSet<_> = second(&phases, price, 108).into_iter().collect();
    for position in 0..108 {
        let search = position % 54;
        let (line, date) = ((search / 27, search % 3), search / 3 % 9);
        let near = if line == (0, 1) { 5..8 } else { 1..4 };
        assert_eq!(
            wanted.contains(&position),
            near.contains(&date),
            "{position}: {line:?} {date}"
        );
    }
}

proptest! {
    #[test]
    fn searches_stay_within_bounds_and_beside_the_cheapest(
        coarse_step in 2_usize..9, refine in 1_usize..5, dates in 1_usize..30, inner_items in 1_usize..3, outer in 1_usize..3,
        samples in 1_usize..3, prices in prop::collection::vec(prop::option::weighted(0.8, 1_i64..50), 240),
    ) {
        let combinations = dates * inner_items * outer;
        let items = combinations * samples;
        let phases = TwoPhase { coarse_step, refine, dates, inner_items, combinations };
        let first = coarse(&phases, items);
        let then = second(&phases, |at| prices[at], items);
        prop_assert!(then.iter().all(|position| !first.contains(position)), "nothing is searched twice");
        let bounds = phases.searches(items);
        prop_assert_eq!(first.len(), *bounds.start());
        prop_assert!(bounds.contains(&(first.len() + then.len())) && *bounds.end() <= items);
        // All samples of one search belong to the same phase, and all or none of them are searched.
        for position in 0..combinations {
            let of_all = |list: &[usize]| (0..samples).filter(|sample| list.contains(&(position + sample * combinations))).count();
            prop_assert!([0, samples].contains(&of_all(&first)) && [0, samples].contains(&of_all(&then)));
        }
        // The dates next to the cheapest date of the first phase were searched.
        let cheapest = first.iter().filter_map(|at| Some((prices[*at]?, at % combinations / inner_items % dates, at % combinations)))
            .filter(|(.., search)| search % inner_items == 0 && *search < dates * inner_items).min();
        if let Some((_, date, _)) = cheapest {
            let near = date.saturating_sub(coarse_step - 1)..dates.min(date + coarse_step);
            for date in near {
                let position = date * inner_items;
                prop_assert!(first.contains(&position) || then.contains(&position), "date {}", date);
            }
        }
    }
}
