//! The item that represents a cell, parity, the fields of a grid, and the whole grid against a
//! simple loop.

use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::cell::{BestOffer, ItemObservation, representative};
use super::layout::{GridLayout, SweptDimension};
use super::parity::{noise_percent, parity};
use super::*;
use crate::contract::SearchStatus;
use crate::contract::scans::{ItemState, ParityVerdict, Scan};
use crate::ids::ItemId;

fn observation(
    state: ItemState,
    search_status: Option<SearchStatus>,
    price: Option<(&str, &str)>,
) -> ItemObservation {
    ItemObservation {
        is_implausible: false,
        item: ItemId::new(),
        state,
        search_status,
        reason: None,
        price: price.map(|(price, currency)| (price.parse().unwrap(), currency.to_owned())),
        offer: None,
    }
}

fn price(price: &str) -> ItemObservation {
    observation(
        ItemState::Done,
        Some(SearchStatus::Ok),
        Some((price, "USD")),
    )
}

fn room(amount: &str, room: &str, board: &str) -> ItemObservation {
    let offer = BestOffer {
        seller: Some(room.to_owned()),
        board: Some(board.to_owned()),
        ..BestOffer::default()
    };
    ItemObservation {
        offer: Some(offer),
        ..price(amount)
    }
}

#[test]
fn the_highest_price_that_there_can_be_is_compared() {
    let most = Decimal::MAX.to_string();
    let side = |lowest: &str| [price(lowest), price(lowest)];
    let same = parity(&side(&most), &side(&most));
    assert_eq!(same.verdict, ParityVerdict::Noise);
    let far = parity(&side("0.01"), &side(&most));
    assert_eq!(
        (far.verdict, far.difference_percent),
        (ParityVerdict::Gap, None)
    );
}

#[test]
fn a_cell_without_a_price_shows_its_least_certain_item() {
    use SearchStatus::{Degraded, Empty, Ok, Partial};
    let running = observation(ItemState::Running, None, None);
    let pending = observation(ItemState::Pending, None, None);
    let degraded = observation(ItemState::Done, Some(Degraded), None);
    let partial = observation(ItemState::Done, Some(Partial), None);
    let failed = observation(ItemState::Failed, None, None);
    let cancelled = observation(ItemState::Cancelled, None, None);
    let skipped = observation(ItemState::Skipped, None, None);
    let filtered = observation(ItemState::Done, Some(Ok), None);
    let empty = observation(ItemState::Done, Some(Empty), None);
    let order = [
        running, pending, degraded, partial, failed, cancelled, skipped, filtered, empty,
    ];
    for first in 0..order.len() {
        let mut cell = order[first..].to_vec();
        assert_eq!(representative(&cell), Some(&order[first]));
        cell.reverse();
        assert_eq!(
            representative(&cell),
            Some(&order[first]),
            "whatever the order"
        );
        cell.insert(0, price("10"));
        assert_eq!(representative(&cell), Some(&cell[0]), "a price outranks it");
    }
    assert_eq!(representative(&[]), None);
}

#[test]
fn the_cheapest_item_of_one_currency_represents_a_cell() {
    let euro = |amount| {
        observation(
            ItemState::Done,
            Some(SearchStatus::Ok),
            Some((amount, "EUR")),
        )
    };
    for (cell, speaks) in [
        (vec![price("12"), price("10.50"), price("10.5")], 1),
        (vec![price("12"), euro("1"), price("11")], 2),
        (vec![euro("20"), price("1")], 0),
    ] {
        assert_eq!(representative(&cell), Some(&cell[speaks]));
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn parity_distinguishes_a_gap_from_noise() {
    use ParityVerdict::{Gap, Insufficient, Noise, NotComparable};
    let prices = |amounts: &[&str]| {
        amounts
            .iter()
            .map(|amount| room(amount, "Double", "breakfast"))
            .collect::<Vec<_>>()
    };
    let none = observation(ItemState::Done, Some(SearchStatus::Empty), None);
    let euro = ItemObservation {
        price: Some((Decimal::TEN, "EUR".to_owned())),
        ..room("10", "Double", "breakfast")
    };
    let unnamed = [price("90"), price("91")];
    let table = [
        (
            prices(&["100", "104"]),
            prices(&["90", "99.5"]),
            Gap,
            Some(("-10", "-10")),
        ),
        (
            prices(&["100", "104"]),
            prices(&["105", "110"]),
            Gap,
            Some(("5", "5")),
        ),
        (
            prices(&["100", "104"]),
            prices(&["104", "110"]),
            Noise,
            Some(("4", "4")),
        ),
        (
            prices(&["100", "104"]),
            prices(&["101", "103"]),
            Noise,
            Some(("1", "1")),
        ),
        (
            prices(&["100", "110"]),
            prices(&["90", "101"]),
            Noise,
            Some(("-10", "-10")),
        ),
        (
            prices(&["100", "104"]),
            prices(&["90"]),
            Insufficient,
            Some(("-10", "-10")),
        ),
        (
            prices(&["3"]),
            prices(&["4", "5"]),
            Insufficient,
            Some(("1", "33.33")),
        ),
        (
            prices(&["100", "104"]),
            vec![none.clone()],
            Insufficient,
            None,
        ),
        (Vec::new(), prices(&["90", "91"]), Insufficient, None),
        (
            prices(&["100", "104"]),
            vec![
                room("90", "Suite", "breakfast"),
                room("91", "Suite", "breakfast"),
            ],
            NotComparable,
            None,
        ),
        (
            prices(&["100", "104"]),
            vec![
                room("90", "Double", "room only"),
                room("91", "double", "breakfast"),
            ],
            NotComparable,
            None,
        ),
        (
            prices(&["100", "104"]),
            vec![
                room("90", " double ", "Breakfast"),
                none,
                room("91", "Double", "breakfast"),
            ],
            Gap,
            Some(("-10", "-10")),
        ),
        (
            prices(&["100", "104"]),
            vec![euro.clone(), euro],
            NotComparable,
            None,
        ),
        (
            prices(&["100", "104"]),
            unnamed.to_vec(),
            NotComparable,
            None,
        ),
        (
            vec![price("100"), price("104")],
            unnamed.to_vec(),
            Gap,
            Some(("-10", "-10")),
        ),
    ];
    for (at, (baseline, market, verdict, measured)) in table.into_iter().enumerate() {
        let compared = parity(&baseline, &market);
        let amounts = compared
            .difference
            .zip(compared.difference_percent)
            .map(|(amount, percent)| (amount.to_string(), percent.to_string()));
        let measured =
            measured.map(|(amount, percent): (&str, &str)| (amount.to_owned(), percent.to_owned()));
        assert_eq!((compared.verdict, amounts), (verdict, measured), "row {at}");
    }
}

#[test]
fn equal_samples_need_more_than_one_percent_for_a_gap() {
    use ParityVerdict::{Gap, Noise};
    let twice = |amount: &str| vec![room(amount, "Double", "breakfast"); 2];
    for (market, verdict) in [
        ("100", Noise),
        ("99", Noise),
        ("101", Noise),
        ("98.99", Gap),
        ("101.01", Gap),
        ("50", Gap),
    ] {
        let compared = parity(&twice("100"), &twice(market));
        assert_eq!(compared.verdict, verdict, "{market}");
    }
    // Free nights of both markets are equal.
    assert_eq!(parity(&twice("0"), &twice("0")).verdict, Noise);
}

#[test]
fn noise_is_the_range_of_the_cheaper_market_in_percent_of_the_baseline() {
    let prices = |amounts: &[&str]| -> Vec<_> {
        let rooms = amounts.iter();
        rooms
            .map(|amount| room(amount, "Double", "breakfast"))
            .collect()
    };
    for (baseline, market, percent) in [
        (&["200", "201"][..], &["100", "109", "105"][..], Some("4.5")),
        (&["100", "103.333"], &["110"], Some("3.33")),
        (&["100", "103.333"], &["90"], Some("1")),
        (&["100", "101"], &["102", "112"], Some("1")),
        (&["100", "100"], &["90", "90"], Some("1")),
        (&["0", "0"], &["90", "90"], None),
        (&["100", "100"], &[], None),
    ] {
        let noise = noise_percent(&prices(baseline), &prices(market));
        assert_eq!(
            noise.map(|noise| noise.to_string()).as_deref(),
            percent,
            "{baseline:?}"
        );
    }
}

fn scan(endpoint: &str, request: Value, sweep: Value) -> Scan {
    let mut scan = json!({
        "id": crate::ids::ScanId::new(), "endpoint": endpoint, "label": null, "tags": [], "status": "running", "status_reason": null,
        "items": crate::contract::scans::ItemCounts::default(), "requests": crate::contract::scans::RequestCounts::default(),
        "strategy": null, "best": null, "progress": 0.0, "eta_seconds": null, "monitor_id": null, "key_custody": null,
        "created_at": "2026-12-01T08:00:00Z", "started_at": null, "finished_at": null
    });
    scan["request"] = request;
    scan["sweep"] = sweep;
    serde_json::from_value(scan).unwrap()
}

fn layout(scan: &Scan, pairs: &[(&str, &str)]) -> Result<GridLayout, String> {
    let query =
        GridQuery::from_query(pairs.iter().copied()).map_err(|faults| faults.to_string())?;
    GridLayout::of(scan, &query).map_err(|faults| faults.to_string())
}

#[test]
fn faults_name_parameter_found_value_and_swept_fields() {
    let trips = scan(
        "flights/roundtrip",
        json!({"from_airport": "TLV"}),
        json!({"departure_date": {"from": "2030-01-01", "to": "2030-01-09"}, "nights": [2, 3], "to_airport": ["LHR", "CDG"], "samples": 2}),
    );
    let swept = "a field that this scan sweeps: ";
    for (pairs, fault) in [
        (vec![], "`rows` is missing".to_owned()),
        (
            vec![("rows", "from_airport")],
            format!(
                "`rows`: found \"from_airport\"; expected {swept}`to_airport`, `departure_date`, `nights`"
            ),
        ),
        (
            vec![("rows", "samples")],
            format!("`rows`: found \"samples\"; expected {swept}"),
        ),
        (
            vec![("rows", "return_date")],
            format!("`rows`: found \"return_date\"; expected {swept}"),
        ),
        (
            vec![("rows", "Nights")],
            "`rows`: found \"Nights\"; expected the name".to_owned(),
        ),
        (
            vec![("rows", "nights"), ("columns", "nights")],
            format!("`columns`: found \"nights\"; expected {swept}`to_airport`, `departure_date`"),
        ),
        (
            vec![("rows", "nights"), ("baseline", "us")],
            "`baseline`: found \"us\"; expected no baseline for flights/roundtrip".to_owned(),
        ),
    ] {
        let message = layout(&trips, &pairs).unwrap_err();
        assert!(message.starts_with(&fault), "{pairs:?}: {message}");
    }
    let fine = layout(&trips, &[("rows", "departure_date"), ("columns", "nights")]).unwrap();
    let nights = SweptDimension {
        key: "nights".into(),
        field: "return_date".into(),
        start_field: Some("departure_date".into()),
    };
    assert_eq!(
        (fine.rows.field.as_str(), fine.columns),
        ("departure_date", Some(nights))
    );
    let alone = scan("flights/oneway", json!({}), json!({}));
    assert!(
        layout(&alone, &[("rows", "departure_date")])
            .unwrap_err()
            .contains("this scan sweeps no other")
    );
}

#[test]
fn a_baseline_needs_its_market_and_the_same_hotel_and_stays() {
    let sweep =
        json!({"proxy_country": ["US", "de"], "checkin_date": ["2030-01-01"], "nights": [1, 2]});
    let stay = scan(
        "hotels/by-name",
        json!({"hotel_name": "Grand"}),
        sweep.clone(),
    );
    let markets = [("rows", "checkin_date"), ("columns", "proxy_country")];
    for (pairs, part) in [
        (
            vec![
                ("rows", "checkin_date"),
                ("columns", "nights"),
                ("baseline", "us"),
            ],
            "with `proxy_country`",
        ),
        (
            [&markets[..], &[("baseline", "us")]].concat(),
            "missing: `nights`",
        ),
        (
            [&markets[..], &[("baseline", "usa")]].concat(),
            "a country code",
        ),
    ] {
        let message = layout(&stay, &pairs).unwrap_err();
        assert!(
            message.starts_with("`baseline`: found") && message.contains(part),
            "{message}"
        );
    }
    let place = scan("hotels/search", json!({"destination": "Rome"}), sweep);
    assert!(
        layout(&place, &[("rows", "proxy_country"), ("baseline", "us")])
            .unwrap_err()
            .contains("no baseline for hotels/search")
    );
    let stay = scan(
        "hotels/rooms",
        json!({}),
        json!({"proxy_country": ["US", "de"], "samples": 3}),
    );
    assert!(layout(&stay, &[("rows", "proxy_country"), ("baseline", "us")]).is_ok());
    assert!(
        layout(&stay, &[("rows", "proxy_country"), ("baseline", "fr")])
            .unwrap_err()
            .contains("this scan sweeps: `US`, `de`")
    );
}

#[test]
fn a_swept_currency_must_be_on_the_grid() {
    let fares = scan(
        "flights/oneway",
        json!({}),
        json!({"currency": ["USD", "EUR"], "departure_date": ["2030-01-01"]}),
    );
    assert!(
        layout(&fares, &[("rows", "departure_date")])
            .unwrap_err()
            .contains("`currency` as rows or columns")
    );
    assert!(
        layout(
            &fares,
            &[("rows", "departure_date"), ("columns", "currency")]
        )
        .is_ok()
    );
}

#[test]
fn an_alias_is_read_from_the_field_that_it_sets() {
    let trips = |request| scan("flights/roundtrip", request, json!({"max_stops": [0, 1]}));
    for (request, field) in [
        (json!({}), "max_departure_stops"),
        (json!({"max_departure_stops": 2}), "max_return_stops"),
    ] {
        assert_eq!(
            layout(&trips(request), &[("rows", "max_stops")])
                .unwrap()
                .rows
                .field,
            field
        );
    }
}

/// An item with any state and result.
fn any_observation() -> impl Strategy<Value = ItemObservation> {
    let priced = (1_i64..20, prop::bool::ANY).prop_map(|(amount, whole)| {
        let status = if whole {
            SearchStatus::Ok
        } else {
            SearchStatus::Partial
        };
        ItemObservation {
            is_implausible: false,
            price: Some((amount.into(), "USD".to_owned())),
            ..observation(ItemState::Done, Some(status), None)
        }
    });
    let other = prop::sample::select(vec![
        (ItemState::Pending, None),
        (ItemState::Running, None),
        (ItemState::Failed, None),
        (ItemState::Cancelled, None),
        (ItemState::Skipped, None),
        (ItemState::Done, Some(SearchStatus::Empty)),
        (ItemState::Done, Some(SearchStatus::Degraded)),
        (ItemState::Done, Some(SearchStatus::Ok)),
    ])
    .prop_map(|(state, status)| observation(state, status, None));
    prop_oneof![priced, other]
}

proptest! {
    /// Rows × hidden × columns × samples in the order of positions, against a loop over all items
    /// for every cell.
    #[test]
    fn a_grid_equals_a_loop_over_all_items_per_cell(
        (rows, hidden, columns, samples) in (1_usize..6, 1_usize..3, 1_usize..5, 1_usize..4),
        pool in prop::collection::vec(any_observation(), 360),
        transposed in prop::bool::ANY,
    ) {
        let fares = scan("flights/roundtrip", json!({}), json!({
            "departure_date": ["2030-01-01"], "nights": [1], "to_airport": ["LHR"], "samples": 1
        }));
        let sides = if transposed { [("rows", "nights"), ("columns", "departure_date")] } else { [("rows", "departure_date"), ("columns", "nights")] };
        let layout = layout(&fares, &sides).unwrap();
        let mut placed = Vec::new();
        for sample in 0..samples {
            for row in 0..rows { for hide in 0..hidden { for column in 0..columns {
                let at = ((sample * rows + row) * hidden + hide) * columns + column;
                let (row, column) = if transposed { (json!(column), json!(row)) } else { (json!(row), json!(column)) };
                placed.push(PlacedItem { row, column: Some(column), observation: pool[at].clone() });
            } } }
        }
        let grid = build_grid(&fares, &layout, placed.clone());
        let sizes = if transposed { (columns, rows) } else { (rows, columns) };
        prop_assert_eq!((grid.rows.values.len(), grid.columns.unwrap().values.len()), sizes);
        prop_assert_eq!(grid.cells.len(), rows * columns);
        for (at, cell) in grid.cells.iter().enumerate() {
            prop_assert_eq!((&cell.row, &cell.column), (&json!(at / sizes.1), &Some(json!(at % sizes.1))), "row by row");
            let mut cheapest: Option<&ItemObservation> = None;
            let mut all = Vec::new();
            for item in placed.iter().filter(|item| item.row == cell.row && item.column == cell.column) {
                all.push(&item.observation);
                let lower = |kept: &ItemObservation| item.observation.price.as_ref().unwrap().0 < kept.price.as_ref().unwrap().0;
                if item.observation.price.is_some() && cheapest.is_none_or(lower) {
                    cheapest = Some(&item.observation);
                }
            }
            prop_assert_eq!(all.len(), hidden * samples);
            match cheapest {
                Some(best) => prop_assert_eq!((cell.price, cell.item_id), (best.price.as_ref().map(|price| price.0), best.item)),
                None => {
                    prop_assert_eq!(cell.price, None);
                    let shown = all.iter().find(|observation| observation.item == cell.item_id).unwrap();
                    prop_assert_eq!((cell.state, cell.search_status), (shown.state, shown.search_status));
                    let is = |state, status| all.iter().all(|observation| (observation.state, observation.search_status) == (state, status));
                    let has = |state| all.iter().any(|observation| observation.state == state);
                    prop_assert_eq!(cell.search_status == Some(SearchStatus::Empty), is(ItemState::Done, Some(SearchStatus::Empty)));
                    if has(ItemState::Pending) || has(ItemState::Running) {
                        prop_assert_eq!(cell.search_status, None, "not searched yet is no answer");
                    }
                }
            }
        }
    }
}

#[test]
fn nights_are_counted_from_the_dates_of_the_item() {
    let nights = SweptDimension {
        key: "nights".into(),
        field: "return_date".into(),
        start_field: Some("departure_date".into()),
    };
    let held = |text: &str| Some(Value::from(text));
    assert_eq!(
        nights.value(held("2030-03-03"), held("2030-02-25")),
        json!(6)
    );
    assert_eq!(
        nights.value(held("2031-02-25"), held("2030-02-25")),
        json!(365)
    );
    assert_eq!(nights.value(None, held("2030-02-25")), Value::Null);
    let swept = SweptDimensions::of(
        Endpoint::HotelsByName,
        &Map::new(),
        json!({"nights": [2]}).as_object().unwrap(),
    );
    assert_eq!(swept.0[0].field, "checkout_date");
}
