//! What the pages of a scan and of a search say about prices: each figure with what it is about.

use std::collections::BTreeSet;

use farescan::contract::Endpoint;
use serde_json::{Value, json};

use super::{Browser, key};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, array, fares, fares_with, text};

/// A page of an item with three fares, of which the request's `limit` counts two.
async fn item_with_three_fares() -> (TestService, String) {
    let service = TestService::start().await;
    service
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(|call| Reply::json([289, 150, 310].map(|price| fare(price, &call.body)).into()));
    let mut body = fares(1);
    body["request"]["limit"] = json!(2);
    let worker = service.start_worker(2);
    let id = service.submit(&body).await;
    service.wait_until_ended(&id).await;
    worker.stop().await;
    let item = text(&service.items(&id).await[0]["id"]);
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page(&format!("/items/{item}")).await;
    (service, page)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_on_a_search_is_shown_once() {
    let (_service, page) = item_with_three_fares().await;
    assert_eq!(page.matches("180 to 320").count(), 1, "{page}");
    assert!(!page.contains("180 – 320"), "{page}");
    assert!(
        page.contains(
            "The marketplace calls the price of this search low: usual is 180 to 320 USD."
        ),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_show_their_times_and_what_of_them_is_counted() {
    let (_service, page) = item_with_three_fares().await;
    for part in ["Departs", "Arrives", "Duration", "7:15", "10:40", "5 hr"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.contains("2 offers"), "{page}");
    assert!(
        page.contains(
            "The answer has 3 offers, 2 of them within the limit and filters of the request."
        ),
        "{page}"
    );
}

#[tokio::test]
async fn rows_of_a_hotel_scan_name_the_check_in_and_the_stay() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let of = |request: Value, sweep: Value| json!({"endpoint": "hotels/by-name", "request": request, "sweep": sweep});
    let fixed = of(
        json!({"hotel_name": "Hotel Arts", "checkin_date": "2030-02-15"}),
        json!({"nights": [2], "proxy_country": ["us"]}),
    );
    let swept = of(
        json!({"hotel_name": "Hotel Arts"}),
        json!({"checkin_date": ["2030-01-13"], "nights": [2], "proxy_country": ["us"]}),
    );
    let browser = Browser::sign_in(&service, key()).await;
    for (body, row) in [
        (
            fixed,
            "check-in 15 Feb 2030 · check-out 17 Feb 2030 · market US",
        ),
        (
            swept,
            "check-in 13 Jan 2030 · check-out 15 Jan 2030 · market US",
        ),
    ] {
        let id = service
            .submit_and_complete(&body, |_| SearchOutcome::Ok(100))
            .await;
        let page = browser.page(&format!("/scans/{id}")).await;
        assert!(page.contains(&format!(">{row}</a>")), "{row}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tab_of_all_searches_counts_those_that_were_left_out() {
    let service = TestService::start().await;
    service.upstream.answer(|call| {
        let date = text(&call.body["departure_date"]);
        let day: u64 = date[8..].parse().unwrap();
        Reply::json(json!([fare(150 + day * 37 % 60, &call.body)]))
    });
    let worker = service.start_worker(8);
    let body = fares_with(50, &json!({"strategy": {"find": "cheapest"}}));
    let id = service.submit(&body).await;
    let scan = service.wait_until_ended(&id).await;
    worker.stop().await;
    let left_out = scan["strategy"]["unsearched"].as_u64().unwrap();
    assert!((1..=25).contains(&left_out), "one page of them: {scan}");
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page(&format!("/scans/{id}")).await;
    let tab = |name: &str, count: u64| format!("{name} <span class=\"muted\">{count}</span>");
    assert!(page.contains(&tab("All", 50)), "{page}");
    assert!(page.contains(&tab("left out", left_out)), "{page}");
    let page = browser.page(&format!("/scans/{id}?state=skipped")).await;
    let rows = page.split("id=\"items\"").nth(1).unwrap();
    assert_eq!(
        rows.matches("href=\"/items/").count() as u64,
        left_out,
        "{rows}"
    );
}

#[tokio::test]
async fn the_cheapest_of_a_scan_names_its_route_and_its_median() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let airports: Vec<_> = (0..60).map(crate::support::service::airport_code).collect();
    let body = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV"},
        "sweep": {
            "to_airport": airports,
            "departure_date": {"from": "2030-01-01", "to": "2030-02-15"}
        }
    });
    let id = service.submit(&body).await;
    // Only some are completed: the scan of 2,760 is here for its size.
    let mut begun = Vec::new();
    for claimed in service.claim().await.into_iter().take(70) {
        begun.push(service.begin(&claimed).await);
        let price = if begun.len() == 1 { 100 } else { 200 };
        service.finish(&claimed, SearchOutcome::Ok(price)).await;
    }
    let items = service
        .get(&format!("/v1/scans/{id}/items?state=done&limit=500"))
        .await;
    let items = array(&items["data"]);
    let of_price = |price: u64| items.iter().filter(move |item| item["best_price"] == price);
    let cheapest = &of_price(100).next().unwrap()["search"];
    let date: jiff::civil::Date = text(&cheapest["departure_date"]).parse().unwrap();
    let route = format!(
        "TLV → {}, {}",
        text(&cheapest["to_airport"]),
        date.strftime("%-d %b %Y")
    );
    let dates: BTreeSet<_> = items
        .iter()
        .map(|item| text(&item["search"]["departure_date"]))
        .collect();
    assert!(dates.len() > 2, "{dates:?}");
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page(&format!("/scans/{id}")).await;
    assert!(page.contains(&format!("<b>{route}</b>")), "{route}: {page}");
    assert!(
        page.contains(&format!(
            "50 % under 200, the median of the {} prices below",
            dates.len()
        )),
        "{page}"
    );
}

#[tokio::test]
async fn a_scan_that_found_nothing_does_not_promise_a_price() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let id = service
        .submit_and_complete(&fares(2), |_| SearchOutcome::Empty)
        .await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page(&format!("/scans/{id}")).await;
    assert!(
        page.contains("nothing on offer") && !page.contains("no price yet"),
        "{page}"
    );
}

#[tokio::test]
async fn the_legend_of_a_scan_goes_from_cheap_to_dear() {
    let service = TestService::start().await;
    let id = service
        .submit_and_complete(&fares(2), |_| SearchOutcome::Ok(100))
        .await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page(&format!("/scans/{id}")).await;
    let legend = page.split("class=\"legend\"").nth(1).unwrap();
    assert!(
        legend.starts_with("><li>Cheap <span class=\"swatch q1\">"),
        "{legend}"
    );
}

/// A browser with JavaScript follows the scan's events; one without reads the page anew.
#[tokio::test]
async fn a_running_page_renews_itself_without_javascript() {
    let service = TestService::start().await;
    let id = service.submit(&fares(2)).await;
    let browser = Browser::sign_in(&service, key()).await;
    let renewed = "<noscript><meta http-equiv=\"refresh\" content=\"15\"></noscript>";
    let page = browser.page(&format!("/scans/{id}")).await;
    // HTML allows it in the head alone.
    let (head, body) = page.split_once("</head>").unwrap();
    assert!(
        head.contains(renewed) && !body.contains("<noscript"),
        "{page}"
    );
    service.complete_all(|_| SearchOutcome::Ok(1)).await;
    let page = browser.page(&format!("/scans/{id}")).await;
    assert!(!page.contains(renewed), "{page}");
}
