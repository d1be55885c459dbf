//! Properties of any rule and any runs.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::super::rules::{self, RuleSubject};
use super::super::run_snapshot::RunSnapshot;
use super::super::store::{decode_states, encode_states};
use super::{TestMonitor, cell_name, rule, run, snapshot};
use crate::contract::Endpoint;
use crate::contract::monitors::{Rule, RuleType};
use crate::scans::cells::{ScanCell, ScanCells};

/// Random rules of a type. The match names every type, so the properties also test a new type.
fn rules_of_type(rule_type: RuleType) -> BoxedStrategy<Value> {
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
            let rule = |rearm| json!({"type": "new_low", "days": 30, "rearm_percent": rearm});
            scoped((0..5_u32).prop_map(rule).boxed())
        }
        RuleType::PercentileAtMost => {
            let rule = |(percentile, rearm): (u32, u32)| json!({"type": "percentile_at_most", "percentile": percentile, "rearm_percent": rearm});
            scoped((40..60_u32, 0..8_u32).prop_map(rule).boxed())
        }
        RuleType::EveryRun => Just(json!({"type": "every_run"})).boxed(),
        RuleType::PlanEndsBeforeReset => Just(json!({"type": "plan_ends_before_reset"})).boxed(),
        RuleType::BackInStock => scoped(Just(json!({"type": "back_in_stock"})).boxed()),
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
    prop::sample::select(RuleType::ALL).prop_flat_map(rules_of_type)
}

/// Random rules whose alerts are about a price and whose states only prices change.
fn any_rule_about_prices() -> impl Strategy<Value = Value> {
    let is_about_prices = |rule_type: &RuleType| match rule_type {
        RuleType::PriceBelow
        | RuleType::DropPercent
        | RuleType::Verdict
        | RuleType::NewLow
        | RuleType::PercentileAtMost
        | RuleType::BackInStock => true,
        // The first three also depend on missing prices; markets are compared in any shared
        // currency.
        RuleType::Available
        | RuleType::SoldOut
        | RuleType::Stale
        | RuleType::ParityGapPercent
        | RuleType::EveryRun
        | RuleType::PlanEndsBeforeReset => false,
    };
    let types: Vec<_> = RuleType::ALL
        .iter()
        .copied()
        .filter(is_about_prices)
        .collect();
    prop::sample::select(types).prop_flat_map(rules_of_type)
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

/// A random cell of one or two samples.
fn cell(search: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec(search, 1..3).prop_map(|samples| samples.join("+"))
}

/// Random runs of up to four cells; some scans lack some cells.
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

/// The keys that fire in each run.
fn fires(rule: &Rule, runs: &[RunSnapshot]) -> Vec<BTreeSet<String>> {
    let mut monitor = TestMonitor::with(rule.clone());
    runs.iter()
        .map(|run| {
            monitor
                .run(run)
                .into_iter()
                .map(|firing| firing.key)
                .collect()
        })
        .collect()
}

fn snapshots(of: &Rule, texts: &[String]) -> Vec<RunSnapshot> {
    texts
        .iter()
        .enumerate()
        .map(|(number, text)| snapshot_for(of, text, number))
        .collect()
}

/// A run of a scan that suits the rule: over dates, or over markets.
fn snapshot_for(of: &Rule, text: &str, number: usize) -> RunSnapshot {
    let run = run(text, number);
    match rules::of(of).subject() {
        RuleSubject::Prices | RuleSubject::Answers | RuleSubject::Plan => run,
        RuleSubject::Markets { .. } => {
            let market = |cell: &ScanCell| {
                let place = cell_name(&cell.key)
                    .bytes()
                    .next()
                    .map_or(0, |letter| usize::from(letter - b'a'));
                let values = Map::from_iter([(
                    "proxy_country".to_owned(),
                    json!(["us", "de", "jp", "fr"][place]),
                )]);
                ScanCell {
                    key: Value::Object(values.clone()).to_string(),
                    values,
                    items: cell.items.clone(),
                }
            };
            let all = run.cells.all.iter().map(market).collect();
            snapshot(ScanCells {
                searched_known_low: true,
                created_at: jiff::Timestamp::UNIX_EPOCH,
                all,
                request: run.cells.request.clone(),
                endpoint: Endpoint::HotelsRooms,
            })
        }
    }
}

proptest! {
    /// Between two alerts of one rule in one scope, the rule was armed after some run, or the
    /// second price is lower by the rule's own step.
    #[test]
    fn a_rule_refires_only_if_rearmed_or_after_a_further_drop(of in any_rule(), texts in runs()) {
        prop_assume!(of["type"] != "every_run");
        let rule = rule(of);
        let mut monitor = TestMonitor::with(rule.clone());
        let mut spent = BTreeMap::<String, Option<(Decimal, String)>>::new();
        for run in snapshots(&rule, &texts) {
            for firing in monitor.run(&run) {
                let last_alert = firing.price.map(|price| (price.amount, price.currency));
                if let Some(before) = spent.insert(firing.key.clone(), last_alert.clone()) {
                    let step = step_percent(&rule);
                    let further = before.zip(last_alert).zip(step).is_some_and(|((before, last_alert), step)| {
                        // Prices in different currencies are not comparable.
                        before.1 != last_alert.1 || last_alert.0 < before.0 && last_alert.0 * Decimal::from(100) <= before.0 * Decimal::from(100 - step)
                    });
                    prop_assert!(further, "fired twice: {}", firing.key);
                } else {
                    prop_assert!(firing.before.armed || step_percent(&rule).is_some());
                }
                prop_assert!(!firing.after.armed);
            }
            // Rearmed, or no longer in the scan.
            spent.retain(|key, _| monitor.states.get(key).is_some_and(|state| !state.armed));
        }
    }

    /// Compares with a second implementation for a single search, whose lowest price of the days was
    /// 200: a low fires if the price rose in between, or if it is `rearm_percent` below the price of
    /// the last alert.
    #[test]
    fn new_low_matches_a_second_implementation(rearm in 0..6_u32, texts in prop::collection::vec(
        prop_oneof![4 => (150..225_u32).prop_map(|price| price.to_string()), 1 => without_price()], 1..40,
    )) {
        let of = rule(json!({"type": "new_low", "days": 30, "rearm_percent": rearm}));
        let (mut armed, mut last_alert) = (true, None::<u32>);
        let mut expected = Vec::new();
        for text in &texts {
            let mut fires = false;
            if let Ok(price) = text.parse::<u32>() {
                let is_beyond = |last: u32| price < last && price * 100 <= last * (100 - rearm);
                fires = price < 200 && (armed || last_alert.is_some_and(is_beyond));
                armed = !fires && (armed || price >= 200 + 2 * rearm);
                last_alert = if fires { Some(price) } else { last_alert };
            }
            expected.push(fires);
        }
        let seen: Vec<_> = fires(&of, &snapshots(&of, &texts)).iter().map(|fired| !fired.is_empty()).collect();
        prop_assert_eq!(seen, expected);
    }

    /// While a price only falls, every fall of the rule's step fires, and a smaller one never does
    /// again.
    #[test]
    fn a_falling_price_fires_once_per_step(
        percent in 1..9_u32, falls in prop::collection::vec(0..6_u32, 1..30), which in any::<bool>(),
    ) {
        let of = if which { json!({"type": "new_low", "days": 30, "rearm_percent": percent}) } else { json!({"type": "drop_percent", "percent": percent}) };
        let mut monitor = TestMonitor::with(rule(of));
        let (mut price, mut last_alert) = (Decimal::from(200), None::<Decimal>);
        for (number, fall) in std::iter::once(0).chain(falls).enumerate() {
            price -= Decimal::from(fall);
            let fired = !monitor.run(&run(&price.to_string(), number)).is_empty();
            let beyond = last_alert.is_some_and(|last_alert| price < last_alert && price * Decimal::from(100) <= last_alert * Decimal::from(100 - percent));
            prop_assert!(fired || !beyond, "{price} after {last_alert:?} did not fire");
            // A smaller fall fires only an armed rule; `new_low` cannot rearm while the price
            // falls.
            prop_assert!(!fired || last_alert.is_none() || beyond, "{price} after {last_alert:?} fired");
            last_alert = if fired { Some(price) } else { last_alert };
        }
    }

    /// Runs without any price, at any point between runs with prices, change no rule about prices.
    #[test]
    fn runs_without_prices_leave_price_rules_unchanged(
        of in any_rule_about_prices(),
        texts in runs(),
        nothing in cell(without_price()),
    ) {
        let of = rule(of);
        let between = |run: &RunSnapshot| snapshot(ScanCells {
        searched_known_low: true,
        created_at: jiff::Timestamp::UNIX_EPOCH,
            all: run.cells.all.iter().map(|cell| {
                let mut cell = cell.clone();
                cell.items = super::run(&nothing, 0).cells.all[0].items.clone();
                cell
            }).collect(),
            request: run.cells.request.clone(),
            endpoint: run.cells.endpoint,
        });
        let (mut plain, mut mixed) = (TestMonitor::with(of.clone()), TestMonitor::with(of.clone()));
        for run in snapshots(&of, &texts) {
            let expected: Vec<_> = plain.run(&run).into_iter().map(|firing| firing.key).collect();
            let seen: Vec<_> = mixed.run(&run).into_iter().map(|firing| firing.key).collect();
            prop_assert_eq!(seen, expected);
            prop_assert!(mixed.run(&between(&run)).is_empty());
            prop_assert_eq!(&mixed.states, &plain.states);
        }
    }

    #[test]
    fn a_degraded_run_fires_only_stale_rules_and_reports(of in any_rule(), texts in runs(), degraded in 1..6_usize) {
        let rule = rule(of.clone());
        let mut monitor = TestMonitor::with(rule.clone());
        for run in snapshots(&rule, &texts) {
            monitor.run(&run);
        }
        for number in 0..degraded {
            let fired = monitor.run(&snapshot_for(&rule, "degraded | degraded+failed | degraded | degraded", number));
            match of["type"].as_str() {
                Some("stale") => {}
                Some("every_run") => prop_assert_eq!(fired.len(), 1),
                _ => prop_assert!(fired.is_empty(), "{of}: {fired:?}"),
            }
        }
    }

    /// The same cells in another order give the same states and the same alerts in the same order.
    #[test]
    fn the_order_of_cells_does_not_matter(of in any_rule(), texts in runs(), seed in any::<u64>()) {
        let of = rule(of);
        let (mut one, mut other) = (TestMonitor::with(of.clone()), TestMonitor::with(of.clone()));
        for run in snapshots(&of, &texts) {
            let mut cells = run.cells.all.clone();
            let turn = usize::try_from(seed).unwrap_or(7) % cells.len();
            cells.rotate_left(turn);
            cells.reverse();
            let turned = snapshot(ScanCells {
        searched_known_low: true,
        created_at: jiff::Timestamp::UNIX_EPOCH, all: cells, request: run.cells.request.clone(), endpoint: run.cells.endpoint });
            let fired_by = |monitor: &mut TestMonitor, run: &RunSnapshot| -> Vec<_> {
                let fired = monitor.run(run);
                fired.into_iter().map(|firing| (firing.key, firing.fired.strength, firing.price.map(|price| price.amount))).collect()
            };
            prop_assert_eq!(fired_by(&mut one, &run), fired_by(&mut other, &turned));
            prop_assert_eq!(&one.states, &other.states);
        }
    }

    /// After a price in the requested currency, prices in other currencies count as degraded
    /// searches.
    #[test]
    fn prices_in_other_currencies_are_ignored(
        of in any_rule_about_prices(),
        texts in runs(),
    ) {
        let of = rule(of);
        let texts: Vec<_> = std::iter::once("200 | 200 | 200 | 200".to_owned()).chain(texts).collect();
        let blind: Vec<_> = texts.iter().map(|text| {
            let searches = |cell: &str| cell.split('+').map(|one| if one.contains("EUR") { "degraded" } else { one }.to_owned()).collect::<Vec<_>>().join("+");
            text.split('|').map(searches).collect::<Vec<_>>().join("|")
        }).collect();
        // A new cell has no currency yet, so only cells present from the beginning are compared.
        let always = texts.iter().all(|text| !text.contains('-') && text.matches('|').count() == 3);
        if of_scan(&of) || always {
            prop_assert_eq!(fires(&of, &snapshots(&of, &texts)), fires(&of, &snapshots(&of, &blind)));
        }
        let mut monitor = TestMonitor::with(of.clone());
        for run in snapshots(&of, &texts) {
            for firing in monitor.run(&run) {
                let price = firing.price.expect("a price fired");
                let compares = firing.before.currency.is_none_or(|held| held == price.currency || price.currency == "USD");
                prop_assert!(compares);
                // Every rule type with an amount compares in the requested currency.
                let has_amount = of.rule_type().fields().iter().any(|field| field.name == "amount");
                prop_assert!(price.currency == "USD" || !has_amount);
            }
        }
    }

    /// An evaluation depends only on the run and the stored states, which survive serialisation.
    #[test]
    fn serialised_states_hold_all_that_a_rule_needs(of in any_rule(), texts in runs()) {
        let of = rule(of);
        let (mut one, mut other) = (TestMonitor::with(of.clone()), TestMonitor::with(of.clone()));
        for run in snapshots(&of, &texts) {
            let fired: Vec<_> = one.run(&run).into_iter().map(|firing| (firing.key, firing.fired)).collect();
            other.states = decode_states(&other.rule, &encode_states(&other.states).unwrap()).unwrap();
            let again: Vec<_> = other.run(&run).into_iter().map(|firing| (firing.key, firing.fired)).collect();
            prop_assert_eq!(fired, again);
            prop_assert_eq!(&one.states, &other.states);
        }
    }

    /// Compares with a second implementation of monitors.md, rule 32, for a single search.
    #[test]
    fn price_below_matches_a_second_implementation(amount in 195..205_u32, rearm in 0..8_u32, texts in prop::collection::vec(
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
        let seen: Vec<_> = fires(&of, &snapshots(&of, &texts)).iter().map(|fired| !fired.is_empty()).collect();
        prop_assert_eq!(seen, expected);
    }
}

/// How far a price must be below that of the last alert to fire an unarmed rule, in percent.
fn step_percent(rule: &Rule) -> Option<u32> {
    let percent = match rule {
        Rule::NewLow(rule) => rule.rearm_percent_or_default().get(),
        Rule::DropPercent(rule) => rule.percent.get(),
        Rule::PriceBelow(_)
        | Rule::Verdict(_)
        | Rule::PercentileAtMost(_)
        | Rule::BackInStock(_)
        | Rule::Available(_)
        | Rule::SoldOut(_)
        | Rule::ParityGapPercent(_)
        | Rule::Stale(_)
        | Rule::EveryRun(_)
        | Rule::PlanEndsBeforeReset(_) => return None,
    };
    percent.to_string().parse().ok()
}

fn of_scan(rule: &Rule) -> bool {
    super::super::rules::rule_scope(rule) == crate::contract::monitors::RuleScope::Scan
}

#[test]
fn the_states_of_the_largest_run_stay_small() {
    let text = (0..10_000)
        .map(|place| format!("{}", 200 + place % 50))
        .collect::<Vec<_>>()
        .join(" | ");
    let run = run(&text, 0);
    let mut monitor = TestMonitor::with(rule(
        json!({"type": "drop_percent", "percent": 10, "runs": 90, "scope": "cell"}),
    ));
    for _ in 0..3 {
        monitor.run(&run);
    }
    assert_eq!(monitor.states.len(), 10_000);
    let mut sizes = BTreeMap::new();
    let kept = encode_states(&monitor.states).unwrap();
    sizes.insert("packed", kept.len());
    assert_eq!(decode_states(&monitor.rule, &kept).unwrap(), monitor.states);
    println!("10,000 cells: {sizes:?} bytes");
    assert!(kept.len() < 2_000_000);
}
