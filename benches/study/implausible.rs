//! `script/study implausible`: which prices are marked implausible, if one in twenty is wrong?

use farescan::history::plausibility::{PlausibilityCheck, PriceOfDay};
use jiff::ToSpan as _;
use jiff::civil::time;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;

use crate::families::{StudyFamily, World, Worlds, in_parallel};
use crate::statistics::ratio;
use crate::table;

/// The watched departures: so many, one after the other.
const DATES: usize = 90;
/// The days of a watch.
const DAYS: i64 = 120;
/// The first departure is so many days after the first day.
const LEAD: i64 = 60;
/// The share of prices that are wrong.
const ERRORS: f64 = 0.05;
/// The nearest error: three times the price, or a third of it.
const NEAREST: f64 = 3.0;
/// The farthest.
const FARTHEST: f64 = 50.0;
/// A date can be compared after so many looks.
const FIRST_LOOKS: usize = 3;
/// In a sale a price is this share of the usual one …
const SALE: f64 = 0.6;
/// … at every so many looks …
const SALE_EVERY: usize = 10;
/// … for one in so many dates …
const SALE_ONE_IN: usize = 5;
/// … but at least so many.
const SALE_LEAST: usize = 5;

/// How often a departure is searched, and how many departures are watched.
const WATCHES: [(&str, usize, usize); 4] = [
    ("daily, 90 dates", 1, DATES),
    ("daily, 10 dates", 1, 10),
    ("every 3 days, 90 dates", 3, DATES),
    ("weekly, 90 dates", 7, DATES),
];

/// The prices of one watch.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    true_prices: usize,
    marked_true: usize,
    errors: usize,
    marked_errors: usize,
    in_sale: usize,
    marked_in_sale: usize,
}

/// A family's figures for one watch.
#[derive(Debug, Serialize)]
pub struct ImplausibleRow {
    study: &'static str,
    family: String,
    watch: &'static str,
    /// Prices that are right, and the share of them that was marked.
    true_prices: usize,
    true_marked: f64,
    /// Wrong prices that could be compared, and the share of them that was marked.
    errors: usize,
    errors_marked: f64,
    /// Right prices on the days on which departures fell together by 40 %.
    in_sale: usize,
    in_sale_marked: f64,
}

/// Plays all watches in all worlds of the families.
pub fn run(families: &[StudyFamily], worlds: &Worlds) -> Vec<ImplausibleRow> {
    let mut rows = Vec::new();
    for family in families {
        let of_worlds = in_parallel(&family.worlds(worlds), |world| {
            let fares = fares(world);
            vec![WATCHES.map(|(_, step, dates)| watch(&fares, world.number, step, dates))]
        });
        for (place, (name, ..)) in WATCHES.iter().enumerate() {
            let of_watch = of_worlds.iter().map(|watches| watches[place]);
            let sum = of_watch.fold(Counts::default(), Counts::plus);
            rows.push(ImplausibleRow {
                study: "implausible",
                family: family.name.clone(),
                watch: name,
                true_prices: sum.true_prices,
                true_marked: ratio(sum.marked_true, sum.true_prices),
                errors: sum.errors,
                errors_marked: ratio(sum.marked_errors, sum.errors),
                in_sale: sum.in_sale,
                in_sale_marked: ratio(sum.marked_in_sale, sum.in_sale),
            });
        }
    }
    rows
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            true_prices: self.true_prices + other.true_prices,
            marked_true: self.marked_true + other.marked_true,
            errors: self.errors + other.errors,
            marked_errors: self.marked_errors + other.marked_errors,
            in_sale: self.in_sale + other.in_sale,
            marked_in_sale: self.marked_in_sale + other.marked_in_sale,
        }
    }
}

/// What each departure really costs on each day.
fn fares(world: &World) -> Vec<Vec<Option<i64>>> {
    let first_day = *world.days.start();
    let days = first_day..=first_day.saturating_add((DAYS - 1).days());
    let dates = first_day.saturating_add(LEAD.days()).series(1.day());
    let of_date = |date| {
        let noon = time(12, 0, 0, 0);
        let fares = world
            .prices
            .oneway_by_day(&world.route, date, days.clone(), noon);
        fares.into_iter().map(|fare| Some(fare?.genuine)).collect()
    };
    dates.take(DATES).map(of_date).collect()
}

/// Looks at the first dates on every so many days.
fn watch(fares: &[Vec<Option<i64>>], world: u64, step: usize, dates: usize) -> Counts {
    let mut random = StdRng::seed_from_u64(world);
    let (mut check, mut counts) = (PlausibilityCheck::default(), Counts::default());
    let mut looks = vec![0; dates];
    let days = fares.first().map_or(0, Vec::len);
    for (look, day) in (0..days).step_by(step).enumerate() {
        let on_sale = drawn_sale(&mut random, look, dates);
        let (mut seen, mut kinds) = (Vec::new(), Vec::new());
        for (date, fares) in fares[..dates].iter().enumerate() {
            let Some(fare) = fares[day] else { continue };
            let fare = if on_sale[date] {
                to_price(fare, SALE)
            } else {
                to_price(fare, 1.0)
            };
            let error = random.random_bool(ERRORS).then(|| drawn_error(&mut random));
            #[expect(clippy::cast_precision_loss, reason = "prices of a study are small")]
            let price = error.map_or(fare, |factor| to_price(1, fare as f64 / 1000.0 * factor));
            seen.push(PriceOfDay {
                dates: (i32::try_from(date).unwrap(), None),
                price,
                is_complete: true,
            });
            kinds.push((error.is_some(), on_sale[date], looks[date] >= FIRST_LOOKS));
            looks[date] += 1;
        }
        let marked = check.check_day(i32::try_from(day).unwrap(), &seen);
        for ((is_error, is_in_sale, is_compared), marked) in kinds.into_iter().zip(marked) {
            let marked = usize::from(marked.is_some());
            if is_error {
                counts.errors += usize::from(is_compared);
                counts.marked_errors += marked;
            } else {
                counts.true_prices += usize::from(is_compared);
                counts.marked_true += marked;
                counts.in_sale += usize::from(is_in_sale && is_compared);
                counts.marked_in_sale += if is_in_sale { marked } else { 0 };
            }
        }
    }
    counts
}

/// Which dates are on sale on a day.
fn drawn_sale(random: &mut StdRng, look: usize, dates: usize) -> Vec<bool> {
    let mut on_sale = vec![false; dates];
    if look % SALE_EVERY == SALE_EVERY - 1 {
        let share = (dates / SALE_ONE_IN).max(SALE_LEAST);
        for date in rand::seq::index::sample(random, dates, share) {
            on_sale[date] = true;
        }
    }
    on_sale
}

/// By what a wrong price is multiplied. Half of the errors are the nearest.
fn drawn_error(random: &mut StdRng) -> f64 {
    let far = if random.random_bool(0.5) {
        NEAREST
    } else {
        NEAREST * (FARTHEST / NEAREST).powf(random.random::<f64>())
    };
    if random.random_bool(0.5) {
        far
    } else {
        1.0 / far
    }
}

/// In thousandths, at least one.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "prices of a study are small"
)]
fn to_price(fare: i64, factor: f64) -> i64 {
    ((fare as f64 * factor * 1000.0).round() as i64).max(1)
}

/// Prints a table.
pub fn print(rows: &[ImplausibleRow]) {
    let headers = [
        "family",
        "watch",
        "errors",
        "marked",
        "true prices",
        "marked",
        "in a sale",
        "marked",
    ];
    let share = |share: f64| format!("{:.2} %", share * 100.0);
    let cells = |row: &ImplausibleRow| {
        vec![
            row.family.clone(),
            row.watch.to_owned(),
            row.errors.to_string(),
            share(row.errors_marked),
            row.true_prices.to_string(),
            share(row.true_marked),
            row.in_sale.to_string(),
            share(row.in_sale_marked),
        ]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    table::print(&headers, &rows);
}
