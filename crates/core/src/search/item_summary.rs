//! Summarizes an item's answer: the number of results and the best price. Pure.

use rust_decimal::Decimal;

use super::{Answer, Search};
use crate::contract::{Api, Offer, offers};

/// The part of an answer that a scan stores in columns.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemSummary {
    /// Results after the local filters, at most the caller's `limit`.
    pub results: usize,
    /// The cheapest result, with its currency in upper case.
    pub best: Option<(Offer, String)>,
    /// The local filters removed every result: `filtered_out`, never `empty`.
    pub filtered_out: bool,
}

impl ItemSummary {
    /// Applies the filters that `search` did not send upstream (scans.md, rules 32 and 33).
    pub fn of(search: &Search, answer: &Answer) -> Self {
        let request = search.request().to_body();
        let currency = request
            .get("currency")
            .and_then(|code| code.as_str())
            .unwrap_or("USD")
            .to_ascii_uppercase();
        let mut listed = offers(search.endpoint(), answer.body.text());
        let mut results = answer.results;
        let max_price = request
            .get("max_price")
            .filter(|_| !search.body().contains_key("max_price"));
        if let Some(max_price) =
            max_price.and_then(|price| price.to_string().parse::<Decimal>().ok())
        {
            // Offers without a readable price cannot be compared and are not in the list.
            listed.retain(|offer| offer.price <= max_price);
            results = listed.len();
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
            best: cheapest(listed, &currency),
            filtered_out,
        }
    }
}

/// The cheapest offer, preferably in the requested currency: engines may answer in another one.
fn cheapest(offers: Vec<Offer>, requested: &str) -> Option<(Offer, String)> {
    let with_currency = offers.into_iter().map(|offer| {
        let currency = offer
            .currency
            .clone()
            .unwrap_or_else(|| requested.to_owned());
        (offer, currency)
    });
    let (same_currency, other): (Vec<_>, Vec<_>) =
        with_currency.partition(|(_, currency)| currency == requested);
    let candidates = if same_currency.is_empty() {
        other
    } else {
        same_currency
    };
    // `min_by` returns the first of equal elements: the engine's order.
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
        Search::for_item(request, 50, upstream_filters)
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

    fn best(summary: &ItemSummary) -> Option<String> {
        summary
            .best
            .as_ref()
            .map(|(offer, currency)| format!("{} {currency}", offer.price))
    }

    #[test]
    fn filters_that_cost_the_price_band_are_applied_locally() {
        let local = search(
            &json!({"max_price": 200, "sort_type": "Price", "limit": 2}),
            false,
        );
        assert_eq!(
            Value::Object(local.body().clone()),
            json!({"from_airport": "TLV", "to_airport": "LHR",
            "departure_date": "2027-01-14", "strict": true, "limit": 50})
        );
        let summary = ItemSummary::of(&local, &answer(&[210.0, 190.0, 180.5, 200.0, 0.0]));
        assert_eq!(
            (
                summary.results,
                best(&summary).as_deref(),
                summary.filtered_out
            ),
            (2, Some("180.5 USD"), false)
        );
        let none = ItemSummary::of(&local, &answer(&[210.0, 300.0]));
        assert_eq!(
            (none.results, best(&none), none.filtered_out),
            (0, None, true)
        );
        let nothing = ItemSummary::of(&local, &answer(&[]));
        assert!(!nothing.filtered_out, "an empty answer is empty");
    }

    #[test]
    fn filters_sent_upstream_are_not_applied_again() {
        let sent = search(&json!({"max_price": 200, "sort_type": "Price"}), true);
        assert_eq!(sent.body()["max_price"], 200);
        assert_eq!(sent.body()["sort_type"], "Price");
        assert_eq!(ItemSummary::of(&sent, &answer(&[210.0])).results, 1);
    }

    #[test]
    fn other_sort_orders_are_always_sent() {
        assert_eq!(
            search(&json!({"sort_type": "Duration"}), false).body()["sort_type"],
            "Duration"
        );
    }

    #[test]
    fn prices_in_other_currencies_are_not_compared() {
        let search = search(&json!({"currency": "eur"}), false);
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
            best(&ItemSummary::of(&search, &mixed)).as_deref(),
            Some("95.5 EUR")
        );
    }
}
