//! What a run searches, in which order, and when it ends.

use jiff::SignedDuration;
use jiff::ToSpan as _;
use jiff::civil::date;
use proptest::prelude::*;

use super::*;
use crate::planner::{Played, StoredPrice, play};

const TODAY: Date = date(2027, 3, 1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Candidates from 30 days ahead on, with prices of a day ago.
fn calendar(prices: &[Option<i64>]) -> Vec<Candidate> {
    let dates = TODAY.saturating_add(30.days()).series(1.day());
    prices
        .iter()
        .zip(dates)
        .map(|(price, date)| Candidate {
            stored: Some(StoredPrice {
                price: price.map(Decimal::from),
                age: DAY,
            }),
            ..Candidate::unknown(date)
        })
        .collect()
}

/// Fares of a ladder, the cheapest dates in the middle.
fn fares(count: usize) -> Vec<Option<i64>> {
    let fare = |at: usize| [60, 73, 90, 109, 133, 163].get(at.abs_diff(count / 2) / 3);
    (0..count)
        .map(|at| Some(fare(at).copied().unwrap_or(200)))
        .collect()
}

fn watch(question: WatchQuestion, budget: usize, rates: &ChangeRates) -> Watch<'_> {
    Watch {
        question,
        budget,
        ceiling: budget,
        today: TODAY,
        rates,
    }
}

/// Plays a run; returns its decisions too, with what each searched.
fn run(
    watch: &Watch<'_>,
    candidates: &[Candidate],
    now: &[Option<i64>],
) -> (Vec<(DecisionReason, Vec<usize>)>, Played) {
    let mut known = candidates.to_vec();
    let mut decisions = Vec::new();
    loop {
        let explained = watch.explain(&SearchView { candidates: &known });
        let PlannerDecision::Search(batch) = explained.decision else {
            decisions.push((explained.reason, Vec::new()));
            break;
        };
        for position in &batch {
            known[*position].searched = Some(now[*position].map(Decimal::from));
        }
        decisions.push((explained.reason, batch));
        assert!(decisions.len() < 200, "{decisions:?}");
    }
    let mut candidates = candidates.to_vec();
    let played = play(watch, &mut candidates, |position| {
        now[position].map(Decimal::from)
    });
    (decisions, played)
}

#[test]
fn sentinels_come_first_then_exploration_then_the_likeliest() {
    let (rates, prices) = (ChangeRates::default(), fares(90));
    let mut candidates = calendar(&prices);
    candidates[7].stored = candidates[7].stored.map(|stored| StoredPrice {
        age: DAY * 9,
        ..stored
    });
    let watch = watch(WatchQuestion::Cheapest, 9, &rates);
    let (decisions, played) = run(&watch, &candidates, &prices);
    // Parts of thirty dates: the cheapest of each is the nearest to the middle.
    assert_eq!(
        decisions[0],
        (DecisionReason::Sentinels, vec![28, 43, 60]),
        "{decisions:?}"
    );
    assert_eq!(decisions[1], (DecisionReason::LongestUnseen, vec![7]));
    assert_eq!(decisions[2].0, DecisionReason::LikeliestCheaper);
    assert_eq!(played.best.position, Some(43));
    assert!(played.searched.len() <= 9, "{played:?}");
}

#[test]
fn a_fallen_sentinel_spends_the_budget() {
    let (rates, mut now) = (ChangeRates::default(), fares(90));
    let mut candidates = calendar(&now);
    for candidate in &mut candidates {
        candidate.stored = candidate.stored.map(|stored| StoredPrice {
            age: SignedDuration::from_mins(1),
            ..stored
        });
    }
    let watch = watch(WatchQuestion::Cheapest, 30, &rates);
    let (quiet, played) = run(&watch, &candidates, &now);
    assert_eq!(quiet.last().unwrap().0, DecisionReason::RiskAccepted);
    assert!(played.searched.len() < 30, "{quiet:?}");
    // The sentinel of the first fifth falls, but stays far from the cheapest.
    let sentinel = quiet[0].1[0];
    now[sentinel] = now[sentinel].map(|price| price * 9 / 10);
    let (burst, played) = run(&watch, &candidates, &now);
    assert_eq!(played.searched.len(), 30, "{burst:?}");
    assert!(
        burst
            .iter()
            .any(|(reason, _)| *reason == DecisionReason::Burst)
    );
    assert_eq!(burst.last().unwrap().0, DecisionReason::LimitReached);
}

#[test]
fn exploration_goes_by_the_last_try_and_not_by_the_last_answer() {
    let (rates, prices) = (ChangeRates::default(), fares(40));
    let mut candidates = calendar(&prices);
    for (position, days) in [(0, 30), (1, 20)] {
        candidates[position].stored = candidates[position].stored.map(|stored| StoredPrice {
            age: DAY * days,
            ..stored
        });
    }
    // Searched yesterday, in vain.
    candidates[0].tried = Some(DAY);
    let watch = watch(WatchQuestion::Cheapest, 10, &rates);
    let (decisions, _) = run(&watch, &candidates, &prices);
    assert_eq!(decisions[1], (DecisionReason::LongestUnseen, vec![1]));
}

#[test]
fn what_was_never_tried_gets_half_of_the_budget() {
    let (rates, prices) = (ChangeRates::default(), fares(40));
    let mut candidates = calendar(&prices);
    for candidate in &mut candidates[..20] {
        candidate.stored = None;
    }
    let at = |budget| {
        let watch = watch(WatchQuestion::Cheapest, budget, &rates);
        let (decisions, _) = run(&watch, &candidates, &prices);
        decisions
            .into_iter()
            .filter(|(reason, _)| *reason == DecisionReason::LongestUnseen)
            .flat_map(|(_, searched)| searched)
            .collect::<Vec<_>>()
    };
    assert_eq!(at(10), [0, 4, 8, 12, 16], "spread");
    let nothing: Vec<_> = candidates
        .iter()
        .map(|candidate| Candidate::unknown(candidate.date))
        .collect();
    let watch = watch(WatchQuestion::Cheapest, 10, &rates);
    let (_, played) = run(&watch, &nothing, &prices);
    let mut searched = played.searched;
    searched.sort_unstable();
    assert_eq!(searched, [0, 4, 8, 12, 16, 20, 24, 28, 32, 36]);
}

#[test]
fn a_price_below_the_limit_is_verified_first() {
    let (rates, prices) = (ChangeRates::default(), fares(90));
    let limit = |price: i64| {
        let watch = watch(WatchQuestion::Below(price.into()), 18, &rates);
        run(&watch, &calendar(&prices), &prices)
    };
    let (decisions, played) = limit(75);
    assert_eq!(played.best.position, Some(43), "{decisions:?}");
    // Nothing can be below this: the run ends early, and says so.
    let (decisions, played) = limit(20);
    assert_eq!(decisions.last().unwrap().0, DecisionReason::RiskAccepted);
    assert!(played.searched.len() < 18, "{decisions:?}");
    // One step of the fares below the cheapest: all of those are looked at.
    let (decisions, played) = limit(55);
    assert_eq!(decisions[2].0, DecisionReason::LikeliestBelow);
    let has = |position| played.searched.contains(&position);
    assert!((43..=47).all(has), "{decisions:?}");
}

#[test]
fn every_date_is_searched_where_that_is_worth_the_most() {
    let rates = ChangeRates::default();
    let mut candidates = calendar(&fares(60));
    // Not seen for a week, and thirty days nearer.
    for candidate in &mut candidates[50..] {
        candidate.stored = candidate.stored.map(|stored| StoredPrice {
            age: DAY * 7,
            ..stored
        });
    }
    let watch = watch(WatchQuestion::EveryDate, 10, &rates);
    let (decisions, played) = run(&watch, &candidates, &fares(60));
    assert!(
        played.searched.iter().all(|position| *position >= 50),
        "{decisions:?}"
    );
    assert_eq!(decisions[1].0, DecisionReason::LikeliestChanged);
    let risk = played.best.risk.unwrap();
    assert!(
        (0.1..0.5).contains(&risk),
        "a share of changed prices: {risk}"
    );
}

#[test]
fn a_doubled_price_counts_once_it_was_seen_twice() {
    let price = |price: i64, day: i32| Some((Some(Decimal::from(price)), day));
    let none = |day: i32| Some((None, day));
    // What no decimal holds twice.
    let most = |day: i32| Some((Some(Decimal::MAX), day));
    for (newest, before, expected) in [
        (price(100, 2), price(60, 1), price(100, 2)),
        (price(120, 2), price(60, 1), price(60, 1)),
        (price(10, 2), price(60, 1), price(10, 2)),
        (none(2), price(60, 1), price(60, 1)),
        (none(2), none(1), none(2)),
        (price(60, 2), none(1), price(60, 2)),
        (price(60, 2), None, price(60, 2)),
        (None, None, None),
        (most(2), most(1), most(2)),
        (most(2), price(60, 1), price(60, 1)),
        (price(60, 2), most(1), price(60, 2)),
    ] {
        assert_eq!(trusted([newest, before]), expected);
    }
}

/// Stored answers, their ages in hours, whether they were tried since, and the prices now.
fn runs() -> impl Strategy<Value = (Vec<Candidate>, Vec<Option<i64>>)> {
    let price = || prop::option::weighted(0.9, 20_i64..400);
    let one = (
        prop::option::weighted(0.8, (price(), 0_i64..700)),
        prop::option::weighted(0.1, 0_i64..700),
        price(),
        any::<bool>(),
    );
    prop::collection::vec(one, 1..60).prop_map(|all| {
        let dates = TODAY.saturating_add(2.days()).series(1.day());
        all.into_iter()
            .zip(dates)
            .map(|((stored, tried, now, is_same), date)| {
                let candidate = Candidate {
                    stored: stored.map(|(price, hours)| StoredPrice {
                        price: price.map(Decimal::from),
                        age: SignedDuration::from_hours(hours),
                    }),
                    tried: tried.map(SignedDuration::from_hours),
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
    fn a_run_keeps_to_its_budget_and_explores_a_tenth(
        (candidates, now) in runs(), budget in 2_usize..70,
        question in prop_oneof![
            Just(WatchQuestion::Cheapest), Just(WatchQuestion::EveryDate), Just(WatchQuestion::Below(100.into())),
        ],
    ) {
        let rates = ChangeRates::default();
        let watch = watch(question, budget, &rates);
        let (decisions, played) = run(&watch, &candidates, &now);
        let all: Vec<_> = decisions.iter().flat_map(|(_, searched)| searched.clone()).collect();
        prop_assert_eq!(&all, &played.searched, "the same again");
        let mut positions = all.clone();
        positions.sort_unstable();
        positions.dedup();
        prop_assert_eq!(positions.len(), all.len(), "never twice");
        prop_assert!(all.len() <= budget);
        // Each decision leaves room for a second try of each of its searches.
        let mut left = budget;
        for (_, searched) in &decisions {
            prop_assert!(2 * searched.len() <= left + 1, "{:?}", decisions);
            left -= searched.len();
        }
        let explored: usize = decisions.iter()
            .filter(|(reason, _)| *reason == DecisionReason::LongestUnseen)
            .map(|(_, searched)| searched.len())
            .sum();
        let is_all = all.len() == candidates.len();
        prop_assert!(explored * 10 >= all.len() || is_all, "{:?}", decisions);
        let risk = played.best.risk.unwrap();
        prop_assert!((0.0..=1.0).contains(&risk));
        let cheapest = all.iter().filter_map(|at| Some((now[*at]?, *at))).min();
        prop_assert_eq!(played.best.position, cheapest.map(|(_, at)| at));
    }
}

#[test]
fn a_decision_takes_less_than_5_ms() {
    let rates = ChangeRates::default();
    let prices = fares(1_000);
    let mut candidates = calendar(&prices);
    for at in 450..550 {
        candidates[at].searched = Some(prices[at].map(Decimal::from));
    }
    let view = SearchView {
        candidates: &candidates,
    };
    let watch = watch(WatchQuestion::Cheapest, 500, &rates);
    // The fastest of many: the machine may be busy with other tests.
    let fastest = (0..30).map(|_| {
        let begun = std::time::Instant::now();
        std::hint::black_box(watch.decide(&view));
        begun.elapsed()
    });
    let fastest = fastest.min().unwrap();
    println!("{fastest:?}");
    assert!(fastest.as_micros() < 5_000, "{fastest:?}");
}
