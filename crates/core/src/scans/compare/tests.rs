//! The change of a cell, and which items belong to one cell.

use serde_json::json;

use super::*;
use crate::ids::ItemId;

fn observation(
    state: ItemState,
    status: Option<SearchStatus>,
    price: Option<(&str, &str)>,
) -> ItemObservation {
    ItemObservation {
        is_implausible: false,
        item: ItemId::new(),
        state,
        search_status: status,
        reason: None,
        price: price.map(|(price, currency)| (price.parse().unwrap(), currency.to_owned())),
        offer: None,
    }
}

#[test]
fn a_cell_change_follows_from_both_sides() {
    use Change::{Cheaper, Dearer, Gone, New, NoPrice, NotComparable, Unchanged, Unknown};
    use SearchStatus::{Degraded, Empty, Ok, Partial};
    let price = |amount, currency| {
        Some(observation(
            ItemState::Done,
            Some(Ok),
            Some((amount, currency)),
        ))
    };
    let done = |status| Some(observation(ItemState::Done, Some(status), None));
    let open = |state| Some(observation(state, None, None));
    let table = [
        (
            price("100", "USD"),
            price("90", "USD"),
            Cheaper,
            Some(("-10", "-10")),
        ),
        (
            price("90", "USD"),
            price("100.5", "USD"),
            Dearer,
            Some(("10.5", "11.67")),
        ),
        (
            price("90", "USD"),
            price("90.00", "USD"),
            Unchanged,
            Some(("0", "0")),
        ),
        (price("90", "USD"), price("80", "EUR"), NotComparable, None),
        (done(Empty), price("80", "EUR"), New, None),
        (None, price("80", "EUR"), New, None),
        (price("90", "USD"), done(Empty), Gone, None),
        (price("90", "USD"), None, Gone, None),
        (price("90", "USD"), done(Ok), Gone, None),
        (price("90", "USD"), done(Degraded), Unknown, None),
        (done(Degraded), price("90", "USD"), Unknown, None),
        (done(Partial), price("90", "USD"), Unknown, None),
        (open(ItemState::Pending), price("90", "USD"), Unknown, None),
        (price("90", "USD"), open(ItemState::Skipped), Unknown, None),
        (open(ItemState::Failed), done(Empty), Unknown, None),
        (done(Empty), done(Empty), NoPrice, None),
        (None, done(Empty), NoPrice, None),
    ];
    for (at, (before, after, change, measured)) in table.into_iter().enumerate() {
        let compared = compare_cell(Map::new(), before.as_ref(), after.as_ref());
        let amounts = compared
            .difference
            .zip(compared.difference_percent)
            .map(|(amount, percent)| (amount.to_string(), percent.to_string()));
        let measured =
            measured.map(|(amount, percent): (&str, &str)| (amount.to_owned(), percent.to_owned()));
        assert_eq!((compared.change, amounts), (change, measured), "row {at}");
        let priced = |side: &Option<ItemObservation>| {
            side.as_ref()
                .is_some_and(|observation| observation.price.is_some())
        };
        assert_eq!(
            (compared.before.is_some(), compared.after.is_some()),
            (priced(&before), priced(&after)),
            "row {at}"
        );
    }
}

#[test]
fn a_cell_is_one_product_and_its_dates_in_any_currency() {
    let key = |more: serde_json::Value| {
        let mut body =
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-01"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        cell_key(Endpoint::FlightsOneway, body.as_object().unwrap()).unwrap()
    };
    let plain = key(json!({}));
    for same in [
        json!({"currency": "EUR"}),
        json!({"limit": 3}),
        json!({"strict": true}),
        json!({"from_airport": "tlv"}),
        json!({"sort_type": "Overall"}),
    ] {
        assert_eq!(key(same.clone()), plain, "{same}");
    }
    for other in [
        json!({"to_airport": "CDG"}),
        json!({"departure_date": "2030-01-02"}),
        json!({"passengers": [1, 1]}),
    ] {
        assert_ne!(key(other.clone()), plain, "{other}");
    }
    assert_eq!(cell_key(Endpoint::FlightsOneway, &Map::new()), None);
}
