//! Families and effects, measured.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::scenarios::sales::LadderSales;
use crate::scenarios::unchanged::UnchangedShares;

const EVERYTHING: &str =
    "[ladder]\n[weekdays]\n[events]\n[sales]\n[sell_out]\n[within_day]\n[outliers]";

/// The last days to departure of the measured bins.
const BINS: [i64; 8] = [3, 7, 14, 30, 60, 90, 120, 361];

/// The share of prices that are the same a day later, by bin, over 240 departures of one route.
fn unchanged(prices: &PriceProcess) -> BTreeMap<i64, (u32, u32)> {
    let mut bins = BTreeMap::<i64, (u32, u32)>::new();
    for n in 0..240 {
        let departure = after(TODAY, 300 + n);
        let opening = after(departure, -200);
        let seen = series(prices, departure, opening, 201);
        for (day, pair) in (0_i64..).zip(seen.windows(2)) {
            let days = 200 - day;
            let bin = BINS.into_iter().find(|last| days <= *last).unwrap();
            let (same, all) = bins.entry(bin).or_default();
            *same += u32::from(pair[0] == pair[1]);
            *all += 1;
        }
    }
    bins
}

#[test]
fn prices_stay_as_often_as_was_measured_with_and_without_sales() {
    for text in ["[ladder]", "[ladder]\n[sales]"] {
        for (bin, (same, all)) in unchanged(&process(text)) {
            let share = f64::from(same) / f64::from(all);
            let wanted = 1.0 - UnchangedShares::default().hazard(bin);
            assert!(
                (share - wanted).abs() < 0.05,
                "{text}, up to {bin} days: {share:.3} of {all}, not {wanted}"
            );
        }
    }
}

#[test]
fn own_shares_replace_the_measured_ones() {
    let prices = process("[ladder]\nunchanged = [[30, 0.0], [361, 1.0]]");
    let seen = series(&prices, after(TODAY, 60), TODAY, 60);
    assert!(seen[..30].iter().all(|price| *price == seen[0]), "{seen:?}");
    assert!(
        seen[30..].windows(2).all(|pair| pair[0] != pair[1]),
        "{seen:?}"
    );
}

#[test]
fn a_change_is_a_step_of_the_ladder() {
    let prices = process("[ladder]\nlowest = [1000, 2000]");
    for n in 0..60 {
        for pair in series(&prices, after(TODAY, 90 + n), TODAY, 90).windows(2) {
            let low = pair[0].min(pair[1]).unwrap();
            let high = pair[0].max(pair[1]).unwrap();
            let is_step = (1_199 * low..1_251 * low).contains(&(1_000 * high));
            assert!(low == high || is_step, "{pair:?}");
        }
    }
}

#[test]
fn fares_rise_before_departure() {
    let prices = process("[ladder]");
    let mean = |days: i64| {
        let departures = (0..200).map(|n| after(TODAY, 100 + n));
        let fares = departures
            .filter_map(|departure| series(&prices, departure, after(departure, -days), 1)[0]);
        fares.sum::<i64>() / 200
    };
    assert!(mean(1) * 10 > mean(40) * 13, "{} and {}", mean(1), mean(40));
}

/// The falls from one day to the next, of 150 departures over 120 days: by day, the departures.
fn falls(prices: &PriceProcess) -> Vec<Vec<usize>> {
    let mut by_day = vec![Vec::new(); 120];
    for n in 0..150 {
        let seen = series(prices, after(TODAY, 125 + n), TODAY, 121);
        for (day, pair) in seen.windows(2).enumerate() {
            if pair[1] < pair[0] {
                by_day[day].push(usize::try_from(n).unwrap());
            }
        }
    }
    by_day
}

#[test]
fn a_sale_moves_a_group_of_departures_together() {
    let still = "unchanged = [[361, 0.999]]";
    let with = falls(&process(&format!(
        "[ladder]\n{still}\n[sales]\nchance_per_day = 0.05\ndays = [3, 3]"
    )));
    let days: Vec<_> = with.iter().filter(|fell| fell.len() > 10).collect();
    let mean = days.iter().map(|fell| fell.len()).sum::<usize>() / days.len().max(1);
    assert!((2..=12).contains(&days.len()), "{} sales", days.len());
    assert!(
        (24..=37).contains(&mean),
        "{mean} of 150 departures, not a fifth"
    );
    let without = falls(&process(&format!("[ladder]\n{still}")));
    assert!(without.iter().all(|fell| fell.len() < 4), "{without:?}");
}

#[test]
fn neighbours_are_in_a_sale_together_in_blocks() {
    let neighbours = |text: &str| {
        let fell = falls(&process(text));
        let pairs: usize = fell
            .iter()
            .map(|day| day.windows(2).filter(|pair| pair[1] == pair[0] + 1).count())
            .sum();
        let all: usize = fell.iter().map(Vec::len).sum();
        pairs * 100 / all.max(1)
    };
    let base = "[ladder]\nunchanged = [[361, 0.999]]\n[sales]\nchance_per_day = 0.05\n";
    let (alone, blocks) = (
        neighbours(base),
        neighbours(&format!("{base}block_days = 14")),
    );
    assert!(alone < 35 && blocks > 75, "{alone} % and {blocks} %");
}

#[test]
fn sales_make_a_third_of_all_drops() {
    let prices = process("[ladder]\n[sales]");
    let drawn = prices.route(&route());
    let unchanged = UnchangedShares::default();
    let sales = prices.scenario().file.sales.as_ref().unwrap();
    let sales = LadderSales::new(sales, &unchanged);
    let (mut all, mut by_sales) = (0_u32, 0_u32);
    for n in 0..400 {
        let departure = after(TODAY, 121 + n);
        let first = after(departure, -120);
        let day = crate::draws::day_number(first);
        let seen = series(&prices, departure, first, 121);
        for (day, pair) in (day..).zip(seen.windows(2)) {
            let falls_more =
                sales.steps(drawn, departure, day + 1) > sales.steps(drawn, departure, day);
            all += u32::from(pair[1] < pair[0]);
            by_sales += u32::from(pair[1] < pair[0] && falls_more);
        }
    }
    let share = f64::from(by_sales) / f64::from(all);
    assert!((0.28..0.39).contains(&share), "{share:.3} of {all}");
}

#[test]
fn a_structureless_family_has_no_correlation() {
    let prices = process("[structureless]");
    let logs: Vec<Vec<f64>> = (0..80)
        .map(|n| {
            #[expect(clippy::cast_precision_loss, reason = "prices are small")]
            let log = |price: Option<i64>| (price.unwrap() as f64).ln();
            series(&prices, after(TODAY, 80 + n), TODAY, 80)
                .into_iter()
                .map(log)
                .collect()
        })
        .collect();
    let next_day = logs
        .iter()
        .flat_map(|days| days.windows(2).map(|pair| (pair[0], pair[1])));
    let neighbours = logs
        .windows(2)
        .flat_map(|pair| pair[0].iter().copied().zip(pair[1].iter().copied()));
    let week = logs
        .windows(8)
        .flat_map(|weeks| weeks[0].iter().copied().zip(weeks[7].iter().copied()));
    for (name, pairs) in [
        ("a day later", next_day.collect::<Vec<_>>()),
        ("the next departure", neighbours.collect()),
        ("a week later", week.collect()),
    ] {
        let found = correlation(&pairs);
        assert!(found.abs() < 0.04, "{name}: {found}");
    }
    // The measure finds the structure of a ladder.
    let ladder = process("[ladder]");
    let pairs: Vec<_> = (0..80)
        .flat_map(|n| series(&ladder, after(TODAY, 80 + n), TODAY, 80))
        .map(|price| f64::from(i32::try_from(price.unwrap()).unwrap()))
        .collect::<Vec<_>>()
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .collect();
    assert!(correlation(&pairs) > 0.7);
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = f64::from(u32::try_from(pairs.len()).unwrap());
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        pairs
            .iter()
            .map(|pair| of(pair.0 - x, pair.1 - y))
            .sum::<f64>()
    };
    sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
}

#[test]
fn weekdays_and_events_raise_their_departures() {
    let calm = "[ladder]\nspread = 0\nseason = 0\nrise = 0\npull = 1\n";
    let cost = |text: &str, departure: Date| {
        let days = series(&process(text), departure, after(departure, -120), 60);
        days.into_iter().map(Option::unwrap).sum::<i64>() / 60
    };
    let (monday, tuesday) = (date(2027, 9, 6), date(2027, 9, 7));
    let weekdays = format!("{calm}[weekdays]\nsteps = [4, 0, 0, 0, 0, 0, 0]");
    assert!(cost(&weekdays, monday) * 10 > cost(&weekdays, tuesday) * 17);
    let events = format!(
        "{calm}[events]\nper_year = 0\ndates = [\"2027-09-07\"]\nwidth_days = [1, 1]\nsteps = [4, 4]"
    );
    assert!(cost(&events, tuesday) * 10 > cost(&events, after(tuesday, 5)) * 17);
}

#[test]
fn a_sold_out_departure_stays_sold_out() {
    let prices = process("[ladder]\n[sell_out]\nshare = 0.5\ndays_before = [1, 21]");
    let mut sold_out = 0;
    for n in 0..200 {
        let departure = after(TODAY, 60 + n);
        let seen = series(&prices, departure, after(departure, -40), 41);
        let offered = seen.iter().take_while(|price| price.is_some()).count();
        assert!(seen[offered..].iter().all(Option::is_none), "{seen:?}");
        assert!(offered >= 19, "at most 21 days before: {offered}");
        sold_out += usize::from(offered < seen.len());
    }
    assert!((80..=120).contains(&sold_out), "{sold_out} of 200");
}

#[test]
fn outliers_have_their_factors_and_last_an_hour() {
    let prices = process("[structureless]\n[outliers]\nchance = 0.05\nfactors = [3, 50, 0]");
    let mut found = BTreeMap::<i64, u32>::new();
    for hour in 0..24 {
        for n in 0..200 {
            let at = TODAY.at(hour, 30, 0, 0);
            let fare = prices.oneway(&route(), after(TODAY, 10 + n), at).unwrap();
            let same_hour = prices.oneway(&route(), after(TODAY, 10 + n), TODAY.at(hour, 59, 0, 0));
            assert_eq!(same_hour, Some(fare));
            if fare.shown != fare.genuine {
                *found.entry((fare.shown + 20) / fare.genuine).or_default() += 1;
            }
        }
    }
    let all: u32 = found.values().sum();
    assert!((180..=300).contains(&all), "5 % of 4800: {found:?}");
    assert!(
        found.values().filter(|count| **count > 20).count() >= 3,
        "{found:?}"
    );
}

#[test]
fn a_price_within_the_day_returns() {
    let prices =
        process("[ladder]\nunchanged = [[361, 1]]\n[within_day]\nchance = 0.5\nhours = [3, 3]");
    let mut changed = 0;
    for n in 0..100 {
        let departure = after(TODAY, 20 + n);
        let hours: Vec<_> = (0..24)
            .map(|hour| {
                prices
                    .oneway(&route(), departure, TODAY.at(hour, 0, 0, 0))
                    .unwrap()
                    .shown
            })
            .collect();
        let usual = *hours
            .iter()
            .max_by_key(|one| hours.iter().filter(|other| other == one).count())
            .unwrap();
        let other = hours.iter().filter(|price| **price != usual).count();
        assert!(other == 0 || other == 3, "{hours:?}");
        changed += usize::from(other > 0);
    }
    assert!((35..=65).contains(&changed), "{changed} of 100");
}

#[test]
fn seeds_and_routes_differ_and_equal_ones_do_not() {
    let scenario = Arc::new(Scenario::parse(EVERYTHING, Path::new("")).unwrap());
    let sum = |seed, route: FareRoute| {
        let prices = PriceProcess::new(Arc::clone(&scenario), seed);
        (0..90)
            .filter_map(|n| prices.oneway(&route, after(TODAY, n), noon(TODAY)))
            .map(|fare| fare.shown)
            .collect::<Vec<_>>()
    };
    assert_eq!(sum(1, route()), sum(1, FareRoute::new("stn", "bgy")));
    assert_ne!(sum(1, route()), sum(2, route()));
    assert_ne!(sum(1, route()), sum(1, route().back()));
}

#[test]
fn a_round_trip_is_both_directions() {
    let prices = process("[ladder]");
    let (out, back) = (after(TODAY, 30), after(TODAY, 37));
    let at = noon(TODAY);
    let both = prices.roundtrip(&route(), out, back, at).unwrap().shown;
    let one = prices.oneway(&route(), out, at).unwrap().shown;
    let other = prices.oneway(&route().back(), back, at).unwrap().shown;
    assert_eq!(both, one + other);
    assert_eq!(prices.roundtrip(&route(), out, after(TODAY, 400), at), None);
}

#[test]
fn only_departures_within_the_horizon_are_sold() {
    let prices = process("horizon_days = 30\n[ladder]");
    let sold = |days| {
        prices
            .oneway(&route(), after(TODAY, days), noon(TODAY))
            .is_some()
    };
    assert_eq!([-1, 0, 30, 31].map(sold), [false, true, true, false]);
}

proptest! {
    #[test]
    fn one_instant_is_the_same_as_in_a_series(departs in 0_i64..300, first in 0_i64..40, count in 1_i64..60) {
        let prices = process(EVERYTHING);
        let departure = after(TODAY, departs);
        let walked = series(&prices, departure, after(TODAY, first), count);
        for (day, shown) in (first..).zip(walked) {
            let alone = prices.oneway(&route(), departure, noon(after(TODAY, day)));
            prop_assert_eq!(alone.map(|fare| fare.shown), shown);
        }
    }
}

/// A file and a seed mean the same prices in every version: recorded studies can be repeated.
#[test]
fn prices_of_a_seed_are_those_of_earlier_versions() {
    let prices = process(EVERYTHING);
    let seen: Vec<_> = (0..12)
        .map(|n| series(&prices, after(TODAY, 5 + 17 * n), after(TODAY, n), 1)[0])
        .collect();
    let wanted = [45, 30, 25, 44, 45, 54, 37, 45, 45, 99, 45, 30].map(Some);
    assert_eq!(seen, wanted);
}

#[test]
fn a_route_flies_on_its_own_weekdays_only() {
    let prices = process("[ladder]\n[flown]\ndays_per_week = [3, 3]");
    let departures = (0..70).map(|n| after(TODAY, 30 + n));
    let flown: Vec<_> = departures
        .filter(|departure| series(&prices, *departure, TODAY, 1)[0].is_some())
        .map(|departure| departure.weekday().to_monday_zero_offset())
        .collect();
    let weekdays: std::collections::BTreeSet<_> = flown.iter().collect();
    assert_eq!((flown.len(), weekdays.len()), (30, 3), "{flown:?}");
}

#[test]
fn a_slow_pace_is_long_stretches_at_one_fare() {
    let changes = |pace: &str| {
        let prices = process(&format!("[ladder]\npace = {pace}"));
        let of = |n: i64| series(&prices, after(TODAY, 90 + n), TODAY, 60);
        let all = (0..60).flat_map(|n| {
            of(n)
                .windows(2)
                .map(|pair| pair[0] != pair[1])
                .collect::<Vec<_>>()
        });
        all.filter(|changed| *changed).count()
    };
    let (slow, usual) = (changes("[0.1, 0.1]"), changes("[1, 1]"));
    assert!(slow > 0 && 5 * slow < usual, "{slow} and {usual}");
}
