//! From a scan to a monitor of it, and the chart of its runs.

use serde_json::{Value, json};

use super::{Browser, form, key};
use crate::alerts::AlertTest;
use crate::support::app::KEY;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService};

/// The page that changes the monitor of "Watch this".
async fn watch_form(service: &TestService, body: &Value) -> String {
    let id = service
        .submit_and_complete(body, |_| SearchOutcome::Ok(100))
        .await;
    let browser = Browser::sign_in(service, key()).await;
    let cost = browser.page(&format!("/monitors/new?like={id}")).await;
    let change = form(&cost, "/monitors/new").with("step", "edit");
    browser.send(&change).await.expect(200).text()
}

#[tokio::test]
async fn watching_a_stay_keeps_its_dates_as_fields() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let parity = json!({
        "endpoint": "hotels/by-name",
        "request": {"hotel_name": "Hotel Arts", "checkin_date": "2030-02-15", "checkout_date": "2030-02-17"},
        "sweep": {"proxy_country": ["us", "de"]}
    });
    let nights = json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts", "checkin_date": "2030-02-15"},
        "sweep": {"nights": [2], "proxy_country": ["us", "de"]}
    });
    for body in [parity, nights] {
        let page = watch_form(&service, &body).await;
        for (name, value) in [
            ("first", "2030-02-15"),
            ("last", "2030-02-15"),
            ("nights", "2"),
        ] {
            let field = format!("name=\"{name}\" value=\"{value}\"");
            assert!(page.contains(&field), "{field}: {page}");
        }
        assert!(!page.contains("checkin_date"), "{page}");
    }
    let fare = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-02-15"}
    });
    let page = watch_form(&service, &fare).await;
    assert!(
        page.contains("name=\"first\" value=\"2030-02-15\""),
        "{page}"
    );
}

/// A question below an amount: the watch costs what a watch of it in words costs, and has its alert.
#[tokio::test]
async fn watching_a_question_asks_it_again_for_a_few_requests() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let question = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": "2030-02-01", "to": "2030-02-28"}},
        "strategy": {"find": "below", "below": 150}
    });
    let id = service
        .submit_and_complete(&question, |_| SearchOutcome::Ok(100))
        .await;
    let browser = Browser::sign_in(&service, key()).await;
    let cost = browser.page(&format!("/monitors/new?like={id}")).await;
    assert!(
        cost.contains("a price below 150 with at most 18 requests a run"),
        "{cost}"
    );
    browser.send(&form(&cost, "/monitors")).await;
    let monitors = service.get("/v1/monitors").await;
    let made = &monitors["data"][0];
    assert_eq!(
        made["scan"]["strategy"],
        json!({"watch": "below", "below": 150}),
        "{made}"
    );
    assert_eq!(made["scan"]["max_requests"], 18);
    assert_eq!(made["alerts"][0]["type"], "price_below");
    assert_eq!(made["alerts"][0]["amount"], 150);
    let page = browser
        .page(&format!("/monitors/{}", made["id"].as_str().unwrap()))
        .await;
    assert!(
        page.contains("Its alerts are sent to nobody.")
            && page.contains("href=\"/channels?monitor="),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_run_of_a_day_is_a_point_of_the_chart() {
    let test = AlertTest::open().await;
    let id = test
        .monitor(&crate::monitors::with(
            &json!({"schedule": {"cron": "0 * * * *", "timezone": "UTC"}}),
        ))
        .await;
    for price in [300, 280, 310] {
        test.respond_with(move |body| Reply::json(json!([fare(price, body)])));
        test.run(&id).await;
    }
    let browser = Browser::sign_in(&test, KEY).await;
    let page = browser.page(&format!("/monitors/{id}")).await;
    assert!(
        page.contains("Lowest price: 3 points with a price; lowest 280 USD"),
        "{page}"
    );
    let chart = page.split("id=\"runs-title\"").nth(1).unwrap();
    assert_eq!(chart.matches("class=\"chart-dot\"").count(), 3, "{chart}");
    assert!(!page.contains("the last run of each"), "{page}");
    test.close().await;
}
