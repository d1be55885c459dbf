//! A scan from its form to its calendar, with JavaScript and without.

use farescan::contract::Endpoint;

use super::chromium::Chromium;
use super::{called_dates, reply_by_date};
use crate::support::TestService;
use crate::support::reply::Gate;

/// Cells of the calendar with a price.
const PRICES: &str = ".cal td[class^=q]";

/// Fills in the form of a new scan: fares of ZRH to LHR, two weeks of dates.
async fn fill_in(browser: &Chromium) {
    browser.open("/overview").await;
    browser.press("New scan").await;
    browser.wait_for_path("/scans/new").await;
    browser.fill("From", "ZRH").await;
    browser.fill("To", "LHR").await;
    browser.fill("Departure from", "2030-01-01").await;
    browser.fill("to", "2030-01-14").await;
    browser.press("Show what it costs").await;
    browser.wait_for_text("Requests of your plan").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_calendar_fills_in_while_the_scan_runs() {
    let service = TestService::start().await;
    let gate = Gate::closed();
    let wait = gate.clone();
    service
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| {
            let reply = reply_by_date(call);
            let date = call.body["departure_date"].as_str().unwrap_or_default();
            if date >= "2030-01-08" {
                reply.gated_by(&wait)
            } else {
                reply
            }
        });
    let worker = service.start_worker(3);
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    fill_in(&browser).await;
    let preview = browser.text().await;
    Chromium::assert_says(&preview, &["ZRH → LHR", "14 to 28", "On each plan"]);
    assert_eq!(service.call_count("ZRH"), 0, "a preview searches nothing");

    browser
        .press("Submit 14 searches for 14 to 28 requests")
        .await;
    browser.wait_for_path_under("/scans/scn_").await;
    browser.script("window.marker = 'not reloaded'").await;
    // Of seven answered dates five have a price; three more are in flight.
    browser.wait_for_count(PRICES, 5).await;
    browser.wait_for_count(".cal td.busy", 3).await;
    browser.wait_for_text("7 of 14 searches").await;
    assert_eq!(browser.text_of("h1 .chip").await, "running");

    gate.open();
    browser.wait_for_count(PRICES, 12).await;
    browser.wait_for_text("incomplete").await;
    assert_eq!(browser.count(".cal td.degraded").await, 1);
    assert_eq!(browser.count(".cal td.none").await, 1);
    assert_eq!(browser.text_of(".cal td.best").await, "13\n201");
    assert_eq!(browser.script("return window.marker").await, "not reloaded");
    let dates: Vec<_> = (1..=14).map(|day| format!("2030-01-{day:02}")).collect();
    assert_eq!(called_dates(&service, "ZRH"), dates, "each date once");
    worker.stop().await;
    service.check_ledger().await;
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_works_without_javascript() {
    let service = TestService::start().await;
    service
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(reply_by_date);
    let browser = Chromium::without_javascript(service.url()).await;
    browser.sign_in().await;
    assert_eq!(browser.count("html.script").await, 0, "no script ran");
    fill_in(&browser).await;
    browser
        .press("Submit 14 searches for 14 to 28 requests")
        .await;
    let id = browser.wait_for_path_under("/scans/scn_").await;
    let id = format!("scn_{id}");
    let page = browser.text().await;
    Chromium::assert_says(
        &page,
        &["Without JavaScript this page is read again every 15 seconds"],
    );
    assert_eq!(browser.count(PRICES).await, 0);

    let worker = service.start_worker(3);
    service.wait_until_ended(&id).await;
    browser.press("Reload").await;
    browser.wait_for_count(PRICES, 12).await;
    let page = browser.text().await;
    Chromium::assert_says(&page, &["incomplete", "1 of 14 searches did not complete"]);
    // Its buttons open, ask and act without a script too.
    browser.press("Ask again: 1 search").await;
    browser.press("Ask again for 1 to 2 requests").await;
    service
        .wait_for_scan(&id, "it was asked again", |scan| {
            scan["requests"]["spent"] == 15 && scan["finished_at"].is_string()
        })
        .await;
    assert_eq!(service.call_count("ZRH"), 15);
    assert_eq!(service.calls_by_date("ZRH")["2030-01-05"], 2);
    browser.press("Sign out").await;
    browser.wait_for_path("/login").await;
    worker.stop().await;
    browser.end().await;
}
