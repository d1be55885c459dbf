//! Rules that compare with the stored history (monitors.md, rules 74 to 78). The past of a price
//! follows from it: see `snapshot` in `super`.

use serde_json::json;

use super::table;

#[test]
fn percentile_at_most_fires_once_and_rearms_above_its_margin() {
    let monitor = table(
        "percentile_at_most",
        json!({"type": "percentile_at_most", "percentile": 20, "rearm_percent": 5}),
        &[
            // Nothing is known of such a price.
            ("2000", "", "yes"),
            ("171", "", "yes"),
            ("170", "fires", "no"),
            ("160", "", "no"),
            ("174", "", "no"),
            ("2000", "", "no"),
            ("176 partial", "", "no"),
            ("175", "", "yes"),
            ("degraded", "", "yes"),
            ("170 partial", "fires", "no"),
        ],
    );
    assert_eq!(monitor.not_comparable, 2, "counted, not guessed");
    table(
        "percentile_at_most, cells",
        json!({"type": "percentile_at_most", "percentile": 20, "scope": "cell"}),
        &[
            ("180 | 165", "b", "a:yes b:no"),
            ("165 | 2000", "a", "a:no b:no"),
            ("165 | 180", "", "a:no b:yes"),
        ],
    );
}

#[test]
fn new_low_compares_with_the_stored_prices() {
    let monitor = table(
        "new_low",
        json!({"type": "new_low", "days": 30}),
        &[
            // The first run of a monitor, but not the first price.
            ("199", "fires", "no"),
            ("198", "", "no"),
            // Two percent below the price at which it fired.
            ("195", "fires", "no"),
            ("200", "", "no"),
            ("204 partial", "", "no"),
            ("204", "", "yes"),
            ("200", "", "yes"),
            ("2000", "", "yes"),
            ("199", "fires", "no"),
        ],
    );
    assert_eq!(monitor.not_comparable, 1);
}

#[test]
fn back_in_stock_fires_once_for_an_empty_answer() {
    let monitor = table(
        "back_in_stock",
        json!({"type": "back_in_stock"}),
        &[
            // Nothing is known of a complete answer before.
            ("250", "", "a:yes"),
            ("300", "a", "a:no"),
            // Still the same empty answer: partial answers do not end it.
            ("302", "", "a:no"),
            ("empty", "", "a:no"),
            // It was empty since.
            ("300", "a", "a:no"),
            ("301", "", "a:yes"),
            ("300", "a", "a:no"),
        ],
    );
    assert_eq!(monitor.not_comparable, 1);
}
