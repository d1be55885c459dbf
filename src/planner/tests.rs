//! Decisions as pure functions of what is known.

use jiff::SignedDuration;
use jiff::civil::date;
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;

/// Candidates with stored prices.
fn stored(prices: &[Option<i64>]) -> Vec<Candidate> {
    let price = |price: &Option<i64>| StoredPrice {
        price: price.map(Decimal::from),
        age: SignedDuration::from_hours(24),
    };
    prices
        .iter()
        .map(|stored| Candidate {
            stored: Some(price(stored)),
            ..Candidate::unknown(date(2027, 3, 1))
        })
        .collect()
}

fn phases(coarse_step: usize, refine: usize, dates: usize) -> TwoPhase {
    TwoPhase {
        coarse_step,
        refine,
        dates,
        inner_items: 1,
        combinations: dates,
    }
}

fn found(prices: &[Option<i64>]) -> impl Fn(usize) -> Option<Decimal> {
    |position| prices[position].map(Decimal::from)
}

#[test]
fn a_full_search_names_the_first_of_the_cheapest() {
    let prices = [None, Some(30), Some(20), Some(20)];
    let mut candidates = vec![Candidate::unknown(date(2027, 3, 1)); 4];
    let played = play(&FullSearch, &mut candidates, found(&prices));
    assert_eq!(played.searched, [0, 1, 2, 3]);
    assert_eq!(
        (played.best.position, played.best.risk),
        (Some(2), Some(0.0))
    );
    assert_eq!(
        candidates[0].searched,
        Some(None),
        "an answer without an offer"
    );
}

#[test]
fn a_stored_calendar_searches_its_cheapest_dates_and_believes_only_the_new_prices() {
    let mut candidates = stored(&[Some(50), None, Some(10), Some(20), Some(20)]);
    let now = [Some(5), Some(1), Some(90), Some(25), Some(24)];
    let played = play(
        &StoredCalendar { searches: 3 },
        &mut candidates,
        found(&now),
    );
    assert_eq!(played.searched, [2, 3, 4]);
    assert_eq!(played.best.position, Some(4));
    let view = SearchView {
        candidates: &candidates,
    };
    assert_eq!(view.cheapest_known(), Some(4), "24 is below the stored 50");
}

#[test]
fn nothing_stored_is_nothing_to_search() {
    let mut candidates = vec![Candidate::unknown(date(2027, 3, 1)); 4];
    let played = play(&StoredCalendar { searches: 3 }, &mut candidates, |_| None);
    assert_eq!((played.searched.len(), played.best.position), (0, None));
}

#[test]
fn a_planner_that_repeats_itself_ends() {
    struct Stubborn;
    impl SearchPlanner for Stubborn {
        fn decide(&self, _: &SearchView<'_>) -> PlannerDecision {
            PlannerDecision::Search(vec![0, 9])
        }
    }
    let mut candidates = vec![Candidate::unknown(date(2027, 3, 1)); 2];
    let played = play(&Stubborn, &mut candidates, |_| None);
    assert_eq!((played.searched, played.best.position), (vec![0], None));
}

proptest! {
    /// The planner makes the choices that the service makes from the same functions, also when it
    /// is asked again in the middle of a phase.
    #[test]
    fn two_phases_are_those_of_the_service(
        coarse_step in 2_usize..7, refine in 1_usize..5, prices in prop::collection::vec(prop::option::weighted(0.8, 1_i64..60), 1..70),
        searched in prop::collection::vec(any::<bool>(), 70),
    ) {
        let phases = phases(coarse_step, refine, prices.len());
        let mut candidates = vec![Candidate::unknown(date(2027, 3, 1)); prices.len()];
        let played = play(&phases, &mut candidates, found(&prices));

        let (first, deferred): (Vec<_>, Vec<_>) = (0..prices.len()).partition(|position| phases.is_coarse(*position));
        let known: Vec<_> = first.iter().filter_map(|at| Some((*at, Decimal::from(prices[*at]?)))).collect();
        let then = phases.second_phase(&known, &deferred);
        let wanted: Vec<_> = first.into_iter().chain(then).collect();
        prop_assert_eq!(&played.searched, &wanted);
        let cheapest = wanted.iter().copied().filter_map(|at| Some((prices[at]?, at))).min();
        prop_assert_eq!(played.best.position, cheapest.map(|(_, at)| at));

        // A crash in the middle: what was searched before is not searched again, all else is.
        let mut resumed = vec![Candidate::unknown(date(2027, 3, 1)); prices.len()];
        let coarse_first = wanted.iter().filter(|at| searched[**at] && phases.is_coarse(**at));
        for at in coarse_first {
            resumed[*at].searched = Some(prices[*at].map(Decimal::from));
        }
        let again = play(&phases, &mut resumed, found(&prices));
        prop_assert!(again.searched.iter().all(|at| wanted.contains(at)));
        prop_assert_eq!(again.best.position, played.best.position);
    }
}
