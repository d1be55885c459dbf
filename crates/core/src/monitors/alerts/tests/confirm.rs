//! Rules with `confirm` (monitors.md, rules 85 to 87): what fires only on a second search.

use serde_json::{Value, json};

use super::{at, rule, run};
use crate::contract::monitors::Rule;
use crate::monitors::alerts::run_firings::RunFirings;
use crate::monitors::alerts::state::ScopeStates;
use crate::monitors::store::FirstPrice;

/// Each rule that takes `confirm`, with a run after which it can fire and one on which it does.
fn rules() -> Vec<(Rule, &'static str, &'static str)> {
    let of = |mut body: Value, before, fires| {
        body["confirm"] = json!(1);
        (rule(body), before, fires)
    };
    vec![
        of(json!({"type": "price_below", "amount": 200}), "250", "199"),
        of(json!({"type": "drop_percent", "percent": 10}), "250", "199"),
        of(json!({"type": "new_low", "days": 30}), "250", "199"),
        of(
            json!({"type": "percentile_at_most", "percentile": 20}),
            "250",
            "160",
        ),
        of(json!({"type": "verdict"}), "250", "199 low"),
        of(json!({"type": "back_in_stock"}), "250", "300"),
        of(json!({"type": "available"}), "empty", "250"),
    ]
}

#[test]
fn without_a_second_search_nothing_fires_and_the_state_stays() {
    for (rule, before, fires) in rules() {
        let mut firings = RunFirings::confirming([]);
        let before = firings.apply_rule(0, &rule, ScopeStates::new(), Some(&run(before, 0)));
        let after = firings.apply_rule(0, &rule, before.clone(), Some(&run(fires, 1)));
        assert_eq!(
            (firings.fired.count, firings.unconfirmed),
            (0, 1),
            "{rule:?}"
        );
        assert_eq!(after, before, "{rule:?}");
    }
}

#[test]
fn a_second_search_has_to_be_another_and_complete() {
    for (rule, before, fires) in rules() {
        let mut first = RunFirings::default();
        let before = first.apply_rule(0, &rule, ScopeStates::new(), Some(&run(before, 0)));
        for (fires, found_at, fired) in [
            (fires.to_owned(), 1, 1),
            (fires.to_owned(), 2, 0),
            (format!("{} partial", fires.replace(" low", "")), 1, 0),
        ] {
            let second = run(&fires, 2);
            let found = FirstPrice {
                item: second.cells.all[0].items[0].observation.item,
                price: 150.into(),
                at: at(found_at),
            };
            let mut firings = RunFirings::confirming([found.clone()]);
            firings.apply_rule(0, &rule, before.clone(), Some(&second));
            assert_eq!(firings.fired.count, fired, "{rule:?}: {fires}");
            if fired == 1 {
                let firing = firings.fired.in_order().remove(0);
                assert_eq!(firing.found_first, Some(found));
            }
        }
    }
}

/// As in a backtest (monitors.md, rule 85).
#[test]
fn without_searches_confirm_means_nothing() {
    for (rule, before, fires) in rules() {
        let mut firings = RunFirings::default();
        let states = firings.apply_rule(0, &rule, ScopeStates::new(), Some(&run(before, 0)));
        firings.apply_rule(0, &rule, states, Some(&run(fires, 1)));
        assert_eq!(firings.fired.count, 1, "{rule:?}");
    }
}
