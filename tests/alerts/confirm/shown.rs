//! What people see of confirmations: on the dashboard and on the terminal.

use serde_json::json;

use super::{answer, below, dates};
use crate::alerts::{AlertTest, MOMENT};
use crate::cli::monitors::out;
use crate::support::app::KEY;
use crate::web::Browser;

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_confirmation_and_its_alert_are_shown() {
    let test = AlertTest::open().await;
    let (id, slot, scan, gate) = test.waiting(&dates(1, &below(200))).await;
    let item = &test.items(&scan).await[0];
    let path = item["id"].as_str().unwrap();
    assert_eq!(
        (&item["state"], &item["best_price"]),
        (&json!("running"), &json!(null))
    );
    let first = &item["confirming"];
    assert_eq!(
        (&first["price"], &first["currency"]),
        (&json!(150), &json!("USD")),
        "{item}"
    );
    // A line of a file, and an event, are the item; tables have no such column.
    let file = |format: &str| format!("/v1/scans/{scan}/items?format={format}");
    let line = test.get_as(KEY, &file("ndjson")).await.expect(200).text();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(line.trim()).unwrap(),
        *item
    );
    let table = test.get_as(KEY, &file("csv")).await.expect(200).text();
    assert!(!table.contains("confirming"), "{table}");

    let browser = Browser::sign_in(&test, KEY).await;
    let monitor = browser.page(&format!("/monitors/{id}")).await;
    has(&monitor, &["waits for the confirmation of 1 price", path]);
    has(
        &browser.page(&format!("/scans/{scan}")).await,
        &["confirms 150 USD"],
    );
    has(
        &browser.page(&format!("/items/{path}")).await,
        &["waits for the confirmation of 150 USD"],
    );
    has(
        &out(&test, &["monitors", "show", &id]),
        &["waits for the confirmation of 1 price"],
    );
    has(
        &out(&test, &["why", path]),
        &["waits for the confirmation of 150 USD"],
    );

    gate.open();
    test.second_half(&id, slot).await;
    let item = &test.items(&scan).await[0];
    assert_eq!(
        (&item["state"], item.get("confirming")),
        (&json!("done"), None)
    );
    let monitor = browser.page(&format!("/monitors/{id}")).await;
    has(
        &monitor,
        &[
            "confirmation: one more search of 1 price:",
            "confirmed by one more search",
        ],
    );
    let alert = test.alerts(&id).await[0]["id"].as_str().unwrap().to_owned();
    has(
        &browser.page(&format!("/alerts/{alert}")).await,
        &["<dt>Found first</dt><dd>150 USD", "<dt>Confirmed</dt>"],
    );
    has(&out(&test, &["alerts"]), &["Price below 200 USD"]);
    has(
        &out(&test, &["alerts", "show", &alert]),
        &["Confirmed", "by one more search", "Found first", "150 USD"],
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_that_were_not_confirmed_are_counted() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(1, &below(200))).await;
    // The second search does not complete.
    let mut calls = 0;
    test.respond_with(move |asked| {
        calls += 1;
        answer(if calls == 1 { 150 } else { 0 }, asked)
    });
    let (slot, _) = test.first_half(&id).await;
    test.second_half(&id, slot).await;
    let browser = Browser::sign_in(&test, KEY).await;
    has(
        &browser.page(&format!("/monitors/{id}")).await,
        &["1 alert unconfirmed"],
    );
    has(
        &out(&test, &["monitors", "show", &id]),
        &["1 alert unconfirmed"],
    );
    test.tick(slot + MOMENT * 3).await;
    assert!(test.alerts(&id).await.is_empty());
    test.close().await;
}
