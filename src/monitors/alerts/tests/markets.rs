//! Rate parity: markets of one stay beside a baseline.

use serde_json::{Map, Value, json};

use super::{Monitor, Row, Run, rule, searched, table_of};
use crate::contract::Endpoint;
use crate::monitors::alerts::sight::Run as Laid;
use crate::scans::cells::{Cell, Cells};

/// `us 100+102 | de 110+112`: two samples of each market.
fn markets(text: &str, number: usize) -> Run {
    let cells = text.split('|').enumerate().map(|(place, cell)| {
        let (market, samples) = cell.trim().split_once(' ').unwrap();
        let values = Map::from_iter([("proxy_country".to_owned(), json!(market))]);
        let items = samples
            .split('+')
            .enumerate()
            .map(|(sample, text)| searched(text, sample * 100 + place, number));
        Cell {
            key: Value::Object(values.clone()).to_string(),
            values,
            items: items.collect(),
        }
    });
    Laid::new(Cells {
        endpoint: Endpoint::HotelsRooms,
        request: Map::new(),
        all: cells.collect(),
    })
}

fn parity(title: &str, of: Value, rows: &[Row]) -> Monitor {
    table_of(title, of, rows, |text, number| Some(markets(text, number)))
}

#[test]
fn a_gap_fires_once_and_is_armed_again_when_it_has_closed() {
    parity(
        "parity_gap_percent",
        json!({"type": "parity_gap_percent", "percent": 5, "baseline": "us"}),
        &[
            ("us 100+101 | de 106+107", "de", "de:no"),
            ("us 100+101 | de 108+109", "", "de:no"),
            // The ranges of the samples overlap; four percent is not enough to be armed again, three is.
            ("us 100+108 | de 104+106", "", "de:no"),
            ("us 100+101 | de 103+104", "", "de:yes"),
            // Below the baseline is a gap too.
            ("us 100+101 | de 90+91", "de", "de:no"),
            // One sample says nothing, nor does a part of an answer, nor another currency.
            ("us 100+101 | de 100+degraded", "", "de:no"),
            ("us 100+101 | de 100+100 partial", "", "de:no"),
            ("us 100+101 | de 100 EUR+100 EUR", "", "de:no"),
            ("us empty+empty | de 100+100", "", "de:no"),
            ("us 100+101 | de 100+101", "", "de:yes"),
        ],
    );
}

/// Where two percent would be more than the gap itself, half of it is enough.
#[test]
fn a_small_gap_is_armed_again_at_half_of_it() {
    parity(
        "parity_gap_percent, one percent",
        json!({"type": "parity_gap_percent", "percent": 1, "baseline": "us"}),
        &[
            ("us 1000+1000 | de 1010+1010", "de", "de:no"),
            ("us 1000+1000 | de 1006+1006", "", "de:no"),
            ("us 1000+1000 | de 1005+1005", "", "de:yes"),
            ("us 1000+1000 | de 1020+1020", "de", "de:no"),
        ],
    );
    parity(
        "parity_gap_percent, a rearm_percent from before there was a bound to it",
        json!({"type": "parity_gap_percent", "percent": 1, "baseline": "us", "rearm_percent": 2}),
        &[
            ("us 1000+1000 | de 1010+1010", "de", "de:no"),
            ("us 1000+1001 | de 1000+1000", "", "de:yes"),
        ],
    );
}

/// The slot tells why such a rule said nothing.
#[test]
fn markets_that_cannot_be_compared_are_counted() {
    let of = || json!({"type": "parity_gap_percent", "percent": 5, "baseline": "us"});
    for (seen, counted) in [
        ("us 100+101 | de 100+101 | jp 100+102", 0),
        ("us 100 | de 110", 1),
        ("us 100+101 | de 110+degraded | jp 110+111 partial", 2),
        ("us 100+101 | de 100 EUR+100 EUR | jp 100+101", 1),
        ("us degraded+degraded | de 100+101 | jp 100+101", 2),
        ("us 100+101 | de empty+empty", 1),
        // Left out of a scan in two phases.
        ("us 100+101 | de skipped+skipped", 0),
    ] {
        let mut monitor = Monitor::with(rule(of()));
        monitor.sees(&markets(seen, 0));
        assert_eq!(monitor.not_comparable, counted, "{seen}");
    }
}

#[test]
fn noise_is_no_gap_however_far_the_lowest_prices_are_apart() {
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
fn every_market_is_followed_by_itself() {
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
fn the_evidence_has_both_sides() {
    let run = markets("us 100+101 | de 106+107", 0);
    let mut monitor = Monitor::with(rule(
        json!({"type": "parity_gap_percent", "percent": 5, "baseline": "us"}),
    ));
    let fired = monitor.sees(&run);
    let alerts = crate::monitors::alerts::evidence::alerts(
        &super::evidence::of(),
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
