//! How many errors are marked as implausible, and how many true prices, on price processes of the
//! laboratory: the goals of docs/laboratory.md, on seeds that nothing was chosen by. `script/study
//! implausible` prints the figures of more families.

use std::path::Path;
use std::sync::Arc;

use farescan::history::plausibility::{PlausibilityCheck, PriceOfDay};
use farescan::sandbox::scenarios::{FareRoute, PriceProcess, Scenario};
use jiff::ToSpan as _;
use jiff::civil::{Date, date, time};

use crate::support::Rng;

const FIRST_DAY: Date = date(2027, 1, 4);
const DAYS: i64 = 90;
const DATES: i32 = 60;
/// The departures begin so many days after the first day.
const LEAD: i64 = 45;

#[derive(Debug, Default)]
struct Counts {
    /// Those of a kind, and those of them that are marked.
    errors: [u32; 2],
    genuine: [u32; 2],
    in_sale: [u32; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Error,
    Genuine,
    Sale,
}

/// What each departure costs on each day, in thousandths.
fn fares(family: &str, seed: u64) -> Vec<Vec<Option<i64>>> {
    let file = format!("benches/study/scenarios/{family}.toml");
    let scenario = Scenario::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let prices = PriceProcess::new(Arc::new(scenario), seed);
    let route = FareRoute::new("STN", "BGY");
    let days = FIRST_DAY..=FIRST_DAY.saturating_add((DAYS - 1).days());
    let of_departure = |number: i32| {
        let departure = FIRST_DAY.saturating_add((LEAD + i64::from(number)).days());
        let fares = prices.oneway_by_day(&route, departure, days.clone(), time(12, 0, 0, 0));
        let fares = fares.into_iter();
        fares.map(|fare| Some(1_000 * fare?.genuine)).collect()
    };
    (0..DATES).map(of_departure).collect()
}

/// A price as it is seen: one in twenty is wrong, half of these by 3, others by a whole factor from
/// 3 to 30, each equally likely (the study draws 3 to 50, equal ratios equally likely). In a sale it is 40 % lower.
fn seen_price(fare: i64, is_on_sale: bool, random: &mut Rng) -> (i64, Kind) {
    let fare = if is_on_sale { fare * 6 / 10 } else { fare };
    if random.below(20) > 0 {
        let kind = if is_on_sale {
            Kind::Sale
        } else {
            Kind::Genuine
        };
        return (fare, kind);
    }
    let factor = match random.below(2) {
        0 => 3,
        _ => 3 + i64::try_from(random.below(28)).unwrap(),
    };
    let price = match random.below(2) {
        0 => fare * factor,
        _ => fare / factor,
    };
    (price, Kind::Error)
}

fn watch(fares: &[Vec<Option<i64>>], random: &mut Rng, counts: &mut Counts) {
    let mut check = PlausibilityCheck::default();
    let mut looks = vec![0; fares.len()];
    for day in 0..usize::try_from(DAYS).unwrap() {
        // Each tenth day a fifth of the departures is on sale.
        let is_sale_day = day % 10 == 9;
        let (mut seen, mut kinds) = (Vec::new(), Vec::new());
        for (number, fares) in fares.iter().enumerate() {
            let Some(fare) = fares[day] else { continue };
            let is_on_sale = is_sale_day && random.below(5) == 0;
            let (price, kind) = seen_price(fare, is_on_sale, random);
            seen.push(PriceOfDay {
                dates: (i32::try_from(number).unwrap(), None),
                price,
                is_complete: true,
            });
            kinds.push((kind, looks[number] >= 3));
            looks[number] += 1;
        }
        let marks = check.check_day(i32::try_from(day).unwrap(), &seen);
        for ((kind, is_compared), mark) in kinds.into_iter().zip(marks) {
            let count = match kind {
                Kind::Error => &mut counts.errors,
                Kind::Genuine => &mut counts.genuine,
                Kind::Sale => &mut counts.in_sale,
            };
            count[0] += u32::from(is_compared);
            count[1] += u32::from(mark.is_some());
        }
    }
}

#[test]
fn errors_are_marked_and_neither_true_prices_nor_sales() {
    for family in ["ladder", "weekdays", "events", "sales"] {
        let mut counts = Counts::default();
        for seed in 9_001..=9_004 {
            watch(&fares(family, seed), &mut Rng(seed), &mut counts);
        }
        let percent = |[all, marked]: [u32; 2]| f64::from(marked) / f64::from(all) * 100.0;
        assert!(
            counts.errors[0] > 500 && counts.in_sale[0] > 200,
            "{counts:?}"
        );
        assert!(percent(counts.errors) >= 95.0, "{family}: {counts:?}");
        assert!(percent(counts.genuine) < 0.5, "{family}: {counts:?}");
        assert!(percent(counts.in_sale) < 1.0, "{family}: {counts:?}");
    }
}
