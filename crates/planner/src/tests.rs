//! What is searched, in which order, where it ends, and what is declared.

use jiff::civil::{Date, date};
use jiff::{SignedDuration, ToSpan as _};
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;
use farescan_contract::scans::DecisionReason;

const FIRST: Date = date(2027, 3, 1);
const PATIENT: Setting = SETTINGS[4];

/// Candidates on consecutive dates; `None`: never seen, 0: no offer when it was seen.
fn calendar(days: i64, prices: &[Option<i64>]) -> Vec<Candidate> {
    let stored = |price: i64| StoredPrice {
        price: (price > 0).then(|| Decimal::from(price)),
        age: SignedDuration::from_hours(24 * days),
    };
    let dates = FIRST.series(1.day());
    let candidate = |(price, date): (&Option<i64>, Date)| Candidate {
        stored: price.map(stored),
        ..Candidate::unknown(date)
    };
    prices.iter().zip(dates).map(candidate).collect()
}

fn seen(days: i64, prices: &[i64]) -> Vec<Candidate> {
    calendar(days, &prices.iter().copied().map(Some).collect::<Vec<_>>())
}

fn find(setting: Setting) -> BoundSearch {
    let counted = Some(MissCount {
        questions: 200,
        missed: 7,
    });
    BoundSearch {
        wanted: Wanted::Cheapest,
        choice: SettingChoice { setting, counted },
        most: usize::MAX,
        batch: 1,
        ends: Ends::Answered,
    }
}

fn played(search: &BoundSearch, candidates: &[Candidate], now: &[i64]) -> (Played, SearchDecision) {
    let mut candidates = candidates.to_vec();
    let price = |at: usize| (now[at] > 0).then(|| Decimal::from(now[at]));
    let played = play(search, &mut candidates, price);
    let view = SearchView {
        candidates: &candidates,
    };
    (played, search.explain(&view))
}

/// 90 dates, the cheaper the nearer to the middle.
fn valley() -> Vec<i64> {
    (0..90_i64).map(|at| 100 + 10 * (at - 45).abs()).collect()
}

#[test]
fn unchanged_prices_end_once_no_bound_is_below_the_best() {
    let prices = valley();
    let (played, end) = played(&find(PATIENT), &seen(1, &prices), &prices);
    // 100 / 1.06 is below 100; the next bounds are 110 / 1.06 = 103.8 and more.
    assert_eq!(played.searched, [45, 44]);
    assert_eq!(
        (end.reason, position(&end)),
        (DecisionReason::NothingBelow, Some(45))
    );
    let counted = MissCount {
        questions: 200,
        missed: 7,
    };
    assert_eq!(
        end.risk,
        Some(Risk::Counted(counted)),
        "a proof declares the count, never 0"
    );
}

#[test]
fn older_prices_have_lower_bounds() {
    let prices = valley();
    let searches = |days| {
        played(&find(setting(6, false)), &seen(days, &prices), &prices)
            .0
            .searched
            .len()
    };
    // Dates of 110 cost 110 / 1.18 = 93 at least after three days, those of 140 after seven days 98.6.
    assert_eq!([1, 3, 7, 14].map(searches), [2, 3, 9, 17]);
}

fn position(decision: &SearchDecision) -> Option<usize> {
    decision.best.map(|(position, _)| position)
}

fn setting(percent_a_day: u8, is_patient: bool) -> Setting {
    Setting {
        percent_a_day,
        is_patient,
    }
}

#[test]
fn patience_ends_a_search_among_dates_that_share_the_lowest_fare() {
    let prices = vec![300; 90];
    for (days, searches) in [(1, 10), (7, 16), (14, 23)] {
        let (played, end) = played(&find(PATIENT), &seen(days, &prices), &prices);
        assert_eq!(
            (played.searched.len(), end.reason),
            (searches, DecisionReason::NothingBetter)
        );
    }
    let (impatient, _) = played(&find(setting(6, false)), &seen(1, &prices), &prices);
    assert_eq!(impatient.searched.len(), 90);
}

#[test]
fn a_date_without_an_offer_is_searched_only_by_exploration() {
    let stored = [0, 200, 0, 210, 0];
    let now = [50, 200, 50, 210, 50];
    let (found, end) = played(&find(setting(10, false)), &seen(7, &stored), &now);
    assert_eq!((found.searched, position(&end)), (vec![1, 3], Some(1)));
    let watch = BoundSearch::of_watch(Wanted::Cheapest, 3, 3);
    let (explored, end) = played(&watch, &seen(7, &stored), &now);
    assert_eq!(
        (explored.searched, position(&end)),
        (vec![1, 0, 3], Some(0))
    );
}

#[test]
fn at_least_two_are_searched_also_where_none_had_an_offer() {
    let (found, end) = played(&find(PATIENT), &seen(1, &[0, 0, 0]), &[0, 90, 0]);
    assert_eq!((found.searched, position(&end)), (vec![0, 1], Some(1)));
}

#[test]
fn below_ends_with_the_first_one_or_when_no_bound_is_below() {
    let prices = valley();
    let below = |price: i64| BoundSearch {
        wanted: Wanted::Below(price.into()),
        ..find(PATIENT)
    };
    let (yes, end) = played(&below(101), &seen(1, &prices), &prices);
    assert_eq!(
        (yes.searched, end.reason, end.risk),
        (vec![45], DecisionReason::Found, Some(Risk::None))
    );
    let (equal, end) = played(&below(100), &seen(1, &prices), &prices);
    assert_eq!(
        (equal.searched.len(), end.reason),
        (2, DecisionReason::NothingBelow),
        "an equal price is not below"
    );
    let (no, end) = played(&below(50), &seen(1, &prices), &prices);
    assert_eq!(
        (no.searched.len(), end.reason),
        (2, DecisionReason::NothingBelow)
    );
}

#[test]
fn from_nothing_every_fourth_date_comes_first_then_those_near_the_cheapest() {
    let prices = valley();
    let (found, end) = played(&find(PATIENT), &calendar(1, &[None; 90]), &prices);
    let grid: Vec<_> = (0..90).step_by(4).chain([89]).collect();
    assert_eq!(found.searched[..24], grid);
    assert_eq!(position(&end), Some(45), "{found:?}");
    assert!(found.searched.len() < 45, "{found:?}");
}

#[test]
fn a_date_that_was_never_seen_is_taken_for_its_nearest_ones_in_its_line() {
    let mut stored: Vec<_> = valley().into_iter().map(Some).collect();
    stored[45] = None;
    stored[46] = None;
    let mut candidates = calendar(1, &stored);
    let first = |candidates: &[Candidate]| find(PATIENT).explain(&SearchView { candidates }).search;
    assert_eq!(first(&candidates), [45], "110 / 1.1 is below 110 / 1.06");
    candidates[45].line = 1;
    candidates[46].line = 1;
    assert_eq!(
        first(&candidates),
        [45, 46],
        "nothing is known of another line"
    );
}

#[test]
fn without_structure_it_searches_all_it_may_and_says_that_it_does_not_know() {
    let stored: Vec<_> = (0..90).map(|at| 100 + at).collect();
    let now: Vec<_> = (0..90).map(|at| 50 + 7 * (at * 37 % 90)).collect();
    let search = BoundSearch {
        most: 54,
        ..find(PATIENT)
    };
    let (found, end) = played(&search, &seen(1, &stored), &now);
    assert_eq!(found.searched.len(), 54);
    assert_eq!(
        end.risk,
        Some(Risk::Unsearched {
            unsearched: 36,
            of: 90
        })
    );
}

#[test]
fn an_implausible_price_is_no_best_price_and_ends_nothing() {
    let prices = valley();
    let mut candidates = seen(1, &prices);
    candidates[45] = Candidate {
        searched: Some(Some(Decimal::ONE)),
        implausible: true,
        turn: 1,
        ..candidates[45].clone()
    };
    let (found, end) = played(&find(PATIENT), &candidates, &prices);
    assert!(!found.searched.is_empty());
    assert_eq!(position(&end), Some(44));
    assert_eq!(end.risk, None, "the date may cost less than the best one");
}

#[test]
fn a_count_without_a_miss_declares_one() {
    let share = |missed| {
        MissCount {
            questions: 400,
            missed,
        }
        .share()
    };
    let shares = [0, 1, 8].map(|missed| format!("{:.4}", share(missed)));
    assert_eq!(shares, ["0.0025", "0.0025", "0.0200"]);
}

#[test]
fn the_setting_is_the_cheapest_whose_counted_misses_are_few_enough() {
    let misses = Misses::of_flights([].into());
    let chosen = |known, risk| misses.choose(known, risk).setting;
    let calendars = [Known::Day, Known::Days3, Known::Days7, Known::Days14];
    assert_eq!(
        calendars.map(|known| chosen(known, 0.05)),
        [setting(4, true), setting(4, true), PATIENT, PATIENT]
    );
    assert_eq!(
        [0.2, 0.02, 0.005].map(|risk| chosen(Known::Days7, risk)),
        [setting(4, true), setting(6, false), setting(10, false)]
    );
    assert!(
        chosen(Known::Day, 0.005).searches_everything()
            && chosen(Known::Days7, 0.0).searches_everything()
    );
    assert_eq!(
        misses.choose(Known::Days7, 0.05).counted,
        Some(MissCount {
            questions: 1_188,
            missed: 45
        })
    );
    for known in [Known::Little, Known::Part, Known::Older] {
        assert_eq!(
            misses.choose(known, 0.05),
            SettingChoice {
                setting: PATIENT,
                counted: None
            }
        );
    }
}

#[test]
fn own_counts_replace_the_prior_once_they_are_thirty() {
    let own = |questions| {
        let count = MissCount {
            questions,
            missed: 0,
        };
        std::collections::BTreeMap::from([((Known::Days7, setting(0, true)), count)])
    };
    let chosen = |misses: Misses| misses.choose(Known::Days7, 0.05);
    assert_eq!(chosen(Misses::of_flights(own(29))).setting, PATIENT);
    assert_eq!(
        chosen(Misses::of_flights(own(30))).setting,
        setting(0, true)
    );
    assert_eq!(
        chosen(Misses::of_stays(own(29))),
        SettingChoice {
            setting: PATIENT,
            counted: None
        }
    );
    assert_eq!(
        chosen(Misses::of_stays(own(30)))
            .counted
            .map(|count| count.questions),
        Some(30)
    );
}

#[test]
fn a_replay_counts_a_miss_for_each_setting_that_would_have_missed() {
    let mut now = valley();
    now[52] = 90;
    let found: Vec<_> = now
        .iter()
        .map(|price| Some(Decimal::from(*price)))
        .collect();
    let replayed = replay(&seen(7, &valley()), &found, 1).unwrap();
    assert_eq!(replayed.known, Known::Days7);
    let missed: Vec<_> = replayed
        .counts
        .iter()
        .map(|(_, count)| count.missed)
        .collect();
    // It cost 170 a week ago: only 10 % a day lets it cost 100.
    assert_eq!(missed, [1, 1, 1, 1, 1, 1, 0]);
    assert_eq!(replay(&seen(7, &valley()), &[None; 90], 1), None);
}

fn settings() -> impl Strategy<Value = Setting> {
    prop::sample::select(SETTINGS.to_vec())
}

#[test]
fn a_watch_searches_the_cheapest_again_until_it_still_is_then_explores_then_goes_by_bounds() {
    let prices = valley();
    let mut candidates = seen(1, &prices);
    candidates[80].stored = candidates[80].stored.map(|stored| StoredPrice {
        age: SignedDuration::from_hours(24 * 9),
        ..stored
    });
    let watch = BoundSearch {
        batch: 1,
        ..BoundSearch::of_watch(Wanted::Cheapest, 5, 5)
    };
    let (unchanged, _) = played(&watch, &candidates, &prices);
    assert_eq!(unchanged.searched, [45, 80, 44, 46, 43]);
    // What was the cheapest is gone: the next ones are searched until one holds.
    let mut now = prices.clone();
    now[45] = 0;
    now[44] = 150;
    let (gone, end) = played(&watch, &candidates, &now);
    assert_eq!(gone.searched, [45, 44, 46, 80, 43]);
    assert_eq!(position(&end), Some(46));
    // What explores is not spent on it.
    let (dearer, _) = played(&watch, &candidates, &[900; 90]);
    assert!(dearer.searched.contains(&80), "{dearer:?}");
    assert_eq!(end.risk, None, "nothing was counted of runs");
}

#[test]
fn a_watch_explores_by_the_last_try_and_not_by_the_last_answer() {
    let mut candidates = seen(1, &valley());
    for (at, days) in [(0, 30), (1, 20)] {
        candidates[at].stored = candidates[at].stored.map(|stored| StoredPrice {
            age: SignedDuration::from_hours(24 * days),
            ..stored
        });
    }
    candidates[0].tried = Some(SignedDuration::from_hours(24));
    let watch = BoundSearch::of_watch(Wanted::Cheapest, 5, 5);
    let (run, _) = played(&watch, &candidates, &valley());
    assert!(run.searched.contains(&1) && !run.searched.contains(&0));
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
    ] {
        assert_eq!(trusted([newest, before]), expected);
    }
}

#[test]
fn two_doubted_prices_are_searched_on_and_five_are_needed_to_declare_it() {
    let stored = vec![100; 20];
    let mut now = vec![300; 20];
    let limited = |most| BoundSearch {
        most,
        ..find(PATIENT)
    };
    let (_, end) = played(&limited(3), &seen(1, &stored), &now);
    assert_eq!((end.reason, end.risk), (DecisionReason::LimitReached, None));
    let (_, end) = played(&limited(5), &seen(1, &stored), &now);
    let unsearched = Risk::Unsearched {
        unsearched: 15,
        of: 20,
    };
    assert_eq!(end.risk, Some(unsearched));
    // Prices of two weeks ago may be half as high again, and no more.
    now.fill(149);
    let (_, end) = played(&limited(5), &seen(14, &stored), &now);
    assert_eq!(end.risk, None, "they are as expected");
    now.fill(151);
    let (_, end) = played(&limited(5), &seen(14, &stored), &now);
    assert_eq!(end.risk, Some(unsearched));
}

proptest! {
    /// Whatever is known and found: nothing is searched twice or beyond the most, the best is the
    /// lowest found, and the same view gives the same decision.
    #[test]
    fn a_search_ends_within_its_limit_with_the_lowest_found(
        dates in prop::collection::vec((prop::option::weighted(0.7, 0_i64..60), 0_i64..60, 0_usize..3), 1..60),
        days in 0_i64..30, most in 0_usize..70, batch in 0_usize..5, setting in settings(),
        below in prop::option::of(1_i64..60), explore in prop::option::of(0_usize..9),
    ) {
        let stored: Vec<_> = dates.iter().map(|date| date.0).collect();
        let now: Vec<_> = dates.iter().map(|date| date.1).collect();
        let mut candidates = calendar(days, &stored);
        for (candidate, date) in candidates.iter_mut().zip(&dates) {
            candidate.line = date.2;
        }
        let search = BoundSearch {
            wanted: below.map_or(Wanted::Cheapest, |price| Wanted::Below(price.into())),
            most, batch,
            ends: explore.map_or(Ends::Answered, |explore| Ends::Spent { explore }),
            ..find(setting)
        };
        let (found, end) = played(&search, &candidates, &now);
        prop_assert!(found.searched.len() <= most);
        prop_assert!(found.searched.len() >= most.min(2).min(dates.len()) || end.reason == DecisionReason::Found);
        let mut once = found.searched.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), found.searched.len());
        let lowest = found.searched.iter().filter(|at| now[**at] > 0).map(|at| now[*at]).min();
        prop_assert_eq!(position(&end).map(|at| now[at]), lowest);
        prop_assert!(end.search.is_empty());
        if found.searched.len() == dates.len() && end.reason != DecisionReason::Found {
            prop_assert_eq!(end.risk, Some(Risk::None));
        }
        if explore.is_some() {
            prop_assert_eq!(found.searched.len(), most.min(dates.len()));
        }
    }

    /// A process that ends in the middle of a decision's searches searches none of them again, and
    /// names the lowest price of both parts.
    #[test]
    fn a_search_that_begins_again_in_the_middle_repeats_none(
        prices in prop::collection::vec((1_i64..60, 1_i64..60), 2..60), days in 0_i64..15, cut in 0_usize..60,
    ) {
        let (stored, now): (Vec<_>, Vec<_>) = prices.into_iter().unzip();
        let search = BoundSearch { batch: 3, ..find(setting(6, false)) };
        let (whole, _) = played(&search, &seen(days, &stored), &now);
        let mut candidates = seen(days, &stored);
        for (nth, at) in whole.searched.iter().take(cut).enumerate() {
            candidates[*at].searched = Some(Some(now[*at].into()));
            candidates[*at].turn = 1 + nth / 3;
        }
        let (rest, _) = played(&search, &candidates, &now);
        let before = &whole.searched[..cut.min(whole.searched.len())];
        prop_assert!(rest.searched.iter().all(|at| !before.contains(at)));
        let lowest = before.iter().chain(&rest.searched).map(|at| now[*at]).min();
        prop_assert_eq!(rest.best.position.map(|at| now[at]), lowest);
    }
}
