//! Each rule over a sequence of runs.

use serde_json::json;

use super::{TestMonitor, WHOLE_SCAN, rule, run, table, table_of};

/// `price_below` along a path of prices (monitors.md, rule 32).
#[test]
fn price_below_fires_once_and_rearms_above_the_threshold() {
    let below = json!({"type": "price_below", "amount": 200, "rearm_percent": 5});
    table(
        "price_below",
        below.clone(),
        &[
            ("250", "", "yes"),
            ("199", "fires", "no"),
            ("201", "", "no"),
            ("198", "", "no"),
            ("209", "", "no"),
            ("211", "", "yes"),
            ("200", "", "yes"),
            ("199", "fires", "no"),
            ("degraded", "", "no"),
            ("empty", "", "no"),
            ("150", "", "no"),
        ],
    );
    table(
        "price_below, first run",
        below.clone(),
        &[("180", "fires", "no")],
    );
    table(
        "price_below, at the bounds",
        below,
        &[
            ("200", "", "yes"),
            ("199.99", "fires", "no"),
            ("209.99", "", "no"),
            ("210", "", "yes"),
        ],
    );
    let at_once = json!({"type": "price_below", "amount": 200, "rearm_percent": 0});
    table(
        "price_below, armed again at once",
        at_once,
        &[
            ("199", "fires", "no"),
            ("200", "", "yes"),
            ("199", "fires", "no"),
        ],
    );
}

#[test]
fn a_partial_result_may_fire_but_never_rearms() {
    table(
        "price_below, partial answers",
        json!({"type": "price_below", "amount": 200, "rearm_percent": 5}),
        &[
            ("250 partial", "", "yes"),
            ("199 partial", "fires", "no"),
            ("250 partial", "", "no"),
            ("198 partial", "", "no"),
            ("250", "", "yes"),
            ("partial", "", "yes"),
            ("198 partial", "fires", "no"),
        ],
    );
}

/// If the search of the cheapest date fails, the scan's best price rises, but no price has risen.
#[test]
fn a_scan_rearms_only_if_its_cheapest_date_was_searched() {
    table(
        "price_below, best of a scan",
        json!({"type": "price_below", "amount": 200, "rearm_percent": 5}),
        &[
            ("250 | 190 | 300", "fires", "no"),
            ("250 | degraded | 300", "", "no"),
            ("250 | 192 | 300", "", "no"),
            ("250 | 260 | degraded", "", "yes"),
            ("250 | 195 | 300", "fires", "no"),
            // The cheap date has passed and left the scan.
            ("250 | - | degraded", "", "yes"),
            ("199 | - | 300", "fires", "no"),
            // A date without offers was searched too.
            ("empty | - | 300", "", "yes"),
        ],
    );
}

#[test]
fn each_cell_has_its_own_state_over_its_samples() {
    table(
        "price_below, cells",
        json!({"type": "price_below", "amount": 200, "rearm_percent": 5, "scope": "cell"}),
        &[
            ("250+240 | 190+260", "b", "a:yes b:no"),
            ("199+240 | 250+degraded", "a", "a:no b:no"),
            ("195+260 | 250+220", "", "a:no b:yes"),
            ("- | 150+150 | 100", "b c", "b:no c:no"),
            // A cell that left the scan returns as a new one.
            ("190 | 150+150 | 100", "a", "a:no b:no c:no"),
            // A cell that the second phase skipped stays in the scan.
            ("skipped | 150+150 | 100", "", "a:no b:no c:no"),
        ],
    );
}

#[test]
fn drop_percent_compares_with_the_lowest_of_the_last_runs() {
    table(
        "drop_percent",
        json!({"type": "drop_percent", "percent": 10, "runs": 3}),
        &[
            // Nothing to compare with.
            ("200", "", "yes"),
            // 180 is ten percent below the lowest of the last runs.
            ("180", "fires", "no"),
            // Compared with 180: false by more than two percent above 162.
            ("181", "", "yes"),
            ("162", "fires", "no"),
            // Rearms at two percent above 145.8, which is ten percent below 162.
            ("147", "", "no"),
            // Ten percent below the alert at 162: fires unarmed. Rearms at two percent above 120.6.
            ("134", "fires", "no"),
            ("degraded", "", "no"),
            ("empty", "", "no"),
            ("140", "", "yes"),
            ("300", "", "yes"),
            // 134 is the lowest of the last three runs with a price.
            ("120", "fires", "no"),
        ],
    );
    table(
        "drop_percent, the last runs only",
        json!({"type": "drop_percent", "percent": 10, "runs": 2}),
        &[
            ("100", "", "yes"),
            ("200", "", "yes"),
            ("150", "", "yes"),
            ("136", "", "yes"),
            ("122", "fires", "no"),
        ],
    );
    // A partial result may lack a cheaper offer.
    table(
        "drop_percent, partial answers",
        json!({"type": "drop_percent", "percent": 10, "runs": 1}),
        &[
            ("200", "", "yes"),
            ("300 partial", "", "yes"),
            ("201", "", "yes"),
            ("180 partial", "fires", "no"),
            ("180", "", "yes"),
        ],
    );
}

/// The price keeps falling, so that the rule never rearms.
#[test]
fn drop_percent_fires_for_each_further_drop_of_its_percent() {
    let ten = json!({"type": "drop_percent", "percent": 10});
    table(
        "drop_percent, further down",
        ten.clone(),
        &[
            ("200", "", "yes"),
            ("180", "fires", "no"),
            ("160", "fires", "no"),
            ("140", "fires", "no"),
            ("126.01", "", "no"),
            // Ten percent below the alert at 140, in two steps.
            ("126", "fires", "no"),
            ("126", "", "yes"),
        ],
    );
    table(
        "drop_percent, further down by steps that are too small by themselves, armed or not",
        ten.clone(),
        &[
            ("200", "", "yes"),
            ("180", "fires", "no"),
            ("172", "", "yes"),
            ("163", "", "yes"),
            ("162", "fires", "no"),
            ("161 partial", "", "no"),
        ],
    );
    table(
        "drop_percent, an alert in another currency",
        ten,
        &[
            ("200 EUR", "", "yes"),
            ("170 EUR", "fires", "no"),
            ("100", "", "no"),
            ("99", "", "yes"),
            ("95", "", "yes"),
            ("89", "fires", "no"),
        ],
    );
    table(
        "drop_percent, a drop in the currency that comes instead",
        json!({"type": "drop_percent", "percent": 10}),
        &[
            ("200 EUR", "", "yes"),
            ("170 EUR", "fires", "no"),
            ("100", "", "no"),
            ("90", "fires", "no"),
        ],
    );
}

#[test]
fn new_low_fires_for_each_further_drop_of_rearm_percent() {
    table(
        "new_low, further down",
        json!({"type": "new_low", "days": 30}),
        &[
            ("200", "", "yes"),
            ("190", "fires", "no"),
            ("190", "", "no"),
            ("190", "", "no"),
            ("120", "fires", "no"),
            ("119", "", "no"),
            ("118", "", "no"),
            ("degraded", "", "no"),
            // Two percent below the alert at 120; a partial result has real prices too.
            ("117.61", "", "no"),
            ("117.60 partial", "fires", "no"),
            ("115.25", "", "no"),
        ],
    );
    table(
        "new_low, a price that wobbles about a low",
        json!({"type": "new_low", "days": 30}),
        &[
            ("200", "", "yes"),
            ("190", "fires", "no"),
            ("189", "", "no"),
            ("190", "", "no"),
            ("188", "", "no"),
            ("191", "", "no"),
            ("187", "", "no"),
            ("188", "", "no"),
            ("186.20", "fires", "no"),
            ("186", "", "no"),
        ],
    );
    table(
        "new_low, every one of them",
        json!({"type": "new_low", "days": 30, "rearm_percent": 0}),
        &[
            ("200", "", "yes"),
            ("199", "fires", "no"),
            ("198.99", "fires", "no"),
            ("198.99", "", "no"),
            ("198.98", "fires", "no"),
            ("200", "", "yes"),
        ],
    );
    table(
        "new_low, cells",
        json!({"type": "new_low", "days": 30, "scope": "cell"}),
        &[
            ("200 | 300", "", "a:yes b:yes"),
            ("190 | 196", "a b", "a:no b:no"),
            ("189 | 190", "b", "a:no b:no"),
            ("186 | 189", "a", "a:no b:no"),
        ],
    );
}

/// Older versions did not store the price of the last alert.
#[test]
fn states_of_older_versions_use_their_lowest_price() {
    let kept = |memory| json!({"": {"armed": false, "currency": "USD", "last": ["195", 0], "memory": memory}});
    let from = |of, memory| {
        let mut monitor = TestMonitor::with(rule(of));
        monitor.states = serde_json::from_value(kept(memory)).unwrap();
        move |seen: &str| {
            let fired = !monitor.run(&run(seen, 1)).is_empty();
            (
                fired,
                monitor.states[WHOLE_SCAN]
                    .last_fired
                    .as_ref()
                    .unwrap()
                    .price
                    .to_string(),
            )
        }
    };
    let mut sees = from(
        json!({"type": "new_low", "days": 30}),
        json!({"lowest": ["190", 0]}),
    );
    // The reference stays at the lowest price of the days, so that a slow fall fires too.
    assert_eq!(
        ["199", "197", "196", "193"].map(&mut sees),
        [
            (false, "200".into()),
            (false, "200".into()),
            (true, "196".into()),
            (false, "196".into())
        ]
    );
    let mut sees = from(
        json!({"type": "drop_percent", "percent": 10}),
        json!({"window": [["200", 0], ["180", 0], ["185", 0]]}),
    );
    assert_eq!(
        ["164", "162"].map(&mut sees),
        [(false, "180".into()), (true, "162".into())]
    );
}

#[test]
fn verdict_fires_when_it_becomes_low() {
    table(
        "verdict",
        json!({"type": "verdict"}),
        &[
            ("200 low", "fires", "no"),
            ("201 low", "", "no"),
            ("degraded", "", "no"),
            ("250 typical", "", "yes"),
            ("210 low", "fires", "no"),
            // The cheapest offer of a partial result may not be the cheapest of all.
            ("250 partial", "", "no"),
            ("empty", "", "no"),
            ("300 high", "", "yes"),
            ("200 low", "fires", "no"),
        ],
    );
}

#[test]
fn available_fires_when_a_price_appears() {
    table(
        "available",
        json!({"type": "available"}),
        &[
            ("300", "", "no"),
            ("empty sold_out", "", "yes"),
            ("degraded", "", "yes"),
            ("310 partial", "fires", "no"),
            ("300", "", "no"),
            ("empty no_rooms", "", "yes"),
            // Unknown: the caller's filter removed the rows; the name matches no hotel.
            ("filtered", "", "yes"),
            ("empty no_match", "", "yes"),
            ("290", "fires", "no"),
        ],
    );
    table(
        "available, first run sold out",
        json!({"type": "available"}),
        &[("empty", "", "yes"), ("200", "fires", "no")],
    );
}

#[test]
fn sold_out_fires_only_on_complete_empty_results() {
    table(
        "sold_out",
        json!({"type": "sold_out"}),
        &[
            ("empty sold_out", "", "no"),
            ("300", "", "yes"),
            ("degraded", "", "yes"),
            ("partial", "", "yes"),
            ("filtered", "", "yes"),
            ("empty no_match", "", "yes"),
            ("failed", "", "yes"),
            ("empty sold_out", "fires", "no"),
            ("empty sold_out", "", "no"),
            ("degraded", "", "no"),
            ("300 partial", "", "yes"),
            ("empty", "fires", "no"),
        ],
    );
    // A whole scan is sold out if every search found nothing; a cell has its own state.
    table(
        "sold_out, best of a scan",
        json!({"type": "sold_out"}),
        &[
            ("300 | 310", "", "yes"),
            ("empty | 310", "", "yes"),
            ("empty | degraded", "", "yes"),
            ("empty | empty", "fires", "no"),
        ],
    );
    table(
        "sold_out, cells",
        json!({"type": "sold_out", "scope": "cell"}),
        &[
            ("300 | 310", "", "a:yes b:yes"),
            ("empty | 310", "a", "a:no b:yes"),
            ("empty+empty | degraded+empty", "", "a:no b:yes"),
            ("300 | empty", "b", "a:yes b:no"),
        ],
    );
}

#[test]
fn stale_fires_after_consecutive_runs_without_an_answer() {
    table_of(
        "stale",
        json!({"type": "stale", "runs": 3}),
        &[
            ("300", "", "yes"),
            ("degraded", "", "yes"),
            ("failed", "", "yes"),
            // Cancelled by the caller: no search was made.
            ("cancelled", "", "yes"),
            ("degraded", "fires", "no"),
            ("degraded", "", "no"),
            // An empty result is an answer.
            ("empty", "", "yes"),
            ("degraded", "", "yes"),
            ("partial", "", "yes"),
            ("300 partial", "", "yes"),
            ("degraded", "", "yes"),
            ("no run", "", "yes"),
            ("no run", "fires", "no"),
            ("no run", "", "no"),
            ("200", "", "yes"),
        ],
        |seen, number| (seen != "no run").then(|| run(seen, number)),
    );
    table(
        "stale, first run",
        json!({"type": "stale", "runs": 1}),
        &[("degraded", "fires", "no"), ("200", "", "yes")],
    );
    table(
        "stale, cells",
        json!({"type": "stale", "runs": 2, "scope": "cell"}),
        &[
            ("300 | degraded", "", "a:yes b:yes"),
            ("300 | degraded", "b", "a:yes b:no"),
            ("300 | degraded+empty", "", "a:yes b:yes"),
        ],
    );
}

#[test]
fn prices_in_another_currency_are_counted_but_not_compared() {
    let monitor = table(
        "price_below, another currency",
        json!({"type": "price_below", "amount": 200, "rearm_percent": 5}),
        &[
            ("150 EUR", "", "yes"),
            ("199", "fires", "no"),
            ("250 EUR", "", "no"),
            ("150 EUR", "", "no"),
            ("250", "", "yes"),
        ],
    );
    assert_eq!(monitor.not_comparable, 3);
    let monitor = table(
        "new_low, another currency",
        json!({"type": "new_low", "days": 30}),
        &[
            ("200", "", "yes"),
            ("150 EUR", "", "yes"),
            ("199", "fires", "no"),
            ("250 EUR", "", "no"),
            ("250 EUR | 250", "", "no"),
            ("empty | 250", "", "yes"),
        ],
    );
    assert_eq!(monitor.not_comparable, 2);
    // Until a price in the requested currency arrives, prices in the other one are compared.
    let monitor = table(
        "drop_percent, only in another currency",
        json!({"type": "drop_percent", "percent": 10}),
        &[
            ("200 EUR", "", "yes"),
            ("170 EUR", "fires", "no"),
            ("120 GBP", "", "no"),
            ("180 EUR", "", "yes"),
            ("100", "", "yes"),
            ("60 EUR", "", "yes"),
            ("90", "fires", "no"),
        ],
    );
    assert_eq!(monitor.not_comparable, 2);
}

#[test]
fn an_overflowing_price_does_not_panic() {
    let huge = "79228162514264337593543950335";
    for of in [
        json!({"type": "new_low", "days": 30}),
        json!({"type": "drop_percent", "percent": 10}),
        json!({"type": "drop_percent", "percent": 1000}),
        json!({"type": "price_below", "amount": 9_007_199_254_740_991_u64, "rearm_percent": 100}),
    ] {
        let mut monitor = TestMonitor::with(rule(of));
        for number in 0..3 {
            monitor.run(&run(huge, number));
            monitor.run(&run("0.0000000000000000000000000001", number));
        }
    }
}

/// An error neither fires a rule about prices nor arms it, nor is it what later prices are compared with
/// (monitors.md, rule 84).
#[test]
fn an_implausible_price_is_an_offer_and_no_price() {
    let below = json!({"type": "price_below", "amount": 200, "rearm_percent": 5});
    table(
        "price_below",
        below.clone(),
        &[
            ("60 implausible", "", "yes"),
            ("190", "fires", "no"),
            ("900 implausible", "", "no"),
            ("189", "", "no"),
            ("250", "", "yes"),
        ],
    );
    // The next price is the lowest, but it is not known that nothing cheaper was there.
    table(
        "price_below, best of a scan",
        below,
        &[
            ("60 implausible | 250", "", "yes"),
            ("60 implausible | 190", "fires", "no"),
            ("60 implausible | 250", "", "yes"),
            ("180 | 190", "fires", "no"),
            ("900 implausible | 250", "", "no"),
            ("unpriced | 250", "", "no"),
            ("250 | 260", "", "yes"),
        ],
    );
    table(
        "new_low",
        json!({"type": "new_low", "days": 30, "rearm_percent": 0}),
        &[
            ("200", "", "yes"),
            ("60 implausible", "", "yes"),
            ("190", "fires", "no"),
        ],
    );
    table(
        "drop_percent",
        json!({"type": "drop_percent", "percent": 30, "runs": 3}),
        &[
            ("200", "", "yes"),
            ("60 implausible", "", "yes"),
            ("195", "", "yes"),
            ("130", "fires", "no"),
        ],
    );
    // It is an offer, whatever its price.
    table(
        "available",
        json!({"type": "available"}),
        &[
            ("empty", "", "yes"),
            ("60 implausible", "fires", "no"),
            ("190", "", "no"),
        ],
    );
    table(
        "sold_out",
        json!({"type": "sold_out"}),
        &[
            ("60 implausible", "", "yes"),
            ("empty", "fires", "no"),
            ("60 implausible", "", "yes"),
            ("empty", "fires", "no"),
        ],
    );
    // The last answer before a price of 300 was empty, before 301 it was not.
    table(
        "back_in_stock",
        json!({"type": "back_in_stock"}),
        &[
            ("301", "", "a:yes"),
            ("300 implausible", "a", "a:no"),
            ("301 implausible", "", "a:yes"),
        ],
    );
    table(
        "stale",
        json!({"type": "stale", "runs": 2}),
        &[
            ("degraded", "", "yes"),
            ("60 implausible", "", "yes"),
            ("degraded", "", "yes"),
        ],
    );
}
