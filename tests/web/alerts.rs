//! `/alerts` and `/deliveries`: which trip and which monitor each row is about.

use jiff::civil::Date;
use serde_json::{Value, json};

use super::Browser;
use crate::alerts::{AlertTest, fares, monitor};
use crate::support::app::KEY;
use crate::support::{array, text};

#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_deliveries_name_their_trip_and_monitor() {
    let test = AlertTest::open().await;
    test.respond_with(|asked| fares(&[150], asked));
    let rules = json!([{"type": "price_below", "amount": 200, "scope": "cell"}]);
    let mut body = monitor(2, &rules);
    body["name"] = json!("Home for <Easter>");
    let id = test.monitor(&body).await;
    test.run(&id).await;
    let browser = Browser::sign_in(&test, KEY).await;
    let alerts = test.get("/v1/alerts").await;
    let name = format!(
        "href=\"/monitors/{id}\" title=\"Home for &lt;Easter&gt;\">Home for &lt;Easter&gt;</a>"
    );
    let list = browser.page("/alerts").await;
    assert_eq!(list.matches(&name).count(), 2, "{list}");
    for alert in array(&alerts["data"]) {
        let date: Date = text(&alert["cell"]["departure_date"]).parse().unwrap();
        let trip = format!("TLV → LHR, {}", date.strftime("%-d %b %Y"));
        assert!(list.contains(&trip), "{trip}: {list}");
        let page = browser
            .page(&format!("/alerts/{}", text(&alert["id"])))
            .await;
        assert!(page.contains(&trip) && page.contains(&name), "{page}");
    }
    let list = browser.page("/deliveries").await;
    assert!(
        list.contains(&name) && list.contains("TLV → LHR, 30 to 31 days ahead"),
        "{list}"
    );
    let delivery: Value = test.page("/v1/deliveries").await[0].clone();
    let page = browser
        .page(&format!("/deliveries/{}", text(&delivery["id"])))
        .await;
    assert!(
        page.contains(&name) && page.contains("TLV → LHR, 30 to 31 days ahead"),
        "{page}"
    );
    test.close().await;
}

/// A monitor of one date has no swept value, so its alert has no cell.
#[tokio::test(flavor = "multi_thread")]
async fn an_alert_without_a_swept_value_names_its_trip() {
    let test = AlertTest::open().await;
    test.respond_with(|asked| fares(&[150], asked));
    let rules = json!([{"type": "price_below", "amount": 200}]);
    let id = test.monitor(&monitor(1, &rules)).await;
    test.run(&id).await;
    let browser = Browser::sign_in(&test, KEY).await;
    let list = browser.page("/alerts").await;
    let call = &test.upstream.calls()[0].body;
    let date: Date = text(&call["departure_date"]).parse().unwrap();
    let trip = format!("TLV → LHR, {}", date.strftime("%-d %b %Y"));
    assert!(list.contains(&trip), "{trip}: {list}");
    test.close().await;
}

/// Also after the monitor looks at another trip.
#[tokio::test(flavor = "multi_thread")]
async fn an_alert_names_the_trip_that_its_run_searched() {
    let test = AlertTest::open().await;
    test.respond_with(|asked| fares(&[150], asked));
    let rules = json!([{"type": "price_below", "amount": 200, "scope": "cell"}]);
    let id = test.monitor(&monitor(2, &rules)).await;
    test.run(&id).await;
    let mut scan = monitor(2, &rules)["scan"].clone();
    scan["request"]["to_airport"] = json!("CDG");
    test.patch(&id, &json!({"scan": scan})).await;
    let browser = Browser::sign_in(&test, KEY).await;
    let alert = text(&test.alerts(&id).await[0]["id"]);
    for path in ["/alerts", &format!("/alerts/{alert}")] {
        let page = browser.page(path).await;
        assert!(
            page.contains("TLV → LHR, ") && !page.contains("CDG"),
            "{path}: {page}"
        );
    }
    // Of an alert without a search only the swept values are certain.
    execute!(
        test.pool(),
        "update alerts set alert = (alert::jsonb || '{\"item_id\": null}')::json"
    );
    execute!(
        test.pool(),
        "update monitors set updated_at = next_slot + interval '1 year'"
    );
    let list = browser.page("/alerts").await;
    let dates = test.alerts(&id).await;
    let date: Date = text(&dates[0]["cell"]["departure_date"]).parse().unwrap();
    let date = date.strftime(">%-d %b %Y</td>").to_string();
    assert!(list.contains(&date) && !list.contains("CDG"), "{list}");
    test.close().await;
}
