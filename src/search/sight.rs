//! What a scan sees in an item's answer: how many results, and the best price. Pure.

use rust_decimal::Decimal;

use super::{Answer, Search};
use crate::contract::{Api, Offer, offers};

/// The part of an answer that a scan keeps at hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Sight {
    /// Results that are shown: after the filters that were kept back, at most the caller's `limit`.
    pub results: usize,
    /// The cheapest of them, with its currency in upper case.
    pub best: Option<(Offer, String)>,
    /// There were results, and all of them fell to a filter that was kept back: `filtered_out`, never `empty`.
    pub filtered_out: bool,
}

impl Sight {
    /// Looks at the answer to `search`, with the filters applied that it did not send (jobs-api, "Scans").
    #[must_use]
    pub fn of(search: &Search, answer: &Answer) -> Self {
        let asked = search.request().to_body();
        let currency = asked
            .get("currency")
            .and_then(|code| code.as_str())
            .unwrap_or("USD")
            .to_ascii_uppercase();
        let mut seen = offers(search.endpoint(), answer.body.text());
        let mut results = answer.results;
        let ceiling = asked
            .get("max_price")
            .filter(|_| !search.body().contains_key("max_price"));
        if let Some(ceiling) = ceiling.and_then(|price| price.to_string().parse::<Decimal>().ok()) {
            // A row without a readable price cannot be said to be below it.
            seen.retain(|offer| offer.price <= ceiling);
            results = seen.len();
        }
        let filtered_out = results == 0 && answer.results > 0;
        if search.endpoint().api() == Api::Flights {
            results = results.min(
                search
                    .request()
                    .limit()
                    .map_or(usize::MAX, |limit| limit as usize),
            );
        }
        Self {
            results,
            best: cheapest(seen, &currency),
            filtered_out,
        }
    }
}

/// The cheapest offer in the currency that was asked for; an engine may answer in another, which does not compare.
fn cheapest(offers: Vec<Offer>, asked: &str) -> Option<(Offer, String)> {
    let told = offers.into_iter().map(|offer| {
        let currency = offer.currency.clone().unwrap_or_else(|| asked.to_owned());
        (offer, currency)
    });
    let (as_asked, other): (Vec<_>, Vec<_>) = told.partition(|(_, currency)| currency == asked);
    let candidates = if as_asked.is_empty() { other } else { as_asked };
    // `min_by` takes the first of equals: the engine's own order.
    candidates
        .into_iter()
        .min_by(|(one, _), (other, _)| one.price.cmp(&other.price))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::contract::{Endpoint, Request};

    fn search(more: &Value, upstream_filters: bool) -> Search {
        let mut body =
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let request = Request::check(Endpoint::FlightsOneway, body.as_object().unwrap())
            .unwrap()
            .request;
        Search::of_item(request, 50, upstream_filters)
    }

    fn answer(prices: &[f64]) -> Answer {
        let rows: Vec<_> = prices
            .iter()
            .map(|price| json!({"airline": "A", "price_as_number": price}))
            .collect();
        Answer {
            results: rows.len(),
            body: Value::Array(rows).into(),
            stated: None,
            reason: None,
        }
    }

    fn best(sight: &Sight) -> Option<String> {
        sight
            .best
            .as_ref()
            .map(|(offer, currency)| format!("{} {currency}", offer.price))
    }

    #[test]
    fn the_fields_that_cost_the_price_band_are_kept_back_and_applied_here() {
        let kept_back = search(
            &json!({"max_price": 200, "sort_type": "Price", "limit": 2}),
            false,
        );
        assert_eq!(
            Value::Object(kept_back.body().clone()),
            json!({"from_airport": "TLV", "to_airport": "LHR",
            "departure_date": "2027-01-14", "strict": true, "limit": 50})
        );
        let sight = Sight::of(&kept_back, &answer(&[210.0, 190.0, 180.5, 200.0, 0.0]));
        assert_eq!(
            (sight.results, best(&sight).as_deref(), sight.filtered_out),
            (2, Some("180.5 USD"), false)
        );
        let none = Sight::of(&kept_back, &answer(&[210.0, 300.0]));
        assert_eq!(
            (none.results, best(&none), none.filtered_out),
            (0, None, true)
        );
        let nothing = Sight::of(&kept_back, &answer(&[]));
        assert!(!nothing.filtered_out, "an empty answer is empty");
    }

    #[test]
    fn sent_upstream_they_are_not_applied_again() {
        let sent = search(&json!({"max_price": 200, "sort_type": "Price"}), true);
        assert_eq!(sent.body()["max_price"], 200);
        assert_eq!(sent.body()["sort_type"], "Price");
        assert_eq!(Sight::of(&sent, &answer(&[210.0])).results, 1);
    }

    #[test]
    fn another_sort_order_is_sent_always() {
        assert_eq!(
            search(&json!({"sort_type": "Duration"}), false).body()["sort_type"],
            "Duration"
        );
    }

    #[test]
    fn a_price_of_another_currency_does_not_compare() {
        let asked = search(&json!({"currency": "eur"}), false);
        let row = |price: f64, link: &str| json!({"price_as_number": price, "buy_link": link});
        let mixed = Answer {
            results: 2,
            body: json!([
                row(90.0, "https://x.example/f?curr=USD"),
                row(95.5, "https://x.example/f?curr=EUR")
            ])
            .into(),
            stated: None,
            reason: None,
        };
        assert_eq!(
            best(&Sight::of(&asked, &mixed)).as_deref(),
            Some("95.5 EUR")
        );
    }
}
