//! The path of each rule, run by run.

use serde_json::json;

use super::{Monitor, WHOLE_SCAN, rule, run, table, table_of};

/// The path of the issue, whole.
#[test]
fn price_below_fires_when_it_becomes_true_and_is_armed_again_at_five_percent_above() {
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
fn a_partial_answer_may_fire_and_never_arms() {
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

/// A cheap date whose search fails makes the scan's best price rise: that is not the price that has risen.
#[test]
fn a_scan_is_armed_again_when_the_date_that_was_cheap_was_looked_at() {
    table(
        "price_below, best of a scan",
        json!({"type": "price_below", "amount": 200, "rearm_percent": 5}),
        &[
            ("250 | 190 | 300", "fires", "no"),
            ("250 | degraded | 300", "", "no"),
            ("250 | 192 | 300", "", "no"),
            ("250 | 260 | degraded", "", "yes"),
            ("250 | 195 | 300", "fires", "no"),
            // The cheap date has passed and is of the scan no more.
            ("250 | - | degraded", "", "yes"),
            ("199 | - | 300", "fires", "no"),
            // A date that has no offers any more was looked at.
            ("empty | - | 300", "", "yes"),
        ],
    );
}

#[test]
fn each_cell_is_followed_by_itself_over_its_samples() {
    table(
        "price_below, cells",
        json!({"type": "price_below", "amount": 200, "rearm_percent": 5, "scope": "cell"}),
        &[
            ("250+240 | 190+260", "b", "a:yes b:no"),
            ("199+240 | 250+degraded", "a", "a:no b:no"),
            ("195+260 | 250+220", "", "a:no b:yes"),
            ("- | 150+150 | 100", "b c", "b:no c:no"),
            // A cell that left the scan comes back as a new one.
            ("190 | 150+150 | 100", "a", "a:no b:no c:no"),
            // One that the second phase left out is of the scan still.
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
            // 180 is ten percent below the lowest of the last runs: enough.
            ("180", "fires", "no"),
            // Against 180 now: false by more than two percent of 162.
            ("181", "", "yes"),
            ("162", "fires", "no"),
            // Armed again at two percent above 145.8, which is ten percent below 162.
            ("147", "", "no"),
            // Ten percent below the 162 that was told: news, armed or not. Then armed again at two percent above 120.6.
            ("134", "fires", "no"),
            ("degraded", "", "no"),
            ("empty", "", "no"),
            ("140", "", "yes"),
            ("300", "", "yes"),
            // 134 is the lowest of the last three that had a price.
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
    // What a partial answer did not see may have been there.
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

/// It falls and falls, each time too fast for the rule to be armed again.
#[test]
fn drop_percent_tells_each_further_drop_of_its_percent() {
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
            // Ten percent below the 140 that was told, in two steps.
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
        "drop_percent, an alert that was told in another currency",
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

/// Weeks at a low, and then the best price ever seen.
#[test]
fn new_low_tells_a_low_that_is_rearm_percent_below_the_last_one_told() {
    table(
        "new_low, further down",
        json!({"type": "new_low"}),
        &[
            ("200", "", "yes"),
            ("190", "fires", "no"),
            ("190", "", "no"),
            ("190", "", "no"),
            ("120", "fires", "no"),
            ("119", "", "no"),
            ("118", "", "no"),
            ("degraded", "", "no"),
            // Two percent below the 120 that was told; a part of an answer has real prices too.
            ("117.61", "", "no"),
            ("117.60 partial", "fires", "no"),
            ("115.25", "", "no"),
        ],
    );
    table(
        "new_low, a price that wobbles about a low",
        json!({"type": "new_low"}),
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
        json!({"type": "new_low", "rearm_percent": 0}),
        &[
            ("200", "", "yes"),
            ("199", "fires", "no"),
            ("198.99", "fires", "no"),
            ("198.99", "", "yes"),
            ("198.98", "fires", "no"),
        ],
    );
    table(
        "new_low, cells",
        json!({"type": "new_low", "scope": "cell"}),
        &[
            ("200 | 300", "", "a:yes b:yes"),
            ("190 | 290", "a b", "a:no b:no"),
            ("189 | 280", "b", "a:no b:no"),
            ("186 | 279", "a", "a:no b:no"),
        ],
    );
}

/// What was kept before prices that were told were.
#[test]
fn states_from_before_go_by_the_lowest_that_they_have_seen() {
    let kept = |memory| json!({"": {"armed": false, "currency": "USD", "last": ["195", 0], "memory": memory}});
    let from = |of, memory| {
        let mut monitor = Monitor::with(rule(of));
        monitor.states = serde_json::from_value(kept(memory)).unwrap();
        move |seen: &str| {
            let fired = !monitor.sees(&run(seen, 1)).is_empty();
            (
                fired,
                monitor.states[WHOLE_SCAN]
                    .told
                    .as_ref()
                    .unwrap()
                    .price
                    .to_string(),
            )
        }
    };
    let mut sees = from(json!({"type": "new_low"}), json!({"lowest": ["190", 0]}));
    // Slowly down: it stays what it was when it was first looked at, so that a slow fall is told too.
    assert_eq!(
        ["189", "187", "186.20", "183"].map(&mut sees),
        [
            (false, "190".into()),
            (false, "190".into()),
            (true, "186.20".into()),
            (false, "186.20".into())
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
fn new_low_has_nothing_to_compare_at_first() {
    table(
        "new_low",
        json!({"type": "new_low"}),
        &[
            ("200", "", "yes"),
            ("210", "", "yes"),
            ("200", "", "yes"),
            ("199", "fires", "no"),
            // Lower still by four percent, so it is told though the rule is not armed: the lowest is 190 now.
            ("190", "fires", "no"),
            ("193", "", "no"),
            ("degraded", "", "no"),
            ("194", "", "yes"),
            ("189 partial", "fires", "no"),
            ("250 partial", "", "no"),
            ("empty", "", "no"),
            ("250", "", "yes"),
            ("189", "", "yes"),
            ("188.99", "fires", "no"),
        ],
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
            // The cheapest of a part may not be the cheapest of all.
            ("250 partial", "", "no"),
            ("empty", "", "no"),
            ("300 high", "", "yes"),
            ("200 low", "fires", "no"),
        ],
    );
}

#[test]
fn available_waits_for_a_price_where_there_was_none() {
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
            // Not known: the rows fell to the caller's own filter; the name fits no hotel.
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
fn sold_out_takes_a_whole_answer_that_has_nothing() {
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
    // Of a whole scan, when every search of it found nothing; of cells, each by itself.
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
fn stale_counts_runs_without_an_answer() {
    table_of(
        "stale",
        json!({"type": "stale", "runs": 3}),
        &[
            ("300", "", "yes"),
            ("degraded", "", "yes"),
            ("failed", "", "yes"),
            // Cancelled by the caller: nobody asked.
            ("cancelled", "", "yes"),
            ("degraded", "fires", "no"),
            ("degraded", "", "no"),
            // An honest nothing is an answer.
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
fn prices_of_another_currency_are_on_record_and_not_compared() {
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
        json!({"type": "new_low"}),
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
    // Never in the currency that was asked for: prices of the one that comes are compared with each other, until the other comes.
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
fn a_price_that_no_number_can_hold_percent_of_is_borne() {
    let huge = "79228162514264337593543950335";
    for of in [
        json!({"type": "new_low"}),
        json!({"type": "drop_percent", "percent": 10}),
        json!({"type": "drop_percent", "percent": 1000}),
        json!({"type": "price_below", "amount": 9_007_199_254_740_991_u64, "rearm_percent": 100}),
    ] {
        let mut monitor = Monitor::with(rule(of));
        for number in 0..3 {
            monitor.sees(&run(huge, number));
            monitor.sees(&run("0.0000000000000000000000000001", number));
        }
    }
}
