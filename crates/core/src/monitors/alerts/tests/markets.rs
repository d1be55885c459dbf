//! Rate parity: the markets of one stay, compared with a baseline.

use serde_json::{Map, Value, json};

use super::snapshot;
use super::{RunSnapshot, TableRow, TestMonitor, rule, searched, table_of};
use crate::contract::Endpoint;
use crate::scans::cells::{ScanCell, ScanCells};

/// `us 100+102 | de 110+112`: two samples of each market.
fn markets(text: &str, number: usize) -> RunSnapshot {
    let cells = text.split('|').enumerate().map(|(place, cell)| {
        let (market, samples) = cell.trim().split_once(' ').unwrap();
        let values = Map::from_iter([("proxy_country".to_owned(), json!(market))]);
        let items = samples
            .split('+')
            .enumerate()
            .map(|(sample, text)| searched(text, sample * 100 + place, number));
        ScanCell {
            key: Value::Object(values.clone()).to_string(),
            values,
            items: items.collect(),
        }
    });
    snapshot(ScanCells {
        searched_known_low: true,
        created_at: jiff::Timestamp::UNIX_EPOCH,
        endpoint: Endpoint::HotelsRooms,
        request: Map::new(),
        all: cells.collect(),
    })
}

fn parity(title: &str, of: Value, rows: &[TableRow]) -> TestMonitor {
    table_of(title, of, rows, |text, number| Some(markets(text, number)))
}

#[test]
fn a_parity_gap_fires_once_and_rearms_when_it_closes() {
    parity(
        "parity_gap_percent",
        json!({"type": "parity_gap_percent", "percent": 5, "baseline": "us"}),
        &[
            ("us 100+101 | de 106+107", "de", "de:no"),
            ("us 100+101 | de 108+109", "", "de:no"),
            // The ranges of the samples overlap. Four percent is not enough to rearm, three is.
            ("us 100+108 | de 104+106", "", "de:no"),
            ("us 100+101 | de 103+104", "", "de:yes"),
            // A price below the baseline is a gap too.
            ("us 100+101 | de 90+91", "de", "de:no"),
            // One sample, a partial result or another currency is not comparable.
            ("us 100+101 | de 100+degraded", "", "de:no"),
            ("us 100+101 | de 100+100 partial", "", "de:no"),
            ("us 100+101 | de 100 EUR+100 EUR", "", "de:no"),
            ("us empty+empty | de 100+100", "", "de:no"),
            ("us 100+101 | de 100+101", "", "de:yes"),
        ],
    );
}

/// The default of two percent would exceed the gap itself.
#[test]
fn a_small_parity_gap_rearms_at_half_of_it() {
    parity(
        "parity_gap_percent, one percent",
        json!({"type": "parity_gap_percent", "percent": 1, "baseline": "us"}),
        &[
            ("us 1000+1000 | de 1011+1011", "de", "de:no"),
            ("us 1000+1000 | de 1006+1006", "", "de:no"),
            ("us 1000+1000 | de 1005+1005", "", "de:yes"),
            ("us 1000+1000 | de 1020+1020", "de", "de:no"),
        ],
    );
    parity(
        "parity_gap_percent, a rearm_percent from before there was a bound to it",
        json!({"type": "parity_gap_percent", "percent": 1, "baseline": "us", "rearm_percent": 2}),
        &[
            ("us 1000+1000 | de 1011+1011", "de", "de:no"),
            ("us 1000+1001 | de 1000+1000", "", "de:yes"),
        ],
    );
}

#[test]
fn incomparable_markets_are_counted() {
    let of = || json!({"type": "parity_gap_percent", "percent": 5, "baseline": "us"});
    for (seen, counted) in [
        ("us 100+101 | de 100+101 | jp 100+102", 0),
        ("us 100 | de 110", 1),
        ("us 100+101 | de 110+degraded | jp 110+111 partial", 2),
        ("us 100+101 | de 100 EUR+100 EUR | jp 100+101", 1),
        ("us degraded+degraded | de 100+101 | jp 100+101", 2),
        ("us 100+101 | de empty+empty", 1),
        // Skipped by a two-phase scan.
        ("us 100+101 | de skipped+skipped", 0),
    ] {
        let mut monitor = TestMonitor::with(rule(of()));
        monitor.run(&markets(seen, 0));
        assert_eq!(monitor.not_comparable, counted, "{seen}");
    }
}

#[test]
fn overlapping_samples_are_noise_and_not_a_gap() {
    parity(
        "parity_gap_percent, noise",
        json!({"type": "parity_gap_percent", "percent": 5, "baseline": "us"}),
        &[
            ("us 100+120 | de 110+130", "", "de:yes"),
            ("us 100+101 | de 110+130", "de", "de:no"),
        ],
    );
}

#[test]
fn each_market_has_its_own_state() {
    parity(
        "parity_gap_percent, markets",
        json!({"type": "parity_gap_percent", "percent": 5, "baseline": "US", "rearm_percent": 1}),
        &[
            ("us 100+101 | de 104+105 | jp 120+121", "jp", "de:yes jp:no"),
            ("us 100+101 | de 106+107 | jp 104+105", "de", "de:no jp:yes"),
        ],
    );
}

#[test]
fn a_parity_alert_shows_market_and_baseline() {
    let run = markets("us 100+101 | de 106+107", 0);
    let mut monitor = TestMonitor::with(rule(
        json!({"type": "parity_gap_percent", "percent": 5, "baseline": "us"}),
    ));
    let fired = monitor.run(&run);
    let alerts = crate::monitors::alerts::alert_builder::build_alerts(
        &super::alert_builder::run_info(),
        &monitor.rules(),
        Some(&run),
        &fired,
    );
    let shown = serde_json::to_value(&alerts[0]).unwrap();
    assert_eq!(shown["cell"], json!({"proxy_country": "de"}));
    assert_eq!(
        (&shown["price"], &shown["currency"], &shown["threshold"]),
        (&json!(106), &json!("USD"), &json!(5))
    );
    let baseline = &shown["baseline"];
    assert_eq!(
        (
            &baseline["proxy_country"],
            &baseline["price"],
            &baseline["difference"],
            &baseline["difference_percent"]
        ),
        (&json!("us"), &json!(100), &json!(6), &json!(6))
    );
    assert_eq!(
        (&baseline["samples"], &baseline["verdict"]),
        (&json!(2), &json!("gap"))
    );
    assert_eq!(
        (&shown["room"], &shown["link"]),
        (&json!("Double"), &json!("https://example.com/0/1"))
    );
}
