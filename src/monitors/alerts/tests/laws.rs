//! What holds for any rule and any runs.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::super::kind::{Kind, Subject};
use super::super::sight::Run;
use super::super::store::{packed, unpacked};
use super::{Monitor, letter, rule, run};
use crate::contract::Endpoint;
use crate::contract::monitors::{Rule, RuleType};
use crate::scans::cells::{Cell, Cells};

/// Rules of a type. Every type is named: the laws hold for one that is new from the day on which it compiles.
fn any_of(rule_type: RuleType) -> BoxedStrategy<Value> {
    let scope = prop::sample::select(vec!["scan", "cell"]);
    let scoped = |rule: BoxedStrategy<Value>| {
        let with = |(mut rule, scope): (Value, &str)| {
            rule["scope"] = scope.into();
            rule
        };
        (rule, scope.clone()).prop_map(with).boxed()
    };
    match rule_type {
        RuleType::PriceBelow => {
            let rule = |(amount, rearm)| json!({"type": "price_below", "amount": amount, "rearm_percent": rearm});
            scoped((190..210_u32, 0..8_u32).prop_map(rule).boxed())
        }
        RuleType::DropPercent => {
            let rule = |(percent, runs)| json!({"type": "drop_percent", "percent": percent, "runs": runs});
            scoped((1..8_u32, 1..5_u32).prop_map(rule).boxed())
        }
        RuleType::NewLow => {
            let rule = |rearm| json!({"type": "new_low", "rearm_percent": rearm});
            scoped((0..5_u32).prop_map(rule).boxed())
        }
        RuleType::Verdict => scoped(Just(json!({"type": "verdict"})).boxed()),
        RuleType::Available => scoped(Just(json!({"type": "available"})).boxed()),
        RuleType::SoldOut => scoped(Just(json!({"type": "sold_out"})).boxed()),
        RuleType::Stale => scoped((1..4_u32).prop_map(|runs| json!({"type": "stale", "runs": runs})).boxed()),
        RuleType::ParityGapPercent => {
            (1..8_u32).prop_map(|percent| json!({"type": "parity_gap_percent", "percent": percent, "baseline": "us"})).boxed()
        }
    }
}

fn any_rule() -> impl Strategy<Value = Value> {
    prop::sample::select(RuleType::ALL).prop_flat_map(any_of)
}

/// Rules whose alerts are about a price, and which nothing but prices moves.
fn any_rule_about_prices() -> impl Strategy<Value = Value> {
    let is_about_prices = |rule_type: &RuleType| match rule_type {
        RuleType::PriceBelow | RuleType::DropPercent | RuleType::Verdict | RuleType::NewLow => true,
        // The first three also speak of where there is none. Markets are compared in whatever currency they share.
        RuleType::Available | RuleType::SoldOut | RuleType::Stale | RuleType::ParityGapPercent => {
            false
        }
    };
    let types: Vec<_> = RuleType::ALL
        .iter()
        .copied()
        .filter(is_about_prices)
        .collect();
    prop::sample::select(types).prop_flat_map(any_of)
}

fn without_price() -> impl Strategy<Value = String> {
    let words = [
        "degraded",
        "partial",
        "failed",
        "cancelled",
        "skipped",
        "filtered",
        "empty",
        "empty sold_out",
        "empty no_match",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}

fn priced() -> impl Strategy<Value = String> {
    let more = prop::sample::select(vec!["", " partial", " low", " high", " EUR"]);
    (185..215_u32, more).prop_map(|(price, more)| format!("{price}{more}"))
}

/// A cell of one or two samples.
fn cell(search: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec(search, 1..3).prop_map(|samples| samples.join("+"))
}

/// Runs of up to four cells; some are not of every scan.
fn runs() -> impl Strategy<Value = Vec<String>> {
    let search = prop_oneof![3 => priced().boxed(), 2 => without_price().boxed()].boxed();
    let place = prop_oneof![6 => cell(search).boxed(), 1 => Just("-".to_owned()).boxed()];
    let run = prop::collection::vec(place, 1..5).prop_map(|cells| cells.join(" | "));
    prop::collection::vec(
        run.prop_filter("a scan has a cell", |run| {
            run.chars().any(char::is_alphanumeric)
        }),
        1..14,
    )
}

/// Which keys fire in each run.
fn fires(rule: &Rule, runs: &[Run]) -> Vec<BTreeSet<String>> {
    let mut monitor = Monitor::with(rule.clone());
    runs.iter()
        .map(|run| {
            monitor
                .sees(run)
                .into_iter()
                .map(|firing| firing.key)
                .collect()
        })
        .collect()
}

fn laid(of: &Rule, texts: &[String]) -> Vec<Run> {
    texts
        .iter()
        .enumerate()
        .map(|(number, text)| lay(of, text, number))
        .collect()
}

/// A run of a scan that this rule may stand beside: over dates, or over markets.
fn lay(of: &Rule, text: &str, number: usize) -> Run {
    let run = run(text, number);
    match Kind::of(of).subject {
        Subject::Prices | Subject::Answers => run,
        Subject::Markets => {
            let market = |cell: &Cell| {
                let place = letter(&cell.key)
                    .bytes()
                    .next()
                    .map_or(0, |letter| usize::from(letter - b'a'));
                let values = Map::from_iter([(
                    "proxy_country".to_owned(),
                    json!(["us", "de", "jp", "fr"][place]),
                )]);
                Cell {
                    key: Value::Object(values.clone()).to_string(),
                    values,
                    items: cell.items.clone(),
                }
            };
            let all = run.cells.all.iter().map(market).collect();
            Run::new(Cells {
                all,
                request: run.cells.request.clone(),
                endpoint: Endpoint::HotelsRooms,
            })
        }
    }
}

proptest! {
    /// Between two alerts of one rule about one scope there is a run after which it was armed, or the second is about a price that is
    /// further down by the rule's own step.
    #[test]
    fn nothing_fires_twice_without_being_armed_between(of in any_rule(), texts in runs()) {
        let rule = rule(of);
        let mut monitor = Monitor::with(rule.clone());
        let mut spent = BTreeMap::<String, Option<(Decimal, String)>>::new();
        for run in laid(&rule, &texts) {
            for firing in monitor.sees(&run) {
                let told = firing.price.map(|price| (price.amount, price.currency));
                if let Some(before) = spent.insert(firing.key.clone(), told.clone()) {
                    let step = step(&rule);
                    let further = before.zip(told).zip(step).is_some_and(|((before, told), step)| {
                        // What was told in another currency compares with nothing.
                        before.1 != told.1 || told.0 < before.0 && told.0 * Decimal::from(100) <= before.0 * Decimal::from(100 - step)
                    });
                    prop_assert!(further, "fired twice: {}", firing.key);
                } else {
                    prop_assert!(firing.before.armed || step(&rule).is_some());
                }
                prop_assert!(!firing.after.armed);
            }
            // Armed again, or of the scan no more.
            spent.retain(|key, _| monitor.states.get(key).is_some_and(|state| !state.armed));
        }
    }

    /// A single search, and the rule written down a second time: a low is news when the price was up between, or when it is
    /// `rearm_percent` below the last one told.
    #[test]
    fn new_low_is_what_it_says(rearm in 0..6_u32, texts in prop::collection::vec(
        prop_oneof![4 => (150..225_u32).prop_map(|price| price.to_string()), 1 => without_price()], 1..40,
    )) {
        let of = rule(json!({"type": "new_low", "rearm_percent": rearm}));
        let (mut armed, mut lowest, mut told) = (true, None::<u32>, None::<u32>);
        let mut expected = Vec::new();
        for text in &texts {
            let mut fires = false;
            if let Ok(price) = text.parse::<u32>() {
                if let Some(low) = lowest {
                    fires = price < low && (armed || told.is_some_and(|told| price * 100 <= told * (100 - rearm)));
                    armed = !fires && (armed || price >= low && price * 100 >= low * (100 + rearm));
                }
                told = if fires { Some(price) } else { told };
                lowest = Some(lowest.map_or(price, |low| low.min(price)));
            }
            expected.push(fires);
        }
        let seen: Vec<_> = fires(&of, &laid(&of, &texts)).iter().map(|fired| !fired.is_empty()).collect();
        prop_assert_eq!(seen, expected);
    }

    /// While a price only falls, no fall of more than the rule's step stays untold, and no smaller one is told twice.
    #[test]
    fn a_price_that_goes_on_falling_is_told_once_a_step(
        percent in 1..9_u32, falls in prop::collection::vec(0..40_u32, 1..30), which in any::<bool>(),
    ) {
        let of = if which { json!({"type": "new_low", "rearm_percent": percent}) } else { json!({"type": "drop_percent", "percent": percent}) };
        let mut monitor = Monitor::with(rule(of));
        let (mut price, mut told) = (Decimal::from(2000), None::<Decimal>);
        for (number, fall) in std::iter::once(0).chain(falls).enumerate() {
            price -= Decimal::from(fall);
            let fired = !monitor.sees(&run(&price.to_string(), number)).is_empty();
            let beyond = told.is_some_and(|told| price < told && price * Decimal::from(100) <= told * Decimal::from(100 - percent));
            prop_assert!(fired || !beyond, "{price} after {told:?} was not told");
            // A small fall is told only where the rule was armed: never by `new_low`, whose price was not up again.
            prop_assert!(!fired || told.is_none() || beyond, "{price} after {told:?} was told");
            told = if fired { Some(price) } else { told };
        }
    }

    /// Runs without any price move nothing that is about prices, wherever they come between runs with prices.
    #[test]
    fn an_empty_or_degraded_answer_is_no_price(
        of in any_rule_about_prices(),
        texts in runs(),
        nothing in cell(without_price()),
    ) {
        let of = rule(of);
        let between = |run: &Run| Run::new(Cells {
            all: run.cells.all.iter().map(|cell| {
                let mut cell = cell.clone();
                cell.items = super::run(&nothing, 0).cells.all[0].items.clone();
                cell
            }).collect(),
            request: run.cells.request.clone(),
            endpoint: run.cells.endpoint,
        });
        let (mut plain, mut mixed) = (Monitor::with(of.clone()), Monitor::with(of.clone()));
        for run in laid(&of, &texts) {
            let expected: Vec<_> = plain.sees(&run).into_iter().map(|firing| firing.key).collect();
            let seen: Vec<_> = mixed.sees(&run).into_iter().map(|firing| firing.key).collect();
            prop_assert_eq!(seen, expected);
            prop_assert!(mixed.sees(&between(&run)).is_empty());
            prop_assert_eq!(&mixed.states, &plain.states);
        }
    }

    #[test]
    fn an_alert_of_a_degraded_run_is_about_the_lack_of_answers_alone(of in any_rule(), texts in runs(), degraded in 1..6_usize) {
        let rule = rule(of.clone());
        let mut monitor = Monitor::with(rule.clone());
        for run in laid(&rule, &texts) {
            monitor.sees(&run);
        }
        for number in 0..degraded {
            let fired = monitor.sees(&lay(&rule, "degraded | degraded+failed | degraded | degraded", number));
            prop_assert!(fired.is_empty() || of["type"] == "stale", "{of}: {fired:?}");
        }
    }

    /// The same cells in another order: the same states, the same alerts in the same order.
    #[test]
    fn the_order_of_cells_does_not_matter(of in any_rule(), texts in runs(), seed in any::<u64>()) {
        let of = rule(of);
        let (mut one, mut other) = (Monitor::with(of.clone()), Monitor::with(of.clone()));
        for run in laid(&of, &texts) {
            let mut cells = run.cells.all.clone();
            let turn = usize::try_from(seed).unwrap_or(7) % cells.len();
            cells.rotate_left(turn);
            cells.reverse();
            let turned = Run::new(Cells { all: cells, request: run.cells.request.clone(), endpoint: run.cells.endpoint });
            let told = |monitor: &mut Monitor, run: &Run| -> Vec<_> {
                let fired = monitor.sees(run);
                fired.into_iter().map(|firing| (firing.key, firing.fired.strength, firing.price.map(|price| price.amount))).collect()
            };
            prop_assert_eq!(told(&mut one, &run), told(&mut other, &turned));
            prop_assert_eq!(&one.states, &other.states);
        }
    }

    /// Once prices have come in the currency that was asked for, another's are as good as none: not whole, and no price.
    #[test]
    fn currencies_never_mix(
        of in any_rule_about_prices(),
        texts in runs(),
    ) {
        let of = rule(of);
        let texts: Vec<_> = std::iter::once("200 | 200 | 200 | 200".to_owned()).chain(texts).collect();
        let blind: Vec<_> = texts.iter().map(|text| {
            let searches = |cell: &str| cell.split('+').map(|one| if one.contains("EUR") { "degraded" } else { one }.to_owned()).collect::<Vec<_>>().join("+");
            text.split('|').map(searches).collect::<Vec<_>>().join("|")
        }).collect();
        // A cell that is new has seen no currency yet: only those that were there from the beginning.
        let always = texts.iter().all(|text| !text.contains('-') && text.matches('|').count() == 3);
        if of_scan(&of) || always {
            prop_assert_eq!(fires(&of, &laid(&of, &texts)), fires(&of, &laid(&of, &blind)));
        }
        let mut monitor = Monitor::with(of.clone());
        for run in laid(&of, &texts) {
            for firing in monitor.sees(&run) {
                let price = firing.price.expect("a price fired");
                let compares = firing.before.currency.is_none_or(|held| held == price.currency || price.currency == "USD");
                prop_assert!(compares);
                // An amount is in the currency of the request, whatever the type of the rule that has one.
                let has_amount = of.rule_type().fields().iter().any(|field| field.name == "amount");
                prop_assert!(price.currency == "USD" || !has_amount);
            }
        }
    }

    /// What comes out depends on what goes in alone, and what is kept between runs reads back as it was.
    #[test]
    fn states_are_all_that_a_rule_remembers(of in any_rule(), texts in runs()) {
        let of = rule(of);
        let (mut one, mut other) = (Monitor::with(of.clone()), Monitor::with(of.clone()));
        for run in laid(&of, &texts) {
            let fired: Vec<_> = one.sees(&run).into_iter().map(|firing| (firing.key, firing.fired)).collect();
            other.states = unpacked(&other.rule, &packed(&other.states).unwrap()).unwrap();
            let again: Vec<_> = other.sees(&run).into_iter().map(|firing| (firing.key, firing.fired)).collect();
            prop_assert_eq!(fired, again);
            prop_assert_eq!(&one.states, &other.states);
        }
    }

    /// A single search, and the rule of the issue written down a second time.
    #[test]
    fn price_below_is_what_it_says(amount in 195..205_u32, rearm in 0..8_u32, texts in prop::collection::vec(
        prop_oneof![(185..225_u32).prop_map(|price| price.to_string()), without_price()], 1..30,
    )) {
        let of = rule(json!({"type": "price_below", "amount": amount, "rearm_percent": rearm}));
        let mut armed = true;
        let mut expected = Vec::new();
        for text in &texts {
            let price: Option<u32> = text.parse().ok();
            let fires = armed && price.is_some_and(|price| price < amount);
            if let Some(price) = price {
                armed = !fires && (armed || price * 100 >= amount * (100 + rearm));
            }
            expected.push(fires);
        }
        let seen: Vec<_> = fires(&of, &laid(&of, &texts)).iter().map(|fired| !fired.is_empty()).collect();
        prop_assert_eq!(seen, expected);
    }
}

/// The percent by which a price must be below the one last told, to be told though the rule is not armed.
fn step(rule: &Rule) -> Option<u32> {
    let percent = match rule {
        Rule::NewLow(rule) => rule.rearm_percent_or_default().get(),
        Rule::DropPercent(rule) => rule.percent.get(),
        Rule::PriceBelow(_)
        | Rule::Verdict(_)
        | Rule::Available(_)
        | Rule::SoldOut(_)
        | Rule::ParityGapPercent(_)
        | Rule::Stale(_) => return None,
    };
    percent.to_string().parse().ok()
}

fn of_scan(rule: &Rule) -> bool {
    super::verdicts::scope(rule) == crate::contract::monitors::RuleScope::Scan
}

/// Ten thousand cells before twenty rules, each with a full window: the largest run there is.
#[test]
fn the_largest_run_is_judged_within_bounds() {
    let text = (0..10_000)
        .map(|place| format!("{}", 200 + place % 50))
        .collect::<Vec<_>>()
        .join(" | ");
    let run = run(&text, 0);
    let mut monitor = Monitor::with(rule(
        json!({"type": "drop_percent", "percent": 10, "runs": 90, "scope": "cell"}),
    ));
    for _ in 0..3 {
        monitor.sees(&run);
    }
    assert_eq!(monitor.states.len(), 10_000);
    let mut sizes = BTreeMap::new();
    let kept = packed(&monitor.states).unwrap();
    sizes.insert("packed", kept.len());
    assert_eq!(unpacked(&monitor.rule, &kept).unwrap(), monitor.states);
    println!("10,000 cells: {sizes:?} bytes");
    assert!(kept.len() < 2_000_000);
}
