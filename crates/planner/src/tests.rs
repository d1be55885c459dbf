//! What is searched, in which order, where it ends, and what is declared: what no scan shows.

use jiff::civil::{Date, date};
use jiff::{SignedDuration, ToSpan as _};
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;
use crate::misses::{EVERYTHING, SETTINGS};
use farescan_contract::scans::DecisionReason::Found;

const FIRST: Date = date(2027, 3, 1);
const USUAL: Setting = SETTINGS[4];
const HASTY: Setting = SETTINGS[5];
const SLOW: Setting = SETTINGS[3];
const FAST: Setting = SETTINGS[6];

/// Candidates on consecutive dates; `None`: never seen, 0: no offer when it was seen.
fn calendar(days: i64, prices: impl IntoIterator<Item = Option<i64>>) -> Vec<Candidate> {
    let stored = |price: i64| StoredPrice {
        price: (price > 0).then(|| price.into()),
        age: SignedDuration::from_hours(24 * days),
    };
    let candidate = |(price, date): (Option<i64>, Date)| Candidate {
        stored: price.map(stored),
        ..Candidate::unknown(date)
    };
    let dates = FIRST.series(1.day());
    prices.into_iter().zip(dates).map(candidate).collect()
}

fn seen(days: i64, prices: &[i64]) -> Vec<Candidate> {
    calendar(days, prices.iter().copied().map(Some))
}

fn find(setting: Setting) -> BoundSearch {
    let (questions, missed) = (200, 7);
    let counted = Some(MissCount { questions, missed });
    BoundSearch {
        wanted: Wanted::Cheapest,
        ends: Ends::Answered(SettingChoice { setting, counted }),
        most: usize::MAX,
    }
}

fn below(price: i64) -> BoundSearch {
    BoundSearch {
        wanted: Wanted::Below(price.into()),
        ..find(USUAL)
    }
}

fn limited(most: usize) -> BoundSearch {
    BoundSearch {
        most,
        ..find(USUAL)
    }
}

fn played(search: &BoundSearch, candidates: &[Candidate], now: &[i64]) -> Played {
    let price = |at: usize| (now[at] > 0).then(|| now[at].into());
    play(search, &mut candidates.to_vec(), price)
}

/// 90 dates, the cheaper the nearer to the middle.
fn valley() -> Vec<i64> {
    (0..90_i64).map(|at| 100 + 10 * (at - 45).abs()).collect()
}

/// Each line: the search, the stored prices' age in days, stored prices and prices now; and the number
/// of searches, the reason of the end, the position and the risk that it names.
#[test]
fn a_search_ends_where_nothing_can_be_cheaper_or_its_patience_does() {
    let (valley, flat) = (&valley()[..], &[300; 90][..]);
    let few = &[100; 20][..];
    let (some, fallen) = (&[0, 200, 0, 210, 0][..], &[50, 200, 50, 210, 50][..]);
    let cases = [
        // Dates of 110 cost at least 110 / 1.06 = 103.8 after a day, 93 after three; those of 140
        // 98.6 after seven.
        (find(HASTY), 1, valley, valley, "2 NothingBelow 45 0.035"),
        (find(HASTY), 3, valley, valley, "4 NothingBelow 45 0.035"),
        (find(HASTY), 7, valley, valley, "10 NothingBelow 45 0.035"),
        (find(HASTY), 14, valley, valley, "18 NothingBelow 45 0.035"),
        // Two are searched at a time, and patience counts those after the first two.
        (find(USUAL), 1, flat, flat, "12 NothingBetter 0 0.035"),
        (find(USUAL), 7, flat, flat, "18 NothingBetter 0 0.035"),
        (find(USUAL), 14, flat, flat, "24 NothingBetter 0 0.035"),
        (find(HASTY), 1, flat, flat, "90 NothingLeft 0 0"),
        // What had no offer is searched last, but two always are.
        (find(FAST), 7, some, fallen, "2 NothingBelow 1 0.035"),
        (
            find(FAST),
            1,
            &[0; 3],
            &[0, 90, 0],
            "2 NothingBelow 1 0.035",
        ),
        (below(101), 1, valley, valley, "2 Found 45 0"),
        (below(100), 1, valley, valley, "2 NothingBelow 45 0.035"),
        (below(50), 1, valley, valley, "2 NothingBelow 45 0.035"),
        // Five prices far from the stored ones are declared, three are not. Those of two weeks ago
        // may be half as high again, and no more.
        (limited(3), 1, few, &[300; 20], "3 LimitReached 0 unknown"),
        (limited(5), 1, few, &[300; 20], "5 LimitReached 0 0.75"),
        (limited(5), 14, few, &[149; 20], "5 LimitReached 0 unknown"),
        (limited(5), 14, few, &[151; 20], "5 LimitReached 0 0.75"),
    ];
    for (search, days, stored, now, expected) in cases {
        let Played { searched, end } = played(&search, &seen(days, stored), now);
        let risk = end
            .risk
            .map_or("unknown".to_owned(), |risk| risk.to_string());
        let best = end.best.unwrap().0;
        let found = format!("{} {:?} {best} {risk}", searched.len(), end.reason);
        assert_eq!(found, expected, "{search:?}, {days} days");
    }
}

#[test]
fn a_date_that_was_never_seen_is_taken_for_its_nearest_ones_in_its_line() {
    let mut stored: Vec<_> = valley().into_iter().map(Some).collect();
    stored[45..=46].fill(None);
    let mut candidates = calendar(1, stored);
    let first = |candidates: &[Candidate]| find(USUAL).decide(candidates).search;
    // 110 / 1.1 is below 110 / 1.06.
    assert_eq!(first(&candidates), [45, 46]);
    candidates[46].line = 1;
    candidates[50].line = 1;
    assert_eq!(first(&candidates), [45, 44], "50 is near in line 1, at 150");
}

/// Of two airports one has no flight: the dates on which it is asked in vain, and the answer.
#[test]
fn an_airport_without_flights_is_asked_on_every_weekday_and_no_more() {
    let two = |dates: usize| -> Vec<Candidate> {
        let one = calendar(0, vec![None; dates]);
        let other = one.iter().map(|one| Candidate {
            line: 1,
            ..one.clone()
        });
        one.iter().cloned().chain(other).collect()
    };
    let asked = |candidates: &[Candidate], now: &[i64]| {
        let Played { searched, end } = played(&find(USUAL), candidates, now);
        let in_vain = searched.iter().filter(|at| now[**at] == 0).count();
        (in_vain, end.best.map(|(at, _)| at))
    };
    let (valley, none) = (valley(), [0; 90]);
    assert_eq!(
        asked(&two(90), &[&valley[..], &none].concat()),
        (24, Some(45))
    );
    // Of a month every fourth date falls on each weekday, of 20 days six more are asked, of six all.
    let shorter = |dates: usize| asked(&two(dates), &[&valley[..dates], &none[..dates]].concat());
    assert_eq!(shorter(26), (8, Some(25)));
    assert_eq!(shorter(20), (12, Some(19)));
    assert_eq!(shorter(6), (6, Some(5)));
    // Nothing is said to be nowhere before it was looked for everywhere.
    assert_eq!(asked(&two(90), &[0; 180]), (180, None));
}

#[test]
fn the_setting_is_the_cheapest_whose_counted_misses_are_few_enough() {
    let (own, has_prior) = ([].into(), true);
    let misses = Misses { own, has_prior };
    for (known, risk, expected) in [
        (Known::Day, 0.05, Some((SLOW, 25))),
        (Known::Days3, 0.05, Some((SLOW, 39))),
        (Known::Days7, 0.05, Some((USUAL, 45))),
        (Known::Days14, 0.05, Some((USUAL, 46))),
        (Known::Days7, 0.2, Some((SLOW, 18))),
        (Known::Days7, 0.02, Some((HASTY, 5))),
        (Known::Days7, 0.005, Some((FAST, 0))),
        (Known::Days7, 0.0, None),
        (Known::Day, 0.005, None),
    ] {
        let choice = misses.choose(known, risk);
        let counted = choice
            .counted
            .map(|counted| (choice.setting, counted.missed));
        assert_eq!(counted, expected, "{known:?}, {risk}");
        assert_eq!(choice.setting == EVERYTHING, expected.is_none());
    }
    for known in [Known::Little, Known::Part, Known::Older] {
        let SettingChoice { setting, counted } = misses.choose(known, 0.05);
        assert_eq!((setting, counted), (USUAL, None));
    }
    // Where none was missed, one is declared.
    for (missed, share) in [(0, "0.0025"), (1, "0.0025"), (8, "0.02")] {
        let questions = 400;
        let count = MissCount { questions, missed };
        assert_eq!(count.share().to_string(), share);
    }
}

#[test]
fn own_counts_replace_the_prior_once_they_are_thirty() {
    for (questions, has_prior, setting, counted) in [
        (29, true, USUAL, Some(1_188)),
        (30, true, SETTINGS[0], Some(30)),
        (29, false, USUAL, None),
        (30, false, SETTINGS[0], Some(30)),
    ] {
        let count = MissCount {
            questions,
            missed: 0,
        };
        let own = [((Known::Days7, SETTINGS[0]), count)].into();
        let choice = Misses { own, has_prior }.choose(Known::Days7, 0.05);
        let of = choice.counted.map(|count| count.questions);
        assert_eq!((choice.setting, of), (setting, counted));
    }
}

#[test]
fn a_replay_counts_a_miss_for_each_setting_that_would_have_missed() {
    let mut now = valley();
    now[52] = 90;
    let found: Vec<_> = now.iter().map(|price| Some((*price).into())).collect();
    let replayed = replay(&seen(7, &valley()), &found).unwrap();
    assert_eq!(replayed.known, Known::Days7);
    let missed: Vec<_> = replayed.missed.iter().map(|(_, missed)| *missed).collect();
    // It cost 170 a week ago: only 10 % a day lets it cost 100.
    assert_eq!(missed, [true, true, true, true, true, true, false]);
    assert_eq!(replay(&seen(7, &valley()), &[None; 90]), None);
}

#[test]
fn a_doubled_price_counts_once_it_was_seen_twice() {
    let price = |price: i64| Some(Decimal::from(price));
    // What no decimal holds twice.
    let most = Some(Decimal::MAX);
    for (newest, before, is_trusted) in [
        (price(100), Some(price(60)), true),
        (price(120), Some(price(60)), false),
        (price(10), Some(price(60)), true),
        (None, Some(price(60)), false),
        (None, Some(None), true),
        (price(60), Some(None), true),
        (price(60), None, true),
        (most, Some(most), true),
        (most, Some(price(60)), false),
    ] {
        let (_, day) = trusted((newest, 2), before.map(|before| (before, 1)));
        assert_eq!(day == 2, is_trusted, "{newest:?} after {before:?}");
    }
}

proptest! {
    /// Whatever is known and found: nothing is searched twice or beyond the most, the best is the
    /// lowest found, and a watch spends what it may.
    #[test]
    fn a_search_ends_within_its_limit_with_the_lowest_found(
        dates in prop::collection::vec((prop::option::weighted(0.7, 0_i64..60), 0_i64..60, 0_usize..3), 1..60),
        days in 0_i64..30, most in 0_usize..70, setting in prop::sample::select(SETTINGS.to_vec()),
        below in prop::option::of(1_i64..60), budget in prop::option::of(0_usize..45),
    ) {
        let now: Vec<_> = dates.iter().map(|date| date.1).collect();
        let mut candidates = calendar(days, dates.iter().map(|date| date.0));
        for (candidate, date) in candidates.iter_mut().zip(&dates) {
            candidate.line = date.2;
        }
        let search = BoundSearch {
            wanted: below.map_or(Wanted::Cheapest, |price| Wanted::Below(price.into())),
            ends: budget.map_or(find(setting).ends, |budget| Ends::Spent { budget }),
            most,
        };
        let Played { searched, end } = played(&search, &candidates, &now);
        prop_assert!(searched.len() <= most && end.search.is_empty());
        prop_assert!(searched.len() >= most.min(2).min(dates.len()) || end.reason == Found);
        let once: std::collections::BTreeSet<_> = searched.iter().collect();
        prop_assert_eq!(once.len(), searched.len());
        let lowest = searched.iter().filter(|at| now[**at] > 0).map(|at| now[*at]).min();
        prop_assert_eq!(end.best.map(|(_, price)| price), lowest.map(Decimal::from));
        if searched.len() == dates.len() && end.reason != Found {
            prop_assert_eq!(end.risk, Some(0.0));
        }
        if budget.is_some() {
            prop_assert_eq!(searched.len(), most.min(dates.len()));
        }
    }
}
